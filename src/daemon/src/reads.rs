//! Questions that change nothing, answered from the state. Whoever has a state can answer them: the loop, or a
//! command that only reads the journal.

use serde::Serialize;
use serde_json::Value;
use yard_client::views::{self, AlertView, DaemonView, LogView, ShowView};
use yard_client::{Ask, Reply};
use yard_engine::bead::Verdict;
use yard_engine::{BeadId, DispatchId, Recorded, Refusal, State};

use crate::clock::wall_clock;
use crate::launch::log_path;
use crate::store::recorded;
use crate::town::TownDir;

/// What is needed to answer.
pub(crate) struct Desk<'a> {
    pub(crate) state: &'a State,
    pub(crate) town: &'a TownDir,
    /// What the journal does not hold.
    pub(crate) transient: Vec<AlertView>,
    pub(crate) daemon: DaemonView,
}

/// Whether this ask changes nothing and needs nobody who serves.
pub(crate) fn is_read(ask: &Ask) -> bool {
    match ask {
        Ask::SchedulerStatus { .. }
        | Ask::SchedulerList
        | Ask::Status { .. }
        | Ask::RigList
        | Ask::BeadList { .. }
        | Ask::ConvoyList { .. }
        | Ask::ConvoyStatus { .. }
        | Ask::ConvoyStranded
        | Ask::Forecast { .. }
        | Ask::Alerts { .. }
        | Ask::AgentList
        | Ask::AgentWhy { .. }
        | Ask::AgentTracks
        | Ask::Tasks { .. }
        | Ask::Task { .. }
        | Ask::TaskStats { .. }
        | Ask::Metrics
        | Ask::Show { .. }
        | Ask::Why { .. }
        | Ask::LogOf { .. } => true,
        Ask::Command { .. }
        | Ask::Health
        | Ask::Events { .. }
        | Ask::Attach { .. }
        | Ask::LogPiece { .. }
        | Ask::Past
        | Ask::Wait { .. }
        | Ask::AgentWait { .. }
        | Ask::WorktreeList
        | Ask::WorktreePrune { .. }
        | Ask::Poke { .. }
        | Ask::Stop { .. } => false,
    }
}

impl Desk<'_> {
    /// Answers a read.
    pub(crate) fn answer(&self, ask: &Ask) -> Reply {
        self.try_answer(ask).unwrap_or_else(Reply::Error)
    }

    fn try_answer(&self, ask: &Ask) -> Result<Reply, Refusal> {
        let state = self.state;
        Ok(match ask {
            Ask::SchedulerStatus { summary } => Reply::document(&views::scheduler_status(state, *summary)),
            Ask::SchedulerList => Reply::document(&views::scheduler_list(state)),
            Ask::Status { summary } => {
                let view = views::status(state, *summary, self.transient.clone(), self.daemon.clone());
                Reply::document(&view)
            }
            Ask::RigList => Reply::document(&views::rigs(state)),
            Ask::BeadList { filter } => Reply::document(&views::beads(state, filter, wall_clock())?),
            Ask::ConvoyList { all } => Reply::document(&views::convoys(state, *all)),
            Ask::ConvoyStatus { id } => self.show_convoy(id)?,
            Ask::ConvoyStranded => Reply::document(&views::stranded(state, self.daemon.running)),
            Ask::Forecast { convoy, max_polecats } => {
                let convoy = convoy.as_deref().map(|text| state.find_convoy(text)).transpose();
                let convoy = convoy.map_err(|refusal| refusal.hint("ym convoy list shows what there is"))?;
                let (now, running) = (wall_clock(), self.daemon.running);
                Reply::document(&views::forecast(state, convoy.as_ref(), *max_polecats, now, running))
            }
            Ask::Alerts { all } => Reply::document(&views::alerts(state, *all, self.transient.clone())),
            Ask::AgentList => Reply::document(&views::agents(state)),
            Ask::AgentWhy { agent } => Reply::document(&views::agent_why(state, agent.as_deref())?),
            Ask::AgentTracks => Reply::document(&views::tracks(state)),
            Ask::Tasks { filter } => Reply::document(&views::task::tasks(state, filter)),
            Ask::Task { id, agent } => {
                Reply::document(&views::task::task_by_id(state, id, agent.as_deref())?)
            }
            Ask::TaskStats { agent } => Reply::document(&views::task::task_stats(state, agent.as_deref())),
            Ask::Metrics => Reply::document(&views::metrics(state, self.daemon.running)),
            Ask::Show { id } => self.show(id)?,
            Ask::Why { id } if state.find_convoy(id).is_ok() => {
                found(views::why_convoy(state, &state.find_convoy(id)?), id)?
            }
            Ask::Why { id } => {
                let bead = state.find_bead(id)?;
                let view = views::why(state, &bead, &self.history(&bead)?);
                found(view, id)?
            }
            Ask::LogOf { id } => Reply::document(&self.log_of(id)?),
            Ask::Command { .. }
            | Ask::Health
            | Ask::Events { .. }
            | Ask::Attach { .. }
            | Ask::LogPiece { .. }
            | Ask::Past
            | Ask::Wait { .. }
            | Ask::AgentWait { .. }
            | Ask::WorktreeList
            | Ask::WorktreePrune { .. }
            | Ask::Poke { .. }
            | Ask::Stop { .. } => {
                return Err(Refusal::new("internal", "this is not a question about the state"));
            }
        })
    }

    fn show(&self, text: &str) -> Result<Reply, Refusal> {
        let state = self.state;
        if let Some(dispatch) = DispatchId::parse(text).ok().and_then(|id| state.dispatch(&id)) {
            return Ok(Reply::document(&views::dispatch(dispatch)));
        }
        if let Some(context) = text.parse().ok().and_then(|id| state.context(&id)) {
            return Ok(Reply::document(&views::context(context)));
        }
        if state.find_convoy(text).is_ok() {
            return self.show_convoy(text);
        }
        let id = state.find_bead(text)?;
        let entry = state.bead(&id);
        let context = entry.and_then(|e| e.work.context.as_ref().or(e.work.last_context.as_ref()));
        let view = views::bead(state, &id).map(|bead| ShowView {
            bead,
            context: context.and_then(|c| state.context(c)).map(views::context),
            dispatches: state.dispatches_of(&id).map(views::dispatch).collect(),
            merge: state.merge_of(&id).cloned(),
            events: Vec::new(),
        });
        let events: Vec<Value> =
            self.history(&id)?.iter().filter_map(|event| serde_json::to_value(event).ok()).collect();
        found(view.map(|view| ShowView { events, ..view }), text)
    }

    fn show_convoy(&self, text: &str) -> Result<Reply, Refusal> {
        let id = self.state.find_convoy(text)?;
        let eta = views::convoy_eta(self.state, &id, wall_clock());
        found(views::convoy(self.state, &id).map(|view| views::ConvoyView { eta, ..view }), text)
    }

    /// The events that named a bead, as far as the log is kept.
    fn history(&self, bead: &BeadId) -> Result<Vec<Recorded>, Refusal> {
        let Some(entry) = self.state.bead(bead) else { return Ok(Vec::new()) };
        let rows = self.town.reader().and_then(|reader| reader.events_at(&entry.work.history.all()));
        let rows = rows.map_err(|e| Refusal::new("journal", e.to_string()))?;
        rows.iter().map(|row| recorded(row).map_err(|e| Refusal::new("journal", e.to_string()))).collect()
    }

    /// Where the log of a bead or dispatch lies.
    pub(crate) fn log_of(&self, text: &str) -> Result<LogView, Refusal> {
        let state = self.state;
        // The check of a merge has an attempt's number, and a log.
        let was_run = |id: &DispatchId| {
            let tried = state.bead(id.bead()).map_or(0, |entry| entry.work.attempts);
            state.dispatch(id).is_some() || (1..=tried).contains(&id.attempt())
        };
        let named = DispatchId::parse(text).ok().filter(was_run);
        let dispatch = if let Some(id) = named {
            id
        } else {
            let bead = state.find_bead(text)?;
            let last = state.dispatches_of(&bead).last().map(|d| d.id.clone());
            last.ok_or_else(|| {
                Refusal::new("no-log", format!("{bead} has never been started"))
                    .hint(format!("ym why {bead} says why"))
            })?
        };
        let known = state.dispatch(&dispatch);
        let executor = known.map(|dispatch| dispatch.executor.clone()).unwrap_or_default();
        let live = known.is_some_and(yard_engine::dispatch::Dispatch::is_live)
            || state.merge_checked_by(&dispatch).is_some();
        let path = log_path(self.town, &dispatch).to_string_lossy().into_owned();
        let next =
            state.dispatches_of(dispatch.bead()).map(|d| &d.id).find(|id| id.attempt() > dispatch.attempt());
        let next = next.cloned();
        let goes_on = state.bead(dispatch.bead()).is_some_and(|entry| {
            let work = &entry.work;
            work.live.is_some() || work.context.is_some() || work.verdict == Some(Verdict::Done)
        });
        Ok(LogView { dispatch_id: dispatch, path, live, next, goes_on, executor })
    }
}

fn found<T: Serialize>(view: Option<T>, text: &str) -> Result<Reply, Refusal> {
    match view {
        Some(view) => Ok(Reply::document(&view)),
        None => Err(Refusal::new("unknown", format!("there is no {text:?}"))),
    }
}
