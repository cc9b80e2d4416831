//! One report at the edge: code, message, hint, exit code.

use std::io;
use std::process::ExitCode;

use serde_json::{Value, json};
use yard_client::{Lost, Safe};
use yard_daemon::config::ConfigError;
use yard_daemon::{AskError, NoTown};
use yard_engine::Refusal;
use yard_journal::JournalError;

use crate::output::{Out, Tone};

/// Refused or failed.
pub(crate) const FAILED: u8 = 1;
/// The words make no sense.
pub(crate) const USAGE: u8 = 2;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) struct Report {
    code: String,
    message: String,
    hint: Option<String>,
    exit: u8,
    /// Nobody reads what we write: end without a word.
    silent: bool,
}

impl Report {
    /// Something was refused or failed.
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), hint: None, exit: FAILED, silent: false }
    }

    /// The words of the command make no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: USAGE, ..Self::new("usage", message) }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        self
    }

    /// The stable word.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// As a document.
    pub(crate) fn document(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(hint) = &self.hint {
            error["hint"] = json!(hint);
        }
        json!({"error": error})
    }

    /// Tells the person or the script, and gives the exit code.
    pub(crate) fn show(&self, out: &mut Out) -> ExitCode {
        if self.silent {
            return ExitCode::SUCCESS;
        }
        if out.json() {
            let _ = out.line(self.document());
            let _ = out.flush();
        } else {
            let name = out.paint_err(Tone::Bad, "ym:");
            out.complain(&format!("{name} {}", Safe(&self.message)));
            if let Some(hint) = &self.hint {
                let word = out.paint_err(Tone::Dim, "hint:");
                out.complain(&format!("{word} {}", Safe(hint)));
            }
        }
        ExitCode::from(self.exit)
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Refusal> for Report {
    fn from(refusal: Refusal) -> Self {
        let report = Self::new(&refusal.code, refusal.message);
        report.hint(refusal.hint.unwrap_or_default())
    }
}

impl From<AskError> for Report {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Refused(refusal) => refusal.into(),
            AskError::Lost(lost) => {
                let code = match &lost {
                    Lost::BeforeAsking(_) => "not-served",
                    Lost::Unreachable(_) => "unreachable",
                    Lost::WhileWaiting(_) => "lost",
                    Lost::OtherVersion { .. } => "other-version",
                };
                Self::new(code, lost.to_string())
            }
            AskError::Town(error) => error.into(),
            AskError::Elsewhere(ref leader) => Self::new("served-elsewhere", error.to_string())
                .hint(super::session::to_be_said_there(leader)),
            AskError::Store(error) => Self::new("journal", error.to_string()).hint("ym doctor looks into it"),
        }
    }
}

impl From<ConfigError> for Report {
    fn from(error: ConfigError) -> Self {
        Self::new(error.code(), error.to_string()).hint(error.hint())
    }
}

impl From<NoTown> for Report {
    fn from(error: NoTown) -> Self {
        let (code, hint) = match &error {
            NoTown::Here(_) => {
                ("no-town", "ym init makes a town here; ym demo shows one; --town DIR or YM_TOWN names one")
            }
            NoTown::Foreign { .. } => {
                ("foreign-town", "if you trust its owner, name it: --town DIR or YM_TOWN")
            }
        };
        Self::new(code, error.to_string()).hint(hint)
    }
}

impl From<JournalError> for Report {
    fn from(error: JournalError) -> Self {
        Self::new("journal", error.to_string())
    }
}

impl From<io::Error> for Report {
    fn from(error: io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::new("io", error.to_string()) }
    }
}

impl From<serde_json::Error> for Report {
    fn from(error: serde_json::Error) -> Self {
        Self::new("internal", format!("the answer cannot be read: {error}"))
            .hint("the daemon may be of another version: restart it")
    }
}

/// What clap says, without its layout: the first sentence, and the rest as a hint.
pub(crate) fn split_usage(text: &str) -> (String, String) {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("bad usage");
    let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    if message.ends_with(':') {
        // What is missing stands on the next line.
        message = format!("{message} {}", lines.next().unwrap_or_default());
    }
    (message, lines.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clap_says_becomes_a_message_and_a_hint() {
        let text = "error: the following required arguments were not provided:\n  <ID>...\n\nUsage: ym wait <ID>...\n";
        let (message, hint) = split_usage(text);
        assert_eq!(message, "the following required arguments were not provided: <ID>...");
        assert_eq!(hint, "Usage: ym wait <ID>...");
    }
}
