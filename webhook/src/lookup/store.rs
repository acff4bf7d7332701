//! The objects of one kind as lookups need them: the declared parts and the hash indexes, nothing
//! else of an object. Pure data; who fills it is in `cache.rs`. Public for the benchmark of
//! lookups only.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use opensdn_policy_host::lookup::LookupError;
use opensdn_policy_host::{Index, lookup};
use opensdn_runtime::declared::Declared;
use opensdn_runtime::levels::{self, MOST_LEVELS, levels};
use opensdn_runtime::watch::Parts;
use serde_json::Value;

use super::budget::Budget;

/// What an object is in memory besides its parts and keys.
const EACH: usize = 256;
/// So many bytes of keys are kept of every object, so that it is found.
const KEYS_KEPT: usize = 4 << 10;

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
            kept: Kept::All,
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
        if entry.kept != Kept::All && !places.is_empty() {
            return Err(too_much(&entry.namespace));
        }
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

/// Objects of that namespace are not kept.
fn too_much(namespace: &str) -> LookupError {
    LookupError(format!(
        "the objects of this kind in namespace {namespace}, or in all namespaces together, are more than the \
         webhook keeps: make them smaller, or delete some"
    ))
}

fn same(one: &Index, other: &Index) -> bool {
    one.key == other.key && one.reads == other.reads
}

/// How much of what is declared is kept of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    All,
    /// It is found by its keys.
    Keys,
    /// It is found by its name alone.
    Name,
}

/// What is kept of one object.
#[derive(Debug, PartialEq, Eq)]
pub struct CachedObject {
    kept: Kept,
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

    fn bytes_of_keys(&self) -> usize {
        self.keys.iter().flatten().map(|key| key.len() + EACH / 2).sum()
    }

    fn bytes(&self) -> usize {
        EACH + self.bytes_of_keys()
            + self.parts.iter().flatten().map(|part| part.len()).sum::<usize>()
    }

    /// Keeps no more of it than there is room for.
    fn fit(&mut self, budget: &Budget) {
        if budget.has_room(&self.namespace, self.bytes()) {
            return;
        }
        self.kept = Kept::Keys;
        self.parts = self.parts.iter().map(|_| None).collect();
        self.cut = Box::default();
        if self.bytes_of_keys() > KEYS_KEPT && !budget.has_room(&self.namespace, self.bytes()) {
            self.kept = Kept::Name;
            self.keys = self.keys.iter().map(|_| Box::default()).collect();
        }
    }
}

/// The objects of one kind.
#[derive(Debug, Default)]
pub struct Store {
    objects: HashMap<String, Arc<CachedObject>>,
    /// Per index: key to entries, these ordered by namespace and name.
    indexes: Vec<HashMap<Arc<str>, Vec<Arc<CachedObject>>>>,
    budget: Budget,
    /// How many objects of which namespaces no index has.
    not_indexed: BTreeMap<Box<str>, usize>,
    /// Of how many objects something is not kept.
    left_out: usize,
    /// Whether there is more room since.
    has_made_room: bool,
}

fn identity(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl Store {
    pub fn new(schema: &IndexSchema) -> Self {
        let indexes = schema.indexes.iter().map(|_| HashMap::new()).collect();
        Self { indexes, ..Self::default() }
    }

    /// The same with another budget.
    #[cfg(test)]
    fn with_budget(schema: &IndexSchema, budget: Budget) -> Self {
        Self { budget, ..Self::new(schema) }
    }

    /// Takes the object in, in place of its former state.
    pub fn put(&mut self, schema: &IndexSchema, object: &Value) {
        self.put_known(schema, object, &Self::default());
    }

    /// The same, sharing what `known` has where it is the same.
    pub(super) fn put_known(&mut self, schema: &IndexSchema, object: &Value, known: &Self) {
        let mut entry = schema.entry(object);
        let identity = identity(&entry.namespace, &entry.name);
        let former = self.objects.remove(&identity);
        if let Some(former) = &former {
            self.forget(former);
        }
        entry.fit(&self.budget);
        let known = known.objects.get(&identity).filter(|known| ***known == entry).cloned();
        let entry = known.unwrap_or_else(|| Arc::new(entry));
        self.has_made_room |= former.is_some_and(|former| former.bytes() > entry.bytes());
        self.objects.insert(identity, Arc::clone(&entry));
        self.budget.add(&entry.namespace, entry.bytes());
        if entry.kept != Kept::All {
            self.left_out += 1;
        }
        if entry.kept == Kept::Name {
            *self.not_indexed.entry(entry.namespace.clone()).or_default() += 1;
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
            self.forget(&former);
            self.has_made_room = true;
        }
    }

    fn forget(&mut self, former: &CachedObject) {
        self.budget.remove(&former.namespace, former.bytes());
        self.left_out -= usize::from(former.kept != Kept::All);
        if former.kept == Kept::Name
            && let Some(count) = self.not_indexed.get_mut(&former.namespace)
        {
            *count -= 1;
            if *count == 0 {
                self.not_indexed.remove(&former.namespace);
            }
        }
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

    /// Whether something that is left out may have its place now, once: what it is has to be read again.
    pub(super) fn may_take_in_more(&mut self) -> bool {
        std::mem::take(&mut self.has_made_room) && self.left_out > 0
    }

    /// That objects are found by their keys.
    ///
    /// # Errors
    /// Of some the keys are not kept.
    pub(super) fn is_indexed(&self) -> Result<(), LookupError> {
        self.not_indexed.keys().next().map_or(Ok(()), |namespace| Err(too_much(namespace)))
    }

    /// The first objects that have the key in the index of that number, at most so many.
    pub fn find(&self, number: usize, key: &str, most: usize) -> Vec<Arc<CachedObject>> {
        let entries = self.indexes.get(number).and_then(|index| index.get(key));
        entries.into_iter().flatten().take(most).cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }
}

#[cfg(test)]
mod tests;
