//! Sessions of agents, by which their tools go on where they were. A session belongs to the agent that named it, and its
//! id is safe as an argument: whatever an agent's output claims, it never becomes an option.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest id of a session.
const LONGEST: usize = 200;

/// An agent's session, written `claude/4f2a…`, or just the id where nobody said whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    agent: Option<String>,
    id: String,
}

/// A text that is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a session: use 1 to {LONGEST} letters, digits, '.', '_', ':' or '-', starting with a letter or digit"
)]
pub struct BadSession(String);

fn is_word(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-'))
}

impl Session {
    /// A session of this agent, or of whoever asks.
    pub fn new(agent: Option<&str>, id: &str) -> Result<Self, BadSession> {
        if is_word(id) && agent.is_none_or(is_word) {
            return Ok(Self { agent: agent.map(str::to_owned), id: id.to_owned() });
        }
        Err(BadSession(id.chars().take(80).collect()))
    }

    /// Its id, if this agent may go on with it.
    pub fn for_agent(&self, agent: &str) -> Option<&str> {
        self.agent.as_ref().is_none_or(|owner| owner == agent).then_some(&self.id)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.agent {
            Some(agent) => write!(f, "{agent}/{}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

impl std::str::FromStr for Session {
    type Err = BadSession;
    fn from_str(text: &str) -> Result<Self, BadSession> {
        match text.split_once('/') {
            Some((agent, id)) => Self::new(Some(agent), id),
            None => Self::new(None, text),
        }
    }
}

impl Serialize for Session {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Session {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_belongs_to_the_agent_that_named_it() {
        let session: Session = "claude/s-1".parse().expect("a session");
        assert_eq!((session.for_agent("claude"), session.for_agent("codex")), (Some("s-1"), None));
        let anybodys: Session = "s-1".parse().expect("a session");
        assert_eq!((anybodys.for_agent("codex"), anybodys.to_string().as_str()), (Some("s-1"), "s-1"));
    }

    #[test]
    fn no_session_can_be_mistaken_for_an_option() {
        for bad in [
            "",
            "-x",
            "--dangerously-skip-permissions",
            "a b",
            "a\nb",
            "a\0",
            "claude/-x",
            "a/b/c",
            &"x".repeat(201),
        ] {
            assert!(bad.parse::<Session>().is_err(), "{bad:?}");
        }
    }
}
