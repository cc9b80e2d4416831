//! Moving a town's journal from one kind of store to the other, or to another place. A copy holds the same events and
//! entities under the same sums, and is read back before it counts as made.

use yard_engine::Seq;

use crate::reader::Reader;
use crate::{JournalError, Store};

/// A copy that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// How many events it holds.
    pub events: u64,
    /// The last of them, or where the log was cut off.
    pub last: Seq,
    /// How many entities its checkpoint holds.
    pub entities: u64,
}

/// Copies a journal to where there is none, and verifies the copy. What is copied is one moment of the log: whoever wants
/// to go on with the copy sees to it that nobody writes meanwhile.
pub fn copy(from: &Store, to: &Store) -> Result<Copied, JournalError> {
    let reader = Reader::open(from)?;
    match to {
        Store::Sqlite(path) => {
            let companions = ["-wal", "-shm", "-tip"].map(|ending| {
                let mut name = path.as_os_str().to_owned();
                name.push(ending);
                std::path::PathBuf::from(name)
            });
            if companions.iter().chain([path]).any(|file| file.symlink_metadata().is_ok()) {
                return Err(JournalError::NotEmpty(path.display().to_string()));
            }
            reader.copy_to(path)?;
        }
        Store::Postgres(url) => reader.copy_into(url)?,
    }
    let copy = Reader::open(to)?;
    let report = copy.check()?;
    if let Some(problem) = report.problems.into_iter().next() {
        return Err(JournalError::Server(format!("the copy is not sound: {problem}")));
    }
    Ok(Copied { events: report.events, last: report.last_seq, entities: report.entities })
}
