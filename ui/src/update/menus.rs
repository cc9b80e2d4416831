//! The menus: what applies, from narrow to broad, with the exact command each choice stands for. What cannot be undone
//! says so and asks; the confirming key is never the one that opened the question.

use yard_engine::forecast::Change;
use yard_engine::{BeadId, ConvoyId, Standing};

use super::agents;
use super::perform::words;
use crate::console::{Console, Subject};
use crate::layers::{Item, LineKind, Menu, Pick};
use crate::msg::{Entering, Leaving};
use crate::table::ORDERS;
use crate::text::{count, shown};

const UNDOABLE: &str = "z takes it back";
const FOR_GOOD: &str = "cannot be undone";

/// A question with one answer besides leaving.
pub(super) fn ask(title: String, notes: Vec<String>, yes: &str, lines: Vec<Vec<String>>) -> Menu {
    let mut notes = notes;
    notes.extend(lines.iter().take(4).map(|line| format!("$ ym {}", line.join(" "))));
    if lines.len() > 4 {
        notes.push(format!("$ … and {} more", lines.len() - 4));
    }
    let items = vec![Item::new('y', yes, FOR_GOOD, Pick::Run(lines)), leave()];
    Menu { title, notes, items, at: 1 }
}

pub(super) fn leave() -> Item {
    Item::new('n', "leave it as it is", "Esc", Pick::Stay)
}

/// What to stage.
pub(super) fn stage(console: &Console) -> Menu {
    let mut items = Vec::new();
    let state = console.state();
    if !console.marks.is_empty() {
        let ids = console.marks.iter().map(ToString::to_string).collect();
        items.push(Item::new('m', format!("the {} marked beads", console.marks.len()), "", Pick::Stage(ids)));
    }
    if let Some(Subject::Convoy(id)) = console.subject() {
        items.push(Item::new('c', format!("convoy {id} again"), "", Pick::Stage(vec![id.to_string()])));
    }
    if let Some(entry) = console.bead().and_then(|id| state.bead(&id)) {
        let mut epics: Vec<&BeadId> = Vec::new();
        if entry.bead.is_epic() {
            epics.push(&entry.bead.id);
        }
        epics.extend(
            entry.bead.dependencies.iter().filter_map(|edge| {
                (edge.kind == yard_engine::bead::DepKind::ParentChild).then_some(&edge.on)
            }),
        );
        for (key, epic) in "epq".chars().zip(epics) {
            let title = state.bead(epic).map(|e| shown(&e.bead.title)).unwrap_or_default();
            items.push(Item::new(
                key,
                format!("epic {epic} {title}"),
                "",
                Pick::Stage(vec![epic.to_string()]),
            ));
        }
        if !entry.bead.is_epic() {
            let id = entry.bead.id.to_string();
            items.push(Item::new('t', format!("only {id}"), "", Pick::Stage(vec![id])));
        }
    }
    let listed = |id: &BeadId| items.iter().any(|item| item.pick == Pick::Stage(vec![id.to_string()]));
    let epics = state.beads().filter(|e| e.bead.is_epic() && !e.bead.is_closed() && !listed(&e.bead.id));
    for (key, entry) in ('1'..='5').zip(epics.take(5).collect::<Vec<_>>()) {
        let (id, title) = (&entry.bead.id, shown(&entry.bead.title));
        items.push(Item::new(key, format!("epic {id} {title}"), "", Pick::Stage(vec![id.to_string()])));
    }
    items.push(Item::new('i', "by id…", "epic, convoy or tasks", Pick::Type(LineKind::Stage)));
    items.push(Item::new(
        'f',
        "a file of beads…",
        "JSON lines, as bd and br write them",
        Pick::Type(LineKind::StageFile),
    ));
    let notes = vec!["Staging plans and starts nothing: you see waves and findings first.".to_owned()];
    Menu { title: "stage".to_owned(), notes, items, at: 0 }
}

/// Whether to launch, and which if there are several.
pub(super) fn launch(console: &Console) -> Menu {
    match console.launchable().as_slice() {
        [] => Menu::default(),
        [one] => launch_of(console, one),
        many => {
            let title =
                |id: &ConvoyId| console.state().convoy(id).map(|c| shown(&c.title)).unwrap_or_default();
            let items = ('1'..='9').zip(many).map(|(key, id)| {
                let asks = Pick::Ask(Box::new(launch_of(console, id)));
                Item::new(key, format!("{id} {}", title(id)), "asks first", asks)
            });
            Menu { title: "launch which?".to_owned(), notes: Vec::new(), items: items.collect(), at: 0 }
        }
    }
}

fn launch_of(console: &Console, id: &ConvoyId) -> Menu {
    let Some(convoy) = console.state().convoy(id) else { return Menu::default() };
    let mut line = words(&["convoy", "launch", convoy.id.as_str()]);
    let first = convoy.waves.first().copied().unwrap_or(0);
    let mut notes = vec![format!(
        "{}: {} in {}, {first} of them in the first",
        shown(&convoy.title),
        count(convoy.tracked.len(), "bead"),
        count(convoy.waves.len(), "wave"),
    )];
    if convoy.status() == "staged:warnings" {
        line.push("--force".to_owned());
        notes.push("Staging had warnings; launching goes on in spite of them.".to_owned());
    }
    if let Some(pause) = console.state().pause() {
        notes.push(format!(
            "Dispatch is paused by {}: nothing starts before it is resumed.",
            shown(&pause.by)
        ));
    }
    ask(format!("launch {}?", convoy.id), notes, "launch it", vec![line])
}

/// Who gives way to whom.
pub(super) fn preempt(console: &Console) -> Menu {
    let state = console.state();
    let Some(id) = console.bead() else { return Menu::default() };
    if state.standing(&id) == Some(Standing::Running) {
        let line = words(&["preempt", id.as_str()]);
        let notes = vec![
            "Its worker is asked to come to a checkpoint, then ended.".to_owned(),
            "Its bead goes back to its old place in the queue.".to_owned(),
        ];
        let mut menu = ask(format!("{id} gives way?"), notes, "it gives way", vec![line]);
        "z takes it back while it runs".clone_into(&mut menu.items[0].note);
        return menu;
    }
    let priority = |bead: &BeadId| {
        let context = state.bead(bead).and_then(|entry| entry.work.last_context.as_ref());
        context.and_then(|id| state.context(id)).map_or(50, |context| context.priority)
    };
    // What an agent has takes no worker's place.
    let mut running: Vec<_> =
        crate::crew::workers(state).filter(|dispatch| dispatch.stop.is_none()).collect();
    running.sort_by_key(|dispatch| (priority(dispatch.id.bead()), std::cmp::Reverse(dispatch.started_at)));
    let mut items: Vec<Item> = ('1'..='9')
        .zip(running)
        .map(|(key, dispatch)| {
            let bead = dispatch.id.bead();
            let title = state.bead(bead).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
            let note = format!("priority {}", priority(bead));
            let line = words(&["preempt", bead.as_str(), "--for", id.as_str()]);
            Item::new(key, format!("{bead} {title}"), note, Pick::Run(vec![line]))
        })
        .collect();
    if items.is_empty() {
        items.push(Item::new('1', "nothing is running", "", Pick::Nothing("nothing is running".to_owned())));
    }
    items.push(leave());
    let notes = vec![
        "The one you pick comes to a checkpoint, ends and is queued again.".to_owned(),
        format!("$ ym preempt BEAD --for {id}"),
    ];
    Menu { title: format!("who makes room for {id}?"), notes, items, at: 0 }
}

/// Everything that applies, from narrow to broad.
pub(super) fn act(console: &Console) -> Menu {
    if let Some(name) = console.agent().filter(|_| console.marks.is_empty()) {
        return agents::act(console, &name);
    }
    let state = console.state();
    let targets = console.targets();
    let mut items = Vec::new();
    let of = |test: &dyn Fn(&BeadId) -> bool| -> Vec<String> {
        targets.iter().filter(|id| test(id)).map(ToString::to_string).collect()
    };
    let lines = |before: &[&str], ids: &[String]| -> Vec<Vec<String>> {
        ids.iter().map(|id| words(before).into_iter().chain([id.clone()]).collect()).collect()
    };
    let context = |id: &BeadId| {
        let entry = state.bead(id)?;
        entry.work.context.as_ref().filter(|_| entry.work.live.is_none()).and_then(|c| state.context(c))
    };
    let standing = |id: &BeadId| state.standing(id);
    let waiting = of(&|id| context(id).is_some_and(|context| !context.held));
    let held = of(&|id| context(id).is_some_and(|context| context.held));
    let scheduled: Vec<BeadId> = targets.iter().filter(|id| context(id).is_some()).cloned().collect();
    let claimed = of(&|id| crate::crew::is_claimed(state, id));
    let running = of(&|id| standing(id) == Some(Standing::Running) && !crate::crew::is_claimed(state, id));
    let is_epic = |id: &BeadId| state.bead(id).is_some_and(|entry| entry.bead.is_epic());
    let fresh = of(&|id| standing(id) == Some(Standing::Open) && !is_epic(id));
    let epics = of(&|id| standing(id) == Some(Standing::Open) && is_epic(id));
    let given_up = of(&|id| {
        matches!(standing(id), Some(Standing::Failed | Standing::CircuitBroken | Standing::Cancelled))
    });
    let open_native = of(&|id| {
        state
            .bead(id)
            .is_some_and(|e| !e.bead.is_closed() && e.bead.source.is_none() && e.work.live.is_none())
    });
    let at_hand = console.convoy_at_hand().and_then(|id| state.convoy(&id)).filter(|c| c.staged.is_some());
    if let Some(convoy) = at_hand {
        let title = format!("launch {} {}", convoy.id, shown(&convoy.title));
        items.push(Item::new('L', title, "asks first", Pick::Ask(Box::new(launch_of(console, &convoy.id)))));
    }
    if let [one] = targets.as_slice() {
        items.extend(agents::release_item(state, one, 'f'));
    }
    if let [epic] = epics.as_slice() {
        let title = format!("stage {epic}");
        items.push(Item::new('e', title, "plans, and starts nothing", Pick::Stage(vec![epic.clone()])));
    }
    let mut offer = |key: char, title: &str, ids: &[String], note: &str, pick: Pick| {
        if !ids.is_empty() {
            let which = if ids.len() == 1 { ids[0].clone() } else { count(ids.len(), "bead") };
            // Each is a command of its own, and taken back as such.
            let note = if ids.len() > 1 && note == UNDOABLE { "z takes them back one by one" } else { note };
            items.push(Item::new(key, format!("{title} {which}"), note, pick));
        }
    };
    offer('h', "hold", &waiting, UNDOABLE, Pick::Run(lines(&["hold"], &waiting)));
    offer('u', "let go of", &held, UNDOABLE, Pick::Run(lines(&["unhold"], &held)));
    let names: Vec<String> = scheduled.iter().map(ToString::to_string).collect();
    offer('o', "priority of", &names, UNDOABLE, Pick::Type(LineKind::Priority(scheduled)));
    let sling = words(&["sling"]).into_iter().chain(fresh.iter().cloned()).collect();
    offer('s', "sling", &fresh, "puts it on the schedule", Pick::Run(vec![sling]));
    offer('r', "retry", &given_up, UNDOABLE, Pick::Run(lines(&["scheduler", "retry"], &given_up)));
    offer('c', "clear", &names, UNDOABLE, Pick::Run(lines(&["scheduler", "clear", "--bead"], &names)));
    let closing = ask(
        format!("close {}?", count(open_native.len(), "bead")),
        vec!["What waits for them may start.".to_owned()],
        "close without running",
        lines(&["bead", "close"], &open_native),
    );
    offer('d', "close without running:", &open_native, "asks first", Pick::Ask(Box::new(closing)));
    let cancelling = ask(
        format!("cancel {}?", count(running.len(), "worker")),
        vec!["Each gets SIGTERM, then SIGKILL after its grace.".to_owned()],
        "cancel",
        lines(&["cancel"], &running),
    );
    offer('C', "cancel", &running, "asks first", Pick::Ask(Box::new(cancelling)));
    let killing = ask(
        format!("kill {} at once?", count(running.len(), "worker")),
        vec!["No SIGTERM, no grace: what they have not written is lost.".to_owned()],
        "kill at once",
        lines(&["kill"], &running),
    );
    offer('K', "kill", &running, "asks first", Pick::Ask(Box::new(killing)));
    let calling_off = ask(
        format!("call off {}?", count(claimed.len(), "bead")),
        vec!["Whoever has it is told that it is theirs no longer; nobody else is offered it.".to_owned()],
        "call off",
        lines(&["cancel"], &claimed),
    );
    offer('O', "call off", &claimed, "asks first", Pick::Ask(Box::new(calling_off)));
    let rig = console.bead().and_then(|id| state.rig_of(&id));
    if let Some(rig) = rig {
        let (verb, title) = if rig.parked { ("unpark", "let rig go on:") } else { ("park", "park rig") };
        let line = words(&["rig", verb, rig.name.as_str()]);
        items.push(Item::new('g', format!("{title} {}", rig.name), UNDOABLE, Pick::Run(vec![line])));
    }
    let queued = state.open_context_count();
    if queued > 0 {
        let all = ask(
            format!("take all {} off the schedule?", count(queued, "bead")),
            vec!["Running work is left alone. z takes it back.".to_owned()],
            "clear everything",
            vec![words(&["scheduler", "clear"])],
        );
        items.push(Item::new('a', "clear everything that waits", "asks first", Pick::Ask(Box::new(all))));
    }
    let title = match targets.as_slice() {
        [] => "act".to_owned(),
        [one] => {
            let words = standing(one).map_or("gone", Standing::as_str);
            format!("act on {one} ({words})")
        }
        many => format!("act on {} marked beads", many.len()),
    };
    if items.is_empty() {
        items.push(Item::new(
            ' ',
            "nothing applies here",
            "",
            Pick::Nothing("nothing applies here".to_owned()),
        ));
    }
    // Nothing is chosen at first: a hasty Enter must not hold or cancel anything.
    let at = items.len();
    Menu { title, notes: Vec::new(), items, at }
}

/// The ways out that the reasons end with, each as a command.
pub(super) fn ways_out(console: &Console, id: &BeadId) -> Menu {
    let ways = crate::ways::ways_out(console.state(), console.shown_forecasts(), id, console.shown_now());
    let mut items: Vec<Item> = ('1'..='9')
        .zip(ways)
        .map(|(key, way)| {
            let line = format!("$ ym {}", way.line.join(" "));
            Item::new(key, way.words, line, Pick::Run(vec![way.line]))
        })
        .collect();
    if items.is_empty() {
        items.push(only_way(console, id));
    }
    items.push(leave());
    let at = items.len() - 1;
    Menu { title: format!("ways out for {id}"), notes: Vec::new(), items, at }
}

/// What is left to do about a bead that nothing stands in the way of, or nothing that a person could move.
fn only_way(console: &Console, id: &BeadId) -> Item {
    let staged = || console.launchable().into_iter().next();
    let nothing = |words: &str| Item::new('1', words, "", Pick::Nothing(words.to_owned()));
    let is_epic = console.state().bead(id).is_some_and(|entry| entry.bead.is_epic());
    match (console.state().standing(id), is_epic) {
        (Some(Standing::Open | Standing::Staged), true) => match staged() {
            Some(convoy) => {
                let asks = Pick::Ask(Box::new(launch_of(console, &convoy)));
                Item::new('1', format!("launch {convoy}"), "asks first", asks)
            }
            None => {
                Item::new('1', format!("stage {id}"), "starts nothing", Pick::Stage(vec![id.to_string()]))
            }
        },
        (Some(Standing::Open), false) => {
            let line = words(&["sling", id.as_str()]);
            Item::new('1', "put it on the schedule", format!("$ ym sling {id}"), Pick::Run(vec![line]))
        }
        (Some(Standing::Running), _) => nothing("it is running: nothing is needed"),
        (Some(Standing::Closed), _) => nothing("it is closed: nothing is needed"),
        _ => agents::more_agents(console.state(), id)
            .unwrap_or_else(|| nothing("nothing you could do: it waits for others, for time or for room")),
    }
}

/// How to order rows.
pub(super) fn sort(console: &Console) -> Menu {
    let (order, reversed) = console.table.order();
    let items = ORDERS.iter().map(|(known, key, name)| {
        let note = match (*known == order, reversed) {
            (true, false) => "now; again turns it around",
            (true, true) => "now, turned around",
            (false, _) => "",
        };
        Item::new(*key, *name, note, Pick::Sort(*known))
    });
    Menu { title: "sort by".to_owned(), notes: Vec::new(), items: items.collect(), at: 0 }
}

/// What to copy.
pub(super) fn copy(console: &Console) -> Menu {
    let mut items = Vec::new();
    let copy = |what: &str, text: String| Pick::Copy(what.to_owned(), text);
    let id = match console.subject() {
        Some(Subject::Bead(id)) => id.to_string(),
        Some(Subject::Convoy(id)) => id.to_string(),
        Some(Subject::Agent(name)) => name.to_string(),
        Some(Subject::Event(seq)) => seq.0.to_string(),
        Some(Subject::Alert(id)) => id,
        None => String::new(),
    };
    let ids = match console.marks.len() {
        0 => id.clone(),
        _ => console.marks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    };
    items.push(Item::new('i', "id", fit_note(&ids), copy("the id", ids.clone())));
    let line = format!("ym why {id}");
    if let Some(name) = console.agent() {
        items.extend(agents::lines(console, &name));
    } else if console.bead().is_some() {
        items.push(Item::new('c', "command line", line.clone(), copy("the command line", line)));
    }
    items.push(Item::new('j', "JSON", "of the row", copy("the JSON", crate::panes::detail::json(console))));
    if !console.log.lines.is_empty() {
        let text = crate::panes::log::plain(&console.log);
        let note = count(console.log.lines.len(), "line");
        items.push(Item::new('l', "log", note, copy("the log", text)));
    }
    let graph = crate::mermaid::graph(console.state(), &console.targets());
    items.push(Item::new('m', "Mermaid graph", "of what it waits for", copy("the graph", graph)));
    Menu { title: "copy".to_owned(), notes: Vec::new(), items, at: 0 }
}

fn fit_note(text: &str) -> String {
    crate::text::fit(text, 40, "…")
}

/// What becomes of running work.
pub(super) fn quit(running: usize) -> Menu {
    let items = vec![
        Item::new('d', "detach to a daemon", "everything goes on", Pick::Leave(Leaving::ToDaemon)),
        Item::new(
            's',
            "stop: drain the workers",
            "their beads are queued again",
            Pick::Leave(Leaving::Draining),
        ),
        Item::new('l', "leave them running", "nothing new starts", Pick::Leave(Leaving::LeavingRunning)),
        Item::new('n', "stay", "Esc", Pick::Stay),
    ];
    let notes = vec![format!("This console runs the town: {} at work.", count(running, "worker"))];
    Menu { title: "quit".to_owned(), notes, items, at: 0 }
}

/// What a simulation comes to.
pub(super) fn apply(changes: &[Change]) -> Menu {
    // What holds back goes first, so that nothing starts in between that the simulation kept.
    let lets_go = |change: &Change| {
        !matches!(change, Change::Paused(true) | Change::Parked(_, true) | Change::Hold(_, true))
    };
    let mut changes: Vec<&Change> = changes.iter().collect();
    changes.sort_by_key(|change| lets_go(change));
    let lines: Vec<Vec<String>> = changes.into_iter().map(Change::command_line).collect();
    let notes = lines.iter().map(|line| format!("$ ym {}", line.join(" "))).collect();
    let items = vec![Item::new('y', "apply", UNDOABLE, Pick::Run(lines)), leave()];
    Menu { title: "apply to the town?".to_owned(), notes, items, at: 1 }
}

/// What one can do where there is no town.
pub(crate) fn welcome(console: &Console) -> Menu {
    let here = console.town.root.display();
    let items = vec![
        Item::new('i', format!("make a town here: {here}"), "ym init", Pick::Enter(Entering::Init)),
        Item::new('d', "see a demonstration", "ym demo, about two minutes", Pick::Enter(Entering::Demo)),
        Item::new('x', "leave", "q", Pick::Leave(Leaving::Plainly)),
    ];
    let notes = vec![
        "There is no town here: no directory above this one has a .yardmaster folder.".to_owned(),
        "A town is where Yardmaster keeps its work, as a .git folder is for git.".to_owned(),
    ];
    // Nothing is chosen at first: what is typed in haste must not make a town.
    let at = items.len();
    Menu { title: "Yardmaster".to_owned(), notes, items, at }
}
