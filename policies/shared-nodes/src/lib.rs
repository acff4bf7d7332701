//! Two Managers whose vrouters run on the same nodes.
//!
//! ```yaml
//! kind: Manager
//! metadata: {name: cluster2, namespace: other}
//! spec: {services: {vrouters: [{metadata: {name: vrouter1}, …}]}}    # on all nodes, as those of cluster1
//! ```
//!
//! A node has one data plane, whatever the namespace. That two selectors mean the same nodes is certain only where
//! one of them has all labels of the other and nothing but they says where the pods run: which nodes have a label changes
//! without a write of the Manager, and groups with tolerations of their own may be kept apart by taints. So a node
//! selector is claimed, and no node. All nodes are claimed by every Manager: those whose groups all have labels share the
//! claim, and one with a group on all nodes shares it with no other. Where one selector with labels contains another,
//! the Managers that are stored are compared, which does not hold for two that are written at the same moment. Between the
//! groups of one Manager it is OSDN1212.

use std::collections::BTreeSet;

use opensdn_policy_components::{
    Item, effective,
    nodes::{Selector, matches},
    null_as_default,
};
use opensdn_policy_sdk::{
    Failure, Found, Index, Message, NoSettings, Outcome, Pointer, Reads, Request, Severity,
    Verdict, policy,
};
use serde::Deserialize;

const TAKEN: Message = Message {
    code: "OSDN1103",
    severity: Severity::Deny,
    title: "another Manager runs its vrouters on the same nodes",
    explanation: "A node has one vhost0, one kernel module, one CNI configuration and one set of ports of the host: the \
        vrouters of two Managers take them from each other, in whichever namespaces they are. What is compared are \
        the node selectors, of which one may have all labels of the other; that others match the same node is \
        seen by: kubectl opensdn check --only N107. A Manager that has got out of the way by a change has the nodes for \
        some 90 seconds more, unless --claim-grace of the webhook says otherwise; then they are free.",
    hint: "give the vrouters of this Manager another node selector, or none of that Manager; what is taken is listed by: \
        kubectl get uniqueclaims",
};

const SCOPE: &str = "vrouter-nodes";

/// Keys of UniqueClaims are no longer; selectors that are have labels enough to be distinguished.
const LONGEST_KEY: usize = 1000;

const MANAGERS: Index = Index {
    name: "managers",
    group: "tf.tungsten.io",
    kind: "Manager",
    key: "",
    reads: &[
        "/spec/commonConfiguration/nodeSelector",
        "/spec/commonConfiguration/tolerations",
        "/spec/services/vrouters",
    ],
};

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration/nodeSelector")]
    selector: Option<Selector>,
    #[read("/spec/commonConfiguration/tolerations")]
    tolerations: Option<Vec<Toleration>>,
    #[read("/spec/services/vrouters")]
    vrouters: Option<Vec<Option<Item<Spec>>>>,
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
    /// Whether it tolerates every taint of that effect.
    fn is_of_all(&self, wanted: &str) -> bool {
        let is_unset = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
        let is_of_effect = is_unset(&self.effect) || self.effect.as_deref() == Some(wanted);
        is_unset(&self.key) && is_of_effect && self.operator.as_deref() == Some("Exists")
    }
}

/// Whether no taint keeps pods away. Of `PreferNoSchedule` none does.
fn tolerate_everything(all: &[Toleration]) -> bool {
    ["NoSchedule", "NoExecute"].iter().all(|effect| all.iter().any(|one| one.is_of_all(effect)))
}

/// Where a group of vrouters runs.
struct Group {
    labels: Selector,
    /// Where the selector is, or would be.
    at: Pointer,
}

/// The key that every Manager with vrouters claims.
const ALL: &str = "all nodes";
/// What those say of it who have labels for each of their groups; no Manager is called so.
const SOME: &str = "labels";

impl Group {
    fn is_on_all_nodes(&self) -> bool {
        self.labels.is_empty()
    }

    fn key(&self) -> String {
        let labels: Vec<_> =
            self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if labels.is_empty() { ALL.to_owned() } else { labels.join(",") }
    }

    fn nodes(&self) -> String {
        if self.labels.is_empty() { self.key() } else { format!("the nodes with {}", self.key()) }
    }

    /// Whether every node of one is a node of the other.
    fn shares_nodes_with(&self, other: &Self) -> bool {
        matches(&self.labels, &other.labels) || matches(&other.labels, &self.labels)
    }
}

impl Manager {
    fn of(found: &Found) -> Result<Self, Failure> {
        Ok(Self { selector: found.part(0)?, tolerations: found.part(1)?, vrouters: found.part(2)? })
    }

    fn groups(&self) -> impl Iterator<Item = Group> {
        let items = self.vrouters.iter().flatten().enumerate();
        items.filter_map(|(number, item)| self.group(number, item.as_ref()?))
    }

    /// None where taints may keep the group from nodes that its selector matches.
    fn group(&self, number: usize, item: &Item<Spec>) -> Option<Group> {
        let group =
            item.component("Vrouter", &Pointer::from("/spec/services/vrouters").index(number))?;
        let own = &group.spec.common_configuration;
        let tolerations = effective(
            (own.tolerations.as_ref(), group.shared("/tolerations")),
            Some((self.tolerations.as_ref(), "/spec/commonConfiguration/tolerations".into())),
        );
        // Without any a vrouter tolerates everything, with either operator.
        if !tolerations.value.is_none_or(|all| tolerate_everything(all)) {
            return None;
        }
        let selector = effective(
            (own.node_selector.as_ref(), group.shared("/nodeSelector")),
            Some((self.selector.as_ref(), "/spec/commonConfiguration/nodeSelector".into())),
        );
        Some(Group { labels: selector.value.cloned().unwrap_or_default(), at: selector.at })
    }
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(manager) = &request.object else { return Ok(()) };
    // Which of two that are there already was first is not known here, and it may have to be changed to get out of it.
    let old: Vec<_> = request.old_object.iter().flat_map(Manager::groups).collect();
    let mut known: BTreeSet<Selector> = old.iter().map(|group| group.labels.clone()).collect();
    let new: Vec<_> = manager.groups().filter(|group| known.insert(group.labels.clone())).collect();
    for group in new.iter().filter(|group| !group.is_on_all_nodes()) {
        let key = group.key();
        if key.len() <= LONGEST_KEY {
            verdict.claim(&TAKEN, SCOPE, key, &group.at);
        }
    }
    claim_all_nodes(request, &old, manager, verdict);
    if new.is_empty() { Ok(()) } else { compare(request, &old, &new, verdict) }
}

/// One claim for all groups: those of one Manager do not refuse each other. Who had a group on all nodes takes none from
/// anyone by leaving some, and the controller of the claims sees it afterwards.
fn claim_all_nodes(
    request: &Request<Manager>,
    old: &[Group],
    manager: &Manager,
    verdict: &mut Verdict,
) {
    let groups: Vec<_> = manager.groups().collect();
    let on_all = groups.iter().find(|group| group.is_on_all_nodes());
    let Some(group) = on_all.or(groups.first()) else { return };
    let was_on_all = old.iter().any(Group::is_on_all_nodes);
    if was_on_all || (on_all.is_none() && !old.is_empty()) {
        return;
    }
    let value = match on_all {
        Some(_) => format!("{}/{}", request.namespace, request.name),
        None => SOME.to_owned(),
    };
    verdict.claim_shared(&TAKEN, SCOPE, (ALL, value), &group.at);
}

/// Selectors that are equal are left to the claims. That a group goes to some of the nodes that it had takes none from
/// anyone: two Managers that share nodes get apart only so.
fn compare(
    request: &Request<Manager>,
    old: &[Group],
    new: &[Group],
    verdict: &mut Verdict,
) -> Outcome {
    let is_narrower = |own: &&Group| old.iter().any(|before| matches(&own.labels, &before.labels));
    let new: Vec<_> = new.iter().filter(|own| !is_narrower(own)).collect();
    for found in MANAGERS.find("")? {
        let (namespace, name) = (found.namespace(), found.name());
        if (namespace, name) == (&*request.namespace, &*request.name) {
            continue;
        }
        for theirs in Manager::of(&found)?.groups() {
            let differs = |group: &&Group| group.labels != theirs.labels;
            for own in
                new.iter().copied().filter(differs).filter(|own| own.shares_nodes_with(&theirs))
            {
                let text = format!(
                    "vrouters of Manager {name} in namespace {namespace} run on {}, and these on {}",
                    theirs.nodes(),
                    own.nodes()
                );
                let hint = "give the vrouters of both Managers node selectors that no node matches both of";
                verdict.add(TAKEN.at(&own.at).says(text).hint(hint));
            }
        }
    }
    Ok(())
}

policy! {
    name: "shared-nodes",
    summary: "no two Managers have vrouters on the same nodes",
    settings: NoSettings,
    messages: [TAKEN],
    indexes: [MANAGERS],
    claims: true,
    validate: [manager],
}
