//! Help that teaches: commands in groups, topics, the manual page and completions, all from the one definition.

mod keys;
mod topics;

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use crate::args::Cli;
use crate::commands::Done;
use crate::errors::Report;
use crate::session::Session;

/// The commands as a person meets them. Every command stands in exactly one group.
const GROUPS: &[(&str, &[&str])] = &[
    ("Begin", &["init", "demo", "status", "help"]),
    ("Describe work", &["rig", "bead", "add", "convoy"]),
    ("Run it", &["sling", "scheduler", "wait", "stop", "poke"]),
    ("Look", &["why", "forecast", "show", "logs", "attach", "events", "alerts"]),
    ("Step in", &["cancel", "kill", "preempt", "hold", "unhold", "priority", "undo", "redo"]),
    ("Agents and workers", &["agent", "worker", "mcp"]),
    ("Set up", &["config", "hooks", "http", "worktree", "doctor", "journal", "completions", "man"]),
];

const EXAMPLES: &str = "\
Examples:
  ym demo                                  see it at work
  ym init && ym add -- make test           a town, and a command in it
  ym config set scheduler.max_polecats 5   queue work, at most 5 workers
  ym sling gt-abc gt-def gastown           ask for two beads
  ym convoy stage gt-e1                    what would this epic do?
  ym --daemon                              start what is ready, at once
  ym why gt-abc                            why is it not running?

Topics (ym help TOPIC): quickstart, concepts, convoys, dispatches, agents,
tasks, forecast, presets, worktrees, remote, keys, config, formulas,
json, exit-codes";

/// The whole command line. What is below a command is otherwise made only when somebody calls it.
pub(crate) fn whole() -> Command {
    let mut root = Cli::command();
    root.build();
    root
}

/// The whole command line, with help of its own: commands in groups.
pub(crate) fn with_groups() -> Command {
    let command = whole();
    let mut text = String::from("{about}\n\n{usage-heading} ym [OPTIONS] [COMMAND]\n       ym --daemon\n");
    for (name, members) in GROUPS {
        let _ = writeln!(text, "\n{name}:");
        for member in *members {
            let about = command.find_subcommand(member).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {member:<12} {about}");
        }
    }
    text += "\nOptions:\n{options}\n\n";
    text += EXAMPLES;
    text.push('\n');
    command.help_template(text)
}

/// `ym help [TOPIC | COMMAND…]`
pub(crate) fn help(session: &mut Session, words: &[String]) -> Done {
    let mut root = with_groups();
    let Some(first) = words.first() else {
        session.out.line(root.render_long_help().to_string().trim_end())?;
        return Ok(0);
    };
    if let Some(text) = topics::topic(first) {
        session.out.line(text.trim_end())?;
        return Ok(0);
    }
    let mut found = Some(&mut root);
    for word in words {
        found = found.and_then(|command| command.find_subcommand_mut(word));
    }
    let Some(found) = found else {
        return Err(Report::new(
            "unknown-topic",
            format!("there is no topic or command {:?}", words.join(" ")),
        )
        .hint(format!("topics: {}; ym --help lists the commands", topics::NAMES.join(", "))));
    };
    session.out.line(found.render_long_help().to_string().trim_end())?;
    Ok(0)
}

/// `ym completions SHELL`
pub(crate) fn completions(session: &mut Session, shell: clap_complete::Shell) -> Done {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ym", &mut text);
    session.out.raw(&text)?;
    Ok(0)
}

/// `ym man [COMMAND…]`
pub(crate) fn man(session: &mut Session, words: &[String]) -> Done {
    let mut root = Cli::command().after_long_help(EXAMPLES);
    root.build();
    let mut found = Some(&root);
    for word in words {
        found = found.and_then(|command| command.find_subcommand(word));
    }
    let found = found
        .ok_or_else(|| Report::new("unknown-topic", format!("there is no command {:?}", words.join(" "))))?;
    let mut page = Vec::new();
    clap_mangen::Man::new(found.clone()).title("ym").section("1").manual("Yardmaster").render(&mut page)?;
    session.out.raw(&page)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        whole().debug_assert();
    }

    #[test]
    fn every_command_stands_in_exactly_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, members)| *members).copied().collect();
        for command in whole().get_subcommands() {
            let times = grouped.iter().filter(|name| **name == command.get_name()).count();
            assert_eq!(times, 1, "{}", command.get_name());
        }
        assert_eq!(grouped.len(), whole().get_subcommands().count());
    }

    #[test]
    fn every_command_says_its_purpose_and_gives_an_example() {
        fn look(command: &Command, path: &str) {
            for inner in command.get_subcommands() {
                let path = format!("{path} {}", inner.get_name());
                let purpose = inner.get_about().map(ToString::to_string).unwrap_or_default();
                // What stands above the arguments of a command would take the place of what is said of it.
                assert!(
                    !purpose.is_empty() && !purpose.starts_with('`'),
                    "{path}: {purpose:?} is no purpose"
                );
                let example = inner.get_after_long_help().map(ToString::to_string).unwrap_or_default();
                assert!(example.contains("ym "), "{path} has no example");
                look(inner, &path);
            }
        }
        look(&whole(), "ym");
    }

    #[test]
    fn what_is_said_of_a_command_outlasts_the_making_of_it() {
        let whole = whole();
        for said in Cli::command().get_subcommands() {
            let made = whole.find_subcommand(said.get_name()).and_then(Command::get_about);
            assert_eq!(made.map(ToString::to_string), said.get_about().map(ToString::to_string));
        }
    }

    #[test]
    fn help_fits_eighty_columns() {
        let text = with_groups().render_long_help().to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for name in topics::NAMES {
            for line in topics::topic(name).expect("a topic").lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
    }
}
