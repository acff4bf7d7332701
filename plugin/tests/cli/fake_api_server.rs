//! An API server as far as a test says: a function from a request to what becomes of it. For tests of the
//! whole program, and for unit tests. Deliberately not here: TLS, and what a real one does.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]
#![allow(dead_code, reason = "tests of the program and unit tests use different parts")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// What becomes of a request.
pub(crate) enum Reply {
    /// A status, headers such as `Retry-After: 1`, and a document.
    Document(u16, &'static str, Value),
    /// A status and a text.
    Text(u16, &'static str),
    /// No answer, and the connection stays.
    Silence,
    /// The connection is closed.
    Cut,
    /// An answer begins, and its parts never end.
    Trickle,
}

/// A request with all that came with it.
pub(crate) struct Asked {
    /// `GET /version`.
    pub(crate) line: String,
    /// What is behind the question mark.
    pub(crate) query: String,
    /// The document that was sent.
    pub(crate) body: Vec<u8>,
}

/// A server that runs until the process ends, and the requests that came: `GET /version`.
#[derive(Clone)]
pub(crate) struct FakeApiServer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl FakeApiServer {
    /// Answers as `answer` says; it is given the request and how often that came before.
    pub(crate) fn start(answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_whole(move |asked, before| answer(&asked.line, before))
    }

    /// The same, and `answer` is given all of the request.
    pub(crate) fn start_whole(
        answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let (seen, answer) = (Arc::clone(&server.seen), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &seen, answer.as_ref()));
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, without their queries.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// One request a connection.
fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&Asked, usize) -> Reply + Send + Sync),
) {
    let Some(asked) = request(&stream) else { return };
    let request = asked.line.clone();
    let before = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.iter().filter(|one| **one == request).count() - 1
    };
    // The client may have gone.
    let _ = match answer(&asked, before) {
        Reply::Document(status, headers, body) => {
            write_answer(&mut stream, status, headers, &body.to_string())
        }
        Reply::Text(status, body) => write_answer(&mut stream, status, "", body),
        Reply::Cut => Ok(()),
        Reply::Silence => stream.read_to_end(&mut Vec::new()).map(drop),
        Reply::Trickle => trickle(&mut stream),
    };
}

fn write_answer(
    stream: &mut TcpStream,
    status: u16,
    headers: &str,
    body: &str,
) -> std::io::Result<()> {
    let headers = if headers.is_empty() { String::new() } else { format!("{headers}\r\n") };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

fn trickle(stream: &mut TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n")?;
    loop {
        stream.write_all(b" ")?;
        thread::sleep(Duration::from_millis(50));
    }
}

/// When all of it has come.
fn request(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body).ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    Some(Asked { line: format!("{method} {path}"), query: query.to_owned(), body })
}

/// An answer that refuses.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Reply {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code, "reason": reason, "message": message});
    Reply::Document(code, "", status)
}

/// That of `/version`.
pub(crate) fn version() -> Reply {
    Reply::Document(
        200,
        "",
        json!({"major": "1", "minor": "35", "gitVersion": "v1.35.4", "gitCommit": "", "gitTreeState": "", "buildDate": "",
            "goVersion": "", "compiler": "", "platform": ""}),
    )
}
