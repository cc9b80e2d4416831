//! The writer: appends, checkpoints and retention, each in one durable transaction that checks the term first.
//!
//! A connection that is lost in the middle of a write leaves open whether it was stored. The writer then connects again
//! and looks: the sum of the last event says whether it is the one it wanted to store.

use std::collections::HashMap;

use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Statement, Transaction};
use yard_engine::{Seq, Timestamp};

use super::lease::RowLease;
use super::rows::{Moment, meta};
use super::session::{connect, patiently, prepare_for_writing};
use super::url::PostgresUrl;
use crate::chain::Sealer;
use crate::load::{self, Link, Log, Meta};
use crate::{EntityRow, JournalError, Loaded, Piece, Row};

/// Bytes of bodies that are sent in one statement; a larger batch is several in one transaction.
const AT_ONCE: usize = 8 << 20;
/// Entities that are written by one statement.
const ENTITIES_AT_ONCE: usize = 2_000;

/// The event log in a database, open for writing in one term.
pub(crate) struct PostgresJournal {
    url: PostgresUrl,
    term: i64,
    client: Client,
    insert: Statement,
    sealer: Sealer,
    tip: Link,
}

/// Events as the columns they are stored in.
#[derive(Default)]
struct Columns<'a> {
    seqs: Vec<i64>,
    ats: Vec<i64>,
    kinds: Vec<&'a str>,
    bodies: Vec<&'a str>,
    sums: Vec<i64>,
}

impl PostgresJournal {
    /// Opens the journal for the holder of this lease.
    pub(crate) fn open(url: &PostgresUrl, lease: &RowLease) -> Result<Self, JournalError> {
        let term = lease.term();
        let (client, insert) = open_session(url, term)?;
        let tip = Link { seq: Seq(0), sum: 0 };
        let mut journal = Self { url: url.clone(), term, client, insert, sealer: Sealer::default(), tip };
        journal.tip = journal.stored_tip()?;
        Ok(journal)
    }

    /// The last checkpoint and all events after it, verified. Appends continue from what was read.
    pub(crate) fn load(&mut self) -> Result<Loaded, JournalError> {
        let (loaded, tip) = self.read(|log| load::load(log, None))?;
        self.tip = tip;
        Ok(loaded)
    }

    /// The same, handed out as it is read. What was handed out before an error counts for nothing.
    pub(crate) fn load_in_pieces(&mut self, take: &mut dyn FnMut(Piece)) -> Result<(), JournalError> {
        let (_, tip) = self.read(|log| load::load_in_pieces(log, None, take))?;
        self.tip = tip;
        Ok(())
    }

    /// Stores rows that continue the log, all or none. They are durable when this returns.
    pub(crate) fn append(&mut self, rows: &[Row]) -> Result<(), JournalError> {
        if rows.is_empty() {
            return Ok(());
        }
        let (batches, tip) = self.columns(rows)?;
        while let Err(error) = self.try_append(&batches) {
            if !matches!(error, JournalError::Unreachable(_) | JournalError::Overtaken { .. }) {
                return Err(error);
            }
            let stored = match error {
                // The new session may end like the one before it.
                JournalError::Unreachable(_) => patiently(|| {
                    self.connect_again()?;
                    self.stored_tip()
                })?,
                _ => self.persistently(Self::stored_tip)?,
            };
            match stored {
                // It was stored, only the answer was lost.
                stored if stored == tip => break,
                stored if stored == self.tip && matches!(error, JournalError::Unreachable(_)) => {}
                _ => return Err(JournalError::Overtaken { seq: self.tip.seq.next() }),
            }
        }
        self.tip = tip;
        Ok(())
    }

    /// The rows as columns, sealed, and the link at their end.
    fn columns<'a>(&mut self, rows: &'a [Row]) -> Result<(Vec<Columns<'a>>, Link), JournalError> {
        let mut tip = self.tip;
        let mut batches = vec![Columns::default()];
        let mut bytes = 0;
        for row in rows {
            let expected = tip.seq.next();
            if row.seq != expected {
                return Err(JournalError::OutOfOrder { expected, found: row.seq });
            }
            let at = row.at.as_millis();
            let sum = self.sealer.event(tip.sum, row.seq, at, row.kind.as_bytes(), row.body.as_bytes());
            bytes += row.body.len();
            if bytes > AT_ONCE {
                bytes = row.body.len();
                batches.push(Columns::default());
            }
            if let Some(batch) = batches.last_mut() {
                batch.seqs.push(row.seq.0 as i64);
                batch.ats.push(at);
                batch.kinds.push(&row.kind);
                batch.bodies.push(&row.body);
                batch.sums.push(sum as i64);
            }
            tip = Link { seq: row.seq, sum };
        }
        Ok((batches, tip))
    }

    fn try_append(&mut self, batches: &[Columns<'_>]) -> Result<(), JournalError> {
        if let [batch] = batches {
            // One statement is one transaction, and one way there and back.
            let stored = self.client.query_one(&self.insert, &batch.with_term(&self.term));
            return was_stored(stored, batch);
        }
        let mut tx = self.client.transaction()?;
        for batch in batches {
            was_stored(tx.query_one(&self.insert, &batch.with_term(&self.term)), batch)?;
        }
        Ok(tx.commit()?)
    }

    /// Stores what has changed since the last checkpoint, and that the entities now stand at event `seq`.
    pub(crate) fn checkpoint(&mut self, seq: Seq, changed: &[EntityRow]) -> Result<(), JournalError> {
        self.persistently(|it| it.try_checkpoint(seq, changed))
    }

    fn try_checkpoint(&mut self, seq: Seq, changed: &[EntityRow]) -> Result<(), JournalError> {
        let to = self.tip.seq;
        let (term, sealer) = (self.term, &mut self.sealer);
        let mut tx = self.client.transaction()?;
        let old = hold(&mut tx, term)?;
        let mut content = old.content.unwrap_or_default();
        if seq < old.checkpoint || seq > to {
            return Err(JournalError::CheckpointOutOfRange { seq, from: old.checkpoint, to });
        }
        // One that is named twice is what it was last.
        let last: HashMap<(&str, &str), Option<&str>> =
            changed.iter().map(|row| ((row.kind.as_str(), row.id.as_str()), row.body.as_deref())).collect();
        let last: Vec<_> = last.into_iter().collect();
        let is_first = content.entities == 0;
        for rows in last.chunks(ENTITIES_AT_ONCE) {
            if !is_first {
                let (kinds, ids): (Vec<&str>, Vec<&str>) = rows.iter().map(|(key, _)| *key).unzip();
                let gone = tx.query(
                    "DELETE FROM entities AS it USING unnest($1::text[], $2::text[]) AS old (kind, id)
                     WHERE it.kind = old.kind AND it.id = old.id RETURNING it.sum",
                    &[&kinds, &ids],
                )?;
                for row in gone {
                    content.remove(row.try_get::<_, i64>(0)? as u64);
                }
            }
            let mut columns: (Vec<&str>, Vec<&str>, Vec<&str>, Vec<i64>) = Default::default();
            for ((kind, id), body) in rows {
                let Some(body) = body else { continue };
                let sum = sealer.entity(kind.as_bytes(), id.as_bytes(), body.as_bytes());
                content.add(sum);
                columns.0.push(kind);
                columns.1.push(id);
                columns.2.push(body);
                columns.3.push(sum as i64);
            }
            tx.execute(
                "INSERT INTO entities (kind, id, body, sum)
                 SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])",
                &[&columns.0, &columns.1, &columns.2, &columns.3],
            )?;
        }
        set_meta(&mut tx, &Meta { checkpoint: seq, content: Some(content), ..old })?;
        Ok(tx.commit()?)
    }

    /// Cuts off the events up to `seq`, not more than `most`, but none that the checkpoint does not contain.
    pub(crate) fn cut_off(&mut self, seq: Seq, most: u64) -> Result<u64, JournalError> {
        self.persistently(|it| it.try_cut_off(seq, most))
    }

    fn try_cut_off(&mut self, seq: Seq, most: u64) -> Result<u64, JournalError> {
        let mut tx = self.client.transaction()?;
        let old = hold(&mut tx, self.term)?;
        let limit = Seq(old.base.seq.0.saturating_add(most));
        let last = seq.min(old.checkpoint).min(limit);
        if last <= old.base.seq {
            return Ok(0);
        }
        let found = tx.query_opt("SELECT sum FROM events WHERE seq = $1", &[&(last.0 as i64)])?;
        let found = found.ok_or(JournalError::Corrupt { seq: last, what: "the event is missing" })?;
        let base = Link { seq: last, sum: found.try_get::<_, i64>(0)? as u64 };
        let gone = tx.execute("DELETE FROM events WHERE seq <= $1", &[&(last.0 as i64)])?;
        set_meta(&mut tx, &Meta { base, ..old })?;
        tx.commit()?;
        Ok(gone)
    }

    /// Whether the term still is the present one.
    pub(crate) fn confirm(&mut self) -> Result<(), JournalError> {
        self.persistently(Self::stored_tip).map(|_| ())
    }

    /// The last event in the log; 0 if there never was one.
    pub(crate) fn last_seq(&self) -> Seq {
        self.tip.seq
    }

    /// When an event happened; none if it is not in the log, or no longer.
    pub(crate) fn time_of(&mut self, seq: Seq) -> Result<Option<Timestamp>, JournalError> {
        self.persistently(|it| {
            it.read(|log| {
                let mut at = None;
                log.event(seq, |event| {
                    at = Some(Timestamp::from_millis(event.at));
                    Ok(())
                })?;
                Ok(at)
            })
        })
    }

    /// Whether the log has, or was cut off at, an event with this sum.
    pub(crate) fn has_sum(&mut self, seq: Seq, sum: u64) -> Result<bool, JournalError> {
        self.persistently(|it| it.read(|log| load::has_sum(log, seq, sum)))
    }

    /// The last event that was cut off; 0 if none was.
    pub(crate) fn beginning(&mut self) -> Result<Seq, JournalError> {
        self.persistently(|it| it.read(|log| Ok(log.meta()?.base.seq)))
    }

    /// The last event as it is stored, if this term still is the present one.
    fn stored_tip(&mut self) -> Result<Link, JournalError> {
        let term = self.term;
        self.read(|log| load::tip(log, &log.meta()?, None)).and_then(|tip| {
            let present = self.client.query_opt("SELECT 1 FROM lease WHERE term = $1", &[&term])?;
            present.map(|_| tip).ok_or(JournalError::Replaced)
        })
    }

    /// Does something once more, on a new session, when the one it had is lost: only what may be done twice.
    fn persistently<T>(
        &mut self,
        mut act: impl FnMut(&mut Self) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        match act(self) {
            Err(JournalError::Unreachable(_)) => patiently(|| {
                self.connect_again()?;
                act(self)
            }),
            other => other,
        }
    }

    /// Runs `work` on one moment of the log.
    fn read<T>(
        &mut self,
        work: impl FnOnce(&Moment<'_>) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        if self.client.is_closed() || self.client.is_valid(super::session::PATIENCE).is_err() {
            patiently(|| self.connect_again())?;
        }
        let moment = Moment::now(&mut self.client)?;
        let answer = work(&moment)?;
        moment.finish()?;
        Ok(answer)
    }

    /// Connects again. The lease is not taken anew: either nobody had it meanwhile, or
    /// the next write is refused.
    fn connect_again(&mut self) -> Result<(), JournalError> {
        let (url, term) = (&self.url, self.term);
        (self.client, self.insert) = open_session(url, term)?;
        Ok(())
    }
}

impl Columns<'_> {
    fn with_term<'b>(&'b self, term: &'b i64) -> [&'b (dyn ToSql + Sync); 6] {
        [term, &self.seqs, &self.ats, &self.kinds, &self.bodies, &self.sums]
    }
}

fn open_session(url: &PostgresUrl, term: i64) -> Result<(Client, Statement), JournalError> {
    let mut client = connect(url, &url.label(term))?;
    prepare_for_writing(&mut client)?;
    // Whoever shares the lock of the term's key is waited for by whoever wants to change it, and nothing is inserted
    // where there is no such term any more.
    let insert = client.prepare(&format!(
        "WITH mine AS MATERIALIZED (SELECT term FROM lease WHERE term = $1 FOR KEY SHARE),
         put AS (
             INSERT INTO events (seq, at, kind, body, sum)
             SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[])
             WHERE EXISTS (SELECT FROM mine)
             RETURNING 1
         )
         SELECT (SELECT count(*) FROM put), pg_notify('{}', '')",
        url.channel()
    ))?;
    Ok((client, insert))
}

/// What came of an insert. A number that is taken means that it was stored before, or by somebody else.
fn was_stored(
    answer: Result<postgres::Row, postgres::Error>,
    batch: &Columns<'_>,
) -> Result<(), JournalError> {
    match answer {
        Ok(row) if row.try_get::<_, i64>(0)? == batch.seqs.len() as i64 => Ok(()),
        Ok(_) => Err(JournalError::Replaced),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            let seq = Seq(batch.seqs.first().copied().unwrap_or_default() as u64);
            Err(JournalError::Overtaken { seq })
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes sure that the term is the present one until the transaction is over, and reads the notes.
fn hold(tx: &mut Transaction<'_>, term: i64) -> Result<Meta, JournalError> {
    let held = tx.query_opt("SELECT term FROM lease WHERE term = $1 FOR KEY SHARE", &[&term])?;
    held.ok_or(JournalError::Replaced)?;
    let rows =
        // Of two sessions of ours the one that was lost may still be at it.
        tx.query("SELECT base_seq, base_sum, checkpoint_seq, entities, digest, seal FROM meta FOR UPDATE", &[])?;
    meta(rows.first().ok_or(JournalError::NotAJournal)?)
}

/// Writes the notes, sealed.
pub(super) fn set_meta(tx: &mut Transaction<'_>, meta: &Meta) -> Result<(), JournalError> {
    let notes = meta.notes();
    let [base_seq, base_sum, checkpoint_seq, entities, digest, seal] = &notes;
    tx.execute(
        "UPDATE meta SET base_seq = $1, base_sum = $2, checkpoint_seq = $3, entities = $4, digest = $5, seal = $6",
        &[base_seq, base_sum, checkpoint_seq, entities, digest, seal],
    )?;
    Ok(())
}
