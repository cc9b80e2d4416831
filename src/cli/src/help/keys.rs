//! `ym help keys`: the console's keys, from the registry that the console itself obeys.

use std::fmt::Write as _;

use yard_ui::actions::{ACTIONS, Group};

/// Where the explanations begin.
const INDENT: usize = 16;
/// How wide they may be.
const WIDTH: usize = 80 - INDENT;

/// The text of the topic.
pub(super) fn keys() -> String {
    let mut text = String::from(
        "KEYS\n\nym alone, on a terminal, opens the console. ? shows these keys there, and finds\n\
         them by what they do; each names the command that does the same. Esc leads one\nstep out and never quits.\n",
    );
    for group in Group::ALL {
        let _ = writeln!(text, "\n{}", group.title());
        for action in ACTIONS.iter().filter(|action| action.group == group) {
            let mut lines = wrapped(action.help).into_iter();
            let keys = action.keys.join(" ");
            let _ =
                writeln!(text, "  {keys:<width$}{}", lines.next().unwrap_or_default(), width = INDENT - 2);
            for line in lines.chain(action.line.map(str::to_owned)) {
                let _ = writeln!(text, "{:INDENT$}{line}", "");
            }
        }
    }
    text
}

/// A sentence in lines, broken between words.
fn wrapped(sentence: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;
    use crate::args::Cli;

    /// The command that a line begins with, and what is left of the line.
    fn command_of<'a>(root: &'a Command, line: &'a str) -> Option<(&'a Command, Vec<&'a str>)> {
        let mut words = line.strip_prefix("ym ")?.split_whitespace().peekable();
        let mut command = root;
        while let Some(inner) = words.peek().and_then(|word| command.find_subcommand(word)) {
            command = inner;
            words.next();
        }
        let found = !command.has_subcommands() || words.peek().is_some_and(|word| word.starts_with("--"));
        found.then(|| (command, words.collect()))
    }

    #[test]
    fn every_line_of_the_console_is_a_command_with_options_that_exist() {
        let root = crate::help::whole();
        for action in ACTIONS {
            // A shell is no command of ours.
            let Some(line) = action.line.filter(|line| *line != "cd DIR") else { continue };
            let (command, rest) = command_of(&root, line).unwrap_or_else(|| panic!("{line} is no command"));
            for option in rest.iter().filter_map(|word| word.strip_prefix("--")) {
                let known = command.get_arguments().any(|arg| arg.get_long() == Some(option));
                assert!(known, "{}: {line}: there is no --{option}", action.id);
            }
        }
    }

    #[test]
    fn every_line_that_a_menu_of_the_console_runs_is_understood() {
        let lines = [
            "scheduler clear --bead gt-1",
            "scheduler clear",
            "scheduler retry gt-1",
            "scheduler run",
            "scheduler pause",
            "scheduler pause --reason because",
            "scheduler resume",
            "undo",
            "redo",
            "hold gt-1",
            "unhold gt-1",
            "priority gt-1 80",
            "rig park gt",
            "rig unpark gt",
            "rig undock gt",
            "sling gt-1",
            "preempt gt-1",
            "preempt gt-1 --for gt-2",
            "cancel gt-1",
            "kill gt-1",
            "bead close gt-1",
            "bead dep remove gt-1 gt-2",
            "alerts --ack 7",
            "convoy launch hq-cv-1 --force",
            "config set scheduler.max_polecats 8",
            "--daemon",
            "--json convoy stage gt-1 gt-2",
        ];
        for line in lines {
            let words = std::iter::once("ym").chain(line.split(' '));
            let read = Cli::command().try_get_matches_from(words);
            assert!(read.is_ok(), "ym {line}: {}", read.err().map(|e| e.to_string()).unwrap_or_default());
        }
    }

    #[test]
    fn the_topic_tells_every_key() {
        let text = keys();
        for action in ACTIONS {
            assert!(text.contains(&action.keys.join(" ")), "{}", action.id);
        }
    }
}
