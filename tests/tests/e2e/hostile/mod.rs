//! Hostile text, names, users and amounts: they pass without doing anything, or do not pass.

mod bounded;
mod injection;
mod intruder;
mod names;
mod secrets;
mod terminal;

use yard_tests::town::Town;

/// Control characters that must never reach a terminal.
fn has_controls(text: &str) -> bool {
    text.chars().any(|c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c))
}

fn hostile_titles(canary: &str) -> Vec<String> {
    vec![
        "\u{1b}[31mred\u{1b}[0m \u{1b}]0;owned\u{7} end".to_owned(),
        "two\nlines\r\nand\ttabs".to_owned(),
        format!("$(touch {canary}) `touch {canary}`; touch {canary} #"),
        format!("'; touch {canary}; '\" && touch {canary} || \""),
        "{{title}} {{description}} {{agent...}}".to_owned(),
        "right\u{202e}left\u{200b}\u{feff}".to_owned(),
        "x".repeat(10 * 1024),
        "日本語 🚂 ünïcode".to_owned(),
    ]
}

#[test]
fn titles_are_data_everywhere() {
    let town = Town::new();
    let canary = town.root().join("canary");
    town.set("worker.agent", r#"["sh", "-c", "cat; printf '<%s>' \"$YM_TITLE\""]"#);
    for (i, title) in hostile_titles(canary.to_str().expect("utf-8")).iter().enumerate() {
        let id = format!("y-{i}");
        let added = town.run(["bead", "add", "--id", &id, title]);
        assert_eq!(added.code, 0, "{title:?}: {}", added.stderr);
        assert_eq!(town.json(["bead", "show", &id])["title"], **title, "kept as it is");
        let listed = town.run(["bead", "list"]).ok().stdout;
        assert!(listed.contains(&id) && !has_controls(&listed), "bead list of {title:?} shows {listed:?}");
        town.run(["sling", &id]).ok();
        town.run(["wait", &id]).ok();
        let log = town.run(["logs", &id]).ok().stdout;
        assert!(log.contains(&format!("<{title}>")), "the environment holds it whole");
        for command in [
            &["show", &id][..],
            &["why", &id],
            &["status"],
            &["bead", "list"],
            &["convoy", "list"],
            &["events"],
        ] {
            let text = town.run(command).ok().stdout;
            assert!(!has_controls(&text), "{command:?} of {title:?} shows {text:?}");
        }
    }
    assert!(!canary.exists(), "something was executed");
}

#[test]
fn bad_ids_and_nul_bytes_are_refused() {
    let town = Town::new();
    for id in ["../../etc/passwd", "a/b", ".hidden", "-x", "", "a b", "ü", &"x".repeat(200)] {
        let ran = town.run(["--json", "bead", "add", "title", &format!("--id={id}")]);
        assert_ne!(ran.code, 0, "{id:?} was accepted");
    }
    assert_eq!(town.json(["bead", "list"])["beads"].as_array().map(Vec::len), Some(0));
}

#[test]
fn garbage_on_the_socket_is_refused_and_harms_nobody() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    let mut town = Town::new();
    town.start_daemon();
    let socket = town.root().join(".yardmaster/ym.sock");
    for garbage in ["\n", "{}\n", "not json\n", "{\"actor\":1}\n", "\u{0}\u{1}\n", "[[[[[[[[[[\n"] {
        let mut stream = UnixStream::connect(&socket).expect("a daemon listens");
        stream.write_all(garbage.as_bytes()).expect("it reads");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).expect("a hello");
        line.clear();
        reader.read_line(&mut line).expect("an answer");
        assert!(line.contains("bad-request"), "{garbage:?}: {line}");
    }
    town.run(["status"]).ok();
}
