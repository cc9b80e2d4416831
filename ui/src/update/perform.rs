//! What each action does, and whether it applies. The match is total: a new action cannot be forgotten.

use yard_engine::bead::Verdict;
use yard_engine::dispatch::TMUX_EXECUTOR;
use yard_engine::readiness::ReasonCode;
use yard_engine::{BeadId, Standing, State};

use super::modes::{apply, back_to_live, replay, replayed, sought, turned, what_if};
use super::moves::{Move, go, search};
use super::{agents, menus};
use crate::actions::{ACTIONS, Act, Place};
use crate::console::{Console, Mode, Pane, Subject, View};
use crate::crew;
use crate::layers::{Entry, Layer, Line, LineKind, Pick, Text, finder};
use crate::msg::{Effect, Entering, Leaving};
use crate::replay::Mark;
use crate::town::Link;
use crate::whatif::WhatIf;

/// Whether an action applies here and now; the error says why not.
pub fn applies(console: &Console, act: Act) -> Result<(), String> {
    let needs_town = !matches!(
        act,
        Act::Help | Act::Quit | Act::Redraw | Act::Suspend | Act::Back | Act::Mouse | Act::Palette
    );
    if console.homeless && needs_town {
        return Err("there is no town here yet: i makes one, d shows a demonstration".to_owned());
    }
    let changes = act.action().group == crate::actions::Group::Verbs;
    match &console.mode {
        Mode::Replay(_) if changes => {
            return Err("this is the past: nothing can be changed; Esc returns to now".to_owned());
        }
        Mode::WhatIf(_) if changes => {
            return Err("this is a simulation: A applies it, Esc returns to the town".to_owned());
        }
        Mode::Live | Mode::Replay(_) | Mode::WhatIf(_) => {}
    }
    if changes && matches!(console.town.link, Link::Lost { .. }) && !matches!(act, Act::Daemon | Act::Shell) {
        return Err(match (&console.elsewhere, &console.town.link) {
            (Some(_), Link::Lost { why, .. }) => why.clone(),
            _ => "nobody serves the town: D starts a daemon".to_owned(),
        });
    }
    match act {
        Act::Why if console.agent().is_some() => Ok(()),
        Act::ReleaseBead => agents::releasable(console).map(drop),
        Act::RetireAgent => agents::retirable(console).map(drop),
        Act::Why | Act::Logs | Act::Attach | Act::Copy if console.bead().is_none() => {
            if act == Act::Copy && console.subject().is_some() {
                return Ok(());
            }
            Err("no bead is selected".to_owned())
        }
        Act::Detail if console.subject().is_none() => Err("nothing is selected".to_owned()),
        Act::Clear => beads_that(console, "wait on the schedule", waits),
        Act::Retry => beads_that(console, "were given up", was_given_up),
        Act::Preempt if console.bead().is_some_and(|id| crew::is_claimed(console.state(), &id)) => {
            Err("an agent has it, and no worker: x takes it back".to_owned())
        }
        Act::Preempt => match console.bead().and_then(|id| console.state().standing(&id)) {
            None => Err("no bead is selected".to_owned()),
            Some(Standing::Running | Standing::Queued) => Ok(()),
            Some(standing) => Err(format!(
                "preempt applies to running or queued beads, and this one is {}",
                standing.as_str()
            )),
        },
        Act::Launch => launchable(console),
        Act::Undo if console.state().undoable().is_none() => Err("there is nothing to take back".to_owned()),
        Act::Redo if console.state().redoable().is_none() => {
            Err("nothing was taken back that could be done again".to_owned())
        }
        Act::Acknowledge if !matches!(console.subject(), Some(Subject::Alert(_))) => {
            Err("no alert is selected: 5 lists them".to_owned())
        }
        Act::Shell if console.bead().and_then(|id| console.state().rig_of(&id)).is_none() => {
            Err("no bead is selected that has a rig".to_owned())
        }
        Act::Daemon if console.elsewhere.is_some() => {
            Err("a daemon runs on the host of its town: start it there, with ym --daemon".to_owned())
        }
        Act::Daemon if !console.embedded && matches!(console.town.link, Link::Live { .. }) => {
            Err("a daemon serves the town already".to_owned())
        }
        Act::Mark | Act::Range | Act::MarkAll | Act::Sort
            if !matches!(console.view, View::Yard | View::Timeline) =>
        {
            Err("beads are marked and sorted in the yard (1) and the timeline (3)".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether a bead is on the schedule and has not started.
fn waits(state: &State, id: &BeadId) -> bool {
    state.bead(id).is_some_and(|entry| entry.work.context.is_some() && entry.work.live.is_none())
}

/// Whether a retry gives a bead another chance.
fn was_given_up(state: &State, id: &BeadId) -> bool {
    let verdict = state.bead(id).and_then(|entry| entry.work.verdict);
    let out_of_money = || state.reasons(id).iter().any(|reason| reason.code == ReasonCode::CostLimit);
    if state.merge_of(id).is_some_and(|merge| merge.problem().is_some()) {
        return true;
    }
    match verdict {
        Some(Verdict::Failed | Verdict::Unavailable | Verdict::Cancelled | Verdict::CircuitBroken) => true,
        Some(Verdict::Done) => false,
        None => waits(state, id) && out_of_money(),
    }
}

/// Whether any of the targets is such a bead.
fn beads_that(console: &Console, what: &str, test: fn(&State, &BeadId) -> bool) -> Result<(), String> {
    let targets = console.targets();
    if targets.is_empty() {
        return Err("no bead is selected".to_owned());
    }
    if targets.iter().any(|id| test(console.state(), id)) {
        return Ok(());
    }
    match targets.as_slice() {
        [one] => {
            let standing = console.state().standing(one).map_or("gone", Standing::as_str);
            Err(format!("{one} is {standing}: this applies to beads that {what}"))
        }
        many => Err(format!("none of the {} marked beads {what}", many.len())),
    }
}

fn launchable(console: &Console) -> Result<(), String> {
    if !console.launchable().is_empty() {
        return Ok(());
    }
    match console.convoy_at_hand() {
        Some(id) if console.state().convoy(&id).is_some_and(yard_engine::convoy::Convoy::is_open) => {
            Err(format!("{id} is under way already"))
        }
        _ => Err("no convoy is staged: s stages one".to_owned()),
    }
}

/// Does it, or says why not.
pub fn perform(console: &mut Console, act: Act) -> Vec<Effect> {
    if let Err(why) = applies(console, act) {
        console.refuse(why);
        return Vec::new();
    }
    match act {
        Act::ViewYard => show(console, View::Yard),
        Act::ViewConvoys => show(console, View::Convoys),
        Act::ViewTimeline => show(console, View::Timeline),
        Act::ViewAgents => show(console, View::Agents),
        Act::ViewProblems => show(console, View::Problems),
        Act::ViewEvents => show(console, View::Events),
        Act::WhatIf => what_if(console),
        Act::Replay => replay(console),
        Act::Why => match console.agent() {
            Some(name) => push(console, Layer::WhyIdle(Text::default(), name)),
            None => with_bead(console, |id| Layer::Why(Text::default(), id)),
        },
        Act::Detail => detail(console),
        Act::WaysOut => match console.layers.last() {
            Some(Layer::Why(_, id)) => {
                let id = id.clone();
                push(console, Layer::Menu(menus::ways_out(console, &id)))
            }
            _ => Vec::new(),
        },
        Act::Search => push(console, Layer::Line(Line::new(LineKind::Search, ""))),
        Act::RawJson => {
            if let Some(Layer::Detail(_, _, raw)) = console.layers.last_mut() {
                *raw = !*raw;
            }
            Vec::new()
        }
        Act::Logs => {
            console.layers.clear();
            console.pane = Pane::Log;
            console.full = true;
            Vec::new()
        }
        Act::Stage => push(console, Layer::Menu(menus::stage(console))),
        Act::Launch => push(console, Layer::Menu(menus::launch(console))),
        Act::Pause if console.state().pause().is_some() => run(vec![words(&["scheduler", "resume"])]),
        Act::Pause => push(console, Layer::Line(Line::new(LineKind::Pause, ""))),
        Act::Clear => {
            let lines = lines_for(console, &["scheduler", "clear", "--bead"], waits);
            done_with_marks(console, lines)
        }
        Act::Preempt => push(console, Layer::Menu(menus::preempt(console))),
        Act::Retry => {
            let lines = lines_for(console, &["scheduler", "retry"], was_given_up);
            done_with_marks(console, lines)
        }
        Act::Run => run(vec![words(&["scheduler", "run"])]),
        Act::ActMenu => push(console, Layer::Menu(menus::act(console))),
        Act::Undo => run(vec![words(&["undo"])]),
        Act::Redo => run(vec![words(&["redo"])]),
        Act::Acknowledge => match console.subject() {
            Some(Subject::Alert(id)) => run(vec![words(&["alerts", "--ack", &id])]),
            _ => Vec::new(),
        },
        Act::ReleaseBead => push(console, Layer::Menu(agents::release(console))),
        Act::RetireAgent => match agents::retirable(console) {
            Ok(name) => push(console, Layer::Menu(agents::retire(&name))),
            Err(_) => Vec::new(),
        },
        Act::Attach => attach(console),
        Act::Shell => shell(console),
        Act::Daemon => daemon(console),
        Act::Filter => {
            let text = console.table.filter().text().to_owned();
            push(console, Layer::Line(Line::new(LineKind::Filter, text)))
        }
        Act::Prompt => push(console, Layer::Line(Line::new(LineKind::Prompt, ""))),
        Act::Palette => push(console, Layer::Finder(finder("palette", palette(console)))),
        Act::Help => {
            push(console, Layer::Finder(finder("help", help().into_iter().chain(glossary()).collect())))
        }
        Act::Mark => mark(console),
        Act::Range => range(console),
        Act::MarkAll => {
            if console.marks.is_empty() {
                console.marks = console.table.ids().cloned().collect();
            } else {
                console.marks.clear();
            }
            Vec::new()
        }
        Act::Sort => push(console, Layer::Menu(menus::sort(console))),
        Act::Copy => push(console, Layer::Menu(menus::copy(console))),
        Act::Down => moved(console, Move::By(1)),
        Act::Up => moved(console, Move::By(-1)),
        Act::PageDown => moved(console, Move::Pages(1)),
        Act::PageUp => moved(console, Move::Pages(-1)),
        Act::HalfDown => moved(console, Move::Half(1)),
        Act::HalfUp => moved(console, Move::Half(-1)),
        Act::Top => moved(console, Move::Top),
        Act::Bottom => moved(console, Move::Bottom),
        Act::NextPane => {
            console.pane = match console.pane {
                Pane::Main => Pane::Log,
                Pane::Log => Pane::Main,
            };
            Vec::new()
        }
        Act::Back => back(console),
        Act::Freeze => {
            let freeze = console.town.frozen().is_none();
            console.town.freeze(freeze);
            console.say(if freeze { "the display stands still; the town goes on" } else { "live again" });
            Vec::new()
        }
        Act::Mouse => {
            console.mouse = !console.mouse;
            console.say(if console.mouse {
                "the mouse picks rows; m leaves it to the terminal"
            } else {
                "the mouse selects text; m takes it back"
            });
            vec![Effect::Mouse(console.mouse)]
        }
        Act::Enlarge => resize(console, 1),
        Act::Shrink => resize(console, -1),
        Act::FullScreen => {
            console.full = !console.full;
            Vec::new()
        }
        Act::Redraw => vec![Effect::Redraw],
        Act::Suspend => vec![Effect::Suspend],
        Act::Quit => quit(console),
        Act::Earlier => shift(console, -1),
        Act::Later => shift(console, 1),
        Act::StepBack => replayed(console, |replay| replay.step(-1)),
        Act::StepOn => replayed(console, |replay| replay.step(1)),
        Act::WaveBack => sought(console, Mark::Wave, false),
        Act::WaveOn => sought(console, Mark::Wave, true),
        Act::FaultBack => sought(console, Mark::Fault, false),
        Act::FaultOn => sought(console, Mark::Fault, true),
        Act::Play => replayed(console, |replay| replay.playing = !replay.playing),
        Act::Diff => replayed(console, |replay| replay.diff = !replay.diff),
        Act::GoTo => push(console, Layer::Line(Line::new(LineKind::GoTo, ""))),
        Act::KnobUp => turned(console, |what_if| what_if.turn(1)),
        Act::KnobDown => turned(console, |what_if| what_if.turn(-1)),
        Act::ResetKnobs => turned(console, WhatIf::reset),
        Act::Apply => apply(console),
        Act::Follow => {
            console.log.follow = !console.log.follow;
            Vec::new()
        }
        Act::Wrap => {
            console.log.wrap = !console.log.wrap;
            Vec::new()
        }
        Act::SearchNext => found(console, true),
        Act::SearchBack => found(console, false),
    }
}

/// Does what was picked from a menu or a list.
pub(super) fn pick(console: &mut Console, pick: Pick) -> Vec<Effect> {
    match pick {
        Pick::Act(act) => perform(console, act),
        Pick::Command(line) => push(console, Layer::Line(Line::new(LineKind::Prompt, line))),
        Pick::Run(lines) => {
            // What was asked about is being done: the plan or the reasons shown are no longer how things stand.
            console.layers.clear();
            if matches!(console.mode, Mode::WhatIf(_)) {
                // What was tried is being applied: from here on the town itself is looked at.
                back_to_live(console);
            }
            done_with_marks(console, lines)
        }
        Pick::Ask(menu) => push(console, Layer::Menu(*menu)),
        Pick::Type(kind) => push(console, Layer::Line(Line::new(kind, ""))),
        Pick::Sort(order) => {
            console.table.set_order(order);
            console.reorder();
            console.table.move_to(0);
            Vec::new()
        }
        Pick::Copy(what, text) => vec![Effect::Copy { what, text }],
        Pick::Stage(targets) => {
            console.say("planning…");
            vec![Effect::Stage { targets, file: None }]
        }
        Pick::Say(words) => {
            console.say(words);
            Vec::new()
        }
        Pick::Stay => Vec::new(),
        Pick::Leave(leaving) => vec![Effect::Quit(leaving)],
        Pick::Enter(entering) => {
            console.say(match entering {
                Entering::Init => "making a town…",
                Entering::Demo => "preparing the demonstration…",
            });
            vec![Effect::Enter(entering)]
        }
        Pick::Nothing(why) => {
            console.refuse(why);
            Vec::new()
        }
    }
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn run(lines: Vec<Vec<String>>) -> Vec<Effect> {
    vec![Effect::Run { lines, show: false }]
}

pub(super) fn push(console: &mut Console, layer: Layer) -> Vec<Effect> {
    console.layers.push(layer);
    Vec::new()
}

fn show(console: &mut Console, view: View) -> Vec<Effect> {
    // The same key again leads back from a convoy to the list.
    if console.view == view && view == View::Convoys {
        console.convoy = None;
    }
    console.view = view;
    console.pane = Pane::Main;
    console.full = false;
    console.layers.clear();
    Vec::new()
}

fn moved(console: &mut Console, how: Move) -> Vec<Effect> {
    if let (Mode::WhatIf(what_if), Move::By(by)) = (&mut console.mode, how) {
        what_if.at = what_if.at.saturating_add_signed(by).min(what_if.knobs.len().saturating_sub(1));
        return Vec::new();
    }
    go(console, how);
    Vec::new()
}

fn with_bead(console: &mut Console, layer: impl FnOnce(BeadId) -> Layer) -> Vec<Effect> {
    match console.bead() {
        Some(id) => push(console, layer(id)),
        None => Vec::new(),
    }
}

fn detail(console: &mut Console) -> Vec<Effect> {
    match console.subject() {
        Some(Subject::Convoy(id)) => {
            console.view = View::Convoys;
            console.convoy = Some(id);
            console.members = crate::console::Cursor::default();
            Vec::new()
        }
        Some(subject) => push(console, Layer::Detail(Text::default(), subject, false)),
        None => Vec::new(),
    }
}

/// One line per target that such a command applies to.
fn lines_for(console: &Console, before: &[&str], test: fn(&State, &BeadId) -> bool) -> Vec<Vec<String>> {
    let targets = console.targets();
    let fitting = targets.iter().filter(|id| test(console.state(), id));
    fitting.map(|id| words(before).into_iter().chain([id.to_string()]).collect()).collect()
}

/// Marks have served once something was done to them.
fn done_with_marks(console: &mut Console, lines: Vec<Vec<String>>) -> Vec<Effect> {
    console.marks.clear();
    console.range_from = None;
    run(lines)
}

fn mark(console: &mut Console) -> Vec<Effect> {
    if let Some(id) = console.table.selected().cloned() {
        if !console.marks.remove(&id) {
            console.marks.insert(id);
        }
        go(console, Move::By(1));
    }
    Vec::new()
}

fn range(console: &mut Console) -> Vec<Effect> {
    let here = console.table.cursor();
    match console.range_from.take() {
        None => {
            console.range_from = Some(here);
            console.say("the range begins here: move, then v again marks everything in between");
        }
        Some(from) => {
            let between: Vec<BeadId> = console.table.between(from, here).cloned().collect();
            console.marks.extend(between);
        }
    }
    Vec::new()
}

/// One step out, whatever one is in.
fn back(console: &mut Console) -> Vec<Effect> {
    if console.layers.pop().is_some() {
        return Vec::new();
    }
    if console.full {
        console.full = false;
        console.pane = Pane::Main;
    } else if console.pane == Pane::Log {
        console.pane = Pane::Main;
    } else if console.range_from.take().is_some() {
    } else if !console.marks.is_empty() {
        console.marks.clear();
    } else if !matches!(console.mode, Mode::Live) {
        console.mode = Mode::Live;
        console.refresh(true);
        console.say("back to the town as it is");
    } else if !console.table.filter().is_empty() {
        console.table.set_filter(crate::filter::Filter::default());
        console.reorder();
    } else if console.view == View::Convoys && console.convoy.is_some() {
        console.convoy = None;
    } else if console.view != View::Yard {
        console.view = View::Yard;
    } else if console.homeless {
        console.layers.push(Layer::Menu(menus::welcome(console)));
    } else {
        console.say("q quits");
    }
    Vec::new()
}

fn quit(console: &mut Console) -> Vec<Effect> {
    let running = console.town.state.live_count();
    if console.embedded && running > 0 {
        return push(console, Layer::Menu(menus::quit(running)));
    }
    vec![Effect::Quit(Leaving::Plainly)]
}

fn daemon(console: &mut Console) -> Vec<Effect> {
    if console.embedded {
        return vec![Effect::Quit(Leaving::ToDaemon)];
    }
    console.say("starting a daemon…");
    vec![Effect::Run { lines: vec![words(&["--daemon"])], show: false }]
}

fn resize(console: &mut Console, by: i16) -> Vec<Effect> {
    if console.view == View::Timeline && console.pane == Pane::Main {
        let column = crate::timeline::axis(console, usize::from(console.size.0)).column;
        console.column = Some(crate::timeline::next_column(column, by > 0));
        return Vec::new();
    }
    let towards_log = if console.pane == Pane::Log { by } else { -by };
    console.share = (console.share + 2 * towards_log).clamp(-60, 60);
    Vec::new()
}

fn shift(console: &mut Console, by: i64) -> Vec<Effect> {
    console.shift += by * 10;
    Vec::new()
}

fn found(console: &mut Console, on: bool) -> Vec<Effect> {
    if console.log.search.is_empty() {
        console.say("/ searches the log");
    } else if !search(console, on) {
        let wanted = console.log.search.clone();
        console.refuse(super::typing::not_found(console, &wanted));
    }
    Vec::new()
}

fn attach(console: &mut Console) -> Vec<Effect> {
    let Some(id) = console.bead() else { return Vec::new() };
    let live = console.state().bead(&id).and_then(|entry| entry.work.live.as_ref());
    let executor = live.and_then(|id| console.state().dispatch(id)).map(|dispatch| dispatch.executor.clone());
    match executor.as_deref() {
        Some(TMUX_EXECUTOR) => vec![Effect::Outside { argv: words(&["attach", id.as_str()]), dir: None }],
        Some(_) if crew::is_claimed(console.state(), &id) => {
            console
                .say("an agent has it, in a terminal that we do not know: what was written is shown instead");
            perform(console, Act::Logs)
        }
        Some(_) => {
            console.say("this worker has no terminal of its own: its output is followed instead");
            perform(console, Act::Logs)
        }
        None => {
            console.refuse(format!("{id} is not running: l shows its log"));
            Vec::new()
        }
    }
}

fn shell(console: &mut Console) -> Vec<Effect> {
    let dir = console.bead().and_then(|id| console.state().rig_of(&id)).map(|rig| rig.path.clone());
    match dir {
        Some(dir) => vec![Effect::Outside { argv: Vec::new(), dir: Some(dir.into()) }],
        None => Vec::new(),
    }
}

fn help() -> Vec<Entry> {
    ACTIONS.iter().map(entry_of).collect()
}

/// The words on the screen: choosing one says what it means.
fn glossary() -> impl Iterator<Item = Entry> {
    crate::glossary::WORDS.iter().map(|(word, meaning)| Entry {
        keys: String::new(),
        title: (*word).to_owned(),
        help: (*meaning).to_owned(),
        pick: Pick::Say((*meaning).to_owned()),
    })
}

fn palette(console: &Console) -> Vec<Entry> {
    let commands = console.commands.iter().map(|known| Entry {
        keys: String::new(),
        title: format!("ym {}", known.line),
        help: known.about.clone(),
        pick: Pick::Command(format!("{} ", known.line)),
    });
    help().into_iter().chain(commands).collect()
}

fn entry_of(action: &crate::actions::Action) -> Entry {
    let line = action.line.map(|line| format!("  [{line}]")).unwrap_or_default();
    let place = match action.place {
        Place::Anywhere => "",
        Place::Timeline => " (timeline)",
        Place::Agents => " (agents)",
        Place::Replay => " (replay)",
        Place::WhatIf => " (what-if)",
        Place::Log => " (log)",
        Place::Detail => " (details)",
        Place::Why => " (why)",
    };
    Entry {
        keys: action.keys.join(" "),
        title: format!("{}{place}", action.title),
        help: format!("{}{line}", action.help),
        pick: Pick::Act(action.act),
    }
}
