//! Removing claims that are no longer needed. At once, one by one: ext4 gives a new claim the inode of the last one, which
//! keeps a commit small. Removing them from another thread, or many together later, measured a fifth to a third slower.

use std::path::{Path, PathBuf};

use super::{settle, spec_path};
use crate::claim::cluster_mark;
use crate::shim::environment_file;

/// Removes a claim and what belongs to it.
pub(super) fn remove(claim: &Path) {
    remove_claim(claim);
    remove_order(claim);
}

/// Removes a claim whose order left no file.
pub(super) fn remove_claim(claim: &Path) {
    // A file that stays is only clutter, and the next daemon looks for it.
    let _ = std::fs::remove_file(claim);
}

/// Removes an order that no shim has taken, and the mark of a cluster.
pub(super) fn remove_order(claim: &Path) {
    let order = spec_path(claim);
    let _ = std::fs::remove_file(environment_file(&order));
    let _ = std::fs::remove_file(order);
    let _ = std::fs::remove_file(cluster_mark(claim));
}

/// The claims in a directory.
pub(super) fn claims(run_dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(run_dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "claim"))
}

/// The claims in a directory that nobody holds and that belong to none of the dispatches still to be known.
pub(super) fn leftovers(run_dir: &Path, is_live: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let over = claims(run_dir)
        .filter(|path| path.file_stem().and_then(|s| s.to_str()).is_some_and(|id| !is_live(id)));
    over.filter(|path| settle::is_held(path).is_ok_and(|held| !held)).collect()
}
