//! Everything the console holds: the town, and what the user is looking at. It is changed by [`crate::update`] and drawn
//! by [`crate::render`]; both are plain functions of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use yard_engine::{AgentName, BeadId, ConvoyId, Recorded, Seq, State, Timestamp};

use crate::crew::{self, Row};
use crate::digest::{Digest, LARGE_TOWN};
use crate::eventlist::EventList;
use crate::forecasts::Forecasts;
use crate::layers::{Layer, LogPane};
use crate::look::Look;
use crate::problems::Problem;
use crate::replay::Replay;
use crate::table::{Facts, Slack, Table, scrolled};
use crate::town::{Town, Waves};
use crate::whatif::WhatIf;

/// How long something said stays on the message line, in milliseconds.
const SAID_FOR: i64 = 8_000;

/// The views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The combined picture.
    Yard,
    /// Convoys.
    Convoys,
    /// Time.
    Timeline,
    /// Agents and workers.
    Agents,
    /// What needs a person.
    Problems,
    /// The log of events.
    Events,
}

impl View {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yard => "yard",
            Self::Convoys => "convoys",
            Self::Timeline => "timeline",
            Self::Agents => "agents",
            Self::Problems => "problems",
            Self::Events => "events",
        }
    }

    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Yard, Self::Convoys, Self::Timeline, Self::Agents, Self::Problems, Self::Events];
}

/// Which pane has the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// The list.
    Main,
    /// The log below it.
    Log,
}

/// What the views show: the town as it is, as it was, or as it would be.
#[derive(Debug)]
pub enum Mode {
    /// As it is.
    Live,
    /// As it was.
    Replay(Box<Replay>),
    /// As it would be.
    WhatIf(Box<WhatIf>),
}

/// A place in a list that is built anew for every frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cursor {
    /// The row.
    pub at: usize,
    /// The first visible row.
    pub offset: usize,
}

impl Cursor {
    /// Moves by so many rows, within the list.
    pub fn step(&mut self, by: isize, rows: usize) {
        self.at = self.at.saturating_add_signed(by).min(rows.saturating_sub(1));
    }

    /// Scrolls so that the row is visible.
    pub fn scroll(&mut self, rows: usize, height: usize) {
        self.at = self.at.min(rows.saturating_sub(1));
        self.offset = scrolled(self.offset, self.at, rows, height);
    }
}

/// What the cursor is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A bead.
    Bead(BeadId),
    /// A convoy.
    Convoy(ConvoyId),
    /// A registered agent.
    Agent(AgentName),
    /// An event.
    Event(Seq),
    /// An alert.
    Alert(String),
}

/// Something said on the message line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// In words.
    pub text: String,
    /// It went wrong.
    pub bad: bool,
    /// When.
    pub at: Timestamp,
}

/// A command of the command line, for the prompt and the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// `scheduler pause`.
    pub line: String,
    /// What it does.
    pub about: String,
}

/// Something for which the terminal is given away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outside {
    /// The shell we came from.
    Shell,
    /// A program; the user's shell if none is named.
    Program {
        /// Words of a `ym` command.
        argv: Vec<String>,
        /// Where.
        dir: Option<std::path::PathBuf>,
    },
    /// Nothing: the screen is only drawn anew.
    Redraw,
}

/// How much of the rows is out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Anew,
    Reordered,
    Changed,
}

/// The whole console.
#[derive(Debug)]
pub struct Console {
    /// The town.
    pub town: Town,
    /// There is none here; the console offers to make one.
    pub homeless: bool,
    /// How everything looks.
    pub look: Look,
    /// What time it is.
    pub now: Timestamp,
    /// The size of the screen.
    pub size: (u16, u16),
    /// The view.
    pub view: View,
    /// What the views show.
    pub mode: Mode,
    /// The pane with the keyboard.
    pub pane: Pane,
    /// It fills the screen.
    pub full: bool,
    /// Rows taken from the list for the log, or the other way round.
    pub share: i16,
    /// The rows of beads.
    pub table: Table,
    /// The convoy whose inside is shown.
    pub convoy: Option<ConvoyId>,
    /// Places in the other lists.
    pub convoys: Cursor,
    /// The convoy that the cursor of the list is on: it stays there when the list is ordered anew.
    pub convoy_picked: Option<ConvoyId>,
    /// Of the open convoy's beads.
    pub members: Cursor,
    /// Of agents and workers.
    pub agents: Cursor,
    /// What the cursor of that list is on: it stays there when others come and go.
    pub agent_picked: Option<Subject>,
    /// Of problems.
    pub problems_at: Cursor,
    /// Of events, counted from the newest.
    pub events: Cursor,
    /// Which events pass the filter.
    event_list: EventList,
    /// What needs a person, and how far convoys are.
    pub digest: Digest,
    /// Marked beads.
    pub marks: BTreeSet<BeadId>,
    /// Where a range of marks begins.
    pub range_from: Option<usize>,
    /// What lies over the view, the last on top.
    pub layers: Vec<Layer>,
    /// The log.
    pub log: LogPane,
    /// The last forecast.
    pub forecasts: Arc<Forecasts>,
    /// The town's version of it; none while one is being made.
    pub forecast_of: Option<u64>,
    /// What was said last.
    pub said: Option<Said>,
    /// The mouse is ours.
    pub mouse: bool,
    /// This process serves the town.
    pub embedded: bool,
    /// The commands there are.
    pub commands: Vec<Known>,
    /// Lines typed at the prompt.
    pub typed: Vec<String>,
    /// How wide a column of the timeline is, in milliseconds; none to fit.
    pub column: Option<i64>,
    /// How far the axis was moved, in columns.
    pub shift: i64,
    /// The host the town is on, if it is another one.
    pub elsewhere: Option<String>,
    /// The version of the town that the rows show.
    pub drawn: u64,
    /// The terminal is to be given away.
    pub outside: Option<Outside>,
}

impl Console {
    /// A console on a town nothing is known of yet.
    pub fn new(town: Town, look: Look, now: Timestamp, size: (u16, u16)) -> Self {
        Self {
            town,
            homeless: false,
            look,
            now,
            size,
            view: View::Yard,
            mode: Mode::Live,
            pane: Pane::Main,
            full: false,
            share: 0,
            table: Table::default(),
            convoy: None,
            convoys: Cursor::default(),
            convoy_picked: None,
            members: Cursor::default(),
            agents: Cursor::default(),
            agent_picked: None,
            problems_at: Cursor::default(),
            events: Cursor::default(),
            event_list: EventList::default(),
            digest: Digest::default(),
            marks: BTreeSet::new(),
            range_from: None,
            layers: Vec::new(),
            log: LogPane::default(),
            forecasts: Arc::default(),
            forecast_of: None,
            said: None,
            mouse: true,
            embedded: false,
            elsewhere: None,
            commands: Vec::new(),
            typed: Vec::new(),
            column: None,
            shift: 0,
            drawn: 0,
            outside: None,
        }
    }

    /// The state that the views show.
    pub fn state(&self) -> &State {
        match &self.mode {
            Mode::Live => &self.town.state,
            Mode::Replay(replay) => replay.state(),
            Mode::WhatIf(what_if) => what_if.state(),
        }
    }

    /// The time that the views show.
    pub fn shown_now(&self) -> Timestamp {
        match &self.mode {
            Mode::Live | Mode::WhatIf(_) => self.now,
            Mode::Replay(replay) => replay.state().clock(),
        }
    }

    /// Brings the rows up to date with the town; `anew` after another state.
    pub fn refresh(&mut self, anew: bool) {
        self.bring_up_to_date(if anew { How::Anew } else { How::Changed });
    }

    /// Orders and filters the rows anew.
    pub fn reorder(&mut self) {
        self.bring_up_to_date(How::Reordered);
    }

    fn bring_up_to_date(&mut self, how: How) {
        let changed = self.town.take_changed();
        let state = match &self.mode {
            Mode::Live => &self.town.state,
            Mode::Replay(replay) => replay.state(),
            Mode::WhatIf(what_if) => what_if.state(),
        };
        let slack: &dyn Slack = match &self.mode {
            Mode::Live => &*self.forecasts,
            Mode::Replay(replay) => replay.forecasts(),
            Mode::WhatIf(what_if) => what_if.scenario(),
        };
        let waves = match &self.mode {
            Mode::Live | Mode::WhatIf(_) => &self.town.waves,
            Mode::Replay(replay) => replay.waves(),
        };
        let facts = Facts { state, waves, slack };
        let anew = how == How::Anew;
        if anew {
            self.event_list.forget();
        }
        if self.view == View::Events {
            let filter = self.table.filter();
            match &self.mode {
                Mode::Replay(replay) => self.event_list.refresh(filter, replay.events().iter()),
                Mode::Live | Mode::WhatIf(_) => self.event_list.refresh(filter, self.town.recent.iter()),
            }
        }
        match how {
            How::Anew => self.table.rebuild(facts),
            How::Reordered => {
                self.table.refresh(facts, &changed);
                self.table.reorder(facts);
            }
            How::Changed => self.table.refresh(facts, &changed),
        }
        if state.bead_count() <= LARGE_TOWN || (anew && !matches!(self.mode, Mode::Live)) {
            self.digest = Digest::of(state, &self.town.transient, self.now);
        }
        self.drawn = self.town.version();
    }

    /// The problems that the filter lets through.
    pub fn shown_problems(&self) -> Vec<&Problem> {
        let filter = self.table.filter();
        self.digest.problems.iter().filter(|problem| filter.lets_text_through(&problem.text())).collect()
    }

    /// What the cursor is on.
    pub fn subject(&self) -> Option<Subject> {
        match self.view {
            View::Yard | View::Timeline => self.table.selected().cloned().map(Subject::Bead),
            View::Convoys => {
                if let Some(convoy) = &self.convoy {
                    let tracked = &self.state().convoy(convoy)?.tracked;
                    return tracked.get(self.members.at).cloned().map(Subject::Bead);
                }
                self.convoy_list().get(self.convoys.at).cloned().map(Subject::Convoy)
            }
            View::Agents => crew::rows(self.state()).nth(self.agents.at).and_then(|row| row.subject()),
            View::Problems => {
                self.shown_problems().get(self.problems_at.at).and_then(|problem| problem.subject.clone())
            }
            View::Events => self.event_at(self.events.at).map(|event| Subject::Event(event.seq)),
        }
    }

    /// The cursor of the view's list; none where it is that of the table of beads.
    pub fn list(&mut self) -> Option<&mut Cursor> {
        match self.view {
            View::Yard | View::Timeline => None,
            View::Convoys if self.convoy.is_some() => Some(&mut self.members),
            View::Convoys => Some(&mut self.convoys),
            View::Agents => Some(&mut self.agents),
            View::Problems => Some(&mut self.problems_at),
            View::Events => Some(&mut self.events),
        }
    }

    /// Where the cursor is in the view's list.
    pub fn place(&self) -> Cursor {
        match self.view {
            View::Yard | View::Timeline => Cursor { at: self.table.cursor(), offset: self.table.offset() },
            View::Convoys if self.convoy.is_some() => self.members,
            View::Convoys => self.convoys,
            View::Agents => self.agents,
            View::Problems => self.problems_at,
            View::Events => self.events,
        }
    }

    /// Puts the cursor on a row of the view's list.
    pub fn set_row(&mut self, row: usize) {
        let row = if self.view == View::Agents { self.past_heading(row) } else { row };
        match self.list() {
            Some(cursor) => cursor.at = row,
            None => self.table.move_to(row),
        }
        if self.view == View::Convoys && self.convoy.is_none() {
            self.convoy_picked = self.convoy_list().get(row).cloned();
        }
        if self.view == View::Agents {
            self.agent_picked = self.subject();
        }
    }

    /// The row itself, or the next one in the direction of the move where that is a heading.
    fn past_heading(&self, row: usize) -> usize {
        match crew::rows(self.state()).nth(row) {
            Some(Row::Workers) if row < self.agents.at => row.saturating_sub(1),
            Some(Row::Workers) => row + 1,
            Some(Row::Agent(_) | Row::More(..) | Row::Worker(_)) | None => row,
        }
    }

    /// Puts the cursor of the list of agents and workers back on what it was on.
    pub fn find_agent(&mut self) {
        let picked = self.agent_picked.as_ref();
        let is_picked = |row: Row<'_>| picked.is_some() && row.subject().as_ref() == picked;
        let found = crew::rows(self.state()).position(is_picked);
        let last = crew::rows(self.state()).count().saturating_sub(1);
        let row = found.unwrap_or_else(|| self.past_heading(self.agents.at.min(last)));
        self.agents.at = row;
        if found.is_none() {
            self.agent_picked = self.subject();
        }
    }

    /// Puts the cursor of the list of convoys back on its convoy.
    pub fn find_convoy(&mut self) {
        let list = self.convoy_list();
        let found = self.convoy_picked.as_ref().and_then(|picked| list.iter().position(|id| id == picked));
        self.convoys.at = found.unwrap_or(self.convoys.at);
    }

    /// The convoys in the order of the list: what is under way first, what is over last, the newest first.
    pub fn convoy_list(&self) -> Vec<ConvoyId> {
        let filter = self.table.filter();
        let rank = |status: &str| match status {
            "open" => 0,
            "closed" => 2,
            _ => 1,
        };
        let mut convoys: Vec<_> = self
            .state()
            .convoys()
            .filter(|convoy| filter.lets_text_through(&format!("{} {}", convoy.id, convoy.title)))
            .collect();
        convoys.sort_by_key(|convoy| (rank(convoy.status()), std::cmp::Reverse(convoy.created_at)));
        convoys.iter().map(|convoy| convoy.id.clone()).collect()
    }

    /// The last event that is shown.
    fn shown_until(&self) -> Seq {
        match &self.mode {
            Mode::Replay(replay) => replay.state().seq(),
            Mode::Live | Mode::WhatIf(_) => Seq(u64::MAX),
        }
    }

    /// How many events the filter lets through.
    pub fn event_count(&self) -> usize {
        if !self.table.filter().is_empty() {
            return self.event_list.until(self.shown_until()).len();
        }
        match &self.mode {
            Mode::Replay(replay) => replay.at(),
            Mode::Live | Mode::WhatIf(_) => self.town.recent.len(),
        }
    }

    /// One of them, counted from the newest.
    pub fn event_at(&self, row: usize) -> Option<&Arc<Recorded>> {
        let at = self.event_count().checked_sub(row + 1)?;
        if !self.table.filter().is_empty() {
            return self.event(*self.event_list.until(self.shown_until()).get(at)?);
        }
        match &self.mode {
            Mode::Replay(replay) => replay.events().get(at),
            Mode::Live | Mode::WhatIf(_) => self.town.recent.get(at),
        }
    }

    /// An event by its position in the log.
    pub fn event(&self, seq: Seq) -> Option<&Arc<Recorded>> {
        match &self.mode {
            Mode::Replay(replay) => {
                let at = replay.events().binary_search_by_key(&seq, |event| event.seq).ok()?;
                replay.events().get(at)
            }
            Mode::Live | Mode::WhatIf(_) => {
                let at = self.town.recent.binary_search_by_key(&seq, |event| event.seq).ok()?;
                self.town.recent.get(at)
            }
        }
    }

    /// The agent that the cursor is on.
    pub fn agent(&self) -> Option<AgentName> {
        match self.subject()? {
            Subject::Agent(name) => Some(name),
            Subject::Bead(_) | Subject::Convoy(_) | Subject::Event(_) | Subject::Alert(_) => None,
        }
    }

    /// The bead that the cursor is on, that its agent has, or that an event, alert or problem is about.
    pub fn bead(&self) -> Option<BeadId> {
        match self.subject()? {
            Subject::Bead(id) => Some(id),
            Subject::Event(seq) => crate::views::events::bead_of(self.event(seq)?),
            Subject::Agent(name) => {
                let agent = self.state().agent(&name)?;
                crew::held(self.state(), agent).next().map(|held| held.bead().clone())
            }
            Subject::Convoy(_) | Subject::Alert(_) => None,
        }
    }

    /// The convoy that was just planned, that the cursor is on, that is open, or that the bead belongs to.
    pub fn convoy_at_hand(&self) -> Option<ConvoyId> {
        let planned = self.layers.iter().rev().find_map(|layer| match layer {
            Layer::Plan(_, plan) => plan.convoy_id.clone(),
            _ => None,
        });
        if planned.is_some() {
            return planned;
        }
        if let Some(Subject::Convoy(id)) = self.subject() {
            return Some(id);
        }
        if self.view == View::Convoys
            && let Some(id) = &self.convoy
        {
            return Some(id.clone());
        }
        let bead = self.bead()?;
        let of_epic = || {
            let below: Vec<&BeadId> = self.state().children_of(&bead).collect();
            below.into_iter().find_map(|child| self.waves().convoy_of(child))
        };
        self.waves().convoy_of(&bead).or_else(of_epic).cloned()
    }

    /// The waves of the state that the views show.
    pub fn waves(&self) -> &Waves {
        match &self.mode {
            Mode::Live | Mode::WhatIf(_) => &self.town.waves,
            Mode::Replay(replay) => replay.waves(),
        }
    }

    /// The convoy that the yard tells of: the largest under way, one with waves before those that slings make.
    pub fn main_convoy(&self) -> Option<ConvoyId> {
        let open = self.state().convoys().filter(|convoy| convoy.is_open());
        let main = open.max_by_key(|c| (!c.waves.is_empty(), c.tracked.len(), c.created_at));
        main.map(|convoy| convoy.id.clone())
    }

    /// The staged convoys that a launch could mean: the one at hand, or else all there are.
    pub fn launchable(&self) -> Vec<ConvoyId> {
        let staged = |id: &ConvoyId| self.state().convoy(id).is_some_and(|convoy| convoy.staged.is_some());
        match self.convoy_at_hand() {
            Some(id) if staged(&id) => vec![id],
            // Who looks at a convoy means that one.
            Some(_) if self.view == View::Convoys => Vec::new(),
            _ => self.state().convoys().map(|convoy| convoy.id.clone()).filter(staged).collect(),
        }
    }

    /// What a verb is done to: the marked beads, or the one under the cursor.
    pub fn targets(&self) -> Vec<BeadId> {
        if self.marks.is_empty() {
            self.bead().into_iter().collect()
        } else {
            self.marks.iter().cloned().collect()
        }
    }

    /// Whether the terminal is to be given away.
    pub fn wants_outside(&self) -> bool {
        self.outside.is_some()
    }

    /// Says something on the message line.
    pub fn say(&mut self, text: impl Into<String>) {
        self.said = Some(Said { text: text.into(), bad: false, at: self.now });
    }

    /// Says that something does not work, and why.
    pub fn refuse(&mut self, text: impl Into<String>) {
        self.said = Some(Said { text: text.into(), bad: true, at: self.now });
    }

    /// What is still worth saying.
    pub fn said(&self) -> Option<&Said> {
        self.said.as_ref().filter(|said| self.now.as_millis() - said.at.as_millis() < SAID_FOR)
    }

    /// The forecast that the views show.
    pub fn shown_forecasts(&self) -> &Forecasts {
        match &self.mode {
            Mode::Live => &self.forecasts,
            Mode::Replay(replay) => replay.forecasts(),
            Mode::WhatIf(what_if) => what_if.scenario(),
        }
    }
}
