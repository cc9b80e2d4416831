//! What can be wrong with a config file or a change of it.

use std::io;
use std::path::PathBuf;

use yard_engine::Refusal;

/// Why the config cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read or written.
    #[error("cannot {what} {}: {error}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The text is not TOML.
    #[error("the config is not valid TOML, line {line}: {message}")]
    NotToml {
        /// Where.
        line: usize,
        /// What the parser said.
        message: String,
    },
    /// Nobody knows this key.
    #[error("there is no config key {key:?}{}", at(*line))]
    UnknownKey {
        /// The key.
        key: String,
        /// Where in the file.
        line: Option<usize>,
        /// A key it may be a slip of.
        near: Option<String>,
    },
    /// The value does not fit its key.
    #[error("{key} = {found}{} is not valid: expected {expected}", at(*line))]
    BadValue {
        /// The key.
        key: String,
        /// Where in the file.
        line: Option<usize>,
        /// What would fit.
        expected: String,
        /// What was there.
        found: String,
    },
    /// Others could listen in.
    #[error(
        "http.listen = {address:?} reaches others than this machine, and needs http.tls_cert and http.tls_key"
    )]
    NeedsTls {
        /// Where it was to listen.
        address: String,
    },
}

impl ConfigError {
    /// A stable word for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::NotToml { .. } => "bad-config",
            Self::UnknownKey { .. } => "unknown-key",
            Self::BadValue { .. } => "bad-value",
            Self::NeedsTls { .. } => "needs-tls",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Io { .. } => "check the permissions and free space of the .yardmaster folder".to_owned(),
            Self::NotToml { .. } => {
                "correct .yardmaster/config.toml in an editor; nothing was changed".to_owned()
            }
            Self::UnknownKey { near: Some(near), .. } => format!("did you mean {near}?"),
            Self::UnknownKey { near: None, .. } => "ym config list shows every key".to_owned(),
            Self::BadValue { key, .. } => format!("ym config get {key} shows the value in force"),
            Self::NeedsTls { .. } => {
                "set those two first, or listen on 127.0.0.1; ym help remote says more".to_owned()
            }
        }
    }

    /// Whether the address is what is wrong.
    pub(super) fn is_needs_tls(&self) -> bool {
        matches!(self, Self::NeedsTls { .. })
    }

    pub(super) fn at_line(self, line: usize) -> Self {
        match self {
            Self::UnknownKey { key, near, .. } => Self::UnknownKey { key, line: Some(line), near },
            Self::BadValue { key, expected, found, .. } => {
                Self::BadValue { key, line: Some(line), expected, found }
            }
            other => other,
        }
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        Self::new(error.code(), error.to_string()).hint(error.hint())
    }
}

fn at(line: Option<usize>) -> String {
    line.map(|line| format!(" (line {line})")).unwrap_or_default()
}
