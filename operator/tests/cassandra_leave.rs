//! How a member of Cassandra leaves, by the script that its pod has for it, with a nodetool that answers what the test
//! writes. With the real one: `servers/lab_cassandra.rs`.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/cassandra/out.yaml");
/// `netstats` as Cassandra 3.11 prints it, and a decommission that ends by a signal while the server continues.
const NODETOOL: &str = r#"#!/bin/bash
for word; do
  case $word in
  netstats) cat FOLDER/netstats && exit ;;
  decommission)
    printf 'Mode: LEAVING\nUnbootstrap 6a2e\n    /192.0.2.2\n' >FOLDER/netstats
    kill -KILL $$
    ;;
  esac
done
exit 1
"#;
const LONGEST: Duration = Duration::from_secs(60);

struct Pod {
    folder: TempDir,
    cassandra: Child,
}

impl Pod {
    /// One that serves.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string();
        let text = fs::read_to_string(GOLDEN).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let mut scripts =
            documents.iter().filter_map(|one| one["data"]["manage-cassandra.sh"].as_str());
        let script = scripts.next().unwrap().replace("/tmp/cassandra.", &format!("{here}/"));
        fs::write(folder.path().join("manage.sh"), script).unwrap();
        let nodetool = folder.path().join("nodetool");
        fs::write(&nodetool, NODETOOL.replace("FOLDER", &here)).unwrap();
        fs::set_permissions(&nodetool, Permissions::from_mode(0o755)).unwrap();
        let cassandra = Command::new("sleep").arg("600").spawn().unwrap();
        fs::write(folder.path().join("pid"), cassandra.id().to_string()).unwrap();
        let pod = Self { folder, cassandra };
        pod.is("Mode: NORMAL\nNot sending any streams.\n");
        fs::write(pod.at("served"), "").unwrap();
        pod
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn is(&self, netstats: &str) {
        fs::write(self.at("netstats"), netstats).unwrap();
    }

    fn manage(&self, what: &str) -> String {
        let here = self.folder.path().display();
        let mut bash = Command::new("bash");
        bash.arg(self.at("manage.sh")).arg(what).env("POD_IP", "192.0.2.1");
        bash.env("PATH", format!("{here}:{}", std::env::var("PATH").unwrap()));
        String::from_utf8(bash.output().unwrap().stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.cassandra.kill();
        let _ = self.cassandra.wait();
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begins = Instant::now();
    while !is_so() {
        assert!(begins.elapsed() < LONGEST, "{what}");
        // What is waited for another process does.
        sleep(Duration::from_millis(20));
    }
}

/// A failure is left alone for a minute.
fn a_minute_passes(failed: &Path) {
    let before = SystemTime::now() - Duration::from_secs(120);
    File::options().write(true).open(failed).unwrap().set_modified(before).unwrap();
}

#[test]
fn a_leave_whose_nodetool_was_killed_is_waited_for_and_only_one_that_has_failed_ends_the_process() {
    for what in ["leave", "stay"] {
        let mut pod = Pod::new();
        assert_eq!(pod.manage("leave"), "begun");
        let failed = pod.at("leave.failed");
        wait_for("nodetool is killed", || failed.exists());
        a_minute_passes(&failed);

        assert_eq!(pod.manage(what), "running");
        assert_eq!(pod.cassandra.try_wait().unwrap(), None, "it hands over what it has");
        if what == "leave" {
            let marks = (pod.at("leaving").exists(), pod.at("served").exists());
            assert_eq!(marks, (true, false), "no probe ends it when it has left");
        }

        // It has given up.
        pod.is("Mode: LEAVING\nNot sending any streams.\n");
        assert_eq!(pod.manage(what), "begun");
        wait_for("it ends", || pod.cassandra.try_wait().unwrap().is_some());
    }
}
