//! Towns on other hosts: by a real sshd and by HTTPS, both on the loopback. What they answer is what they answer at home.

mod console;
mod https;
mod ssh;

use std::path::{Path, PathBuf};

use yard_tests::ssh::{Sshd, free_port};
use yard_tests::tls::Authority;
use yard_tests::town::{Ran, Town};

/// A town whose daemon runs, and the sshd by which it is reached.
fn by_ssh() -> (Town, Sshd) {
    let mut town = Town::new();
    town.start_daemon();
    (town, Sshd::start())
}

/// Runs `ym` here for the town there.
fn ym_by_ssh(town: &Town, sshd: &Sshd, args: &[&str]) -> Ran {
    ran(town.command(args).env("YM_TOWN", sshd.address(town)).envs(sshd.environment()))
}

fn ran(command: &mut std::process::Command) -> Ran {
    let output = command.output().expect("ym can be run");
    Ran {
        code: output.status.code().expect("it ended by itself"),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A town that serves HTTPS, which only `authority` vouches for.
struct Web {
    town: Town,
    authority: Authority,
    port: u16,
}

impl Web {
    fn start() -> Self {
        let mut web = Self { town: Town::new(), authority: Authority::new(), port: free_port() };
        web.show_certificate_of(&web.authority);
        web.town.set("http.tls_cert", "cert.pem");
        web.town.set("http.tls_key", "key.pem");
        web.town.set("http.listen", &format!("127.0.0.1:{}", web.port));
        web.town.start_daemon();
        web
    }

    /// Puts a certificate in place that this authority has signed; its key first, as one would.
    fn show_certificate_of(&self, authority: &Authority) {
        let (cert, key) = authority.sign();
        for (from, to) in [(key, "key.pem"), (cert, "cert.pem")] {
            let fresh = self.town.root().join("new.pem");
            std::fs::copy(from, &fresh).expect("copied");
            std::fs::rename(fresh, self.town.root().join(to)).expect("put in place");
        }
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    fn token_file(&self) -> PathBuf {
        self.town.root().join(".yardmaster/http-token")
    }

    /// Runs `ym` here for the town there.
    fn ym(&self, args: &[&str]) -> Ran {
        self.ym_with(&self.token_file(), &self.authority.ca(), args)
    }

    fn ym_with(&self, token_file: &Path, ca: &Path, args: &[&str]) -> Ran {
        let token_file = token_file.to_str().expect("text");
        let ca = ca.to_str().expect("text");
        self.ym_at(&self.url(), token_file, ca, args)
    }

    fn ym_at(&self, url: &str, token_file: &str, ca: &str, args: &[&str]) -> Ran {
        let naming = ["--server", url, "--token-file", token_file, "--ca", ca];
        ran(self.town.command(naming.into_iter().chain(args.iter().copied())).env_remove("YM_TOWN"))
    }
}
