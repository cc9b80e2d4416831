//! Alerts: one per condition, told once, gone when the condition is.

use yard_engine::alert::AlertKind;
use yard_engine::{Command, Millis};

use crate::town::Town;
use crate::words::changed;

fn ack(id: &str) -> Command {
    Command::AlertAck { id: id.to_owned() }
}

/// A town in which gt-a was given up.
fn given_up() -> Town {
    let mut town = Town::deferred(5);
    town.configure(|s| s.retry_crash.max_attempts = 1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.start();
    town.crashes("gt-a");
    town
}

#[test]
fn a_bead_that_was_given_up_is_one_alert_with_the_last_words_of_its_worker() {
    let town = given_up();
    let [alert] = town.alerts_of(AlertKind::BeadFailed)[..] else { panic!("one alert") };
    assert_eq!(alert.ids, ["gt-a"]);
    assert!(alert.message.contains("exit 1"), "{}", alert.message);
}

#[test]
fn a_bead_that_could_not_be_started_is_one_alert() {
    let mut town = Town::deferred(5);
    town.configure(|s| s.max_dispatch_failures = 2);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pass();
    town.start_fails("gt-a", "no such program");
    assert_eq!(town.alert_kinds(), [], "it is tried again");
    town.run(None, false);
    town.start_fails("gt-a", "no such program");
    let [alert] = town.alerts_of(AlertKind::CircuitBroken)[..] else { panic!("one alert") };
    assert!(alert.message.contains("no such program"), "{}", alert.message);
}

#[test]
fn what_a_person_called_off_is_no_news() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    assert_eq!(town.alert_kinds(), []);
}

#[test]
fn an_alert_ends_when_the_bead_is_asked_for_again_or_closes() {
    let mut town = given_up();
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!(town.alert_kinds(), []);
    let mut town = given_up();
    town.sling(&["gt-a"]);
    assert_eq!(town.alert_kinds(), []);
    let mut town = given_up();
    town.close("gt-a");
    assert_eq!(town.alerts_of(AlertKind::BeadFailed).len(), 0);
}

#[test]
fn a_bead_that_fails_again_is_told_again() {
    let mut town = given_up();
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    town.start();
    town.crashes("gt-a");
    assert_eq!((town.alert_kinds(), town.count("alert.raised")), (vec![AlertKind::BeadFailed], 2));
}

#[test]
fn an_alert_is_told_once_and_again_after_a_crash_in_between() {
    let mut town = given_up();
    let id = town.state.untold_alerts().next().expect("untold").id.clone();
    town.restart();
    let again = town.state.untold_alerts().next().expect("nobody knows whether it was told").id.clone();
    assert_eq!(again, id, "under the same id");
    town.act(|tx| tx.alert_told(&id, Some("exit 1".to_owned())));
    assert_eq!((town.state.untold_alerts().count(), town.state.alerts().count()), (0, 1));
    let before = town.log.len();
    town.act(|tx| tx.alert_told(&id, None));
    assert_eq!(town.kinds_since(before), [""; 0]);
}

#[test]
fn an_alert_that_somebody_has_seen_is_kept_out_of_sight_until_its_condition_is_over() {
    let mut town = given_up();
    let id = town.state.alerts().next().expect("raised").id.to_string();
    assert!(changed(&town.does(&ack(&id))));
    assert!(!changed(&town.does(&ack(&id))));
    assert_eq!((town.state.alerts().count(), town.state.all_alerts().count()), (0, 1));
    assert_eq!(town.refuses(&ack("al-none")).code, "unknown-alert");
    town.advance(Millis::minutes(600));
    town.scan();
    assert_eq!(town.state.alerts().count(), 0, "it is not raised anew");
}

#[test]
fn a_mistake_in_the_config_file_is_one_alert_that_follows_it() {
    let mut town = Town::new();
    for mistake in [Some("line 3"), Some("line 3"), Some("line 4"), None, None] {
        town.act(|tx| tx.config_mistake(mistake));
        let told: Vec<&str> = town.state.alerts().map(|alert| alert.message.as_str()).collect();
        assert_eq!(told, Vec::from_iter(mistake));
    }
    assert_eq!((town.count("alert.raised"), town.count("alert.ended")), (2, 2));
}
