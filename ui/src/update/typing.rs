//! Lines one types: filter, prompt, answers; and lists that are searched by typing.

use crossterm::event::{Event, KeyEvent};
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::moves::search;
use super::perform::{pick, run, words};
use crate::console::{Console, Mode, View};
use crate::filter::{FIELDS, Filter};
use crate::layers::{Finder, Layer, Line, LineKind};
use crate::msg::Effect;

/// Lines remembered by the prompt.
const REMEMBERED: usize = 100;
/// Words that would never come back, or would fight with us for the terminal.
const NOT_HERE: [(&str, &str); 5] = [
    ("--daemon", "D hands the town to a daemon"),
    ("demo", "run ym demo in a shell"),
    ("attach", "a attaches to the selected bead"),
    ("--follow", "l follows a log, 6 follows the events"),
    ("-f", "l follows a log, 6 follows the events"),
];

/// Pasted text goes where one types; elsewhere it would be taken for keys.
pub(super) fn paste(console: &mut Console, text: &str) -> Vec<Effect> {
    let line: String = text.chars().filter(|c| !c.is_control()).collect();
    match console.layers.last_mut() {
        Some(Layer::Line(typed)) => {
            let joined = format!("{}{line}", typed.input.value());
            typed.input = Input::new(joined);
            changed(console);
        }
        Some(Layer::Finder(finder)) => {
            let joined = format!("{}{line}", finder.input.value());
            finder.input = Input::new(joined);
            find(finder);
        }
        _ => {}
    }
    Vec::new()
}

/// A key while a line is typed.
pub(super) fn line_key(console: &mut Console, key: KeyEvent, name: &str) -> Vec<Effect> {
    let Some(Layer::Line(line)) = console.layers.last_mut() else { return Vec::new() };
    match name {
        "Esc" | "Ctrl-c" => {
            let kind = line.kind.clone();
            console.layers.pop();
            if kind == LineKind::Filter {
                // Leaving without Enter takes the filter off: what is typed is applied as one types.
                set_filter(console, "");
            }
            return Vec::new();
        }
        "Enter" => return entered(console),
        "Tab" => complete(console),
        "Up" | "Down" if line.kind == LineKind::Prompt => recall(console, name == "Up"),
        _ => {
            line.input.handle_event(&Event::Key(key));
            line.error = None;
            changed(console);
        }
    }
    Vec::new()
}

/// A filter is applied as it is typed.
fn changed(console: &mut Console) {
    if let Some(Layer::Line(line)) = console.layers.last()
        && line.kind == LineKind::Filter
    {
        let text = line.input.value().to_owned();
        let error = set_filter(console, &text);
        if let Some(Layer::Line(line)) = console.layers.last_mut() {
            line.error = error;
        }
    }
}

fn set_filter(console: &mut Console, text: &str) -> Option<String> {
    match Filter::parse(text) {
        Ok(filter) => {
            console.table.set_filter(filter);
            console.reorder();
            None
        }
        Err(error) => Some(error),
    }
}

fn entered(console: &mut Console) -> Vec<Effect> {
    let Some(Layer::Line(line)) = console.layers.last() else { return Vec::new() };
    let (kind, text) = (line.kind.clone(), line.input.value().trim().to_owned());
    let done = match &kind {
        LineKind::Filter => set_filter(console, &text).map_or(Ok(Vec::new()), Err),
        LineKind::Prompt => prompt(console, &text),
        LineKind::Pause => {
            let mut line = words(&["scheduler", "pause"]);
            if !text.is_empty() {
                line.extend(["--reason".to_owned(), text.clone()]);
            }
            Ok(run(vec![line]))
        }
        LineKind::Stage => {
            let targets: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            if targets.is_empty() {
                Err("name an epic, a convoy or tasks".to_owned())
            } else {
                Ok(vec![Effect::Stage { targets, file: None }])
            }
        }
        LineKind::StageFile if text.is_empty() => Err("name a file".to_owned()),
        LineKind::StageFile => {
            Ok(vec![Effect::Stage { targets: Vec::new(), file: Some(text.clone().into()) }])
        }
        LineKind::Priority(beads) => match text.parse::<u8>() {
            Ok(priority @ 1..=100) => {
                let line =
                    |id: &yard_engine::BeadId| words(&["priority", id.as_str(), &priority.to_string()]);
                Ok(run(beads.iter().map(line).collect()))
            }
            _ => Err("a priority is a number from 1 to 100".to_owned()),
        },
        LineKind::GoTo => go_to(console, &text).map(|()| Vec::new()),
        LineKind::Search => {
            console.log.search.clone_from(&text);
            let found = text.is_empty() || search(console, false);
            if !found {
                console.refuse(not_found(console, &text));
            }
            Ok(Vec::new())
        }
    };
    match done {
        Ok(effects) => {
            console.layers.retain(|layer| !matches!(layer, Layer::Line(line) if line.kind == kind));
            effects
        }
        Err(why) => {
            if let Some(Layer::Line(line)) = console.layers.last_mut() {
                line.error = Some(why);
            }
            Vec::new()
        }
    }
}

/// Says that a log does not contain a text, as far as it is here.
pub(super) fn not_found(console: &Console, text: &str) -> String {
    match console.log.dropped {
        0 => format!("{text:?} is not in this log"),
        _ => format!(
            "{text:?} is not in the last {} lines, which are all that is here",
            console.log.lines.len()
        ),
    }
}

/// Runs a typed command: a view, one of our own words, or any `ym` command.
fn prompt(console: &mut Console, text: &str) -> Result<Vec<Effect>, String> {
    let text = text.strip_prefix("ym ").unwrap_or(text).trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    console.typed.retain(|line| line != text);
    console.typed.push(text.to_owned());
    let over = console.typed.len().saturating_sub(REMEMBERED);
    console.typed.drain(..over);
    let argv = split(text)?;
    let first = argv.first().map(String::as_str).unwrap_or_default();
    if let Some(view) = View::ALL.into_iter().find(|view| view.name() == first) {
        console.view = view;
        return Ok(Vec::new());
    }
    match (first, argv.get(1)) {
        ("q" | "quit" | "q!", None) => return Ok(super::perform(console, crate::actions::Act::Quit)),
        ("theme", Some(name)) => {
            console.look.theme = crate::theme::Theme::shipped(name).map_err(|e| e.to_string())?;
            return Ok(Vec::new());
        }
        ("replay", None) => return Ok(super::perform(console, crate::actions::Act::Replay)),
        _ => {}
    }
    if let Some((word, instead)) = NOT_HERE.iter().find(|(word, _)| argv.iter().any(|typed| typed == word)) {
        return Err(format!("{word} does not work inside the console: {instead}"));
    }
    Ok(vec![Effect::Run { lines: vec![argv], show: true }])
}

/// Splits a line into words as a shell would, with quotes and backslashes, and nothing else of a shell.
pub(crate) fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = letters.next().ok_or("the line ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

/// Completes the word under the cursor as far as it is certain; what is possible shows beside it.
fn complete(console: &mut Console) {
    let Some(Layer::Line(line)) = console.layers.last() else { return };
    let text = line.input.value().to_owned();
    let found = completions(console, line, &text);
    let Some(first) = found.first() else { return };
    let common = found.iter().fold(first.clone(), |common, other| {
        let same = common.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        common.chars().take(same).collect()
    });
    let single = found.len() == 1;
    if let Some(Layer::Line(line)) = console.layers.last_mut()
        && (common.len() > text.len() || single)
    {
        let space = if single && line.kind == LineKind::Prompt { " " } else { "" };
        line.input = Input::new(format!("{common}{space}"));
    }
    changed(console);
}

/// The whole lines that what was typed may become.
pub(crate) fn completions(console: &Console, line: &Line, text: &str) -> Vec<String> {
    let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = text.split_at(start);
    let beads = || {
        let ids = console.state().beads().map(|entry| entry.bead.id.as_str());
        ids.filter(|id| !word.is_empty() && id.starts_with(word)).take(20).map(str::to_owned)
    };
    let words: Vec<String> = match &line.kind {
        LineKind::Filter => {
            let fields = FIELDS.iter().map(|(name, _)| format!("{name}:"));
            let states =
                ["running", "queued", "blocked", "failed", "circuit-broken", "closed", "staged", "open"];
            let states = states.iter().map(|state| format!("state:{state}"));
            let rigs = console.state().rigs().map(|rig| format!("rig:{}", rig.name));
            let wanted = word.trim_start_matches('!').to_owned();
            let all: Vec<String> =
                if wanted.contains(':') { states.chain(rigs).collect() } else { fields.collect() };
            let turned = if word.starts_with('!') { "!" } else { "" };
            all.into_iter().filter(|w| w.starts_with(&wanted)).map(|w| format!("{turned}{w}")).collect()
        }
        LineKind::Prompt => {
            let commands = console.commands.iter().filter(|known| known.line.starts_with(text));
            let commands: Vec<String> = commands.map(|known| known.line.clone()).collect();
            if !commands.is_empty() {
                return commands;
            }
            beads().collect()
        }
        LineKind::Stage => {
            let convoys = console.state().convoys().map(|convoy| convoy.id.to_string());
            beads().chain(convoys.filter(|id| !word.is_empty() && id.starts_with(word))).collect()
        }
        LineKind::Pause | LineKind::StageFile | LineKind::Priority(_) | LineKind::GoTo | LineKind::Search => {
            Vec::new()
        }
    };
    words.into_iter().map(|word| format!("{before}{word}")).collect()
}

fn recall(console: &mut Console, older: bool) {
    let typed = console.typed.clone();
    let Some(Layer::Line(line)) = console.layers.last_mut() else { return };
    let at = match (line.recalled, older) {
        (None, true) => typed.len().checked_sub(1),
        (Some(at), true) => Some(at.saturating_sub(1)),
        (Some(at), false) if at + 1 < typed.len() => Some(at + 1),
        (_, false) => None,
    };
    line.recalled = at;
    line.input = Input::new(at.and_then(|at| typed.get(at)).cloned().unwrap_or_default());
}

/// Goes to a time of the day, a position or a share of the log.
fn go_to(console: &mut Console, text: &str) -> Result<(), String> {
    let zone = console.look.zone;
    let Mode::Replay(replay) = &mut console.mode else { return Ok(()) };
    if let Some(share) = text.strip_suffix('%') {
        let share: usize = share.trim().parse().map_err(|_| format!("{text:?} is not a share"))?;
        replay.go(replay.events().len() * share.min(100) / 100);
    } else if text.contains(':') {
        // The first event at or after that time of the day, read as the screen shows it.
        let wanted = if text.matches(':').count() == 1 { format!("{text}:00") } else { text.to_owned() };
        let found = replay.events().iter().find(|event| zone.clock(event.at) >= wanted);
        let seq =
            found.map(|event| event.seq).ok_or_else(|| format!("nothing happened at {text} or later"))?;
        replay.go_to_seq(seq);
    } else {
        let seq: u64 = text.replace(' ', "").parse().map_err(|_| {
            format!("{text:?} is neither a time (14:05), a position (41077) nor a share (50%)")
        })?;
        replay.go_to_seq(yard_engine::Seq(seq));
    }
    console.refresh(true);
    Ok(())
}

/// A key in a list that is searched by typing.
pub(super) fn finder_key(console: &mut Console, key: KeyEvent, name: &str) -> Vec<Effect> {
    let Some(Layer::Finder(finder)) = console.layers.last_mut() else { return Vec::new() };
    let rows = finder.found.len();
    match name {
        "Esc" | "Ctrl-c" => {
            console.layers.pop();
        }
        "Down" | "Ctrl-n" | "Tab" => finder.at = (finder.at + 1).min(rows.saturating_sub(1)),
        "Up" | "Ctrl-p" | "BackTab" => finder.at = finder.at.saturating_sub(1),
        "PgDn" => finder.at = (finder.at + 10).min(rows.saturating_sub(1)),
        "PgUp" => finder.at = finder.at.saturating_sub(10),
        "Enter" => {
            let chosen = finder.found.get(finder.at).map(|at| finder.entries[*at].pick.clone());
            console.layers.pop();
            if let Some(chosen) = chosen {
                return pick(console, chosen);
            }
        }
        _ => {
            finder.input.handle_event(&Event::Key(key));
            find(finder);
        }
    }
    Vec::new()
}

/// Finds what matches, best first; with nothing typed, everything in its own order.
fn find(finder: &mut Finder) {
    finder.at = 0;
    let wanted = finder.input.value();
    if wanted.trim().is_empty() {
        finder.found = (0..finder.entries.len()).collect();
        return;
    }
    let pattern = Pattern::parse(wanted, CaseMatching::Ignore, Normalization::Smart);
    // The letters of a name may be apart; a whole sentence has all letters, so there they must stand together.
    let exact = Pattern::new(wanted, CaseMatching::Ignore, Normalization::Smart, AtomKind::Substring);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut letters = Vec::new();
    let mut scored: Vec<(u32, usize)> = Vec::new();
    for (at, entry) in finder.entries.iter().enumerate() {
        // What is called so counts more than what mentions it.
        let title = format!("{} {}", entry.keys, entry.title);
        let by_title =
            pattern.score(Utf32Str::new(&title, &mut letters), &mut matcher).map(|score| score * 3);
        let by_help = exact.score(Utf32Str::new(&entry.help, &mut letters), &mut matcher);
        if let Some(score) = by_title.max(by_help) {
            scored.push((score, at));
        }
    }
    scored.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
    finder.found = scored.into_iter().map(|(_, at)| at).collect();
}
