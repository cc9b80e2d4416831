//! The last two lines: what was said last or is being typed, and the keys that help here.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::actions::Act;
use crate::console::{Console, Mode, Pane, View};
use crate::layers::{Layer, Line as Typed, LineKind};
use crate::paint::Pen;
use crate::text::{count, fit, shown};
use crate::theme::Role;
use crate::town::Link;
use crate::update::applies;

/// What was said, what is being typed, or what could be undone.
pub(crate) fn message(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    if let Some(Layer::Line(line)) = console.layers.last() {
        typed(pen, area, console, line);
        return;
    }
    let glyphs = pen.look.glyphs;
    let line = if let Some(said) = console.said() {
        let (sign, role) = if said.bad { (glyphs.warning, Role::Bad) } else { (glyphs.dot, Role::Text) };
        Line::from(vec![pen.span(format!(" {sign} "), role), pen.span(shown(&said.text), role)])
    } else if let Link::Lost { why, .. } = &console.town.link {
        let advice = if console.elsewhere.is_some() { "" } else { ". D starts a daemon" };
        let text = format!(" {} {}; trying again{advice}", glyphs.warning, shown(why));
        Line::from(pen.span(text, Role::Warning))
    } else if !console.marks.is_empty() {
        let text = format!(
            " {} marked {} x acts on them, Esc unmarks",
            count(console.marks.len(), "bead"),
            glyphs.dot
        );
        Line::from(pen.span(text, Role::Mark))
    } else {
        standing_by(pen, console)
    };
    pen.line(area, 0, &line);
}

/// The most urgent problem, and what undo would take back.
fn standing_by<'t>(pen: &Pen<'_>, console: &Console) -> Line<'t> {
    let glyphs = pen.look.glyphs;
    let mut spans = Vec::new();
    if let Some(problem) = console.digest.problems.first().filter(|problem| !problem.heals()) {
        let text = format!(
            " {} {} {}: {}",
            glyphs.warning,
            problem.word,
            shown(&problem.name),
            shown(&problem.cause)
        );
        spans.push(pen.span(fit(&text, 90, glyphs.ellipsis), problem.role));
        spans.push(pen.span(format!("  {} 5 shows all  ", glyphs.dot), Role::Dim));
    }
    if let Some(undoable) = console.state().undoable().filter(|last| last.cannot.is_none()) {
        spans.push(pen.span(format!(" z takes back: {}", shown(&undoable.did)), Role::Dim));
    }
    Line::from(spans)
}

/// A line being typed, with its mistake or what helps.
fn typed(pen: &mut Pen<'_>, area: Rect, console: &Console, line: &Typed) {
    let prompt = line.kind.prompt();
    let text = line.input.value();
    let mut spans = vec![pen.span(format!(" {prompt}"), Role::Key), pen.span(shown(text), Role::Text)];
    let help = match &line.error {
        Some(error) => pen.span(format!("   {}", shown(error)), Role::Bad),
        None if text.is_empty() => pen.span(format!("   {}", line.kind.hint()), Role::Dim),
        None => {
            let found = crate::update::completions(console, line, text);
            let words: Vec<&str> =
                found.iter().take(6).map(|whole| whole.get(text.len()..).unwrap_or_default()).collect();
            match (words.as_slice(), &line.kind) {
                ([], LineKind::Filter) => {
                    pen.span(format!("   {}", count(crate::update::rows(console), "row")), Role::Dim)
                }
                ([], _) => Span::raw(""),
                (words, _) => pen.span(format!("   Tab: {}", words.join("  ")), Role::Dim),
            }
        }
    };
    spans.push(help);
    pen.line(area, 0, &Line::from(spans));
    // The cursor is a cell of its own, so that pictures and tests see it too.
    let at = 1 + prompt.width() + text.chars().take(line.input.cursor()).collect::<String>().width();
    let x = area.x + (at as u16).min(area.width.saturating_sub(1));
    pen.tint(Rect::new(x, area.y, 1, 1), pen.style(Role::Selection));
}

/// The keys that help here; what does not apply is dim.
pub(crate) fn footer(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    // Closer together where that makes room for all of them.
    let apart = if keys_width(console) > usize::from(area.width) { 1 } else { 2 };
    let mut spans = vec![Span::raw(" ")];
    let mut used = 1;
    for act in offered(console) {
        let action = act.action();
        let key = action.keys.first().copied().unwrap_or_default();
        let applies = applies(console, *act).is_ok();
        let title =
            if *act == Act::Pause && console.state().pause().is_some() { "resume" } else { action.title };
        let gap = if key.chars().count() == 1 && !key.chars().all(char::is_alphanumeric) { "" } else { " " };
        let wide = key.width() + gap.len() + title.width();
        if used + wide > usize::from(area.width) {
            break;
        }
        let wide = wide + apart;
        used += wide;
        let (key_role, role) = if applies { (Role::Key, Role::Text) } else { (Role::Dim, Role::Dim) };
        spans.push(pen.span(key, key_role));
        spans.push(pen.span(format!("{gap}{title}{}", " ".repeat(apart)), role));
    }
    pen.line(area, 0, &Line::from(spans));
}

/// How wide the keys are with two spaces between them.
fn keys_width(console: &Console) -> usize {
    let wide = |act: &Act| {
        let action = act.action();
        action.keys.first().copied().unwrap_or_default().width() + action.title.width() + 3
    };
    1 + offered(console).iter().map(wide).sum::<usize>()
}

fn offered(console: &Console) -> &'static [Act] {
    if console.homeless {
        return &[Act::Help, Act::Quit];
    }
    match console.layers.last() {
        Some(Layer::Line(_) | Layer::Finder(_) | Layer::Menu(_)) => return &[],
        Some(Layer::Plan(..)) => return &[Act::Back, Act::Launch, Act::Copy, Act::Help],
        Some(Layer::Why(..) | Layer::WhyIdle(..) | Layer::Detail(..) | Layer::Output(..)) => {
            return &[Act::Back, Act::Why, Act::Detail, Act::Logs, Act::ActMenu, Act::Copy, Act::Help];
        }
        None => {}
    }
    if console.pane == Pane::Log {
        return &[
            Act::Back,
            Act::Search,
            Act::SearchNext,
            Act::SearchBack,
            Act::Follow,
            Act::Wrap,
            Act::FullScreen,
            Act::Copy,
            Act::Help,
        ];
    }
    match &console.mode {
        Mode::Replay(_) => &[
            Act::Back,
            Act::StepBack,
            Act::StepOn,
            Act::WaveOn,
            Act::FaultBack,
            Act::FaultOn,
            Act::Play,
            Act::GoTo,
            Act::Diff,
            Act::Why,
            Act::Help,
        ],
        Mode::WhatIf(_) => &[
            Act::Back,
            Act::KnobUp,
            Act::KnobDown,
            Act::ResetKnobs,
            Act::Apply,
            Act::ViewTimeline,
            Act::Help,
        ],
        Mode::Live if console.view == View::Agents && console.state().agents().next().is_some() => &[
            Act::Help,
            Act::Prompt,
            Act::Why,
            Act::Detail,
            Act::ReleaseBead,
            Act::RetireAgent,
            Act::Logs,
            Act::ActMenu,
            Act::Copy,
            Act::Pause,
            Act::Clear,
            Act::Undo,
            Act::WhatIf,
            Act::Replay,
            Act::Quit,
        ],
        Mode::Live => &[
            Act::Help,
            Act::Prompt,
            Act::Filter,
            Act::Stage,
            Act::Launch,
            Act::Pause,
            Act::Clear,
            Act::Preempt,
            Act::Retry,
            Act::Logs,
            Act::Why,
            Act::ActMenu,
            Act::Undo,
            Act::WhatIf,
            Act::Replay,
            Act::Quit,
        ],
    }
}
