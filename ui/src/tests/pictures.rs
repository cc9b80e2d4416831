//! The pictures and the recording of the README, made from the town of the tests: they cannot show what is not there.

use std::num::NonZeroU16;

use super::kept;
use crate::testing::cast::Cast;
use crate::testing::picture::svg;
use crate::testing::scenes;
use crate::testing::session::Session;

fn apollo(size: (u16, u16)) -> Session {
    let mut session = Session::on(scenes::apollo(), size, "terminal", false);
    session.select("db-416");
    session
}

fn picture(session: &Session, name: &str, title: &str) {
    kept(&format!("assets/pictures/{name}.svg"), |_| svg(&session.painted(), title));
}

#[test]
fn a_picture_of_the_yard() {
    picture(&apollo((120, 40)), "yard", "The yard: capacity, guards, finish, beads, timeline and log");
    picture(&apollo((80, 24)), "yard-80x24", "The yard in 80 columns");
}

#[test]
fn a_picture_of_the_timeline() {
    let mut session = apollo((120, 40));
    session.press("3");
    picture(&session, "timeline", "Past, running and planned work on one axis of time");
}

#[test]
fn a_picture_of_why() {
    let mut session = apollo((120, 40));
    session.select("gt-432").press("w");
    picture(&session, "why", "Why a bead is not running, and the cheapest way out");
}

#[test]
fn a_picture_of_a_convoy() {
    let mut session = apollo((120, 40));
    session.press("2 Enter");
    picture(&session, "convoy", "A convoy: waves, what holds them, the critical path");
}

#[test]
fn a_picture_of_a_what_if() {
    let mut session = apollo((120, 40));
    session.press("W + + +");
    picture(&session, "what-if", "What if there were three more workers");
}

#[test]
fn a_picture_of_a_replay() {
    let mut session = apollo((120, 40));
    session.press("T { { {");
    picture(&session, "replay", "The town as it was, eleven minutes earlier");
}

#[test]
fn a_recording_of_a_session() {
    kept("assets/demo.cast", |_| recording());
}

/// The afternoon in a few seconds, then the questions an operator asks.
fn recording() -> String {
    let size = (120, 36);
    let yard = scenes::apollo();
    // Of the convoys of the day, the last one that was launched.
    let launched = yard.log.iter().rposition(|event| event.event.kind() == "convoy.launched");
    let mut session = Session::from_the_past(yard, launched.expect("apollo is launched"), size);
    let mut cast = Cast::new(size, "ym: an afternoon in the yard");
    cast.frame(&session, "", 1_500);
    let mut last = session.console.now;
    while let Some(at) = session.one_more() {
        // A minute of theirs is a third of a second of ours.
        if at.as_millis() - last.as_millis() >= 45_000 {
            last = at;
            cast.frame(&session, "", 250);
        }
    }
    session.catch_up();
    cast.frame(&session, "", 1_500);
    session.select("gt-432");
    cast.frame(&session, "j", 1_200);
    cast.press(&mut session, "w", 3_500);
    cast.press(&mut session, "Esc", 600);
    cast.press(&mut session, "3", 2_500);
    cast.press(&mut session, "1 5", 1_500);
    cast.press(&mut session, "r", 2_000);
    cast.press(&mut session, "1 /", 700);
    for letter in "state:blocked".chars() {
        cast.press(&mut session, &letter.to_string(), 90);
    }
    cast.press(&mut session, "Enter", 1_800);
    cast.press(&mut session, "Esc W", 1_200);
    cast.press(&mut session, "+ + +", 900);
    cast.press(&mut session, "A", 1_800);
    cast.press(&mut session, "n Esc", 700);
    cast.press(&mut session, "T", 1_200);
    cast.press(&mut session, "{ { {", 1_000);
    cast.press(&mut session, "w", 2_500);
    cast.press(&mut session, "Esc Esc", 700);
    cast.press(&mut session, "?", 2_000);
    cast.press(&mut session, "Esc", 1_000);
    assert!((30..=60).contains(&cast.seconds()), "it takes {} seconds", cast.seconds());
    cast.end()
}

#[test]
fn a_terminal_that_plays_the_recording_shows_what_was_drawn() {
    let mut session = apollo((100, 30));
    let mut cast = Cast::new((100, 30), "a test");
    cast.press(&mut session, "j w Esc 3 x Esc T { 1", 100);
    cast.frame(&session, "", 100);
    let (rows, columns) = (NonZeroU16::new(30).expect("rows"), NonZeroU16::new(100).expect("columns"));
    let mut terminal = vt100::Parser::new(rows, columns, 0);
    for line in cast.end().lines().skip(1) {
        let event: (f64, String, String) = serde_json::from_str(line).expect("an event");
        terminal.process(event.2.as_bytes());
    }
    let shown: Vec<String> = terminal.screen().rows(0, 100).map(|row| row.trim_end().to_owned()).collect();
    let drawn: Vec<String> = session.screen().lines().map(str::to_owned).collect();
    assert_eq!(shown, drawn);
}

#[test]
fn a_picture_is_well_formed_and_holds_every_word_of_the_screen() {
    let session = apollo((120, 40));
    let picture = svg(&session.painted(), "<yard> & co");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(picture.contains("<title>&lt;yard&gt; &amp; co</title>"));
    for word in
        session.screen().split_whitespace().filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric()))
    {
        assert!(picture.contains(word), "{word} is missing");
    }
    assert_eq!(picture.matches("<text ").count(), picture.matches("</text>").count());
}
