//! `ym doctor`: looks at a town from outside, without asking whoever serves it.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use serde::Serialize;
use yard_client::{Connection, Lost, Safe};
use yard_daemon::{TownDir, config};
use yard_journal::{JournalError, Lease, Reader};

use super::Done;
use crate::errors::FAILED;
use crate::output::Tone;
use crate::session::Session;
use crate::words::count;

/// Less free space than this is worth a word.
const LITTLE_SPACE: u64 = 256 << 20;
/// With less than this the journal will soon refuse.
const NO_SPACE: u64 = 8 << 20;

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Fail,
}

/// One thing looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    message: String,
}

fn check(name: &'static str, status: Status, message: impl Into<String>) -> Check {
    Check { name, status, message: message.into() }
}

pub(super) fn doctor(session: &mut Session, fix: bool) -> Done {
    let town = session.town()?;
    let checks = [
        folders(&town, fix),
        settings(&town),
        journal(&town),
        server(&town, fix),
        claims(&town),
        processes(),
        cgroup(),
        space(&town),
    ];
    let failed = checks.iter().any(|check| check.status == Status::Fail);
    if session.out.json() {
        session.out.line(serde_json::json!({"checks": checks, "ok": !failed}))?;
    } else {
        for check in &checks {
            let word = match check.status {
                Status::Ok => session.out.paint(Tone::Good, "ok  "),
                Status::Warn => session.out.paint(Tone::Warn, "warn"),
                Status::Fail => session.out.paint(Tone::Bad, "FAIL"),
            };
            if !session.out.quiet() || check.status != Status::Ok {
                session.out.line(format!("{word} {:<9} {}", check.name, Safe(&check.message)))?;
            }
        }
    }
    Ok(if failed { FAILED } else { 0 })
}

fn folders(town: &TownDir, fix: bool) -> Check {
    let missing =
        || ["run", "logs", "formulas"].into_iter().filter(|part| !town.folder().join(part).is_dir());
    let names: Vec<&str> = missing().collect();
    if names.is_empty() {
        return check("folders", Status::Ok, town.folder().to_string_lossy());
    }
    if fix && TownDir::create(town.root()).is_ok() && missing().next().is_none() {
        return check("folders", Status::Ok, format!("made again: {}", names.join(", ")));
    }
    let message = format!("missing in .yardmaster: {}; ym doctor --fix makes them", names.join(", "));
    check("folders", Status::Fail, message)
}

fn settings(town: &TownDir) -> Check {
    match config::read_settings(&town.config()) {
        Ok(settings) => {
            let mode = if settings.is_deferred() { "deferred" } else { "direct" };
            check("config", Status::Ok, format!("valid, {mode} dispatch"))
        }
        Err(error) => check("config", Status::Fail, format!("{error}; {}", error.hint())),
    }
}

fn journal(town: &TownDir) -> Check {
    let report = match Reader::open(&town.journal()).and_then(|reader| reader.check()) {
        Ok(report) => report,
        Err(JournalError::Missing(_)) => return check("journal", Status::Warn, "nothing has happened yet"),
        Err(error) => return check("journal", Status::Fail, error.to_string()),
    };
    match report.problems.first() {
        None => check("journal", Status::Ok, format!("sound, {}", count(report.events as usize, "event"))),
        Some(first) => {
            let message = format!("{}; first: {first}", count(report.problems.len(), "problem"));
            check("journal", Status::Fail, message)
        }
    }
}

fn server(town: &TownDir, fix: bool) -> Check {
    let holder = Lease::holder(&town.lease());
    let socket = town.folder().join("ym.sock");
    match (Connection::open(&town.folder()), holder) {
        (Ok(connection), _) => {
            let hello = connection.hello();
            let role = if hello.role.dispatches_by_itself() { "serves" } else { "passes through" };
            check("server", Status::Ok, format!("pid {} (ym {}) {role}", hello.pid, hello.version))
        }
        (Err(error @ Lost::OtherVersion { .. }), _) => check("server", Status::Warn, error.to_string()),
        (Err(_), Some(holder)) => {
            let message = format!("the town is held by {holder}, which does not answer");
            check("server", Status::Fail, message)
        }
        (Err(_), None) if is_socket(&socket) => {
            if fix && std::fs::remove_file(&socket).is_ok() {
                return check("server", Status::Ok, "a leftover socket was removed; no daemon is running");
            }
            check(
                "server",
                Status::Warn,
                "a socket is left over and nobody serves it; the next daemon replaces it",
            )
        }
        (Err(_), None) => check("server", Status::Ok, "no daemon is running; ym --daemon starts one"),
    }
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

fn claims(town: &TownDir) -> Check {
    let Ok(files) = std::fs::read_dir(town.run()) else {
        return check("claims", Status::Warn, "the run folder cannot be read");
    };
    let claims = files
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|ending| ending == "claim"))
        .count();
    check("claims", Status::Ok, format!("{} in the run folder", count(claims, "claim")))
}

fn processes() -> Check {
    #[cfg(target_os = "linux")]
    {
        let release = nix::sys::utsname::uname().ok();
        let release =
            release.as_ref().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default();
        let mut parts = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        // pidfd_open came with 5.3; waiting on it with 5.4.
        if version >= (5, 4) {
            return check("processes", Status::Ok, format!("Linux {release}, process descriptors work"));
        }
        check(
            "processes",
            Status::Warn,
            format!("Linux {release} has no process descriptors; 5.4 or newer is better"),
        )
    }
    #[cfg(not(target_os = "linux"))]
    check("processes", Status::Warn, "not Linux: workers are found by their environment only")
}

fn cgroup() -> Check {
    let root = Path::new("/sys/fs/cgroup");
    if !root.join("cgroup.controllers").exists() {
        return check(
            "cgroup",
            Status::Warn,
            "no cgroup v2: leftover processes are found by their environment",
        );
    }
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let writable = nix::unistd::access(&root.join(own), nix::unistd::AccessFlags::W_OK).is_ok();
    if writable {
        check("cgroup", Status::Ok, "cgroup v2, writable")
    } else {
        check("cgroup", Status::Warn, "cgroup v2 is not writable: leftovers are found by their environment")
    }
}

fn space(town: &TownDir) -> Check {
    let stat = match nix::sys::statvfs::statvfs(&town.folder()) {
        Ok(stat) => stat,
        Err(error) => return check("space", Status::Warn, format!("cannot be found out: {error}")),
    };
    let free = (stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64);
    let message = format!("{} MiB free", free >> 20);
    let status = match free {
        0..NO_SPACE => Status::Fail,
        NO_SPACE..LITTLE_SPACE => Status::Warn,
        _ => Status::Ok,
    };
    check("space", status, message)
}
