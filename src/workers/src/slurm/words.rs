//! The words of Slurm: how jobs stand, what a refusal means, how many processors are free. Reading only.

use std::collections::HashMap;

use yard_engine::DispatchId;

use super::JobNames;
use crate::record::SlurmEnd;

/// Words by which Slurm says that its controller did not answer, rather than that it refuses a job.
const SILENCE: [&str; 20] = [
    "unable to contact slurm controller",
    "unable to establish",
    "controller not responding",
    "connection refused",
    "connection timed out",
    "reset by peer",
    "broken pipe",
    "no route to host",
    "network is unreachable",
    "connect failure",
    "connection failure",
    "shutdown failure",
    "receive failure",
    "send failure",
    "socket timed out",
    "zero bytes were transmitted",
    "unexpected message received",
    "transport endpoint",
    "in standby mode",
    "does not answer",
];

/// Words by which it says that it is short of something for now: no job is at fault. The last two are a limit on how many
/// jobs somebody may have there (`AssocMaxSubmitJobLimit` and its like), and a partition that is closed for a while.
const SHORTAGE: [&str; 6] = [
    "temporarily unable to accept job",
    "authentication error",
    "authentication credential",
    "munge",
    "submitjob",
    "inactive or drain",
];

/// How Slurm says that a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// It waits for its turn.
    Waiting,
    /// It has a node, or is not yet quite gone.
    Running,
    /// It came to its end by itself: nothing of it is left.
    Ended,
    /// Slurm ended it: nothing of it is left.
    EndedBySlurm(SlurmEnd),
}

impl JobState {
    /// The state of this name. What nobody knows counts as running, because only what is certainly gone may be tried anew.
    fn read(word: &str) -> Self {
        match word {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "RESV_DEL_HOLD" | "SPECIAL_EXIT" => {
                Self::Waiting
            }
            "COMPLETED" | "FAILED" => Self::Ended,
            "TIMEOUT" => Self::EndedBySlurm(SlurmEnd::TimeLimit),
            "OUT_OF_MEMORY" => Self::EndedBySlurm(SlurmEnd::OutOfMemory),
            "PREEMPTED" => Self::EndedBySlurm(SlurmEnd::Preempted),
            "NODE_FAIL" | "BOOT_FAIL" => Self::EndedBySlurm(SlurmEnd::NodeFailed),
            "CANCELLED" | "DEADLINE" | "REVOKED" => Self::EndedBySlurm(SlurmEnd::Cancelled),
            _ => Self::Running,
        }
    }

    /// Whether something of it is left, or still to come.
    pub(crate) fn is_live(self) -> bool {
        match self {
            Self::Waiting | Self::Running => true,
            Self::Ended | Self::EndedBySlurm(_) => false,
        }
    }
}

/// A town's jobs, as Slurm sees them.
pub(crate) type Jobs = HashMap<DispatchId, JobState>;

/// The jobs of a town among lines of state and name.
pub(super) fn read_jobs(text: &str, names: &JobNames) -> Jobs {
    let mut jobs = Jobs::new();
    for line in text.lines() {
        let Some((word, name)) = line.split_once('|') else { continue };
        let Some(dispatch) = names.dispatch(name.trim()) else { continue };
        let state = JobState::read(word.trim());
        // Of two with one name the live one counts: as long as it is there, nothing may be tried anew.
        let known = jobs.entry(dispatch).or_insert(state);
        if state.is_live() {
            *known = state;
        }
    }
    jobs
}

/// Why Slurm did not take a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// It is not as Slurm wants it, or there is no Slurm.
    Refused(String),
    /// It would be taken at another time.
    Short(String),
    /// Slurm did not answer: nobody knows whether it has the job.
    Unanswered(String),
}

impl NotTaken {
    pub(super) fn read(complaint: &str) -> Self {
        let words = complaint.to_lowercase();
        let said = |list: &[&str]| list.iter().any(|it| words.contains(it));
        let told = last_complaint(complaint);
        if said(&SILENCE) {
            return Self::Unanswered(format!("Slurm does not answer: {told}"));
        }
        if said(&SHORTAGE) {
            return Self::Short(format!("Slurm does not take the job now: {told}"));
        }
        Self::Refused(format!("Slurm refuses the job: {told}"))
    }
}

/// The sentence in which a command of Slurm's says what is wrong.
pub(super) fn last_complaint(text: &str) -> &str {
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it does not say why").trim();
    line.split_once("error: ").map_or(line, |(_, said)| said)
}

/// Free processors, from lines of a partition and its processors: allocated, idle, other and all. If none was named, those
/// of the default one, which has a star.
pub(super) fn read_idle(text: &str, is_named: bool) -> Option<u64> {
    let lines = text.lines().filter_map(|line| {
        let (partition, processors) = line.trim().split_once('|')?;
        let idle = processors.split('/').nth(1)?.parse().ok()?;
        (is_named || partition.ends_with('*')).then_some(idle)
    });
    lines.max()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn id(text: &str) -> DispatchId {
        DispatchId::parse(text).expect("an id")
    }

    #[test]
    fn jobs_of_others_and_odd_lines_are_passed_over() {
        let names = JobNames::of(Path::new("/town"));
        let ours = |text: &str| names.name(&id(text));
        let text = format!(
            "PENDING|{}\nRUNNING|interactive | bash\nCOMPLETED|{}\n\nTIMEOUT\nNODE_FAIL|{}\nCOMPLETING|{}\n",
            ours("gt-a@1"),
            ours("gt-b@1"),
            ours("gt-c@2"),
            ours("gt-d@1"),
        );
        let jobs = read_jobs(&text, &names);
        assert_eq!(jobs.len(), 4);
        assert_eq!(jobs[&id("gt-a@1")], JobState::Waiting);
        assert_eq!(jobs[&id("gt-b@1")], JobState::Ended);
        assert_eq!(jobs[&id("gt-c@2")], JobState::EndedBySlurm(SlurmEnd::NodeFailed));
        assert!(jobs[&id("gt-d@1")].is_live(), "what is being wound up is not gone");
    }

    #[test]
    fn of_two_jobs_with_one_name_the_live_one_counts() {
        let names = JobNames::of(Path::new("/town"));
        let name = names.name(&id("gt-a@1"));
        for text in
            [format!("CANCELLED|{name}\nRUNNING|{name}\n"), format!("RUNNING|{name}\nFAILED|{name}\n")]
        {
            assert_eq!(read_jobs(&text, &names)[&id("gt-a@1")], JobState::Running);
        }
    }

    #[test]
    fn a_state_that_nobody_knows_is_not_an_end() {
        assert!(JobState::read("SOMETHING_NEW").is_live());
        for gone in ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL"]
        {
            assert!(!JobState::read(gone).is_live(), "{gone}");
        }
    }

    #[test]
    fn a_silent_controller_is_told_from_a_refused_job() {
        let silent = [
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            "sbatch: error: Batch job submission failed: Connection reset by peer",
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            "its server does not answer",
        ];
        let short = [
            "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
            "sbatch: error: Batch job submission failed: Protocol authentication error",
            "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates \
             accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "sbatch: error: Batch job submission failed: Required partition not available (inactive or drain)",
        ];
        for text in silent {
            assert!(matches!(NotTaken::read(text), NotTaken::Unanswered(_)), "{text}");
        }
        for text in short {
            assert!(matches!(NotTaken::read(text), NotTaken::Short(_)), "{text}");
        }
        let refused = "sbatch: error: invalid partition specified: x\n\
                       sbatch: error: Batch job submission failed: Invalid partition name specified";
        let words = "Slurm refuses the job: Batch job submission failed: Invalid partition name specified";
        assert_eq!(NotTaken::read(refused), NotTaken::Refused(words.to_owned()));
    }

    #[test]
    fn the_free_processors_of_the_right_partition_count() {
        let text = "main*|1/15/0/16\nbig|0/640/0/640\nodd\n";
        assert_eq!(read_idle(text, false), Some(15));
        assert_eq!(read_idle("big|8/0/0/8\n", true), Some(0));
        assert_eq!(read_idle("main*|n/a\n", false), None);
        assert_eq!(read_idle("", true), None);
    }
}
