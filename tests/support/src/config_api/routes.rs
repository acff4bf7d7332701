//! Which path does what: the homepage, actions, and then objects (`resources`).

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::access::Caller;
use super::answer::{self, Answer};
use super::faults::WatchFault;
use super::request::Asked;
use super::schema::Kind;
use super::state::{Shared, State};
use super::store::write::unknown_kind;
use super::store::{Refusal, names};
use super::{WatchApi, python, resources};

/// `max_request_size`.
const LARGEST_BODY: usize = 1_024_000;

/// Path, name of the link, method.
const ACTIONS: [(&str, &str, &str); 6] = [
    ("/prop-collection-update", "prop-collection-update", "POST"),
    ("/fqname-to-id", "name-to-id", "POST"),
    ("/id-to-fqname", "id-to-name", "POST"),
    ("/obj-perms", "obj-perms", "GET"),
    ("/aaa-mode", "aaa-mode", "PUT"),
    ("/ref-relax-for-delete", "ref-relax-for-delete", "POST"),
];

/// The Config API's answer.
pub(super) fn respond(shared: &Shared, asked: &Asked) -> Answer {
    let mut state = shared.state();
    if asked.path == "/" && asked.method == Method::GET {
        return homepage(state.watch_api, asked);
    }
    let caller = match shared.access(&state).let_in(asked) {
        Ok(caller) => caller,
        Err(answer) => return *answer,
    };
    let answer = shared
        .access(&state)
        .by_rules(&caller, asked)
        .and_then(|()| route(shared, &mut state, &caller, asked));
    state.report();
    answer.unwrap_or_else(|refusal| answer::refusal(&refusal))
}

fn route(
    shared: &Shared,
    state: &mut State,
    caller: &Caller,
    asked: &Asked,
) -> Result<Answer, Refusal> {
    if asked.body.len() > LARGEST_BODY {
        let text = "Request entity too large";
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    match (&asked.method, asked.path.as_str()) {
        (&Method::POST, "/fqname-to-id") => name_to_id(shared, state, caller, asked),
        (&Method::POST, "/id-to-fqname") => id_to_name(shared, state, caller, asked),
        (&Method::POST, "/prop-collection-update") => {
            let body = asked.json()?.ok_or_else(Refusal::internal)?;
            state.store.update_collection(&body)?;
            Ok(answer::nothing())
        }
        (&Method::GET, "/obj-perms") => {
            let object = asked.parameter("uuid").map(|uuid| state.store.by_uuid(uuid));
            Ok(answer::json(&shared.access(state).permissions(caller, object)))
        }
        (&Method::GET, "/aaa-mode") => Ok(answer::json(&json!({"aaa-mode": state.mode.name()}))),
        (&Method::POST, "/ref-relax-for-delete") => {
            let body = asked.json()?.ok_or_else(Refusal::internal)?;
            Ok(answer::json(&state.store.relax(&body)?))
        }
        (&Method::GET, "/watch") if state.watch_api == WatchApi::Offered => watch(state, asked),
        (_, path) => {
            let missing = || Refusal::missing(format!("Not found: '{path}'"));
            let mut parts = path.trim_start_matches('/').split('/');
            match (parts.next(), parts.next(), parts.next()) {
                (Some(name), None, _) => {
                    let kind = Kind::of_collection(name).ok_or_else(missing)?;
                    resources::collection(state, kind, asked)
                }
                (Some(name), Some(uuid), None) => {
                    let kind = Kind::all().find(|kind| kind.name == name).ok_or_else(missing)?;
                    resources::object(state, kind, uuid, asked)
                }
                _ => Err(missing()),
            }
        }
    }
}

fn homepage(watch: WatchApi, asked: &Asked) -> Answer {
    let base = &asked.base;
    let link = |rel: &str, path: &str, name: &str, method: Option<&str>| {
        let href = format!("{base}{path}");
        json!({"link": {"rel": rel, "href": href, "name": name, "method": method}})
    };
    let mut links = vec![link("root", "/config-root", "config-root", None)];
    for kind in Kind::all().map(|kind| kind.name) {
        links.push(link("collection", &format!("/{kind}s"), kind, None));
        links.push(link("resource-base", &format!("/{kind}"), kind, None));
    }
    for (path, name, method) in ACTIONS {
        links.push(link("action", path, name, Some(method)));
    }
    if watch == WatchApi::Offered {
        links.push(link("action", "/watch", "watch", Some("GET")));
    }
    answer::json(&json!({"href": base, "links": links}))
}

fn name_to_id(
    shared: &Shared,
    state: &State,
    caller: &Caller,
    asked: &Asked,
) -> Result<Answer, Refusal> {
    let body = asked.json()?.ok_or_else(Refusal::internal)?;
    let kind = body.get("type").map_or("None".to_owned(), python::text);
    let kind = Kind::find(&kind).ok_or_else(|| unknown_kind(&kind))?;
    let fq_name = body.get("fq_name").and_then(names).ok_or_else(Refusal::internal)?;
    let object = state.store.by_name(kind, &fq_name);
    let object = object
        .ok_or_else(|| Refusal::missing(format!("Name {} not found", python::list(&fq_name))))?;
    shared.access(state).may_read(caller, object)?;
    Ok(answer::json(&json!({"uuid": object.uuid})))
}

fn id_to_name(
    shared: &Shared,
    state: &State,
    caller: &Caller,
    asked: &Asked,
) -> Result<Answer, Refusal> {
    let body = asked.json()?.ok_or_else(Refusal::internal)?;
    let uuid = body.get("uuid").and_then(Value::as_str).ok_or_else(Refusal::internal)?;
    let object = state.store.by_uuid(uuid);
    let object = object.ok_or_else(|| Refusal::missing(format!("UUID {uuid} not found")))?;
    shared.access(state).may_read(caller, object)?;
    Ok(answer::json(&json!({"fq_name": object.fq_name, "type": object.kind.name})))
}

fn watch(state: &mut State, asked: &Asked) -> Result<Answer, Refusal> {
    let wanted = asked.list("resource_type");
    let wanted = wanted.ok_or_else(|| Refusal::bad("resource_type required in request"))?;
    let kinds: Result<Vec<_>, Refusal> = wanted
        .into_iter()
        .map(|name| {
            let kind = Kind::find(&name).ok_or_else(|| {
                Refusal::missing(format!("Invalid Contrail resource type:'{name}'"))
            })?;
            let fields = asked.list(&format!("{name}_fields"));
            Ok((name, kind, fields))
        })
        .collect();
    let kinds = kinds?;
    let fault = state.faults.of_watch();
    if let Some(WatchFault::Refused(status)) = fault {
        return Err(Refusal::new(status, "a fault of the test"));
    }
    let State { watchers, store, .. } = state;
    Ok(answer::events(watchers.add(store, &kinds, fault)))
}
