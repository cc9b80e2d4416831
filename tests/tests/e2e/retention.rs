//! A town that keeps results for a few seconds: what is over is forgotten, and the log begins later, with the town as it
//! was then. None of it is lost by `kill -9`.

use std::collections::BTreeSet;

use serde_json::json;
use yard_client::{Ask, Attached, Connection, Request};
use yard_daemon::TownDir;
use yard_engine::{Event, Recorded, Seq, State};
use yard_journal::Reader;
use yard_tests::town::{Town, wait_until};
use yard_tests::world::fold;

/// So many beads are more events than a copy of the checkpoint has to be worth, and than a checkpoint waits for.
const BEADS: u64 = 400;

fn town_that_forgets() -> Town {
    let town = Town::local();
    town.set("scheduler.max_polecats", "8");
    town.set("scheduler.safety_scan", "100ms");
    town.set("results.ttl", "3s");
    town
}

/// Runs many short beads to their end; says the first one's name.
fn much_work(town: &Town, wave: &str) -> String {
    let item = |n: u64| json!({"id": format!("y-{wave}{n}"), "argv": ["true"]}).to_string();
    let items: Vec<String> = (0..BEADS).map(item).collect();
    town.run_with_input(["add", "--file", "-"], items.join("\n").as_bytes()).ok();
    assert_eq!(town.json(["wait", "--all"])["failed"], json!([]));
    format!("y-{wave}0")
}

fn log(town: &Town) -> Reader {
    TownDir::at(town.root()).expect("a town").reader().expect("a journal")
}

/// The last event that was cut off.
fn beginning(town: &Town) -> Seq {
    log(town).beginning().expect("a log")
}

/// Where the copies of checkpoints stand.
fn copies(town: &Town) -> BTreeSet<Seq> {
    let entries = std::fs::read_dir(town.root().join(".yardmaster")).expect("a folder").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let stands = |name: String| {
        let (seq, _) = name.strip_prefix("past-")?.strip_suffix(".db")?.split_once('-')?;
        seq.parse().ok().map(Seq)
    };
    names.filter_map(stands).collect()
}

fn await_forgotten(town: &Town, id: &str) {
    wait_until(&format!("{id} is forgotten"), || {
        let shown = town.run(["--json", "show", id]);
        shown.code != 0 && shown.error_code() == "unknown-bead"
    });
}

/// What a console is told that goes through the past: where it begins, the town as it was then with everything since
/// folded in, and how many events those were.
fn replay(town: &Town) -> (Seq, State, u64) {
    let mut connection = Connection::open(&town.root().join(".yardmaster")).expect("a daemon serves");
    let request = Request { actor: "test".to_owned(), ask: Ask::Past };
    let (mut begins, mut records, mut events) = (None, Vec::new(), Vec::new());
    let answer = connection.ask(&request, |item| {
        match serde_json::from_str(item.get()).expect("an item") {
            Attached::Begin { seq, .. } => begins = Some(seq),
            Attached::Records(some) => records.extend(some),
            Attached::Events(some) => events.extend(some),
        }
        true
    });
    answer.expect("an answer").expect("no refusal");
    let begins = begins.expect("a beginning");
    let rows = records.iter().map(|(kind, id, body)| (kind.as_str(), id.as_str(), body.get()));
    let mut state = State::restore(begins, rows).expect("the town as it was");
    for (seq, at, kind, body) in &events {
        assert_eq!(*seq, state.seq().next(), "no event is missing");
        let event = Event::from_stored(kind, body.get()).expect("an event");
        state.apply(&Recorded { seq: *seq, at: *at, event });
    }
    (begins, state, events.len() as u64)
}

/// Whether a console that has seen events up to here, and comes back, is sent the whole state.
fn is_told_anew(town: &Town, since: Seq) -> bool {
    let mut connection = Connection::open(&town.root().join(".yardmaster")).expect("a daemon serves");
    let request = Request { actor: "test".to_owned(), ask: Ask::Attach { since: Some(since) } };
    let mut anew = false;
    let answer = connection.ask(&request, |item| {
        let begin = serde_json::from_str(item.get()).expect("an item");
        anew = matches!(begin, Attached::Begin { records: Some(_), .. });
        false
    });
    answer.expect("an answer").expect("no refusal");
    anew
}

/// The journal is sound, and begins with a copy of a checkpoint, from which a replay leads to the town as it is.
fn check_all(town: &Town) {
    let report = log(town).check().expect("it can be looked at");
    assert!(report.is_sound(), "{:?}", report.problems);
    town.run(["journal", "check"]).ok();
    let mut seen = None;
    wait_until("a moment in which the log is not being cut", || {
        let before = beginning(town);
        let whole = copies(town).contains(&before);
        seen =
            Some(replay(town)).filter(|(begins, ..)| whole && *begins == before && beginning(town) == before);
        seen.is_some()
    });
    let (begins, state, events) = seen.expect("a replay");
    assert_eq!(state.seq(), Seq(begins.0 + events));
    let now = fold(&log(town).load().expect("a log")).expect("a state");
    if now.seq() == state.seq() {
        state.check_same_as(&now).expect("the replay leads to the town as it is");
    }
    assert_eq!(town.state_of("y-keep"), "open", "what is not over stays");
}

#[test]
fn results_are_forgotten_and_the_log_is_cut_although_the_daemon_is_killed_again_and_again() {
    let mut town = town_that_forgets();
    town.run(["bead", "add", "not over", "--id", "y-keep"]).ok();
    town.start_daemon();
    let first = much_work(&town, "a");
    assert_eq!(beginning(&town), Seq(0), "everything is still there");
    wait_until("a copy of the checkpoint", || !copies(&town).is_empty());
    town.kill_daemon();
    town.start_daemon();
    await_forgotten(&town, &first);
    wait_until("the log begins later", || beginning(&town) > Seq(0));
    town.kill_daemon();
    town.start_daemon();
    wait_until("it begins with a copy", || copies(&town).contains(&beginning(&town)));
    let then = beginning(&town);
    assert!(is_told_anew(&town, Seq(then.0 - 1)), "who has not seen what was cut off misses nothing");
    let goes_on = !is_told_anew(&town, then);
    assert!(goes_on || beginning(&town) > then, "who has seen it goes on from there");
    check_all(&town);

    let second = much_work(&town, "b");
    await_forgotten(&town, &second);
    wait_until("the log begins later still, and what is needless is gone", || {
        beginning(&town) > then && copies(&town).first() == Some(&beginning(&town))
    });
    check_all(&town);
    town.kill_daemon();
    town.start_daemon();
    check_all(&town);
}
