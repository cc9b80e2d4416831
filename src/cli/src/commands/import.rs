//! `ym bead import`: beads of another tracker, from its JSON lines. Unknown keys are ignored, unknown record types
//! left out; a line that cannot be a bead is named, and then nothing is imported.

use serde::Deserialize;
use serde_json::Value;
use yard_client::Safe;
use yard_engine::bead::{BeadStatus, DepKind, Dependency};
use yard_engine::command::NewBead;
use yard_engine::{BeadId, Command, Timestamp};

use super::{Done, input_name, read_input, say};
use crate::errors::Report;
use crate::session::Session;
use crate::words::count;

/// Bad lines named at most.
const NAMED: usize = 5;

/// A record as other trackers write it.
#[derive(Debug, Deserialize)]
struct Record {
    id: String,
    title: String,
    description: Option<String>,
    status: Option<String>,
    priority: Option<i64>,
    issue_type: Option<String>,
    created_at: Option<Timestamp>,
    close_reason: Option<String>,
    assignee: Option<String>,
    labels: Option<Vec<String>>,
    dependencies: Option<Vec<Edge>>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    depends_on_id: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// What a file holds.
#[derive(Debug, Default, PartialEq)]
struct Contents {
    beads: Vec<NewBead>,
    /// Records that are something else.
    others: usize,
    /// Dependencies on things outside, whose names had to be changed.
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
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if value.get("_type").and_then(Value::as_str).is_some_and(|kind| kind != "issue") {
            self.others += 1;
            return Ok(());
        }
        let record: Record = serde_json::from_value(value).map_err(|error| error.to_string())?;
        BeadId::parse(&record.id).map_err(|error| error.to_string())?;
        let priority = match record.priority {
            None => None,
            Some(p @ 0..=4) => Some(p as u8),
            Some(other) => return Err(format!("priority {other} is not known: use 0 to 4")),
        };
        let mut dependencies = Vec::new();
        for edge in record.dependencies.unwrap_or_default() {
            let kind = DepKind::from(edge.kind.unwrap_or_default());
            let on = match BeadId::parse(&edge.depends_on_id) {
                Ok(on) => on,
                Err(error) => {
                    self.renamed += 1;
                    BeadId::parse(&plain(&edge.depends_on_id)).map_err(|_| error.to_string())?
                }
            };
            dependencies.push(Dependency { on, kind });
        }
        self.beads.push(NewBead {
            id: Some(record.id),
            rig: None,
            title: record.title,
            description: record.description,
            kind: record.issue_type.unwrap_or_default(),
            status: BeadStatus::from(record.status.unwrap_or_default()),
            priority,
            assignee: record.assignee,
            labels: record.labels.unwrap_or_default(),
            dependencies,
            argv: None,
            created_at: record.created_at,
            close_reason: record.close_reason,
        });
        Ok(())
    }
}

/// A name from outside in our grammar, so that the dependency still blocks and is named as missing.
fn plain(id: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
    id.chars().map(fits).take(128).collect()
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
            r#"{"id":"a-2","title":"U","dependencies":[{"issue_id":"a-2","depends_on_id":"external:p:c","type":"blocks","metadata":"{}"}]}"#,
        );
        let contents = read("f", text).expect("readable");
        assert_eq!((contents.beads.len(), contents.others, contents.renamed), (2, 1, 1));
        assert_eq!(contents.beads[0].priority, Some(1));
        assert_eq!(contents.beads[1].dependencies[0].on.as_str(), "external-p-c");
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
