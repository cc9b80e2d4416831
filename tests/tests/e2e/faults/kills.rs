//! `kill -9` of daemon, fork server and shims at random, in any mix, while short beads run.

use yard_tests::dice::Dice;
use yard_tests::town::{Town, kill_nine, wait_until};

use super::load::{Load, named};
use super::share;

#[test]
fn random_kills_of_daemon_fork_server_and_shims_lose_and_double_nothing() {
    let (beads, kills) = (share(300, 2000), share(30, 300));
    let mut dice = Dice::new();
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "4");
    town.set("retry.crash.backoff", r#"["0s"]"#);
    // A failing bead uses them all; one whose shim was killed needs a few.
    town.set("retry.crash.max_attempts", "6");
    let mut load = Load::new(&town, 20);
    town.start_daemon();
    let (mut added, mut killed, mut shims) = (0, 0, 0);
    while killed < kills {
        // There is always work under way when somebody dies.
        let share = beads * (killed + 1) / kills - added;
        wait_until("work to go on", || load.noted("ended").len() >= added);
        load.add_many(&town, share, 50);
        added += share;
        wait_until("some of it to run", || share == 0 || load.noted("started").len() + share > added);
        // One, or several in the same moment.
        let mut daemon = false;
        for _ in 0..=dice.below(3) {
            match dice.below(4) {
                0 => daemon = true,
                1 => killed += named(&town, "ym-forkserver").into_iter().map(kill_nine).count(),
                _ => {
                    let candidates = named(&town, "ym-shim");
                    if !candidates.is_empty() {
                        kill_nine(candidates[dice.below(candidates.len() as u64) as usize]);
                        (killed, shims) = (killed + 1, shims + 1);
                    }
                }
            }
        }
        if daemon {
            killed += 1;
            town.kill_daemon();
            town.start_daemon();
        }
    }
    load.add_many(&town, beads - added, 50);
    let waited = town.run(["--json", "wait", "--all"]);
    assert_eq!(waited.json()["stuck"], serde_json::json!([]), "{}", waited.stderr);
    town.stop_daemon();
    let lost = load.check(&town);
    assert!(lost <= shims, "{lost} dispatches lost, {shims} shims killed");
    assert_eq!(town.processes(), Vec::<u32>::new(), "nothing is left behind");
}
