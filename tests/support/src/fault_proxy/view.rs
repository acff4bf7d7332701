//! What is shown of the cluster, where that is not what it is: frozen at a moment, or without some events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::request::Asked;

/// A moment of the cluster's history, by its resourceVersion, which counts through all resources of one etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(super) u64);

/// What is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Watches, and lists that take what a cache has (`resourceVersion=0`): so does an API server that lags.
    Watches,
    /// The lists by which clients begin to watch, too, which have a limit: so sees it who starts.
    Lists,
    /// All other lists, and the reads of single objects: what is read again to be sure is of the past as well.
    Everything,
}

/// How a view thaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thaw {
    /// What was held back comes, in its order.
    Deliver,
    /// Watches end with the error 410, so that all is listed again.
    Expire,
}

/// A frozen view.
#[derive(Clone, Debug)]
pub(super) struct Frozen {
    pub(super) at: Moment,
    /// By their plurals; all, if there are none.
    pub(super) resources: Vec<String>,
    pub(super) reach: Reach,
}

impl Frozen {
    pub(super) fn covers(&self, asked: &Asked) -> bool {
        let is_meant = self.resources.is_empty() || self.resources.contains(&asked.resource);
        is_meant && asked.is_read() && !asked.resource.is_empty() && !asked.is_of_lease()
    }

    /// Whether such a read is answered from the past, watches apart.
    pub(super) fn answers(&self, asked: &Asked) -> bool {
        let least = match (asked.is_list(), asked.parameter("resourceVersion")) {
            (true, Some("0")) => Reach::Watches,
            (true, _) if asked.parameter("limit").is_some() => Reach::Lists,
            (_, _) => Reach::Everything,
        };
        // The next page of a list is of the time of the first.
        let is_first = asked.parameter("continue").is_none_or(str::is_empty);
        // Of no moment yet: it is being asked for.
        let is_at_work = self.at > Moment(0);
        self.covers(asked)
            && self.reach >= least
            && is_first
            && is_at_work
            && asked.subresource.is_empty()
    }
}

type Predicate = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// What all watches have to know.
#[derive(Clone, Default)]
pub(super) struct View {
    pub(super) frozen: Option<Frozen>,
    /// How often it has thawed so that watches expire.
    pub(super) expired: u64,
    /// Of which objects no event comes, by the number of the wish.
    pub(super) withheld: BTreeMap<u64, Predicate>,
    /// Whose last event comes after all.
    pub(super) delivered: BTreeSet<u64>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let withheld = self.withheld.keys().collect::<Vec<_>>();
        f.debug_struct("View").field("frozen", &self.frozen).field("withheld", &withheld).finish()
    }
}

impl View {
    /// The moment that a watch has come to, if it is frozen.
    pub(super) fn frozen_for(&self, asked: &Asked) -> Option<Moment> {
        self.frozen.as_ref().filter(|frozen| frozen.covers(asked)).map(|frozen| frozen.at)
    }

    /// By whose wish an event of that object does not come.
    pub(super) fn withholds(&self, object: &Value) -> Option<u64> {
        self.withheld.iter().find(|(_, is_meant)| is_meant(object)).map(|(number, _)| *number)
    }
}

/// The events of one object that did not come, as one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lost {
    /// By whose wish.
    by: u64,
    is_known: bool,
    last: Value,
}

/// The events that did not come, by what is followed and the object.
#[derive(Debug, Default)]
pub(super) struct AllLost(BTreeMap<String, BTreeMap<String, Lost>>);

impl AllLost {
    /// One more is lost.
    pub(super) fn add(&mut self, follows: &str, by: u64, event: Value) {
        let (namespace, name) = ("/object/metadata/namespace", "/object/metadata/name");
        let key = format!("{}/{}", text(&event, namespace), text(&event, name));
        let all = self.0.entry(follows.to_owned()).or_default();
        let is_known = all
            .get(&key)
            .map_or_else(|| text(&event, "/type") != "ADDED", |before| before.is_known);
        all.insert(key, Lost { by, is_known, last: event });
    }

    /// Whether any is lost of what is followed.
    pub(super) fn has(&self, follows: &str) -> bool {
        self.0.get(follows).is_some_and(|all| !all.is_empty())
    }

    /// Who lists all knows what it did not see before.
    pub(super) fn listed(&mut self, follows: &str) {
        self.0.remove(follows);
    }

    /// Takes out what is to come after all, as an API server says it after a gap: what came and went is not said.
    pub(super) fn take(&mut self, follows: &str, view: &View) -> Vec<Value> {
        let Some(all) = self.0.get_mut(follows) else { return Vec::new() };
        let mut events = Vec::new();
        all.retain(|_, lost| {
            if view.withheld.contains_key(&lost.by) {
                return true;
            }
            let is_gone = text(&lost.last, "/type") == "DELETED";
            if view.delivered.contains(&lost.by) && (lost.is_known || !is_gone) {
                let mut event = lost.last.take();
                let type_ = if lost.is_known { "MODIFIED" } else { "ADDED" };
                if let Some(said) = event.get_mut("type").filter(|_| !is_gone) {
                    *said = type_.into();
                }
                events.push(event);
            }
            false
        });
        events
    }
}

/// A text in JSON; empty, where it is not there.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;

    fn asked(uri: &str) -> Asked {
        Asked::new(&Method::GET, &uri.parse().unwrap())
    }

    #[test]
    fn how_far_a_frozen_view_reaches() {
        let answers = |reach, uri| {
            let resources = vec!["pods".to_owned()];
            Frozen { at: Moment(7), resources, reach }.answers(&asked(uri))
        };
        let (list, cached) = ("/api/v1/pods?limit=1", "/api/v1/pods?resourceVersion=0");
        let (one, again) = ("/api/v1/namespaces/tf/pods/a", "/api/v1/pods?labelSelector=a");
        for (reach, expected) in [
            (Reach::Watches, [false, true, false, false]),
            (Reach::Lists, [true, true, false, false]),
            (Reach::Everything, [true, true, true, true]),
        ] {
            assert_eq!(
                [list, cached, one, again].map(|uri| answers(reach, uri)),
                expected,
                "{reach:?}"
            );
        }
        assert!(!answers(Reach::Everything, "/api/v1/nodes"), "of others nothing is frozen");
        assert!(!answers(Reach::Everything, "/api/v1/pods?continue=token"), "it is of that time");
    }

    #[test]
    fn of_the_events_of_an_object_that_did_not_come_the_last_comes_later_as_one() {
        let event = |type_: &str, number: u64| json!({"type": type_, "object": {"metadata": {"name": "a", "resourceVersion": number}}});
        let merged = |events: &[&str]| {
            let (mut lost, mut view) = (AllLost::default(), View::default());
            view.withheld.insert(1, Arc::new(|_: &Value| true));
            for (number, type_) in (0..).zip(events) {
                lost.add("pods", 1, event(type_, number));
            }
            assert_eq!(lost.take("pods", &view), Vec::<Value>::new(), "not yet");
            view.withheld.clear();
            view.delivered.insert(1);
            let said = lost.take("pods", &view);
            assert!(!lost.has("pods"));
            said.first().map(|event| event["type"].as_str().unwrap_or_default().to_owned())
        };
        assert_eq!(merged(&["ADDED", "MODIFIED"]).as_deref(), Some("ADDED"));
        assert_eq!(merged(&["MODIFIED", "MODIFIED"]).as_deref(), Some("MODIFIED"));
        assert_eq!(merged(&["MODIFIED", "DELETED"]).as_deref(), Some("DELETED"));
        assert_eq!(merged(&["DELETED", "ADDED"]).as_deref(), Some("MODIFIED"));
        assert_eq!(merged(&["ADDED", "DELETED"]), None, "it was never known");
    }
}
