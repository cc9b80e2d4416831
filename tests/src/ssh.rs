//! A real sshd on the loopback, whose keys, configuration and known hosts lie in a temporary directory.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;

use crate::town::{Town, wait_until, ym_binary};

/// An sshd that lets in whoever runs the tests.
pub struct Sshd {
    dir: TempDir,
    child: Child,
    port: u16,
    said: Arc<Mutex<String>>,
}

impl Sshd {
    /// Starts one, and waits until it listens.
    pub fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("ym-sshd-").tempdir().expect("a temporary directory");
        for name in ["host_key", "key"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(dir.path().join(name))
                .status();
            assert!(made.expect("ssh-keygen can be run").success());
        }
        let port = free_port();
        let at = |name: &str| dir.path().join(name).display().to_string();
        std::fs::copy(at("key.pub"), at("authorized_keys")).expect("copied");
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUseDNS no\n\
             PermitRootLogin prohibit-password\nMaxStartups 100\nPrintMotd no\n",
            at("host_key"),
            at("authorized_keys"),
        );
        std::fs::write(at("sshd_config"), config).expect("written");
        let config = format!(
            "Host *\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  StrictHostKeyChecking accept-new\n  \
             LogLevel ERROR\n",
            at("key"),
            at("known_hosts"),
        );
        std::fs::write(at("ssh_config"), config).expect("written");
        if nix::unistd::geteuid().is_root() {
            // What a package's service does before it starts.
            std::fs::create_dir_all("/run/sshd").expect("a directory for sshd");
        }
        let mut child = Command::new(sshd_binary())
            .args(["-D", "-e", "-f"])
            .arg(at("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sshd can be run");
        let said = Arc::<Mutex<String>>::default();
        let (heard, stderr) = (Arc::clone(&said), child.stderr.take().expect("piped"));
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.extend([line.as_str(), "\n"]);
            }
        });
        let mut sshd = Self { dir, child, port, said };
        wait_until("sshd listens", || {
            let ended = sshd.child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "sshd ended: {}", sshd.said());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        sshd
    }

    /// What it wrote.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The address of a town.
    pub fn address(&self, town: &Town) -> String {
        self.address_of(town.root())
    }

    /// The address of any directory.
    pub fn address_of(&self, dir: &Path) -> String {
        format!("ssh://127.0.0.1:{}{}", self.port, dir.display())
    }

    /// The same, whatever the host is called.
    pub fn environment_for_every_host(&self) -> [(&'static str, String); 2] {
        let [(name, ssh), bin] = self.environment();
        [(name, format!("{ssh} -o HostName=127.0.0.1 -p {}", self.port)), bin]
    }

    /// What `ym` finds the way with.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let ssh = format!("ssh -F {}", self.dir.path().join("ssh_config").display());
        [("YM_SSH", ssh), ("YM_REMOTE_BIN", ym_binary().display().to_string())]
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of the loopback that nobody listens on at present.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// sshd insists on being called by its full path, and lies where only the path of root leads.
fn sshd_binary() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = places.map(|dir| dir.join("sshd")).find(|file| file.is_file());
    found.expect("sshd is missing: tests/run installs it")
}
