//! What an operator does: pause, hold, priority, cancel, retry, and taking things back.

use yard_engine::context::CloseReason;
use yard_engine::readiness::ReasonCode;
use yard_engine::rig::RigSwitch;
use yard_engine::{Answer, Command, Millis, Standing};

use crate::town::Town;

fn two_queued() -> Town {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a", "gt-b"]);
    town
}

fn changed(answer: &Answer) -> bool {
    matches!(answer, Answer::Done { changed: true, .. })
}

fn hold(id: &str, held: bool) -> Command {
    Command::Hold { id: id.to_owned(), held }
}

#[test]
fn a_pause_with_an_end_ends_by_itself() {
    let mut town = two_queued();
    let until = town.in_time(Millis::minutes(120));
    town.does(&Command::Pause { reason: None, until: Some(until) });
    assert_eq!(town.state.next_due(), Some(until));
    assert_eq!(town.codes("gt-a"), [ReasonCode::Paused]);
    town.advance(Millis::minutes(119));
    assert!(town.pass().started.is_empty());
    town.advance(Millis::minutes(1));
    assert!(town.state.pause().is_none());
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_pass_ends_a_pause_that_is_over_also_without_a_tick() {
    let mut town = two_queued();
    let until = town.in_time(Millis(5));
    town.does(&Command::Pause { reason: None, until: Some(until) });
    town.now = until;
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn pausing_twice_changes_nothing_and_pausing_otherwise_does() {
    let mut town = Town::new();
    let pause = |why: &str| Command::Pause { reason: Some(why.to_owned()), until: None };
    assert!(changed(&town.does(&pause("lunch"))));
    assert!(!changed(&town.does(&pause("lunch"))));
    assert!(changed(&town.does(&pause("dinner"))));
    let past = Command::Pause { reason: None, until: Some(town.now) };
    assert_eq!(town.refuses(&past).code, "bad-time");
}

#[test]
fn held_work_waits_and_others_pass_it() {
    let mut town = two_queued();
    town.does(&hold("gt-a", true));
    assert_eq!(town.codes("gt-a"), [ReasonCode::Held]);
    assert!(!changed(&town.does(&hold("gt-a", true))));
    assert_eq!(town.start(), ["gt-b"]);
    assert_eq!(town.refuses(&hold("gt-b", true)).code, "running");
    town.exits_ok("gt-b");
    town.does(&hold("gt-a", false));
    assert_eq!(town.start(), ["gt-a"]);
    assert_eq!(town.refuses(&hold("gt-b", true)).code, "not-scheduled");
}

#[test]
fn a_higher_priority_goes_first() {
    let mut town = two_queued();
    town.does(&Command::Priority { id: "gt-b".to_owned(), priority: 51 });
    assert_eq!(town.pass().started, ["gt-b"]);
    let bad = Command::Priority { id: "gt-a".to_owned(), priority: 101 };
    assert_eq!(town.refuses(&bad).code, "bad-priority");
}

#[test]
fn bead_priorities_become_sling_priorities() {
    let mut town = Town::deferred(1);
    for (p, priority) in [(0, 90), (1, 70), (2, 50), (3, 30), (4, 10)] {
        let id = format!("gt-p{p}");
        town.bead_with(&id, |b| b.priority = Some(p));
        town.sling(&[&id]);
        assert_eq!(town.context(&id).priority, priority);
    }
}

#[test]
fn cancelled_waiting_work_is_off_the_schedule_and_can_be_brought_back() {
    let mut town = two_queued();
    let before = town.context("gt-a").clone();
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    assert_eq!(town.close_reason("gt-a"), CloseReason::Cancelled);
    assert_eq!(town.standing("gt-a"), Standing::Cancelled);
    town.does(&Command::Undo);
    let after = town.context("gt-a");
    assert_eq!((&after.fields, after.order, after.priority), (&before.fields, before.order, before.priority));
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_cleared_schedule_can_be_brought_back_without_what_changed_meanwhile() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    town.does(&Command::Clear { bead: None });
    town.close("gt-b");
    town.status("gt-c", yard_engine::bead::BeadStatus::InProgress, Some("bob"));
    town.does(&Command::Undo);
    assert!(town.is_scheduled("gt-a") && !town.is_scheduled("gt-b") && !town.is_scheduled("gt-c"));
}

#[test]
fn clear_leaves_running_work_alone() {
    let mut town = two_queued();
    town.pass();
    town.does(&Command::Clear { bead: None });
    assert!(town.is_scheduled("gt-a") && !town.is_scheduled("gt-b"));
    town.runs("gt-a");
    town.exits_ok("gt-a");
}

#[test]
fn undo_takes_back_one_command_after_the_other() {
    let mut town = two_queued();
    town.pause();
    town.does(&hold("gt-a", true));
    town.does(&Command::Priority { id: "gt-b".to_owned(), priority: 9 });
    town.switch("gastown", RigSwitch::Dock);
    for _ in 0..4 {
        assert!(changed(&town.does(&Command::Undo)));
    }
    assert!(town.state.pause().is_none());
    assert!(!town.context("gt-a").held);
    assert_eq!(town.context("gt-b").priority, 50);
    assert!(town.state.rigs().all(|r| !r.docked));
    assert_eq!(town.refuses(&Command::Undo).code, "nothing-to-undo");
}

#[test]
fn undo_works_when_the_list_of_things_to_take_back_is_full() {
    let mut town = two_queued();
    for n in 0..60 {
        town.does(&hold("gt-a", n % 2 == 0));
    }
    let mut undone = 0;
    while town.command(&Command::Undo).is_ok() {
        undone += 1;
        assert_eq!(town.context("gt-a").held, undone % 2 == 1, "after {undone}");
    }
    assert_eq!(undone, 50);
}

#[test]
fn what_can_no_longer_be_taken_back_is_said_and_forgotten() {
    let mut town = two_queued();
    town.does(&hold("gt-b", true));
    town.does(&Command::Priority { id: "gt-a".to_owned(), priority: 60 });
    town.start();
    let answer = town.does(&Command::Undo);
    assert!(!changed(&answer), "{answer:?}");
    assert!(changed(&town.does(&Command::Undo)));
    assert!(!town.context("gt-b").held);
}

#[test]
fn retry_gives_waiting_work_fresh_budgets_at_once() {
    let mut town = two_queued();
    town.start();
    town.crashes("gt-a");
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!((town.context("gt-a").crashes, town.context("gt-a").not_before), (0, None));
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn retry_refuses_what_has_not_failed_is_closed_or_taken() {
    let mut town = two_queued();
    let retry = |id: &str| Command::Retry { bead: id.to_owned() };
    town.does(&Command::Clear { bead: Some("gt-b".to_owned()) });
    assert_eq!(town.refuses(&retry("gt-b")).code, "nothing-to-retry");
    town.start();
    assert!(!changed(&town.does(&retry("gt-a"))));
    town.exits("gt-a", 1, yard_engine::dispatch::Category::HardCap);
    town.status("gt-a", yard_engine::bead::BeadStatus::InProgress, Some("bob"));
    assert_eq!(town.refuses(&retry("gt-a")).code, "claimed-elsewhere");
    town.close("gt-a");
    assert_eq!(town.refuses(&retry("gt-a")).code, "closed");
}

#[test]
fn unique_prefixes_contexts_and_dispatches_name_a_bead() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-alpha", "gt-beta", "gt-better"]);
    town.sling(&["gt-alpha", "gt-beta"]);
    town.pass();
    let context = town.context("gt-beta").id.to_string();
    let found = |text: &str| town.state.find_bead(text).map(|id| id.to_string()).map_err(|r| r.code);
    assert_eq!(found("gt-a").as_deref(), Ok("gt-alpha"));
    assert_eq!(found("gt-alpha@1").as_deref(), Ok("gt-alpha"));
    assert_eq!(found(&context).as_deref(), Ok("gt-beta"));
    assert_eq!(found("gt-bet"), Err("ambiguous".to_owned()));
    assert_eq!(found("gt-x"), Err("unknown-bead".to_owned()));
}
