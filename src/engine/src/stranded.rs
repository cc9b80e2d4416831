//! Which convoys are really stuck: nothing of them runs, and nothing of them can go on without a person.

use crate::readiness::Reason;
use crate::state::State;
use crate::{BeadId, ConvoyId};

/// A convoy that is stuck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// Which.
    pub convoy: ConvoyId,
    /// Open beads that nothing speaks against: nobody is there to start them.
    pub ready: Vec<BeadId>,
    /// Every open bead, with the reasons why it does not run.
    pub stuck: Vec<(BeadId, Vec<Reason>)>,
}

impl State {
    /// The open convoys in which no open bead can go on by itself, by id. `dispatches_by_itself` says whether somebody
    /// is there to start what is ready.
    pub fn stranded(&self, dispatches_by_itself: bool) -> Vec<Stranded> {
        let under_way =
            self.convoys().filter(|convoy| convoy.is_open() && self.open_beads_of(&convoy.id) > 0);
        let stranded = under_way.filter_map(|convoy| {
            let open: Vec<&BeadId> = convoy.tracked.iter().filter(|bead| !self.is_closed(bead)).collect();
            if !self.that_can_progress(open.iter().copied(), dispatches_by_itself).is_empty() {
                return None;
            }
            let stuck: Vec<_> = open.into_iter().map(|bead| (bead.clone(), self.reasons(bead))).collect();
            let ready = stuck.iter().filter(|(_, reasons)| reasons.is_empty()).map(|(bead, _)| bead.clone());
            Some(Stranded { convoy: convoy.id.clone(), ready: ready.collect(), stuck })
        });
        stranded.collect()
    }
}
