//! Asking for work: guards, sets, convoys, and the short way.

use yard_engine::bead::{BeadStatus, DepKind};
use yard_engine::command::{AddItem, SlingAction, SlingRequest};
use yard_engine::context::CloseReason;
use yard_engine::rig::RigSwitch;
use yard_engine::{Answer, Command, Millis, Standing};

use crate::town::{Town, actions, bead_id, item, sling_of, why_not};

#[test]
fn an_epic_stands_for_all_its_open_descendants() {
    let mut town = Town::deferred(5);
    town.epic("gt-epic");
    town.epic("gt-sub");
    town.needs("gt-sub", "gt-epic", DepKind::ParentChild);
    town.child("gt-a", "gt-epic");
    town.child("gt-deep", "gt-sub");
    town.child("gt-done", "gt-sub");
    town.close("gt-done");
    let results = town.sling(&["gt-epic"]);
    let ids: Vec<&str> = results.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids, ["gt-a", "gt-deep"]);
    let convoys: Vec<_> = town.state.convoys().map(|c| c.tracked.len()).collect();
    assert_eq!(convoys, [2], "one convoy for all of them");
}

#[test]
fn an_epic_without_open_children_is_refused() {
    let mut town = Town::deferred(5);
    town.epic("gt-epic");
    assert_eq!(town.refuses(&Command::Sling(Box::new(sling_of(&["gt-epic"])))).code, "empty-epic");
}

#[test]
fn a_set_goes_to_its_own_rigs_and_not_into_a_list() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    let convoy = town.convoy(&["gt-a"]);
    let with_rig = SlingRequest { rig: Some(crate::town::rig_name("gastown")), ..sling_of(&[&convoy]) };
    assert_eq!(town.refuses(&Command::Sling(Box::new(with_rig))).code, "no-explicit-rig");
    assert_eq!(town.refuses(&Command::Sling(Box::new(sling_of(&[&convoy, "gt-a"])))).code, "mixed-sling");
}

#[test]
fn unfit_members_of_a_set_are_left_out() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-closed", "gt-taken"]);
    let convoy = town.convoy(&["gt-a", "gt-closed", "gt-taken"]);
    town.close("gt-closed");
    town.status("gt-taken", BeadStatus::InProgress, Some("bob"));
    let results = town.sling(&[&convoy]);
    assert_eq!(actions(&results), [SlingAction::Scheduled, SlingAction::Skipped, SlingAction::Skipped]);
    assert_eq!(why_not(&results), ["closed", "claimed-elsewhere"]);
}

#[test]
fn one_auto_convoy_for_a_batch_and_none_for_beads_that_are_tracked() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    let old = town.convoy(&["gt-a"]);
    let results = town.sling(&["gt-a", "gt-b", "gt-c"]);
    assert_eq!(results[0].convoy_id.as_ref().map(ToString::to_string), Some(old));
    assert_eq!(results[1].convoy_id, results[2].convoy_id);
    assert_ne!(results[0].convoy_id, results[1].convoy_id);
    assert_eq!(town.state.convoys().count(), 2);
    assert_eq!(town.sling_with("gt-d", |r| r.no_convoy = true).convoy_id, None);
    assert_eq!(town.state.convoys().count(), 2);
}

#[test]
fn a_convoy_closes_with_its_last_bead_however_that_closes() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b"]);
    town.convoy(&["gt-a", "gt-b"]);
    // Somebody else has gt-b, so that the convoy does not run it.
    town.status("gt-b", BeadStatus::InProgress, Some("bob"));
    assert_eq!(town.start(), ["gt-a"]);
    town.exits_ok("gt-a");
    assert!(town.state.convoys().all(yard_engine::convoy::Convoy::is_open));
    let closed =
        yard_engine::command::NewBead { status: BeadStatus::Closed, ..crate::town::new_bead("gt-b", &[]) };
    town.import(vec![closed]);
    assert!(town.state.convoys().all(|c| !c.is_open()));
    // One made of closed beads is complete from the start.
    town.convoy(&["gt-a"]);
    assert!(town.state.convoys().all(|c| !c.is_open()));
}

#[test]
fn a_bead_somebody_has_is_refused_unless_forced() {
    for (status, who) in [
        (BeadStatus::InProgress, Some("bob")),
        (BeadStatus::Hooked, None),
        (BeadStatus::Pinned, None),
        (BeadStatus::Open, Some("bob")),
    ] {
        let mut town = Town::deferred(5);
        town.bead("gt-a");
        town.status("gt-a", status, who);
        assert_eq!(town.sling_one("gt-a").code.as_deref(), Some("claimed-elsewhere"));
        assert_eq!(town.sling_with("gt-a", |r| r.force = true).action, SlingAction::Scheduled);
        assert_eq!(town.pass().started, ["gt-a"]);
    }
}

#[test]
fn a_bead_in_progress_under_our_own_actor_counts_as_open() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.status("gt-a", BeadStatus::InProgress, Some("ym/gt-a@1"));
    assert_eq!(town.sling_one("gt-a").action, SlingAction::Scheduled);
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_deferred_bead_is_refused_unless_forced() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.status("gt-a", BeadStatus::Deferred, None);
    assert_eq!(town.sling_one("gt-a").code.as_deref(), Some("deferred"));
    assert_eq!(town.sling_with("gt-a", |r| r.force = true).action, SlingAction::Scheduled);
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_context_closes_at_once_when_its_bead_closes_or_is_taken() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    town.close("gt-a");
    town.status("gt-b", BeadStatus::InProgress, Some("bob"));
    town.import(vec![yard_engine::command::NewBead {
        assignee: Some("eve".to_owned()),
        ..crate::town::new_bead("gt-c", &[])
    }]);
    for bead in ["gt-a", "gt-b", "gt-c"] {
        assert_eq!(town.close_reason(bead), CloseReason::StaleWorkBead, "{bead}");
    }
    assert_eq!(town.state.open_context_count(), 0);
}

#[test]
fn what_is_no_work_for_a_worker_is_refused() {
    let mut town = Town::deferred(5);
    town.bead_with("gt-gate", |b| b.kind = "gate".to_owned());
    assert_eq!(town.sling_one("gt-gate").code.as_deref(), Some("not-dispatchable"));
    for kind in ["task", "bug", "feature", "chore", ""] {
        let id = format!("gt-x{kind}");
        town.bead_with(&id, |b| b.kind = kind.to_owned());
        assert_eq!(town.sling_one(&id).action, SlingAction::Scheduled, "{kind}");
    }
}

#[test]
fn a_dry_run_says_what_would_happen_and_leaves_no_trace() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    let before = town.log.len();
    let result = town.sling_with("gt-a", |r| r.dry_run = true);
    assert_eq!(result.action, SlingAction::Scheduled);
    assert_eq!(town.log.len(), before);
}

#[test]
fn what_a_sling_says_must_be_usable() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    let mut refused = |change: &dyn Fn(&mut SlingRequest)| {
        let mut request = sling_of(&["gt-a"]);
        change(&mut request);
        town.refuses(&Command::Sling(Box::new(request))).code
    };
    let var = |k: &str, v: &str| [(k.to_owned(), v.to_owned())].into();
    assert_eq!(refused(&|r| r.vars = var("a", "1\nb=2")), "bad-var");
    assert_eq!(refused(&|r| r.vars = var("a=b", "1")), "bad-var");
    assert_eq!(refused(&|r| r.args = Some("a\0b".to_owned())), "bad-text");
    assert_eq!(refused(&|r| r.base_branch = Some("--upload-pack=x".to_owned())), "bad-text");
    assert_eq!(refused(&|r| r.priority = Some(0)), "bad-priority");
    assert_eq!(refused(&|r| r.deadline = Some(yard_engine::Timestamp::from_millis(0))), "bad-time");
    assert_eq!(refused(&|r| r.rig = Some(crate::town::rig_name("nowhere"))), "unknown-rig");
}

#[test]
fn titles_are_taken_as_they_are() {
    let mut town = Town::deferred(5);
    let title = format!("\u{1b}[31m$(rm -rf /) 'quotes\" \n{}", "long".repeat(2500));
    town.bead_with("gt-a", |b| b.title.clone_from(&title));
    town.sling(&["gt-a"]);
    assert_eq!(town.state.bead(&bead_id("gt-a")).expect("known").bead.title, title);
}

// Add.

#[test]
fn added_commands_are_scheduled_at_once_in_either_mode() {
    for mode in [-1, 2] {
        let mut town = Town::deferred(mode);
        let results = town.add(vec![item(None, &[]), item(Some("gt-b"), &[])]).expect("accepted");
        assert_eq!(actions(&results), [SlingAction::Scheduled; 2]);
        let first = results[0].id.clone();
        town.add(vec![item(Some("gt-c"), &[&first])]).expect("accepted");
        assert_eq!(town.start().len(), 2);
        assert_eq!(town.standing("gt-c"), Standing::Blocked);
        town.exits_ok(&first);
        assert_eq!(town.start(), ["gt-c"]);
        let bead = &town.state.bead(&bead_id("gt-b")).expect("known").bead;
        assert_eq!(bead.argv.as_deref(), Some(&["/bin/true".to_owned()][..]));
    }
}

#[test]
fn items_may_wait_for_later_ones_but_not_in_a_circle() {
    let mut town = Town::deferred(5);
    town.add(vec![item(Some("gt-b"), &["gt-a"]), item(Some("gt-a"), &[])]).expect("accepted");
    assert_eq!(town.pass().started, ["gt-a"]);
    let circle = vec![item(Some("gt-x"), &["gt-y"]), item(Some("gt-y"), &["gt-x"])];
    let refusal = town.add(circle).expect_err("a circle");
    assert_eq!((refusal.code.as_str(), town.state.bead_count()), ("cycle", 2));
    assert!(refusal.message.ends_with("gt-x -> gt-y -> gt-x"), "{refusal}");
}

#[test]
fn an_item_may_not_close_a_circle_through_a_bead_that_waited_for_its_id() {
    let mut town = Town::deferred(5);
    town.import(vec![crate::town::new_bead("gt-old", &["gt-x"])]);
    let refusal = town.add(vec![item(Some("gt-x"), &["gt-y"]), item(Some("gt-y"), &["gt-old"])]);
    assert_eq!(refusal.expect_err("a circle").code, "cycle");
}

#[test]
fn adding_is_all_or_nothing() {
    let mut town = Town::deferred(5);
    town.rig("second", "sec");
    town.bead("gt-known");
    let good = || item(Some("gt-good"), &[]);
    let bad: [(AddItem, &str); 8] = [
        (item(Some("gt-known"), &[]), "exists"),
        (item(Some("gt-good"), &[]), "exists"),
        (item(Some("gt-x"), &["gt-nobody"]), "unknown-bead"),
        (item(Some("gt-x"), &["gt-x"]), "cycle"),
        (item(Some("zz-x"), &[]), "no-rig"),
        (AddItem { argv: vec![], ..item(Some("gt-x"), &[]) }, "bad-command"),
        (AddItem { priority: Some(101), ..item(Some("gt-x"), &[]) }, "bad-priority"),
        // Two rigs, none of them the town's own: nobody knows where a bead without an id belongs.
        (item(None, &[]), "no-rig"),
    ];
    for (bad, code) in bad {
        let refusal = town.add(vec![good(), bad]).expect_err("refused");
        assert_eq!(refusal.code, code);
        assert_eq!(town.state.bead_count(), 1, "{code}");
    }
    town.switch("second", RigSwitch::Park);
    let parked = town.add(vec![good(), item(Some("sec-1"), &[])]).expect_err("parked");
    assert_eq!(parked.code, "rig-parked");
}

#[test]
fn a_thousand_added_commands_all_get_ids_of_their_own() {
    let mut town = Town::deferred(1);
    let results = town.add((0..1000).map(|_| item(None, &[])).collect()).expect("accepted");
    let ids: std::collections::BTreeSet<&str> = results.iter().map(|r| r.id.as_str()).collect();
    assert_eq!((ids.len(), town.state.open_context_count()), (1000, 1000));
}

#[test]
fn an_import_makes_ids_of_its_own_too() {
    let mut town = Town::deferred(5);
    let nameless = yard_engine::command::NewBead { title: "x".to_owned(), ..Default::default() };
    let answer = town.does(&Command::BeadImport { beads: vec![nameless.clone(), nameless] });
    let Answer::Created { ids } = answer else { panic!("{answer:?}") };
    assert_ne!(ids[0], ids[1]);
    assert_eq!(town.state.bead_count(), 2);
}

#[test]
fn a_rig_with_work_is_not_removed() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    let remove = Command::RigRemove { name: crate::town::rig_name("gastown") };
    assert_eq!(town.refuses(&remove).code, "busy");
    town.start();
    assert_eq!(town.refuses(&remove).code, "busy");
    town.exits_ok("gt-a");
    town.does(&remove);
    town.advance(Millis(1));
    assert_eq!(town.state.rigs().count(), 0);
}
