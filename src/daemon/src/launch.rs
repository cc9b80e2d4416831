//! From a dispatch in the state to an order for a shim: cooking, environment, directories.

use std::collections::BTreeMap;

use yard_engine::bead::Bead;
use yard_engine::command::{NewTask, SlingRequest};
use yard_engine::context::{Context, ContextFields, RequestExtras};
use yard_engine::dispatch::{Category, Dispatch, EXECUTORS, LOCAL_EXECUTOR, SLURM_EXECUTOR, TMUX_EXECUTOR};
use yard_engine::merge::MergeRequest;
use yard_engine::readiness::WORKER_ACTOR_PREFIX;
use yard_engine::session::Session;
use yard_engine::settings::Isolation;
use yard_engine::slurm::SlurmRequest;
use yard_engine::{DispatchId, FormulaName, Kitchen, RigName, State, WorkerExit};
use yard_workers::{
    Completion, CookInput, Cooked, ExitCause, ExitRecord, Formula, Presets, RunSpec, SlurmEnd, StartOrder,
    StepSpec, Surface, WorktreePlace, WorktreeSpec, YIELDED, cook,
};

use crate::branches;
use crate::core::Sources;
use crate::town::TownDir;

/// The exit code by which a worker says that its service is not there, unless its formula says otherwise.
const UNAVAILABLE: i32 = 69;
/// The mode in which every step has a session of its own.
const RALPH: &str = "ralph";
/// Longest text passed in an environment variable; a single one may hold 128 KiB.
const LONGEST_VARIABLE: usize = 100 * 1024;

/// What bd and br call the variable that says who acts: a bead claimed under our worker's name is ours.
const TRACKER_ACTOR: [&str; 2] = ["BD_ACTOR", "BEADS_ACTOR"];

/// The order for a decided dispatch, or why there is none.
pub(crate) fn order(
    state: &State,
    town: &TownDir,
    sources: &Sources,
    dispatch: &Dispatch,
) -> Result<StartOrder, String> {
    let context = state.context(&dispatch.context).ok_or("its context is gone")?;
    let mut bead = Bead::clone(&state.bead(dispatch.id.bead()).ok_or("its bead is gone")?.bead);
    if let Some(shown_by) = &bead.source {
        // The log holds only what scheduling needs.
        bead.description = sources.description(shown_by, &bead.id);
    }
    let rig = state.rig(&dispatch.rig).ok_or_else(|| format!("rig {} is gone", dispatch.rig))?;
    let (steps, cooked_env, isolation, asked) = match (&context.fields.formula, &bead.argv) {
        (Some(formula), _) => {
            let cooked = cook_for(state, town, &bead, &dispatch.rig, formula, &context.fields)?;
            (cooked.steps, cooked.env, cooked.isolation, cooked.slurm)
        }
        (None, Some(argv)) => {
            let isolation = state.settings().isolation(&dispatch.rig);
            let facts = facts(&bead, &context.fields);
            (vec![own_command(town, argv)], facts, isolation, SlurmRequest::default())
        }
        (None, None) => return Err("it has neither a formula nor a command of its own".to_owned()),
    };
    let surface = match dispatch.executor.as_str() {
        LOCAL_EXECUTOR => Surface::None,
        TMUX_EXECUTOR => Surface::Tmux,
        SLURM_EXECUTOR => Surface::Slurm(Box::new(asked.or(&state.settings().slurm))),
        other => return Err(format!("executor {other:?} is not known: use {}", EXECUTORS.join(" or "))),
    };
    let repo = town.rig_path(&rig.path);
    let worktree = match isolation {
        Isolation::None => None,
        Isolation::Worktree => Some(branches::worktree_of(town, dispatch, context, &bead, &repo)),
    };
    let resume = Resumption::of(context, steps, worktree.as_ref());
    let mut env = cooked_env;
    env.extend(identity(town, &dispatch.id, &dispatch.rig));
    env.extend(resume.env);
    if bead.source.is_some() {
        env.extend(TRACKER_ACTOR.map(|name| (name.to_owned(), actor(&dispatch.id))));
    }
    let settings = state.settings();
    let spec = RunSpec {
        steps: resume.steps,
        cwd: repo,
        env,
        log: log_path(town, &dispatch.id),
        log_cap: settings.log_cap,
        kill_grace: settings.kill_grace,
        hard_cap: state.active_time_left(dispatch),
        first_step: resume.first_step,
        worktree: worktree.map(Box::new),
        session: resume.session,
    };
    Ok(StartOrder { dispatch: dispatch.id.clone(), spec, surface })
}

/// Where the output of a dispatch goes.
pub(crate) fn log_path(town: &TownDir, dispatch: &DispatchId) -> std::path::PathBuf {
    town.logs().join(format!("{dispatch}.log"))
}

fn own_command(town: &TownDir, argv: &[String]) -> StepSpec {
    // A command runs as it stands, whatever is wrong with a file that only says how to read it along.
    let presets = Presets::of_town(town.root()).unwrap_or_else(|_| Presets::built_in());
    let agent = argv.first().and_then(|program| presets.find(program)).cloned();
    StepSpec { id: "run".to_owned(), argv: argv.to_vec(), stdin: None, timeout: None, agent, tail: 0 }
}

/// How an attempt goes on where an earlier one left off.
struct Resumption {
    steps: Vec<StepSpec>,
    first_step: usize,
    session: Option<Session>,
    env: Vec<(String, String)>,
}

impl Resumption {
    fn of(context: &Context, mut steps: Vec<StepSpec>, worktree: Option<&WorktreeSpec>) -> Self {
        let resume = &context.resume;
        // In a new worktree nothing is done yet, whatever an earlier attempt had finished elsewhere.
        let begins = worktree.is_some_and(|worktree| matches!(worktree.place, WorktreePlace::New { .. }));
        // A step that the formula no longer has, or has as its last, cannot be gone on after: then everything is done
        // again.
        let finished = resume.after.as_ref().and_then(|id| steps.iter().position(|step| step.id == *id));
        let finished = finished.filter(|index| index + 1 < steps.len() && !begins);
        let fresh_sessions = context.fields.mode.as_deref() == Some(RALPH);
        if fresh_sessions {
            let agents = steps.iter_mut().filter_map(|step| step.agent.as_mut());
            agents.for_each(|agent| agent.resume.clear());
        }
        let session = resume.session.clone().filter(|_| !fresh_sessions);
        let known = [
            ("YM_MODE", context.fields.mode.clone()),
            ("YM_CHECKPOINT", resume.note.as_deref().map(cut)),
            ("YM_RESUME_AFTER", resume.after.clone().filter(|_| finished.is_some())),
            ("YM_SESSION", session.as_ref().map(|session| session.id().to_owned())),
        ];
        let env = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        Self { steps, first_step: finished.map_or(0, |index| index + 1), session, env }
    }
}

/// Who the worker is and whom it may talk to.
fn identity(town: &TownDir, dispatch: &DispatchId, rig: &RigName) -> Vec<(String, String)> {
    let path = |p: std::path::PathBuf| p.to_string_lossy().into_owned();
    let variables = [
        ("YM_DISPATCH", dispatch.to_string()),
        ("YM_ATTEMPT", dispatch.attempt().to_string()),
        ("YM_BEAD", dispatch.bead().to_string()),
        ("YM_RIG", rig.to_string()),
        ("YM_TOWN", path(town.root().to_owned())),
        ("YM_SOCKET", path(town.folder().join("ym.sock"))),
        ("YM_ACTOR", actor(dispatch)),
    ];
    variables.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Who a worker claims beads as.
fn actor(dispatch: &DispatchId) -> String {
    format!("{WORKER_ACTOR_PREFIX}{dispatch}")
}

/// A text short enough for an environment variable.
fn cut(text: &str) -> String {
    let end = (0..=LONGEST_VARIABLE.min(text.len())).rev().find(|i| text.is_char_boundary(*i));
    text[..end.unwrap_or(0)].to_owned()
}

/// What a bead's own command may want to know about it.
fn facts(bead: &Bead, fields: &ContextFields) -> Vec<(String, String)> {
    let variables = [
        ("YM_TITLE", Some(bead.title.as_str())),
        ("YM_DESCRIPTION", bead.description.as_deref()),
        ("YM_ARGS", fields.args.as_deref()),
    ];
    let given = variables.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.map(|(name, value)| (name.to_owned(), cut(value))).collect()
}

fn cook_for(
    state: &State,
    town: &TownDir,
    bead: &Bead,
    rig: &RigName,
    formula: &FormulaName,
    fields: &ContextFields,
) -> Result<Cooked, String> {
    let found = Formula::find(town.root(), formula).map_err(|e| e.to_string())?;
    let vars = parse_vars(fields.vars.as_deref().unwrap_or_default());
    let chosen = fields.agent.as_ref().map(|agent| vec![agent.clone()]);
    let agent = chosen.as_ref().or_else(|| state.settings().agent_command(rig));
    let presets = Presets::of_town(town.root()).map_err(|e| e.to_string())?;
    let input = CookInput {
        vars: &vars,
        bead: bead.id.as_str(),
        title: &bead.title,
        description: bead.description.as_deref().unwrap_or_default(),
        labels: &bead.labels,
        rig: rig.as_str(),
        args: fields.args.as_deref().unwrap_or_default(),
        agent_command: agent.map(Vec::as_slice),
        presets: &presets,
        workspace: bead.source.is_some(),
        isolation: state.settings().isolation(rig),
    };
    cook(&found, &input).map_err(|e| format!("formula {formula}: {e}"))
}

/// Newline-separated `key=value`.
fn parse_vars(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.trim().to_owned(), value.to_owned())).collect()
}

/// Cooks what a sling would use before it is decided, so that a bad formula is refused and not queued.
pub(crate) fn kitchen(state: &State, town: &TownDir, request: &SlingRequest) -> Kitchen {
    let mut kitchen = Kitchen::default();
    for (rig, formula, bead) in state.formulas_of(request) {
        let Some(entry) = state.bead(&bead) else { continue };
        let Err(error) = cook_request(state, town, request, &rig, &formula, &entry.bead) else { continue };
        if entry.bead.has_long_text() {
            kitchen.spoiled_beads.insert(bead, error);
        } else {
            kitchen.spoiled.insert((rig, formula), error);
        }
    }
    kitchen
}

/// The same for tasks that name a formula.
pub(crate) fn kitchen_of_tasks(state: &State, town: &TownDir, tasks: &[NewTask]) -> Kitchen {
    let mut kitchen = Kitchen::default();
    for (nth, task) in tasks.iter().enumerate() {
        let (Some(formula), Some((rig, bead))) = (&task.formula, state.foretell_task(task)) else { continue };
        let request =
            SlingRequest { vars: task.vars(), args: Some(task.action.clone()), ..SlingRequest::default() };
        if let Err(error) = cook_request(state, town, &request, &rig, formula, &bead) {
            kitchen.spoiled_tasks.insert(nth, error);
        }
    }
    kitchen
}

fn cook_request(
    state: &State,
    town: &TownDir,
    request: &SlingRequest,
    rig: &RigName,
    formula: &FormulaName,
    bead: &Bead,
) -> Result<(), String> {
    let vars: Vec<String> = request.vars.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let extras = RequestExtras {
        args: request.args.clone(),
        vars: Some(vars.join("\n")),
        agent: request.agent.clone(),
        ..RequestExtras::default()
    };
    let fields = ContextFields {
        version: 1,
        work_bead_id: bead.id.clone(),
        target_rig: rig.clone(),
        formula: Some(formula.clone()),
        enqueued_at: state.clock(),
        convoy: None,
        no_merge: false,
        hook_raw_bead: false,
        owned: false,
        dispatch_failures: 0,
        extras: extras.into(),
    };
    cook_for(state, town, bead, rig, formula, &fields).map(|_| ())
}

/// What has to go well on the merged tree of a bead's branch, as its formula or the config says.
pub(crate) fn check_of(
    state: &State,
    town: &TownDir,
    merge: &MergeRequest,
) -> Result<Option<StepSpec>, String> {
    let dispatch = state.dispatch(&merge.work).ok_or("the work it is about is forgotten")?;
    let context = state.context(&dispatch.context).ok_or("its context is gone")?;
    let bead = &state.bead(&merge.bead).ok_or("its bead is gone")?.bead;
    let cooked = match &context.fields.formula {
        Some(formula) => cook_for(state, town, bead, &merge.rig, formula, &context.fields)?.check,
        None => None,
    };
    let configured = state.settings().check_command(&merge.rig);
    let step = |argv: &Vec<String>| StepSpec { id: "check".to_owned(), ..own_command(town, argv) };
    Ok(cooked.or_else(|| configured.map(step)))
}

/// The order for the check of a merged tree, in a worktree that goes away with it.
pub(crate) fn check_order(
    state: &State,
    town: &TownDir,
    merge: &MergeRequest,
    run: &DispatchId,
    commit: &str,
) -> Result<StartOrder, String> {
    let step = check_of(state, town, merge)?.ok_or("its check is no longer configured")?;
    let rig = state.rig(&merge.rig).ok_or_else(|| format!("rig {} is gone", merge.rig))?;
    let settings = state.settings();
    let repo = town.rig_path(&rig.path);
    let mut env = identity(town, run, &merge.rig);
    env.push(("YM_BASE_BRANCH".to_owned(), merge.base.clone()));
    env.push(("YM_BRANCH".to_owned(), merge.branch.clone()));
    let spec = RunSpec {
        steps: vec![step],
        cwd: repo.clone(),
        env,
        log: log_path(town, run),
        log_cap: settings.log_cap,
        kill_grace: settings.kill_grace,
        hard_cap: Some(settings.hard_cap),
        first_step: 0,
        worktree: Some(Box::new(branches::trial(town, run, repo, commit))),
        session: None,
    };
    Ok(StartOrder { dispatch: run.clone(), spec, surface: Surface::None })
}

/// What an exit record means to the engine: what the agent said of its service, then the formula's exit codes, decide
/// the class of a failure.
pub(crate) fn worker_exit(state: &State, town: &TownDir, id: &DispatchId, exit: &ExitRecord) -> WorkerExit {
    let category = match (exit.cause, exit.code) {
        (ExitCause::HardCap, _) => Category::HardCap,
        (ExitCause::Yielded | ExitCause::Slurm(SlurmEnd::Preempted | SlurmEnd::NodeFailed), _)
        | (_, Some(YIELDED)) => Category::Yielded,
        _ if exit.unavailable.is_some() => Category::Unavailable,
        (_, Some(code)) if code != 0 && unavailable_codes(state, town, id).contains(&code) => {
            Category::Unavailable
        }
        _ => Category::Crash,
    };
    let formula = formula_of(state, town, id);
    WorkerExit {
        code: exit.code,
        signal: exit.signal,
        step: exit.step.clone(),
        stopped: exit.cause == ExitCause::Stopped,
        awaits_close: formula.as_ref().is_some_and(|f| f.completion == Some(Completion::Close)),
        active: exit.active,
        resumes: formula.is_some_and(|f| f.resumes),
        worktree: exit.worktree.clone(),
        category,
        message: exit_words(exit),
    }
}

/// The formula that a dispatch was cooked from, as it is now.
fn formula_of(state: &State, town: &TownDir, id: &DispatchId) -> Option<Formula> {
    let context = state.dispatch(id).and_then(|d| state.context(&d.context))?;
    Formula::find(town.root(), context.fields.formula.as_ref()?).ok()
}

/// The steps that a dispatch goes through, as its formula has them now.
pub(crate) fn step_names(state: &State, town: &TownDir, id: &DispatchId) -> Vec<String> {
    formula_of(state, town, id)
        .map_or_else(Vec::new, |formula| formula.steps.into_iter().map(|step| step.id).collect())
}

fn unavailable_codes(state: &State, town: &TownDir, id: &DispatchId) -> Vec<i32> {
    formula_of(state, town, id).map_or(vec![UNAVAILABLE], |formula| formula.unavailable.clone())
}

pub(crate) fn exit_words(exit: &ExitRecord) -> String {
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let cause = match exit.cause {
        ExitCause::Exit | ExitCause::Stopped => how,
        ExitCause::Timeout => format!("timed out ({how})"),
        ExitCause::HardCap => format!("hard cap exceeded ({how})"),
        ExitCause::ExecFailed => "a step's program could not be run".to_owned(),
        ExitCause::Yielded => "gave way between two steps".to_owned(),
        ExitCause::Slurm(end) => {
            let what = match end {
                SlurmEnd::TimeLimit => "reached the time limit of its Slurm job",
                SlurmEnd::OutOfMemory => "used more memory than its Slurm job may",
                SlurmEnd::Preempted => "Slurm gave its place to other work",
                SlurmEnd::NodeFailed => "its node failed, as Slurm says",
                SlurmEnd::Cancelled => "its Slurm job was cancelled",
            };
            format!("{what} ({how})")
        }
        ExitCause::Unfinished => "its work cannot be put on its branch".to_owned(),
    };
    match (&exit.note, exit.cause, &exit.unavailable) {
        (Some(note), ExitCause::ExecFailed | ExitCause::Unfinished, _) => format!("{cause}: {note}"),
        (_, _, Some(words)) => format!("{words} ({cause})"),
        _ => cause,
    }
}
