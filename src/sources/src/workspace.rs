//! Finding out how a directory's beads workspace is to be read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use yard_engine::BeadId;
use yard_engine::rig::BeadSource;

use crate::record::Record;

/// The directory of a workspace.
const BEADS_DIR: &str = ".beads";
/// What trackers call their file, in the order of preference.
const FILE_NAMES: [&str; 2] = ["issues.jsonl", "beads.jsonl"];
/// Where a tracker without a live file keeps its truth.
const DOLT_DIRS: [&str; 2] = ["dolt", "embeddeddolt"];
/// How such a tracker is asked for everything.
const ASK_BD: [&str; 6] = ["bd", "list", "--all", "--limit", "0", "--json"];
/// As much of a file as is looked at to guess its prefix.
const SAMPLE: u64 = 16 << 20;

/// A beads workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// How to read it.
    pub source: BeadSource,
    /// The most common prefix of its ids, without the hyphen.
    pub prefix: Option<String>,
}

/// The part of `metadata.json` that says where the truth is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    backend: Option<String>,
    database: Option<String>,
    jsonl_export: Option<String>,
}

/// The workspace in a directory, if there is one.
pub fn find(dir: &Path) -> Option<Found> {
    let beads = dir.join(BEADS_DIR);
    if !beads.is_dir() {
        return None;
    }
    let metadata = Metadata::of(&beads);
    let named = metadata.jsonl_export.as_deref().filter(|name| is_plain_name(name));
    let mut candidates = named.into_iter().chain(FILE_NAMES);
    let existing = candidates.find(|name| beads.join(name).is_file());
    let has_dolt = DOLT_DIRS.iter().any(|name| beads.join(name).is_dir());
    if metadata.says_dolt() || (has_dolt && existing.is_none()) {
        let argv = ASK_BD.map(str::to_owned).to_vec();
        let prefix = existing.and_then(|name| common_prefix(&beads.join(name)).ok()?);
        return Some(Found { source: BeadSource::Command { argv }, prefix });
    }
    let name = existing.or(named).unwrap_or(FILE_NAMES[0]);
    let prefix = common_prefix(&beads.join(name)).ok().flatten();
    Some(Found { source: BeadSource::Jsonl { path: format!("{BEADS_DIR}/{name}") }, prefix })
}

impl Metadata {
    /// What cannot be read says nothing.
    fn of(beads: &Path) -> Self {
        let text = std::fs::read(beads.join("metadata.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn says_dolt(&self) -> bool {
        [&self.backend, &self.database].into_iter().flatten().any(|word| word == "dolt")
    }
}

/// A file of the workspace itself.
fn is_plain_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file| file == name)
}

fn common_prefix(file: &Path) -> io::Result<Option<String>> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut reader = BufReader::new(File::open(file)?.take(SAMPLE));
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if let Ok(Some(record)) = Record::parse(&line)
            && let Some(prefix) = prefix_of(record.id())
        {
            *counts.entry(prefix.to_owned()).or_default() += 1;
        }
        line.clear();
    }
    // Of equals the first by name, so that the same file always gives the same answer.
    Ok(counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(prefix, _)| prefix))
}

/// `shop` of `shop-1h3.5.2`: what stands before the last hyphen, once the child numbers are off.
fn prefix_of(id: &BeadId) -> Option<&str> {
    let mut text = id.as_str();
    while let Some((parent, child)) = text.rsplit_once('.')
        && child.bytes().all(|b| b.is_ascii_digit())
    {
        text = parent;
    }
    text.rsplit_once('-').map(|(prefix, _)| prefix)
}

#[cfg(test)]
mod tests;
