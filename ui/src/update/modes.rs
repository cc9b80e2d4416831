//! The past and what might be: opening them, moving in them, and coming back to the town as it is.

use super::menus;
use super::perform::push;
use crate::console::{Console, Mode};
use crate::layers::Layer;
use crate::msg::Effect;
use crate::replay::Mark;
use crate::whatif::WhatIf;

pub(super) fn replay(console: &mut Console) -> Vec<Effect> {
    if matches!(console.mode, Mode::Replay(_)) {
        return back_to_live(console);
    }
    console.say("reading the log…");
    vec![Effect::ReadHistory]
}

pub(super) fn back_to_live(console: &mut Console) -> Vec<Effect> {
    console.mode = Mode::Live;
    console.refresh(true);
    Vec::new()
}

pub(super) fn replayed(
    console: &mut Console,
    change: impl FnOnce(&mut crate::replay::Replay),
) -> Vec<Effect> {
    if let Mode::Replay(replay) = &mut console.mode {
        change(replay);
        console.refresh(true);
    }
    Vec::new()
}

pub(super) fn sought(console: &mut Console, mark: Mark, on: bool) -> Vec<Effect> {
    if let Mode::Replay(replay) = &mut console.mode {
        if replay.seek(mark, on) {
            console.refresh(true);
        } else {
            let what = if mark == Mark::Wave { "wave" } else { "fault" };
            console.say(format!("there is no {what} {} this", if on { "after" } else { "before" }));
        }
    }
    Vec::new()
}

pub(super) fn what_if(console: &mut Console) -> Vec<Effect> {
    if matches!(console.mode, Mode::WhatIf(_)) {
        return back_to_live(console);
    }
    let beads = console.targets();
    let tried = WhatIf::new(console.state(), &beads, std::sync::Arc::clone(&console.forecasts));
    console.mode = Mode::WhatIf(Box::new(tried));
    console.layers.clear();
    console.refresh(true);
    console.say("a copy of the town: up and down choose a knob, + and - turn it; nothing is applied");
    Vec::new()
}

pub(super) fn turned(console: &mut Console, change: impl FnOnce(&mut WhatIf)) -> Vec<Effect> {
    if let Mode::WhatIf(what_if) = &mut console.mode {
        let before = what_if.changes().len();
        change(what_if);
        if what_if.changes().len() == before && !what_if.pending {
            console.say("this cap is not set: - sets one");
        }
        console.refresh(true);
    }
    Vec::new()
}

pub(super) fn apply(console: &mut Console) -> Vec<Effect> {
    let Mode::WhatIf(what_if) = &console.mode else { return Vec::new() };
    let changes = what_if.changes();
    if changes.is_empty() {
        console.refuse("nothing was turned yet");
        return Vec::new();
    }
    push(console, Layer::Menu(menus::apply(&changes)))
}
