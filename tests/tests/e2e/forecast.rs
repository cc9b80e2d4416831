//! When it will be done, by the command line.

use serde_json::Value;
use yard_engine::Timestamp;
use yard_tests::town::Town;

fn bead(town: &Town, id: &str, needs: &[&str], script: &str) {
    let mut args = vec!["bead", "add", id, "--id", id];
    for on in needs {
        args.extend(["--needs", on]);
    }
    args.extend(["--", "sh", "-c", script]);
    town.run(args).ok();
}

fn time(value: &Value) -> Timestamp {
    Timestamp::parse_rfc3339(value.as_str().expect("a time")).expect("a time")
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|step| step["id"].as_str()).collect()
}

#[test]
fn a_convoy_is_forecast_before_its_launch_and_followed_after_it() {
    let mut town = Town::new();
    assert!(town.run(["forecast"]).ok().stdout.contains("Nothing to do"));
    assert_eq!(town.json(["forecast"])["finish"], Value::Null);
    town.set("scheduler.max_polecats", "1");
    for id in ["y-p1", "y-p2", "y-p3"] {
        bead(&town, id, &[], "sleep 0.1");
        town.run(["sling", id]).ok();
    }
    bead(&town, "y-a", &[], "sleep 1000");
    bead(&town, "y-b", &[], "sleep 1000");
    bead(&town, "y-c", &["y-a", "y-b"], "true");
    let staged = town.json(["convoy", "stage", "y-a", "y-b", "y-c"]);
    let convoy = staged["convoy_id"].as_str().expect("a convoy").to_owned();

    let guess = town.json(["forecast", &convoy]);
    assert_eq!(
        (&guess["status"], &guess["left"], &guess["unmeasured"]),
        (&"staged:warnings".into(), &3.into(), &3.into())
    );
    assert_eq!(guess["dispatching"], false);
    assert!(town.run(["forecast", &convoy]).ok().stdout.contains("No daemon runs"));

    town.start_daemon();
    town.run(["wait", "y-p1", "y-p2", "y-p3", "--timeout", "60s"]).ok();
    let measured = town.json(["forecast", &convoy]);
    assert_eq!((&measured["unmeasured"], &measured["dispatching"]), (&0.into(), &true.into()));
    assert_eq!(ids(&measured["critical_path"]), ["y-a", "y-b", "y-c"]);
    assert!(time(&measured["finish"]["p50"]) <= time(&measured["finish"]["p90"]));
    assert!(time(&measured["finish"]["p50"]) < time(&guess["finish"]["p50"]), "they take no ten minutes");
    let more = &measured["what_if"][0];
    assert_eq!(more["command"], "ym config set scheduler.max_polecats 2");

    town.run(["convoy", "launch", &convoy, "--force"]).ok();
    town.await_state("y-a", "running");
    let launched = town.json(["forecast", &convoy, "--max-polecats", "7"]);
    assert_eq!(launched["waves"][0]["total"], 2);
    assert!(launched["slip_ms"].is_i64(), "{launched}");
    assert_eq!(launched["what_if"].as_array().map(Vec::len), Some(1));
    assert!(time(&town.json(["convoy", "status", &convoy])["eta"]) > time(&launched["at"]));

    town.run(["hold", "y-b"]).ok();
    let held = town.json(["forecast"]);
    assert_eq!(ids(&held["stuck"]), ["y-b", "y-c"]);
    let text = town.run(["forecast", &convoy]).ok().stdout;
    assert!(text.contains("; ym unhold y-b") && text.contains("without what is stuck"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(town.refused(["forecast", "hq-cv-nobody"]), "unknown-convoy");
}
