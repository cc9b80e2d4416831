//! `ym bead import`: beads of another tracker, from its JSON lines. Unknown keys are ignored, unknown record types
//! left out; a line that cannot be a bead is named, and then nothing is imported.

use yard_client::Safe;
use yard_engine::Command;
use yard_engine::bead::Dependency;
use yard_engine::command::NewBead;
use yard_sources::Record;

use super::{Done, input_name, read_input, say};
use crate::errors::Report;
use crate::session::Session;
use crate::words::count;

/// Bad lines named at most.
const NAMED: usize = 5;

/// What a file holds.
#[derive(Debug, Default, PartialEq)]
struct Contents {
    beads: Vec<NewBead>,
    /// Records that are something else.
    others: usize,
    /// Dependencies whose names had to be changed to fit.
    renamed: usize,
}

pub(super) fn import(session: &mut Session, file: &str) -> Done {
    let contents = read(file, &read_input(file)?)?;
    if contents.others > 0 {
        session.out.notice(&format!("{} left out: not beads", count(contents.others, "line")));
    }
    if contents.renamed > 0 {
        let what = count(contents.renamed, "dependency name");
        session.out.notice(&format!("{what} changed: ym ids have only letters, digits, '.', '_' and '-'"));
    }
    let how_many = contents.beads.len();
    let document = session.command(Command::BeadImport { beads: contents.beads })?;
    say(session, &document, |_| format!("{} imported from {}", count(how_many, "bead"), Safe(file)))
}

fn read(file: &str, text: &str) -> Result<Contents, Report> {
    let mut contents = Contents::default();
    let mut bad = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Err(why) = contents.take(line) {
            bad.push(format!("line {}: {why}", number + 1));
        }
    }
    if bad.is_empty() {
        return Ok(contents);
    }
    let more = bad.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    bad.truncate(NAMED);
    let message = format!("{}, {}{more}; nothing was imported", input_name(file), bad.join("; "));
    Err(Report::new("bad-input", message))
}

impl Contents {
    fn take(&mut self, line: &str) -> Result<(), String> {
        let Some(record) = Record::parse(line.as_bytes())? else {
            self.others += 1;
            return Ok(());
        };
        let bead = record.into_new_bead()?;
        let renamed = |edge: &&Dependency| edge.written.is_some() && !edge.is_external();
        self.renamed += bead.dependencies.iter().filter(renamed).count();
        self.beads.push(bead);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_and_record_types_do_not_matter() {
        let text = concat!(
            r#"{"_type":"issue","id":"a-1","title":"T","priority":1,"started_at":"x","comments":[{"id":"s"}]}"#,
            "\n\n",
            r#"{"_type":"memory","key":"k"}"#,
            "\n",
            r#"{"id":"a-2","title":"U","dependencies":[{"issue_id":"a-2","depends_on_id":"external:p:c","type":"blocks","metadata":"{}"},{"depends_on_id":"odd name","type":"blocks"}]}"#,
        );
        let contents = read("f", text).expect("readable");
        assert_eq!((contents.beads.len(), contents.others, contents.renamed), (2, 1, 1));
        assert_eq!(contents.beads[0].priority, Some(1));
        let needs: Vec<&str> = contents.beads[1].dependencies.iter().map(|edge| edge.on.as_str()).collect();
        assert_eq!(needs, ["c", "odd-name"]);
    }

    #[test]
    fn bad_lines_are_named_with_their_place() {
        let text = "{\"id\":\"a-1\",\"title\":\"T\"}\nnot json\n{\"id\":\"../x\",\"title\":\"T\"}\n{\"id\":\"a\",\"title\":\"t\",\"priority\":9}\n";
        let said = format!("{:?}", read("f.jsonl", text).expect_err("bad"));
        for part in ["line 2", "line 3", "line 4", "nothing was imported"] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
}
