//! The address of a town's journal in a database: a usual PostgreSQL URL, with the schema of this town in its query. A
//! password in it is used and never shown.

use std::error::Error as _;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use postgres::Config;
use postgres::config::{Host, SslMode};

/// Longest name of a schema: what is derived from it must fit into the server's names of 63 bytes.
const LONGEST_SCHEMA: usize = 40;

/// A database and the schema in it that holds one town.
#[derive(Clone)]
pub struct PostgresUrl {
    parsed: Arc<Parsed>,
    /// Where the town's directory is, for those elsewhere who ask.
    town: Option<Arc<str>>,
}

struct Parsed {
    text: String,
    config: Config,
    schema: String,
    shown: String,
}

/// What is wrong with an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// It is no address of a database.
    #[error(
        "it is neither \"sqlite\" nor an address such as postgres://user@host/database?schema=NAME ({0})"
    )]
    Unreadable(String),
    /// It does not say which schema.
    #[error("the address does not say which schema of the database is this town's: add ?schema=NAME")]
    NoSchema,
    /// The schema's name cannot be one.
    #[error(
        "schema={0:?} cannot be a town's: use a letter or '_', then at most {len} small letters, digits and '_'; public and pg_… are the server's",
        len = LONGEST_SCHEMA - 1
    )]
    BadSchema(String),
    /// It asks for encryption.
    #[error(
        "this ym cannot encrypt its connection to PostgreSQL: reach the server through a Unix socket or an ssh or stunnel tunnel on this host, without sslmode={0}"
    )]
    Encrypted(String),
    /// It would send everything in the clear.
    #[error(
        "the connection to {0} would not be encrypted: reach the server through a tunnel on this host, or say sslmode=disable if the network is yours alone"
    )]
    InTheClear(String),
}

impl PostgresUrl {
    /// Reads `postgres://[user[:password]@][host][:port]/database?schema=NAME[&option=value]…`.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        if !crate::Store::is_postgres(text) {
            return Err(BadUrl::Unreadable("it does not begin with postgres://".to_owned()));
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let mut schema = None;
        let mut rest: Vec<&str> = Vec::new();
        let mut in_the_clear = false;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("schema", name)) => schema = Some(name),
                Some(("sslmode", mode @ ("require" | "verify-ca" | "verify-full"))) => {
                    return Err(BadUrl::Encrypted(mode.to_owned()));
                }
                other => {
                    in_the_clear |= other == Some(("sslmode", "disable"));
                    rest.push(option);
                }
            }
        }
        let schema = checked_schema(schema.ok_or(BadUrl::NoSchema)?)?;
        let known = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let config: Config = known.parse().map_err(|error: postgres::Error| {
            // Only the reason: the whole may quote a password.
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            BadUrl::Unreadable(why)
        })?;
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(BadUrl::Unreadable("it names no database".to_owned()));
        }
        let odd = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        if config.get_hosts().iter().any(odd) {
            // It is not quoted: what precedes the last @ is most likely a password.
            return Err(BadUrl::Unreadable(
                "there is an '@' too many: in a name it is written %40".to_owned(),
            ));
        }
        if config.get_hosts().is_empty() {
            return Err(BadUrl::Unreadable(
                "it names no host; a Unix socket's folder goes in ?host=".to_owned(),
            ));
        }
        if !in_the_clear && config.get_ssl_mode() != SslMode::Disable {
            let by_number = config.get_hostaddrs().iter().find(|address| !address.is_loopback());
            let far = by_number.map(ToString::to_string);
            if let Some(host) = far.or_else(|| config.get_hosts().iter().find_map(far_host)) {
                return Err(BadUrl::InTheClear(host));
            }
        }
        let shown = shown(&config, &schema);
        let parsed = Parsed { text: text.to_owned(), config, schema, shown };
        Ok(Self { parsed: Arc::new(parsed), town: None })
    }

    /// The same, used from a town in this directory.
    #[must_use]
    pub fn of_town(self, root: &Path) -> Self {
        Self { town: Some(root.to_string_lossy().into()), ..self }
    }

    /// Whether the address itself holds a password.
    pub fn has_password(&self) -> bool {
        self.parsed.config.get_password().is_some()
    }

    /// The schema that is this town's.
    pub fn schema(&self) -> &str {
        &self.parsed.schema
    }

    /// The same as SQL has it: it may be a word of SQL's.
    pub(super) fn quoted_schema(&self) -> String {
        format!("\"{}\"", self.schema())
    }

    pub(super) fn config(&self) -> &Config {
        &self.parsed.config
    }

    pub(super) fn town(&self) -> &str {
        self.town.as_deref().unwrap_or_default()
    }

    /// Where news of this town are notified.
    pub(super) fn channel(&self) -> String {
        format!("ym_{}", self.schema())
    }

    /// By what the sessions of a term's holder are known to the server.
    pub(super) fn label(&self, term: i64) -> String {
        format!("ym {} {term}", self.schema())
    }
}

impl PartialEq for PostgresUrl {
    fn eq(&self, other: &Self) -> bool {
        self.parsed.text == other.parsed.text
    }
}

impl Eq for PostgresUrl {}

/// Without the password.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parsed.shown)
    }
}

/// Without the password.
impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parsed.shown)
    }
}

fn checked_schema(name: &str) -> Result<String, BadUrl> {
    let mut bytes = name.bytes();
    let fits = bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.len() <= LONGEST_SCHEMA
        && !name.starts_with("pg_")
        && !["public", "information_schema"].contains(&name);
    if fits { Ok(name.to_owned()) } else { Err(BadUrl::BadSchema(name.chars().take(80).collect())) }
}

/// A host that is reached over a network.
fn far_host(host: &Host) -> Option<String> {
    match host {
        Host::Unix(_) => None,
        Host::Tcp(name) => {
            let loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
            (!loopback && name != "localhost").then(|| name.clone())
        }
    }
}

fn shown(config: &Config, schema: &str) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(at, host)| {
            let port = ports.get(at).or(ports.first()).filter(|port| **port != 5432);
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]{port}"),
                Host::Tcp(name) => format!("{name}{port}"),
                Host::Unix(folder) => format!("{}{port}", folder.display()),
            }
        })
        .collect();
    let database = config.get_dbname().unwrap_or_default();
    format!("postgres://{user}{}/{database}?schema={schema}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_password_is_used_and_never_shown() {
        let url = PostgresUrl::parse("postgres://ann:s3cret@127.0.0.1:5433/yards?schema=shop").unwrap();
        assert_eq!(url.config().get_password(), Some(b"s3cret".as_slice()));
        assert!(url.has_password());
        for shown in
            [url.to_string(), format!("{url:?}"), format!("{:?}", crate::Store::Postgres(url.clone()))]
        {
            assert!(shown.contains("postgres://ann@127.0.0.1:5433/yards?schema=shop"), "{shown}");
            assert!(!shown.contains("s3cret"));
        }
        let broken = PostgresUrl::parse("postgres://ann:s3cret@127.0.0.1:x/yards?schema=shop").unwrap_err();
        assert!(!broken.to_string().contains("s3cret"), "{broken}");
        let odd = PostgresUrl::parse("postgres://ann:pa@s3cret@db.example/d?schema=shop").unwrap_err();
        assert!(!odd.to_string().contains("s3cret"), "{odd}");
    }

    #[test]
    fn an_address_names_a_database_a_host_and_a_schema() {
        let fine = "postgresql:///yards?host=/run/postgresql&schema=_a1&connect_timeout=3";
        assert_eq!(PostgresUrl::parse(fine).unwrap().schema(), "_a1");
        assert_eq!(PostgresUrl::parse("postgres://localhost/yards"), Err(BadUrl::NoSchema));
        for schema in ["", "Shop", "1a", "a-b", "a;b", "public", "pg_x", &"x".repeat(41)] {
            let refused = PostgresUrl::parse(&format!("postgres://localhost/yards?schema={schema}"));
            assert!(matches!(refused, Err(BadUrl::BadSchema(_))), "{schema}");
        }
        for odd in [
            "sqlite3",
            "postgres://localhost?schema=a",
            "postgres:///yards?schema=a",
            "postgres://h/d?x=1&schema=a",
        ] {
            assert!(matches!(PostgresUrl::parse(odd), Err(BadUrl::Unreadable(_))), "{odd}");
        }
    }

    #[test]
    fn nothing_goes_over_a_network_in_the_clear_unless_somebody_said_so() {
        let parse = |text: &str| PostgresUrl::parse(&format!("postgres://{text}"));
        assert!(parse("localhost/d?schema=a&sslmode=prefer").is_ok());
        assert!(parse("[::1]/d?schema=a").is_ok());
        assert_eq!(parse("db.example/d?schema=a"), Err(BadUrl::InTheClear("db.example".to_owned())));
        assert!(parse("db.example/d?schema=a&sslmode=disable").is_ok());
        let by_number = parse("localhost/d?hostaddr=192.0.2.2&schema=a");
        assert_eq!(by_number, Err(BadUrl::InTheClear("192.0.2.2".to_owned())));
        assert!(parse("localhost/d?hostaddr=127.0.0.1&schema=a").is_ok());
        let encrypted = parse("db.example/d?schema=a&sslmode=require");
        assert_eq!(encrypted, Err(BadUrl::Encrypted("require".to_owned())));
    }
}
