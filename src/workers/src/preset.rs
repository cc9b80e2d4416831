//! What is known about the command lines of coding agents: where their output names session and cost, and how they go on
//! with a session. The table is `assets/agents.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

const TABLE: &str = include_str!("../../../assets/agents.toml");

/// What to look for in an agent's output, and how to go on with its session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentPreset {
    /// Where the id of its session stands, as JSON pointers.
    pub session: Vec<String>,
    /// Where the cost of this run so far stands, in US dollars.
    pub cost: Vec<String>,
    /// Where numbers of tokens stand.
    pub tokens: Vec<String>,
    /// What a line must say for its cost and tokens to count.
    pub only: BTreeMap<String, String>,
    /// Arguments that make it go on with a session; `{{session}}` stands for its id.
    pub resume: Vec<String>,
}

static PRESETS: LazyLock<BTreeMap<String, AgentPreset>> =
    LazyLock::new(|| toml::from_str(TABLE).expect("the built-in table makes sense; a test reads it"));

impl AgentPreset {
    /// The preset of a program, by its name without directories.
    pub fn of(program: &str) -> Option<Self> {
        let name = Path::new(program).file_name()?.to_str()?;
        PRESETS.get(name).cloned()
    }

    /// The arguments that go on with this session.
    pub(crate) fn resuming(&self, session: &str) -> Vec<String> {
        self.resume.iter().map(|argument| argument.replace("{{session}}", session)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_makes_sense() {
        assert!(!PRESETS.is_empty());
        for (name, preset) in PRESETS.iter() {
            assert!(!preset.session.is_empty(), "{name}");
            assert!(preset.resume.iter().any(|argument| argument.contains("{{session}}")), "{name}");
        }
    }

    #[test]
    fn a_program_is_known_by_its_name() {
        let claude = AgentPreset::of("/usr/local/bin/claude").expect("known");
        assert_eq!(claude.resuming("s-1"), ["--resume", "s-1"]);
        assert_eq!(AgentPreset::of("cat"), None);
    }
}
