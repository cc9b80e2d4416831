//! Programs that have the terminal for a while: a shell in the directory of a rig, or `ym` itself, here or where the town is.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use yard_client::Place;

use crate::errands::Ym;

impl Ym {
    /// A shell in a directory of the town.
    fn shell(&self, town: &Path, dir: Option<PathBuf>) -> Result<Command, String> {
        let dir = dir.unwrap_or_else(|| ".".into());
        match &self.place {
            Place::Folder(_) => {
                let mut command = Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
                // The directory of a rig counts from the town's, not from where the console was opened.
                command.current_dir(town.join(dir));
                Ok(command)
            }
            Place::Ssh(there) => there.shell_in(&dir).map_err(|error| error.to_string()),
            Place::Web(_) => {
                Err("a shell there takes ssh: ym --town ssh://host/path opens a console that has it"
                    .to_owned())
            }
        }
    }

    /// Runs `ym` with these words, or a shell in a directory where there are none, on the terminal that was given away.
    pub(crate) fn run_outside(
        &self,
        town: &Path,
        argv: &[String],
        dir: Option<PathBuf>,
    ) -> Result<(), String> {
        let mut command = if argv.is_empty() {
            self.shell(town, dir)?
        } else {
            let mut command = Command::new(&self.program);
            command.args(&self.naming).args(argv);
            command
        };
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
        let cannot = |error: std::io::Error| format!("cannot be started: {error}");
        if argv.is_empty() {
            return command.stderr(Stdio::inherit()).status().map(|_| ()).map_err(cannot);
        }
        // A complaint would be gone from the screen at once, so it is said on ours.
        let ended = command.stderr(Stdio::piped()).env("NO_COLOR", "1").spawn();
        let ended = ended.and_then(std::process::Child::wait_with_output).map_err(cannot)?;
        if ended.status.success() { Ok(()) } else { Err(complaint(&String::from_utf8_lossy(&ended.stderr))) }
    }
}

/// What `ym` complained about, in one line.
fn complaint(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().map(|line| line.trim_start_matches("ym: ").trim_start_matches("hint: ")).collect();
    lines.join("; ")
}
