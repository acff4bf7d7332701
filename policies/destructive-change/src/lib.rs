//! Changes and deletions that take something away.
//!
//! ```yaml
//! kind: Manager
//! spec:
//!   services:
//!     zookeepers: …       # was zookeeper: the API server drops the key, the operator deletes it
//! ```
//!
//! What is lost must be named in an annotation, so that it is meant and not mistyped. In a change it
//! counts only where it is new: what was confirmed once confirms nothing later.
//!
//! ```yaml
//! metadata:
//!   annotations:
//!     opensdn.io/confirm-loss: Zookeeper/zookeeper1
//! ```
//!
//! A change that only interrupts is a warning, and so is the change of a Manager's child, which the
//! operator undoes. What the operator itself changes is not judged: the Manager has been.

mod confirmation;
mod databases;
mod deletion;
mod downgrade;
mod edit;
mod interruption;
mod profile;
mod relocation;
mod removal;

use opensdn_policy_components::{ComponentView, Owners, Services, nodes::NODES};
use opensdn_policy_sdk::{Failure, Outcome, Reads, Request, Verdict, policy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use confirmation::{Confirmed, Losses, item};
use interruption::{Common, Spec};
use profile::VROUTERS_OF_NAMESPACE;

/// Settings of the policy `destructive-change`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Users who do what a Manager says: their deletions need no confirmation.
    pub operators: Vec<String>,
}

/// Who carries out what was decided elsewhere: a namespace that waited for a confirmation would
/// hang half-deleted. The last is all of them where they share one account.
const CONTROLLERS: [&str; 3] = [
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:kube-controller-manager",
];

impl Settings {
    /// Whether the user carries out what has been judged already.
    fn trusts(&self, user: &str) -> bool {
        CONTROLLERS.contains(&user) || self.operators.iter().any(|operator| operator == user)
    }
}

/// The account of tf-operator, and that of ours.
const OPERATORS: [&str; 2] = [
    "system:serviceaccount:tf:tf-operator",
    "system:serviceaccount:opensdn-operator:opensdn-operator",
];

impl Default for Settings {
    fn default() -> Self {
        Self { operators: OPERATORS.map(str::to_owned).into() }
    }
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager", operations(Update))]
struct Manager {
    #[read("/metadata/annotations/opensdn.io~1confirm-loss")]
    confirmed: Option<Confirmed>,
    #[read("/spec/commonConfiguration")]
    common: Option<Common>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return Ok(()) };
    let none = Services::default();
    let (before, after) =
        (old.services.as_ref().unwrap_or(&none), new.services.as_ref().unwrap_or(&none));
    let nothing = Spec::default();
    let before: Vec<_> = before.walk_all(&nothing).collect();
    let after: Vec<_> = after.walk_all(&nothing).collect();
    let removed = removal::removed(&before, &after);
    let moved = databases::moved(&before, &after);
    let (no_common, common) = (Common::default(), |of: &Manager| of.common.clone());
    let (old_common, new_common) = (common(old), common(new));
    let relocated = relocation::relocated(
        (&before, old_common.as_ref().unwrap_or(&no_common)),
        (&after, new_common.as_ref().unwrap_or(&no_common)),
    )?;
    let lost = removed.iter().chain(&moved).chain(&relocated);
    let losses = lost.map(|component| item(component.kind, component.name));
    let losses = Losses {
        manager: (&request.namespace, &request.name),
        all: losses.collect(),
        confirmed: new.confirmed.clone().unwrap_or_default(),
        before: old.confirmed.clone().unwrap_or_default(),
    };
    for component in removed {
        removal::judge(component, &after, &losses, verdict);
    }
    for component in moved {
        databases::judge(component, &losses, verdict);
    }
    for component in relocated {
        relocation::judge(component, &losses, verdict);
    }
    for component in &after {
        let same = |old: &&ComponentView<'_, Spec>| is_same(old, component);
        if let Some(old) = before.iter().find(same) {
            interruption::judge(old.spec, component, verdict);
            if !settings.trusts(&request.user) {
                downgrade::judge(old.spec, component, verdict);
            }
        }
    }
    Ok(())
}

/// Whether they are one and the same component, before the change and after it.
fn is_same(one: &ComponentView<'_, Spec>, other: &ComponentView<'_, Spec>) -> bool {
    (one.kind, one.name) == (other.kind, other.name)
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*", operations(Update))]
struct Standalone {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec")]
    spec: Value,
}

fn standalone(
    request: &Request<Standalone>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return Ok(()) };
    let unreadable = |error: serde_json::Error| Failure(format!("/spec: {error}"));
    let spec = |of: &Standalone| Option::<Spec>::deserialize(&of.spec).map_err(unreadable);
    match new.owners.as_ref().and_then(Owners::manager) {
        None => {
            let (old, new) = (spec(old)?.unwrap_or_default(), spec(new)?.unwrap_or_default());
            let component = ComponentView::standalone(&request.kind, &request.name, &new);
            interruption::judge(&old, &component, verdict);
            downgrade::judge(&old, &component, verdict);
            let before = [ComponentView::standalone(&request.kind, &request.name, &old)];
            let (after, none) = ([component], Common::default());
            for database in relocation::relocated((&before, &none), (&after, &none))? {
                relocation::warn(database, verdict);
            }
        }
        Some(manager) if edit::takes(&old.spec, &new.spec) && !settings.trusts(&request.user) => {
            edit::judge(&request.kind, &request.name, &manager.name, verdict);
        }
        Some(_) => {}
    }
    Ok(())
}

policy! {
    name: "destructive-change",
    summary: "what would be lost by a change or a deletion is confirmed first",
    settings: Settings,
    messages: [
        deletion::DELETED,
        removal::REMOVED,
        edit::UNDONE,
        databases::MOVED,
        relocation::LEFT_BEHIND,
        interruption::CREDENTIALS,
        interruption::VROUTERS,
        downgrade::BACKWARDS,
    ],
    // They are about the change itself.
    never_ratchets: [
        deletion::DELETED,
        removal::REMOVED,
        edit::UNDONE,
        databases::MOVED,
        relocation::LEFT_BEHIND,
        interruption::CREDENTIALS,
        interruption::VROUTERS,
        downgrade::BACKWARDS,
    ],
    indexes: [NODES, VROUTERS_OF_NAMESPACE],
    validate: [
        manager,
        standalone,
        deletion::cassandra,
        deletion::config,
        deletion::manager,
        deletion::rabbitmq,
        deletion::vrouter,
        deletion::zookeeper,
        profile::changed,
    ],
}
