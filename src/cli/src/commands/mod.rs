//! One file per family of commands: words in, an ask, the answer printed. Each gives the exit code.

mod agent;
mod alerts;
mod attach;
mod bead;
mod config;
mod console;
mod convoy;
mod daemon;
mod demo;
mod doctor;
mod events;
mod forecast;
mod hooks;
mod http;
mod import;
mod init;
mod journal;
mod logs;
mod logs_there;
mod mcp;
pub(crate) use nudge::{hook, is_hook};
mod nudge;
mod operator;
mod relay;
mod remote;
mod rig;
mod scheduler;
mod show;
mod sling;
mod status;
mod store;
mod wait;
mod worker;
mod workspace;
mod worktree;

use std::ffi::OsString;

use serde::Deserialize;
use yard_client::{Document, Safe};
use yard_engine::Command;

use crate::args::{Cli, Cmd};
use crate::errors::Report;
use crate::help;
use crate::session::Session;

pub(crate) use daemon::{demo_daemon, shim};
pub(crate) use demo::agent as demo_agent;
pub(crate) use relay::relay;

/// The exit code, or why there was nothing to be done.
pub(crate) type Done = Result<u8, Report>;

/// Runs whatever was asked for.
pub(crate) fn run(session: &mut Session, cli: Cli, words: &[OsString]) -> Done {
    if !remote::needs_no_town(&cli)
        && let Some(code) = remote::go(session, &cli, words)?
    {
        return Ok(code);
    }
    let no_color = cli.global.color == crate::args::ColorChoice::Never;
    let wishes = yard_ui::look::Wishes { theme: cli.theme, ascii: cli.ascii, no_color };
    let Some(command) = cli.command else {
        if cli.daemon {
            return daemon::serve(session);
        }
        return console::console(session, wishes);
    };
    if cli.daemon {
        return Err(
            Report::usage("--daemon stands alone").hint("ym --daemon, then the command in another shell")
        );
    }
    match command {
        Cmd::Init { dir, prefix, store } => init::init(session, dir, prefix, store.as_deref()),
        Cmd::Demo(args) => demo::demo(session, &args, &wishes),
        Cmd::Status => status::status(session),
        Cmd::Config(command) => config::run(session, command),
        Cmd::Rig(command) => rig::run(session, command),
        Cmd::Bead(command) => bead::run(session, command),
        Cmd::Add(args) => sling::add(session, args),
        Cmd::Wait { ids, all, timeout } => wait::wait(session, ids, all, timeout),
        Cmd::Sling(args) => sling::sling(session, *args),
        Cmd::Scheduler(command) => scheduler::run(session, command),
        Cmd::Convoy(command) => convoy::run(session, command),
        Cmd::Forecast { convoy, max_polecats } => forecast::forecast(session, convoy, max_polecats),
        Cmd::Why { id } => show::why(session, id),
        Cmd::Show { id } => show::show(session, id),
        Cmd::Logs { id, follow, lines } => logs::logs(session, &id, follow, lines),
        Cmd::Attach { id, read_only } => attach::attach(session, &id, read_only),
        Cmd::Events { follow, since, kind, lines } => events::events(session, follow, since, kind, lines),
        Cmd::Cancel { id } => operator::cancel(session, id, false),
        Cmd::Kill { id } => operator::cancel(session, id, true),
        Cmd::Hold { id } => operator::hold(session, id, true),
        Cmd::Unhold { id } => operator::hold(session, id, false),
        Cmd::Priority { id, priority } => operator::priority(session, id, priority),
        Cmd::Preempt { id, candidate } => operator::preempt(session, id, candidate),
        Cmd::Worker(args) => worker::run(session, args),
        Cmd::Agent(args) => agent::run(session, args),
        Cmd::Mcp(args) => mcp::serve(session, args),
        Cmd::Undo => operator::undo(session),
        Cmd::Redo => operator::redo(session),
        Cmd::Stop { timeout, leave_running } => daemon::stop(session, timeout, leave_running),
        Cmd::Alerts { all, ack } => alerts::alerts(session, all, ack),
        Cmd::Poke { rig, hook: false } => alerts::poke(session, rig),
        Cmd::Poke { rig, hook: true } => Ok(nudge::nudge(session, rig)),
        Cmd::Worktree(command) => worktree::run(session, command),
        Cmd::Doctor { fix, give_up_workers } => doctor::doctor(session, fix, give_up_workers),
        Cmd::Hooks(command) => hooks::run(session, command),
        Cmd::Http(command) => http::run(session, &command),
        Cmd::Journal(command) => journal::run(session, command),
        Cmd::Completions { shell } => help::completions(session, shell),
        Cmd::Man { command } => help::man(session, &command),
        Cmd::Help { topic } => help::help(session, &topic),
    }
}

/// What a change answers: something was made, or something was done.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outcome {
    message: String,
    ids: Vec<String>,
}

/// Carries out a change and says what became of it.
fn change(session: &mut Session, command: Command) -> Done {
    let document = session.command(command)?;
    say(session, &document, |outcome| outcome.message.clone())
}

/// Prints the answer to a change: the document, the ids, or a sentence.
fn say(session: &mut Session, document: &Document, sentence: impl FnOnce(&Outcome) -> String) -> Done {
    if session.out.json() {
        session.out.document(document)?;
        return Ok(0);
    }
    let outcome: Outcome = serde_json::from_str(document.get())?;
    if session.out.quiet() {
        for id in &outcome.ids {
            session.out.line(Safe(id))?;
        }
    } else {
        let text = sentence(&outcome);
        if !text.is_empty() {
            session.out.line(Safe(&text))?;
        }
    }
    Ok(0)
}

/// How many lines end in here.
fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

/// What an input is called in messages.
fn input_name(name: &str) -> &str {
    if name == "-" { "standard input" } else { name }
}

/// The whole of a file, or of standard input if the name is `-`.
fn read_input(name: &str) -> Result<String, Report> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = if name == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(name).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Report::new("io", format!("cannot read {}: {error}", input_name(name))))?;
    String::from_utf8(bytes).map_err(|error| {
        let line = newlines(&error.as_bytes()[..error.utf8_error().valid_up_to()]) + 1;
        Report::new("bad-input", format!("{} is not UTF-8 text, line {line}", input_name(name)))
    })
}
