//! Any size, in any order, while work goes on.

use yard_tests::terminal::{NARROW, WIDE, nobody_is_left};

use super::{first_row, live, stands, town_of};

#[test]
fn any_order_of_sizes_is_safe_while_work_runs() {
    let town = town_of(2);
    for id in ["y-1", "y-2", "y-3", "y-4"] {
        town.shell_bead(id, "for i in 1 2 3 4 5 6 7 8 9; do echo line $i of $YM_BEAD; sleep 0.1; done");
    }
    town.run(["sling", "y-1", "y-2", "y-3", "y-4"]).ok();
    let mut terminal = live(&town, WIDE);
    let sizes = [(1, 1), (200, 60), (20, 5), (1, 60), (40, 10), (200, 1), (19, 4), (60, 16), (2, 2), NARROW];
    // A fixed walk that visits the sizes in ever other orders; every other step does not wait for a frame.
    for step in 0..60_usize {
        let size = sizes[(step * 7 + step / 10 * 3) % sizes.len()];
        terminal.resize(size);
        terminal.press(&[["j", "3", "k", "1", "Tab", "2"][step % 6]]);
        if step % 2 == 0 {
            terminal.until("something on the screen", |screen| !screen.trim().is_empty());
        }
    }
    terminal.resize((20, 4));
    terminal.until("one line", |screen| screen.contains("run"));
    terminal.resize(WIDE);
    terminal.press(&["1"]);
    terminal.until("the yard", |screen| {
        first_row(screen).contains(" yard ▸") && first_row(screen).contains("LIVE")
    });
    for id in ["y-1", "y-2", "y-3", "y-4"] {
        stands(&terminal, id, "closed");
    }
    terminal.press(&["?"]);
    terminal.shows(" help ");
    terminal.press(&["Esc"]);
    terminal.hides(" help ");
    terminal.press(&["q"]);
    terminal.left_with(0);
    nobody_is_left(&town);
}

#[test]
fn a_terminal_of_one_cell_can_be_used_and_left() {
    let mut town = town_of(1);
    town.start_daemon();
    let mut terminal = yard_tests::terminal::Terminal::console(&town, (1, 1));
    terminal.until("a frame", |_| terminal_is_taken(&terminal));
    terminal.press(&["j", "5", "q"]);
    terminal.left_with(0);
}

fn terminal_is_taken(terminal: &yard_tests::terminal::Terminal) -> bool {
    terminal.is_taken() && !terminal.text().trim().is_empty()
}
