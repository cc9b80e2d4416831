//! Carrying out what the console wants: commands, staging, copies. Each on a thread of its own; the answer is a message.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use yard_client::Place;

use crate::msg::{Msg, Ran};

/// Longer texts are not sent through the terminal: many drop them, and some break.
const LARGEST_COPY: usize = 100_000;

/// How to call ourselves.
#[derive(Debug, Clone)]
pub(crate) struct Ym {
    /// The program.
    pub program: PathBuf,
    /// The words that name the town.
    pub naming: Vec<OsString>,
    /// Where the town is.
    pub place: Place,
}

impl Ym {
    fn command(&self, argv: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.naming).args(argv);
        // A console inside a worker must not pass for it.
        command.env_remove("YM_DISPATCH").env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// Carries out commands, one after the other.
    pub(crate) fn run(&self, lines: Vec<Vec<String>>) -> Vec<Ran> {
        lines.into_iter().map(|argv| self.run_one(argv)).collect()
    }

    fn run_one(&self, argv: Vec<String>) -> Ran {
        if argv == ["--daemon"] {
            return self.start_daemon(argv);
        }
        match self.command(&argv).output() {
            Ok(output) => {
                let ok = output.status.success();
                let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
                text.push_str(&String::from_utf8_lossy(&output.stderr));
                Ran { argv, ok, output: text }
            }
            Err(error) => Ran { argv, ok: false, output: format!("cannot run ym: {error}") },
        }
    }

    /// Starts a daemon that outlives us.
    fn start_daemon(&self, argv: Vec<String>) -> Ran {
        use std::os::unix::process::CommandExt as _;
        let mut command = self.command(&argv);
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        match command.spawn() {
            Ok(_) => Ran { argv, ok: true, output: "a daemon is starting".to_owned() },
            Err(error) => Ran { argv, ok: false, output: format!("cannot start a daemon: {error}") },
        }
    }

    /// Stages, after taking over the beads of a file if there is one.
    pub(crate) fn stage(&self, targets: Vec<String>, file: Option<&Path>) -> Msg {
        let targets = match file {
            None => Ok(targets),
            Some(file) => self.import(file),
        };
        let staged = targets.and_then(|targets| {
            let mut argv: Vec<String> = ["--json", "convoy", "stage"].map(str::to_owned).to_vec();
            argv.extend(targets);
            let value = self.json(&argv)?;
            serde_json::from_value(value).map(Box::new).map_err(|error| error.to_string())
        });
        Msg::Staged(staged)
    }

    /// Takes the beads of a file over; an epic among them stands for all.
    fn import(&self, file: &Path) -> Result<Vec<String>, String> {
        let argv = |name: &str| ["--json", "bead", "import", name].map(str::to_owned);
        // The file is one of ours, wherever the town is.
        let value = if self.place.is_remote() {
            let input = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
            Self::json_of(self.command(&argv("-")).stdin(input))?
        } else {
            self.json(&argv(&file.to_string_lossy()))?
        };
        let ids = value.get("ids").and_then(Value::as_array);
        let ids: Vec<String> =
            ids.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        if ids.is_empty() {
            return Err("the file holds no new beads".to_owned());
        }
        let epic = ids.iter().find(|id| {
            let shown = self.json(&["--json".to_owned(), "show".to_owned(), (*id).clone()]);
            shown.is_ok_and(|value| value.get("type").and_then(Value::as_str) == Some("epic"))
        });
        Ok(epic.map_or_else(|| ids.clone(), |epic| vec![epic.clone()]))
    }

    /// The answer as JSON; an error is what it says, with its hint.
    fn json(&self, argv: &[String]) -> Result<Value, String> {
        Self::json_of(&mut self.command(argv))
    }

    fn json_of(command: &mut Command) -> Result<Value, String> {
        let output = command.output().map_err(|error| format!("cannot run ym: {error}"))?;
        let value: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).trim().to_owned())?;
        let Some(error) = value.get("error") else { return Ok(value) };
        let part = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        let hint = if part("hint").is_empty() { String::new() } else { format!("; {}", part("hint")) };
        Err(format!("{}{hint}", part("message")))
    }
}

/// Copies by OSC 52, which works over ssh too, and into a file of the town if it is here, since no terminal says whether
/// it obeyed.
pub(crate) fn copy(place: &Place, what: &str, text: &str) -> Result<String, String> {
    let saved = match place {
        Place::Folder(folder) => {
            let file = folder.join("clipboard");
            let written = std::fs::write(&file, text).map_err(|error| error.to_string());
            written.map(|()| file.display().to_string())
        }
        Place::Ssh(_) | Place::Web(_) => Err("the town is on another host".to_owned()),
    };
    if text.len() > LARGEST_COPY {
        let file = saved
            .map_err(|error| format!("{what} is too long for the terminal, and cannot be saved: {error}"))?;
        return Ok(format!("{what} is long: it lies in {file}"));
    }
    let mut out = std::io::stdout();
    let command = crossterm::clipboard::CopyToClipboard::to_clipboard_from(text);
    let sent = crossterm::execute!(out, command).and_then(|()| out.flush());
    match (sent, saved) {
        (Ok(()), Ok(file)) => Ok(format!("copied {what} (also in {file})")),
        (Ok(()), Err(_)) => Ok(format!("copied {what}")),
        (Err(_), Ok(file)) => Ok(format!("{what} lies in {file}")),
        (Err(sent), Err(_)) => Err(format!("cannot copy {what}: {sent}")),
    }
}
