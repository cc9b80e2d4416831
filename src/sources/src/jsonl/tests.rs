use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use yard_engine::BeadId;

use super::*;

const NEVER: Duration = Duration::from_hours(1);

/// A file of beads and its source. Files settle at once unless a test says otherwise.
struct Town {
    dir: tempfile::TempDir,
    source: JsonlSource,
}

impl Town {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let rig = RigName::parse("r").expect("valid");
        let mut source = JsonlSource::open(rig, dir.path().join("issues.jsonl"));
        source.settle = Duration::ZERO;
        Self { dir, source }
    }

    fn with(text: &str) -> Self {
        let town = Self::new();
        town.write(text);
        town
    }

    /// As `br` does it: a temporary file, then a rename.
    fn write(&self, text: impl AsRef<[u8]>) {
        let tmp = self.dir.path().join("issues.jsonl.tmp");
        fs::write(&tmp, text).expect("written");
        fs::rename(tmp, &self.source.path).expect("renamed");
    }

    fn read(&mut self) -> Option<SourceReading> {
        self.source.read()
    }

    fn news(&mut self) -> SourceReading {
        self.read().expect("news")
    }
}

fn line(id: &str, title: &str) -> String {
    format!("{{\"id\":\"{id}\",\"title\":\"{title}\",\"description\":\"about {title}\"}}\n")
}

fn ids(reading: &SourceReading) -> Vec<&str> {
    reading.beads.iter().map(|bead| bead.id.as_str()).collect()
}

fn gone(reading: &SourceReading) -> Vec<&str> {
    reading.gone.iter().map(BeadId::as_str).collect()
}

#[test]
fn the_first_reading_is_whole_and_later_ones_hold_what_changed() {
    let mut town = Town::with(&(line("a-1", "one") + &line("a-2", "two")));
    let reading = town.news();
    assert_eq!(ids(&reading), ["a-1", "a-2"]);
    assert_eq!((reading.whole, reading.vanished, reading.trouble), (true, true, None));
    assert_eq!(Some(reading.stamp), town.source.stamp_now());
    assert_eq!(town.read(), None, "nothing is told twice");

    town.write(line("a-2", "changed") + &line("a-3", "three"));
    let reading = town.news();
    assert_eq!((ids(&reading), gone(&reading), reading.whole), (vec!["a-2", "a-3"], vec!["a-1"], false));
    assert_eq!(town.read(), None);
}

#[test]
fn only_changed_lines_are_parsed_again() {
    let lines: Vec<String> = (0..500).map(|n| line(&format!("a-{n}"), "same")).collect();
    let mut town = Town::with(&lines.concat());
    town.news();
    assert_eq!(town.source.ledger.parses, 500);
    let mut lines = lines;
    lines[250] = line("a-250", "changed");
    lines.rotate_left(100);
    town.write(lines.concat());
    assert_eq!(ids(&town.news()), ["a-250"]);
    assert_eq!(town.source.ledger.parses, 501);
}

#[test]
fn a_file_that_is_read_in_pieces_is_read_as_a_whole() {
    let number = 20_000;
    let mut lines: Vec<String> = (1..=number).map(|n| line(&format!("a-{n}"), &n.to_string())).collect();
    lines[7_000] = format!("\n \n{}", line("a-7001", &"long ".repeat(200_000)));
    lines[15_000] = "<<<<<<< ours\n".to_owned();
    let mut town = Town::with(&format!("\u{feff}{}", lines.concat().trim_end()));
    let reading = town.news();
    assert_eq!(reading.beads.len(), number - 1);
    assert!(reading.trouble.is_some_and(|text| text.contains("line 15003 cannot be read: a git conflict")));
    let descriptions = town.source.descriptions();
    for n in [1, 7_000, 7_002, number] {
        let details = descriptions.details(&BeadId::parse(&format!("a-{n}")).expect("valid"));
        assert_eq!(details.and_then(|details| details.description), Some(format!("about {n}")));
    }
    assert_eq!(town.source.ledger.parses, number - 1);
}

#[test]
fn a_file_that_is_not_there_yet_is_no_trouble() {
    let mut town = Town::new();
    let reading = town.news();
    assert_eq!(
        (reading.beads.len(), reading.whole, reading.vanished, reading.trouble),
        (0, true, false, None)
    );
    assert_eq!(Some(reading.stamp), town.source.stamp_now(), "nobody has to look again");
    assert_eq!(town.read(), None);
    town.write(line("a-1", "one"));
    assert_eq!(ids(&town.news()), ["a-1"]);
}

#[test]
fn a_file_that_should_be_there_is_missed() {
    let mut town = Town::new();
    town.source.expect_beads();
    let reading = town.news();
    assert!(reading.trouble.is_some_and(|text| text.contains("is missing")));
    assert!(!reading.whole);
    town.write(line("a-1", "one"));
    let reading = town.news();
    assert_eq!((ids(&reading), reading.whole, &reading.trouble), (vec!["a-1"], true, &None));
}

/// A word of what is said about it, and what happens to a file.
type Disaster = (&'static str, fn(&Path));

#[test]
fn whatever_takes_the_files_place_changes_nothing_and_is_said_once() {
    let text = line("a-1", "one") + &line("a-2", "two");
    let file = |town: &Town| town.source.path.clone();
    let disasters: [Disaster; 4] = [
        ("is missing", |_| ()),
        ("is a directory", |file| fs::create_dir(file).expect("created")),
        ("is not a regular file", |file| {
            nix::unistd::mkfifo(file, nix::sys::stat::Mode::S_IRWXU).expect("created");
        }),
        ("is larger than 4 GiB", |path| {
            let file = fs::File::create(path).expect("created");
            file.set_len(5 << 30).expect("sparse");
        }),
    ];
    for (word, happen) in disasters {
        let mut town = Town::with(&text);
        town.news();
        fs::remove_file(file(&town)).expect("removed");
        happen(&file(&town));
        let reading = town.news();
        assert!(reading.beads.is_empty() && reading.gone.is_empty() && !reading.whole, "{word}");
        let trouble = reading.trouble.expect("trouble");
        assert!(trouble.contains(word) && trouble.contains("issues.jsonl"), "{trouble}");
        assert_eq!(town.read(), None, "{word}: said once");
        match fs::symlink_metadata(file(&town)) {
            Ok(found) if found.is_dir() => fs::remove_dir(file(&town)).expect("removed"),
            Ok(_) => fs::remove_file(file(&town)).expect("removed"),
            Err(_) => {}
        }
        town.write(&text);
        let reading = town.news();
        assert_eq!((reading.beads.len(), reading.gone.len(), reading.trouble), (0, 0, None), "{word}");
    }
}

#[test]
fn a_file_one_may_not_read_is_trouble() {
    let mut town = Town::with(&line("a-1", "one"));
    fs::set_permissions(&town.source.path, fs::Permissions::from_mode(0o000)).expect("changed");
    if fs::File::open(&town.source.path).is_ok() {
        return; // The superuser may read everything.
    }
    assert!(town.news().trouble.is_some_and(|text| text.contains("cannot be read")));
    fs::set_permissions(&town.source.path, fs::Permissions::from_mode(0o600)).expect("changed");
    let reading = town.news();
    assert_eq!((reading.beads.len(), reading.trouble), (1, None));
}

#[test]
fn bad_lines_are_skipped_counted_and_named() {
    let good = line("a-1", "one");
    let huge = format!("{{\"id\":\"a-9\",\"title\":\"{}\"}}\n", "x".repeat(17 << 20));
    let cases: [(Vec<u8>, &str); 6] = [
        (b"not json\n".to_vec(), "line 2 cannot be read: not a JSON object"),
        (b"{\"id\":\"a-9\",\"title\":\"\xff\xfe\"}\n".to_vec(), "line 2 cannot be read: not valid UTF-8"),
        (b"{\"id\":\"../../etc\"}\n".to_vec(), "line 2 cannot be read: bead id"),
        (b"{\"id\":\"a-9\",\"ti".to_vec(), "line 2 cannot be read: EOF while parsing"),
        (huge.into_bytes(), "line 2 cannot be read: longer than 16 MiB"),
        (vec![0; 4096], "line 2 cannot be read: not a JSON object"),
    ];
    for (bad, said) in cases {
        let mut town = Town::with(&line("a-0", "zero"));
        town.news();
        town.write([good.as_bytes(), &bad].concat());
        let reading = town.news();
        assert_eq!((ids(&reading), gone(&reading)), (vec!["a-1"], vec![]), "{said}");
        let trouble = reading.trouble.expect("trouble");
        assert!(trouble.contains(said) && trouble.len() < 500, "{trouble}");
        assert!(reading.stamp.ends_with('?'));
        assert_eq!(town.read(), None, "{said}");
        town.write(&good);
        let reading = town.news();
        assert_eq!((gone(&reading), &reading.trouble), (vec!["a-0"], &None), "{said}");
    }
}

#[test]
fn both_sides_of_a_conflict_are_read_and_the_newer_wins() {
    let side = |title: &str, second: u32| {
        format!("{{\"id\":\"a-1\",\"title\":\"{title}\",\"updated_at\":\"2026-11-15T00:00:0{second}Z\"}}\n")
    };
    let text = format!(
        "{}<<<<<<< HEAD\n{}||||||| base\n{}=======\n{}>>>>>>> theirs\n{}",
        line("a-0", "before"),
        side("ours", 2),
        side("base", 1),
        side("theirs", 3),
        line("a-2", "after"),
    );
    let mut town = Town::with(&text);
    let reading = town.news();
    let titles: Vec<&str> = reading.beads.iter().map(|bead| bead.title.as_str()).collect();
    assert_eq!(titles, ["before", "theirs", "after"]);
    let trouble = reading.trouble.expect("trouble");
    assert!(
        trouble.contains("4 lines cannot be read, the first is line 2: a git conflict marker"),
        "{trouble}"
    );
}

#[test]
fn a_file_cut_off_at_any_byte_loses_nothing_and_heals() {
    let text: String = (0..8).map(|n| line(&format!("a-{n}"), &"word ".repeat(40))).collect();
    assert!(text.len() > 2000);
    let mut town = Town::with(&text);
    assert_eq!(town.news().beads.len(), 8);
    town.source.settle = NEVER;
    for length in 0..text.len() {
        town.write(&text[..length]);
        let whole_lines = text[..length].ends_with(['\n', '}']) || length == 0;
        let reading = town.read();
        assert_eq!(reading.is_none(), whole_lines, "{length}");
        if let Some(reading) = reading {
            assert!(
                reading.trouble.is_some() && reading.beads.is_empty() && reading.gone.is_empty(),
                "{length}"
            );
        }
        assert_eq!(town.read(), None, "{length}: trouble is told once");
        town.write(&text);
        let healed = town.read();
        assert_eq!(healed.is_none(), whole_lines, "{length}");
        if let Some(reading) = healed {
            assert!(
                reading.trouble.is_none() && reading.beads.is_empty() && reading.gone.is_empty(),
                "{length}"
            );
        }
    }
}

#[test]
fn what_a_file_lacks_is_gone_only_when_it_has_settled() {
    let mut town = Town::with(&(line("a-1", "one") + &line("a-2", "two")));
    town.news();
    town.source.settle = NEVER;
    // An in-place rewrite, caught in the middle.
    fs::write(&town.source.path, line("a-1", "changed")).expect("written");
    let reading = town.news();
    assert_eq!((ids(&reading), gone(&reading)), (vec!["a-1"], vec![]));
    assert!(reading.stamp.ends_with('?'));
    assert!(town.source.due().is_some(), "it asks to be read again");
    assert_eq!(town.read(), None);
    town.source.settle = Duration::ZERO;
    let reading = town.news();
    assert_eq!((ids(&reading), gone(&reading)), (vec![], vec!["a-2"]));
    assert_eq!((Some(reading.stamp), town.source.due()), (town.source.stamp_now(), None));
    assert_eq!(town.read(), None);
}

#[test]
fn a_file_that_stays_empty_is_trouble_and_nothing_of_it_is_gone() {
    let mut town = Town::with(&line("a-1", "one"));
    town.news();
    town.source.settle = NEVER;
    fs::write(&town.source.path, "").expect("written");
    assert_eq!(town.read(), None);
    town.source.settle = Duration::ZERO;
    let reading = town.news();
    assert!(gone(&reading).is_empty());
    assert!(reading.trouble.is_some_and(|trouble| trouble.contains("is empty, and had beads before")));
}

#[test]
fn a_rewrite_in_place_in_two_halves_tells_only_what_changed() {
    let (first, second) = (line("a-1", "one"), line("a-2", "two"));
    let mut town = Town::with(&format!("{first}{second}"));
    town.news();
    town.source.settle = NEVER;
    let mut file = OpenOptions::new().write(true).truncate(true).open(&town.source.path).expect("opened");
    assert_eq!(town.read(), None);
    file.write_all(first.as_bytes()).expect("written");
    assert_eq!(town.read(), None);
    let second = line("a-2", "changed");
    file.write_all(&second.as_bytes()[..10]).expect("written");
    assert!(town.news().trouble.is_some());
    file.write_all(&second.as_bytes()[10..]).expect("written");
    let reading = town.news();
    assert_eq!((ids(&reading), gone(&reading), &reading.trouble), (vec!["a-2"], vec![], &None));
}

#[test]
fn a_young_file_is_not_certain_for_a_process_that_looks_once() {
    let mut town = Town::with(&line("a-1", "one"));
    town.source.settle = NEVER;
    let reading = town.news();
    assert_eq!((reading.whole, reading.vanished), (true, false));
    assert_eq!(Some(reading.stamp), town.source.stamp_now().map(|stamp| stamp + "?"));
    // Whoever stays tells all once more when it is certain: only then does what is not there mean something.
    town.source.settle = Duration::ZERO;
    let reading = town.news();
    assert_eq!((ids(&reading), reading.whole, reading.vanished), (vec!["a-1"], true, true));
    assert_eq!(town.read(), None);
}

#[test]
fn a_first_reading_with_bad_lines_is_completed_when_they_are_mended() {
    let mut town = Town::with(&(line("a-1", "one") + "<<<<<<< HEAD\n"));
    let reading = town.news();
    assert_eq!((reading.whole, reading.vanished, reading.trouble.is_some()), (true, false, true));
    town.write(line("a-1", "one"));
    let reading = town.news();
    assert_eq!((ids(&reading), reading.whole, reading.vanished), (vec!["a-1"], true, true));
    assert_eq!(reading.trouble, None);
}

#[test]
fn trouble_that_passes_is_not_told_to_the_patient() {
    let good = line("a-1", "one");
    let mut town = Town::with(&good);
    town.news();
    town.source.set_patience(NEVER);
    town.write(format!("{}half", line("a-1", "changed")));
    let reading = town.news();
    assert_eq!((ids(&reading), &reading.trouble), (vec!["a-1"], &None), "good lines are told at once");
    assert!(town.source.due().is_some());
    town.source.set_patience(Duration::ZERO);
    assert!(town.news().trouble.is_some(), "trouble that lasts is told");
    town.source.set_patience(NEVER);
    town.write(&good);
    assert_eq!(town.news().trouble, None);
}

#[test]
fn trouble_is_not_over_because_a_rewrite_has_emptied_the_file() {
    let good = line("a-1", "one");
    let mut town = Town::with(&good);
    town.news();
    town.write(good.clone() + "<<<<<<< HEAD\n");
    assert!(town.news().trouble.is_some());
    town.source.settle = NEVER;
    town.write("");
    assert_eq!(town.read(), None);
    town.write(good);
    assert_eq!(town.news().trouble, None);
}

#[test]
fn odd_line_ends_and_a_byte_order_mark_do_not_matter() {
    let text = "\u{feff}{\"id\":\"a-1\"}\r\n\r\n  {\"id\":\"a-2\"}  \n{\"_type\":\"memory\",\"key\":\"k\"}\n{\"id\":\"a-3\"}";
    let mut town = Town::with(text);
    let reading = town.news();
    assert_eq!((ids(&reading), &reading.trouble), (vec!["a-1", "a-2", "a-3"], &None));
}

#[test]
fn descriptions_are_found_even_after_the_file_moved_on() {
    let mut town = Town::with(&(line("a-1", "one") + &line("a-2", "two")));
    let descriptions = town.source.descriptions();
    let about = |id: &str| {
        descriptions.details(&BeadId::parse(id).expect("valid")).and_then(|details| details.description)
    };
    assert_eq!(about("a-2").as_deref(), Some("about two"), "without any reading");
    town.news();
    assert_eq!(about("a-2").as_deref(), Some("about two"));
    town.write(
        line("a-0", "a new line that moves the others") + &line("a-1", "one") + &line("a-2", "changed"),
    );
    assert_eq!(about("a-2").as_deref(), Some("about changed"), "the place is out of date");
    assert_eq!(about("a-7"), None);
    fs::remove_file(&town.source.path).expect("removed");
    assert_eq!(about("a-2"), None);
}
