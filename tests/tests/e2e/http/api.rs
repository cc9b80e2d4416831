//! The API as its clients know it: fields, status codes, error envelope, admission.

use serde_json::{Value, json};
use yard_tests::town::wait_until;

use super::{click, paused, serving};

fn ids(list: &Value) -> Vec<String> {
    let tasks = list["tasks"].as_array().expect("a list").iter();
    tasks.map(|task| task["taskId"].as_str().expect("an id").to_owned()).collect()
}

// D17: 404, 409 and 403 follow from what is the case, not from words in a message.
#[test]
fn a_task_is_taken_in_shown_listed_and_called_off() {
    let (_town, http) = paused(&[]);
    let task = json!({"agentId": "agent-1", "action": "click", "tabId": "tab-1", "ref": "e14",
        "selector": "#go", "params": {"text": "hi", "n": 3}, "priority": -7, "unknown": [1, 2]});
    let answer = http.post("/tasks", &task);
    assert_eq!(answer.status, 202);
    let said = answer.json();
    assert_eq!((&said["state"], &said["position"]), (&json!("queued"), &json!(1)));
    let id = said["taskId"].as_str().expect("an id");
    assert!(id.starts_with("tsk_"), "{id}");
    let shown = http.task(id);
    for (field, value) in task.as_object().expect("fields").iter().filter(|(field, _)| *field != "unknown") {
        assert_eq!(shown[field], *value, "{field}");
    }
    assert_eq!(shown["createdAt"], said["createdAt"]);
    // D14: what is not known is not there.
    for absent in ["startedAt", "completedAt", "latencyMs", "result", "error", "callbackUrl", "unknown"] {
        assert!(shown.get(absent).is_none(), "{absent} in {shown}");
    }
    let cancelled = http.post(&format!("/tasks/{id}/cancel"), &json!({}));
    assert_eq!((cancelled.status, cancelled.json()), (200, json!({"status": "cancelled", "taskId": id})));
    let shown = http.task(id);
    assert_eq!((&shown["state"], &shown["latencyMs"]), (&json!("cancelled"), &json!(0)));
    let again = http.post(&format!("/tasks/{id}/cancel"), &json!({}));
    assert_eq!((again.status, again.code().as_str()), (409, "conflict"));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_sentence_before_any_queue_is_looked_at() {
    let (_town, http) = paused(&[("http.max_queue", "1")]);
    http.submit(&click("a"));
    let without = |field: &str| {
        let mut task = click("a");
        task.as_object_mut().expect("fields").remove(field);
        task.to_string()
    };
    let with = |field: &str, value: Value| {
        let mut task = click("a");
        task[field] = value;
        task.to_string()
    };
    let cases = [
        ("not json".to_owned(), "bad JSON"),
        (String::new(), "bad JSON"),
        ("[]".to_owned(), "bad JSON"),
        (without("agentId"), "invalid task: missing required field 'agentId'"),
        (without("action"), "invalid task: missing required field 'action'"),
        (with("agentId", json!("  ")), "invalid task: missing required field 'agentId'"),
        (with("agentId", json!(7)), "bad JSON"),
        (with("agentId", json!("a\u{7}b")), "invalid task: agentId"),
        (with("action", json!(null)), "invalid task: missing required field 'action'"),
        (with("params", json!("x")), "bad JSON"),
        (with("priority", json!(1.5)), "bad JSON"),
        (with("deadline", json!("2020-01-01T00:00:00Z")), "deadline is in the past"),
        (with("deadline", json!("not-a-date")), "invalid deadline format"),
        (with("callbackUrl", json!("http://127.0.0.1/hook")), "invalid task: invalid callbackUrl"),
        (with("maxAttempts", json!(0)), "invalid task: maxAttempts"),
        (with("formula", json!("no-such-formula")), "invalid task: "),
        (with("after", json!(["tsk_nobody"])), "invalid task: there is no task"),
        (with("rig", json!("no-such-rig")), "invalid task: "),
    ];
    for (body, sentence) in cases {
        let answer = http.send("POST", "/tasks", &[], body.as_bytes());
        assert_eq!((answer.status, answer.code().as_str()), (400, "error"), "{body}");
        assert!(answer.error().starts_with(sentence), "{body}: {}", answer.error());
    }
    let trailing = format!("{} and more", click("a"));
    let answer = http.send("POST", "/tasks", &[], trailing.as_bytes());
    assert_eq!(answer.status, 429, "what follows the first value is ignored");
}

#[test]
fn a_full_queue_says_so_and_keeps_what_it_turned_away() {
    let (_town, http) = paused(&[("http.max_queue", "3"), ("http.max_per_agent", "2")]);
    http.submit(&click("a"));
    http.submit(&click("a"));
    let own = http.post("/tasks", &click("a"));
    assert_eq!((own.status, own.code().as_str(), own.header("retry-after")), (429, "queue_full", Some("1")));
    assert_eq!(own.error(), "rejected: agent queue full for \"a\" (2/2)");
    let said = own.json();
    assert_eq!(said["retryable"], true);
    let details = &said["details"];
    assert_eq!(
        (&details["agentId"], &details["queued"], &details["maxQueue"], &details["maxPerAgent"]),
        (&json!("a"), &json!(2), &json!(3), &json!(2))
    );
    let kept = http.task(details["taskId"].as_str().expect("its id"));
    assert_eq!(kept["state"], "rejected");
    assert!(kept["completedAt"].is_string());
    http.submit(&click("b"));
    assert_eq!(http.post("/tasks", &click("c")).error(), "rejected: global queue full (3/3)");
    assert_eq!(http.get("/tasks?state=rejected").json()["count"], 2);
}

#[test]
fn a_batch_is_taken_in_item_by_item() {
    let (_town, http) = paused(&[("http.max_per_agent", "2")]);
    let item = |action: &str| json!({"action": action, "tabId": "t"});
    let tasks = json!([item("a"), {"tabId": "t"}, item("b"), item("c"),
        {"action": "d", "callbackUrl": "http://localhost/"}]);
    let answer = http.post("/tasks/batch", &json!({"agentId": "a", "tasks": tasks}));
    assert_eq!(answer.status, 202);
    let said = answer.json();
    assert_eq!(said["submitted"], 5);
    let states: Vec<&str> = said["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["state"].as_str().expect("a state"))
        .collect();
    assert_eq!(states, ["queued", "rejected", "queued", "rejected", "rejected"]);
    assert!(said["tasks"][0]["taskId"].is_string() && said["tasks"][3]["taskId"].is_string());
    assert_eq!(said["tasks"][1]["error"], "invalid task: missing required field 'action'");
    assert!(said["tasks"][4]["error"].as_str().expect("an error").contains("callbackUrl"));
    assert_eq!(said["tasks"][3]["error"], "rejected: agent queue full for \"a\" (2/2)");
    let shell = |params: Value| json!({"action": "x", "formula": "shell", "params": params});
    let mixed = json!({"agentId": "b", "tasks": [shell(json!({"command": "true"})), shell(json!({}))]});
    let mixed = http.post("/tasks/batch", &mixed).json();
    assert_eq!(
        (&mixed["tasks"][0]["state"], &mixed["tasks"][1]["state"]),
        (&json!("queued"), &json!("rejected"))
    );
    let refused = |body: Value| {
        let answer = http.post("/tasks/batch", &body);
        (answer.status, answer.code(), answer.error())
    };
    let many: Vec<Value> = (0..51).map(|_| item("x")).collect();
    let (status, code, _) = refused(json!({"agentId": "a", "tasks": many}));
    assert_eq!((status, code.as_str()), (400, "batch_too_large"));
    let (status, _, error) = refused(json!({"agentId": "a", "tasks": []}));
    assert_eq!((status, error.as_str()), (400, "batch must contain at least one task"));
    let (status, _, error) = refused(json!({"tasks": [item("x")]}));
    assert_eq!((status, error.contains("agentId")), (400, true));
}

// D11
#[test]
fn lists_have_an_order_filters_and_pages() {
    let (_town, http) = paused(&[]);
    let mut expected = Vec::new();
    for nth in 0..25 {
        expected.push(http.submit(&click(if nth % 2 == 0 { "even" } else { "odd" })));
    }
    assert_eq!(ids(&http.get("/tasks").json()), expected, "the first submitted first");
    let mut paged = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = http.get(&format!("/tasks?limit=7{cursor}")).json();
        paged.extend(ids(&page));
        assert_eq!(page["count"].as_u64(), Some(ids(&page).len() as u64));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, expected);
    http.post(&format!("/tasks/{}/cancel", expected[0]), &json!({}));
    assert_eq!(http.get("/tasks?agentId=even").json()["count"], 13);
    assert_eq!(http.get("/tasks?agentId=even&state=cancelled").json()["count"], 1);
    assert_eq!(http.get("/tasks?state=cancelled,%20queued").json()["count"], 25);
    assert_eq!(http.get("/tasks?state=nonsense").json(), json!({"tasks": [], "count": 0}));
    for bad in ["limit=0", "limit=1001", "limit=x"] {
        assert_eq!(http.get(&format!("/tasks?{bad}")).status, 400, "{bad}");
    }
}

#[test]
fn whoever_has_no_token_or_the_wrong_one_stays_outside() {
    let (town, http) = paused(&[]);
    for path in ["/tasks", "/tasks/x", "/scheduler/stats", "/metrics", "/events"] {
        let nobody = http.with(None).get(path);
        assert_eq!((nobody.status, nobody.code().as_str()), (401, "missing_token"), "{path}");
        let asks = nobody.header("www-authenticate").unwrap_or_default();
        assert_eq!(asks, "Bearer realm=\"yardmaster\", error=\"missing_token\"");
        let wrong = http.with(Some("Bearer wrong")).get(path);
        assert_eq!((wrong.status, wrong.code().as_str()), (401, "bad_token"), "{path}");
    }
    assert_eq!(http.with(Some("Session x.y")).get("/tasks").code(), "bad_session");
    let both = http.send("GET", "/tasks", &[("Authorization", "Session x.y")], b"");
    assert_eq!((both.status, both.code().as_str()), (401, "missing_token"));
    for open in ["/healthz", "/openapi.json"] {
        assert_eq!(http.with(None).get(open).status, 200, "{open}");
    }
    let mode = std::os::unix::fs::MetadataExt::mode(
        &std::fs::metadata(town.root().join(".yardmaster/http-token")).expect("it was made"),
    );
    assert_eq!(mode & 0o777, 0o600);
}

// D6: an agent that is not the operator neither takes another's name nor his tasks.
#[test]
fn a_session_opens_what_belongs_to_its_agent_and_nothing_else() {
    let (town, http) = paused(&[]);
    let session = town.json(["http", "token", "--agent", "mine"]);
    let session = format!("Session {}", session["session"].as_str().expect("a session"));
    let mine = http.with(Some(&session));
    let foreign = http.submit(&click("other"));
    let own = mine.submit(&click("mine"));
    let refused = mine.post("/tasks", &click("other"));
    assert_eq!((refused.status, refused.code().as_str()), (403, "agent_forbidden"));
    let refused = mine.post("/tasks/batch", &json!({"agentId": "other", "tasks": [{"action": "x"}]}));
    assert_eq!(refused.status, 403);
    assert_eq!(ids(&mine.get("/tasks").json()), [own.as_str()]);
    assert_eq!(mine.get("/tasks?agentId=other").status, 403);
    assert_eq!(mine.get(&format!("/tasks/{foreign}")).status, 404);
    assert_eq!(mine.post(&format!("/tasks/{foreign}/cancel"), &json!({})).status, 403);
    assert_eq!(http.task(&foreign)["state"], "queued");
    assert_eq!(mine.post(&format!("/tasks/{own}/cancel"), &json!({})).status, 200);
    for path in ["/events", "/metrics"] {
        assert_eq!(mine.get(path).code(), "session_scope_forbidden", "{path}");
    }
}

// D5: what may be asked for besides is in `actions`; this is the key.
#[test]
fn the_same_request_under_the_same_key_is_one_task() {
    let (_town, http) = paused(&[]);
    let send = |key: &str, body: &Value| {
        http.send("POST", "/tasks", &[("Idempotency-Key", key)], body.to_string().as_bytes())
    };
    let first = send("k1", &click("a"));
    let again = send("k1", &click("a"));
    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!(first.json()["taskId"], again.json()["taskId"]);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.header("idempotency-replayed"), None);
    let other = send("k1", &json!({"agentId": "a", "action": "type", "tabId": "tab-1"}));
    assert_eq!((other.status, other.code().as_str()), (422, "idempotency_conflict"));
    assert_ne!(send("k2", &click("a")).json()["taskId"], first.json()["taskId"]);
    assert_eq!(http.get("/tasks").json()["count"], 2);
    assert_eq!(send(&"x".repeat(256), &click("a")).status, 400);
    // Another agent's key is another key, and so is that of a batch.
    let foreign = send("k2", &click("b"));
    assert_eq!((foreign.status, foreign.header("idempotency-replayed")), (202, None));
    let both = [("Idempotency-Key", "x"), ("Idempotency-Key", "y")];
    assert_eq!(http.send("POST", "/tasks", &both, click("a").to_string().as_bytes()).status, 400);
    let batch = json!({"agentId": "a", "tasks": [{"action": "x"}, {"action": "y"}]});
    let twice = [(); 2].map(|()| {
        http.send("POST", "/tasks/batch", &[("Idempotency-Key", "b")], batch.to_string().as_bytes()).json()
    });
    assert_eq!(twice[0]["tasks"][1]["taskId"], twice[1]["tasks"][1]["taskId"]);
}

#[test]
fn a_request_that_is_made_again_after_its_deadline_is_still_the_same() {
    let (_town, http) = paused(&[]);
    let at = std::time::SystemTime::now() + std::time::Duration::from_millis(700);
    let millis = at.duration_since(std::time::SystemTime::UNIX_EPOCH).expect("after 1970").as_millis() as i64;
    let mut task = click("a");
    task["deadline"] = yard_engine::Timestamp::from_millis(millis).to_string().into();
    let send = || http.send("POST", "/tasks", &[("Idempotency-Key", "k")], task.to_string().as_bytes());
    let first = send();
    assert_eq!(first.status, 202, "{}", first.json());
    let id = first.json()["taskId"].as_str().expect("an id").to_owned();
    http.await_state(&id, "failed");
    let again = send();
    assert_eq!((again.status, again.json()["taskId"].as_str()), (202, Some(id.as_str())));
    assert_eq!(http.post("/tasks", &task).error(), "deadline is in the past");
}

#[test]
fn a_new_token_counts_at_once_and_the_old_one_no_longer() {
    let (town, http) = paused(&[]);
    let path = town.root().join(".yardmaster/http-token");
    std::fs::write(&path, "another-token-of-many-letters\n").expect("written");
    let new = http.with(Some("Bearer another-token-of-many-letters"));
    wait_until("it is noticed, without a moment of silence", || new.get("/tasks").status == 200);
    assert_eq!(http.get("/tasks").code(), "bad_token");
    assert!(town.json(["alerts"])["alerts"].as_array().is_some_and(Vec::is_empty));
}

#[test]
fn the_figures_have_the_names_that_clients_know() {
    let (_town, http) =
        paused(&[("http.max_queue", "5"), ("http.max_per_agent", "3"), ("results.ttl", "5m")]);
    let id = http.submit(&click("a"));
    http.submit(&click("b"));
    http.post(&format!("/tasks/{id}/cancel"), &json!({}));
    let stats = http.get("/scheduler/stats").json();
    assert_eq!(
        stats["queue"],
        json!({"totalQueued": 1, "totalInflight": 0, "agents": {"b": {"queued": 1, "inflight": 0}}})
    );
    let metrics = &stats["metrics"];
    assert_eq!((&metrics["tasksSubmitted"], &metrics["tasksCancelled"]), (&json!(2), &json!(1)));
    for name in ["tasksCompleted", "tasksFailed", "tasksRejected", "tasksExpired", "dispatchCount"] {
        assert_eq!(metrics[name], 0, "{name}");
    }
    assert_eq!(metrics["avgDispatchLatencyMs"], 0.0);
    assert_eq!(
        metrics["agents"]["a"],
        json!({"submitted": 1, "completed": 0, "failed": 0, "cancelled": 1, "rejected": 0})
    );
    assert_eq!(
        stats["config"],
        json!({"strategy": "fair-fifo", "maxQueueSize": 5, "maxPerAgent": 3, "maxInflight": 20,
            "maxPerAgentFlight": 10, "workerCount": 20, "resultTTL": "5m0s"})
    );
}

// D8: limits that change are in force, and shown, at once.
#[test]
fn limits_change_while_it_runs() {
    let (town, http) = paused(&[("http.max_queue", "1")]);
    http.submit(&click("a"));
    assert_eq!(http.post("/tasks", &click("a")).status, 429);
    town.set("http.max_queue", "2");
    assert_eq!(http.get("/scheduler/stats").json()["config"]["maxQueueSize"], 2);
    http.submit(&click("a"));
    let refused = http.post("/tasks", &click("a"));
    assert_eq!(refused.json()["details"]["maxQueue"], 2);
}

#[test]
fn every_answer_carries_the_id_of_its_request() {
    let (_town, http) = paused(&[]);
    let own = http.send("GET", "/tasks", &[("X-Request-Id", "my-own")], b"");
    assert_eq!(own.header("x-request-id"), Some("my-own"));
    let made = http.get("/nothing");
    assert_eq!((made.status, made.code().as_str()), (404, "not_found"));
    assert_eq!(made.header("x-request-id").map(str::len), Some(16));
    let method = http.send("DELETE", "/tasks", &[], b"");
    assert_eq!((method.status, method.code().as_str()), (405, "method_not_allowed"));
    assert!(method.header("allow").is_some_and(|allow| allow.contains("POST")));
}

#[test]
fn a_client_that_asks_too_often_is_told_when_the_operator_wants_that() {
    let (_town, http) = paused(&[("http.rate_limit", "5")]);
    let answers: Vec<_> = (0..7).map(|_| http.get("/tasks")).collect();
    assert!(answers[..5].iter().all(|answer| answer.status == 200));
    let refused = &answers[6];
    assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limited"));
    assert_eq!(refused.json()["details"], json!({"windowSec": 10, "max": 5}));
}

#[test]
fn an_address_that_cannot_be_listened_on_is_an_alert_and_nothing_else() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = taken.local_addr().expect("an address").to_string();
    let mut town = yard_tests::town::Town::new();
    town.set("http.listen", &address);
    town.start_daemon();
    let alerts = || town.json(["alerts"])["alerts"].as_array().cloned().unwrap_or_default();
    wait_until("it is said", || alerts().iter().any(|alert| alert["kind"] == "config"));
    assert!(alerts()[0]["message"].as_str().expect("words").contains("http.listen"));
    town.run(["add", "--", "true"]).ok();
    drop(taken);
    wait_until("it listens once it can", || town.json(["status"])["daemon"]["http"].is_string());
    wait_until("the alert is over", || alerts().is_empty());
    assert_eq!(town.refused(["config", "set", "http.listen", "0.0.0.0:80"]), "needs-tls");
}

#[test]
fn it_can_be_turned_on_and_off_while_the_daemon_runs() {
    let (town, http) = serving(&[]);
    assert_eq!(http.get("/healthz").status, 200);
    town.run(["config", "unset", "http.listen"]).ok();
    wait_until("nobody listens", || http.try_send("GET", "/healthz", &[], b"").is_err());
    town.set("http.listen", "127.0.0.1:0");
    wait_until("somebody listens", || town.json(["status"])["daemon"]["http"].is_string());
}
