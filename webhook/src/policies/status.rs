//! What is written into the status of an AdmissionPolicy: by each replica its own entry, by the
//! leader the sum of them. Pure; who writes is in `reporter.rs`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use opensdn_crds::admission_policy::{
    AdmissionPolicy, AdmissionPolicyStatus, KindRule, ReplicaStatus,
};
use opensdn_crds::status::{Condition, ConditionStatus, Conditions, READY};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::uniqueness::Uniqueness;

/// The reason of a replica that runs what the spec says.
pub(crate) const SERVING: &str = "Serving";
/// The reason while a module is read or compiled.
pub(crate) const LOADING: &str = "Loading";
/// The reason while lookup caches are filled.
pub(crate) const WAITING: &str = "WaitingForLookups";
/// The reason of the leader while it cannot read AdmissionPolicies.
const OUTDATED: &str = "Outdated";

/// What the leader knows besides what replicas have written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaderView<'v> {
    /// The replicas that are alive.
    pub(crate) alive: &'v BTreeSet<String>,
    pub(super) uniqueness: &'v Uniqueness,
    /// Why the AdmissionPolicies cannot be read; none while they can.
    pub(crate) outdated: Option<&'v str>,
}

/// What a module says of itself, as far as the status has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModuleFacts {
    pub(crate) version: String,
    pub(crate) judges: Vec<KindRule>,
}

/// Type of the condition that says since when.
const UNIQUENESS: &str = "UniquenessHolds";

/// Whether both say the same, whenever it was written.
pub(crate) fn says_the_same(one: &ReplicaStatus, other: &ReplicaStatus) -> bool {
    let timeless = |status: &ReplicaStatus| ReplicaStatus { updated_at: None, ..status.clone() };
    timeless(one) == timeless(other)
}

/// The entry of a replica in the object as it is.
pub(crate) fn entry<'o>(object: &'o AdmissionPolicy, replica: &str) -> Option<&'o ReplicaStatus> {
    replicas(object).find(|entry| entry.name == replica)
}

fn replicas(object: &AdmissionPolicy) -> impl Iterator<Item = &ReplicaStatus> {
    object.status.iter().flat_map(|status| status.replicas.iter().flatten())
}

/// What the leader has to write, if anything: conditions, digest, version, generation.
/// `facts` is what the leader's own module of a digest says of itself.
pub(crate) fn aggregate(
    object: &AdmissionPolicy,
    view: &LeaderView<'_>,
    facts: impl Fn(&str) -> Option<ModuleFacts>,
    now: &str,
) -> Option<Value> {
    let LeaderView { alive, uniqueness, outdated } = *view;
    let generation = object.metadata.generation.unwrap_or_default();
    let before = object.status.clone().unwrap_or_default();
    let known = still_true(before.conditions.as_deref().unwrap_or_default(), uniqueness);
    let mut wanted = Conditions::after(&known);
    let current = Some(generation);
    let (status, reason, message) = ready_condition(object, alive, generation);
    match (outdated, status, is_progress(&reason)) {
        (Some(why), ..) => {
            let message = outdated_message(why);
            wanted.set(READY, ConditionStatus::Unknown, OUTDATED, &message, current, now);
        }
        (None, "True", _) => wanted.ready(&reason, &message, current, now),
        (None, _, true) => wanted.reconciling(&reason, &message, current, now),
        (None, _, false) => wanted.stalled(&reason, &message, current, now),
    }
    if let Some((status, reason, message)) = uniqueness_condition(&before, uniqueness, generation) {
        wanted.set(UNIQUENESS, status, &reason, &message, current, now);
    }
    let digest = common_digest(object, alive);
    let facts = digest.as_deref().and_then(facts);
    // Of the module that the specification asks for and of no other. Kept while it is not known: then it
    // is needed.
    let pinned = object.spec.module.digest.as_deref();
    let is_asked_for = pinned.is_none() || pinned == digest.as_deref();
    let judges = match &facts {
        Some(facts) => is_asked_for.then(|| facts.judges.clone()),
        None => {
            let is_of_the_same = before.observed_generation == Some(generation)
                || pinned.is_none()
                || pinned == before.digest.as_deref();
            is_of_the_same.then(|| before.judges.clone()).flatten()
        }
    };
    let after = AdmissionPolicyStatus {
        observed_generation: Some(generation),
        conditions: Some(wanted.into_vec()),
        digest,
        version: facts.map(|facts| facts.version),
        judges,
        replicas: None,
    };
    let unchanged = AdmissionPolicyStatus { replicas: None, ..before } == after;
    (!unchanged).then(|| json!(after))
}

fn outdated_message(why: &str) -> String {
    format!(
        "the webhook cannot read AdmissionPolicies, and runs them as it read them last, whatever they \
         say now: {why}"
    )
}

/// The conditions without what was not so all the time since: it is so since later.
fn still_true(known: &[Condition], uniqueness: &Uniqueness) -> Vec<Condition> {
    let Uniqueness::Holds(Some(not_before)) = uniqueness else { return known.to_vec() };
    let is_since_later = |condition: &Condition| {
        let since = condition.last_transition_time.as_deref();
        let since = since.and_then(|since| OffsetDateTime::parse(since, &Rfc3339).ok());
        since.is_some_and(|since| since >= *not_before)
    };
    let is_kept = |one: &&Condition| one.type_ != UNIQUENESS || is_since_later(one);
    known.iter().filter(is_kept).cloned().collect()
}

/// What the condition says of this specification.
fn found_before(
    before: &AdmissionPolicyStatus,
    generation: i64,
) -> Option<(ConditionStatus, Cow<'static, str>, Cow<'static, str>)> {
    let found = before.conditions.iter().flatten().find(|one| one.type_ == UNIQUENESS)?;
    let status = match found.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    let is_of_this = found.observed_generation == Some(generation);
    is_of_this.then(|| {
        (
            status,
            found.reason.clone().unwrap_or_default().into(),
            found.message.clone().unwrap_or_default().into(),
        )
    })
}

/// What a former leader has found holds until the specification changes, claims cannot be written, or objects are
/// found without theirs.
fn uniqueness_condition(
    before: &AdmissionPolicyStatus,
    uniqueness: &Uniqueness,
    generation: i64,
) -> Option<(ConditionStatus, Cow<'static, str>, Cow<'static, str>)> {
    let held = before.conditions.iter().flatten().any(|one| {
        one.type_ == UNIQUENESS
            && one.status == "True"
            && one.observed_generation == Some(generation)
    });
    match uniqueness {
        Uniqueness::NotClaimed => None,
        Uniqueness::NotKnown => found_before(before, generation),
        // One of which nothing was ever found may make nothing unique.
        Uniqueness::NotRun => found_before(before, generation).map(|_| {
            let message = "the replica that leads does not run the policy, as the condition Ready says; what it is about \
                           is refused, or passes without a claim, as its failure mode says";
            (ConditionStatus::False, "NotOnAllReplicas".into(), message.into())
        }),
        Uniqueness::Refused(why) => {
            let message = format!(
                "claims cannot be written, so objects that need a key are refused, and what is stored \
                 may be without its claims: {why}. The webhook tries again by itself; its rights are \
                 in deploy/webhook/rbac.yaml"
            );
            Some((ConditionStatus::False, "ClaimsNotWritten".into(), message.into()))
        }
        Uniqueness::Pending if !held => {
            let message = "what is stored is being claimed; until then a new object may get a key \
                           that an older one has";
            Some((ConditionStatus::False, "ClaimingStoredObjects".into(), message.into()))
        }
        Uniqueness::Unclaimed => {
            let message = "objects were stored without being judged, and are being claimed; until then a new object \
                           may get a key that an older one has, and one may have got it before";
            Some((ConditionStatus::False, "ClaimingStoredObjects".into(), message.into()))
        }
        Uniqueness::NotEverywhere => {
            let message = "what is stored has been claimed, but not every replica runs the policy: one that does \
                           not may let a new object get a key that an older one has; the condition Ready says which";
            Some((ConditionStatus::False, "NotOnAllReplicas".into(), message.into()))
        }
        Uniqueness::Pending | Uniqueness::Holds(_) => {
            let message = "what is stored has been claimed; where two of those have one key, the \
                           later one has the condition UniqueConflict";
            Some((ConditionStatus::True, "StoredObjectsClaimed".into(), message.into()))
        }
    }
}

/// Whether every live replica runs what the object says now.
pub(crate) fn is_rolled_out(object: &AdmissionPolicy, alive: &BTreeSet<String>) -> bool {
    let generation = object.metadata.generation.unwrap_or_default();
    ready_condition(object, alive, generation).0 == "True"
}

/// Whether waiting alone may help.
pub(super) fn is_progress(reason: &str) -> bool {
    [LOADING, WAITING, "WaitingForReplicas"].contains(&reason)
}

/// Ready only when every live replica runs the same module for this generation.
fn ready_condition(
    object: &AdmissionPolicy,
    alive: &BTreeSet<String>,
    generation: i64,
) -> (&'static str, String, String) {
    let current = |name: &String| {
        entry(object, name).filter(|entry| entry.observed_generation == Some(generation))
    };
    let failed: Vec<_> = alive
        .iter()
        .filter_map(current)
        .filter(|entry| !entry.ready && !is_progress(entry.reason.as_deref().unwrap_or_default()))
        .collect();
    if let Some((reason, message)) = failure(&failed, alive.len()) {
        return ("False", reason, message);
    }
    let missing: Vec<&String> =
        alive.iter().filter(|name| !current(name).is_some_and(|entry| entry.ready)).collect();
    if let Some(first) = missing.first() {
        let why = current(first).and_then(|entry| entry.reason.clone().zip(entry.message.clone()));
        let (reason, message) = why.unwrap_or_else(|| {
            ("WaitingForReplicas".to_owned(), format!("{first} has not said what it runs"))
        });
        let message =
            format!("{} of {} replicas are not ready: {message}", missing.len(), alive.len());
        return ("False", reason, message);
    }
    if common_digest(object, alive).is_none() {
        let message = "the replicas run different modules".to_owned();
        return ("False", "WaitingForReplicas".to_owned(), message);
    }
    ("True", SERVING.to_owned(), format!("{} replicas run it", alive.len()))
}

/// Reason and message of replicas that have failed, those in which nothing is in force first: what one says need not
/// be so in another.
fn failure(failed: &[&ReplicaStatus], alive: usize) -> Option<(String, String)> {
    let mut failed = failed.to_vec();
    failed.sort_by_key(|entry| entry.digest.is_some());
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in &failed {
        let message = entry.message.as_deref().unwrap_or_default();
        match parts.iter_mut().find(|(known, _)| *known == message) {
            Some((_, names)) => names.push(&entry.name),
            None => parts.push((message, vec![&entry.name])),
        }
    }
    let reason = failed.first()?.reason.clone().unwrap_or_default();
    let texts = parts.iter().map(|(message, names)| {
        let of_few = parts.len() > 1;
        let who = if of_few { format!(" ({})", names.join(", ")) } else { String::new() };
        format!("on {} of {alive} replicas{who}: {message}", names.len())
    });
    Some((reason, texts.collect::<Vec<_>>().join("; ")))
}

/// The digest that every live replica runs.
fn common_digest(object: &AdmissionPolicy, alive: &BTreeSet<String>) -> Option<String> {
    let mut digests =
        alive.iter().map(|name| entry(object, name).and_then(|entry| entry.digest.clone()));
    let first = digests.next()??;
    digests.all(|digest| digest.as_ref() == Some(&first)).then_some(first)
}

/// A JSON Patch that removes what replicas that are gone have left, if there is any. It fails on
/// an object that was changed meanwhile, and is then made again.
pub(crate) fn prune(object: &AdmissionPolicy, alive: &BTreeSet<String>) -> Option<Value> {
    let gone: Vec<usize> = replicas(object)
        .enumerate()
        .filter(|(_, entry)| !alive.contains(&entry.name))
        .map(|(number, _)| number)
        .collect();
    if gone.is_empty() {
        return None;
    }
    let version = object.metadata.resource_version.clone().unwrap_or_default();
    let mut patch =
        vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
    // From the end, so that the numbers before stay right.
    patch.extend(
        gone.iter()
            .rev()
            .map(|number| json!({"op": "remove", "path": format!("/status/replicas/{number}")})),
    );
    Some(Value::Array(patch))
}

#[cfg(test)]
mod tests;
