//! Which kinds the API server serves, and under which path. Read again whenever a
//! CustomResourceDefinition changes, so that a kind that did not exist yet is known at once, and
//! every few seconds for the sake of aggregated APIs, which announce themselves by nothing.
//!
//! An API server that has just started lists only some of its kinds for a moment. Taken at its
//! word, it would empty lookup caches, and good objects would be refused. So a kind is absent
//! only if no definition of it is stored either; which are stored is known from their watch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::core::discovery::v2::APIGroupDiscoveryList;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::call::CallFailure;
use crate::error_chain;
use crate::watch::{WatchSpec, watch as start_watch};

mod definitions;

use definitions::Definitions;

/// A kind that the API server serves, in its preferred version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// API group; `""` is the core group.
    pub group: String,
    /// Preferred version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural name, as in paths and rules.
    pub plural: String,
    /// All versions, the preferred one first.
    pub versions: Vec<String>,
}

impl Resource {
    /// Path of the collection over all namespaces.
    pub fn path(&self) -> String {
        let Self { group, version, plural, .. } = self;
        if group.is_empty() {
            format!("/api/{version}/{plural}")
        } else {
            format!("/apis/{group}/{version}/{plural}")
        }
    }
}

/// What is known of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It is served.
    Served(Resource),
    /// The API server serves no such kind.
    Absent,
    /// It cannot be known, and why.
    Unknown(String),
}

/// What the API server said last.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When it said so.
    pub read_at: Option<Instant>,
    failure: Option<String>,
    served: HashMap<(String, String), Resource>,
    stale_groups: Vec<String>,
    /// Since when served kinds without a stored definition are not listed any more.
    missing: HashMap<(String, String), Instant>,
    /// `None` until they were read.
    definitions: Option<Definitions>,
}

impl Snapshot {
    /// What is known of the kind.
    pub fn find(&self, group: &str, kind: &str) -> Resolution {
        if let Some(resource) = self.served.get(&(group.to_owned(), kind.to_owned())) {
            return Resolution::Served(resource.clone());
        }
        if self.stale_groups.iter().any(|stale| stale == group) {
            return Resolution::Unknown(format!(
                "the API server that serves the group {group} is away"
            ));
        }
        if let Some(why) = &self.failure {
            return Resolution::Unknown(format!("the served kinds cannot be read: {why}"));
        }
        let (Some(definitions), Some(_)) = (&self.definitions, self.read_at) else {
            return Resolution::Unknown("the served kinds have not been read yet".to_owned());
        };
        let is_served = |plural: &str| {
            self.served.values().any(|one| one.group == group && one.plural == plural)
        };
        match definitions.of_group(group).find(|plural| !is_served(plural)) {
            Some(plural) => Resolution::Unknown(format!(
                "the CustomResourceDefinition {plural}.{group} exists, but the API server does \
                 not serve it (yet)"
            )),
            None => Resolution::Absent,
        }
    }

    /// The kinds of a group that are served.
    pub fn kinds_of(&self, group: &str) -> Vec<String> {
        let is_of_group = |(other, _): &&(String, String)| other == group;
        self.served.keys().filter(is_of_group).map(|(_, kind)| kind.clone()).collect()
    }

    /// Fills the table from what the API server answered, preferred versions first.
    fn read(lists: Vec<APIGroupDiscoveryList>) -> Self {
        let mut table = Self { read_at: Some(Instant::now()), ..Self::default() };
        for group in lists.into_iter().flat_map(|list| list.items) {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            for version in group.versions {
                if version.freshness.as_deref() == Some("Stale") {
                    table.stale_groups.push(name.clone());
                }
                let number = version.version.unwrap_or_default();
                for resource in version.resources {
                    let Some(kind) = resource.response_kind.and_then(|kind| kind.kind) else {
                        continue;
                    };
                    let Some(plural) = resource.resource else { continue };
                    if !resource.verbs.iter().any(|verb| verb == "list") {
                        continue;
                    }
                    let served = table.served.entry((name.clone(), kind.clone()));
                    let served = served.or_insert_with(|| Resource {
                        group: name.clone(),
                        version: number.clone(),
                        kind,
                        plural,
                        versions: Vec::new(),
                    });
                    served.versions.push(number.clone());
                }
            }
        }
        table
    }
}

/// The served kinds; cheap to clone.
#[derive(Clone)]
pub struct Discovery {
    table: watch::Receiver<Arc<Snapshot>>,
    invalidated: Arc<Notify>,
}

impl Discovery {
    /// Starts to read, at least every `poll`.
    pub fn start(client: Client, poll: Duration) -> Self {
        let (sender, table) = watch::channel(Arc::default());
        let invalidated = Arc::new(Notify::new());
        tokio::spawn(keep(client, poll, sender, Arc::clone(&invalidated)));
        Self { table, invalidated }
    }

    /// What is known now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.table.borrow().clone()
    }

    /// Ticks when the kinds were read, changed or not.
    pub fn changed(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.table.clone()
    }

    /// An answer does not fit what is known: it is read again soon.
    pub fn invalidate(&self) {
        self.invalidated.notify_one();
    }

    pub fn fixed(resources: Vec<Resource>) -> Self {
        let served = resources
            .into_iter()
            .map(|resource| ((resource.group.clone(), resource.kind.clone()), resource))
            .collect();
        let definitions = Some(Definitions::default());
        let table =
            Snapshot { read_at: Some(Instant::now()), served, definitions, ..Snapshot::default() };
        let (_, table) = watch::channel(Arc::new(table));
        Self { table, invalidated: Arc::default() }
    }
}

/// A definition is established some time before discovery lists it, so one change makes several
/// readings.
const AFTER_CHANGE: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(300),
    Duration::from_millis(1000),
    Duration::from_millis(3000),
];

async fn keep(
    client: Client,
    poll: Duration,
    sender: watch::Sender<Arc<Snapshot>>,
    invalidated: Arc<Notify>,
) {
    let spec = WatchSpec {
        path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        name: None,
        label_selector: String::new(),
        metadata_only: true,
        heartbeat: poll,
    };
    let mut changes = start_watch(client.clone(), spec);
    let mut definitions = definitions::Following::default();
    let mut due = vec![Instant::now()];
    while !sender.is_closed() {
        let now = Instant::now();
        let next = due.iter().min().copied().unwrap_or(now + poll);
        let changed = tokio::select! {
            change = changes.recv() => change.is_some_and(|change| definitions.apply(&change)),
            () = invalidated.notified() => true,
            () = sleep_until(next) => {
                due.retain(|time| *time > next);
                let table = read(&client).await;
                let known = definitions.known().cloned();
                sender.send_modify(|old| *old = Arc::new(merge(old, table, known)));
                if due.is_empty() {
                    due.push(Instant::now() + poll);
                }
                false
            }
        };
        if changed {
            due = AFTER_CHANGE.iter().map(|after| Instant::now() + *after).collect();
        }
    }
}

async fn read(client: &Client) -> Result<Snapshot, String> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let calls = futures::future::try_join(client.list_core_api_versions_aggregated(), async {
        client.list_api_groups_aggregated().await
    });
    match timeout(TIMEOUT, calls).await {
        Ok(Ok((core, groups))) => Ok(Snapshot::read(vec![core, groups])),
        Ok(Err(error)) => Err(error_chain(&CallFailure::from(error))),
        Err(_) => Err("the API server does not answer".to_owned()),
    }
}

/// How long a kind that has no definition of its own (an aggregated API) may be missing from the
/// list before it is believed gone: longer than an API server takes to start.
const GRACE: Duration = Duration::from_secs(60);

/// What was served stays served until there is an answer that says otherwise.
fn merge(
    old: &Snapshot,
    new: Result<Snapshot, String>,
    definitions: Option<Definitions>,
) -> Snapshot {
    let mut table = match new {
        Ok(table) => table,
        Err(why) => {
            tracing::debug!(why, "failed to read the served kinds");
            return Snapshot { failure: Some(why), definitions, ..old.clone() };
        }
    };
    let now = table.read_at.unwrap_or_else(Instant::now);
    for (key, resource) in &old.served {
        if table.served.contains_key(key) {
            continue;
        }
        let is_defined = |definitions: &Option<Definitions>| {
            definitions.as_ref().is_some_and(|all| all.has(&resource.group, &resource.plural))
        };
        let is_stale = table.stale_groups.contains(&key.0);
        let was_deleted = is_defined(&old.definitions) && !is_defined(&definitions);
        let since = old.missing.get(key).copied().unwrap_or(now);
        let is_missed = !was_deleted && now.saturating_duration_since(since) < GRACE;
        if is_stale || is_defined(&definitions) || is_missed {
            table.served.insert(key.clone(), resource.clone());
            table.missing.insert(key.clone(), since);
        }
    }
    table.definitions = definitions;
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(freshness: &str, resources: &serde_json::Value) -> APIGroupDiscoveryList {
        serde_json::from_value(json!({"items": [{"metadata": {"name": "g"}, "versions": [
            {"version": "v2", "freshness": freshness, "resources": resources},
            {"version": "v1", "freshness": "Current", "resources": resources},
        ]}]}))
        .unwrap()
    }

    fn things() -> serde_json::Value {
        json!([{"resource": "things", "verbs": ["list"],
            "responseKind": {"group": "g", "version": "v2", "kind": "Thing"}}])
    }

    #[test]
    fn the_preferred_version_of_a_kind_is_known_and_others_are_absent() {
        let table = read(vec![list("Current", &things())], &[]);
        let Resolution::Served(resource) = table.find("g", "Thing") else { panic!("not served") };
        assert_eq!(resource.path(), "/apis/g/v2/things");
        assert_eq!(table.find("g", "Other"), Resolution::Absent);
    }

    #[test]
    fn nothing_is_absent_before_the_kinds_were_read_or_when_their_server_is_away() {
        assert!(matches!(Snapshot::default().find("g", "Thing"), Resolution::Unknown(_)));
        let known = read(vec![list("Current", &things())], &[]);
        let stale = Snapshot::read(vec![list("Stale", &json!([]))]);
        let stale = merge(&known, Ok(stale), Some(Definitions::default()));
        assert!(matches!(stale.find("g", "Thing"), Resolution::Served(_)));
        assert!(matches!(stale.find("g", "Other"), Resolution::Unknown(_)));
        let failed = merge(&known, Err("no".to_owned()), Some(Definitions::default()));
        assert!(matches!(failed.find("g", "Thing"), Resolution::Served(_)));
        assert!(matches!(failed.find("g", "Other"), Resolution::Unknown(_)));
        let unlisted = merge(&Snapshot::default(), Ok(Snapshot::read(vec![])), None);
        assert!(matches!(unlisted.find("g", "Thing"), Resolution::Unknown(_)));
    }

    #[test]
    fn an_api_server_that_has_just_started_is_not_believed_that_defined_kinds_are_absent() {
        let known = read(vec![list("Current", &things())], &["things.g"]);
        let started =
            merge(&known, Ok(Snapshot::read(vec![])), Some(Definitions::of(&["things.g"])));
        assert!(matches!(started.find("g", "Thing"), Resolution::Served(_)));
        let both_new = read(vec![], &["things.g"]);
        let Resolution::Unknown(why) = both_new.find("g", "Thing") else { panic!("it is known") };
        assert!(why.contains("things.g exists"), "{why}");
        assert_eq!(both_new.find("h", "Thing"), Resolution::Absent);
        let deleted = merge(&started, Ok(Snapshot::read(vec![])), Some(Definitions::default()));
        assert_eq!(deleted.find("g", "Thing"), Resolution::Absent);
    }

    #[test]
    fn an_aggregated_kind_is_believed_gone_after_a_grace() {
        let known = read(vec![list("Current", &things())], &[]);
        let missed = merge(&known, Ok(Snapshot::read(vec![])), Some(Definitions::default()));
        assert!(matches!(missed.find("g", "Thing"), Resolution::Served(_)));
        let mut later = Snapshot::read(vec![]);
        later.read_at = Some(Instant::now() + GRACE + Duration::from_secs(1));
        let gone = merge(&missed, Ok(later), Some(Definitions::default()));
        assert_eq!(gone.find("g", "Thing"), Resolution::Absent);
    }

    fn read(lists: Vec<APIGroupDiscoveryList>, definitions: &[&str]) -> Snapshot {
        let definitions = Some(Definitions::of(definitions));
        merge(&Snapshot::default(), Ok(Snapshot::read(lists)), definitions)
    }
}
