//! Topics: what a command's own help cannot say.

use yard_daemon::config::{Absent, KEYS};

/// Every topic.
pub(super) const NAMES: &[&str] = &["quickstart", "concepts", "config", "formulas", "json", "exit-codes"];

/// The text of a topic.
pub(super) fn topic(name: &str) -> Option<String> {
    Some(match name {
        "quickstart" => QUICKSTART.to_owned(),
        "concepts" => CONCEPTS.to_owned(),
        "config" => config(),
        "formulas" => FORMULAS.to_owned(),
        "json" => JSON.to_owned(),
        "exit-codes" => EXIT_CODES.to_owned(),
        _ => return None,
    })
}

const QUICKSTART: &str = "\
QUICK START

A town is a directory with a .yardmaster folder. Make one, and run a command:

  cd ~/work && ym init
  ym add -- make test            # a bead that runs a command
  ym wait --all                  # until everything has ended
  ym logs BEAD                   # what it wrote

Now with a queue: at most five workers at a time, started by a daemon.

  ym config set scheduler.max_polecats 5
  ym --daemon &                  # or in another terminal, or as a service
  ym rig add api --prefix api --path ~/src/api
  ym config set worker.agent '[\"claude\", \"-p\"]'
  ym bead add \"Fix the login page\" --rig api
  ym sling api-x1y2              # the id that bead add printed
  ym scheduler status            # Queued: 1 total, 1 ready
  ym status                      # the whole picture
  ym why api-x1y2                # why it is not running

Without a daemon everything works too, but then work starts only when a command
starts it: in direct mode ym sling, ym add and ym scheduler run. In deferred
mode sling and add only queue it; a daemon, an open console or ym scheduler run
starts it.
";

const CONCEPTS: &str = "\
CONCEPTS

  town      a directory with a .yardmaster folder
  rig       a project in the town: a name, a bead prefix, a directory
  bead      a piece of work; a bead gt-abc belongs to the rig with prefix gt
  context   one request to run one bead; open means scheduled
  dispatch  one attempt to run a bead, gt-abc@1, gt-abc@2, …
  worker    the process that runs a dispatch (a polecat)
  convoy    a tracked set of beads, hq-cv-…
  formula   how a bead becomes a command (ym help formulas)

A bead is open, queued (could start), blocked (waits for other beads or for a
person), running, done (its close is awaited), failed, cancelled,
circuit-broken (failed to start too often) or closed. ym why BEAD names every
reason why it does not run.

Direct mode (scheduler.max_polecats -1 or 0): sling starts work at once.
Deferred mode (N > 0): sling queues it, and at most N workers run. Everything
ready starts as soon as there is room; nothing waits for a tick.

What ym has acknowledged is on disk. Workers survive a crash of the daemon and
are adopted by the next one; a bead never runs twice at once.
";

const FORMULAS: &str = "\
FORMULAS

A formula says how a bead becomes a command. It lies in
.yardmaster/formulas/NAME.toml; mol-polecat-work, shell and demo are built in.

  name = \"review\"
  description = \"One agent reviews one bead.\"
  [vars.model]
  default = \"sonnet\"           # without a default: --var model=… is required
  [[steps]]
  id = \"work\"
  argv = [\"claude\", \"-p\", \"--model\", \"{{model}}\"]   # no shell
  stdin = \"{{prompt}}\"         # title, description and --args of the bead
  timeout = \"2h\"
  [[steps]]
  id = \"check\"
  shell = \"cargo test\"         # values only as YM_… variables
  [retry]
  unavailable = [69]           # exit codes that mean: try again later

  ym sling gt-abc --formula review --var model=opus

Exit codes: 0 done, 75 yielded, 69 (or those of [retry]) unavailable, anything
else a crash; ym help config has the retry policies. The worker sees
YM_DISPATCH, YM_BEAD, YM_RIG, YM_TITLE, YM_DESCRIPTION, YM_ARGS, YM_TOWN.
A bead with a command of its own runs that instead, unless a formula is named.
";

const JSON: &str = "\
JSON

With --json every command answers with one document on standard output; events
are one document a line. Keys are snake_case, times RFC 3339 in UTC, lists []
and never null. Notices go to standard error. An error is

  {\"error\": {\"code\": \"cross-rig\", \"message\": \"…\", \"hint\": \"…\"}}

  scheduler status  mode, paused, queued_total, queued_ready, active_polecats,
                    circuit_broken, capacity {max, active, free, limits},
                    beads [Queued]
  scheduler list    rigs [{rig, beads [Queued]}]
  scheduler run     dispatched, skipped, failed, reason, dry_run
  sling             mode, results [{id, action, context_id?, dispatch_id?, …}]
  add               results, as of sling
  wait              done, failed, stuck [{id, reasons}]
  why               id, kind, state, ready, reasons, history
  status            scheduler, convoys, running, alerts, daemon {running, pid?}
  bead list         beads; rig list: rigs; convoy list: convoys
  show              the bead, with context, dispatches and events
  config list       settings [{key, value, default, help}]
  doctor            checks [{name, status, message}]
  journal check     sound, events, first_seq, last_seq, checkpoint_seq,
                    problems []
  what makes things {id, ids}; what changes things {changed, message, ids}

A reason is {code, message, ids?, limit?, until?}; codes are stable:
blocked-by, missing-dependency, gated, rig-parked, rig-docked, paused,
capacity, not-before, deferred, host-load, circuit-broken, awaiting-close,
held, claimed-elsewhere, retries-exhausted, running, not-dispatchable, no-rig,
cycle, closed.
";

const EXIT_CODES: &str = "\
EXIT CODES

  0  done, also when there was nothing to do
  1  refused or failed; sling: only if every bead was refused;
     wait: if any bead failed, is stuck, or the time was up
  2  the words of the command make no sense

A change has returned 0 only after it is on disk.
";

fn config() -> String {
    let mut text = String::from(
        "CONFIG\n\nym config set KEY VALUE writes .yardmaster/config.toml; a daemon takes it over\nat once. Durations: 30s, 10m, 2h. Sizes: 64MiB. NAME is a rig or an account.\n\n",
    );
    for spec in KEYS {
        let absent = match spec.absent {
            Absent::Is(json) => json.trim_matches('"'),
            Absent::Word(word) => word,
        };
        text.extend(["  ", spec.key, " [", absent, "]\n      ", spec.help, "\n"]);
    }
    text
}
