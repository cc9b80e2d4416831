//! A whole log, written into a new file.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use super::folder::sync_folder_of;
use super::rows::set_meta;
use super::schema;
use crate::JournalError;
use crate::chain::Sealer;
use crate::load::{self, Log, Meta};

/// Writes a copy of a log to a new file, readable by its owner only. Nothing is left of a copy that fails.
pub(crate) fn write_copy(log: &impl Log, target: &Path) -> Result<(), JournalError> {
    if target.symlink_metadata().is_ok() {
        return Err(JournalError::NotEmpty(target.display().to_string()));
    }
    schema::create_file(target)?;
    let copied = fill(log, target).and_then(|()| {
        let synced = File::open(target).and_then(|file| file.sync_all());
        synced.map_err(|error| JournalError::io("make durable", target, error))?;
        sync_folder_of(target)
    });
    if copied.is_err() {
        let _ = fs::remove_file(target);
    }
    copied
}

fn fill(log: &impl Log, target: &Path) -> Result<(), JournalError> {
    let mut copy = Connection::open_with_flags(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    schema::ensure(&mut copy)?;
    let meta = log.meta()?;
    let tx = copy.transaction()?;
    let mut put = tx.prepare("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
    load::walk(log, meta.base, |event, verdict| {
        verdict?;
        let row = event.to_row()?;
        put.execute(params![row.seq.0 as i64, event.at, row.kind, row.body, event.sum as i64])?;
        Ok(ControlFlow::Continue(()))
    })?;
    drop(put);
    let mut put = tx.prepare("INSERT INTO entities VALUES (?1, ?2, ?3, ?4)")?;
    let mut sealer = Sealer::default();
    let content = load::walk_entities(log, |entity, sealed| {
        if !sealed {
            return Err(JournalError::CorruptEntity { kind: entity.kind, id: entity.id });
        }
        let body = entity.body.unwrap_or_default();
        let sum = sealer.entity(entity.kind.as_bytes(), entity.id.as_bytes(), body.as_bytes());
        put.execute(params![entity.kind, entity.id, body, sum as i64])?;
        Ok(())
    })?;
    drop(put);
    if meta.content.is_some_and(|it| it != content) {
        return Err(JournalError::CorruptCheckpoint);
    }
    set_meta(&tx, &Meta { content: Some(content), ..meta })?;
    Ok(tx.commit()?)
}
