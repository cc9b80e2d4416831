//! What every command works with: the town, who asks, and where the answer goes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use yard_client::{Ask, Connection, Document, Place, Request, SshTown};
use yard_daemon::{Answered, AskError, NoTown, TownDir};
use yard_engine::Command;
use yard_journal::Holder;

use crate::errors::Report;
use crate::output::Out;

/// The town that is asked: one of this host, with all its files, or one that only answers.
#[derive(Debug, Clone)]
pub(crate) enum Town {
    /// It is served, or opened by whoever asks.
    Here(TownDir),
    /// Somebody serves it there, or it does not answer.
    There(Place),
}

/// One run of the program.
pub(crate) struct Session {
    pub(crate) out: Out,
    named: Option<PathBuf>,
    town: Option<TownDir>,
    there: Option<(Place, Vec<OsString>)>,
}

impl Session {
    pub(crate) fn new(out: Out, named: Option<PathBuf>) -> Self {
        Self { out, named, town: None, there: None }
    }

    /// Works with a town that is elsewhere from now on, and that these words name.
    pub(crate) fn go_to(&mut self, place: Place, naming: Vec<OsString>) {
        self.there = Some((place, naming));
    }

    /// Where the town is, if it is elsewhere.
    pub(crate) fn there(&self) -> Option<&Place> {
        self.there.as_ref().map(|(place, _)| place)
    }

    /// The words that name a town that is elsewhere.
    pub(crate) fn naming(&self) -> Vec<OsString> {
        self.there.as_ref().map(|(_, naming)| naming.clone()).unwrap_or_default()
    }

    /// The town this is about, wherever it is.
    pub(crate) fn asked(&mut self) -> Result<Town, Report> {
        match &self.there {
            Some((place, _)) => Ok(Town::There(place.clone())),
            None => self.town().map(Town::Here),
        }
    }

    /// The town this is about, whose files are needed: the one named, else the one we stand in.
    pub(crate) fn town(&mut self) -> Result<TownDir, Report> {
        if self.there.is_some() {
            return Err(Report::new(
                "not-here",
                "this needs the files of the town, which are not on this host",
            )
            .hint("run it there, or by ssh: ym --town ssh://host/path …"));
        }
        if let Some(town) = &self.town {
            return Ok(town.clone());
        }
        let named = self.named.clone().or_else(named_by_environment);
        let town = match named {
            Some(dir) => at(&dir)?,
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
        let town = self.asked()?;
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
    town: &Town,
    ask: Ask,
    each: &mut dyn FnMut(Box<RawValue>) -> bool,
) -> Result<Answered, Report> {
    ask_town_as(town, actor(), ask, each)
}

/// The same, in somebody's name.
pub(crate) fn ask_town_as(
    town: &Town,
    actor: String,
    ask: Ask,
    each: &mut dyn FnMut(Box<RawValue>) -> bool,
) -> Result<Answered, Report> {
    let request = Request { actor, ask };
    match town {
        Town::Here(town) => match yard_daemon::ask(town, &request, each) {
            Err(AskError::Elsewhere(leader)) => {
                ask_there(&reach(&leader)?, &request, each).map_err(|report| out_of_reach(&leader, report))
            }
            answered => Ok(answered?),
        },
        Town::There(place) => ask_there(place, &request, each),
    }
}

fn ask_there(
    place: &Place,
    request: &Request,
    each: &mut dyn FnMut(Box<RawValue>) -> bool,
) -> Result<Answered, Report> {
    let mut connection = Connection::to(place).map_err(AskError::from)?;
    let (document, notices) = connection.ask(request, each).map_err(AskError::from)??;
    Ok(Answered { document, notices })
}

/// The way to whoever serves a town of ours on another host.
pub(crate) fn reach(leader: &Holder) -> Result<Place, Report> {
    let (host, town) = (leader.host.as_deref(), leader.town.as_deref());
    let found = SshTown::on(host.unwrap_or_default(), town.unwrap_or_default());
    found.map(Place::Ssh).map_err(|_| AskError::Elsewhere(leader.clone()).into())
}

/// What went wrong on that way, and what can be done without it.
fn out_of_reach(leader: &Holder, report: Report) -> Report {
    if report.code() != "unreachable" {
        return report;
    }
    let message = format!("the town is served by {leader}, and this host does not get there: {report}");
    Report::new("served-elsewhere", message).hint(to_be_said_there(leader))
}

/// What a person would type instead.
pub(crate) fn to_be_said_there(leader: &Holder) -> String {
    let (host, town) = (leader.host.as_deref().unwrap_or("HOST"), leader.town.as_deref().unwrap_or("DIR"));
    format!("ssh {host} ym --town {town} …; what only looks works here too")
}

/// The town in a directory that somebody named.
pub(crate) fn at(dir: &Path) -> Result<TownDir, Report> {
    TownDir::at(dir).map_err(|error| match error {
        NoTown::Here(dir) => {
            let message = format!("{} is not a town: it has no .yardmaster folder", dir.display());
            Report::new("no-town", message).hint(format!("ym init {} makes one", dir.display()))
        }
        NoTown::Foreign { .. } => error.into(),
    })
}

fn named_by_environment() -> Option<PathBuf> {
    set_variable("YM_TOWN").map(PathBuf::from)
}

/// What a variable of the environment says, if it says anything.
pub(crate) fn set_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
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
