//! Random histories: a town with a workspace, and what may happen to both.

use proptest::collection::vec;
use proptest::prelude::*;
use yard_engine::bead::{BeadStatus, DepKind};
use yard_engine::command::{NewBead, WorkerSays};
use yard_engine::dispatch::{Category, STOP_REASONS, StopReason};
use yard_engine::money::Usd;
use yard_engine::settings::Fairness;
use yard_engine::{Command, DispatchId, Millis, SourceReading, Tx};

use crate::agent_happenings::{AgentHappening, agent_happening, agent_happens};
use crate::asks::{Ask, ask, command, imported, kind, name, status};
use crate::merge_happenings::{MergeHappening, merge_happening, merge_happens};
use crate::task_happenings::{TaskHappening, task_happening, task_happens};
use crate::town::{Town, exit, rig_name, stopped};
use crate::workspace::Workspace;

/// What may happen to a town; numbers are taken modulo what there is.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    Asked(Ask),
    Pass,
    LinedUp(usize),
    CalledBack(usize),
    Time(u64),
    Configured {
        max_polecats: i64,
        batch_size: u32,
        fairness: Fairness,
        aging: bool,
    },
    Limited {
        min_run: u64,
        hard_cap: u64,
        per_bead: Option<u32>,
        per_convoy: Option<u32>,
        daily: Option<u32>,
    },
    Reported {
        nth: usize,
        what: Report,
    },
    Host(bool),
    Tracked(usize, Change),
    Read(Look),
    Scanned,
    AlertTold(usize),
    RigLeaves,
    RigJoins,
    Task(TaskHappening),
    Agent(AgentHappening),
    Merge(MergeHappening),
}

/// What somebody does in the tracker of a workspace.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write { edges: Vec<(usize, DepKind)>, status: BeadStatus },
    Close,
    Reopen,
    Claim { ours: bool },
    Release,
    PutOff(u64),
    Lose,
}

/// How a workspace is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Look {
    News,
    Whole,
    Doubtful,
    Troubled,
    /// An earlier reading once more.
    Again(usize),
}

/// What a worker, or whoever looks after it, reports.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Report {
    Running,
    Step,
    Success,
    Crash,
    Unavailable,
    Yielded,
    StartFailed,
    NeverRan,
    NotStarted,
    Lost,
    StopAsked(StopReason),
    Stopped,
    OutOfTime,
    Heard,
    Noted,
    Costs(u32),
    SaysDone,
    SaysFailed(bool),
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        4 => Just(Report::Running),
        1 => Just(Report::Step),
        4 => Just(Report::Success),
        2 => Just(Report::Crash),
        1 => Just(Report::Unavailable),
        1 => Just(Report::Yielded),
        2 => Just(Report::StartFailed),
        2 => Just(Report::NeverRan),
        1 => Just(Report::NotStarted),
        1 => Just(Report::Lost),
        1 => proptest::sample::select(STOP_REASONS.to_vec()).prop_map(Report::StopAsked),
        1 => Just(Report::Stopped),
        1 => Just(Report::OutOfTime),
        1 => Just(Report::Heard),
        1 => Just(Report::Noted),
        2 => (0_u32..9).prop_map(Report::Costs),
        1 => Just(Report::SaysDone),
        1 => any::<bool>().prop_map(Report::SaysFailed),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let n = || 0_usize..60;
    prop_oneof![
        3 => (vec((n(), kind()), 0..3), status()).prop_map(|(edges, status)| Change::Write { edges, status }),
        4 => Just(Change::Close),
        1 => Just(Change::Reopen),
        1 => any::<bool>().prop_map(|ours| Change::Claim { ours }),
        1 => Just(Change::Release),
        1 => (0_u64..30_000).prop_map(Change::PutOff),
        1 => Just(Change::Lose),
    ]
}

fn look() -> impl Strategy<Value = Look> {
    prop_oneof![
        4 => Just(Look::News),
        2 => Just(Look::Whole),
        1 => Just(Look::Doubtful),
        1 => Just(Look::Troubled),
        1 => (0_usize..8).prop_map(Look::Again),
    ]
}

/// Limits small enough to be reached.
fn limited() -> impl Strategy<Value = Happening> {
    let budget = || proptest::option::of(1_u32..20);
    (0_u64..40_000, 0_u64..200_000, budget(), budget(), budget()).prop_map(
        |(min_run, hard_cap, per_bead, per_convoy, daily)| Happening::Limited {
            min_run,
            hard_cap,
            per_bead,
            per_convoy,
            daily,
        },
    )
}

fn dollars(n: u32) -> Usd {
    Usd::from_dollars(f64::from(n)).expect("an amount")
}

pub(crate) fn happening() -> impl Strategy<Value = Happening> {
    let fairness = [Fairness::Town, Fairness::Rig, Fairness::Convoy, Fairness::Agent];
    prop_oneof![
        6 => ask().prop_map(Happening::Asked),
        3 => Just(Happening::Pass),
        3 => (0_usize..4).prop_map(Happening::LinedUp),
        1 => (0_usize..4).prop_map(Happening::CalledBack),
        2 => (0_u64..90_000).prop_map(Happening::Time),
        1 => (-1_i64..4, 0_u32..3, proptest::sample::select(fairness.to_vec()), any::<bool>()).prop_map(
            |(max_polecats, batch_size, fairness, aging)| {
                Happening::Configured { max_polecats, batch_size, fairness, aging }
            }
        ),
        1 => limited(),
        6 => (0_usize..8, report()).prop_map(|(nth, what)| Happening::Reported { nth, what }),
        1 => any::<bool>().prop_map(Happening::Host),
        3 => (0_usize..60, change()).prop_map(|(nth, change)| Happening::Tracked(nth, change)),
        3 => look().prop_map(Happening::Read),
        2 => Just(Happening::Scanned),
        1 => (0_usize..4).prop_map(Happening::AlertTold),
        1 => prop_oneof![1 => Just(Happening::RigLeaves), 2 => Just(Happening::RigJoins)],
        4 => task_happening().prop_map(Happening::Task),
        6 => agent_happening().prop_map(Happening::Agent),
        6 => merge_happening().prop_map(Happening::Merge),
    ]
}

/// A town and the workspace of its rig `ox`.
pub(crate) struct Yard {
    pub(crate) town: Town,
    tracker: Workspace,
    /// Every reading there was.
    readings: Vec<SourceReading>,
}

impl Yard {
    pub(crate) fn of(beads: Vec<NewBead>) -> Self {
        let mut town = Town::new();
        town.rig_with("web", "w", |r| (r.max_polecats, r.path) = (Some(2), ".".to_owned()));
        // Short enough for the times that pass.
        town.configure(|s| {
            (s.stale_after, s.close_grace, s.results_ttl) = (Millis(60_000), Millis(20_000), Millis(60_000));
        });
        let mut tracker = town.workspace("ox", "ox");
        let (shown, native): (Vec<_>, Vec<_>) =
            beads.into_iter().partition(|b| b.id.as_deref().is_some_and(|id| id.starts_with("ox-")));
        for bead in shown {
            let id = bead.id.clone().unwrap_or_default();
            tracker.has_with(&id, |b| (b.kind, b.dependencies) = (bead.kind.into(), bead.dependencies));
        }
        let first = tracker.whole();
        town.hears(&first);
        town.import(native);
        Self { town, tracker, readings: vec![first] }
    }

    /// Somebody changes the nth bead of the tracker, or writes a new one.
    fn tracked(&mut self, nth: usize, change: &Change) {
        let known = self.tracker.ids();
        let id = known.get(nth % known.len().max(1)).cloned();
        match (change, id) {
            (Change::Write { edges, status }, _) => {
                let (n, id) = (nth / 6 * 6 + 1, name(nth / 6 * 6 + 1));
                let NewBead { dependencies, .. } = imported(n, edges, BeadStatus::Open, false);
                let status = status.clone();
                self.tracker.has_with(&id, |b| (b.dependencies, b.status) = (dependencies, status));
            }
            (_, None) => {}
            (Change::Close, Some(id)) => self.tracker.closes(&id),
            (Change::Reopen, Some(id)) => self.tracker.reopens(&id),
            (Change::Claim { ours }, Some(id)) => {
                self.tracker.claims(&id, if *ours { "ym/x" } else { "fern" });
            }
            (Change::Release, Some(id)) => self.tracker.releases(&id),
            (Change::PutOff(span), Some(id)) => {
                let until = self.town.in_time(Millis(*span));
                self.tracker.changes(&id, |b| b.defer_until = Some(until));
            }
            (Change::Lose, Some(id)) => drop(self.tracker.loses(&id)),
        }
    }

    fn read(&mut self, look: Look) {
        let mut reading = match look {
            Look::News | Look::Troubled => self.tracker.news(),
            Look::Whole | Look::Doubtful => self.tracker.whole(),
            Look::Again(nth) => self.readings[nth % self.readings.len()].clone(),
        };
        match look {
            Look::Doubtful => reading.vanished = false,
            Look::Troubled => reading.trouble = Some("its last line is cut off".to_owned()),
            Look::News | Look::Whole | Look::Again(_) => {}
        }
        self.town.hears(&reading);
        self.readings.push(reading);
    }
}

/// Lets it happen.
pub(crate) fn happens(yard: &mut Yard, happening: &Happening) {
    let town = &mut yard.town;
    match happening {
        Happening::Asked(ask) => {
            let command = command(town, ask);
            let _ = town.command(&command);
        }
        Happening::Pass => {
            town.pass();
        }
        Happening::LinedUp(nth) => {
            let next = town.state.lined_up().map(|(_, next)| &next.id);
            let followed = town.state.live_workers().map(|it| &it.id).chain(next).nth(*nth).cloned();
            let Some(id) = followed else { return };
            town.act(|tx| tx.line_up(&id));
        }
        Happening::CalledBack(nth) => {
            let Some(id) = town.state.lined_up().nth(*nth).map(|(_, it)| it.id.clone()) else { return };
            town.act(|tx| tx.called_back(&id));
        }
        Happening::Time(millis) => town.advance(Millis(*millis)),
        Happening::Configured { max_polecats, batch_size, fairness, aging } => town.configure(|s| {
            (s.max_polecats, s.batch_size, s.fairness) = (*max_polecats, *batch_size, *fairness);
            s.aging = aging.then_some(Millis(500));
        }),
        Happening::Limited { min_run, hard_cap, per_bead, per_convoy, daily } => town.configure(|s| {
            (s.preemption.min_run, s.preemption.timeout) = (Millis(*min_run), Millis(10_000));
            (s.hard_cap, s.stuck_after) = (Millis(*hard_cap), Millis(30_000));
            s.cost.per_bead = per_bead.map(dollars);
            s.cost.per_convoy = per_convoy.map(dollars);
            (s.cost.daily, s.cost.monthly) = (daily.map(dollars), daily.map(|n| dollars(n * 2)));
        }),
        Happening::Reported { nth, what } => {
            // Any dispatch, also one that ended long ago.
            let all: Vec<_> = town.state.beads().flat_map(|e| town.state.dispatches_of(&e.bead.id)).collect();
            let live = all.iter().filter(|d| d.is_live());
            let late = all.iter().filter(|d| !d.is_live());
            let Some(id) = live.chain(late).nth(*nth).map(|d| d.id.clone()) else { return };
            let says = |says: WorkerSays| Command::Worker { dispatch: id.to_string(), says };
            let said = match what {
                Report::Noted => says(WorkerSays::Checkpoint { note: "half".to_owned(), session: None }),
                Report::Costs(n) => says(WorkerSays::Cost { usd: dollars(*n), total: false, tokens: None }),
                Report::SaysDone => says(WorkerSays::Done { reason: None }),
                Report::SaysFailed(unavailable) => {
                    says(WorkerSays::Fail { message: "no".to_owned(), unavailable: *unavailable })
                }
                _ => {
                    return town.act(|tx| reported(tx, &id, *what));
                }
            };
            town.does(&said);
        }
        Happening::Host(busy) => town.act(|tx| tx.host_observed(busy.then(|| "load".to_owned()))),
        Happening::Tracked(nth, change) => yard.tracked(*nth, change),
        Happening::Read(look) => yard.read(*look),
        Happening::Scanned => town.scan(),
        Happening::AlertTold(nth) => {
            let Some(id) = town.state.untold_alerts().nth(*nth).map(|alert| alert.id.clone()) else { return };
            town.act(|tx| tx.alert_told(&id, None));
        }
        Happening::Task(happening) => task_happens(town, happening),
        Happening::Agent(happening) => agent_happens(town, happening),
        Happening::Merge(happening) => merge_happens(town, happening),
        Happening::RigLeaves => {
            let _ = town.command(&Command::RigRemove { name: rig_name("ox") });
        }
        Happening::RigJoins => {
            if town.state.rig(&rig_name("ox")).is_none() {
                town.workspace("ox", "ox");
            }
        }
    }
}

/// A report of the shim's, or of whoever looks after it.
fn reported(tx: &mut Tx<'_>, id: &DispatchId, what: Report) {
    match what {
        Report::Running => tx.worker_running(id, Some(1)),
        Report::Step => tx.worker_step_done(id, "work"),
        Report::Success => tx.worker_ended(id, &exit(0, Category::Crash)),
        Report::Crash => tx.worker_ended(id, &exit(1, Category::Crash)),
        Report::Unavailable => tx.worker_ended(id, &exit(69, Category::Unavailable)),
        Report::Yielded => tx.worker_ended(id, &exit(75, Category::Yielded)),
        Report::StartFailed => tx.worker_start_failed(id, "no such program"),
        Report::NeverRan => tx.worker_never_ran(id, "revoked"),
        Report::NotStarted => tx.worker_not_started(id, "no processes left"),
        Report::Lost => tx.worker_lost(id, "gone"),
        Report::StopAsked(reason) => drop(tx.terminate(id, reason, false, "daemon")),
        Report::Stopped => tx.worker_ended(id, &stopped()),
        Report::OutOfTime => tx.worker_ended(id, &exit(143, Category::HardCap)),
        Report::Heard => {
            let now = tx.now();
            tx.worker_heard(id, now);
        }
        Report::Noted | Report::Costs(_) | Report::SaysDone | Report::SaysFailed(_) => {}
    }
}
