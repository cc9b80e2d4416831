//! What others watch: server-sent events that can be gone on with, figures for Prometheus, health.

use std::io::{BufRead, BufReader, Write};

use serde_json::Value;
use yard_tests::http::Http;

use super::{click, paused};

/// Reads events of a stream until so many have come.
fn events(http: &Http, path: &str, header: &str, count: usize) -> Vec<(u64, String, Value)> {
    let mut stream = http.connect();
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n{header}\r\n", http.authorization());
    stream.write_all(head.as_bytes()).expect("sent");
    let mut lines = BufReader::new(stream).lines();
    let (mut found, mut current) = (Vec::new(), (0, String::new(), Value::Null));
    while found.len() < count {
        let line = lines.next().expect("the stream goes on").expect("it can be read");
        if let Some(id) = line.strip_prefix("id: ") {
            current.0 = id.parse().expect("a position");
        } else if let Some(kind) = line.strip_prefix("event: ") {
            kind.clone_into(&mut current.1);
        } else if let Some(data) = line.strip_prefix("data: ") {
            current.2 = serde_json::from_str(data).expect("JSON");
        } else if line.is_empty() && current.0 > 0 {
            found.push(std::mem::take(&mut current));
        }
    }
    found
}

#[test]
fn events_are_numbered_and_a_stream_goes_on_where_it_was_cut_off() {
    let (_town, http) = paused(&[]);
    let first = http.submit(&click("a"));
    let all = events(&http, "/events?since=0", "", 5);
    let positions: Vec<u64> = all.iter().map(|(id, ..)| *id).collect();
    assert_eq!(positions, (1..=5).collect::<Vec<_>>());
    assert!(all.iter().all(|(id, kind, data)| data["seq"] == *id && data["type"] == kind.as_str()));
    let tasks = events(&http, "/events?since=0&type=task", "", 1);
    assert_eq!((tasks[0].1.as_str(), &tasks[0].2["task"]["id"]), ("task.submitted", &first.as_str().into()));
    let second = http.submit(&click("a"));
    let header = format!("Last-Event-ID: {}\r\n", tasks[0].0);
    let rest = events(&http, "/events?type=task", &header, 1);
    assert_eq!(rest[0].2["task"]["id"], second.as_str());
    assert_eq!(http.get("/events?since=x").status, 400);
}

#[test]
fn there_are_only_so_many_streams_and_closing_one_makes_room() {
    let (_town, http) = paused(&[]);
    let open = |http: &Http| {
        let mut stream = http.connect();
        let head =
            format!("GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n\r\n", http.authorization());
        stream.write_all(head.as_bytes()).expect("sent");
        let mut line = String::new();
        BufReader::new(stream.try_clone().expect("a descriptor")).read_line(&mut line).expect("answered");
        (stream, line)
    };
    let streams: Vec<_> = (0..32).map(|_| open(&http)).collect();
    assert!(streams.iter().all(|(_, line)| line.contains("200")));
    assert!(open(&http).1.contains("503"));
    drop(streams);
    yard_tests::town::wait_until("there is room again", || open(&http).1.contains("200"));
}

#[test]
fn figures_are_what_prometheus_reads() {
    let (_town, http) = paused(&[]);
    http.submit(&click("a"));
    let answer = http.get("/metrics");
    let text = String::from_utf8(answer.body.clone()).expect("text");
    assert!(
        answer.header("content-type").is_some_and(|kind| kind.starts_with("application/openmetrics-text"))
    );
    assert!(text.contains("\nym_tasks_queued 1\n"), "{text}");
    assert!(text.contains("\nym_tasks_submitted_total 1\n"), "{text}");
    assert!(text.contains("\nym_paused 1\n") && text.ends_with("# EOF\n"), "{text}");
}
