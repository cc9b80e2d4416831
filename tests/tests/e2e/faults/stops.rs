//! SIGSTOP of the payload, its shim, the fork server and the daemon: nobody starts a second copy, cancelling and stopping
//! still work, and everything goes on after SIGCONT.

use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use yard_tests::town::{Town, is_alive, kill_nine, parent_of, processes, wait_until};

use super::load::named;

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).expect("it is there");
}

/// Stops a process and waits until it stands.
fn stop(pid: u32) {
    send(pid, Signal::SIGSTOP);
    wait_until("it to stand", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    });
}

/// A town with a daemon and one bead that runs until it is let go, and then exits with 7.
struct Yard {
    town: Town,
    bead: String,
    worker: u32,
    go: PathBuf,
    started: PathBuf,
}

impl Yard {
    fn new() -> Self {
        Self::of(Town::new())
    }

    fn of(mut town: Town) -> Self {
        town.set("scheduler.max_polecats", "2");
        town.set("scheduler.safety_scan", "1s");
        town.set("limits.kill_grace", "1s");
        town.set("retry.crash.max_attempts", "1");
        town.start_daemon();
        let (go, started) = (town.root().join("go"), town.root().join("started"));
        let script = format!(
            "echo $YM_DISPATCH >> '{}'; while [ ! -e '{}' ]; do sleep 0.02; done; exit 7",
            started.display(),
            go.display()
        );
        let bead = town.run(["-q", "add", "--", "sh", "-c", &script]).ok().stdout.trim().to_owned();
        let mut worker = 0;
        wait_until("its program to run", || {
            worker = town.json(["status"])["running"][0]["pid"].as_u64().unwrap_or_default() as u32;
            worker != 0 && started.exists()
        });
        Self { town, bead, worker, go, started }
    }

    fn shim(&self) -> u32 {
        parent_of(self.worker).expect("its shim")
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(&self.started).unwrap_or_default().lines().count()
    }

    /// A few safety scans pass, and some other work is done.
    fn time_passes(&self) {
        for _ in 0..2 {
            self.town.run(["scheduler", "recover"]).ok();
            self.town.run(["scheduler", "run"]).ok();
        }
        assert_eq!((self.starts(), self.town.state_of(&self.bead).as_str()), (1, "running"));
    }

    /// It comes to its own end, and is known to have.
    fn ends_by_itself(&self) {
        std::fs::write(&self.go, "").expect("a file");
        self.town.await_state(&self.bead, "failed");
        let ends = self.town.events(Some("dispatch.ended"));
        let ends: Vec<_> = ends.iter().filter(|it| it["id"] == format!("{}@1", self.bead)).collect();
        assert_eq!((ends.len(), ends[0]["outcome"]["code"].as_i64(), self.starts()), (1, Some(7), 1));
    }

    fn cancels(&self) {
        self.town.run(["cancel", &self.bead]).ok();
        self.town.await_state(&self.bead, "cancelled");
        assert!(!is_alive(self.worker), "the worker has ended");
        assert_eq!(self.starts(), 1);
    }
}

#[test]
fn a_stopped_payload_is_not_started_again_and_goes_on() {
    let yard = Yard::new();
    stop(yard.worker);
    yard.time_passes();
    send(yard.worker, Signal::SIGCONT);
    yard.ends_by_itself();
}

#[test]
fn a_stopped_payload_can_be_cancelled() {
    let yard = Yard::new();
    stop(yard.worker);
    yard.cancels();
}

#[test]
fn a_stopped_shim_keeps_its_claim_and_goes_on() {
    let yard = Yard::new();
    let shim = yard.shim();
    stop(shim);
    yard.time_passes();
    std::fs::write(&yard.go, "").expect("a file");
    wait_until("the payload to end", || !is_alive(yard.worker));
    yard.town.run(["scheduler", "recover"]).ok();
    assert_eq!(yard.town.state_of(&yard.bead), "running", "only its shim knows how it ended");
    send(shim, Signal::SIGCONT);
    yard.ends_by_itself();
}

#[test]
fn a_stopped_shim_can_be_cancelled() {
    let yard = Yard::new();
    stop(yard.shim());
    yard.cancels();
}

#[test]
fn a_daemon_stops_although_a_shim_and_a_payload_are_stopped() {
    let mut yard = Yard::new();
    stop(yard.shim());
    stop(yard.worker);
    yard.town.stop_daemon();
    assert!(!is_alive(yard.worker));
    assert_eq!(yard.town.state_of(&yard.bead), "queued", "drained, to be run again");
}

#[test]
fn while_the_fork_server_is_stopped_work_waits_and_can_be_cancelled() {
    let mut yard = Yard::new();
    let server = named(&yard.town, "ym-forkserver")[0];
    stop(server);
    // Those that stand by would do.
    let is_idle = |shim: &u32| !processes().into_iter().any(|pid| parent_of(pid) == Some(*shim));
    let idle: Vec<u32> = named(&yard.town, "ym-shim").into_iter().filter(is_idle).collect();
    idle.iter().copied().for_each(kill_nine);
    wait_until("idle shims to be gone", || !idle.iter().any(|shim| is_alive(*shim)));
    let mark = yard.town.root().join("ran");
    let touch = format!("echo x >> '{}'", mark.display());
    let add = || yard.town.command(["-q", "add", "--", "sh", "-c", &touch]).output().expect("ym can be run");
    let id = String::from_utf8_lossy(&add().stdout).trim().to_owned();
    yard.town.run(["cancel", &id]).ok();
    yard.town.await_state(&id, "cancelled");
    let second = String::from_utf8_lossy(&add().stdout).trim().to_owned();
    yard.time_passes();
    assert!(!mark.exists());
    send(server, Signal::SIGCONT);
    yard.town.await_state(&second, "closed");
    assert_eq!(std::fs::read_to_string(&mark).expect("it ran"), "x\n", "once, and the cancelled one never");
    yard.ends_by_itself();
    yard.town.stop_daemon();
}

#[test]
fn a_daemon_stops_although_its_fork_server_is_stopped() {
    let mut yard = Yard::new();
    let server = named(&yard.town, "ym-forkserver")[0];
    stop(server);
    yard.town.stop_daemon();
    assert_eq!(yard.town.state_of(&yard.bead), "queued");
    send(server, Signal::SIGCONT);
    wait_until("the fork server to leave", || !is_alive(server));
}

#[test]
fn a_stopped_daemon_is_named_and_goes_on() {
    // In a database somebody else would take over.
    let yard = Yard::of(Town::here());
    let daemon = yard.town.daemon_pid().expect("a daemon");
    stop(daemon);
    let second = yard.town.run(["--daemon"]);
    assert_eq!(second.code, 1, "there is one already: {}", second.stderr);
    assert!(second.stderr.contains(&daemon.to_string()), "{}", second.stderr);
    let refused = yard.town.run(["--json", "bead", "add", "late", "--id", "y-late"]);
    assert_eq!(refused.error_code(), "busy", "{}", refused.stdout);
    assert!(refused.stdout.contains(&daemon.to_string()), "{}", refused.stdout);
    let status = yard.town.run(["status"]).ok();
    let told = format!("pid {daemon}, does not answer");
    assert!(status.stdout.contains(&told) && status.stderr.contains("what the journal says"), "{status:?}");
    let doctor = yard.town.run(["doctor"]);
    assert!(doctor.stdout.contains("does not answer"), "{}", doctor.stdout);
    std::fs::write(&yard.go, "").expect("a file");
    wait_until("the worker to end", || !is_alive(yard.worker));
    send(daemon, Signal::SIGCONT);
    yard.ends_by_itself();
    yard.town.run(["bead", "add", "late", "--id", "y-late"]).ok();
}
