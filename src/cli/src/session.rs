//! What every command works with: the town, who asks, and where the answer goes.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use yard_client::{Ask, Document, Request};
use yard_daemon::{Answered, NoTown, TownDir};
use yard_engine::Command;

use crate::errors::Report;
use crate::output::Out;

/// One run of the program.
pub(crate) struct Session {
    pub(crate) out: Out,
    named: Option<PathBuf>,
    town: Option<TownDir>,
}

impl Session {
    pub(crate) fn new(out: Out, named: Option<PathBuf>) -> Self {
        Self { out, named, town: None }
    }

    /// The town this is about: the one named, else the one we stand in.
    pub(crate) fn town(&mut self) -> Result<TownDir, Report> {
        if let Some(town) = &self.town {
            return Ok(town.clone());
        }
        let named = self.named.clone().or_else(named_by_environment);
        let town = match named {
            Some(dir) => TownDir::at(&dir).map_err(|error| match error {
                NoTown::Here(dir) => Report::new(
                    "no-town",
                    format!("{} is not a town: it has no .yardmaster folder", dir.display()),
                )
                .hint(format!("ym init {} makes one", dir.display())),
                NoTown::Foreign { .. } => error.into(),
            })?,
            None => TownDir::find(&std::env::current_dir()?)?,
        };
        self.town = Some(town.clone());
        Ok(town)
    }

    /// The directory given with `--town`.
    pub(crate) fn named(&self) -> Option<PathBuf> {
        self.named.clone()
    }

    /// Works in this town from now on.
    pub(crate) fn enter(&mut self, town: TownDir) {
        self.town = Some(town);
    }

    /// Asks the town; its notices go to standard error.
    pub(crate) fn ask(&mut self, ask: Ask) -> Result<Document, Report> {
        let town = self.town()?;
        let answered = ask_town(&town, ask, &mut |_| true)?;
        for notice in &answered.notices {
            self.out.notice(notice);
        }
        Ok(answered.document)
    }

    /// Asks the town for a document that is to be shown as text.
    pub(crate) fn ask_for<T: DeserializeOwned>(&mut self, ask: Ask) -> Result<T, Report> {
        let document = self.ask(ask)?;
        Ok(serde_json::from_str(document.get())?)
    }

    /// Asks the town to change something.
    pub(crate) fn command(&mut self, command: Command) -> Result<Document, Report> {
        self.ask(Ask::Command { command })
    }
}

/// Asks a town, leaving answer and notices to the caller.
pub(crate) fn ask_town(
    town: &TownDir,
    ask: Ask,
    each: &mut dyn FnMut(Box<RawValue>) -> bool,
) -> Result<Answered, Report> {
    ask_town_as(town, actor(), ask, each)
}

/// The same, in somebody's name.
pub(crate) fn ask_town_as(
    town: &TownDir,
    actor: String,
    ask: Ask,
    each: &mut dyn FnMut(Box<RawValue>) -> bool,
) -> Result<Answered, Report> {
    Ok(yard_daemon::ask(town, &Request { actor, ask }, each)?)
}

fn named_by_environment() -> Option<PathBuf> {
    std::env::var_os("YM_TOWN").filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// Who asks: `YM_ACTOR`, the agent that `YM_AGENT` names, else the user.
pub(crate) fn actor() -> String {
    let by_name = ["YM_ACTOR", "YM_AGENT", "USER", "LOGNAME"].into_iter().find_map(|name| {
        let value = std::env::var(name).ok()?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    });
    by_name.unwrap_or_else(|| {
        let uid = nix::unistd::getuid();
        let user = nix::unistd::User::from_uid(uid).ok().flatten();
        user.map_or_else(|| format!("uid {uid}"), |user| user.name)
    })
}
