//! Worlds of each part: one in which all is well, one in which something is not, one in which it cannot be known.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use opensdn_config_api::link_local::{Key, Row, Target};
use opensdn_config_api::ownership::Records;
use opensdn_crds::nested::VirtualNetwork;
use opensdn_crds::nested_cluster::{Connectivity, FabricService, NestedClusterSpec, Services};
use opensdn_nested::live::{NodeNetwork, Protocol};
use opensdn_nested::{
    Choices, Fact, Input, Kubernetes, Live, Naming, Permissions, Plan, Profile, plan,
};
use opensdn_node_probe::{
    By, Cni, CniFile, NodeFindings, Question, Reached, Reply, Seen, ServiceFinding, WantedService,
};
use serde_json::{Value, json};

use super::pods::PodAnswers;
use super::services::targets;
use super::workloads::Workloads;
use super::{NestedVerification, Part, Verified, World, verify};
use crate::checks::report::Outcome;
use crate::probe::unseen::unseen;
use crate::probe::{Answer, Answers};
use crate::snapshot::Read;

mod cloud;
mod cluster;
mod pods;

const API: &str = "10.96.0.1:443";
const MARK: &str = "opensdn-probe-1";
const NODES: [&str; 2] = ["m1", "w1"];

fn input(connectivity: Connectivity) -> Input {
    let service = |node: &str| FabricService { addresses: vec![node.to_owned()], port: None };
    let spec = NestedClusterSpec {
        cluster_name: "a".to_owned(),
        connectivity: Some(connectivity),
        cluster_network: VirtualNetwork {
            domain: None,
            project: "admin".to_owned(),
            name: "vms".to_owned(),
        },
        config_api: Default::default(),
        services: Services {
            config: service("192.168.1.100"),
            keystone: Some(service("192.168.1.200")),
            ..Services::default()
        },
        service_addresses: vec!["10.10.10.0/24".to_owned()],
    };
    let nodes = [("m1", "10.0.0.10"), ("w1", "10.0.0.11")];
    let nodes = nodes.map(|(name, at)| (name.to_owned(), at.parse().unwrap()));
    let choices = Choices {
        record: "id-a".to_owned(),
        profile: Profile::Cql,
        naming: Naming::Scoped,
        node_addresses: BTreeMap::new(),
        vrouter_address: None,
        permissions: Permissions::default(),
        kubernetes: Kubernetes {
            pod_subnets: vec![],
            service_subnets: vec![],
            fabric_subnets: vec![],
            not_given: opensdn_nested::NotGiven::OfImage,
            nodes: Fact::Known(nodes.into()),
            api_service: Fact::Known("10.96.0.1".parse().unwrap()),
        },
        driver: None,
        certificates: BTreeMap::new(),
        percent_passwords: None,
    };
    Input::new(&spec, choices)
}

/// A cloud with these rows, and fabric SNAT.
fn cloud(rows: Vec<Row>) -> Live {
    let network = NodeNetwork { fabric_snat: Some(true), ..NodeNetwork::default() };
    Live {
        rows: Fact::Known(rows),
        records: Fact::Known(Records::default()),
        network: Fact::Known(Some(network)),
        pools: Fact::Known([Protocol::Tcp, Protocol::Udp].into()),
        ..Live::unknown("was not asked")
    }
}

fn row(name: &str, at: &str, target: &str) -> Row {
    let at: SocketAddr = at.parse().unwrap();
    let target: SocketAddr = target.parse().unwrap();
    let address = |at: SocketAddr| at.ip().to_string().parse().unwrap();
    Row::new(name, Key::new(address(at), at.port()), &Target::new([address(target)], target.port()))
}

/// The plan where all that it wants is in the cloud.
fn applied(input: &Input) -> Plan {
    let wanted = plan(input, &cloud(Vec::new()));
    let rows = wanted.rows.iter().map(opensdn_nested::PlannedRow::row).collect();
    plan(input, &cloud(rows))
}

fn findings(address: &str, services: Vec<ServiceFinding>) -> NodeFindings {
    let file = CniFile {
        file: "10-contrail.conf".to_owned(),
        network: "contrail-k8s-cni".to_owned(),
        plugins: vec!["contrail-k8s-cni".to_owned()],
        error: None,
    };
    let folder = "/etc/cni/net.d".to_owned();
    let cni = Seen::Is(Cni { folder, files: vec![file], ..Cni::default() });
    NodeFindings { cni, services, ..unseen(address) }
}

fn answer(address: &str, services: Vec<ServiceFinding>) -> Answer {
    Answer { findings: findings(address, services), ahead: Seen::Is(0) }
}

fn reply(status: u16, keys: &[&str], begins: &str) -> Reached {
    Reached::Answered(Reply {
        by: By::Plain,
        status: Some(status),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        begins: begins.to_owned(),
    })
}

/// As each service answers that is well.
fn good_reply(wanted: &WantedService) -> Reached {
    match (&wanted.question, wanted.at.port()) {
        (Question::Connect, _) => Reached::Connected,
        (Question::Get(_), 9091) => reply(404, &["error"], r#"{"error":"Unknown Request"}"#),
        (Question::Get(path), _) if path == "/v3" => reply(200, &["version"], "{"),
        (Question::Get(_), _) => reply(200, &["href", "links"], "{"),
        (Question::Line, _) => Reached::Answered(Reply {
            by: By::Plain,
            status: None,
            keys: vec![],
            begins: MARK.to_owned(),
        }),
    }
}

fn answered(wanted: Vec<WantedService>) -> Vec<ServiceFinding> {
    let finding = |wanted: WantedService| {
        let reached = good_reply(&wanted);
        ServiceFinding { wanted, reached }
    };
    wanted.into_iter().map(finding).collect()
}

fn workload(kind: Value, name: &str, containers: &str, pod: Value) -> Value {
    let mut spec = pod;
    spec["containers"] = json!([{"name": containers}]);
    let mut object = json!({"metadata": {"name": name, "namespace": "kube-system", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"spec": spec}},
        "status": {"observedGeneration": 1}});
    for (key, value) in kind.as_object().unwrap() {
        object[key].as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
    }
    object
}

/// A cluster of a control plane and a worker, in which all is well.
struct Cluster {
    input: Input,
    plan: Plan,
    nodes: Vec<Value>,
    workloads: Workloads,
    of_nodes: Answers,
    of_pods: Option<PodAnswers>,
}

impl Cluster {
    fn good(connectivity: Connectivity) -> Self {
        let input = input(connectivity);
        let plan = applied(&input);
        let master = json!({"nodeSelector": {"role": "master"}});
        let kube_manager = workload(
            json!({"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}),
            "opensdn-kube-manager",
            "opensdn-kube-manager",
            master,
        );
        let agent = workload(
            json!({"status": {"desiredNumberScheduled": 2, "numberReady": 2}}),
            "opensdn-kubernetes-cni-agent",
            "opensdn-kubernetes-cni-init",
            json!({}),
        );
        let node =
            |name: &str, role: &str| json!({"metadata": {"name": name, "labels": {"role": role}}});
        let asked: Vec<WantedService> =
            targets(&plan, &input).into_iter().map(super::services::Target::question).collect();
        let each =
            NODES.map(|node| (node.to_owned(), Ok(answer("10.0.0.10", answered(asked.clone())))));
        let of_pods = Some(pods::good(&plan, &input));
        Self {
            nodes: vec![node("m1", "master"), node("w1", "worker")],
            workloads: Workloads {
                namespace: "kube-system".to_owned(),
                deployments: Read::Known(vec![kube_manager]),
                daemon_sets: Read::Known(vec![agent]),
                pods: Read::Known(vec![]),
            },
            of_nodes: each.into(),
            of_pods,
            input,
            plan,
        }
    }

    fn verified(&self) -> NestedVerification {
        let world = World {
            input: &self.input,
            plan: &self.plan,
            nodes: &self.nodes,
            workloads: &self.workloads,
            of_nodes: &self.of_nodes,
            of_pods: self.of_pods.as_ref(),
        };
        verify(&world, &["http://192.168.1.100:8082".to_owned()])
    }

    fn result(&self, part: Part, subject: &str) -> Verified {
        let all = self.verified().results;
        let found = all.iter().find(|one| one.part == part && one.subject.contains(subject));
        found.unwrap_or_else(|| panic!("{subject} is not among {all:#?}")).clone()
    }

    /// What a node answered of a service becomes this.
    fn becomes(&mut self, node: &str, port: u16, reached: Reached) {
        let answer = self.of_nodes.get_mut(node).unwrap().as_mut().unwrap();
        let mut all = answer.findings.services.iter_mut();
        all.find(|one| one.wanted.at.port() == port).unwrap().reached = reached;
    }
}

#[track_caller]
fn says(found: &Verified, code: &str, outcome: Outcome, part: &str) {
    assert_eq!((found.code, found.result), (code, outcome), "{found:#?}");
    assert!(found.message.contains(part), "{part:?} is missing in: {}", found.message);
}

#[test]
fn of_a_good_cluster_nothing_bad_is_said_with_either_option() {
    for connectivity in [Connectivity::FabricSnat, Connectivity::LinkLocal] {
        let verified = Cluster::good(connectivity).verified();
        let summary = verified.summary;
        let bad: Vec<&Verified> =
            verified.results.iter().filter(|one| one.result != Outcome::Ok).collect();
        assert!(bad.is_empty() && summary.passed == verified.results.len(), "{bad:#?}");
    }
}

#[test]
fn where_nothing_answers_nothing_passes_and_what_is_bad_has_a_code_and_a_remedy() {
    let mut cluster = Cluster::good(Connectivity::LinkLocal);
    cluster.plan = plan(&cluster.input, &Live::unknown("is forbidden"));
    cluster.workloads.deployments = Read::Unknown("is forbidden".to_owned());
    cluster.workloads.daemon_sets = Read::Unknown("is forbidden".to_owned());
    let none: Answers =
        NODES.map(|node| (node.to_owned(), Err("you may not create namespaces".to_owned()))).into();
    cluster.of_nodes = none.clone();
    cluster.of_pods = Some(PodAnswers { askers: none, ..PodAnswers::default() });
    let verified = cluster.verified();
    for one in &verified.results {
        assert_eq!(one.result, Outcome::Uncertain, "{one:#?}");
        assert!(one.code.starts_with("OSDN3"), "{one:#?}");
    }
    let mut text = Vec::new();
    let layout = crate::ui::Layout { width: 80, unicode: false };
    verified.write(layout, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("you may not create namespaces"), "{text}");
}
