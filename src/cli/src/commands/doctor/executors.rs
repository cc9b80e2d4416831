//! Whether what workers are to run by is there: tmux, Slurm. Nobody is told of what nothing here uses.

use yard_daemon::{TownDir, config};
use yard_engine::dispatch::{SLURM_EXECUTOR, TMUX_EXECUTOR};

use super::{Check, Status, check, journal};

/// A check of each executor that something here is to run by.
pub(super) fn of(town: &TownDir) -> Vec<Check> {
    let Ok(settings) = config::read_settings(&town.config()) else { return Vec::new() };
    let state = journal::state(town).ok().flatten().unwrap_or_default();
    let configured = std::iter::once(&settings.worker).chain(settings.rigs.values().map(|rig| &rig.worker));
    let configured = configured.filter_map(|worker| worker.executor.clone());
    let of_rigs = state.rigs().filter_map(|rig| rig.executor.clone());
    let live = state.live_dispatches().map(|dispatch| dispatch.executor.clone());
    let used: Vec<String> = configured.chain(of_rigs).chain(live).collect();
    let is_used = |name: &str| used.iter().any(|it| it == name);
    let tmux = is_used(TMUX_EXECUTOR).then(tmux);
    tmux.into_iter().chain(is_used(SLURM_EXECUTOR).then(slurm)).collect()
}

fn tmux() -> Check {
    match yard_workers::tmux_version() {
        Ok(version) => check("tmux", Status::Ok, version),
        Err(error) => {
            let message = format!("cannot be run: {error}; install tmux, or set worker.executor to local");
            check("tmux", Status::Fail, message)
        }
    }
}

fn slurm() -> Check {
    let version = match yard_workers::slurm_version() {
        Ok(version) => version,
        Err(error) => {
            let message = format!(
                "sbatch cannot be run: {error}; install Slurm's client, or set worker.executor to local"
            );
            return check("slurm", Status::Fail, message);
        }
    };
    match yard_workers::controllers() {
        Ok(told) => check("slurm", Status::Ok, format!("{version}; {told}")),
        Err(why) => {
            let message =
                format!("no controller answers: {why}; SLURM_CONF says where its configuration lies");
            check("slurm", Status::Fail, message)
        }
    }
}
