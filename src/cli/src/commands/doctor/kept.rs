//! Where the journal is kept, and whether what is kept there lasts.

use yard_daemon::TownDir;
use yard_journal::{Holder, Role, Store};

use super::{Check, Status, check, count};
use crate::commands::journal;

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

/// Whether the town's workers were started from another directory, where alone anybody knows of them.
pub(super) fn home(town: &TownDir, gives_up: bool) -> Option<Check> {
    let home = town.reader().and_then(|reader| reader.led_from_elsewhere()).ok()??;
    if let Some(holder) = town.holder() {
        let status = if gives_up { Status::Fail } else { Status::Ok };
        return Some(check("home", status, format!("{holder} leads the town and knows its workers")));
    }
    let known = format!("the town was last led by {home}");
    let workers = match journal::state(town) {
        Ok(state) => state.map_or(0, |state| state.live_workers().count()),
        Err(error) => return Some(check("home", Status::Fail, format!("{known}, and {error}"))),
    };
    Some(match (workers, gives_up) {
        (0, _) => check("home", Status::Ok, format!("{known}; no worker of it is left there")),
        (workers, true) => give_up(town, &home, workers),
        (workers, false) => {
            let message = format!(
                "{known}, which alone knows what became of {}: start a daemon there; if that place is gone for good, --give-up-workers has their beads tried again from here",
                count(workers, "worker")
            );
            check("home", Status::Fail, message)
        }
    })
}

/// Makes this directory the town's: whoever leads it next takes the workers of the other one for lost.
fn give_up(town: &TownDir, home: &Holder, workers: usize) -> Check {
    let given_up = match town.try_lease(Role::Command) {
        Ok(lease) => lease.make_home().map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let workers = count(workers, "worker");
    match given_up {
        Ok(()) => {
            let message = format!("{workers} of {home} given up: their beads are tried again from here");
            check("home", Status::Warn, message)
        }
        Err(error) => check("home", Status::Fail, format!("{workers} of {home} not given up: {error}")),
    }
}
