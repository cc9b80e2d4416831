//! Next in line: starts that are decided before their slot is free.

use yard_engine::command::SlingRequest;
use yard_engine::money::Usd;
use yard_engine::readiness::ReasonCode;
use yard_engine::settings::Fairness;
use yard_engine::{Command, DispatchId, Millis, Standing};

use crate::town::Town;

/// A town with one slot, in which `gt-a` runs and the others wait.
fn one_slot(others: &[&str]) -> Town {
    let mut town = Town::new();
    town.configure(|s| s.max_polecats = 1);
    town.bead("gt-a");
    town.sling_one("gt-a");
    assert_eq!(town.start(), ["gt-a"]);
    for id in others {
        town.bead(id);
        town.sling_one(id);
    }
    town
}

fn line_up(town: &mut Town, after: &str) -> Option<String> {
    let after = town.live(after);
    town.act(|tx| tx.line_up(&after));
    town.state.lined_up().find(|(first, _)| **first == after).map(|(_, next)| next.id.to_string())
}

fn call_back(town: &mut Town, id: &str) {
    let id = DispatchId::parse(id).expect("a dispatch id");
    town.act(|tx| tx.called_back(&id));
}

#[test]
fn who_is_next_in_line_takes_over_the_slot_the_moment_it_is_free() {
    let mut town = one_slot(&["gt-b", "gt-c"]);
    assert_eq!(line_up(&mut town, "gt-a").as_deref(), Some("gt-b@1"));
    assert_eq!(town.standing("gt-b"), Standing::Queued, "nobody runs it yet");
    assert_eq!(town.codes("gt-b"), [ReasonCode::Running, ReasonCode::Capacity]);
    assert_eq!(town.state.live_count(), 1, "and it takes no slot");
    town.exits_ok("gt-a");
    assert_eq!(town.live("gt-b").to_string(), "gt-b@1");
    assert_eq!(town.pass().started, Vec::<String>::new(), "the slot is taken");
    town.runs("gt-b");
    assert_eq!(line_up(&mut town, "gt-b").as_deref(), Some("gt-c@1"));
    town.exits_ok("gt-b");
    town.exits_ok("gt-c");
    assert_eq!(town.standing("gt-c"), Standing::Closed);
}

#[test]
fn there_is_one_place_in_line_behind_each() {
    let mut town = one_slot(&["gt-b", "gt-c"]);
    assert_eq!(line_up(&mut town, "gt-a").as_deref(), Some("gt-b@1"));
    assert_eq!(line_up(&mut town, "gt-a").as_deref(), Some("gt-b@1"));
    assert_eq!(town.state.lined_up().count(), 1);
}

fn line_up_behind_next(town: &mut Town, first: &str) -> Option<String> {
    let first = DispatchId::parse(first).expect("a dispatch id");
    town.act(|tx| tx.line_up(&first));
    town.state.next_in_line(&first).map(|second| second.id.to_string())
}

#[test]
fn a_second_may_stand_behind_who_is_next_and_no_third() {
    let mut town = one_slot(&["gt-b", "gt-c", "gt-d"]);
    line_up(&mut town, "gt-a");
    assert_eq!(line_up_behind_next(&mut town, "gt-b@1").as_deref(), Some("gt-c@1"));
    assert_eq!(line_up_behind_next(&mut town, "gt-c@1"), None);
    assert_eq!(town.state.live_count(), 1, "nobody of them takes a slot");
    town.exits_ok("gt-a");
    town.runs("gt-b");
    assert_eq!(town.standing("gt-c"), Standing::Queued, "it is not its turn");
    assert_eq!(line_up_behind_next(&mut town, "gt-c@1").as_deref(), Some("gt-d@1"));
    town.exits_ok("gt-b");
    town.exits_ok("gt-c");
    town.exits_ok("gt-d");
    assert_eq!(town.standing("gt-d"), Standing::Closed);
}

#[test]
fn a_second_has_its_turn_also_when_who_was_next_never_ran() {
    let mut town = one_slot(&["gt-b", "gt-c"]);
    line_up(&mut town, "gt-a");
    line_up_behind_next(&mut town, "gt-b@1");
    town.exits_ok("gt-a");
    town.never_ran("gt-b");
    assert_eq!(town.live("gt-c").to_string(), "gt-c@1");
}

#[test]
fn nobody_is_second_where_who_comes_then_depends_on_who_runs() {
    let mut town = one_slot(&[]);
    town.configure(|s| s.fairness = Fairness::Agent);
    town.beads(&["gt-b", "gt-c", "gt-d"]);
    for (id, agent) in [("gt-b", "amp"), ("gt-c", "amp"), ("gt-d", "pi")] {
        town.sling_with(id, |request: &mut SlingRequest| request.agent = Some(agent.to_owned()));
    }
    assert_eq!(line_up(&mut town, "gt-a").as_deref(), Some("gt-b@1"));
    assert_eq!(line_up_behind_next(&mut town, "gt-b@1"), None, "pi may be served first by then");
}

#[test]
fn whoever_is_called_back_stands_in_the_queue_again_and_its_id_is_used_up() {
    let mut town = one_slot(&["gt-b"]);
    line_up(&mut town, "gt-a");
    call_back(&mut town, "gt-b@1");
    assert_eq!(town.codes("gt-b"), [ReasonCode::Capacity]);
    town.exits_ok("gt-a");
    assert_eq!(town.pass().started, ["gt-b"]);
    assert_eq!(town.live("gt-b").to_string(), "gt-b@2");
}

#[test]
fn however_the_one_before_ends_the_next_has_its_turn() {
    let mut town = one_slot(&["gt-b"]);
    line_up(&mut town, "gt-a");
    town.lost("gt-a");
    assert_eq!(town.live("gt-b").to_string(), "gt-b@1");
    town.never_ran("gt-b");
    assert_eq!(town.pass().started, ["gt-b"], "its shim was the one that died");
}

#[test]
fn nobody_is_lined_up_while_something_may_still_come_between() {
    type Happens = fn(&mut Town);
    let cases: [(&str, Happens); 5] = [
        ("a pause", Town::pause),
        ("a busy host", |town| town.act(|tx| tx.host_observed(Some("load".to_owned())))),
        ("a spawn delay", |town| town.configure(|s| s.spawn_delay = Millis(100))),
        ("a batch", |town| town.configure(|s| s.batch_size = 1)),
        ("a budget", |town| town.configure(|s| s.cost.daily = Usd::from_dollars(5.0).ok())),
    ];
    for (what, happens) in cases {
        let mut town = one_slot(&["gt-b"]);
        happens(&mut town);
        assert_eq!(line_up(&mut town, "gt-a"), None, "{what}");
    }
}

#[test]
fn nobody_is_lined_up_before_something_more_urgent_even_if_that_is_blocked() {
    let mut town = one_slot(&[]);
    town.bead_needing("gt-u", &["gt-a"]);
    town.sling_with("gt-u", |request: &mut SlingRequest| request.priority = Some(90));
    town.bead("gt-b");
    town.sling_one("gt-b");
    assert_eq!(line_up(&mut town, "gt-a"), None);
    town.does(&Command::Priority { id: "gt-u".to_owned(), priority: 50 });
    assert_eq!(line_up(&mut town, "gt-a").as_deref(), Some("gt-b@1"));
}

#[test]
fn a_slot_that_is_one_too_many_passes_to_nobody() {
    let mut town = Town::new();
    town.configure(|s| s.max_polecats = 2);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    assert_eq!(town.start().len(), 2);
    town.configure(|s| s.max_polecats = 1);
    assert_eq!(line_up(&mut town, "gt-a"), None);
}

#[test]
fn a_slot_of_another_rig_is_not_enough() {
    let mut town = Town::new();
    town.rig_with("yard", "yd", |rig| rig.max_polecats = Some(1));
    town.configure(|s| s.max_polecats = 2);
    town.beads(&["gt-a", "yd-a", "yd-b"]);
    town.sling(&["gt-a", "yd-a"]);
    town.start();
    town.sling_one("yd-b");
    assert_eq!(line_up(&mut town, "gt-a"), None);
    assert_eq!(line_up(&mut town, "yd-a").as_deref(), Some("yd-b@1"));
}

#[test]
fn what_was_called_off_while_a_worker_took_it_is_ended() {
    let mut town = one_slot(&["gt-b"]);
    line_up(&mut town, "gt-a");
    town.does(&Command::Clear { bead: Some("gt-b".to_owned()) });
    town.exits_ok("gt-a");
    let id = town.live("gt-b");
    assert!(town.state.dispatch(&id).is_some_and(|dispatch| dispatch.stop.is_some()));
}
