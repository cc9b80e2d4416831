//! Known-bad copies of the program: each is the real source with one line changed. All of them must be noticed, or the
//! checks prove nothing about the real one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use super::say;

/// A change to the source that breaks a rule.
struct Patch {
    name: &'static str,
    /// What it breaks.
    breaks: &'static str,
    /// File, old text, new text.
    edits: &'static [(&'static str, &'static str, &'static str)],
}

/// Deep histories in which a mutant must be noticed, and quick ones.
const DEEP: &str = "3000";
const QUICK: &str = "20000";
/// Histories tell every five seconds how many there were; so often the same number means that one does not end.
const STANDSTILL: u32 = 12;

const CORE: &str = "src/daemon/src/core/mod.rs";
const LINE: &str = "src/daemon/src/core/line.rs";
const PAST: &str = "src/daemon/src/core/past.rs";
const COPY: &str = "src/journal/src/sqlite/past.rs";
const LINEUP: &str = "src/engine/src/lineup.rs";
const STORE: &str = "src/daemon/src/store.rs";
const UPKEEP: &str = "src/daemon/src/core/upkeep.rs";
const WORKERS: &str = "src/daemon/src/core/workers.rs";
const JOURNAL: &str = "src/journal/src/sqlite/writer.rs";
const REPORTS: &str = "src/engine/src/decide/reports.rs";
const READINESS: &str = "src/engine/src/readiness.rs";

#[rustfmt::skip]
const PATCHES: &[Patch] = &[
    // The loop.
    Patch { name: "effects-before-commit", breaks: "workers are started before their start is durable", edits: &[(CORE,
        "        match self.store.commit() {\n            Ok(events) => {\n                self.perform(&events);\n                self.settle(&events, owed);",
        "        let early = self.store.pending().to_vec();\n        self.perform(&early);\n        match self.store.commit() {\n            Ok(events) => {\n                self.settle(&events, owed);")] },
    Patch { name: "answers-before-commit", breaks: "commands are acknowledged before they are durable", edits: &[(CORE,
        "        match self.store.commit() {\n            Ok(events) => {\n                self.perform(&events);\n                self.settle(&events, owed);",
        "        let early = self.store.pending().to_vec();\n        self.settle(&early, owed);\n        let owed = Vec::new();\n        match self.store.commit() {\n            Ok(events) => {\n                self.perform(&events);")] },
    Patch { name: "stale-state-after-a-failed-commit", breaks: "what could not be stored stays in the state", edits: &[(STORE,
        "            if !error.is_final() {\n                self.reload()?;\n            }\n            return Err(error.into());\n        }\n        self.anew =",
        "            return Err(error.into());\n        }\n        self.anew =")] },
    Patch { name: "checkpoint-misses-a-record", breaks: "a checkpoint lacks a record that changed", edits: &[(STORE,
        "            .into_iter()\n            .map(|row| EntityRow", "            .into_iter()\n            .skip(1)\n            .map(|row| EntityRow")] },
    Patch { name: "fsync-error-ignored", breaks: "the process goes on after a failed fsync", edits: &[(UPKEEP,
        "if let StoreError::Journal(JournalError::Fsync) = failure {",
        "if let (true, StoreError::Journal(JournalError::Fsync)) = (false, failure) {"), (JOURNAL,
        "            wal.set_fsync_failed();", "")] },
    Patch { name: "claims-forgotten-early", breaks: "the claims of live dispatches are removed after a crash", edits: &[(WORKERS,
        "self.pool.forget_all_but(&claimed);", "self.pool.forget_all_but(&BTreeSet::new());")] },
    Patch { name: "adopted-is-lost", breaks: "recovery takes a living worker for lost", edits: &[(WORKERS,
        "            Recovered::Adopted { running } => {\n",
        "            Recovered::Adopted { running: Some(_) } => WorkerReport::Lost { dispatch, why: String::new() },\n            Recovered::Adopted { running } => {\n")] },
    // The line.
    Patch { name: "no-call-back-before-a-pause", breaks: "who is in line starts after dispatch was paused", edits: &[(CORE,
        "        if batch.iter().any(Self::disturbs_line) {", "        if batch.iter().any(|input| Self::disturbs_line(input) && matches!(input, Input::Terminate)) {"), (LINE,
        "            Event::Town(event) => !matches!(event, TownEvent::ClockAdvanced {} | TownEvent::Retired { .. }),", "            Event::Town(event) => matches!(event, TownEvent::SettingsChanged { .. }),")] },
    Patch { name: "called-back-too-late", breaks: "who has begun is believed to be called back", edits: &[(LINE,
        "                Ok(Some(found)) => self.take_recovered(ended, found),\n", "                Ok(Some(_)) if id != *ended => {\n                    self.store.decide(self.now, |tx| tx.called_back(id));\n                    return true;\n                }\n                Ok(Some(found)) => self.take_recovered(ended, found),\n")] },
    Patch { name: "second-left-in-line", breaks: "who is first in line is called back before who stands behind him", edits: &[(LINE,
        "            && !self.calls_back(&second, &[after, next])", "            && second.attempt() > 1_000_000")] },
    Patch { name: "stuck-in-line", breaks: "who is in line behind a long run stays there although a slot is free", edits: &[(CORE,
        "        self.call_back_stuck();\n", "        let _ = Self::call_back_stuck;\n")] },
    Patch { name: "handed-on-before-commit", breaks: "a shim has an order whose place in line is not durable", edits: &[(LINE,
        "            self.store.decide(now, |tx| tx.line_up(&id));\n", "            self.store.decide(now, |tx| tx.line_up(&id));\n            let next = self.store.state().lined_up().find(|(after, _)| **after == id).map(|(_, next)| next.clone());\n            if let Some(next) = next {\n                self.hand_on(&next, &id);\n            }\n")] },
    Patch { name: "slot-too-small", breaks: "who is in line needs more than the slot that becomes free", edits: &[(LINEUP,
        "            freed.contains(limit) && room.max.is_none_or(|max| room.active <= max)", "            freed.contains(limit) || room.max.is_none_or(|max| room.active <= max)")] },
    // The journal.
    Patch { name: "left-behind-is-trusted", breaks: "what a failed sync left behind is acted upon", edits: &[(JOURNAL,
        "    make_sure(conn)?;\n", "    if conn.path().is_none() {\n        make_sure(conn)?;\n    }\n")] },
    Patch { name: "commit-without-sync", breaks: "what is acknowledged is lost in a power cut", edits: &[(JOURNAL,
        "\"synchronous\", \"full\"", "\"synchronous\", \"off\"")] },
    Patch { name: "chain-not-continued", breaks: "sums no longer prove what came before", edits: &[(JOURNAL,
        "                tip = Link { seq: row.seq, sum };", "                tip = Link { seq: row.seq, sum: tip.sum.max(sum) };")] },
    // The beginning of the log.
    Patch { name: "cut-at-a-name-that-may-go", breaks: "the log is cut before its copy's name is durable", edits: &[(PAST,
        "            shelf.sync()?;", "            let _ = || shelf.sync();")] },
    Patch { name: "cut-before-its-time", breaks: "events are cut off that are not old enough", edits: &[(PAST,
        "if self.is_older_than(copy.seq, ttl)? {", "if self.is_older_than(copy.seq, ttl / 1_000)? {")] },
    Patch { name: "cut-beyond-the-copy", breaks: "events are cut off that no copy contains", edits: &[(PAST,
        "old_enough.map(|copy| copy.seq)", "old_enough.map(|copy| copy.seq.next())")] },
    Patch { name: "copy-without-sync", breaks: "a copy has its name before its content is durable", edits: &[(COPY,
        "    schema::ensure(&mut copy)?;\n", "    copy.pragma_update(None, \"synchronous\", \"off\")?;\n    schema::ensure(&mut copy)?;\n")] },
    Patch { name: "copy-misses-a-record", breaks: "a copy is not what the checkpoint was", edits: &[(COPY,
        "        let texts = [kind, id, body]", "        if *kind == *b\"rest\" {\n            return Ok(());\n        }\n        let texts = [kind, id, body]")] },
    // The engine.
    Patch { name: "fence-dropped", breaks: "reports of a dispatch that is over are believed", edits: &[(REPORTS,
        "            Some(dispatch) if dispatch.is_live() => Some(dispatch.clone()),", "            Some(dispatch) if dispatch.attempt_counts() => Some(dispatch.clone()),"), (REPORTS,
        "impl Tx<'_> {\n    /// The live dispatch of this id", "impl Dispatch {\n    fn attempt_counts(&self) -> bool {\n        true\n    }\n}\n\nimpl Tx<'_> {\n    /// The live dispatch of this id")] },
    Patch { name: "town-cap-skipped", breaks: "one worker more than allowed", edits: &[("src/engine/src/capacity.rs",
        "Limit::Town => self.settings.town_cap(),", "Limit::Town => self.settings.town_cap().map(|most| most + 1),")] },
    Patch { name: "account-cap-skipped", breaks: "an account has no limit", edits: &[("src/engine/src/capacity.rs",
        "Limit::Account(name) => self.settings.accounts.get(name).and_then(|a| a.max_polecats),", "Limit::Account(_) => None,")] },
    Patch { name: "slot-never-freed", breaks: "a counter of live workers is not taken back", edits: &[("src/engine/src/dispatch/slots.rs",
        "                *active = active.saturating_sub(1);", "                *active = active.saturating_sub(u64::from(*active > 1));")] },
    Patch { name: "pause-ignored", breaks: "work starts while dispatch is paused", edits: &[("src/engine/src/plan.rs",
        "        if self.pause.is_some() {\n            return Plan { to_dispatch: 0", "        if self.pause.as_ref().is_some_and(|pause| pause.by.is_empty()) {\n            return Plan { to_dispatch: 0")] },
    Patch { name: "hold-ignored", breaks: "held work starts", edits: &[(READINESS,
        "        if context.held {", "        if context.held && context.forced {")] },
    Patch { name: "park-ignored", breaks: "work of a parked rig starts", edits: &[(READINESS,
        "                if rig.parked {", "                if rig.parked && rig.docked {")] },
    Patch { name: "blockers-ignored", breaks: "work starts before what it waits for is closed", edits: &[("src/engine/src/graph.rs",
        "set_counts(number, Counts { blocked, ..counts });", "set_counts(number, Counts { blocked: blocked && counts.open_blockers > 1, ..counts });")] },
    Patch { name: "feeds-what-is-scheduled", breaks: "a bead is fed although it is scheduled", edits: &[("src/engine/src/feed.rs",
        "        let wanted = entry.work.context.is_none() && entry.work.verdict.is_none();\n        (wanted", "        let wanted = entry.work.verdict.is_none();\n        (wanted")] },
];

/// Builds every mutant whose name holds `wanted` and has it noticed.
pub(super) fn hunt(wanted: &str) -> ExitCode {
    let town = workspace();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| town.join("target"), PathBuf::from);
    let yard = target.join("mutants");
    let copy = yard.join("source");
    if let Err(error) = copy_sources(&town, &copy) {
        say(&format!("the sources cannot be copied: {error}"));
        return ExitCode::FAILURE;
    }
    let mut unnoticed = Vec::new();
    for patch in PATCHES.iter().filter(|patch| patch.name.contains(wanted)) {
        let began = Instant::now();
        match try_one(patch, &copy, &yard.join("target")) {
            Ok(how) => {
                let seconds = began.elapsed().as_secs();
                say(&format!("{}: noticed in {seconds} s ({}): {how}", patch.name, patch.breaks));
            }
            Err(why) => {
                say(&format!("{}: {why} ({})", patch.name, patch.breaks));
                unnoticed.push(patch.name);
            }
        }
    }
    if unnoticed.is_empty() {
        return ExitCode::SUCCESS;
    }
    say(&format!("not noticed: {}", unnoticed.join(", ")));
    ExitCode::FAILURE
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// Copies what git knows of, and only files that differ, so that little is built anew.
fn copy_sources(from: &Path, to: &Path) -> std::io::Result<()> {
    let known = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").args(known).current_dir(from).output()?;
    for name in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|name| !name.is_empty()) {
        let (source, copy) = (from.join(name), to.join(name));
        let Ok(wanted) = fs::read(&source) else { continue };
        if fs::read(&copy).is_ok_and(|there| there == wanted) {
            continue;
        }
        if let Some(folder) = copy.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&copy, wanted)?;
    }
    Ok(())
}

/// Applies a patch, builds, plays, and takes the patch back. How it was noticed, or why it was not.
fn try_one(patch: &Patch, copy: &Path, target: &Path) -> Result<String, String> {
    let (honest, bad) = apply(patch, copy)?;
    write_all(copy, &bad)?;
    let outcome = build(copy, target).and_then(|program| notice(&program));
    write_all(copy, &honest)?;
    outcome
}

/// The files of a patch as they are, and as they become.
fn apply(patch: &Patch, sources: &Path) -> Result<(Files, Files), String> {
    let (mut honest, mut bad) = (Files::new(), Files::new());
    for (file, old, new) in patch.edits {
        if !honest.contains_key(file) {
            let text = fs::read_to_string(sources.join(file)).map_err(|error| format!("{file}: {error}"))?;
            bad.insert(file, text.clone());
            honest.insert(file, text);
        }
        let text = bad.entry(file).or_default();
        match text.matches(old).count() {
            1 => *text = text.replacen(old, new, 1),
            n => return Err(format!("its text is found {n} times in {file}: mend the list of mutants")),
        }
    }
    Ok((honest, bad))
}

fn write_all(sources: &Path, files: &Files) -> Result<(), String> {
    let write = |(file, text)| fs::write(sources.join::<&str>(file), text);
    files.iter().map(|(file, text)| (*file, text)).try_for_each(write).map_err(|error| error.to_string())
}

/// Texts by file.
type Files = BTreeMap<&'static str, String>;

fn build(copy: &Path, target: &Path) -> Result<PathBuf, String> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--profile", "mutants", "-p", "yard-tests", "--bin", "simulate"])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !built.status.success() {
        return Err(format!("it does not build:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    Ok(target.join("mutants/simulate"))
}

/// Plays deep histories, then quick ones, until a promise is broken, or a history does not end.
fn notice(program: &Path) -> Result<String, String> {
    for (kind, count) in [("--deep", DEEP), ("--threads=2", QUICK)] {
        let mut player = Command::new(program)
            .args([kind, "--histories", count])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (mut progress, mut standstill, mut broken) = (String::new(), 0, None);
        for line in player.stdout.take().into_iter().flat_map(|told| BufReader::new(told).lines()) {
            let line = line.map_err(|error| error.to_string())?;
            if line.ends_with(" histories") {
                standstill = if line == progress { standstill + 1 } else { 0 };
                progress = line;
            } else if line.starts_with("seed ") {
                broken.get_or_insert(line);
            }
            if standstill == STANDSTILL {
                player.kill().map_err(|error| error.to_string())?;
                broken = Some(format!("a history that does not end, after {progress}"));
            }
        }
        if !player.wait().map_err(|error| error.to_string())?.success() {
            let how = broken.unwrap_or_else(|| "it panicked".to_owned());
            return Ok(how.chars().take(160).collect());
        }
    }
    Err(format!("not noticed in {DEEP} deep and {QUICK} quick histories"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_every_mutant_is_there_exactly_once() {
        for patch in PATCHES {
            apply(patch, &workspace()).unwrap_or_else(|why| panic!("{}: {why}", patch.name));
        }
    }
}
