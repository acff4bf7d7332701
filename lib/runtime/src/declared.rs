//! The parts of objects that are declared to be needed, so that no more of an object is ever in memory. A module declares
//! them, so a tree of them is no larger than what it wrote, and neither is what a reader holds of it. Deliberately not
//! here: the reading (`levels.rs`).

use std::collections::BTreeMap;

/// Without these an object of a list or a watch is none.
const ALWAYS: [&str; 4] =
    ["/metadata/name", "/metadata/namespace", "/metadata/resourceVersion", "/metadata/uid"];
/// The place of the root among the nodes.
const ROOT: usize = 0;

/// What is read of objects; nothing else, unless they are whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// One for each beginning of a pointer; the first is the object.
    nodes: Vec<Node>,
}

/// The beginning of a pointer. What is below it is by places among the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    is_whole: bool,
    /// Each member and item.
    each: Option<usize>,
    members: BTreeMap<String, usize>,
    /// The same by numbers, of which one may be written in several ways.
    items: BTreeMap<usize, Vec<usize>>,
}

impl Declared {
    /// `parts` are JSON pointers, an empty one for the object. In `keys` a `*` stands for each member or item. What an
    /// object is called is always read, and who has written its fields never.
    pub fn new<'p>(
        parts: impl IntoIterator<Item = &'p str>,
        keys: impl IntoIterator<Item = &'p str>,
    ) -> Self {
        let mut declared = Self { nodes: vec![Node::default()] };
        for pointer in parts.into_iter().chain(ALWAYS) {
            declared.add(pointer, false);
        }
        for pointer in keys {
            declared.add(pointer, true);
        }
        declared
    }

    fn add(&mut self, pointer: &str, has_wildcards: bool) {
        let mut place = ROOT;
        for segment in pointer.split('/').skip(1) {
            let key = segment.replace("~1", "/").replace("~0", "~");
            place = self.below(place, &key, has_wildcards && key == "*");
        }
        if let Some(node) = self.nodes.get_mut(place) {
            node.is_whole = true;
        }
    }

    /// The node below that one, which is made if it is not there.
    fn below(&mut self, place: usize, key: &str, is_each: bool) -> usize {
        let new = self.nodes.len();
        let Some(node) = self.nodes.get_mut(place) else { return place };
        let found = if is_each {
            *node.each.get_or_insert(new)
        } else {
            let found = *node.members.entry(key.to_owned()).or_insert(new);
            if found == new
                && let Ok(number) = key.parse()
            {
                node.items.entry(number).or_default().push(new);
            }
            found
        };
        if found == new {
            self.nodes.push(Node::default());
        }
        found
    }

    /// All of an object that is declared.
    pub(crate) fn root(&self) -> Wanted<'_> {
        Wanted { declared: self, places: vec![ROOT] }
    }
}

/// What is wanted of one value: as many nodes as pointers that lead here.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'d> {
    declared: &'d Declared,
    places: Vec<usize>,
}

impl<'d> Wanted<'d> {
    fn nodes(&self) -> impl Iterator<Item = &'d Node> {
        let nodes = &self.declared.nodes;
        self.places.iter().filter_map(|place| nodes.get(*place))
    }

    /// Whether it is wanted as it is.
    pub(crate) fn is_whole(&self) -> bool {
        self.nodes().any(|node| node.is_whole)
    }

    /// Of the member of that name; `None` where nothing is.
    pub(crate) fn member(&self, key: &str) -> Option<Self> {
        let places = self
            .nodes()
            .flat_map(|node| node.members.get(key).copied().into_iter().chain(node.each));
        self.of(places.collect())
    }

    /// Of the item of that number.
    pub(crate) fn item(&self, number: usize) -> Option<Self> {
        let places = self.nodes().flat_map(|node| {
            node.items.get(&number).into_iter().flatten().copied().chain(node.each)
        });
        self.of(places.collect())
    }

    fn of(&self, places: Vec<usize>) -> Option<Self> {
        (!places.is_empty()).then_some(Self { declared: self.declared, places })
    }

    /// Whether nothing from this item on is wanted.
    pub(crate) fn ends_before(&self, number: usize) -> bool {
        self.nodes().all(|node| {
            let last = node.items.last_key_value().map(|(last, _)| *last);
            node.each.is_none() && last.is_none_or(|last| last < number)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::de::DeserializeSeed as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::levels::{ObjectReader, Part, check};

    fn read_by(declared: &Declared, text: &str) -> Value {
        let mut text = serde_json::Deserializer::from_str(text);
        let values = Cell::new(usize::MAX);
        ObjectReader::new(Part::Declared(declared), &values).deserialize(&mut text).unwrap()
    }

    fn read(keys: &[&str], text: &str) -> Value {
        read_by(&Declared::new([], keys.iter().copied()), text)
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

    #[test]
    fn of_a_part_a_star_is_a_key_and_of_a_key_it_is_each() {
        let text = json!({"metadata": {}, "spec": {"*": 1, "a": 2}}).to_string();
        let spec = |declared: Declared| read_by(&declared, &text)["spec"].clone();
        assert_eq!(spec(Declared::new(["/spec/*"], [])), json!({"*": 1}));
        assert_eq!(spec(Declared::new([], ["/spec/*"])), json!({"*": 1, "a": 2}));
        assert_eq!(spec(Declared::new(["/spec/a"], [])), json!({"a": 2}));
    }

    #[test]
    fn who_has_written_fields_is_read_by_no_pointer() {
        let text = json!({"metadata": {"name": "a", "managedFields": [{"manager": "m"}], "labels": {"x": "y"}}}).to_string();
        for key in [
            "/metadata/*/*/manager",
            "/*/*",
            "/*",
            "/metadata/managedFields/0/manager",
            "/metadata/managedFields",
        ] {
            assert_eq!(read(&[key], &text)["metadata"].get("managedFields"), None, "{key}");
        }
    }

    /// Each of them leads to what the others lead to as well.
    #[test]
    fn a_tree_is_no_larger_than_the_pointers_of_it_in_whatever_order() {
        let stars = |count: usize| format!("{}/a/b/c", "/*".repeat(count));
        let mut pointers: Vec<String> = (0..29).map(stars).collect();
        for _ in 0..2 {
            let declared = Declared::new([], pointers.iter().map(String::as_str));
            let segments: usize = pointers.iter().map(|one| one.matches('/').count()).sum();
            assert!(declared.nodes.len() <= segments + 10, "{}", declared.nodes.len());
            let text = format!("{}1{}", r#"{"x":"#.repeat(29), "}".repeat(29));
            assert!(read_by(&declared, &text).is_object());
            pointers.reverse();
        }
    }
}
