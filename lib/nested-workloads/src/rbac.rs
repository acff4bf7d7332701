//! What kube-manager may do in Kubernetes: read the kinds that it watches, and write the few fields that it
//! writes (tf-controller, `kube_manager/kube/kube_monitor.py`, `network_monitor.py`; `vnc/vnc_{pod,service,ingress}.py`).

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};

use crate::checked::Checked;
use crate::pod::{cluster_metadata, metadata};

const NETWORKS: &str = "network-attachment-definitions.k8s.cni.cncf.io";
const READS: [&str; 3] = ["get", "list", "watch"];
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) fn service_account(checked: &Checked<'_>) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(checked, &checked.names.kube_manager()),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// `/openapi/v2`, which it also reads, is granted to every account by `system:discovery`.
pub(crate) fn cluster_role(checked: &Checked<'_>) -> ClusterRole {
    let networking = "networking.k8s.io";
    let definitions = "apiextensions.k8s.io";
    let rules = vec![
        rule("", &["pods", "services", "endpoints", "namespaces"], &READS),
        // The addresses of an interface; the external addresses of a Service.
        rule("", &["pods", "services"], &["patch"]),
        rule(networking, &["ingresses", "networkpolicies"], &READS),
        rule(networking, &["ingresses/status"], &["patch"]),
        rule("k8s.cni.cncf.io", &["network-attachment-definitions"], &READS),
        PolicyRule {
            resource_names: Some(vec![NETWORKS.to_owned()]),
            ..rule(definitions, &["customresourcedefinitions"], &["get"])
        },
        // It makes that one if it is not there. RBAC knows no names for create.
        rule(definitions, &["customresourcedefinitions"], &["create"]),
    ];
    ClusterRole {
        metadata: cluster_metadata(checked, &checked.names.kube_manager()),
        rules: Some(rules),
        ..ClusterRole::default()
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

pub(crate) fn cluster_role_binding(checked: &Checked<'_>) -> ClusterRoleBinding {
    let name = checked.names.kube_manager();
    ClusterRoleBinding {
        metadata: cluster_metadata(checked, &name),
        role_ref: RoleRef {
            api_group: RBAC_GROUP.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: name.clone(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name,
            namespace: Some(checked.given.namespace.clone()),
            ..Subject::default()
        }]),
    }
}

/// A token without an end. kube-manager copies it into its configuration file at its start and never reads
/// it again, so that one that rotates would end its access after an hour. What it may do with it is in
/// [`cluster_role`].
pub(crate) fn token_secret(checked: &Checked<'_>) -> Secret {
    let mut metadata = metadata(checked, &checked.names.token());
    let why = "A token without an end: kube-manager reads its token once, at its start. Delete this \
               Secret and restart kube-manager to replace it.";
    metadata.annotations = Some(
        [
            ("kubernetes.io/service-account.name", checked.names.kube_manager().as_str()),
            ("kubernetes.io/description", why),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
    );
    Secret {
        metadata,
        type_: Some("kubernetes.io/service-account-token".to_owned()),
        ..Secret::default()
    }
}
