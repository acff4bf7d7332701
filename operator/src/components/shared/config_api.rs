//! What the Config API has to know of the components around it (pure): link-local services, the order of
//! encapsulations, and which nodes are registered there as what.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_config_api::deregistration::NodeKind;
use opensdn_config_api::encapsulation::{Encapsulation, Priorities};
use opensdn_config_api::link_local::{Hosts, Key, Row, Target, is_metadata};
use opensdn_crds::component::{self, Component};
use opensdn_crds::config::LinklocalServiceConfig;
use serde_json::Value;

use super::around::is_of_analytics;
use crate::cache::Cache;
use crate::kind::Kind;
use crate::peers::Peers;

/// The kind whose pods are the Config API.
pub(crate) const COMPONENT: &Component = component::row("Config");
/// The field with its port.
pub(crate) const PORT: &str = "apiPort";
const DATABASE: &str = "Cassandra";
/// What is registered as what; databases are distinguished by their names.
const REGISTERED: [(&str, NodeKind); 7] = [
    ("Control", NodeKind::Control),
    ("Vrouter", NodeKind::VirtualRouter),
    ("Config", NodeKind::Config),
    ("Analytics", NodeKind::Analytics),
    ("AnalyticsAlarm", NodeKind::AnalyticsAlarm),
    ("AnalyticsSnmp", NodeKind::AnalyticsSnmp),
    ("Webui", NodeKind::WebUi),
];

/// Whether it is the address and port of Nova's metadata service. Agents know that by its name, and of equal keys take the
/// first: a row before it would cut every virtual machine off from it.
pub(crate) fn is_of_metadata(key: Key) -> bool {
    key == Key::new(Ipv4Addr::new(169, 254, 169, 254), 80)
}

/// Those of a namespace that stay.
pub(crate) fn in_namespace(cache: &Cache, namespace: &str) -> Vec<Arc<DynamicObject>> {
    let mut all = cache.list(Kind::Component(COMPONENT.kind), namespace);
    all.retain(|one| one.metadata.deletion_timestamp.is_none());
    all
}

/// The networks of pods, of Services and of pods in the fabric that the settings of a nested cluster of that name say, empty
/// where they say none; nothing where the namespace has no such settings.
pub(crate) fn nested_networks(
    cache: &Cache,
    namespace: &str,
    cluster: &str,
) -> Option<[String; 3]> {
    let setting = |object: &DynamicObject, field: &str| {
        crate::object::text(&object.data, &format!("/spec/serviceConfiguration/{field}")).to_owned()
    };
    let all = cache.list(Kind::Component("Kubemanager"), namespace);
    let found = all.into_iter().find(|one| setting(one, "nested/clusterName") == cluster)?;
    Some(["podSubnet", "serviceSubnet", "ipFabricSubnets"].map(|field| setting(&found, field)))
}

/// The addresses at which nodes of each kind are members.
pub(crate) fn members(peers: &Peers) -> Vec<(NodeKind, BTreeSet<IpAddr>)> {
    let addresses = |all: &[String]| -> Vec<IpAddr> {
        all.iter().filter_map(|address| address.parse().ok()).collect()
    };
    let of = |kind: &str| -> BTreeSet<IpAddr> {
        peers.of_kind(kind).flat_map(|peer| addresses(&peer.addresses)).collect()
    };
    let mut all: Vec<_> = REGISTERED.iter().map(|(kind, node)| (*node, of(kind))).collect();
    let databases = |of_analytics: bool| -> BTreeSet<IpAddr> {
        let all = peers.of_kind(DATABASE);
        let wanted = all.filter(|peer| is_of_analytics(&peer.name) == of_analytics);
        wanted.flat_map(|peer| addresses(&peer.addresses)).collect()
    };
    all.push((NodeKind::ConfigDatabase, databases(false)));
    all.push((NodeKind::Database, databases(true)));
    all
}

/// The order of encapsulations that the groups of vrouters want; none where none of them says one.
///
/// # Errors
/// They want different ones, and it is one for the whole network.
pub(crate) fn encapsulations(peers: &Peers) -> Result<Option<Priorities>, String> {
    let mut wanted: Option<(String, Priorities)> = None;
    for peer in peers.of_kind("Vrouter") {
        let given = peer.setting("encapsulationPriorities").filter(|given| !given.is_null());
        let Some(given) = given else { continue };
        let order: Vec<Encapsulation> = serde_json::from_value(given.clone())
            .map_err(|error| format!("{}: encapsulationPriorities: {error}", peer.title()))?;
        let order = Priorities::new(order)
            .map_err(|error| format!("{}: encapsulationPriorities: {error}", peer.title()))?;
        match &wanted {
            None => wanted = Some((peer.title(), order)),
            Some((_, other)) if *other == order => {}
            Some((first, other)) => {
                return Err(format!(
                    "encapsulationPriorities are one setting of the whole network, and {first} wants {other}, {} wants \
                     {order}: give all the same, or one alone",
                    peer.title()
                ));
            }
        }
    }
    Ok(wanted.map(|(_, order)| order))
}

/// The rows of `linklocalServices`. The metadata service is not among them: it is the provisioner's.
///
/// # Errors
/// What cannot be a row.
pub(crate) fn rows(object: &DynamicObject) -> Result<Vec<Row>, String> {
    let given = object.data.pointer("/spec/serviceConfiguration/linklocalServices");
    let given = given.cloned().filter(|given| !given.is_null()).unwrap_or(Value::Array(Vec::new()));
    let field = "spec.serviceConfiguration.linklocalServices";
    let all: Vec<LinklocalServiceConfig> =
        serde_json::from_value(given).map_err(|error| format!("{field}: {error}"))?;
    let row = |(number, one): (usize, &LinklocalServiceConfig)| {
        row(one).map_err(|why| format!("{field}[{number}] of {}: {why}", object.name_any()))
    };
    all.iter().enumerate().filter(|(_, one)| has_host(one)).map(row).collect()
}

/// Without a host the images leave it out.
fn has_host(given: &LinklocalServiceConfig) -> bool {
    given.ip_fabric_service_host.as_deref().is_some_and(|host| !host.is_empty())
}

fn row(given: &LinklocalServiceConfig) -> Result<Row, String> {
    let text = |given: &Option<String>| given.clone().unwrap_or_default();
    let (name, ip, host) =
        (text(&given.name), text(&given.ip), text(&given.ip_fabric_service_host));
    if name.is_empty() || is_metadata(&name) {
        return Err(format!(
            "the name {name:?} means the metadata service, which linklocalServiceConfig is for: give another name"
        ));
    }
    let ip: Ipv4Addr = ip.parse().map_err(|_| format!("the ip {ip:?} is no IPv4 address"))?;
    let port = |given: Option<i64>, default: u16| {
        let port = given.map_or(Some(default), |port| u16::try_from(port).ok());
        port.filter(|port| *port > 0).ok_or("a port is not from 1 to 65535")
    };
    let hosts = match host.parse::<Ipv4Addr>() {
        Ok(address) => Hosts::Addresses([address].into()),
        Err(_) => Hosts::Name(host),
    };
    let target = Target { hosts, port: port(given.ip_fabric_service_port, 8775)? };
    let key = Key::new(ip, port(given.port, 80)?);
    if is_of_metadata(key) {
        return Err(format!("{key} is that of Nova's metadata service: give another address"));
    }
    Ok(Row::new(&name, key, &target))
}

#[cfg(test)]
mod tests {
    use opensdn_runtime::watch::Event;
    use serde_json::json;

    use super::*;
    use crate::cache::Feed;
    use crate::components::workload_of;

    fn object(kind: &str, name: &str, settings: Value) -> DynamicObject {
        serde_json::from_value(json!({"apiVersion": "a/v1", "kind": kind, "metadata": {"name": name, "namespace": "tf"},
            "spec": {"serviceConfiguration": settings}}))
        .unwrap()
    }

    fn peers(vrouters: &[(&str, Value)]) -> Peers {
        let cache = Cache::default();
        for (name, order) in vrouters {
            let mut feed = Feed::new(Kind::Component("Vrouter"), "tf");
            let vrouter = object("Vrouter", name, json!({"encapsulationPriorities": order}));
            feed.take(&cache, Event::Apply(serde_json::to_value(vrouter).unwrap()));
        }
        Peers::read(&cache, &object("Config", "c", json!({})), &[], workload_of)
    }

    #[test]
    fn the_order_of_encapsulations_is_that_of_all_groups_or_a_conflict() {
        let (one, other) = (json!(["VXLAN", "MPLSoUDP"]), json!(["MPLSoUDP", "VXLAN"]));
        let of = |vrouters: &[(&str, Value)]| encapsulations(&peers(vrouters));
        assert_eq!(of(&[("a", Value::Null)]), Ok(None));
        let wanted = of(&[("a", Value::Null), ("b", one.clone()), ("c", one.clone())]).unwrap();
        assert_eq!(wanted.unwrap().to_string(), "VXLAN,MPLSoUDP");
        let conflict = of(&[("b", one), ("c", other)]).unwrap_err();
        assert!(
            conflict.contains("Vrouter b wants") && conflict.contains("Vrouter c wants"),
            "{conflict}"
        );
        assert!(of(&[("a", json!(["VXLAN", "VXLAN"]))]).is_err());
    }

    #[test]
    fn rows_are_those_with_a_host_and_the_metadata_service_is_none() {
        let of = |all: Value| {
            let rows = rows(&object("Config", "c", json!({"linklocalServices": all})));
            rows.map(|rows| rows.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let good = json!([{"name": "ntp", "ip": "169.254.1.1", "port": 123, "ipFabricServiceHost": "192.0.2.1", "ipFabricServicePort": 123},
            {"name": "without a host"},
            {"name": "dns", "ip": "169.254.1.2", "port": 53, "ipFabricServiceHost": "dns.example.com", "ipFabricServicePort": 53}]);
        assert_eq!(
            of(good).unwrap(),
            [
                "\"ntp\" 169.254.1.1:123 -> 192.0.2.1:123",
                "\"dns\" 169.254.1.2:53 -> dns.example.com:53"
            ]
        );
        let metadata =
            of(json!([{"ip": "169.254.1.1", "ipFabricServiceHost": "192.0.2.1"}])).unwrap_err();
        assert!(
            metadata.contains("linklocalServices[0] of c") && metadata.contains("metadata"),
            "{metadata}"
        );
        let port = of(
            json!([{"name": "ntp", "ip": "169.254.1.1", "port": 0, "ipFabricServiceHost": "192.0.2.1"}]),
        );
        assert!(port.unwrap_err().contains("1 to 65535"));
        assert_eq!(of(Value::Null).unwrap(), Vec::<String>::new());
    }
}
