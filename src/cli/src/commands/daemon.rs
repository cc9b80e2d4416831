//! `ym --daemon`, `ym stop`, and the hidden life as a shim.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use serde::Deserialize;
use yard_client::{Ask, Connection, Hello, Lost, Place};
use yard_daemon::{AskError, DaemonError, TownDir};
use yard_engine::DispatchId;
use yard_journal::Role;

use super::Done;
use crate::args::ColorChoice;
use crate::errors::Report;
use crate::output::Out;
use crate::session::{Session, Town, reach};

/// How long a stopped daemon may take to be gone.
const GONE: Duration = Duration::from_secs(10);
/// How long one that is starting or leaving may take to answer or be gone.
const ANSWER: Duration = Duration::from_secs(3);

/// Serves the town until told to stop.
pub(super) fn serve(session: &mut Session) -> Done {
    let town = session.town()?;
    let filter = tracing_subscriber::EnvFilter::try_from_env("YM_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.with_ansi(session.out.colours_errors()).with_target(false).init();
    // Whoever started us may have blocked the signals that mean "drain".
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    let _ = signals.thread_unblock();
    yard_daemon::run_daemon(&town)?;
    Ok(0)
}

impl From<DaemonError> for Report {
    fn from(error: DaemonError) -> Self {
        match &error {
            DaemonError::Served(_) => {
                Self::new("already-served", error.to_string()).hint("ym status asks it; ym stop ends it")
            }
            DaemonError::Lease(_) => Self::new("lease", error.to_string()),
            DaemonError::Store(_) | DaemonError::Open(_) => {
                Self::new("open", error.to_string()).hint("ym doctor looks into it")
            }
            DaemonError::Socket(_) => Self::new("socket", error.to_string()).hint("ym doctor looks into it"),
        }
    }
}

/// Stops whoever serves the town; nobody there is as good as stopped.
pub(super) fn stop(session: &mut Session, timeout: Option<Duration>, leave_running: bool) -> Done {
    let town = match session.asked()? {
        Town::Here(town) => match town.leader_elsewhere() {
            Some(leader) => return stop_there(session, &reach(&leader)?, timeout, leave_running),
            None => town,
        },
        Town::There(place) => return stop_there(session, &place, timeout, leave_running),
    };
    let Some(server) = server_of(&town)?.filter(|hello| hello.role.dispatches_by_itself()) else {
        return said(session, false, "no daemon is running");
    };
    // It answers, or leaves before it can: what counts is that it goes.
    let left = match session.ask(stop_ask(timeout, leave_running)) {
        Ok(document) => serde_json::from_str::<Stopped>(document.get())?.still_running,
        Err(report) if report.code() == "lost" => 0,
        Err(report) if report.code() == "no-daemon" => return said(session, false, "no daemon is running"),
        Err(report) => return Err(report),
    };
    let patience = Instant::now() + GONE;
    while town.holder().is_some_and(|holder| holder.pid == Some(server.pid)) {
        if Instant::now() > patience {
            let message = format!("the daemon (pid {}) has drained but is still there", server.pid);
            return Err(Report::new("still-running", message));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let left = match left {
        0 => String::new(),
        1 => "; 1 worker goes on under its shim, and whoever serves the town next takes it up".to_owned(),
        left => format!(
            "; {left} workers go on under their shims, and whoever serves the town next takes them up"
        ),
    };
    said(session, true, &format!("daemon (pid {}) stopped{left}", server.pid))
}

/// What a daemon that stops answers.
#[derive(Deserialize)]
struct Stopped {
    still_running: usize,
}

fn stop_ask(timeout: Option<Duration>, leave_running: bool) -> Ask {
    let timeout_ms = timeout.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    Ask::Stop { timeout_ms, leave_running }
}

/// The same where only its answers tell that it is there.
fn stop_there(session: &mut Session, place: &Place, timeout: Option<Duration>, leave_running: bool) -> Done {
    let server = Connection::to(place).map_err(AskError::from)?.hello().pid;
    match session.ask(stop_ask(timeout, leave_running)) {
        Ok(_) => {}
        Err(report) if report.code() == "lost" => {}
        Err(report) => return Err(report),
    }
    let patience = Instant::now() + GONE;
    while Connection::to(place).is_ok_and(|connection| connection.hello().pid == server) {
        if Instant::now() > patience {
            let message = format!("the daemon (pid {server} there) has drained but still answers");
            return Err(Report::new("still-running", message));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    said(session, true, &format!("daemon (pid {server} there) stopped"))
}

/// Who serves the town. Somebody who has it and does not answer is not nobody: it may be starting, leaving or hung.
fn server_of(town: &TownDir) -> Result<Option<Hello>, Report> {
    let patience = Instant::now() + ANSWER;
    loop {
        match Connection::open(&town.folder()) {
            Ok(connection) => return Ok(Some(connection.hello().clone())),
            Err(error @ Lost::OtherVersion { .. }) => return Err(AskError::from(error).into()),
            Err(_) => {}
        }
        match town.holder().and_then(|holder| holder.role.zip(holder.pid)) {
            None | Some((Role::Command, _)) => return Ok(None),
            Some((role, pid)) if Instant::now() > patience => {
                let message = format!("the {role} (pid {pid}) does not answer");
                return Err(
                    Report::new("busy", message).hint(format!("kill {pid} ends it; ym doctor looks into it"))
                );
            }
            Some(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn said(session: &mut Session, changed: bool, message: &str) -> Done {
    if session.out.json() {
        session.out.line(serde_json::json!({"changed": changed, "message": message, "ids": []}))?;
    } else if !session.out.quiet() {
        session.out.line(message)?;
    }
    Ok(0)
}

/// `ym __demo_daemon TOWN`: a daemon that does not outlive the demo.
pub(crate) fn demo_daemon(words: &[OsString]) -> ExitCode {
    super::demo::end_with_parent();
    let out = Out::new(false, false, ColorChoice::Never);
    let mut session = Session::new(out, words.first().map(PathBuf::from));
    match serve(&mut session) {
        Ok(code) => ExitCode::from(code),
        Err(report) => report.show(&mut session.out),
    }
}

/// `ym __shim RUN_DIR DISPATCH SPEC`: one dispatch in the foreground.
pub(crate) fn shim(words: &[OsString]) -> ExitCode {
    let [run_dir, dispatch, spec] = words else { return ExitCode::from(2) };
    match dispatch.to_str().and_then(|text| DispatchId::parse(text).ok()) {
        Some(dispatch) => yard_workers::shim_main(Path::new(run_dir), &dispatch, Path::new(spec)),
        None => ExitCode::from(2),
    }
}
