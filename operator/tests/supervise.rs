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

const FILL: &str = include_str!("../templates/common/fill.sh.j2");

/// What `fill` makes of a text with these credentials, or what it says.
fn filled(format: &str, text: &str, credentials: &[(&str, &str)]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display();
    for (path, value) in credentials {
        let path = folder.path().join("credentials").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    }
    fs::write(folder.path().join("source"), text).unwrap();
    let functions = FILL.replace("/etc/credentials", &format!("{here}/credentials"));
    let script = format!("set -u\n{functions}\nfill {format} source folder/target");
    let ended =
        Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    if !ended.status.success() {
        return Err(String::from_utf8_lossy(&ended.stderr).replace(&here.to_string(), ""));
    }
    let target = folder.path().join("folder/target");
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&target).unwrap().permissions())
            & 0o777,
        0o600
    );
    Ok(fs::read_to_string(target).unwrap())
}

#[test]
fn credentials_are_filled_in_as_the_file_needs_them_and_nothing_else_is() {
    let value = r#"a%b&c\d'e"f$(g)@h"#;
    let all = [("bus/password", value), ("bus/user", "u")];
    let text = "user = @credentials/bus/user@\npassword=@credentials/bus/password@;@credentials/bus/user@\n\nmail = a@b.c\n\n";
    let expected = |value: &str| format!("user = u\npassword={value};u\n\nmail = a@b.c\n\n");
    assert_eq!(filled("plain", text, &all).unwrap(), expected(value));
    assert_eq!(filled("python", text, &all).unwrap(), expected(&value.replace('%', "%%")));
    let js = r#"a%b&c\\d\'e\"f$(g)@h"#;
    assert_eq!(filled("js", text, &all).unwrap(), expected(js));
    let properties = r#"a%b&c\\d'e"f$(g)@h"#;
    assert_eq!(filled("properties", text, &all).unwrap(), expected(properties));
    let leading = filled("properties", text, &[("bus/password", " a b"), ("bus/user", "u")]);
    assert_eq!(leading.unwrap(), expected(r"\ a b"));
    // A value that looks like a place for another is none.
    let tricky = [("bus/password", "@credentials/bus/user@"), ("bus/user", "u")];
    assert_eq!(filled("plain", text, &tricky).unwrap(), expected("@credentials/bus/user@"));
}

#[test]
fn a_credential_that_is_missing_or_has_a_line_break_is_told_by_its_file() {
    let text = "a = @credentials/bus/password@";
    let missing = filled("plain", text, &[]).unwrap_err();
    assert!(missing.contains("credentials/bus/password"), "{missing}");
    let broken = filled("plain", text, &[("bus/password", "secret\nb = 1")]).unwrap_err();
    assert!(
        broken.contains("bus/password has a line break") && !broken.contains("secret"),
        "{broken}"
    );
    assert_eq!(filled("plain", text, &[("bus/password", "a\n")]).unwrap(), "a = a");
}
