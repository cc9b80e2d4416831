//! `ym poke --hook`: a nudge from inside somebody else's command. It says nothing, never fails, and is over within
//! moments, whether or not anybody serves the town.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use yard_client::{Ask, Request, SocketPath};
use yard_daemon::TownDir;

use crate::args::ColorChoice;
use crate::output::Out;
use crate::session::Session;

/// How long a server may take to greet: one that is stopped or hung hears of the change by itself later.
const PATIENCE: Duration = Duration::from_millis(50);

/// Whether these are the words of a hook as `ym hooks` writes them: `--hook`, perhaps with a rig.
pub(crate) fn is_hook(words: &[OsString]) -> bool {
    let plain = |word: &OsString| word.to_str().is_some_and(|word| !word.starts_with('-'));
    matches!(words, [hook, rig @ ..] if hook == "--hook" && rig.len() <= 1 && rig.iter().all(plain))
}

/// The whole of `ym poke --hook [RIG]`.
pub(crate) fn hook(rig: &[OsString]) -> ExitCode {
    let rig = rig.first().and_then(|rig| rig.to_str()).map(ToOwned::to_owned);
    let mut session = Session::new(Out::new(false, true, ColorChoice::Never), None);
    ExitCode::from(nudge(&mut session, rig))
}

/// Has the workspace of a rig, or everything, read again by whoever serves the town.
pub(super) fn nudge(session: &mut Session, rig: Option<String>) -> u8 {
    if let Ok(town) = session.town() {
        // Nothing is lost if nobody hears it: whoever serves the town next reads everything.
        let _ = try_to(&town, rig);
    }
    0
}

fn try_to(town: &TownDir, rig: Option<String>) -> io::Result<()> {
    let request = Request { actor: "hook".to_owned(), ask: Ask::Poke { rig } };
    let mut line = serde_json::to_vec(&request)?;
    line.push(b'\n');
    let mut stream = connect_at_once(town)?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&line)?;
    // Who greets has accepted us, and reads the line that is there already.
    io::Read::read(&mut stream, &mut [0]).map(drop)
}

/// Connecting waits where a stopped server has too many callers already, so it is not waited for.
fn connect_at_once(town: &TownDir) -> io::Result<UnixStream> {
    let path = SocketPath::new(&town.folder(), "ym.sock")?;
    let fd: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None)?;
    fcntl(&fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path.as_path())?)?;
    Ok(fd.into())
}
