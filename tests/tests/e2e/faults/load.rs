//! Beads that notice when they run twice at once, and the check that each came to its one end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};
use yard_tests::town::{Town, processes};

/// A worker that holds a lock while it lives: the kernel frees it with the process, however that ends, so only a second
/// worker at the same time finds it taken. It leaves its notes as directories, so that it makes no system call that a
/// test injects faults into.
const WORKER: &str = r#"my ($root, $code, $ms) = @ARGV; my $d = $ENV{YM_DISPATCH};
open(L, ">>", "$root/lock-$ENV{YM_BEAD}") or exit 99;
flock(L, 6) or mkdir("$root/double-$d");
mkdir("$root/started-$d") or mkdir("$root/again-$d");
select(undef, undef, undef, rand($ms / 1000));
mkdir("$root/ended-$d"); exit $code"#;

/// Beads of one town.
pub(super) struct Load {
    notes: PathBuf,
    /// What each bead exits with.
    codes: BTreeMap<String, i64>,
    millis: u32,
}

impl Load {
    /// No beads yet; each will take up to so long.
    pub(super) fn new(town: &Town, millis: u32) -> Self {
        let notes = town.root().join("notes");
        std::fs::create_dir_all(&notes).expect("a directory");
        Self { notes, codes: BTreeMap::new(), millis }
    }

    /// The command of a bead that exits with `code`.
    pub(super) fn argv(&self, code: i64) -> Vec<String> {
        let notes = self.notes.to_str().expect("utf-8").to_owned();
        let mut argv: Vec<String> = ["perl", "-e", WORKER].map(str::to_owned).to_vec();
        argv.extend([notes, code.to_string(), self.millis.to_string()]);
        argv
    }

    /// Adds many more at once; of all of them every so many-th fails.
    pub(super) fn add_many(&mut self, town: &Town, count: usize, failing: usize) {
        let numbers = self.codes.len()..self.codes.len() + count;
        let code = |n: usize| if n % failing == failing - 1 { (n % 50) as i64 + 3 } else { 0 };
        let line = |n| json!({"id": format!("y-m{n}"), "argv": self.argv(code(n))}).to_string();
        let lines: Vec<String> = numbers.clone().map(line).collect();
        town.run_with_input(["add", "--file", "-"], lines.join("\n").as_bytes()).ok();
        self.codes.extend(numbers.map(|n| (format!("y-m{n}"), code(n))));
    }

    /// The arguments that add one more; `acknowledged` says later that it worked.
    pub(super) fn add_one(&self, code: i64) -> Vec<String> {
        let mut args: Vec<String> = ["-q", "add", "--"].map(str::to_owned).to_vec();
        args.extend(self.argv(code));
        args
    }

    pub(super) fn acknowledged(&mut self, id: &str, code: i64) {
        self.codes.insert(id.trim().to_owned(), code);
    }

    /// The dispatches that left such a note.
    pub(super) fn noted(&self, what: &str) -> BTreeSet<String> {
        let entries = std::fs::read_dir(&self.notes).expect("the notes");
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| Some(name.strip_prefix(&format!("{what}-"))?.to_owned())).collect()
    }

    /// Every bead that was acknowledged came to its end: nothing is lost, nothing ran twice at once or twice under one
    /// id, every exit code is the one it exited with. Answers how many dispatches are said to be lost.
    pub(super) fn check(&self, town: &Town) -> usize {
        assert_eq!(self.noted("double"), BTreeSet::new(), "ran twice at once");
        assert_eq!(self.noted("again"), BTreeSet::new(), "ran twice under one id");
        let started = self.noted("started");
        let mut ends: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut lost = 0;
        for event in town.events(Some("dispatch.ended")) {
            let id = event["id"].as_str().expect("an id").to_owned();
            let outcome = &event["outcome"];
            match outcome["how"].as_str().expect("a word") {
                "lost" => lost += 1,
                "never-ran" => assert!(!started.contains(&id), "{id} ran: {outcome}"),
                // A drain may end a program before its first line, and another attempt follows.
                "stopped" => {}
                // Until it is a program of its own, it bears its shim's name, and may be killed for that.
                "failed" if outcome["signal"] == 9 && !started.contains(&id) => continue,
                _ => assert!(started.contains(&id), "{id} did not run: {outcome}"),
            }
            let bead = id.split_once('@').expect("a dispatch id").0.to_owned();
            ends.entry(bead).or_default().push(outcome.clone());
        }
        let ended: BTreeSet<&str> =
            self.codes.keys().map(String::as_str).filter(|id| ends.contains_key(*id)).collect();
        assert_eq!(ended.len(), self.codes.len(), "beads that never ended: {:?}", self.codes.keys());
        let listed = town.json(["bead", "list", "--all"])["beads"].as_array().cloned().unwrap_or_default();
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let states: BTreeMap<String, String> =
            listed.iter().map(|it| (text(it, "id"), text(it, "state"))).collect();
        for (bead, code) in &self.codes {
            let ran: Vec<&Value> = ends[bead]
                .iter()
                .filter(|it| !["never-ran", "lost", "stopped"].iter().any(|how| it["how"] == *how))
                .collect();
            let right = |it: &&Value| if *code == 0 { it["how"] == "succeeded" } else { it["code"] == *code };
            assert!(ran.iter().all(right), "{bead} exits with {code}: {:?}", ends[bead]);
            let expected = if *code == 0 { "closed" } else { "failed" };
            assert_eq!(states[bead], expected, "{bead}: {:?}", ends[bead]);
            assert!(*code != 0 || ran.len() == 1, "{bead} succeeded once: {:?}", ends[bead]);
        }
        lost
    }
}

/// The processes of a town that carry this name.
pub(super) fn named(town: &Town, name: &str) -> Vec<u32> {
    let all: BTreeSet<u32> = processes().into_iter().collect();
    let is_named = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    town.processes().into_iter().filter(|pid| all.contains(pid) && is_named(pid)).collect()
}
