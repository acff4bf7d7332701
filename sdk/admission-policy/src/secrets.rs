//! What an index may have of Secrets: name, namespace, labels, type and the names of the keys of
//! `data`. For every source of a module, and whatever the administrator allows: what a policy looks
//! up may stand in its messages, and those are read by everybody who creates an object.
//!
//! Annotations are not among it, for `kubectl apply` writes the whole Secret into one. The host
//! drops the values besides (`opensdn_policy_host::lookup::without_secrets`), so that a gap here would
//! show nulls.

use opensdn_policy_host::lookup::is_secret;
use opensdn_policy_host::{Index, Metadata};

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
