//! What can be wrong with an AdmissionPolicy, explained. The list itself is that of
//! `opensdn-admission-policy`; a test holds both together.

use super::{Finder, Meaning, Severity};

/// Code, what is wrong, why, what to do; the warnings are about the state of the cluster.
const FAULTS: [(&str, Severity, &str, &str, &str); 19] = [
    (
        "OSDN4001",
        Severity::Deny,
        "no built-in policy has that name",
        "spec.module.builtIn names a policy that is part of the webhook, and this release has none \
         of that name: it is misspelt, or belongs to another release.",
        "correct the name; the hint of the message lists those that there are",
    ),
    (
        "OSDN4002",
        Severity::Deny,
        "the digest is missing or malformed",
        "A module that does not come with the product is pinned by its digest, so that a user who \
         may write the ConfigMap cannot exchange what judges every request.",
        "set the digest as sha256: and 64 hexadecimal digits: sha256sum MODULE.wasm",
    ),
    (
        "OSDN4003",
        Severity::Warn,
        "the module has another digest than the pinned one",
        "The bytes that were found are not those that the policy was approved with. They are not \
         run. It is a warning because the right bytes may still be applied.",
        "apply the approved module, or review the new one and pin its digest",
    ),
    (
        "OSDN4004",
        Severity::Deny,
        "the module is no policy",
        "It does not compile, or is no component of the world opensdn:policy/policy: it lacks an \
         export, or imports what a policy is not given.",
        "build it with kubectl opensdn policy build, and look at it with policy inspect",
    ),
    (
        "OSDN4005",
        Severity::Deny,
        "the settings do not fit the policy's own schema",
        "A policy says with a JSON Schema which settings it takes. With other settings every \
         evaluation would fail.",
        "correct spec.settings at the place that the message names; policy inspect shows the schema",
    ),
    (
        "OSDN4006",
        Severity::Deny,
        "the policy is not about a kind or operation in kinds",
        "spec.kinds can only narrow what the module says that it judges: for any other kind or \
         operation it would never be asked, and the AdmissionPolicy would promise what it does not do.",
        "take the kind or operation out; the message lists what the policy is about",
    ),
    (
        "OSDN4007",
        Severity::Deny,
        "the policy looks up a kind that allowedLookups does not name",
        "A policy sees objects of other kinds only where the administrator allows it, so that a \
         module cannot read more of the cluster than its reviewer knows of.",
        "add the kind to spec.allowedLookups if the policy may read it",
    ),
    (
        "OSDN4008",
        Severity::Deny,
        "a limit is too small or too large",
        "Below the smallest limits no policy can answer; above the largest one policy could hold up \
         the API server or take the webhook's memory.",
        "use a value in the range that the message names, or leave the limit out",
    ),
    (
        "OSDN4009",
        Severity::Deny,
        "a selector cannot be evaluated",
        "An operator of a label selector needs values (In, NotIn) or must have none (Exists, \
         DoesNotExist), and keys and values must be labels as Kubernetes knows them.",
        "correct the selector at the place that the message names",
    ),
    (
        "OSDN4010",
        Severity::Warn,
        "the module cannot be read",
        "The ConfigMap, its key or the file is not there, or may not be read. Until it is loaded, a replica that had the \
         policy before continues with that; one that had not refuses what an enforced policy is about.",
        "do what the condition Ready says: kubectl describe admissionpolicy NAME; kubectl opensdn policy manifest writes \
         a ConfigMap with the module",
    ),
    (
        "OSDN4011",
        Severity::Warn,
        "the cluster does not serve the kind",
        "The CustomResourceDefinition of a kind that the policy is about, or looks up, is not \
         installed. Until it is there are no such objects to judge.",
        "install the CustomResourceDefinition, or correct group and kind",
    ),
    (
        "OSDN4012",
        Severity::Deny,
        "not exactly one source of the module",
        "Exactly one place says where the module comes from. With none there is nothing to run; \
         with two it would be open which one is meant.",
        "give one of the sources that spec.module knows",
    ),
    (
        "OSDN4013",
        Severity::Deny,
        "the object is not an AdmissionPolicy",
        "It cannot be read as one: a field has another type than the schema says. Objects that were \
         stored before the schema can look so.",
        "correct the field that the message names: kubectl explain admissionpolicy.spec",
    ),
    (
        "OSDN4014",
        Severity::Deny,
        "the policy is about any kind, and kinds names none",
        "A module that judges whatever it is given would be asked about every request to the API \
         server. Which kinds it judges has to be said.",
        "name the kinds in spec.kinds",
    ),
    (
        "OSDN4015",
        Severity::Deny,
        "no policy is asked about the operation",
        "A connection (CONNECT), as of kubectl exec, is one to a subresource and has no object that a \
         policy could judge. And no policy is asked whether an AdmissionPolicy may be deleted: it \
         could keep itself active.",
        "take the operation out of spec.kinds, or build the policy without it",
    ),
    (
        "OSDN4016",
        Severity::Deny,
        "the policy looks up more of Secrets than may ever be known",
        "Anyone who may write AdmissionPolicies could else read every Secret: what a policy looks up \
         may stand in its messages. So no policy, wherever its module comes from, sees more of a \
         Secret than its name, namespace, labels, type and the names of its keys.",
        "read nothing of a Secret but /metadata/name, /metadata/namespace, /metadata/labels, /type \
         and /data, which has the names of the keys with null in place of each value",
    ),
    (
        "OSDN4017",
        Severity::Warn,
        "the module could not be compiled here",
        "Modules from outside are compiled by a process of their own. It was killed or could not be started, it took longer \
         than an apply may, or too many others were being compiled. The module is not to blame, and it is tried again. \
         Until it is loaded, a replica that had the policy before continues with that; one that had not refuses what an \
         enforced policy is about.",
        "wait for the condition Ready; if it stays false: kubectl logs -n NAMESPACE deployment/opensdn-webhook, for what \
         ends the compiler",
    ),
    (
        "OSDN4018",
        Severity::Warn,
        "there is no room for the compiled module",
        "What a replica compiles of a module from outside it writes to the folder of its cache, and that has no room. Until \
         there is some, a replica that had the policy before continues with that; one that had not refuses what an \
         enforced policy is about. Built-in policies need no cache.",
        "free space in the folder that the message names, or give its volume more (--cache-folder); it is tried again \
         every 20 seconds",
    ),
    (
        "OSDN4019",
        Severity::Warn,
        "the webhook has just started",
        "A replica that starts has not loaded the module of an enforced policy yet, and refuses what that is about instead \
         of passing it. It is not ready meanwhile, so only a replica that was called all the same says so.",
        "try again; if it stays, kubectl describe admissionpolicy NAME says what is missing",
    ),
];

/// `(code, meaning)` of each.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    FAULTS.iter().map(|(code, severity, title, why, remedy)| {
        let meaning = Meaning {
            found_by: Finder::AdmissionPolicy,
            policy: None,
            severity: *severity,
            title: (*title).to_owned(),
            why: (*why).to_owned(),
            remedy: (*remedy).to_owned(),
            rules: Vec::new(),
            sources: Vec::new(),
        };
        (*code, meaning)
    })
}
