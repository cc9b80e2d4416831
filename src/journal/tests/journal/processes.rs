//! Two processes: one that dies, one that waits, one that should not have written.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use yard_engine::Seq;
use yard_journal::{Holder, Journal, JournalError, Lease, LeaseError, Reader, Role};

use crate::support::{Town, rows};

/// Starts this test program again, to do `what` in a process of its own.
fn start(what: &str, path: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::a_lease_names_its_holder_and_ends_with_it", "--nocapture"])
        .env("YARD_TEST_DO", what)
        .env("YARD_TEST_PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let says = BufReader::new(child.stdout.take().unwrap());
    (child, says)
}

/// The last line so far that starts with `word`, as a number, reading until `enough`.
fn wait_for(says: &mut impl BufRead, word: &str, enough: impl Fn(u64) -> bool) -> u64 {
    let mut last = 0;
    for line in says.lines() {
        // libtest's own words may stand before ours.
        let line = line.unwrap();
        let Some((_, number)) = line.split_once(word) else {
            continue;
        };
        let Ok(number) = number.trim().parse() else {
            continue;
        };
        last = number;
        if enough(number) {
            break;
        }
    }
    last
}

/// Does what `start` asked for, if this is such a process.
fn is_second_process() -> bool {
    let (Ok(what), Some(path)) = (std::env::var("YARD_TEST_DO"), std::env::var_os("YARD_TEST_PATH")) else {
        return false;
    };
    let path = Path::new(&path);
    let say = |word: &str, number: u64| {
        let mut out = std::io::stdout();
        writeln!(out, "\n{word} {number}").unwrap();
    };
    if what == "hold" {
        let _lease = Lease::try_acquire(path, Role::Daemon).unwrap();
        say("holding", 1);
        let _ = std::io::stdin().read_line(&mut String::new());
    } else if what == "append" {
        let mut journal = Journal::open(path).unwrap();
        loop {
            let next = journal.last_seq().0 + 1;
            journal.append(&rows(next..=next + 3)).unwrap();
            say("stored", next + 3);
        }
    }
    true
}

#[test]
fn a_killed_writer_leaves_every_acknowledged_append_and_no_half_one() {
    let town = Town::new();
    let mut stored = 0;
    for round in 1..=5 {
        let (mut child, mut says) = start("append", &town.path());
        let target = stored + round * 40;
        wait_for(&mut says, "stored", |it| it >= target);
        child.kill().unwrap();
        child.wait().unwrap();
        stored = wait_for(&mut says, "stored", |_| false).max(target);
        let reader = Reader::open(&town.path()).unwrap();
        let report = reader.check().unwrap();
        assert!(report.is_sound(), "{:?}", report.problems);
        assert!(report.last_seq >= Seq(stored), "{} of {stored}", report.last_seq);
        assert_eq!(report.last_seq.0 % 4, 0, "an append is stored whole");
        stored = report.last_seq.0;
    }
    assert_eq!(town.open().load().unwrap().tail, rows(1..=stored));
}

#[test]
fn a_reader_follows_a_writer_in_another_process() {
    let town = Town::new();
    let (mut child, mut says) = start("append", &town.path());
    let stored = wait_for(&mut says, "stored", |it| it >= 40);
    let reader = Reader::open(&town.path()).unwrap();
    let tail = reader.load().unwrap().tail;
    assert!(tail.len() as u64 >= stored);
    assert_eq!(tail.len() % 4, 0);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_second_writer_is_noticed_and_does_no_harm() {
    let town = Town::with_events(2);
    let (mut first, mut second) = (town.open(), town.open());
    first.append(&rows(3..=4)).unwrap();
    let overtaken = second.append(&rows(3..=3));
    assert!(matches!(overtaken, Err(JournalError::Overtaken { seq: Seq(3) })), "{overtaken:?}");
    assert_eq!(second.load().unwrap().tail, rows(1..=4));
    second.append(&rows(5..=5)).unwrap();
}

#[test]
fn a_lease_names_its_holder_and_ends_with_it() {
    if is_second_process() {
        return;
    }
    let town = Town::new();
    let path = town.folder().join("lease");
    assert_eq!(Lease::holder(&path), None);
    let (mut child, mut says) = start("hold", &path);
    wait_for(&mut says, "holding", |_| true);
    let daemon = Holder { pid: Some(child.id()), role: Some(Role::Daemon), ..Holder::default() };
    assert_eq!(Lease::holder(&path), Some(daemon.clone()));
    let refused = Lease::try_acquire(&path, Role::Command).err().unwrap();
    assert!(matches!(&refused, LeaseError::Held(holder) if *holder == daemon));
    assert!(refused.to_string().contains(&format!("a daemon (pid {})", child.id())));

    child.kill().unwrap();
    child.wait().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 0, "the dead process left its note");
    assert_eq!(Lease::holder(&path), None);
    let lease = Lease::try_acquire(&path, Role::Console).unwrap();
    assert_eq!(Lease::holder(&path).unwrap().role, Some(Role::Console));
    drop(lease);
    assert_eq!(Lease::holder(&path), None);
    Lease::try_acquire(&path, Role::Command).unwrap();
}

#[test]
fn whoever_only_looks_never_keeps_the_lease_from_anybody() {
    let town = Town::new();
    let path = town.folder().join("lease");
    let looking = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while looking.load(std::sync::atomic::Ordering::Relaxed) {
                Lease::holder(&path);
            }
        });
        for _ in 0..500 {
            Lease::try_acquire(&path, Role::Command).unwrap();
        }
        looking.store(false, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn of_many_who_want_the_lease_one_has_it_at_a_time() {
    let town = Town::new();
    let path = town.folder().join("lease");
    let holders = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut had = 0;
                while had < 50 {
                    let Ok(_lease) = Lease::try_acquire(&path, Role::Command) else {
                        // Who only spins may keep the holder from ever running.
                        std::thread::park_timeout(std::time::Duration::from_micros(100));
                        continue;
                    };
                    assert_eq!(holders.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    holders.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    had += 1;
                }
            });
        }
    });
}
