//! Topics: what a command's own help cannot say.

use yard_daemon::config::{Absent, KEYS};

/// Every topic.
pub(super) const NAMES: &[&str] = &[
    "quickstart",
    "concepts",
    "convoys",
    "dispatches",
    "agents",
    "tasks",
    "forecast",
    "presets",
    "worktrees",
    "remote",
    "keys",
    "config",
    "formulas",
    "json",
    "exit-codes",
];

/// The text of a topic.
pub(super) fn topic(name: &str) -> Option<String> {
    Some(match name {
        "quickstart" => QUICKSTART.to_owned(),
        "concepts" => CONCEPTS.to_owned(),
        "convoys" => CONVOYS.to_owned(),
        "dispatches" => DISPATCHES.to_owned(),
        "agents" => AGENTS.to_owned(),
        "tasks" => TASKS.to_owned(),
        "forecast" => FORECAST.to_owned(),
        "presets" => PRESETS.to_owned(),
        "worktrees" => WORKTREES.to_owned(),
        "remote" => REMOTE.to_owned(),
        "keys" => super::keys::keys(),
        "config" => config(),
        "formulas" => FORMULAS.to_owned(),
        "json" => JSON.to_owned(),
        "exit-codes" => EXIT_CODES.to_owned(),
        _ => return None,
    })
}

const STORE: &str = "
The journal is a file of the town, or lies in a schema of a PostgreSQL database,
where daemons on several hosts share it; one leads, the others stand by:

  ym journal copy 'postgres://ann@localhost/yards?schema=shop'
  ym config set store 'postgres://ann@localhost/yards?schema=shop'

Passwords come from ~/.pgpass or PGPASSWORD. ym journal copy sqlite leads back.
The long version is assets/manual/postgres.md.
";

const WORKTREES: &str = "\
WORKTREES

With worktrees each dispatch works in a directory and on a branch of its own.

  ym config set worker.isolation worktree       # or in a formula, or a rig
  ym config set worker.merge direct             # direct, mr or local
  ym config set worker.check '[\"make\", \"test\"]'

The branch ym/DISPATCH begins at --base-branch, else where the rig's directory
is. Whatever a worker did not commit is committed for it. After a failure the
worktree is kept; when its work is merged it goes.

  direct   we merge, one at a time, in the order of finishing; the bead closes
           when it is merged
  mr       the branch is kept and announced; ym convoy land lists it
  local    it is kept, and nobody is told (also: --no-merge)

The check runs on the merged tree before it becomes the base. A conflict, a
failed check or local changes in the way leave both branches as they were and
block the bead (merge-conflict):

  ym why shop-a1                # which files
  ym scheduler retry shop-a1    # merge again, once that is mended
  ym sling shop-a1              # do it anew from the base as it is now
  ym worktree list              # what there is, what it takes on disk
  ym worktree prune             # remove what nobody needs; branches stay

blocks waits for the close of a bead, merge-blocks for its merge.
The long version is assets/manual/worktrees.md.
";

const REMOTE: &str = "\
TOWNS ON OTHER HOSTS

By ssh, with no port of ours. Each command is carried out by the ym there, the
console here listens to the town there:

  ym --town ssh://yard.example/srv/shop status
  ym --town ssh://ann@yard.example:2222/~/shop      # the console
  export YM_TOWN=ssh://yard.example/srv/shop        # for every command
  ym add --file - < jobs.jsonl                      # files named are there

YM_SSH is the command line of ssh (default ssh), YM_REMOTE_BIN the ym there. An
open console lets ssh ask for nothing: have an agent, or use ControlMaster.

By HTTPS, with the token of the town. There:

  ym config set http.tls_cert /etc/ssl/fullchain.pem
  ym config set http.tls_key /etc/ssl/privkey.pem
  ym config set http.listen 0.0.0.0:7777            # refused without those two
  ym http token

Here:

  ym --server https://yard.example:7777 --token-file FILE status
  export YM_SERVER=https://yard.example:7777 YM_TOKEN=…

--ca FILE (YM_CA) names who signed the certificate, if your system does not know
them. http:// is taken for this host only. What needs the files of the town says
so: doctor, journal, hooks, http, rig add, attach, config get and list. Ssh has
all of it. Whoever has the token may do everything. YM_TOWN goes before
YM_SERVER.

The long version is assets/manual/remote.md.
";

const AGENTS: &str = "\
AGENTS

An agent is a long-lived worker that you run yourself: a Claude Code or Codex
session, a shell loop. It registers, is sent orders, claims beads, and is done
with them.

  ym agent register fern --program claude-code --skills \"sql, migrations\"
  ym sling shop-a1 --assign         # to whoever fits; --assign fern to fern
  ym agent inbox --as fern --wait   # blocks until there is an order
  ym agent claim shop-a1 --as fern  # fern has it, or is told who does
  ym agent done shop-a1 --as fern   # closed; the next order may be there

YM_AGENT=fern stands for --as fern. ym mcp serves the same as MCP tools.

States: IDLE, WORKING (it has a bead: claimed, or in progress under its name in
any source), BLOCKED (it says so), OFFLINE (silent for agents.offline_after),
UNRESPONSIVE (it let an order lapse). Any call is a sign of life, and so is the
process that register --pid named.

Who gives work to agents: a sling with --assign, or a rig:
  ym config set rig.shop.assign slung    # what is slung there goes to agents
  ym config set rig.shop.assign ready    # everything ready there does

Who gets what: priority, then age; to the free agent that knows most about it
(skills, earlier work), else to the one with the fewest orders. With
agents.tracks whole tracks of connected beads go to one agent.

An order not claimed within agents.claim_timeout goes to the next agent. A claim
holds agents.lease after the last sign of life. Its dispatch id is its token:
what carries the token of a claim that is over is refused. agents.hook is a
command that gets each message as JSON.

  ym agent list      who does what      ym agent why    why nothing is assigned
  ym agent tracks    what hangs together

assets/manual/agents.md says more.
";

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
  ym config set worker.agent claude
  ym bead add \"Fix the login page\" --rig api
  ym sling api-x1y2              # the id that bead add printed
  ym scheduler status            # Queued: 1 total, 1 ready
  ym status                      # the whole picture
  ym why api-x1y2                # why it is not running

A directory with a beads workspace (br or bd) becomes a rig that reads from it:

  ym rig add shop --path ~/src/shop
  ym convoy stage shop-e1        # what would this epic do?
  ym convoy launch shop-e1       # ym help convoys

Without a daemon everything works too, but then work starts only when a command
starts it: in direct mode ym sling, ym add and ym scheduler run. In deferred
mode sling and add only queue it; a daemon, an open console or ym scheduler run
starts it.
";

const CONCEPTS: &str = "\
CONCEPTS

  town      a directory with a .yardmaster folder
  rig       a project in the town: a name, a bead prefix, a directory
  bead      a piece of work; a bead gt-abc belongs to the rig with prefix gt.
            Native ones live in the town; those of a beads workspace (.beads of
            br or bd) are read from there, followed as they change, and never
            written: close them with br or bd
  context   one request to run one bead; open means scheduled
  dispatch  one attempt to run a bead, gt-abc@1, gt-abc@2, …
  worker    the process that runs a dispatch (a polecat)
  convoy    a tracked set of beads, hq-cv-… (ym help convoys)
  alert     something a person should know, once (ym alerts)
  formula   how a bead becomes a command (ym help formulas)

A bead is open, staged (its convoy is not launched yet), queued (could start),
blocked (waits for other beads or for a person), running, done (its close is
awaited), failed, cancelled, circuit-broken (failed to start too often) or
closed. ym why BEAD names every reason why it does not run.

Direct mode (scheduler.max_polecats -1 or 0): sling starts work at once.
Deferred mode (N > 0): sling queues it, and at most N workers run. Everything
ready starts as soon as there is room; nothing waits for a tick.

What ym has acknowledged is on disk. Workers survive a crash of the daemon and
are adopted by the next one; a bead never runs twice at once.
";

const DISPATCHES: &str = "\
DISPATCHES

A dispatch is one attempt to run a bead. It ends once, in one of these ways:

  exit 0, or ym worker done      the bead closes
  another exit, a signal         tried again: retry.crash.backoff, .max_attempts
  exit 69, or a formula's codes  unavailable: retry.unavailable…; its account
                                 rests for account.NAME.cooldown
  exit 75                        yielded: goes on soon, nothing is counted
  preempted, daemon stopped      back at its old place, nothing is counted
  cost limit reached             blocked until the limit is raised, the day or
                                 month is over, or ym scheduler retry
  limits.hard_cap, a deadline    failed, and a person is told
  ym cancel, ym kill             cancelled

Where it runs: --executor, else the rig's, else worker.executor. local (the
default) is a process without a terminal; tmux gives it a tmux session of its
own, where ym attach BEAD goes and C-b d comes back from. tmux is only a window:
closing or losing it ends nobody. slurm hands each worker to a cluster as a job
(executor.slurm.partition and so on, or [slurm] in a formula); it may wait there
for its turn, and the town must lie on storage that all nodes share.

To end a worker means SIGTERM to all it started, SIGKILL after
limits.kill_grace, always; the slot is free when everything is gone. What an
ended worker says later is refused.

Preemption: when nothing is free and work waits that is more urgent by
preemption.threshold than something that runs, the least urgent is asked to give
way: its formula stops between two steps, or its worker sees it at a checkpoint.
After preemption.timeout it is asked again, then ended. Nobody is pushed out in
his first preemption.min_run, nor in twice that after each time that cost him
everything. ym preempt BEAD does it by hand.

From inside a worker:

  if [ \"$(ym worker checkpoint 'tests written')\" = yield ]; then exit 75; fi
  ym worker cost 0.42            # US dollars
  ym worker progress '3 of 7: running the tests'
  ym worker done, ym worker fail # whatever the exit code will be

The next attempt begins after the last finished step, and finds the last note in
YM_CHECKPOINT; after a crash it begins again, unless the formula says
[retry] resume = true. An agent's session is resumed where ym knows how (ym help
presets) and its output names it; --ralph gives every step a fresh one.
";

const TASKS: &str = "\
TASKS OVER HTTP

A task is a small piece of work that an agent hands in over HTTP and asks about
later. It waits in its agent's lane, survives restarts, comes to one end, and
is kept as a result for results.ttl. The API is PinchTab's, so that its clients
work unchanged. It is off until it is told where to listen:

  ym config set http.listen 127.0.0.1:7777
  ym config set executor.http.base_url http://127.0.0.1:9867
  ym --daemon &

  TOKEN=$(ym http token)
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:7777/tasks \\
    -d '{\"agentId\": \"a1\", \"action\": \"click\", \"tabId\": \"t1\"}'
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:7777/tasks/tsk_…

Addresses: POST /tasks, POST /tasks/batch, GET /tasks, GET /tasks/{id},
POST /tasks/{id}/cancel, GET /scheduler/stats, /events (server-sent events),
/metrics, /healthz. GET /openapi.json describes them all.

Who waits: at most http.max_queue tasks, http.max_per_agent of one agent; more
are answered with 429 and kept as rejected. Who runs: at most http.max_inflight,
http.max_per_agent_inflight of one agent. The agent with fewest running goes
first, then the one served longest ago; inside a lane lower numbers go first.

Where it runs: an action goes to the server of its tab, once; executor.http.*
says which. A task with \"formula\": \"NAME\" runs in a worker instead, with its
params as variables: {\"formula\": \"shell\", \"params\": {\"command\": \"make\"}, …}.
An action has 60 seconds unless \"deadline\" says otherwise.

Also: \"after\": [ids] waits for others, \"maxAttempts\": 3 tries again, and the
header Idempotency-Key: NAME makes the same request twice one task. /events goes
on after the position in Last-Event-ID, or ?since=.

An agent that should see and call off only its own tasks gets a session:

  ym http token --agent a1         # Authorization: Session …

callbackUrl is told of the end, whatever it is, signed with ym http secret
(webhook-id, webhook-timestamp, webhook-signature), again and again until it
answers 2xx, for up to 18 hours. Private addresses are refused unless
http.webhook_allow names them.

assets/manual/tasks.md says more.
";

const FORECAST: &str = "\
FORECAST

ym forecast says when everything that is asked for will be done, and
ym forecast CONVOY when a convoy will be; a staged one as if it were launched
now. It plays the schedule of what is left through by the scheduler's own rules:
blockers, holds, parked rigs, waits, pauses, limits, lanes and priorities.

  done, 90% by   as likely before as after; before in nine of ten samples
  slip           against the forecast made when the convoy was launched
  left           beads that run or will run; a ? marks guessed durations
  critical path  each starts when the one before it ends: its blocker, or
                 (waits for rig db: 2 slots) whoever held the slot
  held by        what a wave ends with
  never runs     what needs a person, and why

Durations are those of the last 40 runs of the same formula or program, rig and
type of bead; of wider classes where there are fewer than 3. Where nothing was
ever measured, ten minutes are guessed, give or take a lot. Runs that failed
count too: as attempts, with the waits of retry.crash.backoff between them.

It does not know: what will be asked for later, preemption, costs that use up a
budget, how long a busy host keeps work back, and what a person will do.

  ym forecast --max-polecats 16    # what 16 slots would change
  ym forecast --json | jq .finish.p90
";

const CONVOYS: &str = "\
CONVOYS

A convoy is a set of beads that is followed as a whole: stage it, launch it, let
it be fed, and it closes when all its beads are closed.

  ym convoy stage shop-e1        # an epic with all below it, tasks, or a convoy
  ym convoy launch hq-cv-abc12   # or the epic or tasks themselves
  ym convoy status hq-cv-abc12   # waves, states, what each bead waits for
  ym convoy land hq-cv-abc12     # only for owned ones; others close themselves

Stage prints the tree, the waves (what could start together), and what speaks
against it. Staged is inert: nothing of it starts, and staging again plans anew
and keeps owner, merge strategy and watchers. Waves are for you to look at; what
starts is decided by readiness alone, bead by bead, as soon as it is ready.

Errors make nothing (exit code 1):
  cycle            beads wait for themselves; the whole path is named
  no-rig           no rig owns the prefix
  missing-bead     a bead that nobody has
Warnings stage it as staged:warnings; launch then wants --force:
  orphan           nothing of the epic waits for it, nor it for anything
  blocked-rig      its rig is parked or docked
  cross-rig        not on the rig of most
  capacity         a wave with more beads than workers may run
  missing-branch   an epic within the epic without a branch of its own
  gated            waits for a bead no worker can do, such as a decision
  outside-blocker  waits for work that is not in the convoy

Launch plans afresh from the live graph, checks everything, and only then opens
the convoy and schedules its first wave. From then on it is fed: with every
close, everything newly ready in every convoy starts, up to capacity. A daemon
or an open console does that; without one, ym scheduler run does it once. Work
that failed, or that you cleared, is not fed again: ym scheduler retry BEAD.
ym convoy create makes an open convoy at once; with --owned you start and land
it yourself. Adding to a closed convoy opens it again. Empty ones never close
by themselves.

When nothing moves:
  ym convoy stranded             convoys that are really stuck, and why
  ym scheduler recover           the safety scan now: beads left in progress by
                                 dead workers, missed beads, stale contexts
  ym alerts                      what a person should know; ym alerts --ack ID
  ym why ID                      every reason, of a bead or a whole convoy

A worker of a workspace bead closes it in its tracker (br close, bd close). If
it exits well and the bead is not closed within limits.close_grace, that counts
as a crash: it is tried again, and then an alert is raised. Stale workspace
beads are only reported: ym never writes to a workspace.
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
  [check]                      # on the merged tree; ym help worktrees
  shell = \"make test\"
  [retry]
  unavailable = [69]           # exit codes that mean: try again later

  ym sling gt-abc --formula review --var model=opus

Exit codes: 0 done, 75 yielded, 69 (or those of [retry]) unavailable, anything
else a crash; ym help config has the retry policies. The worker sees
YM_DISPATCH, YM_BEAD, YM_RIG, YM_TITLE, YM_DESCRIPTION, YM_ARGS, YM_TOWN.
A bead with a command of its own runs that instead, unless a formula is named.
argv = [\"{{agent...}}\"] runs worker.agent, whose task is the step's stdin,
whichever way it goes in (ym help presets); {{prompt_file}} is a file with it.
";

const PRESETS: &str = "\
PRESETS AND HOOKS

An agent is chosen by its name, for the town, a rig or one bead:

  ym doctor                          # which are installed
  ym config set worker.agent claude  # or codex, gemini, opencode, aider
  ym config set rig.shop.agent codex
  ym sling shop-a1 --agent gemini

A name alone means its preset: the command line without a terminal, how it gets
its task (standard input, or a file) and goes on with a session, and how
session, cost, tokens and refusals are read off its output. Several words are
used as they stand; an unknown word is a command that reads its task on standard
input. In a command {{prompt_file}} is a file that holds the task, {{prompt}}
the text itself; an argument holds 128 KiB at most, a longer task is refused.

When its service refuses (rate limit, quota, overload, no login) an agent has
not crashed: it is tried again by retry.unavailable, in its session, and its
account rests. .yardmaster/agents.toml adds agents and changes single keys:

  [claude]
  start = [\"claude\", \"-p\", \"--output-format\", \"stream-json\", \"--verbose\"]

Hooks tell the scheduler that beads changed where it cannot watch a file:

  ym hooks install                   # .beads/hooks/on_close and others, for bd
  ym hooks show claude               # for .claude/settings.json
  ym hooks show git                  # for .git/hooks/post-merge

They call ym poke --hook [RIG], which is silent, takes milliseconds and exits
with 0 whatever happens. assets/manual/presets.md says more.
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
  scheduler recover dry_run, findings [{kind, id, message, action}]
  convoy stage      status, convoy_id, restaged, errors, warnings [{category,
                    bead_ids, message, suggested_fix?}], waves [{number,
                    tasks}], gated, tree, critical_path, launched, wave1?
                    (beyond 50 levels the tree is flat, with each depth)
  convoy launch     convoy_id, status, wave1, as results of sling
  convoy status     id, title, status, owned, total, completed, ready, running,
                    queued, blocked, failed, watchers, eta?, tracked [{id,
                    wave, …}]
  forecast          at, scope, finish {p50, p90}?, slip_ms?, left, unmeasured,
                    samples, coarse, critical_path [{id, title, start, end,
                    slack_ms, …}], waves [{number, done, total, start?, end?,
                    bound_by?}], what_if [{change, command, p50, gain_ms}],
                    stuck [{id, title, why}]
  convoy stranded   convoys [{id, title, tracked_count, ready_count,
                    ready_issues, stuck [{id, reasons}]}]
  alerts            alerts [{id, at, kind, message, ids, watchers?, acked_by?}]
  bead list         beads; rig list: rigs; convoy list: convoys (with --tree
                    each as of convoy status)
  bead blocked      with --like: beads also have blocked_by, blocked_by_count
  show              the bead, with context, dispatches and events
  config list       settings [{key, value, default, help}]
  doctor            checks [{name, status, message}]
  journal check     sound, events, first_seq, last_seq, checkpoint_seq,
                    problems []
  what makes things {id, ids}; what changes things {changed, message, ids}

A reason is {code, message, ids?, limit?, until?}; codes are stable:
blocked-by, missing-dependency, gated, staged, rig-parked, rig-docked, paused,
capacity, not-before, deferred, host-load, circuit-broken, awaiting-close,
held, claimed-elsewhere, retries-exhausted, running, not-dispatchable, no-rig,
cycle, closed.
";

const EXIT_CODES: &str = "\
EXIT CODES

  0  done, also when there was nothing to do
  1  refused or failed; sling: only if every bead was refused;
     wait: if any bead failed, is stuck, or the time was up;
     convoy stage: on errors, and if --launch found warnings
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
    text.push_str(STORE);
    text
}
