//! How many pods lose their network with the custom resources: those on nodes of a vRouter, but for those that have the
//! network of their node.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::snapshot::ask::Asker;
use crate::snapshot::tf_operator::component_of;
use crate::snapshot::{has_ended, list, text};

/// The pods that a vRouter gives their network to, and its nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NetworkLoss {
    /// Nodes on which a vRouter is.
    pub(crate) nodes: usize,
    /// Pods on these nodes that are not on the network of their node.
    pub(crate) pods: usize,
}

/// What is kept of a pod: there may be very many.
struct Pod {
    node: String,
    of_vrouter: bool,
    on_host_network: bool,
}

impl NetworkLoss {
    /// Counts them, a page of the list of pods at a time.
    ///
    /// # Errors
    /// Why it is not known.
    pub(crate) async fn of(asker: &Asker) -> Result<Self, String> {
        let sets = asker.picked("/apis/apps/v1/daemonsets", vrouter_set).await.or(Vec::new())?;
        let sets: BTreeSet<String> = sets.into_iter().collect();
        if sets.is_empty() {
            return Ok(Self::default());
        }
        let pods = asker.picked("/api/v1/pods", |stored| pod(stored, &sets)).await;
        Ok(Self::counted(&pods.or(Vec::new())?))
    }

    fn counted(pods: &[Pod]) -> Self {
        let nodes = pods.iter().filter(|pod| pod.of_vrouter).map(|pod| pod.node.as_str());
        let nodes: BTreeSet<&str> = nodes.collect();
        let loses = |pod: &&Pod| !pod.on_host_network && nodes.contains(pod.node.as_str());
        Self { nodes: nodes.len(), pods: pods.iter().filter(loses).count() }
    }

    /// What that is for people; nothing where no node has a vRouter.
    pub(crate) fn text(self) -> Option<String> {
        let counted = |number: usize, word: &str| match number {
            1 => format!("1 {word}"),
            _ => format!("{number} {word}s"),
        };
        let nodes = counted(self.nodes, "node");
        match (self.nodes, self.pods) {
            (0, _) => None,
            (_, 0) => Some(format!(
                "pods on {nodes} would get their network from vRouter: new ones get none"
            )),
            (_, 1) => Some(format!("1 pod on {nodes} gets its network from vRouter and loses it")),
            (_, pods) => {
                Some(format!("{pods} pods on {nodes} get their network from vRouter and lose it"))
            }
        }
    }
}

/// The UID of a DaemonSet that ends with a Vrouter.
fn vrouter_set(stored: &Value) -> Option<String> {
    let owner = component_of(stored)?;
    (text(owner, "/kind") == "Vrouter").then(|| text(stored, "/metadata/uid").to_owned())
}

/// A pod that is on a node and has not ended.
fn pod(stored: &Value, sets: &BTreeSet<String>) -> Option<Pod> {
    let node = text(stored, "/spec/nodeName");
    if node.is_empty() || has_ended(stored) {
        return None;
    }
    let mut owners = list(stored, "/metadata/ownerReferences");
    Some(Pod {
        node: node.to_owned(),
        of_vrouter: owners.any(|owner| sets.contains(text(owner, "/uid"))),
        on_host_network: stored.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true),
    })
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};
    use serde_json::json;

    use super::*;
    use crate::fake_api_server::{FakeApiServer, Reply};

    fn owned(uid: &str, owner: Value) -> Value {
        json!({"metadata": {"name": uid, "uid": uid, "namespace": "tf", "ownerReferences": [owner]}})
    }

    fn stored_pod(node: &str, owner: &str, on_host_network: bool, phase: &str) -> Value {
        let mut pod = owned("p", json!({"uid": owner}));
        pod["spec"] = json!({"nodeName": node, "hostNetwork": on_host_network});
        pod["status"] = json!({"phase": phase});
        pod
    }

    #[tokio::test]
    async fn pods_on_nodes_of_a_vrouter_are_counted_over_all_pages() {
        let vrouter =
            json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter", "name": "v"});
        let other =
            json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Control", "name": "c"});
        let sets =
            json!({"items": [owned("vrouter", vrouter), owned("other", other)], "metadata": {}});
        let first = [
            stored_pod("w1", "vrouter", true, "Running"),
            stored_pod("w1", "a", false, "Running"),
            stored_pod("w1", "a", false, "Succeeded"),
            stored_pod("w2", "a", false, "Pending"),
        ];
        let second = [
            stored_pod("w2", "vrouter", true, "Running"),
            stored_pod("w3", "other", true, "Running"),
            stored_pod("w3", "a", false, "Running"),
            stored_pod("", "a", false, "Pending"),
        ];
        let server = FakeApiServer::start(move |request, before| {
            let document = match before {
                _ if request.contains("/daemonsets") => sets.clone(),
                0 => json!({"items": first, "metadata": {"continue": "next"}}),
                _ => json!({"items": second, "metadata": {}}),
            };
            Reply::Document(200, "", document)
        });
        let mut config = Config::new(server.url().parse().unwrap());
        config.proxy_url = None;
        let asker = Asker::new(Client::try_from(config).unwrap());
        let loss = NetworkLoss::of(&asker).await.unwrap();
        assert_eq!(loss, NetworkLoss { nodes: 2, pods: 2 });
        let said = loss.text().unwrap();
        assert_eq!(said, "2 pods on 2 nodes get their network from vRouter and lose it");
    }

    #[test]
    fn where_no_node_has_a_vrouter_nothing_is_said() {
        assert_eq!(NetworkLoss::default().text(), None);
        let one = NetworkLoss { nodes: 1, pods: 1 }.text().unwrap();
        assert_eq!(one, "1 pod on 1 node gets its network from vRouter and loses it");
        assert!(NetworkLoss { nodes: 3, pods: 0 }.text().unwrap().ends_with("new ones get none"));
    }
}
