//! `/watch`: the list, and then each change, as server-sent events (`event_dispatcher.py`).

use hyper::body::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::faults::WatchFault;
use super::render::{self, Fields};
use super::schema::Kind;
use super::store::{Change, Operation, Store};

/// How a test ends the watches that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// `event: stop`, and the end of the answer.
    Stop,
    /// The connection ends between two events.
    Cut,
    /// The connection ends in the middle of an event.
    CutInEvent,
}

#[derive(Debug)]
struct Watcher {
    /// With the name under which changes are reported: `global_vrouter_config`. With any other none is.
    kind: String,
    fields: Option<Vec<String>>,
    events: UnboundedSender<Bytes>,
    fault: Option<WatchFault>,
}

#[derive(Debug, Default)]
pub(super) struct Watchers {
    all: Vec<Watcher>,
    kept_alive: usize,
}

impl Watchers {
    /// A watch of some types, by the names that the client gave, each with the fields it wants. With a fault it is silent.
    pub(super) fn add(
        &mut self,
        store: &Store,
        kinds: &[(String, &'static Kind, Option<Vec<String>>)],
        fault: Option<WatchFault>,
    ) -> UnboundedReceiver<Bytes> {
        let (events, receiver) = unbounded_channel();
        for (name, kind, fields) in kinds {
            if fault != Some(WatchFault::Mute) {
                // The receiver is here.
                let _ = events.send(initial(store, name, kind, fields.as_ref()));
            }
            let (kind, fields) = (name.clone(), fields.clone());
            let watcher = Watcher { kind, fields, events: events.clone(), fault };
            self.all.push(watcher);
        }
        receiver
    }

    /// Reports what has changed.
    pub(super) fn report(&mut self, store: &Store, changes: &[Change]) {
        for change in changes {
            let is_for = |watcher: &&Watcher| watcher.kind == change.kind.field();
            for watcher in self.audible().filter(is_for) {
                // Who is gone is left out below.
                let _ = watcher.events.send(event(store, change, watcher.fields.as_ref()));
            }
        }
        self.all.retain(|watcher| !watcher.events.is_closed());
    }

    /// A line that says nothing, so that both sides see that the other is there.
    pub(super) fn keep_alive(&mut self) {
        self.kept_alive += 1;
        for watcher in self.audible() {
            // As above.
            let _ = watcher.events.send(Bytes::from_static(b":\n\n"));
        }
        self.all.retain(|watcher| !watcher.events.is_closed());
    }

    fn audible(&self) -> impl Iterator<Item = &Watcher> {
        self.all.iter().filter(|watcher| watcher.fault.is_none())
    }

    pub(super) fn end(&mut self, how: WatchEnd) {
        for watcher in std::mem::take(&mut self.all) {
            let last = match how {
                WatchEnd::Stop => {
                    let kind = watcher.kind.replace('_', "-");
                    pack(
                        "stop",
                        &json!({ kind: {"error": "dbe_read failure: a fault of the test"} }),
                    )
                }
                WatchEnd::CutInEvent => {
                    // As above.
                    let _ = watcher.events.send(Bytes::from_static(b"event: update\ndata: {\"glo"));
                    Bytes::new()
                }
                WatchEnd::Cut => Bytes::new(),
            };
            // As above.
            let _ = watcher.events.send(last);
        }
    }

    /// How often they were kept alive.
    pub(super) fn kept_alive(&self) -> usize {
        self.kept_alive
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.all.iter().filter(|watcher| !watcher.events.is_closed()).count()
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
