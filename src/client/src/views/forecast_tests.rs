//! Forecasts as documents.

use yard_engine::convoy::{Convoy, ConvoyEvent, Staged};
use yard_engine::settings::Settings;
use yard_engine::town::TownEvent;
use yard_engine::{ConvoyId, Timestamp};

use super::super::testing::{Town, bead_id};
use super::*;

fn now() -> Timestamp {
    Timestamp::from_millis(1000)
}

/// shop-a and shop-b, then shop-c; one slot; shop-g waits for a decision.
fn town_with(staged: Option<Staged>) -> (Town, ConvoyId) {
    let mut town = Town::new();
    let settings = Settings { max_polecats: 1, ..Settings::default() };
    town.emit(TownEvent::SettingsChanged { settings: Box::new(settings) });
    town.bead("shop-a", "task", &[]);
    town.bead("shop-b", "task", &[]);
    town.bead("shop-c", "task", &[("shop-a", "blocks"), ("shop-b", "blocks")]);
    town.bead("shop-d", "decision", &[]);
    town.bead("shop-g", "task", &[("shop-d", "blocks")]);
    let id = ConvoyId::parse("hq-cv-abc12").expect("an id");
    let tracked = ["shop-a", "shop-b", "shop-c", "shop-g"].map(bead_id).to_vec();
    let convoy = Convoy {
        waves: vec![2, 1],
        staged,
        fed_since: staged.is_none().then(now),
        expected_end: Some(Timestamp::from_millis(1000)),
        ..Convoy::new(id.clone(), "Login".to_owned(), tracked, now())
    };
    town.emit(ConvoyEvent::Created { convoy: Box::new(convoy), actor: "ann".to_owned() });
    (town, id)
}

#[test]
fn a_convoy_is_forecast_wave_by_wave_with_what_holds_each() {
    let (town, id) = town_with(None);
    let view = forecast(&town.0, Some(&id), None, now(), true);
    assert_eq!((view.scope.as_str(), view.left, view.unmeasured), ("hq-cv-abc12", 3, 3));
    let path: Vec<&str> = view.critical_path.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(path, ["shop-a", "shop-b", "shop-c"]);
    assert_eq!(view.critical_path[1].limit.as_deref(), Some("town: 1 slot"));
    let waves: Vec<_> =
        view.waves.iter().map(|w| (w.number, w.done, w.total, w.bound_by.as_deref())).collect();
    assert_eq!(waves, [(1, 0, 2, Some("town: 1 slot")), (2, 0, 1, Some("shop-c"))]);
    let finish = view.finish.expect("it ends");
    assert_eq!(view.slip_ms, Some(finish.p50.as_millis() - 1000));
    assert_eq!(view.stuck.len(), 1);
    assert!(view.stuck[0].why.contains("shop-d"), "{:?}", view.stuck);
    let text = serde_json::to_string(&view).expect("a document");
    assert_eq!(serde_json::from_str::<ForecastView>(&text).expect("it can be read"), view);
}

#[test]
fn more_slots_are_tried_and_each_names_its_command() {
    let (town, id) = town_with(None);
    let view = forecast(&town.0, Some(&id), None, now(), true);
    let commands: Vec<&str> = view.what_if.iter().map(|what| what.command.as_str()).collect();
    let expected = [2, 3, 5].map(|n| format!("ym config set scheduler.max_polecats {n}"));
    assert_eq!(commands, expected);
    assert!(view.what_if[0].gain_ms > 0, "{:?}", view.what_if);
    assert_eq!(view.what_if[1].gain_ms, view.what_if[0].gain_ms, "two beads need no third slot");
    let asked = forecast(&town.0, Some(&id), Some(2), now(), true);
    assert_eq!(asked.what_if, view.what_if[..1]);
}

#[test]
fn a_staged_convoy_is_forecast_and_has_no_eta_yet() {
    let (town, id) = town_with(Some(Staged::Ready));
    let view = forecast(&town.0, Some(&id), None, now(), false);
    assert_eq!((view.status.as_deref(), view.left), (Some("staged:ready"), 3));
    assert_eq!(convoy_eta(&town.0, &id, now()), None);
    assert_eq!(forecast(&town.0, None, None, now(), true).left, 0, "the town has not been asked for it");
}

#[test]
fn a_convoy_has_an_eta_once_nothing_of_it_is_stuck() {
    let (mut town, id) = town_with(None);
    assert_eq!(convoy_eta(&town.0, &id, now()), None);
    town.close("shop-g");
    assert!(convoy_eta(&town.0, &id, now()).is_some());
}
