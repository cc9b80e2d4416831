//! A client of the HTTP API of a town's daemon.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::town::Town;

/// How long an answer may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// The API of a running daemon.
#[derive(Debug, Clone)]
pub struct Http {
    address: SocketAddr,
    authorization: Option<String>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// Its status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// What it holds.
    pub body: Vec<u8>,
}

impl Response {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// What it holds, as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The code of an error.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The sentence of an error.
    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }
}

impl Http {
    /// The API of a town whose daemon runs, with its token.
    pub fn of(town: &Town) -> Self {
        let address = town.json(["status"])["daemon"]["http"].as_str().map(str::to_owned);
        let address = address.expect("the daemon serves HTTP").parse().expect("an address");
        let token = town.json(["http", "token"])["token"].as_str().expect("a token").to_owned();
        Self { address, authorization: Some(format!("Bearer {token}")) }
    }

    /// The same API with other credentials, or with none.
    pub fn with(&self, authorization: Option<&str>) -> Self {
        Self { authorization: authorization.map(str::to_owned), ..self.clone() }
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the client shows.
    pub fn authorization(&self) -> &str {
        self.authorization.as_deref().unwrap_or_default()
    }

    /// A new connection, for whoever wants to write to it as he likes.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it can be connected to");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends a request on a connection of its own and reads the answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.try_send(method, path, headers, body).expect("an answer")
    }

    /// The same, where the daemon may be gone.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Response> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let own = self.authorization.as_deref().map(|authorization| ("Authorization", authorization));
        let headers = own.into_iter().chain(headers.iter().copied());
        let headers: Vec<String> = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n",
            self.address,
            headers.concat(),
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        // An answer may come before everything was read.
        let _ = stream.write_all(body);
        let mut whole = Vec::new();
        match stream.read_to_end(&mut whole) {
            Err(error) if whole.is_empty() => return Err(error),
            _ => {}
        }
        parse(&whole).ok_or_else(|| std::io::Error::other("the answer was cut off"))
    }

    /// `GET`
    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], b"")
    }

    /// `POST` of JSON.
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    /// Submits a task that must be taken in, and says its id.
    pub fn submit(&self, task: &Value) -> String {
        let answer = self.post("/tasks", task);
        assert_eq!(answer.status, 202, "{}", answer.json());
        answer.json()["taskId"].as_str().expect("an id").to_owned()
    }

    /// A task as it stands.
    pub fn task(&self, id: &str) -> Value {
        let answer = self.get(&format!("/tasks/{id}"));
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }

    /// Waits until a task is in this state, and gives it.
    pub fn await_state(&self, id: &str, state: &str) -> Value {
        crate::town::wait_until(&format!("{id} is {state}"), || self.task(id)["state"] == state);
        self.task(id)
    }
}

/// Reads an answer, whole or until its connection ended.
fn parse(whole: &[u8]) -> Option<Response> {
    let end = whole.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&whole[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let mut body = whole[end + 4..].to_vec();
    if headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
        body = unchunked(&body);
    }
    Some(Response { status, headers, body })
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size =
            std::str::from_utf8(&rest[..end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        let from = end + 2;
        body.extend_from_slice(&rest[from..(from + size).min(rest.len())]);
        rest = rest.get(from + size + 2..).unwrap_or_default();
    }
    body
}
