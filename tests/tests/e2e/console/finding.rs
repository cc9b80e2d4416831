//! Finding things: filter, prompt, palette, help.

use yard_tests::terminal::NARROW;

use super::{at_both_sizes, beads, endless, first_row, live, town_of};

at_both_sizes!(a_filter_shows_what_matches_and_esc_shows_all, the_prompt_runs_any_command);

fn a_filter_shows_what_matches_and_esc_shows_all(size: (u16, u16)) {
    let mut town = town_of(1);
    town.start_daemon();
    endless(&town, "y-busy");
    town.await_state("y-busy", "running");
    for id in ["y-a1", "y-a2", "y-b1"] {
        town.run(["bead", "add", id, "--id", id, "--", "true"]).ok();
    }
    town.run(["sling", "y-a1", "y-b1"]).ok();
    let mut terminal = live(&town, size);
    terminal.until("all rows", |screen| beads(screen).len() == 4);
    let filter = |text: &str, wanted: &[&str]| {
        terminal.press(&["/"]);
        terminal.shows(" /");
        terminal.press(&["Ctrl-u"]);
        terminal.type_text(text);
        terminal.until(&format!("{wanted:?} for {text:?}"), |screen| {
            let mut shown = beads(screen);
            shown.sort_unstable();
            shown == wanted
        });
        terminal.press(&["Enter"]);
    };
    filter("y-a", &["y-a1", "y-a2"]);
    filter("state:queued", &["y-a1", "y-b1"]);
    let listed = town.json(["bead", "list"])["beads"].clone();
    let queued = listed.as_array().map(|all| all.iter().filter(|bead| bead["state"] == "queued").count());
    assert_eq!(queued, Some(2), "{listed}");
    filter("!state:queued y-a", &["y-a2"]);
    filter("~a[12]$", &["y-a1", "y-a2"]);
    terminal.press(&["/"]);
    terminal.press(&["Ctrl-u"]);
    terminal.type_text("~(");
    terminal.shows_row(&["~(", "is not a regular expression"]);
    terminal.press(&["Esc"]);
    terminal.hides("is not a regular expression");
    terminal.until("all rows again", |screen| beads(screen).len() == 4);
    terminal.press(&["q"]);
    terminal.left_with(0);
}

fn the_prompt_runs_any_command(size: (u16, u16)) {
    let mut town = town_of(1);
    town.start_daemon();
    let mut terminal = live(&town, size);
    let prompt = |line: &str| {
        terminal.press(&[":"]);
        terminal.shows(":ym ");
        terminal.type_text(line);
        terminal.press(&["Enter"]);
    };
    prompt("status");
    terminal.shows(" ym status ");
    let printed = town.run(["status"]).ok().stdout;
    let word = printed.split_whitespace().next().expect("a status says something");
    terminal.shows(word);
    terminal.press(&["Esc"]);
    terminal.hides(" ym status ");
    prompt("frobnicate");
    terminal.shows("frobnicate");
    terminal
        .until("what is wrong", |screen| screen.contains("unrecognized") || screen.contains("not a command"));
    terminal.press(&["Esc"]);
    terminal.hides(" ym frobnicate ");
    prompt("bead add 'two words' --id y-typed");
    terminal.shows_row(&["y-typed", "two words", "open"]);
    assert_eq!(town.json(["show", "y-typed"])["title"], "two words");
    prompt("demo");
    terminal.shows("demo does not work inside the console");
    terminal.press(&["Esc"]);
    terminal.hides("does not work");
    prompt("events");
    terminal.until("the events", |screen| first_row(screen).contains("events ▸"));
    terminal.press(&["q"]);
    terminal.left_with(0);
}

#[test]
fn the_palette_finds_an_action_and_does_it() {
    let mut town = town_of(1);
    town.start_daemon();
    let mut terminal = live(&town, NARROW);
    terminal.press(&["Ctrl-p"]);
    terminal.shows(" palette ");
    terminal.type_text("pause");
    terminal.shows_row(&["pause", "Stop all dispatch"]);
    terminal.press(&["Enter"]);
    terminal.shows("pause, because:");
    terminal.press(&["Enter"]);
    terminal.until("the pause", |screen| first_row(screen).contains("PAUSED by tester"));
    assert_eq!(town.json(["status"])["scheduler"]["paused"], true);
    terminal.press(&["q"]);
    terminal.left_with(0);
}

#[test]
fn help_is_searched_by_typing_and_esc_leaves_it() {
    let town = town_of(1);
    let mut terminal = live(&town, NARROW);
    terminal.press(&["?"]);
    terminal.shows(" help ");
    terminal.type_text("freeze");
    terminal.shows("Stop the display; the town goes on.");
    terminal.press(&["Esc"]);
    terminal.hides(" help ");
    terminal.press(&["Esc"]);
    terminal.shows("q quits");
    assert!(!terminal.has_ended(), "Esc never quits");
    terminal.press(&["q"]);
    terminal.left_with(0);
}

#[test]
fn every_view_opens_and_names_itself() {
    let mut town = town_of(1);
    town.start_daemon();
    endless(&town, "y-busy");
    let mut terminal = live(&town, NARROW);
    let views = ["yard", "convoys", "timeline", "agents", "problems", "events"];
    for (key, view) in ["1", "2", "3", "4", "5", "6"].iter().zip(views) {
        terminal.press(&[key]);
        terminal.until(view, |screen| first_row(screen).contains(&format!(" {view} ▸")));
    }
    terminal.shows("dispatch.started");
    terminal.press(&["4"]);
    terminal.shows_row(&["y-busy"]);
    terminal.press(&["q"]);
    terminal.left_with(0);
}

#[test]
fn pasted_text_is_typed_where_one_types_and_never_taken_for_keys() {
    let mut town = town_of(1);
    town.start_daemon();
    town.run(["bead", "add", "one", "--id", "y-one"]).ok();
    town.run(["bead", "add", "two", "--id", "y-two"]).ok();
    let mut terminal = live(&town, NARROW);
    terminal.until("all rows", |screen| beads(screen).len() == 2);
    terminal.type_text("\x1b[200~pq\rq\x1b[201~");
    terminal.press(&["/"]);
    terminal.shows(" /");
    terminal.type_text("\x1b[200~y-two\n\x1b[201~");
    terminal.until("what was pasted", |screen| beads(screen) == ["y-two"]);
    terminal.press(&["Enter", "q"]);
    terminal.left_with(0);
    assert_eq!(town.json(["status"])["scheduler"]["paused"], false);
}
