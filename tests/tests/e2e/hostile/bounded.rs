//! Too much of everything: memory stays bounded, and everybody else is served.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::json;
use yard_tests::town::{Town, processes, wait_until};

const MIB: usize = 1 << 20;

/// The most memory a process has ever had, in bytes.
fn most_memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).unwrap_or_default() << 10
}

fn is_served(town: &Town) {
    assert_eq!(town.run(["status"]).code, 0, "others are served");
}

fn socket(town: &Town) -> PathBuf {
    town.root().join(".yardmaster/ym.sock")
}

/// Writes so much without ever ending the line; how much was taken.
fn pour(stream: &mut UnixStream, bytes: usize) -> usize {
    let piece = vec![b'x'; MIB];
    let mut taken = 0;
    while taken < bytes && stream.write_all(&piece).is_ok() {
        taken += piece.len();
    }
    taken
}

#[test]
fn requests_that_never_end_take_only_so_much_together() {
    let mut town = Town::new();
    let daemon = town.start_daemon();
    let mut streams: Vec<UnixStream> =
        (0..7).map(|_| UnixStream::connect(socket(&town)).expect("it listens")).collect();
    let taken: Vec<usize> = streams.iter_mut().map(|stream| pour(stream, 48 * MIB)).collect();
    is_served(&town);
    assert!(taken.iter().sum::<usize>() < 300 * MIB, "{taken:?}: all of it was taken");
    // Whoever was refused is told so, and those who go make room again.
    let mut told = String::new();
    let last = streams.pop().expect("a stream");
    let _ = BufReader::new(last).read_to_string(&mut told);
    assert!(told.contains("bad-request") || told.lines().count() == 1, "{told}");
    drop(streams);
    wait_until("there is room again", || {
        let name = "n".repeat(50 * 1024);
        let lines: Vec<String> =
            (0..100).map(|_| json!({"argv": ["true"], "name": name}).to_string()).collect();
        town.run_with_input(["--json", "add", "--file", "-"], lines.join("\n").as_bytes()).code == 0
    });
    assert!(most_memory(daemon) < 900 * MIB, "{} MiB", most_memory(daemon) / MIB);
}

#[test]
fn whoever_talks_while_waiting_is_not_listened_to() {
    let mut town = Town::new();
    town.shell_bead("y-1", "exec sleep 60");
    let daemon = town.start_daemon();
    town.run(["sling", "y-1"]).ok();
    let before = most_memory(daemon);
    let mut stream = UnixStream::connect(socket(&town)).expect("it listens");
    let ask = json!({"actor": "x", "ask": {"ask": "wait", "ids": ["y-1"], "all": false, "timeout_ms": null, "summary": true}});
    stream.write_all((ask.to_string() + "\n").as_bytes()).expect("it reads");
    stream.set_write_timeout(Some(std::time::Duration::from_secs(2))).expect("a timeout");
    let taken = pour(&mut stream, 64 * MIB);
    assert!(taken < 8 * MIB, "{} MiB were taken", taken / MIB);
    is_served(&town);
    assert!(most_memory(daemon) < before + 32 * MIB, "{} MiB", most_memory(daemon) / MIB);
    // What it waited for is still answered, and then it is told.
    town.run(["kill", "y-1"]).ok();
    let mut lines = BufReader::new(stream).lines();
    assert!(lines.next().is_some_and(|hello| hello.is_ok_and(|hello| hello.contains("daemon"))));
    assert!(lines.next().is_some_and(|answer| answer.is_ok_and(|answer| answer.contains("ok"))));
    assert!(
        lines
            .next()
            .is_some_and(|refusal| refusal.is_ok_and(|refusal| refusal.contains("one request at a time")))
    );
}

#[test]
fn nonsense_where_shims_report_does_not_pile_up() {
    let mut town = Town::new();
    let daemon = town.start_daemon();
    town.shell_bead("y-1", "true");
    town.run(["sling", "y-1"]).ok();
    town.run(["wait", "y-1"]).ok();
    let before = most_memory(daemon);
    let mut stream =
        UnixStream::connect(town.root().join(".yardmaster/run/reports.sock")).expect("it listens");
    let taken = {
        let piece = vec![0xff_u8; MIB];
        let mut taken = 0;
        while taken < 48 * MIB && stream.write_all(&piece).is_ok() {
            taken += piece.len();
        }
        taken
    };
    assert!(taken < 48 * MIB, "nonsense is listened to for ever");
    is_served(&town);
    assert!(most_memory(daemon) < before + 32 * MIB, "{} MiB", most_memory(daemon) / MIB);
    town.shell_bead("y-2", "true");
    town.run(["sling", "y-2"]).ok();
    town.run(["wait", "y-2"]).ok();
}

#[test]
fn a_line_of_a_hundred_megabytes_costs_only_itself() {
    let mut town = Town::new();
    let shop = town.root().join("shop");
    std::fs::create_dir_all(&shop).expect("a directory");
    let mut file = std::fs::File::create(shop.join("beads.jsonl")).expect("a file");
    writeln!(file, "{}", json!({"id": "s-1", "title": "before"})).expect("written");
    write!(file, "{{\"id\":\"s-2\",\"title\":\"").expect("written");
    let piece = vec![b'x'; MIB];
    for _ in 0..100 {
        file.write_all(&piece).expect("written");
    }
    writeln!(file, "\"}}").expect("written");
    writeln!(file, "{{\"id\":\"s-3\",\"title\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000))
        .expect("written");
    writeln!(file, "{}", json!({"id": "s-4", "title": "after", "description": "at length"}))
        .expect("written");
    drop(file);
    let daemon = town.start_daemon();
    let [path, beads] = [shop.clone(), shop.join("beads.jsonl")].map(|path| path.display().to_string());
    town.run(["rig", "add", "shop", "--prefix", "s", "--path", &path, "--beads", &beads]).ok();
    wait_until("the others are there", || {
        town.run(["bead", "show", "s-1"]).code == 0 && town.run(["bead", "show", "s-4"]).code == 0
    });
    wait_until("it is told", || town.run(["alerts"]).ok().stdout.contains("16 MiB"));
    assert_ne!(town.run(["bead", "show", "s-2"]).code, 0);
    assert_ne!(town.run(["bead", "show", "s-3"]).code, 0);
    is_served(&town);
    assert!(most_memory(daemon) < 500 * MIB, "{} MiB", most_memory(daemon) / MIB);
}

#[test]
fn a_worker_that_writes_without_end_fills_neither_memory_nor_disk() {
    let mut town = Town::new();
    town.set("worker.log_cap", "1MiB");
    let daemon = town.start_daemon();
    town.shell_bead("y-1", "head -c 40000000 /dev/zero | tr '\\0' x; touch done; exec sleep 60");
    town.run(["sling", "y-1"]).ok();
    wait_until("it has written", || town.root().join("done").exists());

    let shims = processes().into_iter().filter(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "ym-shim"
    });
    for pid in shims.chain([daemon]) {
        assert!(most_memory(pid) < 96 * MIB, "{pid}: {} MiB", most_memory(pid) / MIB);
    }
    let logs = std::fs::read_dir(town.root().join(".yardmaster/logs")).expect("logs");
    let size: u64 = logs.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum();
    assert!((1..=1 << 20).contains(&size), "{size}");
    is_served(&town);
    assert!(!super::has_controls(&town.run(["status"]).ok().stdout));
}
