//! Where a town's journal is: choosing it for a new town, and changing it, which must never make a town begin anew without
//! a word.

use std::fs;
use std::path::Path;

use yard_daemon::TownDir;
use yard_daemon::config::{self, Change, STORE};
use yard_engine::Seq;
use yard_journal::{Holder, JournalError, Lease, Reader, Role, Store};

use crate::errors::Report;

/// What a journal's files are called once the journal has moved to a database.
const MOVED: &str = "journal-moved";

/// A store that somebody typed: `sqlite`, or the address of a database.
pub(super) fn typed(town: &TownDir, text: &str) -> Result<Store, Report> {
    let bad = |why: String| Report::new("bad-value", format!("store is not valid: {why}"));
    let store = Store::parse(text, &town.journal()).map_err(|error| bad(error.to_string()))?;
    match &store {
        Store::Postgres(url) if url.has_password() => {
            Err(bad("its password would lie in a file that is often shared".to_owned())
                .hint("leave it out, and put it in ~/.pgpass (mode 0600) or PGPASSWORD"))
        }
        Store::Postgres(_) | Store::Sqlite(_) => Ok(store),
    }
}

/// Writes down where the journal of a new town is to be, if it can be there.
pub(super) fn choose(town: &TownDir, text: &str) -> Result<(), Report> {
    // A mistake is found before anything is written.
    tip(&typed(town, text)?)?;
    config::set(&town.config(), STORE, text)?;
    Ok(())
}

/// Has the town use another journal from now on, which must hold what the present one holds.
pub(super) fn change(town: &TownDir, text: &str) -> Result<Change, Report> {
    let next = typed(town, text)?;
    let now = match town.store() {
        Ok(now) => now.clone(),
        // It may be just what is to be mended.
        Err(JournalError::BadStore(_)) => return Ok(config::set(&town.config(), STORE, text)?),
        Err(error) => return Err(error.into()),
    };
    if now == next {
        return Ok(config::set(&town.config(), STORE, text)?);
    }
    if let Some(holder) = town.holder() {
        return Err(served(&holder));
    }
    let (here, there) = (tip(&now)?, tip(&next)?);
    match (here, there) {
        (None | Some((Seq(0), _)), _) => {}
        (Some(here), Some(there)) if here == there => {}
        (Some((last, _)), None | Some((Seq(0), _))) => {
            let message =
                format!("the town would begin anew: its {last} events are in {now}, and none in {next}");
            return Err(Report::new("store-empty", message)
                .hint(format!("ym journal copy '{text}' copies them; then set it again")));
        }
        (Some((last, _)), Some((other, _))) => {
            let message =
                format!("{next} holds another log: it ends at event {other}, the town's at event {last}");
            return Err(Report::new("store-differs", message)
                .hint("ym journal copy makes a copy where nothing is yet; then set that"));
        }
    }
    let change = config::set(&town.config(), STORE, text)?;
    yard_journal::leave_log(&town.folder())?;
    if let (Store::Sqlite(file), Store::Postgres(_)) = (&now, &next) {
        put_aside(file)?;
    }
    // Workers may have gone on while the journal moved: only this directory knows of them.
    let lease = Lease::try_acquire(&next, Role::Command);
    lease.map_err(|error| Report::new("journal", error.to_string()))?.make_home()?;
    Ok(change)
}

/// The last event of a journal and its sum; none if there is no journal.
fn tip(store: &Store) -> Result<Option<(Seq, u64)>, Report> {
    match Reader::open(store).and_then(|reader| reader.tip()) {
        Ok(tip) => Ok(Some(tip)),
        Err(JournalError::Missing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Takes the file out of the way, so that nobody goes on with it by mistake. One that was put aside before stays.
fn put_aside(file: &Path) -> Result<(), Report> {
    let names = std::iter::once(MOVED.to_owned()).chain((2..).map(|n| format!("{MOVED}-{n}")));
    let mut free = names.filter(|name| !file.with_file_name(format!("{name}.db")).exists());
    let name = free.next().unwrap_or_default();
    for ending in ["", "-wal", "-shm", "-tip"] {
        let here = file.with_file_name(format!("journal.db{ending}"));
        let there = file.with_file_name(format!("{name}.db{ending}"));
        if here.exists() {
            fs::rename(&here, &there)?;
        }
    }
    Ok(())
}

/// Somebody has the town.
pub(super) fn served(holder: &Holder) -> Report {
    Report::new("served", format!("the town is served by {holder}, and its journal cannot move meanwhile"))
        .hint("ym stop ends a daemon; workers may go on: ym stop --leave-running")
}
