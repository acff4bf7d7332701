//! The deletion of an object on which a whole cluster depends.

use opensdn_policy_components::Owners;
use opensdn_policy_sdk::{Message, Outcome, Reads, Request, Severity, Verdict};

use crate::{
    Settings,
    confirmation::{Confirmed, by_command, item},
};

pub(crate) const DELETED: Message = Message {
    code: "OSDN1111",
    severity: Severity::Deny,
    title: "something that a cluster stands on would be deleted",
    explanation: "Everything that the operator made of it goes with it: of a Manager all services, \
        of a Vrouter the interface vhost0 and the CNI of each node, so that pods lose their \
        network, of the others the StatefulSet that the rest waits for. A namespace that is \
        deleted and what goes with its owner are not held up: an ownerReference to an owner \
        that is absent, or is deleted later, has the object deleted without a confirmation, and so \
        has the deletion of its CRD.",
    hint: "confirm it first: kubectl annotate --overwrite -n NAMESPACE KIND.tf.tungsten.io NAME \
        opensdn.io/confirm-loss=KIND/NAME",
};

macro_rules! deletions {
    ($($function:ident: $object:ident of $kind:literal,)*) => {$(
        #[derive(Reads)]
        #[reads(group = "tf.tungsten.io", kind = $kind, operations(Delete))]
        pub(crate) struct $object {
            #[read("/metadata/annotations/opensdn.io~1confirm-loss")]
            confirmed: Option<Confirmed>,
            #[read("/metadata/deletionTimestamp")]
            deleted: Option<String>,
            // Of many that are deleted at once the request names none.
            #[read("/metadata/name")]
            name: String,
            #[read("/metadata/ownerReferences")]
            owners: Option<Owners>,
        }

        pub(crate) fn $function(
            request: &Request<$object>,
            settings: &Settings,
            verdict: &mut Verdict,
        ) -> Outcome {
            if let Some($object { confirmed, deleted: None, name, owners }) = &request.old_object {
                let target = Target {
                    namespace: &request.namespace,
                    kind: &request.kind,
                    name,
                    confirmed: confirmed.as_ref(),
                    owners: owners.as_ref(),
                };
                if !settings.trusts(&request.user) {
                    judge(&target, verdict);
                }
            }
            Ok(())
        }
    )*};
}

deletions! {
    cassandra: Cassandra of "Cassandra",
    config: Config of "Config",
    manager: Manager of "Manager",
    rabbitmq: Rabbitmq of "Rabbitmq",
    vrouter: Vrouter of "Vrouter",
    zookeeper: Zookeeper of "Zookeeper",
}

/// What would be deleted.
struct Target<'a> {
    namespace: &'a str,
    kind: &'a str,
    name: &'a str,
    confirmed: Option<&'a Confirmed>,
    owners: Option<&'a Owners>,
}

fn judge(target: &Target<'_>, verdict: &mut Verdict) {
    let Target { namespace, kind, name, .. } = *target;
    if target.confirmed.is_some_and(|confirmed| confirmed.has(&item(kind, name))) {
        return;
    }
    let mut text = format!("{kind} {name} would be deleted: {}", loss(kind));
    if let Some(manager) = target.owners.and_then(Owners::manager) {
        text.push_str(&format!("; Manager {} would make it again", manager.name));
    }
    let hint = format!("if it is meant, confirm it first: {}", by_command(namespace, kind, name));
    verdict.add(DELETED.at("/metadata/name").says(text).hint(hint));
}

/// What goes with an object of that kind.
pub(crate) fn loss(kind: &str) -> &'static str {
    match kind {
        "Manager" => "all its services end, and pods lose their network on every node",
        "Vrouter" => "vhost0 and the CNI go from its nodes, and their pods lose their network",
        "Config" => "the API of the network ends",
        "Cassandra" | "Rabbitmq" | "Zookeeper" => "its StatefulSet goes, and what needs it stops",
        _ => "its pods end",
    }
}
