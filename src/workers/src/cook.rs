//! Cooking: a formula and a bead become steps and an environment.
//!
//! Values are put into argv elements and standard input in one pass and never looked at again, so a value may hold
//! `{{…}}` or anything else. A shell gets values only through its environment. Whether the program exists is not
//! asked here: it may appear before the start.
//!
//! An agent gets its task, the `stdin` of its step, in the way its preset says: on standard input, as a file, or, as the
//! last resort, as an argument.

mod words;

use std::collections::BTreeMap;

use yard_engine::settings::Isolation;
use yard_engine::slurm::SlurmRequest;

use self::words::{PROMPT_FILE, Word, Words, give};
use crate::formula::{
    BUILT_IN_VARIABLES, Completion, Formula, FormulaStep, Program, is_variable_name, variable_name,
};
use crate::preset::{AgentPreset, Presets};
use crate::spec::StepSpec;

/// The longest argument or variable: the kernel's 128 KiB, less room for its name.
const MAX_ARGUMENT: usize = 127 * 1024;
/// The longest text of a bead in the environment; the rest is cut off.
const MAX_TEXT: usize = 100 * 1024;
/// What stands at the end of a text that was cut.
const CUT: &str = "\n[cut: too long for an environment variable]";
/// Stands for the configured agent command.
const AGENT: &str = "{{agent...}}";

/// What is known about the work.
#[derive(Debug, Clone)]
pub struct CookInput<'a> {
    /// Values given by the caller.
    pub vars: &'a BTreeMap<String, String>,
    /// The bead's id.
    pub bead: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its description; may be empty.
    pub description: &'a str,
    /// Its labels.
    pub labels: &'a [String],
    /// The rig it belongs to.
    pub rig: &'a str,
    /// What the sling said with `--args`; may be empty.
    pub args: &'a str,
    /// `worker.agent`: the name of a preset, or a command.
    pub agent_command: Option<&'a [String]>,
    /// The agents that are known.
    pub presets: &'a Presets,
    /// The bead comes from a beads workspace, where its agent closes it.
    pub workspace: bool,
    /// Where a formula works that says nothing about it.
    pub isolation: Isolation,
}

/// A formula with everything filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cooked {
    /// What to run.
    pub steps: Vec<StepSpec>,
    /// Variables for every step.
    pub env: Vec<(String, String)>,
    /// Exit codes that mean "unavailable, try later".
    pub unavailable_codes: Vec<i32>,
    /// What closes the bead.
    pub completion: Completion,
    /// Where it works.
    pub isolation: Isolation,
    /// What its job asks for, where the executor is Slurm.
    pub slurm: SlurmRequest,
    /// What has to go well on the merged tree before it becomes the base.
    pub check: Option<StepSpec>,
}

/// Why a formula cannot be cooked for a bead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CookError {
    /// A template names a variable that nobody declared.
    #[error("step '{step}' uses the unknown variable '{name}'; known are {}", known.join(", "))]
    UnknownInTemplate {
        /// The step.
        step: String,
        /// The name.
        name: String,
        /// What may be used.
        known: Vec<String>,
    },
    /// A variable without a default was not given.
    #[error("the formula needs a value for '{0}': give it with --var {0}=…")]
    Missing(String),
    /// A variable was given that the formula does not declare.
    #[error("the formula has no variable '{name}'; it has {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    UnknownGiven {
        /// The name.
        name: String,
        /// What may be given.
        known: Vec<String>,
    },
    /// The agent is wanted, but none is configured.
    #[error(
        "no agent is configured: say which one with ym config set worker.agent claude (ym doctor lists them)"
    )]
    NoAgent,
    /// The agent's place is not a whole argument.
    #[error("step '{0}': {AGENT} must be an argument of its own")]
    AgentInside(String),
    /// A script holds a template.
    #[error(
        "step '{step}': a shell gets values only from its environment; write \"${variable}\" instead of {{{{{name}}}}}"
    )]
    TemplateInShell {
        /// The step.
        step: String,
        /// The name.
        name: String,
        /// Where the value is.
        variable: String,
    },
    /// A text that no program can be given.
    #[error("{0} holds a NUL byte, which no program can be given")]
    Nul(String),
    /// A text that is too long for an argument.
    #[error(
        "{what} is {length} bytes long, but an argument or a variable holds 128 KiB at most (less its name): give long text on stdin or as {{{{prompt_file}}}}"
    )]
    TooLong {
        /// Which.
        what: String,
        /// How long it is.
        length: usize,
    },
    /// A workspace's beads are closed by their agents.
    #[error(
        "completion = \"exit\" cannot be used here: a workspace's beads are closed by their agent (completion = \"close\")"
    )]
    ExitInWorkspace,
}

/// Fills in a formula.
pub fn cook(formula: &Formula, input: &CookInput<'_>) -> Result<Cooked, CookError> {
    let completion = match (formula.completion, input.workspace) {
        (Some(Completion::Exit), true) => return Err(CookError::ExitInWorkspace),
        (Some(completion), _) => completion,
        (None, true) => Completion::Close,
        (None, false) => Completion::Exit,
    };
    let vars = variables(formula, input)?;
    let env = environment(input, &vars)?;
    let kitchen = Kitchen { input, prompt: prompt(input), vars: &vars };
    let steps: Result<_, _> = formula.steps.iter().map(|step| kitchen.step(step)).collect();
    Ok(Cooked {
        steps: steps?,
        env,
        unavailable_codes: formula.unavailable.clone(),
        completion,
        isolation: formula.isolation.unwrap_or(input.isolation),
        slurm: formula.slurm.clone(),
        check: formula.check.as_ref().map(|check| kitchen.step(check)).transpose()?,
    })
}

/// The values of the declared variables.
fn variables(formula: &Formula, input: &CookInput<'_>) -> Result<BTreeMap<String, String>, CookError> {
    if let Some(name) = input.vars.keys().find(|name| !formula.vars.contains_key(*name)) {
        let known = formula.vars.keys().cloned().collect();
        return Err(CookError::UnknownGiven { name: name.clone(), known });
    }
    let mut vars = BTreeMap::new();
    for (name, variable) in &formula.vars {
        let value = input.vars.get(name).or(variable.default.as_ref());
        let value = value.ok_or_else(|| CookError::Missing(name.clone()))?;
        vars.insert(name.clone(), value.clone());
    }
    Ok(vars)
}

fn environment(
    input: &CookInput<'_>,
    vars: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, CookError> {
    let mut env = Vec::new();
    for (name, what, value) in [
        ("YM_BEAD", "the bead's id", input.bead),
        ("YM_RIG", "the rig's name", input.rig),
        ("YM_TITLE", "the title", input.title),
        ("YM_DESCRIPTION", "the description", input.description),
        ("YM_LABELS", "a label", &input.labels.join(",")),
        ("YM_ARGS", "the text of --args", input.args),
    ] {
        no_nul(what, value)?;
        env.push((name.to_owned(), cut(value)));
    }
    for (name, value) in vars {
        let what = format!("the value of '{name}'");
        no_nul(&what, value)?;
        // A value may be a command: half of it is worse than none.
        not_too_long(&what, value)?;
        env.push((variable_name(name), value.clone()));
    }
    Ok(env)
}

fn cut(value: &str) -> String {
    if value.len() <= MAX_TEXT {
        return value.to_owned();
    }
    format!("{}{CUT}", &value[..value.floor_char_boundary(MAX_TEXT)])
}

fn no_nul(what: &str, value: &str) -> Result<(), CookError> {
    if value.contains('\0') { Err(CookError::Nul(what.to_owned())) } else { Ok(()) }
}

fn not_too_long(what: &str, value: &str) -> Result<(), CookError> {
    if value.len() > MAX_ARGUMENT {
        return Err(CookError::TooLong { what: what.to_owned(), length: value.len() });
    }
    Ok(())
}

/// The task as an agent reads it.
fn prompt(input: &CookInput<'_>) -> String {
    let head = format!("{} ({})", input.title.trim(), input.bead);
    let close = if input.workspace { close_it(input.bead) } else { String::new() };
    let parts = [head.trim(), input.description.trim(), input.args.trim(), &close];
    let mut text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    text.push('\n');
    text
}

/// What an agent must know about a bead that only its tracker closes.
fn close_it(bead: &str) -> String {
    format!(
        "When the work is done, close the bead in its tracker (br close {bead}, or bd close {bead}): only then it counts as done."
    )
}

struct Kitchen<'a> {
    input: &'a CookInput<'a>,
    prompt: String,
    vars: &'a BTreeMap<String, String>,
}

impl<'a> Kitchen<'a> {
    fn step(&self, step: &'a FormulaStep) -> Result<StepSpec, CookError> {
        let cooked = match &step.program {
            Program::Argv(templates) => self.program(step, templates)?,
            Program::Shell(script) => {
                self.no_template(&step.id, script)?;
                let argv = vec!["sh".to_owned(), "-c".to_owned(), script.clone()];
                // A script may run anything; only a program of its own is known by its name.
                StepSpec {
                    id: step.id.clone(),
                    argv,
                    stdin: self.task(step)?,
                    timeout: step.timeout,
                    agent: None,
                    tail: 0,
                }
            }
        };
        for argument in &cooked.argv {
            let what = format!("an argument of step '{}'", step.id);
            no_nul(&what, argument)?;
            not_too_long(&what, argument)?;
        }
        Ok(cooked)
    }

    fn program(&self, step: &'a FormulaStep, templates: &'a [String]) -> Result<StepSpec, CookError> {
        let mut words = self.words(templates)?;
        let task = self.task(step)?;
        if task.is_some() {
            words.give_task();
        }
        let stdin = if words.take_file() {
            Some(task.clone().unwrap_or_else(|| self.prompt.clone()))
        } else {
            task.clone().filter(|_| !words.take_text())
        };
        let given = task.as_deref().unwrap_or(&self.prompt);
        let fill = |word: &Word<'_>| {
            if word.own { Ok(give(word.text, given)) } else { self.fill(&step.id, word.text) }
        };
        let argv = words.words.iter().map(fill).collect::<Result<Vec<_>, _>>()?;
        let (agent, tail) = (words.agent.cloned(), words.tail());
        Ok(StepSpec { id: step.id.clone(), argv, stdin, timeout: step.timeout, agent, tail })
    }

    /// What a step reads.
    fn task(&self, step: &FormulaStep) -> Result<Option<String>, CookError> {
        step.stdin.as_ref().map(|template| self.fill(&step.id, template)).transpose()
    }

    /// Puts the configured agent in its place.
    fn words(&self, templates: &'a [String]) -> Result<Words<'a>, CookError> {
        let mut words = Words::default();
        for template in templates {
            if template == AGENT {
                let (command, agent) = self.agent()?;
                words.words.extend(command.into_iter().map(|text| Word { text, own: true }));
                words.agent = agent;
            } else {
                words.words.push(Word { text: template, own: false });
            }
        }
        if !words.run_agent() {
            words.agent = words.words.first().and_then(|program| self.input.presets.find(program.text));
        }
        Ok(words)
    }

    /// The configured agent: a name alone means all of its preset, several words are used as they stand.
    fn agent(&self) -> Result<(Vec<&'a str>, Option<&'a AgentPreset>), CookError> {
        let command = self.input.agent_command.filter(|agent| !agent.is_empty()).ok_or(CookError::NoAgent)?;
        let agent = self.input.presets.find(&command[0]);
        let start =
            agent.map(|agent| agent.start.as_slice()).filter(|start| command.len() == 1 && !start.is_empty());
        let words = match start {
            // A path says which program of that name is meant.
            Some(start) if command[0].contains('/') => {
                command.iter().chain(&start[1..]).map(String::as_str).collect()
            }
            Some(start) => start.iter().map(String::as_str).collect(),
            None => command.iter().map(String::as_str).collect(),
        };
        Ok((words, agent))
    }

    /// Replaces each `{{name}}`, once, from left to right. Other braces are left as they are.
    fn fill(&self, step: &str, template: &str) -> Result<String, CookError> {
        if template.contains(AGENT) {
            return Err(CookError::AgentInside(step.to_owned()));
        }
        let mut out = String::with_capacity(template.len());
        let mut rest = template;
        while let Some((before, name, after)) = next_name(rest) {
            out.push_str(before);
            let value = self.value(name).ok_or_else(|| CookError::UnknownInTemplate {
                step: step.to_owned(),
                name: name.to_owned(),
                known: self.known(),
            })?;
            out.push_str(value);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn value(&self, name: &str) -> Option<&str> {
        Some(match name {
            "args" => self.input.args,
            "bead" => self.input.bead,
            "description" => self.input.description,
            "prompt" => &self.prompt,
            "prompt_file" => PROMPT_FILE,
            "rig" => self.input.rig,
            "title" => self.input.title,
            other => self.vars.get(other)?,
        })
    }

    fn known(&self) -> Vec<String> {
        let built_in =
            BUILT_IN_VARIABLES.iter().filter(|name| **name != "agent").map(|name| (*name).to_owned());
        let mut known: Vec<String> = built_in.chain(self.vars.keys().cloned()).collect();
        known.sort();
        known
    }

    /// A template in a script would stay as it is and surprise: say what to write instead.
    fn no_template(&self, step: &str, script: &str) -> Result<(), CookError> {
        let mut rest = script;
        while let Some((_, name, after)) = next_name(rest) {
            if self.value(name).is_some() {
                let variable = if self.vars.contains_key(name) {
                    variable_name(name)
                } else {
                    format!("YM_{}", name.to_ascii_uppercase())
                };
                return Err(CookError::TemplateInShell {
                    step: step.to_owned(),
                    name: name.to_owned(),
                    variable,
                });
            }
            rest = after;
        }
        Ok(())
    }
}

/// Splits at the first `{{name}}`: what stands before it, the name, what follows.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find("{{").map(|at| at + from) {
        let inside = &text[open + 2..];
        if let Some(close) = inside.find("}}") {
            let name = inside[..close].trim();
            if is_variable_name(name) {
                return Some((&text[..open], name, &inside[close + 2..]));
            }
        }
        from = open + 1;
    }
    None
}

#[cfg(test)]
#[path = "cook_tests.rs"]
mod tests;
