//! The clients of Config APIs: one for each way, which all objects share that go it, with its token and one watch. What a
//! watch reports has all of them looked at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::keystone::Keystone;
use opensdn_config_api::watch::{Change, Timing, Watch};
use opensdn_http_client::HttpClient;
use opensdn_runtime::error_chain;
use tokio::task::AbortHandle;

use super::connection::{Error, Texts, Way};

const CONNECT: Duration = Duration::from_secs(10);
/// Of each call with all its repetitions.
const CALL: Duration = Duration::from_secs(15);

/// An object that has something in a cloud.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Its UID.
    pub(super) uid: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl User {
    fn of(kind: &str, object: &DynamicObject) -> Self {
        Self {
            uid: object.uid().unwrap_or_default(),
            kind: kind.to_owned(),
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        }
    }
}

/// Between two changes that a watch reports.
const PAUSE: Duration = Duration::from_secs(1);

/// All clients, by the version of the way.
pub(super) struct Connections {
    all: Arc<Mutex<HashMap<String, Connection>>>,
    changed: UnboundedSender<User>,
    /// Until it is taken.
    changes: Mutex<Option<UnboundedReceiver<User>>>,
    may_write: MayWrite,
}

/// Whether this replica may still change something.
pub(super) type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;

struct Connection {
    api: Arc<ConfigApi>,
    record: Option<String>,
    users: Vec<User>,
    watch: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Connections {
    /// None yet. By none of them anything is written while `may_write` says no.
    pub(super) fn new(may_write: MayWrite) -> Self {
        let (changed, changes) = unbounded();
        Self { all: Arc::default(), changed, changes: Mutex::new(Some(changes)), may_write }
    }

    /// The client of the object, which goes that way and no other from now on.
    pub(super) fn client(
        &self,
        kind: &str,
        object: &DynamicObject,
        way: Way,
    ) -> Result<Arc<ConfigApi>, Error> {
        let user = User::of(kind, object);
        let mut all = lock(&self.all);
        all.retain(|version, connection| {
            connection.users.retain(|other| other.uid != user.uid || *version == way.version);
            !connection.users.is_empty()
        });
        if let Some(connection) = all.get_mut(&way.version) {
            if !connection.users.contains(&user) {
                connection.users.push(user);
            }
            return Ok(connection.api.clone());
        }
        let version = way.version.clone();
        let record = way.record.clone();
        let may_write = self.may_write.clone();
        let api = Arc::new(connect(way)?.only_while(move || may_write()));
        let watch = self.watch(version.clone(), api.clone());
        all.insert(version, Connection { api: api.clone(), record, users: vec![user], watch });
        Ok(api)
    }

    /// The client that the object had last, for when its Secrets are gone before it, and the record that it continued.
    pub(super) fn last(&self, uid: &str) -> Option<(Arc<ConfigApi>, Option<String>)> {
        let all = lock(&self.all);
        let is = |one: &&Connection| one.users.iter().any(|user| user.uid == uid);
        all.values().find(is).map(|one| (one.api.clone(), one.record.clone()))
    }

    /// The objects whose clouds have changed, or answer again.
    pub(super) fn changes(&self) -> Option<UnboundedReceiver<User>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn forget(&self, uid: &str) {
        lock(&self.all).retain(|_, connection| {
            connection.users.retain(|user| user.uid != uid);
            !connection.users.is_empty()
        });
    }

    fn watch(&self, version: String, api: Arc<ConfigApi>) -> AbortHandle {
        let (all, changed) = (self.all.clone(), self.changed.clone());
        let run = async move {
            let mut watch = Watch::new(api, Timing::default());
            loop {
                match watch.changed().await {
                    Change::Changed => {
                        let users = lock(&all).get(&version).map(|one| one.users.clone());
                        for user in users.unwrap_or_default() {
                            // An error means that the process ends.
                            let _ = changed.unbounded_send(user);
                        }
                        // A server that reports changes without an end takes no core.
                        tokio::time::sleep(PAUSE).await;
                    }
                    Change::Unreachable(error) => {
                        tracing::debug!(
                            error = error_chain(&error),
                            "failed to watch a Config API"
                        );
                    }
                }
            }
        };
        tokio::spawn(run).abort_handle()
    }
}

fn connect(way: Way) -> Result<ConfigApi, Error> {
    let keystone = match way.credentials {
        Some(credentials) => {
            let http = HttpClient::new(way.keystone_trust, CONNECT)?;
            Some(Keystone::new(http, credentials)?)
        }
        None => None,
    };
    let http = HttpClient::new(way.trust, CONNECT)?;
    let api = ConfigApi::new(http, &way.addresses, keystone, CALL)?;
    Ok(match way.texts {
        Texts::Shown => api,
        Texts::Hidden => api.without_texts(),
    })
}

fn lock(all: &Mutex<HashMap<String, Connection>>) -> MutexGuard<'_, HashMap<String, Connection>> {
    // A map of whole entries cannot be left half changed.
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use opensdn_http_client::Trust;
    use serde_json::json;

    use super::*;

    fn object(uid: &str) -> DynamicObject {
        serde_json::from_value(
            json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
            "metadata": {"name": uid, "namespace": "tf", "uid": uid}}),
        )
        .unwrap()
    }

    fn way(version: &str) -> Way {
        Way {
            addresses: vec!["http://127.0.0.1:9".to_owned()],
            trust: Trust::of_none(),
            keystone_trust: Trust::of_none(),
            credentials: None,
            record: None,
            texts: Texts::Shown,
            version: version.to_owned(),
        }
    }

    #[tokio::test]
    async fn objects_with_one_way_share_a_client_and_a_way_that_none_goes_ends() {
        let connections = Connections::new(Arc::new(|| true));
        let first = connections.client("LinkLocalService", &object("a"), way("1")).unwrap();
        let second = connections.client("LinkLocalService", &object("b"), way("1")).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let other = connections.client("LinkLocalService", &object("b"), way("2")).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(lock(&connections.all).len(), 2);
        connections.forget("a");
        assert_eq!(lock(&connections.all).keys().collect::<Vec<_>>(), ["2"]);
        connections.forget("b");
        assert!(lock(&connections.all).is_empty());
    }
}
