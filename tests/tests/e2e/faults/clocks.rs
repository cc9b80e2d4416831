//! A wall clock that is set, back or forward, while the daemon runs and between two runs: one that is set back holds up
//! nothing, moments come when the clock says so, and the log never goes back.

use std::path::{Path, PathBuf};

use yard_tests::town::Town;

/// A clock that a test sets: libfaketime reads the offset from a file, and leaves the steady clock alone.
struct WallClock {
    file: PathBuf,
    library: PathBuf,
}

impl WallClock {
    fn new(town: &Town) -> Self {
        let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
        let found =
            places.iter().map(|it| Path::new(it).join("faketime/libfaketime.so.1")).find(|it| it.exists());
        let library = found.expect("libfaketime is missing: tests/run installs faketime");
        let clock = Self { file: town.root().join("clock"), library };
        clock.set("+0");
        clock
    }

    /// So far from the real time: `+1d`, `-2h`.
    fn set(&self, offset: &str) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{offset}\n")).expect("a file");
        std::fs::rename(new, &self.file).expect("a file");
    }

    fn environment(&self) -> [(&str, &str); 5] {
        let (library, file) = (self.library.to_str().expect("utf-8"), self.file.to_str().expect("utf-8"));
        [
            ("LD_PRELOAD", library),
            ("FAKETIME_TIMESTAMP_FILE", file),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
    }

    fn start_daemon(&self, town: &mut Town) -> u32 {
        town.start_daemon_with(&self.environment())
    }

    /// A command of somebody who has the same clock on the wall.
    fn ask(&self, town: &Town, words: &[&str]) {
        let output = town.command(words).envs(self.environment()).output().expect("ym runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

fn town() -> (Town, WallClock) {
    let town = Town::new();
    town.set("scheduler.max_polecats", "2");
    let clock = WallClock::new(&town);
    (town, clock)
}

fn add(town: &Town, script: &str) -> String {
    town.run(["-q", "add", "--", "sh", "-c", script]).ok().stdout.trim().to_owned()
}

/// The times of the log never go back.
fn times_are_in_order(town: &Town) {
    let events = town.events(None);
    let times: Vec<&str> = events.iter().filter_map(|it| it["at"].as_str()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_clock_set_back_holds_up_nothing() {
    let (mut town, clock) = town();
    town.set("retry.crash.backoff", r#"["1s"]"#);
    town.set("retry.crash.max_attempts", "2");
    clock.start_daemon(&mut town);
    let first = add(&town, "exit 0");
    town.await_state(&first, "closed");
    clock.set("-1d");
    let second = add(&town, "exit 0");
    town.await_state(&second, "closed");
    // A wait of a second lasts a second, and not a day.
    let failing = add(&town, "exit 3");
    town.await_state(&failing, "failed");
    times_are_in_order(&town);
    clock.ask(&town, &["scheduler", "pause", "--for", "1s"]);
    let third = add(&town, "exit 0");
    town.await_state(&third, "closed");
    town.stop_daemon();
    times_are_in_order(&town);
}

#[test]
fn a_clock_set_back_between_two_runs_holds_up_nothing() {
    let (mut town, clock) = town();
    town.set("retry.crash.backoff", r#"["1s"]"#);
    town.set("retry.crash.max_attempts", "2");
    clock.set("+10d");
    clock.start_daemon(&mut town);
    let first = add(&town, "exit 0");
    town.await_state(&first, "closed");
    town.stop_daemon();
    clock.set("+0");
    clock.start_daemon(&mut town);
    let second = add(&town, "exit 0");
    town.await_state(&second, "closed");
    let failing = add(&town, "exit 3");
    town.await_state(&failing, "failed");
    // What a person names is of his own clock, which is ten days behind the log.
    town.shell_bead("y-later", "exit 0");
    town.run(["sling", "y-later", "--not-before", "2h"]).ok();
    town.run(["scheduler", "run"]).ok();
    assert_eq!(
        (town.state_of("y-later"), town.reasons_of("y-later")),
        ("queued".into(), vec!["not-before".into()])
    );
    town.shell_bead("y-soon", "exit 0");
    town.run(["sling", "y-soon", "--deadline", "1h"]).ok();
    town.await_state("y-soon", "closed");
    town.run(["scheduler", "pause", "--for", "1s"]).ok();
    let paused = add(&town, "exit 0");
    town.await_state(&paused, "closed");
    town.stop_daemon();
    times_are_in_order(&town);
}

#[test]
fn a_clock_set_forward_brings_moments_about() {
    let (mut town, clock) = town();
    clock.start_daemon(&mut town);
    town.shell_bead("y-later", "exit 0");
    town.run(["sling", "y-later", "--not-before", "2h"]).ok();
    town.run(["scheduler", "run"]).ok();
    assert_eq!(town.state_of("y-later"), "queued");
    clock.set("+3h");
    town.await_state("y-later", "closed");
    times_are_in_order(&town);
    town.stop_daemon();
}
