//! One dispatch, from its claim to its exit record.
//!
//! The order of things is the promise: lock, `claimed` line, first program, …, everything gone, exit line, lock
//! released, daemon told. The `running` line of a program that ends within a few milliseconds is written together
//! with what follows it, because a short dispatch should not cost more words than work.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use yard_engine::worktree::Worktree;
use yard_engine::{DispatchId, Millis, Timestamp};

use super::Shim;
use super::meter::{Bill, Meter};
use super::program::{Environment, Program};
use crate::claim::{self, Held};
use crate::fence;
use crate::log::Log;
use crate::record::{ExitCause, ExitRecord, Line, YIELDED};
use crate::spec::{RunSpec, StepSpec};
use crate::sys::{self, Launch, Outcome, Stage, boot_millis, now};
use crate::trouble::is_shortage;
use crate::wire::{self, FromShim, SpecSource};

/// How long news of a start may wait for news of its end.
const TOGETHER: u64 = 2;
/// How often what the output tells is passed on.
const METER_EVERY: u64 = 1000;
/// How long the first line of a step waits, because most steps end sooner.
const FIRST_LINE: u64 = 500;
/// How often a last line is passed on: each becomes an event that is kept.
const LINE_EVERY: u64 = 10_000;
/// How long an exit record is tried to be written on a full disk, in steps of a tenth of a second.
const RECORD_TRIES: u32 = 300;

/// What came of an order.
pub(super) enum Verdict {
    /// It ran (or could not be run), and the claim says so.
    Done,
    /// It was not ours to run.
    Refused,
    /// As `Done`, but this shim still has company or no daemon and must not take another order.
    NotReusable,
}

/// Takes the claim and runs the order.
pub(super) fn perform(shim: &mut Shim, dispatch: DispatchId, path: &Path, source: SpecSource) -> Verdict {
    let run_dir = path.parent().unwrap_or(Path::new("/"));
    let started = now();
    let taken = claim::take(path).map_err(|e| e.to_string()).and_then(|mut claim| {
        // In this order: whoever replaces our leader leaves its name first, and then looks at the lock.
        match fence::is_down_for(run_dir, shim.inherited.value(fence::VARIABLE)) {
            Ok(true) => {}
            Ok(false) => {
                let why = "the leader that ordered it was replaced";
                Line::Revoked { why: why.to_owned(), at: started }.encode(&mut shim.lines);
                // Unwritten it is as good as a shim that never came.
                let _ = claim.append(&shim.lines);
                shim.lines.clear();
                return Err(why.to_owned());
            }
            Err(error) => return Err(format!("nobody can tell whose order it is: {error}")),
        }
        let spec = load(source)?;
        let town = spec.variable("YM_TOWN").map(ToOwned::to_owned);
        shim.lines.clear();
        let group = shim.group.as_ref().map(|group| group.to_string_lossy().into_owned());
        let realm = shim.realm.clone();
        if realm.is_some() {
            claim.share();
        }
        Line::Claimed { shim: std::process::id(), at: started, town, group, realm }.encode(&mut shim.lines);
        let written = claim.append(&shim.lines);
        shim.lines.clear();
        written.map_err(|e| format!("the claim cannot be written: {e}"))?;
        Ok((claim, spec))
    });
    let (claim, spec) = match taken {
        Ok(taken) => taken,
        Err(why) => {
            shim.frames.clear();
            let frame = FromShim::Refused { dispatch, why };
            if wire::encode(&frame, &mut shim.frames).is_ok() {
                shim.link.deliver(&mut shim.frames, run_dir);
            }
            return Verdict::Refused;
        }
    };
    let log = Log::new(spec.log.clone(), spec.log_cap);
    let began = boot_millis();
    let hard_cap = spec.hard_cap.map(|cap| began.saturating_add(cap.0));
    let look_at = shim.realm.is_some().then_some(began);
    let mut run = Run {
        shim,
        dispatch,
        directory: run_dir,
        claim,
        log,
        started,
        began,
        meter: Meter::of_session(spec.session.clone()),
        meter_at: None,
        metered_at: None,
        line_at: None,
        lined_at: None,
        yield_wanted: false,
        grace: spec.kill_grace,
        hard_cap,
        flush_at: None,
        look_at,
        flushed: false,
        cause: None,
        note: None,
        kill_at: None,
        groups: Vec::new(),
        alone: true,
        abandoned: false,
        reads_keys: false,
        worktree: None,
    };
    let end = match run.enter(&spec) {
        Ok(inside) => run.steps(&inside),
        Err(end) => end,
    };
    // What is ended now was left running by a worker that came to its own end.
    let came_to_its_end = run.cause.is_none();
    run.end_leftovers();
    let end = run.leave(end, &spec, came_to_its_end);
    run.finish(end)
}

fn load(source: SpecSource) -> Result<RunSpec, String> {
    match source {
        SpecSource::Inline(spec) => Ok(spec),
        SpecSource::File(path) => {
            let text = std::fs::read(&path).map_err(|e| format!("the order cannot be read: {e}"))?;
            let spec = serde_json::from_slice(&text).map_err(|e| format!("the order is damaged: {e}"))?;
            // It is ours now; a copy left behind does no harm.
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_file(super::environment_file(&path));
            Ok(spec)
        }
    }
}

/// How the steps came out.
pub(super) enum End {
    /// The last program that ran, and how it ended.
    Ran(Option<String>, Outcome),
    /// A later step's program could not be run.
    ExecFailed(String, String),
    /// The first program could not be run.
    StartFailed(String),
    /// No process could be made: nothing is wrong with the order.
    NoProcess(String),
    /// All went well, but the work cannot be put on its branch.
    Unfinished(String),
}

/// A dispatch under way.
pub(super) struct Run<'a> {
    pub(super) shim: &'a mut Shim,
    pub(super) dispatch: DispatchId,
    /// Where `reports.sock` is.
    pub(super) directory: &'a Path,
    pub(super) claim: Held,
    pub(super) log: Log,
    pub(super) started: Timestamp,
    /// The same by a clock that nobody sets.
    began: u64,
    /// What the output tells about cost and session.
    pub(super) meter: Meter,
    /// When something it told is to be passed on.
    pub(super) meter_at: Option<u64>,
    /// When something was passed on last.
    metered_at: Option<u64>,
    /// When the last line of its output is to be passed on.
    pub(super) line_at: Option<u64>,
    /// When one of this step was last.
    lined_at: Option<u64>,
    /// It should give way between two steps.
    pub(super) yield_wanted: bool,
    pub(super) grace: Millis,
    pub(super) hard_cap: Option<u64>,
    /// When waiting lines and frames must go out.
    pub(super) flush_at: Option<u64>,
    /// When it looks for requests in its claim without being told to, if nobody may be able to tell it.
    pub(super) look_at: Option<u64>,
    /// Whether some did before the end.
    pub(super) flushed: bool,
    /// Why it ends, once that is decided: the first cause counts.
    pub(super) cause: Option<ExitCause>,
    pub(super) note: Option<String>,
    /// When everything left gets SIGKILL.
    pub(super) kill_at: Option<u64>,
    /// Process groups of the programs started.
    pub(super) groups: Vec<u32>,
    /// There are no children.
    pub(super) alone: bool,
    /// Only processes that we may not end are left.
    pub(super) abandoned: bool,
    /// The worktree it works in.
    pub(super) worktree: Option<Worktree>,
    /// The program that runs reads what is typed in the window.
    pub(super) reads_keys: bool,
}

impl Run<'_> {
    fn steps(&mut self, spec: &RunSpec) -> End {
        let environment = match Environment::new(&self.shim.inherited, spec) {
            Ok(environment) => environment,
            Err(why) => return End::StartFailed(why),
        };
        let mut end = End::Ran(None, Outcome { code: Some(0), signal: None });
        for (index, step) in spec.steps.iter().enumerate().skip(spec.first_step) {
            let first = index == spec.first_step;
            let step_id = step.id.clone();
            let pid = match self.start(step, spec, &environment) {
                Ok(pid) => pid,
                Err((Stage::Fork, why)) if first => return End::NoProcess(why),
                Err((_, why)) if first => return End::StartFailed(why),
                Err((_, why)) => return End::ExecFailed(step.id.clone(), why),
            };
            let at = now();
            self.note_line(&Line::Running { pid, step: step.id.clone(), at });
            if first {
                self.note_frame(&FromShim::Running { dispatch: self.dispatch.clone(), pid, at });
                if self.shim.link.socket().is_none() {
                    // Whoever asked before our claim named us could not signal us.
                    self.look_for_requests();
                }
            }
            let deadline = step.timeout.map(|t| boot_millis().saturating_add(t.0));
            let outcome = self.watch(Some(pid), deadline);
            if step.agent.is_some() {
                self.take_output(64);
                self.meter.end_program(outcome.code);
            }
            // Some agents exit well although their service refused.
            let well = outcome.code == Some(0) && self.cause.is_none() && self.meter.refusal().is_none();
            end = End::Ran(Some(step.id.clone()), outcome);
            if !well {
                break;
            }
            if index + 1 < spec.steps.len() {
                let at = now();
                self.note_line(&Line::Step { id: step.id.clone(), at });
                let (dispatch, step) = (self.dispatch.clone(), step.id.clone());
                self.note_frame(&FromShim::StepDone { dispatch, step, at });
                self.shim.link.fill();
                self.hear();
                if self.shim.link.socket().is_none() {
                    // The word is in the claim long before its signal gets here, if a controller passes that on.
                    self.look_for_requests();
                }
                if self.cause.is_some() {
                    break;
                }
                if self.yield_wanted {
                    self.cause = Some(ExitCause::Yielded);
                    return End::Ran(Some(step_id), Outcome { code: Some(YIELDED), signal: None });
                }
            }
        }
        end
    }

    pub(super) fn start(
        &mut self,
        step: &StepSpec,
        spec: &RunSpec,
        environment: &Environment,
    ) -> Result<u32, (Stage, String)> {
        self.take_output(16);
        self.meter.begin(step.agent.clone());
        (self.line_at, self.lined_at) = (None, None);
        let mut step = step.clone();
        if let (Some(agent), Some(session)) = (&step.agent, self.meter.session()) {
            let place = step.argv.len().saturating_sub(step.tail);
            step.argv.splice(place..place, agent.resuming(session));
        }
        let program = Program::new(&step, environment)?;
        let Shim { window, output: (_, output), null, spawner, .. } = &mut *self.shim;
        if let Some(window) = window {
            window.reset(output);
        }
        self.reads_keys = window.is_some() && program.stdin.is_none();
        let stdin = match &program.stdin {
            Some(text) => text.as_fd(),
            None if window.is_some() => output.as_fd(),
            None => null.as_fd(),
        };
        let launch = Launch {
            candidates: &program.candidates,
            argv: &program.argv,
            env: &environment.entries,
            cwd: &environment.cwd,
            stdin,
            output: output.as_fd(),
            terminal: window.is_some().then(|| output.as_fd()),
        };
        let spawned = spawner.spawn(&launch);
        let pid = spawned.map_err(|e| {
            // A program that cannot be loaded for want of memory is as good as a process that cannot be made.
            let stage = if is_shortage(e.errno) { Stage::Fork } else { e.stage };
            (stage, program.explain(e, &spec.cwd))
        })?;
        self.groups.push(pid);
        self.alone = false;
        Ok(pid)
    }

    pub(super) fn note_line(&mut self, line: &Line) {
        line.encode(&mut self.shim.lines);
        self.flush_at.get_or_insert(boot_millis() + TOGETHER);
    }

    pub(super) fn note_frame(&mut self, frame: &FromShim) {
        // Only texts and numbers: always JSON.
        let _ = wire::encode(frame, &mut self.shim.frames);
    }

    /// Tells what the output told.
    pub(super) fn note_meter(&mut self) {
        let (Bill { usd, tokens }, session) = (self.meter.bill(), self.meter.session());
        let (dispatch, session, time) = (self.dispatch.clone(), session.cloned(), boot_millis());
        let line_is_due = self.line_at.is_some_and(|at| at <= time);
        let line = self.meter.last_line().filter(|_| line_is_due).map(ToOwned::to_owned);
        self.note_frame(&FromShim::Metered { dispatch, usd, tokens, session, line });
        self.flush_at.get_or_insert(time + TOGETHER);
        (self.meter_at, self.metered_at) = (None, Some(time));
        if line_is_due {
            (self.line_at, self.lined_at) = (None, Some(time));
        }
    }

    /// There is something to tell, at once or when the last time is long enough ago: who writes a thousand figures a
    /// second is not worth as many events.
    pub(super) fn meter_soon(&mut self) {
        let earliest = self.metered_at.map_or(0, |last| last + METER_EVERY);
        self.meter_at.get_or_insert(earliest.max(boot_millis()));
    }

    /// There is another last line.
    pub(super) fn line_soon(&mut self) {
        let earliest = self.lined_at.map_or(0, |last| last + LINE_EVERY);
        self.line_at.get_or_insert(earliest.max(boot_millis() + FIRST_LINE));
    }

    pub(super) fn flush(&mut self) {
        self.flush_at = None;
        self.flushed = true;
        // Lost lines cost detail, not truth: the claim is taken.
        let _ = self.claim.append(&self.shim.lines);
        self.shim.lines.clear();
        self.shim.link.deliver(&mut self.shim.frames, self.directory);
    }

    /// Writes the last line, releases the lock, tells the daemon.
    fn finish(mut self, end: End) -> Verdict {
        let at = now();
        let dispatch = self.dispatch.clone();
        let (line, frame) = match end {
            End::Ran(step, outcome) => {
                let cause = self.cause.unwrap_or(ExitCause::Exit);
                let Outcome { code, signal } = outcome;
                let note = self.note.take();
                let refusal = self.meter.refusal().filter(|_| cause == ExitCause::Exit);
                let unavailable = refusal.map(ToOwned::to_owned);
                let exit = ExitRecord { code, signal, step, cause, unavailable, note, ..self.record(at) };
                (Line::Exit(exit.clone()), FromShim::Ended { dispatch, exit })
            }
            End::ExecFailed(step, why) => {
                let exit = ExitRecord {
                    code: Some(127),
                    step: Some(step),
                    cause: ExitCause::ExecFailed,
                    note: Some(why),
                    ..self.record(at)
                };
                (Line::Exit(exit.clone()), FromShim::Ended { dispatch, exit })
            }
            End::Unfinished(why) => {
                let cause = ExitCause::Unfinished;
                let exit = ExitRecord { code: Some(1), cause, note: Some(why), ..self.record(at) };
                (Line::Exit(exit.clone()), FromShim::Ended { dispatch, exit })
            }
            End::StartFailed(error) => {
                (Line::Failed { error: error.clone(), at }, FromShim::StartFailed { dispatch, error })
            }
            End::NoProcess(why) => {
                (Line::Revoked { why: why.clone(), at }, FromShim::Refused { dispatch, why })
            }
        };
        self.note_line(&line);
        self.note_frame(&frame);
        self.write_record();
        let Self { shim, claim, directory, log, flushed, abandoned, .. } = self;
        // From here on the dispatch is over for everyone who looks.
        drop(claim);
        shim.link.deliver(&mut shim.frames, directory);
        if abandoned || shim.link.socket().is_none() {
            return Verdict::NotReusable;
        }
        if flushed || log.used() {
            // Somebody may have passed the old pipe on; it must not reach the next dispatch's log.
            match sys::output_pipe() {
                Ok(pipe) => shim.output = pipe,
                Err(_) => return Verdict::NotReusable,
            }
        }
        Verdict::Done
    }

    /// What every exit record says, whatever the end was.
    fn record(&self, ended_at: Timestamp) -> ExitRecord {
        let Bill { usd, tokens } = self.meter.bill();
        ExitRecord {
            code: None,
            signal: None,
            step: None,
            cause: ExitCause::Exit,
            started_at: self.started,
            ended_at,
            active: Some(Millis(boot_millis().saturating_sub(self.began))),
            usd,
            tokens,
            session: self.meter.session().cloned(),
            worktree: self.worktree.clone().map(Box::new),
            unavailable: None,
            note: None,
        }
    }

    /// An exit that is not recorded would count as a crash, so a full disk is waited for, within reason.
    fn write_record(&mut self) {
        for _ in 0..RECORD_TRIES {
            match self.claim.append(&self.shim.lines) {
                Err(e) if e.kind() == io::ErrorKind::StorageFull => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                _ => break,
            }
        }
        self.shim.lines.clear();
    }
}
