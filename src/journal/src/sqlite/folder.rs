//! The folder that files lie in: a name outlasts a power cut only once its folder was synced.

use std::fs::File;
use std::path::Path;

use crate::JournalError;

/// Makes the names in the folder of this file durable.
pub(super) fn sync_folder_of(path: &Path) -> Result<(), JournalError> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let opened = File::open(folder).map_err(|error| JournalError::io("open the folder", folder, error))?;
    opened.sync_all().map_err(|_| JournalError::Fsync)
}
