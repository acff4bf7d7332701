//! What upstream stores of a node: under which name, with which address, and what refers to it.

use std::net::IpAddr;

use super::{Expected, Mismatch, Named, Registered, Workloads};
use crate::fields::{Fields, full_name, items, reference_names, text};
use crate::pairs;
use crate::vrouter_config::ANNOTATIONS;

/// The annotation with the id of the cluster.
pub(super) const CLUSTER: &str = "opensdn/cluster";
const SYSTEM: &str = "default-global-system-config";
const FABRIC: [&str; 4] = ["default-domain", "default-project", "ip-fabric", "__default__"];
/// The types of BGP routers that are control nodes; all others are routers of the network.
const CONTROL_NODES: [&str; 2] = ["control-node", "external-control-node"];
const PARAMETERS: &str = "bgp_router_parameters";
const SUB_CLUSTERS: &str = "sub_cluster_refs";
const INTERFACE: &str = "virtual-machine-interface";

/// The kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A control node, which is a BGP router of the fabric.
    Control,
    /// A compute.
    VirtualRouter,
    /// The Config API and what is beside it.
    Config,
    /// The database of the configuration.
    ConfigDatabase,
    /// Analytics, with the collector.
    Analytics,
    /// The alarms of analytics.
    AnalyticsAlarm,
    /// SNMP of analytics.
    AnalyticsSnmp,
    /// The database of analytics.
    Database,
    /// The Web UI.
    WebUi,
}

impl NodeKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Control,
        Self::VirtualRouter,
        Self::Config,
        Self::ConfigDatabase,
        Self::Analytics,
        Self::AnalyticsAlarm,
        Self::AnalyticsSnmp,
        Self::Database,
        Self::WebUi,
    ];

    /// The kind of its objects.
    #[must_use]
    pub fn object(self) -> &'static str {
        match self {
            Self::Control => "bgp-router",
            Self::VirtualRouter => "virtual-router",
            Self::Config => "config-node",
            Self::ConfigDatabase => "config-database-node",
            Self::Analytics => "analytics-node",
            Self::AnalyticsAlarm => "analytics-alarm-node",
            Self::AnalyticsSnmp => "analytics-snmp-node",
            Self::Database => "database-node",
            Self::WebUi => "webui-node",
        }
    }

    /// What of a node says which one it is.
    pub(super) fn fields(self) -> Vec<String> {
        let (address, others): (String, &[&str]) = match self {
            Self::Control => (PARAMETERS.to_owned(), &[SUB_CLUSTERS]),
            Self::VirtualRouter => (self.address_field(), &[SUB_CLUSTERS]),
            _ => (self.address_field(), &[]),
        };
        let others = others.iter().chain([&ANNOTATIONS]).map(ToString::to_string);
        std::iter::once(address).chain(others).collect()
    }

    fn address_field(self) -> String {
        format!("{}_ip_address", self.object().replace('-', "_"))
    }

    /// The full name of the node of this name.
    pub(super) fn full_name(self, name: &str) -> Vec<&str> {
        let parent = if self == Self::Control { &FABRIC[..] } else { &[SYSTEM][..] };
        parent.iter().copied().chain([name]).collect()
    }

    fn address(self, object: &Fields) -> &str {
        if self == Self::Control {
            let address = object.get(PARAMETERS).and_then(|all| all.get("address"));
            return address.and_then(|address| address.as_str()).unwrap_or_default();
        }
        text(object, &self.address_field())
    }
}

/// In what an object is another node than the expected one.
pub(super) fn mismatches(expected: &Expected<'_>, object: &Fields) -> Vec<Mismatch> {
    let address = expected.kind.address(object);
    let is_address = address.parse::<IpAddr>().ok() == Some(expected.address);
    let (kind, is_kind) = router_type(expected.kind, object);
    let sub_cluster = expected.sub_cluster.unwrap_or_default();
    let annotations = pairs::read(object.get(ANNOTATIONS));
    let ours = expected.cluster.to_string();
    let marked = annotations.get(CLUSTER).unwrap_or(&ours);
    let name = expected.kind.full_name(expected.name).join(":");
    let (found_name, found_sub_cluster) = (full_name(object), sub_clusters(object));
    let all = [
        ("name", found_name == name, name, found_name.as_str()),
        ("address", is_address, expected.address.to_string(), address),
        ("type", is_kind, CONTROL_NODES.join(" or "), kind),
        (
            "sub-cluster",
            found_sub_cluster == sub_cluster,
            sub_cluster.to_owned(),
            &found_sub_cluster,
        ),
        ("cluster", *marked == ours, ours.clone(), marked),
    ];
    let others = all.into_iter().filter(|(_, is_same, ..)| !is_same);
    let mismatch = |(what, _, expected, found): (&'static str, bool, String, &str)| Mismatch {
        what,
        expected,
        found: found.to_owned(),
    };
    others.map(mismatch).collect()
}

/// The type of a BGP router, and whether it is a control node; other kinds have none.
fn router_type(kind: NodeKind, object: &Fields) -> (&str, bool) {
    let found = object.get(PARAMETERS).and_then(|all| all.get("router_type"));
    let found = found.and_then(|found| found.as_str()).unwrap_or_default();
    (found, kind != NodeKind::Control || CONTROL_NODES.contains(&found))
}

/// The names of its sub-clusters, of which there is one at most.
fn sub_clusters(object: &Fields) -> String {
    let all = reference_names(object, SUB_CLUSTERS);
    let names = all.iter().map(|name| name.rsplit(':').next().unwrap_or_default());
    names.collect::<Vec<&str>>().join(",")
}

/// A node as it is registered; nothing, if it is no node of ours by its type or parent.
pub(super) fn registered(kind: NodeKind, object: &Fields) -> Option<Registered> {
    let name = full_name(object);
    let name = name.rsplit(':').next().filter(|name| !name.is_empty())?.to_owned();
    let (_, is_kind) = router_type(kind, object);
    if !is_kind || full_name(object) != kind.full_name(&name).join(":") {
        return None;
    }
    Some(Registered {
        kind,
        address: kind.address(object).parse().ok(),
        sub_cluster: Some(sub_clusters(object)).filter(|name| !name.is_empty()),
        cluster: pairs::read(object.get(ANNOTATIONS)).remove(CLUSTER),
        name,
    })
}

/// Whether the cluster is noted on it.
pub(super) fn is_marked(object: &Fields) -> bool {
    pairs::read(object.get(ANNOTATIONS)).contains_key(CLUSTER)
}

/// The interface that upstream makes and deletes with the virtual router.
pub(super) fn is_vhost0(expected: &Expected<'_>, named: &Named) -> bool {
    let name = [SYSTEM, expected.name, "vhost0"].join(":");
    expected.kind == NodeKind::VirtualRouter && named.kind == INTERFACE && named.name == name
}

/// What refers to a node, is below it, or is on it.
pub(super) fn users(kind: NodeKind, object: &Fields, workloads: Workloads) -> Vec<Named> {
    let mut all = referrers(object);
    if kind == NodeKind::VirtualRouter && workloads == Workloads::Respect {
        // The reference is the virtual router's own, so that the Config API would delete it.
        all.extend(named(object, "virtual_machine_refs", "virtual-machine"));
    }
    all
}

/// What refers to an object or is below it.
pub(super) fn referrers(object: &Fields) -> Vec<Named> {
    let mut all = Vec::new();
    for field in object.keys() {
        match field.strip_suffix("_back_refs") {
            Some(kind) => all.extend(named(object, field, kind)),
            None if field.ends_with("_refs") => {}
            None => all.extend(named(object, field, field.strip_suffix('s').unwrap_or(field))),
        }
    }
    all
}

/// The objects that a field links to; none where it has no links.
fn named(object: &Fields, field: &str, kind: &str) -> Vec<Named> {
    let one = |link: &serde_json::Value| {
        let name: Option<Vec<&str>> =
            link.get("to")?.as_array()?.iter().map(|part| part.as_str()).collect();
        let uuid = link.get("uuid")?.as_str()?.to_owned();
        Some(Named { kind: kind.replace('_', "-"), name: name?.join(":"), uuid })
    };
    items(object, field).filter_map(one).collect()
}
