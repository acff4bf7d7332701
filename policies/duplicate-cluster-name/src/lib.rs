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
//! once do not both have it. Clusters that are described elsewhere are not seen here: only the underlay knows
//! of them.

use opensdn_policy_components::{Owners, Services, null_as_default};
use opensdn_policy_sdk::{
    Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
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
    }
    Ok(())
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { name, services }) = &request.object else { return Ok(()) };
    judge(name.as_deref(), &"/spec/nested/clusterName".into(), verdict);
    let none = Services::default();
    for component in services.as_ref().unwrap_or(&none).walk() {
        let name = component.spec.service_configuration.nested.cluster_name.as_deref();
        if component.kind == "Kubemanager" {
            judge(name, &component.setting("/nested/clusterName"), verdict);
        }
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

policy! {
    name: "duplicate-cluster-name",
    summary: "no two clusters of a cloud have one name",
    settings: NoSettings,
    messages: [TAKEN],
    never_ratchets: [TAKEN],
    claims: true,
    validate: [nested_cluster, kubemanager, manager],
}
