//! Tolerations by which pods of a DaemonSet would go and not come again (pure). Its controller counts none as away where none is to
//! be: with tolerations that do not fit the taints of the nodes it takes all pods away, as fast as they end. A node is left by its
//! labels.

use k8s_openapi::api::core::v1::Toleration;

use super::fetch::Fetched;
use crate::build::{Valid, tolerations};
use crate::kind::Workload;
use crate::node::Taint;

/// Why the DaemonSet is not to be written: what it tolerates now the settings do not, and pods run there.
pub(super) fn refused(fetched: &Fetched, valid: &Valid) -> Option<String> {
    if valid.workload != Workload::DaemonSet {
        return None;
    }
    let live = fetched.owned.get(&valid.keeper())?;
    let before = live.data.pointer("/spec/template/spec/tolerations").cloned().unwrap_or_default();
    let before: Vec<Toleration> = serde_json::from_value(before).ok()?;
    let given = tolerations(&valid.common);
    let keeps_away = |taint: &&Taint| !taint.is_tolerated(&given) && taint.is_tolerated(&before);
    let mut left = valid.nodes.iter().filter_map(|node| {
        let runs = fetched.pods.iter().any(|pod| pod.node == node.name && !pod.is_going);
        Some((&node.name, node.taints.iter().find(keeps_away).filter(|_| runs)?))
    });
    let (node, taint) = left.next()?;
    let more = match left.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "spec.commonConfiguration.tolerations does not tolerate the taint {taint} of {node}{more}, where pods run: they would \
         not come again once they end, so the DaemonSet stays as it is. Tolerate it, or leave nodes out by \
         spec.commonConfiguration.nodeSelector"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use opensdn_runtime::watch::Event;
    use serde_json::{Value, json};

    use super::super::validate::validate;
    use super::*;
    use crate::cache::{Cache, Feed};
    use crate::components::of_kind;
    use crate::kind::Kind;
    use crate::names::Instance;

    /// What is said of vrouters with those tolerations, on nodes with that taint, of which the first two have a pod.
    fn said(before: &Value, given: &Value, taint: &Value) -> Option<String> {
        let cache = Cache::default();
        let put = |kind: Kind, mut object: Value| {
            object["metadata"]["resourceVersion"] = "1".into();
            Feed::new(kind, "").take(&cache, Event::Apply(object));
        };
        let owner = |kind: &str, name: &str| json!([{"apiVersion": "a/v1", "kind": kind, "name": name, "uid": name, "controller": true}]);
        put(
            Kind::DaemonSet,
            json!({"metadata": {"name": "v-vrouter-daemonset", "namespace": "tf", "uid": "d", "ownerReferences": owner("Vrouter", "u")},
                "spec": {"template": {"spec": {"tolerations": before}}}}),
        );
        for (number, node) in ["a", "b", "c"].into_iter().enumerate() {
            put(
                Kind::Node,
                json!({"metadata": {"name": node}, "spec": {"taints": [taint]},
                    "status": {"addresses": [{"type": "InternalIP", "address": format!("192.0.2.{}", number + 1)}]}}),
            );
            if node == "c" {
                continue;
            }
            let labels = json!({"tf_manager": "vrouter", "vrouter": "v"});
            put(
                Kind::Pod,
                json!({"metadata": {"name": format!("p-{node}"), "namespace": "tf", "labels": labels,
                    "ownerReferences": owner("DaemonSet", "d")}, "spec": {"nodeName": node}}),
            );
        }
        let containers = [
            "provisioner",
            "nodemanager",
            "vrouteragent",
            "vrouterkernelinit",
            "vroutercni",
            "nodeinit",
            "nodeinit-status-prefetch",
            "nodeinit-tools-prefetch",
        ]
        .map(|name| json!({"name": name, "image": "i:R24.1"}));
        let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
            "metadata": {"name": "v", "namespace": "tf", "uid": "u"},
            "spec": {"commonConfiguration": {"tolerations": given}, "serviceConfiguration": {"containers": containers}}});
        let object = Arc::new(serde_json::from_value(object).unwrap());
        let instance = Instance { word: "vrouter".to_owned(), name: "v".to_owned() };
        let fetched = Fetched::read(&cache, object, &instance);
        validate(of_kind("Vrouter").unwrap(), &fetched).unwrap().refused_tolerations
    }

    #[test]
    fn what_would_take_running_pods_away_is_refused_and_nothing_else() {
        let taint = |key: &str, effect: &str| json!({"key": key, "value": "b", "effect": effect});
        let all = json!([{"operator": "Exists"}]);
        let other = json!([{"key": "other", "operator": "Exists"}]);
        let why = said(&all, &other, &taint("rack", "NoSchedule")).unwrap();
        assert!(why.contains("the taint rack=b:NoSchedule of a and 1 more"), "{why}");
        assert!(said(&all, &other, &taint("rack", "NoExecute")).is_some());
        // None is kept away; by Kubernetes itself; by what was not tolerated before either.
        assert_eq!(said(&all, &other, &taint("rack", "PreferNoSchedule")), None);
        let cordoned = taint("node.kubernetes.io/unschedulable", "NoSchedule");
        assert_eq!(said(&all, &other, &cordoned), None);
        assert_eq!(said(&other, &other, &taint("rack", "NoSchedule")), None);
        for fits in [
            json!([{"key": "rack", "operator": "Equal", "value": "b", "effect": "NoSchedule"}]),
            json!([{"key": "rack", "value": "b"}]),
            json!([{"key": "rack", "operator": "Exists"}]),
            json!([]),
        ] {
            assert_eq!(said(&all, &fits, &taint("rack", "NoSchedule")), None, "{fits}");
        }
        for unfit in [
            json!([{"key": "rack", "operator": "Equal", "value": "c"}]),
            json!([{"key": "rack", "operator": "Exists", "effect": "NoExecute"}]),
        ] {
            assert!(said(&all, &unfit, &taint("rack", "NoSchedule")).is_some(), "{unfit}");
        }
    }
}
