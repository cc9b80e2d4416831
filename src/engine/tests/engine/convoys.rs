//! Convoys by hand: made, added to, watched, checked, closed and landed; and how they come to their end.

use yard_engine::alert::AlertKind;
use yard_engine::bead::DepKind;
use yard_engine::{Answer, Command, Standing};

use crate::town::Town;
use crate::words::{add_of, changed, close_of, land_of, watch_of};

fn three() -> Town {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town
}

fn check(id: Option<&str>, dry_run: bool) -> Command {
    Command::ConvoyCheck { id: id.map(str::to_owned), dry_run }
}

// Making.

#[test]
fn a_convoy_of_beads_alone_is_named_after_the_first() {
    let mut town = three();
    let convoy = town.convoy_with(|new| {
        new.title = Some("gt-a".to_owned());
        new.beads = vec!["gt-b".to_owned(), "gt-a".to_owned()];
    });
    assert_eq!(town.tracked(&convoy), ["gt-a", "gt-b"], "each once");
    assert_eq!(town.convoy_record(&convoy).title, "work on gt-a");
}

#[test]
fn a_convoy_may_take_all_open_work_below_an_epic() {
    let mut town = three();
    town.epic("gt-epic");
    town.epic("gt-sub");
    town.needs("gt-sub", "gt-epic", DepKind::ParentChild);
    town.needs("gt-a", "gt-epic", DepKind::ParentChild);
    town.needs("gt-b", "gt-sub", DepKind::ParentChild);
    town.child("gt-gate", "gt-epic");
    town.does(&Command::BeadUpdate {
        id: "gt-gate".to_owned(),
        change: yard_engine::bead::BeadChange { kind: Some("decision".to_owned()), ..Default::default() },
    });
    let from = |epic: &str| {
        Command::ConvoyCreate(Box::new(yard_engine::command::NewConvoy {
            from_epic: Some(epic.to_owned()),
            ..Default::default()
        }))
    };
    let Answer::Created { ids } = town.does(&from("gt-epic")) else { panic!("created") };
    assert_eq!(town.tracked(&ids[0]), ["gt-a", "gt-b"]);
    assert_eq!(town.convoy_record(&ids[0]).title, "Convoy: work on gt-epic");
    assert_eq!(town.refuses(&from("gt-c")).code, "empty-epic");
}

#[test]
fn what_a_convoy_is_made_of_must_be_there() {
    let mut town = three();
    let create = |change: &dyn Fn(&mut yard_engine::command::NewConvoy)| {
        let mut new = yard_engine::command::NewConvoy { title: Some("x".to_owned()), ..Default::default() };
        change(&mut new);
        Command::ConvoyCreate(Box::new(new))
    };
    assert_eq!(town.refuses(&create(&|new| new.beads = vec!["gt-nobody".to_owned()])).code, "unknown-bead");
    assert_eq!(town.refuses(&create(&|new| new.title = None)).code, "no-title");
    assert_eq!(town.refuses(&create(&|new| new.title = Some(String::new()))).code, "bad-title");
    assert_eq!(town.refuses(&create(&|new| new.base_branch = Some("-x".to_owned()))).code, "bad-text");
}

#[test]
fn a_convoy_of_closed_beads_is_complete_from_the_start_and_an_empty_one_never() {
    let mut town = three();
    town.close("gt-a");
    let complete = town.convoy(&["gt-a"]);
    let empty = town.convoy(&[]);
    assert_eq!(town.convoy_record(&complete).status(), "closed");
    town.does(&check(None, false));
    assert_eq!(town.convoy_record(&empty).status(), "open");
    town.does(&close_of(&empty, false));
    assert_eq!(town.convoy_record(&empty).status(), "closed", "only by hand");
}

// Adding.

#[test]
fn adding_to_a_closed_convoy_opens_it_again() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a"]);
    town.close("gt-a");
    assert_eq!(town.convoy_record(&convoy).status(), "closed");
    assert!(changed(&town.does(&add_of(&convoy, &["gt-b", "gt-a", "gt-b"]))));
    assert_eq!((town.tracked(&convoy), town.convoy_record(&convoy).status()), (vec!["gt-a", "gt-b"], "open"));
    assert_eq!(town.start(), ["gt-b"]);
    town.exits_ok("gt-b");
    assert_eq!((town.convoy_record(&convoy).status(), town.count("convoy.closed")), ("closed", 2));
}

#[test]
fn adding_what_is_tracked_already_changes_nothing() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a"]);
    town.close("gt-a");
    let before = town.log.len();
    assert!(!changed(&town.does(&add_of(&convoy, &["gt-a"]))));
    assert_eq!(town.kinds_since(before), [""; 0]);
    assert_eq!(town.refuses(&add_of(&convoy, &["gt-b", "gt-nobody"])).code, "unknown-bead");
    assert_eq!(town.refuses(&add_of("hq-cv-none", &["gt-b"])).code, "unknown-convoy");
}

#[test]
fn adding_only_closed_work_to_a_closed_convoy_closes_it_again() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a"]);
    town.close("gt-a");
    town.close("gt-b");
    town.does(&add_of(&convoy, &["gt-b"]));
    assert_eq!(town.convoy_record(&convoy).status(), "closed");
}

// Coming to an end.

#[test]
fn a_convoy_across_rigs_closes_with_the_last_of_all() {
    let mut town = three();
    let mut tracker = town.workspace("ox", "ox");
    tracker.has_needing("ox-a", &["external:gastown:gt-a"]);
    town.reads(&mut tracker);
    let convoy = town.convoy(&["gt-a", "ox-a"]);
    assert_eq!(town.start(), ["gt-a"]);
    town.exits_ok("gt-a");
    assert_eq!(town.start(), ["ox-a"]);
    assert_eq!(town.convoy_record(&convoy).status(), "open");
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!(town.convoy_record(&convoy).status(), "closed");
}

#[test]
fn a_bead_of_two_convoys_completes_both_in_the_same_decision() {
    let mut town = three();
    let (first, second) = (town.convoy(&["gt-a"]), town.convoy(&["gt-a"]));
    town.close("gt-a");
    assert_eq!(town.convoy_record(&first).status(), "closed");
    assert_eq!(town.convoy_record(&second).status(), "closed");
}

#[test]
fn a_bead_that_vanished_keeps_its_convoy_open() {
    let mut town = three();
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    town.reads(&mut tracker);
    let convoy = town.convoy(&["gt-a", "ox-a"]);
    let lost = tracker.loses("ox-a");
    town.reads(&mut tracker);
    town.close("gt-a");
    assert_eq!(town.convoy_record(&convoy).status(), "open", "nobody knows whether its work was done");
    assert_eq!(town.stranded(), [(convoy.clone(), vec!["ox-a".to_owned()])]);
    tracker.regains(lost);
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!(town.convoy_record(&convoy).status(), "closed");
}

#[test]
fn the_end_of_a_convoy_is_told_once_to_whoever_watches() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a"]);
    town.does(&watch_of(&convoy, "bob", true));
    town.does(&watch_of(&convoy, "eve", true));
    town.close("gt-a");
    let [news] = town.alerts_of(AlertKind::ConvoyClosed)[..] else { panic!("told once") };
    assert_eq!(
        (&news.watchers, &news.ids),
        (&vec!["bob".to_owned(), "eve".to_owned()], &vec![convoy.clone()])
    );
    let id = news.id.clone();
    town.act(|tx| tx.alert_told(&id, None));
    town.does(&check(Some(&convoy), false));
    town.scan();
    town.restart();
    assert_eq!((town.alert_kinds(), town.count("alert.raised")), (Vec::new(), 1));
}

#[test]
fn a_convoy_that_ends_again_is_told_again() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a"]);
    town.close("gt-a");
    town.does(&add_of(&convoy, &["gt-b"]));
    town.close("gt-b");
    assert_eq!(town.alerts_of(AlertKind::ConvoyClosed).len(), 2);
}

#[test]
fn convoys_that_slings_make_by_themselves_are_nobodys_news_unless_watched() {
    let mut town = three();
    town.sling(&["gt-a"]);
    let watched = town.sling_one("gt-b").convoy_id.expect("a convoy").to_string();
    town.does(&watch_of(&watched, "bob", true));
    town.close("gt-a");
    assert_eq!((town.count("convoy.closed"), town.alert_kinds()), (1, Vec::new()));
    town.close("gt-b");
    assert_eq!(town.alert_kinds(), [AlertKind::ConvoyClosed]);
}

// Watching.

#[test]
fn watching_and_not_watching_any_more() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a"]);
    assert!(changed(&town.does(&watch_of(&convoy, "bob", true))));
    assert!(!changed(&town.does(&watch_of(&convoy, "bob", true))));
    assert!(changed(&town.does(&watch_of(&convoy, "bob", false))));
    assert!(!changed(&town.does(&watch_of(&convoy, "bob", false))));
    assert_eq!(town.refuses(&watch_of(&convoy, "bob\u{1b}[2J", true)).code, "bad-text");
    town.close("gt-a");
    assert_eq!(town.refuses(&watch_of(&convoy, "bob", true)).code, "closed");
    let [news] = town.alerts_of(AlertKind::ConvoyClosed)[..] else { panic!("told once") };
    assert!(news.watchers.is_empty());
}

// Checking, closing, landing.

#[test]
fn a_check_finds_nothing_to_do_because_convoys_close_by_themselves() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a"]);
    assert!(!changed(&town.does(&check(None, false))));
    assert!(!changed(&town.does(&check(Some(&convoy), true))));
    assert_eq!(town.refuses(&check(Some("hq-cv-none"), false)).code, "unknown-convoy");
    town.close("gt-a");
    assert!(!changed(&town.does(&check(None, false))));
}

#[test]
fn a_convoy_with_open_beads_is_closed_only_by_force_and_its_beads_stay() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a", "gt-b"]);
    town.close("gt-a");
    let refusal = town.refuses(&close_of(&convoy, false));
    assert!(refusal.code == "open-beads" && refusal.message.ends_with("gt-b"), "{refusal}");
    assert!(changed(&town.does(&close_of(&convoy, true))));
    assert!(!changed(&town.does(&close_of(&convoy, true))));
    assert_eq!(town.standing("gt-b"), Standing::Open);
}

#[test]
fn a_convoy_closed_by_force_lets_running_work_go_on() {
    let mut town = three();
    let convoy = town.convoy(&["gt-a"]);
    town.start();
    town.does(&close_of(&convoy, true));
    town.exits_ok("gt-a");
    assert_eq!((town.standing("gt-a"), town.count("convoy.closed")), (Standing::Closed, 1));
}

#[test]
fn an_owned_convoy_waits_for_its_owner_to_land_it() {
    let mut town = three();
    let convoy = town.owned_convoy(&["gt-a"]);
    assert_eq!(town.refuses(&land_of(&convoy, false)).code, "open-beads");
    town.close("gt-a");
    assert_eq!(town.convoy_record(&convoy).status(), "open");
    town.does(&check(None, false));
    assert_eq!((town.convoy_record(&convoy).status(), town.stranded()), ("open", Vec::new()));
    let dry = Command::ConvoyLand { id: convoy.clone(), force: false, dry_run: true };
    assert!(!changed(&town.does(&dry)));
    assert_eq!(town.convoy_record(&convoy).status(), "open");
    assert!(changed(&town.does(&land_of(&convoy, false))));
    assert!(!changed(&town.does(&land_of(&convoy, false))));
    assert_eq!(town.convoy_record(&convoy).status(), "closed");
}

#[test]
fn only_owned_convoys_under_way_are_landed() {
    let mut town = three();
    let plain = town.convoy(&["gt-a"]);
    assert_eq!(town.refuses(&land_of(&plain, true)).code, "not-owned");
    let owned = town.owned_convoy(&["gt-b"]);
    assert!(changed(&town.does(&land_of(&owned, true))), "by force also with open beads");
    assert_eq!(town.standing("gt-b"), Standing::Open);
}

#[test]
fn a_convoy_closed_by_force_is_opened_again_by_naming_one_of_its_open_beads() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b"]);
    let convoy = town.convoy(&["gt-a", "gt-b"]);
    town.does(&close_of(&convoy, true));
    assert!(changed(&town.does(&add_of(&convoy, &["gt-a"]))));
    assert_eq!((town.convoy_record(&convoy).status(), town.tracked(&convoy)), ("open", vec!["gt-a", "gt-b"]));
}

#[test]
fn what_a_fed_convoy_will_ask_for_is_queued_or_blocked_before_it_has_a_context() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    town.convoy(&["gt-a", "gt-b"]);
    assert_eq!((town.standing("gt-a"), town.standing("gt-b")), (Standing::Queued, Standing::Blocked));
}
