//! Claims: one step, one winner.

use std::process::Stdio;

use yard_tests::town::Town;

use super::{register, town_with};

const CROWD: usize = 64;

/// Lets everybody claim one bead at once; says who has it.
fn race(town: &Town, bead: &str) -> String {
    let claims: Vec<_> = (0..CROWD)
        .map(|number| {
            let name = format!("a{number}");
            let mut command = town.command(["--json", "agent", "claim", bead, "--as", &name]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            (name, command.spawn().expect("ym can be run"))
        })
        .collect();
    let (mut winners, mut told) = (Vec::new(), Vec::new());
    for (name, claim) in claims {
        let output = claim.wait_with_output().expect("it ends");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an answer");
        if output.status.success() {
            assert_eq!(answer["agent"], name);
            winners.push(name);
        } else {
            assert_eq!(answer["error"]["code"], "claimed", "{answer}");
            told.push(answer["error"]["message"].as_str().expect("words").to_owned());
        }
    }
    assert_eq!(winners.len(), 1, "{bead}: {winners:?}");
    let words = format!("{bead} is claimed by {} ({bead}@1)", winners[0]);
    assert!(told.iter().all(|message| *message == words), "{told:?}");
    winners.remove(0)
}

/// Everything that happened but signs of life.
fn changes(town: &Town) -> usize {
    town.events(None).iter().filter(|event| event["type"] != "agent.heard").count()
}

#[test]
fn of_64_processes_that_claim_one_bead_at_once_exactly_one_has_it_and_the_others_know_who() {
    let town = town_with(&[]);
    for number in 0..CROWD {
        register(&town, &format!("a{number}"));
    }
    for round in 0..100 {
        let bead = format!("y-{round}");
        town.run(["bead", "add", &bead, "--id", &bead]).ok();
        let winner = race(&town, &bead);
        let before = changes(&town);
        let again = town.json(["agent", "claim", &bead, "--as", &winner]);
        assert_eq!(
            (again["already"].as_bool(), again["dispatch_id"].as_str()),
            (Some(true), Some(&*format!("{bead}@1")))
        );
        assert_eq!(changes(&town), before, "claiming again changes nothing");
        town.run(["agent", "done", &bead, "--as", &winner]).ok();
    }
    assert_eq!(town.events(Some("dispatch.started")).len(), 100);
}

#[test]
fn claims_are_as_safe_when_nobody_serves_the_town() {
    let town = Town::new();
    for number in 0..CROWD {
        register(&town, &format!("a{number}"));
    }
    town.run(["bead", "add", "alone", "--id", "y-1"]).ok();
    race(&town, "y-1");
}

#[test]
fn only_who_is_known_claims_what_is_ready() {
    let town = town_with(&["fern"]);
    town.run(["bead", "add", "first", "--id", "y-1"]).ok();
    town.run(["bead", "add", "second", "--id", "y-2", "--needs", "y-1"]).ok();
    assert_eq!(town.refused(["agent", "claim", "y-1", "--as", "nobody"]), "unknown-agent");
    assert_eq!(town.refused(["agent", "claim", "y-2", "--as", "fern"]), "blocked-by");
    assert_eq!(town.refused(["agent", "claim", "y-9", "--as", "fern"]), "unknown-bead");
    assert_eq!(town.refused(["agent", "claim", "y-1"]), "no-agent");
    assert_eq!(town.refused(["agent", "claim", "y-1", "--as", "../fern"]), "bad-id");
    assert_eq!(town.refused(["agent", "done", "y-1", "--as", "fern"]), "not-claimed");
    assert_eq!(town.refused(["agent", "register", "reed", "--program", " "]), "no-program");
    assert_eq!(town.json(["agent", "list"])["agents"].as_array().map(Vec::len), Some(1));
}
