//! Having a cluster make the process of a shim. Slurm takes its time, so threads do it, several at once; the pool goes on.
//!
//! Nothing about a job has to be remembered between handing it over and hearing that it was taken: its name says whose it
//! is, and its claim whether it may start. So it may be called off at any moment by revoking the claim.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use yard_engine::slurm::SlurmRequest;
use yard_engine::{DispatchId, Millis};

use super::attend::{self, Shared};
use super::jobs::{self, Errand, Sight};
use super::settle::{self, Finding};
use super::table::{Job, Live, Room};
use super::window::environment;
use super::{LocalPool, spec_path, verdict, write_private};
use crate::claim;
use crate::fence;
use crate::record::Line;
use crate::report::{Recovered, WorkerReport};
use crate::shim::environment_file;
use crate::slurm::{self, JobNames, NotTaken};
use crate::spec::RunSpec;
use crate::sys::now;
use crate::trouble::is_machines_fault;

/// So many jobs are handed over at once: a controller takes several in the time that one command needs to begin.
const HANDS: usize = 4;
/// What a job may need beyond the grace of a stop request before it is called off as a whole: the request travels through
/// the controller and the node.
const JOB_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before the next try when the controller does not answer: twice as long each time it still does not, so
/// that a night without one does not fill the log.
const REST: Duration = Duration::from_secs(2);
/// As long as that at most.
const MOST_REST: Duration = Duration::from_secs(30);
/// How long a pool that ends waits for jobs that are being handed over. Whoever has the town next finds out about the rest.
const HANDS_PATIENCE: Duration = Duration::from_secs(5);
/// How long it waits for the last words to the cluster.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// An order that is still to be handed over.
struct Submission {
    dispatch: DispatchId,
    request: Box<SlurmRequest>,
    spec: RunSpec,
    /// What its programs have beside the variables of the order.
    environment: Vec<u8>,
    argv: Vec<OsString>,
}

/// The threads that deal with a cluster. Dropping them waits a while until what they were given is handed over.
pub(super) struct Cluster {
    shared: Arc<Shared>,
    submissions: Option<Sender<Submission>>,
    hands: Vec<JoinHandle<()>>,
    /// So many words to the controller are still to be passed on.
    unsaid: Arc<AtomicUsize>,
    closing: Arc<AtomicBool>,
}

impl Cluster {
    fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let script = shared.run_dir.join("slurm.sh");
        let fresh = script.with_extension("new");
        write_private(&fresh, slurm::SCRIPT.as_bytes())?;
        std::fs::rename(&fresh, &script)?;
        let names = JobNames::of(&shared.run_dir);
        let (submissions, orders) = mpsc::channel();
        let orders = Arc::new(Mutex::new(orders));
        let closing = Arc::new(AtomicBool::new(false));
        let silences = Arc::new(AtomicU32::new(0));
        let unsaid = jobs::start(shared, names.clone())?;
        let mut cluster = Self {
            shared: Arc::clone(shared),
            submissions: Some(submissions),
            hands: Vec::new(),
            unsaid,
            closing,
        };
        for _ in 0..HANDS {
            let hand = Hand {
                shared: Arc::clone(shared),
                names: names.clone(),
                script: script.clone(),
                closing: Arc::clone(&cluster.closing),
                silences: Arc::clone(&silences),
            };
            let orders = Arc::clone(&orders);
            let thread = std::thread::Builder::new().name("ym-sbatch".to_owned());
            cluster.hands.push(thread.spawn(move || hand.work(&orders))?);
        }
        Ok(cluster)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        self.submissions = None;
        wait_until(HANDS_PATIENCE, || self.hands.iter().all(JoinHandle::is_finished));
        self.shared.table().cluster = None;
        wait_until(LAST_PATIENCE, || self.unsaid.load(Ordering::Relaxed) == 0);
    }
}

/// Waits until something is so, but not longer than this.
fn wait_until(patience: Duration, is_so: impl Fn() -> bool) {
    let until = Instant::now() + patience;
    while !is_so() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl LocalPool {
    /// Has an order carried out by a shim on some node.
    pub(super) fn submit(
        &mut self,
        dispatch: &DispatchId,
        claim: &Path,
        spec: &RunSpec,
        request: Box<SlurmRequest>,
    ) -> io::Result<()> {
        write_private(&claim::cluster_mark(claim), b"")?;
        let argv = vec![
            self.helper.lasting_exe()?.into_os_string(),
            "__shim".into(),
            self.shared.run_dir.clone().into_os_string(),
            dispatch.to_string().into(),
            spec_path(claim).into_os_string(),
        ];
        let submissions = self.cluster()?.submissions.clone();
        {
            let mut table = self.shared.table();
            table.live.insert(dispatch.clone(), Live { shim: None, running: None });
            table.jobs.insert(dispatch.clone(), Job::default());
            table.tell_follower(Sight::Wake);
        }
        let environment = environment(self.leader.as_deref());
        let (dispatch, spec) = (dispatch.clone(), spec.clone());
        let submission = Submission { dispatch: dispatch.clone(), request, spec, environment, argv };
        let sent = submissions.is_some_and(|submissions| submissions.send(submission).is_ok());
        if !sent {
            self.shared.close_books(&dispatch);
            return Err(io::Error::other("the threads that submit jobs are gone"));
        }
        Ok(())
    }

    /// How many jobs like this the cluster has room for, those of ours that run there included, if that was found out since
    /// it was last asked. Without a wish nobody looks.
    pub fn cluster_room(&mut self, wanted: Option<&SlurmRequest>) -> Option<u64> {
        if wanted.is_some() && self.cluster().is_err() {
            return None;
        }
        let mut table = self.shared.table();
        if table.room.wanted.as_ref() != wanted {
            table.room = Room { wanted: wanted.cloned(), seen: None };
            table.tell_follower(Sight::Wake);
        }
        table.room.seen.take()
    }

    /// The threads that deal with the cluster, which are started when first needed.
    fn cluster(&mut self) -> io::Result<&Cluster> {
        let cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => Cluster::start(&self.shared)?,
        };
        Ok(self.cluster.insert(cluster))
    }

    /// Finds out about a job after a daemon's start. One that nobody has taken may be waiting for its turn since hours: it is
    /// followed, and revoked only when Slurm has not known it for a while.
    pub(super) fn recover_job(&mut self, dispatch: &DispatchId, path: &Path) -> io::Result<Recovered> {
        let Some(story) = claim::peek(path)? else {
            settle::create_revoked(path, "it had no claim when the daemon looked")?;
            return Ok(Recovered::NeverRan);
        };
        let is_over = story.exit.is_some() || story.failed.is_some() || story.revoked;
        if is_over && !verdict::asks_why(&story) {
            match settle::examine(path, "no shim had taken it when the daemon looked")? {
                Finding::Ended(exit) => return Ok(Recovered::Ended(exit)),
                Finding::StartFailed(error) => return Ok(Recovered::StartFailed(error)),
                Finding::Revoked => return Ok(Recovered::NeverRan),
                Finding::Alive(_) | Finding::Died(_) | Finding::Absent => {}
            }
        }
        if let (Some(leader), true) = (&self.leader, story.is_untaken()) {
            // Else its shim would find that whoever ordered it is gone, and leave.
            fence::take_over_order(&environment_file(&spec_path(path)), leader)?;
        }
        self.cluster()?;
        let job = Job {
            handed_over: Some(Instant::now()),
            told_running: story.running.is_some(),
            told_steps: story.steps.len(),
            told_worktree: story.worktree.clone(),
            ..Job::default()
        };
        let mut table = self.shared.table();
        table.live.insert(dispatch.clone(), Live { shim: None, running: story.running });
        table.jobs.insert(dispatch.clone(), job);
        table.tell_follower(Sight::Wake);
        Ok(Recovered::Adopted { running: story.running })
    }

    /// Ends a job whose claim holds a stop request already. One that nobody has taken is over with it.
    pub(super) fn stop_job(
        &mut self,
        dispatch: &DispatchId,
        path: &Path,
        grace: Millis,
        reason: &str,
    ) -> io::Result<()> {
        self.cluster()?;
        match settle::examine(path, reason)? {
            Finding::Revoked => {
                self.shared
                    .table()
                    .live
                    .entry(dispatch.clone())
                    .or_insert(Live { shim: None, running: None });
                let (dispatch, why) = (dispatch.clone(), reason.to_owned());
                self.shared.table().run_errand(Errand::Cancel(dispatch.clone()));
                self.shared.tell_end(WorkerReport::NeverRan { dispatch, why });
                self.shared.waker.wake();
            }
            Finding::Alive(_) => {
                let mut table = self.shared.table();
                table.be_patient(
                    dispatch,
                    Instant::now() + grace.duration() + JOB_PATIENCE.max(self.shim_patience),
                );
                drop(table);
                self.tell_job(dispatch, path)?;
            }
            // Whoever follows it tells what became of it.
            Finding::Ended(_) | Finding::StartFailed(_) | Finding::Died(_) | Finding::Absent => {
                self.shared.table().tell_follower(Sight::News(dispatch.clone()));
            }
        }
        Ok(())
    }

    /// Asks a job to give way, or takes that back. One that waits for its turn gives way at once.
    pub(super) fn ask_job_to_yield(
        &mut self,
        dispatch: &DispatchId,
        path: &Path,
        wanted: bool,
    ) -> io::Result<()> {
        let story = claim::peek(path)?;
        let Some(story) = story.filter(|story| wanted || !story.is_untaken()) else {
            // Nothing was asked of it yet, and a word in an empty claim would keep it from starting.
            return Ok(());
        };
        claim::leave_word(path, &Line::Yield { wanted, at: now() })?;
        // It may have begun while the word was written: then it is one that runs.
        if story.is_untaken() && !settle::is_held(path)? {
            return self.stop_job(dispatch, path, Millis(0), "it gave way before its turn came");
        }
        self.tell_job(dispatch, path)
    }

    /// Has the shim of a job look into its claim: at once if it is on this host, else by way of the controller.
    fn tell_job(&mut self, dispatch: &DispatchId, path: &Path) -> io::Result<()> {
        if !attend::signal_shim(path, Signal::SIGUSR1)? {
            self.cluster()?;
            self.shared.table().run_errand(Errand::Signal(dispatch.clone()));
        }
        Ok(())
    }
}

/// A thread that hands jobs over.
struct Hand {
    shared: Arc<Shared>,
    names: JobNames,
    script: PathBuf,
    closing: Arc<AtomicBool>,
    /// How often in a row the controller did not answer.
    silences: Arc<AtomicU32>,
}

impl Hand {
    fn work(&self, orders: &Mutex<Receiver<Submission>>) {
        loop {
            let next = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(submission) = next else { return };
            let dispatch = submission.dispatch.clone();
            if self.shared.table().cluster.is_none() {
                // Nobody waits for it any more: it may be another leader's by now.
                return;
            }
            if !self.is_wanted(&dispatch) {
                continue;
            }
            match self.hand_over(&submission) {
                Ok(()) => {
                    self.silences.store(0, Ordering::Relaxed);
                    self.is_handed_over(&dispatch);
                }
                Err(NotTaken::Refused(error)) => {
                    self.silences.store(0, Ordering::Relaxed);
                    self.give_up(WorkerReport::StartFailed { dispatch, error });
                }
                Err(NotTaken::Short(why)) => self.try_later(dispatch, why, REST),
                Err(NotTaken::Unanswered(why)) => {
                    let silences = self.silences.fetch_add(1, Ordering::Relaxed);
                    self.try_later(dispatch, why, rest(silences));
                    if self.closing.load(Ordering::Relaxed) {
                        // What is left over was never handed over, and is found out about by the next daemon.
                        return;
                    }
                }
            }
            self.shared.waker.wake();
        }
    }

    /// Gives an order back after a rest, so that it is not tried again and again.
    fn try_later(&self, dispatch: DispatchId, why: String, rest: Duration) {
        let until = Instant::now() + rest;
        let is_closing = || self.closing.load(Ordering::Relaxed);
        while self.is_wanted(&dispatch) && !is_closing() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.give_up(WorkerReport::NeverRan { dispatch, why });
    }

    /// Whether nobody has called it off meanwhile.
    fn is_wanted(&self, dispatch: &DispatchId) -> bool {
        self.shared.table().jobs.contains_key(dispatch)
    }

    fn hand_over(&self, submission: &Submission) -> Result<(), NotTaken> {
        let Submission { dispatch, request, spec, environment, argv } = submission;
        self.write_order(dispatch, spec, environment).map_err(|error| {
            let why = format!("its order cannot be written: {error}");
            if is_machines_fault(&error) { NotTaken::Unanswered(why) } else { NotTaken::Refused(why) }
        })?;
        slurm::submit(&self.script, &self.names.name(dispatch), request, argv)
    }

    /// Writes what the shim reads. The claim must outlive whatever happens to this machine while the job waits.
    fn write_order(&self, dispatch: &DispatchId, spec: &RunSpec, environment: &[u8]) -> io::Result<()> {
        let claim = self.shared.claim(dispatch);
        let order = spec_path(&claim);
        write_private(&environment_file(&order), environment)?;
        write_private(&order, &serde_json::to_vec(spec)?)?;
        claim::make_durable(&claim)
    }

    fn is_handed_over(&self, dispatch: &DispatchId) {
        let mut table = self.shared.table();
        match table.jobs.get_mut(dispatch) {
            Some(job) => job.handed_over = Some(Instant::now()),
            // It was called off on its way.
            None => table.run_errand(Errand::Cancel(dispatch.clone())),
        }
    }

    /// Slurm has not taken it, as far as it says; the claim has the last word.
    fn give_up(&self, report: WorkerReport) {
        let dispatch = report.dispatch().clone();
        if !self.is_wanted(&dispatch) {
            return;
        }
        match settle::examine(&self.shared.claim(&dispatch), "Slurm did not take the job") {
            Ok(Finding::Revoked) => self.shared.tell_end(report),
            Ok(_) | Err(_) => self.is_handed_over(&dispatch),
        }
    }
}

/// How long to leave the controller alone when it did not answer so often in a row, by all hands together.
fn rest(silences: u32) -> Duration {
    REST.saturating_mul(1 << (silences / HANDS as u32).min(8)).min(MOST_REST)
}

/// Kills whatever runs of a job of which nobody knows.
pub(super) fn kill_job(run_dir: &Path, dispatch: &DispatchId) {
    // If nobody hears it, whoever waits for its end says so.
    let _ = slurm::kill(&JobNames::of(run_dir).name(dispatch));
}
