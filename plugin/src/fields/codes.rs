//! Which codes the built-in policies give for a field. Their cases say so: each names the field of each finding, and the
//! module that ships gives them all. A field that is judged and in no case is not known to be.

use std::collections::BTreeSet;

use opensdn_crds::component::COMPONENTS;
use serde_json::Value;

use super::{FieldCode, Kinds};
use crate::catalogue;

/// By code. The path is from the object on.
pub(super) fn of(kind: &str, path: &[String], kinds: &Kinds) -> Vec<FieldCode> {
    let Some(name) = path.last() else { return Vec::new() };
    let wanted = of_component(kind, path);
    let mut found = BTreeSet::new();
    for policy in opensdn_policies::ALL {
        for (_, text) in opensdn_policies::cases(policy.name) {
            // To read all of them takes its time, and most are about other fields.
            if !text.contains("code:") || !text.contains(name.as_str()) {
                continue;
            }
            let Ok(case) = serde_saphyr::from_str::<Value>(text) else { continue };
            let codes = codes(&case, kinds, &wanted);
            found.extend(codes.into_iter().map(|code| (code, policy.name)));
        }
    }
    let all = catalogue::all();
    found.iter().filter_map(|(code, policy)| named(code, policy, &all)).collect()
}

/// The codes of the findings of a case that are about this field.
fn codes(case: &Value, kinds: &Kinds, wanted: &(String, Vec<String>)) -> Vec<String> {
    let object = case.get("object").filter(|object| !object.is_null());
    let object = object.or_else(|| case.get("oldObject"));
    let kind = object.and_then(|object| object.get("kind")?.as_str()).unwrap_or_default();
    let findings = case.pointer("/expect/findings").and_then(Value::as_array);
    let about = |finding: &&Value| {
        let pointer = finding.get("pointer").and_then(Value::as_str).unwrap_or_default();
        let names: Vec<&str> = pointer.split('/').skip(1).collect();
        let found = kinds.kind(kind).and_then(|kind| kind.walk(&names).ok());
        found.is_some_and(|found| of_component(kind, &found.path) == *wanted)
    };
    let codes = findings.into_iter().flatten().filter(about);
    codes.filter_map(|finding| finding.get("code")?.as_str().map(str::to_owned)).collect()
}

/// A field of a component is the same within a Manager.
fn of_component(kind: &str, path: &[String]) -> (String, Vec<String>) {
    let within = path.iter().map(String::as_str).collect::<Vec<_>>();
    if let ("Manager", ["spec", "services", key, rest @ ..]) = (kind, within.as_slice())
        && !rest.is_empty()
        && let Some(component) = COMPONENTS.iter().find(|component| component.key == *key)
    {
        return (component.kind.to_owned(), rest.iter().map(|name| (*name).to_owned()).collect());
    }
    (kind.to_owned(), path.to_vec())
}

fn named(code: &str, policy: &str, all: &[catalogue::Explanation]) -> Option<FieldCode> {
    let known = all.iter().find(|one| one.code == code)?;
    let meaning = known.meanings.iter().find(|one| one.policy.as_deref() == Some(policy))?;
    Some(FieldCode {
        code: code.to_owned(),
        policy: policy.to_owned(),
        severity: meaning.severity,
        title: meaning.title.clone(),
    })
}
