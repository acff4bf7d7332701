//! The tf-operators of a cluster: which Deployments are one, and whether one runs. A name alone says nothing: whoever has a
//! namespace may give a Deployment that name. What it needs in the whole cluster only an administrator can have granted.

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::object::ObjectKey;
use super::requests::Requests;
use crate::exit::{Exit, Failure};
use crate::snapshot::{TF_OPERATOR, has_ended, list, match_labels, name, namespace, number, text};

const RBAC: &str = "rbac.authorization.k8s.io";

/// A tf-operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TfOperator {
    /// Its Deployment.
    pub(crate) key: ObjectKey,
    /// How many pods it is to have.
    pub(crate) replicas: i64,
    /// The labels of its pods. Kept, as they are asked for also when the Deployment is gone.
    selector: String,
    /// Its pods that have not ended.
    pub(crate) pods: Vec<String>,
    /// The ClusterServiceVersion of the Operator Lifecycle Manager that keeps it.
    pub(crate) version_of_olm: Option<String>,
}

impl TfOperator {
    /// One that is scaled to 0 runs as long as it has a pod.
    pub(crate) fn runs(&self) -> bool {
        self.replicas > 0 || !self.pods.is_empty()
    }
}

/// Those that run, or would if there were a node for them.
///
/// # Errors
/// The cluster does not answer, or not this user: then it is not known whether one runs.
pub(crate) async fn running(requests: &Requests) -> Result<Vec<TfOperator>, Failure> {
    let resource =
        |group: &str, kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let deployments = requests.list(&resource("apps", "Deployment"), None, "").await?;
    let called_so: Vec<&Value> =
        deployments.iter().filter(|one| name(one) == TF_OPERATOR).collect();
    if called_so.is_empty() {
        return Ok(Vec::new());
    }
    let bindings = requests.list(&resource(RBAC, "ClusterRoleBinding"), None, "").await?;
    let mut found = Vec::new();
    for deployment in called_so.into_iter().filter(|one| has_rights(one, &bindings)) {
        let operator = look(requests, deployment).await?;
        found.extend(Some(operator).filter(TfOperator::runs));
    }
    Ok(found)
}

/// Whether the account of the Deployment has rights in the whole cluster, by these ClusterRoleBindings.
pub(crate) fn has_rights(deployment: &Value, bindings: &[Value]) -> bool {
    let (namespace, name) = account(deployment);
    let mut subjects = bindings.iter().flat_map(|binding| list(binding, "/subjects"));
    subjects.any(|subject| {
        text(subject, "/kind") == "ServiceAccount"
            && (text(subject, "/namespace"), text(subject, "/name")) == (namespace, name)
    })
}

fn account(deployment: &Value) -> (&str, &str) {
    let named = text(deployment, "/spec/template/spec/serviceAccountName");
    (namespace(deployment), if named.is_empty() { "default" } else { named })
}

async fn look(requests: &Requests, deployment: &Value) -> Result<TfOperator, Failure> {
    let key = ObjectKey::of(deployment);
    let selector = match_labels(deployment);
    if selector.is_empty() {
        let message = format!("the selector of {key} has no labels, so its pods are not known");
        let hint = "scale it to 0, see that its pods are gone, and delete it";
        return Err(Failure::new(Exit::Refused, "no-selector", message, hint));
    }
    let mut owners = list(deployment, "/metadata/ownerReferences");
    let version = owners.find(|one| text(one, "/kind") == "ClusterServiceVersion");
    Ok(TfOperator {
        replicas: number(deployment, "/spec/replicas").unwrap_or(1),
        pods: pods(requests, &key, &selector).await?,
        version_of_olm: version.map(|one| text(one, "/name").to_owned()),
        key,
        selector,
    })
}

/// Its pods that have not ended; one that is terminating may still write.
async fn pods(
    requests: &Requests,
    key: &ObjectKey,
    selector: &str,
) -> Result<Vec<String>, Failure> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    let pods = requests.list(&kind, key.namespace.as_deref(), selector).await?;
    let running = pods.iter().filter(|pod| !has_ended(pod));
    Ok(running.map(|pod| name(pod).to_owned()).collect())
}

impl TfOperator {
    /// How it is now: how many pods it is to have, none where its Deployment is gone, and a pod that has not ended.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn now(&self, requests: &Requests) -> Result<(i64, Option<String>), Failure> {
        let deployment = requests.get(&self.key).await?;
        let replicas = deployment.map(|one| number(&one, "/spec/replicas").unwrap_or(1));
        let pods = pods(requests, &self.key, &self.selector).await?;
        Ok((replicas.unwrap_or_default(), pods.into_iter().next()))
    }

    /// The command by which it runs again.
    pub(crate) fn back(&self) -> String {
        let namespace = self.key.namespace.as_deref().unwrap_or_default();
        let replicas = self.replicas.max(1);
        format!("kubectl scale deployment {} -n {namespace} --replicas={replicas}", self.key.name)
    }
}

#[cfg(test)]
impl TfOperator {
    /// One that runs.
    pub(super) fn of_tests(namespace: &str, version_of_olm: Option<&str>) -> Self {
        Self {
            key: ObjectKey {
                namespace: Some(namespace.to_owned()),
                ..ObjectKey::cluster("apps/v1", "Deployment", TF_OPERATOR)
            },
            replicas: 1,
            selector: "name=tf-operator".to_owned(),
            pods: vec!["tf-operator-1".to_owned()],
            version_of_olm: version_of_olm.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_with_rights_in_the_whole_cluster_makes_a_tf_operator() {
        let binding = json!({"subjects": [
            {"kind": "ServiceAccount", "namespace": "tf", "name": "tf-operator"},
            {"kind": "User", "namespace": "own", "name": "tf-operator"}]});
        let bindings = [binding, json!({})];
        let deployment = |namespace: &str, account: Value| {
            json!({"metadata": {"name": "tf-operator", "namespace": namespace},
                "spec": {"template": {"spec": {"serviceAccountName": account}}}})
        };
        assert!(has_rights(&deployment("tf", json!("tf-operator")), &bindings));
        for (namespace, named) in
            [("own", json!("tf-operator")), ("tf", json!("other")), ("tf", Value::Null)]
        {
            assert!(!has_rights(&deployment(namespace, named), &bindings));
        }
    }

    #[test]
    fn one_without_replicas_runs_as_long_as_it_has_a_pod() {
        let operator = |replicas, pods: &[&str]| TfOperator {
            replicas,
            pods: pods.iter().map(ToString::to_string).collect(),
            ..TfOperator::of_tests("tf", None)
        };
        assert!(operator(1, &[]).runs() && operator(0, &["p"]).runs() && !operator(0, &[]).runs());
        assert_eq!(
            operator(3, &[]).back(),
            "kubectl scale deployment tf-operator -n tf --replicas=3"
        );
        assert!(
            operator(0, &["p"]).back().ends_with("--replicas=1"),
            "how many there were is not known any more"
        );
    }
}
