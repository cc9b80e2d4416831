//! Add: the short way from commands to scheduled beads. All or nothing: every item is checked, and every id chosen,
//! before the first event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Asker;
use super::bounds::{check_argv, check_priority};
use super::sling::Accepted;
use crate::bead::{Bead, BeadEvent, DepKind, Dependency};
use crate::command::{AddItem, Answer, NewBead, SlingRequest};
use crate::readiness::arrows;
use crate::refusal::Refusal;
use crate::rig::Rig;
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, RigName};

/// What an `add` gets when nothing is said.
const DEFAULT_PRIORITY: u8 = 50;

impl Tx<'_> {
    /// Makes beads that run a command, and schedules each.
    pub(super) fn add(&mut self, asker: &Asker<'_>, items: &[AddItem]) -> Result<Answer, Refusal> {
        let named: BTreeSet<&str> = items.iter().filter_map(|item| item.id.as_deref()).collect();
        if named.len() < items.iter().filter(|item| item.id.is_some()).count() {
            return Err(Refusal::new("exists", "two items have the same id"));
        }
        let mut beads: Vec<(Bead, RigName)> = Vec::with_capacity(items.len());
        let mut made: BTreeSet<BeadId> = BTreeSet::new();
        for (nth, item) in items.iter().enumerate() {
            let at = |refusal: Refusal| match items.len() {
                1 => refusal,
                _ => Refusal { message: format!("item {}: {}", nth + 1, refusal.message), ..refusal },
            };
            let taken = |id: &BeadId| named.contains(id.as_str()) || made.contains(id);
            let id = self.id_of_item(item, nth as u64, taken).map_err(at)?;
            made.insert(id.clone());
            let rig = self.rig_of_item(&id).map_err(at)?;
            beads.push((self.bead_of_item(item, id, &named).map_err(at)?, rig));
        }
        if let Some(path) = self.state().cycle_closed_by(beads.iter().map(|(bead, _)| bead)) {
            return Err(Refusal::new("cycle", format!("the items wait for each other: {}", arrows(&path))));
        }
        let request = SlingRequest::default();
        let mut results = Vec::with_capacity(items.len());
        for (item, (bead, rig)) in items.iter().zip(beads) {
            let priority = item.priority.unwrap_or(DEFAULT_PRIORITY);
            let accepted =
                Accepted { bead: bead.id.clone(), rig, formula: None, priority, task: None, assign: None };
            self.emit(BeadEvent::Added { bead: Arc::new(bead), actor: asker.actor.to_owned() });
            results.push(self.open_context(asker, &request, &accepted, None));
        }
        Ok(Answer::Added { results })
    }

    fn id_of_item(
        &self,
        item: &AddItem,
        nth: u64,
        taken: impl Fn(&BeadId) -> bool,
    ) -> Result<BeadId, Refusal> {
        let Some(text) = &item.id else { return self.state().new_bead_id(None, nth, taken) };
        let id = BeadId::parse(text)?;
        if self.state().beads.contains_key(&id) {
            return Err(Refusal::new("exists", format!("bead {id} exists already")));
        }
        Ok(id)
    }

    fn rig_of_item(&self, id: &BeadId) -> Result<RigName, Refusal> {
        let Some(Rig { name, parked, docked, .. }) = self.state().rig_of(id) else {
            return Err(Refusal::new("no-rig", format!("no rig owns the prefix of {id}"))
                .hint("ym rig list shows the prefixes"));
        };
        if *parked || *docked {
            let word = if *parked { "parked" } else { "docked" };
            return Err(Refusal::new(&format!("rig-{word}"), format!("rig {name} is {word}")));
        }
        Ok(name.clone())
    }

    fn bead_of_item(&self, item: &AddItem, id: BeadId, named: &BTreeSet<&str>) -> Result<Bead, Refusal> {
        check_argv(&item.argv)?;
        if let Some(priority) = item.priority {
            check_priority(priority)?;
        }
        let mut dependencies = Vec::new();
        for after in &item.after {
            let on = BeadId::parse(after)?;
            if !self.state().beads.contains_key(&on) && !named.contains(after.as_str()) {
                return Err(Refusal::new("unknown-bead", format!("there is no bead {on} to wait for")));
            }
            dependencies.push(Dependency::new(on, DepKind::Blocks));
        }
        let title = item.name.clone().unwrap_or_else(|| item.argv.join(" ").chars().take(200).collect());
        let title = if title.trim().is_empty() { "command".to_owned() } else { title };
        let new = NewBead { title, dependencies, argv: Some(item.argv.clone()), ..NewBead::default() };
        self.checked_bead_with(&new, id)
    }
}

impl State {
    /// A cycle that these new beads would close among themselves, or through beads that already wait for one of
    /// their ids.
    fn cycle_closed_by<'a>(&'a self, new: impl Iterator<Item = &'a Bead>) -> Option<Vec<BeadId>> {
        let new: BTreeMap<&BeadId, &Bead> = new.map(|bead| (&bead.id, bead)).collect();
        // Otherwise edges that lead out of the new beads never lead back.
        let through_old = new.keys().any(|id| self.is_awaited(id));
        let old =
            |id: &BeadId| self.beads.get(id).map(|e| &*e.bead).filter(|b| through_old && !b.is_closed());
        let waits = |id: &BeadId| -> Vec<&'a BeadId> {
            let edges = new.get(id).copied().or_else(|| old(id)).map(|b| b.dependencies.as_slice());
            edges.unwrap_or_default().iter().filter(|d| d.kind.makes_wait()).map(|d| &d.on).collect()
        };
        let mut finished: BTreeSet<&BeadId> = BTreeSet::new();
        for start in new.keys().copied() {
            let mut path: Vec<(&BeadId, Vec<&BeadId>)> = vec![(start, waits(start))];
            let mut on_path: BTreeSet<&BeadId> = BTreeSet::from([start]);
            while let Some((id, left)) = path.last_mut() {
                let Some(next) = left.pop() else {
                    on_path.remove(*id);
                    finished.insert(*id);
                    path.pop();
                    continue;
                };
                if on_path.contains(next) {
                    let cycle = path.iter().map(|(id, _)| *id).skip_while(|id| *id != next);
                    return Some(cycle.chain([next]).cloned().collect());
                }
                if !finished.contains(next) {
                    on_path.insert(next);
                    path.push((next, waits(next)));
                }
            }
        }
        None
    }
}
