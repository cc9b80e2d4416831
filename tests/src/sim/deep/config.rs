//! The config file of the simulated town: what the operator wants, in the words of the file.

use std::fmt::Write as _;

use yard_engine::settings::{CostSettings, Fairness, RetryPolicy};
use yard_engine::{Millis, Settings};

use crate::sim::daemon::Halt;
use crate::sim::history::World;

fn span(millis: Millis) -> String {
    format!("\"{}ms\"", millis.0)
}

fn retry(text: &mut String, class: &str, policy: &RetryPolicy) {
    let waits: Vec<String> = policy.backoff.iter().copied().map(span).collect();
    let _ = writeln!(text, "[retry.{class}]\nbackoff = [{}]", waits.join(", "));
    let _ = writeln!(text, "max_attempts = {}", policy.max_attempts);
}

impl World {
    /// What only the real loop knows of changes, too.
    pub(in crate::sim) fn reconfigure_the_loop(&mut self) {
        if self.brisk && !self.dice.one_in(6) {
            // Nothing that keeps the loop from deciding ahead.
            (self.wanted.batch_size, self.wanted.spawn_delay, self.wanted.aging) = (0, Millis(0), None);
            self.wanted.cost = CostSettings::default();
            self.wanted.max_polecats = [1, 1, 2, 3][self.dice.below(4)];
        }
        self.wanted.kill_grace = Millis([0, 500, 10_000][self.dice.below(3)]);
        self.wanted.safety_scan = Millis([1_000, 5_000, 30_000][self.dice.below(3)]);
        self.wanted.spawn_timeout = Millis([5_000, 60_000, 300_000][self.dice.below(3)]);
        self.wanted.shutdown_timeout = Millis([1_000, 30_000][self.dice.below(2)]);
        let formula = if self.dice.one_in(2) { "steps" } else { "plain" };
        let mut text = format!("[worker]\nagent = [\"work\"]\nformula = \"{formula}\"\n");
        if !self.dice.one_in(3) {
            let retry = self.dice.between(1, 40);
            let _ = writeln!(text, "[alerts]\ncommand = [\"tell\"]\nretry = \"{retry}s\"");
        }
        let _ = writeln!(text, "[agents]\noffline_after = \"{}s\"", self.dice.between(1, 20));
        let _ = writeln!(text, "claim_timeout = \"{}s\"", self.dice.between(1, 10));
        let _ = writeln!(text, "lease = \"{}s\"", self.dice.between(1, 20));
        let _ = writeln!(text, "auto_claim = {}", self.dice.one_in(4));
        let _ = writeln!(text, "tracks = {}", self.dice.one_in(3));
        if self.dice.one_in(2) {
            let _ = writeln!(text, "hook = [\"tell\"]");
        }
        let most = self.dice.between(1, 4);
        let _ = writeln!(text, "[http]\nmax_queue = {most}\nmax_per_agent = {most}\nmax_inflight = {most}");
        if self.dice.one_in(8) {
            let _ = writeln!(text, "listen = \"127.0.0.1:1\"");
        }
        let _ = writeln!(text, "[results]\nttl = \"{}s\"", self.dice.between(1, 30));
        for rig in ["ox", "mule"] {
            let _ = writeln!(text, "[rig.{rig}]");
            if self.dice.one_in(3) {
                let merge = ["direct", "mr", "local"][self.dice.below(3)];
                let _ = writeln!(text, "isolation = \"worktree\"\nmerge = \"{merge}\"");
            }
            if self.dice.one_in(3) {
                let _ = writeln!(text, "check = [\"check\"]");
            }
            if self.dice.one_in(6) {
                let assign = ["slung", "ready"][self.dice.below(2)];
                let _ = writeln!(text, "assign = \"{assign}\"");
            }
            if self.dice.one_in(4) {
                let _ = writeln!(text, "wake = [\"wake\"]");
            }
        }
        self.more_config(text);
        if self.faults && self.dice.one_in(12) {
            self.more_config("[scheduler\n".to_owned());
        }
    }

    /// Nothing is left in the config file that keeps work from coming to its end.
    pub(in crate::sim) fn reconfigure_plainly(&mut self) -> Result<(), Halt> {
        self.wanted.batch_size = 0;
        let retry = "[alerts]\ncommand = [\"tell\"]\nretry = \"1s\"\n";
        self.more_config(format!("[worker]\nagent = [\"work\"]\nformula = \"plain\"\n{retry}"));
        self.configure()
    }
}

/// The file that says these settings; `more` adds what quick histories do not configure.
pub(super) fn write(settings: &Settings, more: &str) -> String {
    let fairness = match settings.fairness {
        Fairness::Town => "town",
        Fairness::Rig => "rig",
        Fairness::Convoy => "convoy",
        Fairness::Agent => "agent",
    };
    let mut text = String::new();
    let _ = writeln!(text, "[scheduler]\nmax_polecats = {}", settings.max_polecats);
    let _ = writeln!(text, "batch_size = {}", settings.batch_size);
    let _ = writeln!(text, "spawn_delay = {}", span(settings.spawn_delay));
    let _ = writeln!(text, "max_dispatch_failures = {}", settings.max_dispatch_failures);
    let _ = writeln!(text, "fairness = \"{fairness}\"");
    let _ = writeln!(text, "safety_scan = {}", span(settings.safety_scan));
    if let Some(aging) = settings.aging {
        let _ = writeln!(text, "aging = {}", span(aging));
    }
    retry(&mut text, "crash", &settings.retry_crash);
    retry(&mut text, "unavailable", &settings.retry_unavailable);
    let preemption = &settings.preemption;
    let _ = writeln!(text, "[preemption]\nthreshold = {}", preemption.threshold);
    let _ = writeln!(text, "timeout = {}\nmin_run = {}", span(preemption.timeout), span(preemption.min_run));
    let _ = writeln!(text, "[limits]\nhard_cap = {}", span(settings.hard_cap));
    let _ = writeln!(text, "stuck_after = {}", span(settings.stuck_after));
    let _ = writeln!(text, "close_grace = {}", span(settings.close_grace));
    let _ = writeln!(text, "kill_grace = {}", span(settings.kill_grace));
    let _ = writeln!(text, "spawn_timeout = {}", span(settings.spawn_timeout));
    let _ = writeln!(text, "shutdown_timeout = {}", span(settings.shutdown_timeout));
    let _ = writeln!(text, "[recovery]\nstale_after = {}", span(settings.stale_after));
    let cost = &settings.cost;
    let limits = [
        ("per_bead", cost.per_bead),
        ("per_convoy", cost.per_convoy),
        ("daily", cost.daily),
        ("monthly", cost.monthly),
    ];
    let _ = writeln!(text, "[cost]");
    for (name, limit) in limits {
        if let Some(limit) = limit {
            let _ = writeln!(text, "{name} = {}", limit.dollars());
        }
    }
    for (name, account) in &settings.accounts {
        let _ = writeln!(text, "[account.{name}]");
        if let Some(most) = account.max_polecats {
            let _ = writeln!(text, "max_polecats = {most}");
        }
        if let Some(rest) = account.cooldown {
            let _ = writeln!(text, "cooldown = {}", span(rest));
        }
    }
    text + more
}
