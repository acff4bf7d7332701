//! The program, without anything of the developer's environment.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::process::{Command, Output, Stdio};

use crate::fake_api_server::FakeApiServer;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-opensdn");

/// A program that knows no home and gets no input.
pub(crate) fn isolated(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

/// Ours, with these arguments.
pub(crate) fn opensdn(arguments: &[&str]) -> Command {
    let mut command = isolated(PROGRAM);
    command.args(arguments);
    command
}

/// What it says.
pub(crate) fn output(arguments: &[&str]) -> Output {
    opensdn(arguments).output().unwrap()
}

/// Ours, asking this server.
pub(crate) fn asking(server: &FakeApiServer, line: &str) -> Command {
    let mut command = isolated(PROGRAM);
    command.args(line.split_whitespace());
    command.args(["--kubeconfig", "/dev/null", "--server", &server.url()]);
    command
}

/// What it says.
pub(crate) fn ask(server: &FakeApiServer, line: &str) -> Output {
    asking(server, line).output().unwrap()
}
