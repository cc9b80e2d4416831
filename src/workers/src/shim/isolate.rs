//! A dispatch in a worktree of its own: made before its first program, its work put on its branch after the last.

use yard_engine::worktree::Worktree;

use super::program::Environment;
use super::run::{End, Run};
use crate::git;
use crate::record::Line;
use crate::spec::{RunSpec, StepSpec, WorktreePlace, WorktreeSpec};
use crate::sys::{Stage, now};
use crate::wire::FromShim;

/// What the making of a worktree is called where steps have names.
const STEP: &str = "worktree";

impl Run<'_> {
    /// Gets the dispatch into its worktree, if it has one: the order changed accordingly, or why it cannot start.
    pub(super) fn enter(&mut self, spec: &RunSpec) -> Result<RunSpec, End> {
        let mut spec = spec.clone();
        let Some(order) = spec.worktree.clone() else { return Ok(spec) };
        let failed = |why: String| End::StartFailed(format!("its worktree cannot be made: {why}"));
        let turn = git::Turn::wait(&order.path);
        let entrance = git::plan(&order).map_err(|error| failed(error.to_string()))?;
        if let Some(argv) = entrance.argv {
            self.run_git(&argv, &order, &spec).map_err(|end| match end {
                End::StartFailed(why) => failed(why),
                other => other,
            })?;
        }
        drop(turn);
        spec.cwd = entrance.cwd;
        spec.env.push(("YM_WORKTREE".to_owned(), order.path.to_string_lossy().into_owned()));
        if let Some(worktree) = entrance.worktree {
            spec.env.push(("YM_BRANCH".to_owned(), worktree.branch.clone()));
            spec.env.push(("YM_BASE_BRANCH".to_owned(), worktree.base.clone()));
            self.note_worktree(worktree);
        }
        Ok(spec)
    }

    /// Runs git like a step, so that it can be stopped and its words are in the log.
    fn run_git(&mut self, argv: &[String], order: &WorktreeSpec, spec: &RunSpec) -> Result<(), End> {
        let step = StepSpec {
            id: STEP.to_owned(),
            argv: argv.to_vec(),
            tail: 0,
            stdin: None,
            timeout: None,
            agent: None,
        };
        let spec = RunSpec { cwd: order.repo.clone(), ..spec.clone() };
        let environment = Environment::new(&self.shim.inherited, &spec).map_err(End::StartFailed)?;
        for last in [false, true] {
            let pid = match self.start(&step, &spec, &environment) {
                Ok(pid) => pid,
                Err((Stage::Fork, why)) => return Err(End::NoProcess(why)),
                Err((_, why)) => return Err(End::StartFailed(why)),
            };
            let outcome = self.watch(Some(pid), None);
            if self.cause.is_some() {
                return Err(End::Ran(Some(STEP.to_owned()), outcome));
            }
            if outcome.code == Some(0) {
                return Ok(());
            }
            self.take_output(16);
            let said = self.log.last_line().unwrap_or_else(|| "git worktree add failed".to_owned());
            if last || !git::is_passing(&said) {
                return Err(End::StartFailed(said));
            }
        }
        Ok(())
    }

    fn note_worktree(&mut self, worktree: Worktree) {
        self.note_line(&Line::Worktree { worktree: worktree.clone(), at: now() });
        let frame =
            FromShim::Isolated { dispatch: self.dispatch.clone(), worktree: Box::new(worktree.clone()) };
        self.note_frame(&frame);
        self.worktree = Some(worktree);
    }

    /// After everything has ended: what a good worker left goes onto its branch; a place for a check goes away.
    pub(super) fn leave(&mut self, end: End, spec: &RunSpec, came_to_its_end: bool) -> End {
        let Some(order) = &spec.worktree else { return end };
        if matches!(order.place, WorktreePlace::Detached { .. }) {
            git::discard(&order.repo, &order.path);
            return end;
        }
        let Some(worktree) = self.worktree.take() else { return end };
        let went_well = came_to_its_end && matches!(&end, End::Ran(_, outcome) if outcome.code == Some(0));
        if !went_well {
            self.worktree = Some(worktree);
            return end;
        }
        match git::finish(&order.path, &worktree, &order.message) {
            Ok(finished) => {
                self.worktree = Some(finished);
                end
            }
            Err(error) => {
                self.worktree = Some(worktree);
                End::Unfinished(error.to_string())
            }
        }
    }
}
