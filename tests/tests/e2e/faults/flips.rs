//! A flipped bit in the journal or its WAL: what `ym` answers is what it would have answered without it, or a refusal.

use std::path::PathBuf;

use serde_json::Value;
use yard_tests::dice::Dice;
use yard_tests::town::{Town, wait_until};

use super::share;

const FILES: [&str; 3] = ["journal.db", "journal.db-wal", "journal.db-tip"];

/// The questions, and where an answer must be the same.
const QUESTIONS: [&[&str]; 7] = [
    &["status"],
    &["scheduler", "status"],
    &["bead", "list", "--all"],
    &["convoy", "list", "--all"],
    &["why", "y-5"],
    &["show", "y-top"],
    &["events"],
];

/// Its answer, or none where it refuses for the sake of the journal.
fn answer(town: &Town, question: &[&str]) -> Option<Vec<Value>> {
    let ran = town.run(std::iter::once("--json").chain(question.iter().copied()));
    let said: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    if ran.code == 0 {
        return Some(said);
    }
    let said = said.last().expect("an error object");
    assert_eq!(said["error"]["code"], "journal", "{question:?}: {said}");
    assert!(!said["error"]["message"].as_str().unwrap_or_default().is_empty());
    None
}

fn folder(town: &Town) -> PathBuf {
    town.root().join(".yardmaster")
}

fn put(town: &Town, files: &[(&str, Vec<u8>)]) {
    let _ = std::fs::remove_file(folder(town).join("journal.db-shm"));
    for (name, bytes) in files {
        let path = folder(town).join(name);
        if bytes.is_empty() {
            let _ = std::fs::remove_file(path);
        } else {
            std::fs::write(path, bytes).expect("written");
        }
    }
}

/// A town that has seen some work, ended well or by a crash, with a checkpoint or without.
fn town(checkpoint: bool, crashed: bool) -> (Town, Vec<(&'static str, Vec<u8>)>) {
    let mut town = Town::here();
    town.set("scheduler.max_polecats", "2");
    let beads = if checkpoint { 360 } else { 12 };
    let line = |n| serde_json::json!({"id": format!("y-{n}"), "argv": ["true"]}).to_string();
    let lines: Vec<String> = (0..beads).map(line).collect();
    town.run_with_input(["add", "--file", "-"], lines.join("\n").as_bytes()).ok();
    town.start_daemon();
    town.run(["wait", "--all"]).ok();
    if checkpoint {
        let taken = || town.json(["journal", "check"])["checkpoint_seq"].as_u64() > Some(0);
        wait_until("a checkpoint", taken);
    }
    town.shell_bead("y-top", "exit 0");
    town.run(["convoy", "create", "tour", "y-top", "--owned"]).ok();
    town.run(["scheduler", "pause", "--reason", "for the night"]).ok();
    if crashed {
        town.kill_daemon();
    } else {
        town.stop_daemon();
    }
    let files =
        FILES.map(|name| (name, std::fs::read(folder(&town).join(name)).unwrap_or_default())).to_vec();
    assert_eq!(!files[1].1.is_empty(), crashed, "a crash leaves a WAL");
    (town, files)
}

fn flip(checkpoint: bool, crashed: bool) {
    let mut dice = Dice::new();
    let (town, whole) = town(checkpoint, crashed);
    put(&town, &whole);
    let truth: Vec<_> = QUESTIONS.iter().map(|it| answer(&town, it).expect("it is whole")).collect();
    let mut refused = 0;
    for round in 0..share(15, 250) {
        let mut files = whole.clone();
        // The WAL is made in advance: what is behind its last frame means nothing.
        let used = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        let sizes = [files[0].1.len() as u64, used(&files[1].1)];
        let at = dice.below(sizes[0] + sizes[1]);
        let (file, at) = if at < sizes[0] { (0, at) } else { (1, at - sizes[0]) };
        let bit = dice.below(8);
        files[file].1[at as usize] ^= 1 << bit;
        let what = format!("bit {bit} of byte {at} of {}", files[file].0);
        put(&town, &files);
        for (question, truth) in QUESTIONS.iter().zip(&truth) {
            match answer(&town, question) {
                Some(answer) => assert!(answer == *truth, "{what}: {question:?} is answered wrongly"),
                None => refused += 1,
            }
        }
        if round % 5 == 0 {
            // Whoever writes on it is refused, or changes nothing else.
            let added = town.run(["bead", "add", "new", "--id", "y-new"]);
            let events = answer(&town, &["events"]);
            if let (0, Some(events)) = (added.code, events) {
                let before = &truth[QUESTIONS.len() - 1];
                assert!(events[..before.len()] == before[..], "{what}: the past has changed");
            }
            for file in ["journal.db-wal", "journal.db-tip"] {
                let _ = std::fs::remove_file(folder(&town).join(file));
            }
        }
    }
    assert!(refused > 0, "no flip was ever noticed");
}

#[test]
fn a_flipped_bit_of_a_town_that_ended_well() {
    flip(false, false);
}

#[test]
fn a_flipped_bit_of_a_town_with_a_checkpoint() {
    flip(true, false);
}

#[test]
fn a_flipped_bit_after_a_crash() {
    flip(false, true);
}

#[test]
fn a_flipped_bit_after_a_crash_with_a_checkpoint() {
    flip(true, true);
}
