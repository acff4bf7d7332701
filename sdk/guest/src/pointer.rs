//! JSON Pointers (RFC 6901) that are built step by step.

use std::fmt;

/// A JSON Pointer: where in the object a finding, a claim or a patch belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(String);

impl Pointer {
    /// The whole document.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// The member `name` of the object here. `~` and `/` in the name are escaped.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        let mut text = self.longer_by(1 + name.len());
        text.push('/');
        // A policy makes hundreds of these for a large object, and hardly any name has to be escaped.
        if name.contains(['~', '/']) {
            text.push_str(&name.replace('~', "~0").replace('/', "~1"));
        } else {
            text.push_str(name);
        }
        Self(text)
    }

    /// The element `index` of the array here, from 0.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.key(&index.to_string())
    }

    /// The place `relative` (a pointer of its own, `/a/b`) below this one.
    #[must_use]
    pub fn join(&self, relative: &str) -> Self {
        let mut text = self.longer_by(relative.len());
        text.push_str(relative);
        Self(text)
    }

    /// A copy with room for so many bytes more.
    fn longer_by(&self, bytes: usize) -> String {
        let mut text = String::with_capacity(self.0.len() + bytes);
        text.push_str(&self.0);
        text
    }

    /// The pointer as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The unescaped segments, outermost first.
    pub fn segments(&self) -> impl Iterator<Item = String> {
        self.0.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<&str> for Pointer {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Pointer {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&Pointer> for Pointer {
    fn from(pointer: &Pointer) -> Self {
        pointer.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::Pointer;

    #[test]
    fn escapes_and_unescapes_names() {
        let pointer = Pointer::root().key("metadata").key("annotations").key("a/b~c").index(3);
        assert_eq!(pointer.as_str(), "/metadata/annotations/a~1b~0c/3");
        assert_eq!(
            pointer.segments().collect::<Vec<_>>(),
            ["metadata", "annotations", "a/b~c", "3"]
        );
    }

    #[test]
    fn joins_a_relative_pointer() {
        assert_eq!(Pointer::from("/spec").join("/a/b").as_str(), "/spec/a/b");
    }
}
