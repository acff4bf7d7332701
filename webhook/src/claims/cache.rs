//! The claims that exist, as far as the watch has shown them, and for how long each has not changed.
//! Nothing here proves that a claim does not exist.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use kube::{Client, Resource as _, ResourceExt as _};
use opensdn_crds::unique_claim::{UniqueClaim, UniqueClaimSpec};
use opensdn_policy_host::Claim;
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::Instant;

use super::Holder;

/// How often a quiet watch has to be answered.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// A claim as the watch showed it.
#[derive(Clone, Debug)]
pub(crate) struct CachedClaim {
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) spec: UniqueClaimSpec,
    /// Since when it has been as it is, by our own clock.
    pub(crate) since: Instant,
}

/// The claims that exist.
pub(crate) struct Cache {
    claims: RwLock<HashMap<String, CachedClaim>>,
    synced: Sender<bool>,
    /// Names of claims that changed since the controller last asked; none while there is none.
    journal: Mutex<Option<HashSet<String>>>,
    written: Notify,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            claims: RwLock::default(),
            synced: Sender::new(false),
            journal: Mutex::default(),
            written: Notify::new(),
        }
    }
}

impl Cache {
    /// Whether the claim, which this very object makes, is known to be its own or shared by it.
    pub(crate) fn is_of(&self, name: &str, holder: &Holder, claim: &Claim) -> bool {
        self.read(name, |seen| {
            let is_holder = holder.is_same_object(&seen.spec.holder)
                && seen.spec.holder.uid.as_deref() == Some(&holder.uid);
            let is_shared =
                seen.spec.shared == Some(true) && claim.shares_with(seen.spec.value.as_deref());
            // Without a value it shares the key with none.
            let is_alone = seen.spec.value.is_none() || seen.spec.value == claim.value;
            is_shared || (is_holder && is_alone)
        })
        .unwrap_or_default()
    }

    /// For how long the claim is known to have been as it is in that version.
    pub(crate) fn unchanged(&self, name: &str, version: &str) -> Option<Duration> {
        self.read(name, |seen| (seen.version == version).then(|| seen.since.elapsed()))?
    }

    /// The claim as the watch showed it last.
    pub(crate) fn get(&self, name: &str) -> Option<CachedClaim> {
        self.read(name, Clone::clone)
    }

    /// Whether all claims have been listed.
    pub(crate) fn synced(&self) -> Receiver<bool> {
        self.synced.subscribe()
    }

    /// Starts to record which claims change; all that exist count as changed. There is one
    /// controller, so there is one journal.
    pub(crate) fn start_journal(&self) {
        let claims = self.claims.read().unwrap_or_else(PoisonError::into_inner);
        let names = claims.keys().cloned().collect();
        drop(claims);
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = Some(names);
        self.written.notify_one();
    }

    /// Ends it.
    pub(crate) fn end_journal(&self) {
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits for claims to change, and which they are.
    pub(crate) async fn changed(&self) -> HashSet<String> {
        loop {
            let names = self.take_journal();
            if !names.is_empty() {
                return names;
            }
            self.written.notified().await;
        }
    }

    fn take_journal(&self) -> HashSet<String> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn read<T>(&self, name: &str, read: impl FnOnce(&CachedClaim) -> T) -> Option<T> {
        self.claims.read().unwrap_or_else(PoisonError::into_inner).get(name).map(read)
    }

    /// Watches the claims for as long as it is polled.
    pub(crate) async fn watch(&self, client: Client) {
        let spec = WatchSpec {
            path: UniqueClaim::url_path(&(), None),
            name: None,
            label_selector: String::new(),
            metadata_only: false,
            heartbeat: HEARTBEAT,
        };
        let mut listed = HashSet::new();
        let mut events = watch(client, spec);
        while let Some(event) = events.recv().await {
            self.apply(event, &mut listed);
        }
    }

    /// Takes in what the watch shows. `listed` are the names of a list in progress.
    fn apply(&self, event: Event, listed: &mut HashSet<String>) {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => {
                listed.extend(read(object).map(|claim| {
                    let name = claim.name_any();
                    self.put(claim);
                    name
                }));
            }
            Event::InitDone(_) => {
                self.retain(listed);
                listed.clear();
                self.synced.send_replace(true);
            }
            Event::Apply(object) => {
                let name = name(&object);
                match read(object) {
                    Some(claim) => self.put(claim),
                    // What it was before proves nothing about what it is now.
                    None => self.remove(&name),
                }
            }
            Event::Delete(object) => self.remove(&name(&object)),
            // While disconnected every claim costs a live read.
            Event::Heartbeat | Event::Disconnected { .. } => {}
        }
    }

    fn put(&self, claim: UniqueClaim) {
        let name = claim.name_any();
        let uid = claim.metadata.uid.unwrap_or_default();
        let version = claim.metadata.resource_version.unwrap_or_default();
        let mut claims = self.claims.write().unwrap_or_else(PoisonError::into_inner);
        if claims.get(&name).is_some_and(|seen| seen.uid == uid && seen.version == version) {
            return;
        }
        claims.insert(
            name.clone(),
            CachedClaim { uid, version, spec: claim.spec, since: Instant::now() },
        );
        drop(claims);
        self.note([name]);
    }

    fn remove(&self, name: &str) {
        let mut claims = self.claims.write().unwrap_or_else(PoisonError::into_inner);
        claims.remove(name);
        drop(claims);
        self.note([name.to_owned()]);
    }

    fn retain(&self, listed: &HashSet<String>) {
        let mut claims = self.claims.write().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<String> =
            claims.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in &gone {
            claims.remove(name);
        }
        drop(claims);
        self.note(gone);
    }

    fn note(&self, names: impl IntoIterator<Item = String>) {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(journal) = &mut *journal {
            journal.extend(names);
            self.written.notify_one();
        }
    }
}

fn name(object: &Value) -> String {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}

/// A claim that cannot be read is none here, so that it costs a live read.
fn read(object: Value) -> Option<UniqueClaim> {
    serde_json::from_value(object)
        .inspect_err(|error| tracing::warn!(%error, "failed to read a UniqueClaim"))
        .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_that_cannot_be_read_any_more_is_not_known_to_be_anybodys() {
        let (cache, mut listed) = (Cache::default(), HashSet::new());
        let claim = |spec: Value| {
            Event::Apply(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "UniqueClaim",
                "metadata": {"name": "c", "uid": "u", "resourceVersion": "1"}, "spec": spec}))
        };
        let holder = json!({"group": "g", "kind": "Thing", "name": "a", "uid": "ua"});
        cache.apply(claim(json!({"scope": "s", "key": "k", "holder": holder})), &mut listed);
        let holder = Holder {
            group: "g".into(),
            kind: "Thing".into(),
            name: "a".into(),
            uid: "ua".into(),
            ..Holder::default()
        };
        let wanted = Claim {
            scope: "s".into(),
            key: "k".into(),
            value: None,
            pointer: String::new(),
            policy: String::new(),
            code: String::new(),
        };
        assert!(cache.is_of("c", &holder, &wanted));
        cache.apply(claim(json!({"scope": 7})), &mut listed);
        assert!(!cache.is_of("c", &holder, &wanted));
        assert!(cache.get("c").is_none());
    }
}
