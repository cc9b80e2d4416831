//! Staging: what is to be known before a convoy starts.

use std::sync::Arc;

use yard_engine::Recorded;
use yard_engine::bead::{Bead, BeadEvent};
use yard_engine::rig::RigSwitch;
use yard_engine::stage::{Category, StageInput, StagePlan};

use crate::stage::{categories, closed, epic, found, ids, of_kind, tasks, under};
use crate::town::{Town, bead_id, new_bead, rig_name};

#[test]
fn a_bead_without_a_rig_is_an_error_per_prefix() {
    let mut town = Town::new();
    town.import(["gt-a", "xx-1", "xx-2", "yy-1", "hq-note", "plain"].map(|id| new_bead(id, &[])).into());
    let plan = tasks(&town, &["gt-a", "xx-1", "xx-2", "yy-1", "hq-note", "plain"]);
    let elsewhere = "ym bead add TITLE --rig NAME makes one that a rig can run";
    assert_eq!(
        found(&plan, Category::NoRig),
        [
            (vec!["hq-note"], "town-level beads are never dispatched: hq-note", elsewhere),
            (vec!["plain"], "an id without a prefix belongs to no rig: plain", elsewhere),
            (vec!["xx-1", "xx-2"], "no rig owns the prefix xx: xx-1, xx-2", "ym rig add NAME --prefix xx"),
            (vec!["yy-1"], "no rig owns the prefix yy: yy-1", "ym rig add NAME --prefix yy"),
        ]
    );
    town.close("yy-1");
    assert_eq!(found(&tasks(&town, &["yy-1"]), Category::NoRig), [], "what is done needs no rig");
}

#[test]
fn members_joined_to_nothing_of_the_epic_are_orphans() {
    let mut town = Town::new();
    town.epic("gt-e");
    town.bead("gt-outside");
    town.import(vec![
        under("gt-e", new_bead("gt-a", &[])),
        under("gt-e", new_bead("gt-b", &["gt-a"])),
        under("gt-e", closed(new_bead("gt-done", &["gt-d"]))),
        under("gt-e", new_bead("gt-c", &["gt-outside"])),
        under("gt-e", new_bead("gt-d", &[])),
        under("gt-e", of_kind("epic", new_bead("gt-sub", &["gt-a"]))),
        under("gt-sub", new_bead("gt-s", &[])),
        under("gt-e", new_bead("gt-z", &[])),
    ]);
    let plan = epic(&town, "gt-e");
    let message = "joined to nothing else of the epic: gt-c, gt-z";
    let fix = "if something must come first: ym bead dep add gt-c OTHER";
    assert_eq!(found(&plan, Category::Orphan), [(vec!["gt-c", "gt-z"], message, fix)]);
    assert_eq!(found(&tasks(&town, &["gt-d", "gt-z"]), Category::Orphan), [], "only epics have orphans");
}

#[test]
fn the_only_open_member_is_no_orphan() {
    let mut town = Town::new();
    town.epic("gt-e");
    town.child("gt-a", "gt-e");
    town.child("gt-b", "gt-e");
    assert_eq!(found(&epic(&town, "gt-e"), Category::Orphan).len(), 1);
    town.close("gt-b");
    assert_eq!(categories(&epic(&town, "gt-e").warnings), []);
}

#[test]
fn parked_and_docked_rigs_are_told_with_their_open_members() {
    let mut town = Town::new();
    town.beads(&["gt-a", "gt-b", "gt-done"]);
    town.close("gt-done");
    let all = ["gt-a", "gt-b", "gt-done"];
    town.switch("gastown", RigSwitch::Park);
    let message = "rig gastown is parked, so these do not start: gt-a, gt-b";
    assert_eq!(
        found(&tasks(&town, &all), Category::BlockedRig),
        [(vec!["gt-a", "gt-b"], message, "ym rig unpark gastown")]
    );
    town.switch("gastown", RigSwitch::Dock);
    let both = "ym rig unpark gastown; ym rig undock gastown";
    assert_eq!(found(&tasks(&town, &all), Category::BlockedRig)[0].2, both);
    town.switch("gastown", RigSwitch::Unpark);
    assert_eq!(found(&tasks(&town, &all), Category::BlockedRig)[0].2, "ym rig undock gastown");
}

#[test]
fn members_off_the_most_common_rig_are_told_per_rig() {
    let mut town = Town::new();
    town.rig("beta", "be");
    town.rig("alpha", "al");
    town.beads(&["gt-1", "be-1", "be-2", "al-1", "al-2"]);
    let plan = tasks(&town, &["gt-1", "be-1", "be-2", "al-1", "al-2"]);
    let told = found(&plan, Category::CrossRig);
    assert_eq!(told[0].0, ["be-1", "be-2"]);
    assert_eq!(told[0].1, "on rig beta, while most are on alpha: be-1, be-2", "of equals the first by name");
    assert_eq!(told[0].2, "if they are work of its own: ym convoy stage be-1 be-2");
    assert_eq!(told[1].0, ["gt-1"]);
    assert_eq!(told.len(), 2);
}

#[test]
fn a_wave_larger_than_the_cap_is_told_in_deferred_mode() {
    let mut town = Town::deferred(2);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    let plan = tasks(&town, &["gt-a", "gt-b", "gt-c"]);
    let message = "wave 1 has 3 beads, and at most 2 workers run at once";
    let fix = "ym config set scheduler.max_polecats 3";
    assert_eq!(found(&plan, Category::Capacity), [(vec!["gt-a", "gt-b", "gt-c"], message, fix)]);
    town.configure(|s| s.max_polecats = 3);
    assert_eq!(found(&tasks(&town, &["gt-a", "gt-b", "gt-c"]), Category::Capacity), []);
    town.configure(|s| s.max_polecats = -1);
    assert_eq!(found(&tasks(&town, &["gt-a", "gt-b", "gt-c"]), Category::Capacity), []);
}

#[test]
fn an_epic_within_an_epic_lacks_a_branch_once_it_has_children() {
    let mut town = Town::new();
    town.epic("gt-e");
    town.import(vec![
        under("gt-e", of_kind("epic", new_bead("gt-sub", &[]))),
        under("gt-e", of_kind("epic", new_bead("gt-empty", &[]))),
        under("gt-sub", new_bead("gt-a", &[])),
    ]);
    let message = "epic gt-sub has no branch of its own to gather its children's work";
    let fix = "ym convoy create gt-sub --from-epic gt-sub --base-branch gt-sub";
    assert_eq!(found(&epic(&town, "gt-e"), Category::MissingBranch), [(vec!["gt-sub"], message, fix)]);
    town.close("gt-sub");
    assert_eq!(found(&epic(&town, "gt-e"), Category::MissingBranch), []);
}

#[test]
fn what_a_workspace_shows_is_to_be_mended_in_its_tracker() {
    let mut town = Town::new();
    town.import(vec![
        new_bead("gt-a", &["gt-b", "gt-dec", "gt-ghost"]),
        new_bead("gt-b", &["gt-a"]),
        of_kind("decision", new_bead("gt-dec", &[])),
    ]);
    let mut state = town.state.clone();
    for id in ["gt-a", "gt-b", "gt-dec"] {
        let shown = &town.state.bead(&bead_id(id)).expect("a bead").bead;
        let bead = Arc::new(Bead { source: Some(rig_name("gastown")), ..Bead::clone(shown) });
        let event = BeadEvent::Added { bead, actor: "beads:gastown".to_owned() }.into();
        state.apply(&Recorded { seq: state.seq().next(), at: town.now, event });
    }
    let plan = state.stage_plan(&StageInput::Tasks(ids(&["gt-a", "gt-b"])));
    let fixes: Vec<&str> =
        plan.errors.iter().chain(&plan.warnings).filter_map(|f| f.suggested_fix.as_deref()).collect();
    assert_eq!(
        fixes,
        [
            "drop the dependency of gt-a on gt-b in the tracker of rig gastown",
            "drop the dependency of gt-a on gt-ghost in the tracker of rig gastown",
            "close gt-dec in the tracker of rig gastown when it is settled",
        ]
    );
}

#[test]
fn findings_come_by_category_and_then_by_bead() {
    let mut town = Town::new();
    town.rig("beta", "be");
    town.import(vec![
        new_bead("gt-a", &["gt-z", "gt-y"]),
        new_bead("gt-b", &["gt-ghost"]),
        new_bead("gt-y", &[]),
        of_kind("decision", new_bead("gt-z", &[])),
        new_bead("be-a", &[]),
        new_bead("xx-a", &[]),
    ]);
    let plan = tasks(&town, &["be-a", "gt-b", "gt-a", "xx-a"]);
    assert_eq!(categories(&plan.errors), [Category::NoRig, Category::MissingBead]);
    assert_eq!(categories(&plan.warnings), [Category::CrossRig, Category::Gated, Category::OutsideBlocker]);
    let json = serde_json::to_value(&plan).expect("a plan can be written");
    assert_eq!(json["warnings"][2]["category"], "outside-blocker");
    assert_eq!(serde_json::from_value::<StagePlan>(json).expect("and read"), plan);
}
