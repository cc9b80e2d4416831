//! The tables, their version, and whether a schema has them.
//!
//! `events`, `entities` and `meta` hold what the SQLite journal's tables of these names hold. `lease` has one row. Its key
//! is the term: a write shares the key's lock until it is over, which a heartbeat does not mind and a takeover, which
//! changes the key, waits for. `meta.log` is the log's own name; `home` is the directory it was led from last.

use postgres::GenericClient;

use super::session::connect;
use super::url::PostgresUrl;
use crate::JournalError;
use crate::chain::{Content, GENESIS};
use crate::load::{Link, Meta};

/// The version of the tables this program reads and writes.
const FORMAT: i64 = 1;

/// What is in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It does not exist, or is empty.
    Nothing,
    /// The tables.
    Tables,
}

/// Looks at a schema without changing it. Refuses what is newer or not ours.
pub(super) fn inspect(client: &mut impl GenericClient, url: &PostgresUrl) -> Result<Found, JournalError> {
    let row = client.query_one(
        "SELECT to_regclass($1 || '.meta') IS NOT NULL AND to_regclass($1 || '.lease') IS NOT NULL,
                EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1)::oid)",
        &[&url.schema()],
    )?;
    let (ours, taken): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
    if !ours {
        return if taken { Err(JournalError::NotAJournal) } else { Ok(Found::Nothing) };
    }
    let found: i64 =
        client.query_one(&format!("SELECT format FROM {}.meta", url.quoted_schema()), &[])?.try_get(0)?;
    if found > FORMAT { Err(JournalError::NewerSchema { found, known: FORMAT }) } else { Ok(Found::Tables) }
}

/// The tables must be there: a log that was lost, or is called otherwise, is never begun anew by the way.
pub(super) fn must_exist(client: &mut impl GenericClient, url: &PostgresUrl) -> Result<(), JournalError> {
    match inspect(client, url)? {
        Found::Tables => Ok(()),
        Found::Nothing => Err(JournalError::Missing(url.to_string().into())),
    }
}

/// Creates the tables where there are none, all or nothing.
pub(crate) fn begin(url: &PostgresUrl) -> Result<(), JournalError> {
    let mut client = connect(url, &format!("ym {} begin", url.schema()))?;
    let mut tx = client.transaction()?;
    // Of two who create at the same time, the second finds the first's.
    tx.execute("SELECT pg_advisory_xact_lock(hashtext('yardmaster'), hashtext($1))", &[&url.schema()])?;
    if inspect(&mut tx, url)? == Found::Nothing {
        create(&mut tx, url)?;
    }
    Ok(tx.commit()?)
}

/// Creates the tables, empty.
pub(super) fn create(client: &mut impl GenericClient, url: &PostgresUrl) -> Result<(), JournalError> {
    let encoding: String = client.query_one("SHOW server_encoding", &[])?.try_get(0)?;
    if encoding != "UTF8" {
        return Err(JournalError::Server(format!("the database's encoding is {encoding}, and must be UTF8")));
    }
    let base = Link { seq: yard_engine::Seq(0), sum: GENESIS };
    let meta = Meta { base, checkpoint: base.seq, content: Some(Content::default()) };
    let [base_seq, base_sum, checkpoint_seq, entities, digest, seal] = meta.notes();
    client.batch_execute(&format!(
        "CREATE SCHEMA IF NOT EXISTS {schema};
         CREATE TABLE {schema}.events (
             seq bigint PRIMARY KEY, at bigint NOT NULL, kind text NOT NULL, body text NOT NULL, sum bigint NOT NULL
         );
         CREATE TABLE {schema}.entities (
             kind text COLLATE \"C\" NOT NULL, id text COLLATE \"C\" NOT NULL, body text NOT NULL, sum bigint NOT NULL,
             PRIMARY KEY (kind, id)
         );
         CREATE TABLE {schema}.meta (
             one boolean PRIMARY KEY CHECK (one), format bigint NOT NULL,
             base_seq bigint NOT NULL, base_sum bigint NOT NULL, checkpoint_seq bigint NOT NULL,
             entities bigint NOT NULL, digest bigint NOT NULL, seal bigint NOT NULL, log text NOT NULL
         );
         CREATE TABLE {schema}.lease (
             term bigint PRIMARY KEY, held boolean NOT NULL, role text NOT NULL, pid bigint NOT NULL,
             host text NOT NULL, address text NOT NULL, taken_at timestamptz NOT NULL, heartbeat_at timestamptz NOT NULL,
             home text NOT NULL, home_host text NOT NULL, home_address text NOT NULL
         );
         INSERT INTO {schema}.meta
         VALUES (true, {FORMAT}, {base_seq}, {base_sum}, {checkpoint_seq}, {entities}, {digest}, {seal},
                 gen_random_uuid()::text);
         INSERT INTO {schema}.lease VALUES (0, false, '', 0, '', '', now(), now(), '', '', '')",
        schema = url.quoted_schema(),
    ))?;
    Ok(())
}
