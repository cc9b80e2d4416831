//! An agent's command line before it is filled in: where its task goes, and what must stay at its end.

use super::next_name;
use crate::preset::AgentPreset;

/// The file that holds a task: standard input, which is a file of its own that nobody else can open.
pub(super) const PROMPT_FILE: &str = "/dev/stdin";

/// A program's words before they are filled in.
#[derive(Default)]
pub(super) struct Words<'a> {
    pub(super) words: Vec<Word<'a>>,
    pub(super) agent: Option<&'a AgentPreset>,
}

/// One of them.
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// It is part of the configured agent's command, not of the formula.
    pub(super) own: bool,
}

impl Words<'_> {
    /// Whether the step runs the configured agent.
    pub(super) fn run_agent(&self) -> bool {
        self.words.iter().any(|word| word.own)
    }

    /// Whether the agent's own words have a place for the task as text.
    pub(super) fn take_text(&self) -> bool {
        self.words.iter().any(|word| word.own && mentions(word.text, "prompt"))
    }

    /// Whether any word has a place for the task as a file.
    pub(super) fn take_file(&self) -> bool {
        self.words.iter().any(|word| mentions(word.text, "prompt_file"))
    }

    /// How many words at the end give the task, as the agent's preset says.
    pub(super) fn tail(&self) -> usize {
        let prompt = self.agent.map(|agent| agent.prompt.as_slice()).unwrap_or_default();
        let last = self.words.len().checked_sub(prompt.len()).map(|start| &self.words[start..]);
        let fits = last.is_some_and(|last| last.iter().map(|word| word.text).eq(prompt));
        if fits { prompt.len() } else { 0 }
    }

    /// Adds what gives the agent its task, unless whoever wrote the command saw to it.
    pub(super) fn give_task(&mut self) {
        let Some(agent) = self.agent.filter(|_| self.run_agent()) else { return };
        if self.tail() == 0 && !self.take_text() && !self.take_file() {
            self.words.extend(agent.prompt.iter().map(|text| Word { text, own: true }));
        }
    }
}

fn mentions(template: &str, wanted: &str) -> bool {
    let mut rest = template;
    while let Some((_, name, after)) = next_name(rest) {
        if name == wanted {
            return true;
        }
        rest = after;
    }
    false
}

/// Puts the task into an agent's own word; whatever else stands in braces there is the agent's business.
pub(super) fn give(template: &str, task: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, name, after)) = next_name(rest) {
        out.push_str(before);
        match name {
            "prompt" => out.push_str(task),
            "prompt_file" => out.push_str(PROMPT_FILE),
            _ => out.push_str(&rest[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    out + rest
}
