//! What the status of a component of a nested cluster says (pure): how kube-manager and the CNI agent are.

use kube::api::DynamicObject;
use opensdn_crds::status::{CommonStatus, ConditionStatus, Conditions, NodeInfo, PAUSED};

use super::{Described, waits_for_pods_of};
use crate::kind::Kind;
use crate::object::number;
use crate::pod::Pod;
use crate::reconcile::fetch::Fetched;
use crate::reconcile::status::{Status, before, finish};
use crate::report::{AVAILABLE, DEGRADED};

/// What one pass came to.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    /// What may be there by now is applied.
    Applied,
    /// Something of it could not be, and why.
    Failed(&'a str),
    /// It is left as it is, and why.
    Paused(&'a str),
}

/// One of the two workloads.
struct Part {
    title: &'static str,
    keeper: (Kind, String),
    wanted: i64,
    ready: i64,
    /// Whether the last template was seen, and all pods are of it.
    is_current: bool,
    /// Why the first of its pods that is not ready is not.
    trouble: Option<String>,
}

impl Part {
    fn kube_manager(fetched: &Fetched, described: &Described) -> Self {
        let keeper = (Kind::Deployment, described.names().kube_manager());
        let wanted = i64::from(described.stopped.is_none());
        let fields = ["/status/readyReplicas", "/status/updatedReplicas"];
        Self::of(fetched, "kube-manager", keeper, fields, |_| wanted)
    }

    fn cni_agent(fetched: &Fetched, described: &Described) -> Self {
        let keeper = (Kind::DaemonSet, described.names().cni_agent());
        let fields = ["/status/numberReady", "/status/updatedNumberScheduled"];
        let nodes = i64::try_from(fetched.nodes.len()).unwrap_or(i64::MAX);
        let is_stopped = described.stopped.is_some();
        Self::of(fetched, "CNI agent", keeper, fields, |live| match live {
            _ if is_stopped => 0,
            Some(live) => count(live, "/status/desiredNumberScheduled"),
            None => nodes,
        })
    }

    fn of(
        fetched: &Fetched,
        title: &'static str,
        keeper: (Kind, String),
        [ready, updated]: [&str; 2],
        wanted: impl Fn(Option<&DynamicObject>) -> i64,
    ) -> Self {
        let is_seen = |live: &&DynamicObject| {
            Some(count(live, "/status/observedGeneration")) == live.metadata.generation
        };
        let live = fetched.owned.get(&keeper).map(|live| &**live);
        let seen = live.filter(is_seen);
        let wanted = wanted(seen);
        let trouble = pods(fetched, &keeper).filter(|pod| !pod.is_ready).find_map(|pod| {
            let trouble = pod.trouble.as_deref()?;
            Some(format!("pod {}: {trouble}", pod.name))
        });
        Self {
            title,
            wanted,
            ready: live.map_or(0, |live| count(live, ready)).min(wanted),
            is_current: seen.is_some_and(|seen| count(seen, updated) >= wanted),
            trouble,
            keeper,
        }
    }

    fn is_ready(&self) -> bool {
        self.ready >= self.wanted
    }

    fn counts(&self) -> String {
        format!("{}: {} of {} pods ready", self.title, self.ready, self.wanted)
    }

    fn waits(&self) -> String {
        match &self.trouble {
            Some(trouble) => format!("{}; {trouble}", self.counts()),
            None => self.counts(),
        }
    }
}

fn count(object: &DynamicObject, pointer: &str) -> i64 {
    number(&object.data, pointer).unwrap_or_default()
}

fn pods<'a>(
    fetched: &'a Fetched,
    keeper: &'a (Kind, String),
) -> impl Iterator<Item = &'a Pod> + use<'a> {
    fetched.labelled.iter().filter(move |pod| pod.keeper.as_ref() == Some(keeper))
}

/// Why kube-manager is not started for the first time yet: reason and message.
pub(super) fn awaited_before_start(
    fetched: &Fetched,
    described: &Described,
) -> Option<(&'static str, String)> {
    let stateful_set = (Kind::StatefulSet, described.instance.stateful_set());
    if let Some(why) = waits_for_pods_of(fetched, &[stateful_set]) {
        return Some(("PodsEnd", why));
    }
    if fetched.nodes.is_empty() {
        return Some(("NoNodes", "there is no node".to_owned()));
    }
    let agent = Part::cni_agent(fetched, described);
    let is_there = agent.is_ready() && agent.is_current;
    (!is_there).then(|| ("CniAgentNotReady", agent.waits()))
}

/// The status after a pass. `now` is RFC 3339.
#[must_use]
pub fn status(fetched: &Fetched, described: &Described, ended: Ended<'_>, now: &str) -> Status {
    let kube_manager = Part::kube_manager(fetched, described);
    let agent = Part::cni_agent(fetched, described);
    let before = before(fetched);
    let earlier = before.common.conditions.clone().unwrap_or_default();
    let generation = fetched.object.metadata.generation;
    let mut conditions = Conditions::after(&earlier);
    let mut set = |type_: &str, is: bool, reason: &str, message: &str| {
        let status = if is { ConditionStatus::True } else { ConditionStatus::False };
        conditions.set(type_, status, reason, message, generation, now);
    };
    let active = kube_manager.wanted > 0 && kube_manager.is_ready();
    let counts = format!("{}; {}", kube_manager.counts(), agent.counts());
    set(AVAILABLE, active, if active { "EnoughPods" } else { "TooFewPods" }, &counts);
    let missing = [&kube_manager, &agent].into_iter().find(|part| !part.is_ready());
    if let Some(part) = missing {
        set(DEGRADED, true, "PodsNotReady", &part.waits());
    }
    if let Ended::Paused(why) = ended {
        set(PAUSED, true, "Annotation", why);
    }
    let waits = match ended {
        Ended::Failed(why) => Some(("NotWritten", why.to_owned())),
        _ => awaited(fetched, described, &kube_manager, &agent),
    };
    match (waits, &described.stopped) {
        (Some((reason, message)), _) => conditions.reconciling(reason, &message, generation, now),
        (None, Some(why)) => conditions.ready("Stopped", why, generation, now),
        (None, None) => conditions.ready("PodsReady", &counts, generation, now),
    }
    let nodes = pods(fetched, &kube_manager.keeper).filter(|pod| pod.address.is_some());
    let nodes = nodes.map(|pod| {
        let info = NodeInfo { ip: pod.address.clone(), hostname: Some(pod.node.clone()) };
        (pod.name.clone(), info)
    });
    let common = CommonStatus {
        active: Some(active),
        degraded: Some(missing.is_some()),
        nodes: Some(nodes.collect()),
        ..CommonStatus::default()
    };
    finish(Status { common, ..Status::default() }, conditions, &earlier, generation, now)
}

/// What is not yet as it shall be, though no person has to do anything: reason and message.
fn awaited(
    fetched: &Fetched,
    described: &Described,
    kube_manager: &Part,
    agent: &Part,
) -> Option<(&'static str, String)> {
    if let Some(why) = &described.stopped {
        let mut all = [kube_manager, agent].into_iter();
        let is_left = all.any(|part| pods(fetched, &part.keeper).next().is_some());
        return is_left.then(|| ("Stopping", why.clone()));
    }
    if !fetched.owned.contains_key(&kube_manager.keeper)
        && let Some(waits) = awaited_before_start(fetched, described)
    {
        return Some(waits);
    }
    if let Some(part) = [kube_manager, agent].into_iter().find(|part| !part.is_ready()) {
        return Some(("PodsNotReady", part.waits()));
    }
    let old = [kube_manager, agent].into_iter().find(|part| !part.is_current)?;
    let message = format!("waits for the {} to replace its pods", old.keeper.0.name());
    Some(("RollingUpdate", message))
}
