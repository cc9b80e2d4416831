//! The rig's wake command, run once after a pass that gave the rig work.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tracing::warn;
use yard_engine::RigName;

use crate::town::TownDir;

/// How long a wake command may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often its end is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the command without waiting for it; it is ended if it takes too long.
pub(crate) fn wake(town: &TownDir, rig: &RigName, argv: &[String]) {
    let Some((program, args)) = argv.split_first() else { return };
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(town.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.env("YM_TOWN", town.root()).env("YM_RIG", rig.as_str());
    match command.spawn() {
        Err(error) => warn!(%rig, %error, "the wake command cannot be run"),
        Ok(mut child) => {
            let rig = rig.clone();
            let watcher = std::thread::Builder::new().name("ym-wake".to_owned()).spawn(move || {
                let until = Instant::now() + PATIENCE;
                loop {
                    match child.try_wait() {
                        Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
                        Ok(None) => {
                            warn!(%rig, "the wake command took too long and was ended");
                            let _ = child.kill();
                            let _ = child.wait();
                            return;
                        }
                        Ok(Some(_)) | Err(_) => return,
                    }
                }
            });
            if let Err(error) = watcher {
                warn!(%error, "nobody watches the wake command");
            }
        }
    }
}
