//! The parameters of the agent, by the names that its image knows.

use std::collections::BTreeMap;

use opensdn_crds::dpdk::MODE;
use opensdn_crds::vrouter::VrouterConfiguration;
use serde_json::Value;

use crate::cluster::words;
use crate::component::Given;
use crate::network::Network;

/// Of what decides how vhost0 is made.
const NOT_TOLD: [&str; 4] = [MODE.0, "NODE_TYPE", "CLOUD_ORCHESTRATOR", "DATA_NETWORK"];
const KUBERNETES: &str = "kubernetes";
const OPENSHIFT: &str = "openshift";

/// Whom the agent connects to.
pub(super) struct Control {
    /// With commas between.
    pub(super) nodes: String,
    /// Of analytics.
    pub(super) collector_port: u16,
    /// What to wait for, if it is not there.
    pub(super) missing: Option<String>,
}

/// The nodes of the Control that is named, else of the first: those in the data network, if any are.
pub(super) fn control(given: &Given<'_>, settings: &VrouterConfiguration) -> Control {
    let name = settings.control_instance.as_deref().filter(|name| !name.is_empty());
    let mut all = given.peers.of_kind("Control");
    let control = all.find(|control| name.is_none_or(|name| control.name == name));
    let addresses = control.map(|control| control.addresses.clone()).unwrap_or_default();
    let network = settings.data_subnet.as_deref().and_then(Network::parse);
    let is_inside = |address: &&String| network.is_some_and(|network| network.has(address));
    let inside: Vec<_> = addresses.iter().filter(is_inside).cloned().collect();
    // What a Control listens on in another network its nodes do not say.
    let nodes = if inside.is_empty() { addresses } else { inside };
    let analytics = given.peers.first("Analytics");
    Control {
        nodes: nodes.join(","),
        collector_port: analytics.map_or(0, |analytics| analytics.port("collectorPort")),
        missing: control.is_none().then(|| match name {
            Some(name) => format!(
                "waits for Control {name}, which spec.serviceConfiguration.controlInstance names"
            ),
            None => "waits for a Control".to_owned(),
        }),
    }
}

pub(super) fn orchestrator(settings: &VrouterConfiguration) -> String {
    text(settings.cloud_orchestrator.as_ref()).unwrap_or_else(|| KUBERNETES.to_owned())
}

pub(super) fn is_openshift(settings: &VrouterConfiguration) -> bool {
    settings.cloud_orchestrator.as_deref() == Some(OPENSHIFT)
}

pub(super) fn is_dpdk(settings: &VrouterConfiguration) -> bool {
    settings.dpdk.is_some()
}

/// Of both sizes, the larger one first. The agent's image takes that alone. DPDK has its memory and its tables in pages of
/// either (tf-vrouter, `dpdk/vr_dpdk_table_mem.c:204-217`).
pub(super) fn huge_pages(settings: &VrouterConfiguration) -> Vec<(&'static str, u64)> {
    let mebibytes = |count: Option<i64>, each: u64| {
        let count = count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        count.map(|count| count.saturating_mul(each))
    };
    let large = mebibytes(settings.huge_pages_1g, 1024).map(|amount| ("1Gi", amount));
    let small = mebibytes(settings.huge_pages_2m, 2).map(|amount| ("2Mi", amount));
    large.into_iter().chain(small).collect()
}

/// What decides how vhost0 is made. It is part of the pod, since it is made again only where that is replaced.
pub(super) fn of_interface(settings: &VrouterConfiguration) -> Vec<(&'static str, String)> {
    let given = [
        ("DATA_NETWORK", &settings.data_subnet),
        ("L3MH_CIDR", &settings.l3mh_cidr),
        ("PHYSICAL_INTERFACE", &settings.physical_interface),
        ("VROUTER_GATEWAY", &settings.vrouter_gateway),
    ];
    let own = [("NODE_TYPE", "vrouter".to_owned()), ("CLOUD_ORCHESTRATOR", orchestrator(settings))];
    let given = given.into_iter().filter_map(|(name, value)| Some((name, text(value.as_ref())?)));
    own.into_iter().chain(data_plane(settings)).chain(given).collect()
}

/// Of which kind it is, where that is not the usual one.
pub(super) fn data_plane(settings: &VrouterConfiguration) -> Option<(&'static str, String)> {
    is_dpdk(settings).then(|| (MODE.0, MODE.1.to_owned()))
}

/// The network of pods that nodes reach over the fabric: the image makes a route for one
/// (tf-container-builder, `containers/vrouter/base/agent-functions.sh:954-961`).
pub(super) fn pod_network(
    settings: &VrouterConfiguration,
    of_cluster: &[String],
) -> Option<String> {
    let given = settings.kubernetes_pod_subnet.as_deref().and_then(|given| words(given).next());
    given.map(str::to_owned).or_else(|| of_cluster.first().cloned())
}

/// Variables of all containers, of which those of profiles win.
pub(super) fn variables(
    settings: &VrouterConfiguration,
    more: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut all = settings.env_variables_config.clone().unwrap_or_default();
    all.extend(more);
    // What a shell would put in, Kubernetes does.
    all.into_iter().map(|(name, value)| (name, value.replace("${POD_IP}", "$(POD_IP)"))).collect()
}

/// What is reported to the API of the node, besides what all provisioners report.
pub(super) fn of_provisioner(
    settings: &VrouterConfiguration,
    variables: &BTreeMap<String, String>,
    around: &Value,
    control_nodes: &str,
) -> BTreeMap<&'static str, String> {
    let mappings = settings.sriov.as_ref().and_then(|sriov| sriov.mappings.clone());
    let mappings = mappings.unwrap_or_default();
    let networks: Vec<_> = mappings.iter().map(|one| one.physical_network.as_str()).collect();
    let interfaces: Vec<_> = mappings.iter().map(|one| one.physical_interface.as_str()).collect();
    let or = |own: String, field: &Option<String>| {
        if own.is_empty() { field.clone().unwrap_or_default() } else { own }
    };
    let network = or(networks.join(","), &settings.sriov_physical_network);
    let interface = or(interfaces.join(","), &settings.sriov_physical_interface);
    let analytics = around.get("analytics_nodes").and_then(Value::as_str).unwrap_or_default();
    let mut all = BTreeMap::from([
        ("ANALYTICS_NODES", analytics.to_owned()),
        ("CONTROL_NODES", control_nodes.to_owned()),
    ]);
    all.extend(of_interface(settings).into_iter().filter(|(name, _)| !NOT_TOLD.contains(name)));
    if !network.is_empty() {
        all.extend([("SRIOV_PHYSICAL_INTERFACE", interface), ("SRIOV_PHYSICAL_NETWORK", network)]);
    }
    all.retain(|name, value| !value.is_empty() && !variables.contains_key(*name));
    all
}

fn text(given: Option<&String>) -> Option<String> {
    given.filter(|given| !given.is_empty()).cloned()
}
