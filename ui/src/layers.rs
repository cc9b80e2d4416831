//! What may lie over a view: menus, questions, lists to choose from, a line to type, and panes about one thing.

use tui_input::Input;
use yard_client::views::StageView;
use yard_engine::{AgentName, BeadId};

use crate::actions::Act;
use crate::console::Subject;
use crate::msg::{Entering, Leaving, LogLine};
use crate::table::Order;

/// Lines of a log that are kept for display; the whole of it is on disk.
const KEPT_LINES: usize = 50_000;

/// Something over the view.
#[derive(Debug)]
pub enum Layer {
    /// A list one types into: help or palette.
    Finder(Finder),
    /// A line one types.
    Line(Line),
    /// A few choices, each with its key.
    Menu(Menu),
    /// Why a bead does not run.
    Why(Text, BeadId),
    /// Why an agent has no order.
    WhyIdle(Text, AgentName),
    /// Everything about something.
    Detail(Text, Subject, bool),
    /// What a command printed.
    Output(Text, String, Vec<String>),
    /// A plan before its launch.
    Plan(Text, Box<StageView>),
}

/// How far a text is scrolled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text {
    /// Lines above the first one shown.
    pub scroll: usize,
}

/// A list that is searched by typing.
#[derive(Debug)]
pub struct Finder {
    /// What it is.
    pub title: &'static str,
    /// Everything in it.
    pub entries: Vec<Entry>,
    /// What was typed.
    pub input: Input,
    /// What matches, best first.
    pub found: Vec<usize>,
    /// The chosen one.
    pub at: usize,
}

/// An entry of such a list.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its keys.
    pub keys: String,
    /// Its name.
    pub title: String,
    /// What it does.
    pub help: String,
    /// What choosing it does.
    pub pick: Pick,
}

/// What choosing something does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// An action.
    Act(Act),
    /// Puts a command on the prompt.
    Command(String),
    /// Runs commands.
    Run(Vec<Vec<String>>),
    /// Asks first.
    Ask(Box<Menu>),
    /// Asks for a line of text.
    Type(LineKind),
    /// Orders rows.
    Sort(Order),
    /// Copies a text.
    Copy(String, String),
    /// Stages these.
    Stage(Vec<String>),
    /// Says something.
    Say(String),
    /// Nothing: the question is taken back.
    Stay,
    /// Leaves.
    Leave(Leaving),
    /// Goes to a town.
    Enter(Entering),
    /// Nothing: it says why it does not apply.
    Nothing(String),
}

/// A few choices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Menu {
    /// What it is about.
    pub title: String,
    /// What one should know before choosing.
    pub notes: Vec<String>,
    /// The choices.
    pub items: Vec<Item>,
    /// The chosen one.
    pub at: usize,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its key.
    pub key: char,
    /// What it does.
    pub title: String,
    /// Whether it can be undone, or why it does not apply.
    pub note: String,
    /// What it does.
    pub pick: Pick,
}

impl Item {
    /// A choice.
    pub fn new(key: char, title: impl Into<String>, note: impl Into<String>, pick: Pick) -> Self {
        Self { key, title: title.into(), note: note.into(), pick }
    }
}

/// What a typed line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineKind {
    /// Which rows to show.
    Filter,
    /// A command.
    Prompt,
    /// Why dispatch is paused.
    Pause,
    /// Which beads, convoy or epic to stage.
    Stage,
    /// Which file of beads to stage.
    StageFile,
    /// The priority of these beads.
    Priority(Vec<BeadId>),
    /// Where a replay should go.
    GoTo,
    /// What to look for in the log.
    Search,
}

impl LineKind {
    /// What stands before the line.
    pub fn prompt(&self) -> &'static str {
        match self {
            Self::Filter => "/",
            Self::Prompt => ":ym ",
            Self::Pause => "pause, because: ",
            Self::Stage => "stage (epic, convoy or tasks): ",
            Self::StageFile => "stage the beads of this file: ",
            Self::Priority(_) => "priority (1 to 100, higher is sooner): ",
            Self::GoTo => "go to (14:05, 41077 or 50%): ",
            Self::Search => "search: ",
        }
    }

    /// What helps while nothing is typed.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Filter => {
                "words  rig:x  state:blocked  !label:y  wave:3..5  prio:0..1  why:capacity  ~regex"
            }
            Self::Prompt => "a ym command, or a view: Tab completes, Up recalls",
            Self::Pause => "Enter pauses, also without a reason; running work is left alone",
            Self::Stage => "ids, separated by spaces",
            Self::StageFile => "a path; the beads are taken over and staged",
            Self::Priority(_) => "50 is the default",
            Self::GoTo => "a time, a position in the log, or a share of it",
            Self::Search => "n and N go from match to match",
        }
    }
}

/// A line one types.
#[derive(Debug)]
pub struct Line {
    /// What for.
    pub kind: LineKind,
    /// What was typed.
    pub input: Input,
    /// What is wrong with it.
    pub error: Option<String>,
    /// Where in the history one is.
    pub recalled: Option<usize>,
}

impl Line {
    /// A line with something on it.
    pub fn new(kind: LineKind, text: impl Into<String>) -> Self {
        Self { kind, input: Input::new(text.into()), error: None, recalled: None }
    }
}

/// The log of one bead, across its attempts.
#[derive(Debug)]
pub struct LogPane {
    /// Whose log is shown.
    pub bead: Option<BeadId>,
    /// Of which attempts.
    pub attempts: Vec<String>,
    /// The lines.
    pub lines: Vec<LogLine>,
    /// Lines that were dropped because there were too many.
    pub dropped: usize,
    /// The first line shown, when it does not follow the end.
    pub top: usize,
    /// It stays at the end.
    pub follow: bool,
    /// Long lines are broken.
    pub wrap: bool,
    /// What is looked for.
    pub search: String,
}

impl Default for LogPane {
    fn default() -> Self {
        Self {
            bead: None,
            attempts: Vec::new(),
            lines: Vec::new(),
            dropped: 0,
            top: 0,
            follow: true,
            wrap: false,
            search: String::new(),
        }
    }
}

impl LogPane {
    /// Takes lines in.
    pub fn extend(&mut self, fresh: bool, lines: Vec<LogLine>) {
        if fresh {
            self.lines.clear();
            self.dropped = 0;
            self.top = 0;
        }
        self.lines.extend(lines);
        let over = self.lines.len().saturating_sub(KEPT_LINES);
        if over > 0 {
            self.lines.drain(..over);
            self.dropped += over;
            self.top = self.top.saturating_sub(over);
        }
    }

    /// The lines that contain what is looked for.
    pub fn matches(&self) -> Vec<usize> {
        if self.search.is_empty() {
            return Vec::new();
        }
        let wanted = self.search.to_lowercase();
        let has = |line: &LogLine| match line {
            LogLine::Attempt(_) => false,
            LogLine::Text(text) => text.to_lowercase().contains(&wanted),
        };
        (0..self.lines.len()).filter(|at| has(&self.lines[*at])).collect()
    }
}

/// The finder, filled from these entries.
pub fn finder(title: &'static str, entries: Vec<Entry>) -> Finder {
    let found = (0..entries.len()).collect();
    Finder { title, entries, input: Input::default(), found, at: 0 }
}
