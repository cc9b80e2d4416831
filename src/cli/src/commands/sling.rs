//! `ym sling` and `ym add`.

use serde::Deserialize;
use yard_client::views::SlingView;
use yard_engine::command::{AddItem, AssignTo, SlingAction, SlingRequest, SlingResult};
use yard_engine::{AccountName, AgentName, Command, FormulaName, Refusal};

use super::{Done, input_name, read_input};
use crate::args::{AddArgs, SlingArgs};
use crate::errors::{FAILED, Report};
use crate::render::sling_results;
use crate::session::Session;

pub(super) fn sling(session: &mut Session, args: SlingArgs) -> Done {
    let dry_run = args.dry_run;
    let document = session.command(Command::Sling(Box::new(request(args)?)))?;
    let view: SlingView = serde_json::from_str(document.get())?;
    let refused = |result: &SlingResult| result.action == SlingAction::Refused;
    let all_refused = !view.results.is_empty() && view.results.iter().all(refused);
    if session.out.json() {
        session.out.document(&document)?;
    } else if let ([only], true) = (view.results.as_slice(), all_refused) {
        return Err(refusal_of(only));
    } else {
        sling_results(&mut session.out, &view.results, dry_run)?;
    }
    Ok(if all_refused { FAILED } else { 0 })
}

fn refusal_of(result: &SlingResult) -> Report {
    let message = result.message.clone().unwrap_or_else(|| format!("{} was refused", result.id));
    Report::new(result.code.as_deref().unwrap_or("refused"), message)
        .hint(format!("ym why {} says more", result.id))
}

fn request(args: SlingArgs) -> Result<SlingRequest, Report> {
    let mut ids = args.ids;
    let mut formula = args.formula;
    if let Some(bead) = args.on {
        // Formula-on-bead: the first word is the formula, what follows is the rig.
        formula = Some(std::mem::replace(&mut ids[0], bead));
    }
    let instructions = if args.stdin { Some(read_input("-")?) } else { args.args };
    let assign = match args.assign.as_deref() {
        None => None,
        Some("") => Some(AssignTo::Anyone),
        Some(name) => Some(AssignTo::Agent(AgentName::parse(name).map_err(Refusal::from)?)),
    };
    Ok(SlingRequest {
        ids,
        rig: None,
        args: instructions,
        vars: args.var.into_iter().collect(),
        formula: formula.as_deref().map(FormulaName::parse).transpose().map_err(Refusal::from)?,
        hook_raw_bead: args.hook_raw_bead,
        merge: args.merge.map(Into::into),
        no_merge: args.no_merge,
        base_branch: args.base_branch,
        account: args.account.as_deref().map(AccountName::parse).transpose().map_err(Refusal::from)?,
        agent: args.agent,
        assign,
        owned: args.owned,
        no_convoy: args.no_convoy,
        no_boot: args.no_boot,
        ralph: args.ralph,
        executor: args.executor,
        priority: args.priority,
        not_before: args.not_before,
        deadline: args.deadline,
        force: args.force,
        dry_run: args.dry_run,
    })
}

pub(super) fn add(session: &mut Session, args: AddArgs) -> Done {
    #[derive(Deserialize)]
    struct Added {
        results: Vec<SlingResult>,
    }
    let items = match &args.file {
        Some(name) => read_items(name, &read_input(name)?)?,
        None => vec![AddItem {
            argv: args.command,
            name: args.name,
            id: args.id,
            after: args.after,
            priority: args.priority,
        }],
    };
    let document = session.command(Command::Add { items })?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let added: Added = serde_json::from_str(document.get())?;
    if session.out.quiet() || !session.out.is_terminal() {
        // Scripts read the last lines as ids.
        for result in &added.results {
            session.out.line(&result.id)?;
        }
    } else {
        sling_results(&mut session.out, &added.results, false)?;
    }
    Ok(0)
}

/// Many items, one a line. Every bad line is named, and then nothing is added.
fn read_items(name: &str, text: &str) -> Result<Vec<AddItem>, Report> {
    let mut items = Vec::new();
    let mut bad = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<AddItem>(line) {
            Ok(item) => items.push(item),
            Err(error) => bad.push(format!("line {}: {}", number + 1, without_place(&error))),
        }
    }
    if let Some(first) = bad.first() {
        let more = if bad.len() > 1 { format!(" ({} bad lines in all)", bad.len()) } else { String::new() };
        return Err(Report::new("bad-input", format!("{}, {first}{more}; nothing was added", input_name(name)))
            .hint("one JSON object a line: {\"argv\": [\"make\"], \"name\"?, \"id\"?, \"after\"?: [], \"priority\"?}"));
    }
    Ok(items)
}

/// What is wrong with a line. Its parser calls every line the first.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(what) => format!("{what} (column {})", error.column()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_left_out_and_bad_ones_named() {
        let items =
            read_items("f", "\n{\"argv\": [\"true\"]}\n  \t\n{\"argv\": [\"ls\"], \"priority\": 7}\r\n\n");
        let items = items.expect("readable");
        assert_eq!(items.len(), 2);
        assert_eq!(items[1].priority, Some(7));
        let said = format!("{:?}", read_items("-", "\n{\"argv\": [\"a\"]}\nnot json\n").expect_err("bad"));
        assert!(said.contains("standard input, line 3: expected ident (column 2)"), "{said}");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let text = "{\"argv\": [\"a\"]}\n\n{\"argv\": [\"b\"], \"afetr\": [\"x-1\"]}\n";
        let said = format!("{:?}", read_items("jobs.jsonl", text).expect_err("bad"));
        assert!(said.contains("jobs.jsonl, line 3: unknown field `afetr`"), "{said}");
        assert!(!said.contains("at line 1"), "{said}");
    }
}
