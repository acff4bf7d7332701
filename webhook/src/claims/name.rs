//! Whether an object can have a name at all, and whether it can be asked for. The names in a review
//! are a caller's word: a claim for what is no name could never be checked against what is stored.

use opensdn_crds::unique_claim::Holder as StoredHolder;

use super::Holder;

/// Longest DNS subdomain.
const SUBDOMAIN: usize = 253;
/// Longest DNS label.
const LABEL: usize = 63;
/// So much of what is no name is repeated.
const SHOWN: usize = 100;

/// The object cannot be called that, so it is never stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("take claims for an object whose {what} is {text:?}: no object can have it")]
pub struct NoName {
    /// Which of its parts: name, namespace, group, version.
    pub what: &'static str,
    /// The beginning of it.
    pub text: String,
}

/// Refuses a holder that no API server stores.
pub(super) fn check(holder: &Holder) -> Result<(), NoName> {
    let Holder { group, version, namespace, name, .. } = holder;
    let refuse = |what, text: &str| {
        let text = text.chars().take(SHOWN).collect();
        Err(NoName { what, text })
    };
    match holder {
        _ if !is_subdomain(name) => refuse("name", name),
        _ if !namespace.is_empty() && !is_label(namespace) => refuse("namespace", namespace),
        _ if !group.is_empty() && !is_subdomain(group) => refuse("group", group),
        _ if !is_label(version) => refuse("version", version),
        _ => Ok(()),
    }
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

/// Whether the holder of a stored claim can be put into a URL. What cannot is not stored: nobody
/// could have created it.
pub(super) fn is_addressable(held: &StoredHolder) -> bool {
    let optional = |text: Option<&str>| text.is_none_or(|text| text.is_empty() || is_segment(text));
    is_segment(&held.name)
        && optional(Some(&held.group))
        && optional(held.version.as_deref())
        && optional(held.namespace.as_deref())
}

/// What a path may have between two slashes, unescaped.
fn is_segment(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    !text.is_empty() && text != "." && text != ".." && text.bytes().all(plain)
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
    }

    #[test]
    fn a_holder_whose_name_cannot_be_in_a_url_cannot_be_addressed() {
        let held = |name: &str| StoredHolder { name: name.into(), ..StoredHolder::default() };
        for good in ["a", "system:node", "A.b"] {
            assert!(is_addressable(&held(good)), "{good}");
        }
        for bad in ["", "a b", "a/b", "..", "a?b", "a#b", "a%20b", "ä"] {
            assert!(!is_addressable(&held(bad)), "{bad:?}");
        }
        let nowhere = StoredHolder { namespace: Some("n m".into()), ..held("a") };
        assert!(!is_addressable(&nowhere));
    }
}
