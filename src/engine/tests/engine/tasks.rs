//! Tasks of the HTTP API: admission, deadlines, cancellation, results, webhooks, and the defects of the queue they come
//! from, none of which is to be found here.

use serde_json::json;
use yard_engine::command::{NewTask, TaskReceipt};
use yard_engine::dispatch::{Category, StopReason};
use yard_engine::task::{IdempotencyKey, Task, TaskState};
use yard_engine::{Answer, BeadId, Command, Millis, Timestamp, WebhookFailure};

use crate::town::{Town, bead_id, exit};

const QUEUED: TaskState = TaskState::Queued;
const REJECTED: TaskState = TaskState::Rejected;

pub(crate) fn task_of(agent: &str) -> NewTask {
    let tab = Some("tab-1".to_owned());
    NewTask { agent: agent.to_owned(), action: "click".to_owned(), tab, ..NewTask::default() }
}

pub(crate) fn submit(town: &mut Town, tasks: Vec<NewTask>) -> Vec<TaskReceipt> {
    match town.does(&Command::TaskSubmit { tasks }) {
        Answer::Tasks { receipts } => receipts,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn submit_one(town: &mut Town, task: NewTask) -> String {
    submit(town, vec![task])[0].id.as_ref().expect("it was taken in").to_string()
}

pub(crate) fn state_of(town: &Town, id: &str) -> TaskState {
    town.state.task_state(task(town, id))
}

fn task<'a>(town: &'a Town, id: &str) -> &'a Task {
    town.state.task(&bead_id(id)).expect("the task is remembered")
}

fn error_of<'a>(town: &'a Town, id: &str) -> &'a str {
    task(town, id).ended.as_ref().and_then(|end| end.error.as_deref()).unwrap_or_default()
}

/// Starts what has room, as the daemon does: running is recorded before the action is sent.
pub(crate) fn start(town: &mut Town) -> Vec<String> {
    let started = town.pass().started;
    for id in &started {
        town.runs(id);
    }
    started
}

fn answers(town: &mut Town, id: &str) {
    let dispatch = town.live(id);
    town.act(|tx| {
        tx.task_answered(&dispatch, json!({"ok": true}));
        tx.worker_ended(&dispatch, &exit(0, Category::Crash));
        tx.tick();
    });
}

fn fails(town: &mut Town, id: &str) {
    let dispatch = town.live(id);
    town.act(|tx| {
        tx.worker_ended(&dispatch, &exit(1, Category::Crash));
        tx.tick();
    });
}

fn cancel(town: &mut Town, id: &str) {
    town.does(&Command::TaskCancel { id: id.to_owned(), agent: None });
}

#[test]
fn a_task_goes_from_queued_to_done_with_its_result() {
    let mut town = Town::new();
    let id = submit_one(&mut town, task_of("a"));
    assert_eq!(state_of(&town, &id), TaskState::Queued);
    town.pass();
    assert_eq!(state_of(&town, &id), TaskState::Assigned);
    town.runs(&id);
    assert_eq!(state_of(&town, &id), TaskState::Running);
    answers(&mut town, &id);
    assert_eq!(state_of(&town, &id), TaskState::Done);
    assert_eq!(task(&town, &id).result, Some(json!({"ok": true})));
}

#[test]
fn a_task_that_fails_is_not_tried_again_unless_its_client_says_so() {
    let mut town = Town::new();
    let once = submit_one(&mut town, task_of("a"));
    let twice = submit_one(&mut town, NewTask { max_attempts: 2, ..task_of("b") });
    start(&mut town);
    fails(&mut town, &once);
    fails(&mut town, &twice);
    assert_eq!((state_of(&town, &once), state_of(&town, &twice)), (TaskState::Failed, TaskState::Queued));
    town.advance(Millis::seconds(59));
    assert!(start(&mut town).is_empty(), "the second attempt waits as the retry policy says");
    // By default the whole task has a minute.
    town.advance(Millis::seconds(1));
    assert_eq!(error_of(&town, &twice), "deadline exceeded while queued");
}

#[test]
fn only_an_action_has_a_deadline_when_nothing_is_said() {
    let mut town = Town::new();
    let action = submit_one(&mut town, task_of("a"));
    let formula = "work".parse().ok();
    let by_formula = submit_one(&mut town, NewTask { formula, ..task_of("a") });
    assert_eq!(task(&town, &action).deadline, Some(town.in_time(Millis::seconds(60))));
    assert_eq!(task(&town, &by_formula).deadline, None);
    let far = Some(town.in_time(Millis::minutes(60 * 24 * 365)));
    let patient = submit_one(&mut town, NewTask { deadline: far, ..task_of("a") });
    start(&mut town);
    town.advance(Millis::minutes(60 * 24 * 300));
    assert_eq!(
        state_of(&town, &patient),
        TaskState::Running,
        "any length of deadline, also beyond the hard cap"
    );
    let told_about = |id: &str| town.state.alerts().any(|alert| alert.message.contains(id));
    assert!(!told_about(&patient), "an action writes nothing, so its silence says nothing");
}

#[test]
fn a_deadline_ends_what_waits_and_what_runs_and_says_which() {
    let mut town = Town::new();
    town.configure(|settings| settings.http.max_inflight = 1);
    let runs = submit_one(&mut town, task_of("a"));
    let waits = submit_one(&mut town, task_of("a"));
    start(&mut town);
    town.advance(Millis::seconds(60));
    assert_eq!(error_of(&town, &runs), "deadline exceeded while running");
    assert_eq!(error_of(&town, &waits), "deadline exceeded while queued");
    assert_eq!(town.state.task_counts().expired, 1);
    assert_eq!(town.state.live_count(), 0, "the slot is free");
}

// D7: nothing is started past its deadline, and what expired says so.
#[test]
fn nothing_starts_after_its_deadline() {
    let mut town = Town::new();
    town.pause();
    let id = submit_one(&mut town, task_of("a"));
    town.resume();
    town.now = town.in_time(Millis::seconds(61));
    assert!(town.pass().started.is_empty());
    assert_eq!(
        (state_of(&town, &id), error_of(&town, &id)),
        (TaskState::Failed, "deadline exceeded while queued")
    );
}

#[test]
fn queues_that_are_full_turn_tasks_away_and_keep_that_as_a_result() {
    let mut town = Town::new();
    town.configure(|settings| (settings.http.max_queue, settings.http.max_per_agent) = (3, 2));
    let receipts =
        submit(&mut town, vec![task_of("a"), task_of("a"), task_of("a"), task_of("b"), task_of("c")]);
    let states: Vec<TaskState> = receipts.iter().map(|receipt| receipt.state).collect();
    assert_eq!(states, [QUEUED, QUEUED, REJECTED, QUEUED, REJECTED]);
    let words = |nth: usize| receipts[nth].refusal.as_ref().expect("refused").message.clone();
    assert_eq!(words(2), "rejected: agent queue full for \"a\" (2/2)");
    assert_eq!(words(4), "rejected: global queue full (3/3)");
    let rejected = task(&town, receipts[2].id.as_ref().expect("kept").as_str());
    assert_eq!(rejected.ended.as_ref().map(|end| end.state), Some(REJECTED));
    assert_eq!(town.state.task_counts().rejected, 2);
}

// D1: whoever is cancelled or expires while it waits held no slot, and frees none.
#[test]
fn cancelling_what_waits_lets_nobody_exceed_the_limits() {
    let mut town = Town::new();
    town.configure(|settings| settings.http.max_per_agent_inflight = 1);
    let running = submit_one(&mut town, task_of("a"));
    start(&mut town);
    for _ in 0..5 {
        let waits = submit_one(&mut town, task_of("a"));
        cancel(&mut town, &waits);
        assert_eq!(state_of(&town, &waits), TaskState::Cancelled);
    }
    let far = Some(town.in_time(Millis::minutes(600)));
    for deadline in [town.in_time(Millis::seconds(1)), town.in_time(Millis::seconds(2))] {
        submit_one(&mut town, NewTask { deadline: Some(deadline), ..task_of("a") });
    }
    town.advance(Millis::seconds(5));
    assert_eq!(town.state.task_counts().expired, 2);
    submit_one(&mut town, NewTask { deadline: far, ..task_of("a") });
    assert!(start(&mut town).is_empty(), "{running} still runs");
}

// D2: one terminal event, one count, the right words.
#[test]
fn cancelling_what_runs_ends_it_once() {
    let mut town = Town::new();
    let id =
        submit_one(&mut town, NewTask { callback: Some("http://x.example/".to_owned()), ..task_of("a") });
    start(&mut town);
    let dispatch = town.live(&id);
    let before = town.log.len();
    cancel(&mut town, &id);
    assert_eq!((state_of(&town, &id), error_of(&town, &id)), (TaskState::Cancelled, ""));
    // Whoever forwarded it reports all the same.
    town.act(|tx| {
        tx.worker_ended(&dispatch, &exit(1, Category::Crash));
        tx.tick();
    });
    let ended = town.kinds_since(before).into_iter().filter(|kind| *kind == "task.ended").count();
    let counts = town.state.task_counts();
    assert_eq!((ended, counts.cancelled, counts.failed), (1, 1, 0));
    assert_eq!(town.state.due_webhooks(town.now).count(), 1);
    let again = town.refuses(&Command::TaskCancel { id, agent: None });
    assert_eq!((again.code.as_str(), again.message.as_str()), ("conflict", "task is already cancelled"));
    assert_eq!(town.state.live_count(), 0);
}

#[test]
fn a_task_can_be_called_off_by_its_own_agent_only() {
    let mut town = Town::new();
    let id = submit_one(&mut town, task_of("a"));
    let foreign = Command::TaskCancel { id: id.clone(), agent: Some("b".to_owned()) };
    assert_eq!(town.refuses(&foreign).code, "agent_forbidden");
    town.does(&Command::TaskCancel { id, agent: Some("a".to_owned()) });
    for unknown in ["tsk_nothing", "../etc/passwd", ""] {
        let refusal = town.refuses(&Command::TaskCancel { id: unknown.to_owned(), agent: None });
        assert_eq!(refusal.code, "not_found");
    }
}

#[test]
fn the_same_request_under_the_same_key_is_taken_in_once() {
    let mut town = Town::new();
    let key =
        |fingerprint: &str| Some(IdempotencyKey { key: "k".to_owned(), fingerprint: fingerprint.to_owned() });
    let first = submit_one(&mut town, NewTask { key: key("1"), ..task_of("a") });
    let again = submit(&mut town, vec![NewTask { key: key("1"), ..task_of("a") }]);
    assert_eq!(again[0].id.as_ref().map(BeadId::as_str), Some(first.as_str()));
    assert!(again[0].replayed);
    let other = submit(&mut town, vec![NewTask { key: key("2"), ..task_of("a") }]);
    assert_eq!(other[0].refusal.as_ref().map(|refusal| refusal.code.as_str()), Some("idempotency_conflict"));
    assert_eq!(town.state.tasks().count(), 1);
}

#[test]
fn a_rejected_request_may_be_made_again_under_its_key() {
    let mut town = Town::new();
    town.configure(|settings| settings.http.max_queue = 1);
    let key = Some(IdempotencyKey { key: "k".to_owned(), fingerprint: "1".to_owned() });
    let first = submit_one(&mut town, task_of("a"));
    let turned_away = submit(&mut town, vec![NewTask { key: key.clone(), ..task_of("a") }]);
    assert_eq!(turned_away[0].state, TaskState::Rejected);
    cancel(&mut town, &first);
    let taken_in = submit(&mut town, vec![NewTask { key, ..task_of("a") }]);
    assert_eq!((taken_in[0].state, taken_in[0].replayed), (TaskState::Queued, false));
}

#[test]
fn a_task_waits_for_those_it_names() {
    let mut town = Town::new();
    let first = submit_one(&mut town, task_of("a"));
    let second = submit_one(&mut town, NewTask { after: vec![first.clone()], ..task_of("b") });
    let unknown = submit(&mut town, vec![NewTask { after: vec!["tsk_x".to_owned()], ..task_of("b") }]);
    assert_eq!(unknown[0].refusal.as_ref().map(|refusal| refusal.code.as_str()), Some("unknown-bead"));
    assert_eq!(town.state.task_position(&bead_id(&second)), None, "it waits for more than room");
    assert_eq!(start(&mut town), [first.as_str()]);
    answers(&mut town, &first);
    assert_eq!(start(&mut town), [second.as_str()]);
}

// A crash of the daemon: what was not sent yet is sent, what was sent is not sent again.
#[test]
fn an_action_under_way_in_a_crash_fails_and_one_not_sent_yet_waits_again() {
    let mut town = Town::new();
    let sent = submit_one(&mut town, NewTask { max_attempts: 9, ..task_of("a") });
    let not_sent = submit_one(&mut town, task_of("b"));
    town.pass();
    town.runs(&sent);
    let (sent_as, not_sent_as) = (town.live(&sent), town.live(&not_sent));
    town.act(|tx| {
        tx.action_lost(&sent_as);
        tx.action_lost(&not_sent_as);
        tx.tick();
    });
    assert_eq!(state_of(&town, &sent), TaskState::Failed);
    assert!(error_of(&town, &sent).starts_with("outcome unknown"), "{}", error_of(&town, &sent));
    assert_eq!(state_of(&town, &not_sent), TaskState::Queued);
    assert_eq!(town.pass().started, [not_sent.as_str()]);
}

// D3: a shutdown runs nothing of what waits, and what was sent is not sent again.
#[test]
fn a_shutdown_leaves_what_waits_for_later() {
    let mut town = Town::new();
    town.configure(|settings| settings.http.max_inflight = 1);
    let sent = submit_one(&mut town, task_of("a"));
    let waits = submit_one(&mut town, task_of("b"));
    start(&mut town);
    let dispatch = town.live(&sent);
    town.act(|tx| {
        tx.terminate(&dispatch, StopReason::GracefulShutdown, false, "daemon");
        tx.tick();
    });
    assert!(error_of(&town, &sent).starts_with("outcome unknown"), "{}", error_of(&town, &sent));
    assert_eq!(state_of(&town, &waits), TaskState::Queued);
}

#[test]
fn results_are_kept_for_their_time_and_then_forgotten_altogether() {
    let mut town = Town::new();
    town.configure(|settings| settings.results_ttl = Millis::minutes(5));
    let done = submit_one(&mut town, task_of("a"));
    start(&mut town);
    answers(&mut town, &done);
    town.configure(|settings| settings.http.max_queue = 1);
    let far = Some(town.in_time(Millis::minutes(600)));
    let waits = submit_one(&mut town, NewTask { deadline: far, ..task_of("b") });
    let rejected = submit_one(&mut town, task_of("c"));
    town.pause();
    town.advance(Millis::minutes(4));
    assert_eq!(state_of(&town, &done), TaskState::Done);
    town.advance(Millis::minutes(2));
    assert_eq!(town.state.tasks().map(|task| task.id.to_string()).collect::<Vec<_>>(), [waits.as_str()]);
    for gone in [&done, &rejected] {
        assert!(town.state.bead(&bead_id(gone)).is_none() && town.dispatches(gone).is_empty());
    }
    assert_eq!(town.state.contexts().count(), 1);
    assert_eq!(town.state.task_counts().agents.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(town.state.task_counts().completed, 1, "what was counted stays counted");
}

#[test]
fn a_task_that_others_wait_for_is_kept_longer() {
    let mut town = Town::new();
    town.configure(|settings| (settings.results_ttl, settings.http.max_inflight) = (Millis::minutes(5), 1));
    let first = submit_one(&mut town, task_of("a"));
    let far = Some(town.in_time(Millis::minutes(600)));
    let after = vec![first.clone()];
    let second = submit_one(&mut town, NewTask { after, deadline: far, ..task_of("b") });
    start(&mut town);
    answers(&mut town, &first);
    town.advance(Millis::minutes(6));
    assert!(town.state.task(&bead_id(&first)).is_some());
    cancel(&mut town, &second);
    town.advance(Millis::minutes(6));
    town.advance(Millis::minutes(6));
    assert_eq!(town.state.tasks().count(), 0);
}

#[test]
fn whoever_waits_for_a_task_that_was_not_done_fails_with_it() {
    let mut town = Town::new();
    let first = submit_one(&mut town, task_of("a"));
    let formula = "work".parse().ok();
    let second = submit_one(&mut town, NewTask { after: vec![first.clone()], formula, ..task_of("b") });
    let third = submit_one(&mut town, NewTask { after: vec![second.clone()], ..task_of("c") });
    cancel(&mut town, &first);
    assert_eq!(state_of(&town, &second), TaskState::Failed);
    assert_eq!(error_of(&town, &second), format!("{first}, which it waits for, is cancelled"));
    assert_eq!(error_of(&town, &third), format!("{second}, which it waits for, is failed"));
    let late = submit_one(&mut town, NewTask { after: vec![first.clone()], ..task_of("d") });
    town.advance(Millis(0));
    assert_eq!(state_of(&town, &late), TaskState::Failed);
}

#[test]
fn the_place_of_a_task_is_not_a_sling_priority() {
    let mut town = Town::new();
    let id = submit_one(&mut town, task_of("a"));
    assert_eq!(town.refuses(&Command::Priority { id, priority: 99 }).code, "task");
}

// D12, also with retries: what an earlier attempt took is no wait.
#[test]
fn the_wait_is_that_of_first_attempts() {
    let mut town = Town::new();
    let far = Some(town.in_time(Millis::minutes(600)));
    let id = submit_one(&mut town, NewTask { max_attempts: 2, deadline: far, ..task_of("a") });
    town.advance(Millis::seconds(3));
    start(&mut town);
    town.advance(Millis::minutes(5));
    fails(&mut town, &id);
    town.advance(Millis::minutes(2));
    start(&mut town);
    let counts = town.state.task_counts();
    assert_eq!((counts.dispatched, counts.first_attempts, counts.waited_ms), (2, 1, 3000));
}

#[test]
fn a_client_that_never_stops_trying_does_not_fill_the_memory() {
    let mut town = Town::new();
    town.configure(|settings| settings.http.max_queue = 1);
    submit_one(&mut town, task_of("a"));
    let params = serde_json::from_value(json!({"text": "x".repeat(1000)})).expect("an object");
    let callback = Some("https://x.example/".to_owned());
    let task = NewTask { params: Some(params), callback, ..task_of("a") };
    submit(&mut town, vec![task; 10_050]);
    assert_eq!(town.state.tasks().count(), 10_001, "also while nobody could be told");
    assert_eq!(town.state.task_counts().rejected, 10_050);
    assert!(town.state.tasks().skip(1).all(|task| task.params.is_none()), "without what makes them large");
}

// Webhooks.

fn failure(hopeless: bool) -> WebhookFailure {
    WebhookFailure { error: "500".to_owned(), hopeless }
}

fn told(id: &str, town: &mut Town, failure: Option<WebhookFailure>) {
    let id = bead_id(id);
    town.act(|tx| tx.webhook_tried(&id, failure));
}

fn next_try(town: &Town) -> Option<Timestamp> {
    town.state.webhook_times().next().map(|(at, _)| at)
}

#[test]
fn every_end_is_told_also_of_a_task_that_was_turned_away() {
    let mut town = Town::new();
    town.configure(|settings| settings.http.max_queue = 1);
    let callback = Some("https://x.example/hook".to_owned());
    let waits = submit_one(&mut town, NewTask { callback: callback.clone(), ..task_of("a") });
    let rejected = submit_one(&mut town, NewTask { callback, ..task_of("a") });
    let due: Vec<String> = town.state.due_webhooks(town.now).map(|task| task.id.to_string()).collect();
    assert_eq!(due, [rejected]);
    cancel(&mut town, &waits);
    assert_eq!(town.state.due_webhooks(town.now).count(), 2);
}

#[test]
fn a_webhook_that_fails_is_tried_again_later_and_later_and_then_given_up() {
    let mut town = Town::new();
    let callback = Some("https://x.example/hook".to_owned());
    let id = submit_one(&mut town, NewTask { callback, ..task_of("a") });
    assert_eq!(next_try(&town), None, "there is nothing to tell yet");
    cancel(&mut town, &id);
    assert_eq!(next_try(&town), Some(town.now));
    let mut waits = Vec::new();
    while let Some(at) = next_try(&town) {
        town.now = at;
        told(&id, &mut town, Some(failure(false)));
        waits.extend(next_try(&town).map(|next| next.since(at).as_secs()));
    }
    assert_eq!(waits, [5, 30, 120, 600, 1800, 7200, 18_000, 36_000]);
    let webhook = task(&town, &id).webhook.clone().expect("it had one");
    assert_eq!((webhook.attempts, webhook.delivered), (9, false));
    assert_eq!(town.state.task_counts().webhooks_abandoned, 1);
}

#[test]
fn a_webhook_that_arrived_or_never_will_is_not_tried_again() {
    let mut town = Town::new();
    for failure in [None, Some(failure(true))] {
        let callback = Some("https://x.example/hook".to_owned());
        let id = submit_one(&mut town, NewTask { callback, ..task_of("a") });
        cancel(&mut town, &id);
        told(&id, &mut town, failure.clone());
        assert_eq!(next_try(&town), None);
        assert_eq!(task(&town, &id).webhook.as_ref().map(|it| it.delivered), Some(failure.is_none()));
    }
}

// What people do to tasks with the other commands.

#[test]
fn a_task_that_is_over_stays_over() {
    let mut town = Town::new();
    let failed = submit_one(&mut town, task_of("a"));
    let done = submit_one(&mut town, task_of("a"));
    start(&mut town);
    fails(&mut town, &failed);
    answers(&mut town, &done);
    assert_eq!(town.refuses(&Command::Retry { bead: failed.clone() }).code, "task-ended");
    assert_eq!(town.refuses(&Command::BeadReopen { id: done }).code, "task-ended");
    let slung = town.sling_with(&failed, |request| (request.force, request.rig) = (true, None));
    assert_eq!(slung.code.as_deref(), Some("task-ended"));
    let cancelled = submit_one(&mut town, task_of("a"));
    town.does(&Command::Cancel { id: cancelled.clone(), at_once: false });
    town.advance(Millis(0));
    assert_eq!(state_of(&town, &cancelled), TaskState::Cancelled);
    town.does(&Command::Undo);
    assert_eq!(state_of(&town, &cancelled), TaskState::Cancelled);
}

#[test]
fn a_task_has_a_rig_although_its_id_names_none() {
    let mut town = Town::new();
    let waits = submit_one(&mut town, task_of("a"));
    let slung = town.sling_with(&waits, |request| request.rig = None);
    assert_eq!(slung.action, yard_engine::command::SlingAction::AlreadyScheduled);
    start(&mut town);
    fails(&mut town, &waits);
    assert!(!town.why(&waits).contains("no rig"), "{}", town.why(&waits));
}

#[test]
fn what_a_task_comes_to_is_no_alert_and_no_problem_of_the_operator() {
    let mut town = Town::new();
    let id = submit_one(&mut town, task_of("a"));
    start(&mut town);
    fails(&mut town, &id);
    assert!(town.state.alerts().next().is_none() && town.state.settled().next().is_none());
}

#[test]
fn actions_need_no_worker_and_workers_no_action() {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.start();
    let action = submit_one(&mut town, task_of("a"));
    let formula = "work".parse().ok();
    let by_formula = submit_one(&mut town, NewTask { formula, ..task_of("a") });
    assert_eq!(start(&mut town), [action.as_str()], "the only worker is busy");
    town.exits_ok("gt-a");
    assert_eq!(start(&mut town), [by_formula.as_str()]);
}
