//! Values that contradict each other, or that nothing can be found by.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::Spec;

pub(crate) const INTERFACES: Message = Message {
    code: "OSDN1804",
    severity: Severity::Deny,
    title: "an interface of the node is named twice",
    explanation: "Several interfaces are paired by their place in the list. The agent ends with \
        an error on the node where one stands twice.",
    hint: "name each interface once",
};

pub(crate) const TIMES: Message = Message {
    code: "OSDN1615",
    severity: Severity::Warn,
    title: "analytics data is to be kept longer than all data",
    explanation: "Flows and statistics are found by way of objects, which go after \
        analyticsDataTTL. What is kept longer is not found any more.",
    hint: "make analyticsDataTTL the largest of the three",
};

pub(crate) const FABRIC: Message = Message {
    code: "OSDN1705",
    severity: Severity::Warn,
    title: "pods are both in the fabric and behind the address of their node",
    explanation: "With ipFabricForwarding pods use the fabric with their own addresses, with \
        ipFabricSnat they use it with the address of their node. Which of the two holds is not \
        defined.",
    hint: "set one of ipFabricForwarding and ipFabricSnat to false",
};

pub(crate) fn judge_interfaces(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let interfaces = component.spec.service_configuration.text("physicalInterface");
    let names: Vec<&str> = interfaces.unwrap_or_default().split(',').map(str::trim).collect();
    let mut twice: Vec<&str> = names
        .iter()
        .enumerate()
        .filter(|(number, name)| !name.is_empty() && names.iter().take(*number).any(|n| n == *name))
        .map(|(_, name)| *name)
        .collect();
    twice.sort_unstable();
    twice.dedup();
    if !twice.is_empty() {
        let text = format!(
            "{}: physicalInterface names {} more than once",
            component.title(),
            twice.join(", ")
        );
        verdict.add(INTERFACES.at(component.setting("/physicalInterface")).says(text));
    }
}

pub(crate) fn judge_times(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    let all = given.number("analyticsDataTTL").unwrap_or(48);
    for (field, default) in [("analyticsFlowTTL", 2), ("analyticsStatisticsTTL", 4)] {
        let hours = given.number(field).unwrap_or(default);
        if hours > all {
            let text = format!(
                "{}: {field} is {hours} hours, analyticsDataTTL only {all}",
                component.title()
            );
            verdict.add(TIMES.at(component.setting("").key(field)).says(text));
        }
    }
}

pub(crate) fn judge_fabric(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    let forwarding = given.switch("ipFabricForwarding") == Some(true);
    if forwarding && given.switch("ipFabricSnat").unwrap_or(true) {
        let text = format!(
            "{}: ipFabricForwarding is true, and so is ipFabricSnat (its default)",
            component.title()
        );
        verdict.add(FABRIC.at(component.setting("/ipFabricForwarding")).says(text));
    }
}
