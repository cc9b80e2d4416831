//! The loop's stand-ins for the outside: workers with their claims, and whatever else it orders. A process that is gone
//! orders nothing.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use yard_daemon::rehearsal::{GitJob, Stage, Workers};
use yard_engine::agent::Process;
use yard_engine::settings::HttpSettings;
use yard_engine::worktree::Worktree;
use yard_engine::{
    AgentName, AlertId, BeadId, DispatchId, Millis, RigName, Settings, SourceReading, Timestamp,
};
use yard_workers::{LinePlace, Recovered, StartOrder, Waker};

use super::around::{Around, Shared};
use crate::sim::workers::{Record, Report};

/// The pool.
pub(super) struct Pool(pub(super) Shared);

impl Workers for Pool {
    fn attend(&mut self, patience: Duration) {
        let mut around = self.0.borrow_mut();
        let around = &mut *around;
        // While somebody waits in line behind a short run, something mostly happens soon.
        let soon = !around.lent.workers.waiting.is_empty() && !around.lent.dice.one_in(4);
        let most = if soon { Duration::from_millis(around.lent.dice.between(0, 8)) } else { patience };
        around.clocks.pass(patience.min(most));
    }

    fn waker(&self) -> Option<Waker> {
        None
    }

    fn start(&mut self, order: StartOrder) -> io::Result<()> {
        let mut around = self.0.borrow_mut();
        let around = &mut *around;
        if Around::is_dead() {
            return Ok(());
        }
        around.catch_up();
        let id = order.dispatch.clone();
        let durable = around.lent.oracle.check_ordered(&id);
        around.hold(durable);
        if around.lent.workers.claims.contains_key(&id) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "its claim is there already"));
        }
        if around.lent.faults && around.lent.dice.one_in(40) {
            around.tell(|| format!("{id} cannot be handed over"));
            around.coverage.route("not-handed-over");
            around.lent.workers.revoke(&id);
            return Err(io::Error::other("no process can be made"));
        }
        around.lent.workers.take_order(order);
        around.may_crash("after a claim was created");
        if Around::is_dead() {
            return Ok(());
        }
        around.tell(|| format!("{id} is launched"));
        around.lent.workers.launch(&id);
        around.own.insert(id);
        around.may_crash("after a launch");
        Ok(())
    }

    fn request_stop(&mut self, id: &DispatchId, grace: Millis, reason: &str) -> io::Result<()> {
        let mut around = self.0.borrow_mut();
        let around = &mut *around;
        if Around::is_dead() {
            return Ok(());
        }
        around.catch_up();
        around.tell(|| format!("{id} is to stop: {reason}"));
        if !around.lent.workers.claims.contains_key(id) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has no claim"));
        }
        if around.lent.faults && around.lent.dice.one_in(40) {
            around.coverage.route("stop-not-passed-on");
            return Err(io::Error::other("no space left for the line"));
        }
        let until = Millis(around.clocks.uptime().0.saturating_add(grace.0));
        around.lent.workers.stop_by(id, until);
        let on_its_way = around.own.contains(id) && around.lent.workers.is_on_its_way(id);
        if !on_its_way && !around.lent.workers.is_held(id) {
            let report = around.settle(id);
            around.lent.workers.reports.extend(report);
        }
        around.may_crash("after a stop request");
        Ok(())
    }

    fn hurry(&mut self) {}

    fn request_yield(&mut self, id: &DispatchId, wanted: bool) -> io::Result<()> {
        let mut around = self.0.borrow_mut();
        if !Around::is_dead() {
            around.catch_up();
            around.tell(|| format!("{id} should give way: {wanted}"));
            around.lent.workers.request_yield(id, wanted);
        }
        Ok(())
    }

    fn worktree(&self, id: &DispatchId) -> Option<Worktree> {
        self.0.borrow().lent.workers.claims.get(id)?.worktree.clone()
    }

    fn forget(&mut self, id: &DispatchId) {
        let mut around = self.0.borrow_mut();
        if Around::is_dead() {
            return;
        }
        around.catch_up();
        let ended = around.lent.oracle.check_forgotten(id);
        around.hold(ended);
        around.lent.workers.forget(id);
        around.may_crash("after a claim was removed");
    }

    fn forget_all_but(&mut self, live: &BTreeSet<DispatchId>) {
        let mut around = self.0.borrow_mut();
        if Around::is_dead() {
            return;
        }
        around.catch_up();
        let over: Vec<DispatchId> =
            around.lent.workers.claims.keys().filter(|id| !live.contains(*id)).cloned().collect();
        for id in over {
            let ended = around.lent.oracle.check_forgotten(&id);
            around.hold(ended);
            around.coverage.route("leftover-claim-removed");
            around.lent.workers.forget(&id);
        }
    }

    fn recover(&mut self, id: &DispatchId) -> io::Result<Recovered> {
        let mut around = self.0.borrow_mut();
        let around = &mut *around;
        if Around::is_dead() {
            return Err(io::Error::other("the process is gone"));
        }
        around.catch_up();
        if around.lent.faults && around.lent.dice.one_in(40) {
            around.coverage.route("claim-unreadable");
            return Err(io::Error::other("too many open files"));
        }
        if around.own.contains(id) && around.lent.workers.is_on_its_way(id) {
            around.coverage.route("on-its-way");
            return Ok(Recovered::Adopted { running: None });
        }
        let found = around.examine(id);
        around.tell(|| format!("claim of {id}: {found:?}"));
        around.may_crash("after a claim was looked at");
        Ok(found)
    }

    fn close_leftover_windows(&mut self) {}

    fn start_after(&mut self, order: StartOrder, after: &DispatchId, place: LinePlace) -> io::Result<()> {
        let mut around = self.0.borrow_mut();
        if Around::is_dead() {
            return Ok(());
        }
        if !around.own.contains(after) {
            if around.lent.workers.is_held(after) {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "that one is not ours"));
            }
            if place == LinePlace::Second {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "that one is in line no longer"));
            }
            drop(around);
            return self.start(order);
        }
        let around = &mut *around;
        around.catch_up();
        let id = order.dispatch.clone();
        let durable = around.lent.oracle.check_handed_on(&id, after);
        around.hold(durable);
        if around.lent.workers.claims.contains_key(&id) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "its claim is there already"));
        }
        around.lent.workers.take_order(order);
        around.may_crash("after the claim of one in line was created");
        if Around::is_dead() {
            return Ok(());
        }
        let fails = around.lent.faults && around.lent.dice.one_in(40);
        if fails || !around.lent.workers.wait_behind(&id, after) {
            around.tell(|| format!("{id} cannot be handed on"));
            around.coverage.route("not-handed-on");
            around.lent.workers.revoke(&id);
            return Err(io::Error::other("the order was cut off"));
        }
        around.tell(|| format!("{id} waits behind {after}"));
        if around.lent.oracle.is_in_line(after) {
            around.coverage.route("two-in-line");
        }
        around.own.insert(id);
        around.may_crash("after somebody was handed on");
        Ok(())
    }

    fn call_back(&mut self, id: &DispatchId, after: &DispatchId) -> io::Result<Option<Recovered>> {
        let mut around = self.0.borrow_mut();
        let around = &mut *around;
        if Around::is_dead() {
            return Err(io::Error::other("the process is gone"));
        }
        around.catch_up();
        if around.lent.faults && around.lent.dice.one_in(40) {
            around.coverage.route("not-called-back");
            around.lent.oracle.excuses(id);
            return Err(io::Error::other("too many open files"));
        }
        let claim = around.lent.workers.claims.get(id);
        let taken =
            claim.is_some_and(|claim| claim.held || !matches!(claim.record, Record::Empty | Record::Revoked));
        if taken {
            let found = around.examine(after);
            around.tell(|| format!("{id} has begun; claim of {after}: {found:?}"));
            around.coverage.route("called-back-too-late");
            if around.lent.oracle.is_in_line(after) {
                around.coverage.route("second-has-begun");
            }
            return Ok(Some(found));
        }
        around.tell(|| format!("{id} is called back"));
        around.coverage.route("called-back");
        if around.lent.oracle.is_second_in_line(id) {
            around.coverage.route("called-back-with-the-second");
        }
        around.lent.workers.revoke(id);
        around.own.remove(id);
        around.may_crash("after one in line was revoked");
        if !Around::is_dead() {
            around.lent.workers.forget(id);
            around.may_crash("after one in line was called back");
        }
        Ok(None)
    }
}

impl Around {
    /// Looks at a claim under its lock; one that nobody took is revoked on the spot.
    pub(super) fn examine(&mut self, id: &DispatchId) -> Recovered {
        let now = self.clocks_now();
        let workers = &mut self.lent.workers;
        let claim = workers.claims.get(id);
        if let Some(claim) = claim.filter(|claim| claim.held) {
            self.coverage.route("adopted");
            return Recovered::Adopted { running: Some((claim.pid, now)) };
        }
        let (route, found) = match claim.map(|claim| claim.record.clone()) {
            None => ("absent-revoked", Recovered::NeverRan),
            Some(Record::Empty) => ("revoked", Recovered::NeverRan),
            Some(Record::Revoked) => ("revoked-before", Recovered::NeverRan),
            Some(Record::StartFailed) => {
                ("start-failed", Recovered::StartFailed("it could not be run".into()))
            }
            Some(Record::Exited(_)) => ("finished", Recovered::Ended(workers.exit_record(id, now))),
            Some(Record::Claimed) => ("lost", Recovered::Lost("its shim died".to_owned())),
        };
        self.coverage.route(route);
        if found == Recovered::NeverRan {
            self.lent.workers.revoke(id);
        }
        self.own.remove(id);
        found
    }

    /// What the pool reports of a dispatch whose shim is gone.
    pub(super) fn settle(&mut self, id: &DispatchId) -> Option<Report> {
        self.lent.workers.claims.get(id)?;
        Some(match self.examine(id) {
            Recovered::Adopted { .. } => return None,
            Recovered::Ended(_) => Report::ended(id, &self.lent.workers),
            Recovered::StartFailed(_) => Report::StartFailed(id.clone()),
            Recovered::Lost(_) => Report::Lost(id.clone()),
            Recovered::NeverRan => Report::NeverRan(id.clone()),
        })
    }

    fn clocks_now(&self) -> Timestamp {
        use yard_daemon::rehearsal::Time as _;
        self.clocks.wall()
    }
}

/// Everything else.
pub(super) struct Outside(pub(super) Shared);

impl Outside {
    fn order(&self, order: impl FnOnce(&mut Around)) {
        let mut around = self.0.borrow_mut();
        if !Around::is_dead() {
            around.catch_up();
            order(&mut around);
            around.may_crash("after something was ordered");
        }
    }
}

impl Stage for Outside {
    fn git(&mut self, job: GitJob) {
        self.order(|around| around.git.push_back(job));
    }

    fn tell_alert(&mut self, id: &AlertId) {
        self.order(|around| around.alerts.push(id.clone()));
    }

    fn tell_message(&mut self, agent: &AgentName, message: u64) {
        self.order(|around| around.messages.push((agent.clone(), message)));
    }

    fn wake(&mut self, _: &RigName) {}

    fn send_action(&mut self, id: &DispatchId) {
        self.order(|around| {
            let durable = around.lent.oracle.check_sent(id);
            around.hold(durable);
            around.actions.push(id.clone());
        });
    }

    fn send_webhook(&mut self, task: &BeadId) {
        self.order(|around| around.webhooks.push(task.clone()));
    }

    fn listen(&mut self, settings: &HttpSettings) -> Option<String> {
        settings.listen.as_ref().map(|address| format!("http.listen: cannot listen on {address}"))
    }

    fn too_busy(&mut self, _: &Settings) -> Option<String> {
        self.0.borrow().busy.then(|| "the host's load is high".to_owned())
    }

    fn lives(&mut self, process: &Process) -> bool {
        process.mark == "alive"
    }

    fn last_output(&mut self, id: &DispatchId) -> Option<Timestamp> {
        // Every other worker writes something now and then.
        let mut around = self.0.borrow_mut();
        let writes = id.attempt().is_multiple_of(2) && around.lent.workers.is_held(id);
        let now = around.clocks_now();
        (writes && around.lent.dice.one_in(2)).then_some(now)
    }

    fn read_workspace(&mut self, rig: &RigName) -> Option<SourceReading> {
        self.0.borrow_mut().lent.tracker.read_anew(rig)
    }

    fn poke(&mut self, _: Option<&str>) {}

    fn beside(&mut self, work: Box<dyn FnOnce()>) {
        self.order(|around| around.beside.push(work));
    }

    fn end(&mut self) {
        let mut around = self.0.borrow_mut();
        around.tell(|| "the process ends itself: what is on disk is unknown".to_owned());
        around.coverage.route("fsync-end");
        super::disk::disk(super::disk::Disk::kill);
    }
}
