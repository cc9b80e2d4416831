//! `events`: the log as items, on a thread of its own, so that a long read never delays the loop.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::to_raw_value;
use yard_client::{EventsAsk, Reply};
use yard_engine::{Refusal, Seq};
use yard_journal::{EventQuery, JournalError};

use crate::input::ReplyTo;
use crate::store::recorded;
use crate::town::TownDir;

/// Rows read at a time, at most; fewer of large ones.
const SLICE: usize = 2_000;
/// Rows read at first, before it is known how large they are.
const FIRST_SLICE: usize = 16;
/// What the rows of a slice should come to, in bytes.
const SLICE_BYTES: usize = 1024 * 1024;
/// How often a follower looks whether its client is still there.
const LOOK: Duration = Duration::from_secs(1);

/// The last durable position, for those who follow.
#[derive(Debug, Default)]
pub(crate) struct Published {
    seq: Mutex<Seq>,
    news: Condvar,
}

impl Published {
    /// Tells followers that the log has grown.
    pub(crate) fn publish(&self, seq: Seq) {
        *self.seq.lock().unwrap_or_else(PoisonError::into_inner) = seq;
        self.news.notify_all();
    }

    /// Waits until the log has grown beyond this, or for so long that one should look whether anybody still listens.
    pub(crate) fn wait_beyond(&self, seen: Seq) {
        let guard = self.seq.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.news.wait_timeout_while(guard, LOOK, |seq| *seq <= seen));
    }
}

/// Sends the events asked for, and more as they happen if that was asked.
pub(crate) fn send_events(
    town: &TownDir,
    query: EventsAsk,
    reply_to: ReplyTo,
    published: Option<Arc<Published>>,
) {
    let town = town.clone();
    on_a_thread("ym-events", reply_to, move |reply_to| stream(&town, &query, reply_to, published.as_deref()));
}

/// Sends items from the journal on a thread of its own, and then the last word.
pub(crate) fn on_a_thread(
    name: &str,
    reply_to: ReplyTo,
    send_items: impl FnOnce(&ReplyTo) -> Result<(), JournalError> + Send + 'static,
) {
    let spare = reply_to.clone();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let reply = match send_items(&reply_to) {
            Ok(()) => Reply::document(&()),
            Err(error) => Reply::Error(Refusal::new("journal", error.to_string())),
        };
        reply_to.send_waiting(reply);
    });
    if let Err(error) = started {
        spare.send(Reply::Error(Refusal::new("internal", format!("cannot start a thread: {error}"))));
    }
}

fn stream(
    town: &TownDir,
    ask: &EventsAsk,
    reply_to: &ReplyTo,
    published: Option<&Published>,
) -> Result<(), JournalError> {
    let reader = town.reader()?;
    let mut query = EventQuery {
        since: ask.since,
        since_time: ask.since_time,
        kind: ask.kind.clone(),
        limit: None,
        tail: ask.tail,
    };
    let mut seen = ask.since.unwrap_or_default();
    let mut slice = FIRST_SLICE;
    loop {
        // What the log held before this slice was read; a filter must not make us read it again.
        let held = reader.last_seq()?;
        query.limit = query.tail.is_none().then_some(slice);
        let rows = reader.events(&query)?;
        let whole = query.tail.is_some() || rows.len() < slice;
        let bytes: usize = rows.iter().map(|row| row.body.len()).sum();
        let largest = (SLICE_BYTES / (bytes / rows.len().max(1)).max(1)).clamp(1, SLICE);
        slice = (slice * 4).min(largest);
        for row in &rows {
            let Ok(event) = recorded(row) else { continue };
            let Ok(item) = to_raw_value(&event) else { continue };
            if !reply_to.send_waiting(Reply::Item(item)) {
                return Ok(());
            }
            seen = row.seq;
        }
        query.tail = None;
        if whole {
            seen = seen.max(held);
        }
        query.since = Some(seen);
        if whole {
            match published {
                Some(published) if ask.follow && !reply_to.is_gone() => published.wait_beyond(seen),
                _ => return Ok(()),
            }
        }
    }
}
