//! What must be unique, over all documents: the same claims that the webhook takes at the API
//! server. Also: an object that is among the documents twice.

use std::collections::BTreeMap;

use opensdn_policy_host::Claim;

use crate::report::{
    Finding, Granted, Location, ObjectId, Origin, PolicyId, Related, Severity, Step, codes,
};

/// Who claims something.
#[derive(Clone, Debug)]
pub(crate) struct Claimant {
    pub(crate) object: ObjectId,
    pub(crate) place: Location,
    pub(crate) claim: Claim,
    /// What the code means in general.
    pub(crate) title: String,
    pub(crate) policy: Option<PolicyId>,
    /// Whether the finding that may result is suppressed.
    pub(crate) granted: Option<Granted>,
}

/// All claims and objects of a set of documents.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    by_key: BTreeMap<(String, String), Vec<Claimant>>,
    objects: BTreeMap<Identity, Location>,
}

/// What makes two objects the same: group, kind, namespace and name.
pub(crate) type Identity = (String, String, String, String);

impl Claims {
    /// Takes note of a claim.
    pub(crate) fn add(&mut self, claimant: Claimant) {
        let key = (claimant.claim.scope.clone(), claimant.claim.key.clone());
        self.by_key.entry(key).or_default().push(claimant);
    }

    /// Takes note of an object; a finding if it is written elsewhere already.
    pub(crate) fn define(
        &mut self,
        identity: Identity,
        object: &ObjectId,
        place: Location,
    ) -> Option<Finding> {
        let Some(first) = self.objects.get(&identity) else {
            self.objects.insert(identity, place);
            return None;
        };
        let message = format!("{object} is written twice; the one that is applied last wins");
        Some(Finding {
            code: codes::DEFINED_TWICE.to_owned(),
            severity: Severity::Error,
            step: Step::Set,
            title: String::new(),
            message,
            hint: "remove one of them, or give it another name".to_owned(),
            object: Some(object.clone()),
            pointer: Some("/metadata/name".to_owned()),
            place,
            related: vec![Related {
                message: "first written here".to_owned(),
                object: Some(object.clone()),
                place: first.clone(),
            }],
            policy: None,
            suppression: None,
            fix: None,
        })
    }

    /// Whether the object is among the documents.
    pub(crate) fn defines(&self, identity: &Identity) -> bool {
        self.objects.contains_key(identity)
    }

    /// A finding for everyone but the first who claims a key.
    pub(crate) fn conflicts(self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for mut claimants in self.by_key.into_values() {
            // What the cluster has was there first; else the order of the documents decides.
            claimants.sort_by_key(|one| one.place.origin != Origin::Cluster);
            let mut claimants = claimants.into_iter();
            let Some(first) = claimants.next() else { continue };
            for other in claimants {
                if !is_same(&first.object, &other.object)
                    && !first.claim.shares_with(other.claim.value.as_deref())
                {
                    findings.push(conflict(&first, other));
                }
            }
        }
        findings
    }
}

/// The version is only how an object is written.
fn is_same(one: &ObjectId, other: &ObjectId) -> bool {
    let group = |object: &ObjectId| {
        object.api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default()
    };
    group(one) == group(other)
        && (&one.kind, &one.namespace, &one.name) == (&other.kind, &other.namespace, &other.name)
}

/// In the words of the webhook.
fn conflict(first: &Claimant, other: Claimant) -> Finding {
    let Claim { scope, key, pointer, code, .. } = other.claim;
    let holder = match first.claim.pointer.as_str() {
        "" => first.object.to_string(),
        pointer => format!("{} ({pointer})", first.object),
    };
    let own = if first.claim.pointer == pointer || pointer.is_empty() {
        "here".to_owned()
    } else {
        format!("at {pointer}")
    };
    let there = match first.place.origin {
        Origin::Cluster => "taken here, in the cluster",
        Origin::File | Origin::Kustomize => "taken here",
    };
    Finding {
        code,
        severity: Severity::Error,
        step: Step::Set,
        title: other.title,
        message: format!("{key} ({scope}) is already taken by {holder}"),
        hint: format!(
            "choose another value {own}, or change or delete that object first, and after a change try again two \
             minutes later"
        ),
        object: Some(other.object),
        pointer: Some(pointer),
        place: other.place,
        related: vec![Related {
            message: there.to_owned(),
            object: Some(first.object.clone()),
            place: first.place.clone(),
        }],
        policy: other.policy,
        suppression: other.granted,
        fix: None,
    }
}
