//! A flipped bit anywhere in the journal or its WAL is detected or does no harm: what is read is what was written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use yard_engine::{Seq, Timestamp};
use yard_journal::{Damage, EntityRow, EventQuery, Journal, JournalError, Lease, Loaded, Reader, Role, Row};

use crate::support::{Town, row};

const FILES: [&str; 3] = ["journal.db", "journal.db-wal", "journal.db-tip"];

/// Everything that can be asked.
#[derive(Debug, PartialEq)]
struct Answers {
    loaded: Loaded,
    events: Vec<Row>,
    of_kind: Vec<Row>,
    some: Vec<Row>,
    tail: Vec<Row>,
}

fn ask(path: &Path, last: u64) -> Result<Answers, JournalError> {
    let reader = Reader::open(path)?;
    Ok(Answers {
        loaded: reader.load()?,
        events: reader.events(&EventQuery::default())?,
        of_kind: reader.events(&EventQuery { kind: Some("bead".into()), ..EventQuery::default() })?,
        some: reader.events_at(&[Seq(2), Seq(last / 2), Seq(last)])?,
        tail: reader.events(&EventQuery { tail: Some(5), ..EventQuery::default() })?,
    })
}

/// The entities of each checkpoint that was taken, in the order of their seals.
type Checkpoints = BTreeMap<Seq, Vec<EntityRow>>;

fn sorted(mut entities: Vec<EntityRow>) -> Vec<EntityRow> {
    entities.sort_by(|a, b| (&a.kind, &a.id).cmp(&(&b.kind, &b.id)));
    entities
}

/// A checkpoint that is lost with the end of the WAL costs nothing: the one before it and the events say the same.
fn same_state(loaded: &Loaded, truth: &Answers, checkpoints: &Checkpoints) -> bool {
    let Loaded { checkpoint_seq, entities, tail } = loaded;
    checkpoints.get(checkpoint_seq) == Some(&sorted(entities.clone()))
        && tail[..] == truth.events[checkpoint_seq.0 as usize..]
}

/// The files of a town with so many events, as a clean end or a crash leaves them.
fn town(last: u64, checkpoint: bool, crashed: bool) -> (Vec<(&'static str, Vec<u8>)>, Checkpoints) {
    let town = Town::new();
    let mut journal = town.open();
    let mut checkpoints = Checkpoints::from([(Seq(0), Vec::new())]);
    let long = |seq: u64| Row {
        body: format!("{{\"text\":\"{}\"}}", "x".repeat((seq * 37 % 900) as usize)),
        ..row(seq)
    };
    let entity = |seq: u64, body: Option<&str>| EntityRow {
        kind: ["bead", "context", "dispatch"][(seq % 3) as usize].to_owned(),
        id: format!("gt-{seq}"),
        body: body.map(str::to_owned),
    };
    for seq in (1..=last).step_by(4) {
        journal.append(&(seq..=(seq + 3).min(last)).map(long).collect::<Vec<_>>()).unwrap();
        if checkpoint && seq == last / 2 {
            let some: Vec<_> = (1..=last / 2)
                .map(|n| entity(n, Some(&format!("[{n}, \"{}\"]", "y".repeat(n as usize)))))
                .collect();
            journal.checkpoint(Seq(seq), &some).unwrap();
            checkpoints.insert(Seq(seq), sorted(journal.load().unwrap().entities));
        }
    }
    if checkpoint {
        journal
            .checkpoint(Seq(last - 3), &[entity(1, None), entity(2, Some("{}")), entity(last, Some("{}"))])
            .unwrap();
    }
    let loaded = journal.load().unwrap();
    checkpoints.insert(loaded.checkpoint_seq, sorted(loaded.entities));
    let take = || FILES.map(|name| (name, fs::read(town.folder().join(name)).unwrap_or_default())).to_vec();
    if crashed {
        return (take(), checkpoints);
    }
    drop(journal);
    (take(), checkpoints)
}

fn put(folder: &Path, files: &[(&str, Vec<u8>)]) {
    let _ = fs::remove_file(folder.join("journal.db-shm"));
    for (name, bytes) in files {
        let path = folder.join(name);
        if bytes.is_empty() {
            let _ = fs::remove_file(path);
        } else {
            fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn a_flipped_bit_is_detected_or_does_no_harm() {
    const LAST: u64 = 61;
    let flips = if std::env::var_os("YM_TEST_FULL").is_some() { 1000 } else { 60 };
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    let mut roll = |below: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice % below as u64) as usize
    };
    for (checkpoint, crashed) in [(false, false), (true, false), (false, true), (true, true)] {
        let (whole, checkpoints) = town(LAST, checkpoint, crashed);
        let place = Town::new();
        put(place.folder(), &whole);
        let truth = ask(&place.path(), LAST).unwrap();
        assert_eq!(truth.events.len() as u64, LAST);
        let (mut detected, mut repaired) = (0, 0);
        for _ in 0..flips {
            let mut files = whole.clone();
            // Not the note: of the three only it may be unreadable without being damage.
            let sizes = [files[0].1.len(), files[1].1.len()];
            let at = roll(sizes[0] + sizes[1]);
            let (file, at) = if at < sizes[0] { (0, at) } else { (1, at - sizes[0]) };
            let bit = roll(8);
            files[file].1[at] ^= 1 << bit;
            let what = format!("bit {bit} of byte {at} of {} ({checkpoint}, {crashed})", files[file].0);
            put(place.folder(), &files);
            match ask(&place.path(), LAST) {
                Ok(answers) => {
                    assert!(same_state(&answers.loaded, &truth, &checkpoints), "{what}: a wrong state");
                    let loaded = truth.loaded.clone();
                    assert!(Answers { loaded, ..answers } == truth, "{what}: a wrong answer");
                }
                Err(error) => {
                    detected += 1;
                    assert!(!error.to_string().is_empty());
                    // Whoever writes would have noticed too, or writes on what is sound.
                    put(place.folder(), &files);
                    if let Ok(loaded) = Journal::open(&place.path()).and_then(|mut it| it.load()) {
                        assert!(same_state(&loaded, &truth, &checkpoints), "{what}: the writer");
                    }
                    put(place.folder(), &files);
                    repaired += usize::from(check_repair(&place, &truth, &checkpoints, &what));
                }
            }
        }
        assert!(detected > flips / 20, "{detected} of {flips} detected");
        assert!(repaired > 0);
    }
}

/// Repairs what can be, and compares what is left with the truth.
fn check_repair(place: &Town, truth: &Answers, checkpoints: &Checkpoints, what: &str) -> bool {
    let damage = match Damage::find(&place.path()) {
        Ok(Some(damage)) => damage,
        Ok(None) => panic!("{what}: refused, but found sound"),
        Err(JournalError::NewerSchema { .. }) => return false,
        Err(error) => panic!("{what}: {error}"),
    };
    let last = truth.events.last().unwrap().seq;
    let (foreseen, some) = (damage.loss.clone(), damage.leaves_something());
    let lease = Lease::try_acquire(&place.folder().join("lease"), Role::Command).unwrap();
    let repaired = damage.repair(&lease, Timestamp::from_millis(1)).unwrap();
    fs::remove_dir_all(repaired.aside).unwrap();
    assert_eq!(foreseen.kept.0 + foreseen.events.unwrap_or_default(), last.0, "{what}: {foreseen}");
    if !some {
        assert!(!place.path().exists());
        return false;
    }
    let reader = Reader::open(&place.path()).unwrap();
    let kept = reader.events(&EventQuery::default()).unwrap();
    let from = foreseen.history as usize;
    assert_eq!(kept, truth.events[from..foreseen.kept.0 as usize], "{what}");
    let loaded = reader.load().unwrap();
    let entities = sorted(loaded.entities);
    assert_eq!(checkpoints.get(&loaded.checkpoint_seq), Some(&entities), "{what}");
    assert!(loaded.checkpoint_seq > Seq(0) || from == 0, "{what}: all of it is in the events");
    true
}
