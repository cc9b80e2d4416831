//! `ym hooks`: scripts by which other tools tell the scheduler that something changed.
//!
//! bd runs `.beads/hooks/on_create`, `on_update` and `on_close`, with the bead's id and the event as arguments and the
//! bead as JSON on standard input. A hook that is not ours is never touched.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use yard_client::views::{RigList, RigView};
use yard_client::{Ask, Safe};
use yard_daemon::TownDir;
use yard_engine::rig::BeadSource;

use super::Done;
use crate::args::{HookSnippet, HooksCmd};
use crate::errors::{FAILED, Report};
use crate::session::Session;

const SCRIPT: &str = include_str!("../../../../assets/hooks/on-close");
/// By this a script is known to be ours.
const MARK: &str = "# yardmaster-hook:";
/// What bd runs.
const EVENTS: [&str; 3] = ["on_create", "on_update", "on_close"];

/// A hook of a workspace.
#[derive(Debug, Serialize)]
struct Hook {
    rig: String,
    path: PathBuf,
    state: HookState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum HookState {
    /// Ours is there.
    Installed,
    /// None is there.
    Absent,
    /// Somebody else's is there.
    Foreign,
}

pub(super) fn run(session: &mut Session, command: HooksCmd) -> Done {
    match command {
        HooksCmd::Install { rig } => install(session, rig.as_deref()),
        HooksCmd::List { rig } => {
            let found = hooks(session, rig.as_deref(), &|_, path| Ok(look_at(path)?))?;
            tell(session, &found, 0)
        }
        HooksCmd::Remove { rig } => {
            let found = hooks(session, rig.as_deref(), &|_, path| {
                if look_at(path)? == HookState::Installed {
                    std::fs::remove_file(path)?;
                }
                Ok(look_at(path)?)
            })?;
            tell(session, &found, 0)
        }
        HooksCmd::Show { what, rig } => show(session, what, rig.as_deref()),
    }
}

fn install(session: &mut Session, rig: Option<&str>) -> Done {
    let town = session.town()?;
    let found = hooks(session, rig, &|rig, path| {
        if look_at(path)? != HookState::Foreign {
            write(path, &script(&town, Some(rig))?)?;
        }
        Ok(look_at(path)?)
    })?;
    let foreign: Vec<&Hook> = found.iter().filter(|hook| hook.state == HookState::Foreign).collect();
    for hook in &foreign {
        let line = nudge_line(&town, Some(&hook.rig))?;
        session.out.notice(&format!("{} is somebody's own; add to it: {line}", hook.path.display()));
    }
    tell(session, &found, if foreign.is_empty() { 0 } else { FAILED })
}

/// Does something with each hook of the workspaces in question, and says how each stands then.
fn hooks(
    session: &mut Session,
    rig: Option<&str>,
    each: &dyn Fn(&str, &Path) -> Result<HookState, Report>,
) -> Result<Vec<Hook>, Report> {
    let town = session.town()?;
    let list: RigList = session.ask_for(Ask::RigList)?;
    let known = |name: &str| list.rigs.iter().any(|rig| rig.name.as_str() == name);
    if let Some(name) = rig.filter(|name| !known(name)) {
        return Err(Report::new("unknown-rig", format!("there is no rig {name:?}")).hint("ym rig list"));
    }
    let mut found = Vec::new();
    for view in list.rigs.iter().filter(|view| rig.is_none_or(|name| view.name.as_str() == name)) {
        let Some(folder) = workspace(&town, view) else { continue };
        for event in EVENTS {
            let path = folder.join("hooks").join(event);
            let state = each(view.name.as_str(), &path)?;
            found.push(Hook { rig: view.name.to_string(), path, state });
        }
    }
    if found.is_empty() {
        let message = "no rig has a beads workspace: native beads need no hook";
        return Err(Report::new("no-workspace", message).hint("ym rig add NAME --path DIR reads DIR/.beads"));
    }
    Ok(found)
}

/// The `.beads` folder that a rig's beads come from.
fn workspace(town: &TownDir, rig: &RigView) -> Option<PathBuf> {
    let dir = town.rig_path(&rig.path);
    match rig.source.as_ref()? {
        BeadSource::Jsonl { path } => dir.join(path).parent().map(Path::to_owned),
        BeadSource::Command { .. } => Some(dir.join(".beads")),
    }
}

fn look_at(path: &Path) -> io::Result<HookState> {
    match std::fs::read(path) {
        Ok(text) if String::from_utf8_lossy(&text).contains(MARK) => Ok(HookState::Installed),
        Ok(_) => Ok(HookState::Foreign),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(HookState::Absent),
        Err(error) => Err(error),
    }
}

/// Puts a script in its place whole: a tool may run it at this moment.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let new = path.with_extension(format!("ym-{}", std::process::id()));
    std::fs::write(&new, text)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
    std::fs::rename(&new, path)
}

fn script(town: &TownDir, rig: Option<&str>) -> Result<String, Report> {
    let text = SCRIPT.replace("@YM@", &own_path()?);
    Ok(text
        .replace("@TOWN@", &quoted(&town.root().to_string_lossy()))
        .replace("@RIG@", rig.unwrap_or_default()))
}

/// The same in one line, for a script of one's own.
fn nudge_line(town: &TownDir, rig: Option<&str>) -> Result<String, Report> {
    let rig = rig.map(|rig| format!(" {rig}")).unwrap_or_default();
    let town = quoted(&town.root().to_string_lossy());
    Ok(format!("YM_TOWN={town} {} poke --hook{rig} </dev/null >/dev/null 2>&1 || true", own_path()?))
}

fn own_path() -> Result<String, Report> {
    Ok(quoted(&std::env::current_exe()?.to_string_lossy()))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn tell(session: &mut Session, hooks: &[Hook], code: u8) -> Done {
    if session.out.json() {
        session.out.line(serde_json::json!({ "hooks": hooks }))?;
        return Ok(code);
    }
    for hook in hooks {
        let state = match hook.state {
            HookState::Installed => "installed",
            HookState::Absent => "absent",
            HookState::Foreign => "somebody's own",
        };
        session.out.line(format!("{:<14} {}", state, Safe(&hook.path.to_string_lossy())))?;
    }
    Ok(code)
}

fn show(session: &mut Session, what: HookSnippet, rig: Option<&str>) -> Done {
    let town = session.town()?;
    let text = match what {
        HookSnippet::Beads | HookSnippet::Git => script(&town, rig)?,
        HookSnippet::Claude => {
            let command = nudge_line(&town, rig)?;
            let hook = serde_json::json!([{"hooks": [{"type": "command", "command": command}]}]);
            let settings = serde_json::json!({"hooks": {"Stop": hook, "SubagentStop": hook}});
            serde_json::to_string_pretty(&settings)?
        }
    };
    session.out.line(text.trim_end())?;
    if !session.out.quiet() {
        session.out.notice(match what {
            HookSnippet::Beads => "for .beads/hooks/on_close, executable; ym hooks install writes it",
            HookSnippet::Git => "for .git/hooks/post-commit and .git/hooks/post-merge, executable",
            HookSnippet::Claude => "for .claude/settings.json",
        });
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_reaches_a_shell_whole() {
        let word = "it's $(here) `now`";
        let output =
            std::process::Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(word))).output();
        assert_eq!(output.expect("a shell").stdout, word.as_bytes());
    }

    #[test]
    fn the_script_is_known_as_ours() {
        assert!(SCRIPT.starts_with("#!/bin/sh\n") && SCRIPT.contains(MARK));
        assert!(SCRIPT.trim_end().ends_with("exit 0"));
    }
}
