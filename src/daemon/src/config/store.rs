//! Where the journal is, which has to be known before anything else of a town can be. So this one key is read by itself,
//! and a mistake elsewhere in the file does not keep the town closed.

use std::path::Path;

use serde_json::Value as Json;
use toml_edit::Document;
use yard_journal::{JournalError, PostgresUrl, Store};

use super::settings::read_text;

/// The key.
pub const STORE: &str = "store";

/// Where the journal of a town is, whose own file would be `file`.
pub(crate) fn read_store(config: &Path, file: &Path) -> Result<Store, JournalError> {
    let bad = |why: String| JournalError::BadStore(why);
    let text = read_text(config).map_err(|error| bad(error.to_string()))?;
    let said = match Document::parse(text.as_str()) {
        Ok(document) => document.get(STORE).map(|item| item.as_str().map(str::to_owned)),
        // Nobody can tell what the rest of the file means. A town in a database must not begin anew in a file.
        Err(_) if text.contains("postgres") => {
            return Err(bad("the config is not valid TOML; ym config list says where".to_owned()));
        }
        Err(_) => None,
    };
    match said {
        None => Ok(Store::Sqlite(file.to_owned())),
        Some(None) => Err(bad("it is not a text".to_owned())),
        Some(Some(said)) => Store::parse(&said, file).map_err(|error| bad(error.to_string())),
    }
}

/// A value of the key as it may be shown: without a password.
pub(super) fn shown(value: Json) -> Json {
    match value.as_str() {
        Some(text) if Store::is_postgres(text) => match PostgresUrl::parse(text) {
            Ok(url) if url.has_password() => Json::from(url.to_string()),
            Ok(_) => value,
            Err(_) => Json::from("postgres://…"),
        },
        Some(Store::SQLITE) => value,
        // Whatever else was meant, an address with a password may be in it.
        Some(_) | None => Json::from("…"),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn store_of(text: &str) -> Result<Store, JournalError> {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        std::fs::write(&config, text).unwrap();
        read_store(&config, Path::new("/t/journal.db"))
    }

    #[test]
    fn a_mistake_elsewhere_in_the_file_does_not_hide_the_store() {
        let file = Store::Sqlite("/t/journal.db".into());
        for text in ["", "store = \"sqlite\"", "speed = 1", "scheduler = = 5"] {
            assert_eq!(store_of(text).unwrap(), file, "{text}");
        }
        let address = "postgres://localhost/yards?schema=a";
        let in_database = store_of(&format!("store = \"{address}\"\nspeed = 1")).unwrap();
        assert_eq!(in_database, Store::Postgres(PostgresUrl::parse(address).unwrap()));
        for text in [&format!("store = \"{address}\"\n= 5"), "store = 5", "store = \"mysql://x\""] {
            assert!(matches!(store_of(text), Err(JournalError::BadStore(_))), "{text}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let shown = |text: &str| shown(Json::from(text)).to_string();
        assert_eq!(shown("sqlite"), "\"sqlite\"");
        assert_eq!(shown("postgres://a:b@localhost/d?schema=s"), "\"postgres://a@localhost/d?schema=s\"");
        assert_eq!(shown("postgres://a:b@localhost/d"), "\"postgres://…\"");
        assert_eq!(shown("postgresql:a:b@localhost"), "\"…\"");
    }
}
