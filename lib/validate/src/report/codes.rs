//! Codes of what is wrong with a set of documents, and with how it is to be judged: neither the
//! text's nor the schema's nor a policy's.

/// The same object is among the documents twice.
pub const DEFINED_TWICE: &str = "defined-twice";
/// A file cannot be read.
pub const UNREADABLE: &str = "unreadable-file";
/// A policy could not judge the object.
pub const INCONCLUSIVE: &str = "policy-inconclusive";
/// An object of a kind that neither a schema nor a policy knows (`--strict`).
pub const UNKNOWN_KIND: &str = "unknown-kind";
/// A suppression without a reason, which does not count.
pub const WITHOUT_REASON: &str = "suppression-without-reason";
/// A suppression of something that is not found.
pub const UNUSED: &str = "suppression-unused";

/// Every code here with what it means and what to do.
pub const ALL: &[(&str, &str, &str)] = &[
    (
        DEFINED_TWICE,
        "the same object (kind, namespace, name) is among the documents twice, so that what is \
         applied last wins",
        "remove one of them, or give it another name",
    ),
    (
        UNREADABLE,
        "a file that was named, or that lies in a folder that was named, cannot be read",
        "give yourself the right to read it, or leave it out",
    ),
    (
        INCONCLUSIVE,
        "a policy came to no answer, which is never a pass: the webhook would refuse the object, or \
         let it pass unchecked with a warning, by the policy's failureMode",
        "look at the reason in the message; a lookup that needs the cluster is answered with --live",
    ),
    (
        UNKNOWN_KIND,
        "no such kind in the API group, or not in this version; with --strict also one that neither a \
         schema nor a policy knows",
        "look at the spelling of apiVersion and kind; leave --strict out if it is another product's",
    ),
    (
        WITHOUT_REASON,
        "a suppression names no reason, or no code, and so does not count",
        "write why: # opensdn-ignore: CODE reason",
    ),
    (UNUSED, "a suppression names a code that is not found there (any more)", "remove it"),
];

/// What a code without a number means, if it is one of those.
pub fn meaning(code: &str) -> Option<&'static str> {
    let own = ALL.iter().find(|one| one.0 == code).map(|one| one.1);
    let texts = opensdn_manifests::codes::ALL.iter();
    own.or_else(|| texts.into_iter().find(|one| one.0 == code).map(|one| one.1.trim()))
}

/// What to do about a code of this file.
pub fn remedy(code: &str) -> Option<&'static str> {
    ALL.iter().find(|one| one.0 == code).map(|one| one.2)
}
