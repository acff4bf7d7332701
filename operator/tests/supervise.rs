//! The part of all scripts that keeps a daemon running by its files, as bash runs it: it waits for them, starts the
//! daemon again when one changes, and ends as the daemon does, or on SIGTERM.

#![allow(clippy::unwrap_used, reason = "a test, and the line says where")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const WAIT: &str = include_str!("../templates/common/wait.sh.j2");
const SUPERVISE: &str = include_str!("../templates/common/supervise.sh.j2");
const LONGEST: Duration = Duration::from_secs(60);

/// Supervises that command by a file in the folder, where its output goes too.
fn start(folder: &Path, command: &str) -> Child {
    let script = format!("set -u\n{WAIT}\n{SUPERVISE}\nsupervise 1 file -- bash -c '{command}'\n");
    let log = fs::File::create(folder.join("log")).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(folder).stdin(Stdio::null());
    bash.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONGEST, "{what}");
        // Another process brings it about.
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_daemon_is_started_again_when_a_file_changes_and_ends_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let log = || fs::read_to_string(folder.path().join("log")).unwrap();
    let started = || log().matches("started").count();
    let mut bash = start(folder.path(), "echo started; exec sleep 1000");
    until("it says what it waits for", || log().contains("waiting for file"));
    assert_eq!(started(), 0);
    fs::write(folder.path().join("file"), "1").unwrap();
    until("it is started", || started() == 1);
    fs::write(folder.path().join("file"), "2").unwrap();
    until("it is started again", || started() == 2);
    assert!(log().contains("restarting: a file has changed"), "{}", log());
    let told = Command::new("kill").args(["-TERM", &bash.id().to_string()]).status();
    assert!(told.unwrap().success());
    // As a shell says that SIGTERM has ended it.
    assert_eq!(bash.wait().unwrap().code(), Some(143));
    assert_eq!(started(), 2);
}

#[test]
fn what_ends_a_daemon_by_itself_is_for_the_kubelet_to_see() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "1").unwrap();
    let mut bash = start(folder.path(), "exit 7");
    assert_eq!(bash.wait().unwrap().code(), Some(7));
}
