//! A beads workspace as `br` keeps one: JSON lines sorted by id, rewritten whole through a temporary file, fsync and
//! rename. Whoever changes it holds its lock, so several workers may.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A workspace in a project's directory.
#[derive(Debug, Clone)]
pub struct Workspace {
    dir: PathBuf,
}

impl Workspace {
    /// A new workspace with these beads.
    pub fn create(dir: &Path, beads: &[Value]) -> Self {
        let workspace = Self { dir: dir.to_owned() };
        fs::create_dir_all(workspace.folder()).expect("a directory");
        fs::write(
            workspace.folder().join("metadata.json"),
            r#"{"database":"beads.db","jsonl_export":"issues.jsonl"}"#,
        )
        .expect("a file");
        workspace.rewrite(|all| all.extend(beads.iter().cloned())).expect("a first export");
        workspace
    }

    /// The workspace of a directory that has one.
    pub fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The project's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn folder(&self) -> PathBuf {
        self.dir.join(".beads")
    }

    /// The file that is watched.
    pub fn file(&self) -> PathBuf {
        self.folder().join("issues.jsonl")
    }

    /// Changes the beads, and writes them all as `br` does.
    pub fn rewrite(&self, change: impl FnOnce(&mut Vec<Value>)) -> io::Result<()> {
        // Not in the workspace itself: its files are compared byte for byte.
        let lock = OpenOptions::new().create(true).append(true).open(self.dir.join("tracker.lock"))?;
        lock.lock()?;
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        let mut beads: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        change(&mut beads);
        beads.sort_by(|a, b| a["id"].as_str().cmp(&b["id"].as_str()));
        let mut text = String::new();
        for bead in &beads {
            text.push_str(&bead.to_string());
            text.push('\n');
        }
        let temporary = self.folder().join("issues.jsonl.tmp");
        let mut file = File::create(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, self.file())?;
        fs::set_permissions(self.file(), Permissions::from_mode(0o600))
    }

    /// Changes one bead.
    pub fn update(&self, id: &str, change: impl FnOnce(&mut Value)) {
        let changed = self.rewrite(|beads| {
            if let Some(bead) = beads.iter_mut().find(|bead| bead["id"] == id) {
                change(bead);
            }
        });
        changed.expect("the workspace can be written");
    }

    /// `br close`.
    pub fn close(&self, id: &str) {
        self.update(id, |bead| {
            bead["status"] = json!("closed");
            bead["closed_at"] = json!("2026-11-16T10:00:00.123456789Z");
            bead["close_reason"] = json!("done");
        });
    }

    /// `br update --claim`.
    pub fn claim(&self, id: &str, who: &str) {
        self.update(id, |bead| {
            bead["status"] = json!("in_progress");
            bead["assignee"] = json!(who);
        });
    }

    /// `br update --status open`, without an assignee.
    pub fn release(&self, id: &str) {
        self.update(id, |bead| {
            bead["status"] = json!("open");
            if let Some(fields) = bead.as_object_mut() {
                fields.remove("assignee");
            }
        });
    }

    /// Every file of the workspace with its inode, times and bytes: equal if nobody has touched anything.
    pub fn fingerprint(&self) -> Vec<(PathBuf, u64, i64, i64, Vec<u8>)> {
        let entries =
            fs::read_dir(self.folder()).expect("a directory").map(|entry| entry.expect("an entry").path());
        let mut files: Vec<_> = entries
            .map(|path| {
                let meta = fs::metadata(&path).expect("a file");
                let bytes = fs::read(&path).expect("readable");
                (path, meta.ino(), meta.mtime(), meta.mtime_nsec(), bytes)
            })
            .collect();
        files.sort();
        files
    }
}

/// An open bead of a workspace, with edges as `(target, type)`.
pub fn bead(id: &str, kind: &str, edges: &[(&str, &str)]) -> Value {
    let created = "2026-11-15T23:50:34.558851870Z";
    let edge = |(on, kind): &(&str, &str)| {
        json!({
            "issue_id": id, "depends_on_id": on, "type": kind, "created_at": created, "created_by": "planner",
            "metadata": "{}", "thread_id": "",
        })
    };
    let mut bead = json!({
        "id": id, "title": format!("work on {id}"), "description": format!("What {id} is about."), "status": "open",
        "priority": 2, "issue_type": kind, "created_at": created, "created_by": "planner", "updated_at": created,
        "source_repo": ".", "compaction_level": 0, "original_size": 0,
    });
    if !edges.is_empty() {
        bead["dependencies"] = edges.iter().map(edge).collect();
    }
    bead
}
