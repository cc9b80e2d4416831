//! What the world knows for certain about those who are next in line.

use yard_engine::context::Context;
use yard_engine::dispatch::Dispatch;
use yard_engine::{DispatchId, State, Timestamp};

use super::Broken;
use super::oracle::Oracle;
use super::workers::{Claim, Record, Workers};

impl Oracle {
    /// Somebody is lined up behind a dispatch that runs, or behind the next there: he could start now, if only those
    /// had ended.
    pub(super) fn check_lined_up(
        &self,
        next: &Dispatch,
        after: &DispatchId,
        at: Timestamp,
    ) -> Result<(), Broken> {
        let id = &next.id;
        let runs = |id: &DispatchId| self.durable.dispatch(id).filter(|it| it.is_live() && it.has_worker());
        let is_next =
            |(running, next): &(&DispatchId, &Dispatch)| next.id == *after && runs(running).is_some();
        let next_there = self.durable.lined_up().find(is_next).map(|(_, next)| next);
        let Some(before) = runs(after).or(next_there) else {
            return Err(Broken(format!("{id} is in line behind {after}, which does not run")));
        };
        let alone =
            self.durable.lined_up().all(|(first, other)| first != after && other.id.bead() != id.bead());
        Broken::unless(alone, || format!("{id} is not the only one in line behind {after}"))?;
        self.check_allowed(next, at)?;
        self.check_number(next)?;
        let priority = |it: &Dispatch| self.durable.context(&it.context).map(|context| context.priority);
        let more_urgent = self.durable.open_contexts().find(|other| Some(other.priority) > priority(next));
        Broken::unless(more_urgent.is_none(), || format!("{id} is in line before more urgent work"))?;
        let same_slot = next.rig == before.rig
            || self.durable.rig(&next.rig).is_none_or(|rig| rig.max_polecats.is_none());
        let same_slot = same_slot && (next.account.is_none() || next.account == before.account);
        Broken::unless(same_slot, || format!("the slot of {after} is not all that {id} needs"))
    }

    /// Whatever is durable lets everybody start who is in line, or he would have been called back before it became so.
    pub(super) fn check_line(&self) -> Result<(), Broken> {
        for (after, next) in self.durable.lined_up() {
            let open = self.durable.context(&next.context).is_some_and(Context::is_open);
            if open && !self.excused.contains(&next.id) {
                let allowed = self.check_allowed(next, next.started_at);
                allowed.map_err(|broken| Broken(format!("in line behind {after}: {}", broken.0)))?;
            }
        }
        Ok(())
    }

    /// Who is in line starts when the one before him has ended, and not otherwise.
    pub(super) fn check_turn(&self, dispatch: &Dispatch) -> Result<(), Broken> {
        let id = &dispatch.id;
        let place = self.durable.lined_up().find(|(_, next)| next.id == *id);
        let Some((after, _)) = place else {
            return Err(Broken(format!("{id} started as if it had been in line")));
        };
        let over = self.durable.dispatch(after).is_some_and(|before| !before.is_live());
        Broken::unless(over, || format!("{id} started before {after} had ended"))?;
        if self.inherit.contains(id) { Ok(()) } else { self.check_room(dispatch) }
    }

    /// Nobody stays in line for whom there is room, except who could not be called back.
    pub(super) fn check_nobody_is_stuck(&self, state: &State) -> Result<(), Broken> {
        let mut line = state.lined_up().filter(|(_, next)| !self.excused.contains(&next.id));
        let stuck = line.find(|(_, next)| state.finds_room(next));
        let words = |(after, next): (&DispatchId, &Dispatch)| {
            Broken(format!("{} waits behind {after}, and there is room", next.id))
        };
        stuck.map_or(Ok(()), |stuck| Err(words(stuck)))
    }

    /// Who is called back has not begun, and nobody will begin him.
    pub(super) fn check_called_back(&self, id: &DispatchId, workers: &Workers) -> Result<(), Broken> {
        let in_line = self.durable.lined_up().any(|(_, next)| next.id == *id);
        Broken::unless(in_line, || format!("{id} was called back, but is not in line"))?;
        let fenced = workers.claims.get(id).is_none_or(|claim| claim.record == Record::Revoked);
        Broken::unless(fenced, || format!("{id} was called back, but can still begin, or has begun"))
    }

    /// An order is given to a busy shim: that it stands in line behind its dispatch is durable.
    pub(super) fn check_handed_on(&self, id: &DispatchId, after: &DispatchId) -> Result<(), Broken> {
        let in_line = self.durable.lined_up().any(|(before, next)| before == after && next.id == *id);
        Broken::unless(in_line, || format!("{id} was handed on behind {after}, but that is not durable"))
    }

    /// Whether somebody in line may begin, although the log does not say yet that it is his turn.
    pub(super) fn is_its_turn(&self, id: &DispatchId, workers: &Workers) -> bool {
        // A claim that says anything at all, be it only that it should stop, is begun by nobody any more.
        let over = |claim: &Claim| !claim.held && (claim.record != Record::Empty || claim.stop);
        let before = |id: &DispatchId| self.durable.lined_up().find(|(_, next)| next.id == *id);
        let Some((mut after, _)) = before(id) else { return false };
        // All who stand before him are over, not only the last of them.
        loop {
            if !workers.claims.get(after).is_none_or(over) {
                return false;
            }
            match before(after) {
                Some((earlier, _)) => after = earlier,
                None => return true,
            }
        }
    }

    /// Whether the log has somebody in line, who does not run yet.
    pub(super) fn is_in_line(&self, id: &DispatchId) -> bool {
        self.durable.lined_up().any(|(_, next)| next.id == *id)
    }

    /// Whether he stands behind one who is in line himself.
    pub(super) fn is_second_in_line(&self, id: &DispatchId) -> bool {
        self.durable.lined_up().any(|(after, next)| next.id == *id && self.is_in_line(after))
    }

    /// Somebody could not be called back: nothing of what follows is the loop's fault.
    pub(super) fn excuses(&mut self, id: &DispatchId) {
        self.excused.insert(id.clone());
        // Nor could those before him.
        let before = self.durable.lined_up().find(|(_, next)| next.id == *id).map(|(after, _)| after.clone());
        self.excused.extend(before);
    }
}
