//! Telling alerts: each once, to the alert command, as JSON on its stdin. An alert counts as untold until that command
//! has ended well, so a crash in between tells it again, under the same id. A command that fails is tried again every so
//! often, beside everything else, until it has been given long enough.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::warn;
use yard_client::views::AlertView;
use yard_engine::AlertId;
use yard_engine::alert::AlertKind;

use super::Core;
use crate::input::Input;
use crate::town::TownDir;

/// How long the alert command may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often its end is looked for.
const LOOK: Duration = Duration::from_millis(10);
/// Alert commands that run at the same time; the others wait for their turn.
const AT_ONCE: usize = 4;

/// How often a failing alert command is tried altogether: for about an hour, with the usual wait.
const TRIES: u32 = 120;

/// What is being told to a command.
#[derive(Debug)]
pub(super) struct Telling<K>(BTreeMap<K, Attempt>);

impl<K> Default for Telling<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// How telling it stands.
#[derive(Debug)]
struct Attempt {
    tries: u32,
    /// When it is tried again; none while the command runs.
    again: Option<Instant>,
}

impl<K: Clone + Ord> Telling<K> {
    /// Whether no such command runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running() == 0
    }

    fn running(&self) -> usize {
        self.0.values().filter(|attempt| attempt.again.is_none()).count()
    }

    /// How many more may be told at the same time.
    pub(super) fn free(&self) -> usize {
        AT_ONCE.saturating_sub(self.running())
    }

    /// Whether this is to be told now.
    pub(super) fn is_due(&self, id: &K, now: Instant) -> bool {
        self.0.get(id).is_none_or(|attempt| attempt.again.is_some_and(|again| again <= now))
    }

    pub(super) fn began(&mut self, id: K) {
        let attempt = self.0.entry(id).or_insert(Attempt { tries: 0, again: None });
        attempt.tries += 1;
        attempt.again = None;
    }

    /// The command failed; whether it is tried again.
    pub(super) fn failed(&mut self, id: &K, again: Instant) -> bool {
        match self.0.get_mut(id) {
            Some(attempt) if attempt.tries < TRIES => {
                attempt.again = Some(again);
                true
            }
            Some(_) | None => false,
        }
    }

    /// What is over need not be told any more.
    pub(super) fn keep(&mut self, wanted: impl Fn(&K) -> bool) {
        self.0.retain(|id, attempt| attempt.again.is_none() || wanted(id));
    }

    /// It has been told, or was given up.
    pub(super) fn forget(&mut self, id: &K) {
        self.0.remove(id);
    }
}

impl Core {
    /// Without an alert command there is nobody to tell: the alert itself is in the log and in the status.
    pub(super) fn settle_alerts_nobody_hears(&mut self) {
        if self.store.state().settings().alerts_command.is_some() {
            return;
        }
        for id in self.store.state().untold_alerts().map(|alert| alert.id.clone()).collect::<Vec<_>>() {
            self.store.decide(self.now, |tx| tx.alert_told(&id, None));
        }
    }

    /// Starts telling what is durable and untold.
    pub(super) fn tell_alerts(&mut self) {
        let Some(argv) = self.store.state().settings().alerts_command.clone() else { return };
        // An alert that is over need not be told any more.
        let state = self.store.state();
        self.telling.keep(|id| state.is_untold(id));
        let now = self.clock.instant();
        let untold = state.untold_alerts().filter(|alert| self.telling.is_due(&alert.id, now));
        let free = self.telling.free();
        for alert in untold.take(free).cloned().collect::<Vec<_>>() {
            if let Some(stage) = &mut self.stage {
                stage.tell_alert(&alert.id);
                self.telling.began(alert.id);
                continue;
            }
            let (town, argv, inputs, id) = (self.town.clone(), argv.clone(), self.inputs(), alert.id.clone());
            let told = std::thread::Builder::new().name("ym-alert".to_owned()).spawn(move || {
                let env = [("YM_ALERT", alert.id.as_str())];
                let error =
                    tell_command(&town, "alerts.command", &argv, &env, &AlertView::from(&alert)).err();
                inputs.send(Input::AlertTold { id: alert.id, error });
            });
            match told {
                Ok(_) => self.telling.began(id),
                Err(error) => warn!(%error, "an alert cannot be told at present"),
            }
        }
    }

    pub(super) fn alert_told(&mut self, id: &AlertId, error: Option<String>) {
        if let Some(error) = &error {
            let wait = self.store.state().settings().alerts_retry;
            let again = self.telling.failed(id, self.clock.instant_after(wait.duration()));
            warn!(%id, error, again, "the alert command failed");
            if again {
                return;
            }
        }
        self.telling.forget(id);
        self.store.decide(self.now, |tx| tx.alert_told(id, error));
    }

    /// Everything a person should know, also what the journal cannot hold.
    pub(super) fn alert_views(&self) -> Vec<AlertView> {
        let disk = self
            .read_only
            .as_ref()
            .map(|why| AlertView::transient("read-only", format!("the town is read-only: {why}"), self.now));
        disk.into_iter().collect()
    }

    /// What a passing command says about the config file.
    pub(super) fn config_notices(&self) -> Vec<String> {
        let alerts = self.store.state().alerts().filter(|alert| alert.kind == AlertKind::Config);
        alerts.map(|alert| alert.message.clone()).collect()
    }
}

/// Runs a command of the config with a document on its standard input, and waits for its end.
pub(super) fn tell_command(
    town: &TownDir,
    setting: &str,
    argv: &[String],
    env: &[(&str, &str)],
    document: &impl Serialize,
) -> Result<(), String> {
    let (program, args) = argv.split_first().ok_or_else(|| format!("{setting} is empty"))?;
    let mut child = Command::new(program)
        .args(args)
        .current_dir(town.root())
        .env("YM_TOWN", town.root())
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    let json = serde_json::to_string(document).map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input is told all the same.
        let _ = writeln!(stdin, "{json}");
    }
    let until = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{program} ended with {status}")),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{program} took too long and was ended"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}
