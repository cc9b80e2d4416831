//! Reading beside a writer, after one, and in places that cannot be written.

use std::fs;

use yard_engine::{Seq, Timestamp};
use yard_journal::{EventQuery, JournalError, Reader};

use crate::support::{SmallDisk, Town, entity, numbers, rows};

#[test]
fn a_reader_sees_what_a_live_writer_appends() {
    let town = Town::new();
    let mut journal = town.open();
    let reader = Reader::open(&town.path()).unwrap();
    assert_eq!(reader.last_seq().unwrap(), Seq(0));
    journal.append(&rows(1..=3)).unwrap();
    assert_eq!(reader.last_seq().unwrap(), Seq(3));
    journal.checkpoint(Seq(2), &[entity("gt-1", Some("{}"))]).unwrap();
    let loaded = reader.load().unwrap();
    assert_eq!((loaded.checkpoint_seq, loaded.entities.len()), (Seq(2), 1));
    assert_eq!(loaded.tail, rows(3..=3));
    drop(journal);
    assert_eq!(reader.load().unwrap().tail, rows(3..=3));
}

#[test]
fn a_reader_needs_a_journal_but_not_its_tables() {
    let town = Town::new();
    let missing = Reader::open(&town.path()).err().unwrap();
    assert!(matches!(&missing, JournalError::Missing(path) if *path == town.path()));
    fs::write(town.path(), "").unwrap();
    let reader = Reader::open(&town.path()).unwrap();
    assert_eq!(reader.load().unwrap(), yard_journal::Loaded::default());
    assert!(reader.check().unwrap().is_sound());
    town.open().append(&rows(1..=1)).unwrap();
    assert_eq!(reader.last_seq().unwrap(), Seq(1));
}

#[test]
fn a_reader_finds_the_events_in_a_dead_writers_wal() {
    let town = Town::new();
    let mut journal = town.open();
    journal.append(&rows(1..=3)).unwrap();
    let after = Town::new();
    for file in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        fs::copy(town.folder().join(file), after.folder().join(file)).unwrap();
    }
    assert_eq!(Reader::open(&after.path()).unwrap().load().unwrap().tail, rows(1..=3));
}

#[test]
fn a_journal_on_a_read_only_file_system_can_be_read() {
    for crashed in [false, true] {
        let Some(disk) = SmallDisk::mount("4m") else {
            return;
        };
        let town = Town::new();
        let mut journal = town.open();
        journal.append(&rows(1..=3)).unwrap();
        // Without a crash the WAL is gone; after one it holds all there is.
        let journal = crashed.then_some(journal);
        for file in fs::read_dir(town.folder()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), disk.folder().join(file.file_name())).unwrap();
        }
        drop(journal);
        disk.freeze();
        let reader = Reader::open(&disk.path()).unwrap();
        assert_eq!(reader.load().unwrap().tail, rows(1..=3), "crashed: {crashed}");
        assert!(reader.check().unwrap().is_sound());
        let refused = yard_journal::Journal::open(&disk.path()).err();
        assert!(matches!(refused, Some(JournalError::Readonly(_))), "{refused:?}");
    }
}

#[test]
fn a_read_only_copy_whose_wal_cannot_be_used_is_refused_rather_than_read_short() {
    let Some(disk) = SmallDisk::mount("4m") else {
        return;
    };
    let town = Town::new();
    let mut journal = town.open();
    journal.append(&rows(1..=3)).unwrap();
    for file in ["journal.db", "journal.db-wal"] {
        fs::copy(town.folder().join(file), disk.folder().join(file)).unwrap();
    }
    disk.freeze();
    assert!(matches!(Reader::open(&disk.path()), Err(JournalError::Readonly(_))));
}

#[test]
fn queries_select_by_place_time_kind_and_count() {
    let town = Town::with_events(12);
    let reader = Reader::open(&town.path()).unwrap();
    let ask = |query: EventQuery| numbers(&reader.events(&query).unwrap());
    let all = EventQuery::default;
    assert_eq!(ask(all()), (1..=12).collect::<Vec<_>>());
    assert_eq!(ask(EventQuery { since: Some(Seq(10)), ..all() }), [11, 12]);
    let time = Timestamp::from_millis(1_700_000_000_011);
    assert_eq!(ask(EventQuery { since_time: Some(time), ..all() }), [11, 12]);
    let kind = |kind: &str| EventQuery { kind: Some(kind.to_owned()), ..EventQuery::default() };
    assert_eq!(ask(kind("bead.closed")), [3, 6, 9, 12]);
    assert_eq!(ask(kind("convoy")), [2, 5, 8, 11]);
    assert_eq!(ask(kind("bead")).len(), 8);
    assert!(ask(kind("bea")).is_empty());
    assert_eq!(ask(EventQuery { limit: Some(2), ..kind("bead.closed") }), [3, 6]);
    assert_eq!(ask(EventQuery { tail: Some(2), ..kind("bead.closed") }), [9, 12]);
    assert_eq!(ask(EventQuery { tail: Some(3), limit: Some(1), ..all() }), [10]);
}

#[test]
fn wanted_events_come_once_and_in_order() {
    let town = Town::with_events(5);
    let reader = Reader::open(&town.path()).unwrap();
    let found = reader.events_at(&[Seq(4), Seq(9), Seq(2), Seq(4)]).unwrap();
    assert_eq!(numbers(&found), [2, 4]);
}

#[test]
fn a_copy_made_beside_a_live_writer_is_a_whole_journal() {
    let town = Town::new();
    let mut journal = town.open();
    journal.append(&rows(1..=5)).unwrap();
    journal.checkpoint(Seq(3), &[entity("gt-1", Some("{}"))]).unwrap();
    let copy = town.folder().join("copy of 100%?.db");
    Reader::open(&town.path()).unwrap().copy_to(&copy).unwrap();
    journal.append(&rows(6..=6)).unwrap();

    let copied = Reader::open(&copy).unwrap();
    assert!(copied.check().unwrap().is_sound());
    assert_eq!(copied.last_seq().unwrap(), Seq(5));
    let again = Reader::open(&town.path()).unwrap().copy_to(&copy);
    assert!(matches!(again, Err(JournalError::Io { .. })), "a file that exists is not overwritten");
    let mut journal = yard_journal::Journal::open(&copy).unwrap();
    assert_eq!(journal.load().unwrap().tail, rows(4..=5));
    journal.append(&rows(6..=6)).unwrap();
}
