//! Sources as the rest of the yard uses them: opened, read, watched, with real files, real notifications and real
//! processes. The files of a workspace are only ever changed by the tests.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use yard_engine::rig::BeadSource;
use yard_engine::{BeadId, RigName, SourceReading};
use yard_sources::{Descriptions, Sink, Source, Watch, WatchOptions, find};

/// Longer than anything here takes; only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(30);
const NOTIFIED: WatchOptions = WatchOptions { poll: None, force_polling: false };
const POLLED: WatchOptions = WatchOptions { poll: None, force_polling: true };

/// A rig with a beads workspace.
struct Rig {
    dir: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join(".beads")).expect("created");
        Self { dir }
    }

    fn with(beads: &[(&str, &str)]) -> Self {
        let rig = Self::new();
        rig.rewrite(&text(beads));
        rig
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join(".beads/issues.jsonl")
    }

    /// As `br` does it: a temporary file, fsync, rename, mode.
    fn rewrite(&self, text: &str) {
        let tmp = self.dir.path().join(".beads/issues.jsonl.tmp");
        let mut file = File::create(&tmp).expect("created");
        file.write_all(text.as_bytes()).expect("written");
        file.sync_all().expect("synced");
        fs::rename(&tmp, self.file()).expect("renamed");
    }

    fn source(&self) -> Source {
        open(self.dir.path(), &BeadSource::Jsonl { path: ".beads/issues.jsonl".to_owned() })
    }

    /// Reads once, then watches.
    fn watched(&self, options: WatchOptions) -> Watched {
        let mut source = self.source();
        let mut seen = Seen::default();
        if let Some(reading) = source.read() {
            seen.take(reading);
        }
        let descriptions = source.descriptions();
        let (sink, readings) = channel();
        let watch = Watch::start(source, options, sink).expect("started");
        Watched { watch, readings, seen, descriptions }
    }
}

fn open(dir: &Path, spec: &BeadSource) -> Source {
    Source::open(RigName::parse("shop").expect("valid"), spec, dir)
}

fn text(beads: &[(&str, &str)]) -> String {
    beads.iter().map(|(id, status)| line(id, status)).collect()
}

fn line(id: &str, status: &str) -> String {
    format!("{{\"id\":\"{id}\",\"title\":\"{id}\",\"description\":\"do {id}\",\"status\":\"{status}\"}}\n")
}

/// A sink, and where its readings come out; the test may have ended before the last.
fn channel() -> (Sink, Receiver<SourceReading>) {
    let (sender, readings) = mpsc::channel();
    let sender = Mutex::new(sender);
    let send = move |reading| drop(sender.lock().expect("unpoisoned").send(reading));
    (Arc::new(send), readings)
}

/// What the engine would make of the readings.
#[derive(Default)]
struct Seen {
    beads: BTreeMap<String, String>,
    trouble: Option<String>,
    stamp: String,
    /// How often each status of a bead was told.
    told: BTreeMap<(String, String), usize>,
    /// Every trouble that began.
    troubles: Vec<String>,
    gone: Vec<String>,
}

impl Seen {
    fn take(&mut self, reading: SourceReading) {
        if reading.vanished {
            self.beads.clear();
        }
        for bead in reading.beads {
            let (id, status) = (bead.id.as_str().to_owned(), bead.status.as_str().to_owned());
            *self.told.entry((id.clone(), status.clone())).or_default() += 1;
            self.beads.insert(id, status);
        }
        for id in &reading.gone {
            self.beads.remove(id.as_str());
            self.gone.push(id.as_str().to_owned());
        }
        if reading.trouble != self.trouble {
            self.troubles.extend(reading.trouble.clone());
        }
        self.trouble = reading.trouble;
        self.stamp = reading.stamp;
    }

    fn status(&self, id: &str) -> Option<&str> {
        self.beads.get(id).map(String::as_str)
    }

    /// Whether the last word was a certain one.
    fn is_certain(&self) -> bool {
        !self.stamp.ends_with('?')
    }
}

struct Watched {
    watch: Watch,
    readings: Receiver<SourceReading>,
    seen: Seen,
    descriptions: Descriptions,
}

impl Watched {
    /// Takes readings until something is seen.
    fn until(&mut self, what: &str, seen: impl Fn(&Seen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !seen(&self.seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.readings.recv_timeout(left) {
                Ok(reading) => self.seen.take(reading),
                Err(error) => panic!("{what}: {error}, after {:?} {:?}", self.seen.beads, self.seen.trouble),
            }
        }
    }

    /// Stops, and takes what was told meanwhile.
    fn end(self) -> Seen {
        let Self { watch, readings, mut seen, .. } = self;
        drop(watch);
        for reading in readings {
            seen.take(reading);
        }
        seen
    }
}

#[test]
fn rewrites_by_rename_are_seen_once_each() {
    for options in [NOTIFIED, POLLED] {
        let rig = Rig::with(&[("a-1", "open"), ("a-2", "open")]);
        let mut watched = rig.watched(options);
        watched.until("the first reading", Seen::is_certain);
        watched.seen.told.clear();
        rig.rewrite(&text(&[("a-1", "in_progress"), ("a-2", "open")]));
        watched.until("a claim", |seen| seen.status("a-1") == Some("in_progress"));
        rig.rewrite(&text(&[("a-1", "closed"), ("a-2", "open"), ("a-3", "open")]));
        watched.until("a close", |seen| seen.status("a-1") == Some("closed"));
        watched.until("a new bead", |seen| seen.status("a-3") == Some("open"));
        rig.rewrite(&text(&[("a-1", "closed"), ("a-3", "open")]));
        watched.until("a disappearance", |seen| seen.status("a-2").is_none());
        watched.until("the end", Seen::is_certain);
        let seen = watched.end();
        let told: Vec<(&str, &str, usize)> =
            seen.told.iter().map(|((id, status), n)| (id.as_str(), status.as_str(), *n)).collect();
        let once = [("a-1", "closed", 1), ("a-1", "in_progress", 1), ("a-3", "open", 1)];
        assert_eq!(told, once, "polling: {}", options.force_polling);
        assert_eq!((seen.gone, seen.troubles), (vec!["a-2".to_owned()], vec![]));
    }
}

#[test]
fn a_slow_rewrite_in_place_makes_nothing_vanish() {
    for options in [NOTIFIED, POLLED] {
        let rig = Rig::with(&[("a-1", "open"), ("a-2", "open"), ("a-3", "open")]);
        let mut watched = rig.watched(options);
        watched.until("the first reading", Seen::is_certain);
        let mut file = File::create(rig.file()).expect("truncated");
        let text = text(&[("a-1", "closed"), ("a-2", "closed"), ("a-3", "open")]);
        let (first, second) = text.split_at(text.len() / 2);
        file.write_all(first.as_bytes()).expect("written");
        watched.until("the first half", |seen| seen.status("a-1") == Some("closed"));
        file.write_all(second.as_bytes()).expect("written");
        drop(file);
        watched.until("the second half", |seen| seen.status("a-2") == Some("closed"));
        watched.until("the end", Seen::is_certain);
        let seen = watched.end();
        assert_eq!((seen.beads.len(), seen.gone.len()), (3, 0));
    }
}

#[test]
fn trouble_is_told_once_while_it_lasts_and_its_end_too() {
    let rig = Rig::with(&[("a-1", "open")]);
    let mut watched = rig.watched(NOTIFIED);
    let conflict = format!("<<<<<<< HEAD\n{}=======\n", line("a-1", "closed"));
    rig.rewrite(&conflict);
    watched.until("the good line", |seen| seen.status("a-1") == Some("closed"));
    watched.until("the trouble", |seen| seen.trouble.is_some());
    for _ in 0..5 {
        rig.rewrite(&conflict);
        watched.watch.poke();
    }
    rig.rewrite(&text(&[("a-1", "open")]));
    watched.until("the end", |seen| seen.trouble.is_none() && seen.is_certain());
    let seen = watched.end();
    assert_eq!((seen.troubles.len(), seen.status("a-1")), (1, Some("open")));
}

#[test]
fn a_workspace_may_come_late_go_and_come_back() {
    for options in [NOTIFIED, POLLED] {
        let rig = Rig::new();
        let beads = rig.dir.path().join(".beads");
        fs::remove_dir(&beads).expect("removed");
        let mut watched = rig.watched(options);
        fs::create_dir(&beads).expect("created");
        rig.rewrite(&text(&[("a-1", "open")]));
        watched.until("the workspace", |seen| seen.status("a-1") == Some("open"));
        fs::remove_dir_all(&beads).expect("removed");
        watched.until("its absence", |seen| seen.trouble.is_some());
        fs::create_dir(&beads).expect("created");
        rig.rewrite(&text(&[("a-1", "closed")]));
        watched.until("its return", |seen| seen.status("a-1") == Some("closed") && seen.trouble.is_none());
        // The new directory is watched like the old one.
        rig.rewrite(&text(&[("a-1", "open")]));
        watched.until("a change after that", |seen| seen.status("a-1") == Some("open"));
        assert!(watched.end().gone.is_empty());
    }
}

#[test]
fn a_directory_in_the_files_place_is_one_trouble_and_heals() {
    let rig = Rig::with(&[("a-1", "open"), ("a-2", "open")]);
    let mut watched = rig.watched(NOTIFIED);
    fs::remove_file(rig.file()).expect("removed");
    fs::create_dir(rig.file()).expect("created");
    watched.until("the trouble", |seen| seen.trouble.is_some());
    fs::remove_dir(rig.file()).expect("removed");
    rig.rewrite(&text(&[("a-1", "open"), ("a-2", "closed")]));
    watched.until("the end", |seen| seen.trouble.is_none() && seen.status("a-2") == Some("closed"));
    let seen = watched.end();
    assert_eq!((seen.gone.len(), seen.beads.len()), (0, 2));
    assert_eq!(seen.troubles.iter().filter(|text| text.contains("is a directory")).count(), 1);
}

#[test]
fn a_line_of_fifty_megabytes_is_skipped() {
    let rig = Rig::with(&[("a-1", "open"), ("a-2", "open")]);
    let mut source = rig.source();
    source.read().expect("news");
    let long = format!("{{\"id\":\"a-2\",\"title\":\"{}\"}}\n", "x".repeat(50 << 20));
    rig.rewrite(&(line("a-1", "closed") + &long));
    let reading = source.read().expect("news");
    assert_eq!((reading.beads.len(), reading.gone.len()), (1, 0));
    assert!(reading.trouble.is_some_and(|text| text.contains("line 2") && text.contains("16 MiB")));
}

#[test]
fn the_watch_fills_the_descriptions() {
    let rig = Rig::new();
    let mut watched = rig.watched(NOTIFIED);
    rig.rewrite(&text(&[("a-1", "open"), ("a-2", "open")]));
    watched.until("the beads", |seen| seen.beads.len() == 2);
    let details = watched.descriptions.details(&BeadId::parse("a-2").expect("valid")).expect("there");
    assert_eq!(details.description.as_deref(), Some("do a-2"));
}

#[test]
fn a_reading_can_be_skipped_when_nothing_changed_since_the_last_process() {
    let rig = Rig::with(&[("a-1", "open")]);

    let mut watched = rig.watched(NOTIFIED);
    watched.until("a certain stamp", Seen::is_certain);
    let stamp = watched.end().stamp;
    assert_eq!(rig.source().stamp_now(), Some(stamp.clone()));
    rig.rewrite(&text(&[("a-1", "closed")]));
    assert_ne!(rig.source().stamp_now(), Some(stamp));
}

#[test]
fn a_workspace_that_is_found_can_be_read() {
    let rig = Rig::with(&[("shop-1", "open"), ("shop-1.1", "open")]);
    let found = find(rig.dir.path()).expect("a workspace");
    assert_eq!(found.prefix.as_deref(), Some("shop"));
    let reading = open(rig.dir.path(), &found.source).read().expect("news");
    assert_eq!((reading.rig.as_str(), reading.beads.len(), reading.whole), ("shop", 2, true));
}

#[test]
fn a_command_is_run_on_poke_and_on_poll() {
    for (poll, poke) in [(None, true), (Some(Duration::from_millis(20)), false)] {
        let dir = tempfile::tempdir().expect("a directory");
        let answer = |text: &str| {
            fs::write(dir.path().join("new"), text).expect("written");
            fs::rename(dir.path().join("new"), dir.path().join("answer")).expect("renamed");
        };
        answer(r#"[{"id":"a-1","status":"open"}]"#);
        let argv = ["cat", "answer"].map(str::to_owned).to_vec();
        let mut source = open(dir.path(), &BeadSource::Command { argv });
        assert_eq!(source.read().expect("news").beads.len(), 1);
        let (sink, readings) = channel();
        let watch = Watch::start(source, WatchOptions { poll, force_polling: false }, sink).expect("started");
        answer(r#"[{"id":"a-1","status":"closed"}]"#);
        if poke {
            watch.poke();
        }
        let reading = readings.recv_timeout(PATIENCE).expect("a reading");
        assert_eq!((reading.beads[0].status.as_str(), reading.whole), ("closed", false));
    }
}

#[test]
fn dropping_a_watch_ends_a_slow_command() {
    let dir = tempfile::tempdir().expect("a directory");
    let argv = ["sh", "-c", "echo $$ > pid; exec sleep 1000"].map(str::to_owned).to_vec();
    let source = open(dir.path(), &BeadSource::Command { argv });
    let (sink, readings) = channel();
    let watch = Watch::start(source, WatchOptions::default(), sink).expect("started");
    watch.poke();
    let deadline = Instant::now() + PATIENCE;
    let pid = loop {
        match fs::read_to_string(dir.path().join("pid")) {
            Ok(pid) if pid.ends_with('\n') => break pid,
            _ => assert!(Instant::now() < deadline, "the command never started"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    drop(watch);
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "it is dead and buried");
    assert_eq!(readings.try_iter().count(), 0, "being stopped is no trouble");
    assert_eq!(readings.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn real_files_of_br_are_read_without_trouble() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    // More of them where the project's reference data is at hand.
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let dirs = [ours, shared];
    let entries = dirs.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
    let files =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let mut sizes = BTreeMap::new();
    for path in files {
        let spec = BeadSource::Jsonl { path: path.display().to_string() };
        let reading = open(Path::new("/"), &spec).read().expect("news");
        let lines = fs::read_to_string(&path).expect("readable").lines().count();
        assert_eq!((reading.beads.len(), reading.trouble), (lines, None), "{}", path.display());
        sizes.insert(path.file_name().map(ToOwned::to_owned), lines);
    }
    assert_eq!(sizes.get(&Some("beads-real.jsonl".into())), Some(&58));
}
