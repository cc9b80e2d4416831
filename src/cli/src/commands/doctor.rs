//! `ym doctor`: looks at a town from outside, without asking whoever serves it.

mod agents;
mod executors;
mod kept;

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use yard_client::{Connection, Lost, Safe};
use yard_daemon::{TownDir, config};
use yard_engine::merge::MergeRequest;
use yard_engine::settings::Isolation;
use yard_journal::{Damage, Holder, JournalError, Repaired, Role, Store};

use super::{Done, journal};
use crate::errors::FAILED;
use crate::output::Tone;
use crate::session::Session;
use crate::words::{count, now};

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

pub(super) fn doctor(session: &mut Session, fix: bool, give_up_workers: bool) -> Done {
    let town = session.town()?;
    let (agents_check, agents) = agents::agents(&town);
    let checks = [
        folders(&town, fix),
        settings(&town),
        kept::kept(&town),
        log(&town, fix),
        server(&town, fix),
        claims(&town),
        processes(),
        cgroup(),
        space(&town),
        agents_check,
    ];
    let checks = checks.into_iter().chain(kept::home(&town, give_up_workers));
    let checks: Vec<Check> = checks.chain(executors::of(&town)).chain(git(&town)).collect();
    let failed = checks.iter().any(|check| check.status == Status::Fail);
    if session.out.json() {
        session.out.line(serde_json::json!({"checks": checks, "agents": agents, "ok": !failed}))?;
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

fn log(town: &TownDir, fix: bool) -> Check {
    let report = town.reader().and_then(|reader| reader.check());
    let damage = match town.store() {
        Ok(Store::Sqlite(file)) => Damage::find(file),
        // The server mends its own files, and what it cannot mend is in its backups.
        Ok(Store::Postgres(_)) => Ok(None),
        Err(error) => Err(error),
    };
    match (damage, report) {
        (Ok(None), Ok(report)) if !report.is_sound() => {
            let first = report.problems.first().map_or("", String::as_str);
            let first = first.split("; run `ym ").next().unwrap_or(first);
            let found = count(report.problems.len(), "problem");
            let message =
                format!("{found}; first: {first}; restore the database from a backup, --fix cannot mend it");
            check("journal", Status::Fail, message)
        }
        (Ok(Some(damage)), _) if fix => mend(town, damage),
        (Ok(Some(damage)), _) => check("journal", Status::Fail, ailing(&damage)),
        (Ok(None), Ok(report)) => {
            check("journal", Status::Ok, format!("sound, {}", count(report.events as usize, "event")))
        }
        (Ok(None), Err(JournalError::Missing(_))) => check(
            "journal",
            Status::Fail,
            "there is none: it was lost, or the town was never finished; restore it from a copy, or begin anew with ym init",
        ),
        (Err(error), _) | (Ok(None), Err(error)) => check("journal", Status::Fail, error.to_string()),
    }
}

/// What is wrong with the journal, and what a repair would do about it.
fn ailing(damage: &Damage) -> String {
    let first = damage.problems.first().map_or("", String::as_str);
    // This is that doctor.
    let first = first.split("; run `ym ").next().unwrap_or(first);
    let cure =
        if damage.leaves_something() { "keeps what is whole" } else { "puts it aside; the town begins anew" };
    format!("{}; first: {first}; --fix {cure}: {}", count(damage.problems.len(), "problem"), damage.loss)
}

/// Repairs the journal, if nobody serves the town.
fn mend(town: &TownDir, damage: Damage) -> Check {
    let lease = match town.try_lease(Role::Command) {
        Ok(lease) => lease,
        Err(error) => {
            let message = format!("{}; not repaired: {error}", ailing(&damage));
            return check("journal", Status::Fail, message);
        }
    };
    let begins_anew = !damage.leaves_something();
    match damage.repair(&lease, now()) {
        Ok(Repaired { aside, loss }) => {
            let next = if begins_anew { "; ym init completes the town" } else { "" };
            let message =
                format!("repaired: {loss}; the damaged files are in {}{next}", aside.to_string_lossy());
            check("journal", Status::Warn, message)
        }
        Err(error) => check("journal", Status::Fail, format!("cannot be repaired: {error}")),
    }
}

fn server(town: &TownDir, fix: bool) -> Check {
    let holder = town.holder();
    let socket = town.folder().join("ym.sock");
    match (Connection::open(&town.folder()), holder) {
        (Ok(connection), _) => {
            let hello = connection.hello();
            let role = if hello.role.dispatches_by_itself() { "serves" } else { "passes through" };
            check("server", Status::Ok, format!("pid {} (ym {}) {role}", hello.pid, hello.version))
        }
        (Err(error @ Lost::OtherVersion { .. }), _) => check("server", Status::Warn, error.to_string()),
        (Err(_), Some(holder)) if holder.is_elsewhere() => {
            check("server", Status::Ok, format!("{holder} serves; its socket is reached on that host only"))
        }
        (Err(_), Some(holder)) => check("server", Status::Fail, silent(&holder, is_socket(&socket))),
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

/// Somebody has the town and does not answer.
fn silent(holder: &Holder, has_socket: bool) -> String {
    let who = match (holder.role, holder.pid) {
        (Some(role), Some(pid)) => format!("the {role} (pid {pid})"),
        _ => format!("the town is held by {holder}; it"),
    };
    let why = if has_socket { "it is stopped, hung or very busy" } else { "its socket is gone" };
    format!("{who} does not answer: {why}; end it and start it again, workers carry on meanwhile")
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

fn claims(town: &TownDir) -> Check {
    // In this order: whatever has a claim by now has been in the journal before.
    let Ok(files) = std::fs::read_dir(town.run()) else {
        return check("claims", Status::Warn, "the run folder cannot be read");
    };
    let is_claim = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "claim");
    let claims: Vec<PathBuf> = files.flatten().map(|file| file.path()).filter(is_claim).collect();
    let Ok(state) = journal::state(town) else {
        let message = format!("{}; the journal does not say whose", count(claims.len(), "claim"));
        return check("claims", Status::Warn, message);
    };
    let state = state.unwrap_or_default();
    let checks = state.merges_in_line().filter_map(MergeRequest::check);
    let live = state.live_dispatches().map(|dispatch| &dispatch.id).chain(checks);
    let live: BTreeSet<String> = live.map(ToString::to_string).collect();
    let left = leftovers(&claims, &live, served_since(town));
    if left == 0 {
        return check("claims", Status::Ok, format!("{} in the run folder", count(claims.len(), "claim")));
    }
    let message = format!(
        "{} of dispatches that are not live, of {} in the run folder; the next daemon clears them away",
        count(left, "leftover claim"),
        claims.len()
    );
    check("claims", Status::Warn, message)
}

/// Claims whose dispatch is not live. Whoever serves the town removes those of its own time when work pauses.
fn leftovers(claims: &[PathBuf], live: &BTreeSet<String>, served_since: Option<SystemTime>) -> usize {
    let is_live = |path: &PathBuf| {
        path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| live.contains(stem))
    };
    let is_left = |path: &PathBuf| match path.metadata().and_then(|meta| meta.modified()) {
        Ok(written) => served_since.is_none_or(|since| written < since),
        Err(_) => false,
    };
    claims.iter().filter(|path| !is_live(path) && is_left(path)).count()
}

/// Since when somebody has held the town: a holder signs the lease when it takes it.
fn served_since(town: &TownDir) -> Option<SystemTime> {
    if let Some(since) = town.holder()?.since {
        let since = u64::try_from(since.as_millis()).unwrap_or(0);
        return Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(since));
    }
    town.lease().metadata().and_then(|meta| meta.modified()).ok()
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

/// Whether git can do what worktrees and merges need, if anything here is to work in one.
fn git(town: &TownDir) -> Option<Check> {
    let settings = config::read_settings(&town.config()).ok()?;
    let configured = std::iter::once(&settings.worker).chain(settings.rigs.values().map(|rig| &rig.worker));
    let by_config = configured.map(|worker| worker.isolation).any(|it| it == Some(Isolation::Worktree));
    if !by_config && !town.worktrees().is_dir() {
        return None;
    }
    Some(match yard_workers::git_version() {
        Ok(version) if version >= yard_workers::OLDEST_GIT => {
            check("git", Status::Ok, format!("{}.{}, worktrees and merges work", version.0, version.1))
        }
        Ok((major, minor)) => check(
            "git",
            Status::Fail,
            format!("{major}.{minor} cannot merge without a checkout; install 2.38 or newer"),
        ),
        Err(error) => check("git", Status::Fail, error.to_string()),
    })
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn claims_of_dispatches_that_are_not_live_are_leftovers() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let claim = |name: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, "").expect("written");
            path
        };
        let claims = [claim("gt-a@1.claim"), claim("gt-b@2.claim"), claim("odd.claim")];
        let live = BTreeSet::from(["gt-a@1".to_owned()]);
        assert_eq!(leftovers(&claims, &live, None), 2);
        let now = SystemTime::now();
        assert_eq!(leftovers(&claims, &live, Some(now + Duration::from_mins(1))), 2);
        assert_eq!(leftovers(&claims, &live, Some(now - Duration::from_mins(1))), 0);
    }

    #[test]
    fn a_silent_holder_is_named() {
        let daemon = Holder { pid: Some(7), role: Some(Role::Daemon), ..Holder::default() };
        assert!(silent(&daemon, true).starts_with("the daemon (pid 7) does not answer: it is stopped"));
        assert!(silent(&daemon, false).contains("its socket is gone"));
        let unknown = silent(&Holder::default(), true);
        assert!(unknown.starts_with("the town is held by another process; it does not answer"), "{unknown}");
    }
}
