//! Unix sockets in directories whose path may be longer than a socket address can hold.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The room for a path in a socket address, its final NUL included.
const SUN_PATH: usize = if cfg!(target_os = "linux") { 108 } else { 104 };

/// A socket's address that fits, however long its directory's path is. Use it while it lives: a long path goes
/// through a descriptor it holds.
#[derive(Debug)]
pub struct SocketAddress {
    path: PathBuf,
    file: PathBuf,
    _dir: Option<std::fs::File>,
}

/// The address of socket `name` in `dir`.
pub fn socket_address(dir: &Path, name: &str) -> io::Result<SocketAddress> {
    let file = dir.join(name);
    if file.as_os_str().len() < SUN_PATH {
        return Ok(SocketAddress { path: file.clone(), file, _dir: None });
    }
    if !cfg!(target_os = "linux") {
        let text =
            format!("the path of {} is too long for a socket: use a shorter directory", file.display());
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, text));
    }
    let dir = std::fs::File::open(dir)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()));
    Ok(SocketAddress { path, file, _dir: Some(dir) })
}

impl SocketAddress {
    /// A path that fits into a socket address, valid while this value lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Connects to whoever listens.
    pub fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(&self.path)
    }

    /// Listens, for this user only, in place of whoever listened before. Only the holder of the town's lease may.
    pub fn listen(&self) -> io::Result<UnixListener> {
        match std::fs::remove_file(&self.file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let listener = UnixListener::bind(&self.path)?;
        std::fs::set_permissions(&self.file, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_works_in_a_directory_with_a_very_long_path() {
        let dir = tempfile::tempdir().expect("temporary directory");
        for name in ["short", &"long".repeat(40)] {
            let place = dir.path().join(name);
            std::fs::create_dir(&place).expect("created");
            let listener = socket_address(&place, "a.sock").expect("address").listen().expect("listening");
            let client = socket_address(&place, "a.sock").expect("address").connect().expect("connected");
            listener.accept().expect("accepted");
            drop(client);
            // A second one takes over.
            socket_address(&place, "a.sock").expect("address").listen().expect("listening again");
        }
    }
}
