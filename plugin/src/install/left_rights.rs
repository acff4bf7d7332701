//! The rights of components that tf-operator leaves behind: for each a ClusterRole that may do everything, and a
//! ClusterRoleBinding of the same name, which no object owns (tf-operator, `pkg/apis/tf/v1alpha1/base_types.go:185`). Our operator
//! keeps the accounts, so that they keep these rights.

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::object::ObjectKey;
use super::requests::Requests;
use super::take_over::TakenService;
use crate::snapshot::{list, text};

const API: &str = "rbac.authorization.k8s.io/v1";

/// What is to be known of them, with the commands that end them. Nothing where there are none.
pub(super) async fn remark(requests: &Requests, services: &[TakenService]) -> Option<String> {
    let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding");
    let bindings = match requests.list(&ApiResource::from_gvk(&kind), None, "").await {
        Ok(bindings) => bindings,
        Err(_) => {
            return Some(
                "whether accounts of components may do everything in the cluster, as tf-operator has it, cannot be looked for: \
                 who may list ClusterRoleBindings finds them by kubectl get clusterrolebindings -o wide"
                    .to_owned(),
            );
        }
    };
    let mut names = Vec::new();
    for name in bound(&bindings, services) {
        let role = ObjectKey::cluster(API, "ClusterRole", &name);
        if requests.get(&role).await.ok().flatten().is_some_and(|role| may_do_everything(&role)) {
            names.push(name);
        }
    }
    let all = names.join(" ");
    (!names.is_empty()).then(|| {
        format!(
            "the accounts of {} components may do everything in the cluster, by what tf-operator made and leaves; when all is Ready \
             and no service has the condition PodsAsBefore: kubectl delete clusterrolebinding {all} && kubectl delete \
             clusterrole {all}",
            names.len()
        )
    })
}

/// The names of bindings of these components' accounts that are as tf-operator makes them.
fn bound(bindings: &[Value], services: &[TakenService]) -> Vec<String> {
    let is_such = |service: &TakenService, binding: &Value| {
        let (namespace, name) = service.component.split_once('/').unwrap_or_default();
        let base = format!("{name}-{}", service.kind.to_lowercase());
        let (role, account) = (format!("{base}-role"), format!("{base}-service-account"));
        text(binding, "/metadata/name") == role
            && text(binding, "/roleRef/kind") == "ClusterRole"
            && text(binding, "/roleRef/name") == role
            && list(binding, "/subjects").any(|subject| {
                text(subject, "/kind") == "ServiceAccount"
                    && text(subject, "/name") == account
                    && text(subject, "/namespace") == namespace
            })
    };
    let found = services.iter().filter_map(|service| {
        let binding = bindings.iter().find(|binding| is_such(service, binding))?;
        Some(text(binding, "/metadata/name").to_owned())
    });
    found.collect()
}

fn may_do_everything(role: &Value) -> bool {
    let any = |rule: &Value, field: &str| list(rule, field).any(|one| one == "*");
    list(role, "/rules")
        .any(|rule| ["/verbs", "/apiGroups", "/resources"].iter().all(|field| any(rule, field)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn binding(name: &str, account: &str, namespace: &str) -> Value {
        json!({"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]})
    }

    #[test]
    fn of_the_accounts_of_components_alone_rights_are_left() {
        let service = TakenService {
            workload: ObjectKey::within("tf", "apps/v1", "StatefulSet", "s"),
            kind: "Config".to_owned(),
            component: "tf/config1".to_owned(),
            pods: 1,
            ready: 1,
            recreated: false,
        };
        let own = binding("config1-config-role", "config1-config-service-account", "tf");
        let elsewhere = binding("config1-config-role", "config1-config-service-account", "lab");
        let other = binding("config1-config-admin", "config1-config-service-account", "tf");
        let services = [service];
        assert_eq!(bound(&[other.clone(), own], &services), ["config1-config-role"]);
        assert_eq!(bound(&[other, elsewhere], &services), Vec::<String>::new());
    }

    #[test]
    fn a_role_that_was_made_smaller_is_not_one_of_those() {
        let role = |verbs: &[&str]| json!({"rules": [{"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}]});
        assert!(may_do_everything(&role(&["*"])));
        assert!(!may_do_everything(&role(&["get"])));
        assert!(!may_do_everything(&json!({})));
    }
}
