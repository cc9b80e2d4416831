//! Tracks: open beads that are joined by what they wait for. Two tracks have nothing to do with each other, so they can be
//! worked on side by side. A parent joins nothing: what lies below an epic is as independent as its own edges say.

use std::collections::BTreeSet;

use crate::state::State;
use crate::{AgentName, BeadId};

/// Open beads that are joined by what they wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// Its beads, by id.
    pub beads: Vec<BeadId>,
    /// The agent it belongs to.
    pub agent: Option<AgentName>,
}

impl State {
    /// The beads of a bead's track, by number.
    fn track_from(&self, number: u32, seen: &mut BTreeSet<u32>) -> Vec<u32> {
        let mut found = Vec::new();
        let mut pending = vec![number];
        while let Some(next) = pending.pop() {
            let open = self.beads.at(next).is_some() && !self.beads.is_closed_at(next);
            if !open || !seen.insert(next) {
                continue;
            }
            found.push(next);
            pending.extend(self.open_blockers_at(next));
            pending.extend(self.dependents.of(Some(next)));
        }
        found
    }

    /// The open beads that are joined to this one, it among them, by id.
    pub fn track_of(&self, bead: &BeadId) -> Vec<BeadId> {
        let Some(number) = self.beads.number(bead) else { return Vec::new() };
        let numbers = self.track_from(number, &mut BTreeSet::new());
        let mut beads: Vec<BeadId> = numbers.into_iter().map(|n| self.beads.name(n).clone()).collect();
        beads.sort_unstable();
        beads
    }

    /// Every track in which something waits for an agent or is with one, by its first bead.
    pub fn tracks(&self) -> Vec<Track> {
        let waits = self.open_contexts().filter(|context| context.assign.is_some());
        let with_agents = self.live_dispatches().filter(|dispatch| dispatch.claim.is_some());
        let mut of_agents: BTreeSet<&BeadId> = waits.map(crate::context::Context::bead).collect();
        of_agents.extend(with_agents.map(|dispatch| dispatch.id.bead()));
        let mut seen = BTreeSet::new();
        let mut tracks = Vec::new();
        for number in of_agents.into_iter().filter_map(|id| self.beads.number(id)) {
            if seen.contains(&number) {
                continue;
            }
            let numbers = self.track_from(number, &mut seen);
            let mut beads: Vec<BeadId> = numbers.into_iter().map(|n| self.beads.name(n).clone()).collect();
            beads.sort_unstable();
            let agent = beads.iter().find_map(|bead| self.track_owner(bead)).cloned();
            tracks.push(Track { beads, agent });
        }
        tracks.sort_by(|one, other| one.beads.first().cmp(&other.beads.first()));
        tracks
    }
}
