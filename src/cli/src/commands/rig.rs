//! `ym rig …`

use yard_client::views::RigList;
use yard_client::{Ask, Safe, safe_line};
use yard_engine::rig::{Rig, RigSwitch};
use yard_engine::{Command, FormulaName, Refusal, RigName};

use super::workspace::{Beads, in_words};
use super::{Done, change, say};
use crate::args::{RigAdd, RigCmd};
use crate::errors::Report;
use crate::output::Tone;
use crate::render::Table;
use crate::session::Session;

/// How much of a source is shown in the list.
const SOURCE: usize = 24;

pub(super) fn run(session: &mut Session, command: RigCmd) -> Done {
    match command {
        RigCmd::Add(args) => add(session, args),
        RigCmd::List => list(session),
        RigCmd::Remove { name } => change(session, Command::RigRemove { name: rig_name(&name)? }),
        RigCmd::Park { name } => switch(session, &name, RigSwitch::Park),
        RigCmd::Unpark { name } => switch(session, &name, RigSwitch::Unpark),
        RigCmd::Dock { name } => switch(session, &name, RigSwitch::Dock),
        RigCmd::Undock { name } => switch(session, &name, RigSwitch::Undock),
    }
}

fn switch(session: &mut Session, name: &str, switch: RigSwitch) -> Done {
    change(session, Command::RigSwitch { name: rig_name(name)?, switch })
}

fn add(session: &mut Session, args: RigAdd) -> Done {
    let name = rig_name(&args.name)?;
    let path = path_of(session, &args)?;
    let dir = session.town()?.root().join(&path);
    let beads = match &args.beads {
        Some(file) => Beads::of_file(&dir, file)?,
        None if args.no_beads => Beads::default(),
        None => Beads::of_directory(&dir),
    };
    let prefix = args.prefix.or(beads.prefix).ok_or_else(|| {
        Report::usage("the prefix of its beads is not known")
            .hint(format!("ym rig add {name} --prefix P: its beads are then called P-…"))
    })?;
    let formula = args.formula.as_deref().map(FormulaName::parse).transpose().map_err(Refusal::from)?;
    let max_polecats = match args.max_polecats {
        Some(n) if n < -1 => return Err(Report::usage("--max-polecats must be -1 or more")),
        Some(n) => u64::try_from(n).ok().filter(|n| *n > 0),
        None => None,
    };
    let rig = Rig {
        name: name.clone(),
        prefix,
        path,
        parked: false,
        docked: false,
        max_polecats,
        executor: args.executor,
        formula,
        source: beads.source,
    };
    let reads = rig.source.as_ref().map(|source| format!("; reads beads from {}", in_words(source)));
    let reads = reads.unwrap_or_default();
    let said = format!("Rig {name} added: beads {}-…, workers in {}{reads}", rig.prefix, rig.path);
    let document = session.command(Command::RigAdd { rig })?;
    say(session, &document, |_| said)
}

/// The directory named, else the one in the town with the rig's name, else the town itself.
fn path_of(session: &mut Session, args: &RigAdd) -> Result<String, Report> {
    let town = session.town()?;
    let own = town.root().join(&args.name);
    if args.path.is_none() && !own.is_dir() {
        return Ok(".".to_owned());
    }
    let dir = args.path.clone().unwrap_or(own);
    let bad = |why: String| Report::new("bad-path", format!("{}: {why}", dir.display()));
    let real = dir.canonicalize().map_err(|error| bad(error.to_string()))?;
    if !real.is_dir() {
        return Err(bad("not a directory".to_owned()));
    }
    real.into_os_string().into_string().map_err(|_| bad("the path is not UTF-8".to_owned()))
}

fn list(session: &mut Session) -> Done {
    let document = session.ask(Ask::RigList)?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: RigList = serde_json::from_str(document.get())?;
    let mut table = Table::new(&["RIG", "PREFIX", "WORKERS", "STATE", "BEADS", "PATH"]);
    for rig in &view.rigs {
        if session.out.quiet() {
            session.out.line(&rig.name)?;
            continue;
        }
        let state = match (rig.parked, rig.docked) {
            (_, true) => session.out.paint(Tone::Warn, "docked"),
            (true, false) => session.out.paint(Tone::Warn, "parked"),
            (false, false) => "open".to_owned(),
        };
        let workers = match rig.max_polecats {
            Some(max) => format!("{} of {max}", rig.active),
            None => rig.active.to_string(),
        };
        let beads = rig.source.as_ref().map_or_else(|| "native".to_owned(), in_words);
        let cells = [rig.name.as_str(), &rig.prefix, &workers, &state, &safe_line(&beads, SOURCE)];
        let mut row: Vec<String> = cells.iter().map(ToString::to_string).collect();
        row.push(Safe(&rig.path).to_string());
        table.row(row);
    }
    if !session.out.quiet() {
        table.print(&mut session.out)?;
    }
    Ok(0)
}

pub(super) fn rig_name(name: &str) -> Result<RigName, Report> {
    RigName::parse(name).map_err(|error| Refusal::from(error).into())
}
