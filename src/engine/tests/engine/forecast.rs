//! When it will be done: what is measured and what is guessed, what holds up the end, what never ends.

use yard_engine::bead::BeadStatus;
use yard_engine::capacity::Limit;
use yard_engine::convoy::ConvoyEvent;
use yard_engine::dispatch::Category;
use yard_engine::forecast::{Change, Forecast, Options, Scope};
use yard_engine::rig::RigSwitch;
use yard_engine::{Command, ConvoyId, Event, Millis, Timestamp};

use crate::town::{Town, bead_id, new_bead, rig_name};

const MINUTE: u64 = 60_000;

/// A town with this many slots whose beads take ten minutes each, as three of them have shown.
fn experienced(slots: i64) -> Town {
    let mut town = Town::deferred(slots);
    for id in ["gt-past1", "gt-past2", "gt-past3"] {
        measure(&mut town, id, 10);
    }
    town
}

/// Runs a bead for so many minutes.
fn measure(town: &mut Town, id: &str, minutes: u64) {
    town.bead(id);
    town.sling(&[id]);
    town.start();
    town.advance(Millis::minutes(minutes));
    town.exits_ok(id);
}

fn of_town(town: &Town) -> Forecast {
    town.state.forecast(&Scope::Town, town.now, &Options::default())
}

fn of_convoy(town: &Town, convoy: &str) -> Forecast {
    let scope = Scope::Convoy(ConvoyId::parse(convoy).expect("an id"));
    town.state.forecast(&scope, town.now, &Options::default())
}

/// Start and end of a bead, in minutes from now.
fn minutes(town: &Town, forecast: &Forecast, id: &str) -> (i64, i64) {
    let planned = &forecast.plan[&bead_id(id)];
    let from_now = |at: Timestamp| (at.as_millis() - town.now.as_millis()) / MINUTE as i64;
    (from_now(planned.start), from_now(planned.end))
}

fn path(forecast: &Forecast) -> Vec<&str> {
    forecast.critical_path.iter().map(yard_engine::BeadId::as_str).collect()
}

/// Why a bead never runs.
fn never<'a>(forecast: &'a Forecast, id: &str) -> &'a str {
    let found = forecast.stuck.iter().find(|(stuck, _)| stuck.as_str() == id);
    found.map(|(_, why)| why.as_str()).expect("it is stuck")
}

// What is known about durations.

#[test]
fn a_town_with_nothing_to_do_has_no_finish() {
    let forecast = of_town(&experienced(2));
    assert_eq!((forecast.finish, forecast.left, forecast.critical_left), (None, 0, Millis(0)));
    assert!(forecast.plan.is_empty() && forecast.stuck.is_empty());
}

#[test]
fn beads_unlike_anything_that_ever_ran_are_unmeasured() {
    let mut town = Town::deferred(2);
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a", "gt-b"]);
    town.start();
    let forecast = of_town(&town);
    assert_eq!((forecast.left, forecast.unmeasured), (2, 2));
    let band = forecast.finish.expect("it ends");
    assert!(band.p50 < band.p90, "a guess is vague");
    town.advance(Millis::minutes(3));
    town.exits_ok("gt-a");
    let forecast = of_town(&town);
    assert_eq!(forecast.unmeasured, 0, "one run is better than none");
    assert_eq!(forecast.plan[&bead_id("gt-b")].runs_measured, 1);
}

#[test]
fn an_estimate_rests_on_the_most_specific_class_with_three_runs() {
    let mut town = experienced(9);
    town.rig("web", "w");
    for id in ["w-p1", "w-p2", "w-p3"] {
        measure(&mut town, id, 30);
    }
    for id in ["w-bug1", "w-bug2"] {
        town.bead_with(id, |bead| bead.kind = "bug".to_owned());
        town.sling(&[id]);
        town.start();
        town.advance(Millis::minutes(60));
        town.exits_ok(id);
    }
    town.rig("new", "n");
    town.beads(&["gt-a", "w-a", "n-a"]);
    town.bead_with("w-bug3", |bead| bead.kind = "bug".to_owned());
    town.sling(&["gt-a", "w-a", "n-a", "w-bug3"]);
    let forecast = of_town(&town);
    let ends = ["gt-a", "w-a", "w-bug3", "n-a"]
        .map(|id| (minutes(&town, &forecast, id).1, forecast.plan[&bead_id(id)].runs_measured));
    assert_eq!(ends[0], (10, 3));
    assert_eq!(ends[1], (30, 3));
    assert_eq!(ends[2], (42, 5), "two bugs are too few: all that ran in the rig by that formula");
    assert_eq!(ends[3], (30, 8), "the rig is new: all that ever ran, (3·10 + 3·30 + 2·60) / 8");
}

#[test]
fn what_runs_is_expected_to_take_what_is_left_of_longer_runs() {
    let mut town = experienced(2);
    measure(&mut town, "gt-long", 50);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.start();
    assert_eq!(minutes(&town, &of_town(&town), "gt-a"), (0, 20), "the mean of all four");
    town.advance(Millis::minutes(5));
    assert_eq!(minutes(&town, &of_town(&town), "gt-a"), (-5, 15));
    town.advance(Millis::minutes(10));
    assert_eq!(minutes(&town, &of_town(&town), "gt-a"), (-15, 35), "only one took longer than that");
    town.advance(Millis::minutes(45));
    assert_eq!(minutes(&town, &of_town(&town), "gt-a"), (-60, 15), "none did: a quarter again");
}

#[test]
fn work_that_gave_way_counts_as_a_whole() {
    let mut town = Town::deferred(1);
    for id in ["gt-p1", "gt-p2", "gt-p3"] {
        town.bead(id);
        town.sling(&[id]);
        town.start();
        town.advance(Millis::minutes(20));
        let dispatch = town.live(id);
        town.act(|tx| tx.worker_step_done(&dispatch, "one"));
        town.exits(id, 75, Category::Yielded);
        town.advance(Millis::seconds(1));
        town.start();
        town.advance(Millis::minutes(10));
        town.exits_ok(id);
    }
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    assert_eq!(minutes(&town, &of_town(&town), "gt-a"), (0, 30));
    town.start();
    town.advance(Millis::minutes(20));
    let dispatch = town.live("gt-a");
    town.act(|tx| tx.worker_step_done(&dispatch, "one"));
    town.exits("gt-a", 75, Category::Yielded);
    town.advance(Millis::seconds(1));
    assert_eq!(minutes(&town, &of_town(&town), "gt-a"), (0, 10), "twenty of thirty minutes are done");
}

#[test]
fn attempts_that_failed_before_make_the_end_later() {
    let mut town = experienced(1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    let before = of_town(&town).finish.expect("it ends");
    for id in ["gt-bad1", "gt-bad2"] {
        town.bead(id);
        town.sling_with(id, |request| request.priority = Some(90));
        town.start();
        town.crashes(id);
        town.close(id);
    }
    let forecast = of_town(&town);
    let after = forecast.finish.expect("it ends");
    assert_eq!(before.p90, before.p50, "it always took ten minutes");
    assert!(after.p90 > before.p90, "two of five attempts failed: {after:?}");
    assert_eq!(minutes(&town, &forecast, "gt-a"), (0, 10), "the plan goes by expected durations alone");
}

#[test]
fn a_replay_forecasts_the_same() {
    let mut town = experienced(2);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    town.start();
    let before = of_town(&town);
    town.restart();
    assert_eq!(of_town(&town), before);
}

// What holds up the end.

#[test]
fn the_critical_path_goes_through_blockers_and_slots() {
    let mut town = experienced(2);
    town.rig_with("small", "s", |rig| rig.max_polecats = Some(1));
    town.beads(&["gt-a", "s-1", "s-2"]);
    town.bead_needing("gt-end", &["s-2"]);
    let (convoy, _) = town.launch_by_force(&["gt-a", "s-1", "s-2", "gt-end"]);
    let forecast = of_convoy(&town, &convoy);
    assert_eq!(path(&forecast), ["s-1", "s-2", "gt-end"]);
    assert_eq!(forecast.critical_left, Millis::minutes(30));
    let waits = &forecast.plan[&bead_id("s-2")];
    assert_eq!(waits.limit, Some(Limit::Rig(rig_name("small"))));
    assert_eq!(waits.after, Some(bead_id("s-1")), "it holds the slot");
    let slack = |id: &str| forecast.plan[&bead_id(id)].slack;
    assert_eq!([slack("s-1"), slack("s-2"), slack("gt-end")], [Millis(0); 3]);
    assert_eq!(slack("gt-a"), Millis::minutes(20));
    let busy: Vec<u32> = forecast.load.iter().map(|(_, busy)| *busy).collect();
    assert_eq!(busy, [2, 1, 0]);
}

#[test]
fn other_work_competes_for_the_slots_but_not_for_the_finish() {
    let mut town = experienced(1);
    town.beads(&["gt-other", "gt-mine", "gt-later"]);
    town.sling(&["gt-other"]);
    let (convoy, _) = town.launch_by_force(&["gt-mine"]);
    town.sling_with("gt-later", |request| request.priority = Some(10));
    let forecast = of_convoy(&town, &convoy);
    assert_eq!((forecast.left, path(&forecast)), (1, vec!["gt-other", "gt-mine"]));
    assert_eq!(forecast.finish.expect("it ends").p50, town.in_time(Millis::minutes(20)));
    assert_eq!(minutes(&town, &forecast, "gt-later"), (20, 30));
}

#[test]
fn a_staged_convoy_is_forecast_as_if_it_were_launched() {
    let mut town = experienced(2);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.bead_needing("gt-d", &["gt-a", "gt-b"]);
    let convoy = town.staged(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    let staged = of_convoy(&town, &convoy);
    assert_eq!((staged.left, of_town(&town).left), (4, 0));
    town.launch_by_force(&[&convoy]);
    assert_eq!(of_convoy(&town, &convoy).plan, staged.plan);
}

#[test]
fn a_convoy_remembers_what_was_forecast_at_its_launch() {
    let mut town = experienced(1);
    town.beads(&["gt-a", "gt-b"]);
    let (convoy, _) = town.launch_by_force(&["gt-a", "gt-b"]);
    let expected = town.in_time(Millis::minutes(20));
    assert_eq!(town.convoy_record(&convoy).expected_end, Some(expected));
    assert_eq!(of_convoy(&town, &convoy).slip_ms, Some(0));
    town.advance(Millis::minutes(4));
    assert_eq!(of_convoy(&town, &convoy).slip_ms, Some(4 * MINUTE as i64), "nobody started it");
}

#[test]
fn a_launch_from_an_older_log_has_no_slip() {
    let body =
        r#"{"type":"convoy.launched","id":"hq-cv-abc12","tracked":["gt-a"],"waves":[1],"actor":"ada"}"#;
    let event = Event::from_stored("convoy.launched", body).expect("it can be read");
    assert!(matches!(event, Event::Convoy(ConvoyEvent::Launched { expected_end: None, .. })));
    assert_eq!(event.body(), body, "and is written as it was");
}

#[test]
fn a_bead_whose_close_is_awaited_holds_nobody_up() {
    let mut town = experienced(2);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    tracker.has_needing("ox-b", &["ox-a"]);
    town.reads(&mut tracker);
    town.convoy(&["ox-a", "ox-b"]);
    town.start();
    town.exits_ok("ox-a");
    assert_eq!(minutes(&town, &of_town(&town), "ox-b").0, 0);
}

#[test]
fn waits_and_pauses_that_end_put_the_start_off() {
    let mut town = experienced(2);
    town.beads(&["gt-a", "gt-b"]);
    let later = town.in_time(Millis::minutes(7));
    town.sling_with("gt-a", |request| request.not_before = Some(later));
    town.sling(&["gt-b"]);
    let until = Some(town.in_time(Millis::minutes(5)));
    town.does(&Command::Pause { reason: None, until });
    let forecast = of_town(&town);
    assert_eq!(minutes(&town, &forecast, "gt-a"), (7, 17));
    assert_eq!(minutes(&town, &forecast, "gt-b"), (5, 15));
}

// What never ends.

#[test]
fn what_needs_a_person_is_stuck_and_so_is_what_waits_for_it() {
    let mut town = experienced(5);
    town.rig("web", "w");
    town.beads(&["gt-held", "gt-gated", "gt-fails", "gt-outside", "w-parked", "gt-fine"]);
    town.bead_with("gt-decision", |bead| bead.kind = "decision".to_owned());
    town.bead_needing("gt-1", &["gt-held"]);
    town.import(vec![new_bead("gt-2", &["nobody-x"])]);
    town.bead_needing("gt-3", &["gt-outside"]);
    town.bead_needing("gt-4", &["gt-decision"]);
    town.bead_needing("gt-5", &["gt-fails"]);
    let all =
        ["gt-held", "gt-gated", "gt-fails", "w-parked", "gt-fine", "gt-1", "gt-2", "gt-3", "gt-4", "gt-5"];
    town.configure(|s| s.retry_crash.max_attempts = 1);
    town.convoy(&all);
    town.pass();
    town.runs("gt-fine");
    town.crashes("gt-fails");
    for id in ["gt-held", "gt-gated", "w-parked"] {
        town.never_ran(id);
    }
    town.does(&Command::Hold { id: "gt-held".to_owned(), held: true });
    town.status("gt-gated", BeadStatus::Blocked, None);
    town.switch("web", RigSwitch::Park);
    let forecast = of_town(&town);
    assert_eq!((forecast.left, path(&forecast)), (1, vec!["gt-fine"]), "{:?}", forecast.stuck);
    let expected = [
        ("gt-held", "held by ada; ym unhold"),
        ("gt-gated", "its status is blocked"),
        ("w-parked", "rig web is parked"),
        ("gt-fails", "no more retries"),
        ("gt-1", "waits for gt-held"),
        ("gt-2", "nobody-x, which nobody has"),
        ("gt-3", "gt-outside, which nobody has asked for"),
        ("gt-4", "gt-decision, which is no work"),
        ("gt-5", "gt-fails, which failed"),
    ];
    assert_eq!(forecast.stuck.len(), expected.len(), "{:?}", forecast.stuck);
    for (id, words) in expected {
        assert!(never(&forecast, id).contains(words), "{id}: {}", never(&forecast, id));
    }
}

#[test]
fn cycles_endless_pauses_and_deadlines_are_stuck() {
    let mut town = experienced(1);
    town.beads(&["gt-a", "gt-b", "gt-late"]);
    town.import(vec![new_bead("gt-x", &["gt-y"]), new_bead("gt-y", &["gt-x"])]);
    let soon = Some(town.in_time(Millis::minutes(5)));
    town.sling(&["gt-a", "gt-b", "gt-x", "gt-y"]);
    town.sling_with("gt-late", |request| (request.deadline, request.priority) = (soon, Some(1)));
    let forecast = of_town(&town);
    assert_eq!(forecast.left, 2);
    assert!(never(&forecast, "gt-x").contains("waits for gt-y"), "{}", never(&forecast, "gt-x"));
    assert!(never(&forecast, "gt-late").contains("before its deadline"), "{}", never(&forecast, "gt-late"));
    town.pause();
    let forecast = of_town(&town);
    assert_eq!((forecast.finish, forecast.left), (None, 0));
    assert!(never(&forecast, "gt-a").contains("ym scheduler resume"), "{}", never(&forecast, "gt-a"));
}

// What if.

#[test]
fn a_fork_answers_what_a_change_would_do_and_leaves_the_town_alone() {
    let mut town = experienced(1);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    let end = |changes: &[Change]| {
        let fork = town.state.what_if(changes);
        fork.check_indexes().expect("a fork is a town like any other");
        let forecast = fork.forecast(&Scope::Town, town.now, &Options::default());
        (forecast.left, minutes(&town, &forecast, "gt-c"))
    };
    let (c, gastown) = (bead_id("gt-c"), rig_name("gastown"));
    assert_eq!(end(&[]), (3, (20, 30)));
    assert_eq!(end(&[Change::MaxPolecats(3)]), (3, (0, 10)));
    assert_eq!(
        end(&[Change::MaxPolecats(3), Change::RigMaxPolecats(gastown.clone(), Some(2))]),
        (3, (10, 20))
    );
    assert_eq!(end(&[Change::Priority(c, 90)]), (3, (0, 10)));
    assert_eq!(end(&[Change::Hold(bead_id("gt-a"), true)]), (2, (10, 20)));
    for nothing in [Change::Paused(true), Change::Parked(gastown, true)] {
        let forecast = town.state.what_if(&[nothing]).forecast(&Scope::Town, town.now, &Options::default());
        assert_eq!((forecast.left, forecast.stuck.len()), (0, 3));
    }
    assert_eq!(end(&[]), (3, (20, 30)));
}

#[test]
fn each_change_knows_its_command() {
    let line = |change: Change| change.command_line().join(" ");
    let (bead, rig) = (bead_id("gt-a"), rig_name("web"));
    let lines = [
        line(Change::MaxPolecats(16)),
        line(Change::RigMaxPolecats(rig.clone(), Some(3))),
        line(Change::RigMaxPolecats(rig.clone(), None)),
        line(Change::Priority(bead.clone(), 90)),
        line(Change::Hold(bead, false)),
        line(Change::Paused(true)),
        line(Change::Parked(rig, true)),
    ];
    let expected = [
        "config set scheduler.max_polecats 16",
        "config set rig.web.max_polecats 3",
        "config unset rig.web.max_polecats",
        "priority gt-a 90",
        "unhold gt-a",
        "scheduler pause",
        "rig park web",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn of_very_many_beads_fewer_samples_are_taken_and_then_none() {
    let mut town = Town::deferred(2);
    for n in 0..10 {
        let id = format!("gt-{n}");
        town.bead(&id);
        town.sling(&[&id]);
    }
    let with = |most: usize| {
        let options = Options { most, ..Options::default() };
        town.state.forecast(&Scope::Town, town.now, &options)
    };
    assert_eq!([with(10).samples, with(5).samples, with(0).samples], [200, 100, 0]);
    let band = with(0).finish.expect("it ends");
    assert_eq!(band.p50, band.p90, "expected durations know no band");
}
