//! A full disk refuses the append, leaves no trace of it, and is forgotten once there is space again.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use yard_engine::Seq;
use yard_journal::{Journal, JournalError, Reader, Row};

use crate::support::{SmallDisk, row, rows};

/// Takes all that is left of a disk.
fn fill(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("ballast");
    let mut ballast = File::create(&path).unwrap();
    while ballast.write_all(&[0; 4096]).is_ok() {}
    while ballast.write_all(&[0]).is_ok() {}
    path
}

#[test]
fn an_append_to_a_full_disk_fails_whole_and_works_again_later() {
    let Some(disk) = SmallDisk::mount("4m") else {
        return;
    };
    let mut journal = Journal::open(&disk.path()).unwrap();
    journal.append(&rows(1..=10)).unwrap();
    let ballast = fill(disk.folder());

    let big = |seq| Row { body: "x".repeat(5000), ..row(seq) };
    let refused = journal.append(&(11..=200).map(big).collect::<Vec<_>>());
    assert!(matches!(refused, Err(JournalError::Full)), "{refused:?}");
    assert_eq!(journal.last_seq(), Seq(10));
    assert_eq!(journal.load().unwrap().tail, rows(1..=10));
    assert_eq!(Reader::open(&disk.path()).unwrap().last_seq().unwrap(), Seq(10));

    fs::remove_file(ballast).unwrap();
    journal.append(&rows(11..=12)).unwrap();
    drop(journal);
    let mut journal = Journal::open(&disk.path()).unwrap();
    assert_eq!(journal.load().unwrap().tail, rows(1..=12));
    assert!(Reader::open(&disk.path()).unwrap().check().unwrap().is_sound());
}

#[test]
fn what_was_acknowledged_before_the_disk_filled_up_is_all_there() {
    let Some(disk) = SmallDisk::mount("1m") else {
        return;
    };
    let mut journal = Journal::open(&disk.path()).unwrap();
    let mut next = 1;
    let refused = loop {
        match journal.append(&rows(next..=next + 3)) {
            Ok(()) => next += 4,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, JournalError::Full), "{refused:?}");
    assert_eq!(journal.load().unwrap().tail, rows(1..=next - 1));
    drop(journal);
    assert_eq!(Reader::open(&disk.path()).unwrap().load().unwrap().tail, rows(1..=next - 1));
}

#[test]
fn a_checkpoint_on_a_full_disk_changes_nothing() {
    let Some(disk) = SmallDisk::mount("2m") else {
        return;
    };
    let mut journal = Journal::open(&disk.path()).unwrap();
    journal.append(&rows(1..=4)).unwrap();
    fill(disk.folder());
    let big = "x".repeat(3_000_000);
    let refused = journal.checkpoint(Seq(4), &[crate::support::entity("gt-1", Some(&big))]);
    assert!(matches!(refused, Err(JournalError::Full)), "{refused:?}");
    let loaded = journal.load().unwrap();
    assert_eq!((loaded.checkpoint_seq, loaded.entities.len()), (Seq(0), 0));
}

#[test]
fn no_journal_can_be_made_on_a_full_disk_until_there_is_space() {
    let Some(disk) = SmallDisk::mount("1m") else {
        return;
    };
    let ballast = fill(disk.folder());
    let refused = Journal::open(&disk.path()).err().unwrap();
    assert!(matches!(refused, JournalError::Full), "{refused:?}");
    assert_eq!(Reader::open(&disk.path()).unwrap().last_seq().unwrap(), Seq(0));
    fs::remove_file(ballast).unwrap();
    Journal::open(&disk.path()).unwrap().append(&rows(1..=1)).unwrap();
}
