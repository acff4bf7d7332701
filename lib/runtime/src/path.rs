//! The paths of calls: how a name is put there, and what one is about. kube puts names there as they are, but
//! an object of RBAC, for one, may be called `system:x y`: what is no URL would never be sent. Deliberately not
//! here: which names there can be.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What a path of the API server is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The plural name, with the subresource: `pods/exec`; empty, if the path is of no resource, such as `/version`.
    pub resource: String,
    /// Whether it is one object, and not the collection.
    pub is_one: bool,
}

impl Target {
    /// Of `/api/v1/namespaces/tf/pods/a` or `/apis/apps/v1/namespaces/tf/statefulsets`.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        let rest = match rest {
            // Subresources of the namespace itself.
            ["namespaces", _, "status" | "finalize"] => rest,
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            _ => rest,
        };
        match rest {
            [] => Self::default(),
            [resource] => Self { resource: (*resource).to_owned(), is_one: false },
            [resource, _] => Self { resource: (*resource).to_owned(), is_one: true },
            [resource, _, sub, ..] => Self { resource: format!("{resource}/{sub}"), is_one: true },
        }
    }
}

/// A name as one segment of a path, with everything escaped that has a meaning in a URL.
#[must_use]
pub fn segment(name: &str) -> Cow<'_, str> {
    if name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() * 3);
    for byte in name.bytes() {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    Cow::Owned(escaped)
}

/// What a path may have between two slashes, unescaped.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{Target, segment};

    #[test]
    fn a_path_says_the_resource_and_whether_it_is_one_object() {
        for (path, resource, is_one) in [
            ("/api/v1/nodes", "nodes", false),
            ("/api/v1/namespaces/tf", "namespaces", true),
            ("/api/v1/namespaces/tf/status", "namespaces/status", true),
            ("/api/v1/namespaces/tf/pods", "pods", false),
            ("/api/v1/namespaces/tf/pods/namespaces/exec", "pods/exec", true),
            ("/apis/tf.tungsten.io/v1alpha1/managers", "managers", false),
            ("/apis/apps/v1/namespaces/tf/statefulsets/a", "statefulsets", true),
            ("/apis/apps/v1", "", false),
            ("/version", "", false),
        ] {
            let target = Target { resource: resource.to_owned(), is_one };
            assert_eq!(Target::of(path), target, "{path}");
        }
    }

    #[test]
    fn every_name_becomes_one_segment_of_a_url() {
        for plain in ["a-b.c", "system:node", "A@b"] {
            assert_eq!(segment(plain), plain);
        }
        for (name, escaped) in
            [("x y", "x%20y"), ("a/b?c#d", "a%2Fb%3Fc%23d"), ("ü%", "%C3%BC%25"), ("\n", "%0A")]
        {
            assert_eq!(segment(name), escaped);
            assert!(format!("/apis/g/v1/things/{escaped}").parse::<http::Uri>().is_ok());
        }
    }
}
