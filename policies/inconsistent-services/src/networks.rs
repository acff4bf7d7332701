//! Values that two services must agree on.

use std::net::Ipv4Addr;

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::Spec;

pub(crate) const AS_NUMBERS: Message = Message {
    code: "OSDN1607",
    severity: Severity::Warn,
    title: "Control and Config name different AS numbers",
    explanation: "Each writes its number into the configuration of the network, so it has that \
        of the one that wrote last.",
    hint: "give asnNumber and globalASNNumber the same value, or remove both",
};

pub(crate) const DATA_SUBNETS: Message = Message {
    code: "OSDN1610",
    severity: Severity::Deny,
    title: "the vrouters look for their control nodes in another network",
    explanation: "The agents take the addresses of the control nodes that lie in their own \
        dataSubnet. Where the Control listens in another network, that is none, and no workload \
        has a network.",
    hint: "give the Vrouter and the Control that it names the same dataSubnet, or none",
};

pub(crate) const SUBCLUSTERS: Message = Message {
    code: "OSDN1613",
    severity: Severity::Deny,
    title: "the vrouters and their Control are in different subclusters",
    explanation: "The agent registers in another subcluster than the control nodes that it \
        connects to, so its routes are not exchanged with those of its neighbours.",
    hint: "give the Vrouter and the Control that it names the same subcluster, or none",
};

pub(crate) const ORCHESTRATORS: Message = Message {
    code: "OSDN1706",
    severity: Severity::Deny,
    title: "kube-manager and vrouters work for different orchestrators",
    explanation: "The CNI plug-in and the agent look for what kube-manager of the same \
        orchestrator makes: pods stay in ContainerCreating.",
    hint: "give cloudOrchestrator of kubemanager and of all vrouters the same value (default \
        kubernetes)",
};

/// What a Vrouter and its Control have to agree on.
pub(crate) struct Settings<'a> {
    pub(crate) title: String,
    pub(crate) data_subnet: Option<&'a str>,
    pub(crate) subcluster: Option<&'a str>,
}

impl<'a> Settings<'a> {
    fn of(component: &ComponentView<'a, Spec>) -> Self {
        let configuration = &component.spec.service_configuration;
        Self {
            title: component.title(),
            data_subnet: configuration.data_subnet.as_deref(),
            subcluster: configuration.subcluster.as_deref(),
        }
    }
}

pub(crate) fn judge(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    let of_kind =
        |kind: &'static str| components.iter().filter(move |component| component.kind == kind);
    for vrouter in of_kind("Vrouter") {
        let name = vrouter.spec.service_configuration.control_instance.as_deref();
        let control = of_kind("Control").find(|control| name == Some(control.name));
        if let Some(control) = control {
            let (own, theirs) = (Settings::of(vrouter), Settings::of(control));
            compare(&own, &theirs, &vrouter.setting(""), verdict);
        }
    }
    if let Some(config) = of_kind("Config").next() {
        let number = config.spec.service_configuration.global_asn_number.number().unwrap_or(64512);
        for control in of_kind("Control") {
            let own = control.spec.service_configuration.asn_number.number().unwrap_or(64512);
            if own != number {
                let (control_title, title) = (control.title(), config.title());
                let text = format!("{control_title} has AS number {own}, {title} {number}");
                verdict.add(AS_NUMBERS.at(control.setting("/asnNumber")).says(text));
            }
        }
    }
    if let Some(manager) = of_kind("Kubemanager").next() {
        for vrouter in of_kind("Vrouter") {
            let (own, wanted) = (orchestrator(vrouter), orchestrator(manager));
            if own != wanted {
                let text = format!("{}: {own}, and kube-manager's is {wanted}", vrouter.title());
                verdict.add(ORCHESTRATORS.at(vrouter.setting("/cloudOrchestrator")).says(text));
            }
        }
    }
}

fn orchestrator<'a>(component: &ComponentView<'a, Spec>) -> &'a str {
    match component.spec.service_configuration.cloud_orchestrator.as_deref() {
        None | Some("") => "kubernetes",
        Some(name) => name,
    }
}

/// Compares a Vrouter with the Control that it names; `at` is where the settings of the Vrouter
/// stand.
pub(crate) fn compare(
    own: &Settings<'_>,
    theirs: &Settings<'_>,
    at: &Pointer,
    verdict: &mut Verdict,
) {
    let same = match (own.data_subnet.map(network), theirs.data_subnet.map(network)) {
        // What cannot be read the schema refuses.
        (Some(Network::Unreadable), _) | (_, Some(Network::Unreadable)) => true,
        (left, right) => left.unwrap_or(Network::Unset) == right.unwrap_or(Network::Unset),
    };
    if !same {
        let text = difference(own, theirs, "dataSubnet", own.data_subnet, theirs.data_subnet);
        verdict.add(DATA_SUBNETS.at(at.key("dataSubnet")).says(text));
    }
    if own.subcluster.unwrap_or_default() != theirs.subcluster.unwrap_or_default() {
        let text = difference(own, theirs, "subcluster", own.subcluster, theirs.subcluster);
        verdict.add(SUBCLUSTERS.at(at.key("subcluster")).says(text));
    }
}

fn difference(
    own: &Settings<'_>,
    theirs: &Settings<'_>,
    field: &str,
    left: Option<&str>,
    right: Option<&str>,
) -> String {
    let shown = |value: Option<&str>| match value {
        None | Some("") => format!("no {field}"),
        Some(value) => format!("{field} {value}"),
    };
    format!("{} has {}, {} has {}", own.title, shown(left), theirs.title, shown(right))
}

#[derive(Debug, PartialEq, Eq)]
enum Network {
    Unset,
    Unreadable,
    Known { address: u32, prefix: u32 },
}

/// The network of an address with its prefix length, without the bits of the host.
fn network(text: &str) -> Network {
    if text.is_empty() {
        return Network::Unset;
    }
    let parsed = text.split_once('/').and_then(|(address, prefix)| {
        Some((address.parse::<Ipv4Addr>().ok()?, prefix.parse::<u32>().ok()?))
    });
    match parsed {
        Some((address, prefix @ 0..=32)) => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or_default();
            Network::Known { address: u32::from(address) & mask, prefix }
        }
        _ => Network::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::{Network, network};

    #[test]
    fn bits_of_the_host_do_not_count() {
        assert_eq!(network("10.1.0.7/24"), network("10.1.0.0/24"));
        assert_ne!(network("10.1.0.0/24"), network("10.1.0.0/25"));
        assert_eq!(network("0.0.0.0/0"), Network::Known { address: 0, prefix: 0 });
        assert_eq!(network("10.1.0.0/33"), Network::Unreadable);
        assert_eq!(network(""), Network::Unset);
    }
}
