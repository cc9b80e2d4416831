//! Where a town's journal is.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::postgres::{BadUrl, PostgresUrl};

/// Where a town's journal is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// In a file, beside which the lease's lock lies.
    Sqlite(PathBuf),
    /// In a schema of a PostgreSQL database.
    Postgres(PostgresUrl),
}

impl Store {
    /// The word for the file in the town's own folder.
    pub const SQLITE: &str = "sqlite";

    /// Whether a text means a database rather than a file.
    pub fn is_postgres(text: &str) -> bool {
        ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// What a town's config says: `sqlite`, which is this file, or the address of a database.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BadUrl> {
        if text == Self::SQLITE {
            return Ok(Self::Sqlite(file.to_owned()));
        }
        PostgresUrl::parse(text).map(Self::Postgres)
    }
}

/// For people: never with a password.
impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => write!(f, "{url}"),
        }
    }
}

impl From<&Path> for Store {
    fn from(path: &Path) -> Self {
        Self::Sqlite(path.to_owned())
    }
}

impl From<&PathBuf> for Store {
    fn from(path: &PathBuf) -> Self {
        Self::Sqlite(path.clone())
    }
}

impl From<&Self> for Store {
    fn from(store: &Self) -> Self {
        store.clone()
    }
}
