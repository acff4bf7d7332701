//! The worked example of the old documentation as a cluster wants it, planned and carried out.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::Timing;
use opensdn_config_api::edit::Foreign;
use opensdn_config_api::ownership::ClusterId;
use opensdn_crds::nested::VirtualNetwork;
use opensdn_crds::nested_cluster::{Connectivity, FabricService, NestedClusterSpec, Services};
use opensdn_nested::input::{Choices, Driver, Input, Kubernetes, Permission, Permissions};
use opensdn_nested::{Fact, Naming, Plan, Profile, plan};
use opensdn_nested_cloud::{Applied, Asked, Error, apply, survey};
use opensdn_testing::config_api::{Settings, WorkedExample};
use serde_json::{Value, json};

use crate::cloud::{Cloud, cluster, save, timing};

/// A nested cluster.
pub(crate) struct Example {
    pub(crate) id: ClusterId,
    pub(crate) input: Input,
}

fn service(nodes: &[u8], port: i64) -> FabricService {
    let addresses = nodes.iter().map(|node| format!("192.168.1.{node}")).collect();
    FabricService { addresses, port: Some(port) }
}

fn spec(name: &str, connectivity: Connectivity, network: [&str; 2]) -> NestedClusterSpec {
    NestedClusterSpec {
        cluster_name: name.to_owned(),
        connectivity: Some(connectivity),
        cluster_network: VirtualNetwork {
            domain: None,
            project: network[0].to_owned(),
            name: network[1].to_owned(),
        },
        config_api: Default::default(),
        services: Services {
            config: service(&[100], 8082),
            analytics: Some(service(&[100, 101], 8086)),
            config_database: Some(service(&[100, 101, 102], 9161)),
            rabbitmq: Some(service(&[100], 5673)),
            zookeeper: None,
            keystone: Some(service(&[200], 35357)),
            vrouter_port: None,
        },
        service_addresses: vec!["10.10.10.0/24".to_owned()],
    }
}

fn choices(id: &ClusterId) -> Choices {
    let nodes = [("vm-201", 4), ("vm-202", 5), ("vm-203", 6)];
    let nodes = nodes.map(|(name, end)| (name.to_owned(), Ipv4Addr::new(10, 0, 0, end)));
    Choices {
        record: id.to_string(),
        profile: Profile::Doc,
        naming: Naming::Doc,
        node_addresses: BTreeMap::new(),
        vrouter_address: None,
        permissions: Permissions::default(),
        kubernetes: Kubernetes {
            pod_subnets: vec!["10.32.0.0/12".parse().unwrap()],
            service_subnets: vec!["10.96.0.0/12".parse().unwrap()],
            fabric_subnets: vec!["10.64.0.0/12".parse().unwrap()],
            not_given: opensdn_nested::NotGiven::OfImage,
            nodes: Fact::Known(nodes.into()),
            api_service: Fact::Known(Ipv4Addr::new(10, 96, 0, 1)),
        },
        driver: Some(Fact::Known(Driver::Thrift)),
        certificates: BTreeMap::new(),
        percent_passwords: Some(Fact::Known(Vec::new())),
    }
}

/// A cloud with what the worked example needs of it, and with what others have there.
pub(crate) fn worked_example(settings: Settings) -> Cloud {
    let cloud = Cloud::fake(settings);
    WorkedExample::fill(cloud.faults()).unwrap();
    let uuid = cloud.faults().global_vrouter_config();
    let annotation = json!({"key_value_pair": [{"key": "of-others", "value": "kept"}]});
    cloud.faults().update(&uuid, json!({ "annotations": annotation })).unwrap();
    cloud
}

impl Example {
    /// In the network of the worked example.
    pub(crate) fn new(name: &str, connectivity: Connectivity) -> Self {
        let id = cluster(name);
        let spec = spec(name, connectivity, ["admin", "k8s-vms"]);
        Self { input: Input::new(&spec, choices(&id)), id }
    }

    /// With option 1 in another network, with a service address for a cloud that is not ours alone.
    pub(crate) fn in_network(name: &str, network: &str) -> Self {
        let id = cluster(name);
        let mut spec = spec(name, Connectivity::FabricSnat, ["default-project", network]);
        spec.service_addresses = vec!["198.18.200.0/24".to_owned()];
        Self { input: Input::new(&spec, choices(&id)), id }
    }

    /// With what it does not want any more taken away.
    pub(crate) fn pruning(mut self) -> Self {
        self.input.choices.permissions.prune = Permission::Granted;
        self
    }

    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked {
            id: &self.id,
            cluster: &self.input.cluster,
            network: &self.input.network,
            nodes: &self.input.choices.kubernetes.nodes,
        }
    }

    pub(crate) async fn plan(&self, api: &ConfigApi) -> Plan {
        plan(&self.input, &survey(api, &self.asked()).await.unwrap())
    }

    pub(crate) async fn set_up(&self, api: &ConfigApi) -> Applied {
        let plan = self.plan(api).await;
        carry_out(api, &plan, &timing()).await.unwrap()
    }
}

pub(crate) async fn carry_out(
    api: &ConfigApi,
    plan: &Plan,
    timing: &Timing,
) -> Result<Applied, Error> {
    apply(api, plan, Foreign::Respect, timing, save).await
}

/// Both options.
pub(crate) const OPTIONS: [Connectivity; 2] = [Connectivity::FabricSnat, Connectivity::LinkLocal];

/// What a test compares of a worked example's cloud: rows, annotations, pools, SNAT.
pub(crate) async fn state(cloud: &Cloud) -> Value {
    let (_, object) = cloud.object().await;
    let fake = cloud.faults();
    let network = fake.read("virtual-network", &["default-domain", "admin", "k8s-vms"]).unwrap();
    let pools = object["port_translation_pools"]["port_translation_pool"].clone();
    let text = json!({
        "rows": object["linklocal_services"],
        "annotations": object["annotations"],
        "pools": pools.as_array().cloned().unwrap_or_default(),
        "snat": network["fabric_snat"] == true,
    });
    // Each cloud has its own.
    let text = text.to_string().replace(network["uuid"].as_str().unwrap(), "NETWORK");
    serde_json::from_str(&text).unwrap()
}
