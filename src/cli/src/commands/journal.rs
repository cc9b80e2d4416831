//! `ym journal …`: the event log itself, read directly, whether or not somebody serves the town.

use serde_json::json;
use yard_client::Safe;
use yard_daemon::TownDir;
use yard_engine::{Event, Recorded, State};
use yard_journal::{CheckReport, Copied, JournalError, Lease, LeaseError, Reader, Role, Store};

use super::{Done, store};
use crate::args::JournalCmd;
use crate::errors::{FAILED, Report};
use crate::output::{Out, Tone};
use crate::session::Session;
use crate::words::count;

pub(super) fn run(session: &mut Session, command: JournalCmd) -> Done {
    match command {
        JournalCmd::Check => check(session),
        JournalCmd::Copy { first, second: Some(to) } => copy(session, Some(&first), &to),
        JournalCmd::Copy { first: to, second: None } => copy(session, None, &to),
    }
}

fn check(session: &mut Session) -> Done {
    let store = session.town()?.store()?.clone();
    let mut report = Reader::open(&store)?.check()?;
    if report.is_sound()
        && let Err(unreadable) = state(&session.town()?)
    {
        report.problems.push(unreadable.to_string());
    }
    for problem in &mut report.problems {
        // This is that check.
        *problem = problem.replace("run `ym journal check`, and ", "");
    }
    if session.out.json() {
        session.out.line(json!({
            "sound": report.is_sound(),
            "path": store.to_string(),
            "events": report.events,
            "first_seq": report.first_seq,
            "last_seq": report.last_seq,
            "checkpoint_seq": report.checkpoint_seq,
            "entities": report.entities,
            "problems": report.problems,
        }))?;
    } else {
        say(&mut session.out, &report)?;
    }
    Ok(if report.is_sound() { 0 } else { FAILED })
}

fn say(out: &mut Out, report: &CheckReport) -> std::io::Result<()> {
    if !out.quiet() {
        let CheckReport { first_seq, last_seq, checkpoint_seq, .. } = report;
        let range = if report.events > 0 { format!(", {first_seq} to {last_seq}") } else { String::new() };
        out.line(format!("Events: {}{range}", report.events))?;
        let things = if report.entities == 1 { "entity" } else { "entities" };
        out.line(format!("Checkpoint: at event {checkpoint_seq}, {} {things}", report.entities))?;
        if report.is_sound() {
            return out.line(out.paint(Tone::Good, "Sound"));
        }
    }
    for problem in &report.problems {
        let mark = out.paint(Tone::Bad, "✗");
        out.line(format!("{mark} {}", Safe(problem)))?;
    }
    if !report.is_sound() && !out.quiet() {
        let found = count(report.problems.len(), "problem");
        out.line(out.paint(Tone::Bad, &format!("Not sound: {found}")))?;
    }
    Ok(())
}

fn copy(session: &mut Session, from: Option<&str>, to: &str) -> Done {
    let town = session.town()?;
    let from = match from {
        Some(from) => place(&town, from)?,
        None => town.store()?.clone(),
    };
    let target = place(&town, to)?;
    if let Store::Sqlite(file) = &target
        && file.symlink_metadata().is_ok()
    {
        let message = format!("{} exists already; nothing was copied", file.display());
        return Err(Report::new("exists", message).hint("name a new file, or move that one away"));
    }
    // What happens while a journal moves would be missing where it goes.
    let moves = from == *town.store()? && (to == Store::SQLITE || Store::is_postgres(to));
    let lease = if moves { Some(alone(&town)?) } else { None };
    let Copied { events, last, entities } = yard_journal::copy(&from, &target)?;
    drop(lease);
    let bytes = match &target {
        Store::Sqlite(file) => file.metadata().map_or(0, |meta| meta.len()),
        Store::Postgres(url) => url.server().map_or(0, |server| server.size),
    };
    let shown = target.to_string();
    if session.out.json() {
        let made = json!({"id": shown, "path": shown, "bytes": bytes, "events": events, "last_seq": last, "entities": entities});
        session.out.line(made)?;
    } else if session.out.quiet() {
        session.out.line(Safe(&shown))?;
    } else {
        session.out.line(format!("Journal copied to {} ({} KiB)", Safe(&shown), bytes.div_ceil(1024)))?;
        if moves {
            session.out.line(format!("Next: ym config set store '{}'", Safe(to)))?;
        }
    }
    Ok(0)
}

/// The town's lease for as long as its journal moves.
fn alone(town: &TownDir) -> Result<Lease, Report> {
    town.try_lease(Role::Command).map_err(|error| match error {
        LeaseError::Held(holder) => store::served(&holder),
        LeaseError::Io(_) | LeaseError::Journal(_) => Report::new("lease", error.to_string()),
    })
}

/// A journal that somebody named: `sqlite` or a database as in the config, or else a file.
fn place(town: &TownDir, text: &str) -> Result<Store, Report> {
    if text == Store::SQLITE || Store::is_postgres(text) {
        return store::typed(town, text);
    }
    Ok(Store::Sqlite(std::path::absolute(text)?))
}

/// The town as its journal has it, without asking anybody; nothing if there is no journal.
pub(super) fn state(town: &TownDir) -> Result<Option<State>, Report> {
    let unreadable = |error: &dyn std::fmt::Display| Report::new("journal", error.to_string());
    let loaded = match town.reader().and_then(|reader| reader.load()) {
        Ok(loaded) => loaded,
        Err(JournalError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let rows = loaded.entities.iter();
    let rows = rows.filter_map(|row| Some((row.kind.as_str(), row.id.as_str(), row.body.as_deref()?)));
    let mut state = State::restore(loaded.checkpoint_seq, rows).map_err(|error| unreadable(&error))?;
    for row in &loaded.tail {
        let event = Event::from_stored(&row.kind, &row.body).map_err(|error| unreadable(&error))?;
        state.apply(&Recorded { seq: row.seq, at: row.at, event });
    }
    Ok(Some(state))
}
