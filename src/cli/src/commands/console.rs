//! Plain `ym`: the console on a terminal, the status elsewhere. It attaches to whoever serves the town, and serves it
//! itself when nobody does.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use yard_client::{Connection, Lost, Place};
use yard_daemon::{AskError, DaemonError, Embedded, TownDir};
use yard_engine::Timestamp;
use yard_ui::console::Known;
use yard_ui::look::{Look, Wishes};
use yard_ui::msg::{Entering, Leaving};
use yard_ui::{Left, Setup};

use super::Done;
use super::relay::NOBODY_SERVES;
use crate::args::DemoArgs;
use crate::errors::Report;
use crate::output::Out;
use crate::session::{Session, reach};

pub(super) fn console(session: &mut Session, wishes: Wishes) -> Done {
    let look = Look::choose(&wishes, |name| std::env::var(name).ok())
        .map_err(|error| Report::usage(error.to_string()))?;
    if !is_wanted(&session.out) {
        return super::status::status(session);
    }
    if let Some(place) = session.there().cloned() {
        return open_afar(place, session.naming(), look);
    }
    let town = match session.town() {
        Ok(town) => town,
        Err(report) if report.code() == "no-town" && session.named().is_none() => {
            return homeless(session, look);
        }
        Err(report) => return Err(report),
    };
    open(&town, look, None)
}

/// Whether plain `ym` means the console here.
pub(super) fn is_wanted(out: &Out) -> bool {
    let on_a_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    on_a_terminal && !out.json() && !out.quiet()
}

/// Opens the console on a town that somebody serves elsewhere.
fn open_afar(place: Place, naming: Vec<OsString>, look: Look) -> Done {
    // As long as the terminal is ours ssh may ask for whatever it needs, and who cannot get in at all is told so here. That
    // nobody serves the town at present is no reason to stay outside.
    if let Err(Lost::Unreachable(why)) = Connection::to(&place)
        && !why.contains(NOBODY_SERVES)
    {
        return Err(AskError::from(Lost::Unreachable(why)).into());
    }
    let here = std::env::current_dir()?;
    let setup = Setup { place: place.unattended(), naming, ..setup(&here, look)? };
    yard_ui::run(setup).map_err(|error| Report::new("terminal", format!("the console ended: {error}")))?;
    Ok(0)
}

/// Opens the console on a town, and leaves the town as the user says.
pub(super) fn open(town: &TownDir, look: Look, greeting: Option<String>) -> Done {
    let embedded: Arc<Mutex<Option<Embedded>>> = Arc::default();
    if let Some(leader) = town.leader_elsewhere() {
        let place = reach(&leader)?;
        let naming = vec!["--town".into(), place.to_string().into()];
        return open_afar(place, naming, look);
    }
    let served =
        Connection::open(&town.folder()).is_ok_and(|server| server.hello().role.dispatches_by_itself());
    let serve: Option<Box<dyn FnOnce() -> Result<(), String> + Send>> = if served {
        None
    } else {
        let (town, slot) = (town.clone(), Arc::clone(&embedded));
        Some(Box::new(move || serve(&town, &slot)))
    };
    let setup = Setup { serve, greeting, ..setup(town.root(), look)? };
    let left =
        yard_ui::run(setup).map_err(|error| Report::new("terminal", format!("the console ended: {error}")));
    let ours = embedded.lock().unwrap_or_else(PoisonError::into_inner).take();
    leave(town, ours, &left);
    left.map(|_| 0)
}

/// Takes the town over. That somebody else does in the same moment is fine: we are attached to him.
fn serve(town: &TownDir, slot: &Mutex<Option<Embedded>>) -> Result<(), String> {
    match Embedded::start(town) {
        Ok(embedded) => {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(embedded);
            Ok(())
        }
        Err(DaemonError::Served(holder)) => Err(format!("the town is served by {holder}")),
        Err(error) => Err(format!("the town cannot be served: {error}")),
    }
}

fn leave(town: &TownDir, ours: Option<Embedded>, left: &Result<Left, Report>) {
    let Some(embedded) = ours else { return };
    match left {
        Ok(Left::By(Leaving::ToDaemon)) => {
            embedded.end(true);
            start_daemon(town.root());
        }
        Ok(Left::By(Leaving::LeavingRunning)) => embedded.end(true),
        Ok(Left::By(Leaving::Plainly | Leaving::Draining) | Left::For(_) | Left::Ended) | Err(_) => {
            embedded.end(false);
        }
    }
}

/// Starts a daemon that outlives us and our terminal.
fn start_daemon(town: &Path) {
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    command.arg("--daemon").arg("--town").arg(town).process_group(0);
    // What cannot be started is seen at once: the next command says that nobody serves the town.
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// Where there is no town: makes one, or shows the demonstration.
fn homeless(session: &mut Session, look: Look) -> Done {
    let here = std::env::current_dir()?;
    let setup = Setup { homeless: true, ..setup(&here, look.clone())? };
    let left = yard_ui::run(setup)
        .map_err(|error| Report::new("terminal", format!("the console ended: {error}")))?;
    match left {
        Left::For(Entering::Init) => {
            super::init::init(session, Some(here.clone()), None, None)?;
            let town =
                TownDir::at(&here).map_err(|_| Report::new("no-town", "the town could not be made"))?;
            open(&town, look, Some("a town was made here; ? shows what you can do".to_owned()))
        }
        Left::For(Entering::Demo) => super::demo::show(&DemoArgs::default(), look),
        Left::By(_) | Left::Ended => Ok(0),
    }
}

fn setup(town: &Path, look: Look) -> Result<Setup, Report> {
    let program: PathBuf = std::env::current_exe()?;
    Ok(Setup {
        place: Place::Folder(town.join(".yardmaster")),
        naming: vec!["--town".into(), town.into()],
        town: town.to_owned(),
        homeless: false,
        serve: None,
        look,
        program,
        commands: commands(),
        now: wall_clock,
        greeting: None,
    })
}

fn wall_clock() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Every command, from the one definition.
fn commands() -> Vec<Known> {
    let mut known = Vec::new();
    let root = crate::help::whole();
    let mut pending: Vec<(String, &clap::Command)> =
        root.get_subcommands().map(|command| (command.get_name().to_owned(), command)).collect();
    while let Some((line, command)) = pending.pop() {
        if command.is_hide_set() {
            continue;
        }
        if command.has_subcommands() {
            let below = command.get_subcommands();
            pending.extend(below.map(|below| (format!("{line} {}", below.get_name()), below)));
        } else {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            known.push(Known { line, about });
        }
    }
    known.sort_by(|a, b| a.line.cmp(&b.line));
    known
}
