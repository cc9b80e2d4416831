//! Durable `POST /tasks` under load, by wrk, next to a queue that forgets everything, and next to bare programs that
//! only commit the same bytes to the same disk with as many writers at a time.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use yard_tests::http::{Http, Peer};
use yard_tests::town::Town;

use crate::Fallible;
use crate::report::progress;
use crate::table::{Table, met, time, times};

/// Clients, or writers, at the same time.
pub(crate) const WRITERS: [usize; 2] = [16, 64];
/// How long each row is measured.
const SPAN: Duration = Duration::from_secs(8);
/// What share of a bare program's commits ours are to be.
const BAR: f64 = 0.5;
/// Agents that the load comes from.
const AGENTS: usize = 100;

/// What was measured.
struct Rate {
    per_second: f64,
    /// The slowest of a hundred; unknown of bare programs.
    p99: Option<Duration>,
}

/// Measures all rows; returns how many bars were missed.
pub(crate) fn run(writers: &[usize]) -> Fallible<usize> {
    let mut table = Table::new(
        "Tasks per second, each on disk before it is acknowledged",
        &["writers", "what", "per second", "p99", "ours / it", "bar"],
    );
    let mut missed = 0;
    for &writers in writers {
        progress(&format!("{writers} writers: the disk"));
        let alone = bare(writers, Commits::EachItsOwn)?;
        let together = bare(writers, Commits::Together)?;
        progress(&format!("{writers} writers: a queue in memory"));
        let memory = in_memory(writers)?;
        progress(&format!("{writers} writers: ours"));
        let ours = ours(writers, Load::OnlyTakenIn)?;
        let run_too = self::ours(writers, Load::RunToo)?;
        let mut row = |what: &str, rate: &Rate, bar: Option<f64>| {
            let ratio = ours.per_second / rate.per_second;
            let verdict = bar.map(|bar| {
                missed += usize::from(ratio < bar);
                format!("{} {}", times(bar), met(ratio >= bar))
            });
            table.row([
                writers.to_string(),
                what.to_owned(),
                format!("{:.0}", rate.per_second),
                rate.p99.map_or("-".to_owned(), time),
                times(ratio),
                verdict.unwrap_or_default(),
            ]);
        };
        row("ours, taken in", &ours, None);
        row("ours, taken in and run", &run_too, None);
        row("bare, a commit each", &alone, Some(BAR));
        row("bare, commits shared by all who wait", &together, None);
        row("HTTP queue in memory, nothing kept", &memory, None);
    }
    table.print();
    Ok(missed)
}

/// How a bare program commits.
#[derive(Clone, Copy)]
enum Commits {
    /// Every row by itself.
    EachItsOwn,
    /// All rows that wait at the same time.
    Together,
}

/// One task as it stands in the log.
fn sample_row() -> String {
    json!({"type": "task.submitted", "task": {"id": "tsk_0000000001", "agent": "agent-1", "action": "click",
        "tab": "tab-1", "params": {"text": "hello"}, "created_at": "2026-11-16T00:00:00.000Z",
        "deadline": "2026-11-16T00:01:00.000Z"}, "bead": {"id": "tsk_0000000001", "title": "click tab-1 (agent-1)"},
        "context": {"id": "ctx-1", "agent": "agent-1", "rig": "yard"}})
    .to_string()
}

fn open(path: &Path) -> Fallible<rusqlite::Connection> {
    let connection = rusqlite::Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute("create table log (seq integer primary key, body text not null)", [])?;
    Ok(connection)
}

/// A program that does nothing but commit.
fn bare(writers: usize, commits: Commits) -> Fallible<Rate> {
    let dir = tempfile::tempdir()?;
    let connection = open(&dir.path().join("bare.db"))?;
    let (over, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let row = sample_row();
    let began = Instant::now();
    match commits {
        Commits::EachItsOwn => {
            let connection = Mutex::new(connection);
            std::thread::scope(|scope| {
                for _ in 0..writers {
                    scope.spawn(|| {
                        while !over.load(Ordering::Relaxed) {
                            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                            if connection.execute("insert into log (body) values (?)", [&row]).is_ok() {
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
                std::thread::sleep(SPAN);
                over.store(true, Ordering::Relaxed);
            });
        }
        Commits::Together => shared_commits(writers, connection, &over, &count, &row),
    }
    Ok(Rate { per_second: count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64(), p99: None })
}

fn shared_commits(
    writers: usize,
    mut connection: rusqlite::Connection,
    over: &AtomicBool,
    count: &AtomicU64,
    row: &str,
) {
    let (sender, received) = mpsc::channel::<(String, mpsc::Sender<()>)>();
    std::thread::scope(|scope| {
        for _ in 0..writers {
            let sender = sender.clone();
            scope.spawn(move || {
                let (done, told) = mpsc::channel();
                while !over.load(Ordering::Relaxed) {
                    if sender.send((row.to_owned(), done.clone())).is_err() || told.recv().is_err() {
                        break;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        drop(sender);
        scope.spawn(move || {
            while let Ok(first) = received.recv() {
                let batch: Vec<_> = std::iter::once(first).chain(received.try_iter()).collect();
                let Ok(transaction) = connection.transaction() else { return };
                for (row, _) in &batch {
                    let _ = transaction.execute("insert into log (body) values (?)", [row]);
                }
                if transaction.commit().is_err() {
                    return;
                }
                for (_, done) in batch {
                    let _ = done.send(());
                }
            }
        });
        std::thread::sleep(SPAN);
        over.store(true, Ordering::Relaxed);
    });
}

/// A queue like PinchTab's: the same request, taken in and forgotten with the process.
fn in_memory(writers: usize) -> Fallible<Rate> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let queue = Arc::<Mutex<VecDeque<Value>>>::default();
    let submit = move |body: String| async move {
        let Ok(task) = serde_json::from_str::<Value>(&body) else {
            return (StatusCode::BAD_REQUEST, String::new());
        };
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(task);
        let answer =
            json!({"taskId": format!("tsk_{:08x}", queue.len()), "state": "queued", "position": queue.len()});
        (StatusCode::ACCEPTED, answer.to_string())
    };
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/tasks", post(submit));
    let serving = runtime.spawn(async move { axum::serve(listener, router).await });
    let rate = wrk(&format!("http://{address}/tasks"), "none", writers);
    serving.abort();
    rate
}

/// What the load is.
#[derive(Clone, Copy)]
enum Load {
    /// Dispatch is paused: tasks are only taken in.
    OnlyTakenIn,
    /// Tasks are run as they come, by a server that answers at once.
    RunToo,
}

fn ours(writers: usize, load: Load) -> Fallible<Rate> {
    let peer = Peer::start(|_| (200, "{}".to_owned()));
    let mut town = Town::new();
    town.set("http.listen", "127.0.0.1:0");
    town.set("executor.http.base_url", &peer.url());
    for key in ["http.max_queue", "http.max_per_agent"] {
        town.set(key, "4000000");
    }
    town.start_daemon();
    match load {
        Load::OnlyTakenIn => drop(town.run(["scheduler", "pause"]).ok()),
        Load::RunToo => {}
    }
    let http = Http::of(&town);
    let rate = wrk(&format!("http://{}/tasks", http.address()), http.authorization(), writers)?;
    let kept = http.get("/scheduler/stats").json()["metrics"]["tasksSubmitted"].as_f64().unwrap_or(0.0);
    let acknowledged = rate.per_second * SPAN.as_secs_f64();
    if kept < acknowledged * 0.9 {
        return Err(format!("{acknowledged} were acknowledged, but {kept} are there").into());
    }
    town.kill_daemon();
    Ok(rate)
}

/// Posts tasks for a while, from so many connections.
fn wrk(url: &str, authorization: &str, connections: usize) -> Fallible<Rate> {
    let script = tempfile::Builder::new().suffix(".lua").tempfile()?;
    std::fs::write(
        script.path(),
        format!(
            "wrk.method = 'POST'\nwrk.headers['Authorization'] = '{authorization}'\n\
             wrk.headers['Content-Type'] = 'application/json'\nlocal n = 0\nrequest = function()\n  n = n + 1\n  \
             local agent = 'agent-' .. (n % {AGENTS})\n  local body = '{{\"agentId\": \"' .. agent .. \
             '\", \"action\": \"click\", \"tabId\": \"tab-1\", \"params\": {{\"text\": \"hello\"}}}}'\n  \
             return wrk.format(nil, nil, nil, body)\nend\n"
        ),
    )?;
    let output = Command::new("wrk")
        .args(["-t1", "--latency", "-c", &connections.to_string(), "-d", &format!("{}s", SPAN.as_secs())])
        .arg("-s")
        .arg(script.path())
        .arg(url)
        .output()
        .map_err(|error| format!("wrk cannot be run: {error}; apt-get install wrk"))?;
    let text = String::from_utf8(output.stdout)?;
    let after = |word: &str| {
        let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(word));
        line.map(|rest| rest.trim().to_owned())
    };
    if let Some(failed) = after("Non-2xx or 3xx responses:") {
        return Err(format!("{failed} requests were refused:\n{text}").into());
    }
    let per_second = after("Requests/sec:").ok_or_else(|| format!("wrk says:\n{text}"))?.parse()?;
    Ok(Rate { per_second, p99: after("99%").and_then(|text| span(&text)) })
}

/// A span as wrk writes it.
fn span(text: &str) -> Option<Duration> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let number: f64 = text[..end].parse().ok()?;
    let seconds = match &text[end..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    Some(Duration::from_secs_f64(number * seconds))
}
