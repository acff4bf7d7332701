//! The cloud of the documentation's worked example: a control plane on four addresses, three computes, and a virtual
//! network with the VMs that Kubernetes is to run on, those of the documentation or the sandbox's simulated nodes.
//! Deliberately not here: the nine rows, which are what a plan makes of it.

use serde_json::{Value, json};

use super::{FakeConfigApi, Refusal};

const SYSTEM: &str = "default-global-system-config";
/// Of config, and the first of analytics, database and message queue.
const CONFIG: &str = "192.168.1.100";
const ANALYTICS: [&str; 2] = [CONFIG, "192.168.1.101"];
const KEYSTONE: &str = "192.168.1.200";
const DATABASE: [&str; 3] = [CONFIG, "192.168.1.101", "192.168.1.102"];
const COMPUTES: [&str; 3] = ["192.168.1.201", "192.168.1.202", "192.168.1.203"];
const PROJECT: [&str; 2] = ["default-domain", "admin"];

/// The virtual network of the VMs.
#[derive(Debug)]
struct Site {
    /// Its name in the project.
    network: &'static str,
    subnet: &'static str,
    gateway: &'static str,
    dns: &'static str,
    /// One VM on each compute.
    vms: [&'static str; 3],
}

const DOCUMENTED: Site = Site {
    network: "k8s-vms",
    subnet: "10.0.0.0/24",
    gateway: "10.0.0.1",
    dns: "10.0.0.2",
    vms: ["10.0.0.4", "10.0.0.5", "10.0.0.6"],
};

/// Its name is that in the sample NestedCluster, its addresses are those of the simulated nodes.
const SIMULATED: Site = Site {
    network: "vms",
    subnet: "10.91.0.0/24",
    gateway: "10.91.0.254",
    dns: "10.91.0.253",
    vms: ["10.91.0.1", "10.91.0.2", "10.91.0.3"],
};

/// Its addresses are those of the nodes of a lab.
const REAL: Site = Site {
    network: "vms",
    subnet: "10.90.0.0/24",
    gateway: "10.90.0.254",
    dns: "10.90.0.253",
    vms: ["10.90.0.11", "10.90.0.12", "10.90.0.13"],
};

/// What was made.
#[derive(Clone, Debug)]
pub struct WorkedExample {
    /// The uuid of the virtual network of the VMs, `default-domain:admin:k8s-vms`.
    pub network: String,
    /// Its subnet.
    pub subnet: &'static str,
    /// The VMs' addresses in it, one VM on each compute.
    pub vms: Vec<&'static str>,
    /// Where Keystone is.
    pub keystone: &'static str,
}

impl WorkedExample {
    /// Fills a new cloud.
    ///
    /// # Errors
    /// An object is there already.
    pub fn fill(fake: &FakeConfigApi) -> Result<Self, Refusal> {
        Self::fill_site(fake, &DOCUMENTED)
    }

    /// Fills a new cloud whose VMs are the first three simulated nodes of a sandbox, in the network that the sample
    /// NestedCluster names, `default-domain:admin:vms`.
    ///
    /// # Errors
    /// An object is there already.
    pub fn fill_for_simulated_nodes(fake: &FakeConfigApi) -> Result<Self, Refusal> {
        Self::fill_site(fake, &SIMULATED)
    }

    /// Fills a new cloud whose VMs are the first three nodes of a lab, in the network `default-domain:admin:vms`.
    ///
    /// # Errors
    /// An object is there already.
    pub fn fill_for_real_nodes(fake: &FakeConfigApi) -> Result<Self, Refusal> {
        Self::fill_site(fake, &REAL)
    }

    /// A NestedCluster `a` in the namespace `tf` that is to be in it; its fields are these instead, where they are given.
    #[must_use]
    pub fn nested_cluster(fake: &FakeConfigApi, fields: &Value) -> Value {
        let mut spec = json!({
            "clusterName": "k8s-a",
            "clusterNetwork": {"project": "admin", "name": DOCUMENTED.network},
            "configApi": {"urls": [fake.url()]},
            "services": {
                "config": {"addresses": [CONFIG]},
                "analytics": {"addresses": ANALYTICS},
                "rabbitmq": {"addresses": [CONFIG]},
                "configDatabase": {"addresses": DATABASE},
                "keystone": {"addresses": [KEYSTONE]},
            },
            "serviceAddresses": ["10.10.10.0/24"],
        });
        if let (Some(spec), Some(fields)) = (spec.as_object_mut(), fields.as_object()) {
            spec.extend(fields.clone());
        }
        json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "NestedCluster",
            "metadata": {"name": "a", "namespace": "tf"}, "spec": spec})
    }

    /// What a kube-manager makes of a pod in a cluster of this name: on the interface `parent` of a virtual machine, or,
    /// without one, beside the cloud.
    ///
    /// # Errors
    /// An object is there already.
    pub fn pod(fake: &FakeConfigApi, cluster: &str, parent: Option<&str>) -> Result<(), Refusal> {
        let network = [PROJECT[0], PROJECT[1], &format!("{cluster}-default-pod-network")];
        // Without subnets of its own: its addresses are those of a flat IPAM.
        let ipam = json!({"to": [PROJECT[0], PROJECT[1], "ipam"], "attr": {"ipam_subnets": [{"subnet_uuid": "0"}]}});
        let object =
            json!({"fq_name": network, "parent_type": "project", "network_ipam_refs": [ipam]});
        let uuid = fake.create("virtual-network", object)?;
        let parents: Vec<Value> =
            parent.map(|uuid| json!({"to": ["vm"], "uuid": uuid})).into_iter().collect();
        let interface = json!({"fq_name": [PROJECT[0], PROJECT[1], "pod"], "parent_type": "project",
            "virtual_network_refs": [{"to": network, "uuid": uuid}],
            "virtual_machine_interface_refs": parents});
        fake.create("virtual-machine-interface", interface)?;
        Self::annotated(fake, "virtual-machine", cluster)
    }

    /// An object of the kind `virtual-machine` or `loadbalancer`, annotated as a kube-manager of this cluster's name
    /// annotates those of pods and Services.
    ///
    /// # Errors
    /// An object is there already.
    pub fn annotated(fake: &FakeConfigApi, kind: &str, cluster: &str) -> Result<(), Refusal> {
        let pairs = [("owner", "k8s"), ("cluster", cluster)];
        let pairs = pairs.map(|(key, value)| json!({"key": key, "value": value}));
        let annotations = json!({"key_value_pair": pairs});
        let object = match kind {
            "loadbalancer" => json!({"fq_name": [PROJECT[0], PROJECT[1], "of-kube-manager"],
                "parent_type": "project", "annotations": annotations}),
            _ => json!({"fq_name": ["of-kube-manager"], "annotations": annotations}),
        };
        fake.create(kind, object).map(|_| ())
    }

    fn fill_site(fake: &FakeConfigApi, site: &Site) -> Result<Self, Refusal> {
        let kinds: [(&str, &str, &[&str]); 4] = [
            ("config-node", "config_node_ip_address", &[CONFIG]),
            ("analytics-node", "analytics_node_ip_address", &ANALYTICS),
            ("config-database-node", "config_database_node_ip_address", &DATABASE),
            ("virtual-router", "virtual_router_ip_address", &COMPUTES),
        ];
        for (kind, field, addresses) in kinds {
            for address in addresses {
                let fq_name = [SYSTEM.to_owned(), name(kind, address)];
                let parent = "global-system-config";
                let node = json!({"fq_name": fq_name, "parent_type": parent, field: address});
                fake.create(kind, node)?;
            }
        }
        bgp_router(fake)?;
        let network = network(fake, site)?;
        for (address, compute) in site.vms.iter().zip(COMPUTES) {
            vm(fake, &network, address, &name("virtual-router", compute))?;
        }
        fake.write_entries(json!([metadata()]))?;
        let (subnet, vms) = (site.subnet, site.vms.to_vec());
        Ok(Self { network, subnet, vms, keystone: KEYSTONE })
    }
}

/// `node-100` of a control node, `compute-201` of a compute.
fn name(kind: &str, address: &str) -> String {
    let number = address.rsplit('.').next().unwrap_or_default();
    let what = if kind == "virtual-router" { "compute" } else { "node" };
    format!("{what}-{number}")
}

fn bgp_router(fake: &FakeConfigApi) -> Result<(), Refusal> {
    let fabric = ["default-domain", "default-project", "ip-fabric"];
    let instance = [&fabric[..], &["__default__"]].concat();
    let object = json!({"fq_name": instance, "parent_type": "virtual-network"});
    fake.create("routing-instance", object)?;
    let fq_name = [&instance[..], &["node-100"]].concat();
    let parameters = json!({"address": CONFIG, "identifier": CONFIG, "autonomous_system": 64512});
    fake.create(
        "bgp-router",
        json!({"fq_name": fq_name, "parent_type": "routing-instance",
            "bgp_router_parameters": parameters}),
    )?;
    Ok(())
}

fn network(fake: &FakeConfigApi, site: &Site) -> Result<String, Refusal> {
    let ipam = [PROJECT[0], "default-project", "default-network-ipam"];
    fake.create("network-ipam", json!({"fq_name": ipam, "parent_type": "project"}))?;
    let prefix = site.subnet.trim_end_matches("/24");
    let subnet = json!({"subnet": {"ip_prefix": prefix, "ip_prefix_len": 24},
        "default_gateway": site.gateway, "dns_server_address": site.dns});
    fake.create(
        "virtual-network",
        json!({"fq_name": [PROJECT[0], PROJECT[1], site.network], "parent_type": "project",
            "network_ipam_refs": [{"to": ipam, "attr": {"ipam_subnets": [subnet]}}]}),
    )
}

fn vm(fake: &FakeConfigApi, network: &str, address: &str, host: &str) -> Result<(), Refusal> {
    let vm = format!("vm-{}", host.trim_start_matches("compute-"));
    let machine = fake.create("virtual-machine", json!({"fq_name": [vm]}))?;
    let port = format!("{vm}-port");
    let bindings = json!({"key_value_pair": [
        {"key": "host_id", "value": host}, {"key": "vif_type", "value": "vrouter"}]});
    let interface = fake.create(
        "virtual-machine-interface",
        json!({"fq_name": [PROJECT[0], PROJECT[1], port], "parent_type": "project",
            "virtual_network_refs": [{"uuid": network}],
            "virtual_machine_refs": [{"uuid": machine}],
            "virtual_machine_interface_bindings": bindings}),
    )?;
    fake.create(
        "instance-ip",
        json!({"fq_name": [format!("{port}-ip")], "instance_ip_address": address,
            "virtual_network_refs": [{"uuid": network}],
            "virtual_machine_interface_refs": [{"uuid": interface}]}),
    )?;
    Ok(())
}

/// The row that the provisioner of the cloud writes for nova's metadata service.
fn metadata() -> Value {
    json!({"linklocal_service_name": "metadata", "linklocal_service_ip": "169.254.169.254",
        "linklocal_service_port": 80, "ip_fabric_DNS_service_name": "",
        "ip_fabric_service_ip": [CONFIG], "ip_fabric_service_port": 8775})
}
