//! What the workloads read: passwords where anyone may read them, and lists that are missing.

use serde_json::Value;

use super::documents::{Documents, Role, Workload, text};
use super::pods::name;
use super::{Rule, error, warning};
use crate::finding::Finding;

const PASSWORD: Rule = error(
    "OSDN3046",
    "put it into a Secret and refer to it by secretKeyRef, in kube-manager's pod only; it works as it is, but \
     every account that may read ConfigMaps has the password, and so has every node",
);
const TRACE: Rule = warning(
    "OSDN3052",
    "take SYS_INFO; for the daemon alone set KUBERNETES__DEFAULTS__log_level=SYS_DEBUG",
);
const LIST: Rule = warning("OSDN3053", "pass it, where it differs from CONFIG_NODES");

/// Lists that have another as their default, and what that is.
const LISTS: [(&str, &str); 2] =
    [("ANALYTICS_NODES", "CONTROLLER_NODES"), ("CONFIGDB_NODES", "CONFIG_NODES")];

pub(super) fn of_config_maps(documents: &Documents<'_>, found: &mut Vec<Finding>) {
    for (at, map) in documents.of_kind("ConfigMap") {
        let data = map.get("data").and_then(Value::as_object).into_iter().flatten();
        for (key, _) in data.filter(|(key, value)| is_password(key, value)) {
            let name = text(map, "/metadata/name");
            let message = format!("ConfigMap {name} has a password in {key}");
            found.push(PASSWORD.at(at, &format!("/data/{key}"), message));
        }
    }
}

fn is_password(key: &str, value: &Value) -> bool {
    key.to_ascii_lowercase().ends_with("password")
        && value.as_str().is_some_and(|text| !text.is_empty())
}

pub(super) fn of_workload(
    documents: &Documents<'_>,
    workload: &Workload<'_>,
    found: &mut Vec<Finding>,
) {
    let environment = documents.environment(workload);
    if let Some(level) = environment.get("LOG_LEVEL").filter(|one| one.value == Some("SYS_DEBUG")) {
        let message = format!(
            "LOG_LEVEL of {} is SYS_DEBUG, at which the image writes its environment, passwords included, \
             into the log",
            name(workload)
        );
        found.push(TRACE.at(level.at, &level.pointer, message));
    }
    if workload.role != Role::KubeManager {
        return;
    }
    for (list, default) in LISTS.iter().filter(|(list, _)| !environment.contains_key(list)) {
        let message = format!(
            "{list} is not passed to {}: it becomes {default}, and other nodes are not used",
            name(workload)
        );
        found.push(LIST.at(workload.at, "/spec/template/spec/containers", message));
    }
}
