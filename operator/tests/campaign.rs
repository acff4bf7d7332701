//! Every field of every kind is changed, one at a time, from what the golden files begin with: each has an effect on
//! what is applied, or is refused with a message, or is in `campaign/without-effect.txt`, which `UPDATE=1` writes
//! again. Nothing that a user writes into a field breaks the operator or a file. What comes of several changes, one after the other, is in
//! `campaign/sequences.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use opensdn_operator::components::described;
use serde_json::json;

use crate::built::{ClusterState, Ended};
use fields::{Field, cases, fields, spec_of, with};

mod accepted;
mod changes;
mod fields;
mod oracles;
mod sequences;
mod world;

const AUTH_MODE: &str = "/spec/commonConfiguration/authParameters/authMode";
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// What fits into none of the formats of files, or looks like a part of one.
const HOSTILE: [&str; 8] = [
    "a\nb = c",
    "a\r\nb",
    "$(touch /tmp/owned)",
    "'; touch /tmp/owned; '",
    "\"}; touch /tmp/owned; {\"",
    "{{ 7777 * 7777 }}{% raw %}",
    "@credentials/own/password@",
    "\u{0}\u{1b}[31m",
];

#[test]
fn every_field_has_an_effect_or_is_known_to_have_none() {
    let (mut with_effect, mut tried) = (BTreeSet::new(), BTreeSet::new());
    let bases =
        cases().into_iter().flat_map(|case| [(case.clone(), None), (case, Some("keystone"))]);
    for (case, mode) in bases {
        let mut around = ClusterState::read(&case.join("in.yaml")).on_one_node();
        if let Some(mode) = mode {
            around.object = with(&around.object, AUTH_MODE, json!(mode));
        }
        let kind = around.object["kind"].as_str().unwrap().to_owned();
        let before = around.built(&around.object);
        assert!(matches!(before, Ended::Built(_)), "{}: {before:?}", case.display());
        let mut all = Vec::new();
        fields(&spec_of(&kind), "/spec", &mut all);
        let of_mode =
            all.into_iter().filter(|field| mode.is_none() || field.pointer.contains("keystone"));
        for Field { pointer, values, .. } in of_mode {
            let name = format!("{kind} {}", pointer.trim_start_matches("/spec/").replace('/', "."));
            tried.insert(name.clone());
            for value in values {
                let changed = with(&around.object, &pointer, value.clone());
                match around.built(&changed) {
                    Ended::Refused(message) => {
                        assert!(message.len() > 20, "{name} = {value}: {message:?} helps nobody");
                        with_effect.insert(name.clone());
                    }
                    ended if ended != before => {
                        with_effect.insert(name.clone());
                    }
                    _ => {}
                }
            }
            assert_eq!(around.built(&around.object), before, "{name} and back");
        }
    }
    let described: BTreeSet<_> = described().map(|one| one.facts().kind.to_owned()).collect();
    let covered: BTreeSet<_> =
        tried.iter().filter_map(|name| name.split(' ').next().map(str::to_owned)).collect();
    assert_eq!(covered, described, "each kind has a golden file to begin with");
    let without: Vec<_> = tried.difference(&with_effect).cloned().collect();
    let path = Path::new(FOLDER).join("campaign/without-effect.txt");
    let text = format!("{}\n", without.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    } else {
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(known, text, "run again with UPDATE=1 and look at what has changed");
    }
}

/// The texts of all ConfigMaps, by key.
fn texts(ended: &Ended) -> BTreeMap<String, String> {
    let Ended::Built(objects) = ended else { return BTreeMap::new() };
    let maps = objects.iter().filter(|one| one["kind"] == "ConfigMap");
    let data = maps.flat_map(|map| map["data"].as_object().cloned().unwrap_or_default());
    data.map(|(key, text)| (key, text.as_str().unwrap_or_default().to_owned())).collect()
}

/// What bash says of a script, without running it; what is only variables is run as well.
fn shell(key: &str, text: &str, marker: &Path) -> String {
    let is_variables = !key.ends_with(".sh");
    let mut bash = Command::new("bash");
    if !is_variables {
        bash.arg("-n");
    }
    let ended = bash.args(["-c", text]).env("POD_IP", "192.0.2.10").output().unwrap();
    assert!(!marker.exists(), "{key} runs what is in a value:\n{text}");
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

#[test]
fn nothing_that_is_written_into_a_text_breaks_a_file_or_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("owned");
    for case in cases() {
        let around = ClusterState::read(&case.join("in.yaml")).on_one_node();
        let kind = around.object["kind"].as_str().unwrap();
        let before = texts(&around.built(&around.object));
        let mut all = Vec::new();
        fields(&spec_of(kind), "/spec", &mut all);
        for Field { pointer, .. } in all.into_iter().filter(|field| field.is_text) {
            for hostile in HOSTILE {
                let hostile = hostile.replace("/tmp/owned", &marker.display().to_string());
                let changed = with(&around.object, &pointer, json!(hostile));
                let after = texts(&around.built(&changed));
                for (key, text) in after.iter().filter(|(key, text)| before.get(*key) != Some(text))
                {
                    let place = format!("{} {pointer} = {hostile:?}: {key}", case.display());
                    let has_line = |line: &str| text.lines().any(|one| one.trim() == line);
                    assert!(!has_line("b = c") && !has_line("b"), "{place} has a line of it");
                    assert!(!text.contains("60481729"), "{place} evaluates it");
                    if key.ends_with(".sh") || key.contains(".env") || key.starts_with("ensemble") {
                        let said = shell(key, text, &marker);
                        assert!(!said.contains("syntax error"), "{place}: {said}");
                    }
                }
            }
        }
    }
}
