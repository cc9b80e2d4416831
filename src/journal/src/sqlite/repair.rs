//! What is left of a damaged journal, and making a sound one of it.
//!
//! Promises: a repair keeps a state that the town once had, never one that it never had. It keeps the events up to the
//! first one that is damaged, or the checkpoint and what soundly follows it, whichever reaches further, and cuts between
//! two turns, so that nothing is half kept. The damaged files are put aside whole, and what is lost is said. Nothing is
//! repaired unless somebody asks for it.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};
use yard_engine::{Seq, Timestamp};

use super::folder::sync_folder_of;
use super::rows::set_meta;
use super::tip::{self, TipNote};
use super::{schema, wal};
use crate::chain::{Content, GENESIS, Sealer};
use crate::load::{self, Link, Log, Meta};
use crate::{JournalError, Lease, Reader};

/// A damaged journal.
#[derive(Debug)]
pub struct Damage {
    path: PathBuf,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
    /// What a repair would give up.
    pub loss: Loss,
    /// What a repair would keep; none if nothing of the file can be read.
    kept: Option<Kept>,
}

/// What a repair gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The last event that stays; 0 if none does.
    pub kept: Seq,
    /// How many events after that one are lost, as far as anybody can tell.
    pub events: Option<u64>,
    /// How many earlier events are lost from the history, while the state still contains them.
    pub history: u64,
    /// The checkpoint is given up; the events alone yield the same state.
    pub checkpoint: bool,
}

/// A repair that was made.
#[derive(Debug)]
pub struct Repaired {
    /// The folder the damaged files are in now.
    pub aside: PathBuf,
    /// What was given up.
    pub loss: Loss,
}

/// The part of a journal that is sound.
#[derive(Debug, Clone, Copy)]
struct Kept {
    base: Link,
    checkpoint: Option<(Seq, Content)>,
    last: Link,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.kept.next();
        match self.events {
            Some(0) => write!(f, "no event is lost (the last is {})", self.kept)?,
            Some(1) => write!(f, "1 event is lost ({next}), {} stays the last", self.kept)?,
            Some(lost) => {
                let last = self.kept.0.saturating_add(lost);
                write!(f, "{lost} events are lost ({next} to {last}), {} stays the last", self.kept)?;
            }
            None => write!(f, "all events after {} are lost, nobody can tell how many", self.kept)?,
        }
        if self.history > 0 {
            write!(f, "; {} earlier events are lost from the history, the state is whole", self.history)?;
        }
        if self.checkpoint {
            f.write_str("; the checkpoint is made again from the events")?;
        }
        Ok(())
    }
}

impl Damage {
    /// Looks a journal over. None: it is sound, or there has never been one. An error: it cannot be looked at, or is not
    /// ours to repair.
    pub fn find(path: &Path) -> Result<Option<Self>, JournalError> {
        let noted = tip::read(path).filter(|noted| noted.seq > Seq(0));
        let report = match Reader::open(path).and_then(|reader| reader.check()) {
            Ok(report) if report.is_sound() => return Ok(None),
            Ok(report) => report,
            Err(JournalError::Missing(_)) if noted.is_none() => return Ok(None),
            Err(
                error @ (JournalError::Missing(_)
                | JournalError::NotAJournal
                | JournalError::Emptied
                | JournalError::Damaged(_)
                | JournalError::CutOff { .. }),
            ) => return Ok(Some(Self::total(path, &error, noted))),
            Err(error) => return Err(error),
        };
        let conn = wal::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let tx = conn.unchecked_transaction()?;
        let problems = report.problems;
        let Some((kept, history)) = survey(&tx, noted) else { return Err(JournalError::BeyondRepair) };
        let checkpoint = kept.checkpoint.is_none();
        let known = noted.map(|noted| noted.seq).into_iter().chain(last_believable(&tx)).max();
        let events = known.map(|last| last.0.saturating_sub(kept.last.seq.0));
        let loss = Loss { kept: kept.last.seq, events, history, checkpoint };
        Ok(Some(Self { path: path.to_owned(), problems, loss, kept: Some(kept) }))
    }

    /// Of a file in which nothing can be read.
    fn total(path: &Path, error: &JournalError, noted: Option<Link>) -> Self {
        let events = noted.map(|noted| noted.seq.0);
        let loss = Loss { kept: Seq(0), events, history: 0, checkpoint: false };
        Self { path: path.to_owned(), problems: vec![error.to_string()], loss, kept: None }
    }

    /// Whether anything can be kept. Without it a repair only puts the files aside, and the town begins anew.
    pub fn leaves_something(&self) -> bool {
        self.kept.is_some()
    }

    /// Puts the damaged files into a folder that is named after `when`, and what is sound in their place.
    pub fn repair(self, _lease: &Lease, when: Timestamp) -> Result<Repaired, JournalError> {
        let Self { path, loss, kept, .. } = self;
        let mended = beside(&path, "-mended");
        if let Some(kept) = &kept {
            for leftover in [mended.clone(), beside(&mended, "-journal")] {
                remove(&leftover)?;
            }
            salvage(&path, &mended, kept)?;
        }
        let aside = put_aside(&path, when)?;
        // In this order: a WAL must never meet a journal that it does not belong to, and a crash in between is noticed
        // by whoever opens the journal next, because the note is ahead of it.
        for companion in ["-wal", "-shm"] {
            remove(&beside(&path, companion))?;
        }
        if let Some(kept) = &kept {
            fs::rename(&mended, &path).map_err(|e| JournalError::io("replace the journal", &path, e))?;
            remove(&tip::note_path(&path))?;
            TipNote::of(&path).write(kept.last);
        } else {
            remove(&path)?;
            remove(&tip::note_path(&path))?;
        }
        sync_folder_of(&path)?;
        Ok(Repaired { aside, loss })
    }
}

/// What is sound, and how many events of the history that leaves out. None: no state can be made of it.
fn survey(conn: &Connection, noted: Option<Link>) -> Option<(Kept, u64)> {
    let meta = conn.meta().ok();
    let file_is_sound = file_is_sound(conn);
    // A log that ends where it should, or in a file that is in order, ends with a whole transaction.
    let ends_well = |last: Link| file_is_sound || noted == Some(last);
    let mut sound = true;
    let content = load::walk_entities(conn, |_, sealed| {
        sound &= sealed;
        Ok(())
    });
    let checkpoint = match (meta, content) {
        (Some(meta), Ok(content)) if sound && meta.content.is_none_or(|it| it == content) => {
            Some((meta.checkpoint, content))
        }
        _ => None,
    };
    let base = meta.map_or(Link { seq: Seq(0), sum: GENESIS }, |meta| meta.base);
    let replay = sound_until(conn, base, ends_well);
    let resumed = match (meta, checkpoint) {
        (Some(meta), Some((seq, _))) => {
            load::link_at(conn, &meta, seq).ok().map(|from| (from, sound_until(conn, from, ends_well)))
        }
        _ => None,
    };
    if let Some((from, last)) = resumed
        && (base.seq > Seq(0) || last.seq >= replay.seq)
    {
        let from_base = replay.seq >= from.seq;
        let start = if from_base { base } else { history_start(conn, base, from) };
        let kept = Kept { base: start, checkpoint, last };
        return Some((kept, start.seq.0 - base.seq.0));
    }
    (base.seq == Seq(0)).then_some((Kept { base, checkpoint: None, last: replay }, 0))
}

/// Whether SQLite finds its own structures in order.
fn file_is_sound(conn: &Connection) -> bool {
    let said = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    said.is_ok_and(|said| said == "ok")
}

/// How far the events after `from` are sound. A last turn that may be incomplete is left out.
fn sound_until(conn: &Connection, from: Link, ends_well: impl Fn(Link) -> bool) -> Link {
    let mut sealer = Sealer::default();
    let (mut last, mut turn, mut turn_began) = (from, None, from);
    let mut whole = None;
    let walked = load::walk(conn, from, |event, verdict| {
        if verdict.is_ok() && event.to_row().is_ok() {
            if turn != Some(event.at) {
                (turn, turn_began) = (Some(event.at), last);
            }
            last = Link { seq: event.seq, sum: event.sum };
            return Ok(ControlFlow::Continue(()));
        }
        // All events of a turn have one time. It may be just the time that is damaged.
        let mut in_turn = |at| sealer.event(last.sum, event.seq, at, event.kind, event.body) == event.sum;
        let is_next = event.seq == last.seq.next();
        whole = Some(is_next && turn.is_none_or(|at| event.at != at && !in_turn(at)));
        Ok(ControlFlow::Break(()))
    });
    let whole = walked.is_ok() && whole.unwrap_or_else(|| ends_well(last));
    if whole { last } else { turn_began }
}

/// From where the history up to the checkpoint is sound.
fn history_start(conn: &Connection, base: Link, checkpoint: Link) -> Link {
    let mut start = checkpoint;
    // An error only means that it is not sound further back.
    let _ = load::walk_back(conn, base, |event, verdict| {
        if event.seq > checkpoint.seq {
            return Ok(ControlFlow::Continue(()));
        }
        let before = Seq(event.seq.0.saturating_sub(1));
        match (verdict, load::link_at(conn, &Meta { base, checkpoint: before, content: None }, before)) {
            (Ok(()), Ok(link)) if event.seq == start.seq => start = link,
            _ => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    });
    start
}

/// The last event, if it follows from the one before it.
fn last_believable(conn: &Connection) -> Option<Seq> {
    let mut last = None;
    let _ = load::walk_back(conn, Link { seq: Seq(0), sum: GENESIS }, |event, verdict| {
        last = verdict.ok().map(|()| event.seq);
        Ok(ControlFlow::Break(()))
    });
    last
}

/// Writes what is kept into a new file, all or nothing.
fn salvage(damaged: &Path, mended: &Path, kept: &Kept) -> Result<(), JournalError> {
    schema::create_file(mended)?;
    let mut target = Connection::open_with_flags(mended, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    target.pragma_update(None, "synchronous", "full")?;
    schema::ensure(&mut target)?;
    let source = wal::connect(damaged, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let reading = source.unchecked_transaction()?;
    let tx = target.transaction()?;
    let mut put = tx.prepare("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
    if kept.last.seq > kept.base.seq {
        load::walk(&*reading, kept.base, |event, verdict| {
            verdict?;
            let row = event.to_row()?;
            put.execute(params![row.seq.0 as i64, event.at, row.kind, row.body, event.sum as i64])?;
            let done = row.seq == kept.last.seq;
            Ok(if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
    }
    drop(put);
    let (checkpoint, content) = kept.checkpoint.unwrap_or_default();
    if kept.checkpoint.is_some() {
        let mut put = tx.prepare("INSERT INTO entities VALUES (?1, ?2, ?3, ?4)")?;
        let mut sealer = Sealer::default();
        load::walk_entities(&*reading, |entity, _| {
            let body = entity.body.unwrap_or_default();
            let sum = sealer.entity(entity.kind.as_bytes(), entity.id.as_bytes(), body.as_bytes());
            put.execute(params![entity.kind, entity.id, body, sum as i64])?;
            Ok(())
        })?;
    }
    set_meta(&tx, &Meta { base: kept.base, checkpoint, content: Some(content) })?;
    Ok(tx.commit()?)
}

/// Puts a journal and its companions under a second name each, in a folder of their own.
fn put_aside(path: &Path, when: Timestamp) -> Result<PathBuf, JournalError> {
    // Without what some file systems do not like in names.
    let when = when.to_string().replace([':', '-'], "");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = (1..u32::MAX)
        .map(|n| if n == 1 { String::new() } else { format!("-{n}") })
        .map(|suffix| path.with_file_name(format!("{stem}-damaged-{when}{suffix}")))
        .find(|folder| !folder.exists())
        .unwrap_or_default();
    let failed = |error| JournalError::io("put aside into", &folder, error);
    fs::DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
    for file in [path.to_owned(), beside(path, "-wal"), tip::note_path(path)] {
        let Some(name) = file.file_name().filter(|_| file.exists()) else { continue };
        let copy = folder.join(name);
        // Some file systems have no second names.
        fs::hard_link(&file, &copy).or_else(|_| fs::copy(&file, &copy).map(|_| ())).map_err(failed)?;
    }
    File::open(&folder).and_then(|it| it.sync_all()).map_err(failed)?;
    sync_folder_of(path)?;
    Ok(folder)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn remove(path: &Path) -> Result<(), JournalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(JournalError::io("remove", path, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
