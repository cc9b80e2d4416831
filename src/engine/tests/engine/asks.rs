//! Random commands over random graphs of beads.

use proptest::collection::vec;
use proptest::prelude::*;
use yard_engine::bead::{BeadChange, BeadStatus, DepKind, Dependency};
use yard_engine::command::{AddItem, NewBead, NewConvoy, SlingRequest};
use yard_engine::rig::RigSwitch;
use yard_engine::{AccountName, Command, Millis};

use crate::town::{Town, bead_id, rig_name};
use crate::words::{add_of, close_of, land_of, watch_of};

/// What somebody may ask of a town; numbers are taken modulo what there is.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
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
    Redo,
}

pub(crate) fn kind() -> impl Strategy<Value = DepKind> {
    prop_oneof![
        4 => Just(DepKind::Blocks),
        1 => Just(DepKind::WaitsFor),
        1 => Just(DepKind::ConditionalBlocks),
        1 => Just(DepKind::MergeBlocks),
        3 => Just(DepKind::ParentChild),
        1 => Just(DepKind::Other("related".into())),
    ]
}

pub(crate) fn status() -> impl Strategy<Value = BeadStatus> {
    prop_oneof![
        4 => Just(BeadStatus::Open),
        1 => Just(BeadStatus::InProgress),
        1 => Just(BeadStatus::Deferred),
        1 => Just(BeadStatus::Blocked),
        1 => Just(BeadStatus::Hooked),
    ]
}

pub(crate) fn ask() -> impl Strategy<Value = Ask> {
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
        1 => Just(Ask::Redo),
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

/// A graph of up to sixty beads, as a file would bring it: edges anywhere, cycles and gaps included.
pub(crate) fn graph() -> impl Strategy<Value = Vec<NewBead>> {
    let bead = (vec((0_usize..64, kind()), 0..3), any::<bool>());
    vec(bead, 1..60).prop_map(|beads| {
        let made = beads.into_iter().enumerate();
        made.map(|(n, (edges, far))| imported(n, &edges, BeadStatus::Open, far)).collect()
    })
}

pub(crate) fn name(n: usize) -> String {
    let prefix = match n % 6 {
        0 | 3 => "w",
        1 => "ox",
        _ => "gt",
    };
    format!("{prefix}-{n}")
}

pub(crate) fn imported(n: usize, edges: &[(usize, DepKind)], status: BeadStatus, epic: bool) -> NewBead {
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

/// The command that is asked.
pub(crate) fn command(town: &Town, ask: &Ask) -> Command {
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
        Ask::Redo => Command::Redo,
    }
}
