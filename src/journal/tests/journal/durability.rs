//! Appends, checkpoints and retention survive reopening, whole and in order.

use std::os::unix::fs::PermissionsExt;

use yard_engine::Seq;
use yard_journal::{EventQuery, Journal, JournalError, Reader, SCHEMA_VERSION};

use crate::support::{Town, entity, numbers, row, rows, tamper};

#[test]
fn a_new_journal_is_empty_and_private() {
    let town = Town::new();
    let mut journal = town.open();
    assert_eq!(journal.last_seq(), Seq(0));
    assert_eq!(journal.load().unwrap(), yard_journal::Loaded::default());
    journal.append(&rows(1..=1)).unwrap();
    for file in std::fs::read_dir(town.folder()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", file.file_name());
    }
}

#[test]
fn a_journal_may_move_to_the_thread_that_owns_the_state() {
    let town = Town::new();
    let mut journal = town.open();
    let stored = std::thread::spawn(move || journal.append(&rows(1..=2))).join();
    assert!(matches!(stored, Ok(Ok(()))));
    assert_eq!(town.open().last_seq(), Seq(2));
}

#[test]
fn an_acknowledged_append_survives_reopening() {
    let town = Town::new();
    let mut journal = town.open();
    journal.append(&rows(1..=3)).unwrap();
    journal.append(&[]).unwrap();
    journal.append(&rows(4..=4)).unwrap();
    drop(journal);
    let mut journal = town.open();
    assert_eq!(journal.last_seq(), Seq(4));
    assert_eq!(journal.load().unwrap().tail, rows(1..=4));
    journal.append(&rows(5..=5)).unwrap();
    assert_eq!(journal.load().unwrap().tail, rows(1..=5));
}

#[test]
fn rows_that_do_not_continue_the_log_are_refused_whole() {
    let town = Town::with_events(2);
    let mut journal = town.open();
    let gap = journal.append(&[row(3), row(5)]);
    assert!(matches!(gap, Err(JournalError::OutOfOrder { expected: Seq(4), found: Seq(5) })));
    let again = journal.append(&[row(2)]);
    assert!(matches!(again, Err(JournalError::OutOfOrder { expected: Seq(3), found: Seq(2) })));
    assert_eq!(journal.last_seq(), Seq(2));
    journal.append(&rows(3..=4)).unwrap();
    assert_eq!(journal.load().unwrap().tail, rows(1..=4));
}

#[test]
fn a_checkpoint_replaces_the_events_before_it() {
    let town = Town::with_events(5);
    let mut journal = town.open();
    journal.checkpoint(Seq(3), &[entity("gt-1", Some("{}")), entity("gt-2", Some("{}"))]).unwrap();
    journal.checkpoint(Seq(4), &[entity("gt-1", Some("[1]")), entity("gt-2", None)]).unwrap();
    drop(journal);
    let loaded = town.open().load().unwrap();
    assert_eq!(loaded.checkpoint_seq, Seq(4));
    assert_eq!(loaded.entities, [entity("gt-1", Some("[1]"))]);
    assert_eq!(loaded.tail, rows(5..=5));
}

#[test]
fn a_checkpoint_neither_goes_back_nor_reaches_past_the_log() {
    let town = Town::with_events(5);
    let mut journal = town.open();
    journal.checkpoint(Seq(3), &[]).unwrap();
    for seq in [2, 6] {
        let refused = journal.checkpoint(Seq(seq), &[entity("gt-1", Some("{}"))]);
        assert!(matches!(refused, Err(JournalError::CheckpointOutOfRange { .. })));
    }
    assert_eq!(journal.load().unwrap().entities, []);
}

#[test]
fn retention_never_cuts_above_the_checkpoint() {
    let town = Town::with_events(9);
    let mut journal = town.open();
    assert_eq!(journal.cut_off(Seq(8), 100).unwrap(), 0);
    journal.checkpoint(Seq(6), &[]).unwrap();
    assert_eq!(journal.cut_off(Seq(3), 2).unwrap(), 2, "a piece at a time");
    assert_eq!(journal.cut_off(Seq(3), 2).unwrap(), 1);
    assert_eq!(journal.cut_off(Seq(3), 2).unwrap(), 0);
    assert_eq!(journal.cut_off(Seq(100), 100).unwrap(), 3);
    assert_eq!((journal.beginning().unwrap(), journal.load().unwrap().tail), (Seq(6), rows(7..=9)));
    assert_eq!((journal.time_of(Seq(6)).unwrap(), journal.time_of(Seq(7)).unwrap()), (None, Some(row(7).at)));
}

#[test]
fn the_beginning_of_a_log_that_was_cut_is_kept_as_a_copy_of_the_checkpoint() {
    let town = Town::with_events(9);
    let mut journal = town.open();
    let then = [entity("gt-1", Some("[1]")), entity("gt-2", Some("[2]"))];
    journal.checkpoint(Seq(4), &then).unwrap();
    let copy = town.folder().join("past-4.db");
    let (at, sum) = Reader::open(&town.path()).unwrap().copy_checkpoint_to(&copy).unwrap();
    assert_eq!(at, Seq(4));
    journal.checkpoint(Seq(8), &[entity("gt-1", None)]).unwrap();
    assert!(journal.has_sum(at, sum).unwrap());
    journal.cut_off(Seq(4), 100).unwrap();
    assert!(journal.has_sum(at, sum).unwrap(), "it is where the log begins");
    let other = Town::with_events(3);
    assert!(!other.open().has_sum(at, sum).unwrap() && !journal.has_sum(Seq(5), sum).unwrap());
    let past = Reader::open(&copy).unwrap();
    let loaded = past.load().unwrap();
    assert_eq!((loaded.checkpoint_seq, loaded.entities, loaded.tail), (Seq(4), then.to_vec(), vec![]));
    let query = EventQuery { since: Some(Seq(4)), ..EventQuery::default() };
    assert_eq!(Reader::open(&town.path()).unwrap().events(&query).unwrap(), rows(5..=9));
    assert!(past.check().unwrap().is_sound());
}

#[test]
fn the_chain_goes_on_across_a_truncated_log() {
    let town = Town::with_events(9);
    let mut journal = town.open();
    journal.checkpoint(Seq(6), &[]).unwrap();
    journal.cut_off(Seq(4), 100).unwrap();
    journal.append(&rows(10..=10)).unwrap();
    let reader = Reader::open(&town.path()).unwrap();
    let report = reader.check().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!((report.first_seq, report.last_seq, report.events), (Seq(5), Seq(10), 6));
    assert_eq!(numbers(&reader.events_at(&[Seq(10), Seq(4), Seq(5)]).unwrap()), [5, 10]);
}

#[test]
fn a_log_cut_down_to_nothing_still_knows_its_place() {
    let town = Town::with_events(4);
    let mut journal = town.open();
    journal.checkpoint(Seq(4), &[]).unwrap();
    assert_eq!(journal.cut_off(Seq(4), 100).unwrap(), 4);
    drop(journal);
    let mut journal = town.open();
    assert_eq!(journal.last_seq(), Seq(4));
    journal.append(&rows(5..=6)).unwrap();
    drop(journal);
    assert_eq!(town.open().load().unwrap().tail, rows(5..=6));
}

#[test]
fn more_than_the_wal_holds_is_copied_back_while_writing() {
    let town = Town::new();
    let mut journal = town.open();
    let mut last = 0;
    // About 90 MB of pages, eleven times what makes a round due.
    for _ in 0..110 {
        let batch: Vec<_> = (last + 1..=last + 200)
            .map(|seq| yard_journal::Row { body: "x".repeat(3500), ..row(seq) })
            .collect();
        journal.append(&batch).unwrap();
        last += 200;
    }
    let wal = std::fs::metadata(town.folder().join("journal.db-wal")).unwrap().len();
    drop(journal);
    let database = std::fs::metadata(town.path()).unwrap().len();
    assert!(wal < database, "the WAL ({wal}) started over before it was as long as the journal ({database})");
    let report = Reader::open(&town.path()).unwrap().check().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!(report.last_seq, Seq(last));
}

#[test]
fn a_closed_journal_is_one_file_and_the_note_of_its_end() {
    let town = Town::with_events(4);
    assert_eq!(std::fs::read_dir(town.folder()).unwrap().count(), 2);
    std::fs::remove_file(town.folder().join("journal.db-tip")).unwrap();
    assert_eq!(town.open().load().unwrap().tail, rows(1..=4));
}

#[test]
fn a_journal_closed_beside_a_reader_is_complete_without_its_wal() {
    let town = Town::with_events(1);
    let reader = Reader::open(&town.path()).unwrap();
    let mut journal = town.open();
    journal.append(&rows(2..=4)).unwrap();
    drop(journal);
    assert!(town.folder().join("journal.db-wal").exists());
    let copy = Town::new();
    std::fs::copy(town.path(), copy.path()).unwrap();
    assert_eq!(copy.open().load().unwrap().tail, rows(1..=4));
    assert_eq!(reader.last_seq().unwrap(), Seq(4));
}

#[test]
fn a_journal_of_a_newer_version_is_refused_with_both_versions() {
    let town = Town::with_events(1);
    tamper(&town, "PRAGMA user_version = 7");
    let known = SCHEMA_VERSION;
    for refused in [Journal::open(&town.path()).err().unwrap(), Reader::open(&town.path()).err().unwrap()] {
        assert!(matches!(refused, JournalError::NewerSchema { found: 7, known: it } if it == known));
        let message = refused.to_string();
        assert!(message.contains("format 7") && message.contains(&format!("up to {known}")), "{message}");
    }
}

/// As format 1 had it: without what the entities come to.
#[test]
fn a_journal_of_format_1_is_read_as_it_is_and_brought_up_to_date_by_its_next_writer() {
    let town = Town::with_events(5);
    town.open().checkpoint(Seq(3), &[entity("gt-1", Some("{}")), entity("gt-2", Some("[]"))]).unwrap();
    let columns = ["entities", "digest", "seal"].map(|it| format!("ALTER TABLE meta DROP COLUMN {it};"));
    tamper(&town, &format!("{} PRAGMA user_version = 1", columns.concat()));
    let reader = Reader::open(&town.path()).unwrap();
    let before = reader.load().unwrap();
    assert!(reader.check().unwrap().is_sound());
    assert_eq!((before.checkpoint_seq, before.entities.len()), (Seq(3), 2));
    assert_eq!(town.open().load().unwrap(), before);
    assert_eq!(Reader::open(&town.path()).unwrap().load().unwrap(), before);
    tamper(&town, "DELETE FROM entities WHERE id = 'gt-2'");
    assert!(matches!(town.open().load(), Err(JournalError::CorruptCheckpoint)));
}

#[test]
fn a_file_that_is_no_journal_is_left_alone() {
    let town = Town::new();
    std::fs::write(town.path(), "dear diary, ".repeat(100)).unwrap();
    assert!(matches!(Journal::open(&town.path()), Err(JournalError::NotAJournal)));
    assert!(matches!(Reader::open(&town.path()), Err(JournalError::NotAJournal)));
    std::fs::remove_file(town.path()).unwrap();
    tamper(&town, "CREATE TABLE somebody_elses (x)");
    assert!(matches!(Journal::open(&town.path()), Err(JournalError::NotAJournal)));
}
