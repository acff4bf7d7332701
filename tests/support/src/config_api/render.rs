//! An object as it is read: which fields, with what refers to it and with its children, with addresses or without.

use serde_json::{Map, Value, json};

use super::store::{Object, Store, is_reference};

/// Which fields a reader gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    /// Properties and references, and of these as asked for.
    All { back_references: Included, children: Included },
    /// Only these, and what identifies the object.
    Only(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Included {
    Yes,
    No,
}

impl Fields {
    /// As a list has them.
    pub(super) const OWN: Self =
        Self::All { back_references: Included::No, children: Included::No };
    /// As a watch has them.
    pub(super) const EVERYTHING: Self =
        Self::All { back_references: Included::Yes, children: Included::Yes };

    fn has(&self, field: &str) -> bool {
        match self {
            Self::Only(names) => names.iter().any(|name| name == field),
            Self::All { .. } => true,
        }
    }
}

/// What addresses begin with, as `http://127.0.0.1:8082`; nothing, where they are left out.
pub(super) type Base<'b> = Option<&'b str>;

/// The object with its uuid, its names and the fields that are wanted.
pub(super) fn object(store: &Store, object: &Object, fields: &Fields, base: Base<'_>) -> Value {
    let mut shown = identity(object, base);
    for (field, mut value) in object.fields() {
        if fields.has(&field) {
            if is_reference(&field) {
                add_addresses(&field, &mut value, base);
            }
            shown.insert(field, value);
        }
    }
    if *fields != Fields::OWN {
        links(store, object, fields, base, &mut shown);
    }
    Value::Object(shown)
}

/// `uuid`, `fq_name`, the parent, and where both are.
pub(super) fn identity(object: &Object, base: Base<'_>) -> Map<String, Value> {
    let mut shown = Map::new();
    let mut show = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    show("uuid", json!(object.uuid));
    show("fq_name", json!(object.fq_name));
    if let Some(base) = base {
        show("href", json!(format!("{base}/{}/{}", object.kind.name, object.uuid)));
    }
    if let Some(parent) = &object.parent {
        show("parent_type", json!(parent.kind.name));
        show("parent_uuid", json!(parent.uuid));
        if let Some(base) = base {
            show("parent_href", json!(format!("{base}/{}/{}", parent.kind.name, parent.uuid)));
        }
    }
    shown
}

fn links(
    store: &Store,
    object: &Object,
    fields: &Fields,
    base: Base<'_>,
    shown: &mut Map<String, Value>,
) {
    let (with_back_references, with_children) = match fields {
        Fields::All { back_references, children } => (*back_references, *children),
        Fields::Only(_) => (Included::Yes, Included::Yes),
    };
    let mut add = |field: String, other: &Object| {
        if fields.has(&field) {
            let link = shown.entry(field).or_insert_with(|| json!([]));
            if let Value::Array(items) = link {
                let mut item = json!({"uuid": other.uuid, "to": other.fq_name});
                if let (Some(base), Value::Object(item)) = (base, &mut item) {
                    let href = format!("{base}/{}/{}", other.kind.name, other.uuid);
                    item.insert("href".to_owned(), json!(href));
                }
                items.push(item);
            }
        }
    };
    if with_back_references == Included::Yes {
        for other in store.referrers(&object.uuid) {
            add(format!("{}_back_refs", other.kind.field()), other);
        }
    }
    if with_children == Included::Yes {
        for child in store.children(&object.uuid) {
            add(format!("{}s", child.kind.field()), child);
        }
    }
}

fn add_addresses(field: &str, value: &mut Value, base: Base<'_>) {
    let kind = field.trim_end_matches("_refs").replace('_', "-");
    let (Some(base), Value::Array(references)) = (base, value) else { return };
    for reference in references.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(uuid) = reference.get("uuid").and_then(Value::as_str) {
            let href = format!("{base}/{kind}/{uuid}");
            reference.insert("href".to_owned(), json!(href));
        }
    }
}
