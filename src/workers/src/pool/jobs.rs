//! Following the dispatches whose shims a cluster makes.
//!
//! Their claims are the truth, and are looked at often, because a shim on another node cannot call. What Slurm says, asked
//! once for all jobs, is a hint: it tells when a claim that nobody has taken may be revoked, when a shim that died is no
//! longer worth waiting for, and why Slurm ended what we did not. While it says nothing, nothing is concluded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use yard_engine::DispatchId;

use super::attend::Shared;
use super::settle::{self, Finding};
use super::table::Table;
use super::verdict::{Verdict, asks_why, ended_by_slurm, judge, why_start_failed, why_untaken};
use super::window::is_over;
use crate::claim;
use crate::record::{SlurmEnd, Story};
use crate::report::WorkerReport;
use crate::slurm::{self, JobNames, JobState, Jobs};
use crate::sys::now;

/// How often claims are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often Slurm is asked, while there is a job.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// How often a job that does not obey is called off.
const CALL_OFF_EVERY: Duration = Duration::from_secs(30);

/// The ways to the threads that deal with a cluster.
pub(super) struct Lines {
    follower: Sender<Sight>,
    errands: Sender<Errand>,
    /// So many words to the controller are still to be passed on.
    unsaid: Arc<AtomicUsize>,
}

/// What comes to the one who follows the jobs.
pub(super) enum Sight {
    /// There is something to follow.
    Wake,
    /// The claim of this one may hold news.
    News(DispatchId),
    /// How the jobs stood when Slurm was asked, or why it does not say.
    Seen(Result<Jobs, String>, Instant),
}

/// Something to be done through the controller.
pub(super) enum Errand {
    /// Ask how the jobs stand.
    Look,
    /// Tell a shim to look into its claim.
    Signal(DispatchId),
    /// Call a job off.
    Cancel(DispatchId),
}

impl Table {
    /// Tells whoever follows the jobs.
    pub(super) fn tell_follower(&self, sight: Sight) {
        if let Some(lines) = &self.cluster {
            // Without a follower there is no job either.
            let _ = lines.follower.send(sight);
        }
    }

    /// Whether there is a job to follow, or somebody wants to know how much room there is.
    fn has_to_do_with_cluster(&self) -> bool {
        !self.jobs.is_empty() || self.room.wanted.is_some()
    }

    /// Has something done through the controller.
    pub(super) fn run_errand(&self, errand: Errand) {
        if let Some(lines) = &self.cluster {
            lines.unsaid.fetch_add(1, Ordering::Relaxed);
            let _ = lines.errands.send(errand);
        }
    }
}

impl Shared {
    /// The last word to a job that does not obey; `false` if it is none.
    pub(super) fn call_job_off(&self, dispatch: &DispatchId) -> bool {
        let mut table = self.table();
        if !table.jobs.contains_key(dispatch) {
            return false;
        }
        table.run_errand(Errand::Cancel(dispatch.clone()));
        table.be_patient(dispatch, Instant::now() + CALL_OFF_EVERY);
        true
    }

    /// Why Slurm ended a job, if nobody here had asked for that.
    pub(super) fn end_by_slurm(&self, dispatch: &DispatchId) -> Option<SlurmEnd> {
        let end = self.table().jobs.get(dispatch).and_then(|job| job.end);
        let unasked = || {
            let story = claim::peek(&self.claim(dispatch)).ok().flatten();
            story.is_some_and(|story| story.stop.is_none())
        };
        match end {
            Some(JobState::EndedBySlurm(end)) if unasked() => Some(end),
            Some(JobState::EndedBySlurm(_) | JobState::Ended | JobState::Waiting | JobState::Running)
            | None => None,
        }
    }
}

/// Starts the threads, which end when the table lets go of the lines. The answer tells how many words to the controller are
/// still to be passed on.
pub(super) fn start(shared: &Arc<Shared>, names: JobNames) -> io::Result<Arc<AtomicUsize>> {
    let (follower, sights) = mpsc::channel();
    let (errands, orders) = mpsc::channel();
    let (following, running, own_errands) = (Arc::clone(shared), Arc::clone(shared), errands.clone());
    let thread = std::thread::Builder::new().name("ym-jobs".to_owned());
    thread.spawn(move || follow(&following, &sights, &own_errands))?;
    let thread = std::thread::Builder::new().name("ym-slurm".to_owned());
    let unsaid = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&unsaid);
    thread.spawn(move || {
        while let Ok(errand) = orders.recv() {
            let is_word = !matches!(errand, Errand::Look);
            run(&running, &names, errand);
            left.fetch_sub(usize::from(is_word), Ordering::Relaxed);
        }
    })?;
    shared.table().cluster = Some(Lines { follower, errands, unsaid: Arc::clone(&unsaid) });
    Ok(unsaid)
}

/// Runs an errand. What the controller did not hear is tried again when it answers.
fn run(shared: &Shared, names: &JobNames, errand: Errand) {
    match errand {
        Errand::Look => {
            let asked = Instant::now();
            let seen = slurm::jobs(names);
            let wanted = shared.table().room.wanted.clone();
            let free = wanted.and_then(|wanted| slurm::room(&wanted).ok());
            let mut table = shared.table();
            if let (Ok(jobs), Some(free)) = (&seen, free) {
                // Those that wait there have no processors yet.
                let have = jobs.values().filter(|state| **state == JobState::Running).count() as u64;
                table.room.seen = Some(free.saturating_add(have));
                shared.waker.wake();
            }
            if let Some(lines) = &table.cluster {
                let _ = lines.follower.send(Sight::Seen(seen, asked));
            }
        }
        Errand::Signal(dispatch) => {
            let heard = slurm::signal(&names.name(&dispatch)).is_ok();
            if let Some(job) = shared.table().jobs.get_mut(&dispatch) {
                job.to_signal = !heard;
            }
        }
        Errand::Cancel(dispatch) => {
            let heard = slurm::cancel(&names.name(&dispatch)).is_ok();
            if let Some(job) = shared.table().jobs.get_mut(&dispatch) {
                job.to_cancel = !heard;
            }
        }
    }
}

/// The life of the thread that follows jobs.
fn follow(shared: &Arc<Shared>, sights: &Receiver<Sight>, errands: &Sender<Errand>) {
    let (mut asked, mut looked): (Option<Instant>, Option<Instant>) = (None, None);
    let mut is_asking = false;
    loop {
        let rest = looked.map_or(Duration::ZERO, |looked| LOOK_EVERY.saturating_sub(looked.elapsed()));
        let first = if shared.table().has_to_do_with_cluster() {
            sights.recv_timeout(rest)
        } else {
            sights.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        let first = match first {
            Ok(sight) => Some(sight),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let mut due = Vec::new();
        for sight in first.into_iter().chain(sights.try_iter()) {
            match sight {
                Sight::Wake => {}
                Sight::News(dispatch) => due.push(dispatch),
                Sight::Seen(seen, at) => {
                    (is_asking, looked) = (false, None);
                    note(shared, seen, at);
                }
            }
        }
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            due = shared.table().jobs.keys().cloned().collect();
            looked = Some(Instant::now());
        }
        let mut is_urgent = false;
        for dispatch in &due {
            is_urgent |= look_at(shared, dispatch);
        }
        let often = if is_urgent { LOOK_EVERY } else { ASK_EVERY };
        let is_time = asked.is_none_or(|asked| asked.elapsed() >= often);
        if is_time && !is_asking && shared.table().has_to_do_with_cluster() {
            (asked, is_asking) = (Some(Instant::now()), true);
            let _ = errands.send(Errand::Look);
        }
    }
}

/// Notes what Slurm said, asked at that time, and does again what it did not hear before.
fn note(shared: &Shared, seen: Result<Jobs, String>, asked: Instant) {
    let mut table = shared.table();
    let Ok(seen) = seen else {
        // What nobody knows was not seen to be unknown either.
        table.jobs.values_mut().for_each(|job| (job.unknown_since, job.is_missing) = (None, false));
        return;
    };
    let mut again = Vec::new();
    for (dispatch, job) in &mut table.jobs {
        if job.handed_over.is_none_or(|at| at > asked) {
            continue;
        }
        job.learn(seen.get(dispatch).copied(), asked);
        if std::mem::take(&mut job.to_signal) {
            again.push(Errand::Signal(dispatch.clone()));
        }
        if std::mem::take(&mut job.to_cancel) {
            again.push(Errand::Cancel(dispatch.clone()));
        }
    }
    // What was called off while nobody heard it would only take a place in Slurm's queue.
    let waiting = seen.into_iter().filter(|(_, state)| *state == JobState::Waiting);
    let leftover = waiting.map(|(dispatch, _)| dispatch).filter(|id| !table.jobs.contains_key(id));
    again.extend(leftover.filter(|id| is_over(&shared.claim(id))).map(Errand::Cancel));
    for errand in again {
        table.run_errand(errand);
    }
}

/// Looks into the claim of a job, passes on what is new and settles what is over. The answer is whether an end waits for
/// Slurm's word.
fn look_at(shared: &Arc<Shared>, dispatch: &DispatchId) -> bool {
    let path = shared.claim(dispatch);
    let story = match claim::peek(&path) {
        Ok(Some(story)) => story,
        Ok(None) => {
            shared.close_books(dispatch);
            return false;
        }
        Err(_) => return false,
    };
    let (verdict, end) = {
        let mut table = shared.table();
        let Some(job) = table.jobs.get_mut(dispatch) else { return false };
        if story.exit.is_some() {
            job.over_since.get_or_insert_with(Instant::now);
        }
        (judge(&story, job), job.end)
    };
    tell(shared, dispatch, &story);
    match verdict {
        Verdict::Wait => return story.exit.is_some(),
        Verdict::Settle => settle(shared, dispatch, &story, end),
        Verdict::Doubt => {
            if settle::is_held(&path).is_ok_and(|held| !held) {
                shared.bury(dispatch.clone(), "its job is gone".to_owned());
            }
        }
    }
    false
}

/// Passes on what the claim says and was not told before.
fn tell(shared: &Shared, dispatch: &DispatchId, story: &Story) {
    let mut reports = Vec::new();
    {
        let mut table = shared.table();
        let Table { jobs, live, .. } = &mut *table;
        let (Some(job), Some(live)) = (jobs.get_mut(dispatch), live.get_mut(dispatch)) else { return };
        if let Some(worktree) = &story.worktree
            && job.told_worktree.as_ref() != Some(worktree)
        {
            job.told_worktree = Some(worktree.clone());
            let worktree = Box::new(worktree.clone());
            reports.push(WorkerReport::Isolated { dispatch: dispatch.clone(), worktree });
        }
        if let Some((pid, at)) = story.running.filter(|_| !job.told_running) {
            job.told_running = true;
            live.running = story.running;
            reports.push(WorkerReport::Running { dispatch: dispatch.clone(), pid, at });
        }
        for step in story.steps.iter().skip(job.told_steps) {
            reports.push(WorkerReport::StepDone {
                dispatch: dispatch.clone(),
                step: step.clone(),
                at: now(),
            });
        }
        job.told_steps = story.steps.len();
    }
    if !reports.is_empty() {
        reports.into_iter().for_each(&shared.report);
        shared.waker.wake();
    }
}

/// Reports the end of a job, as far as its claim is free to tell.
fn settle(shared: &Shared, dispatch: &DispatchId, story: &Story, end: Option<JobState>) {
    let why = "Slurm has no such job any more";
    let dispatch = dispatch.clone();
    let report = match settle::examine(&shared.claim(&dispatch), why) {
        Ok(Finding::Ended(exit)) => {
            let exit = match end {
                Some(JobState::EndedBySlurm(end)) if asks_why(story) => ended_by_slurm(exit, end),
                Some(_) | None => exit,
            };
            WorkerReport::Ended { dispatch, exit }
        }
        Ok(Finding::StartFailed(error)) => WorkerReport::StartFailed { dispatch, error },
        Ok(Finding::Revoked) => {
            let failed_start = end.filter(|_| *story == Story::default()).and_then(why_start_failed);
            let why = match end {
                _ if story.revoked => "nothing could be started where it was to run",
                Some(JobState::EndedBySlurm(end)) => why_untaken(end),
                Some(JobState::Ended | JobState::Waiting | JobState::Running) | None => why,
            };
            match failed_start {
                Some(error) => WorkerReport::StartFailed { dispatch, error: error.to_owned() },
                None => WorkerReport::NeverRan { dispatch, why: why.to_owned() },
            }
        }
        Ok(Finding::Absent) => {
            shared.close_books(&dispatch);
            return;
        }
        Ok(Finding::Alive(_) | Finding::Died(_)) | Err(_) => return,
    };
    shared.tell_end(report);
    shared.waker.wake();
}
