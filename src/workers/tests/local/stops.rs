//! Ending what runs.

use std::time::Instant;

use yard_engine::Millis;
use yard_workers::ExitCause;

use crate::yard::{RawShim, Yard, alive, eventually, id, kill, parent};

pub(crate) fn a_payload_that_ignores_sigterm_is_gone_after_the_grace() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"]);
    let pid = yard.running("gt-a@1");
    eventually("ready", || yard.log("gt-a@1").contains("ready"));
    yard.pool().request_stop(&id("gt-a@1"), Millis(200), "test").expect("asked");
    let exit = yard.ended("gt-a@1");
    assert_eq!((exit.signal, exit.cause, exit.note.as_deref()), (Some(9), ExitCause::Stopped, Some("test")));
    assert!(!alive(pid));
}

pub(crate) fn a_stop_reaches_the_whole_tree() {
    let mut yard = Yard::new();
    let script = "trap 'echo got it; exit 4' TERM; (setsid sh -c 'echo $$ > far; exec sleep 600') & \
                  sh -c 'echo $$ > near; exec sleep 600' & echo ready; wait; wait";
    yard.start("gt-a@1", &[script]);
    yard.running("gt-a@1");
    let (far, near) = (yard.number_in("far"), yard.number_in("near"));
    eventually("ready", || yard.log("gt-a@1").contains("ready"));
    yard.pool().request_stop(&id("gt-a@1"), Millis::seconds(20), "test").expect("asked");
    let exit = yard.ended("gt-a@1");
    // It ended within the grace, by its own decision.
    assert_eq!((exit.code, exit.cause), (Some(4), ExitCause::Stopped));
    assert_eq!(yard.log("gt-a@1"), "ready\ngot it\n");
    assert!(!alive(far) && !alive(near));
}

pub(crate) fn double_forked_children_end_with_their_dispatch() {
    let mut yard = Yard::new();
    // The second one also refuses to go and cleared its environment.
    let script = "(setsid sh -c 'echo $$ > one; exec sleep 600' &) ; \
                  (setsid env -i PATH=\"$PATH\" sh -c 'trap \"\" TERM; echo $$ > two; while :; do sleep 1; done' &) ; \
                  while [ ! -s one ] || [ ! -s two ]; do :; done; exit 5";
    yard.start("gt-a@1", &[script]);
    let exit = yard.ended("gt-a@1");
    assert_eq!((exit.code, exit.cause), (Some(5), ExitCause::Exit));
    assert!(!alive(yard.number_in("one")) && !alive(yard.number_in("two")));
}

pub(crate) fn a_late_stop_for_an_old_dispatch_is_ignored() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["echo $PPID"]);
    yard.ended("gt-a@1");
    yard.start("gt-b@1", &["echo $PPID; while [ ! -e go ]; do sleep 0.01; done; exit 6"]);
    let pid = yard.running("gt-b@1");
    let shim = parent(pid);
    assert_eq!(yard.log("gt-a@1").trim(), shim.to_string(), "the same shim");
    yard.pool().request_stop(&id("gt-a@1"), Millis(0), "too late").expect("asked");
    kill(shim, "USR1");
    // The signal has been taken when nothing is pending any more.
    eventually("the signal is taken", || {
        let status = std::fs::read_to_string(format!("/proc/{shim}/status")).expect("a process");
        status.lines().any(|line| line.trim_end() == "ShdPnd:\t0000000000000000")
    });
    std::fs::write(yard.file("go"), "").expect("written");
    let exit = yard.ended("gt-b@1");
    assert_eq!((exit.code, exit.cause), (Some(6), ExitCause::Exit));
}

pub(crate) fn a_step_ends_at_its_timeout() {
    let mut yard = Yard::new();
    let mut spec = yard.spec("gt-a@1", &["true", "sleep 600", "touch never"]);
    spec.steps[1].timeout = Some(Millis(50));
    yard.start_spec("gt-a@1", spec);
    let exit = yard.ended("gt-a@1");
    assert_eq!((exit.signal, exit.cause, exit.step.as_deref()), (Some(15), ExitCause::Timeout, Some("s2")));
    assert!(!yard.file("never").exists());
}

pub(crate) fn a_dispatch_ends_at_its_hard_cap() {
    let mut yard = Yard::new();
    let mut spec = yard.spec("gt-a@1", &["trap '' TERM; sleep 600 & wait; wait; sleep 600"]);
    spec.hard_cap = Some(Millis(100));
    yard.start_spec("gt-a@1", spec);
    let exit = yard.ended("gt-a@1");
    assert_eq!((exit.signal, exit.cause), (Some(9), ExitCause::HardCap));
}

pub(crate) fn sigterm_to_the_shim_is_a_stop() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["sleep 600"]);
    let pid = yard.running("gt-a@1");
    kill(parent(pid), "TERM");
    let exit = yard.ended("gt-a@1");
    assert_eq!((exit.signal, exit.cause), (Some(15), ExitCause::Stopped));
}

pub(crate) fn a_stopped_payload_can_still_be_ended() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["exec sleep 600"]);
    let pid = yard.running("gt-a@1");
    kill(pid, "STOP");
    yard.pool().request_stop(&id("gt-a@1"), Millis::seconds(20), "test").expect("asked");
    assert_eq!(yard.ended("gt-a@1").signal, Some(15));
}

pub(crate) fn a_shim_that_hangs_is_killed_after_the_grace() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["exec sleep 600"]);
    let pid = yard.running("gt-a@1");
    kill(parent(pid), "STOP");
    let begun = Instant::now();
    yard.pool().request_stop(&id("gt-a@1"), Millis(100), "test").expect("asked");
    let report = yard.last("gt-a@1");
    assert!(matches!(report, yard_workers::WorkerReport::Lost { .. }), "{report:?}");
    assert!(!alive(pid), "after {:?}", begun.elapsed());
}

/// Speaks to a shim directly, because the pool itself never says such a thing.
pub(crate) fn a_shim_obeys_only_stops_that_name_its_dispatch() {
    let yard = Yard::closed();
    let mut shim = RawShim::new();
    let stop = |dispatch: &str, reason: &str| {
        format!(r#"{{"stop":{{"dispatch":"{dispatch}","grace":0,"reason":"{reason}"}}}}"#)
    };
    let claim = yard.claim("gt-b@1");
    std::fs::write(&claim, "").expect("written");
    let spec = serde_json::to_string(&yard.spec("gt-b@1", &["exec sleep 600"])).expect("JSON");
    let place = claim.display();
    shim.say(&stop("gt-b@1", "too early"));
    shim.say(&format!(r#"{{"start":{{"dispatch":"gt-b@1","claim":"{place}","spec":{{"inline":{spec}}}}}}}"#));
    for other in ["gt-a@1", "gt-b@2", "gt-b@11"] {
        shim.say(&stop(other, "not for you"));
    }
    // Heard in order, so the record names the first one that was obeyed.
    shim.say(&stop("gt-b@1", "for you"));
    let text = || std::fs::read_to_string(&claim).expect("a claim");
    eventually("it ends", || text().contains("exit"));
    assert!(text().contains(r#""note":"for you""#), "{}", text());
}
