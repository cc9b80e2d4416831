//! Bounds on what is accepted from outside, so that one bad input cannot fill the journal.

use serde_json::{Map, Value};

use crate::Timestamp;
use crate::bead::BeadChange;
use crate::command::{NewBead, SlingRequest};
use crate::dispatch::EXECUTORS;
use crate::refusal::Refusal;

/// Longest title.
pub(super) const MAX_TITLE: usize = 64 * 1024;
/// Longest description.
const MAX_DESCRIPTION: usize = 1024 * 1024;
/// Longest command, all arguments together.
const MAX_ARGV: usize = 1024 * 1024;
/// Longest name of whoever asks, and of other words.
const MAX_WORD: usize = 4096;
/// Longest value of a variable: more fits into no environment.
const MAX_VALUE: usize = 128 * 1024;
/// Most labels, and most variables.
const MAX_MANY: usize = 1000;
/// How deep what is kept may be nested: events wrap it, and readers give up at 128.
pub const DEEPEST: usize = 64;

/// Somebody who can be named in every event.
pub(super) fn check_actor(actor: &str) -> Result<(), Refusal> {
    if actor.len() > MAX_WORD || actor.chars().any(char::is_control) {
        let message =
            format!("whoever asks needs a name of at most {MAX_WORD} bytes without control characters");
        return Err(Refusal::new("bad-actor", message).hint("YM_ACTOR names you"));
    }
    Ok(())
}

/// Whether a value is nested too deeply to be kept.
pub fn is_too_deep(value: &Value) -> bool {
    is_deeper(value, DEEPEST)
}

fn is_deeper(value: &Value, deepest: usize) -> bool {
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        if depth > deepest {
            return true;
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => pending.extend(fields.values().map(|field| (field, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// Parameters of a task that can be kept.
pub(super) fn check_params(params: Option<&Map<String, Value>>) -> Result<(), Refusal> {
    let too_deep = |params: &Map<String, Value>| params.values().any(|value| is_deeper(value, DEEPEST - 1));
    if params.is_some_and(too_deep) {
        let message = format!("params are nested more than {DEEPEST} levels deep");
        return Err(Refusal::new("bad-params", message));
    }
    Ok(())
}

/// Why something was done, if somebody says so.
pub(super) fn check_reason(reason: Option<&str>) -> Result<(), Refusal> {
    check_short("reason", reason.unwrap_or_default(), MAX_TITLE)
}

/// A directory, a file or the like.
pub(super) fn check_path(what: &str, path: &str) -> Result<(), Refusal> {
    if path.is_empty() {
        return Err(Refusal::new("bad-path", format!("the {what} is empty")));
    }
    check_short(what, path, MAX_WORD)
}

/// A title that fits and is not empty.
pub(super) fn check_title(title: &str) -> Result<(), Refusal> {
    if title.trim().is_empty() {
        return Err(Refusal::new("bad-title", "a bead needs a title"));
    }
    if title.len() > MAX_TITLE {
        let message = format!("the title has {} bytes; at most {MAX_TITLE} fit", title.len());
        return Err(Refusal::new("bad-title", message).hint("put the long text into --description"));
    }
    no_nul("the title", title)
}

/// A description that fits.
pub(super) fn check_description(text: &str) -> Result<(), Refusal> {
    if text.len() > MAX_DESCRIPTION {
        let message = format!("the description has {} bytes; at most {MAX_DESCRIPTION} fit", text.len());
        return Err(Refusal::new("too-long", message));
    }
    no_nul("the description", text)
}

/// A command that the system could run.
pub(super) fn check_argv(argv: &[String]) -> Result<(), Refusal> {
    if argv.first().is_none_or(String::is_empty) {
        return Err(Refusal::new("bad-command", "the command is empty"));
    }
    if argv.iter().map(String::len).sum::<usize>() > MAX_ARGV {
        return Err(Refusal::new("too-long", "the command is longer than 1 MiB"));
    }
    argv.iter().try_for_each(|arg| no_nul("the command", arg))
}

/// A short text that fits.
pub(super) fn check_short(what: &str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() > most {
        let message = format!("the {what} has {} bytes; at most {most} fit", text.len());
        return Err(Refusal::new("too-long", message));
    }
    no_nul(&format!("the {what}"), text)
}

/// A priority people use with sling.
pub(super) fn check_priority(priority: u8) -> Result<u8, Refusal> {
    if (1..=100).contains(&priority) {
        Ok(priority)
    } else {
        let message = format!("priority {priority} is out of range: use 1 to 100, higher is sooner");
        Err(Refusal::new("bad-priority", message))
    }
}

/// The short texts of a new bead: they reach environments, log lines and other tools.
pub(super) fn check_texts(new: &NewBead) -> Result<(), Refusal> {
    check_word("the type", &new.kind)?;
    check_reason(new.close_reason.as_deref())?;
    check_holder(new.assignee.as_deref(), &new.labels)
}

/// The same of a bead that changes.
pub(super) fn check_changed_texts(change: &BeadChange) -> Result<(), Refusal> {
    check_word("the type", change.kind.as_deref().unwrap_or_default())?;
    check_holder(change.assignee.as_deref(), change.labels.as_deref().unwrap_or_default())
}

fn check_holder(assignee: Option<&str>, labels: &[String]) -> Result<(), Refusal> {
    check_short("assignee", assignee.unwrap_or_default(), MAX_WORD)?;
    if labels.len() > MAX_MANY {
        return Err(Refusal::new("too-long", format!("a bead has at most {MAX_MANY} labels")));
    }
    labels.iter().try_for_each(|label| check_short("label", label, MAX_WORD))
}

/// What a sling carries along to a worker.
pub(super) fn check_sling(request: &SlingRequest, now: Timestamp) -> Result<(), Refusal> {
    if let Some(priority) = request.priority {
        check_priority(priority)?;
    }
    if let Some(args) = &request.args {
        check_description(args)?;
    }
    if request.vars.len() > MAX_MANY {
        return Err(Refusal::new("too-long", format!("a sling takes at most {MAX_MANY} variables")));
    }
    for (key, value) in &request.vars {
        check_short("name of a variable", key, MAX_WORD)?;
        check_short("value of a variable", value, MAX_VALUE)?;
        if key.is_empty() || key.contains(['=', '\n', '\0']) {
            return Err(Refusal::new("bad-var", format!("{key:?} is no name for a variable")));
        }
        // Variables are kept as lines of `key=value`.
        if value.contains(['\n', '\0']) {
            let message = format!("the value of {key:?} contains a line break or a NUL byte");
            return Err(Refusal::new("bad-var", message).hint("--args takes long text"));
        }
    }
    for (what, text) in [
        ("the base branch", &request.base_branch),
        ("the agent", &request.agent),
        ("the executor", &request.executor),
    ] {
        check_word(what, text.as_deref().unwrap_or_default())?;
    }
    check_executor(request.executor.as_deref())?;
    if request.deadline.is_some_and(|t| t <= now) {
        return Err(Refusal::new("bad-time", "the deadline has passed already"));
    }
    Ok(())
}

/// Workers run only where somebody knows how to run them.
pub(super) fn check_executor(name: Option<&str>) -> Result<(), Refusal> {
    match name.filter(|name| !EXECUTORS.contains(name)) {
        None => Ok(()),
        Some(other) => {
            let message = format!("executor {other:?} is not known: use {}", EXECUTORS.join(" or "));
            Err(Refusal::new("unknown-executor", message))
        }
    }
}

/// A word that no other program takes for an option, a second line or the end of a string.
fn check_word(what: &str, text: &str) -> Result<(), Refusal> {
    if text.len() > MAX_WORD {
        return Err(Refusal::new("too-long", format!("{what} is longer than {MAX_WORD} bytes")));
    }
    if text.starts_with('-') || text.chars().any(char::is_control) {
        let message = format!("{what} must not start with '-' or contain control characters");
        return Err(Refusal::new("bad-text", message));
    }
    Ok(())
}

fn no_nul(what: &str, text: &str) -> Result<(), Refusal> {
    if text.contains('\0') {
        return Err(Refusal::new("bad-text", format!("{what} contains a NUL byte")));
    }
    Ok(())
}

/// A branch to start from.
pub(super) fn check_base_branch(branch: &str) -> Result<(), Refusal> {
    check_word("the base branch", branch)
}

/// Longest name of somebody to be told.
const MAX_WATCHER: usize = 200;

/// Somebody to be told: an address of whatever kind the alert command understands.
pub(super) fn check_watcher(watcher: &str) -> Result<(), Refusal> {
    if watcher.trim().is_empty() || watcher.len() > MAX_WATCHER {
        let message = format!("say who is to be told, in at most {MAX_WATCHER} bytes");
        return Err(Refusal::new("bad-text", message).hint("--addr NAME"));
    }
    check_word("the watcher", watcher)
}
