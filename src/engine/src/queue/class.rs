//! The members of one class, in the order in which they would start.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::OrderKey;
use crate::ContextId;
use crate::capacity::Limit;
use crate::tidy::close_up;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Class {
    /// By priority, the most urgent first: ageing may make another order of them.
    items: BTreeMap<Reverse<u8>, BTreeMap<OrderKey, ContextId>>,
    /// The full limit this class waits for, if it does.
    pub(super) waits_on: Option<Limit>,
}

impl Class {
    /// Who would start first.
    pub(super) fn head(&self) -> Option<(&OrderKey, &ContextId)> {
        self.items.values().filter_map(BTreeMap::first_key_value).min_by_key(|(order, _)| **order)
    }

    pub(super) fn insert(&mut self, order: OrderKey, priority: u8, id: ContextId) {
        self.items.entry(Reverse(priority)).or_default().insert(order, id);
    }

    pub(super) fn remove(&mut self, order: &OrderKey, priority: u8) {
        let Some(equals) = self.items.get_mut(&Reverse(priority)) else { return };
        equals.remove(order);
        if equals.is_empty() {
            self.items.remove(&Reverse(priority));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.values().map(BTreeMap::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Who has the highest priority; of equals, who would start first.
    pub(super) fn most_urgent(&self) -> Option<(u8, &OrderKey, &ContextId)> {
        let (Reverse(priority), equals) = self.items.first_key_value()?;
        equals.first_key_value().map(|(order, id)| (*priority, order, id))
    }

    /// Gives back the room that lists keep for more to come.
    pub(super) fn tidy(&mut self) {
        self.items.values_mut().for_each(close_up);
    }

    /// How many stand before this place. Mostly everybody does: whoever comes last asks.
    pub(super) fn ahead_of(&self, order: &OrderKey) -> u64 {
        let ahead = |equals: &BTreeMap<OrderKey, ContextId>| {
            let everybody = equals.keys().next_back().is_some_and(|last| last < order);
            if everybody { equals.len() } else { equals.range(..order).count() }
        };
        self.items.values().map(|equals| ahead(equals) as u64).sum()
    }
}
