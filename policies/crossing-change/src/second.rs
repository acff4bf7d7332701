//! Another Upgrade of a Manager of which one is at work. It is no mistake, as it waits.

use opensdn_policy_sdk::{Message, Outcome, Reads, Request, Severity, Verdict};

use crate::{Settings, upgrades::Upgrade};

pub(crate) const SECOND: Message = Message {
    code: "OSDN2013",
    severity: Severity::Warn,
    title: "another Upgrade of the Manager is at work",
    explanation: "Of the Upgrades of a Manager one is at work at a time. Another waits until that is over, and is planned only \
        then, by what the Manager says by then. One that has stopped counts as at work.",
    hint: "wait, or look at the one that is at work: kubectl opensdn upgrade status",
};

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "Upgrade", operations(Create))]
pub(crate) struct NewUpgrade {
    #[read("/spec/manager")]
    manager: String,
    // The background audit judges those that are stored as if they were made now.
    #[read("/status/phase")]
    phase: Option<String>,
}

pub(crate) fn upgrade(
    request: &Request<NewUpgrade>,
    _: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(NewUpgrade { manager, phase }) = &request.object else { return Ok(()) };
    if phase.as_ref().is_some_and(|phase| phase != "Pending") {
        return Ok(());
    }
    for other in Upgrade::at_work(&request.namespace, manager)? {
        let text = format!("it waits: {} of the Manager {manager} is at work", other.title());
        let namespace = &request.namespace;
        let mut hint = format!(
            "wait until that is over: kubectl opensdn upgrade status {} -n {namespace}",
            other.name
        );
        if other.phase == "Stopped" {
            hint.push_str(&format!(
                "; it has stopped: have it try again or go back (kubectl opensdn upgrade retry or rollback {} -n \
                 {namespace}), or delete it",
                other.name
            ));
        }
        verdict.add(SECOND.at("/spec/manager").says(text).hint(hint));
    }
    Ok(())
}
