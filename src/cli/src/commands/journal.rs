//! `ym journal …`: the event log as a file, read directly, whether or not somebody serves the town.

use std::path::Path;

use serde_json::json;
use yard_client::Safe;
use yard_daemon::TownDir;
use yard_engine::{Event, Recorded, State};
use yard_journal::{CheckReport, JournalError, Reader};

use super::Done;
use crate::args::JournalCmd;
use crate::errors::{FAILED, Report};
use crate::output::{Out, Tone};
use crate::session::Session;
use crate::words::count;

pub(super) fn run(session: &mut Session, command: JournalCmd) -> Done {
    match command {
        JournalCmd::Check => check(session),
        JournalCmd::Copy { file } => copy(session, &file),
    }
}

fn check(session: &mut Session) -> Done {
    let path = session.town()?.journal();
    let mut report = Reader::open(&path)?.check()?;
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
            "path": path.to_string_lossy(),
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

fn copy(session: &mut Session, file: &Path) -> Done {
    let reader = Reader::open(&session.town()?.journal())?;
    let target = std::path::absolute(file)?;
    if target.symlink_metadata().is_ok() {
        let message = format!("{} exists already; nothing was copied", file.display());
        return Err(Report::new("exists", message).hint("name a new file"));
    }
    reader.copy_to(&target)?;
    let bytes = target.metadata().map_or(0, |meta| meta.len());
    let shown = target.to_string_lossy();
    if session.out.json() {
        session.out.line(json!({"id": shown, "path": shown, "bytes": bytes}))?;
    } else if session.out.quiet() {
        session.out.line(Safe(&shown))?;
    } else {
        session.out.line(format!("Journal copied to {} ({} KiB)", Safe(&shown), bytes.div_ceil(1024)))?;
    }
    Ok(0)
}

/// The town as its journal has it, without asking anybody; nothing if there is no journal.
pub(super) fn state(town: &TownDir) -> Result<Option<State>, Report> {
    let unreadable = |error: &dyn std::fmt::Display| Report::new("journal", error.to_string());
    let loaded = match Reader::open(&town.journal()).and_then(|reader| reader.load()) {
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
