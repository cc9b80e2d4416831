//! Next in line: an order given to a shim that is still busy. Only pooled shims take one.

use yard_workers::{LinePlace, Recovered, StartOrder, Surface, WorkerReport};

use crate::yard::{Yard, eventually, id, kill, parent};

/// Lines a dispatch up behind another; its script runs once the other has ended.
fn line_up(yard: &mut Yard, dispatch: &str, after: &str, script: &str) {
    let spec = yard.spec(dispatch, &[script]);
    let order = StartOrder { dispatch: id(dispatch), spec, surface: Surface::None };
    yard.pool().start_after(order, &id(after), LinePlace::First).expect("handed over");
}

pub(crate) fn who_is_in_line_begins_in_the_same_shim_when_the_one_before_has_ended() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["while [ ! -e go ]; do sleep 0.01; done; touch first"]);
    let shim = parent(yard.running("gt-a@1"));
    line_up(&mut yard, "gt-b@1", "gt-a@1", "test -e first && while [ ! -e on ]; do sleep 0.01; done");
    assert_eq!(yard.rest().len(), 0, "nothing is heard of it before its turn");
    std::fs::write(yard.file("go"), "").expect("written");
    assert_eq!(yard.ended("gt-a@1").code, Some(0));
    assert_eq!(parent(yard.running("gt-b@1")), shim);
    std::fs::write(yard.file("on"), "").expect("written");
    assert_eq!(yard.ended("gt-b@1").code, Some(0));
}

pub(crate) fn who_is_called_back_never_starts_and_the_shim_goes_on_with_others() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["while [ ! -e go ]; do sleep 0.01; done"]);
    yard.running("gt-a@1");
    line_up(&mut yard, "gt-b@1", "gt-a@1", "touch never");
    let too_late = yard.pool().call_back(&id("gt-b@1"), &id("gt-a@1")).expect("looked at");
    assert!(too_late.is_none());
    assert!(!yard.claim("gt-b@1").exists());
    line_up(&mut yard, "gt-c@1", "gt-a@1", "true");
    std::fs::write(yard.file("go"), "").expect("written");
    assert_eq!(yard.ended("gt-a@1").code, Some(0));
    assert_eq!(yard.ended("gt-c@1").code, Some(0));
    yard.start("gt-d@1", &["true"]);
    assert_eq!(yard.ended("gt-d@1").code, Some(0));
    assert!(!yard.file("never").exists());
    assert!(yard.rest().iter().all(|report| report.dispatch() != &id("gt-b@1")));
}

pub(crate) fn two_in_line_begin_one_after_the_other_in_the_same_shim() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["while [ ! -e go ]; do sleep 0.01; done"]);
    let shim = parent(yard.running("gt-a@1"));
    line_up(&mut yard, "gt-b@1", "gt-a@1", "echo b >> order");
    line_up(&mut yard, "gt-c@1", "gt-b@1", "echo c >> order; while [ ! -e on ]; do sleep 0.01; done");
    let spec = yard.spec("gt-d@1", &["true"]);
    let order = StartOrder { dispatch: id("gt-d@1"), spec, surface: Surface::None };
    assert!(yard.pool().start_after(order, &id("gt-b@1"), LinePlace::Second).is_err(), "that place is taken");
    std::fs::write(yard.file("go"), "").expect("written");
    assert_eq!(yard.ended("gt-b@1").code, Some(0));
    assert_eq!(parent(yard.running("gt-c@1")), shim);
    std::fs::write(yard.file("on"), "").expect("written");
    assert_eq!(yard.ended("gt-c@1").code, Some(0));
    assert_eq!(std::fs::read_to_string(yard.file("order")).expect("written"), "b\nc\n");
    let spec = yard.spec("gt-e@1", &["true"]);
    let order = StartOrder { dispatch: id("gt-e@1"), spec, surface: Surface::None };
    assert!(
        yard.pool().start_after(order, &id("gt-c@1"), LinePlace::Second).is_err(),
        "it is not in line any more"
    );
}

pub(crate) fn who_cannot_be_called_back_any_more_tells_how_the_one_before_ended() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["while [ ! -e go ]; do sleep 0.01; done; exit 7"]);
    yard.running("gt-a@1");
    line_up(&mut yard, "gt-b@1", "gt-a@1", "touch second; while [ ! -e on ]; do sleep 0.01; done");
    std::fs::write(yard.file("go"), "").expect("written");
    // The pool is not attended to meanwhile: it knows nothing of what has happened.
    eventually("the second runs", || yard.file("second").exists());
    match yard.pool().call_back(&id("gt-b@1"), &id("gt-a@1")).expect("looked at") {
        Some(Recovered::Ended(exit)) => assert_eq!(exit.code, Some(7)),
        other => panic!("{other:?}"),
    }
    std::fs::write(yard.file("on"), "").expect("written");
    assert_eq!(yard.ended("gt-b@1").code, Some(0));
}

pub(crate) fn who_is_in_line_behind_a_dead_shim_never_runs() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["sleep 1000"]);
    let shim = parent(yard.running("gt-a@1"));
    line_up(&mut yard, "gt-b@1", "gt-a@1", "touch never");
    kill(shim, "KILL");
    assert!(matches!(yard.last("gt-b@1"), WorkerReport::NeverRan { .. }));
    assert!(matches!(yard.last("gt-a@1"), WorkerReport::Lost { .. }));
    assert!(!yard.file("never").exists());
}
