//! Where the journal is kept, and whether what is kept there lasts.

use yard_daemon::TownDir;
use yard_journal::Store;

use super::{Check, Status, check};

pub(super) fn kept(town: &TownDir) -> Check {
    let url = match town.store() {
        Ok(Store::Sqlite(file)) => {
            return check("store", Status::Ok, format!("SQLite, {}", file.display()));
        }
        Ok(Store::Postgres(url)) => url,
        Err(error) => return check("store", Status::Fail, error.to_string()),
    };
    match url.server() {
        Ok(server) => {
            let what = format!("PostgreSQL {}, {url}, {} MiB", server.version, server.size.div_ceil(1 << 20));
            if server.durable {
                return check("store", Status::Ok, what);
            }
            let lost = "the server runs with fsync off, so a power cut may take what was acknowledged";
            check("store", Status::Warn, format!("{what}: {lost}"))
        }
        Err(error) => check("store", Status::Fail, format!("PostgreSQL, {url}: {error}")),
    }
}
