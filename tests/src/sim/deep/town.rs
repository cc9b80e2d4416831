//! The directory of the simulated town: config and formulas are real files, in memory where there is a file system for
//! that. One per thread, used by one history after the other.

use std::fs;
use std::path::PathBuf;

use yard_daemon::TownDir;

/// The formulas of the town, by name.
const FORMULAS: [(&str, &str); 4] = [
    (
        "steps",
        "[[steps]]\nid = \"one\"\nargv = [\"work\"]\n[[steps]]\nid = \"two\"\nargv = [\"work\"]\n[retry]\nresume = true\n",
    ),
    ("plain", "[[steps]]\nid = \"work\"\nargv = [\"work\"]\n"),
    (
        "branch",
        "isolation = \"worktree\"\n[[steps]]\nid = \"work\"\nargv = [\"work\"]\n[check]\nargv = [\"check\"]\n",
    ),
    ("spoiled", "[[steps]]\nid = \"work\"\nargv = [\"{{nobody}}\"]\n"),
];

thread_local! {
    static FOLDER: tempfile::TempDir = folder();
}

fn folder() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("ym-sim-").tempdir_in(place).expect("a folder for the town");
    let town = TownDir::create(folder.path()).expect("a town");
    for (name, text) in FORMULAS {
        fs::write(town.folder().join("formulas").join(format!("{name}.toml")), text).expect("a formula");
    }
    folder
}

/// The town of this thread, with an empty config file.
pub(super) fn fresh() -> TownDir {
    let town = FOLDER.with(|folder| TownDir::at(folder.path()).expect("a town"));
    write_config(&town, "");
    town
}

/// Replaces the config file, as editors do.
pub(super) fn write_config(town: &TownDir, text: &str) {
    let draft = town.folder().join("config.draft");
    fs::write(&draft, text).expect("a draft");
    fs::rename(&draft, town.config()).expect("a config file");
}
