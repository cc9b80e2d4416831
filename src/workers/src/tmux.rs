//! tmux: a window on a worker, never the truth about it.
//!
//! A town has a tmux server of its own, whose socket lies in its run directory, and a worker has a session, named after
//! its dispatch. The server comes with the first session and goes with the last. tmux is given words of ours, never text
//! from outside, and never a command for a shell.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use yard_engine::DispatchId;

use crate::ask;

/// The server's socket. It is named without its directory, which we enter instead: a path may be longer than a socket's
/// address can hold.
const SOCKET: &str = "tmux.sock";

/// How long tmux may take for an answer: a server that was stopped never gives one.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a start is tried: a server that is just leaving with its last session takes whoever calls it along.
const TRIES: u32 = 5;

/// All that a tmux server gets of our environment. It may serve workers of later daemons, so they bring their own.
const ENVIRONMENT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE"];

/// The size of a window that nobody looks at.
const SIZE: [&str; 4] = ["-x", "200", "-y", "50"];

/// What every window has: a terminal with colours, and a word on how to leave it.
const SETTINGS: [[&str; 4]; 2] = [
    ["set-option", "-g", "default-terminal", "screen-256color"],
    ["set-option", "-g", "status-right", " detach: C-b d "],
];

/// The name of a dispatch's session. tmux forbids `.` and `:` in names, so whatever is not plain is written as `_` and
/// two hexadecimal digits.
fn session_name(dispatch: &DispatchId) -> String {
    let mut name = String::new();
    for byte in dispatch.to_string().bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'@') {
            name.push(char::from(byte));
        } else {
            // Writing into a text does not fail.
            let _ = write!(name, "_{byte:02x}");
        }
    }
    name
}

/// The dispatch that a session is of; none if it is not one of ours.
fn dispatch_of(session: &str) -> Option<DispatchId> {
    let mut parts = session.split('_');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        text.push(char::from(u8::from_str_radix(part.get(..2)?, 16).ok()?));
        text.push_str(part.get(2..)?);
    }
    DispatchId::parse(&text).ok()
}

/// Exactly this session: without the sign tmux would also take a name that begins like it.
fn target(dispatch: &DispatchId) -> String {
    format!("={}", session_name(dispatch))
}

fn command(run_dir: &Path) -> Command {
    let mut command = Command::new("tmux");
    command.args(["-S", SOCKET, "-f", "/dev/null"]).current_dir(run_dir);
    command
}

/// Starts a session that runs `argv` and returns the process id of its program.
pub(crate) fn start(run_dir: &Path, dispatch: &DispatchId, argv: &[OsString]) -> Result<u32, String> {
    let mut answer = Err(String::new());
    for attempt in 0..TRIES {
        std::thread::sleep(Duration::from_millis(10) * attempt);
        let mut command = command(run_dir);
        for setting in SETTINGS {
            command.args(setting).arg(";");
        }
        command.args(["new-session", "-d", "-P", "-F", "#{pane_pid}", "-c", "/"]).args(SIZE);
        command.args(["-s", &session_name(dispatch), "--"]).args(argv);
        command.env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        answer = match ask(&mut command) {
            // It came about although we were not told.
            Ok(Err(why)) if why.contains("duplicate session") => pane_pid(run_dir, dispatch),
            Ok(answer) => answer,
            Err(error) => return Err(missing(&error)),
        };
        if answer.is_ok() {
            break;
        }
    }
    match answer.map(|text| text.trim().parse()) {
        Ok(Ok(pid)) => Ok(pid),
        Ok(Err(_)) => Err("tmux did not say which process runs in its new session".to_owned()),
        Err(why) => Err(format!("tmux starts no session: {why}")),
    }
}

fn pane_pid(run_dir: &Path, dispatch: &DispatchId) -> Result<String, String> {
    let mut command = command(run_dir);
    command.args(["list-panes", "-F", "#{pane_pid}", "-t", &target(dispatch)]);
    ask(&mut command).unwrap_or_else(|error| Err(missing(&error)))
}

/// What a person is told who has no tmux.
fn missing(error: &io::Error) -> String {
    format!("tmux cannot be run: {error}; install tmux or use --executor local")
}

/// The dispatches that have a session now.
pub(crate) fn sessions(run_dir: &Path) -> Vec<DispatchId> {
    if !run_dir.join(SOCKET).exists() {
        return Vec::new();
    }
    let listed = ask(command(run_dir).args(["list-sessions", "-F", "#{session_name}"]));
    let Ok(Ok(names)) = listed else { return Vec::new() };
    names.lines().filter_map(dispatch_of).collect()
}

/// Closes a session. Its program only gets a hang-up.
pub(crate) fn close(run_dir: &Path, dispatch: &DispatchId) {
    // One that is gone is closed.
    let _ = ask(command(run_dir).args(["kill-session", "-t", &target(dispatch)]));
}

/// Whether a dispatch has a window that [`attach_to_window`] can show. An error if tmux cannot be run.
pub fn has_window(run_dir: &Path, dispatch: &DispatchId) -> io::Result<bool> {
    let answer = ask(command(run_dir).args(["has-session", "-t", &target(dispatch)]))?;
    Ok(answer.is_ok())
}

/// The command that shows a dispatch's window on this terminal until the user detaches or the worker ends.
pub fn attach_to_window(run_dir: &Path, dispatch: &DispatchId, read_only: bool) -> Command {
    let mut command = command(run_dir);
    // Another server's session cannot be switched to, so within tmux ours is shown inside the other one.
    command.args(["-u", "attach-session", "-t", &target(dispatch)]).env_remove("TMUX");
    if read_only {
        command.arg("-r");
    }
    command
}

/// What tmux calls itself, as `tmux 3.3a`. An error if it cannot be run.
pub fn tmux_version() -> io::Result<String> {
    let answer = ask(Command::new("tmux").arg("-V"))?;
    Ok(answer.map_or_else(|why| why, |version| version.trim().to_owned()))
}

/// Runs tmux and returns what it printed, or what it complained about.
fn ask(command: &mut Command) -> io::Result<Result<String, String>> {
    ask::ask(command.env_remove("TMUX"), PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_again_by_its_dispatch() {
        let ids = ["gt-a@1", "gt-a.1@12", "gt_a-b.c_d@3", "A._2e@1", "x-_.@99"];
        let names: Vec<String> =
            ids.map(|text| session_name(&DispatchId::parse(text).expect("an id"))).to_vec();
        for (text, name) in ids.iter().zip(&names) {
            assert!(!name.contains(['.', ':', '#', ' ']), "{name}");
            assert_eq!(dispatch_of(name).map(|id| id.to_string()).as_deref(), Some(*text));
        }
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len());
    }

    #[test]
    fn sessions_of_somebody_else_are_no_dispatches() {
        for name in ["main", "0", "a_zz@1", "a_2", "a_", "", "ä_2e@1", "a_2\u{e9}@1"] {
            assert_eq!(dispatch_of(name), None, "{name}");
        }
    }
}
