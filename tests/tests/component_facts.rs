//! The table of components of `opensdn-crds` and that of the stand-in were made from different
//! sources: the one from what the operator renders, the other from the images. Where both say
//! something, they say the same.

use std::collections::BTreeSet;

use opensdn_crds::component::{COMPONENTS, Port};

/// What a real program is used for in the lab, instead of the stand-in.
const REAL_PROGRAMS: [&str; 5] = ["cassandra", "dnsmasq", "rabbitmq", "redis", "zookeeper"];

/// The name of the stand-in for a container: node managers are one program each.
fn stand_in_for(kind: &str, container: &str) -> String {
    let node = match kind {
        "AnalyticsAlarm" => "analytics-alarm".to_owned(),
        "AnalyticsSnmp" => "analytics-snmp".to_owned(),
        "Cassandra" => "database".to_owned(),
        kind => kind.to_lowercase(),
    };
    if container == "nodemanager" { format!("nodemanager-{node}") } else { container.to_owned() }
}

#[test]
fn the_table_has_every_port_that_the_stand_in_opens_by_default() {
    for (name, ports) in opensdn_stand_in::usual_ports() {
        let of_name = |kind: &str, port: &&Port| stand_in_for(kind, port.container) == name;
        let known: BTreeSet<u16> = COMPONENTS
            .iter()
            .flat_map(|component| {
                component.ports.iter().filter(|port| of_name(component.kind, port))
            })
            .map(|port| port.number)
            .collect();
        // Which port the node manager of a Cassandra has depends on the others of its Manager.
        let is_of_a_database = name.starts_with("nodemanager-") && name.ends_with("database");
        let missing: Vec<_> = ports.iter().filter(|port| !known.contains(port)).collect();
        assert!(missing.is_empty() || is_of_a_database, "{name}: {missing:?} not in {known:?}");
    }
}

#[test]
fn every_container_is_stood_in_for_or_a_real_program() {
    let names: BTreeSet<_> = opensdn_stand_in::usual_ports().map(|(name, _)| name).collect();
    for component in COMPONENTS {
        for container in component.containers.main {
            let name = stand_in_for(component.kind, container);
            assert!(
                names.contains(name.as_str()) || REAL_PROGRAMS.contains(container),
                "{}: {container}",
                component.kind
            );
        }
    }
}
