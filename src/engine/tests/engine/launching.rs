//! Staging and launching: a staged convoy does nothing, a launch is validated as a whole, and what may start is decided
//! by readiness alone.

use yard_engine::bead::{BeadStatus, DepKind};
use yard_engine::command::SlingAction;
use yard_engine::readiness::ReasonCode;
use yard_engine::rig::RigSwitch;
use yard_engine::settings::Merge;
use yard_engine::stage::Category;
use yard_engine::{Command, FormulaName, Standing};

use crate::town::{Town, actions, new_bead, rig_name, sling_of, why_not};
use crate::words::{add_of, close_of, launch_of, stage_of, watch_of};

/// gt-a, then gt-b and gt-c, then gt-d.
fn diamond(slots: i64) -> Town {
    let mut town = Town::deferred(slots);
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    town.bead_needing("gt-c", &["gt-a"]);
    town.bead_needing("gt-d", &["gt-b", "gt-c"]);
    town
}

const DIAMOND: [&str; 4] = ["gt-a", "gt-b", "gt-c", "gt-d"];

// Staging.

#[test]
fn a_staged_convoy_is_inert() {
    let mut town = diamond(5);
    let convoy = town.staged(&DIAMOND);
    assert_eq!(town.convoy_record(&convoy).status(), "staged:ready");
    assert_eq!((town.pass().started, town.state.open_context_count()), (Vec::new(), 0));
    assert_eq!((town.standing("gt-a"), town.codes("gt-a")), (Standing::Staged, vec![ReasonCode::Staged]));
    assert!(town.why("gt-a").contains(&format!("ym convoy launch {convoy}")), "{}", town.why("gt-a"));
    assert_eq!(town.refuses(&Command::Sling(Box::new(sling_of(&[&convoy])))).code, "staged");
    assert_eq!(town.recover(false), [], "recovery does not wake it");
    town.scan();
    town.restart();
    assert_eq!((town.pass().started, town.stranded()), (Vec::new(), Vec::new()));
    for bead in DIAMOND {
        town.close(bead);
    }
    assert_eq!(town.convoy_record(&convoy).status(), "staged:ready", "it was never under way");
}

#[test]
fn a_bead_of_a_staged_convoy_can_still_be_asked_for() {
    let mut town = diamond(5);
    town.staged(&DIAMOND);
    assert_eq!(town.sling_one("gt-a").action, SlingAction::Scheduled);
    assert_eq!((town.pass().started, town.standing("gt-b")), (vec!["gt-a".to_owned()], Standing::Staged));
}

#[test]
fn waves_are_kept_for_display() {
    let mut town = diamond(5);
    let convoy = town.staged(&["gt-d", "gt-c", "gt-b", "gt-a"]);
    let numbers: Vec<u32> = town.convoy_record(&convoy).wave_numbers().into_values().collect();
    assert_eq!(numbers, [1, 2, 2, 3]);
    assert_eq!(town.tracked(&convoy), DIAMOND);
}

#[test]
fn errors_make_nothing() {
    let mut town = Town::deferred(5);
    town.import(vec![new_bead("gt-a", &["gt-b"]), new_bead("gt-b", &["gt-a"])]);
    let before = town.log.len();
    let staged = town.stage(&["gt-a", "gt-b"]);
    let found: Vec<Category> = staged.plan.errors.iter().map(|finding| finding.category).collect();
    assert_eq!((staged.convoy, found), (None, vec![Category::Cycle]));
    assert_eq!(town.stage(&["gt-a", "gt-nobody"]).convoy, None);
    assert_eq!((town.kinds_since(before), town.state.convoys().count()), (Vec::new(), 0));
}

#[test]
fn a_plan_with_warnings_is_staged_as_such() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b"]);
    let staged = town.stage(&["gt-a", "gt-b"]);
    assert_eq!(staged.plan.warnings[0].category, Category::Capacity);
    let convoy = staged.convoy.expect("warnings do not keep it from being staged");
    assert_eq!(town.convoy_record(&convoy).status(), "staged:warnings");
}

#[test]
fn what_can_be_staged_is_one_epic_one_convoy_or_tasks() {
    let mut town = diamond(5);
    town.epic("gt-epic");
    town.bead_with("gt-gate", |bead| bead.kind = "decision".to_owned());
    let convoy = town.staged(&["gt-a"]);
    let code = |town: &mut Town, targets: &[&str]| {
        let (stage, launch) = (town.refuses(&stage_of(targets)).code, town.refuses(&launch_of(targets)).code);
        assert_eq!(stage, launch, "{targets:?}");
        stage
    };
    assert_eq!(code(&mut town, &[]), "no-bead");
    assert_eq!(code(&mut town, &["gt-b", "gt-epic"]), "mixed-targets");
    assert_eq!(code(&mut town, &["gt-b", &convoy]), "mixed-targets");
    assert_eq!(code(&mut town, &["gt-gate"]), "not-dispatchable");
    assert_eq!(code(&mut town, &["gt-epic"]), "nothing-to-do");
    assert_eq!(code(&mut town, &["hq-cv-none"]), "unknown-convoy");
    town.close("gt-b");
    assert_eq!(code(&mut town, &["gt-b"]), "nothing-to-do");
}

#[test]
fn an_epic_is_staged_with_all_its_work_and_its_name() {
    let mut town = Town::deferred(5);
    town.epic("gt-epic");
    town.child("gt-a", "gt-epic");
    town.child("gt-b", "gt-epic");
    town.needs("gt-b", "gt-a", DepKind::Blocks);
    let convoy = town.staged(&["gt-epic"]);
    assert_eq!(town.tracked(&convoy), ["gt-a", "gt-b"]);
    assert_eq!(town.convoy_record(&convoy).title, "Convoy: work on gt-epic");
}

#[test]
fn staging_again_updates_in_place_and_keeps_what_people_said_about_it() {
    let mut town = diamond(5);
    let convoy = town.staged(&["gt-a", "gt-b"]);
    town.does(&watch_of(&convoy, "bob", true));
    town.does(&add_of(&convoy, &["gt-c"]));
    let before = town.convoy_record(&convoy).clone();
    let again = town.stage_with(&Command::ConvoyStage {
        targets: vec![convoy.clone()],
        title: Some("sharper".to_owned()),
        launch: false,
    });
    assert_eq!((again.convoy.as_deref(), again.restaged), (Some(convoy.as_str()), true));
    let after = town.convoy_record(&convoy);
    assert_eq!((after.title.as_str(), &after.watchers), ("sharper", &before.watchers));
    assert_eq!((after.owned, after.merge, after.created_at), (before.owned, before.merge, before.created_at));
    assert_eq!((town.tracked(&convoy), &after.waves), (vec!["gt-a", "gt-b", "gt-c"], &vec![1, 2]));
    assert_eq!(town.state.convoys().count(), 1);
}

#[test]
fn staging_again_looks_at_the_graph_again() {
    let mut town = diamond(1);
    let convoy = town.stage(&["gt-a", "gt-b", "gt-c"]).convoy.expect("staged");
    assert_eq!(town.convoy_record(&convoy).status(), "staged:warnings");
    town.needs("gt-c", "gt-b", DepKind::Blocks);
    town.stage(&[&convoy]);
    assert_eq!(town.convoy_record(&convoy).status(), "staged:ready");
    assert_eq!(town.convoy_record(&convoy).waves, [1, 1, 1]);
    town.close("gt-a");
    town.stage(&[&convoy]);
    assert_eq!(town.convoy_record(&convoy).waves, [1, 1], "closed work takes no wave");
    assert_eq!(town.tracked(&convoy), ["gt-b", "gt-c", "gt-a"]);
}

#[test]
fn beads_of_one_staged_convoy_are_staged_there_again() {
    let mut town = diamond(5);
    let convoy = town.staged(&["gt-a", "gt-b"]);
    let again = town.stage(&["gt-a", "gt-b", "gt-c"]);
    assert_eq!((again.convoy.as_deref(), again.restaged), (Some(convoy.as_str()), true));
    assert_eq!(town.tracked(&convoy), ["gt-a", "gt-b", "gt-c"]);
}

#[test]
fn beads_of_several_staged_convoys_or_of_an_open_one_are_not_staged() {
    let mut town = diamond(5);
    town.beads(&["gt-x", "gt-y", "gt-z"]);
    town.staged(&["gt-x"]);
    let second = town.staged(&["gt-y"]);
    assert_eq!(town.refuses(&stage_of(&["gt-x", "gt-y"])).code, "ambiguous");
    assert_eq!(town.refuses(&launch_of(&["gt-x", "gt-y"])).code, "ambiguous");
    let open = town.convoy(&["gt-z"]);
    let refusal = town.refuses(&stage_of(&["gt-a", "gt-z"]));
    assert!(refusal.code == "tracked-elsewhere" && refusal.message.contains(&open), "{refusal}");
    assert_eq!(town.refuses(&launch_of(&["gt-a", "gt-z"])).code, "tracked-elsewhere");
    town.does(&close_of(&second, true));
    assert!(town.stage(&["gt-x", "gt-y"]).restaged, "closed ones do not count");
}

#[test]
fn an_open_or_closed_convoy_is_not_staged() {
    let mut town = diamond(5);
    let convoy = town.convoy(&["gt-a"]);
    assert_eq!(town.refuses(&stage_of(&[&convoy])).code, "not-staged");
    town.does(&close_of(&convoy, true));
    assert_eq!(town.refuses(&stage_of(&[&convoy])).code, "not-staged");
}

#[test]
fn a_title_must_be_one() {
    let mut town = diamond(5);
    let stage = |title: &str| Command::ConvoyStage {
        targets: vec!["gt-a".to_owned()],
        title: Some(title.to_owned()),
        launch: false,
    };
    assert_eq!(town.refuses(&stage("")).code, "bad-title");
    assert_eq!(town.state.convoys().count(), 0);
}

#[test]
fn stage_and_launch_in_one_go_when_nothing_speaks_against_it() {
    let stage = |targets: &[&str]| Command::ConvoyStage {
        targets: targets.iter().map(ToString::to_string).collect(),
        title: None,
        launch: true,
    };
    let mut town = diamond(5);
    let staged = town.stage_with(&stage(&DIAMOND));
    let convoy = staged.convoy.expect("staged");
    let wave1 = staged.launched.expect("launched");
    assert_eq!(
        (town.convoy_record(&convoy).status(), actions(&wave1)),
        ("open", vec![SlingAction::Scheduled])
    );
    assert_eq!(town.pass().started, ["gt-a"]);

    let mut town = diamond(1);
    let warned = town.stage_with(&stage(&DIAMOND));
    let convoy = warned.convoy.expect("staged");
    assert!(warned.launched.is_none());
    assert_eq!((town.convoy_record(&convoy).status(), town.pass().started), ("staged:warnings", Vec::new()));
}

// Launching.

#[test]
fn a_launch_queues_the_first_wave_and_the_rest_follows_as_it_becomes_ready() {
    let mut town = diamond(5);
    let convoy = town.staged(&DIAMOND);
    let (launched, wave1) = town.launch(&[&convoy]);
    assert_eq!(launched, convoy);
    assert_eq!(
        wave1.iter().map(|r| (r.id.as_str(), r.action)).collect::<Vec<_>>(),
        [("gt-a", SlingAction::Scheduled)]
    );
    assert_eq!(town.state.open_context_count(), 1, "later waves have no context yet");
    assert_eq!(town.start(), ["gt-a"]);
    town.exits_ok("gt-a");
    assert_eq!(town.start(), ["gt-b", "gt-c"]);
    town.exits_ok("gt-c");
    assert_eq!(town.start(), [""; 0]);
    town.exits_ok("gt-b");
    assert_eq!(town.start(), ["gt-d"]);
    town.exits_ok("gt-d");
    assert_eq!((town.convoy_record(&convoy).status(), town.count("context.opened")), ("closed", 4));
}

#[test]
fn waves_do_not_hold_back_what_is_ready() {
    let mut town = diamond(5);
    town.bead_needing("gt-e", &["gt-b"]);
    town.launch(&["gt-a", "gt-b", "gt-c", "gt-e"]);
    town.start();
    town.exits_ok("gt-a");
    town.start();
    town.exits_ok("gt-b");
    assert_eq!(town.start(), ["gt-e"], "gt-c of the wave before still runs");
}

#[test]
fn tasks_and_epics_are_launched_like_convoys() {
    let mut town = diamond(5);
    let (convoy, _) = town.launch(&DIAMOND);
    assert_eq!(
        (town.convoy_record(&convoy).status(), town.pass().started),
        ("open", vec!["gt-a".to_owned()])
    );

    let mut town = Town::deferred(5);
    town.epic("gt-epic");
    town.child("gt-a", "gt-epic");
    town.child("gt-b", "gt-epic");
    town.needs("gt-b", "gt-a", DepKind::Blocks);
    let (convoy, wave1) = town.launch(&["gt-epic"]);
    assert_eq!((town.tracked(&convoy), wave1.len()), (vec!["gt-a", "gt-b"], 1));
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_launch_plans_from_the_graph_as_it_is_now() {
    let mut town = diamond(5);
    let convoy = town.staged(&DIAMOND);
    town.close("gt-a");
    let (_, wave1) = town.launch(&[&convoy]);
    assert_eq!(wave1.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["gt-b", "gt-c"]);
    assert_eq!(
        (town.tracked(&convoy), &town.convoy_record(&convoy).waves),
        (vec!["gt-b", "gt-c", "gt-d", "gt-a"], &vec![2, 1])
    );
}

#[test]
fn a_launch_that_is_refused_leaves_no_trace() {
    // The town checks that no refusal writes anything; this makes sure that each is one.
    let mut town = diamond(2);
    let convoy = town.staged(&DIAMOND);
    town.import(vec![new_bead("gt-a", &["gt-d"])]);
    let refusal = town.refuses(&launch_of(&[&convoy]));
    assert_eq!(refusal.code, "cycle");
    assert_eq!(town.convoy_record(&convoy).status(), "staged:ready");
    town.import(vec![new_bead("gt-a", &["gt-nobody"])]);
    assert_eq!(town.refuses(&launch_of(&[&convoy])).code, "missing-bead");
    town.import(vec![new_bead("gt-a", &[])]);
    town.switch("gastown", RigSwitch::Park);
    assert_eq!(town.refuses(&launch_of(&[&convoy])).code, "blocked-rig");
    town.switch("gastown", RigSwitch::Unpark);
    let formula = FormulaName::parse("mol-polecat-work").expect("a name");
    town.kitchen.spoiled.insert((rig_name("gastown"), formula), "it has no steps".to_owned());
    let refusal = town.refuses(&launch_of(&[&convoy]));
    assert!(refusal.code == "formula" && refusal.message.contains("it has no steps"), "{refusal}");
    town.kitchen.spoiled.clear();
    town.launch(&[&convoy]);
}

#[test]
fn warnings_are_overridden_by_force_and_errors_are_not() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b"]);
    assert_eq!(town.refuses(&launch_of(&["gt-a", "gt-b"])).code, "capacity");
    let (_, wave1) = town.launch_by_force(&["gt-a", "gt-b"]);
    assert_eq!(actions(&wave1), [SlingAction::Scheduled; 2]);
    assert_eq!(town.pass().started, ["gt-a"], "a cap is a cap");
    town.import(vec![new_bead("gt-x", &["gt-x2"]), new_bead("gt-x2", &["gt-x"])]);
    let launch = Command::ConvoyLaunch { targets: vec!["gt-x".to_owned(), "gt-x2".to_owned()], force: true };
    assert_eq!(town.refuses(&launch).code, "cycle");
}

#[test]
fn what_of_the_first_wave_cannot_start_now_says_why_and_follows_later() {
    let mut town = Town::deferred(5);
    town.rig("web", "w");
    town.beads(&["gt-a", "gt-b", "w-a"]);
    town.status("gt-b", BeadStatus::InProgress, Some("bob"));
    town.switch("web", RigSwitch::Park);
    let (_, wave1) = town.launch_by_force(&["gt-a", "gt-b", "w-a"]);
    assert_eq!(actions(&wave1), [SlingAction::Scheduled, SlingAction::Skipped, SlingAction::Refused]);
    assert_eq!(why_not(&wave1), ["claimed-elsewhere", "rig-parked"]);
    assert_eq!(town.start(), ["gt-a"]);
    town.switch("web", RigSwitch::Unpark);
    town.status("gt-b", BeadStatus::Open, Some(""));
    assert_eq!(town.start(), ["gt-b", "w-a"]);
}

#[test]
fn a_launch_finds_work_that_was_asked_for_already_and_does_not_ask_twice() {
    let mut town = diamond(5);
    let convoy = town.staged(&DIAMOND);
    town.sling_with("gt-a", |request| request.no_convoy = true);
    let (_, wave1) = town.launch(&[&convoy]);
    assert_eq!(actions(&wave1), [SlingAction::AlreadyScheduled]);
    town.start();
    town.exits_ok("gt-a");
    assert_eq!(town.start(), ["gt-b", "gt-c"]);
}

#[test]
fn a_convoy_is_launched_once() {
    let mut town = diamond(5);
    let (convoy, _) = town.launch(&DIAMOND);
    assert_eq!(town.refuses(&launch_of(&[&convoy])).code, "already-launched");
    assert_eq!(town.refuses(&launch_of(&DIAMOND)).code, "tracked-elsewhere");
    town.does(&close_of(&convoy, true));
    assert_eq!(town.refuses(&launch_of(&[&convoy])).code, "closed");
}

#[test]
fn a_launch_in_direct_mode_queues_without_a_daemon_and_nothing_runs_ahead_of_its_blockers() {
    let mut town = Town::new();
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    let (_, wave1) = town.launch(&["gt-a", "gt-b"]);
    assert_eq!(actions(&wave1), [SlingAction::Scheduled]);
    assert_eq!(town.running(), [""; 0]);
    assert_eq!(town.start(), ["gt-a"]);
    town.exits_ok("gt-a");
    assert_eq!(town.start(), ["gt-b"]);
}

#[test]
fn a_launched_convoy_keeps_its_containers_and_its_merge_strategy() {
    let mut town = diamond(5);
    town.epic("gt-epic");
    let convoy = town.convoy_with(|new| {
        (new.owned, new.merge) = (true, Some(Merge::Direct));
        new.beads = vec!["gt-a".to_owned(), "gt-epic".to_owned()];
    });
    let (_, wave1) = town.launch(&[&convoy]);
    assert_eq!((wave1.len(), town.tracked(&convoy)), (1, vec!["gt-a", "gt-epic"]));
    assert_eq!(town.context("gt-a").fields.merge, Some(Merge::Direct));
    town.start();
    town.exits_ok("gt-a");
    town.close("gt-epic");
    assert_eq!(town.convoy_record(&convoy).status(), "open", "it waits for its owner to land it");
}
