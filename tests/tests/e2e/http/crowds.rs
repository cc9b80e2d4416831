//! Clients that mean no good, or too well: each is told clearly, memory stays bounded, and others are still served.

use std::io::{Read, Write};
use std::net::TcpStream;

use yard_tests::http::Http;
use yard_tests::town::{Town, wait_until};

use super::{click, paused};

/// The memory a process holds, in KiB.
fn memory_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.split_whitespace().next().expect("a number").parse().expect("a number")
}

fn memory(town: &Town) -> u64 {
    memory_of(town.daemon_pid().expect("it runs"))
}

fn still_serves(http: &Http) {
    let id = http.submit(&click("somebody else"));
    assert_eq!(http.task(&id)["state"], "queued");
}

#[test]
fn a_body_that_is_too_long_is_refused_without_being_read() {
    let (town, http) = paused(&[]);
    let before = memory(&town);
    for head in ["Content-Length: 1073741824\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut stream = http.connect();
        let start = format!(
            "POST /tasks HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n{head}\r\n",
            http.authorization()
        );
        stream.write_all(start.as_bytes()).expect("sent");
        let piece = if head.starts_with("Content") {
            vec![b'x'; 65536]
        } else {
            [format!("{:x}\r\n", 65536).as_bytes(), &vec![b'x'; 65536], b"\r\n"].concat()
        };
        // A gigabyte, if anybody wants it.
        let mut sent = 0_usize;
        while sent < 1 << 30 && stream.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        assert!(sent < 64 << 20, "{sent} bytes were taken");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        // The answer may be lost if the connection breaks while we still write; a polite client sees it.
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    }
    let polite = http.send("POST", "/tasks", &[], &vec![b' '; (1 << 20) + 1]);
    assert_eq!((polite.status, polite.code().as_str()), (413, "error"));
    assert!(memory(&town) < before + 64 * 1024);
    still_serves(&http);
}

#[test]
fn whoever_says_nothing_keeps_nobody_out() {
    let (town, http) = paused(&[]);
    let before = memory(&town);
    let idle: Vec<TcpStream> = (0..5000)
        .filter_map(|nth| {
            let mut stream = TcpStream::connect(http.address()).ok()?;
            if nth % 2 == 0 {
                // Slowly, one header and never the end.
                let _ = stream.write_all(b"POST /tasks HTTP/1.1\r\nHost: x\r\n");
            }
            if nth % 500 == 0 {
                still_serves(&http);
            }
            Some(stream)
        })
        .collect();
    assert!(idle.len() > 4000, "{} connected", idle.len());
    still_serves(&http);
    assert!(memory(&town) < before + 128 * 1024);
}

#[test]
fn a_slow_head_is_given_up() {
    let (_town, http) = paused(&[]);
    let mut slow = http.connect();
    slow.write_all(b"GET /tasks HTTP/1.1\r\nX-Slow: ").expect("sent");
    let mut end = Vec::new();
    // Nothing, or 408, and then the connection is over: we would wait for a minute.
    let began = std::time::Instant::now();
    slow.read_to_end(&mut end).expect("the server ends it");
    let said = String::from_utf8_lossy(&end);
    assert!(said.is_empty() || said.contains("408"), "{said} after {:?}", began.elapsed());
    still_serves(&http);
}

#[test]
fn nonsense_is_answered_with_a_clear_error() {
    let (_town, http) = paused(&[]);
    for raw in [
        "GARBAGE\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /tasks HTTP/1.1\r\nbad header\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        let mut stream = http.connect();
        stream.write_all(raw.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 400"), "{raw:?}: {answer}");
    }
    for path in [
        "/tasks/../../etc/passwd",
        "/tasks/..%2f..%2fetc%2fpasswd",
        "/tasks/%2e%2e",
        "/tasks/tsk_%00",
        "/tasks/%ff%fe",
        "/tasks/tsk_0000000001/../cancel",
        "//tasks",
        "/tasks/",
    ] {
        let answer = http.get(path);
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
        assert!(!answer.error().is_empty(), "{path}");
    }
    let long = http.send("GET", "/tasks", &[("X-Long", &"x".repeat(200_000))], b"");
    assert!(matches!(long.status, 400 | 431), "{}", long.status);
    let deep = format!(
        "{{\"agentId\":\"a\",\"action\":\"x\",\"params\":{}1{}}}",
        "{\"a\":".repeat(5000),
        "}".repeat(5000)
    );
    assert_eq!(http.send("POST", "/tasks", &[], deep.as_bytes()).status, 400);
    assert_eq!(http.send("POST", "/tasks", &[], b"{\"agentId\":\"\xff\",\"action\":\"x\"}").status, 400);
    still_serves(&http);
}

#[test]
fn what_is_nested_deeply_is_refused_or_kept_so_that_it_can_be_read_again() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let answer = nested(127);
    let peer = yard_tests::http::Peer::start(move |_| (200, answer.clone()));
    let (mut town, http) = super::serving(&[("executor.http.base_url", &peer.url())]);
    let submit = |levels: usize| {
        let body = format!(
            "{{\"agentId\":\"a\",\"action\":\"x\",\"tabId\":\"t\",\"params\":{{\"a\":{}}}}}",
            nested(levels)
        );
        http.send("POST", "/tasks", &[], body.as_bytes())
    };
    for levels in [63, 64, 100, 125, 126, 127, 128, 5000] {
        let answer = submit(levels);
        assert_eq!(answer.status, 400, "{levels}: {}", answer.error());
    }
    let taken = submit(62);
    assert_eq!(taken.status, 202);
    let id = taken.json()["taskId"].as_str().expect("an id").to_owned();
    assert!(http.await_state(&id, "done")["result"].is_string(), "too deep to be kept as it is");
    town.kill_daemon();
    town.start_daemon();
    assert_eq!(Http::of(&town).task(&id)["state"], "done");
    assert_eq!(town.json(["journal", "check"])["sound"], true);
}

#[test]
fn clients_that_do_not_read_take_no_more_than_their_share() {
    let (town, http) = paused(&[]);
    let text = "x".repeat(1_000_000);
    for _ in 0..30 {
        http.submit(&serde_json::json!({"agentId": "a", "action": "x", "params": {"text": text}}));
    }
    let page = http.get("/tasks").json();
    let count = page["count"].as_u64().expect("a number");
    assert!((1..=4).contains(&count), "a page has a size: {count} tasks");
    assert!(page["nextCursor"].is_string());
    let before = memory(&town);
    let paths = ["/tasks", "/events?since=0"];
    let deaf: Vec<TcpStream> = (0..24)
        .map(|nth| {
            let mut stream = http.connect();
            let head = format!(
                "GET {} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n\r\n",
                paths[nth % 2],
                http.authorization()
            );
            stream.write_all(head.as_bytes()).expect("sent");
            stream
        })
        .collect();
    still_serves(&http);
    let grown = memory(&town).saturating_sub(before);
    assert!(grown < 700 * 1024, "{grown} KiB for {}", deaf.len());
}

#[test]
fn hostile_words_reach_no_terminal() {
    let (town, http) = paused(&[]);
    http.submit(&serde_json::json!({"agentId": "a", "action": "\u{1b}]0;evil\u{7}\u{202e}click", "tabId": "\u{1b}[2J"}));
    for args in [vec!["status"], vec!["bead", "list"], vec!["events"], vec!["scheduler", "status"]] {
        let ran = town.run(&args).ok();
        assert!(!ran.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{args:?}: {:?}", ran.stdout);
    }
    wait_until("it is in the queue", || town.json(["scheduler", "status"])["queued_total"] == 1);
}
