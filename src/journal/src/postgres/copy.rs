//! A whole log, written into an empty schema.

use std::ops::ControlFlow;

use postgres::Transaction;

use super::schema::{self, Found};
use super::session::{connect, prepare_for_writing};
use super::url::PostgresUrl;
use super::writer::set_meta;
use crate::JournalError;
use crate::load::{self, Log};

/// Rows that are written by one statement, and bytes of bodies in it at most.
const AT_ONCE: (usize, usize) = (2_000, 8 << 20);

/// Rows of a table of ours, on their way.
struct Rows<'a, 'b> {
    tx: &'a mut Transaction<'b>,
    insert: &'static str,
    numbers: (Vec<i64>, Vec<i64>),
    texts: (Vec<String>, Vec<String>, Vec<String>),
    sums: Vec<i64>,
    bytes: usize,
}

/// Writes a copy of a log, all or nothing, where there is none yet.
pub(crate) fn write_copy(log: &impl Log, url: &PostgresUrl) -> Result<(), JournalError> {
    let mut client = connect(url, &format!("ym {} copy", url.schema()))?;
    prepare_for_writing(&mut client)?;
    // A log that takes longer to read than a forgotten transaction may last is still no forgotten one.
    client.batch_execute("SET idle_in_transaction_session_timeout TO 0")?;
    let mut tx = client.transaction()?;
    tx.execute("SELECT pg_advisory_xact_lock(hashtext('yardmaster'), hashtext($1))", &[&url.schema()])?;
    if schema::inspect(&mut tx, url)? == Found::Tables {
        let used: bool = tx
            .query_one(
                "SELECT EXISTS (SELECT FROM events) OR EXISTS (SELECT FROM entities)
                     OR (SELECT base_seq > 0 FROM meta) OR (SELECT held FROM lease)",
                &[],
            )?
            .try_get(0)?;
        if used {
            return Err(JournalError::NotEmpty(url.to_string()));
        }
    } else {
        schema::create(&mut tx, url)?;
    }
    let meta = log.meta()?;
    let mut events = Rows::new(
        &mut tx,
        "INSERT INTO events (seq, at, kind, body, sum)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])",
    );
    load::walk(log, meta.base, |event, verdict| {
        verdict?;
        let row = event.to_row()?;
        events.numbers.0.push(row.seq.0 as i64);
        events.numbers.1.push(event.at);
        events.texts.0.push(row.kind);
        events.bytes += row.body.len();
        events.texts.1.push(row.body);
        events.sums.push(event.sum as i64);
        events.send_if_many(false)?;
        Ok(ControlFlow::Continue(()))
    })?;
    events.send_if_many(true)?;
    let mut sealer = crate::chain::Sealer::default();
    let mut entities = Rows::new(
        &mut tx,
        "INSERT INTO entities (kind, id, body, sum)
         SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])",
    );
    let content = load::walk_entities(log, |entity, sealed| {
        if !sealed {
            return Err(JournalError::CorruptEntity { kind: entity.kind, id: entity.id });
        }
        let body = entity.body.unwrap_or_default();
        let sum = sealer.entity(entity.kind.as_bytes(), entity.id.as_bytes(), body.as_bytes());
        entities.bytes += body.len();
        entities.texts.0.push(entity.kind);
        entities.texts.1.push(entity.id);
        entities.texts.2.push(body);
        entities.sums.push(sum as i64);
        entities.send_if_many(false)
    })?;
    entities.send_if_many(true)?;
    if meta.content.is_some_and(|it| it != content) {
        return Err(JournalError::CorruptCheckpoint);
    }
    set_meta(&mut tx, &load::Meta { content: Some(content), ..meta })?;
    Ok(tx.commit()?)
}

impl<'a, 'b> Rows<'a, 'b> {
    fn new(tx: &'a mut Transaction<'b>, insert: &'static str) -> Self {
        Self {
            tx,
            insert,
            numbers: Default::default(),
            texts: Default::default(),
            sums: Vec::new(),
            bytes: 0,
        }
    }

    /// Writes what has come together, if that is enough or all.
    fn send_if_many(&mut self, all: bool) -> Result<(), JournalError> {
        let enough = self.sums.len() >= AT_ONCE.0 || self.bytes >= AT_ONCE.1;
        if self.sums.is_empty() || !(all || enough) {
            return Ok(());
        }
        let (seqs, ats) = std::mem::take(&mut self.numbers);
        let (first, second, third) = std::mem::take(&mut self.texts);
        let sums = std::mem::take(&mut self.sums);
        self.bytes = 0;
        if seqs.is_empty() {
            self.tx.execute(self.insert, &[&first, &second, &third, &sums])?;
        } else {
            self.tx.execute(self.insert, &[&seqs, &ats, &first, &second, &sums])?;
        }
        Ok(())
    }
}
