//! Damage is reported with its place, and never folded into a state.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};

use yard_engine::Seq;
use yard_journal::{JournalError, Reader};

use crate::support::{Town, entity, row, rows, tamper};

/// What the writer's load, the reader's load and the check say about event `seq`.
fn assert_damaged_at(town: &Town, seq: u64) {
    let writer = town.open().load();
    assert!(matches!(writer, Err(JournalError::Corrupt { seq: it, .. }) if it == Seq(seq)), "{writer:?}");
    let reader = Reader::open(&town.path()).unwrap();
    assert!(matches!(reader.load(), Err(JournalError::Corrupt { seq: it, .. }) if it == Seq(seq)));
    let problems = reader.check().unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains(&format!("event {seq}:")), "{problems:?}");
}

#[test]
fn a_flipped_byte_in_a_body_is_found_by_load_and_check() {
    let town = Town::with_events(9);
    let mut file = fs::OpenOptions::new().read(true).write(true).open(town.path()).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    let place = bytes.windows(5).position(|it| it == b"gt-5\"").unwrap();
    file.seek(SeekFrom::Start(place as u64)).unwrap();
    file.write_all(b"g\xff").unwrap();
    drop(file);
    assert_damaged_at(&town, 5);
}

#[test]
fn a_missing_event_is_found() {
    let town = Town::with_events(9);
    tamper(&town, "DELETE FROM events WHERE seq = 4");
    assert_damaged_at(&town, 4);
}

#[test]
fn a_rewritten_event_is_found() {
    let town = Town::with_events(9);
    tamper(&town, "UPDATE events SET at = at + 1 WHERE seq = 1");
    assert_damaged_at(&town, 1);
}

#[test]
fn a_log_that_ends_before_its_checkpoint_is_found() {
    let town = Town::with_events(9);
    town.open().checkpoint(Seq(8), &[]).unwrap();
    tamper(&town, "DELETE FROM events WHERE seq > 6");
    assert!(matches!(
        yard_journal::Journal::open(&town.path()),
        Err(JournalError::Corrupt { seq: Seq(7), .. })
    ));
    assert!(!Reader::open(&town.path()).unwrap().check().unwrap().is_sound());
}

#[test]
fn a_changed_entity_is_found() {
    let town = Town::with_events(2);
    town.open().checkpoint(Seq(2), &[entity("gt-1", Some("{}"))]).unwrap();
    tamper(&town, "UPDATE entities SET body = '[]'");
    let loaded = town.open().load();
    assert!(matches!(loaded, Err(JournalError::CorruptEntity { id, .. }) if id == "gt-1"));
    assert!(!Reader::open(&town.path()).unwrap().check().unwrap().is_sound());
}

/// A power cut may leave the end of the WAL half written: that append was never acknowledged.
#[test]
fn a_torn_wal_loses_only_what_was_torn() {
    let town = Town::new();
    let mut journal = town.open();
    journal.append(&rows(1..=3)).unwrap();
    let whole = fs::metadata(town.folder().join("journal.db-wal")).unwrap().len();
    journal.append(&[yard_journal::Row { body: "x".repeat(20_000), ..row(4) }]).unwrap();

    // The files as a crash would leave them, while the writer is still there.
    let after = Town::new();
    fs::copy(town.path(), after.path()).unwrap();
    let mut wal = fs::read(town.folder().join("journal.db-wal")).unwrap();
    let torn = usize::try_from(whole).unwrap() + 9000;
    assert!(torn < wal.len());
    wal[torn..].fill(0);
    fs::write(after.folder().join("journal.db-wal"), wal).unwrap();

    let mut journal = after.open();
    assert_eq!(journal.load().unwrap().tail, rows(1..=3));
    journal.append(&rows(4..=4)).unwrap();
    drop(journal);
    assert!(Reader::open(&after.path()).unwrap().check().unwrap().is_sound());
}
