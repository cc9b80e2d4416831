//! Seed 3, what a worker says: checkpoints, steps and how its work came out; and where the next attempt goes on.

use yard_engine::command::WorkerSays;
use yard_engine::dispatch::{Category, Outcome, StopReason};
use yard_engine::session::Session;
use yard_engine::{Answer, Command, Millis, Standing, WorkerExit};

use crate::town::{Town, exit, stopped};

fn one_running() -> Town {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling_with("gt-a", |r| r.priority = Some(10));
    town.start();
    town
}

fn says(town: &mut Town, dispatch: &str, says: WorkerSays) -> (bool, bool, Option<StopReason>) {
    match town.does(&Command::Worker { dispatch: dispatch.to_owned(), says }) {
        Answer::Heard { accepted, should_yield, reason, .. } => (accepted, should_yield, reason),
        other => panic!("{other:?}"),
    }
}

fn checkpoint(note: &str) -> WorkerSays {
    WorkerSays::Checkpoint { note: note.to_owned(), session: None }
}

fn step(town: &mut Town, step: &str) {
    let id = town.live("gt-a");
    town.act(|tx| tx.worker_step_done(&id, step));
}

#[test]
fn a_checkpoint_answers_whether_to_yield() {
    let mut town = one_running();
    assert_eq!(says(&mut town, "gt-a@1", checkpoint("half")), (true, false, None));
    town.advance(Millis::minutes(1));
    town.bead("gt-urgent");
    town.sling_with("gt-urgent", |r| r.priority = Some(90));
    town.pass();
    let asked = (true, true, Some(StopReason::CooperativePreemption));
    assert_eq!(says(&mut town, "gt-a@1", checkpoint("more")), asked);
    town.does(&Command::Clear { bead: Some("gt-urgent".to_owned()) });
    town.pass();
    assert_eq!(says(&mut town, "gt-a@1", checkpoint("still more")), (true, false, None), "taken back");
    let id = town.live("gt-a");
    town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
    let drained = (true, true, Some(StopReason::GracefulShutdown));
    assert_eq!(says(&mut town, "gt-a@1", checkpoint("the end")), drained);
}

#[test]
fn the_next_attempt_goes_on_after_the_last_finished_step_with_the_last_note() {
    let mut town = one_running();
    step(&mut town, "plan");
    says(
        &mut town,
        "gt-a@1",
        WorkerSays::Checkpoint { note: "n1".to_owned(), session: Some("s1".parse().expect("a session")) },
    );
    let id = town.live("gt-a");
    town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    let resume = town.context("gt-a").resume.clone();
    assert_eq!(resume.after.as_deref(), Some("plan"));
    assert_eq!((resume.note.as_deref(), resume.session), (Some("n1"), "s1".parse().ok()));
    town.start();
    assert_eq!(town.dispatches("gt-a")[1].step.as_deref(), Some("plan"), "what was done stays done");
    town.lost("gt-a");
    let resume = town.context("gt-a").resume.clone();
    assert_eq!(
        (resume.after.as_deref(), resume.note.as_deref()),
        (Some("plan"), Some("n1")),
        "also when nothing new came"
    );
}

#[test]
fn a_crash_begins_again_unless_the_formula_says_otherwise() {
    for (resumes, after) in [(false, None), (true, Some("plan"))] {
        let mut town = one_running();
        step(&mut town, "plan");
        let session: Option<Session> = "claude/s-1".parse().ok();
        let noted = WorkerSays::Checkpoint { note: "n1".to_owned(), session: session.clone() };
        says(&mut town, "gt-a@1", noted);
        let id = town.live("gt-a");
        town.act(|tx| tx.worker_ended(&id, &WorkerExit { resumes, ..exit(1, Category::Crash) }));
        let resume = &town.context("gt-a").resume;
        assert_eq!((resume.after.as_deref(), resume.note.as_deref()), (after, Some("n1")));
        assert_eq!(resume.session, session.filter(|_| resumes), "a session may be what failed");
    }
}

#[test]
fn an_unavailable_service_and_a_lost_worker_are_not_the_works_fault() {
    for ended in ["unavailable", "lost", "yielded"] {
        let mut town = one_running();
        step(&mut town, "plan");
        match ended {
            "unavailable" => town.exits("gt-a", 69, Category::Unavailable),
            "lost" => town.lost("gt-a"),
            _ => town.exits("gt-a", 75, Category::Yielded),
        }
        assert_eq!(town.context("gt-a").resume.after.as_deref(), Some("plan"), "{ended}");
    }
}

#[test]
fn what_a_worker_declares_counts_more_than_its_exit_code() {
    let mut town = one_running();
    says(&mut town, "gt-a@1", WorkerSays::Done { reason: Some("merged".to_owned()) });
    assert_eq!(town.standing("gt-a"), Standing::Running, "until it has ended");
    town.crashes("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Closed);

    let mut town = one_running();
    says(&mut town, "gt-a@1", WorkerSays::Fail { message: "the tests fail".to_owned(), unavailable: false });
    town.exits_ok("gt-a");
    assert!(
        matches!(town.last_outcome("gt-a"), Outcome::Failed { message, .. } if message == "the tests fail")
    );
    assert_eq!(town.context("gt-a").crashes, 1);

    let mut town = one_running();
    says(&mut town, "gt-a@1", WorkerSays::Fail { message: "rate limited".to_owned(), unavailable: true });
    town.crashes("gt-a");
    assert_eq!((town.context("gt-a").crashes, town.context("gt-a").unavailables), (0, 1));
}

#[test]
fn what_is_declared_done_stays_done_whatever_ends_its_worker() {
    for end in ["drained", "lost", "preempted"] {
        let mut town = one_running();
        says(&mut town, "gt-a@1", WorkerSays::Done { reason: None });
        let id = town.live("gt-a");
        match end {
            "drained" => {
                town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
                town.act(|tx| tx.worker_ended(&id, &stopped()));
            }
            "lost" => town.lost("gt-a"),
            _ => {
                town.act(|tx| tx.terminate(&id, StopReason::PreemptionTimeout, false, "scheduler"));
                town.act(|tx| tx.worker_ended(&id, &stopped()));
            }
        }
        assert_eq!(town.standing("gt-a"), Standing::Closed, "{end}");
    }
}

#[test]
fn called_off_is_called_off_whatever_the_worker_declared() {
    let declared = [
        WorkerSays::Fail { message: "no".to_owned(), unavailable: false },
        WorkerSays::Done { reason: None },
    ];
    for say in declared {
        let mut town = one_running();
        says(&mut town, "gt-a@1", say);
        town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
        let id = town.live("gt-a");
        town.act(|tx| tx.worker_ended(&id, &stopped()));
        assert_eq!(town.standing("gt-a"), Standing::Cancelled);
    }
}

#[test]
fn an_old_dispatch_is_not_listened_to_and_the_log_says_so() {
    let mut town = one_running();
    town.lost("gt-a");
    town.advance(Millis::minutes(1));
    town.start();
    let all = [
        checkpoint("late"),
        WorkerSays::Cost { usd: "5".parse().expect("an amount"), total: false, tokens: None },
        WorkerSays::Progress { text: "late".to_owned() },
        WorkerSays::Done { reason: None },
        WorkerSays::Fail { message: "late".to_owned(), unavailable: false },
    ];
    for say in all {
        let before = town.log.len();
        assert_eq!(says(&mut town, "gt-a@1", say), (false, true, None));
        assert_eq!(town.kinds_since(before), ["dispatch.late_report"]);
    }
    let fresh = town.dispatches("gt-a")[1];
    assert_eq!((&fresh.checkpoint, fresh.cost.is_zero(), &fresh.said), (&None, true, &None));
    assert!(town.work("gt-a").cost.is_zero());
    assert_eq!(town.standing("gt-a"), Standing::Running);
}

#[test]
fn nonsense_is_refused_without_a_trace() {
    let mut town = one_running();
    let worker = |dispatch: &str, says| Command::Worker { dispatch: dispatch.to_owned(), says };
    assert_eq!(town.refuses(&worker("gt-a@9", checkpoint("x"))).code, "unknown-dispatch");
    assert!(town.command(&worker("gt-a", checkpoint("x"))).is_err());
    assert_eq!(town.refuses(&worker("gt-a@1", checkpoint(&"x".repeat(70_000)))).code, "too-long");
    assert_eq!(town.refuses(&worker("gt-a@1", checkpoint("a\0b"))).code, "bad-text");
}
