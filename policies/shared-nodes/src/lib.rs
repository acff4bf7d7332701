//! Two Managers whose vrouters run on the same nodes.
//!
//! ```yaml
//! kind: Manager
//! metadata: {name: cluster2, namespace: other}
//! spec: {services: {vrouters: [{metadata: {name: vrouter1}, …}]}}    # on all nodes, as those of cluster1
//! ```
//!
//! A node has one data plane, whatever the namespace. That two selectors mean the same nodes is certain only where
//! they are the same and nothing but they says where the pods run: which nodes have a label changes without a write
//! of the Manager, and groups with tolerations of their own may be kept apart by taints. So a node selector is
//! claimed, and no node. Between the groups of one Manager it is OSDN1212.

use std::collections::BTreeSet;

use opensdn_policy_components::{
    ComponentView, Services, effective, nodes::Selector, null_as_default,
};
use opensdn_policy_sdk::{
    Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use serde::Deserialize;

const TAKEN: Message = Message {
    code: "OSDN1103",
    severity: Severity::Deny,
    title: "another Manager runs its vrouters on the same nodes",
    explanation: "A node has one vhost0, one kernel module, one CNI configuration and one set of ports of the host: the \
        vrouters of two Managers take them from each other, in whichever namespaces they are. What is compared are \
        the node selectors; that different ones match the same node is not seen here.",
    hint: "give the vrouters of this Manager another node selector, or none of that Manager; what is taken is listed by: \
        kubectl get uniqueclaims",
};

/// Keys of UniqueClaims are no longer; selectors that are have labels enough to be distinguished.
const LONGEST_KEY: usize = 1000;

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration/nodeSelector")]
    selector: Option<Selector>,
    #[read("/spec/commonConfiguration/tolerations")]
    tolerations: Option<Vec<Toleration>>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    common_configuration: Placement,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Placement {
    node_selector: Option<Selector>,
    tolerations: Option<Vec<Toleration>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Toleration {
    key: Option<String>,
    operator: Option<String>,
    effect: Option<String>,
}

impl Toleration {
    /// Whether it tolerates every taint.
    fn is_of_everything(&self) -> bool {
        let is_unset = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
        is_unset(&self.key) && is_unset(&self.effect) && self.operator.as_deref() == Some("Exists")
    }
}

impl Manager {
    /// The node selectors of the groups of vrouters, and where each is.
    fn selectors(&self) -> Vec<(String, Pointer)> {
        let groups = self.services.iter().flat_map(Services::walk);
        let groups = groups.filter(|component| component.kind == "Vrouter");
        groups.filter_map(|group| self.selector_of(&group)).collect()
    }

    /// None where taints may keep the group from nodes that its selector matches.
    fn selector_of(&self, group: &ComponentView<'_, Spec>) -> Option<(String, Pointer)> {
        let own = &group.spec.common_configuration;
        let tolerations = effective(
            (own.tolerations.as_ref(), group.shared("/tolerations")),
            Some((self.tolerations.as_ref(), "/spec/commonConfiguration/tolerations".into())),
        );
        // Without any a vrouter tolerates everything, with either operator.
        let is_everywhere = |all: &Vec<Toleration>| all.iter().any(Toleration::is_of_everything);
        if !tolerations.value.is_none_or(is_everywhere) {
            return None;
        }
        let selector = effective(
            (own.node_selector.as_ref(), group.shared("/nodeSelector")),
            Some((self.selector.as_ref(), "/spec/commonConfiguration/nodeSelector".into())),
        );
        let labels = selector.value.into_iter().flatten();
        let labels: Vec<_> = labels.map(|(key, value)| format!("{key}={value}")).collect();
        let key = if labels.is_empty() { "all nodes".to_owned() } else { labels.join(",") };
        (key.len() <= LONGEST_KEY).then_some((key, selector.at))
    }
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(manager) = &request.object else { return Ok(()) };
    // Which of two that are there already was first is not known here, and it may have to be changed to get out of it.
    let old = request.old_object.iter().flat_map(Manager::selectors);
    let mut known: BTreeSet<String> = old.map(|(key, _)| key).collect();
    for (key, at) in manager.selectors() {
        if known.insert(key.clone()) {
            verdict.claim(&TAKEN, "vrouter-nodes", key, at);
        }
    }
    Ok(())
}

policy! {
    name: "shared-nodes",
    summary: "no two Managers have vrouters on the same nodes",
    settings: NoSettings,
    messages: [TAKEN],
    claims: true,
    validate: [manager],
}
