//! The one registry of what can be done: keys, words and the command line of every action. Dispatch, footer, help,
//! palette, the README's key table and `ym help keys` all read it.

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

const fn action(
    act: Act,
    id: &'static str,
    keys: &'static [&'static str],
    title: &'static str,
    help: &'static str,
    (place, group): (Place, Group),
    line: Option<&'static str>,
) -> Action {
    Action { act, id, keys, title, help, place, group, line }
}

const VIEWS: (Place, Group) = (Place::Anywhere, Group::Views);
const VERBS: (Place, Group) = (Place::Anywhere, Group::Verbs);
const FIND: (Place, Group) = (Place::Anywhere, Group::Find);
const MOVE: (Place, Group) = (Place::Anywhere, Group::Move);
const SCREEN: (Place, Group) = (Place::Anywhere, Group::Screen);
const REPLAY: (Place, Group) = (Place::Replay, Group::Replay);
const WHAT_IF: (Place, Group) = (Place::WhatIf, Group::WhatIf);
const LOGS: (Place, Group) = (Place::Log, Group::Logs);

/// Every action there is.
pub const ACTIONS: &[Action] = &[
    action(
        Act::ViewYard,
        "view.yard",
        &["1"],
        "yard",
        "The combined picture: capacity, guards, finish, beads by state.",
        VIEWS,
        Some("ym status"),
    ),
    action(
        Act::ViewConvoys,
        "view.convoys",
        &["2"],
        "convoys",
        "Convoys: progress, waves, findings, critical path, forecast.",
        VIEWS,
        Some("ym convoy list"),
    ),
    action(
        Act::ViewTimeline,
        "view.timeline",
        &["3"],
        "timeline",
        "What ran, runs and will run, on one axis of time.",
        VIEWS,
        Some("ym forecast"),
    ),
    action(
        Act::ViewAgents,
        "view.agents",
        &["4"],
        "agents",
        "Live workers: what they do, say and cost.",
        VIEWS,
        Some("ym status"),
    ),
    action(
        Act::ViewProblems,
        "view.problems",
        &["5"],
        "problems",
        "What needs a person, most urgent first, with cause and remedy.",
        VIEWS,
        Some("ym alerts"),
    ),
    action(
        Act::ViewEvents,
        "view.events",
        &["6"],
        "events",
        "The log of everything that happened.",
        VIEWS,
        Some("ym events --follow"),
    ),
    action(
        Act::WhatIf,
        "mode.what-if",
        &["W"],
        "what-if",
        "Try caps, priorities and holds on a copy of the town; apply them as commands.",
        VIEWS,
        Some("ym forecast --max-polecats N"),
    ),
    action(
        Act::Replay,
        "mode.replay",
        &["T"],
        "replay",
        "Go back to any event of the log and look around.",
        VIEWS,
        Some("ym events --since SEQ"),
    ),
    action(
        Act::Why,
        "bead.why",
        &["w"],
        "why",
        "Why the selected bead is not running, what it waits for, and the cheapest ways out.",
        VIEWS,
        Some("ym why BEAD"),
    ),
    action(
        Act::Detail,
        "bead.detail",
        &["Enter"],
        "open",
        "Everything about the selected row: facts, dependencies, attempts, costs, raw JSON.",
        VIEWS,
        Some("ym show ID"),
    ),
    action(
        Act::RawJson,
        "bead.json",
        &["J"],
        "JSON",
        "In the details: the raw JSON, or the facts again.",
        (Place::Detail, Group::Views),
        Some("ym show ID --json"),
    ),
    action(
        Act::WaysOut,
        "bead.ways-out",
        &["Enter"],
        "ways out",
        "In the reasons: take one of the ways out.",
        (Place::Why, Group::Views),
        Some("ym why BEAD"),
    ),
    action(
        Act::Logs,
        "bead.logs",
        &["l"],
        "logs",
        "The log of the selected bead, across its attempts, as it grows.",
        VIEWS,
        Some("ym logs BEAD --follow"),
    ),
    action(
        Act::Stage,
        "convoy.stage",
        &["s"],
        "stage",
        "Plan a convoy of an epic, of marked beads or of a file: tree, waves, findings, forecast.",
        VERBS,
        Some("ym convoy stage EPIC"),
    ),
    action(
        Act::Launch,
        "convoy.launch",
        &["L"],
        "launch",
        "Let a staged convoy go.",
        VERBS,
        Some("ym convoy launch CONVOY"),
    ),
    action(
        Act::Pause,
        "town.pause",
        &["p"],
        "pause",
        "Stop all dispatch, or let it go on. Running work is left alone.",
        VERBS,
        Some("ym scheduler pause --reason R"),
    ),
    action(
        Act::Clear,
        "bead.clear",
        &["c"],
        "clear",
        "Take waiting beads off the schedule.",
        VERBS,
        Some("ym scheduler clear --bead BEAD"),
    ),
    action(
        Act::Preempt,
        "bead.preempt",
        &["P"],
        "preempt",
        "Have a running bead give way; on a waiting bead, pick who makes room for it.",
        VERBS,
        Some("ym preempt BEAD"),
    ),
    action(
        Act::Retry,
        "bead.retry",
        &["r"],
        "retry",
        "Give circuit-broken, failed or cancelled beads another chance.",
        VERBS,
        Some("ym scheduler retry BEAD"),
    ),
    action(Act::Run, "town.run", &["R"], "run", "One planning pass, now.", VERBS, Some("ym scheduler run")),
    action(
        Act::ActMenu,
        "bead.act",
        &["x"],
        "act",
        "Everything that applies to the row or the marked beads, from narrow to broad.",
        VERBS,
        Some("ym hold BEAD"),
    ),
    action(
        Act::Undo,
        "town.undo",
        &["z"],
        "undo",
        "Take the last operator command back.",
        VERBS,
        Some("ym undo"),
    ),
    action(Act::Redo, "town.redo", &["Z"], "redo", "Do again what was taken back.", VERBS, Some("ym redo")),
    action(
        Act::Acknowledge,
        "alert.ack",
        &["A"],
        "ack",
        "You have seen the selected alert.",
        VERBS,
        Some("ym alerts --ack ID"),
    ),
    action(
        Act::Attach,
        "bead.attach",
        &["a"],
        "attach",
        "Go to the worker's own terminal, or follow its output where it has none.",
        VERBS,
        Some("ym logs BEAD --follow"),
    ),
    action(
        Act::Shell,
        "bead.shell",
        &["S"],
        "shell",
        "A shell in the directory of the bead's rig.",
        VERBS,
        Some("cd DIR"),
    ),
    action(
        Act::Daemon,
        "town.daemon",
        &["D"],
        "daemon",
        "Hand the town to a daemon, so that it goes on without this console.",
        VERBS,
        Some("ym --daemon"),
    ),
    action(
        Act::Filter,
        "find.filter",
        &["/"],
        "filter",
        "Only rows that match: words, rig:x state:blocked !label:y wave:3..5 ~regex.",
        FIND,
        Some("ym bead list"),
    ),
    action(
        Act::Prompt,
        "find.prompt",
        &[":"],
        "cmd",
        "Any ym command, with completion and history.",
        FIND,
        Some("ym help"),
    ),
    action(
        Act::Palette,
        "find.palette",
        &["Ctrl-p"],
        "palette",
        "Find any action or command by a few of its letters.",
        FIND,
        Some("ym help"),
    ),
    action(
        Act::Help,
        "find.help",
        &["?", "F1"],
        "help",
        "All keys; type to search, Enter does it.",
        FIND,
        Some("ym help keys"),
    ),
    action(
        Act::Mark,
        "find.mark",
        &["Space"],
        "mark",
        "Mark the row, or no longer; what you do next is done to all marked ones.",
        FIND,
        None,
    ),
    action(
        Act::Range,
        "find.range",
        &["v"],
        "range",
        "Mark from here; v again marks everything in between.",
        FIND,
        None,
    ),
    action(
        Act::MarkAll,
        "find.mark-all",
        &["V"],
        "mark all",
        "Mark every row that the filter lets through, or none.",
        FIND,
        None,
    ),
    action(
        Act::Sort,
        "find.sort",
        &["o"],
        "sort",
        "Choose the order of rows; the same again turns it around.",
        FIND,
        None,
    ),
    action(
        Act::Copy,
        "find.copy",
        &["y"],
        "copy",
        "Copy an id, the command line, JSON, the log or a Mermaid graph.",
        FIND,
        None,
    ),
    action(Act::Down, "move.down", &["j", "Down"], "down", "One row down.", MOVE, None),
    action(Act::Up, "move.up", &["k", "Up"], "up", "One row up.", MOVE, None),
    action(Act::PageDown, "move.page-down", &["PgDn", "Ctrl-f"], "page down", "One page down.", MOVE, None),
    action(Act::PageUp, "move.page-up", &["PgUp", "Ctrl-b"], "page up", "One page up.", MOVE, None),
    action(
        Act::HalfDown,
        "move.half-down",
        &["Ctrl-d"],
        "half down",
        "Half a page down; never anything else.",
        MOVE,
        None,
    ),
    action(Act::HalfUp, "move.half-up", &["Ctrl-u"], "half up", "Half a page up.", MOVE, None),
    action(Act::Top, "move.top", &["g", "Home"], "top", "The first row.", MOVE, None),
    action(Act::Bottom, "move.bottom", &["G", "End"], "bottom", "The last row.", MOVE, None),
    action(
        Act::NextPane,
        "move.pane",
        &["Tab", "BackTab"],
        "pane",
        "The keyboard goes to the next pane.",
        MOVE,
        None,
    ),
    action(Act::Back, "move.back", &["Esc"], "back", "One step out; never quits.", MOVE, None),
    action(
        Act::Earlier,
        "timeline.earlier",
        &["Left", "h"],
        "earlier",
        "Move the axis of time back.",
        (Place::Timeline, Group::Move),
        None,
    ),
    action(
        Act::Later,
        "timeline.later",
        &["Right"],
        "later",
        "Move the axis of time on.",
        (Place::Timeline, Group::Move),
        None,
    ),
    action(
        Act::Freeze,
        "screen.freeze",
        &["F"],
        "freeze",
        "Stop the display; the town goes on.",
        SCREEN,
        None,
    ),
    action(
        Act::Mouse,
        "screen.mouse",
        &["m"],
        "mouse",
        "Leave the mouse to the terminal, so that text can be selected; again takes it back.",
        SCREEN,
        None,
    ),
    action(
        Act::Enlarge,
        "screen.enlarge",
        &["+"],
        "larger",
        "More room for the focused pane, or a finer axis of time.",
        SCREEN,
        None,
    ),
    action(
        Act::Shrink,
        "screen.shrink",
        &["_", "-"],
        "smaller",
        "Less room for it, or a coarser axis.",
        SCREEN,
        None,
    ),
    action(
        Act::FullScreen,
        "screen.full",
        &["f"],
        "full",
        "The focused pane alone, or all again.",
        SCREEN,
        None,
    ),
    action(Act::Redraw, "screen.redraw", &["Ctrl-l"], "redraw", "Draw the whole screen anew.", SCREEN, None),
    action(
        Act::Suspend,
        "screen.suspend",
        &["Ctrl-z"],
        "suspend",
        "Back to the shell; fg returns.",
        SCREEN,
        None,
    ),
    action(
        Act::Quit,
        "screen.quit",
        &["q", "Ctrl-c"],
        "quit",
        "Leave. If this console runs the town's work, it asks what shall become of it.",
        SCREEN,
        Some("ym stop"),
    ),
    action(
        Act::StepBack,
        "replay.back",
        &["Left", "h"],
        "step back",
        "One event back.",
        REPLAY,
        Some("ym events --since SEQ"),
    ),
    action(
        Act::StepOn,
        "replay.on",
        &["Right"],
        "step on",
        "One event on.",
        REPLAY,
        Some("ym events --since SEQ"),
    ),
    action(
        Act::WaveBack,
        "replay.wave-back",
        &["["],
        "wave back",
        "Back to where a wave began.",
        REPLAY,
        None,
    ),
    action(Act::WaveOn, "replay.wave-on", &["]"], "wave on", "On to where a wave began.", REPLAY, None),
    action(
        Act::FaultBack,
        "replay.fault-back",
        &["{"],
        "fault back",
        "Back to the last fault.",
        REPLAY,
        None,
    ),
    action(Act::FaultOn, "replay.fault-on", &["}"], "fault on", "On to the next fault.", REPLAY, None),
    action(
        Act::Play,
        "replay.play",
        &["Space"],
        "play",
        "Let it run, faster than it was; again stops it.",
        REPLAY,
        None,
    ),
    action(Act::Diff, "replay.diff", &["d"], "diff", "What is different now.", REPLAY, None),
    action(
        Act::GoTo,
        "replay.go-to",
        &["@"],
        "go to",
        "Go to a time (14:05), a position (41077) or a share of the log (50%).",
        REPLAY,
        Some("ym events --since T"),
    ),
    action(Act::KnobUp, "what-if.more", &["+", "Right"], "more", "Turn the knob up.", WHAT_IF, None),
    action(Act::KnobDown, "what-if.less", &["-", "_", "Left"], "less", "Turn the knob down.", WHAT_IF, None),
    action(Act::ResetKnobs, "what-if.reset", &["r"], "reset", "Put all knobs back.", WHAT_IF, None),
    action(
        Act::Apply,
        "what-if.apply",
        &["A"],
        "apply",
        "Apply the changes as ordinary commands; z takes them back.",
        WHAT_IF,
        Some("ym config set KEY VALUE"),
    ),
    action(
        Act::Search,
        "log.search",
        &["/"],
        "search",
        "Look for a text in the log.",
        LOGS,
        Some("ym logs BEAD"),
    ),
    action(
        Act::Follow,
        "log.follow",
        &["F"],
        "follow",
        "Stay at the end as it grows, or stop.",
        LOGS,
        Some("ym logs BEAD --follow"),
    ),
    action(Act::Wrap, "log.wrap", &["w"], "wrap", "Break long lines, or cut them.", LOGS, None),
    action(Act::SearchNext, "log.next", &["n"], "next", "The next match.", LOGS, None),
    action(Act::SearchBack, "log.previous", &["N"], "previous", "The match before.", LOGS, None),
];

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
