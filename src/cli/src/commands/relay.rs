//! `ym __relay TOWN`: connects standard input and output to the town's socket, for a console at the other end of ssh. It
//! takes no lease and decides nothing; when nobody serves the town it says so and is gone.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use yard_client::SocketPath;
use yard_daemon::TownDir;

use crate::args::ColorChoice;
use crate::errors::Report;
use crate::output::Out;
use crate::session::at;

/// What it says when nobody serves the town, for whoever looks for just that.
pub(crate) const NOBODY_SERVES: &str = "nobody serves";
/// Bytes that are passed on at once.
const AT_ONCE: usize = 64 * 1024;

/// The whole of it.
pub(crate) fn relay(words: &[OsString]) -> ExitCode {
    let [town] = words else { return ExitCode::from(crate::errors::USAGE) };
    let connected = at(Path::new(town)).and_then(|town| connect(&town));
    match connected {
        Ok(stream) => pass_on(stream),
        Err(report) => report.show(&mut Out::new(false, false, ColorChoice::Never)),
    }
}

fn connect(town: &TownDir) -> Result<UnixStream, Report> {
    let path = SocketPath::new(&town.folder(), "ym.sock")?;
    UnixStream::connect(path.as_path()).map_err(|_| {
        Report::new("not-served", format!("{NOBODY_SERVES} {}", town.root().display()))
            .hint("ym --daemon there does")
    })
}

/// Passes everything on, both ways, until one side has had enough.
fn pass_on(stream: UnixStream) -> ExitCode {
    let Ok(to_town) = stream.try_clone() else { return ExitCode::FAILURE };
    let asking = thread::Builder::new().name("ym-relay".to_owned()).spawn(move || {
        // Its end is ours: whoever asked is gone, and wants no answer any more.
        let _ = copy(io::stdin().lock(), &to_town);
        let _ = to_town.shutdown(Shutdown::Both);
    });
    if asking.is_err() {
        return ExitCode::FAILURE;
    }
    let _ = copy(&stream, io::stdout().lock());
    ExitCode::SUCCESS
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; AT_ONCE];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&buffer[..read])?;
        to.flush()?;
    }
}
