//! `status --watch`: each view says of when it is, on a terminal and in a pipe. The terminal is one of `script`, as
//! util-linux has it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may end here, and the line says where"
)]

use std::io::Read as _;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::fake_api_server::{FakeApiServer, Reply, refusal, version};
use crate::program::{PROGRAM, isolated};

/// A server without OpenSDN.
fn empty() -> FakeApiServer {
    FakeApiServer::start(|request, _| match request {
        "GET /version" => version(),
        "GET /api/v1/nodes" => Reply::Document(200, "", json!({"items": []})),
        _ => refusal(404, "NotFound", "not found"),
    })
}

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let child = isolated(program)
            .args(arguments)
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// All that it has written when this is in it.
    fn until(&mut self, part: &str) -> String {
        let out = self.0.stdout.as_mut().unwrap();
        let (mut seen, mut some) = (String::new(), [0; 4096]);
        while !seen.contains(part) {
            let number = out.read(&mut some).unwrap();
            assert!(number > 0, "{part:?} is missing in: {seen}");
            seen.push_str(&String::from_utf8_lossy(some.get(..number).unwrap_or_default()));
        }
        seen
    }
}

/// Whether it is `2026-11-25T08:00:00Z`.
fn is_time(word: &str) -> bool {
    word.len() == 20
        && word
            .bytes()
            .zip("0000-00-00T00:00:00Z".bytes())
            .all(|(byte, form)| if form == b'0' { byte.is_ascii_digit() } else { byte == form })
}

#[test]
fn on_a_terminal_each_view_begins_with_its_time() {
    let server = empty();
    let line =
        format!("exec '{PROGRAM}' status -w --kubeconfig /dev/null --server {}", server.url());
    let mut running =
        Running::start("script", &["--quiet", "--flush", "--command", &line, "/dev/null"]);
    let seen = running.until("Ctrl-C ends it");
    let view = seen.split("\u{1b}[2J").nth(1).unwrap_or_else(|| panic!("{seen:?}"));
    let first = view.split_whitespace().next().unwrap_or_default();
    assert!(is_time(first), "{view:?}");
}

#[test]
fn in_a_pipe_each_line_begins_with_its_time() {
    let server = empty();
    let arguments = ["status", "-w", "--kubeconfig", "/dev/null", "--server", &server.url()];
    let mut running = Running::start(PROGRAM, &arguments);
    let seen = running.until("\n");
    for line in seen.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        assert!(line.split(' ').next().is_some_and(is_time), "{seen}");
    }
}
