//! The scripts of the configuration API, as bash runs them with those of an image in their place: when it counts as
//! ready, and which version it gives itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/config/out.yaml");
/// The files that it is started with, besides its own.
const FILES: [&str; 10] = [
    "etc/contrailconfigmaps/contrail-keystone-auth.conf.192.0.2.10",
    "etc/contrailconfigmaps/vnc_api_lib.ini.192.0.2.10",
    "etc/certificates/server-192.0.2.10.crt",
    "etc/certificates/server-key-192.0.2.10.pem",
    "etc/certificates/client-192.0.2.10.crt",
    "etc/certificates/client-key-192.0.2.10.pem",
    "etc/ssl/certs/kubernetes/ca-bundle.crt",
    "etc/credentials/rabbitmq/user",
    "etc/credentials/rabbitmq/password",
    "etc/credentials/rabbitmq/vhost",
];

/// That file of a golden file, with what it names below a folder.
fn file(key: &str, folder: &Path) -> String {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&fs::read_to_string(GOLDEN).unwrap()).unwrap();
    let mut texts = documents.iter().filter_map(|one| one.get("data")?.get(key)?.as_str());
    let here = format!("{}/etc/", folder.display());
    texts.next().unwrap().replace("/etc/", &here)
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the check says where `curl` is that program, or where there is none.
fn is_ready(curl: Option<&str>) -> bool {
    let folder = tempfile::tempdir().unwrap();
    if let Some(curl) = curl {
        put(&folder.path().join("curl"), &format!("#!/bin/sh\n{curl}\n"));
    }
    let mut bash = Command::new("/bin/bash");
    bash.args(["-c", &file("check-api.sh", folder.path())]).stdin(Stdio::null());
    bash.env("PATH", folder.path()).env("POD_IP", "127.0.0.1").status().unwrap().success()
}

#[test]
fn an_api_that_answers_503_or_nothing_is_not_ready_and_one_that_answers_anything_else_is() {
    let with = |status: &str, code| is_ready(Some(&format!("echo -n {status}; exit {code}")));
    assert!(with("200", 0));
    // It has rules, or Keystone does not answer: that is not of this pod alone.
    assert!(with("401", 0) && with("403", 0) && with("404", 0) && with("500", 0));
    assert!(!with("503", 0));
    // Nothing listens, it takes too long, or it ends the connection.
    assert!(!with("000", 7) && !with("000", 28) && !with("000", 52));
}

#[test]
fn an_api_whose_image_has_no_curl_is_ready_when_its_port_takes_connections() {
    // No other test listens there.
    let listener = std::net::TcpListener::bind("127.0.0.1:8082");
    assert_eq!(is_ready(None), listener.is_ok());
    drop(listener);
    assert!(!is_ready(None));
}

/// The line about the version in the configuration that an image of that version starts its API with.
fn version_line(of_image: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for path in FILES {
        put(&here.join(path), "a");
    }
    let api = "api.0.192.0.2.10";
    put(&here.join("etc/contrailconfigmaps").join(api), &file(api, here));
    put(&here.join("bin/contrail-api"), "#!/bin/sh\nexit 0\n");
    let path = format!("{}:{}", here.join("bin").display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &file("run-api.sh", here)]).stdin(Stdio::null());
    bash.env_remove("CONTRAIL_VERSION").env("PATH", path).env("POD_IP", "192.0.2.10");
    bash.envs(of_image.map(|version| ("CONTRAIL_VERSION", version)));
    assert!(bash.status().unwrap().success());
    let filled = fs::read_to_string(here.join("etc/contrail/contrail-api-0.conf")).unwrap();
    let mut lines = filled.lines().filter(|line| line.starts_with("contrail_version"));
    lines.next().unwrap().trim_end().to_owned()
}

#[test]
fn an_api_is_given_the_version_of_its_image_as_upstreams_is() {
    assert_eq!(version_line(Some("R24.1.0-9f3b2c1")), "contrail_version = R24.1.0-9f3b2c1");
    assert_eq!(version_line(None), "contrail_version =");
}
