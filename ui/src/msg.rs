//! What reaches the console, and what it wants done. Between the two lies nothing but [`crate::update`].

use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::{KeyEvent, MouseEvent};
use yard_client::ServerRole;
use yard_client::views::{AlertView, StageView};
use yard_engine::{BeadId, Recorded, State, Timestamp};

use crate::forecasts::{Forecasts, Wanted};

/// Something that happened.
#[derive(Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// Something was pasted.
    Paste(String),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resize(u16, u16),
    /// Time passed.
    Tick(Timestamp),
    /// From the town.
    Town(News),
    /// This process serves the town from now on, or cannot.
    Serving(Result<(), String>),
    /// Commands have been carried out.
    Ran {
        /// Each with what became of it.
        lines: Vec<Ran>,
        /// Its whole output is wanted on the screen.
        show: bool,
    },
    /// A plan was made.
    Staged(Result<Box<StageView>, String>),
    /// Something was forecast.
    Forecast(Arc<Forecasts>),
    /// A log was read.
    Log(LogNews),
    /// The town at the beginning of its log, and the whole log of events, for a replay.
    History(Box<State>, Vec<Arc<Recorded>>),
    /// Why the log of events cannot be had.
    NoHistory(String),
    /// Something was copied, or not.
    Copied(Result<String, String>),
    /// Something to say.
    Say {
        /// In words.
        text: String,
        /// It went wrong.
        bad: bool,
    },
}

/// What is heard of the town.
#[derive(Debug)]
pub enum News {
    /// So much of the state is read.
    Loading {
        /// Read.
        read: usize,
        /// Of so many.
        of: usize,
    },
    /// The whole state.
    State(Box<State>),
    /// Somebody serves it, and events follow as they happen.
    Live {
        /// Who.
        role: ServerRole,
        /// Its process.
        pid: u32,
    },
    /// What happened.
    Events(Vec<Arc<Recorded>>),
    /// What happened before.
    Earlier(Vec<Arc<Recorded>>),
    /// Alerts that the log knows nothing of.
    Transient(Vec<AlertView>),
    /// The connection is gone.
    Lost {
        /// When.
        at: Timestamp,
        /// Why.
        why: String,
    },
}

/// A command that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its words, without `ym`.
    pub argv: Vec<String>,
    /// It succeeded.
    pub ok: bool,
    /// What it printed.
    pub output: String,
}

/// What is heard of a log.
#[derive(Debug)]
pub struct LogNews {
    /// Whose log.
    pub bead: BeadId,
    /// It begins anew.
    pub fresh: bool,
    /// More lines.
    pub lines: Vec<LogLine>,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogLine {
    /// An attempt begins.
    Attempt(String),
    /// What the worker wrote, as it wrote it.
    Text(String),
}

/// Something the console wants done.
#[derive(Debug)]
pub enum Effect {
    /// Carries out `ym` commands, one after the other.
    Run {
        /// Their words, without `ym`.
        lines: Vec<Vec<String>>,
        /// The whole output is wanted on the screen.
        show: bool,
    },
    /// Stages, perhaps after taking beads over from a file.
    Stage {
        /// An epic, a convoy or tasks.
        targets: Vec<String>,
        /// A file of beads to be imported first.
        file: Option<PathBuf>,
    },
    /// Follows the log of a bead: these attempts, the last of which may still run.
    FollowLog {
        /// Whose.
        bead: BeadId,
        /// Its attempts, in order.
        attempts: Vec<String>,
    },
    /// Forecasts.
    Forecast(Wanted),
    /// Reads the whole log of events.
    ReadHistory,
    /// Copies a text.
    Copy {
        /// What it is called.
        what: String,
        /// The text.
        text: String,
    },
    /// Takes the mouse, or leaves it to the terminal.
    Mouse(bool),
    /// Rings.
    Bell,
    /// Back to the shell.
    Suspend,
    /// Draws everything anew.
    Redraw,
    /// Runs a program in the terminal itself, and comes back.
    Outside {
        /// Program and arguments.
        argv: Vec<String>,
        /// Where.
        dir: Option<PathBuf>,
    },
    /// Leaves.
    Quit(Leaving),
    /// Goes to another town: one that was just made.
    Enter(Entering),
}

/// What becomes of a town that this console serves itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// Nothing needs to be done.
    Plainly,
    /// A daemon takes over.
    ToDaemon,
    /// Workers are drained.
    Draining,
    /// Workers are left to their shims.
    LeavingRunning,
}

/// Where to go from a directory that is no town.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entering {
    /// Makes a town here.
    Init,
    /// The demonstration.
    Demo,
}
