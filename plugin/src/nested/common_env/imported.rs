//! What a `common.env` says, as a NestedCluster and the flags of the commands that go with it. What is dropped is said.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_crds::nested::VirtualNetwork;
use opensdn_crds::nested_cluster::{
    ConfigApi, Connectivity, FabricService, NestedClusterSpec, Services,
};
use opensdn_nested::{Driver, Fact};
use serde_json::Value;

use super::CommonEnv;
use crate::nested::surroundings::driver_of;

/// What nodes are found by, as `parse-env.sh` fills it: each by itself, else as those of the next.
const CONFIG: [&str; 2] = ["CONFIG_NODES", "CONTROLLER_NODES"];
const VROUTER: [&str; 2] = ["KUBERNESTES_NESTED_VROUTER_VIP", "KUBERNETES_NESTED_VROUTER_VIP"];

/// Passwords and the like: they are never repeated.
const SECRET: [&str; 3] =
    ["KEYSTONE_AUTH_ADMIN_PASSWORD", "RABBITMQ_PASSWORD", "METADATA_PROXY_SECRET"];

/// Variables that say what a NestedCluster has no field for, and what becomes of them.
const DROPPED: [(&str, &str); 10] = [
    ("KEYSTONE_AUTH_URL_VERSION", "it is /v3 in any case"),
    ("ANALYTICS_API_VIP", "no program of a nested cluster asks it"),
    ("CONFIG_API_VIP", "kube-manager does not use it: it takes the addresses of CONFIG_NODES"),
    ("KUBERNETES_CLUSTER_PROJECT", "the old manifest hands it to no program, and no field has it"),
    ("KUBERNETES_CLUSTER_DOMAIN", "the old manifest hands it to no program, and no field has it"),
    (
        "KUBERNETES_HOST_NETWORK_SERVICE",
        "the old manifest hands it to no program, and no field has it",
    ),
    (
        "KUBERNETES_IP_FABRIC_SNAT",
        "set ipFabricSnat of a Kubemanager, if pods are to reach the fabric",
    ),
    (
        "KUBERNETES_PUBLIC_FIP_POOL",
        "set publicFIPPool of a Kubemanager, if Services get addresses of a pool",
    ),
    ("CLOUD_ORCHESTRATOR", "it is kubernetes in any case"),
    ("KUBEMANAGER_NESTED_MODE", "it is on in any case"),
];

/// The old template hands these on to no program: the cluster that runs by it has others.
const WITHOUT_EFFECT: [&str; 15] = [
    "ANALYTICS_NODES",
    "COLLECTOR_PORT",
    "CONFIGDB_CQL_PORT",
    "CONFIGDB_NODES",
    "CONFIG_API_PORT",
    "CONFIG_API_SSL_ENABLE",
    "KEYSTONE_AUTH_PROTO",
    "KEYSTONE_AUTH_USER_DOMAIN_NAME",
    "RABBITMQ_USER",
    "RABBITMQ_USE_SSL",
    "RABBITMQ_VHOST",
    "SSL_ENABLE",
    "VROUTER_MTU",
    "VROUTER_PORT",
    "ZOOKEEPER_PORT",
];

/// The most of a value that is repeated, in characters.
const SHOWN: usize = 60;

/// A value, in quotes, and no more of it than a line has room for.
fn shown(text: &str) -> String {
    let mut letters = text.chars();
    let start: String = letters.by_ref().take(SHOWN).collect();
    if letters.next().is_none() { format!("{start:?}") } else { format!("{start:?}...") }
}

/// What is made of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Imported {
    /// What the cluster wants of its cloud.
    pub(crate) spec: NestedClusterSpec,
    /// What is lost on the way, or is to be known.
    pub(crate) notes: Vec<String>,
    /// Words for `nested plan`, beside the file.
    pub(crate) plan: Vec<String>,
    /// Words for `nested manifest`, beside the plan.
    pub(crate) manifest: Vec<String>,
    /// Whether kube-manager needs the password of a user of Keystone.
    pub(crate) needs_keystone: bool,
}

/// Reads a variable after the other, and collects what is wrong with all of them.
struct Reader<'e> {
    env: &'e CommonEnv,
    /// By the address that nodes of the cluster use: that in the fabric. Empty where they are the same.
    fabric: Option<BTreeMap<Ipv4Addr, Ipv4Addr>>,
    used: BTreeSet<&'static str>,
    /// Those that are read and say nothing without another.
    lost: BTreeSet<&'static str>,
    /// Service addresses of nodes that were named.
    services: BTreeSet<Ipv4Addr>,
    errors: Vec<String>,
    notes: Vec<String>,
}

/// Makes a NestedCluster of it. `nodes` has the address in the fabric of each service address, for link-local services.
///
/// # Errors
/// All that is missing or cannot be read, each with its variable.
pub(crate) fn import(
    env: &CommonEnv,
    how: Connectivity,
    nodes: &BTreeMap<Ipv4Addr, Ipv4Addr>,
) -> Result<Imported, Vec<String>> {
    let fabric = (how == Connectivity::LinkLocal)
        .then(|| nodes.iter().map(|(fabric, service)| (*service, *fabric)).collect());
    let mut reader = Reader {
        env,
        fabric,
        used: BTreeSet::new(),
        lost: BTreeSet::new(),
        services: BTreeSet::new(),
        errors: Vec::new(),
        notes: Vec::new(),
    };
    let services = reader.services();
    let vrouter = reader.vrouter();
    let cluster_name = reader.text("KUBERNETES_CLUSTER_NAME").unwrap_or("k8s").to_owned();
    let cluster_network = reader.network();
    let scheme = if reader.has_tls() { "https" } else { "http" };
    let port = services.config.port.unwrap_or(8082);
    let urls = services.config.addresses.iter();
    let urls = urls.map(|address| format!("{scheme}://{address}:{port}")).collect();
    let mut service_addresses: BTreeSet<Ipv4Addr> = std::mem::take(&mut reader.services);
    service_addresses.extend(vrouter);
    let keystone = services.keystone.is_some();
    let networks = reader.networks();
    let manifest = [networks.clone(), reader.manifest(keystone)].concat();
    let plan = [networks, reader.plan(vrouter, nodes)].concat();
    reader.say_what_is_dropped();
    let Reader { errors, notes, .. } = reader;
    if !errors.is_empty() {
        return Err(errors);
    }
    let spec = NestedClusterSpec {
        cluster_name,
        connectivity: Some(how),
        cluster_network,
        config_api: ConfigApi { urls, ..ConfigApi::default() },
        services,
        service_addresses: service_addresses.iter().map(ToString::to_string).collect(),
    };
    Ok(Imported { spec, notes, plan, manifest, needs_keystone: keystone })
}

impl<'e> Reader<'e> {
    fn text(&mut self, name: &'static str) -> Option<&'e str> {
        let is_first = self.used.insert(name);
        match self.env.get(name) {
            Ok(value) => value,
            Err(why) => {
                // A variable that is asked for twice is wrong once.
                self.errors.extend(is_first.then_some(why));
                None
            }
        }
    }

    /// Says that none of them is set, where what is wrong with them is not that a shell would compute one.
    fn say_missing(&mut self, names: &[&str], why: String) {
        if names.iter().all(|name| self.env.get(name).is_ok()) {
            self.errors.push(why);
        }
    }

    /// As `is_enabled` of the scripts (`containers/general-base/functions.sh`).
    fn is_true(&mut self, name: &'static str) -> bool {
        let words = ["true", "yes", "enabled"];
        self.text(name).is_some_and(|text| words.contains(&&*text.to_ascii_lowercase()))
    }

    /// Whether the Config API speaks TLS: where it is not said, what is said for all counts (`containers/base/common.sh:134`).
    fn has_tls(&mut self) -> bool {
        match self.text("CONFIG_API_SSL_ENABLE") {
            Some(_) => self.is_true("CONFIG_API_SSL_ENABLE"),
            None => self.is_true("SSL_ENABLE"),
        }
    }

    fn port(&mut self, name: &'static str) -> Option<i64> {
        let text = self.text(name)?;
        match text.parse::<u16>() {
            Ok(port) if port > 0 => Some(port.into()),
            _ => {
                self.errors.push(format!("{name} is {}, which is no port", shown(text)));
                None
            }
        }
    }

    fn address(&mut self, name: &str, text: &str) -> Option<Ipv4Addr> {
        let Ok(address) = text.parse() else {
            self.errors.push(format!(
                "{name} has {}, which is no address of IPv4: give the address of that node",
                shown(text)
            ));
            return None;
        };
        Some(address)
    }

    /// A list of addresses, each as the fabric has it.
    fn addresses(&mut self, name: &'static str) -> Option<Vec<String>> {
        let text = self.text(name)?;
        let (mut found, mut known) = (Vec::new(), BTreeSet::new());
        for one in text.split([',', ' ']).map(str::trim).filter(|one| !one.is_empty()) {
            let Some(address) = self.address(name, one) else { continue };
            let in_fabric = match &self.fabric {
                None => address,
                Some(nodes) => {
                    self.services.insert(address);
                    let Some(fabric) = nodes.get(&address) else {
                        self.errors.push(format!(
                            "{name} has {address}, a service address: which node of the fabric is behind it? \
                             --node-address NODE={address}"
                        ));
                        continue;
                    };
                    *fabric
                }
            };
            if known.insert(in_fabric) {
                found.push(in_fabric.to_string());
            }
        }
        Some(found).filter(|found| !found.is_empty())
    }

    fn service(&mut self, nodes: &'static str, port_name: &'static str) -> Option<FabricService> {
        let (addresses, port) = (self.addresses(nodes), self.port(port_name));
        if addresses.is_none() && port.is_some() {
            self.lost.insert(port_name);
            self.notes
                .push(format!("{port_name}: is left out, as it says nothing without {nodes}"));
        }
        addresses.map(|addresses| FabricService { addresses, port })
    }

    fn services(&mut self) -> Services {
        let [own, of_all] = CONFIG.map(|name| self.addresses(name));
        if let (Some(own), Some(of_all)) = (&own, &of_all)
            && own != of_all
        {
            let [config, all] = CONFIG;
            self.notes.push(format!(
                "{all}: the Config API is at {config}, and the collectors of the old cluster were at {all}: give \
                 services.analytics of the NestedCluster addresses, if it is to send to them"
            ));
        }
        let addresses = own.or(of_all).unwrap_or_else(|| {
            if self.errors.is_empty() {
                self.errors
                    .push(format!("{} is not set: where is the Config API?", CONFIG.join(" or ")));
            }
            Vec::new()
        });
        let config = FabricService { addresses, port: self.port("CONFIG_API_PORT") };
        let analytics = self.service("ANALYTICS_NODES", "COLLECTOR_PORT");
        let config_database = self.service("CONFIGDB_NODES", "CONFIGDB_CQL_PORT");
        let rabbitmq = match self.addresses("RABBITMQ_NODES") {
            Some(addresses) => {
                Some(FabricService { addresses, port: self.port("RABBITMQ_NODE_PORT") })
            }
            // Its addresses are the default, where its port is not.
            None => self.port("RABBITMQ_NODE_PORT").filter(|port| *port != 5673).map(|port| {
                let database = config_database.as_ref().unwrap_or(&config);
                FabricService { port: Some(port), ..database.clone() }
            }),
        };
        let zookeeper = self.service("ZOOKEEPER_NODES", "ZOOKEEPER_PORT");
        let keystone = self.keystone();
        let vrouter_port = self.port("VROUTER_PORT");
        Services { config, analytics, config_database, rabbitmq, zookeeper, keystone, vrouter_port }
    }

    fn keystone(&mut self) -> Option<FabricService> {
        if self.text("AUTH_MODE")? != "keystone" {
            return None;
        }
        let Some(addresses) = self.addresses("KEYSTONE_AUTH_HOST") else {
            if self.text("KEYSTONE_AUTH_HOST").is_none() {
                let why = "AUTH_MODE is keystone, and KEYSTONE_AUTH_HOST is not set".to_owned();
                self.say_missing(&["KEYSTONE_AUTH_HOST"], why);
            }
            return None;
        };
        Some(FabricService {
            addresses,
            port: self.port("KEYSTONE_AUTH_ADMIN_PORT").or(Some(5000)),
        })
    }

    fn vrouter(&mut self) -> Option<Ipv4Addr> {
        let [misspelt, right] = VROUTER.map(|name| self.text(name).map(|text| (name, text)));
        if misspelt.is_none() && right.is_some() {
            let [misspelt, right] = VROUTER;
            self.notes
                .push(format!("{right}: the old scripts read only {misspelt}, which is spelt so"));
        }
        let Some((name, text)) = misspelt.or(right) else {
            let [name, _] = VROUTER;
            let why = format!("{name} is not set: which service address do the vrouters have?");
            self.say_missing(&VROUTER, why);
            return None;
        };
        self.address(name, text)
    }

    /// A dictionary as Python writes it, which YAML reads too.
    fn network(&mut self) -> VirtualNetwork {
        const NAME: &str = "KUBERNETES_CLUSTER_NETWORK";
        let none = VirtualNetwork::default();
        let Some(text) = self.text(NAME).filter(|text| text.trim() != "{}") else {
            let why = format!("{NAME} is not set: which virtual network are the nodes in?");
            self.say_missing(&[NAME], why);
            return none;
        };
        let fields: Option<Value> = serde_saphyr::from_str(text).ok();
        let field = |name: &str| fields.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let (Some(project), Some(name)) = (field("project"), field("name")) else {
            self.errors.push(format!(
                "{NAME} is {}, and not such as {{'domain': 'default-domain', 'project': 'admin', 'name': 'vms'}}",
                shown(text)
            ));
            return none;
        };
        let domain = field("domain").filter(|domain| domain != "default-domain");
        VirtualNetwork { domain, project, name }
    }

    fn flag(&mut self, words: &mut Vec<String>, flag: &str, name: &'static str, default: &str) {
        if let Some(text) = self.text(name).filter(|text| *text != default) {
            words.extend([flag.to_owned(), text.to_owned()]);
        }
    }

    /// The networks of kube-manager, which plan and manifest both take.
    fn networks(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        self.flag(&mut words, "--pod-subnets", "KUBERNETES_POD_SUBNETS", "10.32.0.0/12");
        self.flag(&mut words, "--service-subnets", "KUBERNETES_SERVICE_SUBNETS", "10.96.0.0/12");
        self.flag(&mut words, "--fabric-subnets", "KUBERNETES_IP_FABRIC_SUBNETS", "10.64.0.0/12");
        words
    }

    fn plan(&self, vrouter: Option<Ipv4Addr>, nodes: &BTreeMap<Ipv4Addr, Ipv4Addr>) -> Vec<String> {
        let address = vrouter.iter();
        let mut words: Vec<String> =
            address.flat_map(|at| ["--vrouter-address".to_owned(), at.to_string()]).collect();
        if let Some(tag) = self.env.get("CONTRAIL_CONTAINER_TAG").ok().flatten() {
            words.extend(["--tag".to_owned(), tag.to_owned()]);
            if driver_of(tag) == Fact::Known(Driver::Thrift) {
                words.extend(["--profile".to_owned(), "thrift".to_owned()]);
            }
        }
        if self.fabric.is_some() {
            let pairs = nodes.iter();
            let pair = |(node, service): (&Ipv4Addr, &Ipv4Addr)| {
                ["--node-address".to_owned(), format!("{node}={service}")]
            };
            words.extend(pairs.flat_map(pair));
        }
        words
    }

    fn manifest(&mut self, keystone: bool) -> Vec<String> {
        let mut words = Vec::new();
        let server = self.text("KUBERNETES_API_SERVER").unwrap_or("HOST");
        let port = self.port("KUBERNETES_API_SECURE_PORT").unwrap_or(6443);
        words.extend(["--api-server".to_owned(), format!("{server}:{port}")]);
        let registry = self.text("CONTRAIL_REGISTRY").filter(|text| *text != "auto");
        let tag = self.text("CONTRAIL_CONTAINER_TAG");
        words.extend(["--registry".to_owned(), registry.unwrap_or("REGISTRY").to_owned()]);
        words.extend(["--tag".to_owned(), tag.unwrap_or("TAG").to_owned()]);
        self.flag(&mut words, "--mtu", "VROUTER_MTU", "1500");
        self.flag(&mut words, "--registry-secret", "KUBERNETES_SECRET_CONTRAIL_REPO", "");
        if self.has_tls() {
            words.extend(["--tls".to_owned(), "config".to_owned()]);
        }
        if self.is_true("RABBITMQ_USE_SSL") {
            words.extend(["--tls".to_owned(), "rabbitmq".to_owned()]);
        }
        if self.text("RABBITMQ_USER").is_some() {
            words.extend(["--rabbitmq-secret".to_owned(), "rabbitmq".to_owned()]);
        }
        if keystone {
            words.extend(["--keystone-secret".to_owned(), "keystone".to_owned()]);
            self.flag(&mut words, "--keystone-user", "KEYSTONE_AUTH_ADMIN_USER", "admin");
            self.flag(&mut words, "--keystone-project", "KEYSTONE_AUTH_ADMIN_TENANT", "admin");
            self.flag(&mut words, "--keystone-domain", "KEYSTONE_AUTH_USER_DOMAIN_NAME", "Default");
            self.flag(&mut words, "--keystone-protocol", "KEYSTONE_AUTH_PROTO", "http");
        }
        words
    }

    fn say_what_is_dropped(&mut self) {
        let is_set = |name: &str| self.env.assignments.contains_key(name);
        let mut notes = Vec::new();
        if self.text("LOG_LEVEL") == Some("SYS_DEBUG") {
            notes.push(
                "LOG_LEVEL: SYS_DEBUG would write passwords into logs, and is left out".to_owned(),
            );
        }
        for (name, why) in DROPPED.iter().filter(|(name, _)| is_set(name)) {
            notes.push(format!("{name}: {why}"));
        }
        for name in SECRET.iter().filter(|name| is_set(name)) {
            notes.push(format!("{name}: is not taken over; make a Secret of it"));
        }
        // That of the scripts: on, in a cluster of which nothing is said.
        let forwarding = self.text("KUBERNETES_IP_FABRIC_FORWARDING").unwrap_or("true");
        if forwarding.eq_ignore_ascii_case("true") {
            notes.push(
                "KUBERNETES_IP_FABRIC_FORWARDING: pods of the old cluster are in the fabric, unless it is false; set \
                 ipFabricForwarding of a Kubemanager, if they are to stay there"
                    .to_owned(),
            );
        }
        let counts = |name: &&&str| is_set(name) && !self.lost.contains(**name);
        for name in WITHOUT_EFFECT.iter().filter(counts) {
            notes.push(format!(
                "{name}: the old manifest hands it to no program, so the cluster that runs by it does without; from now on \
                 it counts"
            ));
        }
        let known = |name: &&str| {
            self.used.contains(name)
                || SECRET.contains(name)
                || WITHOUT_EFFECT.contains(name)
                || DROPPED.iter().any(|(other, _)| other == name)
        };
        let others: Vec<&str> = self.env.names().filter(|name| !known(name)).collect();
        if !others.is_empty() {
            notes.push(format!("no field has these, which are left out: {}", others.join(", ")));
        }
        if let Some(first) = self.env.other.first() {
            notes.push(format!(
                "{} of its lines assign nothing, the first is line {first}: what a shell does there is not done",
                self.env.other.len()
            ));
        }
        self.notes.extend(notes);
    }
}

#[cfg(test)]
mod tests;
