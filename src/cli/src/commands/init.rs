//! `ym init`: a directory becomes a town, and its first rig.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use yard_client::Safe;
use yard_daemon::TownDir;
use yard_engine::rig::{Rig, TOWN_PREFIX};
use yard_engine::{BeadId, Command, RigName};
use yard_journal::{LeaseError, Role};

use super::workspace::{Beads, in_words};
use super::{Done, journal, store};
use crate::errors::Report;
use crate::session::Session;

/// The folder that makes a directory a town.
const FOLDER: &str = ".yardmaster";
/// How long somebody else may take to make a journal.
const MAKING: Duration = Duration::from_secs(2);

/// Makes a town, or completes one that was only half made. If anything goes wrong, nothing is left behind.
pub(super) fn init(
    session: &mut Session,
    dir: Option<PathBuf>,
    prefix: Option<String>,
    store: Option<&str>,
) -> Done {
    if let Some(address) = dir.as_ref().and_then(|dir| dir.to_str()).filter(|dir| dir.contains("://")) {
        return Err(Report::usage(format!("{address} is an address, not a directory"))
            .hint("ym --town ssh://host/path init makes a town there; --store names its log"));
    }
    let dir = dir.or_else(|| session.named()).unwrap_or_else(|| PathBuf::from("."));
    let place = shown(&dir);
    let half_made = look(&place)?;
    let name = rig_name(&place);
    let Beads { source, prefix: shown_prefix } = Beads::of_directory(&place);
    let prefix = match prefix {
        Some(prefix) => checked_prefix(prefix)?,
        None => shown_prefix.unwrap_or_else(|| derived_prefix(name.as_str())),
    };
    let reads = source.as_ref().map(in_words);
    let before = Before::look(&place);
    let rig = Rig {
        name: name.clone(),
        prefix: prefix.clone(),
        path: ".".to_owned(),
        parked: false,
        docked: false,
        max_polecats: None,
        executor: None,
        formula: None,
        source: source.clone(),
    };
    let (town, joined) = match make(session, &place, rig, store) {
        Ok(made) => made,
        Err(report) => return Err(before.take_back(&place, report)),
    };
    let root = town.root().to_string_lossy();
    if joined {
        return say_joined(session, &root);
    }
    if session.out.json() {
        let mut made = serde_json::json!({"id": name, "town": root, "rig": name, "prefix": prefix});
        if let Some(source) = source {
            made["source"] = serde_json::json!(source);
        }
        session.out.line(made)?;
    } else if session.out.quiet() {
        session.out.line(&name)?;
    } else {
        let done = if half_made { "completed" } else { "made" };
        session.out.line(format!("Town {done} in {}", Safe(&root)))?;
        session.out.line(format!("Rig {name}, beads {prefix}-…"))?;
        match reads {
            Some(reads) => {
                session.out.line(format!("Reads beads from {}; it is only ever read", Safe(&reads)))?;
                session.out.line("Next: ym bead ready, ym convoy stage EPIC; ym help convoys")?;
            }
            None => session.out.line("Next: ym add -- CMD…, or ym bead add TITLE; ym help quickstart")?,
        }
    }
    Ok(0)
}

/// The town was there already, and this directory is one more place of it.
fn say_joined(session: &mut Session, root: &str) -> Done {
    if session.out.json() {
        session.out.line(serde_json::json!({"id": null, "town": root, "joined": true}))?;
    } else if !session.out.quiet() {
        session
            .out
            .line(format!("{} joins the town that this store holds: ym rig list shows it", Safe(root)))?;
        session.out.line("Its workers are known only where they were started; ym help postgres")?;
    }
    Ok(0)
}

/// Refuses a place where no town can be made; says whether one was begun there.
fn look(place: &Path) -> Result<bool, Report> {
    if place.to_str().is_none() {
        let message = format!("the path {} is not valid UTF-8, and that of a town must be", place.display());
        return Err(Report::new("bad-path", message).hint("rename the directory, or choose another one"));
    }
    let folder = place.join(FOLDER);
    if folder.symlink_metadata().is_err() {
        return Ok(false);
    }
    if !folder.is_dir() {
        let message = format!("{} is in the way: it is not a folder", folder.display());
        return Err(Report::new("exists", message).hint("nothing was changed"));
    }
    if has_rig(&TownDir::own(place)?)? { Err(already(place)) } else { Ok(true) }
}

fn already(place: &Path) -> Report {
    let message = format!("{} is a town already", place.display());
    Report::new("exists", message).hint("ym status shows it; nothing was changed")
}

/// A town has a rig; without one it was only begun.
fn has_rig(town: &TownDir) -> Result<bool, Report> {
    let patience = Instant::now() + MAKING;
    loop {
        match journal::state(town) {
            Ok(state) => return Ok(state.is_some_and(|state| state.rigs().next().is_some())),
            // Somebody else may be making it at this moment.
            Err(_) if Instant::now() < patience && town.holder().is_some() => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(report) => return Err(report),
        }
    }
}

/// Makes the town; says whether it was there already, made by another host.
fn make(
    session: &mut Session,
    place: &Path,
    rig: Rig,
    store: Option<&str>,
) -> Result<(TownDir, bool), Report> {
    let town = TownDir::create(place)
        .map_err(|error| Report::new("io", format!("cannot make a town in {}: {error}", place.display())))?;
    session.enter(town.clone());
    if let Some(store) = store {
        store::choose(&town, store)?;
        if has_rig(&town)? {
            return Ok((town, true));
        }
    }
    town.begin_journal()?;
    session.command(Command::RigAdd { rig })?;
    Ok((town, false))
}

/// What was there before, so that a failed attempt takes back only what it made.
struct Before {
    /// Directories that were missing, the innermost first.
    missing: Vec<PathBuf>,
    /// What lay in the folder.
    parts: BTreeSet<PathBuf>,
}

impl Before {
    fn look(place: &Path) -> Self {
        let folder = place.join(FOLDER);
        let missing = folder.ancestors().take_while(|dir| dir.symlink_metadata().is_err());
        Self { missing: missing.map(Path::to_owned).collect(), parts: parts_of(&folder) }
    }

    /// Removes what is new, unless it has become somebody's town meanwhile; gives what to tell the person.
    fn take_back(&self, place: &Path, report: Report) -> Report {
        if let Ok(town) = TownDir::at(place) {
            if matches!(has_rig(&town), Ok(true)) {
                return if report.code() == "lost" { report } else { already(place) };
            }
            // Nobody else may be at work here while things go away. Without room for a lease nobody has one.
            let lease = match town.try_lease(Role::Command) {
                Err(LeaseError::Held(_)) => return report,
                other => other.ok(),
            };
            if !matches!(has_rig(&town), Ok(false)) {
                return report;
            }
            for part in parts_of(&town.folder()).difference(&self.parts) {
                let _ = fs::remove_dir_all(part).or_else(|_| fs::remove_file(part));
            }
            drop(lease);
        }
        for dir in &self.missing {
            // Only if it is empty.
            let _ = fs::remove_dir(dir);
        }
        report
    }
}

fn parts_of(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|part| part.path()).collect()
}

fn shown(dir: &Path) -> PathBuf {
    dir.canonicalize().or_else(|_| std::path::absolute(dir)).unwrap_or_else(|_| dir.to_owned())
}

/// A rig name from a directory's name: what the grammar does not allow becomes a hyphen.
pub(super) fn rig_name(dir: &Path) -> RigName {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let clean: String = name.chars().map(fits).collect();
    let clean = clean.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let cut: String = clean.chars().take(64).collect();
    RigName::parse(&cut).unwrap_or_else(|_| RigName::parse("town").expect("a plain word is a name"))
}

/// A short prefix from a name: the initials of its words, else its first letters.
fn derived_prefix(name: &str) -> String {
    let words: Vec<&str> = name.split(['-', '_', '.']).filter(|word| !word.is_empty()).collect();
    let prefix: String = match words.as_slice() {
        [one] => one.chars().take(2).collect(),
        many => many.iter().take(3).filter_map(|word| word.chars().next()).collect(),
    };
    let prefix = prefix.to_ascii_lowercase();
    if prefix.is_empty() || prefix == TOWN_PREFIX { format!("{prefix}x") } else { prefix }
}

/// Refuses a prefix that no rig can have.
pub(super) fn checked_prefix(prefix: String) -> Result<String, Report> {
    if BeadId::parse(&prefix).is_err() || prefix.ends_with('-') {
        let message = format!(
            "prefix {prefix:?} is not valid: use letters, digits, '.', '_' or '-', no hyphen at the end"
        );
        return Err(Report::new("bad-prefix", message));
    }
    if prefix == TOWN_PREFIX {
        return Err(Report::new("bad-prefix", "the prefix hq is kept for town-level beads"));
    }
    Ok(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes_come_from_the_directory() {
        let of = |dir: &str| {
            let name = rig_name(Path::new(dir));
            (name.to_string(), derived_prefix(name.as_str()))
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(of("/work/gastown"), pair("gastown", "ga"));
        assert_eq!(of("/work/My Shop (old)"), pair("My-Shop--old", "mso"));
        assert_eq!(of("/work/hq"), pair("hq", "hqx"));
        assert_eq!(of("/"), pair("town", "to"));
        assert_eq!(of("/work/日本"), pair("town", "to"));
        assert_eq!(of("/x/a"), pair("a", "a"));
    }

    #[test]
    fn a_prefix_must_be_usable() {
        assert!(checked_prefix("gt".to_owned()).is_ok());
        for bad in ["", "hq", "gt-", "a b", "../x"] {
            assert!(checked_prefix(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_town_that_was_only_begun_may_be_completed() {
        let dir = tempfile::tempdir().expect("temporary directory");
        assert!(matches!(look(dir.path()), Ok(false)));
        fs::create_dir(dir.path().join(FOLDER)).expect("made");
        assert!(matches!(look(dir.path()), Ok(true)));
        let other = dir.path().join("other");
        fs::create_dir(&other).and_then(|()| fs::write(other.join(FOLDER), "")).expect("made");
        assert_eq!(look(&other).expect_err("a file is in the way").code(), "exists");
    }

    #[test]
    fn a_path_that_is_not_utf8_is_refused() {
        use std::os::unix::ffi::OsStrExt;
        let place = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
        assert_eq!(look(place).expect_err("not UTF-8").code(), "bad-path");
    }

    #[test]
    fn a_failed_attempt_takes_back_what_it_made_and_no_more() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let fail = |place: &Path| {
            let before = Before::look(place);
            TownDir::create(place).expect("made");
            assert_eq!(before.take_back(place, Report::new("full", "x")).code(), "full");
        };
        fail(&dir.path().join("a/b"));
        assert!(!dir.path().join("a").exists());
        let half = dir.path().join("half");
        fs::create_dir_all(half.join(FOLDER).join("formulas")).expect("made");
        fs::write(half.join(FOLDER).join("formulas/mine.toml"), "").expect("written");
        fail(&half);
        let left = parts_of(&half.join(FOLDER));
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [half.join(FOLDER).join("formulas")]);
        assert!(half.join(FOLDER).join("formulas/mine.toml").exists());
    }
}
