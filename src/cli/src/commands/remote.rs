//! A town elsewhere: which one is meant, and commands that are carried out by the `ym` there. Those get the words as they
//! were typed, our standard streams, and tell their exit code.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use yard_client::{BadPlace, Place, SshTown, WebTown};

use super::Done;
use crate::args::{Cli, Cmd, ColorChoice, Global};
use crate::errors::Report;
use crate::output::Out;
use crate::session::{Session, set_variable};

/// What is ours and goes along: in whose name we ask.
const GOES_ALONG: [&str; 2] = ["YM_ACTOR", "YM_AGENT"];

/// The town elsewhere that is meant, if it is elsewhere.
fn place(global: &Global) -> Result<Option<Place>, Report> {
    let named = global.town.clone().map(OsString::from);
    if let Some(server) = &global.server {
        return web(server, global).map(Some);
    }
    // A worker is told its town, which is not the one that somebody's shell has in mind.
    let town = named.or_else(|| set_variable("YM_TOWN"));
    match town {
        Some(town) => match town.to_str().filter(|town| SshTown::is_meant(town)) {
            Some(address) => Ok(Some(Place::Ssh(SshTown::parse(address)?))),
            None => Ok(None),
        },
        None => match set_variable("YM_SERVER") {
            Some(server) => web(&server.to_string_lossy(), global).map(Some),
            None => Ok(None),
        },
    }
}

fn web(server: &str, global: &Global) -> Result<Place, Report> {
    let token = match (&global.token_file, set_variable("YM_TOKEN")) {
        (Some(file), _) => std::fs::read_to_string(file).map_err(|error| {
            Report::new("io", format!("cannot read the token in {}: {error}", file.display()))
        })?,
        (None, Some(token)) => token.to_string_lossy().into_owned(),
        (None, None) => {
            let report = Report::usage(format!("{server} asks for a token"));
            return Err(report.hint("--token-file FILE or YM_TOKEN; ym http token on its host prints it"));
        }
    };
    let by_variable = set_variable("YM_CA");
    let ca = global.ca.as_deref().or(by_variable.as_deref().map(Path::new));
    Ok(Place::Web(WebTown::new(server, &token, ca)?))
}

/// The words by which another `ym` finds the same town; what only the environment says it hears of anyway.
fn naming(place: &Place, global: &Global) -> Vec<OsString> {
    let option = match place {
        Place::Folder(_) | Place::Ssh(_) => "--town",
        Place::Web(_) => "--server",
    };
    let mut words: Vec<OsString> = vec![option.into(), place.to_string().into()];
    let files = [("--token-file", &global.token_file), ("--ca", &global.ca)];
    for (option, file) in files {
        words.extend(file.iter().flat_map(|file| [option.into(), file.clone().into_os_string()]));
    }
    words
}

impl From<BadPlace> for Report {
    fn from(error: BadPlace) -> Self {
        Self::usage(error.to_string())
            .hint("ssh://host/path/of/the/town, or --server https://host:port; ym help remote")
    }
}

/// Whether this is the same wherever the town is.
pub(crate) fn needs_no_town(cli: &Cli) -> bool {
    matches!(cli.command, Some(Cmd::Help { .. } | Cmd::Man { .. } | Cmd::Completions { .. } | Cmd::Demo(_)))
}

/// Goes to the town elsewhere that is meant, if it is elsewhere. What the `ym` there carries out has an exit code then.
pub(crate) fn go(session: &mut Session, cli: &Cli, words: &[OsString]) -> Result<Option<u8>, Report> {
    let Some(place) = place(&cli.global)? else { return Ok(None) };
    if cli.daemon {
        let report = Report::usage("a daemon runs on the host of its town");
        return Err(report.hint("log in there, or make it a service there: ym --daemon --town DIR"));
    }
    let is_console = cli.command.is_none() && super::console::is_wanted(&session.out);
    if let (Place::Ssh(town), false) = (&place, is_console) {
        return carry_out(town, words, cli).map(Some);
    }
    let naming = naming(&place, &cli.global);
    session.go_to(place, naming);
    Ok(None)
}

/// Has the `ym` there carry out what was typed here.
fn carry_out(town: &SshTown, words: &[OsString], cli: &Cli) -> Done {
    let terminal = std::io::stdout().is_terminal();
    let on_terminal =
        matches!(cli.command, Some(Cmd::Attach { .. })) && terminal && std::io::stdin().is_terminal();
    let env: Vec<(&str, OsString)> =
        GOES_ALONG.into_iter().filter_map(|name| Some((name, set_variable(name)?))).collect();
    let mut line: Vec<OsString> = vec!["--town".into(), town.path().into()];
    if terminal && !on_terminal {
        // There it is a pipe, but what is written there must not act on the terminal here.
        let columns = set_variable("COLUMNS").and_then(|columns| columns.to_str()?.parse::<u16>().ok());
        line.push(format!("--seen-afar={}", columns.unwrap_or(80)).into());
    }
    if cli.global.color == ColorChoice::Auto && Out::is_plain() {
        line.extend(["--color".into(), "never".into()]);
    }
    line.extend(without_town(words.get(1..).unwrap_or_default(), town.address()));
    let mut command = town.ym(&env, line, on_terminal)?;
    let status = command.status();
    let status = status.map_err(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        Report::new("unreachable", format!("{program} cannot be run: {error}"))
            .hint("install an ssh client, or name one: YM_SSH")
    })?;
    match town.failure(status.code()) {
        Some(failure) => Err(Report::new(failure.code, failure.message).hint(failure.hint)),
        None => Ok(code_of(status)),
    }
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(crate::errors::FAILED)
}

/// The words without the address of the town, which is no path there.
fn without_town(words: &[OsString], address: &str) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            kept.push(word.clone());
            kept.extend(rest.cloned());
            break;
        }
        if word == "--town" && rest.as_slice().first().is_some_and(|next| next == OsStr::new(address)) {
            rest.next();
        } else if word.to_str().and_then(|word| word.strip_prefix("--town=")) != Some(address) {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_the_town_stays_here() {
        let kept = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let kept = without_town(&words, "ssh://h/t");
            kept.into_iter().map(|word| word.into_string().expect("text")).collect::<Vec<_>>()
        };
        assert_eq!(kept(&["--town", "ssh://h/t", "status", "--json"]), ["status", "--json"]);
        assert_eq!(kept(&["status", "--town=ssh://h/t"]), ["status"]);
        let command = ["add", "--", "ym", "--town", "ssh://h/t"];
        assert_eq!(kept(&command), command);
    }
}
