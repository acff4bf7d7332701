//! The components around one (pure): those of the same Manager, also such as are yet to come, or, of one that stands
//! alone, the others that do.
//! Where they are is known by their nodes before a pod of them runs, so that files can be there from the start and
//! stay the same while pods come and go.

use std::collections::BTreeMap;
use std::iter;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::component::{COMPONENTS, Component, Setting};
use opensdn_crds::status::{CommonStatus, READY};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::kind::{Kind, Workload};
use crate::network::Network;
use crate::node::{Node, nodes_of};
use crate::object::controller_of;

/// A component, as others see it.
#[derive(Clone, Debug)]
pub struct Peer {
    facts: &'static Component,
    /// Its name.
    pub name: String,
    /// Whether the Manager has it, and has not written its object.
    is_planned: bool,
    /// Whether it can do its work.
    pub is_active: bool,
    /// How it is.
    pub state: String,
    /// The addresses of its members, in order.
    pub addresses: Vec<String>,
    /// Where its members listen, by the addresses of their nodes, as far as it is known that it is in the network that
    /// is given. The others are known by their nodes.
    pub listens: BTreeMap<String, String>,
    settings: Value,
}

impl Peer {
    /// Its kind and name.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.facts.kind, self.name)
    }

    /// The port that the field of its settings has, or that it has without it.
    #[must_use]
    pub fn port(&self, field: &str) -> u16 {
        let given = self.settings.get(field).and_then(Value::as_u64);
        let given = given.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0);
        let mut ports = self.facts.ports.iter();
        let default = ports.find(|port| {
            matches!(port.setting, Setting::Field(name) | Setting::ShownAs(name) if name == field)
        });
        given.unwrap_or_else(|| default.map_or(0, |port| port.number))
    }

    /// A number of its settings.
    #[must_use]
    pub fn number(&self, field: &str, default: i64) -> i64 {
        self.settings.get(field).and_then(Value::as_i64).unwrap_or(default)
    }

    /// What its settings have there.
    #[must_use]
    pub fn setting(&self, field: &str) -> Option<&Value> {
        self.settings.get(field)
    }

    /// A text of its settings that is not empty.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.settings.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Each of its members with the port that the field has: `192.0.2.1:6389`.
    #[must_use]
    pub fn endpoints(&self, field: &str) -> Vec<String> {
        let port = self.port(field);
        self.addresses.iter().map(|address| format!("{address}:{port}")).collect()
    }
}

/// All components around one.
#[derive(Clone, Debug, Default)]
pub struct Peers(Vec<Peer>);

impl Peers {
    /// Those around this object. `workload_of` says what keeps the pods of a kind.
    #[must_use]
    pub fn read(
        cache: &Cache,
        object: &DynamicObject,
        nodes: &[Node],
        workload_of: fn(&str) -> Workload,
    ) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        let family = |one: &DynamicObject| controller_of(one).map(|owner| owner.uid.clone());
        let ours = family(object);
        let mut peers = Vec::new();
        for facts in COMPONENTS {
            let all = cache.list(Kind::Component(facts.kind), &namespace).into_iter();
            let of_family =
                all.filter(|one| family(one) == ours && one.metadata.deletion_timestamp.is_none());
            peers.extend(
                of_family.map(|one| {
                    peer(facts, one.name_any(), &one.data, nodes, workload_of(facts.kind))
                }),
            );
        }
        Self(peers)
    }

    /// With those that the Manager has and whose objects are not there, which have these names and specs. What is made of
    /// a component is the same before and after its Manager has come to write the next one.
    #[must_use]
    pub fn with_planned<'a>(
        mut self,
        planned: impl IntoIterator<Item = (&'static Component, &'a str, &'a Value)>,
        nodes: &[Node],
        workload_of: fn(&str) -> Workload,
    ) -> Self {
        for (facts, name, spec) in planned {
            if self.of_kind(facts.kind).any(|peer| peer.name == name) {
                continue;
            }
            let data = json!({ "spec": spec });
            let planned = peer(facts, name.to_owned(), &data, nodes, workload_of(facts.kind));
            let state = "its object is not written: the Manager's status says why".to_owned();
            self.0.push(Peer { is_planned: true, state, ..planned });
        }
        let place = |kind: &str| COMPONENTS.iter().position(|facts| facts.kind == kind);
        self.0.sort_by(|one, other| {
            (place(one.facts.kind), &one.name).cmp(&(place(other.facts.kind), &other.name))
        });
        self
    }

    /// Those of a kind, by name.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Peer> {
        self.0.iter().filter(move |peer| peer.facts.kind == kind)
    }

    /// The first of a kind, by name; one that is not there, and may never be, only where there is no other.
    #[must_use]
    pub fn first(&self, kind: &str) -> Option<&Peer> {
        let all = || self.0.iter().filter(|peer| peer.facts.kind == kind);
        all().find(|peer| !peer.is_planned).or_else(|| all().next())
    }

    /// The endpoints of all members of the first of a kind that is wanted, with a space between.
    #[must_use]
    pub fn list(&self, kind: &str, field: &str) -> String {
        self.first(kind).map(|peer| peer.endpoints(field).join(" ")).unwrap_or_default()
    }

    /// Those that can do their work.
    #[must_use]
    pub fn active(&self) -> Vec<String> {
        self.0.iter().filter(|peer| peer.is_active).map(Peer::title).collect()
    }

    /// What is needed and not there.
    #[must_use]
    pub fn missing(&self, facts: &Component) -> Vec<&'static str> {
        let needs = facts.needs.iter().map(|need| need.kind);
        needs.filter(|kind| self.first(kind).is_none()).collect()
    }

    /// What is needed and there, and cannot do its work yet: the first of it.
    #[must_use]
    pub fn first_not_active(&self, facts: &Component) -> Option<&Peer> {
        let needs = facts.needs.iter().map(|need| need.kind);
        needs.flat_map(|kind| self.of_kind(kind)).find(|peer| !peer.is_active)
    }
}

fn peer(
    facts: &'static Component,
    name: String,
    data: &Value,
    nodes: &[Node],
    workload: Workload,
) -> Peer {
    let status = data.get("status").cloned().unwrap_or_default();
    let status: CommonStatus = serde_json::from_value(status).unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let ready = conditions.into_iter().find(|one| one.type_ == READY);
    let state = ready.and_then(|ready| ready.message).filter(|message| !message.is_empty());
    let part = |pointer: &str| data.pointer(pointer).cloned().unwrap_or_default();
    let selector: Option<BTreeMap<String, String>> =
        serde_json::from_value(part("/spec/commonConfiguration/nodeSelector")).unwrap_or_default();
    let settings = part("/spec/serviceConfiguration");
    let network = settings.get("dataSubnet").and_then(Value::as_str).and_then(Network::parse);
    let (mut addresses, mut listens) = (Vec::new(), BTreeMap::new());
    let mut homes = nodes_of(nodes, selector.as_ref(), workload);
    // Where no node is wanted no pod is taken away, and others are to find those that there are.
    if homes.is_empty() {
        let pods = status.nodes.iter().flat_map(BTreeMap::values);
        let places: Vec<&String> = pods.filter_map(|pod| pod.hostname.as_ref()).collect();
        homes = nodes.iter().filter(|node| places.contains(&&node.name)).cloned().collect();
    }
    for node in homes {
        let Some(address) = node.address else { continue };
        let mut all = iter::once(&address).chain(&node.others);
        let known = network.and_then(|network| all.find(|one| network.has(one))).cloned();
        if let Some(known) = &known {
            listens.insert(address.clone(), known.clone());
        }
        addresses.push(known.unwrap_or(address));
    }
    addresses.sort_unstable();
    Peer {
        facts,
        name,
        is_planned: false,
        is_active: status.active.unwrap_or_default(),
        state: state.unwrap_or_else(|| "nothing is known of it yet".to_owned()),
        addresses,
        listens,
        settings,
    }
}

#[cfg(test)]
mod tests {
    use opensdn_runtime::watch::Event;

    use super::*;
    use crate::cache::Feed;
    use crate::components::workload_of;

    fn node(name: &str, address: &str, labels: Value) -> Node {
        let labels = serde_json::from_value(labels).unwrap();
        Node {
            name: name.into(),
            labels,
            address: Some(address.into()),
            others: Vec::new(),
            drained_for: None,
            is_lost: false,
            taints: Vec::new(),
        }
    }

    fn object(kind: &str, name: &str, owner: Option<&str>, rest: Value) -> Value {
        let owner = owner.map(|uid| json!({"apiVersion": "a/v1", "kind": "Manager", "name": uid, "uid": uid, "controller": true}));
        let mut object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": "tf", "uid": name, "resourceVersion": "1"}});
        object["metadata"]["ownerReferences"] = json!(owner.into_iter().collect::<Vec<_>>());
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        object
    }

    fn peers(of: &Value, others: &[Value], nodes: &[Node]) -> Peers {
        let cache = Cache::default();
        for other in others {
            let kind = Component::of_kind(other["kind"].as_str().unwrap()).unwrap().kind;
            Feed::new(Kind::Component(kind), "").take(&cache, Event::Apply(other.clone()));
        }
        Peers::read(&cache, &serde_json::from_value(of.clone()).unwrap(), nodes, workload_of)
    }

    #[test]
    fn members_are_known_by_nodes_and_ports_by_settings_or_the_table() {
        let nodes = [
            node(
                "b",
                "192.0.2.2",
                json!({"cache": "", "node-role.kubernetes.io/control-plane": ""}),
            ),
            node("a", "192.0.2.1", json!({"node-role.kubernetes.io/master": ""})),
            node("c", "192.0.2.3", json!({"cache": ""})),
        ];
        let it = object("QueryEngine", "q", None, json!({}));
        let selector = json!({"commonConfiguration": {"nodeSelector": {"cache": ""}}});
        let redis =
            object("Redis", "r", None, json!({"spec": selector, "status": {"active": true}}));
        let analytics = object(
            "Analytics",
            "a",
            None,
            json!({"spec": {"serviceConfiguration": {"collectorPort": 1}}, "status": {}}),
        );
        let peers = peers(&it, &[redis, analytics], &nodes);
        assert_eq!(peers.list("Redis", "redisPort"), "192.0.2.2:6389 192.0.2.3:6389");
        assert_eq!(peers.list("Analytics", "collectorPort"), "192.0.2.1:1 192.0.2.2:1");
        assert_eq!(peers.list("Config", "apiPort"), "");
        let facts = Component::of_kind("QueryEngine").unwrap();
        assert_eq!(peers.missing(facts), ["Cassandra", "Zookeeper", "Rabbitmq", "Config"]);
        assert_eq!(peers.first_not_active(facts).map(Peer::title), Some("Analytics a".into()));
    }

    #[test]
    fn where_no_node_is_wanted_members_are_known_by_the_pods_that_there_are() {
        let nodes = [("a", "192.0.2.1"), ("b", "192.0.2.2"), ("c", "192.0.2.3")]
            .map(|(name, address)| node(name, address, json!({"cache": ""})));
        let of = |label: &str| {
            let spec = json!({"commonConfiguration": {"nodeSelector": {label: ""}}});
            let pods = json!({"r-0": {"hostname": "c", "ip": "192.0.2.3"}, "r-1": {"hostname": "a", "ip": "192.0.2.1"}});
            let redis =
                object("Redis", "r", None, json!({"spec": spec, "status": {"nodes": pods}}));
            let it = object("Webui", "w", None, json!({}));
            peers(&it, &[redis], &nodes).first("Redis").unwrap().addresses.clone()
        };
        assert_eq!(of("typo"), ["192.0.2.1", "192.0.2.3"]);
        assert_eq!(of("cache"), ["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
    }

    #[test]
    fn who_listens_in_a_network_of_its_own_is_known_by_the_address_there() {
        let mut nodes =
            [("a", "192.0.2.1"), ("b", "192.0.2.2"), ("c", "192.0.2.3")].map(|(name, address)| {
                node(name, address, json!({"node-role.kubernetes.io/master": ""}))
            });
        nodes[0].others = vec!["10.1.1.1".into(), "10.1.0.9".into()];
        nodes[1].others = vec!["10.1.0.2".into()];
        let spec = json!({"spec": {"serviceConfiguration": {"dataSubnet": "10.1.0.0/24"}}});
        let it = object("Webui", "w", None, json!({}));
        let peers = peers(&it, &[object("Control", "c", None, spec)], &nodes);
        let peer = peers.first("Control").unwrap();
        assert_eq!(peer.addresses, ["10.1.0.2", "10.1.0.9", "192.0.2.3"]);
        let listens: Vec<_> = peer.listens.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(listens, [("192.0.2.1", "10.1.0.9"), ("192.0.2.2", "10.1.0.2")]);
    }

    #[test]
    fn a_service_that_is_yet_to_come_is_there_already_and_cannot_do_its_work() {
        let nodes = [node("a", "192.0.2.1", json!({"node-role.kubernetes.io/master": ""}))];
        let it = object("Webui", "w", Some("m"), json!({}));
        let redis = object("Redis", "b", Some("m"), json!({"status": {"active": true}}));
        let spec = json!({"serviceConfiguration": {"redisPort": 1}});
        let facts = |kind| Component::of_kind(kind).unwrap();
        let planned = [
            (facts("Zookeeper"), "z", &spec),
            (facts("Redis"), "b", &spec),
            (facts("Redis"), "a", &spec),
        ];
        let peers = peers(&it, &[redis], &nodes).with_planned(planned, &nodes, workload_of);
        let found: Vec<_> = peers.of_kind("Redis").map(|one| (&*one.name, one.is_active)).collect();
        assert_eq!(found, [("a", false), ("b", true)]);
        assert_eq!(peers.first("Redis").unwrap().name, "b", "one that is there wins");
        let state = &peers.of_kind("Redis").next().unwrap().state;
        assert!(state.contains("Manager's status"), "{state}");
        assert_eq!(peers.first("Zookeeper").unwrap().addresses, ["192.0.2.1"]);
    }

    #[test]
    fn those_of_another_manager_are_none() {
        let redis = |name: &str, owner| object("Redis", name, owner, json!({}));
        let all = [redis("mine", Some("m")), redis("other", Some("n")), redis("alone", None)];
        let of = |owner| {
            let peers = peers(&object("Webui", "w", owner, json!({})), &all, &[]);
            peers.of_kind("Redis").map(|peer| peer.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!((of(Some("m")), of(None)), (vec!["mine".to_owned()], vec!["alone".to_owned()]));
    }
}
