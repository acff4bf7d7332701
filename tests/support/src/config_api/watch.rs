//! `/watch`: the list, and then each change, as server-sent events (`event_dispatcher.py`).

use hyper::body::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::render::{self, Fields};
use super::schema::Kind;
use super::store::{Change, Operation, Store};

/// How a test ends the watches that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// `event: stop`, and the end of the answer.
    Stop,
    /// The connection ends in the middle.
    Cut,
}

#[derive(Debug)]
struct Watcher {
    /// With the name under which changes are reported: `global_vrouter_config`. With any other none is.
    kind: String,
    fields: Option<Vec<String>>,
    events: UnboundedSender<Bytes>,
}

#[derive(Debug, Default)]
pub(super) struct Watchers(Vec<Watcher>);

impl Watchers {
    /// A watch of some types, by the names that the client gave, each with the fields it wants.
    pub(super) fn add(
        &mut self,
        store: &Store,
        kinds: &[(String, &'static Kind, Option<Vec<String>>)],
    ) -> UnboundedReceiver<Bytes> {
        let (events, receiver) = unbounded_channel();
        for (name, kind, fields) in kinds {
            // The receiver is here.
            let _ = events.send(initial(store, name, kind, fields.as_ref()));
            let watcher =
                Watcher { kind: name.clone(), fields: fields.clone(), events: events.clone() };
            self.0.push(watcher);
        }
        receiver
    }

    /// Reports what has changed.
    pub(super) fn report(&mut self, store: &Store, changes: &[Change]) {
        for change in changes {
            for watcher in self.0.iter().filter(|watcher| watcher.kind == change.kind.field()) {
                // Who is gone is left out below.
                let _ = watcher.events.send(event(store, change, watcher.fields.as_ref()));
            }
        }
        self.0.retain(|watcher| !watcher.events.is_closed());
    }

    /// A line that says nothing, so that both sides see that the other is there.
    pub(super) fn keep_alive(&mut self) {
        for watcher in &self.0 {
            // As above.
            let _ = watcher.events.send(Bytes::from_static(b":\n\n"));
        }
        self.0.retain(|watcher| !watcher.events.is_closed());
    }

    pub(super) fn end(&mut self, how: WatchEnd) {
        for watcher in std::mem::take(&mut self.0) {
            let last = match how {
                WatchEnd::Stop => {
                    let kind = watcher.kind.replace('_', "-");
                    pack(
                        "stop",
                        &json!({ kind: {"error": "dbe_read failure: a fault of the test"} }),
                    )
                }
                WatchEnd::Cut => Bytes::new(),
            };
            // As above.
            let _ = watcher.events.send(last);
        }
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.0.iter().filter(|watcher| !watcher.events.is_closed()).count()
    }
}

fn initial(store: &Store, name: &str, kind: &Kind, fields: Option<&Vec<String>>) -> Bytes {
    let wanted = fields.map_or(Fields::OWN, |fields| Fields::Only(fields.clone()));
    // The list is kept under this name alone; under the other it is empty.
    let objects = store.of(kind).filter(|object| object.kind.field() == name);
    let objects: Vec<Value> = objects
        .map(|one| json!({ kind.name: render::object(store, one, &wanted, None) }))
        .collect();
    pack("init", &json!({ format!("{}s", kind.name): objects }))
}

fn event(store: &Store, change: &Change, fields: Option<&Vec<String>>) -> Bytes {
    let kind = change.kind.name;
    let object = store.by_uuid(&change.uuid);
    let (name, shown) = match (object, change.operation) {
        (None, _) | (_, Operation::Delete) => ("delete", json!({"uuid": change.uuid})),
        (Some(object), operation) => {
            let all = render::object(store, object, &Fields::EVERYTHING, None);
            let name = if operation == Operation::Create { "create" } else { "update" };
            (name, fields.map_or(all.clone(), |fields| narrowed(&all, fields)))
        }
    };
    pack(name, &json!({ kind: shown }))
}

/// The fields that identify it, null or not, and those that are wanted.
fn narrowed(all: &Value, fields: &[String]) -> Value {
    let identity = ["uuid", "fq_name", "parent_type", "parent_uuid"];
    let mut shown: Map<String, Value> = identity
        .map(|name| (name.to_owned(), all.get(name).cloned().unwrap_or(Value::Null)))
        .into_iter()
        .collect();
    for field in fields {
        if let Some(value) = all.get(field) {
            shown.insert(field.clone(), value.clone());
        }
    }
    Value::Object(shown)
}

fn pack(event: &str, data: &Value) -> Bytes {
    format!("event: {event}\ndata: {data}\n\n").into()
}
