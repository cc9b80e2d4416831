//! What the loop ordered outside is done: alerts and messages are told, actions and webhooks answered, and git merges, or
//! not. Some of it fails, and some answers never come.

use yard_daemon::rehearsal::{GitJob, GitNews};
use yard_engine::WebhookFailure;
use yard_engine::merge::MergeProblem;

use crate::sim::daemon::Halt;
use crate::sim::history::World;

impl World {
    /// Does what was ordered, or some of it; whether there was anything.
    pub(in crate::sim) fn deep_outside(&mut self) -> Result<bool, Halt> {
        let told = self.tells_alerts()?;
        let mailed = self.tells_messages()?;
        let answered = self.answers_actions()?;
        let sent = self.tries_webhooks()?;
        let worked = self.git_works()?;
        let beside = self.others_work()?;
        Ok(told || mailed || answered || sent || worked || beside)
    }

    fn fails(&mut self) -> bool {
        self.faults && self.dice.one_in(4)
    }

    fn tells_alerts(&mut self) -> Result<bool, Halt> {
        let alerts = self.around(|around| std::mem::take(&mut around.alerts));
        for id in &alerts {
            self.oracle.is_told(id);
            let error = self.fails().then(|| "it exited with 1".to_owned());
            self.tell(|| format!("alert {id} is told: {error:?}"));
            self.core()?.alert_told(id.clone(), error);
            self.deep_idle()?;
        }
        Ok(!alerts.is_empty())
    }

    fn tells_messages(&mut self) -> Result<bool, Halt> {
        let messages = self.around(|around| std::mem::take(&mut around.messages));
        for (agent, message) in &messages {
            let error = self.fails().then(|| "it exited with 1".to_owned());
            self.core()?.message_told(agent.clone(), *message, error);
            self.deep_idle()?;
        }
        Ok(!messages.is_empty())
    }

    fn answers_actions(&mut self) -> Result<bool, Halt> {
        let actions = self.around(|around| std::mem::take(&mut around.actions));
        for id in &actions {
            if self.faults && self.dice.one_in(5) {
                // Nobody answers; its deadline ends it.
                continue;
            }
            let outcome = if self.dice.one_in(3) {
                Err("executor returned 500: no".to_owned())
            } else {
                Ok(serde_json::json!({"clicked": true}))
            };
            self.tell(|| format!("action {id} is answered: {outcome:?}"));
            self.core()?.action_answered(id.clone(), outcome.clone());
            if self.dice.one_in(8) {
                self.core()?.action_answered(id.clone(), outcome);
            }
            self.deep_idle()?;
        }
        Ok(!actions.is_empty())
    }

    fn tries_webhooks(&mut self) -> Result<bool, Halt> {
        let webhooks = self.around(|around| std::mem::take(&mut around.webhooks));
        for task in &webhooks {
            let failure = self.fails().then(|| WebhookFailure {
                error: "nobody is there".to_owned(),
                hopeless: self.dice.one_in(3),
            });
            self.tell(|| format!("the webhook of {task} is sent: {failure:?}"));
            self.core()?.webhook_tried(task.clone(), failure);
            self.deep_idle()?;
        }
        Ok(!webhooks.is_empty())
    }

    fn git_works(&mut self) -> Result<bool, Halt> {
        let jobs = self.around(|around| std::mem::take(&mut around.git));
        let any = !jobs.is_empty();
        for job in jobs {
            self.tell(|| format!("git: {job:?}"));
            if let Some(news) = self.git_works_on(job) {
                self.tell(|| format!("git says {news:?}"));
                self.core()?.git(news.clone());
                if self.faults && self.dice.one_in(8) {
                    self.core()?.git(news);
                }
                self.deep_idle()?;
            }
        }
        Ok(any)
    }

    fn git_works_on(&mut self, job: GitJob) -> Option<GitNews> {
        let lot = if self.faults { self.dice.below(8) } else { 7 };
        Some(match job {
            GitJob::Compose(bead, _) => match lot {
                0 => GitNews::Landed { bead, commit: "already".to_owned() },
                1 => GitNews::Blocked {
                    bead,
                    problem: MergeProblem::Conflict { files: vec!["src/lib.rs".to_owned()] },
                },
                2 => {
                    GitNews::Blocked { bead, problem: MergeProblem::Refused { why: "no such branch".into() } }
                }
                _ => {
                    let commit = format!("merge-of-{bead}");
                    GitNews::Composed { bead, onto: "base".to_owned(), commit }
                }
            },
            GitJob::Land { bead, commit, .. } => match lot {
                0 | 1 => GitNews::Moved { bead },
                2 => GitNews::Blocked { bead, problem: MergeProblem::Refused { why: "it is dirty".into() } },
                _ => GitNews::Landed { bead, commit },
            },
            GitJob::Look(offers) => {
                let merged = offers.into_iter().map(|offer| (offer.bead, "theirs".to_owned()));
                GitNews::Looked(merged.filter(|_| lot > 3).collect())
            }
            GitJob::List(_) => GitNews::Branches(vec!["ym/a-0@1".to_owned()]),
            GitJob::Remove(_) => return None,
        })
    }
}
