//! Branches: who merges them, in which order, and who waits for that.

use yard_engine::alert::AlertKind;
use yard_engine::bead::{DepKind, Dependency};
use yard_engine::dispatch::Category;
use yard_engine::merge::{MergeProblem, MergeStage};
use yard_engine::readiness::ReasonCode;
use yard_engine::rig::RigSwitch;
use yard_engine::settings::Merge;
use yard_engine::worktree::{Fate, Worktree};
use yard_engine::{BeadId, Command, DispatchId, Standing, WorkerExit};

use crate::town::{Town, exit, stopped};

pub(crate) fn worktree_of(id: &DispatchId, head: Option<&str>) -> Worktree {
    Worktree {
        made_for: id.clone(),
        branch: format!("ym/{id}"),
        base: "main".to_owned(),
        start: "c0".to_owned(),
        finished: head.is_some(),
        head: head.map(ToOwned::to_owned),
    }
}

fn bead(id: &str) -> BeadId {
    BeadId::parse(id).expect("an id")
}

impl Town {
    /// A live worker gets a branch of its own.
    pub(crate) fn works_on_branch(&mut self, bead: &str) {
        let id = self.live(bead);
        self.act(|tx| tx.worker_isolated(&id, &worktree_of(&id, None)));
    }

    /// It ends well, with a commit on its branch.
    pub(crate) fn leaves_commit(&mut self, bead: &str) {
        self.finishes(bead, Some("c9"));
    }

    fn finishes(&mut self, bead: &str, head: Option<&str>) {
        let id = self.live(bead);
        let worktree = Some(Box::new(Worktree { finished: true, ..worktree_of(&id, head) }));
        self.act(|tx| tx.worker_ended(&id, &WorkerExit { worktree, ..exit(0, Category::Crash) }));
    }

    /// A town that merges by itself, in which these beads are done and their branches wait.
    fn with_branches(beads: &[&str]) -> Self {
        let mut town = Self::deferred(20);
        town.configure(|s| s.worker.merge = Some(Merge::Direct));
        for id in beads {
            town.bead(id);
            town.sling(&[id]);
            town.start();
            town.works_on_branch(id);
            town.leaves_commit(id);
        }
        town
    }

    fn merge_stage(&self, id: &str) -> &MergeStage {
        &self.state.merge_of(&bead(id)).expect("a merge").stage
    }

    /// Git makes the merged tree; no check is asked for.
    fn composes(&mut self, id: &str) {
        self.act(|tx| tx.merge_composed(&bead(id), "c0", "c1", false));
    }

    fn lands(&mut self, id: &str) {
        self.act(|tx| tx.merge_landed(&bead(id), "c1"));
    }

    fn conflicts(&mut self, id: &str) {
        let problem = MergeProblem::Conflict { files: vec!["src/lib.rs".to_owned()] };
        self.act(|tx| tx.merge_blocked(&bead(id), problem));
    }

    /// Whoever dispatches by itself lets the next merges begin.
    pub(crate) fn begins(&mut self) {
        self.act(|tx| {
            tx.begin_merges();
        });
    }

    fn fate(&self, id: &str) -> Option<Fate> {
        self.state.worktree_fate(&DispatchId::parse(id).expect("a dispatch"))
    }
}

#[test]
fn a_bead_closes_when_its_branch_is_merged_not_when_its_worker_ends() {
    let mut town = Town::with_branches(&["gt-a"]);
    assert_eq!(town.standing("gt-a"), Standing::Done);
    assert_eq!(town.codes("gt-a"), [ReasonCode::AwaitingMerge]);
    assert_eq!(town.fate("gt-a@1"), Some(Fate::Awaited));
    town.begins();
    town.composes("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Done);
    town.lands("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Closed);
    assert_eq!(town.fate("gt-a@1"), Some(Fate::OverWithBranch));
    let closed = town.log.iter().rfind(|recorded| recorded.event.kind() == "bead.closed").expect("it closed");
    assert!(closed.event.body().contains("Merged in c1 (main)"), "Gas Town looks for these words");
}

#[test]
fn merges_into_one_base_go_one_at_a_time_in_the_order_of_their_requests() {
    let mut town = Town::with_branches(&["gt-b", "gt-a", "gt-c"]);
    town.begins();
    town.begins();
    assert_eq!(town.merge_stage("gt-b"), &MergeStage::Composing);
    assert_eq!(
        (town.merge_stage("gt-a"), town.merge_stage("gt-c")),
        (&MergeStage::Waiting, &MergeStage::Waiting)
    );
    town.composes("gt-b");
    town.begins();
    assert_eq!(town.merge_stage("gt-a"), &MergeStage::Waiting);
    town.lands("gt-b");
    town.begins();
    assert_eq!(town.merge_stage("gt-a"), &MergeStage::Composing);
    town.conflicts("gt-a");
    town.begins();
    assert_eq!(town.merge_stage("gt-c"), &MergeStage::Composing, "a conflict holds up nobody else");
}

#[test]
fn a_conflict_blocks_the_bead_names_the_files_and_tells_a_person() {
    let mut town = Town::with_branches(&["gt-a"]);
    town.begins();
    town.conflicts("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Blocked);
    assert_eq!(town.codes("gt-a"), [ReasonCode::MergeConflict]);
    assert!(town.why("gt-a").contains("src/lib.rs"), "{}", town.why("gt-a"));
    let alert = town.state.alerts().next().expect("an alert");
    assert_eq!(alert.kind, AlertKind::MergeConflict);
    assert!(alert.message.contains("src/lib.rs"), "{}", alert.message);
    assert_eq!(town.fate("gt-a@1"), Some(Fate::Awaited));
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!(town.state.alerts().count(), 0);
    town.begins();
    town.composes("gt-a");
    town.lands("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Closed);
}

#[test]
fn the_base_moves_only_after_it_is_on_record_from_where_to_where() {
    let mut town = Town::with_branches(&["gt-a"]);
    town.begins();
    town.composes("gt-a");
    let landing = MergeStage::Landing { onto: "c0".to_owned(), commit: "c1".to_owned() };
    assert_eq!(town.merge_stage("gt-a"), &landing);
    town.act(|tx| tx.merge_overtaken(&bead("gt-a"), "the base moved meanwhile"));
    assert_eq!(town.merge_stage("gt-a"), &MergeStage::Waiting, "it is made again for the new base");
}

#[test]
fn a_merge_that_never_comes_to_an_end_is_given_to_a_person() {
    let mut town = Town::with_branches(&["gt-a"]);
    let mut begun = 0;
    while town.merge_stage("gt-a") == &MergeStage::Waiting {
        town.begins();
        town.act(|tx| tx.merge_overtaken(&bead("gt-a"), "the base moved meanwhile"));
        begun += 1;
    }
    assert_eq!(begun, 6);
    assert_eq!(town.standing("gt-a"), Standing::Blocked);
    assert!(town.why("gt-a").contains("begun 6 times"), "{}", town.why("gt-a"));
}

#[test]
fn a_check_decides_whether_the_merged_tree_becomes_the_base() {
    let mut town = Town::with_branches(&["gt-a", "gt-b"]);
    town.begins();
    town.act(|tx| tx.merge_composed(&bead("gt-a"), "c0", "c1", true));
    let run = DispatchId::parse("gt-a@2").expect("a dispatch");
    assert!(town.state.merge_checked_by(&run).is_some(), "the check has an id of its own");
    town.act(|tx| tx.merge_checked(&run, Some("exit 101")));
    assert_eq!(town.standing("gt-a"), Standing::Blocked);
    assert!(town.why("gt-a").contains("exit 101"), "{}", town.why("gt-a"));
    town.begins();
    town.act(|tx| tx.merge_composed(&bead("gt-b"), "c0", "c1", true));
    let run = DispatchId::parse("gt-b@2").expect("a dispatch");
    town.act(|tx| tx.merge_checked(&run, None));
    assert!(matches!(town.merge_stage("gt-b"), MergeStage::Landing { .. }));
    town.act(|tx| tx.merge_checked(&run, Some("late")));
    town.lands("gt-b");
    assert_eq!(town.standing("gt-b"), Standing::Closed);
}

#[test]
fn merge_blocks_waits_for_the_merge_and_blocks_for_the_close() {
    let mut town = Town::deferred(20);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    for (id, kind) in [("ox-after-close", DepKind::Blocks), ("ox-after-merge", DepKind::MergeBlocks)] {
        tracker.has_with(id, |b| b.dependencies = vec![Dependency::new(bead("ox-a"), kind)]);
    }
    town.reads(&mut tracker);
    town.configure(|s| s.worker.merge = Some(Merge::Direct));
    town.sling(&["ox-a", "ox-after-close", "ox-after-merge"]);
    town.start();
    town.works_on_branch("ox-a");
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!(town.start(), ["ox-after-close"], "its agent closed it before it ended");
    assert_eq!(town.why("ox-after-merge"), "waits for the merge of ox-a");
    town.leaves_commit("ox-a");
    assert_eq!(town.codes("ox-a"), [ReasonCode::Closed, ReasonCode::AwaitingMerge]);
    town.begins();
    town.composes("ox-a");
    assert_eq!(town.start(), Vec::<String>::new());
    town.lands("ox-a");
    assert_eq!(town.start(), ["ox-after-merge"]);
}

#[test]
fn merge_blocks_waits_for_nothing_where_there_is_no_branch() {
    let mut town = Town::deferred(20);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.needs("gt-b", "gt-a", DepKind::MergeBlocks);
    town.needs("gt-c", "gt-b", DepKind::MergeBlocks);
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    town.start();
    town.exits_ok("gt-a");
    assert_eq!(town.start(), ["gt-b"]);
    town.works_on_branch("gt-b");
    town.finishes("gt-b", None);
    assert_eq!((town.standing("gt-b"), town.fate("gt-b@1")), (Standing::Closed, Some(Fate::OverWithBranch)));
    assert_eq!(town.start(), ["gt-c"], "nothing was left on the branch");
}

#[test]
fn a_branch_for_somebody_else_is_announced_once_and_closes_the_bead_at_once() {
    let mut town = Town::deferred(20);
    town.beads(&["gt-mr", "gt-local", "gt-none", "gt-after"]);
    town.needs("gt-after", "gt-mr", DepKind::MergeBlocks);
    town.sling(&["gt-mr", "gt-after"]);
    town.sling_with("gt-local", |r| r.merge = Some(Merge::Local));
    town.sling_with("gt-none", |r| (r.merge, r.no_merge) = (Some(Merge::Direct), true));
    town.start();
    for id in ["gt-mr", "gt-local", "gt-none"] {
        town.works_on_branch(id);
        town.leaves_commit(id);
        assert_eq!(
            (town.standing(id), town.merge_stage(id)),
            (Standing::Closed, &MergeStage::Offered),
            "{id}"
        );
        assert_eq!(town.fate(&format!("{id}@1")), Some(Fate::Over), "its branch stays");
    }
    let told: Vec<_> = town.state.alerts().map(|alert| (alert.kind, alert.ids.clone())).collect();
    assert_eq!(told, [(AlertKind::MergeRequest, vec!["gt-mr".to_owned()])]);
    town.begins();
    assert_eq!(town.merge_stage("gt-mr"), &MergeStage::Offered);
    assert_eq!(town.start(), Vec::<String>::new());
    town.lands("gt-mr");
    assert_eq!(town.start(), ["gt-after"], "somebody has merged it");
}

#[test]
fn the_rigs_strategy_counts_where_the_sling_names_none() {
    let mut town = Town::deferred(20);
    town.configure(|s| {
        s.worker.merge = Some(Merge::Local);
        let rig = yard_engine::RigName::parse("gastown").expect("a name");
        s.rigs.entry(rig).or_default().worker.merge = Some(Merge::Direct);
    });
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.start();
    town.works_on_branch("gt-a");
    town.leaves_commit("gt-a");
    assert_eq!(town.merge_stage("gt-a"), &MergeStage::Waiting);
}

#[test]
fn nothing_is_merged_while_dispatch_is_paused_or_the_rig_is_parked() {
    let mut town = Town::with_branches(&["gt-a"]);
    town.pause();
    town.begins();
    assert_eq!(town.merge_stage("gt-a"), &MergeStage::Waiting);
    town.resume();
    town.switch("gastown", RigSwitch::Park);
    town.begins();
    assert_eq!(town.merge_stage("gt-a"), &MergeStage::Waiting);
    town.switch("gastown", RigSwitch::Unpark);
    town.begins();
    assert_eq!(town.merge_stage("gt-a"), &MergeStage::Composing);
}

#[test]
fn an_attempt_that_goes_on_works_in_the_worktree_it_left_and_a_new_one_in_its_own() {
    let mut town = Town::deferred(20);
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a", "gt-b"]);
    town.start();
    town.works_on_branch("gt-a");
    town.works_on_branch("gt-b");
    town.exits("gt-a", 75, Category::Yielded);
    let goes_on = town.context("gt-a").resume.worktree.as_ref().map(|worktree| worktree.made_for.to_string());
    assert_eq!((goes_on.as_deref(), town.fate("gt-a@1")), (Some("gt-a@1"), Some(Fate::InUse)));
    town.crashes("gt-b");
    assert_eq!(town.context("gt-b").resume.worktree, None);
    assert_eq!(town.fate("gt-b@1"), Some(Fate::Kept), "it is kept to be looked at");
}

#[test]
fn work_that_is_called_off_leaves_its_worktree_and_is_not_merged() {
    let mut town = Town::with_branches(&["gt-a", "gt-b"]);
    town.does(&Command::Cancel { id: "gt-b".to_owned(), at_once: false });
    assert_eq!((town.standing("gt-b"), town.fate("gt-b@1")), (Standing::Cancelled, Some(Fate::Kept)));
    town.begins();
    let refusal = town.refuses(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    assert_eq!(refusal.code, "awaiting-merge", "git is at it");
    town.act(|tx| tx.merge_composed(&bead("gt-a"), "c0", "c1", true));
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    assert_eq!(town.standing("gt-a"), Standing::Cancelled, "a check can be ended");
    let withdrawn = town.log.iter().rfind(|r| r.event.kind() == "merge.withdrawn").expect("it is withdrawn");
    assert!(withdrawn.event.body().contains("\"run\":\"gt-a@2\""), "{}", withdrawn.event.body());
}

#[test]
fn work_done_anew_takes_the_place_of_a_branch_that_cannot_be_merged() {
    let mut town = Town::with_branches(&["gt-a"]);
    town.begins();
    town.conflicts("gt-a");
    town.sling(&["gt-a"]);
    assert_eq!((town.state.merge_of(&bead("gt-a")), town.state.alerts().count()), (None, 0));
    assert_eq!(town.start(), ["gt-a"]);
    town.works_on_branch("gt-a");
    town.leaves_commit("gt-a");
    assert_eq!(town.state.merge_of(&bead("gt-a")).expect("a merge").branch, "ym/gt-a@2");
    assert_eq!((town.fate("gt-a@1"), town.fate("gt-a@2")), (Some(Fate::Kept), Some(Fate::Awaited)));
}

#[test]
fn a_close_that_does_not_come_takes_the_merge_back() {
    let mut town = Town::deferred(20);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    town.reads(&mut tracker);
    town.configure(|s| s.worker.merge = Some(Merge::Direct));
    town.sling(&["ox-a"]);
    town.start();
    town.works_on_branch("ox-a");
    town.leaves_commit("ox-a");
    town.begins();
    assert_eq!(town.merge_stage("ox-a"), &MergeStage::Waiting, "its agent has not closed it yet");
    town.advance(town.state.settings().close_grace);
    assert_eq!((town.state.merge_of(&bead("ox-a")), town.fate("ox-a@1")), (None, Some(Fate::Kept)));
}

#[test]
fn a_worker_that_was_stopped_or_lost_has_nothing_merged() {
    let mut town = Town::deferred(20);
    town.configure(|s| s.worker.merge = Some(Merge::Direct));
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a", "gt-b"]);
    town.start();
    town.works_on_branch("gt-a");
    town.works_on_branch("gt-b");
    let id = town.live("gt-a");
    let says = yard_engine::command::WorkerSays::Done { reason: None };
    town.does(&Command::Worker { dispatch: id.to_string(), says });
    town.lost("gt-a");
    assert_eq!(town.state.merge_of(&bead("gt-a")), None, "nobody saw what is on its branch");
    assert!(town.is_scheduled("gt-a"));
    let id = town.live("gt-b");
    town.does(&Command::Cancel { id: "gt-b".to_owned(), at_once: false });
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    assert_eq!((town.state.merge_of(&bead("gt-b")), town.fate("gt-b@1")), (None, Some(Fate::Kept)));
}

#[test]
fn who_says_it_is_done_and_fails_all_the_same_has_nothing_merged_and_nothing_lost() {
    let mut town = Town::deferred(20);
    town.configure(|s| (s.worker.merge, s.retry_crash.max_attempts) = (Some(Merge::Direct), 1));
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.start();
    town.works_on_branch("gt-a");
    let id = town.live("gt-a");
    let says = yard_engine::command::WorkerSays::Done { reason: None };
    town.does(&Command::Worker { dispatch: id.to_string(), says });
    let worktree = Some(Box::new(worktree_of(&id, None)));
    town.act(|tx| tx.worker_ended(&id, &WorkerExit { worktree, ..exit(9, Category::Crash) }));
    assert_eq!((town.standing("gt-a"), town.fate("gt-a@1")), (Standing::Failed, Some(Fate::Kept)));
}
