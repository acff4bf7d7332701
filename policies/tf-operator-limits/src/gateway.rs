//! The gateway of vrouters, which tf-operator wants in a network that it need not be in.

use std::net::Ipv4Addr;

use opensdn_policy_components::{ComponentView, Network};
use opensdn_policy_sdk::{Message, Severity, Verdict};
use serde_json::Value;

use crate::Spec;

pub(crate) const GATEWAY: Message = Message {
    code: "OSDN1825",
    severity: Severity::Deny,
    title: "tf-operator wants the gateway of vrouters within dataSubnet",
    explanation: "It looks for it there before it configures the vrouters of the group, and ends each try with an error where \
        dataSubnet is not set, is no network, or has another address, and where there are several gateways, as for L3 \
        multihoming: no pod of the group is configured.",
    hint: "set dataSubnet to the network of the one gateway, or remove vrouterGateway",
};

pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let text = |field| component.spec.given(field).and_then(Value::as_str).unwrap_or_default();
    let gateway = text("vrouterGateway");
    if component.kind != "Vrouter" || gateway.is_empty() {
        return;
    }
    let network = text("dataSubnet");
    let address: Option<Ipv4Addr> = gateway.parse().ok();
    let has = |address| Network::parse(network).is_some_and(|network| network.contains(address));
    if address.is_some_and(has) {
        return;
    }
    let where_ = if network.is_empty() { "dataSubnet, which is unset" } else { network };
    let text = format!(
        "a limit of tf-operator: {}: it looks for vrouterGateway {gateway} in {where_}",
        component.title()
    );
    verdict.add(GATEWAY.at(component.setting("/vrouterGateway")).says(text));
}
