//! Before anything is changed: the plan is made, and nothing is begun that something speaks against.

use std::time::Duration;

use opensdn_crds::upgrade::{Phase, UpgradeRemark};

use super::Run;
use super::settle::UNHEARD;
use crate::health::{Service, Side};
use crate::plan::{Input, Plan, REFUSED, SKIPPABLE, plan};
use crate::time::parse;

/// Of a plan that is not the one that was looked at.
const OUTDATED: &str = "OSDN5010";
/// What its message ends with, when it does not begin any more.
const OVER: &str = ". It does not begin any more: delete this Upgrade, and apply again";
/// For so long after it was first found.
const FINAL: Duration = Duration::from_secs(60);
/// Longest message of a refusal, in characters.
const MOST_REFUSAL: usize = 1000;

impl Run<'_> {
    /// Plans, and begins if it may.
    pub(super) fn start(&mut self) {
        if let Some(other) = self.at.other {
            let message = format!("waits for {other} of the same Manager, which comes first");
            return self.set(Phase::Pending, message);
        }
        let Some(manager) = self.at.manager else {
            let message = format!("there is no Manager {} in this namespace", self.at.spec.manager);
            return self.set(Phase::Refused, message);
        };
        let (spec, services) = (self.at.spec, self.at.services);
        let (paused, release) = (self.at.paused, self.at.release);
        let ziu_state = self.at.ziu_state;
        let mut plan = plan(&Input { spec, manager, paused, release, ziu_state, services });
        plan.remarks.extend(self.at.refusals.values().map(|why| not_taken(why)));
        let hash = plan.hash();
        self.status.from = Some(plan.from.clone());
        self.status.to = Some(plan.to.clone());
        self.status.plan = Some(hash.clone());
        self.status.remarks = Some(plan.remarks.clone()).filter(|all| !all.is_empty());
        if let Some(why) = self.refused(&plan, &hash) {
            return self.set(Phase::Refused, why);
        }
        let unheard = never_asked(self.at.services);
        if !unheard.is_empty() && self.at.now < self.at.looking_since + UNHEARD {
            let message = format!(
                "asks the daemons of {} how they are, before it begins",
                unheard.join(", ")
            );
            return self.set(Phase::Pending, message);
        }
        let (steps, pods) = (plan.steps.len(), plan.pods());
        self.status.started_at = Some(self.now.clone());
        self.status.retries = self.at.spec.retries;
        // With what they said to another operator nothing is compared: it may be of long ago.
        for health in plan.snapshot.iter_mut().filter(|one| unheard.contains(&&*one.service)) {
            (health.daemons, health.xmpp, health.bgp) = (None, None, None);
        }
        self.status.snapshot = Some(plan.snapshot);
        self.status.waves = Some(plan.waves);
        self.status.steps = Some(plan.steps);
        if steps == 0 {
            return self.end(Phase::Succeeded, "all services have these images already".to_owned());
        }
        self.set(
            Phase::Running,
            format!("{steps} services get other images; {pods} pods are replaced"),
        );
        for (place, step) in self.steps().clone().iter().enumerate() {
            // Made of what the Manager says just now, they fit.
            let _ = self.ensure(place, step, Side::New);
        }
    }

    fn refused(&self, plan: &Plan, hash: &str) -> Option<String> {
        let before = self.at.status.message.as_deref();
        let before = before.filter(|_| self.at.status.phase == Some(Phase::Refused));
        if let Some(over) = before.filter(|said| said.starts_with(OUTDATED) && said.ends_with(OVER))
        {
            return Some(over.to_owned());
        }
        let wanted = self.at.spec.plan.as_deref().filter(|wanted| *wanted != hash);
        if let Some(wanted) = wanted {
            let again = before.is_some_and(|said| said.starts_with(OUTDATED));
            // For a moment the operator may know an earlier Manager than who made the plan. Later it must not begin by itself:
            // that the Manager is one day as it was is not what its user asked for.
            let over = if again && self.is_refused_for(FINAL) { OVER } else { "" };
            return Some(format!(
                "{OUTDATED}: the plan that was looked at was {wanted}, and now it would be {hash}: the Manager has changed; \
                 look at the plan again: kubectl opensdn upgrade plan{over}"
            ));
        }
        let against =
            plan.remarks.iter().filter(|one| [REFUSED, SKIPPABLE].contains(&one.severity.as_str()));
        let texts: Vec<_> = against
            .map(|one| match one.severity.as_str() {
                SKIPPABLE => {
                    format!(
                        "{}: {} (upgrade apply --force {} passes over it)",
                        one.code, one.message, one.code
                    )
                }
                _ => format!("{}: {}", one.code, one.message),
            })
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

impl Run<'_> {
    /// Whether it has been refused for so long.
    fn is_refused_for(&self, time: Duration) -> bool {
        let conditions = self.at.status.conditions.iter().flatten();
        let mut stalled = conditions.filter(|one| one.type_ == "Stalled" && one.status == "True");
        let since = stalled.next().and_then(|one| parse(one.last_transition_time.as_deref()?));
        since.is_some_and(|since| self.at.now - since >= time)
    }
}

/// The services whose daemons have not been asked since this operator leads, and were before.
fn never_asked(services: &[Service]) -> Vec<&str> {
    let is_unheard = |one: &&Service| {
        one.daemons.as_ref().is_some_and(|all| all.asked_at.is_none() && all.have_said())
    };
    services.iter().filter(is_unheard).map(|one| one.id.as_str()).collect()
}

/// Of what the API server, or a webhook that it asks, does not take.
fn not_taken(why: &str) -> UpgradeRemark {
    let why: String = why.chars().take(MOST_REFUSAL).collect();
    UpgradeRemark {
        code: "OSDN5017".to_owned(),
        severity: REFUSED.to_owned(),
        message: format!("the Manager would not get the new images: {why}"),
    }
}
