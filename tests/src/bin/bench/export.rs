//! A workspace's file as `br` exports it: JSON lines sorted by id, written whole to a temporary file, synced and renamed.
//! Unlike the one of the tests it keeps its lines, so that a large one is not parsed again for every change, and it says
//! when the rename was called.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

/// The lines of a workspace, by id.
pub(crate) struct Export {
    dir: PathBuf,
    lines: BTreeMap<String, String>,
}

impl Export {
    /// An empty workspace in a project's directory; nothing is exported yet.
    pub(crate) fn create(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir.join(".beads"))?;
        let metadata = r#"{"database":"beads.db","jsonl_export":"issues.jsonl"}"#;
        fs::write(dir.join(".beads/metadata.json"), metadata)?;
        Ok(Self { dir: dir.to_owned(), lines: BTreeMap::new() })
    }

    /// The project's directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// How long the file is.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.values().map(|line| line.len() + 1).sum()
    }

    pub(crate) fn put(&mut self, id: &str, line: String) {
        self.lines.insert(id.to_owned(), line);
    }

    /// What `br close` does to a bead.
    pub(crate) fn close(&mut self, id: &str) -> serde_json::Result<()> {
        let line = self.lines.entry(id.to_owned()).or_default();
        let mut bead: Value = serde_json::from_str(line)?;
        bead["status"] = json!("closed");
        bead["closed_at"] = json!("2026-11-16T10:00:00.123456789Z");
        bead["close_reason"] = json!("done");
        *line = bead.to_string();
        Ok(())
    }

    /// Writes the file; returns the moment at which the rename was called.
    pub(crate) fn publish(&self) -> io::Result<SystemTime> {
        let file = self.dir.join(".beads/issues.jsonl");
        let temporary = self.dir.join(".beads/issues.jsonl.tmp");
        let mut writer = BufWriter::with_capacity(1 << 20, File::create(&temporary)?);
        for line in self.lines.values() {
            writeln!(writer, "{line}")?;
        }
        writer.into_inner()?.sync_all()?;
        let moment = SystemTime::now();
        fs::rename(&temporary, &file)?;
        fs::set_permissions(&file, Permissions::from_mode(0o600))?;
        Ok(moment)
    }
}
