//! The worked example of the old documentation, and clouds for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::edit::{self, Foreign, Wanted};
use opensdn_config_api::link_local::{Key, Row, Rows, Target};
use opensdn_config_api::ownership::Records;
use opensdn_crds::nested::VirtualNetwork;
use opensdn_crds::nested_cluster::{Connectivity, FabricService, NestedClusterSpec, Services};

use crate::catalogue::Code;
use crate::finding::Finding;
use crate::input::{Choices, Driver, Input, Kubernetes, Permissions};
use crate::live::{AaaMode, Fact, Interface, Live, MayWrite, NodeNetwork, Protocol};
use crate::plan::Plan;
use crate::roles::{Naming, Profile};

pub(crate) const NETWORK: &str = "default-domain:admin:vms";

pub(crate) fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

pub(crate) fn service(nodes: &[&str], port: i64) -> FabricService {
    let addresses = nodes.iter().map(|node| format!("192.168.1.{node}")).collect();
    FabricService { addresses, port: Some(port) }
}

pub(crate) fn spec(connectivity: Connectivity, profile: Profile) -> NestedClusterSpec {
    let database = i64::from(profile.port(crate::Role::ConfigDatabase));
    let all = ["100", "101", "102"];
    NestedClusterSpec {
        cluster_name: "a".to_owned(),
        connectivity: Some(connectivity),
        cluster_network: VirtualNetwork {
            domain: None,
            project: "admin".to_owned(),
            name: "vms".to_owned(),
        },
        config_api: Default::default(),
        services: Services {
            config: service(&["100"], 8082),
            analytics: Some(service(&["100", "101"], 8086)),
            config_database: Some(service(&all, database)),
            rabbitmq: Some(service(&["100"], 5673)),
            zookeeper: Some(service(&all, 2181)),
            keystone: Some(service(&["200"], 35357)),
            vrouter_port: None,
        },
        service_addresses: vec!["10.10.10.0/24".to_owned()],
    }
}

pub(crate) fn choices(record: &str, profile: Profile) -> Choices {
    let network = |text: &str| vec![text.parse().unwrap()];
    let nodes = [("master1", "10.0.0.10"), ("minion1", "10.0.0.11")];
    Choices {
        record: record.to_owned(),
        profile,
        naming: Naming::Doc,
        node_addresses: BTreeMap::new(),
        vrouter_address: None,
        permissions: Permissions::default(),
        kubernetes: Kubernetes {
            pod_subnets: network("10.32.0.0/12"),
            service_subnets: network("10.96.0.0/12"),
            fabric_subnets: network("10.64.0.0/12"),
            not_given: crate::NotGiven::OfImage,
            nodes: Fact::Known(nodes.map(|(name, node)| (name.to_owned(), ip(node))).into()),
            api_service: Fact::Known(ip("10.96.0.1")),
        },
        driver: Some(Fact::Known(match profile {
            Profile::Cql => Driver::Cql,
            Profile::Doc | Profile::Thrift => Driver::Thrift,
        })),
        certificates: BTreeMap::new(),
        percent_passwords: Some(Fact::Known(Vec::new())),
    }
}

/// The worked example by this profile.
pub(crate) fn input(profile: Profile) -> Input {
    Input::new(&spec(Connectivity::LinkLocal, profile), choices("id-a", profile))
}

/// The same with option 1.
pub(crate) fn snat_input() -> Input {
    Input::new(&spec(Connectivity::FabricSnat, Profile::Doc), choices("id-a", Profile::Doc))
}

/// A cloud without rows, in which all is as it should be.
pub(crate) fn empty_cloud() -> Live {
    let interface = |id: &str| {
        vec![Interface {
            id: id.to_owned(),
            network: NETWORK.to_owned(),
            host_id: Some("compute1".to_owned()),
        }]
    };
    Live {
        rows: Fact::Known(Vec::new()),
        records: Fact::Known(Records::default()),
        subnets: Fact::Known(Vec::new()),
        underlay: Fact::Known(BTreeMap::new()),
        addresses: Fact::Known(BTreeMap::new()),
        network: Fact::Known(Some(NodeNetwork {
            subnets: vec!["10.0.0.0/24".parse().unwrap()],
            ..NodeNetwork::default()
        })),
        pools: Fact::Known(BTreeSet::from([Protocol::Tcp, Protocol::Udp])),
        pools_of_others: Fact::Known(false),
        interfaces: Fact::Known(BTreeMap::from([
            (ip("10.0.0.10"), interface("vmi-1")),
            (ip("10.0.0.11"), interface("vmi-2")),
        ])),
        virtual_routers: Fact::Known(BTreeSet::from(["compute1".to_owned()])),
        may_write: MayWrite { vrouter_config: Fact::Known(true), network: Fact::Known(true) },
        traces: Fact::Known(Vec::new()),
        aaa_mode: Fact::Known(AaaMode::Rbac),
    }
}

pub(crate) fn row(name: &str, service: &str, port: u16, target: &str, target_port: u16) -> Row {
    Row::new(name, Key::new(ip(service), port), &Target::new([ip(target)], target_port))
}

pub(crate) fn cloud_with(rows: Vec<Row>) -> Live {
    Live { rows: Fact::Known(rows), ..empty_cloud() }
}

pub(crate) fn listed(live: &Live) -> &[Row] {
    live.rows.known().unwrap()
}

/// The cloud after the plan has been carried out by the client's own edit.
pub(crate) fn applied(live: &Live, plan: &Plan) -> Live {
    let mut records = live.records.known().unwrap().clone();
    let rows: Vec<Row> = plan.rows.iter().map(|row| row.row()).collect();
    let current = Rows::default().with(listed(live).to_vec());
    let wanted = Wanted {
        rows: &rows,
        ours: &records.ours.rows,
        others: &records.other_keys,
        written: &records.other_written,
        foreign: Foreign::Respect,
        unwanted: plan.unwanted(),
    };
    let edit = edit::edit(&current, &wanted).unwrap();
    let new = plan.rows.iter().filter(|row| row.change != crate::Change::None).count();
    let removed = plan.removed.iter().filter(|row| row.fate == crate::Fate::Deleted).count();
    assert_eq!(edit.changes.len(), new + removed, "{:#?}", edit.changes);
    records.ours.rows = edit.held;
    let mut after = live.clone();
    after.rows = Fact::Known(edit.rows.rows().to_vec());
    after.records = Fact::Known(records);
    after
}

/// The same cloud as another cluster sees it.
pub(crate) fn seen_by_another(live: &Live) -> Live {
    let records = live.records.known().unwrap();
    let other_keys = records.other_keys.iter().chain(records.ours.rows.keys()).copied().collect();
    let mut live = live.clone();
    live.records = Fact::Known(Records { other_keys, others: 1, ..Records::default() });
    live
}

/// The columns of 10.3, with a blank between them.
pub(crate) fn lines(plan: &Plan) -> Vec<String> {
    let line = |row: &crate::PlannedRow| {
        let (service, target) = (row.service, row.target);
        format!(
            "{} {} {} {} {}",
            row.name, service.address, service.port, target.address, target.port
        )
    };
    plan.rows.iter().map(line).collect()
}

pub(crate) fn of(plan: &Plan, code: Code) -> Vec<&Finding> {
    plan.findings.iter().filter(|finding| finding.code == code).collect()
}
