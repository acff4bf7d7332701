//! A service that would lose members: fewer nodes than its StatefulSet has replicas.

use opensdn_policy_components::Owners;
use opensdn_policy_sdk::{Index, Message, Outcome, Pointer, Severity, Verdict};

pub(crate) const FEWER: Message = Message {
    code: "OSDN1206",
    severity: Severity::Deny,
    title: "a quorum service would have fewer nodes than members",
    explanation: "Members that go must leave one at a time, each after the others have its data. tf-operator \
        never takes one away: it leaves the StatefulSet as it is and writes the shorter list into the \
        configuration of those that it restarts, so that members disagree on who they are.",
    hint: "select as many nodes as there are members, and take members out one by one; with tf-operator the \
        StatefulSet has to be deleted by hand",
};

/// By namespace: an owner reference is no key.
pub(crate) const STATEFUL_SETS: Index = Index {
    name: "stateful-sets",
    group: "apps",
    kind: "StatefulSet",
    key: "/metadata/namespace",
    reads: &["/spec/replicas", "/metadata/ownerReferences"],
};

/// `nodes` is how many the selector at `at` matches, one at least.
pub(crate) fn judge(
    (kind, name, namespace): (&str, &str, &str),
    nodes: usize,
    at: &Pointer,
    verdict: &mut Verdict,
) -> Outcome {
    for set in STATEFUL_SETS.find(namespace)? {
        if !set.part::<Owners>(1)?.unwrap_or_default().has_component(kind, name) {
            continue;
        }
        // Unset means one.
        let members = set.part::<usize>(0)?.unwrap_or(1);
        if nodes >= members {
            continue;
        }
        let text =
            format!("{kind} {name} has {members} members, and {nodes} of the nodes are left");
        let finding = FEWER.at(at).says(text);
        verdict.add(if members - nodes == 1 { finding.severity(Severity::Warn) } else { finding });
    }
    Ok(())
}
