//! Whether the pod of a template can be placed on a node, as far as labels and taints say.

use serde_json::Value;

use crate::checks::roles::PASSING;
use crate::snapshot::{label, list, text};

/// By the pod's spec: its selector, what it requires of nodes, and what it tolerates.
pub(super) fn can_run(pod: &Value, node: &Value) -> bool {
    let selector = pod.pointer("/nodeSelector").and_then(Value::as_object).into_iter().flatten();
    let is_selected = selector.into_iter().all(|(key, value)| label(node, key) == value.as_str());
    is_selected && is_required(pod, node) && !is_tainted(pod, node)
}

/// One term has to hold as a whole.
fn is_required(pod: &Value, node: &Value) -> bool {
    const TERMS: &str =
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let mut terms = list(pod, TERMS).peekable();
    terms.peek().is_none()
        || terms.any(|term| list(term, "/matchExpressions").all(|one| holds(one, node)))
}

fn holds(expression: &Value, node: &Value) -> bool {
    let found = label(node, text(expression, "/key"));
    let is_among =
        || list(expression, "/values").any(|value| found.is_some() && value.as_str() == found);
    match text(expression, "/operator") {
        "In" => is_among(),
        "NotIn" => !is_among(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        // By numbers, which no manifest of ours or upstream's asks for.
        _ => true,
    }
}

fn is_tainted(pod: &Value, node: &Value) -> bool {
    let is_tolerated = |taint: &Value| {
        list(pod, "/tolerations").any(|toleration| {
            let of = |key: &str| text(toleration, key);
            let is_effect = ["", text(taint, "/effect")].contains(&of("/effect"));
            let is_key = ["", text(taint, "/key")].contains(&of("/key"));
            let is_value = of("/operator") == "Exists" || of("/value") == text(taint, "/value");
            is_effect && is_key && is_value
        })
    };
    let mut taints = list(node, "/spec/taints").filter(|taint| {
        text(taint, "/effect") != "PreferNoSchedule" && !PASSING.contains(&text(taint, "/key"))
    });
    taints.any(|taint| !is_tolerated(taint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(labels: Value, taints: Value) -> Value {
        json!({"metadata": {"name": "n", "labels": labels}, "spec": {"taints": taints}})
    }

    #[test]
    fn the_stock_kube_manager_runs_where_the_label_is_and_tolerates_masters_only() {
        let term = json!({"matchExpressions": [{"key": "node-role.opencontrail.org/config", "operator": "Exists"}]});
        let pod = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [term]}}},
            "tolerations": [{"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"}]});
        let labels = json!({"node-role.opencontrail.org/config": ""});
        let taint = |key: &str| json!([{"key": key, "effect": "NoSchedule"}]);
        assert!(can_run(&pod, &node(labels.clone(), taint("node-role.kubernetes.io/master"))));
        assert!(can_run(&pod, &node(labels.clone(), taint("node.kubernetes.io/not-ready"))));
        assert!(!can_run(&pod, &node(labels, taint("node-role.kubernetes.io/control-plane"))));
        assert!(!can_run(&pod, &node(json!({}), json!([]))));
    }

    #[test]
    fn a_selector_and_expressions_have_to_hold_and_a_pod_without_any_runs_anywhere() {
        let worker = node(json!({"role": "worker"}), json!([]));
        assert!(can_run(&json!({}), &worker));
        assert!(can_run(&json!({"nodeSelector": {"role": "worker"}}), &worker));
        assert!(!can_run(&json!({"nodeSelector": {"role": "master"}}), &worker));
        let with = |operator: &str| {
            let one = json!({"key": "role", "operator": operator, "values": ["worker"]});
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [one]}]}}}})
        };
        let fits =
            ["In", "NotIn", "Exists", "DoesNotExist"].map(|one| can_run(&with(one), &worker));
        assert_eq!(fits, [true, false, true, false]);
    }
}
