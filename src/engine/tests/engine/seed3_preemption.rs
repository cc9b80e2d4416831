//! Seed 3, preemption: who pushes whom out, when, and how it ends. Times are exact.

use yard_engine::dispatch::{Category, Outcome, StopReason};
use yard_engine::event::Event;
use yard_engine::preempt::{Method, PreemptionEvent};
use yard_engine::readiness::ReasonCode;
use yard_engine::{AccountName, Command, Millis, Standing};

use crate::town::{Town, rig_name, stopped};

const MINUTE: Millis = Millis::minutes(1);

/// Something that happens to a town.
type Happens = fn(&mut Town);

fn queued(town: &mut Town, bead: &str, priority: u8) {
    town.bead(bead);
    town.sling_with(bead, |r| r.priority = Some(priority));
}

/// One slot, taken for two minutes by work of this priority.
fn busy_with(priority: u8) -> Town {
    let mut town = Town::deferred(1);
    queued(&mut town, "gt-low", priority);
    town.start();
    town.advance(Millis::minutes(2));
    town
}

fn victim(town: &Town) -> Option<&str> {
    town.state.preemption().map(|cycle| cycle.victim.bead().as_str())
}

/// How the last preemption came out.
fn method(town: &Town) -> Option<Method> {
    town.log.iter().rev().find_map(|recorded| match &recorded.event {
        Event::Preemption(PreemptionEvent::Ended { method, .. }) => Some(*method),
        _ => None,
    })
}

fn yields(town: &mut Town, bead: &str) {
    town.exits(bead, 75, Category::Yielded);
}

#[test]
fn the_difference_must_reach_the_threshold() {
    for (candidate, active, pushes) in [(70, 50, true), (70, 55, false), (69, 50, false), (100, 1, true)] {
        let mut town = busy_with(active);
        queued(&mut town, "gt-urgent", candidate);
        town.pass();
        assert_eq!(victim(&town).is_some(), pushes, "{candidate} over {active}");
    }
}

#[test]
fn a_threshold_that_nothing_reaches_switches_it_off() {
    for threshold in [100, u32::MAX] {
        let mut town = busy_with(1);
        town.configure(|s| s.preemption.threshold = threshold);
        queued(&mut town, "gt-urgent", 100);
        town.pass();
        assert_eq!(victim(&town), None, "{threshold}");
    }
}

#[test]
fn nobody_is_pushed_out_while_a_slot_is_free() {
    let mut town = Town::deferred(2);
    queued(&mut town, "gt-low", 1);
    town.start();
    town.advance(Millis::minutes(2));
    queued(&mut town, "gt-urgent", 100);
    assert_eq!(town.start(), ["gt-urgent"]);
    assert_eq!(victim(&town), None);
}

#[test]
fn a_batch_or_a_spawn_delay_is_no_lack_of_slots() {
    let mut town = Town::deferred(3);
    town.configure(|s| s.batch_size = 1);
    queued(&mut town, "gt-low", 1);
    town.start();
    town.advance(Millis::minutes(2));
    queued(&mut town, "gt-u1", 100);
    queued(&mut town, "gt-u2", 100);
    assert_eq!(town.start(), ["gt-u1"]);
    assert_eq!(victim(&town), None, "gt-u2 starts with the next pass");
}

#[test]
fn whoever_could_not_start_pushes_nobody_out() {
    let mut town = busy_with(10);
    let main = AccountName::parse("main").expect("a name");
    town.configure(|s| s.accounts.entry(main.clone()).or_default().cooldown = Some(Millis::minutes(9)));
    let later = town.in_time(MINUTE);
    town.bead("gt-later");
    town.sling_with("gt-later", |r| (r.priority, r.not_before) = (Some(100), Some(later)));
    queued(&mut town, "gt-held", 100);
    town.does(&Command::Hold { id: "gt-held".to_owned(), held: true });
    town.bead_needing("gt-blocked", &["gt-low"]);
    town.sling_with("gt-blocked", |r| r.priority = Some(100));
    town.pass();
    assert_eq!(victim(&town), None);
    town.pause();
    town.advance(MINUTE);
    town.pass();
    assert_eq!(victim(&town), None, "nothing starts while paused");
    town.resume();
    town.pass();
    assert_eq!(victim(&town), Some("gt-low"), "its time has come");
}

#[test]
fn the_least_urgent_goes_and_of_equals_the_last_started() {
    let mut town = Town::deferred(4);
    for (bead, priority) in [("gt-mid", 30), ("gt-old", 10), ("gt-new", 10)] {
        queued(&mut town, bead, priority);
        town.start();
        town.advance(MINUTE);
    }
    queued(&mut town, "gt-high", 95);
    town.start();
    town.advance(MINUTE);
    queued(&mut town, "gt-urgent", 90);
    town.pass();
    assert_eq!(victim(&town), Some("gt-new"));
}

#[test]
fn a_victim_frees_the_limit_that_keeps_the_candidate_back() {
    let mut town = Town::deferred(3);
    town.rig_with("web", "w", |r| r.max_polecats = Some(1));
    queued(&mut town, "gt-low", 1);
    town.bead("w-mid");
    town.sling_with("w-mid", |r| r.priority = Some(40));
    town.start();
    town.advance(Millis::minutes(2));
    town.bead("w-urgent");
    town.sling_with("w-urgent", |r| r.priority = Some(90));
    town.pass();
    assert_eq!(victim(&town), Some("w-mid"), "gt-low is less urgent, but rig web would stay full");
}

#[test]
fn a_limit_that_was_lowered_below_what_runs_is_not_freed_by_one() {
    let mut town = Town::deferred(2);
    queued(&mut town, "gt-a", 10);
    queued(&mut town, "gt-b", 10);
    town.start();
    town.advance(Millis::minutes(2));
    town.configure(|s| s.max_polecats = 1);
    queued(&mut town, "gt-urgent", 90);
    town.pass();
    assert_eq!(victim(&town), None);
}

#[test]
fn a_worker_on_its_way_out_is_slot_enough() {
    let mut town = Town::deferred(2);
    queued(&mut town, "gt-a", 10);
    queued(&mut town, "gt-b", 10);
    town.start();
    town.advance(Millis::minutes(2));
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    queued(&mut town, "gt-urgent", 90);
    town.pass();
    assert_eq!(victim(&town), None);
}

#[test]
fn a_young_worker_is_left_alone_for_its_minimum_run() {
    let mut town = Town::deferred(1);
    queued(&mut town, "gt-low", 10);
    town.start();
    queued(&mut town, "gt-urgent", 90);
    town.pass();
    assert_eq!(victim(&town), None);
    assert_eq!(town.state.next_preemption(), Some(town.in_time(MINUTE)), "the loop wakes up then");
    town.advance(Millis(59_999));
    town.pass();
    assert_eq!(victim(&town), None);
    town.advance(Millis(1));
    town.pass();
    assert_eq!(victim(&town), Some("gt-low"));
}

#[test]
fn asked_twice_then_ended_and_the_candidate_gets_the_slot() {
    let mut town = busy_with(10);
    queued(&mut town, "gt-urgent", 90);
    town.pass();
    let asked_at = town.now;
    assert_eq!(town.state.preemption().map(|c| (c.round, c.until)), Some((1, town.in_time(MINUTE))));
    town.advance(Millis(59_999));
    town.pass();
    assert_eq!(town.state.preemption().map(|c| c.round), Some(1));
    town.advance(Millis(1));
    town.pass();
    assert_eq!(town.state.preemption().map(|c| (c.round, c.until)), Some((2, town.in_time(MINUTE))));
    assert_eq!(town.dispatches("gt-low")[0].stop, None);
    town.advance(MINUTE);
    town.pass();
    assert_eq!(town.now.since(asked_at), Millis::minutes(2).duration());
    let id = town.live("gt-low");
    assert_eq!(town.dispatches("gt-low")[0].stop, Some(StopReason::PreemptionTimeout));
    assert_eq!(town.state.next_preemption(), None, "now its end is awaited");
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    assert_eq!(method(&town), Some(Method::Forced));
    assert_eq!(town.start(), ["gt-urgent"]);
    assert_eq!((town.standing("gt-low"), town.context("gt-low").crashes), (Standing::Queued, 0));
}

#[test]
fn a_worker_that_yields_at_a_checkpoint_was_preempted_cooperatively() {
    let mut town = busy_with(10);
    queued(&mut town, "gt-urgent", 90);
    town.pass();
    yields(&mut town, "gt-low");
    assert_eq!(town.last_outcome("gt-low"), Outcome::Stopped { reason: StopReason::CooperativePreemption });
    assert_eq!(method(&town), Some(Method::Cooperative));
    assert_eq!(town.start(), ["gt-urgent"], "although gt-low is ready as well");
    assert_eq!((town.context("gt-low").crashes, town.context("gt-low").not_before), (0, None));
}

#[test]
fn to_yield_unasked_is_no_preemption() {
    let mut town = busy_with(10);
    yields(&mut town, "gt-low");
    assert!(matches!(town.last_outcome("gt-low"), Outcome::Failed { category: Category::Yielded, .. }));
    assert_eq!(method(&town), None);
}

#[test]
fn a_victim_that_finishes_first_ends_the_cycle_quietly() {
    for ended in ["success", "crash", "lost", "cancelled"] {
        let mut town = busy_with(10);
        queued(&mut town, "gt-urgent", 90);
        town.pass();
        match ended {
            "success" => town.exits_ok("gt-low"),
            "crash" => town.crashes("gt-low"),
            "lost" => town.lost("gt-low"),
            _ => {
                town.does(&Command::Cancel { id: "gt-low".to_owned(), at_once: true });
                let id = town.live("gt-low");
                town.act(|tx| tx.worker_ended(&id, &stopped()));
            }
        }
        assert_eq!((victim(&town), method(&town)), (None, Some(Method::Finished)), "{ended}");
        assert_eq!(town.start(), ["gt-urgent"], "{ended}");
    }
}

#[test]
fn a_candidate_that_goes_away_ends_the_cycle_and_the_victim_works_on() {
    let cases: [(&str, Happens); 8] = [
        ("cancelled", |t| drop(t.does(&Command::Cancel { id: "gt-urgent".to_owned(), at_once: false }))),
        ("cleared", |t| drop(t.does(&Command::Clear { bead: Some("gt-urgent".to_owned()) }))),
        ("held", |t| drop(t.does(&Command::Hold { id: "gt-urgent".to_owned(), held: true }))),
        ("closed", |t| t.close("gt-urgent")),
        ("room", |t| t.configure(|s| s.max_polecats = 2)),
        ("paused", Town::pause),
        ("less urgent", |t| drop(t.does(&Command::Priority { id: "gt-urgent".to_owned(), priority: 20 }))),
        ("threshold", |t| t.configure(|s| s.preemption.threshold = 95)),
    ];
    for (why, happens) in cases {
        let mut town = busy_with(10);
        queued(&mut town, "gt-urgent", 90);
        town.pass();
        assert_eq!(victim(&town), Some("gt-low"));
        happens(&mut town);
        town.pass();
        assert_eq!((victim(&town), method(&town)), (None, Some(Method::Withdrawn)), "{why}");
        assert!(!town.dispatches("gt-low")[0].should_yield(), "{why}");
        town.advance(Millis::minutes(5));
        town.pass();
        let still_one = town.dispatches("gt-low").len() == 1;
        assert!(still_one && town.standing("gt-low") == Standing::Running || why == "paused", "{why}");
    }
}

#[test]
fn one_cycle_at_a_time() {
    let mut town = Town::deferred(2);
    queued(&mut town, "gt-a", 10);
    queued(&mut town, "gt-b", 10);
    town.start();
    town.advance(Millis::minutes(2));
    queued(&mut town, "gt-u1", 90);
    queued(&mut town, "gt-u2", 95);
    town.pass();
    assert_eq!(town.state.preemption().map(|c| c.bead.as_str()), Some("gt-u2"), "the more urgent first");
    let asked = town.state.live_dispatches().filter(|d| d.should_yield()).count();
    assert_eq!(asked, 1);
    let first = victim(&town).expect("one").to_owned();
    yields(&mut town, &first);
    assert_eq!(town.start(), ["gt-u2"]);
    assert_eq!(town.state.preemption().map(|c| c.bead.as_str()), Some("gt-u1"), "then the other");
}

#[test]
fn ageing_never_counts_for_preemption() {
    let mut town = Town::deferred(1);
    town.configure(|s| s.aging = Some(Millis(10)));
    queued(&mut town, "gt-a", 50);
    town.start();
    queued(&mut town, "gt-b", 50);
    town.advance(Millis::minutes(600));
    town.pass();
    assert_eq!(victim(&town), None);
}

// Nothing starves, nothing thrashes.

#[test]
fn each_preemption_in_vain_doubles_the_time_a_worker_is_left_alone() {
    let mut town = busy_with(10);
    for minutes in [2, 4, 8] {
        queued(&mut town, &format!("gt-u{minutes}"), 90);
        town.pass();
        yields(&mut town, "gt-low");
        let urgent = town.start();
        town.exits_ok(&urgent[0]);
        assert_eq!(town.start(), ["gt-low"]);
        queued(&mut town, &format!("gt-v{minutes}"), 90);
        town.pass();
        assert_eq!(town.state.next_preemption(), Some(town.in_time(Millis::minutes(minutes))));
        town.does(&Command::Clear { bead: Some(format!("gt-v{minutes}")) });
        town.advance(Millis::minutes(minutes));
    }
    let id = town.live("gt-low");
    town.act(|tx| tx.worker_step_done(&id, "plan"));
    queued(&mut town, "gt-last", 90);
    town.pass();
    yields(&mut town, "gt-low");
    assert_eq!(town.context("gt-low").pushed_out, 0, "a finished step is not lost");
}

#[test]
fn work_that_was_pushed_out_goes_ahead_of_everything_after_ten_minimum_runs() {
    let mut town = busy_with(10);
    queued(&mut town, "gt-u0", 90);
    town.pass();
    yields(&mut town, "gt-low");
    assert_eq!(town.start(), ["gt-u0"]);
    for n in 1..=10 {
        town.advance(MINUTE);
        queued(&mut town, &format!("gt-u{n}"), 90);
        town.exits_ok(&format!("gt-u{}", n - 1));
        let expected = if n < 10 { format!("gt-u{n}") } else { "gt-low".to_owned() };
        assert_eq!(town.start(), [expected], "after {n} minutes");
    }
}

// By hand.

fn preempt(id: &str, candidate: Option<&str>) -> Command {
    Command::Preempt { id: id.to_owned(), candidate: candidate.map(str::to_owned) }
}

#[test]
fn a_person_may_push_out_whom_he_likes_for_whom_he_likes() {
    let mut town = Town::deferred(1);
    queued(&mut town, "gt-high", 90);
    town.start();
    queued(&mut town, "gt-a", 50);
    queued(&mut town, "gt-b", 10);
    town.does(&preempt("gt-high", Some("gt-b")));
    assert_eq!(victim(&town), Some("gt-high"), "whatever the threshold and the minimum run say");
    yields(&mut town, "gt-high");
    assert_eq!(town.start(), ["gt-b"], "the slot is kept for it");
    assert_eq!(town.standing("gt-high"), Standing::Queued);
}

#[test]
fn without_a_name_the_most_urgent_that_fits_gets_the_slot() {
    let mut town = Town::deferred(1);
    queued(&mut town, "gt-high", 90);
    town.start();
    queued(&mut town, "gt-a", 20);
    queued(&mut town, "gt-b", 30);
    town.does(&preempt("gt-high", None));
    assert_eq!(town.state.preemption().map(|c| c.bead.as_str()), Some("gt-b"));
}

#[test]
fn a_person_is_told_why_it_would_be_of_no_use() {
    let mut town = Town::deferred(2);
    town.rig_with("web", "w", |r| r.max_polecats = Some(1));
    queued(&mut town, "gt-a", 50);
    town.bead("w-a");
    town.sling(&["w-a"]);
    town.start();
    assert_eq!(town.refuses(&preempt("gt-a", None)).code, "nothing-waits");
    town.bead("w-b");
    town.sling(&["w-b"]);
    town.bead("gt-idle");
    assert_eq!(town.refuses(&preempt("gt-a", Some("w-b"))).code, "no-use");
    assert_eq!(town.refuses(&preempt("gt-a", Some("gt-idle"))).code, "not-ready");
    assert_eq!(town.refuses(&preempt("gt-idle", None)).code, "not-running");
    town.configure(|s| s.max_polecats = 3);
    queued(&mut town, "gt-c", 50);
    assert_eq!(town.refuses(&preempt("gt-a", Some("gt-c"))).code, "has-room");
    town.configure(|s| s.max_polecats = 2);
    town.does(&preempt("gt-a", Some("gt-c")));
    assert_eq!(town.refuses(&preempt("w-a", Some("w-b"))).code, "preemption-under-way");
    town.does(&Command::Cancel { id: "w-a".to_owned(), at_once: false });
    yields(&mut town, "gt-a");
    town.start();
    assert_eq!(town.refuses(&preempt("w-a", Some("w-b"))).code, "stopping");
}

#[test]
fn a_cooling_account_rests_for_all_its_work_and_says_until_when() {
    let mut town = Town::deferred(3);
    let main = AccountName::parse("main").expect("a name");
    town.configure(|s| s.accounts.entry(main.clone()).or_default().cooldown = Some(Millis::minutes(5)));
    for bead in ["gt-a", "gt-b", "gt-free"] {
        town.bead(bead);
        let account = Some(main.clone()).filter(|_| bead != "gt-free");
        town.sling_with(bead, |r| (r.account, r.rig) = (account, Some(rig_name("gastown"))));
    }
    town.does(&Command::Hold { id: "gt-b".to_owned(), held: true });
    town.start();
    town.exits("gt-a", 69, Category::Unavailable);
    town.does(&Command::Hold { id: "gt-b".to_owned(), held: false });
    let until = town.in_time(Millis::minutes(5));
    assert_eq!(town.codes("gt-b"), [ReasonCode::AccountCooldown]);
    assert!(town.why("gt-b").contains(&until.to_string()), "{}", town.why("gt-b"));
    assert_eq!(town.codes("gt-a"), [ReasonCode::NotBefore, ReasonCode::AccountCooldown]);
    assert!(town.start().is_empty());
    town.advance(Millis(299_999));
    assert!(town.start().is_empty());
    town.advance(Millis(1));
    assert_eq!(town.start(), ["gt-a", "gt-b"]);
    assert_eq!(town.state.cooling_accounts().count(), 0);
}

#[test]
fn work_that_waits_for_its_turn_on_a_cluster_gives_way_too_and_is_then_left_alone_for_longer() {
    for (executor, gives_way) in [("slurm", true), ("local", false)] {
        let mut town = Town::deferred(1);
        town.configure(|s| s.worker.executor = Some(executor.to_owned()));
        queued(&mut town, "gt-low", 1);
        assert_eq!(town.pass().started, ["gt-low"]);
        for round in 0..4 {
            let urgent = format!("gt-urgent{round}");
            queued(&mut town, &urgent, 90);
            town.advance(Millis((60_000 << round) - 1));
            town.pass();
            assert_eq!(victim(&town), None, "{round}: it is left alone");
            town.advance(Millis(1));
            town.pass();
            assert_eq!(victim(&town).is_some(), gives_way, "on {executor}");
            if !gives_way {
                break;
            }
            town.never_ran("gt-low");
            assert_eq!(method(&town), Some(Method::Cooperative));
            assert_eq!(town.start(), [urgent.as_str()]);
            assert_eq!(town.standing("gt-low"), Standing::Queued);
            town.exits_ok(&urgent);
            assert_eq!(town.pass().started, ["gt-low"]);
        }
    }
}
