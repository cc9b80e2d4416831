//! The console as its user meets it: the real program in a real terminal, attached to a daemon with a large town. How
//! long until the first frame, until the town is there, and what it costs to leave it open.

use std::thread;
use std::time::{Duration, Instant};

use nix::time::ClockId;
use nix::unistd::Pid;
use yard_tests::terminal::Terminal;
use yard_tests::town::Town;

use crate::Fallible;
use crate::table::{Table, say, time};

/// The budget: the first frame.
const FIRST_BAR: Duration = Duration::from_millis(150);
/// The budget: a console nobody touches, of one core.
const IDLE_BAR: f64 = 0.01;
/// How long it is left alone.
const IDLE: Duration = Duration::from_secs(10);
/// How often it is started.
const STARTS: usize = 5;

/// Starts the console several times, and leaves one alone.
pub(crate) fn run(beads: usize) -> Fallible<usize> {
    let mut town = Town::new();
    let prefix =
        town.json(["rig", "list"])["rigs"][0]["prefix"].as_str().ok_or("the town has no rig")?.to_owned();
    let line = |number: usize| {
        format!(r#"{{"id":"{prefix}-{number}","title":"piece of work {number}","status":"open"}}"#)
    };
    let file = town.root().join("beads.jsonl");
    std::fs::write(&file, (0..beads).map(line).collect::<Vec<_>>().join("\n"))?;
    town.run(["bead", "import", &file.display().to_string()]).ok();
    town.start_daemon();
    let (mut first, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut terminal = Terminal::console(&town, (200, 60));
        terminal.until("a frame", |screen| screen.contains("yard"));
        first.push(began.elapsed());
        terminal.until("the town", |screen| screen.contains("LIVE"));
        whole.push(began.elapsed());
        terminal.press(&["q"]);
        terminal.left_with(0);
    }
    first.sort();
    whole.sort();
    let mut table = Table::new("The console in a terminal, attached", &["what", "median", "worst", "bar"]);
    let met = |met: bool| if met { "met" } else { "MISSED" };
    let quick = first[STARTS / 2] <= FIRST_BAR;
    table.row([
        "first frame".to_owned(),
        time(first[STARTS / 2]),
        time(first[STARTS - 1]),
        format!("{} {}", time(FIRST_BAR), met(quick)),
    ]);
    table.row(["the whole town".to_owned(), time(whole[STARTS / 2]), time(whole[STARTS - 1]), String::new()]);
    let idle = idle(&town)?;
    let cheap = idle <= IDLE_BAR;
    table.row([
        "left alone".to_owned(),
        format!("{:.2} % of a core", idle * 100.0),
        String::new(),
        format!("1 % {}", met(cheap)),
    ]);
    table.print();
    say(&format!(
        "\n{beads} beads. Of the peers we know, bv tests its p99 with up to 10,000 issues, and users of k9s"
    ));
    say(
        "report that it is slow beyond about 1,000 pods (k9s issue 663); none publishes figures to stand beside these.",
    );
    Ok(usize::from(!quick) + usize::from(!cheap))
}

/// The share of a core that a console takes which nobody touches.
fn idle(town: &Town) -> Fallible<f64> {
    let mut terminal = Terminal::console(town, (200, 60));
    terminal.until("the town", |screen| screen.contains("LIVE"));
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(terminal.pid())?))?;
    // The forecast arrives last; nothing was asked of any bead.
    terminal.until("the forecast", |screen| screen.contains("nothing to do"));
    let (began, before) = (Instant::now(), Duration::from(clock.now()?));
    thread::sleep(IDLE);
    let (took, after) = (began.elapsed(), Duration::from(clock.now()?));
    terminal.press(&["q"]);
    terminal.left_with(0);
    Ok(after.saturating_sub(before).as_secs_f64() / took.as_secs_f64())
}
