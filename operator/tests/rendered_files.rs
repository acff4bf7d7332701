//! The files that the operator renders are read by the stand-ins of their daemons, with a parser of their format: every
//! key is there that the daemon needs, and makes sense. They are those of the operator's golden files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use opensdn_pki::{Authority, CaProfile, KeyKind, LeafProfile, Usage};
use serde_json::Value;
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
/// What it makes of its files shows the real one (`lab_servers.rs`).
const REAL_PROGRAM: &str = "stunnel";
const CERTIFICATES: &str = "/etc/certificates/";
/// What a script makes of a certificate and its key, for Java.
const KEYSTORE: &str = "/etc/keystore/server-keystore.jks";
const AUTHORITY: &str = "/etc/ssl/certs/kubernetes/ca-bundle.crt";

/// The files of all ConfigMaps of a golden file, by key.
fn files(path: &Path) -> Vec<(String, String)> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&fs::read_to_string(path).unwrap()).unwrap();
    let maps = documents.iter().filter(|one| one["kind"] == "ConfigMap");
    let data = maps.filter_map(|map| map["data"].as_object()).flatten();
    data.map(|(key, text)| (key.clone(), text.as_str().unwrap_or_default().to_owned())).collect()
}

/// Makes the certificates that the text names, and has it name them where they are.
fn with_certificates(text: &str, folder: &Path, authority: &Authority) -> String {
    let now = OffsetDateTime::now_utc();
    let leaf_of = |address: &str, side: &str| {
        let profile = LeafProfile {
            common_name: address.to_owned(),
            names: vec![address.to_owned()],
            lifetime: Duration::days(1),
            usage: if side == "server" { Usage::ServerAndClient } else { Usage::Client },
            key: KeyKind::default(),
        };
        authority.issue(&profile, now).unwrap()
    };
    let words = text.split(|c: char| c.is_whitespace() || "'\";".contains(c));
    for word in words.filter_map(|word| word.strip_prefix(CERTIFICATES)) {
        let side = if word.starts_with("server") { "server" } else { "client" };
        let address = word.trim_start_matches("server-").trim_start_matches("client-");
        let address =
            address.trim_start_matches("key-").trim_end_matches(".crt").trim_end_matches(".pem");
        let leaf = leaf_of(address, side);
        fs::write(folder.join(format!("{side}-{address}.crt")), leaf.certificate()).unwrap();
        fs::write(folder.join(format!("{side}-key-{address}.pem")), leaf.key()).unwrap();
    }
    let bundle = folder.join("ca-bundle.crt");
    fs::write(&bundle, authority.certificate()).unwrap();
    let keystore = folder.join("keystore.pem");
    if text.contains(KEYSTORE) {
        let leaf = leaf_of("192.0.2.10", "server");
        fs::write(&keystore, [leaf.certificate(), leaf.key()].concat()).unwrap();
    }
    let text = text.replace(KEYSTORE, &keystore.display().to_string());
    let text = text.replace(CERTIFICATES, &format!("{}/", folder.display()));
    text.replace(AUTHORITY, &bundle.display().to_string())
}

/// The containers that read the file of that key.
fn components_of(key: &str) -> Vec<String> {
    if key.starts_with("config.global.js") {
        return vec!["webuiweb".to_owned(), "webuijob".to_owned()];
    }
    vec![component_of(key)]
}

/// The container that reads it, where it is one.
fn component_of(key: &str) -> String {
    let (name, _) = key.split_once('.').unwrap_or((key, ""));
    if let Some(node_type) = name.strip_suffix("-nodemgr") {
        return format!("nodemanager-{node_type}");
    }
    match name {
        name if name.starts_with("run-") => String::new(),
        name if name.ends_with("-provisioner") => "provisioner".to_owned(),
        "tf-alarm-gen" => "analytics-alarm-gen".to_owned(),
        "tf-snmp-collector" => "analytics-snmp-collector".to_owned(),
        "tf-topology" => "analytics-snmp-topology".to_owned(),
        name => name.to_owned(),
    }
}

#[test]
fn every_rendered_file_of_a_daemon_is_one_that_it_can_live_with() {
    let folder = TempDir::new().unwrap();
    let authority =
        Authority::create(&CaProfile::new("CA of a test"), OffsetDateTime::now_utc()).unwrap();
    let known: BTreeSet<&str> = opensdn_stand_in::usual_ports().map(|(name, _)| name).collect();
    let mut read = BTreeSet::new();
    for case in fs::read_dir(GOLDEN).unwrap() {
        for (key, text) in files(&case.unwrap().path().join("out.yaml")) {
            // What the container has in its environment.
            let text = text.replace("$POD_IP", "192.0.2.10");
            // And what a script reads of a Secret.
            let text =
                ["keystone/password", "own/keystone-password"].iter().fold(text, |text, key| {
                    text.replace(&format!("$(cat /etc/credentials/{key})"), "password")
                });
            let readers = components_of(&key).into_iter();
            for component in readers.filter(|one| known.contains(&**one) && one != REAL_PROGRAM) {
                let path = folder.path().join(&key);
                fs::write(&path, with_certificates(&text, folder.path(), &authority)).unwrap();
                opensdn_stand_in::read(&component, &path)
                    .unwrap_or_else(|why| panic!("{key}: {why}\n{text}"));

                // The stand-in would say what is missing: of some line at least it does.
                let lines: Vec<&str> = text.lines().collect();
                let is_missed = (0..lines.len()).any(|line| {
                    let without = lines.iter().enumerate().filter(|(number, _)| *number != line);
                    let without: Vec<&str> = without.map(|(_, line)| *line).collect();
                    let text = with_certificates(&without.join("\n"), folder.path(), &authority);
                    fs::write(&path, text).unwrap();
                    opensdn_stand_in::read(&component, &path).is_err()
                });
                assert!(is_missed, "{key}: no line of it is needed");
                read.insert(component);
            }
        }
    }
    assert!(!read.is_empty());
}
