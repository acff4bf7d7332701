//! The tf-operators of a cluster: which Deployments are one, and which of them run. A name alone says nothing: whoever has a
//! namespace may give a Deployment that name, and its pods any labels. What makes one is that its account may change
//! Managers, where there are some or are to be, and its pods are those that its ReplicaSets own.

use std::collections::BTreeSet;

use opensdn_crds::TUNGSTEN_GROUP;
use opensdn_crds::component::COMPONENTS;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::ask::Asker;
use super::{Read, TF_OPERATOR, has_ended, list, match_labels, name, namespace, number, text};
use crate::install::object::ObjectKey;

const APPS: &str = "/apis/apps/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const OF_OLM: &str = "operators.coreos.com/v1alpha1";
/// Of so many it is asked whether they are one: each takes a few questions.
const MOST_CALLED_SO: usize = 64;
/// In so many namespaces it is asked what an account may do.
const MOST_NAMESPACES: usize = 32;

/// A tf-operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TfOperator {
    /// Its Deployment.
    pub(crate) key: ObjectKey,
    /// How many pods it is to have.
    pub(crate) replicas: i64,
    /// Its pods that have not ended.
    pub(crate) pods: Vec<String>,
    /// The ClusterServiceVersion of the Operator Lifecycle Manager that keeps it.
    pub(crate) version_of_olm: Option<String>,
    owned: Owned,
}

impl TfOperator {
    /// One that is scaled to 0 runs as long as it has a pod.
    pub(crate) fn runs(&self) -> bool {
        self.replicas > 0 || !self.pods.is_empty()
    }

    /// As the Deployment says; which pods it has is not known by that.
    pub(crate) fn of(deployment: &Value) -> Self {
        let (namespace, name) = (namespace(deployment), name(deployment));
        Self {
            key: ObjectKey::within(namespace, "apps/v1", "Deployment", name),
            replicas: number(deployment, "/spec/replicas").unwrap_or(1),
            pods: Vec::new(),
            version_of_olm: None,
            owned: Owned::default(),
        }
    }

    /// Its namespace.
    pub(crate) fn namespace(&self) -> &str {
        self.key.namespace.as_deref().unwrap_or_default()
    }

    /// `NAMESPACE/NAME`.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.namespace(), self.key.name)
    }

    /// The command by which it ends.
    pub(crate) fn end(&self) -> String {
        self.scale(0)
    }

    /// The command by which it runs again.
    pub(crate) fn back(&self) -> String {
        self.scale(self.replicas.max(1))
    }

    fn scale(&self, replicas: i64) -> String {
        let (name, namespace) = (&self.key.name, self.namespace());
        format!("kubectl scale deployment {name} -n {namespace} --replicas={replicas}")
    }

    /// How it is now: how many pods it is to have, none where its Deployment is gone, and a pod that has not ended.
    ///
    /// # Errors
    /// Why it is not known.
    pub(crate) async fn now(&self, asker: &Asker) -> Result<(i64, Option<String>), String> {
        let path = format!("{APPS}/namespaces/{}/deployments/{}", self.namespace(), self.key.name);
        let deployment = asker.get(&path).await.or(Value::Null)?;
        let replicas = match &deployment {
            Value::Null => 0,
            deployment => number(deployment, "/spec/replicas").unwrap_or(1),
        };
        let mut owned = self.owned.clone();
        let pods = pods(asker, self.namespace(), &mut owned).await?;
        Ok((replicas, pods.into_iter().next()))
    }
}

/// By what its pods are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Owned {
    /// The UIDs of the Deployment and of its ReplicaSets. Kept, as pods are asked for also when these are gone.
    owners: BTreeSet<String>,
    /// The labels that all of its pods have, as a query has them.
    labels: String,
}

/// All of the cluster, also those that are scaled to 0. Each may change Managers everywhere or in one of these namespaces: those
/// with Managers, and those that are to have some.
///
/// # Errors
/// Why it is not known which there are.
pub(crate) async fn tf_operators(
    asker: &Asker,
    namespaces: &BTreeSet<String>,
) -> Result<Vec<TfOperator>, String> {
    let path = format!("{APPS}/deployments?fieldSelector=metadata.name%3D{TF_OPERATOR}");
    let called_so = asker.list(&path).await.or(Vec::new())?;
    if called_so.len() > MOST_CALLED_SO || namespaces.len() > MOST_NAMESPACES {
        return Err(format!(
            "{} Deployments are called {TF_OPERATOR}, Managers are in {} namespaces, and of so many it is not asked who may \
             change them",
            called_so.len(),
            namespaces.len()
        ));
    }
    let mut found = Vec::new();
    for deployment in &called_so {
        if looks_after_managers(asker, deployment, namespaces).await? {
            found.push(look(asker, deployment).await?);
        }
    }
    Ok(found)
}

/// Whether the account of the Deployment may change Managers.
async fn looks_after_managers(
    asker: &Asker,
    deployment: &Value,
    namespaces: &BTreeSet<String>,
) -> Result<bool, String> {
    let everywhere = String::new();
    for namespace in std::iter::once(&everywhere).chain(namespaces) {
        let said = asker.review(REVIEWS, &review(deployment, namespace)).await.or(Value::Null);
        let said = said.map_err(|why| {
            let (of, name) = account(deployment);
            format!("whether ServiceAccount {of}/{name} may change Managers: {why}")
        })?;
        if said.pointer("/status/allowed") == Some(&Value::Bool(true)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The component of OpenSDN that owns a workload: its reference.
pub(crate) fn component_of(workload: &Value) -> Option<&Value> {
    list(workload, "/metadata/ownerReferences").find(|owner| {
        let group = text(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
        group == TUNGSTEN_GROUP && COMPONENTS.iter().any(|facts| facts.kind == text(owner, "/kind"))
    })
}

/// The values by which an operator watches the namespaces of all these Managers, as `install` takes them; none where it watches
/// them already.
pub(crate) fn watching_all(managers: &[Value], watched: &[String]) -> Option<String> {
    let namespaces: BTreeSet<&str> = managers.iter().map(namespace).collect();
    let is_outside = |one: &&str| !watched.iter().any(|other| other == one);
    let all = || Vec::from_iter(namespaces.iter().copied()).join(",");
    let is_any_outside = namespaces.iter().any(is_outside);
    is_any_outside.then(|| format!("--set operator.watchedNamespaces={}", all()))
}

/// The question, in all namespaces where it is empty.
fn review(deployment: &Value, namespace: &str) -> Value {
    let (of, name) = account(deployment);
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": format!("system:serviceaccount:{of}:{name}"),
        "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{of}"), "system:authenticated"],
        "resourceAttributes": {
            "group": TUNGSTEN_GROUP, "resource": "managers", "verb": "update", "namespace": namespace}}})
}

fn account(deployment: &Value) -> (&str, &str) {
    let named = text(deployment, "/spec/template/spec/serviceAccountName");
    (namespace(deployment), if named.is_empty() { "default" } else { named })
}

async fn look(asker: &Asker, deployment: &Value) -> Result<TfOperator, String> {
    let owners = BTreeSet::from([text(deployment, "/metadata/uid").to_owned()]);
    let mut owned = Owned { owners, labels: match_labels(deployment) };
    let pods = pods(asker, namespace(deployment), &mut owned).await?;
    let version_of_olm = version_of_olm(asker, deployment).await;
    Ok(TfOperator { pods, version_of_olm, owned, ..TfOperator::of(deployment) })
}

/// Its pods that have not ended; one that is terminating may still write. The ReplicaSets by which they are found are added to
/// the owners.
async fn pods(asker: &Asker, namespace: &str, owned: &mut Owned) -> Result<Vec<String>, String> {
    let query = match owned.labels.as_str() {
        "" => String::new(),
        labels => {
            format!("?labelSelector={}", utf8_percent_encode(labels, NON_ALPHANUMERIC))
        }
    };
    let sets = asker.list(&format!("{APPS}/namespaces/{namespace}/replicasets{query}")).await;
    for set in &sets.or(Vec::new())? {
        if is_owned(set, &owned.owners) {
            owned.owners.insert(text(set, "/metadata/uid").to_owned());
        }
    }
    let pods = asker.list(&format!("/api/v1/namespaces/{namespace}/pods{query}")).await;
    let pods = pods.or(Vec::new())?;
    let its = pods.iter().filter(|pod| is_owned(pod, &owned.owners) && !has_ended(pod));
    Ok(its.map(|pod| name(pod).to_owned()).collect())
}

fn is_owned(object: &Value, owners: &BTreeSet<String>) -> bool {
    let mut its = list(object, "/metadata/ownerReferences");
    its.any(|owner| owner["controller"] == true && owners.contains(text(owner, "/uid")))
}

/// The one that owns it, if there is such an object: anyone may write what looks like it.
async fn version_of_olm(asker: &Asker, deployment: &Value) -> Option<String> {
    let mut owners = list(deployment, "/metadata/ownerReferences");
    let owner = owners.find(|owner| {
        text(owner, "/kind") == "ClusterServiceVersion"
            && text(owner, "/apiVersion").starts_with("operators.coreos.com/")
    })?;
    let (namespace, name) = (namespace(deployment), text(owner, "/name"));
    // A name may be anything there; that of an object is a segment of a path.
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    let path = format!("/apis/{OF_OLM}/namespaces/{namespace}/clusterserviceversions/{name}");
    let is_it = is_name
        && match asker.get(&path).await {
            Read::Known(stored) => text(&stored, "/metadata/uid") == text(owner, "/uid"),
            Read::Absent => false,
            // Then it counts: who has to do without would be undone.
            Read::Unknown(_) => true,
        };
    is_it.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::clients::of_tests;
    use crate::fake_api_server::{FakeApiServer, Reply, refusal};

    /// A cluster with a Deployment of that name in `own`, and another in `tf`, whose account may change Managers there.
    struct Cluster {
        reviews: fn(usize) -> Reply,
        pods: Value,
        version: Value,
    }

    const OWNER_OF_OLM: &str = "csv-uid";

    fn deployment(namespace: &str) -> Value {
        let owner = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "tf.v1", "uid": OWNER_OF_OLM});
        json!({"metadata": {"name": TF_OPERATOR, "namespace": namespace, "uid": format!("{namespace}-uid"), "ownerReferences": [owner]},
            "spec": {"replicas": 0, "selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                "template": {"spec": {"serviceAccountName": "operator"}}}})
    }

    fn owned(name: &str, uid: &str, by: &str, phase: &str) -> Value {
        json!({"metadata": {"name": name, "uid": uid, "ownerReferences": [{"controller": true, "uid": by}]}, "status": {"phase": phase}})
    }

    /// Each account is asked for everywhere, and then for `tf`.
    fn allowed_in_tf(before: usize) -> Reply {
        Reply::Document(201, "", json!({"status": {"allowed": before == 3}}))
    }

    async fn found(cluster: Cluster) -> Result<Vec<TfOperator>, String> {
        let server = FakeApiServer::start(move |request, before| {
            let items = |items: Value| Reply::Document(200, "", json!({ "items": items }));
            if request.ends_with("/apis/apps/v1/deployments") {
                items(json!([deployment("own"), deployment("tf")]))
            } else if request.ends_with("subjectaccessreviews") {
                (cluster.reviews)(before)
            } else if request.ends_with("replicasets") {
                items(json!([
                    owned("set", "set-uid", "tf-uid", ""),
                    owned("other", "other-uid", "another", "")
                ]))
            } else if request.ends_with("/pods") {
                items(cluster.pods.clone())
            } else {
                Reply::Document(200, "", json!({"metadata": {"uid": cluster.version}}))
            }
        });
        let asker = Asker::new(of_tests(server.url()));
        tf_operators(&asker, &["tf".to_owned()].into()).await
    }

    #[test]
    fn it_is_asked_for_the_account_with_the_groups_that_it_is_in() {
        let spec = &review(&deployment("tf"), "lab")["spec"];
        assert_eq!(spec["user"], "system:serviceaccount:tf:operator");
        let groups =
            json!(["system:serviceaccounts", "system:serviceaccounts:tf", "system:authenticated"]);
        assert_eq!(spec["groups"], groups);
        let asked = json!({"group": "tf.tungsten.io", "resource": "managers", "verb": "update", "namespace": "lab"});
        assert_eq!(spec["resourceAttributes"], asked);
        let nameless = review(&json!({"metadata": {"namespace": "tf"}}), "");
        assert_eq!(nameless["spec"]["user"], "system:serviceaccount:tf:default");
    }

    #[tokio::test]
    async fn what_may_change_managers_is_one_and_its_pods_are_those_of_its_replica_sets() {
        let pods = json!([
            owned("its", "1", "set-uid", "Running"),
            owned("ended", "2", "set-uid", "Succeeded"),
            owned("called-so", "3", "other-uid", "Running"),
            {"metadata": {"name": "labelled", "labels": {"a": ""}}, "status": {"phase": "Running"}}]);
        let cluster = Cluster { reviews: allowed_in_tf, pods, version: json!(OWNER_OF_OLM) };
        let all = found(cluster).await.unwrap();
        let [one] = &*all else { panic!("{all:?}") };
        assert_eq!((one.title().as_str(), &*one.pods), ("tf/tf-operator", &["its".to_owned()][..]));
        assert!(one.runs(), "it has no replicas, and a pod");
        assert_eq!(one.version_of_olm.as_deref(), Some("tf.v1"));
        assert_eq!(one.back(), "kubectl scale deployment tf-operator -n tf --replicas=1");
    }

    #[tokio::test]
    async fn an_owner_that_is_not_there_keeps_nothing_and_without_pods_it_does_not_run() {
        let cluster =
            Cluster { reviews: allowed_in_tf, pods: json!([]), version: json!("another") };
        let all = found(cluster).await.unwrap();
        assert_eq!((all[0].version_of_olm.as_deref(), all[0].runs()), (None, false));
    }

    #[tokio::test]
    async fn where_nobody_may_ask_for_rights_it_is_not_known() {
        let reviews = |_| refusal(403, "Forbidden", "no reviews for you");
        let cluster = Cluster { reviews, pods: json!([]), version: Value::Null };
        let why = found(cluster).await.unwrap_err();
        assert!(
            why.contains("own/operator may change Managers") && why.contains("no reviews"),
            "{why}"
        );
    }
}
