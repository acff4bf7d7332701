//! An API server that stores objects, as far as the plugin asks for it: lists with labels, one object, creation, apply,
//! deletion, dry runs. For commands whose answer needs a whole cluster. Deliberately not here: fields of others, watches,
//! and what controllers would do; `fake_api_server.rs` has what is below it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::fake_api_server::{Asked, FakeApiServer, Reply, refusal, version};

/// Objects by their path: `/api/v1/namespaces/tf/pods/x`.
#[derive(Clone, Default)]
pub(crate) struct StoredObjects(Arc<Mutex<BTreeMap<String, Value>>>);

/// What a path of the API names.
struct Resource {
    /// With group and version: `/apis/apps/v1`.
    api: String,
    namespace: Option<String>,
    plural: String,
    name: Option<String>,
    /// `log`, `proxy` and what is behind it.
    sub: Option<String>,
}

impl Resource {
    fn of(path: &str) -> Option<Self> {
        let words: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (api, rest) = match words.as_slice() {
            ["api", version, rest @ ..] => (format!("/api/{version}"), rest),
            ["apis", group, version, rest @ ..] => (format!("/apis/{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, rest) = rest.split_first()?;
        let name = rest.first().map(|name| (*name).to_owned());
        let sub = rest.get(1..).filter(|sub| !sub.is_empty()).map(|sub| sub.join("/"));
        let namespace = namespace.map(str::to_owned);
        Some(Self { api, namespace, plural: (*plural).to_owned(), name, sub })
    }

    fn path(&self, name: &str) -> String {
        let within = self.namespace.as_ref().map(|name| format!("/namespaces/{name}"));
        format!("{}{}/{}/{name}", self.api, within.unwrap_or_default(), self.plural)
    }

    /// Whether the object at that path is in its list.
    fn lists(&self, path: &str) -> bool {
        Self::of(path).is_some_and(|other| {
            other.api == self.api
                && other.plural == self.plural
                && (self.namespace.is_none() || other.namespace == self.namespace)
        })
    }
}

/// Whether the labels are as a selector says: `a=b`, `a`.
fn is_selected(object: &Value, query: &str) -> bool {
    let parameters = query.split('&').filter_map(|one| one.split_once('='));
    let plain = |text: &str| text.replace("%3D", "=").replace("%2F", "/").replace("%2C", ",");
    let selector = parameters.filter(|(name, _)| *name == "labelSelector");
    selector.map(|(_, value)| plain(value)).all(|selector| {
        selector.split(',').filter(|one| !one.is_empty()).all(|one| {
            let (key, value) =
                one.split_once('=').map_or((one, None), |(key, value)| (key, Some(value)));
            let label = object["metadata"]["labels"].get(key).and_then(Value::as_str);
            label.is_some() && value.is_none_or(|value| label == Some(value))
        })
    })
}

impl StoredObjects {
    /// Stores an object in this list: `/api/v1/namespaces/tf/pods`.
    pub(crate) fn add(&self, list: &str, mut object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if let Some(namespace) = Resource::of(&format!("{list}/x")).and_then(|one| one.namespace) {
            object["metadata"]["namespace"] = json!(namespace);
        }
        self.0.lock().unwrap().insert(format!("{list}/{name}"), object);
    }

    /// Changes an object.
    pub(crate) fn edit(&self, path: &str, change: impl FnOnce(&mut Value)) {
        change(self.0.lock().unwrap().get_mut(path).unwrap());
    }

    /// The objects of a list.
    pub(crate) fn list(&self, path: &str, query: &str) -> Vec<Value> {
        let Some(wanted) = Resource::of(path) else { return Vec::new() };
        let all = self.0.lock().unwrap();
        let listed = all.iter().filter(|(path, _)| wanted.lists(path)).map(|(_, one)| one.clone());
        listed.filter(|one| is_selected(one, query)).collect()
    }

    /// A server that stores them, and whose other answers are `other`'s.
    pub(crate) fn serve(
        &self,
        other: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
    ) -> FakeApiServer {
        let stored = self.clone();
        FakeApiServer::start_whole(move |asked, _| {
            other(asked).or_else(|| stored.answer(asked)).unwrap_or_else(not_found)
        })
    }

    fn answer(&self, asked: &Asked) -> Option<Reply> {
        let (method, path) = asked.line.split_once(' ')?;
        if path == "/version" {
            return Some(version());
        }
        let resource = Resource::of(path)?;
        let body = || serde_json::from_slice::<Value>(&asked.body).unwrap_or_default();
        let is_dry = asked.query.contains("dryRun=All");
        match (method, &resource.name, &resource.sub) {
            ("GET", None, None) => {
                let items = self.list(path, &asked.query);
                Some(Reply::Document(
                    200,
                    "",
                    json!({"kind": "List", "metadata": {}, "items": items}),
                ))
            }
            ("GET", Some(_), None) => self.found(path),
            ("POST", None, None) => {
                let object = body();
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                Some(self.stored(&resource.path(&name), object, is_dry))
            }
            ("PATCH", Some(_), None) => {
                let before = self.0.lock().unwrap().get(path).cloned().unwrap_or_default();
                Some(self.stored(path, merged(before, body()), is_dry))
            }
            ("DELETE", Some(_), None) => {
                let found = self.found(path);
                // A deletion says that in its body.
                let is_dry = body().get("dryRun").is_some_and(|dry| !dry.is_null());
                if !is_dry {
                    self.0.lock().unwrap().remove(path);
                }
                found
            }
            _ => None,
        }
    }

    fn found(&self, path: &str) -> Option<Reply> {
        let found = self.0.lock().unwrap().get(path).cloned();
        found.map(|object| Reply::Document(200, "", object))
    }

    fn stored(&self, path: &str, mut object: Value, is_dry: bool) -> Reply {
        object["metadata"]["uid"] = json!("0b2f3a55-3c3c-4a6b-9a3e-6f2f1d5f8c11");
        if object["kind"] == "CustomResourceDefinition" {
            object["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
        }
        if object["kind"] == "Service" && object["spec"]["clusterIP"].is_null() {
            object["spec"]["clusterIP"] = json!("10.96.0.77");
        }
        if object["kind"] == "Deployment" {
            let replicas = object["spec"]["replicas"].clone();
            let ready = json!([{"type": "Available", "status": "True"}]);
            object["status"] = json!({"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
                "availableReplicas": replicas, "conditions": ready});
        }
        if !is_dry {
            self.0.lock().unwrap().insert(path.to_owned(), object.clone());
        }
        Reply::Document(200, "", object)
    }
}

fn merged(before: Value, after: Value) -> Value {
    match (before, after) {
        (Value::Object(mut before), Value::Object(after)) => {
            for (key, value) in after {
                let old = before.remove(&key).unwrap_or_default();
                before.insert(key, merged(old, value));
            }
            Value::Object(before)
        }
        (_, after) => after,
    }
}

fn not_found() -> Reply {
    refusal(404, "NotFound", "not found")
}
