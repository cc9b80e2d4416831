//! A damaged, missing, older or newer journal: a clear word from every command, a repair only by `ym doctor --fix`, which
//! says what is lost and keeps the damaged files.

use std::path::PathBuf;

use yard_tests::town::{Ran, Town, wait_until};

use super::load::Load;

/// A town in which a few things have happened, and nobody serves.
fn town() -> Town {
    let town = Town::here();
    for id in ["y-a", "y-b", "y-c"] {
        town.shell_bead(id, "exit 0");
    }
    town
}

fn journal(town: &Town) -> PathBuf {
    town.root().join(".yardmaster/journal.db")
}

fn tamper(town: &Town, sql: &str) {
    let conn = rusqlite::Connection::open(journal(town)).expect("a journal");
    conn.execute_batch(sql).expect("it can be changed");
}

/// Whatever is asked is refused, by a code and with a hint of what to do.
fn assert_refused(town: &Town) {
    for args in [vec!["status"], vec!["bead", "list"], vec!["bead", "add", "x"], vec!["--daemon"]] {
        let ran = town.run(std::iter::once("--json").chain(args.iter().copied()));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 1, "{args:?}: {said}");
        assert!(said.contains("journal"), "{args:?}: {said}");
    }
}

fn doctor(town: &Town, fix: bool) -> Ran {
    town.run(["doctor", "--fix"].into_iter().take(1 + usize::from(fix)))
}

fn line(ran: &Ran) -> String {
    let line = ran.stdout.lines().find(|line| line.contains(" journal ")).unwrap_or_default();
    line.to_owned()
}

/// The folders that damaged journals were put into.
fn aside(town: &Town) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(town.root().join(".yardmaster")).expect("a folder").flatten();
    let names = entries.map(|entry| entry.path());
    names.filter(|path| path.to_string_lossy().contains("journal-damaged-")).collect()
}

#[test]
fn a_damaged_event_is_named_and_what_precedes_it_is_kept() {
    let town = town();
    let events = town.events(None).len();
    tamper(&town, &format!("UPDATE events SET body = '{{}}' WHERE seq = {events}"));
    assert_refused(&town);
    let said = doctor(&town, false);
    assert_eq!(said.code, 1);
    assert!(line(&said).contains(&format!("1 event is lost ({events})")), "{}", line(&said));
    assert!(line(&said).contains("--fix"), "{}", line(&said));
    assert_eq!(aside(&town), Vec::<PathBuf>::new(), "nothing is done without being asked");
    let fixed = doctor(&town, true);
    assert_eq!(fixed.code, 0, "{}", fixed.stdout);
    assert!(line(&fixed).contains(&format!("1 event is lost ({events})")), "{}", line(&fixed));
    assert_eq!(aside(&town).len(), 1);
    assert!(line(&fixed).contains(&*aside(&town)[0].to_string_lossy()), "{}", line(&fixed));
    assert_eq!(town.events(None).len(), events - 1);
    assert_eq!(town.run(["--json", "why", "y-c"]).code, 1, "it was added by the lost event");
    town.run(["bead", "add", "again", "--id", "y-c"]).ok();
    assert!(line(&doctor(&town, false)).contains("sound"));
}

#[test]
fn a_journal_is_not_repaired_while_somebody_serves_the_town() {
    let mut town = town();
    town.start_daemon();
    tamper(&town, "UPDATE events SET body = '{}' WHERE seq = 2");
    let fixed = doctor(&town, true);
    assert_eq!(fixed.code, 1);
    assert!(line(&fixed).contains("not repaired"), "{}", line(&fixed));
    assert!(line(&fixed).contains("already served"), "{}", line(&fixed));
    assert_eq!(aside(&town), Vec::<PathBuf>::new());
}

#[test]
fn a_file_that_is_no_journal_any_more_is_put_aside_and_the_town_begins_anew() {
    let town = town();
    let events = town.events(None).len();
    std::fs::write(journal(&town), "dear diary ".repeat(1000)).expect("written");
    assert_refused(&town);
    assert!(line(&doctor(&town, false)).contains("begins anew"));
    let fixed = doctor(&town, true);
    assert!(line(&fixed).contains(&format!("{events} events are lost")), "{}", line(&fixed));
    assert!(aside(&town)[0].join("journal.db").exists());
    let root = town.root().to_str().expect("utf-8");
    town.run(["init", root, "--prefix", "y"]).ok();
    town.shell_bead("y-a", "exit 0");
    town.run(["sling", "y-a"]).ok();
    town.run(["wait", "y-a"]).ok();
}

#[test]
fn a_deleted_journal_is_missed() {
    let town = town();
    std::fs::remove_file(journal(&town)).expect("it was there");
    assert_refused(&town);
    assert!(!journal(&town).exists(), "no empty one was put in its place");
    assert_eq!(doctor(&town, true).code, 0);
    let root = town.root().to_str().expect("utf-8");
    town.run(["init", root, "--prefix", "y"]).ok();
}

#[test]
fn a_town_without_any_trace_of_its_journal_is_not_taken_for_an_empty_one() {
    let town = town();
    for name in ["journal.db", "journal.db-tip"] {
        std::fs::remove_file(journal(&town).with_file_name(name)).expect("it was there");
    }
    assert_refused(&town);
    assert!(!journal(&town).exists(), "no empty one was put in its place");
    let said = doctor(&town, false);
    assert!(said.code == 1 && line(&said).contains("ym init"), "{}", line(&said));
    let root = town.root().to_str().expect("utf-8");
    town.run(["init", root, "--prefix", "y"]).ok();
    town.shell_bead("y-a", "exit 0");
}

/// What lies behind the damage may still be found by a person, as long as nobody throws it away.
#[test]
fn a_damaged_wal_is_left_as_it_is_by_whoever_is_refused() {
    let mut town = town();
    town.start_daemon();
    town.shell_bead("y-d", "exit 0");
    town.kill_daemon();
    let path = journal(&town).with_file_name("journal.db-wal");
    let mut wal = std::fs::read(&path).expect("a crash leaves it");
    wal[156] ^= 1;
    std::fs::write(&path, &wal).expect("written");
    let commands: [&[&str]; 6] = [
        &["status"],
        &["add", "--", "true"],
        &["scheduler", "pause"],
        &["wait", "--all"],
        &["--daemon"],
        &["doctor"],
    ];
    for command in commands {
        assert_eq!(town.run(command).code, 1, "{command:?}");
        assert!(std::fs::read(&path).is_ok_and(|now| now == wal), "after {command:?}");
    }
    assert_eq!(doctor(&town, true).code, 0);
    assert!(std::fs::read(aside(&town)[0].join("journal.db-wal")).is_ok_and(|now| now == wal));
}

#[test]
fn a_newer_journal_is_refused_and_left_alone() {
    let town = town();
    tamper(&town, "PRAGMA user_version = 99");
    let before = std::fs::read(journal(&town)).expect("readable");
    assert_refused(&town);
    let fixed = doctor(&town, true);
    assert_eq!(fixed.code, 1);
    assert!(line(&fixed).contains("use the newer ym"), "{}", line(&fixed));
    assert_eq!(std::fs::read(journal(&town)).expect("readable"), before);
}

#[test]
fn a_truncated_journal_is_refused_and_its_beginning_is_kept() {
    let town = town();
    let events = town.events(None);
    let bytes = std::fs::read(journal(&town)).expect("readable");
    for size in [bytes.len() / 2, bytes.len() - 4096, 5000, 100, 0] {
        std::fs::write(journal(&town), &bytes[..size]).expect("written");
        assert_refused(&town);
        let fixed = doctor(&town, true);
        assert_eq!(fixed.code, 0, "cut to {size}: {}", fixed.stdout);
        assert!(line(&fixed).contains("lost"), "{}", line(&fixed));
        if journal(&town).exists() {
            let kept = town.events(None);
            assert_eq!(kept, events[..kept.len()], "cut to {size}");
        }
        // The next one is cut from the whole one; its note must not be that of the mended one.
        let note = aside(&town)[0].join("journal.db-tip");
        std::fs::copy(note, town.root().join(".yardmaster/journal.db-tip")).expect("the first note");
        std::fs::remove_file(journal(&town)).unwrap_or_default();
    }
}

/// What was lost may have started a worker that still runs. The bead must not run beside it.
#[test]
fn a_worker_that_the_repaired_journal_does_not_know_ends_before_its_bead_runs_again() {
    let mut town = Town::here();
    town.set("scheduler.max_polecats", "2");
    let load = Load::new(&town, 1_000_000);
    let mut add: Vec<String> = ["bead", "add", "long", "--id", "y-long", "--"].map(str::to_owned).to_vec();
    add.extend(load.argv(0));
    town.run(&add).ok();
    town.run(["sling", "y-long"]).ok();
    let before = town.events(None).len();
    town.start_daemon();
    wait_until("it to run", || load.noted("started").contains("y-long@1"));
    town.kill_daemon();
    // All that the daemon wrote is gone.
    tamper(&town, &format!("DELETE FROM events WHERE seq > {before}"));
    assert_refused(&town);
    assert_eq!(doctor(&town, true).code, 0);
    town.start_daemon();
    wait_until("it to run again", || load.noted("started").contains("y-long@2"));
    assert!(load.noted("double").is_empty() && load.noted("again").is_empty(), "the first one had ended");
    let alerts = town.json(["alerts", "--all"])["alerts"].to_string();
    assert!(alerts.contains("y-long@1"), "somebody is told: {alerts}");
}
