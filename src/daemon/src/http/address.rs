//! Where webhooks may go: to the world, never into a private network, unless its operator allows that host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::Url;

/// How long a name may take to be resolved.
const RESOLVING: Duration = Duration::from_secs(8);

/// A webhook's address that may be used as far as can be told without asking anybody.
pub(super) fn check(text: &str, allowed: &[String]) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("scheme must be http or https".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("userinfo is not allowed".to_owned());
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("host is required")?;
    if is_allowed(&url, allowed) {
        return Ok(url);
    }
    let name = host.trim_end_matches('.');
    if name == "localhost" || name.ends_with(".localhost") {
        return Err("local hosts are not allowed".to_owned());
    }
    if let Some(address) = literal(host).filter(|address| is_private(*address)) {
        return Err(format!("private address {address} is not allowed"));
    }
    Ok(url)
}

/// Whether the operator named this host, with or without its port.
fn is_allowed(url: &Url, allowed: &[String]) -> bool {
    let Some(host) = url.host_str() else { return false };
    let port = url.port_or_known_default().unwrap_or(0);
    let with_port = format!("{host}:{port}");
    allowed.iter().any(|entry| entry.eq_ignore_ascii_case(host) || entry.eq_ignore_ascii_case(&with_port))
}

fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Why a name leads nowhere that may be connected to.
#[derive(Debug)]
pub(super) struct Unresolved {
    /// In words.
    pub(super) words: String,
    /// It leads into a private network.
    pub(super) private: bool,
}

impl From<String> for Unresolved {
    fn from(words: String) -> Self {
        Self { words, private: false }
    }
}

/// The addresses that a connection is made to, and to no other: what the name stands for is asked once.
pub(super) async fn resolve(url: &Url, allowed: &[String]) -> Result<Vec<SocketAddr>, Unresolved> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let addresses: Vec<SocketAddr> = if let Some(address) = literal(host) {
        vec![SocketAddr::new(address, port)]
    } else {
        let asked = tokio::time::timeout(RESOLVING, tokio::net::lookup_host((host, port))).await;
        let found = asked.map_err(|_| format!("{host} cannot be resolved in time"))?;
        found.map_err(|error| format!("{host} cannot be resolved: {error}"))?.collect()
    };
    if addresses.is_empty() {
        return Err(format!("{host} has no address").into());
    }
    let private = addresses.iter().find(|address| is_private(address.ip()));
    match private.filter(|_| !is_allowed(url, allowed)) {
        Some(address) => {
            let words = format!("{host} leads to the private address {}", address.ip());
            Err(Unresolved { words, private: true })
        }
        None => Ok(addresses),
    }
}

/// Whether an address belongs to this machine, a private network, or nobody.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || matches!((a, b, c), (0 | 240..=255, ..) | (100, 64..=127, _) | (198, 18 | 19, _) | (192, 0, 0))
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let words = address.segments();
    let last_two = || Ipv4Addr::from((u32::from(words[6]) << 16) | u32::from(words[7]));
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_private_v4(inner);
    }
    match words {
        // Translated to, or carried in, the other kind of address.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_private_v4(last_two()),
        [0x2002, high, low, ..] => is_private_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))),
        [0, 0, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] | [0x2001, 0 | 0xdb8, ..] => true,
        [first, ..] => (first & 0xfe00) == 0xfc00 || (first & 0xff80) == 0xfe80 || (first & 0xff00) == 0xff00,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_go_to_the_world_and_nowhere_else() {
        for good in [
            "http://93.184.216.34/hook",
            "https://hooks.example.com:8443/a?b=c",
            "http://[2606:2800:220:1::1]/",
        ] {
            assert!(check(good, &[]).is_ok(), "{good}");
        }
        for bad in [
            "ftp://example.com/",
            "file:///etc/passwd",
            "http://user@example.com/",
            "http://:pw@example.com/",
            "http://localhost/",
            "http://x.localhost./",
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0.0.0.0/",
            "http://10.1.2.3/",
            "http://172.16.0.1/",
            "http://192.168.0.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://198.18.0.1/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
            "http://[ff02::1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fec0::1]/",
            "http://[2001:db8::1]/",
            "http://[2001::1]/",
            "http://[64:ff9b:1::1]/",
            "not a url",
            "http://",
            "",
        ] {
            assert!(check(bad, &[]).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_the_operator_names_is_allowed() {
        let allowed = ["127.0.0.1:8080".to_owned(), "hooks.internal".to_owned()];
        assert!(check("http://127.0.0.1:8080/x", &allowed).is_ok());
        assert!(check("http://127.0.0.1:8081/x", &allowed).is_err());
        assert!(check("http://hooks.internal/x", &allowed).is_ok());
        assert!(check("ftp://hooks.internal/x", &allowed).is_err());
    }

    #[tokio::test]
    async fn a_name_that_leads_home_is_refused_when_it_is_resolved() {
        let url = Url::parse("http://localhost:9/").expect("a url");
        let refused = resolve(&url, &[]).await.expect_err("private");
        assert!(refused.private, "{refused:?}");
        assert!(resolve(&url, &["localhost".to_owned()]).await.is_ok());
    }
}
