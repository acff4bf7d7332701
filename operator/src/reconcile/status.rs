//! What the status of a component says (pure): how many pods there are, on which nodes, and what is awaited
//! or to be done. Conditions follow kstatus; the fields of tf-operator are filled too.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::component::Component;
use opensdn_crds::status::{
    CommonStatus, Condition, ConditionStatus, Conditions, NodeInfo, PAUSED, STOPPED,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::format_description::well_known::Rfc3339;

use super::fetch::Fetched;
use super::validate::Invalid;
use super::volumes;
use crate::build::Valid;
use crate::canary::{HELD, ON_HOLD};
use crate::component::Update;
use crate::kind::{Kind, Workload};
use crate::names::RECREATE;
use crate::node::Node;
use crate::object::number;
use crate::progress::{REFUSED, progressing};
use crate::report::{AVAILABLE, DEGRADED, HAD_QUORUM, PODS_AS_BEFORE, RELEASE_KNOWN};

/// What is said of a component.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// What is said of all.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// Of one that is on all nodes: whether it works on those of the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_on_controllers: Option<bool>,
    /// What its kind has besides.
    #[serde(flatten)]
    pub own: Map<String, Value>,
}

/// What one pass came to.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// A person has to put something right first.
    Invalid(&'a Invalid),
    /// The objects are applied.
    Applied(&'a Valid),
    /// One of them could not be, and why.
    Failed(&'a Valid, &'a str),
    /// They are applied but for a setting that only a person can have carried out, and why.
    Refused(&'a Valid, &'a str),
    /// They are left as they are, and why.
    Paused(&'a Valid, &'a str),
}

impl Outcome<'_> {
    fn valid(&self) -> Option<&Valid> {
        match self {
            Self::Invalid(_) => None,
            Self::Applied(valid)
            | Self::Failed(valid, _)
            | Self::Refused(valid, _)
            | Self::Paused(valid, _) => Some(valid),
        }
    }
}

/// The status after a pass. `now` is RFC 3339.
#[must_use]
pub fn status(fetched: &Fetched, outcome: Outcome<'_>, now: &str) -> Status {
    let before = before(fetched);
    let earlier = before.common.conditions.clone().unwrap_or_default();
    let mut conditions = Conditions::after(&earlier);
    let generation = fetched.object.metadata.generation;
    let mut set = |type_: &str, is: bool, reason: &str, message: &str| {
        let status = if is { ConditionStatus::True } else { ConditionStatus::False };
        conditions.set(type_, status, reason, message, generation, now);
    };
    let had_quorum = earlier.iter().any(|one| one.type_ == HAD_QUORUM && one.status == "True");
    if had_quorum
        || outcome
            .valid()
            .is_some_and(|valid| valid.members.as_ref().is_some_and(|members| members.had_quorum))
    {
        set(
            HAD_QUORUM,
            true,
            "MembersServed",
            "from now on a member starts only with what the others know",
        );
    }
    let (valid, paused, failed) = match outcome {
        Outcome::Invalid(Invalid { reason, message }) => {
            // What runs, runs on: what was said of it stays.
            for one in earlier.iter().filter(|one| [AVAILABLE, DEGRADED].contains(&&*one.type_)) {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                set(&one.type_, one.status == "True", &text(&one.reason), &text(&one.message));
            }
            conditions.stalled(reason, message, generation, now);
            return finish(before, conditions, &earlier, generation, now);
        }
        Outcome::Applied(valid) => (valid, None, None),
        Outcome::Failed(valid, why) => (valid, None, Some(("NotWritten", why))),
        Outcome::Refused(valid, why) => (valid, None, Some((REFUSED, why))),
        Outcome::Paused(valid, why) => (valid, Some(why), None),
    };
    let pods = Pods::of(fetched, valid);
    // While members come those that there are do the work.
    let needed = match &valid.members {
        Some(_) => valid.members_now() - valid.spare(),
        None => valid.description.quorum.of(pods.wanted),
    };
    let active = pods.wanted > 0 && pods.ready >= needed;
    let counts = pods.counts();
    set(AVAILABLE, active, if active { "EnoughPods" } else { "TooFewPods" }, &counts);
    let degraded = pods.ready < pods.wanted;
    if degraded {
        set(DEGRADED, true, "PodsNotReady", &pods.waits());
    }
    if let Some(why) = &valid.doubt {
        set(RELEASE_KNOWN, false, "NoReleaseInTag", why);
    }
    if let Some(why) = paused {
        set(PAUSED, true, "Annotation", why);
    }
    if valid.as_before {
        set(PODS_AS_BEFORE, true, "MadeByTfOperator", &as_before(fetched));
    }
    settle(&mut conditions, fetched, valid, &pods, failed, generation, now);
    let status = numbers(fetched, valid, active, degraded, &before);
    finish(status, conditions, &earlier, generation, now)
}

fn as_before(fetched: &Fetched) -> String {
    let kind = fetched.object.types.as_ref().map_or("", |types| &types.kind);
    let plural = Component::of_kind(kind).map_or("", |facts| facts.plural);
    format!(
        "its pods are those that tf-operator made; they are recreated one after the other with the next change of the \
         component, or now by: kubectl annotate -n {} {plural}.tf.tungsten.io/{} {RECREATE}=now",
        fetched.object.namespace().unwrap_or_default(),
        fetched.name(),
    )
}

/// The fields that tf-operator has for either kind of workload: there are no others.
fn numbers(
    fetched: &Fetched,
    valid: &Valid,
    active: bool,
    degraded: bool,
    before: &Status,
) -> Status {
    let common = CommonStatus {
        active: Some(active),
        nodes: Some(nodes(fetched)),
        certificates_expire: match valid.certificates_expire {
            Some(end) => end.format(&Rfc3339).ok(),
            None => before.common.certificates_expire.clone(),
        },
        ..CommonStatus::default()
    };
    let own = own(fetched, valid);
    match valid.workload {
        Workload::StatefulSet => Status {
            common: CommonStatus {
                degraded: Some(degraded),
                config_changed: before.common.config_changed,
                ..common
            },
            own,
            ..Status::default()
        },
        Workload::DaemonSet => Status {
            common,
            active_on_controllers: Some(is_active_on_controllers(fetched, valid)),
            own,
        },
    }
}

/// What the description says, and the address of its Service, once it has one.
fn own(fetched: &Fetched, valid: &Valid) -> Map<String, Value> {
    let mut own = valid.description.status.clone();
    let service = fetched.owned.get(&(Kind::Service, valid.instance.service()));
    let address = service.and_then(|service| service.data.pointer("/spec/clusterIP"));
    if let Some(address) = address.filter(|_| valid.description.service.is_some()) {
        own.insert("endpoint".to_owned(), address.clone());
    }
    own
}

/// Ready, or what is awaited.
fn settle(
    conditions: &mut Conditions,
    fetched: &Fetched,
    valid: &Valid,
    pods: &Pods,
    failed: Option<(&'static str, &str)>,
    generation: Option<i64>,
    now: &str,
) {
    let failed = failed.map(|(reason, why)| (reason, why.to_owned()));
    match failed.or_else(|| awaited(fetched, valid, pods)) {
        Some((reason, message)) => conditions.reconciling(reason, &message, generation, now),
        None => match &valid.stopped {
            Some(why) => conditions.ready(STOPPED, why, generation, now),
            None => {
                let counts = pods.counts();
                let message = match &valid.renewal {
                    Some(waits) => format!("{counts}; the next certificates wait: {waits}"),
                    None => counts,
                };
                conditions.ready("PodsReady", &message, generation, now);
            }
        },
    }
}

/// What the operator has made and is deleted, but held: nothing that is written brings it back, and pods end with their workload.
fn going(fetched: &Fetched) -> Option<String> {
    let mut owned = fetched.owned.iter();
    owned.find_map(|((kind, name), object)| {
        object.metadata.deletion_timestamp.as_ref()?;
        let held_by = object.metadata.finalizers.as_ref().filter(|held_by| !held_by.is_empty())?;
        Some(format!(
            "{} {name} is being deleted, and is held by its finalizers: {}. It is made again when who has set these has taken them out",
            kind.name(),
            held_by.join(", ")
        ))
    })
}

/// What is not yet as it shall be, though no person has to do anything: reason and message.
fn awaited(fetched: &Fetched, valid: &Valid, pods: &Pods) -> Option<(&'static str, String)> {
    if let Some(message) = &valid.waits_for {
        return Some(("NeedsNotReady", message.clone()));
    }
    if valid.nodes.is_empty() {
        return Some(("NoNodes", no_nodes(valid)));
    }
    if let Some(why) = &valid.stopped {
        return (!fetched.pods.is_empty()).then(|| ("Stopping", why.clone()));
    }
    if let Some((reason, message)) =
        valid.members.as_ref().and_then(|members| members.waits.clone())
        && pods.trouble.is_none()
    {
        return Some((reason, message));
    }
    if let Some(message) = &valid.lacks_certificates {
        return Some(("CertificatesMissing", message.clone()));
    }
    if let Some(message) = going(fetched) {
        return Some(("ObjectGoes", message));
    }
    if pods.ready < pods.wanted {
        return Some(("PodsNotReady", pods.waits()));
    }
    if let Some(message) = volumes::leaving(fetched, valid) {
        return Some(("VolumeGoes", message));
    }
    if let Some(message) = volumes::growing(fetched, valid) {
        return Some(("VolumesGrow", message));
    }
    if let Some(pod) = fetched.pods.iter().find(|pod| valid.is_misplaced(pod)) {
        let message =
            format!("pod {} is on {}, which is not to run it, and moves", pod.name, pod.node);
        return Some(("PodsMove", message));
    }
    if valid.pace.on_hold && !pods.current {
        return Some(("UpgradeStopped", ON_HOLD.to_owned()));
    }
    if valid.pace.canary && !pods.current {
        return Some(("Canary", HELD.to_owned()));
    }
    (!pods.current).then(|| replaced(fetched, valid))
}

/// Why pods of an earlier template are there, and who replaces them: reason and message.
fn replaced(fetched: &Fetched, valid: &Valid) -> (&'static str, String) {
    let rolling = |message: &str| ("RollingUpdate", message.to_owned());
    match (valid.workload, valid.description.update) {
        (Workload::StatefulSet, _) => {
            rolling("replaces its pods, one after the other when all are ready")
        }
        (Workload::DaemonSet, Update::OnDelete) if !valid.pace.is_of_operator() => {
            let labels = valid.instance.labels();
            let labels: Vec<_> =
                labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let message = format!(
                "some pods are of before the last change, and are replaced when you delete them (upgradeStrategy), node by node: \
                 kubectl delete pod -n {} -l {} --field-selector spec.nodeName=NODE",
                fetched.namespace(),
                labels.join(","),
            );
            ("PodsToBeDeleted", message)
        }
        (Workload::DaemonSet, _) => rolling("waits for the DaemonSet to replace its pods"),
    }
}

/// Whether each of its nodes that is of the control plane has a pod that is ready, if there is one.
fn is_active_on_controllers(fetched: &Fetched, valid: &Valid) -> bool {
    let mut controllers = valid.nodes.iter().filter(|node| node.is_of_control_plane()).peekable();
    let is_ready =
        |node: &Node| fetched.pods.iter().any(|pod| pod.is_ready && pod.node == node.name);
    controllers.peek().is_some() && controllers.all(is_ready)
}

pub(super) fn finish(
    status: Status,
    mut conditions: Conditions<'_>,
    earlier: &[Condition],
    generation: Option<i64>,
    now: &str,
) -> Status {
    let before = earlier.iter().find(|one| one.type_ == AVAILABLE).and_then(wanted);
    let is_resized =
        before.is_some_and(|before| conditions.get(AVAILABLE).and_then(wanted) != Some(before));
    progressing(&mut conditions, earlier, is_resized, generation, now);
    let conditions = Some(conditions.into_vec());
    let common = CommonStatus { conditions, observed_generation: generation, ..status.common };
    Status { common, ..status }
}

/// What the object's status says now; what of it cannot be read is written again.
#[must_use]
pub fn before(fetched: &Fetched) -> Status {
    let status = fetched.object.data.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

/// How the pods are.
struct Pods {
    wanted: i32,
    ready: i32,
    /// Whether all of them are of the last template.
    current: bool,
    /// Why the first that is not ready is not.
    trouble: Option<String>,
}

/// How many pods there were to be, by what [`Pods::counts`] says in Available.
fn wanted(available: &Condition) -> Option<i32> {
    let (_, wanted) = available.message.as_deref()?.strip_suffix(COUNTED)?.split_once(" of ")?;
    wanted.parse().ok()
}

/// The end of what says how many pods there are.
const COUNTED: &str = " pods ready";

impl Pods {
    fn counts(&self) -> String {
        format!("{} of {}{COUNTED}", self.ready, self.wanted)
    }

    /// With what is the matter.
    fn waits(&self) -> String {
        match &self.trouble {
            Some(trouble) => format!("{}; {trouble}", self.counts()),
            None => self.counts(),
        }
    }

    fn of(fetched: &Fetched, valid: &Valid) -> Self {
        let number = |object: &DynamicObject, pointer: &str| {
            number(&object.data, pointer).unwrap_or_default()
        };
        let is_seen = |live: &&Arc<DynamicObject>| {
            Some(number(live, "/status/observedGeneration")) == live.metadata.generation
        };
        let mut wanted = valid.replicas();
        // Where no node fits any more, what runs is left as it is, and does its work.
        let is_kept = valid.nodes.is_empty() && valid.stopped.is_none();
        // A rollout is over only when the controller has seen the last template and replaced every pod.
        let current = match valid.workload {
            Workload::StatefulSet => {
                let sets: Vec<_> = fetched.keepers(valid.workload).collect();
                let is_current = |set: &&Arc<DynamicObject>| {
                    is_seen(set)
                        && number(set, "/status/updatedReplicas") >= number(set, "/spec/replicas")
                };
                let replicas: i64 = sets.iter().map(|set| number(set, "/spec/replicas")).sum();
                if is_kept {
                    wanted = i32::try_from(replicas).unwrap_or(wanted);
                }
                sets.iter().all(is_current) && replicas == i64::from(wanted) && !sets.is_empty()
            }
            Workload::DaemonSet => {
                let seen = fetched.owned.get(&valid.keeper()).filter(is_seen);
                seen.is_some_and(|live| {
                    // Not on nodes with a taint that its pods do not tolerate.
                    let desired = number(live, "/status/desiredNumberScheduled");
                    let most = if is_kept { i32::MAX } else { wanted };
                    wanted = i32::try_from(desired).unwrap_or(wanted).min(most);
                    number(live, "/status/updatedNumberScheduled") >= desired
                })
            }
        };
        let ready = fetched.pods.iter().filter(|pod| pod.is_ready).count();
        let trouble = fetched.pods.iter().filter(|pod| !pod.is_ready).find_map(|pod| {
            let trouble = pod.trouble.as_deref()?;
            Some(format!("pod {}: {trouble}", pod.name))
        });
        Self { wanted, ready: i32::try_from(ready).unwrap_or(i32::MAX), current, trouble }
    }
}

fn no_nodes(valid: &Valid) -> String {
    match valid.common.node_selector.as_ref().filter(|selector| !selector.is_empty()) {
        Some(selector) => {
            let labels: Vec<_> =
                selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!(
                "no node has the labels {}: label nodes, or change spec.commonConfiguration.nodeSelector",
                labels.join(", ")
            )
        }
        None if valid.workload == Workload::DaemonSet => "there is no node".to_owned(),
        None => "no node is of the control plane (label node-role.kubernetes.io/control-plane): label nodes, or set \
                 spec.commonConfiguration.nodeSelector"
            .to_owned(),
    }
}

/// The pods by name, as tf-operator writes them.
fn nodes(fetched: &Fetched) -> BTreeMap<String, NodeInfo> {
    let all = fetched.pods.iter().filter(|pod| pod.address.is_some());
    all.map(|pod| {
        let info = NodeInfo { ip: pod.address.clone(), hostname: Some(pod.node.clone()) };
        (pod.name.clone(), info)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_pods_were_wanted_is_read_from_what_was_said_of_them() {
        let (ready, current, trouble) = (2, true, None);
        let pods = Pods { wanted: 13, ready, current, trouble };
        let available = |message: &str| Condition {
            type_: AVAILABLE.to_owned(),
            message: Some(message.to_owned()),
            ..Condition::default()
        };
        assert_eq!(wanted(&available(&pods.counts())), Some(13));
        assert_eq!(wanted(&available("of another operator")), None);
    }
}
