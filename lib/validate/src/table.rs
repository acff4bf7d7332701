//! What policies may look up: the parts that their indexes name, of every document given and, where
//! the user asked for it, of the live cluster. The documents themselves are not kept.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use opensdn_policy_host::PolicySet;
use opensdn_policy_host::lookup::{Answer, FoundObject, Index, Lookup, LookupError, extract, keys};
use serde_json::Value;

/// Labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;
/// Namespace and name.
type Name = (String, String);
/// Group and kind.
pub(crate) type GroupKind = (String, String);

/// All that can be looked up.
#[derive(Debug, Default)]
pub(crate) struct Table {
    indexes: HashMap<Index, Entries>,
    /// Which objects are in, so that a file wins over the same object of the cluster.
    present: HashMap<GroupKind, HashSet<Name>>,
    /// Kinds that the user may not list, and why.
    forbidden: HashMap<GroupKind, String>,
    namespaces: HashMap<String, Labels>,
    /// Whether the cluster has been asked.
    live: bool,
}

#[derive(Debug, Default)]
struct Entries {
    objects: BTreeMap<Name, FoundObject>,
    by_key: HashMap<String, BTreeSet<Name>>,
}

impl Table {
    /// An empty table with the indexes of these policies.
    pub(crate) fn of(set: &PolicySet) -> Self {
        let indexes = set.bindings().flat_map(|binding| &binding.policy.metadata().indexes);
        let indexes = indexes.map(|index| (index.clone(), Entries::default())).collect();
        Self { indexes, ..Self::default() }
    }

    /// Whether objects of the kind answer lookups.
    pub(crate) fn wants(&self, group: &str, kind: &str) -> bool {
        self.indexes.keys().any(|index| index.group == group && index.kind == kind)
            || (group.is_empty() && kind == "Namespace")
    }

    /// The kinds that are looked up.
    pub(crate) fn kinds(&self) -> BTreeSet<GroupKind> {
        let kinds = self.indexes.keys().map(|index| (index.group.clone(), index.kind.clone()));
        kinds.chain([(String::new(), "Namespace".to_owned())]).collect()
    }

    /// Takes what lookups want of the object. The first of a name wins.
    pub(crate) fn add(&mut self, group: &str, kind: &str, object: &Value) {
        if !self.wants(group, kind) {
            return;
        }
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name: Name = (text("/metadata/namespace").into(), text("/metadata/name").into());
        let present = self.present.entry((group.to_owned(), kind.to_owned())).or_default();
        if !present.insert(name.clone()) {
            return;
        }
        if group.is_empty() && kind == "Namespace" {
            let labels = object.pointer("/metadata/labels").cloned().unwrap_or_default();
            let labels = serde_json::from_value(labels).unwrap_or_default();
            self.namespaces.insert(name.1.clone(), labels);
        }
        for (index, entries) in &mut self.indexes {
            if index.group != group || index.kind != kind {
                continue;
            }
            for key in keys(index, object) {
                entries.by_key.entry(key).or_default().insert(name.clone());
            }
            entries.objects.insert(name.clone(), extract(index, object));
        }
    }

    /// The cluster has been asked; these are the kinds that it refused to list.
    pub(crate) fn set_live(&mut self, forbidden: HashMap<GroupKind, String>) {
        self.live = true;
        self.forbidden = forbidden;
    }

    /// Whether the cluster has been asked, too.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Labels of a namespace, where they are known.
    pub(crate) fn namespace_labels(&self, namespace: &str) -> Option<&Labels> {
        self.namespaces.get(namespace)
    }

    fn entries(&self, index: &Index) -> Result<&Entries, LookupError> {
        let kind = (index.group.clone(), index.kind.clone());
        if let Some(why) = self.forbidden.get(&kind) {
            return Err(LookupError(format!("{} cannot be looked up: {why}", index.kind)));
        }
        let unknown = || LookupError(format!("nothing is known of {}", index.kind));
        self.indexes.get(index).ok_or_else(unknown)
    }

    /// Whether an object of the kind is among the documents, or the cluster has been asked.
    pub(crate) fn knows_kind(&self, kind: &str) -> bool {
        let mut indexes = self.indexes.keys();
        self.live || indexes.any(|index| index.kind == kind && self.knows_any(index))
    }

    fn knows_any(&self, index: &Index) -> bool {
        self.live || self.indexes.get(index).is_some_and(|entries| !entries.objects.is_empty())
    }
}

/// The table as one object's evaluation sees it: without the object itself, which is not stored
/// yet when it is judged.
pub(crate) struct View {
    table: Arc<Table>,
    kind: GroupKind,
    name: Name,
    /// Kinds that were looked up although nothing is known of any object of theirs.
    unanswered: Arc<Mutex<BTreeSet<String>>>,
}

impl View {
    pub(crate) fn new(
        table: &Arc<Table>,
        kind: GroupKind,
        name: Name,
        unanswered: &Arc<Mutex<BTreeSet<String>>>,
    ) -> Self {
        Self { table: Arc::clone(table), kind, name, unanswered: Arc::clone(unanswered) }
    }

    fn is_itself(&self, index: &Index, namespace: &str, name: &str) -> bool {
        index.group == self.kind.0
            && index.kind == self.kind.1
            && namespace == self.name.0
            && name == self.name.1
    }

    fn note(&self, index: &Index) {
        if !self.table.knows_any(index) {
            let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
            unanswered.insert(index.kind.clone());
        }
    }
}

impl Lookup for View {
    fn get<'a>(
        &'a self,
        index: &'a Index,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Option<FoundObject>> {
        self.note(index);
        let found = self.table.entries(index).map(|entries| {
            let place = (namespace.to_owned(), name.to_owned());
            let found = entries.objects.get(&place);
            found.filter(|_| !self.is_itself(index, namespace, name)).cloned()
        });
        Box::pin(async move { found })
    }

    fn find<'a>(
        &'a self,
        index: &'a Index,
        key: &'a str,
        most: usize,
    ) -> Answer<'a, Vec<FoundObject>> {
        self.note(index);
        let found = self.table.entries(index).map(|entries| {
            let names = entries.by_key.get(key).into_iter().flatten();
            let others = names.filter(|name| !self.is_itself(index, &name.0, &name.1));
            others.filter_map(|name| entries.objects.get(name)).take(most).cloned().collect()
        });
        Box::pin(async move { found })
    }
}
