//! A manifest of workloads: ours, or upstream's as it is rendered. What it may have is known, for it is applied and deleted
//! as a whole.

use std::collections::BTreeMap;
use std::path::Path;

use opensdn_nested_workloads::Phase;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::nested::verify::workloads::{CNI_AGENT, KUBE_MANAGER};
use crate::policy::objects;
use crate::snapshot::{list, text};

/// Kinds that a manifest of workloads has, and whether they are in a namespace.
const KINDS: [(&str, &str, bool); 7] = [
    ("v1", "ServiceAccount", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", false),
    ("v1", "Secret", true),
    ("v1", "ConfigMap", true),
    ("apps/v1", "DaemonSet", true),
    ("apps/v1", "Deployment", true),
];

/// The variables that a plan has no word of, and that say for which cluster a manifest is.
const CLUSTER_NAME: &str = "KUBERNETES_CLUSTER_NAME";

/// The objects, in the order in which they are applied.
#[derive(Debug)]
pub(crate) struct WorkloadFile {
    pub(crate) objects: Vec<Staged>,
    /// Its name, for messages.
    shown: String,
}

/// An object, and when it is applied.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) key: ObjectKey,
    pub(crate) phase: Phase,
    pub(crate) object: Value,
}

impl WorkloadFile {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, has objects of other kinds or without a namespace, or lacks one of the two workloads.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        Self::of(path.display().to_string(), objects::all(path)?)
    }

    fn of(shown: String, objects: Vec<Value>) -> Result<Self, Failure> {
        let mut file = Self { objects: Vec::new(), shown };
        let mut wrong = Vec::new();
        for object in objects {
            let key = ObjectKey::of(&object);
            match phase(&key, &object) {
                Ok(phase) => file.objects.push(Staged { key, phase, object }),
                Err(why) => wrong.push(format!("{key}: {why}")),
            }
        }
        for (what, phase) in [("kube-manager", Phase::KubeManager), ("CNI agent", Phase::CniAgent)]
        {
            let number = file.of_phase(phase).count();
            if number != 1 {
                wrong.push(format!("{number} objects run the {what}, and one is needed"));
            }
        }
        if !wrong.is_empty() {
            let message =
                format!("{} is no manifest of the workloads of a nested cluster", file.shown);
            let hint = "one is printed by: kubectl opensdn nested manifest";
            let mut failure = Failure::new(Exit::Usage, "no-workloads", message, hint);
            failure.causes = wrong;
            return Err(failure);
        }
        file.objects.sort_by_key(|one| one.phase);
        Ok(file)
    }

    /// Of objects, in a test of a neighbour.
    #[cfg(test)]
    pub(super) fn of_test(objects: Vec<Value>) -> Self {
        Self::of("w.yaml".to_owned(), objects).unwrap()
    }

    /// The objects that are applied then.
    pub(crate) fn of_phase(&self, phase: Phase) -> impl Iterator<Item = &Staged> {
        self.objects.iter().filter(move |one| one.phase == phase)
    }

    /// Refuses a manifest that is for another cluster, or leads its workloads elsewhere than the plan.
    ///
    /// # Errors
    /// What differs, variable by variable.
    pub(crate) fn refuse_another(
        &self,
        cluster: &str,
        environment: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let mut wanted: BTreeMap<&str, &str> =
            environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        wanted.insert(CLUSTER_NAME, cluster);
        let causes: Vec<String> =
            self.objects.iter().flat_map(|one| differences(one, &wanted)).collect();
        if causes.is_empty() {
            return Ok(());
        }
        let message = format!("{} is not for this plan", self.shown);
        let hint = "print it again with the same arguments: kubectl opensdn nested plan --out plan.json, then \
                    kubectl opensdn nested manifest --plan plan.json";
        let mut failure = Failure::new(Exit::Usage, "other-workloads", message, hint);
        failure.causes = causes;
        Err(failure)
    }
}

/// Variables of a ConfigMap or of a container that the plan has another value for.
fn differences(one: &Staged, wanted: &BTreeMap<&str, &str>) -> Vec<String> {
    let data = one.object.get("data").and_then(Value::as_object).into_iter().flatten();
    let of_map = data.filter(|_| one.key.kind == "ConfigMap");
    let of_map = of_map.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
    let containers = list(&one.object, "/spec/template/spec/containers");
    let of_containers = containers
        .flat_map(|container| list(container, "/env"))
        .filter(|variable| variable.get("value").is_some())
        .map(|variable| (text(variable, "/name"), text(variable, "/value")));
    let differs = |(name, value): (&str, &str)| {
        let planned = *wanted.get(name)?;
        (planned != value.trim())
            .then(|| format!("{}: {name} is {value:?}, and {planned:?} in the plan", one.key))
    };
    of_map.chain(of_containers).filter_map(differs).collect()
}

/// When it is applied.
fn phase(key: &ObjectKey, object: &Value) -> Result<Phase, String> {
    let known =
        KINDS.iter().find(|(version, kind, _)| (*version, *kind) == (&key.api_version, &key.kind));
    let Some((_, kind, is_in_namespace)) = known else {
        return Err(format!(
            "{} {} is not applied with the workloads: apply it yourself",
            key.api_version, key.kind
        ));
    };
    if key.name.is_empty() {
        return Err("metadata.name is missing".to_owned());
    }
    if *is_in_namespace && key.namespace.is_none() {
        return Err("metadata.namespace is missing".to_owned());
    }
    Ok(match *kind {
        "ServiceAccount" | "ClusterRole" | "ClusterRoleBinding" => Phase::Access,
        "Secret" | "ConfigMap" => Phase::Settings,
        _ if KUBE_MANAGER.is(object) => Phase::KubeManager,
        _ if CNI_AGENT.is(object) => Phase::CniAgent,
        _ => {
            return Err(
                "it runs neither kube-manager nor the CNI agent: apply it yourself".to_owned()
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "kube-system"}})
    }

    fn map(data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "env", "namespace": "kube-system"}})
    }

    fn file(more: Vec<Value>) -> Result<WorkloadFile, Failure> {
        let mut all = vec![
            workload("Deployment", "opensdn-kube-manager"),
            workload("DaemonSet", "contrail-kubernetes-cni-agent"),
        ];
        all.extend(more);
        WorkloadFile::of("w.yaml".to_owned(), all)
    }

    #[test]
    fn kube_manager_comes_last_whatever_the_order_of_the_file() {
        let file = file(vec![map(&json!({}))]).unwrap();
        let order: Vec<_> = file.objects.iter().map(|one| one.key.kind.as_str()).collect();
        assert_eq!(order, ["ConfigMap", "DaemonSet", "Deployment"]);
    }

    #[test]
    fn what_is_no_manifest_of_the_workloads_is_refused_with_every_reason() {
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}});
        let lost = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
        let other = workload("DaemonSet", "other");
        let second = workload("DaemonSet", "opensdn-kube-manager");
        let failure = file(vec![pod, lost, other, second]).unwrap_err();
        let said = failure.causes.join("\n");
        for part in [
            "Pod/b/a: v1 Pod is not applied",
            "Secret/a: metadata.namespace is missing",
            "other: it runs neither",
            "2 objects run the kube-manager",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(failure.causes.len(), 4, "{said}");
    }

    #[test]
    fn a_manifest_for_another_plan_is_refused_with_what_differs() {
        let environment = |config: &str| [("CONFIG_NODES".to_owned(), config.to_owned())].into();
        let env = map(
            &json!({"KUBERNETES_CLUSTER_NAME": "k8s-a", "CONFIG_NODES": "10.0.0.1", "OTHER": "x"}),
        );
        let file = file(vec![env]).unwrap();
        file.refuse_another("k8s-a", &environment("10.0.0.1")).unwrap();
        for (cluster, config, part) in [
            ("k8s-b", "10.0.0.1", "KUBERNETES_CLUSTER_NAME is \"k8s-a\", and \"k8s-b\""),
            ("k8s-a", "10.0.0.2", "CONFIG_NODES is \"10.0.0.1\", and \"10.0.0.2\""),
        ] {
            let failure = file.refuse_another(cluster, &environment(config)).unwrap_err();
            assert!(failure.causes.concat().contains(part), "{failure:?}");
            assert_eq!(failure.causes.len(), 1, "{failure:?}");
        }
    }
}
