use std::time::{Duration, Instant};

use super::*;
use crate::watch::Raised;

/// Longer than a notification takes; only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(30);

struct Scene {
    root: tempfile::TempDir,
    signal: Arc<Signal>,
    eyes: Eyes,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let signal = Arc::new(Signal::default());
        let eyes = Eyes::new(&root.path().join("beads/issues.jsonl"), Some(signal.clone()));
        Self { root, signal, eyes }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn make_dir(&self) {
        fs::create_dir(self.path("beads")).expect("created");
    }

    fn rewrite(&self) {
        fs::write(self.path("beads/issues.jsonl.tmp"), "text").expect("written");
        fs::rename(self.path("beads/issues.jsonl.tmp"), self.path("beads/issues.jsonl")).expect("renamed");
    }

    /// Waits for a signal and takes it.
    fn told(&self, what: impl Fn(Raised) -> bool) -> Raised {
        self.signal.wait(Some(Instant::now() + PATIENCE), &what);
        let raised = self.signal.take();
        assert!(what(raised), "{raised:?}");
        raised
    }
}

#[test]
fn a_rename_to_the_file_is_told() {
    let mut scene = Scene::new();
    scene.make_dir();
    assert!(scene.eyes.keep_open(false));
    scene.rewrite();
    scene.told(|raised| raised.touched);
}

#[test]
fn readers_other_files_and_modes_are_not_told() {
    let mut scene = Scene::new();
    scene.make_dir();
    scene.rewrite();
    assert!(scene.eyes.keep_open(false));
    fs::read(scene.path("beads/issues.jsonl")).expect("read");
    fs::write(scene.path("beads/beads.db"), "x").expect("written");
    let mode = fs::metadata(scene.path("beads/issues.jsonl")).expect("there").permissions();
    fs::set_permissions(scene.path("beads/issues.jsonl"), mode).expect("changed");
    // Notifications come in order: when this one is here, all before it are.
    fs::rename(scene.path("beads"), scene.path("elsewhere")).expect("renamed");
    assert!(!scene.told(|raised| raised.moved).touched);
}

#[test]
fn a_directory_that_comes_goes_and_comes_back_is_watched() {
    let mut scene = Scene::new();
    assert!(!scene.eyes.keep_open(false), "nothing to look at");
    scene.make_dir();
    assert!(scene.eyes.keep_open(false));
    fs::remove_dir(scene.path("beads")).expect("removed");
    assert!(scene.told(|raised| raised.moved).moved);
    assert!(!scene.eyes.keep_open(true));
    scene.make_dir();
    assert!(scene.eyes.keep_open(false));
    scene.rewrite();
    scene.told(|raised| raised.touched);
}

#[test]
fn a_directory_that_is_replaced_at_once_is_watched() {
    let mut scene = Scene::new();
    scene.make_dir();
    assert!(scene.eyes.keep_open(false));
    fs::remove_dir(scene.path("beads")).expect("removed");
    scene.make_dir();
    // File systems like to give the same number to the new one.
    assert!(scene.told(|raised| raised.moved).moved);
    assert!(scene.eyes.keep_open(true));
    scene.rewrite();
    scene.told(|raised| raised.touched);
}

#[test]
fn without_a_signal_the_eyes_stay_closed() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(!Eyes::new(&dir.path().join("issues.jsonl"), None).keep_open(false));
}
