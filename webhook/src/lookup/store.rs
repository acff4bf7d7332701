//! The objects of one kind as lookups need them: the declared parts and the hash indexes, nothing
//! else of an object. Pure data; who fills it is in `cache.rs`. Public for the benchmark of
//! lookups only.

use std::collections::HashMap;
use std::sync::Arc;

use opensdn_policy_host::lookup::LookupError;
use opensdn_policy_host::{Index, lookup};
use opensdn_runtime::declared::Declared;
use opensdn_runtime::levels::{self, MOST_LEVELS, levels};
use opensdn_runtime::watch::Parts;
use serde_json::Value;

/// Which parts are kept and which keys are indexed.
#[derive(Debug, PartialEq, Eq)]
pub struct IndexSchema {
    /// One per distinct key and reads; the names do not matter.
    indexes: Vec<Index>,
    /// The parts that any of them returns.
    pointers: Vec<String>,
    /// Per index, where its parts are among all parts.
    places: Vec<Vec<usize>>,
}

impl IndexSchema {
    /// The least that answers these indexes, all of one kind, in whatever order they come.
    pub fn new<'i>(indexes: impl IntoIterator<Item = &'i Index>) -> Self {
        let mut distinct: Vec<Index> = indexes.into_iter().cloned().collect();
        distinct.sort_by(|one, other| (&one.key, &one.reads).cmp(&(&other.key, &other.reads)));
        distinct.dedup_by(|one, other| same(one, other));
        let mut pointers: Vec<String> =
            distinct.iter().flat_map(|index| index.reads.iter().cloned()).collect();
        pointers.sort();
        pointers.dedup();
        let place = |pointer: &String| pointers.binary_search(pointer).unwrap_or(usize::MAX);
        let places = distinct.iter().map(|index| index.reads.iter().map(place).collect()).collect();
        Self { indexes: distinct, pointers, places }
    }

    /// The number of the index, if it is among these.
    pub fn number(&self, index: &Index) -> Option<usize> {
        self.indexes.iter().position(|other| same(index, other))
    }

    /// Whether everything that is kept or indexed is metadata, so that nothing else of an object
    /// need ever come here: neither the status of a Node nor the data of a Secret.
    fn is_metadata(&self) -> bool {
        let keys = self.indexes.iter().map(|index| &index.key);
        let mut pointers = self.pointers.iter().chain(keys.filter(|key| !key.is_empty()));
        pointers.all(|pointer| pointer.starts_with("/metadata/"))
    }

    /// How much of the objects the watch has to bring.
    pub(super) fn parts(&self) -> Parts {
        let keys = self.indexes.iter().map(|index| &index.key).filter(|key| !key.is_empty());
        let keys = keys.map(String::as_str);
        let parts = || self.pointers.iter().map(String::as_str);
        let any = |test: fn(&str) -> bool| parts().chain(keys.clone()).any(test);
        let is_secret =
            self.indexes.iter().any(|index| lookup::is_secret(&index.group, &index.kind));
        let declared = || Arc::new(Declared::new(parts(), keys.clone()));
        match is_secret {
            _ if self.is_metadata() => Parts::DeclaredMetadata(declared()),
            true if any(|pointer| pointer.starts_with("/data")) => Parts::SecretKeys(declared()),
            true => Parts::secret_type(parts().chain(keys)),
            false => Parts::Declared(declared()),
        }
    }

    /// Whether both keep and index the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.indexes.len() == other.indexes.len()
            && self.indexes.iter().zip(&other.indexes).all(|(one, other)| same(one, other))
    }

    fn entry(&self, object: &Value) -> CachedObject {
        let is_whole = levels::check(object).is_ok();
        let of = self.indexes.first().map(|index| (index.group.as_str(), index.kind.as_str()));
        let (group, kind) = of.unwrap_or_default();
        let object = &*lookup::without_secrets(group, kind, object);
        let text =
            |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().into();
        let part = |pointer: &String| {
            object.pointer(pointer).map(|value| value.to_string().into_boxed_str())
        };
        // A key is a text and lies higher than what is cut off.
        let is_cut = |pointer: &String| {
            let above = pointer.matches('/').count();
            object.pointer(pointer).is_some_and(|part| above + levels(part) >= MOST_LEVELS)
        };
        let cut = if is_whole {
            Box::default()
        } else {
            let places = self.pointers.iter().enumerate().filter(|(_, pointer)| is_cut(pointer));
            places.map(|(place, _)| place).collect()
        };
        CachedObject {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            parts: self.pointers.iter().map(part).collect(),
            cut,
            keys: self
                .indexes
                .iter()
                .map(|index| lookup::keys(index, object).into_iter().map(Arc::from).collect())
                .collect(),
        }
    }

    /// What a lookup by the index of that number returns of the entry.
    ///
    /// # Errors
    /// Something of it is nested so deep that it was not read.
    pub fn found(
        &self,
        number: usize,
        entry: &CachedObject,
    ) -> Result<lookup::FoundObject, LookupError> {
        let places = self.places.get(number).map(Vec::as_slice).unwrap_or_default();
        if let Some(pointer) = entry
            .cut
            .iter()
            .find(|cut| places.contains(cut))
            .and_then(|cut| self.pointers.get(*cut))
        {
            let (namespace, name) = (&entry.namespace, &entry.name);
            return Err(LookupError(format!(
                "{pointer} of {namespace}/{name} is nested more than {MOST_LEVELS} levels deep"
            )));
        }
        let part = |place: &usize| entry.parts.get(*place).cloned().flatten().map(String::from);
        Ok(lookup::FoundObject {
            namespace: entry.namespace.to_string(),
            name: entry.name.to_string(),
            uid: entry.uid.to_string(),
            parts: places.iter().map(part).collect(),
        })
    }
}

fn same(one: &Index, other: &Index) -> bool {
    one.key == other.key && one.reads == other.reads
}

/// What is kept of one object.
#[derive(Debug, PartialEq, Eq)]
pub struct CachedObject {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    parts: Box<[Option<Box<str>>]>,
    /// Places of parts that are not all that is stored.
    cut: Box<[usize]>,
    /// Per index, the keys under which it is found: needed to take it out again.
    keys: Box<[Box<[Arc<str>]>]>,
}

impl CachedObject {
    fn place(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

/// The objects of one kind.
#[derive(Debug, Default)]
pub struct Store {
    objects: HashMap<String, Arc<CachedObject>>,
    /// Per index: key to entries, these ordered by namespace and name.
    indexes: Vec<HashMap<Arc<str>, Vec<Arc<CachedObject>>>>,
}

fn identity(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl Store {
    pub fn new(schema: &IndexSchema) -> Self {
        let indexes = schema.indexes.iter().map(|_| HashMap::new()).collect();
        Self { objects: HashMap::new(), indexes }
    }

    /// Takes the object in, in place of its former state.
    pub fn put(&mut self, schema: &IndexSchema, object: &Value) {
        let entry = Arc::new(schema.entry(object));
        let former =
            self.objects.insert(identity(&entry.namespace, &entry.name), Arc::clone(&entry));
        if let Some(former) = former {
            self.forget_keys(&former);
        }
        for (index, keys) in self.indexes.iter_mut().zip(&entry.keys) {
            for key in keys {
                let entries = index.entry(Arc::clone(key)).or_default();
                // Lists come in order, so this is mostly an append.
                let place = entries.partition_point(|other| other.place() < entry.place());
                entries.insert(place, Arc::clone(&entry));
            }
        }
    }

    /// Takes the object out.
    pub(super) fn remove(&mut self, object: &Value) {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let identity = identity(text("/metadata/namespace"), text("/metadata/name"));
        if let Some(former) = self.objects.remove(&identity) {
            self.forget_keys(&former);
        }
    }

    fn forget_keys(&mut self, former: &CachedObject) {
        for (index, keys) in self.indexes.iter_mut().zip(&former.keys) {
            for key in keys {
                if let Some(entries) = index.get_mut(key) {
                    if let Ok(place) =
                        entries.binary_search_by(|other| other.place().cmp(&former.place()))
                    {
                        entries.remove(place);
                    }
                    if entries.is_empty() {
                        index.remove(key);
                    }
                }
            }
        }
    }

    /// The object of that name.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<CachedObject>> {
        self.objects.get(&identity(namespace, name)).cloned()
    }

    /// The objects that have the key in the index of that number.
    pub fn find(&self, number: usize, key: &str) -> Vec<Arc<CachedObject>> {
        self.indexes.get(number).and_then(|index| index.get(key)).cloned().unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(key: &str, reads: &[&str]) -> Index {
        Index {
            name: format!("by {key}"),
            group: "g".into(),
            kind: "Thing".into(),
            key: key.into(),
            reads: reads.iter().map(|&read| read.into()).collect(),
        }
    }

    fn thing(name: &str, ip: &str) -> Value {
        json!({"metadata": {"namespace": "n", "name": name, "uid": format!("uid-{name}")},
            "spec": {"ip": ip, "secret": "kept out"}})
    }

    fn names(schema: &IndexSchema, table: &Store, index: &Index, key: &str) -> Vec<String> {
        let number = schema.number(index).unwrap();
        table
            .find(number, key)
            .iter()
            .map(|entry| schema.found(number, entry).unwrap().name)
            .collect()
    }

    #[test]
    fn of_an_object_that_is_nested_too_deep_only_what_was_cut_off_is_no_answer() {
        let (deep, flat) = (index("/spec/ip", &["/spec/deep"]), index("/spec/ip", &["/spec/ip"]));
        let schema = IndexSchema::new([&deep, &flat]);
        let (open, close) = (r#"{"a":"#.repeat(500), "}".repeat(500));
        let text = thing("a", "1")
            .to_string()
            .replace(r#""ip""#, &format!(r#""deep":{open}1{close},"ip""#));
        let mut table = Store::new(&schema);
        table.put(&schema, &serde_json::from_str::<levels::Whole>(&text).unwrap().into());
        table.put(&schema, &thing("b", "1"));
        let found = |index: &Index| {
            let number = schema.number(index).unwrap();
            let found = table.find(number, "1");
            found
                .iter()
                .map(|entry| schema.found(number, entry).map(|found| found.name))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&flat), [Ok("a".to_owned()), Ok("b".to_owned())]);
        let [Err(error), Ok(_)] = &found(&deep)[..] else { panic!("{:?}", found(&deep)) };
        assert_eq!(error.to_string(), "/spec/deep of n/a is nested more than 120 levels deep");
    }

    #[test]
    fn finds_by_key_in_the_order_of_names_and_follows_changes() {
        let by_ip = index("/spec/ip", &["/spec/ip"]);
        let schema = IndexSchema::new([&by_ip]);
        let mut table = Store::new(&schema);
        for object in [thing("b", "1"), thing("a", "1"), thing("c", "2")] {
            table.put(&schema, &object);
        }
        assert_eq!(names(&schema, &table, &by_ip, "1"), ["a", "b"]);
        table.put(&schema, &thing("a", "2"));
        assert_eq!(names(&schema, &table, &by_ip, "1"), ["b"]);
        assert_eq!(names(&schema, &table, &by_ip, "2"), ["a", "c"]);
        table.remove(&thing("c", "whatever it was last"));
        assert_eq!(names(&schema, &table, &by_ip, "2"), ["a"]);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn keeps_declared_parts_only_and_returns_those_of_the_index_asked() {
        let (by_ip, all) = (index("/spec/ip", &["/metadata/uid", "/spec/ip"]), index("", &[]));
        let schema = IndexSchema::new([&by_ip, &all, &by_ip]);
        let mut table = Store::new(&schema);
        table.put(&schema, &thing("a", "1"));
        assert!(!format!("{table:?}").contains("kept out"));
        let entry = table.get("n", "a").unwrap();
        let found = schema.found(schema.number(&by_ip).unwrap(), &entry).unwrap();
        assert_eq!(found.parts, [Some("\"uid-a\"".to_owned()), Some("\"1\"".to_owned())]);
        assert_eq!(schema.found(schema.number(&all).unwrap(), &entry).unwrap().parts, []);
        assert_eq!(names(&schema, &table, &all, ""), ["a"]);
    }

    #[test]
    fn only_metadata_is_asked_for_where_nothing_else_is_declared() {
        let (labels, name) = (index("", &["/metadata/labels"]), index("/metadata/name", &[]));
        assert!(IndexSchema::new([&labels, &name]).is_metadata());
        assert!(!IndexSchema::new([&labels, &index("/spec/ip", &[])]).is_metadata());
        assert!(!IndexSchema::new([&index("", &["/type"])]).is_metadata());
        assert!(!IndexSchema::new([&index("", &[""])]).is_metadata(), "the whole object");
    }

    #[test]
    fn of_a_secret_no_more_comes_here_than_what_is_declared_and_values_are_never_kept() {
        let of_secrets = |reads: &[&str]| {
            IndexSchema::new([&Index {
                group: String::new(),
                kind: "Secret".into(),
                ..index("", reads)
            }])
        };
        let declared = |pointers: &[&str]| Arc::new(Declared::new(pointers.iter().copied(), []));
        let labels = ["/metadata/labels"];
        assert_eq!(of_secrets(&labels).parts(), Parts::DeclaredMetadata(declared(&labels)));
        assert_eq!(of_secrets(&["/type"]).parts(), Parts::secret_type(["/type"]));
        let keys = ["/data", "/type"];
        assert_eq!(of_secrets(&keys).parts(), Parts::SecretKeys(declared(&keys)));
        let of_things = IndexSchema::new([&index("/spec/ip", &["/data"])]).parts();
        assert_eq!(of_things, Parts::Declared(Arc::new(Declared::new(["/data"], ["/spec/ip"]))));
        let schema = of_secrets(&["", "/data"]);
        let mut store = Store::new(&schema);
        store.put(&schema, &json!({"metadata": {"name": "a"}, "data": {"key": "hunter2"}}));
        let text = format!("{store:?}");
        assert!(text.contains("key") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn the_name_and_order_of_indexes_do_not_matter() {
        let (one, other) = (index("/a", &["/x"]), index("/b", &[]));
        let mut renamed = one.clone();
        renamed.name = "other".into();
        assert!(IndexSchema::new([&one, &other]).is_like(&IndexSchema::new([&other, &renamed])));
        assert!(!IndexSchema::new([&one]).is_like(&IndexSchema::new([&one, &other])));
    }
}
