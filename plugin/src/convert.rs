//! Objects of earlier operators as ours take them: `contrail.juniper.net/v1alpha1` of contrail-operator, and
//! `tf.tungsten.io/v1alpha1` of release 2011. Pure. What has no place in our kinds is taken out, and each is reported with
//! the reason; no value is reported, as some are secrets. What each field was: contrail-operator and tf-operator R2011,
//! `pkg/apis/*/v1alpha1/*_types.go`.

mod component;
mod fields;
mod manager;
mod reasons;
mod schema;

use opensdn_crds::component::Component;
use serde_json::{Map, Value, json};

pub(crate) use schema::Shapes;

/// The group of contrail-operator.
const CONTRAIL: &str = "contrail.juniper.net";
const MANAGER: &str = "Manager";

/// What became of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Of which object: `Manager/contrail/cluster1`.
    pub(crate) object: String,
    /// The field: `spec.services.config`. Empty where it is about the object itself.
    pub(crate) field: String,
    /// What became of it, and why: `is now spec.services.zookeeper`, `dropped: ...`.
    pub(crate) what: String,
}

/// The notes about one object, as they come up.
pub(crate) struct Notes<'a> {
    object: String,
    found: &'a mut Vec<Note>,
}

impl Notes<'_> {
    fn say(&mut self, field: &str, what: String) {
        self.found.push(Note { object: self.object.clone(), field: field.to_owned(), what });
    }

    fn dropped(&mut self, field: &str, reason: &str) {
        self.say(field, format!("dropped: {reason}"));
    }

    fn moved(&mut self, field: &str, to: &str) {
        self.say(field, format!("is now {to}"));
    }
}

/// An object, if it is one that is not known in our place, and why.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unknown {
    /// Of a group that is converted, in a version that never was.
    #[error("{0} has no version that is known")]
    Version(String),
    /// No such kind.
    #[error("{0} is no kind of contrail-operator or tf-operator")]
    Kind(String),
}

/// The object as ours; none where nothing of it has a place.
///
/// # Errors
/// It is of a group that is converted, and of no kind or version of it.
pub(crate) fn convert(
    mut object: Value,
    shapes: &Shapes,
    found: &mut Vec<Note>,
) -> Result<Option<Value>, Unknown> {
    let mut notes = Notes { object: named(&object), found };
    let api_version = text(&object, "/apiVersion");
    let kind = text(&object, "/kind");
    let (group, version) = api_version.split_once('/').unwrap_or_default();
    if ![CONTRAIL, opensdn_crds::TUNGSTEN_GROUP].contains(&group) {
        notes.say("", "left as it is: not of an operator of this network".to_owned());
        return Ok(Some(object));
    }
    if version != opensdn_crds::VERSION {
        return Err(Unknown::Version(format!("{api_version} {kind}")));
    }
    if let Some(reason) = reasons::of_kind(&kind) {
        notes.dropped("", reason);
        return Ok(None);
    }
    let is_component = Component::of_kind(&kind).is_some();
    if !is_component && kind != MANAGER {
        return Err(Unknown::Kind(format!("{api_version} {kind}")));
    }
    let ours = format!("{}/{}", opensdn_crds::TUNGSTEN_GROUP, opensdn_crds::VERSION);
    if api_version != ours {
        notes.say("apiVersion", format!("is now {ours}"));
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".to_owned(), json!(ours));
        }
    }
    clean(&mut object, &mut notes);
    list_containers(&mut object, "", &mut notes);
    if let Some(spec) = object.get_mut("spec") {
        match is_component {
            true => component::convert(&kind, spec, "spec", &mut notes),
            false => manager::convert(spec, &mut notes),
        }
    }
    shapes.prune(&kind, &mut object, &mut notes);
    Ok(Some(object))
}

/// Early releases of contrail-operator had a mapping from names to containers (`pkg/apis/contrail/v1alpha1/config_types.go`
/// of its commit 0053b36).
fn list_containers(value: &mut Value, path: &str, notes: &mut Notes) {
    if let Value::Array(items) = value {
        for (at, item) in items.iter_mut().enumerate() {
            list_containers(item, &format!("{path}[{at}]"), notes);
        }
    }
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if name == "containers"
            && let Value::Object(by_name) = value
        {
            let named = std::mem::take(by_name).into_iter().map(|(name, mut container)| {
                if let Some(fields) = container.as_object_mut() {
                    fields.insert("name".to_owned(), json!(name));
                }
                container
            });
            *value = Value::Array(named.collect());
            notes.say(&path, "is a list now".to_owned());
        }
        list_containers(value, &path, notes);
    }
}

/// Takes out what only the API server and the operators write.
fn clean(object: &mut Value, notes: &mut Notes) {
    let Some(fields) = object.as_object_mut() else { return };
    if fields.remove("status").is_some() {
        notes.dropped("status", "the operator writes it");
    }
    let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for name in reasons::WRITTEN_BY_THE_SERVER {
        if metadata.remove(*name).is_some() {
            notes.dropped(&format!("metadata.{name}"), "the API server writes it");
        }
    }
    const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations
        && annotations.remove(APPLIED).is_some()
    {
        let is_empty = annotations.is_empty();
        if is_empty {
            metadata.remove("annotations");
        }
        let reason = "it is the whole object as it was, with what is dropped, and kubectl apply writes it again";
        notes.dropped(&format!("metadata.annotations.{APPLIED}"), reason);
    }
    for name in ["finalizers", "ownerReferences"] {
        if metadata.remove(name).is_some() {
            let reason = "it is about an object or a program of the cluster that it comes from";
            notes.dropped(&format!("metadata.{name}"), reason);
        }
    }
}

/// `Manager/contrail/cluster1`.
fn named(object: &Value) -> String {
    let parts = ["/kind", "/metadata/namespace", "/metadata/name"];
    let parts = parts.map(|pointer| text(object, pointer)).into_iter();
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn empty() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests;
