//! A name of a nested cluster that another cluster has, or may have.
//!
//! ```yaml
//! kind: NestedCluster
//! metadata: {name: b, namespace: tf}
//! spec: {clusterName: k8s, …}       # the default of every installation
//! ```
//!
//! At its start, and every few minutes, kube-manager deletes each virtual machine and load balancer of the
//! whole cloud that carries the name of its cluster and is none of its own pods and services. Two clusters with
//! one name, nested or not, delete each other's pods without end.
//!
//! Between the NestedClusters of one Kubernetes cluster the name is claimed, so that two that are created at
//! once do not both have it. That another Kubemanager is given the name is a warning: it is looked up, and what is
//! moved from one namespace to another has it twice for a moment. Clusters that are described elsewhere are not seen here: only the underlay knows
//! of them.

use opensdn_policy_components::{Owners, Services, null_as_default};
use opensdn_policy_sdk::{
    Found, Index, Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use serde::Deserialize;

const TAKEN: Message = Message {
    code: "OSDN3033",
    severity: Severity::Deny,
    title: "the name of the nested cluster is taken",
    explanation: "kube-manager deletes every virtual machine and load balancer of the cloud that carries the \
        name of its cluster and is not its own: two clusters with one name delete each other's pods.",
    hint: "choose another clusterName; what is taken is listed by: kubectl get uniqueclaims",
};

/// Of kube-manager (tf-container-builder, `containers/base/common.sh`).
const DEFAULT_NAME: &str = "k8s";

const KUBEMANAGERS: Index = Index {
    name: "kubemanagers-by-cluster",
    group: "tf.tungsten.io",
    kind: "Kubemanager",
    key: "/spec/serviceConfiguration/nested/clusterName",
    reads: &[],
};

/// One of these may be the object itself.
const MOST_COMPARED: u32 = 8;

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "NestedCluster")]
struct NestedCluster {
    #[read("/spec/clusterName")]
    name: Option<String>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Kubemanager")]
struct Kubemanager {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec/serviceConfiguration/nested/clusterName")]
    name: Option<String>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/nested/clusterName")]
    name: Option<String>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: Configuration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Configuration {
    #[serde(deserialize_with = "null_as_default")]
    nested: Nested,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Nested {
    cluster_name: Option<String>,
}

fn nested_cluster(
    request: &Request<NestedCluster>,
    _: &NoSettings,
    verdict: &mut Verdict,
) -> Outcome {
    let name = request.object.as_ref().and_then(|cluster| cluster.name.as_deref());
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(()) };
    let at = Pointer::from("/spec/clusterName");
    judge(Some(name), &at, verdict);
    verdict.claim(&TAKEN, "nested-cluster-name", name, &at);
    Ok(())
}

fn kubemanager(request: &Request<Kubemanager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Kubemanager { owners, name }) = &request.object else { return Ok(()) };
    if owners.as_ref().and_then(Owners::manager).is_none() {
        let at = Pointer::from("/spec/serviceConfiguration/nested/clusterName");
        judge(name.as_deref(), &at, verdict);
        judge_others(name.as_deref(), (&request.namespace, &request.name), &at, verdict);
    }
    Ok(())
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { name, services }) = &request.object else { return Ok(()) };
    judge(name.as_deref(), &"/spec/nested/clusterName".into(), verdict);
    let none = Services::default();
    for component in services.as_ref().unwrap_or(&none).walk() {
        if component.kind != "Kubemanager" {
            continue;
        }
        let own = component.spec.service_configuration.nested.cluster_name.as_deref();
        judge(own, &component.setting("/nested/clusterName"), verdict);
        let (name, at) = match own {
            Some(_) => (own, component.setting("/nested/clusterName")),
            None => (name.as_deref(), "/spec/nested/clusterName".into()),
        };
        judge_others(name, (&request.namespace, component.name), &at, verdict);
    }
    Ok(())
}

fn judge(name: Option<&str>, at: &Pointer, verdict: &mut Verdict) {
    if name == Some(DEFAULT_NAME) {
        let text = format!("{DEFAULT_NAME} is the name of every cluster that was given none");
        let hint = "choose a name that no other cluster of the cloud has, nested or not, such as k8s-a, before \
            the first pods run";
        verdict.add(TAKEN.at(at).severity(Severity::Warn).says(text).hint(hint));
    }
}

/// `own` is the Kubemanager that is meant, or that the operator makes.
fn judge_others(
    name: Option<&str>,
    (own_namespace, own_name): (&str, &str),
    at: &Pointer,
    verdict: &mut Verdict,
) {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return };
    // Without a cluster nothing may be known of others; that is no reason to say nothing else.
    let Ok(others) = KUBEMANAGERS.find_first(name, MOST_COMPARED) else { return };
    let is_other = |other: &&Found| (other.namespace(), other.name()) != (own_namespace, own_name);
    if let Some(other) = others.iter().find(is_other) {
        let text = format!(
            "Kubemanager {}/{} has the cluster name {name:?}, too",
            other.namespace(),
            other.name()
        );
        let hint =
            "give each its own clusterName, or remove one of the two: kubectl get kubemanagers -A";
        verdict.add(TAKEN.at(at).severity(Severity::Warn).says(text).hint(hint));
    }
}

policy! {
    name: "duplicate-cluster-name",
    summary: "no two clusters of a cloud have one name",
    settings: NoSettings,
    messages: [TAKEN],
    never_ratchets: [TAKEN],
    indexes: [KUBEMANAGERS],
    claims: true,
    validate: [nested_cluster, kubemanager, manager],
}
