//! The workloads themselves: whether they are taken, on which nodes they run, how many, and whether they say
//! that they are ready.

use serde_json::Value;

use super::documents::{Role, Workload, list, text};
use super::{error, warning};
use crate::finding::{Finding, Rule};

pub(super) static TWO_SPECS: Rule = error(
    "OSDN3041",
    "a workload has no selector, or loses it by a key that is there twice",
    "put selector and template into one spec; the API server refuses a workload without a selector",
);
pub(super) static SELECTOR: Rule = error(
    "OSDN3042",
    "the selector of a workload does not fit the labels of its pods",
    "make the selector equal to the labels of the template",
);
pub(super) static LABELLED_NODE: Rule = warning(
    "OSDN3043",
    "kube-manager runs only on nodes with a label that no installer sets",
    "prefer nodes of the control plane instead, or label a node: kubectl label node NODE \
     node-role.opencontrail.org/config=",
);
pub(super) static CONTROL_PLANE_TAINT: Rule = warning(
    "OSDN3044",
    "kube-manager does not tolerate the taint of control planes",
    "tolerate node-role.kubernetes.io/control-plane as well",
);
pub(super) static NODES_LEFT_OUT: Rule = warning(
    "OSDN3045",
    "the CNI agent leaves out nodes",
    "let the CNI agent run on every node: no affinity, and a toleration of every taint",
);
// kubelet complains of it and continues; a second apply fails for the missing key.
pub(super) static NAMELESS_SECRET: Rule = warning(
    "OSDN3048",
    "an image pull secret has no name",
    "leave imagePullSecrets out where there is no Secret",
);
pub(super) static SEVERAL: Rule = warning(
    "OSDN3050",
    "kube-manager may run several times",
    "make it a Deployment with one replica and strategy Recreate",
);
pub(super) static NO_READINESS: Rule = warning(
    "OSDN3051",
    "a workload has no readiness probe",
    "add a readiness probe: HTTP on 8108 for kube-manager, the file of the CNI for its agent",
);

const CONFIG_LABEL: &str = "node-role.opencontrail.org/config";
const MASTER: &str = "node-role.kubernetes.io/master";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
const REQUIRED: &str = "/spec/template/spec/affinity/nodeAffinity/\
                        requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

pub(super) fn lint(workload: &Workload<'_>, found: &mut Vec<Finding>) {
    found.extend(two_specs(workload));
    found.extend(selector(workload));
    match workload.role {
        Role::KubeManager => {
            found.extend(labelled_node(workload));
            found.extend(control_plane_taint(workload));
            found.extend(several(workload));
        }
        Role::CniAgent => {
            found.extend(nodes_left_out(workload));
            found.extend(tainted_nodes_left_out(workload));
        }
    }
    found.extend(nameless_secret(workload));
    found.extend(no_readiness(workload));
}

/// Of two keys the last counts, by which the selector is lost.
fn two_specs(workload: &Workload<'_>) -> Option<Finding> {
    let is_within = |pointer: &&String| {
        let rest = pointer.strip_prefix("/spec");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if let Some(pointer) = workload.kept.duplicates.iter().find(is_within) {
        let key = pointer.trim_start_matches('/');
        let message =
            format!("{} has the key {key} twice; only the last one counts", name(workload));
        return Some(TWO_SPECS.at(workload.id(), pointer, message));
    }
    let is_without = workload.document().pointer("/spec/selector").is_none_or(Value::is_null);
    is_without.then(|| {
        let message = format!("{} has no selector", name(workload));
        TWO_SPECS.at(workload.id(), "/spec", message)
    })
}

fn selector(workload: &Workload<'_>) -> Option<Finding> {
    let wanted = workload.document().pointer("/spec/selector/matchLabels")?.as_object()?;
    let labels = workload.document().pointer("/spec/template/metadata/labels");
    let has = |key: &str| labels.and_then(|labels| labels.get(key));
    let (key, value) = wanted.iter().find(|(key, value)| has(key) != Some(*value))?;
    let value = value.as_str().unwrap_or_default();
    let message = format!(
        "{} selects pods by {key}={value}, which the labels of its own pods have not",
        name(workload)
    );
    Some(SELECTOR.at(workload.id(), "/spec/selector/matchLabels", message))
}

/// The operators by which pods are bound to nodes with, or without, the label of config.
fn operators<'d>(workload: &Workload<'d>) -> impl Iterator<Item = &'d str> {
    let terms = list(workload.document(), REQUIRED);
    let expressions = terms.flat_map(|term| list(term, "/matchExpressions"));
    expressions
        .filter(|expression| text(expression, "/key") == CONFIG_LABEL)
        .map(|expression| text(expression, "/operator"))
}

fn labelled_node(workload: &Workload<'_>) -> Option<Finding> {
    let selector = "/spec/template/spec/nodeSelector";
    let selects = workload.document().pointer(selector).and_then(|all| all.get(CONFIG_LABEL));
    let requires = operators(workload).any(|one| ["Exists", "In"].contains(&one));
    let pointer = if selects.is_some() { selector } else { REQUIRED };
    (selects.is_some() || requires).then(|| {
        let message = format!(
            "{} runs only on nodes with the label {CONFIG_LABEL}, which no installer of Kubernetes sets",
            name(workload)
        );
        LABELLED_NODE.at(workload.id(), pointer, message)
    })
}

fn tolerates(workload: &Workload<'_>, key: &str) -> bool {
    tolerations(workload).any(|one| text(one, "/key") == key || is_for_all(one))
}

fn tolerations<'d>(workload: &Workload<'d>) -> impl Iterator<Item = &'d Value> {
    list(workload.document(), "/spec/template/spec/tolerations")
}

fn is_for_all(toleration: &Value) -> bool {
    text(toleration, "/key").is_empty() && text(toleration, "/operator") == "Exists"
}

fn control_plane_taint(workload: &Workload<'_>) -> Option<Finding> {
    let is_stuck = tolerates(workload, MASTER) && !tolerates(workload, CONTROL_PLANE);
    is_stuck.then(|| {
        let message = format!(
            "{} tolerates the taint {MASTER} only, which Kubernetes has called {CONTROL_PLANE} since 1.24",
            name(workload)
        );
        CONTROL_PLANE_TAINT.at(workload.id(), "/spec/template/spec/tolerations", message)
    })
}

fn nodes_left_out(workload: &Workload<'_>) -> Option<Finding> {
    operators(workload).find(|one| ["NotIn", "DoesNotExist"].contains(one)).map(|_| {
        let message = format!(
            "{} leaves out nodes by the label {CONFIG_LABEL}, whose value is empty or true: pods on these get \
             no network",
            name(workload)
        );
        NODES_LEFT_OUT.at(workload.id(), REQUIRED, message)
    })
}

fn tainted_nodes_left_out(workload: &Workload<'_>) -> Option<Finding> {
    (!tolerations(workload).any(is_for_all)).then(|| {
        let message = format!(
            "{} does not tolerate every taint: a node with another one gets no CNI and stays not ready",
            name(workload)
        );
        NODES_LEFT_OUT.at(workload.id(), "/spec/template/spec/tolerations", message)
    })
}

fn several(workload: &Workload<'_>) -> Option<Finding> {
    let replicas = workload.document().pointer("/spec/replicas").and_then(Value::as_u64);
    let kind = text(workload.document(), "/kind");
    (kind == "DaemonSet" || replicas.is_some_and(|count| count > 1)).then(|| {
        let message = format!(
            "{} may run several times, and in nested mode nothing chooses one: two give the same VLAN to \
             different pods",
            name(workload)
        );
        SEVERAL.at(workload.id(), "/kind", message)
    })
}

fn nameless_secret(workload: &Workload<'_>) -> Option<Finding> {
    let pointer = "/spec/template/spec/imagePullSecrets";
    let is_nameless = |one: &Value| text(one, "/name").is_empty();
    list(workload.document(), pointer).any(is_nameless).then(|| {
        let message = format!("{} has an imagePullSecret without a name", name(workload));
        NAMELESS_SECRET.at(workload.id(), pointer, message)
    })
}

fn no_readiness(workload: &Workload<'_>) -> Option<Finding> {
    let (index, _) = workload
        .containers()
        .find(|(_, one)| one.get("readinessProbe").is_none_or(Value::is_null))?;
    let pointer = format!("/spec/template/spec/containers/{index}");
    let message =
        format!("{} has no readiness probe: it counts as ready as soon as it runs", name(workload));
    Some(NO_READINESS.at(workload.id(), &pointer, message))
}

/// As in `DaemonSet opensdn-kube-manager (kube-manager)`.
pub(super) fn name(workload: &Workload<'_>) -> String {
    let (kind, name) =
        (text(workload.document(), "/kind"), text(workload.document(), "/metadata/name"));
    format!("{kind} {name} ({})", workload.role.text())
}
