//! One object as the database has it: properties in one column each, elements of lists and maps in one column each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Elements;
use crate::config_api::schema::{Kind, Storage};

#[derive(Clone, Debug)]
pub(in crate::config_api) struct Parent {
    pub(in crate::config_api) kind: &'static Kind,
    pub(in crate::config_api) uuid: String,
}

#[derive(Debug)]
pub(in crate::config_api) struct Object {
    pub(in crate::config_api) kind: &'static Kind,
    pub(in crate::config_api) uuid: String,
    pub(in crate::config_api) fq_name: Vec<String>,
    pub(in crate::config_api) parent: Option<Parent>,
    pub(in crate::config_api) created: String,
    pub(in crate::config_api) last_modified: String,
    /// Of `perms2`: a project's own uuid without its dashes, or `cloud-admin`.
    pub(in crate::config_api) owner: String,
    /// References too.
    pub(super) properties: Map<String, Value>,
    /// By property, and then by position or key; in the order of these, as text, they are read.
    pub(super) elements: BTreeMap<&'static str, Elements>,
    /// Those whose references to it do not keep it from being deleted.
    pub(super) relaxed: BTreeSet<String>,
}

/// Whether a field holds references.
pub(in crate::config_api) fn is_reference(field: &str) -> bool {
    field.ends_with("_refs")
}

impl Object {
    /// The last part of its name.
    pub(in crate::config_api) fn name(&self) -> &str {
        self.fq_name.last().map_or("", String::as_str)
    }

    /// Properties and references as they are read.
    pub(in crate::config_api) fn fields(&self) -> Map<String, Value> {
        let mut fields = self.properties.clone();
        for property in self.kind.typed() {
            let (Storage::List { wrapper } | Storage::Map { wrapper, .. }) = property.storage
            else {
                continue;
            };
            if let Some(elements) = self.elements.get(property.name).filter(|all| !all.is_empty()) {
                let values: Vec<&Value> = elements.values().collect();
                fields.insert(property.name.to_owned(), json!({ wrapper: values }));
            }
        }
        fields.insert("id_perms".to_owned(), self.id_perms());
        fields.insert(
            "perms2".to_owned(),
            json!({"owner": self.owner, "owner_access": 7, "global_access": 0, "share": []}),
        );
        fields
    }

    fn id_perms(&self) -> Value {
        let digits = self.uuid.replace('-', "");
        let half = |range| {
            let part = digits.get(range).unwrap_or_default();
            u64::from_str_radix(part, 16).unwrap_or_default()
        };
        json!({
            "enable": true, "description": null, "creator": null, "user_visible": true,
            "created": self.created, "last_modified": self.last_modified,
            "uuid": {"uuid_mslong": half(0..16), "uuid_lslong": half(16..32)},
            "permissions": {"owner": "cloud-admin", "owner_access": 7,
                "group": "cloud-admin-group", "group_access": 7, "other_access": 7},
        })
    }

    /// Forgets what has been deleted.
    pub(super) fn forget(&mut self, uuid: &str) {
        let fields = self.properties.iter_mut().filter(|(field, _)| is_reference(field));
        for references in fields.filter_map(|(_, value)| value.as_array_mut()) {
            references.retain(|one| one.get("uuid").and_then(Value::as_str) != Some(uuid));
        }
    }

    pub(in crate::config_api) fn refers_to(&self, uuid: &str) -> bool {
        let fields = self.properties.iter().filter(|(field, _)| is_reference(field));
        let references = fields.filter_map(|(_, value)| value.as_array()).flatten();
        let mut uuids = references.filter_map(|one| one.get("uuid"));
        uuids.any(|one| one.as_str() == Some(uuid))
    }
}
