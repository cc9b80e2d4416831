//! What waits for an agent: every context that would be given to one if one were free, in the order of the queue. Some wait
//! for anybody, some for one agent by name.

use std::collections::BTreeMap;

use crate::queue::OrderKey;
use crate::{AgentName, ContextId};

type Line = BTreeMap<OrderKey, ContextId>;

/// Who waits for whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Offers {
    anyone: Line,
    named: BTreeMap<AgentName, Line>,
    places: BTreeMap<ContextId, (Option<AgentName>, OrderKey)>,
}

impl Offers {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn contains(&self, id: &ContextId) -> bool {
        self.places.contains_key(id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &ContextId> {
        self.places.keys()
    }

    /// Puts a context where it belongs, also if it stands elsewhere.
    pub(crate) fn insert(&mut self, id: &ContextId, to: Option<AgentName>, key: OrderKey) {
        if self.places.get(id).is_some_and(|(known, place)| *known == to && *place == key) {
            return;
        }
        self.remove(id);
        let line = match &to {
            None => &mut self.anyone,
            Some(name) => self.named.entry(name.clone()).or_default(),
        };
        line.insert(key, id.clone());
        self.places.insert(id.clone(), (to, key));
    }

    pub(crate) fn remove(&mut self, id: &ContextId) {
        match self.places.remove(id) {
            None => {}
            Some((None, key)) => {
                self.anyone.remove(&key);
            }
            Some((Some(name), key)) => {
                if let Some(line) = self.named.get_mut(&name) {
                    line.remove(&key);
                    if line.is_empty() {
                        self.named.remove(&name);
                    }
                }
            }
        }
    }

    /// What anybody may take, the first first.
    pub(crate) fn for_anyone(&self) -> impl Iterator<Item = (&OrderKey, &ContextId)> {
        self.anyone.iter()
    }

    /// What only this agent may take, the first first.
    pub(crate) fn for_one(&self, name: &AgentName) -> impl Iterator<Item = (&OrderKey, &ContextId)> {
        self.named.get(name).into_iter().flatten()
    }

    /// The agents by name for whom something waits.
    pub(crate) fn names(&self) -> impl Iterator<Item = &AgentName> {
        self.named.keys()
    }

    /// Whom a context waits for; none if it does not wait, or for anybody.
    pub(crate) fn reserved_for(&self, id: &ContextId) -> Option<&AgentName> {
        self.places.get(id).and_then(|(name, _)| name.as_ref())
    }
}
