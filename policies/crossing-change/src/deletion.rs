//! The deletion of a Manager of which an Upgrade is at work.

use opensdn_policy_sdk::{Message, Outcome, Reads, Request, Severity, Verdict};

use crate::{Settings, upgrades::Upgrade};

pub(crate) const DELETED: Message = Message {
    code: "OSDN2012",
    severity: Severity::Deny,
    title: "a Manager would be deleted while an Upgrade of it is at work",
    explanation: "All its services go with it, in the middle of a wave, and the Upgrade has nothing more to finish or to take \
        back: it stops and waits for a person.",
    hint: "wait until the Upgrade is over, or delete it first: kubectl delete upgrades.opensdn.io NAME -n NAMESPACE",
};

/// Who carries out what was decided elsewhere: a namespace would hang half-deleted. The last is all of them where
/// they share one account.
const CONTROLLERS: [&str; 3] = [
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:kube-controller-manager",
];

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager", operations(Delete))]
pub(crate) struct DeletedManager {
    // Of many that are deleted at once the request names none.
    #[read("/metadata/name")]
    name: String,
    #[read("/metadata/deletionTimestamp")]
    deleted: Option<String>,
}

pub(crate) fn manager(
    request: &Request<DeletedManager>,
    _: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(DeletedManager { name, deleted: None }) = &request.old_object else { return Ok(()) };
    if CONTROLLERS.contains(&request.user.as_str()) {
        return Ok(());
    }
    for upgrade in Upgrade::at_work(&request.namespace, name)? {
        let text = format!("Manager {name} would be deleted while {} is at work", upgrade.title());
        let hint = format!(
            "wait until it is over: kubectl opensdn upgrade status {upgrade} -n {namespace}; or delete it first: kubectl \
             delete upgrades.opensdn.io {upgrade} -n {namespace}",
            upgrade = upgrade.name,
            namespace = request.namespace
        );
        verdict.add(DELETED.at("/metadata/name").says(text).hint(hint));
    }
    Ok(())
}
