//! Which directory is a log's, and which log a directory's. Claims of workers lie in a directory: who leads from another one
//! cannot tell what runs. And a directory that meets another log than its own would end whatever it finds running.
//!
//! Both have a random name. The directory notes its own and its log's; the log notes the directory it was led from last.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use postgres::GenericClient;

use super::url::PostgresUrl;
use crate::JournalError;

/// The note in a town's folder.
const NOTE: &str = "place";
/// The journal of a town that keeps it in a file.
const OWN_JOURNAL: &str = "journal.db";

/// What a directory has noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Its own name.
    pub(super) name: String,
    /// That of its log; none right after the log was moved.
    log: Option<String>,
}

impl Place {
    fn read(folder: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(folder.join(NOTE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut lines = text.lines().map(str::to_owned).filter(|line| !line.is_empty());
        Ok(lines.next().map(|name| Self { name, log: lines.next() }))
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        fs::rename(self.write_beside(folder)?, folder.join(NOTE))
    }

    /// Gives a directory its first name. Of several that do so at once the first counts: one directory has one name.
    fn write_first(self, folder: &Path) -> io::Result<Self> {
        let beside = self.write_beside(folder)?;
        let linked = fs::hard_link(&beside, folder.join(NOTE));
        fs::remove_file(&beside)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(Self::read(folder)?.unwrap_or(self))
            }
            linked => linked.map(|()| self),
        }
    }

    fn write_beside(&self, folder: &Path) -> io::Result<PathBuf> {
        let beside = folder.join(format!("{NOTE}.{}", std::process::id()));
        let mut open = OpenOptions::new();
        let mut file = open.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        write!(file, "{}\n{}\n", self.name, self.log.as_deref().unwrap_or_default())?;
        file.sync_all()?;
        Ok(beside)
    }

    /// The place that somebody asks from, if it has a name yet; refused if it belongs to another log.
    pub(super) fn that_asks(
        client: &mut impl GenericClient,
        url: &PostgresUrl,
    ) -> Result<Option<Self>, JournalError> {
        let Some(folder) = url.folder() else { return Ok(None) };
        let place = read_from(&folder)?;
        let log: String =
            client.query_one(&format!("SELECT log FROM {}.meta", url.quoted_schema()), &[])?.try_get(0)?;
        let stranger = match &place {
            Some(place) => place.log.as_ref().is_some_and(|own| *own != log),
            // A copy of the config has nothing; what has a journal of its own is no copy.
            None => folder.join(OWN_JOURNAL).metadata().is_ok_and(|file| file.len() > 0),
        };
        if stranger { Err(JournalError::OtherTown(url.to_string())) } else { Ok(place) }
    }

    /// The same for whoever is about to lead from there: it has a name, and a log, from now on.
    pub(super) fn that_leads(
        client: &mut impl GenericClient,
        url: &PostgresUrl,
    ) -> Result<Option<Self>, JournalError> {
        let place = Self::that_asks(client, url)?;
        let Some(folder) = url.folder() else { return Ok(None) };
        if let Some(place) = place.as_ref().filter(|place| place.log.is_some()) {
            return Ok(Some(place.clone()));
        }
        let row = client.query_one(
            &format!("SELECT log, gen_random_uuid()::text FROM {}.meta", url.quoted_schema()),
            &[],
        )?;
        let log = Some(row.try_get(0)?);
        let written = match place {
            Some(place) => {
                let place = Self { log, ..place };
                place.write(&folder).map(|()| place)
            }
            None => Self { name: row.try_get(1)?, log }.write_first(&folder),
        };
        written.map(Some).map_err(|source| JournalError::io("write", &folder.join(NOTE), source))
    }
}

fn read_from(folder: &Path) -> Result<Option<Place>, JournalError> {
    Place::read(folder).map_err(|source| JournalError::io("read", &folder.join(NOTE), source))
}

/// Has a directory belong to whatever log it meets next: its journal was moved, which is known to be the same.
pub fn leave_log(folder: &Path) -> Result<(), JournalError> {
    let Some(place) = read_from(folder)? else { return Ok(()) };
    let place = Place { log: None, ..place };
    place.write(folder).map_err(|source| JournalError::io("write", &folder.join(NOTE), source))
}

impl PostgresUrl {
    /// The folder of the town that this is used from.
    fn folder(&self) -> Option<PathBuf> {
        Some(self.town()).filter(|town| !town.is_empty()).map(|town| Path::new(town).join(".yardmaster"))
    }
}
