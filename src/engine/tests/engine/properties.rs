//! Properties over random graphs, random commands, random readings and random bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use yard_engine::bead::{BeadChange, BeadEvent, BeadStatus, DepKind, Dependency};
use yard_engine::command::{AddItem, NewBead, NewConvoy, SlingRequest};
use yard_engine::dispatch::{Category, DispatchEvent, StopReason};
use yard_engine::event::KINDS;
use yard_engine::rig::RigSwitch;
use yard_engine::settings::Fairness;
use yard_engine::{AccountName, Command, Event, Millis, Settings, SourceReading, State};

use crate::town::{Town, bead_id, exit, rig_name, stopped};
use crate::words::{add_of, close_of, land_of, watch_of};
use crate::workspace::Workspace;

/// What may happen to a town; numbers are taken modulo what there is.
#[derive(Debug, Clone)]
enum Happening {
    Asked(Ask),
    Pass,
    Time(u64),
    Configured { max_polecats: i64, batch_size: u32, fairness: Fairness, aging: bool },
    Reported { nth: usize, what: Report },
    Host(bool),
    Tracked(usize, Change),
    Read(Look),
    Scanned,
    AlertTold(usize),
    RigLeaves,
    RigJoins,
}

/// What somebody does in the tracker of a workspace.
#[derive(Debug, Clone)]
enum Change {
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
enum Look {
    News,
    Whole,
    Doubtful,
    Troubled,
    /// An earlier reading once more.
    Again(usize),
}

#[derive(Debug, Clone)]
enum Ask {
    Add {
        after: Option<usize>,
    },
    Import {
        nth: usize,
        edges: Vec<(usize, DepKind)>,
        status: BeadStatus,
    },
    Depend {
        nth: usize,
        on: usize,
        kind: DepKind,
    },
    Undepend {
        nth: usize,
        on: usize,
    },
    Sling {
        nth: Vec<usize>,
        priority: u8,
        wait: Option<u64>,
        deadline: Option<u64>,
        account: bool,
        force: bool,
    },
    Run,
    Pause(Option<u64>),
    Resume,
    Clear(Option<usize>),
    Retry(usize),
    Hold(usize, bool),
    Priority(usize, u8),
    Cancel(usize, bool),
    Close(usize),
    Reopen(usize),
    Take(usize, BeadStatus, bool),
    Convoy(usize, usize),
    Stage {
        nth: Vec<usize>,
        launch: bool,
    },
    StageAgain(usize),
    LaunchTasks(Vec<usize>),
    Launch {
        nth: usize,
        force: bool,
    },
    ConvoyAdd(usize, usize),
    ConvoyClose(usize, bool),
    Land(usize, bool),
    Watch(usize, bool),
    Check,
    Recover(bool),
    Ack(usize),
    Rig(RigSwitch),
    Undo,
}

#[derive(Debug, Clone, Copy)]
enum Report {
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
}

fn kind() -> impl Strategy<Value = DepKind> {
    prop_oneof![
        4 => Just(DepKind::Blocks),
        1 => Just(DepKind::WaitsFor),
        1 => Just(DepKind::ConditionalBlocks),
        1 => Just(DepKind::MergeBlocks),
        3 => Just(DepKind::ParentChild),
        1 => Just(DepKind::Other("related".to_owned())),
    ]
}

fn status() -> impl Strategy<Value = BeadStatus> {
    prop_oneof![
        4 => Just(BeadStatus::Open),
        1 => Just(BeadStatus::InProgress),
        1 => Just(BeadStatus::Deferred),
        1 => Just(BeadStatus::Blocked),
        1 => Just(BeadStatus::Hooked),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    let reasons = [StopReason::GracefulShutdown, StopReason::SpawnTimeout, StopReason::UserCancelled];
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
        1 => proptest::sample::select(reasons.to_vec()).prop_map(Report::StopAsked),
        1 => Just(Report::Stopped),
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    let n = || 0_usize..60;
    let span = || proptest::option::of(1_u64..20_000);
    let switches = [RigSwitch::Park, RigSwitch::Unpark, RigSwitch::Dock, RigSwitch::Undock];
    prop_oneof![
        2 => proptest::option::of(n()).prop_map(|after| Ask::Add { after }),
        2 => (n(), vec((n(), kind()), 0..3), prop_oneof![3 => Just(BeadStatus::Open), 1 => Just(BeadStatus::Closed)])
            .prop_map(|(nth, edges, status)| Ask::Import { nth, edges, status }),
        2 => (n(), n(), kind()).prop_map(|(nth, on, kind)| Ask::Depend { nth, on, kind }),
        1 => (n(), n()).prop_map(|(nth, on)| Ask::Undepend { nth, on }),
        6 => (vec(n(), 1..5), 1_u8..=100, span(), span(), any::<bool>(), any::<bool>()).prop_map(
            |(nth, priority, wait, deadline, account, force)| Ask::Sling { nth, priority, wait, deadline, account, force }
        ),
        1 => Just(Ask::Run),
        1 => span().prop_map(Ask::Pause),
        2 => Just(Ask::Resume),
        1 => proptest::option::weighted(0.8, n()).prop_map(Ask::Clear),
        1 => n().prop_map(Ask::Retry),
        1 => (n(), any::<bool>()).prop_map(|(n, held)| Ask::Hold(n, held)),
        1 => (n(), 0_u8..=101).prop_map(|(n, p)| Ask::Priority(n, p)),
        1 => (n(), any::<bool>()).prop_map(|(n, at_once)| Ask::Cancel(n, at_once)),
        2 => n().prop_map(Ask::Close),
        1 => n().prop_map(Ask::Reopen),
        1 => (n(), status(), any::<bool>()).prop_map(|(n, status, ours)| Ask::Take(n, status, ours)),
        1 => (n(), n()).prop_map(|(a, b)| Ask::Convoy(a, b)),
        6 => convoy_ask(),
        1 => any::<bool>().prop_map(Ask::Recover),
        1 => (0_usize..4).prop_map(Ask::Ack),
        1 => proptest::sample::select(switches.to_vec()).prop_map(Ask::Rig),
        1 => Just(Ask::Undo),
    ]
}

fn convoy_ask() -> impl Strategy<Value = Ask> {
    let n = || 0_usize..60;
    let convoy = || 0_usize..6;
    prop_oneof![
        3 => (vec(n(), 1..6), any::<bool>()).prop_map(|(nth, launch)| Ask::Stage { nth, launch }),
        1 => convoy().prop_map(Ask::StageAgain),
        2 => vec(n(), 1..6).prop_map(Ask::LaunchTasks),
        2 => (convoy(), any::<bool>()).prop_map(|(nth, force)| Ask::Launch { nth, force }),
        2 => (convoy(), n()).prop_map(|(nth, bead)| Ask::ConvoyAdd(nth, bead)),
        1 => (convoy(), any::<bool>()).prop_map(|(nth, force)| Ask::ConvoyClose(nth, force)),
        1 => (convoy(), any::<bool>()).prop_map(|(nth, force)| Ask::Land(nth, force)),
        1 => (convoy(), any::<bool>()).prop_map(|(nth, wants)| Ask::Watch(nth, wants)),
        1 => Just(Ask::Check),
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

fn happening() -> impl Strategy<Value = Happening> {
    let fairness = [Fairness::Town, Fairness::Rig, Fairness::Convoy, Fairness::Agent];
    prop_oneof![
        6 => ask().prop_map(Happening::Asked),
        3 => Just(Happening::Pass),
        2 => (0_u64..90_000).prop_map(Happening::Time),
        1 => (-1_i64..4, 0_u32..3, proptest::sample::select(fairness.to_vec()), any::<bool>()).prop_map(
            |(max_polecats, batch_size, fairness, aging)| {
                Happening::Configured { max_polecats, batch_size, fairness, aging }
            }
        ),
        6 => (0_usize..8, report()).prop_map(|(nth, what)| Happening::Reported { nth, what }),
        1 => any::<bool>().prop_map(Happening::Host),
        3 => (0_usize..60, change()).prop_map(|(nth, change)| Happening::Tracked(nth, change)),
        3 => look().prop_map(Happening::Read),
        1 => Just(Happening::Scanned),
        1 => (0_usize..4).prop_map(Happening::AlertTold),
        1 => prop_oneof![1 => Just(Happening::RigLeaves), 2 => Just(Happening::RigJoins)],
    ]
}

/// A graph of up to sixty beads, as a file would bring it: edges anywhere, cycles and gaps included.
fn graph() -> impl Strategy<Value = Vec<NewBead>> {
    let bead = (vec((0_usize..64, kind()), 0..3), any::<bool>());
    vec(bead, 1..60).prop_map(|beads| {
        let made = beads.into_iter().enumerate();
        made.map(|(n, (edges, far))| imported(n, &edges, BeadStatus::Open, far)).collect()
    })
}

fn name(n: usize) -> String {
    let prefix = match n % 6 {
        0 | 3 => "w",
        1 => "ox",
        _ => "gt",
    };
    format!("{prefix}-{n}")
}

/// A town and the workspace of its rig `ox`.
struct Yard {
    town: Town,
    tracker: Workspace,
    /// Every reading there was.
    readings: Vec<SourceReading>,
}

impl Yard {
    fn of(beads: Vec<NewBead>) -> Self {
        let mut town = Town::new();
        town.rig_with("web", "w", |r| (r.max_polecats, r.path) = (Some(2), ".".to_owned()));
        // Short enough for the times that pass.
        town.configure(|s| (s.stale_after, s.close_grace) = (Millis(60_000), Millis(20_000)));
        let mut tracker = town.workspace("ox", "ox");
        let (shown, native): (Vec<_>, Vec<_>) =
            beads.into_iter().partition(|b| b.id.as_deref().is_some_and(|id| id.starts_with("ox-")));
        for bead in shown {
            let id = bead.id.clone().unwrap_or_default();
            tracker.has_with(&id, |b| (b.kind, b.dependencies) = (bead.kind, bead.dependencies));
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
                self.tracker.claims(&id, if *ours { "ym/x" } else { "bob" })
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

fn imported(n: usize, edges: &[(usize, DepKind)], status: BeadStatus, epic: bool) -> NewBead {
    let edges = edges.iter().filter(|(on, _)| *on != n);
    NewBead {
        id: Some(name(n)),
        title: format!("bead {n}"),
        kind: if epic && n.is_multiple_of(5) { "epic".to_owned() } else { String::new() },
        status,
        dependencies: edges.map(|(on, kind)| Dependency::new(bead_id(&name(*on)), kind.clone())).collect(),
        ..NewBead::default()
    }
}

fn happens(yard: &mut Yard, happening: &Happening) {
    let town = &mut yard.town;
    match happening {
        Happening::Asked(ask) => {
            let command = command(town, ask);
            let _ = town.command(&command);
        }
        Happening::Pass => {
            town.pass();
        }
        Happening::Time(millis) => town.advance(Millis(*millis)),
        Happening::Configured { max_polecats, batch_size, fairness, aging } => town.configure(|s| {
            (s.max_polecats, s.batch_size, s.fairness) = (*max_polecats, *batch_size, *fairness);
            s.aging = aging.then_some(Millis(500));
        }),
        Happening::Reported { nth, what } => {
            // Any dispatch, also one that ended long ago.
            let all: Vec<_> = town.state.beads().flat_map(|e| town.state.dispatches_of(&e.bead.id)).collect();
            let live = all.iter().filter(|d| d.is_live());
            let late = all.iter().filter(|d| !d.is_live());
            let Some(id) = live.chain(late).nth(*nth).map(|d| d.id.clone()) else { return };
            town.act(|tx| match what {
                Report::Running => tx.worker_running(&id, Some(1)),
                Report::Step => tx.worker_step_done(&id, "work"),
                Report::Success => tx.worker_ended(&id, &exit(0, Category::Crash)),
                Report::Crash => tx.worker_ended(&id, &exit(1, Category::Crash)),
                Report::Unavailable => tx.worker_ended(&id, &exit(69, Category::Unavailable)),
                Report::Yielded => tx.worker_ended(&id, &exit(75, Category::Yielded)),
                Report::StartFailed => tx.worker_start_failed(&id, "no such program"),
                Report::NeverRan => tx.worker_never_ran(&id, "revoked"),
                Report::NotStarted => tx.worker_not_started(&id, "no processes left"),
                Report::Lost => tx.worker_lost(&id, "gone"),
                Report::StopAsked(reason) => tx.request_stop(&id, *reason, "daemon"),
                Report::Stopped => tx.worker_ended(&id, &stopped()),
            });
        }
        Happening::Host(busy) => town.act(|tx| tx.host_observed(busy.then(|| "load".to_owned()))),
        Happening::Tracked(nth, change) => yard.tracked(*nth, change),
        Happening::Read(look) => yard.read(*look),
        Happening::Scanned => town.scan(),
        Happening::AlertTold(nth) => {
            let Some(id) = town.state.untold_alerts().nth(*nth).map(|alert| alert.id.clone()) else { return };
            town.act(|tx| tx.alert_told(&id, None));
        }
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

fn command(town: &Town, ask: &Ask) -> Command {
    let later = |millis: &u64| town.in_time(Millis(*millis));
    let names = |nth: &[usize]| nth.iter().map(|n| name(*n)).collect::<Vec<_>>();
    let convoy = |nth: &usize| {
        let convoys: Vec<_> = town.state.convoys().collect();
        convoys
            .get(nth % convoys.len().max(1))
            .map_or("hq-cv-none".to_owned(), |convoy| convoy.id.to_string())
    };
    match ask {
        Ask::Add { after } => Command::Add {
            items: vec![AddItem {
                argv: vec!["true".to_owned()],
                after: after.iter().map(|n| name(*n)).collect(),
                ..AddItem::default()
            }],
        },
        Ask::Import { nth, edges, status } => {
            Command::BeadImport { beads: vec![imported(*nth, edges, status.clone(), false)] }
        }
        Ask::Depend { nth, on, kind } => {
            Command::DependencyAdd { id: name(*nth), on: name(*on), kind: kind.clone() }
        }
        Ask::Undepend { nth, on } => Command::DependencyRemove { id: name(*nth), on: name(*on) },
        Ask::Sling { nth, priority, wait, deadline, account, force } => {
            Command::Sling(Box::new(SlingRequest {
                ids: nth.iter().map(|n| name(*n)).collect(),
                rig: force.then(|| rig_name("web")),
                priority: Some(*priority),
                not_before: wait.as_ref().map(later),
                deadline: deadline.as_ref().map(later),
                account: account.then(|| AccountName::parse("main").expect("valid")),
                force: *force,
                ..SlingRequest::default()
            }))
        }
        Ask::Run => Command::Run { batch: None, dry_run: false },
        Ask::Pause(span) => Command::Pause { reason: None, until: span.as_ref().map(later) },
        Ask::Resume => Command::Resume,
        Ask::Clear(nth) => Command::Clear { bead: nth.map(name) },
        Ask::Retry(n) => Command::Retry { bead: name(*n) },
        Ask::Hold(n, held) => Command::Hold { id: name(*n), held: *held },
        Ask::Priority(n, priority) => Command::Priority { id: name(*n), priority: *priority },
        Ask::Cancel(n, at_once) => Command::Cancel { id: name(*n), at_once: *at_once },
        Ask::Close(n) => Command::BeadClose { ids: vec![name(*n)], reason: None },
        Ask::Reopen(n) => Command::BeadReopen { id: name(*n) },
        Ask::Take(n, status, ours) => {
            let assignee = if *ours { "ym/x" } else { "bob" };
            let taken = matches!(status, BeadStatus::InProgress | BeadStatus::Hooked);
            let assignee = Some(if taken { assignee.to_owned() } else { String::new() });
            let change = BeadChange { status: Some(status.clone()), assignee, ..BeadChange::default() };
            Command::BeadUpdate { id: name(*n), change }
        }
        Ask::Convoy(a, b) => {
            let beads = vec![name(*a), name(*b)];
            let owned = a.is_multiple_of(2);
            Command::ConvoyCreate(Box::new(NewConvoy {
                title: Some("convoy".to_owned()),
                beads,
                owned,
                ..NewConvoy::default()
            }))
        }
        Ask::Stage { nth, launch } => {
            Command::ConvoyStage { targets: names(nth), title: None, launch: *launch }
        }
        Ask::StageAgain(nth) => {
            Command::ConvoyStage { targets: vec![convoy(nth)], title: None, launch: false }
        }
        Ask::LaunchTasks(nth) => Command::ConvoyLaunch { targets: names(nth), force: true },
        Ask::Launch { nth, force } => Command::ConvoyLaunch { targets: vec![convoy(nth)], force: *force },
        Ask::ConvoyAdd(nth, bead) => add_of(&convoy(nth), &[&name(*bead)]),
        Ask::ConvoyClose(nth, force) => close_of(&convoy(nth), *force),
        Ask::Land(nth, force) => land_of(&convoy(nth), *force),
        Ask::Watch(nth, wants) => watch_of(&convoy(nth), "bob", *wants),
        Ask::Check => Command::ConvoyCheck { id: None, dry_run: false },
        Ask::Recover(dry_run) => Command::Recover { dry_run: *dry_run },
        Ask::Ack(nth) => {
            let id = town.state.alerts().nth(*nth).map_or("al-none".to_owned(), |alert| alert.id.to_string());
            Command::AlertAck { id }
        }
        Ask::Rig(switch) => Command::RigSwitch { name: rig_name("web"), switch: *switch },
        Ask::Undo => Command::Undo,
    }
}

/// Whether a bead may start by its own and inherited edges, worked out the long way.
fn unblocked(state: &State, bead: &str, seen: &mut Vec<String>) -> bool {
    if seen.iter().any(|s| s == bead) {
        return true;
    }
    seen.push(bead.to_owned());
    let Some(entry) = state.bead(&bead_id(bead)) else { return true };
    if seen.len() > 1 && entry.bead.is_closed() {
        return true;
    }
    entry.bead.dependencies.iter().all(|d| match &d.kind {
        DepKind::ParentChild => unblocked(state, d.on.as_str(), seen),
        kind => !kind.blocks() || state.bead(&d.on).is_some_and(|e| e.bead.is_closed()),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// Whatever happens: the town checks itself after every decision, and nothing starts before its blockers closed.
    #[test]
    fn no_history_breaks_the_town(beads in graph(), story in vec(happening(), 1..80)) {
        let mut yard = Yard::of(beads);
        for happening in &story {
            let (before, from) = (yard.town.state.clone(), yard.town.log.len());
            happens(&mut yard, happening);
            check_events(before, &yard.town.log[from..]);
        }
    }

    #[test]
    fn everything_ready_starts_when_there_is_no_limit(beads in graph()) {
        let mut town = Town::deferred(1_000);
        town.rig("web", "w");
        town.rig("ox", "ox");
        let ids: Vec<String> = beads.iter().filter_map(|b| b.id.clone()).collect();
        town.import(beads);
        for id in &ids {
            let _ = town.command(&Command::Sling(Box::new(crate::town::sling_of(&[id]))));
        }
        let scheduled: Vec<&String> = ids.iter().filter(|id| town.is_scheduled(id)).collect();
        let expected: Vec<&String> =
            scheduled.into_iter().filter(|id| unblocked(&town.state, id, &mut Vec::new())).collect();
        let mut started = town.pass().started;
        started.sort_by_key(|id| ids.iter().position(|i| i == id));
        prop_assert_eq!(started.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn random_bytes_are_refused_and_never_panic(kind in proptest::sample::select(KINDS.to_vec()), bytes in vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(Event::from_stored(kind, &text).is_err());
        let empty = "{}";
        prop_assert!(Event::from_stored(&text, empty).is_err());
        prop_assert!(State::restore(yard_engine::Seq(1), [("bead", "x", &*text)].into_iter()).is_err());
        let _ = serde_json::from_str::<Command>(&text);
        let _ = serde_json::from_str::<Settings>(&text);
    }

    #[test]
    fn damaged_events_never_panic(cut in 0_usize..400, flip in 0_usize..400, byte in any::<u8>()) {
        for recorded in &sample_log() {
            let kind = recorded.event.kind();
            let mut body = recorded.event.body().into_bytes();
            if let Some(b) = body.get_mut(flip) {
                *b = byte;
            }
            body.truncate(cut.max(1));
            if let Ok(event) = Event::from_stored(kind, &String::from_utf8_lossy(&body)) {
                // A town that never heard of what the event is about takes it all the same.
                State::default().apply(&yard_engine::Recorded { event, ..*recorded });
            }
        }
    }
}

/// No start of a decision may have an open blocker in the state it was made in, nor an id that was used before; and
/// what is closed does not close again.
fn check_events(mut state: State, events: &[yard_engine::Recorded]) {
    for recorded in events {
        match &recorded.event {
            Event::Dispatch(DispatchEvent::Started { dispatch }) => {
                let (id, bead) = (&dispatch.id, dispatch.id.bead().as_str());
                assert!(
                    unblocked(&state, bead, &mut Vec::new()),
                    "{bead} started before its blockers closed"
                );
                assert!(state.pause().is_none(), "{bead} started while paused");
                assert!(state.dispatch(id).is_none(), "{id} was used before");
            }
            Event::Bead(BeadEvent::Closed { id, .. }) => {
                let open = state.bead(id).is_some_and(|entry| !entry.bead.is_closed());
                assert!(open, "the close of {id} was seen twice");
            }
            _ => {}
        }
        state.apply(recorded);
        state.check_indexes().expect("the indexes are right after every event");
    }
}

/// A log that holds an event of every kind but the one that no decision makes.
fn sample_log() -> Vec<yard_engine::Recorded> {
    let mut town = Town::deferred(2);
    town.rig("gone", "gone");
    town.does(&Command::RigRemove { name: rig_name("gone") });
    town.switch("gastown", RigSwitch::Park);
    town.does(&Command::Undo);
    town.beads(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    town.needs("gt-b", "gt-a", DepKind::Blocks);
    town.does(&Command::DependencyRemove { id: "gt-b".to_owned(), on: "gt-a".to_owned() });
    town.status("gt-c", BeadStatus::Deferred, None);
    town.close("gt-c");
    town.does(&Command::BeadReopen { id: "gt-c".to_owned() });
    town.sling(&["gt-a", "gt-b"]);
    let soon = town.in_time(Millis(5));
    town.sling_with("gt-d", |r| r.not_before = Some(soon));
    town.does(&Command::Hold { id: "gt-b".to_owned(), held: true });
    town.does(&Command::Priority { id: "gt-b".to_owned(), priority: 3 });
    town.pause();
    town.resume();
    town.act(|tx| tx.host_observed(Some("load".to_owned())));
    town.act(|tx| tx.host_observed(None));
    town.pass();
    let id = town.live("gt-a");
    town.act(|tx| tx.worker_not_started(&id, "no processes left"));
    town.run(None, false);
    town.start_fails("gt-a", "no such program");
    town.run(None, false);
    let id = town.live("gt-a");
    town.runs("gt-a");
    town.act(|tx| tx.worker_step_done(&id, "work"));
    town.act(|tx| tx.request_stop(&id, StopReason::GracefulShutdown, "daemon"));
    town.exits_ok("gt-a");
    town.act(|tx| tx.worker_lost(&id, "late"));
    town.close("gt-b");
    town.advance(Millis(5));
    workspace_events(&mut town);
    convoy_events(&mut town);
    town.log
}

fn workspace_events(town: &mut Town) {
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a", "ox-b"]);
    let mut troubled = tracker.news();
    troubled.trouble = Some("its last line is cut off".to_owned());
    town.hears(&troubled);
    let id = town.state.alerts().next().expect("it was raised").id.clone();
    town.act(|tx| tx.alert_told(&id, None));
    town.does(&Command::AlertAck { id: id.to_string() });
    tracker.loses("ox-b");
    town.reads(&mut tracker);
    town.sling(&["ox-a"]);
    town.start();
    town.exits_ok("ox-a");
    town.advance(Millis::minutes(5));
}

fn convoy_events(town: &mut Town) {
    town.beads(&["gt-x", "gt-y"]);
    let (convoy, _) = town.launch(&["gt-x"]);
    town.does(&watch_of(&convoy, "bob", true));
    town.close("gt-x");
    town.does(&add_of(&convoy, &["gt-y"]));
}

#[test]
fn every_kind_of_event_survives_being_written_down() {
    // `Town` compares each event with what is read back; this makes sure that each kind came by.
    let log = sample_log();
    let seen: std::collections::BTreeSet<&str> = log.iter().map(|r| r.event.kind()).collect();
    let missing: Vec<&str> = KINDS.into_iter().filter(|kind| !seen.contains(kind)).collect();
    assert_eq!(missing, ["town.repaired"]);
    let repaired = Event::from(yard_engine::town::TownEvent::Repaired { difference: "x".to_owned() });
    assert_eq!(Event::from_stored(repaired.kind(), &repaired.body()).ok(), Some(repaired));
}

#[test]
fn a_newer_kind_of_event_and_a_body_of_another_kind_are_refused_clearly() {
    let newer = Event::from_stored("bead.teleported", "{}").expect_err("unknown");
    assert!(newer.to_string().contains("newer"), "{newer}");
    let closed = r#"{"type":"bead.reopened","id":"gt-a","actor":"ada"}"#;
    assert!(Event::from_stored("bead.reopened", closed).is_ok());
    let mixed = Event::from_stored("bead.closed", closed).expect_err("another kind");
    assert!(mixed.to_string().contains("bead.reopened"), "{mixed}");
}

#[test]
fn the_safety_scan_finds_nothing_in_a_healthy_town() {
    let mut town = Town::deferred(2);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pass();
    let before = town.log.len();
    town.act(|tx| {
        tx.scan(None, usize::MAX);
    });
    assert_eq!(town.log.len(), before);
}
