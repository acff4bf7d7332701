//! The containers of a Control.

use opensdn_crds::control::ControlConfiguration;

use super::super::shared::{node_manager, provisioner};
use super::{ASN, DIRECTORY, DNS, DNS_INTROSPECT, INTROSPECT, NODE_MANAGER, NODE_TYPE};
use crate::component::{Check, Container, Introspect, Mount, Sessions};

pub(super) fn containers(settings: &ControlConfiguration) -> Vec<Container> {
    let folders = || {
        vec![Mount::at("etc-contrail", "/etc/contrail"), Mount::at("etc-contrail-dns", DIRECTORY)]
    };
    let mut provisioner = provisioner::container(NODE_TYPE);
    provisioner.env.push(("BGP_ASN", settings.asn_number.unwrap_or(ASN).to_string()));
    if let Some(subcluster) = settings.subcluster.clone().filter(|name| !name.is_empty()) {
        provisioner.env.push(("SUBCLUSTER", subcluster));
    }
    vec![
        Container {
            name: "control",
            check: Check::Port(INTROSPECT),
            introspect: Some(Introspect {
                ports: vec![INTROSPECT],
                sessions: Sessions::Bgp,
                ..Introspect::default()
            }),
            capabilities: &["SYS_PTRACE"],
            requests: ("100m", "256Mi"),
            ..Container::default()
        },
        Container {
            name: "dns",
            mounts: folders(),
            check: Check::Port(DNS_INTROSPECT),
            capabilities: &["SYS_PTRACE"],
            requests: ("50m", "64Mi"),
            ..Container::default()
        },
        Container {
            name: "named",
            mounts: folders(),
            check: Check::Port(DNS),
            // As tf-operator has it: it opens its port, changes its user, and raises its limits.
            is_privileged: true,
            requests: ("20m", "32Mi"),
            ..Container::default()
        },
        node_manager::container(NODE_TYPE, NODE_MANAGER),
        provisioner,
    ]
}
