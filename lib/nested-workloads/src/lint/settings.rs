//! What the workloads read: the mode, names that must be the same, passwords where anyone may read them, and
//! lists that are missing.

use std::collections::BTreeMap;

use serde_json::Value;

use super::documents::{
    Documents, Environment, MODE as MODE_VARIABLE, Role, VROUTER, Workload, text,
};
use super::pods::name;
use super::{Kept, error, warning};
use crate::finding::{DocumentId, Finding, Rule};

pub(super) static MODE: Rule = error(
    "OSDN3030",
    "nested mode is not switched on by the value 1",
    "set KUBEMANAGER_NESTED_MODE to \"1\", in quotes",
);
pub(super) static NAMES: Rule = error(
    "OSDN3034",
    "kube-manager and the CNI agent have different cluster names",
    "give both the same KUBERNETES_CLUSTER_NAME, by one ConfigMap or two",
);
pub(super) static PASSWORD: Rule = error(
    "OSDN3046",
    "a password is in a ConfigMap",
    "put it into a Secret and refer to it by secretKeyRef, in kube-manager's pod only; it works as it is, but \
     every account that may read ConfigMaps has the password, and so has every node",
);
pub(super) static TRACE: Rule = warning(
    "OSDN3052",
    "the log level has passwords written into the log",
    "take SYS_INFO; for the daemon alone set KUBERNETES__DEFAULTS__log_level=SYS_DEBUG",
);
pub(super) static LIST: Rule = warning(
    "OSDN3053",
    "a list of nodes is not passed to kube-manager",
    "pass it, where it differs from CONFIG_NODES",
);

/// Lists that have another as their default, and what that is.
const LISTS: [(&str, &str); 2] =
    [("ANALYTICS_NODES", "CONTROLLER_NODES"), ("CONFIGDB_NODES", "CONFIG_NODES")];
const LOG_LEVEL: &str = "LOG_LEVEL";
const CLUSTER_NAME: &str = "KUBERNETES_CLUSTER_NAME";
const DEFAULT_CLUSTER_NAME: &str = "k8s";

/// Whether a rule reads the key of a ConfigMap.
pub(super) fn is_read(key: &str) -> bool {
    [MODE_VARIABLE, VROUTER, LOG_LEVEL, CLUSTER_NAME].contains(&key)
        || LISTS.iter().any(|(list, _)| *list == key)
        || is_password(key)
}

/// The ConfigMaps of nested mode: those that a workload takes, and those that say so themselves.
pub(super) fn of_config_maps(
    documents: &Documents<'_>,
    found: &mut Vec<Finding>,
) -> Vec<DocumentId> {
    let taken = documents.workloads().iter().flat_map(|workload| documents.maps_of(workload));
    let says_so = |map: &&Kept| {
        let value = |key: &str| text(&map.value, &format!("/data/{key}"));
        !value(VROUTER).is_empty() || !["", "0"].contains(&value(MODE_VARIABLE))
    };
    let all = taken.chain(documents.of_kind("ConfigMap").filter(says_so));
    let all: BTreeMap<DocumentId, &Kept> = all.map(|map| (map.id, map)).collect();
    for map in all.values() {
        let data = map.value.get("data").and_then(Value::as_object).into_iter().flatten();
        let is_set = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        for (key, _) in data.filter(|(key, value)| is_password(key) && is_set(value)) {
            let name = text(&map.value, "/metadata/name");
            let message = format!("ConfigMap {name} has a password in {key}");
            found.push(PASSWORD.at(map.id, &format!("/data/{key}"), message));
        }
    }
    all.into_keys().collect()
}

fn is_password(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with("password")
}

pub(super) fn of_workload(
    documents: &Documents<'_>,
    workload: &Workload<'_>,
    found: &mut Vec<Finding>,
) {
    let environment = documents.environment(workload);
    found.extend(trace(workload, &environment));
    match workload.role {
        Role::KubeManager => {
            found.extend(mode(workload, &environment));
            found.extend(lists(workload, &environment));
        }
        Role::CniAgent => found.extend(names(documents, workload, &environment)),
    }
}

fn trace(workload: &Workload<'_>, environment: &Environment<'_>) -> Option<Finding> {
    let level = environment.get(LOG_LEVEL).filter(|one| one.value == Some("SYS_DEBUG"))?;
    let message = format!(
        "LOG_LEVEL of {} is SYS_DEBUG, at which the image writes its environment, passwords included, into the \
         log",
        name(workload)
    );
    Some(TRACE.at(level.id, &level.pointer, message))
}

fn mode(workload: &Workload<'_>, environment: &Environment<'_>) -> Option<Finding> {
    let value = environment.known(MODE_VARIABLE, "").filter(|value| *value != "1")?;
    let message = format!(
        "{MODE_VARIABLE} of {} is {value:?}: it runs as if it were in no virtual machine, or in a mode that is \
         neither",
        name(workload)
    );
    Some(match environment.get(MODE_VARIABLE) {
        Some(variable) => MODE.at(variable.id, &variable.pointer, message),
        None => MODE.at(workload.id(), "/spec/template/spec/containers", message),
    })
}

fn lists(workload: &Workload<'_>, environment: &Environment<'_>) -> Vec<Finding> {
    let missing = LISTS.iter().filter(|(list, _)| environment.get(list).is_none());
    let finding = |(list, default): &(&str, &str)| {
        let message = format!(
            "{list} is not passed to {}: it becomes {default}, and other nodes are not used",
            name(workload)
        );
        LIST.at(workload.id(), "/spec/template/spec/containers", message)
    };
    missing.map(finding).collect()
}

/// The CNI plugin asks the vrouter agent by the name under which kube-manager has made the interfaces.
fn names(
    documents: &Documents<'_>,
    agent: &Workload<'_>,
    environment: &Environment<'_>,
) -> Option<Finding> {
    let is_manager = |one: &&Workload<'_>| one.role == Role::KubeManager;
    let managers: Vec<_> = documents.workloads().iter().filter(is_manager).collect();
    let mut near = managers.iter().filter(|one| one.id().text == agent.id().text);
    let manager = match (near.next(), managers.as_slice()) {
        (Some(manager), _) => manager,
        // Of several it is not known whose agent it is.
        (None, [manager]) => manager,
        (None, _) => return None,
    };
    let wanted = documents.environment(manager).known(CLUSTER_NAME, DEFAULT_CLUSTER_NAME)?;
    let given = environment.known(CLUSTER_NAME, DEFAULT_CLUSTER_NAME)?;
    if wanted == given {
        return None;
    }
    let message = format!(
        "{} is of the cluster {given:?}, and {} of {wanted:?}: no pod gets an interface",
        name(agent),
        name(manager)
    );
    Some(match environment.get(CLUSTER_NAME) {
        Some(variable) => NAMES.at(variable.id, &variable.pointer, message),
        None => NAMES.at(agent.id(), "/spec/template/spec/containers", message),
    })
}
