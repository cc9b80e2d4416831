//! A server of the test's own: the instance that actions are sent to, or the receiver of webhooks.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Method and path.
    pub line: String,
    headers: Vec<(String, String)>,
    /// What it held.
    pub body: Vec<u8>,
}

impl Asked {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// What it held, as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// A server that answers as it is told, and remembers what it was asked.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    ended: Arc<AtomicBool>,
}

impl Peer {
    /// Answers each request with a status and a body.
    pub fn start(answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", answer)
    }

    /// The same at an address.
    pub fn start_at(address: &str, answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).expect("an address");
        let address = listener.local_addr().expect("an address");
        let (asked, ended) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::<AtomicBool>::default());
        let (theirs, over, answer) = (Arc::clone(&asked), Arc::clone(&ended), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let (theirs, answer) = (Arc::clone(&theirs), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &theirs, &*answer));
            }
        });
        Self { address, asked, ended }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Host and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Everything it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it was asked so often.
    pub fn await_asked(&self, times: usize) -> Vec<Asked> {
        crate::town::wait_until(&format!("{times} requests arrive"), || self.asked().len() >= times);
        self.asked()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Has it notice.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> (u16, String)) {
    let Some(request) = stream.try_clone().ok().and_then(read) else { return };
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
    let (status, body) = answer(&request);
    let location =
        if (300..400).contains(&status) { "location: http://127.0.0.1:1/elsewhere\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\n{location}connection: close\r\n\r\n",
        body.len()
    );
    // Whoever asked may have lost patience.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn read(stream: TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let line = line.trim_end().rsplit_once(' ')?.0.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { line, headers, body })
}
