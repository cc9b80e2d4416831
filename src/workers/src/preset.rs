//! What is known about the command lines of coding agents: where their output names session and cost, and how they go on
//! with a session. The table is `assets/agents.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use yard_engine::session::Session;

const TABLE: &str = include_str!("../../../assets/agents.toml");

/// What to look for in an agent's output, and how to go on with its session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentPreset {
    /// The agent's name, that of its program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
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
        PRESETS.get(name).map(|preset| Self { name: name.to_owned(), ..preset.clone() })
    }

    /// The arguments that go on with this session; none if it is another agent's.
    pub(crate) fn resuming(&self, session: &Session) -> Vec<String> {
        let Some(id) = session.for_agent(&self.name) else { return Vec::new() };
        self.resume.iter().map(|argument| argument.replace("{{session}}", id)).collect()
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
        let session = |text: &str| text.parse::<Session>().expect("a session");
        assert_eq!(claude.resuming(&session("claude/s-1")), ["--resume", "s-1"]);
        assert_eq!(claude.resuming(&session("s-1")), ["--resume", "s-1"]);
        assert!(claude.resuming(&session("codex/s-1")).is_empty());
        assert_eq!(AgentPreset::of("cat"), None);
    }
}
