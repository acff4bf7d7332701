//! What the status of a Manager says (pure): a row for each service with what it waits for, and all of them
//! together. The fields of tf-operator are filled too.

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use opensdn_crds::component::{Component, Count};
use opensdn_crds::manager::{FirstExpiry, ManagerStatus, ServiceState};
use opensdn_crds::status::{
    CommonStatus, Condition, ConditionStatus, Conditions, IntrospectStatus, PAUSED, READY, STALLED,
};
use opensdn_upgrade::images;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::introspect::bounded;
use crate::metrics::{self, ServiceIs};
use crate::progress::PROGRESSING;
use crate::report::{AVAILABLE, DEGRADED};
use crate::services::Service;

/// Longest message of a service, in bytes.
const MOST_MESSAGE: usize = 1024;
/// As many nodes as the schema has room for.
const MOST_NODES: usize = 1024;

/// How a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its kind.
    pub facts: &'static Component,
    /// Its name.
    pub name: String,
    /// Whether it is as its object says.
    pub is_ready: bool,
    /// Whether it can do its work.
    pub is_active: bool,
    /// Whether only a person can help.
    pub is_stalled: bool,
    /// Whether something of it is being brought about.
    pub is_progressing: bool,
    /// Whether it is left as it is.
    pub is_paused: bool,
    /// One word, for programs.
    pub reason: String,
    /// How it is, or what it waits for, or what to do.
    pub message: String,
    /// The nodes on which it runs.
    pub nodes: Vec<String>,
    /// The tags of its images.
    pub versions: Vec<String>,
    /// What its daemons say of themselves.
    pub introspect: Option<IntrospectStatus>,
    /// When the first of its certificates expires.
    pub certificates_expire: Option<OffsetDateTime>,
}

impl Row {
    /// A service with which something is wrong that only a person can put right.
    #[must_use]
    pub fn stalled(facts: &'static Component, name: &str, reason: &str, message: String) -> Self {
        Self {
            facts,
            name: name.to_owned(),
            is_ready: false,
            is_active: false,
            is_stalled: true,
            is_progressing: false,
            is_paused: false,
            reason: reason.to_owned(),
            message,
            nodes: Vec::new(),
            versions: Vec::new(),
            introspect: None,
            certificates_expire: None,
        }
    }

    /// A service by what its object says.
    #[must_use]
    pub fn of(service: &Service, object: Option<&DynamicObject>) -> Self {
        let Service { facts, name, spec, .. } = service;
        let status = object.and_then(|object| object.data.get("status").cloned());
        let status: CommonStatus =
            status.and_then(|status| serde_json::from_value(status).ok()).unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let condition = |type_: &str| conditions.iter().find(|one| one.type_ == type_);
        let is_true = |type_: &str| condition(type_).is_some_and(|one| one.status == "True");
        let generation = object.and_then(|object| object.metadata.generation);
        // What is said of an earlier spec is not said of this one.
        let is_seen = generation.is_some() && status.observed_generation == generation;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (reason, mut message) = match condition(READY) {
            Some(Condition { reason, message, .. }) if is_seen => (text(reason), text(message)),
            _ => ("NotSeen".to_owned(), "its object was written; nothing is known yet".to_owned()),
        };
        let nodes: BTreeSet<String> =
            status.nodes.into_iter().flatten().filter_map(|(_, node)| node.hostname).collect();
        let expire = status.certificates_expire.as_deref();
        // Anyone who may write the status of a component can write much.
        message.truncate(message.floor_char_boundary(MOST_MESSAGE));
        Self {
            facts,
            name: name.clone(),
            is_ready: is_seen && is_true(READY),
            is_active: status.active.unwrap_or_default(),
            is_stalled: is_seen && is_true(STALLED),
            is_progressing: !is_seen || is_true(PROGRESSING),
            is_paused: is_true(PAUSED),
            reason,
            message,
            nodes: nodes.into_iter().take(MOST_NODES).collect(),
            versions: versions(spec),
            introspect: status.introspect.map(bounded),
            certificates_expire: expire.and_then(|end| OffsetDateTime::parse(end, &Rfc3339).ok()),
        }
    }

    /// What is counted of it, and under which name.
    #[must_use]
    pub fn counted(&self) -> (String, ServiceIs) {
        let is = ServiceIs { ready: self.is_ready, paused: self.is_paused };
        (metrics::service(self.facts.kind, &self.name), is)
    }

    fn title(&self) -> String {
        format!("{} {}", self.facts.kind, self.name)
    }

    fn state(&self) -> ServiceState {
        ServiceState {
            kind: self.facts.kind.to_owned(),
            name: self.name.clone(),
            ready: Some(self.is_ready),
            reason: Some(self.reason.clone()),
            message: Some(self.message.clone()),
            nodes: Some(self.nodes.clone()).filter(|nodes| !nodes.is_empty()),
            versions: Some(self.versions.clone()).filter(|versions| !versions.is_empty()),
            introspect: self.introspect.clone(),
            certificates_expire: self.certificates_expire.and_then(rfc3339),
        }
    }
}

fn rfc3339(time: OffsetDateTime) -> Option<String> {
    time.format(&Rfc3339).ok()
}

/// The tags, or digests, of the images, each once.
fn versions(spec: &Value) -> Vec<String> {
    let containers = spec.pointer("/serviceConfiguration/containers").and_then(Value::as_array);
    let images = containers.into_iter().flatten().filter_map(|one| one.get("image")?.as_str());
    let tags = images.filter_map(images::digest_or_tag);
    let tags: BTreeSet<String> = tags.map(str::to_owned).collect();
    tags.into_iter().collect()
}

/// The status of a Manager. `wrong` is what is wrong with the Manager itself, `now` RFC 3339.
#[must_use]
pub fn status(
    manager: &DynamicObject,
    rows: &[Row],
    wrong: Option<&str>,
    paused: Option<&str>,
    now: &str,
) -> ManagerStatus {
    let before = before(manager);
    let earlier = before.conditions.unwrap_or_default();
    let mut conditions = Conditions::after(&earlier);
    let generation = manager.metadata.generation;
    let mut set = |type_: &str, is: bool, reason: &str, message: &str| {
        let status = if is { ConditionStatus::True } else { ConditionStatus::False };
        conditions.set(type_, status, reason, message, generation, now);
    };
    let counts = |is: fn(&Row) -> bool, word: &str| {
        let number = rows.iter().filter(|row| is(row)).count();
        (number == rows.len(), format!("{number} of {} services {word}", rows.len()))
    };
    let (active, text) = counts(|row| row.is_active, "active");
    set(AVAILABLE, active, if active { "AllActive" } else { "NotActive" }, &text);
    let (ready, text) = counts(|row| row.is_ready, "ready");
    let text = match worst(rows) {
        Some(row) => format!("{text}; {}: {}", row.title(), row.message),
        None => text,
    };
    if !ready {
        set(DEGRADED, true, "NotReady", &text);
    }
    if let Some(why) = paused {
        set(PAUSED, true, "Annotation", why);
    }
    let stalled = worst(rows).filter(|row| row.is_stalled);
    match (wrong, stalled) {
        (Some(wrong), _) => conditions.stalled("UnreadableSpec", wrong, generation, now),
        (None, Some(row)) => {
            let message = format!("{}: {}", row.title(), row.message);
            conditions.stalled(&row.reason, &message, generation, now);
        }
        (None, None) if ready => conditions.ready("ServicesReady", &text, generation, now),
        (None, None) => conditions.reconciling("ServicesNotReady", &text, generation, now),
    }
    let (status, reason, text) = progress(rows, paused);
    conditions.set(PROGRESSING, status, reason, &text, generation, now);
    ManagerStatus {
        services: Some(rows.iter().map(Row::state).collect()),
        first_certificate_to_expire: first_expiry(rows),
        conditions: Some(conditions.into_vec()),
        observed_generation: generation,
        ..as_tf_operator(rows)
    }
}

/// Whether something is being brought about for one of them.
fn progress(rows: &[Row], paused: Option<&str>) -> (ConditionStatus, &'static str, String) {
    let mut under_way = rows.iter().filter(|row| row.is_progressing);
    match (paused, under_way.next()) {
        (Some(why), _) => (ConditionStatus::False, PAUSED, why.to_owned()),
        (None, Some(row)) => {
            let text = match under_way.count() {
                0 => format!("{}: {}", row.title(), row.message),
                more => format!("{}: {}; {more} more", row.title(), row.message),
            };
            (ConditionStatus::True, "ServicesProgress", text)
        }
        (None, None) => {
            (ConditionStatus::False, "NothingUnderWay", "no service progresses".to_owned())
        }
    }
}

fn first_expiry(rows: &[Row]) -> Option<FirstExpiry> {
    let ends = rows.iter().filter_map(|row| Some((row.certificates_expire?, row)));
    let (end, row) = ends.min_by_key(|(end, _)| *end)?;
    let (kind, name) = (Some(row.facts.kind.to_owned()), Some(row.name.clone()));
    Some(FirstExpiry { time: rfc3339(end), kind, name })
}

/// The one to be looked at first: what nothing else can wait for.
fn worst(rows: &[Row]) -> Option<&Row> {
    let waiting = rows.iter().filter(|row| !row.is_ready);
    waiting.min_by_key(|row| (!row.is_stalled, depth(row.facts)))
}

/// How many kinds stand below it, one upon the other.
fn depth(facts: &Component) -> usize {
    let needs = facts.needs.iter().filter_map(|need| Component::of_kind(need.kind));
    needs.map(|need| depth(need) + 1).max().unwrap_or(0)
}

/// What tf-operator says of each service, under the keys of the spec.
fn as_tf_operator(rows: &[Row]) -> ManagerStatus {
    let mut status = Map::new();
    for row in rows {
        let state = json!({"name": row.name, "active": row.is_active});
        match row.facts.count {
            Count::One => drop(status.insert(row.facts.key.to_owned(), state)),
            Count::Many => {
                let list = status.entry(row.facts.key).or_insert_with(|| json!([]));
                if let Value::Array(list) = list {
                    list.push(state);
                }
            }
        }
    }
    serde_json::from_value(Value::Object(status)).unwrap_or_default()
}

/// What of a stored status is ours.
#[must_use]
pub fn before(manager: &DynamicObject) -> ManagerStatus {
    let status = manager.data.get("status").cloned().unwrap_or_default();
    let status: ManagerStatus = serde_json::from_value(status).unwrap_or_default();
    ManagerStatus { crd_status: None, ziu_state: None, ..status }
}

#[cfg(test)]
mod tests;
