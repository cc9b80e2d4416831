//! Staging over large and over random graphs.

use proptest::collection::vec;
use proptest::prelude::*;
use yard_engine::bead::{BeadStatus, DepKind, Dependency};
use yard_engine::command::NewBead;
use yard_engine::readiness::ReasonCode;
use yard_engine::stage::{Category, StageInput, StagePlan};
use yard_engine::{Asker, BeadId, Command, Kitchen, State, Tx};

use crate::stage::{closed, found, of_kind, under};
use crate::town::{Town, bead_id, new_bead};

/// A town without the checks of `Town`, for graphs they would take too long over.
fn large_town(beads: Vec<NewBead>) -> State {
    let mut town = Town::new();
    let (kitchen, now) = (Kitchen::default(), town.now);
    let mut tx = Tx::new(&mut town.state, now);
    tx.decide(&Asker { actor: "ada", kitchen: &kitchen }, &Command::BeadImport { beads }).expect("imported");
    tx.finish();
    town.state
}

fn nth(n: usize) -> String {
    format!("gt-{n:05}")
}

#[test]
fn long_chains_deep_nesting_and_broad_epics_are_planned() {
    const MANY: usize = 20_000;
    let chain = (0..MANY).map(|n| match n {
        0 => new_bead(&nth(0), &[]),
        _ => new_bead(&nth(n), &[&nth(n - 1)]),
    });
    let all: Vec<BeadId> = (0..MANY).map(|n| bead_id(&nth(n))).collect();
    let plan = large_town(chain.collect()).stage_plan(&StageInput::Tasks(all.clone()));
    assert_eq!(plan.waves.len(), MANY);
    assert_eq!(plan.critical_path, all);

    // The last waits for the first: one cycle, all of it on the path.
    let ring = (0..MANY).map(|n| new_bead(&nth(n), &[&nth((n + 1) % MANY)]));
    let plan = large_town(ring.rev().collect()).stage_plan(&StageInput::Tasks(all.clone()));
    assert_eq!(plan.errors[0].bead_ids.len(), MANY + 1);
    assert_eq!(plan.errors[0].message.matches("->").count(), 10);

    // A thousand gates of one epic cost its children nothing.
    let gates: Vec<String> = (0..1000).map(|n| format!("gt-gate{n}")).collect();
    let names: Vec<&str> = gates.iter().map(String::as_str).collect();
    let mut broad = vec![of_kind("epic", new_bead("gt-e", &names))];
    broad.extend((0..MANY).map(|n| under("gt-e", new_bead(&nth(n), &[]))));
    let state = large_town(broad);
    let plan = state.stage_plan(&StageInput::Epic(bead_id("gt-e")));
    assert_eq!((plan.gated.len(), plan.gated[0].gated_by.len()), (MANY, 10));
    assert_eq!(found(&plan, Category::MissingBead).len(), 1000);
}

#[test]
fn a_knot_with_too_many_paths_still_names_every_bead() {
    // A thousand ways around a circle of a thousand.
    let mut beads: Vec<NewBead> = (0..1000).map(|n| new_bead(&nth(n), &[&nth(n + 1)])).collect();
    let ways: Vec<String> = (2000..3000).map(nth).collect();
    beads.push(new_bead(&nth(1000), &ways.iter().map(String::as_str).collect::<Vec<_>>()));
    beads.extend(ways.iter().map(|way| new_bead(way, &[&nth(0)])));
    let all: Vec<BeadId> = beads.iter().filter_map(|b| b.id.as_deref()).map(bead_id).collect();
    let plan = large_town(beads).stage_plan(&StageInput::Tasks(all.clone()));
    let mut named: Vec<BeadId> = plan.errors.iter().flat_map(|f| f.bead_ids.clone()).collect();
    assert!(named.len() < 40_000, "{}", named.len());
    named.sort();
    named.dedup();
    assert_eq!(named, all);
}

/// The number of a bead that is in no random town.
const NOBODY: usize = 13;

/// A bead of a random town: its type, whether it is done, and its edges to others by number.
#[derive(Debug, Clone)]
struct Random {
    kind: &'static str,
    closed: bool,
    asked: bool,
    edges: Vec<(usize, DepKind)>,
}

fn random_town() -> impl Strategy<Value = Vec<Random>> {
    let kind = prop_oneof![5 => Just("task"), 1 => Just("epic"), 1 => Just("decision")];
    let edge = prop_oneof![3 => Just(DepKind::Blocks), 2 => Just(DepKind::ParentChild)];
    let bead = (kind, prop::bool::weighted(0.2), prop::bool::weighted(0.85), vec((0..=NOBODY, edge), 0..3));
    vec(bead.prop_map(|(kind, closed, asked, edges)| Random { kind, closed, asked, edges }), 1..NOBODY)
}

fn named(n: usize) -> String {
    format!("gt-{n:02}")
}

impl Random {
    /// Without cycles, edges lead to smaller numbers, or to the one that nobody has.
    fn bead(&self, n: usize, acyclic: bool) -> NewBead {
        let edges = self.edges.iter().filter(|(on, _)| *on != n && (!acyclic || *on < n || *on == NOBODY));
        let dependencies = edges.map(|(on, kind)| Dependency::new(bead_id(&named(*on)), kind.clone()));
        let bead = NewBead { dependencies: dependencies.collect(), ..new_bead(&named(n), &[]) };
        let bead = of_kind(self.kind, bead);
        if self.closed { closed(bead) } else { bead }
    }
}

fn asked(beads: &[Random]) -> StageInput {
    StageInput::Tasks((0..beads.len()).filter(|n| beads[*n].asked).map(|n| bead_id(&named(n))).collect())
}

fn is_unblocked(town: &Town, id: &BeadId) -> bool {
    let waits = [ReasonCode::BlockedBy, ReasonCode::MissingDependency, ReasonCode::Closed];
    !town.codes(id.as_str()).iter().any(|code| waits.contains(code))
}

/// Closes a plan's waves one after the other: each is exactly what readiness lets go, and nothing else ever is.
fn waves_are_what_readiness_lets_go(beads: &[Random], acyclic: bool) -> Result<StagePlan, TestCaseError> {
    let mut town = Town::new();
    town.import((0..beads.len()).map(|n| beads[n].bead(n, acyclic)).collect());
    let plan = town.state.stage_plan(&asked(beads));
    let unblocked = |town: &Town| -> Vec<BeadId> {
        plan.members.iter().filter(|id| is_unblocked(town, id)).cloned().collect()
    };
    for wave in &plan.waves {
        prop_assert_eq!(&unblocked(&town), wave);
        for id in wave {
            town.close(id.as_str());
        }
    }
    prop_assert_eq!(unblocked(&town), Vec::<BeadId>::new());
    for gated in &plan.gated {
        prop_assert!(!gated.gated_by.is_empty());
    }
    Ok(plan)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn closing_wave_by_wave_frees_exactly_the_next_wave(beads in random_town()) {
        let plan = waves_are_what_readiness_lets_go(&beads, true)?;
        prop_assert!(plan.errors.iter().all(|f| f.category == Category::MissingBead));
        let placed = plan.tracked().count();
        prop_assert_eq!(placed, plan.members.len());
    }

    #[test]
    fn with_cycles_every_member_is_placed_or_on_a_named_path(beads in random_town()) {
        let plan = waves_are_what_readiness_lets_go(&beads, false)?;
        let graph: Vec<NewBead> = (0..beads.len()).map(|n| beads[n].bead(n, false)).collect();
        let cycles: Vec<&[BeadId]> = plan
            .errors
            .iter()
            .filter(|finding| finding.category == Category::Cycle)
            .map(|finding| finding.bead_ids.as_slice())
            .collect();
        for path in &cycles {
            prop_assert!(path.len() > 2 && path.first() == path.last());
            let real = path.windows(2).all(|pair| waits(&graph, &pair[0], &pair[1]));
            // Parents that contain each other are named by one of them.
            prop_assert!(real || has_parents_in_a_circle(&graph), "{:?} is no path", path);
        }
        let placed: Vec<&BeadId> = plan.tracked().collect();
        for member in &plan.members {
            let on_a_path = cycles.iter().any(|path| path.contains(member));
            prop_assert!(placed.contains(&member) != on_a_path, "{}", member);
        }
    }

    #[test]
    fn the_order_beads_came_in_changes_nothing(
        (beads, order) in random_town().prop_flat_map(|beads| {
            let order: Vec<usize> = (0..beads.len()).collect();
            (Just(beads), Just(order).prop_shuffle())
        })
    ) {
        let news: Vec<NewBead> = (0..beads.len()).map(|n| beads[n].bead(n, false)).collect();
        let mut shuffled: Vec<NewBead> = order.iter().map(|n| news[*n].clone()).collect();
        for bead in &mut shuffled {
            bead.dependencies.reverse();
        }
        let (mut one, mut other) = (Town::new(), Town::new());
        one.import(news);
        other.import(shuffled);
        let input = asked(&beads);
        prop_assert_eq!(one.state.stage_plan(&input), other.state.stage_plan(&input));
    }
}

/// Whether an open bead waits for another, or inherits from it.
fn waits(beads: &[NewBead], holder: &BeadId, on: &BeadId) -> bool {
    let mut open = beads.iter().filter(|b| b.status == BeadStatus::Open);
    let holder = open.find(|b| b.id.as_deref() == Some(holder.as_str()));
    holder.is_some_and(|b| b.dependencies.iter().any(|d| d.on == *on && d.kind.makes_wait()))
}

/// Whether some bead is its own ancestor.
fn has_parents_in_a_circle(beads: &[NewBead]) -> bool {
    let parents = |id: &str| -> Vec<String> {
        let edges = beads.iter().filter(|b| b.id.as_deref() == Some(id)).flat_map(|b| &b.dependencies);
        edges.filter(|d| d.kind == DepKind::ParentChild).map(|d| d.on.to_string()).collect()
    };
    beads.iter().filter_map(|b| b.id.clone()).any(|id| {
        let (mut seen, mut pending) = (Vec::new(), parents(&id));
        while let Some(next) = pending.pop() {
            if !seen.contains(&next) {
                pending.extend(parents(&next));
                seen.push(next);
            }
        }
        seen.contains(&id)
    })
}
