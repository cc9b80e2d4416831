//! `attach`: the state as the journal holds it, then every event as it happens, on a thread of its own. Whoever falls
//! behind blocks only this thread, and whoever comes back goes on where he was.

use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use yard_client::{Attached, Reply};
use yard_engine::Seq;
use yard_journal::{EntityRow, EventQuery, JournalError, Reader, Row};

use crate::eventlog::{Published, on_a_thread};
use crate::input::ReplyTo;
use crate::shelf::{Shelf as _, copies};
use crate::town::TownDir;

/// Records or events in one item: large enough that a long log travels fast, small enough to show progress.
const AT_ONCE: usize = 500;

/// Sends the state, unless the caller has it up to `since`, and all that follows.
pub(crate) fn attach(town: &TownDir, since: Option<Seq>, reply_to: ReplyTo, published: Arc<Published>) {
    let town = town.clone();
    on_a_thread("ym-attach", reply_to, move |reply_to| stream(&town, since, reply_to, &published));
}

/// Sends the state at the beginning of the log, then all its events.
pub(crate) fn send_past(town: &TownDir, reply_to: ReplyTo) {
    let town = town.clone();
    on_a_thread("ym-past", reply_to, move |reply_to| stream_past(&town, reply_to));
}

fn stream_past(town: &TownDir, reply_to: &ReplyTo) -> Result<(), JournalError> {
    let reader = town.reader()?;
    let (beginning, last) = (reader.beginning()?, reader.last_seq()?);
    // What the log was cut at. Without that copy, what came before the cut is unknown.
    let mut loaded = None;
    for copy in copies(town).into_iter().filter(|copy| beginning > Seq(0) && copy.seq >= beginning) {
        if reader.has_sum(copy.seq, copy.sum)? {
            loaded = Some(Reader::open(&town.path(&copy.name))?.load()?);
            break;
        }
    }
    let (seq, records) = loaded.map_or((beginning, Vec::new()), |it| (it.checkpoint_seq, it.entities));
    let begin = Attached::Begin { seq, records: Some(records.len()), last };
    if !send(reply_to, &begin) || !send_records(reply_to, &records) {
        return Ok(());
    }
    let mut seen = seq;
    loop {
        let query = EventQuery { since: Some(seen), limit: Some(AT_ONCE), ..EventQuery::default() };
        let rows = reader.events(&query)?;
        match rows.last() {
            Some(row) if send_events(reply_to, &rows) => seen = row.seq,
            Some(_) | None => return Ok(()),
        }
    }
}

fn stream(
    town: &TownDir,
    since: Option<Seq>,
    reply_to: &ReplyTo,
    published: &Published,
) -> Result<(), JournalError> {
    let reader = town.reader()?;
    let (beginning, last) = (reader.beginning()?, reader.last_seq()?);
    // A log that ends before what the caller has seen is another one, and of one that begins after it he would miss some.
    let mut seen = match since.filter(|since| (beginning..=last).contains(since)) {
        Some(since) => {
            if !send(reply_to, &Attached::Begin { seq: since, records: None, last }) {
                return Ok(());
            }
            since
        }
        None => match send_state(&reader, reply_to)? {
            Some(seq) => seq,
            None => return Ok(()),
        },
    };
    loop {
        let query = EventQuery { since: Some(seen), limit: Some(AT_ONCE), ..EventQuery::default() };
        let rows = reader.events(&query)?;
        match rows.last() {
            Some(row) => {
                // What a slow reader has not seen yet was cut off: he comes back, and is sent the state.
                let is_cut = rows.first().is_some_and(|row| row.seq != seen.next());
                seen = row.seq;
                if is_cut || !send_events(reply_to, &rows) {
                    return Ok(());
                }
            }
            None if reply_to.is_gone() => return Ok(()),
            None => published.wait_beyond(seen),
        }
    }
}

/// Sends the last checkpoint and what follows it; says up to where, or nothing if nobody listens any more.
fn send_state(reader: &Reader, reply_to: &ReplyTo) -> Result<Option<Seq>, JournalError> {
    let loaded = reader.load()?;
    let last = loaded.tail.last().map_or(loaded.checkpoint_seq, |row| row.seq);
    let begin = Attached::Begin { seq: loaded.checkpoint_seq, records: Some(loaded.entities.len()), last };
    if !send(reply_to, &begin) {
        return Ok(None);
    }
    if !send_records(reply_to, &loaded.entities) {
        return Ok(None);
    }
    for rows in loaded.tail.chunks(AT_ONCE) {
        if !send_events(reply_to, rows) {
            return Ok(None);
        }
    }
    Ok(Some(last))
}

fn send_records(reply_to: &ReplyTo, all: &[EntityRow]) -> bool {
    all.chunks(AT_ONCE).all(|rows| {
        let records = rows.iter().filter_map(|row| {
            let body = RawValue::from_string(row.body.clone()?).ok()?;
            Some((row.kind.clone(), row.id.clone(), body))
        });
        send(reply_to, &Attached::Records(records.collect()))
    })
}

fn send_events(reply_to: &ReplyTo, rows: &[Row]) -> bool {
    let events = rows.iter().filter_map(|row| {
        let body = RawValue::from_string(row.body.clone()).ok()?;
        Some((row.seq, row.at, row.kind.clone(), body))
    });
    send(reply_to, &Attached::Events(events.collect()))
}

fn send(reply_to: &ReplyTo, item: &Attached) -> bool {
    to_raw_value(item).is_ok_and(|item| reply_to.send_waiting(Reply::Item(item)))
}
