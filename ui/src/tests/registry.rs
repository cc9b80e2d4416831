//! The registry is whole: every action has a name, words and keys of its own, is found in the palette, and does or says
//! something.

use std::collections::BTreeSet;

use crate::actions::{ACTIONS, Act, Group, Place, action_of, key_table};
use crate::console::View;
use crate::layers::{Layer, Pick};
use crate::perform;
use crate::testing::session::Session;
use crate::testing::{press, scenes};

fn apollo() -> Session {
    let mut session = Session::on(scenes::apollo(), (120, 40), "terminal", false);
    session.select("gt-430");
    session
}

#[test]
fn every_action_has_a_name_of_its_own_words_and_a_key() {
    let ids: BTreeSet<_> = ACTIONS.iter().map(|action| action.id).collect();
    let acts: BTreeSet<_> = ACTIONS.iter().map(|action| action.act).collect();
    assert_eq!((ids.len(), acts.len()), (ACTIONS.len(), ACTIONS.len()));
    for action in ACTIONS {
        assert_eq!(action.act.action().id, action.id);
        assert!(!action.keys.is_empty(), "{} has no key", action.id);
        assert!(action.help.len() > 10 && action.help.ends_with('.'), "{}: {}", action.id, action.help);
        assert!(!action.title.is_empty() && action.title.len() <= 12, "{}: {}", action.id, action.title);
        let name = action.id.split('.').collect::<Vec<_>>();
        assert!(matches!(name.as_slice(), [_, _]), "{} is not place.name", action.id);
    }
}

#[test]
fn no_key_means_two_things_in_one_place_and_every_key_can_be_pressed() {
    let mut taken = BTreeSet::new();
    for action in ACTIONS {
        for key in action.keys {
            assert!(taken.insert((action.place, *key)), "{key} twice, in {:?}", action.place);
            let pressed = crate::keys::key(key).unwrap_or_else(|| panic!("{key} cannot be pressed"));
            assert_eq!(crate::keys::name(pressed).as_deref(), Some(*key));
            assert_eq!(action_of(key, &[action.place]).map(|found| found.act), Some(action.act));
        }
    }
}

#[test]
fn special_places_hide_only_what_is_of_no_use_there() {
    // What a place's own keys hide from those that work anywhere. A new entry here should be thought about: the hidden
    // action must be reachable in some other way, or make no sense there.
    let mut hidden = BTreeSet::new();
    for action in ACTIONS.iter().filter(|action| action.place != Place::Anywhere) {
        for key in action.keys {
            if let Some(general) = action_of(key, &[Place::Anywhere]) {
                hidden.insert((action.place, *key, general.id));
            }
        }
    }
    let expected = [
        (Place::Replay, "Space", "find.mark"),
        (Place::WhatIf, "+", "screen.enlarge"),
        (Place::WhatIf, "-", "screen.shrink"),
        (Place::WhatIf, "A", "alert.ack"),
        (Place::WhatIf, "_", "screen.shrink"),
        (Place::WhatIf, "r", "bead.retry"),
        (Place::Log, "/", "find.filter"),
        (Place::Log, "F", "screen.freeze"),
        (Place::Log, "w", "bead.why"),
        (Place::Why, "Enter", "bead.detail"),
    ];
    assert_eq!(hidden, BTreeSet::from(expected));
}

#[test]
fn help_and_palette_offer_every_action() {
    for key in ["?", "Ctrl-p"] {
        let mut session = apollo();
        session.press(key);
        let Some(Layer::Finder(finder)) = session.console.layers.last() else { panic!("{key} opens a list") };
        for action in ACTIONS {
            let offered = finder.entries.iter().any(|entry| entry.pick == Pick::Act(action.act));
            assert!(offered, "{key} does not offer {}", action.id);
        }
    }
}

/// What can be seen of a console, besides its screen.
fn visible(session: &Session) -> String {
    let console = &session.console;
    format!(
        "{}{:?}{:?}{:?}{:?}{:?}",
        session.screen(),
        console.said,
        console.column,
        console.shift,
        console.log.wrap,
        console.marks
    )
}

#[test]
fn every_action_does_or_says_something_wherever_it_is_offered() {
    // Moving up in the first row, or to a pane that has the keyboard, changes nothing, and need not say so.
    let quiet = [Act::Up, Act::PageUp, Act::HalfUp, Act::Top, Act::RawJson];
    for action in ACTIONS {
        let mut session = Session::on(scenes::apollo(), (120, 40), "terminal", false);
        match action.place {
            Place::Anywhere => {}
            Place::Timeline => drop(session.press("3")),
            Place::Agents => drop(session.press("4")),
            Place::Replay => drop(session.press("T { { {")),
            Place::WhatIf => drop(session.press("W +")),
            Place::Log => drop(session.select("gt-419").press("l")),
            Place::Detail => drop(session.press("Enter")),
            Place::Why => drop(session.press("w")),
        }
        let before = visible(&session);
        session.console.said = None;
        let effects = perform(&mut session.console, action.act);
        crate::prepare(&mut session.console);
        let changed = visible(&session) != before || session.console.said.is_some() || !effects.is_empty();
        let is_here = action.act == Act::ViewYard;
        assert!(changed || is_here || quiet.contains(&action.act), "{} does nothing", action.id);
    }
}

#[test]
fn every_action_survives_every_view_and_an_empty_town() {
    for yard in [scenes::apollo, scenes::empty, scenes::staged, scenes::hostile, scenes::atelier] {
        let mut session = Session::on(yard(), (120, 40), "terminal", false);
        for view in View::ALL {
            for action in ACTIONS {
                session.console.view = view;
                perform(&mut session.console, action.act);
                crate::prepare(&mut session.console);
                let _ = session.painted();
                session.console.layers.clear();
                session.console.mode = crate::console::Mode::Live;
                session.console.town.freeze(false);
            }
        }
    }
}

#[test]
fn every_verb_has_a_command_line() {
    for action in ACTIONS.iter().filter(|action| action.group == Group::Verbs) {
        assert!(action.line.is_some(), "{} has none", action.id);
    }
}

#[test]
fn the_table_of_keys_tells_every_action() {
    let table = key_table();
    for action in ACTIONS {
        assert!(table.contains(action.help), "{} is missing", action.id);
        for key in action.keys {
            assert!(table.contains(&format!("`{key}`")), "{key} is missing");
        }
    }
}

#[test]
fn the_footer_shows_what_the_keys_really_do() {
    let mut session = apollo();
    let footer = session.screen().lines().last().expect("a footer").to_owned();
    for (key, words) in [("w", "w why"), ("P", "P preempt"), ("x", "x act")] {
        assert!(footer.contains(words), "{footer}");
        press(&mut session.console, key);
        assert_eq!(session.console.layers.len(), 1, "{key}");
        press(&mut session.console, "Esc");
    }
}

#[test]
fn the_readme_has_the_table_of_keys() {
    super::kept("README.md", |readme| {
        let (begin, end) = ("<!-- keys: made by a test, UPDATE=1 rewrites it -->\n", "<!-- end of keys -->");
        let (before, rest) = readme.split_once(begin).expect("the README has a place for keys");
        let (_, after) = rest.split_once(end).expect("the place for keys ends");
        format!("{before}{begin}\n{}{end}{after}", key_table())
    });
}
