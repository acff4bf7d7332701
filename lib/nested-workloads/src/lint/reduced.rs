//! Of a document what the rules look at, so that a folder of thousands of objects is not kept in memory for the
//! few that are of nested mode.

use serde_json::{Map, Value, json};

use super::access::{ACCOUNT, grants_all, is_token};
use super::documents::{is_workload, list, text};
use super::settings::is_read;

/// The document as far as it is looked at; nothing where it cannot be of nested mode.
pub(super) fn reduced(document: &Value) -> Option<Value> {
    let kind = text(document, "/kind");
    let metadata = json!({
        "name": text(document, "/metadata/name"), "namespace": text(document, "/metadata/namespace"),
        "annotations": {ACCOUNT: document.pointer("/metadata/annotations").and_then(|all| all.get(ACCOUNT))},
    });
    match kind {
        "ConfigMap" => {
            let data = document.get("data").and_then(Value::as_object)?;
            let read = data.iter().filter(|(key, _)| is_read(key));
            let read: Map<String, Value> =
                read.map(|(key, value)| (key.clone(), value.clone())).collect();
            // One that has nothing of interest still says that a workload reads no more than is known.
            let is_kept = !read.is_empty() || data.keys().all(|key| is_variable(key));
            is_kept.then(|| json!({"kind": kind, "metadata": metadata, "data": read}))
        }
        "ClusterRole" => {
            let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
            grants_all(document)
                .then(|| json!({"kind": kind, "metadata": metadata, "rules": rules}))
        }
        "ClusterRoleBinding" => {
            let is_account = |one: &&Value| text(one, "/kind") == "ServiceAccount";
            let subjects: Vec<&Value> = list(document, "/subjects").filter(is_account).collect();
            let role = document.get("roleRef")?;
            (!subjects.is_empty()).then(
                || json!({"kind": kind, "metadata": metadata, "roleRef": role, "subjects": subjects}),
            )
        }
        // Without what is in it.
        "Secret" => is_token(document)
            .then(|| json!({"kind": kind, "metadata": metadata, "type": document.get("type")})),
        _ => is_workload(document).then(|| document.clone()),
    }
}

/// Whether containers can have a variable of that name, as upstream writes them.
fn is_variable(key: &str) -> bool {
    key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
