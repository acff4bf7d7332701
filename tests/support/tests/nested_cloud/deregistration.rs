//! Nodes that are deleted from the Config API, and those that only look like them.

use http::Method;
use opensdn_config_api::deregistration::{
    Deregistered, Expected, Fate, Marked, NodeKind, Why, Workloads, deregister, mark,
};
use opensdn_config_api::ownership::ClusterId;
use opensdn_testing::config_api::{Disturbance, Service, Settings, Times};
use serde_json::{Value, json};

use crate::cloud::{Cloud, cluster};

const SYSTEM: &str = "default-global-system-config";
const FABRIC: [&str; 4] = ["default-domain", "default-project", "ip-fabric", "__default__"];
/// More than any run has calls.
const MOST: usize = 40;

/// A cloud whose nodes are registered as the provisioner does it.
struct Nodes {
    cloud: Cloud,
    ours: ClusterId,
}

fn name_of(kind: NodeKind, name: &str) -> Vec<&str> {
    let parent = if kind == NodeKind::Control { &FABRIC[..] } else { &[SYSTEM][..] };
    parent.iter().copied().chain([name]).collect()
}

fn address_of(name: &str) -> String {
    format!("10.0.0.{}", name.trim_start_matches('n'))
}

fn create(cloud: &Cloud, kind: &str, parent: &str, object: Value) -> String {
    let mut object = object;
    object["parent_type"] = json!(parent);
    cloud.faults().create(kind, object).unwrap()
}

impl Nodes {
    fn new() -> Self {
        let cloud = Cloud::fake(Settings::default());
        create(&cloud, "routing-instance", "virtual-network", json!({"fq_name": FABRIC}));
        let nodes = Self { cloud, ours: cluster("ours") };
        for kind in NodeKind::ALL {
            nodes.register(kind, "n1");
            nodes.register(kind, "n2");
        }
        nodes.cloud.faults().forget_calls();
        nodes
    }

    /// As `provision_control.py`, `provision_vrouter.py` and the others.
    fn register(&self, kind: NodeKind, name: &str) -> String {
        let object = kind.object();
        if kind == NodeKind::Control {
            let router = json!({"router_type": "control-node", "vendor": "contrail",
                "address": address_of(name), "identifier": address_of(name)});
            let router = json!({"fq_name": name_of(kind, name), "bgp_router_parameters": router});
            let router = create(&self.cloud, object, "routing-instance", router);
            self.refer_from_system(&router);
            return router;
        }
        let field = format!("{}_ip_address", object.replace('-', "_"));
        let node = json!({"fq_name": name_of(kind, name), field: address_of(name)});
        let node = create(&self.cloud, object, "global-system-config", node);
        if kind == NodeKind::VirtualRouter {
            let vhost0 = json!({"fq_name": [SYSTEM, name, "vhost0"]});
            create(&self.cloud, "virtual-machine-interface", "virtual-router", vhost0);
        }
        node
    }

    /// The reference that keeps no control node from being deleted.
    fn refer_from_system(&self, router: &str) {
        let fake = self.cloud.faults();
        let system = fake.read("global-system-config", &[SYSTEM]).unwrap();
        let mut all = system["bgp_router_refs"].as_array().cloned().unwrap_or_default();
        all.push(json!({"uuid": router}));
        let uuid = system["uuid"].as_str().unwrap();
        fake.update(uuid, json!({"bgp_router_refs": all})).unwrap();
        fake.relax(uuid, router).unwrap();
    }

    fn expected(&self, kind: NodeKind) -> Expected<'_> {
        let address = address_of("n1").parse().unwrap();
        Expected { kind, name: "n1", address, sub_cluster: None, cluster: &self.ours }
    }

    async fn delete(&self, expected: &Expected<'_>, workloads: Workloads) -> Deregistered {
        deregister(&self.cloud.api(), expected, workloads).await.unwrap()
    }

    fn node(&self, kind: NodeKind, name: &str) -> Option<Value> {
        self.cloud.faults().read(kind.object(), &name_of(kind, name))
    }

    fn change(&self, kind: NodeKind, properties: Value) {
        let node = self.node(kind, "n1").unwrap();
        self.cloud.faults().update(node["uuid"].as_str().unwrap(), properties).unwrap();
    }

    fn deletions(&self) -> usize {
        self.cloud.faults().calls().iter().filter(|call| call.method == Method::DELETE).count()
    }
}

fn kinds(deregistered: &Deregistered) -> Vec<&str> {
    deregistered.deleted.iter().map(|one| one.kind.as_str()).collect()
}

fn why(deregistered: &Deregistered) -> String {
    let Fate::Left(why) = &deregistered.node else { panic!("{deregistered:?}") };
    why.to_string()
}

#[tokio::test]
async fn a_node_of_each_kind_is_deleted_with_what_upstream_deletes_and_no_other() {
    for kind in NodeKind::ALL {
        let nodes = Nodes::new();
        let done = nodes.delete(&nodes.expected(kind), Workloads::Respect).await;
        let expected = match kind {
            NodeKind::VirtualRouter => vec!["virtual-machine-interface", "virtual-router"],
            other => vec![other.object()],
        };
        assert_eq!((kinds(&done), &done.node), (expected, &Fate::Deleted), "{kind:?}");
        assert!(nodes.node(kind, "n1").is_none() && nodes.node(kind, "n2").is_some());
        for other in NodeKind::ALL.into_iter().filter(|other| *other != kind) {
            assert!(nodes.node(other, "n1").is_some(), "{other:?} with {kind:?}");
        }
        let again = nodes.delete(&nodes.expected(kind), Workloads::Respect).await;
        assert_eq!((again.deleted, again.node), (vec![], Fate::Absent), "{kind:?}");
    }
}

#[tokio::test]
async fn the_system_and_peers_refer_to_no_control_node_that_is_deleted() {
    let nodes = Nodes::new();
    let peer = nodes.node(NodeKind::Control, "n2").unwrap();
    let gone = nodes.node(NodeKind::Control, "n1").unwrap();
    let peers = json!({"bgp_router_refs": [{"uuid": gone["uuid"]}]});
    nodes.cloud.faults().update(peer["uuid"].as_str().unwrap(), peers).unwrap();
    let done = nodes.delete(&nodes.expected(NodeKind::Control), Workloads::Respect).await;
    assert_eq!(done.node, Fate::Deleted);
    let peer = nodes.node(NodeKind::Control, "n2").unwrap();
    assert_eq!(peer["bgp_router_refs"], json!([]));
    let system = nodes.cloud.faults().read("global-system-config", &[SYSTEM]).unwrap();
    assert_eq!(system["bgp_router_refs"][0]["uuid"], peer["uuid"]);
    assert_eq!(system["bgp_router_refs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_node_that_differs_in_anything_is_left() {
    for kind in NodeKind::ALL {
        let nodes = Nodes::new();
        let expected = nodes.expected(kind);
        let other = Expected { address: address_of("n2").parse().unwrap(), ..expected };
        let done = nodes.delete(&other, Workloads::Ignore).await;
        assert!(
            why(&done).contains("its address is \"10.0.0.1\" and not \"10.0.0.2\""),
            "{done:?}"
        );
        let other = Expected { sub_cluster: Some("edge"), ..expected };
        let done = nodes.delete(&other, Workloads::Ignore).await;
        assert!(why(&done).contains("its sub-cluster is \"\" and not \"edge\""), "{done:?}");
        mark(&nodes.cloud.api(), &expected).await.unwrap();
        let theirs = cluster("theirs");
        let other = Expected { cluster: &theirs, ..expected };
        let done = nodes.delete(&other, Workloads::Ignore).await;
        assert!(why(&done).contains("its cluster is"), "{done:?}");
        assert_eq!((done.deleted, nodes.deletions()), (vec![], 0));
        assert_eq!(nodes.delete(&expected, Workloads::Respect).await.node, Fate::Deleted);
    }
}

#[tokio::test]
async fn a_router_of_the_network_is_no_control_node() {
    for kind in [json!("router"), json!("bgpaas-client"), json!(null)] {
        let nodes = Nodes::new();
        let router = json!({"router_type": kind, "vendor": "mx", "address": "10.0.0.1"});
        nodes.change(NodeKind::Control, json!({"bgp_router_parameters": router}));
        let done = nodes.delete(&nodes.expected(NodeKind::Control), Workloads::Ignore).await;
        assert!(why(&done).contains("its type is"), "{done:?}");
        assert_eq!(nodes.deletions(), 0);
    }
}

#[tokio::test]
async fn a_node_of_a_sub_cluster_is_deleted_as_one_of_it_alone() {
    for kind in [NodeKind::Control, NodeKind::VirtualRouter] {
        let nodes = Nodes::new();
        let edge = json!({"fq_name": [SYSTEM, "edge"]});
        let edge = create(&nodes.cloud, "sub-cluster", "global-system-config", edge);
        nodes.change(kind, json!({"sub_cluster_refs": [{"uuid": edge}]}));
        let expected = nodes.expected(kind);
        for other in [None, Some("core")] {
            let other = Expected { sub_cluster: other, ..expected };
            let done = nodes.delete(&other, Workloads::Ignore).await;
            assert!(why(&done).contains("its sub-cluster is \"edge\""), "{done:?}");
        }
        let own = Expected { sub_cluster: Some("edge"), ..expected };
        assert_eq!(nodes.delete(&own, Workloads::Respect).await.node, Fate::Deleted);
    }
}

#[tokio::test]
async fn a_virtual_router_with_virtual_machines_is_left_unless_that_is_ignored() {
    let nodes = Nodes::new();
    let machine = nodes.cloud.faults().create("virtual-machine", json!({"fq_name": ["vm-1"]}));
    let machine = json!({"virtual_machine_refs": [{"uuid": machine.unwrap()}]});
    nodes.change(NodeKind::VirtualRouter, machine);
    let expected = nodes.expected(NodeKind::VirtualRouter);
    let done = nodes.delete(&expected, Workloads::Respect).await;
    assert_eq!(why(&done), "it is in use by virtual-machine vm-1: delete these first");
    assert_eq!((done.deleted, nodes.deletions()), (vec![], 0));
    let done = nodes.delete(&expected, Workloads::Ignore).await;
    assert_eq!(done.node, Fate::Deleted);
    assert!(nodes.cloud.faults().read("virtual-machine", &["vm-1"]).is_some());
}

#[tokio::test]
async fn nothing_is_deleted_of_a_virtual_router_that_the_config_api_would_not_delete() {
    type Setup = (&'static str, fn(&Nodes));
    let setups: [Setup; 3] = [
        ("virtual-machine-interface default-global-system-config:n1:tap1", |nodes| {
            let tap = json!({"fq_name": [SYSTEM, "n1", "tap1"]});
            create(&nodes.cloud, "virtual-machine-interface", "virtual-router", tap);
        }),
        ("instance-ip ip-1", |nodes| {
            let node = nodes.node(NodeKind::VirtualRouter, "n1").unwrap();
            let refs = json!([{"uuid": node["uuid"]}]);
            let ip = json!({"fq_name": ["ip-1"], "virtual_router_refs": refs});
            nodes.cloud.faults().create("instance-ip", ip).unwrap();
        }),
        ("physical-router default-global-system-config:tor", |nodes| {
            let node = nodes.node(NodeKind::VirtualRouter, "n1").unwrap();
            let refs = json!([{"uuid": node["uuid"]}]);
            let router = json!({"fq_name": [SYSTEM, "tor"], "virtual_router_refs": refs});
            create(&nodes.cloud, "physical-router", "global-system-config", router);
        }),
    ];
    for (user, set_up) in setups {
        let nodes = Nodes::new();
        set_up(&nodes);
        let expected = nodes.expected(NodeKind::VirtualRouter);
        for workloads in [Workloads::Respect, Workloads::Ignore] {
            let done = nodes.delete(&expected, workloads).await;
            assert_eq!(why(&done), format!("it is in use by {user}: delete these first"));
            assert_eq!((done.deleted, nodes.deletions()), (vec![], 0));
        }
    }
}

#[tokio::test]
async fn what_refers_to_a_node_that_is_refused_is_named() {
    let nodes = Nodes::new();
    let gone = nodes.node(NodeKind::Control, "n1").unwrap();
    let refs = json!([{"uuid": gone["uuid"]}]);
    let router = json!({"fq_name": [SYSTEM, "mx"], "bgp_router_refs": refs});
    create(&nodes.cloud, "physical-router", "global-system-config", router);
    let done = nodes.delete(&nodes.expected(NodeKind::Control), Workloads::Ignore).await;
    assert!(why(&done).contains("physical-router default-global-system-config:mx"), "{done:?}");
    assert!(nodes.node(NodeKind::Control, "n1").is_some());

    let vhost0 = nodes.cloud.faults().read("virtual-machine-interface", &[SYSTEM, "n1", "vhost0"]);
    let refs = json!([{"uuid": vhost0.unwrap()["uuid"]}]);
    let ip = json!({"fq_name": ["ip-1"], "virtual_machine_interface_refs": refs});
    nodes.cloud.faults().create("instance-ip", ip).unwrap();
    let done = nodes.delete(&nodes.expected(NodeKind::VirtualRouter), Workloads::Ignore).await;
    assert_eq!(why(&done), "it is in use by instance-ip ip-1: delete these first");
    assert!(done.deleted.is_empty() && nodes.node(NodeKind::VirtualRouter, "n1").is_some());
}

#[tokio::test]
async fn a_deletion_that_is_answered_and_not_done_is_repeated_and_then_given_up() {
    let nodes = Nodes::new();
    let expected = nodes.expected(NodeKind::VirtualRouter);
    nodes.cloud.faults().lose_deletes(Times::Next(1));
    // Of vhost0, so that the virtual router itself is refused.
    let done = nodes.delete(&expected, Workloads::Respect).await;
    assert!(matches!(&done.node, Fate::Left(Why::InUse(_))), "{done:?}");
    assert_eq!(nodes.delete(&expected, Workloads::Respect).await.node, Fate::Deleted);

    let nodes = Nodes::new();
    let expected = nodes.expected(NodeKind::Config);
    nodes.cloud.faults().lose_deletes(Times::Next(1));
    assert_eq!(nodes.delete(&expected, Workloads::Respect).await.node, Fate::Deleted);

    let nodes = Nodes::new();
    let expected = nodes.expected(NodeKind::Config);
    nodes.cloud.faults().lose_deletes(Times::Always);
    let done = nodes.delete(&expected, Workloads::Respect).await;
    assert_eq!((done.deleted, done.node), (vec![], Fate::Left(Why::Unsettled)));
    assert!(nodes.deletions() <= 4, "{}", nodes.deletions());
}

#[tokio::test]
async fn it_gets_over_any_call_that_fails_once() {
    for disturbance in [Disturbance::Cut, Disturbance::Unanswered, Disturbance::Unavailable] {
        for kind in [NodeKind::Control, NodeKind::VirtualRouter] {
            for after in 0..MOST {
                let nodes = Nodes::new();
                let fake = nodes.cloud.faults();
                fake.disturb(Service::ConfigApi, disturbance, Times::Once { after });
                let done = nodes.delete(&nodes.expected(kind), Workloads::Respect).await;
                assert_eq!(done.node, Fate::Deleted, "{disturbance:?} at {after}");
                assert!(nodes.node(kind, "n1").is_none() && nodes.node(kind, "n2").is_some());
                if fake.calls().len() <= after {
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_mark_is_set_once_and_not_on_another_node() {
    let nodes = Nodes::new();
    let (api, expected) = (nodes.cloud.api(), nodes.expected(NodeKind::Analytics));
    let other = Expected { address: "10.0.0.9".parse().unwrap(), ..expected };
    assert!(matches!(mark(&api, &other).await.unwrap(), Marked::Another(_)));
    let missing = Expected { name: "n3", ..expected };
    assert_eq!(mark(&api, &missing).await.unwrap(), Marked::Absent);
    assert_eq!(mark(&api, &expected).await.unwrap(), Marked::Marked);
    let marked = nodes.node(NodeKind::Analytics, "n1").unwrap();
    let pair = json!({"key": "opensdn/cluster", "value": nodes.ours.to_string()});
    assert_eq!(marked["annotations"]["key_value_pair"], json!([pair]));
    assert_eq!(mark(&api, &expected).await.unwrap(), Marked::Marked);
    assert_eq!(nodes.node(NodeKind::Analytics, "n1").unwrap(), marked);
    let theirs = cluster("theirs");
    let theirs = Expected { cluster: &theirs, ..expected };
    assert!(matches!(mark(&api, &theirs).await.unwrap(), Marked::Another(_)));
}
