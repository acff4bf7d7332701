//! Objects and their collections over HTTP: `/virtual-networks`, `/virtual-network/<uuid>`.

use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Map, Value, json};

use super::answer::{self, Answer};
use super::python;
use super::render::{self, Fields, Included};
use super::request::Asked;
use super::schema::{GLOBAL_VROUTER_CONFIG, Kind, Storage};
use super::state::State;
use super::store::write::{other_kind, unknown_id};
use super::store::{Object, Refusal};

/// Parameters of a list that would change the answer and that are not here.
const UNSUPPORTED: [&str; 4] = ["filters", "page_marker", "page_limit", "parent_fq_name_str"];

/// A collection.
pub(super) fn collection(
    state: &mut State,
    kind: &'static Kind,
    asked: &Asked,
) -> Result<Answer, Refusal> {
    match asked.method {
        Method::GET => list(state, kind, asked),
        Method::POST => create(state, kind, asked),
        _ => Err(not_allowed()),
    }
}

/// One object.
pub(super) fn object(
    state: &mut State,
    kind: &'static Kind,
    uuid: &str,
    asked: &Asked,
) -> Result<Answer, Refusal> {
    match asked.method {
        Method::GET => read(state, kind, uuid, asked),
        Method::PUT => update(state, kind, uuid, asked),
        Method::DELETE => {
            if !state.faults.lost_deletes.happens() {
                state.store.delete(kind, uuid, &asked.base)?;
            }
            Ok(answer::nothing())
        }
        _ => Err(not_allowed()),
    }
}

pub(super) fn not_allowed() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed.")
}

fn create(state: &mut State, kind: &'static Kind, asked: &Asked) -> Result<Answer, Refusal> {
    let body = asked.json()?.ok_or_else(Refusal::internal)?;
    let body = body.get(kind.name).and_then(Value::as_object).filter(|body| !body.is_empty());
    let body = body.ok_or_else(Refusal::internal)?.clone();
    let uuid = state.store.create(kind, body)?;
    let object = state.store.by_uuid(&uuid).ok_or_else(|| unknown_id(&uuid))?;
    let mut shown = render::identity(object, Some(&asked.base));
    shown.insert("name".to_owned(), json!(object.name()));
    Ok(answer::json(&json!({ kind.name: shown })))
}

fn update(
    state: &mut State,
    kind: &'static Kind,
    uuid: &str,
    asked: &Asked,
) -> Result<Answer, Refusal> {
    // No body and an empty one are no error: nothing is done.
    let Some(body) = asked.json()?.filter(|body| !python::is_falsy(body)) else {
        return Ok(answer::nothing());
    };
    let properties = body.get(kind.name).ok_or_else(Refusal::internal)?;
    if python::is_falsy(properties) {
        return Ok(answer::nothing());
    }
    let properties = properties.as_object().ok_or_else(Refusal::internal)?.clone();
    let owner = properties.get("perms2").map(|perms| perms.get("owner"));
    if matches!(owner, Some(None)) {
        return Err(Refusal::bad("owner in perms2 must be present"));
    }
    let object = state.store.by_uuid(uuid).filter(|object| object.kind.name == kind.name);
    object.ok_or_else(|| unknown_id(uuid))?;
    if !state.faults.lost_puts.happens() {
        state.update(kind, uuid, properties)?;
    }
    let href = format!("{}/{}/{uuid}", asked.base, kind.name);
    Ok(answer::json(&json!({ kind.name: {"uuid": uuid, "href": href} })))
}

fn read(
    state: &mut State,
    kind: &'static Kind,
    uuid: &str,
    asked: &Asked,
) -> Result<Answer, Refusal> {
    let object = state.store.by_uuid(uuid).ok_or_else(|| unknown_id(uuid))?;
    if object.kind.name != kind.name {
        return Err(other_kind(kind, uuid));
    }
    let tag = asked.header("if-none-match").map(|tag| tag.trim_matches('"'));
    if tag == Some(object.last_modified.as_str()) {
        return Ok(answer::not_modified());
    }
    let fields = match asked.list("fields") {
        Some(mut fields) => {
            fields.extend(["id_perms", "perms2"].map(str::to_owned));
            Fields::Only(fields)
        }
        None => Fields::All {
            back_references: unless(asked, "exclude_back_refs"),
            children: unless(asked, "exclude_children"),
        },
    };
    let base = (unless(asked, "exclude_hrefs") == Included::Yes).then_some(asked.base.as_str());
    let etag = format!("\"{}\"", object.last_modified);
    let mut shown = render::object(&state.store, object, &fields, base);
    name(object, &mut shown);
    tear(state, kind, uuid, &mut shown);
    let mut answer = answer::json(&json!({ kind.name: shown }));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        answer.headers_mut().insert(header::ETAG, etag);
    }
    Ok(answer)
}

fn unless(asked: &Asked, parameter: &str) -> Included {
    match asked.parameter(parameter) {
        Some(_) => Included::No,
        None => Included::Yes,
    }
}

fn name(object: &Object, shown: &mut Value) {
    if let Value::Object(shown) = shown {
        shown.insert("name".to_owned(), json!(object.name()));
    }
}

/// A read in the middle of another's write of lists and maps: the old elements have gone, the new ones are not there.
fn tear(state: &mut State, kind: &Kind, uuid: &str, shown: &mut Value) {
    if kind.name != GLOBAL_VROUTER_CONFIG || !state.faults.torn_reads.happens() {
        return;
    }
    if let Value::Object(shown) = shown {
        shown.retain(|field, _| {
            kind.property(field).is_none_or(|one| matches!(one.storage, Storage::Whole))
        });
    }
    if state.faults.torn_reads.is_over() {
        state.store.finish_write(uuid);
    }
}

fn list(state: &mut State, kind: &'static Kind, asked: &Asked) -> Result<Answer, Refusal> {
    if let Some(name) = UNSUPPORTED.iter().find(|name| asked.parameter(name).is_some()) {
        let text = format!("the fake has no parameter {name}");
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, text));
    }
    let collection = format!("{}s", kind.name);
    let objects = wanted(state, kind, asked);
    if asked.is_true("count") {
        return Ok(answer::json(&json!({ collection: {"count": objects.len()} })));
    }
    let fields = asked.list("fields").unwrap_or_default();
    let items: Vec<Value> = objects
        .into_iter()
        .map(|object| {
            let mut item = if asked.is_true("detail") {
                detailed(state, object, &fields)
            } else if fields.is_empty() {
                Map::from_iter([
                    ("uuid".to_owned(), json!(object.uuid)),
                    ("fq_name".to_owned(), json!(object.fq_name)),
                ])
            } else {
                only(state, object, &fields)
            };
            if unless(asked, "exclude_hrefs") == Included::Yes {
                let href = format!("{}/{}/{}", asked.base, kind.name, object.uuid);
                item.insert("href".to_owned(), json!(href));
            }
            match asked.is_true("detail") {
                true => json!({ kind.name: item }),
                false => Value::Object(item),
            }
        })
        .collect();
    Ok(answer::json(&json!({ collection: items })))
}

/// Without an anchor by name, below a parent by age.
fn wanted<'c>(state: &'c State, kind: &'static Kind, asked: &Asked) -> Vec<&'c Object> {
    let parents = asked.list("parent_id");
    let (referred, uuids) = (asked.list("back_ref_id"), asked.list("obj_uuids"));
    let names = asked.list("fq_names");
    let is_wanted = |object: &&Object| {
        let has_parent = |wanted: &Vec<String>| {
            object.parent.as_ref().is_some_and(|parent| wanted.contains(&parent.uuid))
        };
        let refers = |wanted: &Vec<String>| wanted.iter().any(|uuid| object.refers_to(uuid));
        parents.as_ref().is_none_or(has_parent)
            && referred.as_ref().is_none_or(refers)
            && uuids.as_ref().is_none_or(|wanted| wanted.contains(&object.uuid))
            && names.as_ref().is_none_or(|wanted| wanted.contains(&object.fq_name.join(":")))
    };
    let mut objects: Vec<&Object> = state.store.of(kind).filter(is_wanted).collect();
    if parents.is_none() {
        objects.sort_by_key(|object| object.fq_name.join(":"));
    }
    objects
}

/// All of an object's own, whatever `fields` says, and links only where it says so.
fn detailed(state: &State, object: &Object, fields: &[String]) -> Map<String, Value> {
    let Value::Object(mut shown) = render::object(&state.store, object, &Fields::OWN, None) else {
        return Map::new();
    };
    shown.insert("name".to_owned(), json!(object.name()));
    for (field, value) in only(state, object, fields) {
        shown.entry(field).or_insert(value);
    }
    shown
}

fn only(state: &State, object: &Object, fields: &[String]) -> Map<String, Value> {
    let wanted = Fields::Only(fields.to_vec());
    match render::object(&state.store, object, &wanted, None) {
        Value::Object(shown) => shown,
        _ => Map::new(),
    }
}
