//! Where a bead stands: one total function of the bead, its open context and what became of its last request.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::BeadId;
use crate::bead::{BeadEntry, Verdict};
use crate::context::Context;
use crate::merge::{MergeRequest, MergeStage};
use crate::readiness::ReasonCode;
use crate::state::State;

/// The words of `state` in every document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Known, nothing asked of it.
    Open,
    /// Part of a convoy that is not launched yet.
    Staged,
    /// Could start: waits for room, time or resume.
    Queued,
    /// Waits for dependencies or for a person.
    Blocked,
    /// An agent has been sent it, and is to claim it.
    Assigned,
    /// A worker is on it.
    Running,
    /// Its worker finished; close or merge awaited.
    Done,
    /// Gave up.
    Failed,
    /// Called off.
    Cancelled,
    /// Could not be started.
    CircuitBroken,
    /// Done.
    Closed,
}

impl Standing {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Staged => "staged",
            Self::Queued => "queued",
            Self::Blocked => "blocked",
            Self::Assigned => "assigned",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::CircuitBroken => "circuit-broken",
            Self::Closed => "closed",
        }
    }
}

impl State {
    /// Where a bead stands; none if nobody has it.
    pub fn standing(&self, id: &BeadId) -> Option<Standing> {
        let entry = self.beads.get(id)?;
        if entry.bead.is_closed() {
            return Some(Standing::Closed);
        }
        if entry.work.live.is_some() {
            return Some(Standing::Running);
        }
        if let Some(context) = &entry.work.context {
            let ordered = self.context(context).is_some_and(|context| context.sent.is_some());
            return Some(if ordered { Standing::Assigned } else { self.waiting(entry) });
        }
        Some(match entry.work.verdict {
            None if self.is_only_staged(id) => Standing::Staged,
            // Its convoy has asked for it: it gets its context as soon as it is ready.
            None if self.will_be_fed(entry) => self.waiting(entry),
            None => Standing::Open,
            Some(Verdict::Done) if self.merges.get(id).is_some_and(|m| m.problem().is_some()) => {
                Standing::Blocked
            }
            Some(Verdict::Done) => Standing::Done,
            Some(Verdict::Failed) => Standing::Failed,
            Some(Verdict::Unavailable) => Standing::Blocked,
            Some(Verdict::Cancelled) => Standing::Cancelled,
            Some(Verdict::CircuitBroken) => Standing::CircuitBroken,
        })
    }

    /// What somebody asked for waits for other beads or a person, or only for room and time.
    fn waiting(&self, entry: &BeadEntry) -> Standing {
        let blocked = entry.blocked || self.reasons(&entry.bead.id).iter().any(|r| r.code.is_blocking());
        if blocked { Standing::Blocked } else { Standing::Queued }
    }

    /// Whether this bead can still come to its end without a person: it runs, will run when there is room or time,
    /// or waits only for beads of which that is true.
    pub fn can_progress(&self, id: &BeadId, dispatches_by_itself: bool) -> bool {
        !self.that_can_progress(std::iter::once(id), dispatches_by_itself).is_empty()
    }

    /// Those of which that is true.
    pub(crate) fn that_can_progress<'a>(
        &self,
        ids: impl Iterator<Item = &'a BeadId>,
        dispatches_by_itself: bool,
    ) -> BTreeSet<BeadId> {
        let asked: BTreeSet<&BeadId> = ids.collect();
        // Each bead on the way with how many of its blockers are not known to end; a cycle never gets to zero, nor does
        // whatever waits for a bead that does not move.
        let mut waits: BTreeMap<BeadId, usize> = BTreeMap::new();
        let mut waited_by: BTreeMap<BeadId, Vec<BeadId>> = BTreeMap::new();
        let mut ends: Vec<BeadId> = Vec::new();
        let mut pending: Vec<BeadId> = asked.iter().map(|id| (*id).clone()).collect();
        while let Some(next) = pending.pop() {
            if waits.contains_key(&next) {
                continue;
            }
            let Some(entry) = self.beads.get(&next) else { continue };
            // Whoever waits for a closed bead waits for its merge, which somebody else may never make.
            let is_stuck =
                |merge: &MergeRequest| merge.problem().is_some() || merge.stage == MergeStage::Offered;
            let merge_is_stuck = entry.bead.is_closed()
                && !asked.contains(&next)
                && self.merges.get(&next).is_some_and(is_stuck);
            if merge_is_stuck {
                continue;
            }
            let moves = entry.bead.is_closed() || entry.work.live.is_some();
            let will_move = moves || (dispatches_by_itself && self.waits_only_for_room_time_and_beads(entry));
            if !will_move {
                continue;
            }
            let waiting = if moves { Vec::new() } else { self.waits_for(&next) };
            let blockers: BTreeSet<BeadId> = waiting.into_iter().map(|(_, on)| on).collect();
            if blockers.is_empty() {
                ends.push(next.clone());
            }
            waits.insert(next.clone(), blockers.len());
            for blocker in blockers {
                waited_by.entry(blocker.clone()).or_default().push(next.clone());
                pending.push(blocker);
            }
        }
        let mut found = BTreeSet::new();
        while let Some(ended) = ends.pop() {
            for waiting in waited_by.remove(&ended).unwrap_or_default() {
                if let Some(count) = waits.get_mut(&waiting) {
                    *count -= 1;
                    if *count == 0 {
                        ends.push(waiting);
                    }
                }
            }
            if asked.contains(&ended) {
                found.insert(ended);
            }
        }
        found
    }

    /// Whether a bead that is scheduled, or will be by its convoy, starts by itself once its blockers are closed.
    fn waits_only_for_room_time_and_beads(&self, entry: &BeadEntry) -> bool {
        use ReasonCode as C;
        if entry.work.verdict == Some(Verdict::Done) {
            // Its branch is merged, its tracker closes it, or its time runs out and it is tried again.
            return self.merges.get(&entry.bead.id).is_none_or(|merge| merge.problem().is_none());
        }
        let context = entry.work.context.as_ref().and_then(|id| self.context(id));
        let never_room =
            |c: &Context| c.assign.is_none() && c.limits(false).any(|limit| self.room(&limit).max == Some(0));
        let scheduled = context.map_or(self.will_be_fed(entry), |context| !never_room(context));
        if !scheduled || self.pause.as_ref().is_some_and(|pause| pause.until.is_none()) {
            return false;
        }
        self.reasons(&entry.bead.id).iter().all(|reason| match reason.code {
            C::AwaitingAgent => self.agents_there() > 0,
            C::BlockedBy | C::Paused | C::Capacity | C::HostLoad | C::NotBefore | C::AccountCooldown => true,
            C::Deferred | C::CostLimit => reason.until.is_some(),
            C::Staged
            | C::MissingDependency
            | C::Gated
            | C::RigParked
            | C::RigDocked
            | C::CircuitBroken
            | C::AwaitingClose
            | C::AwaitingMerge
            | C::MergeConflict
            | C::Held
            | C::ClaimedElsewhere
            | C::RetriesExhausted
            | C::Running
            | C::NotDispatchable
            | C::NoRig
            | C::Cycle
            | C::Closed => false,
        })
    }
}
