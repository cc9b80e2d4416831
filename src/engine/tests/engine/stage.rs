//! Staging: waves, gates and cycles.

use yard_engine::BeadId;
use yard_engine::bead::{BeadStatus, DepKind, Dependency};
use yard_engine::command::NewBead;
use yard_engine::stage::{Category, Finding, StageInput, StagePlan};

use crate::town::{Town, bead_id, new_bead};

pub(crate) fn ids(names: &[&str]) -> Vec<BeadId> {
    names.iter().map(|name| bead_id(name)).collect()
}

pub(crate) fn epic(town: &Town, id: &str) -> StagePlan {
    town.state.stage_plan(&StageInput::Epic(bead_id(id)))
}

pub(crate) fn tasks(town: &Town, names: &[&str]) -> StagePlan {
    town.state.stage_plan(&StageInput::Tasks(ids(names)))
}

pub(crate) fn texts(ids: &[BeadId]) -> Vec<&str> {
    ids.iter().map(BeadId::as_str).collect()
}

fn waves(plan: &StagePlan) -> Vec<Vec<&str>> {
    plan.waves.iter().map(|wave| texts(wave)).collect()
}

fn gated(plan: &StagePlan) -> Vec<(&str, Vec<&str>)> {
    plan.gated.iter().map(|g| (g.id.as_str(), texts(&g.gated_by))).collect()
}

/// All findings of a kind: the beads, the words and the fix.
pub(crate) fn found(plan: &StagePlan, category: Category) -> Vec<(Vec<&str>, &str, &str)> {
    let all = plan.errors.iter().chain(&plan.warnings).filter(|f| f.category == category);
    all.map(|f| (texts(&f.bead_ids), f.message.as_str(), f.suggested_fix.as_deref().unwrap_or_default()))
        .collect()
}

pub(crate) fn categories(findings: &[Finding]) -> Vec<Category> {
    findings.iter().map(|f| f.category).collect()
}

pub(crate) fn of_kind(kind: &str, bead: NewBead) -> NewBead {
    NewBead { kind: kind.to_owned(), ..bead }
}

pub(crate) fn under(parent: &str, mut bead: NewBead) -> NewBead {
    bead.dependencies.push(Dependency::new(bead_id(parent), DepKind::ParentChild));
    bead
}

pub(crate) fn closed(bead: NewBead) -> NewBead {
    NewBead { status: BeadStatus::Closed, ..bead }
}

// Waves.

#[test]
fn a_wave_holds_what_only_earlier_waves_block() {
    let mut town = Town::new();
    town.beads(&["gt-c", "gt-a"]);
    town.bead_needing("gt-b", &["gt-a"]);
    town.bead_needing("gt-d", &["gt-b", "gt-c"]);
    town.needs("gt-c", "gt-b", DepKind::from("related".to_owned()));
    let plan = tasks(&town, &["gt-d", "gt-c", "gt-b", "gt-a", "gt-a"]);
    assert_eq!(waves(&plan), [vec!["gt-a", "gt-c"], vec!["gt-b"], vec!["gt-d"]]);
    assert_eq!(plan.wave_sizes().collect::<Vec<_>>(), [2, 1, 1]);
    assert_eq!(texts(&plan.critical_path), ["gt-a", "gt-b", "gt-d"]);
    assert_eq!(texts(&plan.members), ["gt-a", "gt-b", "gt-c", "gt-d"]);
    assert!(plan.errors.is_empty() && plan.warnings.is_empty() && plan.gated.is_empty());
}

#[test]
fn an_epic_is_staged_with_its_whole_descent_through_containers_of_any_type() {
    let mut town = Town::new();
    town.epic("gt-e");
    town.import(vec![
        under("gt-e", of_kind("milestone", new_bead("gt-m", &[]))),
        under("gt-m", new_bead("gt-b", &[])),
        under("gt-b", new_bead("gt-c", &["gt-a"])),
        under("gt-e", new_bead("gt-a", &[])),
        // In two places, listed in the first.
        under("gt-m", under("gt-a", new_bead("gt-d", &["gt-c"]))),
        new_bead("gt-elsewhere", &[]),
    ]);
    let plan = epic(&town, "gt-e");
    assert_eq!(waves(&plan), [vec!["gt-a", "gt-b"], vec!["gt-c"], vec!["gt-d"]]);
    let rows: Vec<(u32, &str)> = plan.tree.iter().map(|row| (row.depth, row.bead.id.as_str())).collect();
    assert_eq!(rows, [(0, "gt-e"), (1, "gt-a"), (2, "gt-d"), (1, "gt-m"), (2, "gt-b"), (3, "gt-c")]);
}

#[test]
fn a_list_is_exactly_its_slingable_beads() {
    let mut town = Town::new();
    town.epic("gt-e");
    town.child("gt-a", "gt-e");
    town.child("gt-b", "gt-e");
    let plan = tasks(&town, &["gt-e", "gt-a"]);
    assert_eq!(waves(&plan), [["gt-a"]]);
    assert_eq!(
        plan.tree.iter().map(|row| (row.depth, row.bead.id.as_str())).collect::<Vec<_>>(),
        [(0, "gt-a")]
    );
    assert_eq!(plan, town.state.stage_plan(&StageInput::Beads(ids(&["gt-a"]))));
}

#[test]
fn work_that_is_done_takes_no_wave_and_blocks_nothing() {
    let mut town = Town::new();
    town.beads(&["gt-a", "gt-z"]);
    town.bead_needing("gt-b", &["gt-a", "gt-z"]);
    town.close("gt-a");
    town.close("gt-z");
    let plan = tasks(&town, &["gt-a", "gt-b"]);
    assert_eq!(waves(&plan), [["gt-b"]]);
    assert_eq!(texts(&plan.closed), ["gt-a"]);
    assert_eq!(texts(&plan.critical_path), ["gt-b"]);
    assert_eq!(plan.tracked().map(BeadId::as_str).collect::<Vec<_>>(), ["gt-b", "gt-a"]);
}

#[test]
fn what_blocks_a_parent_blocks_its_children_until_the_parent_is_closed() {
    let mut town = Town::new();
    town.epic("gt-e");
    town.child("gt-first", "gt-e");
    town.bead_with("gt-sub", |b| b.kind = "epic".to_owned());
    town.needs("gt-sub", "gt-e", DepKind::ParentChild);
    town.needs("gt-sub", "gt-first", DepKind::Blocks);
    town.child("gt-later", "gt-sub");
    assert_eq!(waves(&epic(&town, "gt-e")), [["gt-first"], ["gt-later"]]);
    assert_eq!(texts(&epic(&town, "gt-e").critical_path), ["gt-first", "gt-later"]);
    town.close("gt-sub");
    assert_eq!(waves(&epic(&town, "gt-e")), [["gt-first", "gt-later"]]);
}

#[test]
fn parents_that_contain_each_other_hand_down_to_all_below_and_are_no_cycle() {
    let mut town = Town::new();
    town.import(vec![
        new_bead("gt-x", &[]),
        under("gt-q", of_kind("epic", new_bead("gt-p", &["gt-x"]))),
        under("gt-p", of_kind("epic", new_bead("gt-q", &[]))),
        under("gt-q", new_bead("gt-a", &[])),
    ]);
    let plan = tasks(&town, &["gt-a", "gt-x"]);
    assert_eq!(waves(&plan), [["gt-x"], ["gt-a"]]);
    assert!(plan.errors.is_empty());
}

#[test]
fn of_several_longest_chains_the_one_with_the_smallest_ids_is_critical() {
    let mut town = Town::new();
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.bead_needing("gt-y", &["gt-b", "gt-a"]);
    town.bead_needing("gt-x", &["gt-c", "gt-b"]);
    let plan = tasks(&town, &["gt-a", "gt-b", "gt-c", "gt-x", "gt-y"]);
    assert_eq!(texts(&plan.critical_path), ["gt-b", "gt-x"]);
}

// Gates.

#[test]
fn an_open_decision_gates_what_waits_for_it_and_everything_behind() {
    let mut town = Town::new();
    town.import(vec![
        of_kind("decision", new_bead("gt-dec", &[])),
        new_bead("gt-a", &["gt-dec"]),
        new_bead("gt-b", &["gt-a"]),
        new_bead("gt-c", &["gt-b", "gt-dec"]),
        new_bead("gt-free", &[]),
    ]);
    let plan = tasks(&town, &["gt-a", "gt-b", "gt-c", "gt-free"]);
    assert_eq!(waves(&plan), [["gt-free"]]);
    assert_eq!(
        gated(&plan),
        [("gt-a", vec!["gt-dec"]), ("gt-b", vec!["gt-a"]), ("gt-c", vec!["gt-dec"])],
        "direct gates are named, else the gated beads it waits for"
    );
    let message = "decision gt-dec is open, no worker will close it, and gt-a, gt-c must wait for it";
    let fix = "when it is settled: ym bead close gt-dec";
    assert_eq!(found(&plan, Category::Gated), [(vec!["gt-a", "gt-c"], message, fix)]);
    assert_eq!(plan.tracked().map(BeadId::as_str).collect::<Vec<_>>(), ["gt-free", "gt-a", "gt-b", "gt-c"]);
    town.close("gt-dec");
    assert_eq!(waves(&tasks(&town, &["gt-a", "gt-b", "gt-c"])), [["gt-a"], ["gt-b"], ["gt-c"]]);
}

#[test]
fn an_open_epic_gates_also_within_its_own_epic() {
    let mut town = Town::new();
    town.epic("gt-e");
    town.import(vec![
        under("gt-e", of_kind("epic", new_bead("gt-sub", &[]))),
        under("gt-sub", new_bead("gt-a", &[])),
        under("gt-e", new_bead("gt-b", &["gt-sub"])),
    ]);
    let plan = epic(&town, "gt-e");
    assert_eq!(waves(&plan), [["gt-a"]]);
    assert_eq!(gated(&plan), [("gt-b", vec!["gt-sub"])]);
    assert_eq!(found(&plan, Category::Gated).len(), 1);
}

#[test]
fn open_work_outside_the_convoy_blocks_and_is_offered_for_it() {
    let mut town = Town::new();
    town.bead("gt-out");
    town.bead_needing("gt-a", &["gt-out"]);
    let plan = tasks(&town, &["gt-a"]);
    assert_eq!(gated(&plan), [("gt-a", vec!["gt-out"])]);
    let message = "gt-out, which is not in the convoy, must close before gt-a";
    let fix = "ym convoy add CONVOY gt-out, or let it run by itself: ym sling gt-out";
    assert_eq!(found(&plan, Category::OutsideBlocker), [(vec!["gt-a"], message, fix)]);
    assert!(plan.errors.is_empty());
}

#[test]
fn an_inherited_gate_is_told_of_the_parent_that_has_it() {
    let mut town = Town::new();
    town.import(vec![
        of_kind("decision", new_bead("gt-dec", &[])),
        of_kind("epic", new_bead("gt-e", &["gt-dec"])),
        under("gt-e", new_bead("gt-a", &[])),
        under("gt-e", new_bead("gt-b", &[])),
    ]);
    let plan = tasks(&town, &["gt-a", "gt-b"]);
    assert_eq!(gated(&plan), [("gt-a", vec!["gt-dec"]), ("gt-b", vec!["gt-dec"])]);
    assert_eq!(found(&plan, Category::Gated)[0].0, ["gt-e"]);
}

#[test]
fn of_many_inherited_gates_ten_are_named() {
    let mut town = Town::new();
    let gates: Vec<String> = (10..35).map(|n| format!("gt-gate{n}")).collect();
    let names: Vec<&str> = gates.iter().map(String::as_str).collect();
    town.import(names.iter().map(|name| of_kind("gate", new_bead(name, &[]))).collect());
    town.import(vec![
        of_kind("epic", new_bead("gt-e", &names)),
        under("gt-e", new_bead("gt-a", &[])),
        new_bead("gt-b", &names),
    ]);
    let plan = tasks(&town, &["gt-a", "gt-b"]);
    assert_eq!(gated(&plan)[0].1, names[..10]);
    assert_eq!(gated(&plan)[1].1, names, "its own are all named");
}

#[test]
fn a_dependency_nobody_has_is_an_error_as_its_tracker_writes_it() {
    let mut town = Town::new();
    let edge = Dependency::from_tracker("external:payments:api-v2", DepKind::Blocks).expect("an edge");
    town.import(vec![
        NewBead { dependencies: vec![edge], ..new_bead("gt-a", &[]) },
        new_bead("gt-b", &["gt-ghost", "gt-a"]),
    ]);
    let plan = tasks(&town, &["gt-a", "gt-b"]);
    assert!(plan.waves.is_empty());
    assert_eq!(gated(&plan), [("gt-a", vec!["api-v2"]), ("gt-b", vec!["gt-ghost"])]);
    assert_eq!(
        found(&plan, Category::MissingBead),
        [
            (
                vec!["gt-a"],
                "external:payments:api-v2, which nobody has, is needed by gt-a",
                "ym bead dep remove gt-a api-v2"
            ),
            (
                vec!["gt-b"],
                "gt-ghost, which nobody has, is needed by gt-b",
                "ym bead dep remove gt-b gt-ghost"
            ),
        ]
    );
    assert_eq!(categories(&plan.errors), [Category::MissingBead; 2]);
}

#[test]
fn a_bead_nobody_has_is_an_error_and_the_others_are_planned() {
    let mut town = Town::new();
    town.bead("gt-a");
    let plan = tasks(&town, &["gt-a", "gt-ghost"]);
    assert_eq!(waves(&plan), [["gt-a"]]);
    assert_eq!(found(&plan, Category::MissingBead)[0].1, "there is no bead gt-ghost");
    assert_eq!(categories(&epic(&town, "gt-ghost").errors), [Category::MissingBead]);
}

// Cycles.

/// The paths of all cycles found.
fn cycles(plan: &StagePlan) -> Vec<Vec<&str>> {
    found(plan, Category::Cycle).into_iter().map(|(path, ..)| path).collect()
}

#[test]
fn every_cycle_is_an_error_with_its_full_path() {
    let mut town = Town::new();
    town.import(vec![
        new_bead("gt-c", &["gt-a"]),
        new_bead("gt-b", &["gt-c"]),
        new_bead("gt-a", &["gt-b"]),
        new_bead("gt-x", &["gt-y"]),
        new_bead("gt-y", &["gt-x"]),
        new_bead("gt-free", &[]),
    ]);
    let plan = tasks(&town, &["gt-a", "gt-b", "gt-c", "gt-x", "gt-y", "gt-free"]);
    assert_eq!(cycles(&plan), [vec!["gt-a", "gt-b", "gt-c", "gt-a"], vec!["gt-x", "gt-y", "gt-x"]]);
    let (_, message, fix) = found(&plan, Category::Cycle)[0];
    assert_eq!(message, "waits for itself: gt-a -> gt-b -> gt-c -> gt-a");
    assert_eq!(fix, "ym bead dep remove gt-a gt-b");
    assert_eq!(waves(&plan), [["gt-free"]]);
    assert!(plan.gated.is_empty() && plan.warnings.is_empty());
}

#[test]
fn every_bead_of_a_knot_is_on_a_path() {
    let mut town = Town::new();
    town.import(vec![
        new_bead("gt-hub", &["gt-a", "gt-b", "gt-c"]),
        new_bead("gt-a", &["gt-hub"]),
        new_bead("gt-b", &["gt-hub"]),
        new_bead("gt-c", &["gt-d"]),
        new_bead("gt-d", &["gt-hub"]),
    ]);
    let plan = tasks(&town, &["gt-a", "gt-b", "gt-c", "gt-d", "gt-hub"]);
    assert_eq!(
        cycles(&plan),
        [
            vec!["gt-a", "gt-hub", "gt-a"],
            vec!["gt-b", "gt-hub", "gt-b"],
            vec!["gt-c", "gt-d", "gt-hub", "gt-c"],
        ]
    );
}

#[test]
fn what_stands_behind_a_cycle_is_gated_by_it() {
    let mut town = Town::new();
    town.import(vec![
        new_bead("gt-a", &["gt-b"]),
        new_bead("gt-b", &["gt-a"]),
        new_bead("gt-c", &["gt-b"]),
        new_bead("gt-d", &["gt-c"]),
    ]);
    let plan = tasks(&town, &["gt-a", "gt-b", "gt-c", "gt-d"]);
    assert_eq!(cycles(&plan), [["gt-a", "gt-b", "gt-a"]]);
    assert_eq!(gated(&plan), [("gt-c", vec!["gt-b"]), ("gt-d", vec!["gt-c"])]);
}

#[test]
fn a_cycle_through_beads_outside_the_convoy_is_found() {
    let mut town = Town::new();
    town.import(vec![
        new_bead("gt-a", &["gt-out"]),
        of_kind("decision", new_bead("gt-out", &["gt-far"])),
        new_bead("gt-far", &["gt-a"]),
    ]);
    let plan = tasks(&town, &["gt-a"]);
    assert_eq!(cycles(&plan), [["gt-a", "gt-out", "gt-far", "gt-a"]]);
    assert_eq!(categories(&plan.warnings), [], "the cycle says it all");
}

#[test]
fn a_parent_that_waits_for_its_own_child_is_a_cycle() {
    let mut town = Town::new();
    town.import(vec![
        of_kind("epic", new_bead("gt-e", &["gt-b"])),
        under("gt-e", new_bead("gt-a", &[])),
        under("gt-e", new_bead("gt-b", &[])),
    ]);
    let plan = epic(&town, "gt-e");
    assert_eq!(cycles(&plan), [["gt-b", "gt-e", "gt-b"]]);
    assert_eq!(found(&plan, Category::Cycle)[0].2, "ym bead dep remove gt-e gt-b");
    assert_eq!(gated(&plan), [("gt-a", vec!["gt-b"])]);
}

#[test]
fn a_circle_with_a_closed_bead_in_it_is_no_cycle() {
    let mut town = Town::new();
    town.import(vec![closed(new_bead("gt-a", &["gt-b"])), new_bead("gt-b", &["gt-a"])]);
    let plan = tasks(&town, &["gt-a", "gt-b"]);
    assert!(plan.errors.is_empty());
    assert_eq!(waves(&plan), [["gt-b"]]);
}
