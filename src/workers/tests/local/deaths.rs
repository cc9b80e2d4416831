//! What happens when a part of the machinery dies.

use yard_workers::WorkerReport;

use crate::yard::{Yard, alive, eventually, kill, parent};

pub(crate) fn a_killed_shim_takes_its_worker_with_it() {
    let mut yard = Yard::new();
    let script =
        "(setsid sh -c 'trap \"\" TERM; echo $$ > far; while :; do sleep 1; done' &); exec sleep 600";
    yard.start("gt-a@1", &[script]);
    let pid = yard.running("gt-a@1");
    let far = yard.number_in("far");
    kill(parent(pid), "KILL");
    let report = yard.last("gt-a@1");
    assert!(matches!(&report, WorkerReport::Lost { why, .. } if why.contains("shim died")), "{report:?}");
    assert!(!alive(pid) && !alive(far));
    // The next dispatch gets a new shim.
    yard.start("gt-a@2", &["true"]);
    yard.ended("gt-a@2");
}

pub(crate) fn a_process_that_hides_ends_with_its_killed_shim_where_there_are_control_groups() {
    let mut yard = Yard::new();
    let script =
        "(setsid env -i /bin/sh -c 'echo $$ > far; while :; do /bin/sleep 1; done' &); exec sleep 600";
    yard.start("gt-a@1", &[script]);
    let pid = yard.running("gt-a@1");
    let far = yard.number_in("far");
    let claim = std::fs::read_to_string(yard.claim("gt-a@1")).expect("a claim");
    kill(parent(pid), "KILL");
    let report = yard.last("gt-a@1");
    assert!(matches!(&report, WorkerReport::Lost { .. }), "{report:?}");
    if claim.contains("\"group\"") {
        assert!(!alive(far), "it had no environment and no session, and was found in the group");
    } else {
        // As the manual says: without control groups such a process escapes.
        kill(far, "KILL");
    }
}

pub(crate) fn the_death_of_the_fork_server_harms_nobody() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["while [ ! -e go ]; do sleep 0.01; done; exit 8"]);
    let server = parent(parent(yard.running("gt-a@1")));
    kill(server, "KILL");
    eventually("it is dead", || !alive(server));
    yard.start("gt-b@1", &["exit 9"]);
    assert_eq!(yard.ended("gt-b@1").code, Some(9));
    std::fs::write(yard.file("go"), "").expect("written");
    assert_eq!(yard.ended("gt-a@1").code, Some(8));
}

pub(crate) fn a_dead_idle_shim_is_replaced() {
    let mut yard = Yard::new();
    for n in 1..=10 {
        let dispatch = format!("gt-a@{n}");
        yard.start(&dispatch, &["echo $PPID"]);
        // Killed while idle, with the next order perhaps already on its way.
        match yard.last(&dispatch) {
            WorkerReport::Ended { exit, .. } => assert_eq!(exit.code, Some(0)),
            WorkerReport::NeverRan { .. } => assert!(yard.log(&dispatch).is_empty()),
            other => panic!("{other:?}"),
        }
        if let Ok(shim) = yard.log(&dispatch).trim().parse() {
            kill(shim, "KILL");
        }
    }
}

pub(crate) fn a_revoked_claim_is_never_started() {
    let yard = Yard::closed();
    let spec = yard.spec("gt-a@1", &["touch started"]);
    let file = yard.order_file("order", &spec);
    assert_eq!(yard.shim("gt-a@1", &file), Some(75), "no claim");
    std::fs::write(yard.claim("gt-a@1"), "anything").expect("written");
    assert_eq!(yard.shim("gt-a@1", &file), Some(75), "not empty");
    std::fs::write(yard.claim("gt-a@1"), "").expect("written");
    let lock = std::fs::File::open(yard.claim("gt-a@1")).expect("opened");
    lock.lock().expect("locked");
    assert_eq!(yard.shim("gt-a@1", &file), Some(75), "held by another");
    drop(lock);
    let mut yard = yard;
    yard.open();
    let found = yard.pool().recover(&crate::yard::id("gt-a@1")).expect("found out");
    assert_eq!(found, yard_workers::Recovered::NeverRan);
    assert_eq!(yard.shim("gt-a@1", &file), Some(75), "revoked");
    assert!(!yard.file("started").exists());
}

pub(crate) fn a_standalone_shim_runs_its_order_once() {
    let mut yard = Yard::closed();
    let spec = yard.spec("gt-a@1", &["echo x >> started; exit 11"]);
    let file = yard.order_file("order", &spec);
    std::fs::write(yard.claim("gt-a@1"), "").expect("written");
    assert_eq!(yard.shim("gt-a@1", &file), Some(0));
    let file = yard.order_file("order", &spec);
    assert_eq!(yard.shim("gt-a@1", &file), Some(75));
    assert_eq!(std::fs::read_to_string(yard.file("started")).expect("it ran"), "x\n");
    yard.open();
    match yard.pool().recover(&crate::yard::id("gt-a@1")).expect("found out") {
        yard_workers::Recovered::Ended(exit) => assert_eq!(exit.code, Some(11)),
        other => panic!("{other:?}"),
    }
}

/// Kills shims and fork servers in the middle of their work: each order gets one final report, and it is true.
pub(crate) fn every_order_gets_one_true_end_under_random_kills() {
    let mut yard = Yard::new();
    let names: Vec<String> = (0..240).map(|n| format!("gt-{n}@1")).collect();
    let mut lost = 0;
    for (batch, names) in names.chunks(8).enumerate() {
        for name in names {
            yard.start(name, &[&format!("echo x >> ran-{name}; sleep 0.00$(($$ % 9)); exit 3")]);
        }
        for (n, name) in names.iter().enumerate() {
            let running = yard
                .report(|r| r.dispatch().to_string() == *name && !matches!(r, WorkerReport::StepDone { .. }));
            if let WorkerReport::Running { pid, .. } = running {
                let shim = try_parent(pid);
                match (batch + n) % 5 {
                    0 => try_kill(shim),
                    1 if n == 4 => try_kill(shim.and_then(try_parent)),
                    _ => {}
                }
            } else {
                assert!(matches!(running, WorkerReport::NeverRan { .. }), "{running:?}");
                assert!(!yard.file(&format!("ran-{name}")).exists());
                continue;
            }
            let mark = yard.file(&format!("ran-{name}"));
            match yard.last(name) {
                WorkerReport::Ended { exit, .. } => {
                    assert_eq!(exit.code, Some(3));
                    assert_eq!(std::fs::read_to_string(mark).expect("it ran"), "x\n");
                }
                WorkerReport::Lost { .. } => {
                    lost += 1;
                    assert_ne!(std::fs::read_to_string(mark).unwrap_or_default(), "x\nx\n");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(lost > 0, "no kill hit anything");
    assert_eq!(yard.rest(), [], "an end was reported twice");
}

fn try_parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let parent: u32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
    // An orphan's parent is nobody to kill.
    let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    name.starts_with("ym-").then_some(parent)
}

fn try_kill(pid: Option<u32>) {
    if let Some(pid) = pid {
        let kill = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(kill.is_ok());
    }
}
