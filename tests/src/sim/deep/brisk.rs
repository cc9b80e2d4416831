//! Much short work, for which the loop decides ahead who is next: an order that waits with a busy shim is begun by it when
//! the one before has ended, whether a daemon lives or not.

use yard_engine::command::{NewBead, SlingRequest};
use yard_engine::{Command, DispatchId, Millis};

use crate::sim::Broken;
use crate::sim::daemon::Halt;
use crate::sim::history::World;

impl World {
    /// How long the programs of a new bead run.
    pub(in crate::sim) fn how_long_it_runs(&mut self) -> Millis {
        let long = self.dice.one_in(if self.brisk { 16 } else { 2 });
        Millis(if long { 400 } else { 4 })
    }

    /// More beads than slots, all of them scheduled.
    pub(in crate::sim) fn much_short_work(&mut self) -> Result<(), Halt> {
        let mut ids = Vec::new();
        for n in 0..self.dice.between(4, 9) {
            let id = format!("a-s{n}");
            ids.push(id.clone());
            let title = "short work".to_owned();
            self.add_bead(NewBead { id: Some(id), title, ..NewBead::default() })?;
        }
        let request = SlingRequest { ids, no_convoy: self.dice.one_in(2), ..SlingRequest::default() };
        self.ask(&Command::Sling(Box::new(request))).map(|_| ())
    }

    /// A good deal happens with nobody interfering: work begins and ends, and the loop hears of it.
    pub(in crate::sim) fn burst(&mut self) -> Result<(), Halt> {
        for _ in 0..self.dice.between(2, 12) {
            self.shims_go_on(2)?;
            self.all_reports_arrive();
            self.idle()?;
        }
        // Whoever stops dispatch in the middle of it must not see a start any more; and then it goes on.
        if self.dice.one_in(8) {
            self.ask(&Command::Pause { reason: None, until: None })?;
            self.shims_go_on(2)?;
            self.ask(&Command::Resume)?;
        }
        Ok(())
    }

    /// A shim has nothing more to do with a dispatch, and goes on with the order that waits, if it can.
    pub(in crate::sim) fn shim_goes_on_after(&mut self, id: &DispatchId) -> Result<(), Broken> {
        if self.faults && self.dice.one_in(12) {
            // It cannot be used again.
            self.nobody_waits_behind(id);
            return Ok(());
        }
        let Some(next) = self.workers.waiting.remove(id) else { return Ok(()) };
        self.tell(|| format!("the shim of {id} goes on with {next}"));
        self.workers.launch(&next);
        if self.dice.one_in(2) {
            let nth = self.workers.launched.len() - 1;
            self.shim_arrives(nth)?;
        }
        Ok(())
    }

    /// The shim of a dispatch is gone: what waited with it will never begin, and its pool finds that out.
    pub(in crate::sim) fn nobody_waits_behind(&mut self, id: &DispatchId) {
        let Some(next) = self.workers.waiting.remove(id) else { return };
        self.tell(|| format!("{next} waited with the shim of {id}, which is gone"));
        self.covers("line-ends-with-its-shim");
        if self.around(|around| around.own.contains(&next)) {
            self.shim_is_gone(&next);
        }
        self.nobody_waits_behind(&next);
    }
}
