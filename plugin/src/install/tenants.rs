//! Who has rights in namespaces that were there before: with the namespace of our programs, or of a component, they get the
//! rights of these, up to those of cluster-admin.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::in_the_way::shortened;
use super::object::ObjectKey;
use super::plan::{Adopt, Planned};
use super::requests::Requests;
use super::survey::{CONCURRENT, Survey};
use crate::exit::{Exit, Failure};

/// Nothing is installed into a namespace in which others have rights, unless that is wanted.
///
/// # Errors
/// There is one, or the cluster does not answer.
pub(crate) async fn refuse_tenants(
    requests: &Requests,
    survey: &Survey,
    adopt: Adopt,
) -> Result<(), Failure> {
    let is_of_before = |one: &&Planned| one.key.kind == "Namespace" && one.existed;
    let before: Vec<&str> =
        survey.plan.iter().filter(is_of_before).map(|one| one.key.name.as_str()).collect();
    if before.is_empty() || adopt == Adopt::Yes {
        return Ok(());
    }
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
    ));
    let listed = stream::iter(&before).map(async |name| requests.list(&kind, Some(name), "").await);
    let listed: Vec<Vec<Value>> = listed.buffered(CONCURRENT).try_collect().await?;
    let causes: Vec<String> =
        listed.iter().flatten().filter_map(|binding| given(binding, &before)).collect();
    if causes.is_empty() {
        return Ok(());
    }
    let message =
        "nothing has been changed: others have rights in namespaces that were there before";
    let hint = "who may make pods or tokens there has the rights of our programs, up to those of cluster-admin, and in the \
                namespace of components those of privileged pods: remove the bindings, take another namespace \
                (--control-namespace, --set operator.watchedNamespaces=...), or, where these are administrators of the cluster: --adopt";
    let mut failure = Failure::new(Exit::Refused, "namespace-of-others", message, hint);
    failure.causes = shortened(causes);
    Err(failure)
}

/// To whom a binding gives what, if that is somebody else than Kubernetes and what runs in these namespaces.
fn given(binding: &Value, own: &[&str]) -> Option<String> {
    let key = ObjectKey::of(binding);
    if key.name.starts_with("system:") {
        return None;
    }
    let subjects = binding.get("subjects").and_then(Value::as_array);
    let text = |subject: &Value, field: &str| {
        subject.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let others = subjects.into_iter().flatten().filter_map(|subject| {
        let (kind, name) = (text(subject, "kind"), text(subject, "name"));
        let namespace = text(subject, "namespace");
        match kind.as_str() {
            "ServiceAccount" if own.contains(&namespace.as_str()) || namespace == "kube-system" => {
                None
            }
            "ServiceAccount" => Some(format!("ServiceAccount {namespace}/{name}")),
            _ if name == "system:masters" || name.starts_with("system:node") => None,
            _ => Some(format!("{kind} {name}")),
        }
    });
    let others: Vec<String> = others.collect();
    let role =
        binding.get("roleRef").map(|role| format!("{} {}", text(role, "kind"), text(role, "name")));
    (!others.is_empty())
        .then(|| format!("{key} gives {} to {}", role.unwrap_or_default(), others.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_has_rights_in_a_namespace_of_before_is_named_and_what_kubernetes_gives_is_not() {
        let of = |name: &str, subjects: Value| {
            let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": "opensdn-system"},
                "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": subjects});
            given(&binding, &["opensdn-system"])
        };
        let user = json!([{"kind": "User", "name": "mallory"}]);
        let text = of("a", user.clone()).unwrap();
        assert!(text.contains("ClusterRole admin to User mallory"), "{text}");
        let elsewhere = json!([{"kind": "ServiceAccount", "name": "ci", "namespace": "team"}]);
        assert!(of("a", elsewhere).unwrap().contains("ServiceAccount team/ci"));
        let all = json!([{"kind": "Group", "name": "system:authenticated"}]);
        assert!(of("a", all).is_some());
        for subjects in [
            json!([{"kind": "Group", "name": "system:masters"}]),
            json!([{"kind": "ServiceAccount", "name": "x", "namespace": "opensdn-system"}]),
            json!([{"kind": "ServiceAccount", "name": "x", "namespace": "kube-system"}]),
            json!([]),
        ] {
            assert_eq!(of("a", subjects.clone()), None, "{subjects}");
        }
        assert_eq!(of("system:image-pullers", user), None, "OpenShift makes it in each");
    }
}
