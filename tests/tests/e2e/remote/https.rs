//! Commands by HTTPS, and who is not let in.

use serde_json::json;
use yard_client::{Ask, Connection, Place, Request, WebTown};
use yard_tests::http::Http;
use yard_tests::ssh::free_port;
use yard_tests::tls::Authority;
use yard_tests::town::{Town, wait_until};

use super::{Web, ran};

#[test]
fn commands_work_as_they_do_at_home() {
    let mut web = Web::start();
    let status = web.ym(&["--json", "status"]).ok().json();
    assert_eq!(status["daemon"]["pid"], web.town.daemon_pid().expect("a daemon"));
    assert!(web.ym(&["status"]).ok().stdout.contains(&web.url()));
    let script = "i=0; while [ $i -lt 5 ]; do echo line $i; i=$((i+1)); done";
    let id = web.ym(&["add", "-q", "--", "sh", "-c", script]).ok().stdout.trim().to_owned();
    assert_eq!(web.ym(&["logs", "-f", &id]).ok().stdout, "line 0\nline 1\nline 2\nline 3\nline 4\n");
    web.ym(&["wait", &id]).ok();
    assert_eq!(web.ym(&["logs", "-n", "2", &id]).ok().stdout, "line 3\nline 4\n");
    assert_eq!(web.ym(&["--json", "show", &id]).ok().json(), web.town.json(["show", &id]));
    assert_eq!(web.ym(&["--json", "events"]).ok().stdout, web.town.run(["--json", "events"]).ok().stdout);
    web.ym(&["config", "set", "scheduler.max_polecats", "3"]).ok();
    assert_eq!(web.town.json(["config", "get", "scheduler.max_polecats"])["value"], 3);
    let jobs = web.town.root().join("jobs.jsonl");
    std::fs::write(&jobs, "{\"argv\": [\"true\"], \"id\": \"y-j\"}\n").expect("written");
    web.ym(&["add", "--file", jobs.to_str().expect("text")]).ok();
    assert_eq!(web.ym(&["--json", "show", "nothing-like-it"]).error_code(), "unknown-bead");
    for local in [vec!["config", "list"], vec!["doctor"], vec!["journal", "check"], vec!["http", "token"]] {
        let args: Vec<&str> = ["--json"].into_iter().chain(local).collect();
        assert_eq!(web.ym(&args).error_code(), "not-here", "{args:?}");
    }
    // Of several hosts, the one that serves the town at present.
    let hosts = format!("https://127.0.0.1:{},{}", free_port(), web.url());
    let (token, ca) = (web.token_file(), web.authority.ca());
    let (token, ca) = (token.to_str().expect("text"), ca.to_str().expect("text"));
    web.ym_at(&hosts, token, ca, &["status"]).ok();
    web.ym(&["stop"]).ok();
    let refused = web.ym(&["--json", "status"]);
    assert_eq!((refused.code, refused.error_code().as_str()), (1, "unreachable"));
    web.town.stop_daemon();
}

#[test]
fn who_shows_the_wrong_thing_or_meets_a_stranger_is_told_so() {
    let web = Web::start();
    let (ca, other) = (web.authority.ca(), Authority::new());
    let wrong = web.town.root().join("wrong-token");
    std::fs::write(&wrong, "a-token-that-nobody-gave-out\n").expect("written");
    let said = |refused: yard_tests::town::Ran| {
        assert_eq!((refused.code, refused.error_code().as_str()), (1, "unreachable"));
        refused.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let status = ["--json", "status"];
    assert!(said(web.ym_with(&wrong, &ca, &status)).contains("does not know this token"));
    let stranger = said(web.ym_with(&web.token_file(), &other.ca(), &status));
    assert!(stranger.contains("not to be trusted") && stranger.contains("--ca"), "{stranger}");
    let plain = |url: &str| {
        let mut command = web.town.command(["--json", "--server", url, "status"]);
        ran(command.env_remove("YM_TOWN").env("YM_TOKEN", "a-token-of-many-letters"))
    };
    assert_eq!(plain("http://192.0.2.1:7777").error_code(), "usage");
    assert_eq!(plain("https://user:secret@127.0.0.1").error_code(), "usage");
    // The token is never sent in plain to a server that speaks TLS: there is no answer to it.
    assert_eq!(plain(&format!("http://127.0.0.1:{}", web.port)).error_code(), "unreachable");
    let mut command = web.town.command(["--json", "--server", &web.url(), "status"]);
    assert_eq!(ran(command.env_remove("YM_TOWN")).error_code(), "usage");
}

#[test]
fn nobody_else_is_listened_to_without_a_certificate() {
    let mut town = Town::new();
    for address in ["0.0.0.0:7777", "[::]:7777"] {
        assert_eq!(town.refused(["config", "set", "http.listen", address]), "needs-tls");
    }
    town.set("http.listen", "127.0.0.2:0");
    town.start_daemon();
    assert_eq!(town.refused(["config", "set", "http.listen", "0.0.0.0:7777"]), "needs-tls");
    let http = town.json(["status"])["daemon"]["http"].clone();
    assert!(http.as_str().is_some_and(|address| address.starts_with("127.0.0.2:")), "{http}");
    // An editor knows nothing of that: the address before stays, and it is said why.
    let config = town.root().join(".yardmaster/config.toml");
    std::fs::write(&config, "[http]\nlisten = \"0.0.0.0:0\"\n").expect("written");
    wait_until("the alert", || town.run(["alerts"]).ok().stdout.contains("http.tls_cert"));
    assert_eq!(town.json(["status"])["daemon"]["http"], http);
}

#[test]
fn a_certificate_and_a_token_are_exchanged_while_the_daemon_runs() {
    let web = Web::start();
    let token = std::fs::read_to_string(web.token_file()).expect("a token");
    let place = Place::Web(WebTown::new(&web.url(), &token, Some(&web.authority.ca())).expect("a place"));
    let mut before = Connection::to(&place).expect("let in");
    let other = Authority::new();
    web.show_certificate_of(&other);
    wait_until("the new certificate", || {
        web.ym_with(&web.token_file(), &other.ca(), &["--json", "status"]).code == 0
    });
    let request = Request { actor: "test".to_owned(), ask: Ask::RigList };
    before.ask(&request, |_| true).expect("it stays open").expect("answered");
    let fresh = web.town.root().join("new-token");
    std::fs::write(&fresh, "another-token-of-many-letters\n").expect("written");
    std::fs::rename(fresh, web.token_file()).expect("put in place");
    wait_until("the old token's connection to end", || before.ask(&request, |_| true).is_err());
    web.ym_with(&web.token_file(), &other.ca(), &["status"]).ok();
}

#[test]
fn only_the_owner_gets_the_socket() {
    let mut town = Town::new();
    town.set("http.listen", "127.0.0.1:0");
    town.start_daemon();
    let http = Http::of(&town);
    let refused = http.get("/socket");
    assert_eq!((refused.status, refused.code().as_str()), (426, "upgrade_required"));
    assert_eq!(http.with(None).get("/socket").status, 401);
    let session = town.json(["http", "token", "--agent", "fern"])["session"].clone();
    let session = format!("Session {}", session.as_str().expect("a session"));
    assert_eq!(http.with(Some(&session)).get("/socket").status, 403);
    // In plain on the loopback it works, and says the same as the town's own socket.
    let url = format!("http://{}", http.address());
    let token = http.authorization().trim_start_matches("Bearer ");
    let mut command = town.command(["--json", "--server", &url, "rig", "list"]);
    let rigs = ran(command.env_remove("YM_TOWN").env("YM_TOKEN", token)).ok().json();
    assert_eq!(rigs, town.json(["rig", "list"]));
    let mut connection =
        Connection::to(&Place::Web(WebTown::new(&url, token, None).expect("a place"))).expect("let in");
    let list = Request { actor: "test".to_owned(), ask: Ask::RigList };
    for _ in 0..3 {
        let (document, _) = connection.ask(&list, |_| true).expect("open").expect("answered");
        let answer: serde_json::Value = serde_json::from_str(document.get()).expect("JSON");
        assert_eq!(answer, json!(rigs));
    }
}
