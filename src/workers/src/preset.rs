//! What is known about the command lines of coding agents: how they start and go on, how they get their task, and what
//! their output tells. The table is `assets/agents.toml`; a town's own `.yardmaster/agents.toml` adds to it, key by key.

mod place;
mod sign;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

pub use place::{Place, TextPlace};
use serde::{Deserialize, Serialize};
pub(crate) use sign::holds;
pub use sign::{Saying, Sign};
use yard_engine::session::Session;

/// Larger files are no tables of agents.
const MAX_SIZE: u64 = 1 << 20;
const TABLE: &str = include_str!("../../../assets/agents.toml");

/// A command line of an agent, and what to look for in its output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentPreset {
    /// The agent's name, that of its program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The command line that works without a terminal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// Arguments that make it go on with a session; `{{session}}` stands for its id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resume: Vec<String>,
    /// Arguments that give it the task, after all others; without a place for it the task is on standard input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompt: Vec<String>,
    /// Where the id of its session stands, as JSON pointers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<String>,
    /// Where the cost of this run so far stands, in US dollars.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cost: Vec<Place>,
    /// It is the cost of the line, not of all so far.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_adds: bool,
    /// Where numbers of tokens stand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Place>,
    /// What a line must say for its cost and tokens to count.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub only: sign::Conditions,
    /// What a person reads of its lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub says: Vec<Saying>,
    /// Signs that its service refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Sign>,
    /// Signs that it goes on nevertheless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<Sign>,
    /// Exit codes by which it says that its service refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable_codes: Vec<i32>,
}

impl AgentPreset {
    /// The arguments that go on with this session; none if it is another agent's.
    pub(crate) fn resuming(&self, session: &Session) -> Vec<String> {
        let Some(id) = session.for_agent(&self.name) else { return Vec::new() };
        self.resume.iter().map(|argument| argument.replace("{{session}}", id)).collect()
    }

    /// What does not make sense in it.
    fn fault(&self) -> Option<String> {
        if let Err(error) = Session::new(Some(&self.name), "1") {
            return Some(format!("its name is no name: {error}"));
        }
        if self.start.first().is_some_and(String::is_empty) {
            return Some("start names no program".to_owned());
        }
        let places = self.cost.iter().chain(&self.tokens).filter_map(|place| match place {
            Place::Pointer(pointer) => Some(pointer),
            Place::Text(_) => None,
        });
        let signs = self.unavailable.iter().chain(&self.recovered).flat_map(Sign::pointers);
        let says = self.says.iter().flat_map(Saying::pointers);
        let mut pointers = self.session.iter().chain(self.only.keys()).chain(places).chain(signs).chain(says);
        let odd = pointers.find(|pointer| !pointer.is_empty() && !pointer.starts_with('/'));
        odd.map(|pointer| format!("{pointer:?} is no JSON pointer: it starts with a slash"))
    }
}

/// The agents a town knows, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presets(BTreeMap<String, AgentPreset>);

/// Why a town's presets cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PresetError {
    /// The file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not what it should be.
    #[error("{} is not a table of agents: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

static BUILT_IN: LazyLock<Arc<Presets>> = LazyLock::new(|| {
    let table = TABLE.parse().expect("the built-in table makes sense; a test reads it");
    Arc::new(Presets::from_table(table).expect("the built-in table makes sense; a test reads it"))
});

impl Presets {
    /// Those that come with the program.
    pub fn built_in() -> Arc<Self> {
        Arc::clone(&BUILT_IN)
    }

    /// Those of a town: what its own file says goes before what is built in.
    pub fn of_town(root: &Path) -> Result<Arc<Self>, PresetError> {
        let path = root.join(".yardmaster/agents.toml");
        let own = match std::fs::metadata(&path) {
            // A pipe or a device in its place must not hold up whoever cooks.
            Ok(meta) if !meta.is_file() => Err(io::Error::other("it is not a file")),
            Ok(meta) if meta.len() > MAX_SIZE => Err(io::Error::other("it is larger than 1 MiB")),
            Ok(_) => std::fs::read_to_string(&path),
            Err(error) => Err(error),
        };
        let own = match own {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::built_in()),
            Err(error) => return Err(PresetError::Unreadable { path, error }),
        };
        Self::with(&own).map(Arc::new).map_err(|why| PresetError::Malformed { path, why })
    }

    pub(crate) fn with(own: &str) -> Result<Self, String> {
        let own: toml::Table = own.parse().map_err(|e: toml::de::Error| e.to_string())?;
        let mut all: toml::Table = TABLE.parse().map_err(|e: toml::de::Error| e.to_string())?;
        for (name, keys) in own {
            let toml::Value::Table(keys) = keys else {
                return Err(format!("'{name}' must be a table: [{name}]"));
            };
            let known = all.entry(name).or_insert_with(|| toml::Table::new().into());
            if let Some(known) = known.as_table_mut() {
                known.extend(keys);
            }
        }
        Self::from_table(all)
    }

    fn from_table(table: toml::Table) -> Result<Self, String> {
        let mut presets = BTreeMap::new();
        for (name, keys) in table {
            let preset: AgentPreset =
                keys.try_into().map_err(|e: toml::de::Error| format!("[{name}] {e}"))?;
            let preset = AgentPreset { name: name.clone(), ..preset };
            if let Some(fault) = preset.fault() {
                return Err(format!("[{name}] {fault}"));
            }
            presets.insert(name, preset);
        }
        Ok(Self(presets))
    }

    /// The preset of a program, by its name without directories.
    pub fn find(&self, program: &str) -> Option<&AgentPreset> {
        self.0.get(Path::new(program).file_name()?.to_str()?)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &AgentPreset> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_makes_sense() {
        let names: Vec<String> = Presets::built_in().iter().map(|preset| preset.name.clone()).collect();
        assert_eq!(names, ["aider", "claude", "codex", "gemini", "opencode"]);
        for preset in Presets::built_in().iter() {
            let name = &preset.name;
            assert_eq!(preset.start.first(), Some(name));
            assert!(!preset.tokens.is_empty() && !preset.unavailable.is_empty(), "{name}");
            assert!(!preset.recovered.is_empty(), "{name}");
            let resumes = preset.resume.iter().any(|argument| argument.contains("{{session}}"));
            assert_eq!(resumes, !preset.session.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_program_is_known_by_its_name() {
        let presets = Presets::built_in();
        let claude = presets.find("/usr/local/bin/claude").expect("known");
        let session = |text: &str| text.parse::<Session>().expect("a session");
        assert_eq!(claude.resuming(&session("claude/s-1")), ["--resume", "s-1"]);
        assert_eq!(claude.resuming(&session("s-1")), ["--resume", "s-1"]);
        assert!(claude.resuming(&session("codex/s-1")).is_empty());
        assert_eq!(presets.find("cat"), None);
    }

    #[test]
    fn a_town_changes_single_keys_and_adds_agents() {
        let own = "[claude]\nstart = ['claude', '-p', '--model', 'opus']\n[mine]\nprompt = ['{{prompt}}']\n";
        let presets = Presets::with(own).expect("presets");
        let claude = presets.find("claude").expect("known");
        assert_eq!(claude.start.last().map(String::as_str), Some("opus"));
        assert_eq!(claude.resume, ["--resume", "{{session}}"], "the rest is as it was");
        assert_eq!(presets.find("mine").expect("known").prompt, ["{{prompt}}"]);
        assert!(presets.find("codex").is_some());
    }

    #[test]
    fn what_is_no_file_holds_nobody_up() {
        let town = tempfile::tempdir().expect("temporary directory");
        let path = town.path().join(".yardmaster/agents.toml");
        std::fs::create_dir(town.path().join(".yardmaster")).expect("made");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert!(matches!(Presets::of_town(town.path()), Err(PresetError::Unreadable { .. })));
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, " ".repeat(2 << 20)).expect("written");
        assert!(matches!(Presets::of_town(town.path()), Err(PresetError::Unreadable { .. })));
    }

    #[test]
    fn a_bad_table_says_what_is_wrong() {
        for (own, word) in [
            ("claude = 3", "[claude]"),
            ("[claude]\nstrat = ['x']", "strat"),
            ("[claude]\nsession = ['session_id']", "JSON pointer"),
            ("[claude]\nstart = ['']", "no program"),
            ("['a b']\nstart = ['x']", "name"),
            ("[claude", "line 1"),
        ] {
            let why = Presets::with(own).expect_err(own);
            assert!(why.contains(word), "{own}: {why}");
        }
    }
}
