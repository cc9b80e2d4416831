//! Which agents the town knows, and which of their programs are here. None of them is run.

use std::path::PathBuf;

use nix::unistd::{AccessFlags, access};
use serde::Serialize;
use yard_daemon::{TownDir, config};
use yard_workers::{AgentPreset, Presets};

use super::{Check, Status, check};

/// A preset and its program.
#[derive(Debug, Serialize)]
pub(super) struct AgentFound {
    name: String,
    /// How it is started.
    start: Vec<String>,
    /// Where its program is; none if it is not installed.
    path: Option<PathBuf>,
}

/// The presets of a town, those that are installed first.
pub(super) fn agents(town: &TownDir) -> (Check, Vec<AgentFound>) {
    let presets = match Presets::of_town(town.root()) {
        Ok(presets) => presets,
        Err(error) => return (check("agents", Status::Fail, error.to_string()), Vec::new()),
    };
    let found: Vec<AgentFound> = presets.iter().map(look_for).collect();
    (summary(town, &found), found)
}

fn look_for(preset: &AgentPreset) -> AgentFound {
    let start = if preset.start.is_empty() { vec![preset.name.clone()] } else { preset.start.clone() };
    let path = program(&start[0]);
    AgentFound { name: preset.name.clone(), start, path }
}

/// Where a program is, as a worker would find it.
fn program(name: &str) -> Option<PathBuf> {
    let runs = |path: &PathBuf| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(runs);
    }
    let places = std::env::var_os("PATH")?;
    std::env::split_paths(&places).map(|place| place.join(name)).find(runs)
}

fn summary(town: &TownDir, found: &[AgentFound]) -> Check {
    let words = |agent: &AgentFound| match &agent.path {
        Some(path) => format!("{} ({})", agent.name, path.display()),
        None => format!("{} (not installed)", agent.name),
    };
    let known = found.iter().map(words).collect::<Vec<_>>().join(", ");
    let chosen = config::read_settings(&town.config()).ok().and_then(|settings| settings.worker.agent);
    match chosen {
        None => {
            let message = format!("{known}; choose one with ym config set worker.agent NAME");
            check("agents", Status::Ok, message)
        }
        Some(chosen) => {
            let missing = chosen.first().is_some_and(|program_name| {
                let preset = found.iter().find(|agent| chosen.len() == 1 && agent.name == *program_name);
                preset.map_or_else(|| program(program_name).is_none(), |agent| agent.path.is_none())
            });
            let (status, note) =
                if missing { (Status::Warn, ", which is not in PATH") } else { (Status::Ok, "") };
            check("agents", status, format!("{known}; worker.agent is {}{note}", chosen.join(" ")))
        }
    }
}
