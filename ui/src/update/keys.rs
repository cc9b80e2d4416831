//! Where a key goes: to what lies on top, else to the action the registry has for it.

use crossterm::event::{KeyEvent, KeyEventKind};

use super::{moves, perform, typing};
use crate::actions::{Place, action_of};
use crate::console::{Console, Mode, Pane, View};
use crate::keys::name;
use crate::layers::{Layer, Pick};
use crate::msg::Effect;

/// Takes a key.
pub(super) fn key(console: &mut Console, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let Some(name) = name(key) else { return Vec::new() };
    if name == "Ctrl-z" {
        return vec![Effect::Suspend];
    }
    match console.layers.last() {
        Some(Layer::Line(_)) => return typing::line_key(console, key, &name),
        Some(Layer::Finder(_)) => return typing::finder_key(console, key, &name),
        Some(Layer::Menu(_)) => return menu_key(console, &name),
        Some(
            Layer::Why(..) | Layer::WhyIdle(..) | Layer::Detail(..) | Layer::Output(..) | Layer::Plan(..),
        )
        | None => {}
    }
    if moves::scroll_layer(console, &name) {
        return Vec::new();
    }
    let Some(action) = action_of(&name, &places(console)) else {
        if !matches!(name.as_str(), "Backspace" | "Del") {
            console.refuse(format!("{name} does nothing here: ? shows all keys"));
        }
        return Vec::new();
    };
    perform(console, action.act)
}

/// Where we are, the most special place first.
pub(crate) fn places(console: &Console) -> Vec<Place> {
    let mut places = Vec::new();
    if matches!(console.layers.last(), Some(Layer::Detail(..))) {
        places.push(Place::Detail);
    }
    if matches!(console.layers.last(), Some(Layer::Why(..))) {
        places.push(Place::Why);
    }
    if console.pane == Pane::Log {
        places.push(Place::Log);
    }
    match console.mode {
        Mode::Live => {}
        Mode::Replay(_) => places.push(Place::Replay),
        Mode::WhatIf(_) => places.push(Place::WhatIf),
    }
    if console.view == View::Timeline {
        places.push(Place::Timeline);
    }
    if console.view == View::Agents {
        places.push(Place::Agents);
    }
    places.push(Place::Anywhere);
    places
}

fn menu_key(console: &mut Console, name: &str) -> Vec<Effect> {
    let Some(Layer::Menu(menu)) = console.layers.last_mut() else { return Vec::new() };
    let rows = menu.items.len();
    let chosen = match name {
        "Esc" | "q" | "Ctrl-c" => {
            console.layers.pop();
            if console.homeless && console.layers.is_empty() && name != "Esc" {
                return vec![Effect::Quit(crate::msg::Leaving::Plainly)];
            }
            return Vec::new();
        }
        "Down" | "Tab" => {
            // Of some menus nothing is chosen at first.
            menu.at = if menu.at >= rows { 0 } else { (menu.at + 1).min(rows.saturating_sub(1)) };
            return Vec::new();
        }
        "Up" | "BackTab" => {
            menu.at = menu.at.saturating_sub(1);
            return Vec::new();
        }
        "Enter" => menu.items.get(menu.at),
        key => {
            let mut letters = key.chars();
            let letter = letters.next().filter(|_| letters.next().is_none());
            menu.items.iter().find(|item| Some(item.key) == letter)
        }
    };
    let Some(pick) = chosen.map(|item| item.pick.clone()) else { return Vec::new() };
    if let Pick::Nothing(why) = &pick {
        console.refuse(why.clone());
        return Vec::new();
    }
    console.layers.pop();
    perform::pick(console, pick)
}
