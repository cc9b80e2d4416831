use std::fs;
use std::time::Instant;

use yard_engine::BeadId;

use super::*;

/// A shell script as a tracker's tool; `answer` is a file it may print.
struct Tool {
    dir: tempfile::TempDir,
    source: CommandSource,
}

impl Tool {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let rig = RigName::parse("r").expect("valid");
        let source = CommandSource::open(rig, argv, dir.path().to_path_buf());
        Self { dir, source }
    }

    /// A tool that prints whatever it is told to.
    fn printing(answer: &str) -> Self {
        let tool = Self::new("cat answer");
        tool.will_print(answer);
        tool
    }

    fn will_print(&self, answer: &str) {
        fs::write(self.dir.path().join("answer"), answer).expect("written");
    }

    fn read(&mut self) -> Option<SourceReading> {
        self.source.read()
    }

    fn trouble(&mut self) -> String {
        let reading = self.read().expect("news");
        assert!(reading.beads.is_empty() && reading.gone.is_empty() && !reading.whole);
        reading.trouble.expect("trouble")
    }
}

fn ids(reading: &SourceReading) -> Vec<&str> {
    reading.beads.iter().map(|bead| bead.id.as_str()).collect()
}

const ARRAY: &str = r#"[ {"id":"a-1","title":"one","description":"long"} , {"id":"a-2","title":"two"} ]"#;

#[test]
fn arrays_envelopes_and_lines_are_understood() {
    for answer in [
        ARRAY.to_owned(),
        format!(r#"{{"schema_version":1,"data":{ARRAY}}}"#),
        "{\"id\":\"a-1\",\"description\":\"long\"}\n{\"id\":\"a-2\"}\n".to_owned(),
        "[\n  {\n \"id\": \"a-1\",\n \"description\": \"long\"\n },\n  {\"id\":\"a-2\"}\n]\n".to_owned(),
    ] {
        let mut tool = Tool::printing(&answer);
        let reading = tool.read().expect("news");
        assert_eq!(ids(&reading), ["a-1", "a-2"], "{answer}");
        assert_eq!((reading.whole, reading.vanished, &reading.trouble), (true, true, &None), "{answer}");
        let details = tool.source.descriptions().details(&BeadId::parse("a-1").expect("valid"));
        assert_eq!(details.and_then(|details| details.description).as_deref(), Some("long"), "{answer}");
        assert_eq!(tool.read(), None, "nothing is told twice");
    }
}

#[test]
fn only_changes_are_told_and_disappearances_at_once() {
    let mut tool = Tool::printing(ARRAY);
    let first = tool.read().expect("news").stamp;
    tool.will_print(r#"[{"id":"a-2","title":"changed"},{"id":"a-3"}]"#);
    let reading = tool.read().expect("news");
    assert_eq!((ids(&reading), reading.whole), (vec!["a-2", "a-3"], false));
    assert_eq!(reading.gone, [BeadId::parse("a-1").expect("valid")]);
    assert_ne!(reading.stamp, first);
    assert_eq!(tool.source.ledger.parses, 4);
}

#[test]
fn an_empty_answer_is_believed_only_if_it_says_so() {
    let mut tool = Tool::printing(ARRAY);
    tool.read().expect("news");
    for nothing in ["", "\n", "null", r#"{"schema_version":1,"data":null}"#] {
        tool.will_print(nothing);
        let reading = tool.read();
        assert!(
            reading.is_none_or(|reading| reading.gone.is_empty() && reading.trouble.is_some()),
            "{nothing}"
        );
    }
    tool.will_print("[]");
    let reading = tool.read().expect("news");
    assert_eq!((reading.gone.len(), reading.trouble), (2, None));
}

#[test]
fn a_workspace_that_has_yet_to_begin_is_no_trouble() {
    let mut tool = Tool::printing("");
    let reading = tool.read().expect("news");
    assert_eq!((reading.whole, reading.vanished, reading.trouble), (true, false, None));
    assert!(reading.stamp.ends_with('?'));

    let mut tool = Tool::printing("");
    tool.source.expect_beads();
    assert!(tool.trouble().contains("printed nothing"));
}

#[test]
fn bad_records_are_skipped_and_make_nothing_vanish() {
    let mut tool = Tool::printing(ARRAY);
    tool.read().expect("news");
    tool.will_print(r#"[{"id":"a-3"},{"id":"../x"},7]"#);
    let reading = tool.read().expect("news");
    assert_eq!((ids(&reading), reading.gone.len()), (vec!["a-3"], 0));
    let trouble = reading.trouble.expect("trouble");
    assert!(
        trouble.starts_with("`sh -c cat answer`: 2 records cannot be read, the first is record 2"),
        "{trouble}"
    );
    tool.will_print(r#"[{"id":"a-3"}]"#);
    let reading = tool.read().expect("news");
    assert_eq!((reading.gone.len(), reading.trouble), (2, None));
}

#[test]
fn failures_are_trouble_told_once_in_the_tools_own_words() {
    let mut tool = Tool::new("echo '[]'; echo first >&2; echo 'database is locked' >&2; echo >&2; exit 3");
    assert!(tool.trouble().ends_with("failed (exit status: 3): database is locked"));
    assert_eq!(tool.read(), None);
    assert!(Tool::printing("[{\"id\":\"a-1\"},").trouble().contains("is not JSON"));
    assert!(Tool::printing("Error: no database\n").read().expect("news").trouble.is_some());
    let mut tool = Tool::new("");
    tool.source.argv = vec!["/no/such/tool".to_owned()];
    assert!(tool.trouble().contains("could not be run"));
}

#[test]
fn a_tool_that_hangs_is_killed_with_all_it_started() {
    let mut tool = Tool::new("sleep 1000 & echo $! > child; wait");
    tool.source.limits.time = Duration::from_millis(300);
    assert!(tool.trouble().contains("did not answer"));
    let child = fs::read_to_string(tool.dir.path().join("child")).expect("started");
    let stat = format!("/proc/{}/stat", child.trim());
    let gone = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    let patience = Instant::now() + Duration::from_secs(10);
    while !gone() {
        assert!(Instant::now() < patience, "the child lives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_tool_that_leaves_something_behind_is_not_waited_for() {
    let mut tool = Tool::new("sleep 1000 & echo $! > child; echo '[]'");
    tool.source.limits.time = Duration::from_secs(20);
    assert_eq!(tool.read().expect("news").trouble, None);
    let child = fs::read_to_string(tool.dir.path().join("child")).expect("started");
    let child = nix::unistd::Pid::from_raw(child.trim().parse().expect("a number"));
    nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).expect("it was left alone");
}

#[test]
fn too_much_output_is_not_kept() {
    let mut tool = Tool::new("yes");
    tool.source.limits.output = 1 << 20;
    assert!(tool.trouble().contains("printed more than"));
}

#[test]
fn a_large_answer_arrives_whole() {
    let records: Vec<String> =
        (0..20_000).map(|n| format!(r#"{{"id":"a-{n}","title":"bead {n}"}}"#)).collect();
    let mut tool = Tool::printing(&format!("[{}]", records.join(",")));
    assert_eq!(tool.read().expect("news").beads.len(), 20_000);
}
