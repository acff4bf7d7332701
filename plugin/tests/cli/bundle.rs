//! What `support-bundle` leaves where it does not come to an end: nothing, so that the same command works again.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::fake_api_server::{FakeApiServer, Reply, refusal, version};
use crate::program::{self, PROGRAM};

/// A ConfigMap that does not become small when it is compressed.
fn large() -> Reply {
    let mut number = 1_u64;
    let words = std::iter::repeat_with(|| {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 40).to_string()
    });
    let text = words.take(30_000).collect::<Vec<String>>().join(" ");
    let map =
        json!({"metadata": {"name": "a", "namespace": "opensdn-system"}, "data": {"a": text}});
    Reply::Document(200, "", json!({"items": [map]}))
}

fn cluster() -> FakeApiServer {
    FakeApiServer::start(|request, _| match request {
        "GET /version" => version(),
        "GET /api/v1/namespaces/opensdn-system/configmaps" => large(),
        _ => refusal(404, "NotFound", "not found"),
    })
}

fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap();
    all.map(|one| one.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_is_there_is_not_written_over_and_what_a_killed_run_has_left_is_no_obstacle() {
    let (server, folder) = (cluster(), tempfile::tempdir().unwrap());
    let out = folder.path().join("a.tar.gz");
    fs::write(folder.path().join("a.tar.gz.part"), "left").unwrap();
    let line = format!("support-bundle --quick --out {}", out.display());
    let output = program::ask(&server, &line);
    assert_eq!(names(folder.path()), ["a.tar.gz"], "{output:?}");
    let written = fs::read(&out).unwrap();
    let output = program::ask(&server, &line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is there already") && said.contains("--out FILE"), "{said}");
    assert_eq!(fs::read(&out).unwrap(), written);
}

/// Where a file system may be mounted that nobody else sees.
#[test]
fn a_disk_that_is_full_is_said_and_nothing_is_left_on_it() {
    let (server, folder) = (cluster(), tempfile::tempdir().unwrap());
    let (disk, url) = (folder.path().join("disk"), server.url());
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=16k tmpfs '{0}' || exit 99; \
         '{PROGRAM}' support-bundle --quick --out '{0}/a.tar.gz' --kubeconfig /dev/null --server {url}; \
         code=$?; ls -A '{0}'; exit $code",
        disk.display()
    );
    let output = program::isolated("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output();
    let Ok(output) = output else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(99) || said.starts_with("unshare:") {
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("No space left on device") && said.contains("is the disk full?"),
        "{said}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing is left");
}

#[test]
fn an_interrupt_leaves_no_file_and_the_exit_code_names_the_signal() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let server = FakeApiServer::start(|request, _| match request {
            "GET /version" => version(),
            "GET /api/v1/namespaces/opensdn-system/configmaps" => Reply::Silence,
            _ => refusal(404, "NotFound", "not found"),
        });
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("a.tar.gz").display().to_string();
        let mut child = program::asking(&server, &format!("support-bundle --out {out}"))
            .args(["--request-timeout", "10m"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !server.seen().iter().any(|request| request.ends_with("/opensdn-system/configmaps")) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(names(folder.path()).contains(&"a.tar.gz.part".to_owned()));
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
