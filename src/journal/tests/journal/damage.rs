//! Damage is reported with its place, and never folded into a state.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};

use yard_engine::Seq;
use yard_journal::{EventQuery, JournalError, Reader};

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

/// A page that lost a cell looks like a page: only the sum over all entities tells.
#[test]
fn a_missing_entity_is_found() {
    let town = Town::with_events(2);
    let two = [entity("gt-1", Some("{}")), entity("gt-2", Some("{}"))];
    town.open().checkpoint(Seq(2), &two).unwrap();
    tamper(&town, "DELETE FROM entities WHERE id = 'gt-2'");
    assert!(matches!(town.open().load(), Err(JournalError::CorruptCheckpoint)));
    assert!(!Reader::open(&town.path()).unwrap().check().unwrap().is_sound());
}

#[test]
fn a_moved_checkpoint_is_found() {
    let town = Town::with_events(3);
    town.open().checkpoint(Seq(2), &[entity("gt-1", Some("{}"))]).unwrap();
    tamper(&town, "UPDATE meta SET checkpoint_seq = 3");
    assert!(matches!(Reader::open(&town.path()).unwrap().load(), Err(JournalError::CorruptNotes)));
}

#[test]
fn entities_that_were_replaced_and_removed_still_come_to_what_is_noted() {
    let town = Town::with_events(4);
    let mut journal = town.open();
    journal.checkpoint(Seq(1), &[entity("gt-1", Some("1")), entity("gt-2", Some("2"))]).unwrap();
    journal.checkpoint(Seq(2), &[entity("gt-1", Some("3")), entity("gt-2", None)]).unwrap();
    journal.checkpoint(Seq(3), &[entity("gt-3", None), entity("gt-1", None)]).unwrap();
    journal.checkpoint(Seq(4), &[entity("gt-2", Some("4"))]).unwrap();
    assert_eq!(journal.load().unwrap().entities, [entity("gt-2", Some("4"))]);
}

/// What the checkpoint covers is not read when the town is opened, but when somebody asks for it.
#[test]
fn a_damaged_past_is_not_told() {
    let town = Town::with_events(9);
    town.open().checkpoint(Seq(9), &[]).unwrap();
    tamper(
        &town,
        "UPDATE events SET body = '{}' WHERE seq = 4; UPDATE events SET kind = 'x.y' WHERE seq = 6",
    );
    let reader = Reader::open(&town.path()).unwrap();
    reader.load().unwrap();
    assert_eq!(reader.events_at(&[Seq(3), Seq(9)]).unwrap().len(), 2);
    for wanted in [4, 6] {
        let told = reader.events_at(&[Seq(wanted)]);
        assert!(matches!(told, Err(JournalError::Corrupt { seq, .. }) if seq == Seq(wanted)), "{told:?}");
    }
    let of_kind = |kind: &str| EventQuery { kind: Some(kind.to_owned()), ..EventQuery::default() };
    assert!(reader.events(&of_kind("bead")).is_err(), "an event that lost its kind is not just left out");
    let tail = |count| EventQuery { tail: Some(count), ..EventQuery::default() };
    assert_eq!(reader.events(&tail(3)).unwrap().len(), 3);
    assert!(reader.events(&tail(4)).is_err());
}

/// SQLite stops reading a WAL at the first frame that is damaged, and says nothing.
#[test]
fn acknowledged_events_that_a_damaged_wal_drops_are_missed() {
    let town = Town::new();
    let mut journal = town.open();
    journal.append(&rows(1..=3)).unwrap();
    journal.append(&rows(4..=5)).unwrap();
    let after = Town::new();
    for file in ["journal.db", "journal.db-wal", "journal.db-tip"] {
        fs::copy(town.folder().join(file), after.folder().join(file)).unwrap();
    }
    let path = after.folder().join("journal.db-wal");
    let mut wal = fs::read(&path).unwrap();
    let last = wal.len() - 1;
    wal[last] ^= 1;
    fs::write(&path, wal).unwrap();
    let cut = |it: &JournalError| matches!(it, JournalError::CutOff { last: Seq(3), noted: Seq(5) });
    assert!(cut(&Reader::open(&after.path()).unwrap().load().unwrap_err()));
    // Whoever wants to write is refused as well, and takes nothing away: what lies behind the damage may still be found.
    let whole = fs::read(&path).unwrap();
    assert!(cut(&yard_journal::Journal::open(&after.path()).err().unwrap()));
    assert_eq!(fs::read(&path).unwrap(), whole);
    let report = Reader::open(&after.path()).unwrap().check().unwrap();
    assert!(report.problems[0].contains("ends at event 3, but event 5 was stored"), "{report:?}");
}

/// SQLite deletes the WAL of an empty file when it opens that.
#[test]
fn the_wal_of_a_journal_that_was_emptied_is_left_alone() {
    let town = Town::new();
    let mut journal = town.open();
    journal.append(&rows(1..=3)).unwrap();
    let after = Town::new();
    fs::copy(town.folder().join("journal.db-wal"), after.folder().join("journal.db-wal")).unwrap();
    fs::write(after.path(), "").unwrap();
    let wal = fs::read(after.folder().join("journal.db-wal")).unwrap();
    assert!(matches!(Reader::open(&after.path()).err(), Some(JournalError::Emptied)));
    assert!(matches!(yard_journal::Journal::open(&after.path()).err(), Some(JournalError::Emptied)));
    assert_eq!(fs::read(after.folder().join("journal.db-wal")).unwrap(), wal);
}

#[test]
fn a_journal_that_was_deleted_is_not_begun_anew() {
    let town = Town::with_events(3);
    fs::remove_file(town.path()).unwrap();
    let opened = yard_journal::Journal::open(&town.path());
    assert!(matches!(opened.err(), Some(JournalError::CutOff { last: Seq(0), noted: Seq(3) })));
    assert!(!town.path().exists());
    fs::write(town.path(), "").unwrap();
    assert!(Reader::open(&town.path()).unwrap().load().is_err());
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
