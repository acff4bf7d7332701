//! Whether an object can have a name at all, and whether it can be asked for. The names in a review
//! are a caller's word: a claim for what is no name could never be checked against what is stored.
//!
//! Objects of our kinds have DNS names. Which rule other kinds have, only their API server knows; what
//! all of them have in common is that the name is one segment of a path.

use opensdn_admission_policy::CLOSED_GROUPS;
use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_runtime::path::segment;

use super::Holder;

/// Longest DNS subdomain.
const SUBDOMAIN: usize = 253;
/// Longest DNS label.
const LABEL: usize = 63;
/// Longest name of an object of a kind that is not ours. The API server has no limit for some of them,
/// but their names are in a claim and in a URL.
const SEGMENT: usize = 1024;
/// So much of what is no name is repeated.
const SHOWN: usize = 100;

/// The object cannot be called that, so it is never stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("take claims for an object whose {what} is {text:?}: no object can have it")]
pub struct NoName {
    /// Which of its parts: name, namespace, group, version, kind, UID.
    pub what: &'static str,
    /// The beginning of it.
    pub text: String,
}

/// Refuses a holder that no API server stores.
pub(super) fn check(holder: &Holder) -> Result<(), NoName> {
    let Holder { group, version, kind, namespace, name, uid } = holder;
    let refuse = |what, text: &str| {
        let text = text.chars().take(SHOWN).collect();
        Err(NoName { what, text })
    };
    match holder {
        _ if !is_name(group, name) => refuse("name", name),
        _ if !namespace.is_empty() && !is_label(namespace) => refuse("namespace", namespace),
        _ if !group.is_empty() && !is_subdomain(group) => refuse("group", group),
        _ if !is_label(version) => refuse("version", version),
        _ if !is_kind(kind) => refuse("kind", kind),
        _ if !is_uid(uid) => refuse("UID", uid),
        _ => Ok(()),
    }
}

fn is_name(group: &str, name: &str) -> bool {
    if CLOSED_GROUPS.contains(&group) {
        is_subdomain(name)
    } else {
        name.len() <= SEGMENT && is_path_segment(name)
    }
}

/// The rule that the API server has for every name.
fn is_path_segment(name: &str) -> bool {
    !["", ".", ".."].contains(&name) && !name.contains(['/', '%'])
}

/// As the kind of a CustomResourceDefinition.
fn is_kind(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= LABEL
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// API servers make UUIDs; none is there where an object has not been given one.
fn is_uid(text: &str) -> bool {
    text.len() <= LABEL && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN && text.split('.').all(is_label_of_any_length)
}

fn is_label(text: &str) -> bool {
    text.len() <= LABEL && is_label_of_any_length(text)
}

fn is_label_of_any_length(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(plain)
}

/// Whether the holder of a stored claim can be asked for. What cannot is not stored: no user could have
/// created it. Its name is escaped in the URL, the rest is not.
pub(super) fn is_addressable(held: &StoredHolder) -> bool {
    let plain = |text: Option<&str>| text.is_none_or(|text| segment(text) == text);
    is_path_segment(&held.name)
        && plain(Some(&held.group))
        && plain(held.version.as_deref())
        && plain(held.namespace.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str) -> Holder {
        Holder {
            group: "opensdn.io".into(),
            version: "v1alpha1".into(),
            kind: "LinkLocalService".into(),
            namespace: "n".into(),
            name: name.into(),
            uid: "u".into(),
        }
    }

    #[test]
    fn what_is_no_name_is_refused_and_repeated_in_part_only() {
        for good in ["a", "a-b.c", "1", &"a".repeat(253)] {
            assert!(check(&holder(good)).is_ok(), "{good}");
        }
        for bad in ["", "a b", "A", "a/b", "-a", "a-", "a..b", "ä", &"a".repeat(254)] {
            assert!(check(&holder(bad)).is_err(), "{bad:?}");
        }
        let long = check(&holder(&" ".repeat(5000))).unwrap_err().to_string();
        assert!(long.len() < 300, "{}", long.len());
        for (namespace, group, version) in
            [("n m", "g", "v1"), ("n.m", "g", "v1"), ("", "g h", "v1"), ("", "g", "v/1")]
        {
            let text = str::to_owned;
            let (namespace, group, version) = (text(namespace), text(group), text(version));
            assert!(check(&Holder { namespace, group, version, ..holder("a") }).is_err());
        }
        assert!(check(&Holder { namespace: String::new(), ..holder("a") }).is_ok());
        assert!(check(&Holder { uid: String::new(), ..holder("a") }).is_ok());
        for uid in ["a b".to_owned(), "a/b".to_owned(), "u".repeat(64)] {
            assert!(check(&Holder { uid, ..holder("a") }).is_err());
        }
        for kind in [String::new(), "A b".to_owned(), "1A".to_owned(), "A".repeat(64)] {
            assert!(check(&Holder { kind, ..holder("a") }).is_err());
        }
    }

    #[test]
    fn a_kind_that_is_not_ours_may_have_any_name_that_the_api_server_takes() {
        let role =
            |name: &str| Holder { group: "rbac.authorization.k8s.io".into(), ..holder(name) };
        for good in ["system:node", "A b", "ä", "a?b#c", "-", &"a".repeat(1024)] {
            assert!(check(&role(good)).is_ok(), "{good}");
            assert!(check(&holder(good)).is_err(), "ours have DNS names: {good}");
        }
        for bad in ["", ".", "..", "a/b", "50%", &"a".repeat(1025)] {
            assert!(check(&role(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_holder_whose_name_no_object_can_have_cannot_be_addressed() {
        let held = |name: &str| StoredHolder { name: name.into(), ..StoredHolder::default() };
        for good in ["a", "system:node", "A.b", "a b", "a?b", "a#b", "ä"] {
            assert!(is_addressable(&held(good)), "{good}");
        }
        for bad in ["", "a/b", ".", "..", "a%20b"] {
            assert!(!is_addressable(&held(bad)), "{bad:?}");
        }
        let nowhere = StoredHolder { namespace: Some("n m".into()), ..held("a") };
        assert!(!is_addressable(&nowhere));
    }
}
