//! Certificates for tests, made by openssl: an authority of its own in a temporary directory, and what it signs for the
//! loopback.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// An authority that nobody else trusts.
pub struct Authority(TempDir);

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let authority = Self(tempfile::Builder::new().prefix("ym-ca-").tempdir().expect("a directory"));
        authority.openssl(&["req", "-x509", "-subj", "/CN=a test", "-keyout", "ca.key", "-out", "ca.pem"]);
        authority
    }

    /// Its own certificate.
    pub fn ca(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }

    /// A certificate for this host, and its key.
    pub fn sign(&self) -> (PathBuf, PathBuf) {
        let names = "subjectAltName=IP:127.0.0.1,DNS:localhost\n";
        std::fs::write(self.0.path().join("names"), names).expect("written");
        self.openssl(&["req", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "request.pem"]);
        let output = Command::new("openssl")
            .args([
                "x509",
                "-req",
                "-days",
                "2",
                "-in",
                "request.pem",
                "-extfile",
                "names",
                "-out",
                "cert.pem",
            ])
            .args(["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"])
            .current_dir(self.0.path())
            .output()
            .expect("openssl can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (self.0.path().join("cert.pem"), self.0.path().join("key.pem"))
    }

    fn openssl(&self, args: &[&str]) {
        let output = Command::new("openssl")
            .args(args)
            .args([
                "-new",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
            ])
            .current_dir(self.0.path())
            .output()
            .expect("openssl can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
