//! The objects, and what changes them: `POST`, `PUT`, `DELETE`, `prop-collection-update`, as `api_server.py` and
//! `vnc_cassandra.py` do it. No write is conditional. Deliberately not here: how an object is shown (`render`), and who may
//! do what (`access`).

mod object;
pub(super) mod write;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use http::StatusCode;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

pub(super) use object::{Object, Parent, is_reference};

use super::python;
use super::schema::{GLOBAL_VROUTER_CONFIG, Kind};

/// An answer that is not 200.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {text}")]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub text: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(super) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    pub(super) fn missing(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// What an exception that is caught by the framework alone comes to.
    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
    }
}

/// What watchers learn of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
}

#[derive(Debug)]
pub(super) struct Change {
    pub(super) operation: Operation,
    pub(super) kind: &'static Kind,
    pub(super) uuid: String,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    /// In the order in which they were made.
    objects: Vec<Object>,
    /// Since they were last taken.
    changes: Vec<Change>,
    last_stamp: Option<OffsetDateTime>,
}

impl Store {
    /// With what the API server makes at its first start.
    ///
    /// # Errors
    /// An object is not as the types want it.
    pub(super) fn with_singletons() -> Result<Self, Refusal> {
        let mut store = Self::default();
        let system = "default-global-system-config";
        let mut create = |kind: &str, object: Value| store.create_named(kind, object);
        create("global-system-config", json!({"fq_name": [system], "autonomous_system": 64512}))?;
        let config = create(
            GLOBAL_VROUTER_CONFIG,
            json!({"fq_name": [system, "default-global-vrouter-config"],
                "parent_type": "global-system-config", "enable_security_logging": true,
                "encryption_mode": "none"}),
        )?;
        create("domain", json!({"fq_name": ["default-domain"]}))?;
        let project = ["default-domain", "default-project"];
        create("project", json!({"fq_name": project, "parent_type": "domain"}))?;
        create("policy-management", json!({"fq_name": ["default-policy-management"]}))?;
        create(
            "application-policy-set",
            json!({"fq_name": ["default-policy-management", "default-application-policy-set"],
                "parent_type": "policy-management", "all_applications": true,
                "global_vrouter_config_refs": [{"uuid": config}]}),
        )?;
        for name in ["ip-fabric", "__link_local__"] {
            let fq_name = [project[0], project[1], name];
            let provider = name == "ip-fabric";
            create(
                "virtual-network",
                json!({"fq_name": fq_name, "parent_type": "project", "is_provider_network": provider}),
            )?;
        }
        create(
            "network-ipam",
            json!({"fq_name": [project[0], project[1], "service-chain-flat-ipam"],
                "parent_type": "project", "ipam_subnet_method": "flat-subnet",
                "ipam_subnets": {"subnets": [
                    {"subnet": {"ip_prefix": "0.0.0.0", "ip_prefix_len": 8}},
                    {"subnet": {"ip_prefix": "::ffff", "ip_prefix_len": 104}}]}}),
        )?;
        Ok(store)
    }

    fn create_named(&mut self, kind: &str, object: Value) -> Result<String, Refusal> {
        let kind = Kind::find(kind).ok_or_else(Refusal::internal)?;
        let Value::Object(body) = object else { return Err(Refusal::internal()) };
        self.create(kind, body)
    }

    pub(super) fn by_uuid(&self, uuid: &str) -> Option<&Object> {
        self.objects.iter().find(|object| object.uuid == uuid)
    }

    pub(super) fn by_name(&self, kind: &Kind, fq_name: &[String]) -> Option<&Object> {
        self.of(kind).find(|object| object.fq_name == fq_name)
    }

    /// Of one type.
    pub(super) fn of(&self, kind: &Kind) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |object| object.kind.name == kind.name)
    }

    /// All that name this one by a reference. Between two of a type a reference is one of both, and none back.
    pub(super) fn referrers(&self, uuid: &str) -> impl Iterator<Item = &Object> {
        let kind = self.by_uuid(uuid).map(|object| object.kind.name);
        let is_back = move |object: &&Object| Some(object.kind.name) != kind;
        self.objects.iter().filter(move |object| object.refers_to(uuid)).filter(is_back)
    }

    pub(super) fn children(&self, uuid: &str) -> impl Iterator<Item = &Object> {
        let is_parent = move |parent: &Parent| parent.uuid == uuid;
        self.objects.iter().filter(move |object| object.parent.as_ref().is_some_and(is_parent))
    }

    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    fn by_uuid_mut(&mut self, uuid: &str) -> Option<&mut Object> {
        self.objects.iter_mut().find(|object| object.uuid == uuid)
    }

    /// `datetime.utcnow().isoformat()`, later than any before, and never without microseconds.
    fn stamp(&mut self) -> String {
        let step = time::Duration::microseconds(1);
        let now = OffsetDateTime::now_utc();
        let mut now = self.last_stamp.map_or(now, |last| now.max(last + step));
        if now.microsecond() == 0 {
            now += step;
        }
        self.last_stamp = Some(now);
        let (date, microsecond) = (now.date(), now.microsecond());
        let (hour, minute, second) = now.to_hms();
        format!("{date}T{hour:02}:{minute:02}:{second:02}.{microsecond:06}")
    }

    /// Moves `last_modified` and says so.
    fn touch(&mut self, uuid: &str) {
        let stamp = self.stamp();
        if let Some(object) = self.by_uuid_mut(uuid) {
            object.last_modified = stamp;
            let change = Change {
                operation: Operation::Update,
                kind: object.kind,
                uuid: object.uuid.clone(),
            };
            self.changes.push(change);
        }
    }

    /// The end of a write whose middle was read.
    pub(super) fn finish_write(&mut self, uuid: &str) {
        self.touch(uuid);
    }

    /// References get what they lack, `uuid` or `to`, where the object is known here.
    fn resolve(&self, field: &str, value: Value) -> Value {
        let kind = field.strip_suffix("_refs").and_then(Kind::find);
        let (Some(kind), Value::Array(mut references)) = (kind, value.clone()) else {
            return value;
        };
        for reference in references.iter_mut().filter_map(Value::as_object_mut) {
            let names = reference.get("to").and_then(names);
            let named = names.and_then(|names| self.by_name(kind, &names));
            let by_uuid = reference.get("uuid").and_then(Value::as_str);
            let target = by_uuid.map_or(named, |uuid| self.by_uuid(uuid));
            if let Some(target) = target {
                reference.insert("uuid".to_owned(), json!(target.uuid));
                reference.insert("to".to_owned(), json!(target.fq_name));
            }
            reference.entry("attr").or_insert(Value::Null);
        }
        Value::Array(references)
    }
}

/// A fully qualified name.
pub(super) fn names(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A random uuid of version 4.
pub(super) fn new_uuid() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = ((random() & !0xf000) | 0x4000, (random() & (!0 >> 2)) | (1 << 63));
    let digits = format!("{high:016x}{low:016x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|range| digits.get(range).unwrap_or_default().to_owned()).join("-")
}

type Elements = BTreeMap<String, Value>;
type Body = Map<String, Value>;

/// The one field that holds the elements of a list or map, with or without its wrapper.
fn elements_of(value: &Value) -> Result<Vec<Value>, Refusal> {
    let inner = match value {
        Value::Object(fields) if !python::is_falsy(value) => fields.values().next(),
        _ => Some(value),
    };
    match inner {
        Some(Value::Array(items)) => Ok(items.clone()),
        Some(Value::Object(fields)) if fields.is_empty() => Ok(Vec::new()),
        _ => {
            let text = "TypeError: object of type 'NoneType' has no len()";
            Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, text))
        }
    }
}
