//! Serving a town: as the daemon, until it is told to stop; or as a passing command, for as long as its own
//! request and those of whoever connected meanwhile take.

use std::time::{Duration, Instant};

use tracing::{error, info, warn};
use yard_client::{Connection, Reply, Request, ServerRole};
use yard_journal::{Holder, JournalError, Lease, LeaseError, Role};

use crate::core::{Core, OpenError};
use crate::input::{Input, ReplyTo};
use crate::server::Server;
use crate::standby::{Followed, await_lease};
use crate::store::StoreError;
use crate::town::TownDir;

/// How long a passing command's lease is awaited.
pub(crate) const LEASE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a passing command stays for idle connections after its own request is answered; answers it owes to others
/// it gives in any case.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

/// Why a daemon did not run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Somebody serves the town already.
    #[error("the town is already served by {0}")]
    Served(Box<Holder>),
    /// The lease cannot be taken.
    #[error(transparent)]
    Lease(LeaseError),
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The town cannot be taken over.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The socket cannot be served.
    #[error("cannot serve the town's socket: {0}")]
    Socket(#[from] std::io::Error),
}

/// Runs the daemon in the foreground until it is drained.
pub fn run_daemon(town: &TownDir) -> Result<(), DaemonError> {
    let (lease, followed) = match town.store().map_err(StoreError::from)? {
        yard_journal::Store::Sqlite(_) => (lasting_lease(town, Role::Daemon)?, None),
        yard_journal::Store::Postgres(_) => await_lease(town)?,
    };
    lease.when_lost(|error| {
        // At once: what the loop has in mind is not for it to do any more.
        error!(%error, "ending at once: the town is no longer ours");
        std::process::exit(1);
    });
    let mut core = open_when_there_is_space(town, &lease, followed)?;
    let server = Server::start(town, ServerRole::Daemon, core.inputs(), true)?;
    info!(town = %town.root().display(), pid = std::process::id(), "serving");
    tell_service_manager("READY=1");
    core.run(|_| false);
    tell_service_manager("STOPPING=1");
    server.finish();
    info!("stopped");
    Ok(())
}

/// Takes the town over; on a full disk it waits for space rather than giving up.
fn open_when_there_is_space(
    town: &TownDir,
    lease: &Lease,
    mut followed: Option<Followed>,
) -> Result<Core, OpenError> {
    let mut said = false;
    loop {
        match Core::open(town.clone(), ServerRole::Daemon, lease, followed.take()) {
            Err(OpenError::Store(StoreError::Journal(error @ JournalError::Full))) => {
                if !said {
                    warn!(%error, "waiting for space");
                }
                said = true;
                std::thread::sleep(Duration::from_secs(1));
            }
            other => return other,
        }
    }
}

/// Takes the lease for good, once whoever passes has left.
pub(crate) fn lasting_lease(town: &TownDir, role: Role) -> Result<Lease, DaemonError> {
    let patience = Instant::now() + LEASE_PATIENCE;
    loop {
        match town.try_lease(role) {
            Ok(lease) => return Ok(lease),
            Err(LeaseError::Held(holder)) => {
                let passing = matches!(holder.role, Some(Role::Command) | None);
                let waits = passing || may_have_died(town, &holder);
                if !waits || Instant::now() > patience {
                    return Err(DaemonError::Served(Box::new(holder)));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(DaemonError::Lease(error)),
        }
    }
}

/// Whether somebody of this host is named who is gone: a row outlives whoever holds it until his heartbeat has run out, and
/// a lock file names the last one until the next has written his own name.
fn may_have_died(town: &TownDir, holder: &Holder) -> bool {
    if holder.is_elsewhere() {
        return false;
    }
    match town.store() {
        Ok(yard_journal::Store::Postgres(_)) => Connection::open(&town.folder()).is_err(),
        Ok(yard_journal::Store::Sqlite(_)) | Err(_) => {
            holder.pid.is_some_and(|pid| yard_workers::process_mark(pid).is_none())
        }
    }
}

/// Under systemd, says how the service stands; elsewhere does nothing.
pub(crate) fn tell_service_manager(message: &str) {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Ok(socket) = std::os::unix::net::UnixDatagram::unbound() {
        let _ = socket.send_to(message.as_bytes(), address);
    }
}

/// Carries out one request as the holder of the lease, serving whoever connects meanwhile.
pub(crate) fn serve_one(town: &TownDir, lease: Lease, request: Request) -> Result<Vec<Reply>, DaemonError> {
    let mut core = Core::open(town.clone(), ServerRole::Command, &lease, None)?;
    let server = Server::start(town, ServerRole::Command, core.inputs(), false)?;
    let (reply_to, mut replies) = ReplyTo::new();
    core.inputs().send(Input::Ask { request: Box::new(request), reply_to });
    let mut answers = Vec::new();
    let mut leaving: Option<Instant> = None;
    core.run(|owes| {
        while let Ok(reply) = replies.try_recv() {
            let last = !matches!(reply, Reply::Item(_));
            answers.push(reply);
            if last {
                server.close();
                leaving = Some(Instant::now() + LEAVE_PATIENCE);
            }
        }
        if let (true, Some(until)) = (owes, &mut leaving) {
            // An answer that has been given still takes a moment to reach its client.
            *until = Instant::now() + LEAVE_PATIENCE;
        }
        leaving.is_some_and(|until| server.is_quiet() || Instant::now() > until)
    });
    drop(core);
    drop(server);
    drop(lease);
    Ok(answers)
}
