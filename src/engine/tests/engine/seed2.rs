//! The tables of seed 2 (Gas Town's convoys), row by row: what it did, and what happens here instead.

use yard_engine::bead::BeadStatus;
use yard_engine::command::SlingAction;
use yard_engine::dispatch::Category;
use yard_engine::readiness::ReasonCode;
use yard_engine::{Command, DispatchId, Millis};

use crate::town::{Town, actions, exit};

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("gt-{prefix}{n}")).collect()
}

fn texts(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}

/// One bead that `count` others wait for, all of one launched convoy; the one runs.
fn fan_out(count: usize) -> (Town, DispatchId, Vec<String>) {
    let mut town = Town::deferred(100);
    town.bead("gt-x");
    let leaves = names("leaf", count);
    for leaf in &leaves {
        town.bead_needing(leaf, &["gt-x"]);
    }
    town.launch(&[texts(&leaves), vec!["gt-x"]].concat());
    assert_eq!(town.start(), ["gt-x"]);
    let root = town.live("gt-x");
    (town, root, leaves)
}

// The three dispatch paths (§6).

#[test]
fn path_launch_starts_all_of_wave_1() {
    let mut town = Town::deferred(100);
    let beads = names("wave", 8);
    town.beads(&texts(&beads));
    let (_, wave1) = town.launch(&texts(&beads));
    assert_eq!(actions(&wave1), [SlingAction::Scheduled; 8]);
    assert_eq!(town.pass().started, beads);
}

#[test]
fn path_event_feed_starts_everything_newly_ready_not_exactly_one() {
    let (mut town, root, leaves) = fan_out(3);
    assert_eq!(town.turn(|tx| tx.worker_ended(&root, &exit(0, Category::Crash))), leaves);
}

#[test]
fn path_stranded_scan_has_nothing_left_to_do() {
    let (mut town, root, leaves) = fan_out(3);
    town.turn(|tx| tx.worker_ended(&root, &exit(0, Category::Crash)));
    let before = town.log.len();
    let started = town.turn(|tx| {
        tx.scan(None, usize::MAX);
    });
    assert_eq!((started, town.kinds_since(before)), (Vec::new(), Vec::new()));
    assert_eq!((town.recover(false), town.running().len()), (Vec::new(), leaves.len()));
}

#[test]
fn path_stranded_scan_starts_everything_it_finds_not_exactly_one() {
    let mut town = Town::deferred(100);
    let beads = names("left", 5);
    town.beads(&texts(&beads));
    for bead in &beads {
        town.status(bead, BeadStatus::InProgress, None);
    }
    town.launch(&texts(&beads));
    town.now = town.in_time(Millis::minutes(60));
    let started = town.turn(|tx| {
        tx.scan(None, usize::MAX);
    });
    assert_eq!(started, beads);
}

// Readiness criteria (§6): one answer, for the event feed and for the scan.

/// Whether a bead of a launched convoy is started by a turn that a close made, and by one that a scan made.
fn started_by(prepare: impl Fn(&mut Town)) -> (bool, bool) {
    let town_with = || {
        let mut town = Town::deferred(100);
        town.beads(&["gt-other", "gt-a"]);
        town.convoy(&["gt-other", "gt-a"]);
        town.pause();
        prepare(&mut town);
        town
    };
    let mut fed = town_with();
    fed.resume();
    let asker = yard_engine::Asker { actor: "ada", kitchen: &yard_engine::Kitchen::default() };
    let close = Command::BeadClose { ids: vec!["gt-other".to_owned()], reason: None };
    let by_event = fed.turn(|tx| {
        tx.decide(&asker, &close).expect("closed");
    });
    let mut scanned = town_with();
    scanned.resume();
    let by_scan = scanned.turn(|tx| {
        tx.scan(None, usize::MAX);
    });
    let a = |started: Vec<String>| started.iter().any(|id| id == "gt-a");
    (a(by_event), a(by_scan))
}

#[test]
fn criterion_status_an_open_bead_starts_and_any_other_does_not() {
    assert_eq!(started_by(|_| ()), (true, true));
    for status in [BeadStatus::Deferred, BeadStatus::Blocked, BeadStatus::Other("review".to_owned())] {
        assert_eq!(
            started_by(|town| town.status("gt-a", status.clone(), None)),
            (false, false),
            "{status:?}"
        );
    }
}

#[test]
fn criterion_status_in_progress_or_hooked_starts_only_when_its_worker_is_known_to_be_dead() {
    for status in [BeadStatus::InProgress, BeadStatus::Hooked] {
        let by_nobody = |town: &mut Town| town.status("gt-a", status.clone(), None);
        assert_eq!(started_by(by_nobody), (false, false));
        let by_our_dead_worker = |town: &mut Town| town.status("gt-a", status.clone(), Some("ym/gt-a@1"));
        assert_eq!(started_by(by_our_dead_worker), (true, true));
    }
}

#[test]
fn criterion_assignee_nobody_or_our_own_dead_worker() {
    assert_eq!(started_by(|town| town.status("gt-a", BeadStatus::Open, Some("bob"))), (false, false));
    assert_eq!(started_by(|town| town.status("gt-a", BeadStatus::Open, Some("ym/gt-a@3"))), (true, true));
}

#[test]
fn criterion_blocking_is_one_test_of_every_blocking_kind() {
    use yard_engine::bead::DepKind as D;
    for (kind, starts) in [
        (D::Blocks, false),
        (D::ConditionalBlocks, false),
        (D::WaitsFor, false),
        (D::MergeBlocks, false),
        (D::ParentChild, true),
        (D::Other("related".into()), true),
    ] {
        let prepare = |town: &mut Town| {
            town.bead("gt-open");
            town.needs("gt-a", "gt-open", kind.clone());
        };
        assert_eq!(started_by(prepare), (starts, starts), "{kind:?}");
    }
}

#[test]
fn criterion_already_scheduled_beads_are_not_scheduled_twice() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-hog", "gt-a"]);
    town.sling(&["gt-hog"]);
    town.start();
    town.convoy(&["gt-a"]);
    town.pass();
    assert_eq!(town.codes("gt-a"), [ReasonCode::Capacity]);
    let context = town.context("gt-a").id.clone();
    town.turn(|tx| {
        tx.scan(None, usize::MAX);
    });
    town.recover(false);
    town.close("gt-hog");
    town.pass();
    assert_eq!(town.sling_with("gt-a", |request| request.force = true).action, SlingAction::AlreadyScheduled);
    assert_eq!((&town.context("gt-a").id, town.count("context.opened")), (&context, 2));
}

#[test]
fn criterion_type_only_task_bug_feature_chore_and_a_rig_that_owns_it() {
    for (kind, starts) in [
        ("task", true),
        ("bug", true),
        ("feature", true),
        ("chore", true),
        ("epic", false),
        ("decision", false),
        ("molecule", false),
    ] {
        let prepare = |town: &mut Town| {
            let change = yard_engine::bead::BeadChange { kind: Some(kind.to_owned()), ..Default::default() };
            town.does(&Command::BeadUpdate { id: "gt-a".to_owned(), change });
        };
        assert_eq!(started_by(prepare), (starts, starts), "{kind}");
    }
}

// Scheduler throughput (§7).

#[test]
fn throughput_one_bead_fed_with_capacity_starts_in_the_turn_that_feeds_it() {
    let (mut town, root, leaves) = fan_out(1);
    assert_eq!(town.turn(|tx| tx.worker_ended(&root, &exit(0, Category::Crash))), leaves);
}

#[test]
fn throughput_three_workers_finish_and_three_queued_beads_start_in_one_pass() {
    let mut town = Town::deferred(3);
    let (first, second) = (names("first", 3), names("second", 3));
    town.beads(&texts(&first));
    town.beads(&texts(&second));
    town.sling(&[texts(&first), texts(&second)].concat());
    assert_eq!(town.start(), first);
    let ended: Vec<DispatchId> = first.iter().map(|id| town.live(id)).collect();
    let started = town.turn(|tx| ended.iter().for_each(|id| tx.worker_ended(id, &exit(0, Category::Crash))));
    assert_eq!(started, second);
}

#[test]
fn throughput_ten_queued_beads_with_room_start_in_one_pass() {
    let mut town = Town::deferred(100);
    let beads = names("q", 10);
    town.beads(&texts(&beads));
    town.sling(&texts(&beads));
    assert_eq!(town.pass().started, beads);
}

// Convoy throughput (§7).

#[test]
fn throughput_linear_chain_each_step_starts_in_the_turn_that_closed_the_one_before() {
    let mut town = Town::deferred(100);
    town.bead("gt-a");
    for (id, on) in [("gt-b", "gt-a"), ("gt-c", "gt-b"), ("gt-d", "gt-c")] {
        town.bead_needing(id, &[on]);
    }
    town.launch(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    assert_eq!(town.start(), ["gt-a"]);
    for (id, next) in [("gt-a", "gt-b"), ("gt-b", "gt-c"), ("gt-c", "gt-d")] {
        let ended = town.live(id);
        assert_eq!(town.turn(|tx| tx.worker_ended(&ended, &exit(0, Category::Crash))), [next]);
    }
}

#[test]
fn throughput_fan_out_of_three_starts_in_the_turn_of_the_close() {
    let (mut town, root, leaves) = fan_out(3);
    assert_eq!(town.turn(|tx| tx.worker_ended(&root, &exit(0, Category::Crash))), leaves);
}

#[test]
fn throughput_fan_out_of_ten_starts_in_the_turn_of_the_close() {
    let (mut town, root, leaves) = fan_out(10);
    assert_eq!(town.turn(|tx| tx.worker_ended(&root, &exit(0, Category::Crash))), leaves);
}

#[test]
fn throughput_fan_out_by_a_close_in_a_workspace_starts_in_the_turn_that_read_it() {
    let mut town = Town::deferred(100);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-x"]);
    let leaves: Vec<String> = (0..10).map(|n| format!("ox-leaf{n}")).collect();
    for leaf in &leaves {
        tracker.has_needing(leaf, &["ox-x"]);
    }
    town.reads(&mut tracker);
    town.launch(&[texts(&leaves), vec!["ox-x"]].concat());
    assert_eq!(town.start(), ["ox-x"]);
    tracker.closes("ox-x");
    assert_eq!(town.turn_hearing(&tracker.news()), leaves);
}

#[test]
fn throughput_cold_convoy_starts_as_a_whole_without_a_launch() {
    let mut town = Town::deferred(100);
    let beads = names("cold", 10);
    town.beads(&texts(&beads));
    town.convoy(&texts(&beads));
    assert_eq!(town.pass().started, beads);
}
