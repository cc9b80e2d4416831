//! `ym init`: a directory becomes a town, and its first rig.

use std::path::{Path, PathBuf};

use yard_client::Safe;
use yard_daemon::TownDir;
use yard_engine::rig::{Rig, TOWN_PREFIX};
use yard_engine::{BeadId, Command, RigName};

use super::Done;
use crate::errors::Report;
use crate::session::Session;

/// Makes a town. If anything is wrong, nothing is left behind.
pub(super) fn init(session: &mut Session, dir: Option<PathBuf>, prefix: Option<String>) -> Done {
    let dir = dir.or_else(|| session.named()).unwrap_or_else(|| PathBuf::from("."));
    let folder = dir.join(".yardmaster");
    if folder.symlink_metadata().is_ok() {
        let message = format!("{} is a town already", shown(&dir).display());
        return Err(Report::new("exists", message).hint("ym status shows it; nothing was changed"));
    }
    let name = rig_name(&shown(&dir));
    let prefix = match prefix {
        Some(prefix) => checked_prefix(prefix)?,
        None => derived_prefix(name.as_str()),
    };
    let town = TownDir::create(&dir)
        .map_err(|error| Report::new("io", format!("cannot make a town in {}: {error}", dir.display())))?;
    session.enter(town.clone());
    let rig = Rig {
        name: name.clone(),
        prefix: prefix.clone(),
        path: ".".to_owned(),
        parked: false,
        docked: false,
        max_polecats: None,
        executor: None,
        formula: None,
    };
    if let Err(report) = session.command(Command::RigAdd { rig }) {
        let _ = std::fs::remove_dir_all(&folder);
        return Err(report);
    }
    if session.out.json() {
        let town = town.root().to_string_lossy();
        session.out.line(serde_json::json!({"id": name, "town": town, "rig": name, "prefix": prefix}))?;
    } else if session.out.quiet() {
        session.out.line(&name)?;
    } else {
        let place = town.root().to_string_lossy().into_owned();
        session.out.line(format!("Town made in {}", Safe(&place)))?;
        session.out.line(format!("Rig {name}, beads {prefix}-…"))?;
        session.out.line("Next: ym add -- CMD…, or ym bead add TITLE; ym help quickstart")?;
    }
    Ok(0)
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

fn checked_prefix(prefix: String) -> Result<String, Report> {
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
}
