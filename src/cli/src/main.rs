//! `ym`: parse, ask the town, print. Everything that decides lives in other crates.

mod args;
mod commands;
mod errors;
mod help;
mod output;
mod render;
mod session;
mod words;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use yard_client::Safe;

use crate::args::Cli;
use crate::errors::Report;
use crate::output::Out;
use crate::session::Session;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // Before anything else: the first ones are forked in large numbers and must stay small.
    match words.get(1).and_then(|word| word.to_str()) {
        Some("__forkserver") => return yard_workers::forkserver_main(),
        Some("__shim") => return commands::shim(&words[2..]),
        Some("__relay") => return commands::relay(&words[2..]),
        Some("__agent") => return commands::demo_agent(words.get(2).and_then(|word| word.to_str())),
        Some("__demo_daemon") => return commands::demo_daemon(&words[2..]),
        // Reading the command line properly would take longer than all the rest of it.
        Some("poke") if commands::is_hook(&words[2..]) => return commands::hook(&words[3..]),
        _ => {}
    }
    let json = asks_for_json(&words);
    match parse(&words) {
        Ok(cli) => run(cli, &words),
        Err(error) => usage(&error, json),
    }
}

/// Whoever is understood needs no help, and making it for every command takes longer than the rest of a call.
fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = Cli::command()
        .try_get_matches_from(words)
        .or_else(|_| help::with_groups().try_get_matches_from(words))?;
    Cli::from_arg_matches(&matches)
}

fn run(cli: Cli, words: &[OsString]) -> ExitCode {
    let mut out = Out::new(cli.global.json, cli.global.quiet, cli.global.color);
    if let Some(columns) = cli.global.seen_afar {
        out = out.seen_afar(columns, cli.global.color);
    }
    let mut session = Session::new(out, cli.global.town.clone());
    let done = commands::run(&mut session, cli, words).and_then(|code| {
        session.out.flush()?;
        Ok(code)
    });
    match done {
        Ok(code) => ExitCode::from(code),
        Err(report) => report.show(&mut session.out),
    }
}

/// Whether the caller wants JSON even if the rest of the line makes no sense.
fn asks_for_json(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Help and version are answers; everything else clap says is a mistake in the words.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    if !json {
        // What was typed is quoted, and may come from elsewhere: colours are ours only if nothing else commands.
        if text.lines().all(|line| Safe(line).to_string() == line) {
            let _ = error.print();
        } else {
            let mut stderr = std::io::stderr().lock();
            for line in text.lines() {
                let _ = writeln!(stderr, "{}", Safe(line));
            }
        }
        return ExitCode::from(errors::USAGE);
    }
    let (message, hint) = errors::split_usage(&text);
    Report::usage(message).hint(hint).show(&mut Out::new(true, false, args::ColorChoice::Never))
}
