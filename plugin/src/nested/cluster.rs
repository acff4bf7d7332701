//! What the nested cluster says of itself: its nodes, its API's address, and the uuid by which it is known in the cloud.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use opensdn_nested::Fact;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::snapshot::ask::Asker;
use crate::snapshot::{Read, list, name, text};

/// What the nested cluster says of itself.
pub(crate) struct NestedFacts {
    /// The uuid of its namespace kube-system, which no other cluster has.
    pub(crate) id: String,
    /// The InternalIPs of the nodes by their names.
    pub(crate) nodes: Fact<BTreeMap<String, Ipv4Addr>>,
    /// The ClusterIP of the Service `kubernetes`.
    pub(crate) api_service: Fact<Ipv4Addr>,
}

impl NestedFacts {
    /// # Errors
    /// The API server does not answer, or the namespace kube-system cannot be read, and so it is not known which
    /// cluster this is.
    pub(crate) async fn ask(asker: &Asker, server: &str) -> Result<Self, Failure> {
        asker.version(server).await?;
        let (system, nodes, service) = futures::join!(
            asker.get("/api/v1/namespaces/kube-system"),
            asker.list("/api/v1/nodes"),
            asker.get("/api/v1/namespaces/default/services/kubernetes"),
        );
        Ok(Self {
            id: id(&system)?,
            nodes: known(nodes, |nodes| nodes_of(nodes)),
            api_service: known(service, api),
        })
    }
}

fn id(system: &Read<Value>) -> Result<String, Failure> {
    let why = match system {
        Read::Known(namespace) => match text(namespace, "/metadata/uid") {
            "" => "it has no uid",
            uid => return Ok(uid.to_owned()),
        },
        Read::Absent => "it is not there",
        Read::Unknown(why) => why,
    };
    let message = format!(
        "the namespace kube-system cannot be read, by whose uid the cluster is known: {why}"
    );
    let hint = "your user needs the right to get namespaces";
    Err(Failure::new(Exit::Unreachable, "unknown-cluster", message, hint))
}

fn known<T, U>(read: Read<T>, of: impl FnOnce(&T) -> Result<U, String>) -> Fact<U> {
    match read {
        Read::Known(value) => of(&value).map_or_else(Fact::Unknown, Fact::Known),
        Read::Absent => Fact::Unknown("the cluster does not have it".to_owned()),
        Read::Unknown(why) => Fact::Unknown(why),
    }
}

/// Kubernetes puts the address that pods are known by, `status.hostIP`, first.
fn nodes_of(nodes: &[Value]) -> Result<BTreeMap<String, Ipv4Addr>, String> {
    let address = |node: &Value| {
        let mut all =
            list(node, "/status/addresses").filter(|one| text(one, "/type") == "InternalIP");
        let found = all.find_map(|one| text(one, "/address").parse::<Ipv4Addr>().ok());
        found.ok_or_else(|| format!("the node {} has no InternalIP of IPv4", name(node)))
    };
    nodes.iter().map(|node| Ok((name(node).to_owned(), address(node)?))).collect()
}

fn api(service: &Value) -> Result<Ipv4Addr, String> {
    let ip = text(service, "/spec/clusterIP");
    ip.parse()
        .map_err(|_| format!("the Service kubernetes has the ClusterIP {ip:?}, not one of IPv4"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{api, id, nodes_of};
    use crate::snapshot::Read;

    #[test]
    fn a_node_is_known_by_its_first_internal_address_of_ipv4() {
        let node = json!({"metadata": {"name": "a"}, "status": {"addresses": [
            {"type": "Hostname", "address": "a"},
            {"type": "InternalIP", "address": "fd00::1"},
            {"type": "InternalIP", "address": "10.0.0.5"},
            {"type": "InternalIP", "address": "10.0.0.6"},
        ]}});
        let nodes = nodes_of(&[node]).unwrap();
        assert_eq!(nodes["a"].to_string(), "10.0.0.5");
        let bare = json!({"metadata": {"name": "b"}});
        assert!(nodes_of(&[bare]).unwrap_err().contains("node b"));
    }

    #[test]
    fn without_kube_system_it_is_not_known_which_cluster_this_is() {
        let namespace = json!({"metadata": {"uid": "1-2-3"}});
        assert_eq!(id(&Read::Known(namespace)).unwrap(), "1-2-3");
        let failure = id(&Read::Unknown("forbidden".to_owned())).unwrap_err();
        assert!(failure.message.contains("forbidden"), "{failure:?}");
    }

    #[test]
    fn a_service_without_an_address_is_not_taken_for_one() {
        assert!(api(&json!({"spec": {"clusterIP": "None"}})).is_err());
        assert_eq!(
            api(&json!({"spec": {"clusterIP": "10.96.0.1"}})).unwrap().to_string(),
            "10.96.0.1"
        );
    }
}
