//! A repair keeps a state the town once had, puts the damaged files aside, and says what is lost.

use std::fs;
use std::path::Path;

use yard_engine::{Seq, Timestamp};
use yard_journal::{Damage, Journal, JournalError, Lease, Loss, Reader, Repaired, Role, Row};

use crate::support::{Town, entity, row, rows, tamper};

fn lease(town: &Town) -> Lease {
    Lease::try_acquire(&town.folder().join("lease"), Role::Command).unwrap()
}

/// Finds the damage, repairs it, and makes sure that the result is sound and can be written to.
fn repair(town: &Town) -> Repaired {
    let damage = Damage::find(&town.path()).unwrap().expect("it is damaged");
    assert!(!damage.problems.is_empty());
    let foreseen = damage.loss.clone();
    let repaired = damage.repair(&lease(town), Timestamp::from_millis(1_767_323_045_678)).unwrap();
    assert_eq!(repaired.loss, foreseen, "it does what it said");
    assert!(repaired.aside.file_name().unwrap().to_str().unwrap().contains("damaged-20260102T030405.678Z"));
    assert!(Damage::find(&town.path()).unwrap().is_none());
    let mut journal = town.open();
    journal.load().unwrap();
    let next = journal.last_seq().next();
    journal.append(&[Row { seq: next, ..row(next.0) }]).unwrap();
    drop(journal);
    assert!(Reader::open(&town.path()).unwrap().check().unwrap().is_sound());
    repaired
}

fn loss(kept: u64, events: u64) -> Loss {
    Loss { kept: Seq(kept), events: Some(events), history: 0, checkpoint: false }
}

#[test]
fn a_sound_journal_has_no_damage() {
    let town = Town::new();
    assert!(Damage::find(&town.path()).unwrap().is_none());
    town.open().append(&rows(1..=3)).unwrap();
    assert!(Damage::find(&town.path()).unwrap().is_none());
}

#[test]
fn the_events_before_a_damaged_one_are_kept() {
    let town = Town::with_events(9);
    let bytes = fs::read(town.path()).unwrap();
    tamper(&town, "UPDATE events SET body = '{}' WHERE seq = 6");
    let damaged = fs::read(town.path()).unwrap();
    assert_ne!(bytes, damaged);
    let repaired = repair(&town);
    assert_eq!(repaired.loss, loss(5, 4));
    assert_eq!(repaired.loss.to_string(), "4 events are lost (6 to 9), 5 stays the last");
    assert_eq!(fs::read(repaired.aside.join("journal.db")).unwrap(), damaged, "as it was");
    let tail = town.open().load().unwrap().tail;
    assert_eq!(tail[..5], rows(1..=5));
}

/// The events of one turn have one time and belong together.
#[test]
fn a_turn_is_kept_whole_or_not_at_all() {
    for spoilt in ["body = '{}'", "at = at + 1"] {
        let town = Town::new();
        let at = |seq, at| Row { at: Timestamp::from_millis(at), ..row(seq) };
        town.open().append(&[at(1, 10), at(2, 20), at(3, 20), at(4, 20), at(5, 30)]).unwrap();
        tamper(&town, &format!("UPDATE events SET {spoilt} WHERE seq = 4"));
        assert_eq!(repair(&town).loss, loss(1, 4), "{spoilt}");
    }
}

#[test]
fn a_checkpoint_saves_what_follows_it_and_the_sound_part_of_the_history() {
    let town = Town::with_events(9);
    town.open().checkpoint(Seq(6), &[entity("gt-1", Some("{}"))]).unwrap();
    tamper(&town, "UPDATE events SET body = '{}' WHERE seq = 3");
    let repaired = repair(&town);
    assert_eq!(repaired.loss, Loss { history: 3, ..loss(9, 0) });
    let loaded = town.open().load().unwrap();
    assert_eq!((loaded.checkpoint_seq, loaded.entities), (Seq(6), vec![entity("gt-1", Some("{}"))]));
    assert_eq!(loaded.tail[..3], rows(7..=9));
    let reader = Reader::open(&town.path()).unwrap();
    let numbers = crate::support::numbers(&reader.events_at(&[Seq(3), Seq(4), Seq(6)]).unwrap());
    assert_eq!(numbers, [4, 6]);
}

#[test]
fn a_damaged_checkpoint_is_made_again_from_the_events() {
    for spoilt in
        ["UPDATE entities SET body = '[]'", "DELETE FROM entities", "UPDATE meta SET checkpoint_seq = 5"]
    {
        let town = Town::with_events(9);
        town.open().checkpoint(Seq(6), &[entity("gt-1", Some("{}"))]).unwrap();
        tamper(&town, spoilt);
        let repaired = repair(&town);
        assert_eq!(repaired.loss, Loss { checkpoint: true, ..loss(9, 0) }, "{spoilt}");
        let said = "no event is lost (the last is 9); the checkpoint is made again from the events";
        assert_eq!(repaired.loss.to_string(), said);
        let loaded = town.open().load().unwrap();
        assert_eq!((loaded.checkpoint_seq, loaded.entities.len()), (Seq(0), 0));
        assert_eq!(loaded.tail[..9], rows(1..=9));
    }
}

#[test]
fn a_checkpoint_that_is_damaged_after_retention_is_beyond_repair() {
    let town = Town::with_events(9);
    let mut journal = town.open();
    journal.checkpoint(Seq(6), &[entity("gt-1", Some("{}"))]).unwrap();
    journal.cut_off(Seq(3), 100).unwrap();
    drop(journal);
    tamper(&town, "UPDATE entities SET body = '[]'");
    assert!(matches!(Damage::find(&town.path()), Err(JournalError::BeyondRepair)));
    assert!(town.path().exists());
}

/// As after `kill -9`: everything is in the WAL.
fn crashed(acknowledged: &[std::ops::RangeInclusive<u64>]) -> Town {
    let (town, after) = (Town::new(), Town::new());
    let mut journal = town.open();
    for range in acknowledged {
        journal.append(&rows(range.clone())).unwrap();
    }
    for file in ["journal.db", "journal.db-wal", "journal.db-tip"] {
        fs::copy(town.folder().join(file), after.folder().join(file)).unwrap();
    }
    after
}

fn wal(town: &Town) -> std::path::PathBuf {
    town.folder().join("journal.db-wal")
}

#[test]
fn what_a_damaged_wal_has_dropped_is_counted() {
    let town = crashed(&[1..=3, 4..=4, 5..=7]);
    let mut bytes = fs::read(wal(&town)).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(wal(&town), &bytes).unwrap();
    let repaired = repair(&town);
    assert_eq!(repaired.loss, loss(4, 3));
    assert_eq!(fs::read(repaired.aside.join("journal.db-wal")).unwrap(), bytes);
}

#[test]
fn a_missing_wal_is_missed_and_a_missing_shared_memory_is_not() {
    let town = crashed(&[1..=3, 4..=4]);
    assert!(Damage::find(&town.path()).unwrap().is_none());
    let _ = fs::remove_file(town.folder().join("journal.db-shm"));
    assert!(Damage::find(&town.path()).unwrap().is_none());
    fs::remove_file(wal(&town)).unwrap();
    let damage = Damage::find(&town.path()).unwrap().unwrap();
    assert_eq!((damage.loss.kept, damage.loss.events), (Seq(0), Some(4)));
}

#[test]
fn an_older_copy_is_accepted_when_somebody_says_so() {
    let town = Town::with_events(4);
    let copy = fs::read(town.path()).unwrap();
    town.open().append(&rows(5..=9)).unwrap();
    fs::write(town.path(), copy).unwrap();
    assert!(matches!(Journal::open(&town.path()), Err(JournalError::CutOff { .. })));
    assert_eq!(repair(&town).loss, loss(4, 5));
}

#[test]
fn a_file_that_is_no_journal_any_more_is_put_aside() {
    for content in ["dear diary, ".repeat(1000), String::new(), "x".repeat(3)] {
        let town = Town::with_events(4);
        fs::write(town.path(), &content).unwrap();
        let damage = Damage::find(&town.path()).unwrap().expect("it is damaged");
        assert!(!damage.leaves_something());
        let repaired = damage.repair(&lease(&town), Timestamp::from_millis(1)).unwrap();
        assert_eq!((repaired.loss.kept, repaired.loss.events), (Seq(0), Some(4)));
        assert_eq!(fs::read_to_string(repaired.aside.join("journal.db")).unwrap(), content);
        assert!(!town.path().exists());
        assert_eq!(town.open().last_seq(), Seq(0), "a new one may begin");
    }
}

#[test]
fn a_newer_journal_is_not_touched() {
    let town = Town::with_events(4);
    tamper(&town, "PRAGMA user_version = 77");
    assert!(matches!(Damage::find(&town.path()), Err(JournalError::NewerSchema { .. })));
}

#[test]
fn two_repairs_at_one_time_have_folders_of_their_own() {
    let town = Town::with_events(9);
    let mut folders = Vec::new();
    for seq in [8, 5] {
        tamper(&town, &format!("UPDATE events SET body = '{{}}' WHERE seq = {seq}"));
        folders.push(repair(&town).aside);
    }
    assert_ne!(folders[0], folders[1]);
    assert!(folders.iter().all(|it: &std::path::PathBuf| Path::new(it).join("journal.db").exists()));
}
