//! Every view, with everything that may lie over it, in every mode, at every size: it is drawn, in bounds, and in plain
//! ASCII where that is asked for.

use crate::console::{Mode, View};
use crate::layers::Layer;
use crate::look::Look;
use crate::msg::{Msg, News};
use crate::testing::session::Session;
use crate::testing::{painted, scenes};
use crate::town::Link;
use crate::whatif::WhatIf;
use crate::{prepare, update};

/// From a wall of a screen to a single cell, and none.
pub(super) const SIZES: [(u16, u16); 9] =
    [(200, 60), (120, 40), (80, 24), (60, 16), (40, 10), (20, 5), (1, 1), (0, 24), (80, 0)];

/// Stages an epic, by its id.
const STAGE: &str = "s i g t - 5 0 0 Enter";

/// The keys that open each layer, wherever the cursor is on a bead.
pub(super) const LAYERS: [(&str, &str); 14] = [
    ("nothing", ""),
    ("help", "?"),
    ("palette", "Ctrl-p"),
    ("why", "w"),
    ("detail", "Enter"),
    ("raw JSON", "Enter J"),
    ("act menu", "x"),
    ("a question", "P"),
    ("stage plan", STAGE),
    ("filter", "/ s t a t e"),
    ("filter error", "/ ~ ("),
    ("prompt", ": s c h e"),
    ("sort menu", "o"),
    ("log", "l"),
];

/// Puts a console into a mode, or out of it.
type Switch = fn(&mut Session, bool);

const MODES: [(&str, Switch); 8] = [
    ("live", |_, _| {}),
    ("paused", |session, on| {
        let reason = Some("the build machine is being moved".to_owned());
        let command = if on {
            yard_engine::Command::Pause { reason, until: None }
        } else {
            yard_engine::Command::Resume
        };
        session.yard.must(&command);
        session.tick();
    }),
    ("frozen", |session, on| session.console.town.freeze(on)),
    ("disconnected", |session, on| {
        session.console.town.link = if on {
            Link::Lost { since: session.yard.now, why: "the daemon is gone".to_owned() }
        } else {
            live()
        };
    }),
    ("loading", |session, on| {
        session.console.town.link = if on { Link::Loading { read: 4_000, of: 9_000 } } else { live() };
    }),
    ("replay", |session, on| {
        if on {
            update(&mut session.console, Msg::History(Box::default(), session.yard.log.clone()));
            if let Mode::Replay(replay) = &mut session.console.mode {
                replay.go(200);
            }
        } else {
            session.console.mode = Mode::Live;
        }
        session.console.refresh(true);
    }),
    ("what-if", |session, on| {
        let console = &mut session.console;
        console.mode = if on {
            let mut tried = WhatIf::new(console.state(), &console.targets(), console.forecasts.clone());
            tried.turn(2);
            Mode::WhatIf(Box::new(tried))
        } else {
            Mode::Live
        };
        console.refresh(true);
    }),
    ("no town", |session, on| session.console.homeless = on),
];

fn live() -> Link {
    Link::Live { role: yard_client::ServerRole::Daemon, pid: 4_242 }
}

/// A view with a layer over it, opened by its keys.
pub(super) fn opened(view: View, keys: &str) -> Session {
    let mut session = Session::on(scenes::apollo(), (120, 40), "terminal", false);
    session.select("gt-420");
    session.press(&(1 + View::ALL.iter().position(|known| *known == view).expect("a view")).to_string());
    session.press(keys);
    session
}

/// Draws it at every size, with both sets of characters.
fn drawn_everywhere(session: &mut Session, what: &str) {
    for size in SIZES {
        update(&mut session.console, Msg::Resize(size.0, size.1));
        prepare(&mut session.console);
        for (theme, ascii) in [("terminal", false), ("mono", true)] {
            session.console.look = Look::fixed(theme, ascii).expect("a look");
            let buffer = painted(&session.console);
            let strange = buffer.content().iter().find(|cell| ascii && !cell.symbol().is_ascii());
            assert!(strange.is_none(), "{what} at {size:?} in ASCII has {strange:?}");
        }
    }
    session.console.look = Look::fixed("terminal", false).expect("a look");
    update(&mut session.console, Msg::Resize(120, 40));
}

#[test]
fn every_view_is_drawn_at_every_size_in_every_look() {
    for keys in ["1", "2", "2 Enter", "3", "4", "5", "6"] {
        let mut session = opened(View::Yard, keys);
        for size in SIZES {
            update(&mut session.console, Msg::Resize(size.0, size.1));
            prepare(&mut session.console);
            for (theme, ascii) in
                crate::theme::SHIPPED.iter().flat_map(|(name, _)| [(*name, false), (*name, true)])
            {
                session.console.look = Look::fixed(theme, ascii).expect("a look");
                let strange = painted(&session.console);
                let strange = strange.content().iter().find(|cell| ascii && !cell.symbol().is_ascii());
                assert!(strange.is_none(), "{keys} at {size:?} in {theme}: {strange:?}");
            }
        }
    }
}

#[test]
fn a_theme_changes_colours_and_nothing_else() {
    let views = ["1", "2", "2 Enter", "3", "4", "5", "6"].map(|keys| (keys, keys));
    for (what, keys) in views.into_iter().chain(LAYERS) {
        let mut session = opened(View::Yard, keys);
        for ascii in [false, true] {
            let mut texts = crate::theme::SHIPPED.iter().map(|(theme, _)| {
                session.console.look = Look::fixed(theme, ascii).expect("a look");
                session.screen()
            });
            let first = texts.next();
            assert!(texts.all(|text| Some(&text) == first.as_ref()), "{what}");
        }
    }
}

fn every_layer_and_mode_of(view: View) {
    for (layer, keys) in LAYERS {
        let mut session = opened(view, keys);
        for (mode, switch) in MODES {
            switch(&mut session, true);
            drawn_everywhere(&mut session, &format!("{} with {layer}, {mode}", view.name()));
            switch(&mut session, false);
        }
    }
}

#[test]
fn the_yard_is_drawn_with_every_layer_in_every_mode_at_every_size() {
    every_layer_and_mode_of(View::Yard);
}

#[test]
fn convoys_are_drawn_with_every_layer_in_every_mode_at_every_size() {
    every_layer_and_mode_of(View::Convoys);
}

#[test]
fn the_timeline_is_drawn_with_every_layer_in_every_mode_at_every_size() {
    every_layer_and_mode_of(View::Timeline);
}

#[test]
fn agents_are_drawn_with_every_layer_in_every_mode_at_every_size() {
    every_layer_and_mode_of(View::Agents);
}

#[test]
fn problems_are_drawn_with_every_layer_in_every_mode_at_every_size() {
    every_layer_and_mode_of(View::Problems);
}

#[test]
fn events_are_drawn_with_every_layer_in_every_mode_at_every_size() {
    every_layer_and_mode_of(View::Events);
}

#[test]
fn in_the_yard_every_layer_really_opens() {
    for (layer, keys) in LAYERS.into_iter().filter(|(layer, _)| !["nothing", "log"].contains(layer)) {
        let session = opened(View::Yard, keys);
        assert_eq!(session.console.layers.len(), 1, "{layer}: {:?}", session.console.said);
    }
    assert!(opened(View::Yard, "l").console.full);
    let plan = opened(View::Yard, STAGE).console.layers.pop();
    assert!(matches!(plan, Some(Layer::Plan(..))), "{plan:?}");
}

#[test]
fn other_towns_are_drawn_in_every_view() {
    let large = || scenes::large(3_000);
    for yard in [scenes::empty, scenes::staged, scenes::paused, scenes::atelier, large] {
        let mut session = Session::on(yard(), (120, 40), "terminal", false);
        for key in ["1", "2", "Enter", "3", "4", "5", "6"] {
            session.press(key);
            drawn_everywhere(&mut session, &format!("after {key}"));
        }
    }
}

#[test]
fn a_screen_that_changes_its_size_between_any_two_frames_is_drawn() {
    let mut session = opened(View::Yard, "");
    // A fixed seed: the same sizes on every run.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut roll = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let keys = [
        "1", "2", "Enter", "3", "4", "5", "6", "j", "G", "g", "w", "Esc", "x", "Esc", "?", "Esc", "l", "f",
        "+", "_", "Tab", "T", "W", "Esc",
    ];
    for step in 0..600 {
        let size = (roll(140) as u16, roll(50) as u16);
        // The painter may run before the console hears of the new size, and the other way round.
        let _ = painted(&session.console);
        update(&mut session.console, Msg::Resize(size.0, size.1));
        let buffer = painted(&session.console);
        assert_eq!((buffer.area.width, buffer.area.height), size, "step {step}");
        session.press(keys[roll(keys.len() as u64) as usize]);
        let _ = painted(&session.console);
    }
}

#[test]
fn a_buffer_of_another_size_than_the_console_knows_is_drawn_without_panic() {
    let session = opened(View::Yard, "w");
    for (width, height) in [(0, 0), (1, 1), (30, 3), (90, 60), (300, 5)] {
        let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, width, height));
        crate::render(&session.console, &mut buffer);
    }
}

#[test]
fn news_of_a_town_that_is_lost_and_found_again_changes_the_header_only_for_as_long() {
    let mut session = opened(View::Yard, "");
    let lost = News::Lost { at: session.yard.now, why: "the connection was reset".to_owned() };
    update(&mut session.console, Msg::Town(lost));
    assert!(session.screen().contains("DISCONNECTED"));
    update(&mut session.console, Msg::Town(News::Live { role: yard_client::ServerRole::Daemon, pid: 7 }));
    let screen = session.screen();
    assert!(screen.contains("LIVE") && !screen.contains("DISCONNECTED"));
}
