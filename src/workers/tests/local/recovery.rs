//! A new daemon finds out what became of the old one's dispatches.

use yard_engine::Millis;
use yard_workers::{ExitCause, Recovered, WorkerReport};

use crate::yard::{Yard, alive, eventually, id, kill, parent};

/// Starts orders under a daemon in another process and kills that when the first program runs.
fn orphaned(scripts: &[(&str, &[&str])]) -> Yard {
    let yard = Yard::closed();
    let orders: Vec<_> = scripts.iter().map(|(name, steps)| (*name, yard.spec(name, steps))).collect();
    let mut daemon = yard.daemon(&orders);
    for (name, _) in scripts {
        let claim = yard.claim(name);
        eventually("it has begun", || {
            let text = std::fs::read_to_string(&claim).unwrap_or_default();
            text.contains("running") || text.contains("failed")
        });
    }
    daemon.kill().expect("killed");
    daemon.wait().expect("gone");
    yard
}

const UNTIL_GO: &str = "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; exit 12";

fn adopted(yard: &mut Yard, dispatch: &str) -> u32 {
    match yard.pool().recover(&id(dispatch)).expect("found out") {
        Recovered::Adopted { running } => running.expect("it runs").0,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn exit_codes_survive_the_death_of_the_daemon() {
    let mut yard = orphaned(&[("gt-a@1", &[UNTIL_GO])]);
    std::fs::write(yard.file("go"), "").expect("written");
    let claim = yard.claim("gt-a@1");
    // Nobody listens; the record is there all the same.
    eventually("recorded", || std::fs::read_to_string(&claim).is_ok_and(|text| text.contains("exit")));
    yard.open();
    let mut found = yard.pool().recover(&id("gt-a@1")).expect("found out");
    // The record is written a moment before the lock is released.
    eventually("released", || {
        found = yard.pool().recover(&id("gt-a@1")).expect("found out");
        !matches!(found, Recovered::Adopted { .. })
    });
    match found {
        Recovered::Ended(exit) => assert_eq!((exit.code, exit.cause), (Some(12), ExitCause::Exit)),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_running_dispatch_is_adopted_and_its_end_reported() {
    let mut yard = orphaned(&[("gt-a@1", &[UNTIL_GO, "exit 13"])]);
    yard.open();
    let pid = adopted(&mut yard, "gt-a@1");
    assert_eq!(pid, yard.number_in("pid"));
    assert!(matches!(yard.pool().probe(&id("gt-a@1")), Ok(Recovered::Adopted { running: Some(_) })));
    std::fs::write(yard.file("go"), "").expect("written");
    assert_eq!(yard.ended("gt-a@1").code, Some(12));
    assert!(!alive(pid));
}

pub(crate) fn an_adopted_dispatch_can_be_stopped() {
    let mut yard = orphaned(&[("gt-a@1", &["trap '' TERM; echo up; while :; do sleep 1; done"])]);
    yard.open();
    let pid = adopted(&mut yard, "gt-a@1");
    eventually("ready", || yard.log("gt-a@1").contains("up"));
    yard.pool().request_stop(&id("gt-a@1"), Millis(100), "enough").expect("asked");
    let exit = yard.ended("gt-a@1");
    assert_eq!(
        (exit.cause, exit.signal, exit.note.as_deref()),
        (ExitCause::Stopped, Some(9), Some("enough"))
    );
    assert!(!alive(pid));
}

pub(crate) fn the_death_of_an_adopted_shim_is_noticed() {
    let mut yard = orphaned(&[("gt-a@1", &["sleep 600"])]);
    yard.open();
    let pid = adopted(&mut yard, "gt-a@1");
    kill(parent(pid), "KILL");
    assert!(matches!(yard.last("gt-a@1"), WorkerReport::Lost { .. }));
    assert!(!alive(pid));
    // Found out again, it is the same.
    assert!(matches!(yard.pool().recover(&id("gt-a@1")), Ok(Recovered::Lost(_))));
}

pub(crate) fn what_nobody_claimed_is_revoked() {
    let mut yard = Yard::new();
    std::fs::write(yard.claim("gt-a@1"), "").expect("written");
    for dispatch in ["gt-a@1", "gt-absent@1"] {
        for _ in 0..2 {
            assert_eq!(yard.pool().recover(&id(dispatch)).expect("found out"), Recovered::NeverRan);
        }
        assert!(std::fs::read_to_string(yard.claim(dispatch)).expect("a claim").contains("revoked"));
    }
}

pub(crate) fn a_start_failure_survives_the_death_of_the_daemon() {
    let yard = Yard::closed();
    let mut spec = yard.spec("gt-a@1", &[""]);
    spec.steps[0].argv = vec!["no-such-program".into()];
    let mut daemon = yard.daemon(&[("gt-a@1", spec)]);
    let claim = yard.claim("gt-a@1");
    eventually("failed", || std::fs::read_to_string(&claim).is_ok_and(|text| text.contains("failed")));
    daemon.kill().expect("killed");
    daemon.wait().expect("gone");
    let mut yard = yard;
    yard.open();
    let mut found = Recovered::NeverRan;
    eventually("released", || {
        found = yard.pool().recover(&id("gt-a@1")).expect("found out");
        !matches!(found, Recovered::Adopted { .. })
    });
    assert!(
        matches!(&found, Recovered::StartFailed(error) if error.contains("no-such-program")),
        "{found:?}"
    );
}

/// Kills a daemon in the middle of its starts, again and again, and compares what really ran with what the claims say.
pub(crate) fn nothing_is_lost_or_doubled_when_the_daemon_is_killed() {
    for round in 0..15u64 {
        let mut yard = Yard::closed();
        let names: Vec<String> = (0..25).map(|n| format!("gt-{n}@1")).collect();
        let orders: Vec<_> = names
            .iter()
            .map(|name| {
                (name.as_str(), yard.spec(name, &[&format!("echo x >> ran-{name}; sleep 0.02; exit 14")]))
            })
            .collect();
        let mut daemon = yard.daemon(&orders);
        let begun = yard.claim("gt-0@1");
        eventually("it begins", || begun.exists());
        // Not a wait for something, but the moment of death: another one in each round.
        std::thread::sleep(std::time::Duration::from_micros(round * 700));
        daemon.kill().expect("killed");
        daemon.wait().expect("gone");
        yard.open();
        for name in &names {
            let mark = yard.file(&format!("ran-{name}"));
            let found = yard.pool().recover(&id(name)).expect("found out");
            match found {
                Recovered::NeverRan => assert!(!mark.exists(), "{name} never ran"),
                Recovered::Ended(exit) => assert_eq!(exit.code, Some(14)),
                Recovered::Adopted { .. } => assert_eq!(yard.ended(name).code, Some(14)),
                Recovered::Lost(_) | Recovered::StartFailed(_) => {
                    panic!("{name}: {found:?}")
                }
            }
        }
        // Every dispatch that was not revoked ran once, and none is running now.
        for name in &names {
            let ran = std::fs::read_to_string(yard.file(&format!("ran-{name}"))).unwrap_or_default();
            match yard.pool().recover(&id(name)).expect("found out") {
                Recovered::NeverRan => assert_eq!(ran, ""),
                Recovered::Ended(_) => assert_eq!(ran, "x\n"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

pub(crate) fn a_very_long_run_directory_works() {
    let mut yard = Yard::with_run_dir(&"deep/".repeat(40));
    yard.start("gt-a@1", &["exit 15"]);
    assert_eq!(yard.ended("gt-a@1").code, Some(15));
}

pub(crate) fn claims_that_a_dead_daemon_had_no_time_to_forget_are_removed() {
    let mut yard = Yard::new();
    yard.start("gt-over@1", &["true"]);
    yard.ended("gt-over@1");
    yard.start("gt-busy@1", &["while [ ! -e go ]; do sleep 0.01; done"]);
    yard.running("gt-busy@1");
    yard.start("gt-live@1", &["true"]);
    yard.ended("gt-live@1");
    yard.pool().forget_all_but(&[id("gt-live@1")].into());
    eventually("what is over is gone", || !yard.claim("gt-over@1").exists());
    assert!(yard.claim("gt-live@1").exists(), "the journal still wants to know about it");
    assert!(yard.claim("gt-busy@1").exists(), "somebody holds it");
    std::fs::write(yard.file("go"), "").expect("written");
    yard.ended("gt-busy@1");
}
