//! A town behind the address of its HTTP API: a connection that is upgraded to the socket's own protocol. Under TLS, or in
//! plain to this host alone; the token is shown in a header and nowhere else.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::connection::{AT_ONCE, Lost};
use crate::place::BadPlace;
use crate::ssh::host_and_port;
use crate::stream::Stream;

/// The word by which server and client agree on what follows.
pub const UPGRADE: &str = "ym-socket";
/// How long each step of getting in may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest head of an answer, and longest explanation after it.
const LONGEST_HEAD: u64 = 16 * 1024;

/// A town behind one address, or behind several of which one leads to it: that of whoever serves it now.
#[derive(Clone)]
pub struct WebTown {
    address: String,
    doors: Vec<Door>,
    tls: Option<Arc<ClientConfig>>,
    token: String,
}

/// One address, taken apart.
#[derive(Debug, Clone)]
struct Door {
    secure: bool,
    host: String,
    port: u16,
    prefix: String,
}

impl fmt::Debug for WebTown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebTown").field("address", &self.address).finish_non_exhaustive()
    }
}

impl WebTown {
    /// The town at `https://host[:port]`, or at one of several such addresses with commas between them. An authority in
    /// `ca` has signed its certificate, or one that this system trusts.
    pub fn new(address: &str, token: &str, ca: Option<&Path>) -> Result<Self, BadPlace> {
        let bad = |why: String| BadPlace::new(address, why);
        let doors = address.split(',').map(|door| Door::parse(door.trim()));
        let doors = doors.collect::<Result<Vec<_>, _>>().map_err(bad)?;
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("the token is empty or not made of visible characters".to_owned()));
        }
        let secure = doors.iter().any(|door| door.secure);
        let tls = if secure { Some(tls(ca).map_err(bad)?) } else { None };
        Ok(Self { address: address.to_owned(), doors, tls, token: token.to_owned() })
    }

    /// The address as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The host, with its port; of several, the first.
    pub fn host(&self) -> String {
        self.doors.first().map(Door::host).unwrap_or_default()
    }

    /// Connects and upgrades; what follows is the socket's protocol.
    pub(crate) fn open(&self) -> Result<BufReader<Stream>, Lost> {
        let mut closed = Vec::new();
        for door in &self.doors {
            match self.enter(door) {
                Ok(reader) => return Ok(reader),
                Err(why) => closed.push(why),
            }
        }
        Err(Lost::Unreachable(closed.join("; ")))
    }

    fn enter(&self, door: &Door) -> Result<BufReader<Stream>, String> {
        let lost = |error: io::Error| door.in_words(&error);
        let socket = door.connect().map_err(lost)?;
        let stream = match self.tls.as_ref().filter(|_| door.secure) {
            None => Stream::Plain(socket),
            Some(config) => {
                let name = ServerName::try_from(door.host.clone()).map_err(|e| lost(io::Error::other(e)))?;
                let session = ClientConnection::new(Arc::clone(config), name);
                let session = session.map_err(|error| lost(io::Error::other(error)))?;
                Stream::Tls(Box::new(StreamOwned::new(session, socket)))
            }
        };
        let mut reader = BufReader::with_capacity(AT_ONCE, stream);
        let head = format!(
            "GET {}/socket HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\nUpgrade: {UPGRADE}\r\n\r\n",
            door.prefix,
            door.host(),
            self.token
        );
        let stream = reader.get_mut();
        stream.write_all(head.as_bytes()).and_then(|()| stream.flush()).map_err(lost)?;
        let (status, length) = read_head(&mut reader).map_err(lost)?;
        if status == 101 {
            return Ok(reader);
        }
        let mut said = String::new();
        let _ = reader.take(length.min(LONGEST_HEAD)).read_to_string(&mut said);
        Err(door.refused(status, &said))
    }
}

impl Door {
    fn parse(address: &str) -> Result<Self, String> {
        let (secure, rest) = match (address.strip_prefix("https://"), address.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err("an address begins with https://".to_owned()),
        };
        let (authority, prefix) = match rest.split_once('/') {
            Some((authority, path)) => (authority, format!("/{path}")),
            None => (rest, String::new()),
        };
        if authority.contains('@') {
            return Err("a token belongs in YM_TOKEN or a file (--token-file), not here".to_owned());
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%".contains(&byte);
        if !prefix.bytes().all(plain) {
            return Err("its path has characters that no address has".to_owned());
        }
        let (host, port) = host_and_port(authority)?;
        if ServerName::try_from(host.clone()).is_err() {
            return Err(format!("{host:?} is no name of a host"));
        }
        let local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !secure && !local {
            return Err("in plain, anybody on the way could read the token: use https://".to_owned());
        }
        let port = port.unwrap_or(if secure { 443 } else { 80 });
        Ok(Self { secure, host, port, prefix: prefix.trim_end_matches('/').to_owned() })
    }

    fn host(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = None;
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            // A name that says it is this host need not be.
            if !self.secure && !address.ip().is_loopback() {
                continue;
            }
            match connect_to(&address) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("the name has no address")))
    }

    fn refused(&self, status: u16, said: &str) -> String {
        let why = serde_json::from_str::<serde_json::Value>(said).ok();
        let why = why.as_ref().and_then(|value| value["error"].as_str()).unwrap_or("it does not say why");
        let host = self.host();
        match status {
            401 => format!("{host} does not know this token (ym http token on its host prints it)"),
            404 => format!("{host} has no town there, or one of an older ym"),
            _ => format!("{host} refuses with {status}: {why}"),
        }
    }

    fn in_words(&self, error: &io::Error) -> String {
        let host = self.host();
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error @ rustls::Error::InvalidCertificate(_)) => format!(
                "the certificate of {host} is not to be trusted ({error}): --ca FILE names who signed it"
            ),
            Some(rustls::Error::InvalidMessage(_)) => format!("{host} does not speak TLS"),
            Some(error) => format!("{host}: {error}"),
            None if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                format!("{host} does not answer")
            }
            None => format!("{host}: {error}"),
        }
    }
}

fn connect_to(address: &SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    notice_when_gone(&stream)?;
    Ok(stream)
}

/// Has the system look after a connection on which nothing is said, so that a peer that vanished is noticed.
pub fn notice_when_gone(stream: &impl std::os::fd::AsFd) -> io::Result<()> {
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &15)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &5)?;
    setsockopt(stream, sockopt::TcpKeepCount, &3)?;
    Ok(())
}

/// The status of an answer, and how long what follows its head is.
fn read_head(reader: &mut BufReader<Stream>) -> io::Result<(u16, u64)> {
    let odd = || io::Error::other("what answers there is no web server");
    let mut head = reader.take(LONGEST_HEAD);
    let mut line = String::new();
    head.read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let status = status.and_then(|status| status.parse().ok()).ok_or_else(odd)?;
    let mut length = 0;
    loop {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Err(odd());
        }
        match line.trim_end().split_once(':') {
            None if line.trim_end().is_empty() => return Ok((status, length)),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or(0);
            }
            Some(_) | None => {}
        }
    }
}

/// Whom to trust: the authorities in a file, or those of the system.
fn tls(ca: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = ca {
        let bad = |why: String| format!("--ca {}: {why}", file.display());
        for certificate in CertificateDer::pem_file_iter(file).map_err(|error| bad(error.to_string()))? {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            roots.add(certificate).map_err(|error| bad(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(bad("it holds no certificate in PEM form".to_owned()));
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let why = "this system trusts nobody (no ca-certificates): --ca FILE names who signed";
            return Err(why.to_owned());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why_not(address: &str, token: &str) -> String {
        WebTown::new(address, token, None).expect_err("refused").why
    }

    #[test]
    fn in_plain_only_this_host_is_spoken_to() {
        for address in
            ["http://127.0.0.1:7777", "http://127.0.0.2:1", "http://[::1]:1/", "http://localhost:1"]
        {
            assert!(WebTown::new(address, "token", None).is_ok(), "{address}");
        }
        assert!(why_not("http://yard.example:7777", "token").contains("https://"));
        assert!(why_not("http://10.0.0.1", "token").contains("https://"));
    }

    #[test]
    fn what_is_no_address_or_no_token_is_refused() {
        for address in [
            "ftp://h",
            "https://",
            "https://a:b@h",
            "https://h:0",
            "https://h h",
            "http://localhost/\r\nX: y",
        ] {
            assert!(WebTown::new(address, "token", None).is_err(), "{address}");
        }
        assert!(WebTown::new("http://localhost:1,", "token", None).is_err());
        assert!(WebTown::new("http://localhost:1, http://[::1]:2", "token", None).is_ok());
        assert!(WebTown::new("http://localhost:1,http://192.0.2.1", "token", None).is_err());
        assert!(why_not("http://localhost", "").contains("token"));
        assert!(why_not("http://localhost", "a\r\nX: y").contains("token"));
    }

    #[test]
    fn the_token_is_not_shown_by_accident() {
        let town = WebTown::new("http://localhost:1", "very-secret", None).expect("an address");
        assert!(!format!("{town:?}").contains("very-secret"));
    }
}
