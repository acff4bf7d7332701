//! OpenSDN's own client library, in Python, as a second client: what it reads and writes here, daemons and tools read
//! and write there.

use std::process::{Command, Stdio};

use opensdn_testing::config_api::{FakeConfigApi, Mode, Settings, WorkedExample};
use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../contrail-api-client");

fn library(fake: &FakeConfigApi, keystone: Option<&str>) -> Value {
    let installed = Command::new(format!("{FOLDER}/install.sh")).stderr(Stdio::inherit()).output();
    let python = String::from_utf8(installed.unwrap().stdout).unwrap();
    let mut command = Command::new(python.trim());
    command.args(["-W", "ignore", &format!("{FOLDER}/client.py"), fake.url()]).args(keystone);
    let output = command.env("NO_PROXY", "127.0.0.1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn opensdns_own_library_reads_and_writes_the_list_in_every_mode() {
    for mode in [Mode::NoAuth, Mode::CloudAdmin, Mode::Rbac] {
        let fake = FakeConfigApi::start(Settings { mode, ..Settings::default() }).unwrap();
        WorkedExample::fill(&fake).unwrap();
        let keystone = (mode != Mode::NoAuth).then(|| fake.keystone_url());
        let answer = library(&fake, keystone);
        let names = |list: &str| -> Vec<Value> {
            let all = answer[list].as_array().unwrap().iter();
            all.map(|one| one["linklocal_service_name"].clone()).collect()
        };
        assert_eq!(names("before"), [json!("metadata")], "{mode:?}");
        assert_eq!(names("written"), [json!("metadata"), json!("of-the-library")], "{mode:?}");
        assert_eq!(names("after"), [json!("metadata")], "{mode:?}");
        assert_eq!(answer["pools"].as_array().unwrap().len(), 2, "{mode:?}");
        assert_eq!(answer["annotations"][0]["key"], "library", "{mode:?}");
        assert!(answer["taken"].is_string() && answer["unknown"].is_string(), "{answer}");
    }
}
