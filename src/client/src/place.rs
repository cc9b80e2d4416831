//! Where a town is: in a folder of this host, behind the user's ssh, or behind a web address.

use std::fmt;
use std::path::PathBuf;

use crate::ssh::SshTown;
use crate::web::WebTown;

/// Where a town is.
#[derive(Debug, Clone)]
pub enum Place {
    /// On this host: its `.yardmaster` folder.
    Folder(PathBuf),
    /// On another host, reached by ssh.
    Ssh(SshTown),
    /// Where its HTTP API listens.
    Web(WebTown),
}

impl Place {
    /// Whether reaching it takes more than opening a file.
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Folder(_) => false,
            Self::Ssh(_) | Self::Web(_) => true,
        }
    }

    /// The same for whoever works behind a screen: ssh must ask nothing there, and a key for the screen is none for it.
    pub fn unattended(self) -> Self {
        match self {
            Self::Ssh(town) => Self::Ssh(town.unattended()),
            Self::Folder(_) | Self::Web(_) => self,
        }
    }
}

impl fmt::Display for Place {
    /// As it is named on a command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Ssh(town) => f.write_str(town.address()),
            Self::Web(town) => f.write_str(town.address()),
        }
    }
}

/// Why an address leads to no town.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{address}: {why}")]
pub struct BadPlace {
    /// What was given.
    pub address: String,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

impl BadPlace {
    pub(crate) fn new(address: &str, why: impl Into<String>) -> Self {
        Self { address: address.to_owned(), why: why.into() }
    }
}
