//! On which nodes the services run, as far as their node selectors say.

use opensdn_policy_components::{
    ComponentView, Field,
    component::{Component, Place},
    effective,
    nodes::nodes_with,
};
use opensdn_policy_sdk::{Failure, Message, Outcome, Severity, Verdict};

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

pub(crate) use opensdn_policy_components::nodes::Selector;

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

pub(crate) const REDIS: Message = Message {
    code: "OSDN1208",
    severity: Severity::Deny,
    title: "a service has no Redis on one of its nodes",
    explanation: "Analytics and the web UI ask Redis at 127.0.0.1. On a node without one they do not \
        become active.",
    hint: "let the node selector of redis match every node of analytics and webui; the same selector, or \
        none, is the simplest",
};

impl Placed<'_> {
    /// The names of its nodes, where the cluster knows nodes.
    fn node_names(&self) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        let marked = CONTROL_PLANE.map(|key| Selector::from([(key.to_owned(), String::new())]));
        let selectors = match self.selector.value {
            Some(selector) => std::slice::from_ref(selector),
            None => &marked[..],
        };
        for selector in selectors {
            names.extend(nodes_with(selector)?.into_iter().map(|node| node.name));
        }
        Ok(names)
    }
}

/// What asks Redis at 127.0.0.1 has one on each of its nodes.
pub(crate) fn judge_redis(placed: &[Placed<'_>], verdict: &mut Verdict) -> Outcome {
    let redis: Vec<_> = placed.iter().filter(|placed| placed.component.kind == "Redis").collect();
    if redis.is_empty() {
        return Ok(());
    }
    let mut with_redis = Vec::new();
    for one in &redis {
        with_redis.extend(one.node_names()?);
    }
    for user in placed {
        let needs = Component::of_kind(user.component.kind).map_or(&[][..], |known| known.needs);
        let here = needs.iter().any(|need| need.kind == "Redis" && need.place == Place::SameNode);
        // The same selector says so without a look at the nodes.
        if !here || redis.iter().any(|one| one.covers(user)) {
            continue;
        }
        let mut without = user.node_names()?;
        without.retain(|name| !with_redis.contains(name));
        without.sort_unstable();
        without.dedup();
        if !without.is_empty() {
            let text = format!(
                "{}: no Redis on {}",
                user.component.title(),
                without.iter().take(6).cloned().collect::<Vec<_>>().join(", ")
            );
            verdict.add(REDIS.at(user.component.shared("/nodeSelector")).says(text));
        }
    }
    Ok(())
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
