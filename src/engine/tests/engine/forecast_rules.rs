//! The forecast goes by the engine's own rules: whatever town it is asked about, the engine starts the same beads at the
//! same times if they take as long as expected.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use yard_engine::bead::{DepKind, Dependency};
use yard_engine::capacity::Limit;
use yard_engine::command::NewBead;
use yard_engine::forecast::{Change, Forecast, Forecaster, Options, Scope};
use yard_engine::rig::RigSwitch;
use yard_engine::settings::{AccountSettings, Fairness, RigSettings};
use yard_engine::{AccountName, BeadId, Command, Millis, Timestamp};

use crate::town::{Town, bead_id, new_bead, rig_name};

const RIGS: [(&str, &str); 3] = [("gastown", "gt"), ("web", "w"), ("ox", "ox")];
const PROGRAMS: usize = 3;

/// How a bead gets to be run.
#[derive(Debug, Clone)]
enum Wanted {
    Slung { priority: u8, account: bool, wait: Option<u64>, deadline: Option<u64>, held: bool },
    InConvoy(usize),
    No,
}

/// A bead: its rig and program, what it waits for, and its epic.
#[derive(Debug, Clone)]
struct Spec {
    rig: usize,
    program: usize,
    urgency: u8,
    needs: Vec<usize>,
    epic: Option<usize>,
    wanted: Wanted,
}

/// The rules of a town.
#[derive(Debug, Clone)]
struct Rules {
    slots: i64,
    rig_caps: [Option<u64>; 3],
    account_cap: Option<u64>,
    fairness: Fairness,
    aging: Option<u64>,
    spawn_delay: u64,
    pause: Option<u64>,
    parked: bool,
    /// What each epic waits for.
    epics: Vec<Option<usize>>,
    /// How long the town runs before it is looked at.
    after: u64,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let slung = (
        1..=4_u8,
        any::<bool>(),
        of(0..400_u64),
        prop_oneof![9 => Just(None), 1 => of(0..400_u64)],
        0..20_u8,
    );
    prop_oneof![
        5 => slung.prop_map(|(priority, account, wait, deadline, held)| Wanted::Slung {
            priority: priority * 20,
            account,
            wait,
            deadline,
            held: held == 0,
        }),
        5 => (0..2_usize).prop_map(Wanted::InConvoy),
        1 => Just(Wanted::No),
    ]
}

fn spec() -> impl Strategy<Value = Spec> {
    // Many that wait for the same few come free together, and then their order tells.
    let needs = prop_oneof![vec(0..40_usize, 0..3), vec(0..3_usize, 1..2)];
    let urgency = prop_oneof![2 => Just(2), 1 => 0..5_u8];
    (0..3_usize, 0..PROGRAMS, urgency, needs, prop_oneof![3 => Just(None), 1 => of(0..3_usize)], wanted())
        .prop_map(|(rig, program, urgency, needs, epic, wanted)| Spec {
            rig,
            program,
            urgency,
            needs,
            epic,
            wanted,
        })
}

fn rules() -> impl Strategy<Value = Rules> {
    let fairness =
        prop_oneof![Just(Fairness::Town), Just(Fairness::Rig), Just(Fairness::Convoy), Just(Fairness::Agent)];
    let cap = || of(1..3_u64);
    let caps = (1..6_i64, [cap(), cap(), cap()], cap());
    let rare = || prop_oneof![4 => Just(None), 1 => of(1..300_u64)];
    let delay = prop_oneof![3 => Just(0), 1 => 1..30_u64];
    let epics = vec(of(0..40_usize), 3..=3);
    (caps, fairness, rare(), delay, rare(), 0..20_u8, epics, 0..90_u64).prop_map(
        |((slots, rig_caps, account_cap), fairness, aging, spawn_delay, pause, parked, epics, after)| Rules {
            slots,
            rig_caps,
            account_cap,
            fairness,
            aging,
            spawn_delay,
            pause,
            parked: parked == 0,
            epics,
            after,
        },
    )
}

fn account() -> AccountName {
    AccountName::parse("main").expect("a name")
}

fn work(id: &str, program: usize) -> NewBead {
    NewBead { argv: Some(vec![format!("/bin/p{program}")]), ..new_bead(id, &[]) }
}

/// A town whose rigs have run each program three times.
static EXPERIENCED: LazyLock<Town> = LazyLock::new(|| {
    let mut town = Town::deferred(100);
    town.rig("web", "w");
    town.rig("ox", "ox");
    for (rig, (_, prefix)) in RIGS.iter().enumerate() {
        for (program, run) in (0..PROGRAMS).flat_map(|program| (0..3).map(move |run| (program, run))) {
            let id = format!("{prefix}-past{program}{run}");
            town.import(vec![work(&id, program)]);
            town.sling(&[&id]);
            town.start();
            town.advance(Millis::seconds(20 + (rig * 40 + program * 70 + run * 3) as u64));
            town.exits_ok(&id);
        }
    }
    town
});

/// A town with these beads, some of which run.
fn town_of(rules: &Rules, specs: &[Spec]) -> Town {
    let mut town = EXPERIENCED.clone();
    town.configure(|s| {
        s.max_polecats = rules.slots;
        s.fairness = rules.fairness;
        s.aging = rules.aging.map(Millis::seconds);
        s.spawn_delay = Millis::seconds(rules.spawn_delay);
        for ((name, _), cap) in RIGS.iter().zip(rules.rig_caps) {
            s.rigs.insert(rig_name(name), RigSettings { max_polecats: cap, ..RigSettings::default() });
        }
        s.accounts.insert(account(), AccountSettings { max_polecats: rules.account_cap, cooldown: None });
    });
    let id = |number: usize| format!("{}-{number:02}", RIGS[specs[number].rig].1);
    let mut beads: Vec<NewBead> = Vec::new();
    for (number, needs) in rules.epics.iter().enumerate() {
        let needs = needs.map(|on| id(on % specs.len()));
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        beads.push(NewBead { kind: "epic".to_owned(), ..new_bead(&format!("gt-epic{number}"), &needs) });
    }
    for (number, spec) in specs.iter().enumerate() {
        let mut bead = NewBead { priority: Some(spec.urgency), ..work(&id(number), spec.program) };
        for on in spec.needs.iter().filter(|_| number > 0).map(|on| on % number) {
            bead.dependencies.push(Dependency::new(bead_id(&id(on)), DepKind::Blocks));
        }
        bead.dependencies.extend(
            spec.epic.map(|n| Dependency::new(bead_id(&format!("gt-epic{n}")), DepKind::ParentChild)),
        );
        bead.dependencies = yard_engine::bead::one_per_pair(bead.dependencies);
        beads.push(bead);
    }
    town.import(beads);
    for convoy in 0..2 {
        let of_it = |n: &usize| matches!(specs[*n].wanted, Wanted::InConvoy(c) if c == convoy);
        let targets: Vec<String> = (0..specs.len()).filter(of_it).map(id).collect();
        // One of nothing, or of nothing but cycles, is refused.
        let _ = town.command(&Command::ConvoyLaunch { targets, force: true });
    }
    for (number, spec) in specs.iter().enumerate() {
        if let Wanted::Slung { priority, account: with, wait, deadline, held } = spec.wanted {
            let in_time = |span: Option<u64>| span.map(|span| town.in_time(Millis::seconds(span)));
            let (not_before, deadline) = (in_time(wait), in_time(deadline.map(|after| after + 1)));
            town.sling_with(&id(number), |request| {
                request.priority = Some(priority);
                request.account = with.then(account);
                (request.not_before, request.deadline) = (not_before, deadline);
            });
            if held {
                let _ = town.command(&Command::Hold { id: id(number), held });
            }
        }
    }
    town.start();
    town.advance(Millis::seconds(rules.after));
    if let Some(pause) = rules.pause {
        let until = Some(town.in_time(Millis::seconds(pause)));
        town.does(&Command::Pause { reason: None, until });
    }
    if rules.parked {
        town.switch("web", RigSwitch::Park);
    }
    town
}

/// Lets the engine run the town to its end, each bead for as long as planned; says when each started.
fn run(town: &mut Town, forecast: &Forecast) -> BTreeMap<BeadId, Timestamp> {
    let mut starts: BTreeMap<BeadId, Timestamp> = BTreeMap::new();
    let mut ends: BTreeMap<BeadId, Timestamp> = BTreeMap::new();
    for dispatch in town.state.live_dispatches() {
        let bead = dispatch.id.bead().clone();
        starts.insert(bead.clone(), dispatch.running_at.expect("it runs"));
        ends.insert(bead.clone(), forecast.plan[&bead].end);
    }
    for _ in 0..3_000 {
        let over: Vec<BeadId> =
            ends.iter().filter(|(_, end)| **end <= town.now).map(|(id, _)| id.clone()).collect();
        let dispatches: Vec<_> = over.iter().map(|bead| town.live(bead.as_str())).collect();
        let started = town.turn(|tx| {
            for id in &dispatches {
                tx.worker_ended(id, &crate::town::exit(0, yard_engine::dispatch::Category::Crash));
            }
        });
        ends.retain(|id, _| !over.contains(id));
        for id in started {
            town.runs(&id);
            let bead = bead_id(&id);
            starts.insert(bead.clone(), town.now);
            // What the forecast does not know of never ends, so that the difference shows.
            let planned = forecast.plan.get(&bead);
            let takes = planned.map_or(Millis::minutes(10_000).duration(), |p| p.end.since(p.start));
            ends.insert(bead, town.now.after(takes));
        }
        let spawn = town.state.next_spawn_at().filter(|_| town.state.ready_count() > 0);
        let next = ends.values().copied().chain(town.state.next_due()).chain(spawn);
        let Some(next) = next.filter(|at| *at > town.now).min() else { return starts };
        if ends.values().all(|end| end.since(town.now) > Millis::minutes(5_000).duration())
            && !ends.is_empty()
        {
            return starts;
        }
        town.now = next;
    }
    panic!("it never ends");
}

fn quick() -> Options {
    Options { samples: 25, ..Options::default() }
}

/// The most beads that run at once, of those that count.
fn most_at_once(forecast: &Forecast, counts: impl Fn(&BeadId) -> bool) -> usize {
    let planned = forecast.plan.iter().filter(|(id, _)| counts(id));
    let planned: Vec<_> =
        planned.map(|(_, planned)| planned).filter(|planned| planned.start < planned.end).collect();
    let at_once = |at: Timestamp| planned.iter().filter(|p| p.start <= at && at < p.end).count();
    planned.iter().map(|p| at_once(p.start)).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_starts_what_is_forecast_when_it_is_forecast(rules in rules(), specs in vec(spec(), 1..28)) {
        let mut town = town_of(&rules, &specs);
        let forecast = town.state.forecast(&Scope::Town, town.now, &Options { samples: 0, ..quick() });
        let planned: BTreeMap<BeadId, Timestamp> =
            forecast.plan.iter().map(|(id, planned)| (id.clone(), planned.start)).collect();
        let started = run(&mut town, &forecast);
        prop_assert_eq!(planned, started);
    }

    #[test]
    fn a_forecast_keeps_to_blockers_and_limits(rules in rules(), specs in vec(spec(), 1..28)) {
        let town = town_of(&rules, &specs);
        let (state, now) = (&town.state, town.now);
        let forecast = state.forecast(&Scope::Town, now, &quick());
        prop_assert_eq!(&forecast, &state.forecast(&Scope::Town, now, &quick()), "the same input, the same forecast");
        if let Some(band) = forecast.finish {
            prop_assert!(band.p50 <= band.p90);
        }
        for (id, planned) in &forecast.plan {
            let entry = state.bead(id).expect("known");
            for on in entry.bead.dependencies.iter().filter(|d| d.kind.blocks()) {
                let closed = state.bead(&on.on).is_some_and(|on| on.bead.is_closed());
                let ends = forecast.plan.get(&on.on).map(|on| on.end);
                prop_assert!(closed || ends.is_some_and(|end| end <= planned.start), "{id} before {}", on.on);
            }
            prop_assert!(planned.start <= planned.end && (planned.slack.0 == 0 || !planned.critical), "{id} {planned:?}");
        }
        let mut limits = state.limits().into_iter();
        let kept = limits.all(|(limit, room)| {
            let counts = |id: &BeadId| match &limit {
                Limit::Town => true,
                Limit::Rig(name) => state.rig_of(id).is_some_and(|rig| rig.name == *name),
                Limit::Account(_) | Limit::Agents | Limit::Tasks | Limit::TasksOf(_) | Limit::Slurm => false,
            };
            room.max.is_none_or(|max| most_at_once(&forecast, counts) as u64 <= max.max(room.active))
        });
        prop_assert!(kept, "a limit is exceeded");
        let busiest = forecast.load.iter().map(|(_, busy)| *busy as usize).max().unwrap_or(0);
        prop_assert_eq!(busiest, most_at_once(&forecast, |_| true));
        for (earlier, later) in forecast.critical_path.iter().zip(forecast.critical_path.iter().skip(1)) {
            prop_assert_eq!(forecast.plan[earlier].end, forecast.plan[later].start);
        }
        let stuck: Vec<&BeadId> = forecast.stuck.iter().map(|(id, _)| id).collect();
        prop_assert!(stuck.iter().all(|id| !forecast.plan.contains_key(*id)));
        prop_assert!(forecast.stuck.iter().all(|(_, why)| !why.contains("nothing can be said")), "{:?}", forecast.stuck);
    }

    #[test]
    fn a_changed_limit_says_the_same_as_a_fork(rules in rules(), specs in vec(spec(), 1..20), more in 1..4_i64) {
        let town = town_of(&rules, &specs);
        let mut forecaster = Forecaster::new(&town.state, &Scope::Town, town.now);
        let slots = rules.slots + more;
        let quickly = forecaster.finish_with(&Limit::Town, Some(slots as u64), &quick());
        let fork = town.state.what_if(&[Change::MaxPolecats(slots)]);
        prop_assert_eq!(quickly, fork.forecast(&Scope::Town, town.now, &quick()).finish);
    }
}
