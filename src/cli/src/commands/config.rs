//! `ym config …`: looking goes straight to the file, changes through whoever serves the town.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use yard_client::Safe;
use yard_daemon::config::{self, Absent, KEYS, STORE};
use yard_engine::Command;
use yard_journal::Store;

use super::{Done, store};
use crate::args::ConfigCmd;
use crate::errors::Report;
use crate::output::Tone;
use crate::render::Table;
use crate::session::Session;

pub(super) fn run(session: &mut Session, command: ConfigCmd) -> Done {
    match command {
        ConfigCmd::Get { key } => {
            let value = config::get(&session.town()?.config(), &key)?;
            let text = if session.out.json() {
                json!({"key": key, "value": value}).to_string()
            } else {
                shown(&key, &value)
            };
            session.out.line(text)?;
        }
        ConfigCmd::Set { key, value, more } => {
            let value = std::iter::once(value).chain(more).collect::<Vec<_>>().join(" ");
            change(session, key, Some(value))?;
        }
        ConfigCmd::Unset { key } => change(session, key, None)?,
        ConfigCmd::List { prefix } => {
            let path = session.town()?.config();
            list(session, &path, prefix.as_deref().unwrap_or_default())?;
        }
    }
    Ok(0)
}

/// What an edit changed.
#[derive(Deserialize)]
struct Changed {
    key: String,
    old: Option<Value>,
    value: Value,
}

/// Has whoever serves the town edit the file, who then also knows how to take it back. When nobody can, the file is
/// edited all the same: it may be what has to be mended.
fn change(session: &mut Session, key: String, value: Option<String>) -> Result<(), Report> {
    if key == STORE {
        let changed = store::change(&session.town()?, value.as_deref().unwrap_or(Store::SQLITE))?;
        return report(session, &Changed { key: changed.key, old: changed.old, value: changed.new });
    }
    let told = session.command(Command::Configure { key: key.clone(), value: value.clone() });
    let changed = match told {
        Ok(document) => serde_json::from_str(document.get())?,
        Err(why) if session.there().is_some() => return Err(why),
        Err(why) => {
            let path = session.town()?.config();
            let change = match &value {
                Some(value) => config::set(&path, &key, value)?,
                None => config::unset(&path, &key)?,
            };
            session.out.notice(&format!("the town could not be told, so ym undo does not know of it: {why}"));
            Changed { key: change.key, old: change.old, value: change.new }
        }
    };
    report(session, &changed)
}

fn report(session: &mut Session, change: &Changed) -> Result<(), Report> {
    if session.out.json() {
        session.out.line(json!({"key": change.key, "old": change.old, "value": change.value}))?;
    } else if !session.out.quiet() {
        let now = shown(&change.key, &change.value);
        let before = match &change.old {
            Some(old) if *old != change.value => format!(" (was {})", shown(&change.key, old)),
            _ => String::new(),
        };
        session.out.line(Safe(&format!("{} = {now}{before}", change.key)))?;
    }
    Ok(())
}

fn list(session: &mut Session, path: &Path, prefix: &str) -> Result<(), Report> {
    let entries = config::list(path)?.into_iter().filter(|entry| entry.key.starts_with(prefix));
    if session.out.json() {
        let entries: Vec<_> = entries.collect();
        session.out.line(json!({"settings": entries}))?;
        return Ok(());
    }
    let mut table = Table::new(&["KEY", "VALUE", ""]);
    for entry in entries {
        let value = shown(&entry.key, &entry.value);
        let note = match &entry.problem {
            Some(_) => session.out.paint(Tone::Bad, "not valid"),
            None if entry.default => session.out.paint(Tone::Dim, "default"),
            None => String::new(),
        };
        table.row(vec![Safe(&entry.key).to_string(), Safe(&value).to_string(), note]);
    }
    table.print(&mut session.out)?;
    Ok(())
}

/// A value as one would type it.
fn shown(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => {
            let absent = KEYS.iter().find(|spec| spec.key == key).map(|spec| spec.absent);
            match absent {
                Some(Absent::Word(word)) => word.to_owned(),
                _ => "none".to_owned(),
            }
        }
        other => other.to_string(),
    }
}
