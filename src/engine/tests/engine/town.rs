//! A town for tests. Every decision made through it is checked: the invariants hold, the events survive being
//! written down, and both a replay and a checkpoint with its tail give the same town.

use std::collections::{BTreeMap, BTreeSet};

use yard_engine::bead::{BeadChange, BeadStatus, DepKind, Dependency};
use yard_engine::command::{AddItem, NewBead, NewConvoy, SlingAction, SlingRequest, SlingResult};
use yard_engine::context::{CloseReason, Context};
use yard_engine::dispatch::{Category, Dispatch, Outcome};
use yard_engine::plan::{PlanReason, Scope};
use yard_engine::readiness::ReasonCode;
use yard_engine::rig::{Rig, RigSwitch};
use yard_engine::{
    Answer, Asker, BeadId, Command, ContextId, DispatchId, Event, Kitchen, Millis, Recorded, Refusal,
    RigName, Seq, Settings, Standing, State, Timestamp, Tx, WorkerExit,
};

/// What a pass did, with ids as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) started: Vec<String>,
    pub(crate) skipped: u64,
    pub(crate) reason: PlanReason,
}

#[derive(Clone)]
pub(crate) struct Town {
    pub(crate) state: State,
    pub(crate) now: Timestamp,
    pub(crate) log: Vec<Recorded>,
    pub(crate) kitchen: Kitchen,
    /// The fold of the log as it was written down and read back.
    replayed: State,
    checkpoint: BTreeMap<(String, String), String>,
    checkpoint_at: Seq,
    decisions: u64,
}

pub(crate) fn bead_id(text: &str) -> BeadId {
    BeadId::parse(text).expect("a valid bead id")
}

pub(crate) fn rig_name(text: &str) -> RigName {
    RigName::parse(text).expect("a valid rig name")
}

/// A sling of these beads with nothing else said.
pub(crate) fn sling_of(ids: &[&str]) -> SlingRequest {
    SlingRequest { ids: ids.iter().map(ToString::to_string).collect(), ..SlingRequest::default() }
}

/// A native bead with these blocking dependencies.
pub(crate) fn new_bead(id: &str, needs: &[&str]) -> NewBead {
    let dependencies = needs.iter().map(|on| Dependency::new(bead_id(on), DepKind::Blocks)).collect();
    NewBead { id: Some(id.to_owned()), title: format!("work on {id}"), dependencies, ..NewBead::default() }
}

pub(crate) fn item(id: Option<&str>, after: &[&str]) -> AddItem {
    AddItem {
        argv: vec!["/bin/true".to_owned()],
        id: id.map(str::to_owned),
        after: after.iter().map(ToString::to_string).collect(),
        ..AddItem::default()
    }
}

impl Town {
    /// A town with rig `gastown` (prefix `gt`), in direct mode as by default.
    pub(crate) fn new() -> Self {
        let mut town = Self {
            state: State::default(),
            now: Timestamp::from_millis(1_700_000_000_000),
            log: Vec::new(),
            kitchen: Kitchen::default(),
            replayed: State::default(),
            checkpoint: BTreeMap::new(),
            checkpoint_at: Seq(0),
            decisions: 0,
        };
        town.rig("gastown", "gt");
        town
    }

    /// The same in deferred mode with this many slots.
    pub(crate) fn deferred(max_polecats: i64) -> Self {
        let mut town = Self::new();
        town.configure(|s| s.max_polecats = max_polecats);
        town
    }

    // Deciding.

    /// Makes one decision, and checks everything that must hold after it.
    pub(crate) fn act<R>(&mut self, decide: impl FnOnce(&mut Tx<'_>) -> R) -> R {
        let mut tx = Tx::new(&mut self.state, self.now);
        let result = decide(&mut tx);
        let events = tx.finish();
        self.check(events);
        result
    }

    fn check(&mut self, events: Vec<Recorded>) {
        self.state.check_invariants().expect("the invariants hold");
        for recorded in events {
            let kind = recorded.event.kind();
            let event =
                Event::from_stored(kind, &recorded.event.body()).expect("what is written can be read");
            assert_eq!(event, recorded.event, "{kind} changed by being written down");
            self.replayed.apply(&Recorded { event, ..recorded.clone() });
            self.log.push(recorded);
        }
        self.state.check_same_as(&self.replayed).expect("a replay gives the same town");
        self.decisions += 1;
        if self.decisions.is_multiple_of(3) {
            for row in self.state.take_changed_records() {
                let key = (row.kind.to_owned(), row.id);
                match row.body {
                    Some(body) => self.checkpoint.insert(key, body),
                    None => self.checkpoint.remove(&key),
                };
            }
            self.checkpoint_at = self.state.seq();
        }
        let rows =
            self.checkpoint.iter().map(|((kind, id), body)| (kind.as_str(), id.as_str(), body.as_str()));
        let mut restored = State::restore(self.checkpoint_at, rows).expect("a checkpoint can be read");
        for recorded in self.log.iter().filter(|r| r.seq > self.checkpoint_at) {
            restored.apply(recorded);
        }
        self.state.check_same_as(&restored).expect("a checkpoint and its tail give the same town");
    }

    pub(crate) fn command(&mut self, command: &Command) -> Result<Answer, Refusal> {
        let kitchen = self.kitchen.clone();
        let before = self.log.len();
        let asker = Asker { actor: "ada", kitchen: &kitchen };
        let answer = self.act(|tx| tx.decide(&asker, command));
        assert!(answer.is_ok() || self.log.len() == before, "a refusal left a trace");
        answer
    }

    pub(crate) fn does(&mut self, command: &Command) -> Answer {
        self.command(command).expect("the command is accepted")
    }

    pub(crate) fn refuses(&mut self, command: &Command) -> Refusal {
        self.command(command).expect_err("the command is refused")
    }

    /// The town as its log tells it.
    pub(crate) fn replayed(&self) -> &State {
        &self.replayed
    }

    // Building.

    pub(crate) fn rig(&mut self, name: &str, prefix: &str) {
        self.rig_with(name, prefix, |_| {});
    }

    pub(crate) fn rig_with(&mut self, name: &str, prefix: &str, change: impl FnOnce(&mut Rig)) {
        let mut rig = Rig {
            name: rig_name(name),
            prefix: prefix.to_owned(),
            path: format!("/town/{name}"),
            parked: false,
            docked: false,
            max_polecats: None,
            executor: None,
            formula: None,
            source: None,
        };
        change(&mut rig);
        self.does(&Command::RigAdd { rig });
    }

    pub(crate) fn switch(&mut self, rig: &str, switch: RigSwitch) {
        self.does(&Command::RigSwitch { name: rig_name(rig), switch });
    }

    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.state.settings().clone();
        change(&mut settings);
        self.act(|tx| tx.settings_read(&settings));
    }

    pub(crate) fn bead(&mut self, id: &str) {
        self.bead_needing(id, &[]);
    }

    pub(crate) fn beads(&mut self, ids: &[&str]) {
        for id in ids {
            self.bead(id);
        }
    }

    pub(crate) fn bead_needing(&mut self, id: &str, needs: &[&str]) {
        self.does(&Command::BeadAdd { bead: Box::new(new_bead(id, needs)) });
    }

    pub(crate) fn bead_with(&mut self, id: &str, change: impl FnOnce(&mut NewBead)) {
        let mut bead = new_bead(id, &[]);
        change(&mut bead);
        self.does(&Command::BeadAdd { bead: Box::new(bead) });
    }

    pub(crate) fn child(&mut self, id: &str, parent: &str) {
        self.bead_with(id, |b| {
            b.dependencies.push(Dependency::new(bead_id(parent), DepKind::ParentChild));
        });
    }

    pub(crate) fn epic(&mut self, id: &str) {
        self.bead_with(id, |b| b.kind = String::from("epic"));
    }

    pub(crate) fn import(&mut self, beads: Vec<NewBead>) {
        self.does(&Command::BeadImport { beads });
    }

    pub(crate) fn needs(&mut self, id: &str, on: &str, kind: DepKind) {
        self.does(&Command::DependencyAdd { id: id.to_owned(), on: on.to_owned(), kind });
    }

    pub(crate) fn status(&mut self, id: &str, status: BeadStatus, assignee: Option<&str>) {
        let change = BeadChange {
            status: Some(status),
            assignee: assignee.map(str::to_owned),
            ..BeadChange::default()
        };
        self.does(&Command::BeadUpdate { id: id.to_owned(), change });
    }

    pub(crate) fn close(&mut self, id: &str) {
        self.does(&Command::BeadClose { ids: vec![id.to_owned()], reason: None });
    }

    pub(crate) fn convoy(&mut self, beads: &[&str]) -> String {
        let beads = beads.iter().map(ToString::to_string).collect();
        let title = "a convoy".to_owned();
        match self.does(&Command::ConvoyCreate(Box::new(NewConvoy {
            title: Some(title),
            beads,
            ..NewConvoy::default()
        }))) {
            Answer::Created { ids } => ids.into_iter().next().expect("an id"),
            other => panic!("{other:?}"),
        }
    }

    // Asking for work.

    pub(crate) fn sling_request(&mut self, request: SlingRequest) -> Vec<SlingResult> {
        match self.does(&Command::Sling(Box::new(request))) {
            Answer::Slung { results, .. } => results,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn sling(&mut self, ids: &[&str]) -> Vec<SlingResult> {
        self.sling_request(sling_of(ids))
    }

    pub(crate) fn sling_one(&mut self, id: &str) -> SlingResult {
        self.sling_with(id, |_| {})
    }

    pub(crate) fn sling_with(&mut self, id: &str, change: impl FnOnce(&mut SlingRequest)) -> SlingResult {
        let mut request = sling_of(&[id]);
        change(&mut request);
        self.sling_request(request).into_iter().next().expect("one result")
    }

    /// `ym sling` as a command carries it out: in direct mode what it scheduled starts at once, if it may; in deferred
    /// mode it waits for a pass. Answers with what started.
    pub(crate) fn ym_sling(&mut self, ids: &[&str], change: impl FnOnce(&mut SlingRequest)) -> Vec<String> {
        let mut request = sling_of(ids);
        change(&mut request);
        let results = self.sling_request(request);
        if self.state.settings().is_deferred() {
            return Vec::new();
        }
        let slung: BTreeSet<ContextId> = results.into_iter().filter_map(|r| r.context_id).collect();
        let pass = self.act(|tx| tx.pass(Scope::Only(&slung), None));
        pass.starts.iter().map(|s| s.id.to_string()).collect()
    }

    pub(crate) fn add(&mut self, items: Vec<AddItem>) -> Result<Vec<SlingResult>, Refusal> {
        self.command(&Command::Add { items }).map(|answer| match answer {
            Answer::Added { results } => results,
            other => panic!("{other:?}"),
        })
    }

    // Passing, working, waiting.

    /// The daemon's planning pass; nothing that could start may be left waiting.
    pub(crate) fn pass(&mut self) -> Passed {
        let pass = self.act(|tx| {
            let pass = tx.pass(Scope::Everything, None);
            tx.preempt();
            pass
        });
        self.state.check_nothing_waits_needlessly().expect("everything that has room starts");
        let started = pass.starts.iter().map(|s| s.id.to_string()).collect();
        Passed { started, skipped: pass.skipped, reason: pass.reason }
    }

    /// `scheduler run`.
    pub(crate) fn run(&mut self, batch: Option<u32>, dry_run: bool) -> Passed {
        match self.does(&Command::Run { batch, dry_run }) {
            Answer::Passed { starts, skipped, reason, .. } => {
                Passed { started: starts.iter().map(|s| s.id.to_string()).collect(), skipped, reason }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Starts everything that may start, and lets each first program run.
    pub(crate) fn start(&mut self) -> Vec<String> {
        let started = self.pass().started;
        for id in &started {
            self.runs(id);
        }
        started
    }

    pub(crate) fn live(&self, bead: &str) -> DispatchId {
        self.work(bead).live.clone().expect("it is live")
    }

    pub(crate) fn runs(&mut self, bead: &str) {
        let id = self.live(bead);
        self.act(|tx| tx.worker_running(&id, Some(7)));
    }

    pub(crate) fn exits(&mut self, bead: &str, code: i32, category: Category) {
        let id = self.live(bead);
        self.act(|tx| tx.worker_ended(&id, &exit(code, category)));
    }

    pub(crate) fn exits_ok(&mut self, bead: &str) {
        self.exits(bead, 0, Category::Crash);
    }

    pub(crate) fn crashes(&mut self, bead: &str) {
        self.exits(bead, 1, Category::Crash);
    }

    pub(crate) fn start_fails(&mut self, bead: &str, error: &str) {
        let id = self.live(bead);
        self.act(|tx| tx.worker_start_failed(&id, error));
    }

    pub(crate) fn never_ran(&mut self, bead: &str) {
        let id = self.live(bead);
        self.act(|tx| tx.worker_never_ran(&id, "its claim was free and empty"));
    }

    pub(crate) fn lost(&mut self, bead: &str) {
        let id = self.live(bead);
        self.act(|tx| tx.worker_lost(&id, "its shim died"));
    }

    /// Lets time pass, and what is due happen.
    pub(crate) fn advance(&mut self, span: Millis) {
        self.now = self.now.after(span.duration());
        self.act(|tx| {
            tx.tick();
        });
    }

    pub(crate) fn in_time(&self, span: Millis) -> Timestamp {
        self.now.after(span.duration())
    }

    pub(crate) fn pause(&mut self) {
        self.does(&Command::Pause { reason: None, until: None });
    }

    pub(crate) fn resume(&mut self) {
        self.does(&Command::Resume);
    }

    // Looking.

    pub(crate) fn work(&self, bead: &str) -> &yard_engine::bead::Work {
        &self.state.bead(&bead_id(bead)).expect("a known bead").work
    }

    pub(crate) fn standing(&self, bead: &str) -> Standing {
        self.state.standing(&bead_id(bead)).expect("a known bead")
    }

    pub(crate) fn codes(&self, bead: &str) -> Vec<ReasonCode> {
        self.state.reasons(&bead_id(bead)).iter().map(|r| r.code).collect()
    }

    pub(crate) fn why(&self, bead: &str) -> String {
        let reasons = self.state.reasons(&bead_id(bead));
        reasons.iter().map(|r| r.message.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// The open context of a bead.
    pub(crate) fn context(&self, bead: &str) -> &Context {
        let id = self.work(bead).context.as_ref().expect("it is scheduled");
        self.state.context(id).expect("a known context")
    }

    pub(crate) fn is_scheduled(&self, bead: &str) -> bool {
        self.work(bead).context.is_some()
    }

    /// The last context of a bead that closed, and why.
    pub(crate) fn last_closed(&self, bead: &str) -> (&Context, CloseReason) {
        let id = self.work(bead).last_context.as_ref().expect("a context closed");
        let context = self.state.context(id).expect("a known context");
        (context, context.closed.as_ref().expect("it is closed").reason)
    }

    pub(crate) fn close_reason(&self, bead: &str) -> CloseReason {
        self.last_closed(bead).1
    }

    pub(crate) fn dispatches(&self, bead: &str) -> Vec<&Dispatch> {
        self.state.dispatches_of(&bead_id(bead)).collect()
    }

    pub(crate) fn last_outcome(&self, bead: &str) -> Outcome {
        let all = self.dispatches(bead);
        let ended = all.last().and_then(|d| d.ended.as_ref()).expect("it ended");
        ended.outcome.clone()
    }

    pub(crate) fn running(&self) -> Vec<String> {
        self.state.live_dispatches().map(|d| d.id.bead().to_string()).collect()
    }

    pub(crate) fn kinds_since(&self, position: usize) -> Vec<&'static str> {
        self.log[position..].iter().map(|r| r.event.kind()).collect()
    }
}

pub(crate) fn exit(code: i32, category: Category) -> WorkerExit {
    WorkerExit {
        code: Some(code),
        signal: None,
        step: Some("work".to_owned()),
        stopped: false,
        awaits_close: false,
        active: None,
        resumes: false,
        worktree: None,
        category,
        message: format!("exit {code}"),
    }
}

/// The worker ended because it was told to.
pub(crate) fn stopped() -> WorkerExit {
    WorkerExit { code: None, signal: Some(15), stopped: true, ..exit(0, Category::Crash) }
}

pub(crate) fn actions(results: &[SlingResult]) -> Vec<SlingAction> {
    results.iter().map(|r| r.action).collect()
}

/// The code of each result that says why.
pub(crate) fn why_not(results: &[SlingResult]) -> Vec<&str> {
    results.iter().filter_map(|r| r.code.as_deref()).collect()
}
