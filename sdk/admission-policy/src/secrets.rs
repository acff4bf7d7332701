//! What a policy may have of Secrets: name, namespace, labels and type; by an index also the names of the
//! keys of `data`. For every source of a module, and whatever the administrator allows: what a policy looks
//! up may stand in its messages, and those are read by everybody who creates an object.
//!
//! Annotations are not among it, for `kubectl apply` writes the whole Secret into one. The host
//! drops the values besides (`opensdn_policy_host::lookup::without_secrets`), so that a gap here would
//! show nulls.

use opensdn_crds::admission_policy::KindRule;
use opensdn_policy_host::lookup::is_secret;
use opensdn_policy_host::{Index, Interest, Metadata};

use crate::problem::{Fault, Problem};

const ALLOWED: [&str; 4] = ["/metadata/name", "/metadata/namespace", "/metadata/labels", "/type"];
/// The names of the keys.
const KEYS: &str = "/data";

/// One problem per index that wants more.
pub(crate) fn problems(metadata: &Metadata) -> impl Iterator<Item = Problem> {
    metadata.indexes.iter().filter(|index| !is_allowed(index)).map(|index| {
        let wanted = reads(index).chain([index.key.as_str()].into_iter().filter(|key| !may_be_key(key)));
        let wanted: Vec<String> =
            wanted.map(|pointer| format!("{:?}", pointer.chars().take(64).collect::<String>())).collect();
        let message = format!(
            "{} wants to look up {} of Secrets, by its index {:?}",
            metadata.name,
            wanted.join(", "),
            index.name
        );
        let hint = "of a Secret a policy may know /metadata/name, /metadata/namespace, \
            /metadata/labels, /type and /data, which has the names of the keys without their values";
        Problem::new(Fault::SecretNotAllowed, "/spec/module", message, hint)
    })
}

/// One problem per interest that would have more of the Secrets that it is about, at a review or in the
/// background, where all that are stored are judged. Of these no value is left out, so `/data` is not
/// among what they may read.
pub(crate) fn judged(metadata: &Metadata, kinds: &[KindRule]) -> Vec<Problem> {
    let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
    let is_asked_for = kinds.is_empty()
        || kinds.iter().any(|rule| is(&rule.group, "") && is(&rule.kind, "Secret"));
    let may_read = |pointer: &String| ALLOWED.iter().any(|place| is_at_or_below(pointer, place));
    let wants_more = |interest: &&Interest| {
        is_asked_for
            && is(&interest.group, "")
            && is(&interest.kind, "Secret")
            && !interest.reads.iter().all(may_read)
    };
    let problem = |_: &Interest| {
        let message = format!("{} wants to judge what Secrets hold", metadata.name);
        let hint = "of a Secret that it judges a policy may read /metadata/name, \
            /metadata/namespace, /metadata/labels and /type; name other kinds in spec.kinds";
        Problem::new(Fault::SecretNotAllowed, "/spec/module", message, hint)
    };
    metadata.interests.iter().filter(wants_more).take(1).map(problem).collect()
}

/// Whether the index has no more than what may be known.
pub(crate) fn is_allowed(index: &Index) -> bool {
    !is_secret(&index.group, &index.kind)
        || (reads(index).next().is_none() && may_be_key(&index.key))
}

/// What the index must not return.
fn reads(index: &Index) -> impl Iterator<Item = &str> {
    index.reads.iter().map(String::as_str).filter(|pointer| {
        !is_at_or_below(pointer, KEYS)
            && !ALLOWED.iter().any(|place| is_at_or_below(pointer, place))
    })
}

fn may_be_key(key: &str) -> bool {
    key.is_empty() || ALLOWED.iter().any(|place| is_at_or_below(key, place))
}

fn is_at_or_below(pointer: &str, place: &str) -> bool {
    pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(kind: &str, key: &str, reads: &[&str]) -> Index {
        Index {
            name: "i".into(),
            group: String::new(),
            kind: kind.into(),
            key: key.into(),
            reads: reads.iter().map(|&read| read.into()).collect(),
        }
    }

    #[test]
    fn no_policy_judges_what_secrets_hold() {
        let metadata = |group: &str, kind: &str, reads: &[&str]| Metadata {
            interests: vec![Interest {
                step: opensdn_policy_host::Step::Validate,
                group: group.into(),
                kind: kind.into(),
                operations: vec![opensdn_policy_host::Operation::Create],
                reads: reads.iter().map(|&read| read.into()).collect(),
            }],
            ..crate::plan::tests::metadata(group, kind)
        };
        let rule = |kind: &str| KindRule {
            group: String::new(),
            version: None,
            kind: kind.into(),
            operations: Vec::new(),
        };
        let refused = |metadata: &Metadata, kinds: &[KindRule]| !judged(metadata, kinds).is_empty();
        for pointer in
            ["", "/data", "/data/password", "/metadata", "/metadata/annotations", "/stringData"]
        {
            assert!(refused(&metadata("", "Secret", &[pointer]), &[]), "{pointer}");
            assert!(refused(&metadata("*", "*", &[pointer]), &[rule("Secret")]), "{pointer}");
            assert!(!refused(&metadata("*", "*", &[pointer]), &[rule("Pod")]), "{pointer}");
            assert!(!refused(&metadata("", "Pod", &[pointer]), &[]), "{pointer}");
        }
        assert!(!refused(&metadata("", "Secret", &["/type", "/metadata/labels/app"]), &[]));
    }

    #[test]
    fn no_index_has_more_of_a_secret_than_name_labels_type_and_names_of_keys() {
        let good = ["/metadata/name", "/metadata/labels/app", "/type", "/data", "/data/password"];
        assert!(is_allowed(&index("Secret", "", &good)));
        assert!(is_allowed(&index("Secret", "/metadata/labels/*", &[])));
        for bad in ["", "/metadata", "/metadata/annotations", "/datas", "/stringData", "/typed"] {
            assert!(!is_allowed(&index("Secret", "", &[bad])), "{bad}");
        }
        for bad in ["/data/password", "/metadata/annotations/*", "/data/*"] {
            assert!(!is_allowed(&index("Secret", bad, &[])), "{bad}");
        }
        assert!(is_allowed(&index("ConfigMap", "/data/x", &[""])), "of others it may");
    }
}
