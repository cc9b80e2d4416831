//! What a job's claim and Slurm's word say together. Nothing here looks or asks; it only judges.

use std::time::{Duration, Instant};

use yard_engine::money::Usd;

use super::table::Job;
use crate::record::{ExitCause, ExitRecord, SlurmEnd, Story, YIELDED};
use crate::report::WorkerReport;
use crate::slurm::JobState;
use crate::sys::now;

/// How long Slurm must not know a job before it counts as gone: a controller that has just taken one may show it late.
const LONG_UNKNOWN: Duration = Duration::from_secs(10);
/// How long an end waits for Slurm's word on why it came.
const WORD_PATIENCE: Duration = Duration::from_secs(15);

impl Job {
    /// Takes in what Slurm said of it when it was asked at that time.
    pub(super) fn learn(&mut self, state: Option<JobState>, asked: Instant) {
        let Some(state) = state else {
            let since = *self.unknown_since.get_or_insert(asked);
            self.is_missing = asked.saturating_duration_since(since) >= LONG_UNKNOWN;
            return;
        };
        (self.unknown_since, self.is_missing) = (None, false);
        self.end = Some(state).filter(|state| !state.is_live());
    }

    /// Whether nothing more is to be expected of it.
    fn is_gone(&self) -> bool {
        self.end.is_some() || self.is_missing
    }
}

/// What is to be done about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing yet.
    Wait,
    /// Its claim tells how it ended, or may be revoked.
    Settle,
    /// Its shim may have died without a word.
    Doubt,
}

/// What its claim and Slurm say together.
pub(super) fn judge(story: &Story, job: &Job) -> Verdict {
    if story.exit.is_some() || story.failed.is_some() || story.revoked {
        let is_late = job.over_since.is_some_and(|since| since.elapsed() >= WORD_PATIENCE);
        let waits = asks_why(story) && !job.is_gone() && !is_late;
        return if waits { Verdict::Wait } else { Verdict::Settle };
    }
    match (job.is_gone(), story.shim) {
        (false, _) => Verdict::Wait,
        (true, None) => Verdict::Settle,
        (true, Some(_)) => Verdict::Doubt,
    }
}

/// Whether Slurm may know better why it ended: it came to no good end, and nobody here had asked for that. Slurm signals
/// programs as well as their shim, so their exits look like their own.
pub(super) fn asks_why(story: &Story) -> bool {
    let Some(exit) = &story.exit else { return false };
    let has_its_reason = exit.code == Some(YIELDED) || exit.unavailable.is_some();
    let came_to_no_good = match exit.cause {
        ExitCause::Stopped => true,
        ExitCause::Exit => exit.code != Some(0) && !has_its_reason,
        ExitCause::Timeout
        | ExitCause::HardCap
        | ExitCause::ExecFailed
        | ExitCause::Yielded
        | ExitCause::Unfinished
        | ExitCause::Slurm(_) => false,
    };
    story.stop.is_none() && came_to_no_good
}

/// Why a job that ended before a shim had even looked into its claim counts as a start that failed. What Slurm or a person
/// put an end to would come to the same end again and again if it did not count; what made way for other work, or was on a
/// node that failed, may have better luck.
pub(super) fn why_start_failed(end: JobState) -> Option<&'static str> {
    match end {
        JobState::Ended => {
            Some("its Slurm job ended before it began: can the node run ym, and see the town's folder?")
        }
        JobState::EndedBySlurm(end @ (SlurmEnd::Cancelled | SlurmEnd::TimeLimit | SlurmEnd::OutOfMemory)) => {
            Some(why_untaken(end))
        }
        JobState::EndedBySlurm(SlurmEnd::Preempted | SlurmEnd::NodeFailed)
        | JobState::Waiting
        | JobState::Running => None,
    }
}

/// Why a job ended that nobody had taken.
pub(super) fn why_untaken(end: SlurmEnd) -> &'static str {
    match end {
        SlurmEnd::TimeLimit => "its time was over before it began",
        SlurmEnd::OutOfMemory => "it ran out of memory before it began",
        SlurmEnd::Preempted => "Slurm gave its place to other work before it began",
        SlurmEnd::NodeFailed => "its node failed before it began",
        SlurmEnd::Cancelled => "its Slurm job was cancelled before it began",
    }
}

/// An exit that Slurm brought about, under its right name. Whoever tidied up and left has not done the work for that.
pub(super) fn ended_by_slurm(exit: ExitRecord, end: SlurmEnd) -> ExitRecord {
    ExitRecord { cause: ExitCause::Slurm(end), code: exit.code.filter(|code| *code != 0), ..exit }
}

/// The report of a shim that died, in the light of why Slurm ended its job.
pub(super) fn in_the_light_of(report: WorkerReport, end: Option<SlurmEnd>) -> WorkerReport {
    match (report, end) {
        (WorkerReport::Lost { dispatch, why }, Some(end)) => {
            let at = now();
            let exit = ExitRecord {
                code: None,
                signal: None,
                step: None,
                cause: ExitCause::Slurm(end),
                started_at: at,
                ended_at: at,
                active: None,
                usd: Usd::ZERO,
                tokens: 0,
                session: None,
                worktree: None,
                unavailable: None,
                note: Some(why),
            };
            WorkerReport::Ended { dispatch, exit }
        }
        (report, _) => report,
    }
}

#[cfg(test)]
mod tests {
    use yard_engine::DispatchId;

    use super::*;
    use crate::record::Line;

    fn story(lines: &[Line]) -> Story {
        let mut text = Vec::new();
        for line in lines {
            line.encode(&mut text);
        }
        Story::read(&text)
    }

    fn claimed() -> Line {
        Line::Claimed { shim: 7, at: now(), town: None, group: None, realm: None }
    }

    fn exit(cause: ExitCause, signal: Option<i32>) -> Line {
        let lost =
            WorkerReport::Lost { dispatch: DispatchId::parse("gt-a@1").expect("an id"), why: String::new() };
        match in_the_light_of(lost, Some(SlurmEnd::Cancelled)) {
            WorkerReport::Ended { exit, .. } => Line::Exit(ExitRecord { signal, cause, ..exit }),
            other => panic!("{other:?}"),
        }
    }

    /// A job that Slurm did not know when it was asked after so many seconds.
    fn unknown_at(seconds: [u64; 2]) -> Job {
        let begun = Instant::now();
        let mut job = Job::default();
        for seconds in seconds {
            job.learn(None, begun + Duration::from_secs(seconds));
        }
        job
    }

    #[test]
    fn only_what_slurm_does_not_know_for_long_is_given_up() {
        let untaken = Story::default();
        assert_eq!(judge(&untaken, &Job::default()), Verdict::Wait);
        assert_eq!(judge(&untaken, &unknown_at([0, 9])), Verdict::Wait);
        let mut missing = unknown_at([0, 10]);
        assert_eq!(judge(&untaken, &missing), Verdict::Settle);
        assert_eq!(judge(&story(&[claimed()]), &missing), Verdict::Doubt);
        missing.learn(Some(JobState::Waiting), Instant::now());
        assert_eq!(judge(&untaken, &missing), Verdict::Wait);
    }

    #[test]
    fn an_end_that_nobody_here_asked_for_waits_for_slurms_word() {
        let stopped = story(&[claimed(), exit(ExitCause::Stopped, Some(15))]);
        let mut job = Job::default();
        assert_eq!(judge(&stopped, &job), Verdict::Wait);
        job.learn(Some(JobState::EndedBySlurm(SlurmEnd::Preempted)), Instant::now());
        assert_eq!(judge(&stopped, &job), Verdict::Settle);
        let stop = Line::Stop { grace_ms: yard_engine::Millis(1), reason: "x".into(), at: now() };
        let asked = story(&[claimed(), stop, exit(ExitCause::Stopped, Some(15))]);
        assert_eq!(judge(&asked, &Job::default()), Verdict::Settle);
        let Line::Exit(own) = exit(ExitCause::Exit, None) else { panic!("an exit") };
        for (code, verdict) in [(0, Verdict::Settle), (YIELDED, Verdict::Settle), (143, Verdict::Wait)] {
            let ended = Line::Exit(ExitRecord { code: Some(code), ..own.clone() });
            assert_eq!(judge(&story(&[claimed(), ended]), &Job::default()), verdict, "{code}");
        }
    }

    #[test]
    fn what_slurm_ended_is_no_success_and_has_its_reason() {
        let Line::Exit(tidy) = exit(ExitCause::Stopped, None) else { panic!("an exit") };
        let tidy = ExitRecord { code: Some(0), ..tidy };
        for end in [SlurmEnd::TimeLimit, SlurmEnd::OutOfMemory, SlurmEnd::Preempted, SlurmEnd::NodeFailed] {
            let exit = ended_by_slurm(tidy.clone(), end);
            assert_eq!((exit.cause, exit.code), (ExitCause::Slurm(end), None));
        }
    }
}
