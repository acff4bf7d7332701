//! On which nodes the services run, as far as their node selectors say.

use std::collections::BTreeMap;

use opensdn_policy_components::{ComponentView, Field, effective};
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::Spec;

pub(crate) const CONTROLS: Message = Message {
    code: "OSDN1210",
    severity: Severity::Deny,
    title: "two Controls run on the same nodes",
    explanation: "Both listen on the ports 179, 5269 and 53 of the node, and the second one ends \
        again and again.",
    hint: "give the Controls node selectors that no node matches both of",
};

pub(crate) const VROUTERS: Message = Message {
    code: "OSDN1212",
    severity: Severity::Deny,
    title: "two groups of vrouters run on the same nodes",
    explanation: "A node has one data plane: the pod of the second group stays Pending on it.",
    hint: "give the groups node selectors that no node matches both of",
};

/// Labels that a node must have, with their values.
pub(crate) type Selector = BTreeMap<String, String>;

const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// A service with the selector that counts for it.
pub(crate) struct Placed<'a> {
    pub(crate) component: &'a ComponentView<'a, Spec>,
    selector: Field<Option<&'a Selector>>,
}

/// The services with their effective selectors; `common` is the Manager's.
pub(crate) fn place<'a>(
    components: &'a [ComponentView<'a, Spec>],
    common: Option<&'a Selector>,
) -> Vec<Placed<'a>> {
    let place = |component: &'a ComponentView<'a, Spec>| {
        let own = component.spec.common_configuration.node_selector.as_ref();
        let inherited = (common, "/spec/commonConfiguration/nodeSelector".into());
        let selector = effective((own, component.shared("/nodeSelector")), Some(inherited));
        Placed { component, selector }
    };
    components.iter().map(place).collect()
}

impl Placed<'_> {
    /// Whether every node of one is a node of the other, by the selectors alone.
    pub(crate) fn shares_nodes_with(&self, other: &Self) -> bool {
        self.covers(other) || other.covers(self)
    }

    fn covers(&self, other: &Self) -> bool {
        match (self.selector.value, other.selector.value) {
            (Some(own), Some(theirs)) => {
                own.iter().all(|(key, value)| theirs.get(key) == Some(value))
            }
            // Without a selector vrouters run on every node, all else on the control plane.
            (None, _) if self.component.kind == "Vrouter" => true,
            (None, None) => other.component.kind != "Vrouter",
            (None, Some(theirs)) => {
                CONTROL_PLANE.iter().any(|key| theirs.get(*key).is_some_and(String::is_empty))
            }
            (Some(_), None) => false,
        }
    }

    /// The nodes in words.
    pub(crate) fn nodes(&self) -> String {
        match self.selector.value {
            Some(selector) => {
                let labels: Vec<_> =
                    selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("the nodes with {}", labels.join(" and "))
            }
            None if self.component.kind == "Vrouter" => "all nodes".to_owned(),
            None => "the nodes of the control plane".to_owned(),
        }
    }
}

pub(crate) fn judge(placed: &[Placed<'_>], verdict: &mut Verdict) {
    for (kind, message) in [("Control", &CONTROLS), ("Vrouter", &VROUTERS)] {
        let group: Vec<_> = placed.iter().filter(|placed| placed.component.kind == kind).collect();
        for (number, second) in group.iter().enumerate() {
            let first = group.iter().take(number).find(|first| first.shares_nodes_with(second));
            if let Some(first) = first {
                let text = format!(
                    "{} is on {}, {} on {}",
                    first.component.title(),
                    first.nodes(),
                    second.component.title(),
                    second.nodes()
                );
                verdict.add(message.at(second.component.shared("/nodeSelector")).says(text));
            }
        }
    }
}
