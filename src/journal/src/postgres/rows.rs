//! The rows of the tables as a log to be read, in one transaction that sees one moment.

use std::cell::RefCell;
use std::ops::ControlFlow;

use postgres::fallible_iterator::FallibleIterator as _;
use postgres::{Client, IsolationLevel, Row, Transaction};
use yard_engine::Seq;

use crate::JournalError;
use crate::chain::Content;
use crate::load::{Link, Log, Meta, RawEntity};
use crate::row::RawEvent;

/// Rows that are asked for at first, before it is known how many are wanted.
const FIRST: i64 = 64;
/// Rows that are asked for together, at most.
const AT_ONCE: i64 = 2_000;

/// One moment of the log.
pub(crate) struct Moment<'a>(RefCell<Transaction<'a>>);

impl<'a> Moment<'a> {
    /// The log as it is now.
    pub(super) fn now(client: &'a mut Client) -> Result<Self, JournalError> {
        let tx = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        Ok(Self::within(tx.start()?))
    }

    /// The log as a transaction sees it.
    pub(super) fn within(tx: Transaction<'a>) -> Self {
        Self(RefCell::new(tx))
    }

    /// Ends the look.
    pub(super) fn finish(self) -> Result<(), JournalError> {
        Ok(self.0.into_inner().commit()?)
    }
}

impl Log for Moment<'_> {
    fn meta(&self) -> Result<Meta, JournalError> {
        let rows = self
            .0
            .borrow_mut()
            .query("SELECT base_seq, base_sum, checkpoint_seq, entities, digest, seal FROM meta", &[])?;
        meta(rows.first().ok_or(JournalError::NotAJournal)?)
    }

    fn last(&self) -> Result<Option<Link>, JournalError> {
        let last =
            self.0.borrow_mut().query_opt("SELECT seq, sum FROM events ORDER BY seq DESC LIMIT 1", &[])?;
        last.map(|row| Ok(Link { seq: Seq(number(&row, 0)?), sum: number(&row, 1)? })).transpose()
    }

    fn sum_of(&self, seq: Seq) -> Result<Option<u64>, JournalError> {
        let found =
            self.0.borrow_mut().query_opt("SELECT sum FROM events WHERE seq = $1", &[&(seq.0 as i64)])?;
        found.map(|row| number(&row, 0)).transpose()
    }

    fn event(
        &self,
        seq: Seq,
        visit: impl FnOnce(&RawEvent<'_>) -> Result<(), JournalError>,
    ) -> Result<bool, JournalError> {
        let found = self
            .0
            .borrow_mut()
            .query_opt("SELECT seq, at, kind, body, sum FROM events WHERE seq = $1", &[&(seq.0 as i64)])?;
        found.map(|row| visit(&event(&row)?)).transpose().map(|found| found.is_some())
    }

    fn events_after(
        &self,
        seq: Seq,
        mut visit: impl FnMut(&RawEvent<'_>) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError> {
        let next = self
            .0
            .borrow_mut()
            .prepare("SELECT seq, at, kind, body, sum FROM events WHERE seq > $1 ORDER BY seq LIMIT $2")?;
        let (mut after, mut count) = (seq.0 as i64, FIRST);
        loop {
            let rows = self.0.borrow_mut().query(&next, &[&after, &count])?;
            for row in &rows {
                after = row.try_get(0)?;
                if visit(&event(row)?)?.is_break() {
                    return Ok(());
                }
            }
            if (rows.len() as i64) < count {
                return Ok(());
            }
            count = (count * 4).min(AT_ONCE);
        }
    }

    fn events_back(
        &self,
        seq: Seq,
        mut visit: impl FnMut(&RawEvent<'_>, Option<u64>) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError> {
        let next = self.0.borrow_mut().prepare(
            "SELECT seq, at, kind, body, sum FROM events WHERE seq > $1 AND seq < $2 ORDER BY seq DESC LIMIT $3",
        )?;
        let (mut before, mut count) = (i64::MAX, FIRST);
        loop {
            // One more than is handed out: what is before an event is all that is needed to verify it.
            let rows = self.0.borrow_mut().query(&next, &[&(seq.0 as i64), &before, &(count + 1)])?;
            let is_last = rows.len() as i64 <= count;
            let handed_out = if is_last { rows.len() } else { rows.len() - 1 };
            for (at, row) in rows.iter().enumerate().take(handed_out) {
                let it = event(row)?;
                let one_before = rows.get(at + 1).map(event).transpose()?;
                let sum = one_before.filter(|one| one.seq.next() == it.seq).map(|one| one.sum);
                before = it.seq.0 as i64;
                if visit(&it, sum)?.is_break() {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
            count = (count * 4).min(AT_ONCE);
        }
    }

    fn entities(
        &self,
        mut visit: impl FnMut(RawEntity) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let mut tx = self.0.borrow_mut();
        let mut rows = tx.query_raw("SELECT kind, id, body, sum FROM entities", Vec::<i64>::new())?;
        while let Some(row) = rows.next()? {
            let text = |column| row.try_get::<_, String>(column).map(String::into_bytes);
            visit(RawEntity { kind: text(0)?, id: text(1)?, body: text(2)?, sum: number(&row, 3)? })?;
        }
        Ok(())
    }

    fn damages(&self, _note: impl FnMut(String)) -> Result<(), JournalError> {
        // The server looks after its own files.
        Ok(())
    }
}

fn number(row: &Row, column: usize) -> Result<u64, JournalError> {
    Ok(row.try_get::<_, i64>(column)? as u64)
}

/// Reads the columns `base_seq, base_sum, checkpoint_seq, entities, digest, seal`, in this order.
pub(super) fn meta(row: &Row) -> Result<Meta, JournalError> {
    let content = Content { entities: number(row, 3)?, digest: number(row, 4)? };
    let base = Link { seq: Seq(number(row, 0)?), sum: number(row, 1)? };
    let meta = Meta { base, checkpoint: Seq(number(row, 2)?), content: Some(content) };
    if meta.seal() == number(row, 5)? { Ok(meta) } else { Err(JournalError::CorruptNotes) }
}

/// Reads the columns `seq, at, kind, body, sum`, in this order.
fn event(row: &Row) -> Result<RawEvent<'_>, JournalError> {
    Ok(RawEvent {
        seq: Seq(number(row, 0)?),
        at: row.try_get(1)?,
        kind: row.try_get::<_, &str>(2)?.as_bytes(),
        body: row.try_get::<_, &str>(3)?.as_bytes(),
        sum: number(row, 4)?,
    })
}
