//! The parts of objects that somebody has declared to need, so that no more of an object is ever in memory. Deliberately
//! not here: the reading (`levels.rs`).

use std::collections::BTreeMap;

use crate::levels::{MANAGED_FIELDS, Part};

/// Without these an object of a list or a watch is none.
const ALWAYS: [&str; 4] =
    ["/metadata/name", "/metadata/namespace", "/metadata/resourceVersion", "/metadata/uid"];

/// What is read of an object or of a value in it; nothing else, unless it is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    is_whole: bool,
    /// Of each member and item.
    each: Option<Box<Self>>,
    /// By key or number; has what `each` has, too.
    members: BTreeMap<String, Self>,
}

impl Declared {
    /// JSON pointers, in which `*` stands for each member or item; an empty one for the object. What an object is called
    /// is always read, and who has written its fields never.
    pub fn new<'p>(pointers: impl IntoIterator<Item = &'p str>) -> Self {
        let mut root = Self::default();
        for pointer in pointers.into_iter().chain(ALWAYS) {
            let segments: Vec<String> = pointer
                .split('/')
                .skip(1)
                .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
                .collect();
            if !matches!(&segments[..], [first, second, ..] if first == "metadata" && second == MANAGED_FIELDS)
            {
                root.add(&segments);
            }
        }
        root
    }

    fn add(&mut self, segments: &[String]) {
        let Some((first, rest)) = segments.split_first() else {
            self.is_whole = true;
            return;
        };
        if first == "*" {
            self.members.values_mut().for_each(|member| member.add(rest));
            self.each.get_or_insert_default().add(rest);
            return;
        }
        // A number may be written in several ways.
        let number = first.parse().map(|number: usize| number.to_string()).ok();
        for key in [Some(first), number.as_ref().filter(|number| *number != first)] {
            let Some(key) = key else { continue };
            let of_each = || self.each.as_deref().cloned().unwrap_or_default();
            self.members.entry(key.clone()).or_insert_with(of_each).add(rest);
        }
    }

    pub(crate) fn part(&self) -> Part<'_> {
        if self.is_whole { Part::Whole } else { Part::Declared(self) }
    }

    /// Of a whole object.
    pub(crate) fn of_object(&self) -> Part<'_> {
        if self.is_whole { Part::Lean } else { Part::DeclaredObject(self) }
    }

    pub(crate) fn member(&self, key: &str) -> Option<&Self> {
        self.members.get(key).or(self.each.as_deref())
    }

    pub(crate) fn item(&self, number: usize) -> Option<&Self> {
        if self.members.is_empty() {
            self.each.as_deref()
        } else {
            self.member(&number.to_string())
        }
    }

    /// Whether nothing from this item on is read.
    pub(crate) fn ends_before(&self, number: usize) -> bool {
        let is_before = |key: &String| key.parse().is_ok_and(|key: usize| key < number);
        self.each.is_none()
            && self.members.keys().all(|key| key.parse::<usize>().is_err() || is_before(key))
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::levels::{ObjectReader, check};

    fn read(pointers: &[&str], text: &str) -> Value {
        let declared = Declared::new(pointers.iter().copied());
        let mut text = serde_json::Deserializer::from_str(text);
        ObjectReader(declared.of_object()).deserialize(&mut text).unwrap()
    }

    #[test]
    fn what_is_not_declared_is_not_read() {
        let object = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "n", "uid": "u",
            "resourceVersion": "7", "labels": {"a/b": "c"}, "managedFields": [1]},
            "spec": {"ip": "1", "list": [{"ip": "2", "port": 3}, {"ip": "4"}, 5], "a/b": {"c": 6}, "secret": "kept out"}});
        let read = |pointers: &[&str]| read(pointers, &object.to_string());
        let named = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"});
        for (pointers, expected) in [
            (&[][..], json!({})),
            (&["/spec/ip", "/spec/none/1"], json!({"ip": "1"})),
            (&["/spec/a~1b"], json!({"a/b": {"c": 6}})),
            (&["/spec/ip/x", "/spec/list/x"], json!({"ip": "1", "list": []})),
            (&["/spec/list/*/ip"], json!({"list": [{"ip": "2"}, {"ip": "4"}, 5]})),
            (&["/spec/list/1/ip"], json!({"list": [null, {"ip": "4"}]})),
            (&["/spec/list/01/ip"], json!({"list": [null, {"ip": "4"}]})),
            (
                &["/spec/list/0/port", "/spec/list/*/ip"],
                json!({"list": [{"ip": "2", "port": 3}, {"ip": "4"}, 5]}),
            ),
            (
                &["/spec/list/*/ip", "/spec/list/0"],
                json!({"list": [{"ip": "2", "port": 3}, {"ip": "4"}, 5]}),
            ),
            (&["/spec/*/c"], json!({"ip": "1", "list": [], "a/b": {"c": 6}, "secret": "kept out"})),
        ] {
            let mut expected = json!({"metadata": named, "spec": expected});
            if pointers.is_empty() {
                expected.as_object_mut().unwrap().remove("spec");
            }
            assert_eq!(read(pointers), expected, "{pointers:?}");
        }
        let mut lean = object.clone();
        lean["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(read(&["", "/spec/ip"]), lean);
        assert_eq!(
            read(&["/metadata", "/metadata/managedFields"]),
            json!({"metadata": lean["metadata"]})
        );
    }

    #[test]
    fn only_of_what_is_declared_something_can_be_too_deep() {
        let (open, close) = (r#"{"a":"#.repeat(300), "}".repeat(300));
        let text = format!(r#"{{"metadata":{{"name":"a"}},"deep":{open}1{close},"flat":1}}"#);
        assert_eq!(check(&read(&["/flat"], &text)), Ok(()));
        assert!(check(&read(&["/deep"], &text)).is_err());
        assert_eq!(check(&read(&["/deep/a/b"], &text)), Ok(()));
    }
}
