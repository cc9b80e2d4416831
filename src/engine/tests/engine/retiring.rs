//! Closed work is forgotten when its time is up, and nothing that others count on.

use yard_engine::bead::DepKind;
use yard_engine::town::TownEvent;
use yard_engine::{Event, Millis};

use crate::town::{Town, bead_id};

const DAY: Millis = Millis::minutes(24 * 60);

fn town() -> Town {
    let mut town = Town::deferred(4);
    town.configure(|settings| settings.results_ttl = DAY);
    town
}

/// Lets days pass and looks at everything, often enough for closed beads to be at rest.
fn days_pass(town: &mut Town, days: u64) {
    town.advance(Millis(DAY.0 * days));
    for _ in 0..4 {
        town.scan();
    }
}

fn works(town: &mut Town, bead: &str) {
    town.sling(&[bead]);
    town.start();
    town.runs(bead);
    town.exits_ok(bead);
}

fn knows(town: &Town, bead: &str) -> bool {
    town.state.bead(&bead_id(bead)).is_some()
}

/// Every bead that was ever forgotten, and the attempts whose logs go, in order.
fn forgotten(town: &Town) -> (Vec<String>, Vec<String>) {
    let mut all = (Vec::new(), Vec::new());
    for recorded in &town.log {
        if let Event::Town(TownEvent::Retired { beads, workers, .. }) = &recorded.event {
            all.0.extend(beads.iter().map(ToString::to_string));
            all.1.extend(workers.iter().map(ToString::to_string));
        }
    }
    all
}

#[test]
fn a_closed_bead_goes_with_its_attempts_when_its_time_is_up_and_not_before() {
    let mut town = town();
    town.beads(&["gt-a", "gt-open"]);
    town.sling(&["gt-a"]);
    town.start();
    town.runs("gt-a");
    town.crashes("gt-a");
    town.advance(Millis::minutes(60));
    town.start();
    town.runs("gt-a");
    town.exits_ok("gt-a");
    let context = town.state.bead(&bead_id("gt-a")).and_then(|entry| entry.work.last_context.clone());
    let context = context.expect("it was asked for");
    town.advance(Millis(DAY.0 - 1));
    for _ in 0..4 {
        town.scan();
    }
    assert!(knows(&town, "gt-a"));
    days_pass(&mut town, 1);
    assert_eq!(forgotten(&town), (vec!["gt-a".to_owned()], vec!["gt-a@1".to_owned(), "gt-a@2".to_owned()]));
    assert!(!knows(&town, "gt-a") && knows(&town, "gt-open"));
    assert!(town.state.context(&context).is_none());
    assert_eq!(town.state.dispatches().count(), 0);
}

#[test]
fn an_id_that_was_forgotten_may_come_again() {
    let mut town = town();
    town.bead("gt-a");
    works(&mut town, "gt-a");
    days_pass(&mut town, 2);
    assert!(!knows(&town, "gt-a"));
    town.beads(&["gt-other", "gt-a"]);
    works(&mut town, "gt-a");
    assert_eq!(town.dispatches("gt-a").len(), 1);
    assert!(town.state.bead(&bead_id("gt-other")).is_some_and(|entry| !entry.bead.is_closed()));
}

#[test]
fn a_bead_stays_while_another_depends_on_it_and_goes_after_it() {
    let mut town = town();
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    town.bead_needing("gt-c", &["gt-b"]);
    works(&mut town, "gt-a");
    works(&mut town, "gt-b");
    days_pass(&mut town, 3);
    assert!(knows(&town, "gt-a") && knows(&town, "gt-b"));
    works(&mut town, "gt-c");
    days_pass(&mut town, 2);
    assert_eq!(forgotten(&town).0, ["gt-c", "gt-b", "gt-a"]);
}

#[test]
fn a_part_stays_while_the_whole_is_open_and_the_whole_while_a_part_is() {
    let mut town = town();
    town.epic("gt-e");
    town.child("gt-e.1", "gt-e");
    town.child("gt-e.2", "gt-e");
    town.close("gt-e.1");
    days_pass(&mut town, 2);
    assert!(knows(&town, "gt-e.1"));
    town.close("gt-e");
    days_pass(&mut town, 2);
    assert!(!knows(&town, "gt-e.1") && knows(&town, "gt-e"));
    town.close("gt-e.2");
    days_pass(&mut town, 2);
    assert!(!knows(&town, "gt-e.2") && !knows(&town, "gt-e"));
}

#[test]
fn a_mere_relation_keeps_nothing_and_never_comes_to_mean_another_bead() {
    let mut town = town();
    town.beads(&["gt-a", "gt-b"]);
    town.needs("gt-b", "gt-a", DepKind::from("related"));
    town.close("gt-a");
    days_pass(&mut town, 2);
    assert!(!knows(&town, "gt-a"));
    town.beads(&["gt-new"]);
    town.needs("gt-b", "gt-new", DepKind::Blocks);
    assert!(town.why("gt-b").contains("gt-new"), "{}", town.why("gt-b"));
    town.close("gt-new");
    town.close("gt-b");
    days_pass(&mut town, 2);
    assert_eq!(town.state.bead_count(), 0);
}

#[test]
fn a_convoy_keeps_its_beads_until_it_is_forgotten_itself() {
    let mut town = town();
    town.beads(&["gt-a", "gt-b"]);
    let convoy = town.convoy(&["gt-a", "gt-b"]);
    town.close("gt-a");
    days_pass(&mut town, 2);
    assert!(knows(&town, "gt-a"), "its convoy is open");
    town.close("gt-b");
    town.advance(Millis(DAY.0 / 2));
    town.scan();
    assert!(knows(&town, "gt-a"), "its convoy was closed half a day ago");
    days_pass(&mut town, 1);
    assert_eq!((town.state.convoys().count(), town.state.bead_count()), (0, 0), "{convoy} and its beads");
}

#[test]
fn what_a_workspace_shows_is_not_ours_to_forget() {
    let mut town = town();
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    town.reads(&mut tracker);
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    days_pass(&mut town, 9);
    assert!(knows(&town, "ox-a"));
}
