//! The one registry of what can be done: keys, words and the command line of every action. Dispatch, footer, help,
//! palette, the README's key table and `ym help keys` all read it.

mod table;

pub use table::ACTIONS;

/// Something the user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the registry below says what each of them does")]
pub enum Act {
    ViewYard,
    ViewConvoys,
    ViewTimeline,
    ViewAgents,
    ViewProblems,
    ViewEvents,
    WhatIf,
    Replay,
    Why,
    Detail,
    RawJson,
    WaysOut,
    Logs,
    Stage,
    Launch,
    Pause,
    Clear,
    Preempt,
    Retry,
    Run,
    ActMenu,
    Undo,
    Redo,
    Attach,
    Shell,
    Filter,
    Prompt,
    Palette,
    Help,
    Mark,
    Range,
    MarkAll,
    Sort,
    Copy,
    Down,
    Up,
    PageDown,
    PageUp,
    HalfDown,
    HalfUp,
    Top,
    Bottom,
    NextPane,
    Back,
    Freeze,
    Mouse,
    Enlarge,
    Shrink,
    FullScreen,
    Acknowledge,
    ReleaseBead,
    RetireAgent,
    Daemon,
    Suspend,
    Redraw,
    Quit,
    // In the timeline.
    Earlier,
    Later,
    // In a replay.
    StepBack,
    StepOn,
    WaveBack,
    WaveOn,
    FaultBack,
    FaultOn,
    Play,
    Diff,
    GoTo,
    // In a what-if.
    KnobUp,
    KnobDown,
    ResetKnobs,
    Apply,
    // In a log.
    Search,
    Follow,
    Wrap,
    SearchNext,
    SearchBack,
}

/// Where an action's keys work. What is special goes before what is general.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In every view.
    Anywhere,
    /// In the timeline.
    Timeline,
    /// In the list of agents and workers.
    Agents,
    /// While replaying.
    Replay,
    /// While trying something out.
    WhatIf,
    /// In the log pane, when it has the keyboard.
    Log,
    /// In the details of something.
    Detail,
    /// In the reasons why a bead does not run.
    Why,
}

/// What an action belongs to, for help and the README.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Views and what opens them.
    Views,
    /// The operator's verbs.
    Verbs,
    /// Finding and picking.
    Find,
    /// Moving about.
    Move,
    /// The screen.
    Screen,
    /// While replaying.
    Replay,
    /// While trying something out.
    WhatIf,
    /// In logs.
    Logs,
}

impl Group {
    /// All of them, in the order of help.
    pub const ALL: [Self; 8] = [
        Self::Views,
        Self::Verbs,
        Self::Find,
        Self::Move,
        Self::Screen,
        Self::Replay,
        Self::WhatIf,
        Self::Logs,
    ];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Views => "Views",
            Self::Verbs => "Work",
            Self::Find => "Find, pick, copy",
            Self::Move => "Move",
            Self::Screen => "Screen",
            Self::Replay => "Replay (T)",
            Self::WhatIf => "What-if (W)",
            Self::Logs => "Logs (l)",
        }
    }
}

/// What is known of an action.
#[derive(Debug, Clone, Copy)]
pub struct Action {
    /// Which.
    pub act: Act,
    /// Its name for the palette and for tests.
    pub id: &'static str,
    /// The keys that do it, the first of them shown.
    pub keys: &'static [&'static str],
    /// In the footer: one word.
    pub title: &'static str,
    /// In a sentence.
    pub help: &'static str,
    /// Where.
    pub place: Place,
    /// Of what.
    pub group: Group,
    /// The command line that does or shows the same; none for what only concerns the screen.
    pub line: Option<&'static str>,
}

impl Act {
    /// Its entry in the registry.
    pub fn action(self) -> &'static Action {
        let found = ACTIONS.iter().find(|action| action.act == self);
        found.expect("every action is in the registry, which a test walks")
    }
}

/// The action of a key in these places; the more special place wins.
pub fn action_of(key: &str, places: &[Place]) -> Option<&'static Action> {
    places
        .iter()
        .find_map(|place| ACTIONS.iter().find(|action| action.place == *place && action.keys.contains(&key)))
}

/// The table of keys as Markdown, for the README and `ym help keys`.
pub fn key_table() -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for group in Group::ALL {
        let _ = write!(out, "**{}**\n\n| keys | does | as a command |\n|---|---|---|\n", group.title());
        for action in ACTIONS.iter().filter(|action| action.group == group) {
            let keys: Vec<String> = action.keys.iter().map(|key| format!("`{key}`")).collect();
            let line = action.line.map(|line| format!("`{line}`")).unwrap_or_default();
            let _ = writeln!(out, "| {} | {} | {line} |", keys.join(" "), action.help);
        }
        out.push('\n');
    }
    out
}
