//! The bytes of modules, and their changes: ConfigMaps are watched, files are looked at twice a
//! second. What has been read stays until something else could be read.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use opensdn_admission_policy::{Fault, Problem, Source, built_in_bytes};
use opensdn_runtime::error_chain;
use opensdn_runtime::watch::{Event, SingleObject, WatchSpec, watch};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Larger files are not read.
const MAX_SIZE: u64 = 64 << 20;
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// What is known of one source.
pub(crate) type ModuleBytes = Result<Arc<[u8]>, Problem>;

/// The sources that policies name; cheap to clone.
#[derive(Clone)]
pub(crate) struct ModuleStore {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    folder: Option<PathBuf>,
    items: Mutex<HashMap<Source, Item>>,
    ticks: watch::Sender<u64>,
}

struct Item {
    content: Option<ModuleBytes>,
    task: Option<AbortHandle>,
}

impl Drop for Item {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl ModuleStore {
    /// Nothing is read yet. Files are only read below `folder`.
    pub(crate) fn new(client: Client, folder: Option<PathBuf>) -> Self {
        let ticks = watch::Sender::new(0);
        let inner = Inner { client, folder, items: Mutex::default(), ticks };
        Self { inner: Arc::new(inner) }
    }

    /// Says which sources are needed, all of them.
    pub(crate) fn want(&self, sources: &BTreeSet<Source>) {
        let mut items = self.lock();
        items.retain(|source, _| sources.contains(source));
        for source in sources {
            items.entry(source.clone()).or_insert_with(|| self.begin(source));
        }
    }

    /// What is known of a source that is wanted; `None` while it is being read for the first time.
    pub(crate) fn get(&self, source: &Source) -> Option<ModuleBytes> {
        self.lock().get(source)?.content.clone()
    }

    /// Ticks when a content is another one.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.inner.ticks.subscribe()
    }

    /// Reads a source now, wanted or not.
    pub(crate) async fn read_once(&self, source: &Source) -> ModuleBytes {
        if let Some(Ok(bytes)) = self.get(source) {
            return Ok(bytes);
        }
        match source {
            Source::BuiltIn(name) => built_in(name),
            Source::Folder(path) => read_file(self.inner.folder.as_deref(), path).await.1,
            Source::ConfigMap { namespace, name, key } => {
                let api: Api<ConfigMap> = Api::namespaced(self.inner.client.clone(), namespace);
                let object = api.get_opt(name).await.map_err(|error| {
                    unreachable(
                        format!("the ConfigMap cannot be read: {}", error_chain(&error)),
                        GRANT,
                    )
                })?;
                let object = object.and_then(|object| serde_json::to_value(object).ok());
                read_key(object.as_ref(), namespace, name, key)
            }
        }
    }

    fn begin(&self, source: &Source) -> Item {
        let task = match source {
            Source::BuiltIn(name) => return Item { content: Some(built_in(name)), task: None },
            Source::Folder(path) => {
                let folder = self.inner.folder.clone();
                tokio::spawn(poll_file(Arc::downgrade(&self.inner), folder, path.clone()))
            }
            Source::ConfigMap { .. } => {
                tokio::spawn(watch_config_map(Arc::downgrade(&self.inner), source.clone()))
            }
        };
        Item { content: None, task: Some(task.abort_handle()) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Source, Item>> {
        self.inner.lock()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<Source, Item>> {
        // A map of whole contents cannot be left half changed.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, source: &Source, content: ModuleBytes) {
        let mut items = self.lock();
        let Some(item) = items.get_mut(source) else { return };
        if item.content.as_ref() == Some(&content) {
            return;
        }
        item.content = Some(content);
        drop(items);
        self.ticks.send_modify(|tick| *tick += 1);
    }

    /// Something went wrong that does not say that the content is another one.
    fn doubt(&self, source: &Source, problem: Problem) {
        if self.lock().get(source).is_some_and(|item| item.content.is_none()) {
            self.set(source, Err(problem));
        }
    }
}

const GRANT: &str = "grant the webhook `get`, `list` and `watch` on it; it is tried again";

fn unreachable(message: String, hint: &str) -> Problem {
    Problem::new(Fault::SourceUnreachable, "/spec/module", message, hint)
}

fn built_in(name: &str) -> ModuleBytes {
    let missing = || unreachable(format!("there is no built-in policy {name:?}"), "name another");
    built_in_bytes(name).map(Arc::from).ok_or_else(missing)
}

async fn watch_config_map(inner: std::sync::Weak<Inner>, source: Source) {
    let Source::ConfigMap { namespace, name, key } = &source else { return };
    let Some(client) = inner.upgrade().map(|inner| inner.client.clone()) else { return };
    let target = WatchSpec {
        path: format!("/api/v1/namespaces/{namespace}/configmaps"),
        name: Some(name.clone()),
        label_selector: String::new(),
        metadata_only: false,
        heartbeat: Duration::from_secs(10),
    };
    let mut changes = watch(client, target);
    let mut watched = SingleObject::default();
    while let Some(change) = changes.recv().await {
        let Some(inner) = inner.upgrade() else { return };
        if let Event::Disconnected { why, .. } = &change {
            let message = format!("the ConfigMap {namespace}/{name} cannot be read: {why}");
            inner.doubt(&source, unreachable(message, GRANT));
        }
        if let Some(object) = watched.read(change) {
            inner.set(&source, read_key(object.as_ref(), namespace, name, key));
        }
    }
}

fn read_key(object: Option<&Value>, namespace: &str, name: &str, key: &str) -> ModuleBytes {
    let Some(object) = object else {
        let message = format!("there is no ConfigMap {namespace}/{name}");
        return Err(unreachable(message, "create it; the policy is then loaded by itself"));
    };
    let Some(text) = object.get("binaryData").and_then(|data| data.get(key)?.as_str()) else {
        let message = format!("the ConfigMap {namespace}/{name} has no key {key:?} in binaryData");
        let hint = "make it with `kubectl create configmap NAME --from-file=KEY=FILE`";
        return Err(unreachable(message, hint));
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    bytes.map(Arc::from).map_err(|error| {
        let message = format!("{key:?} of the ConfigMap {namespace}/{name} is not base64: {error}");
        unreachable(message, "make it with `kubectl create configmap NAME --from-file=KEY=FILE`")
    })
}

/// What distinguishes one state of a file from another.
type Stamp = Option<(SystemTime, u64, PathBuf)>;

async fn poll_file(inner: std::sync::Weak<Inner>, folder: Option<PathBuf>, path: String) {
    let source = Source::Folder(path.clone());
    let mut timer = interval(POLL_INTERVAL);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before: Option<Stamp> = None;
    loop {
        timer.tick().await;
        let Some(inner) = inner.upgrade() else { return };
        let stamp = stamp(folder.as_deref(), &path).await;
        if before.as_ref() == Some(&stamp) {
            continue;
        }
        let (read, content) = read_file(folder.as_deref(), &path).await;
        // A file that changed while it was read is read again.
        before = (read == stamp).then_some(stamp);
        inner.set(&source, content);
    }
}

async fn stamp(folder: Option<&Path>, path: &str) -> Stamp {
    let file = tokio::fs::canonicalize(folder?.join(path)).await.ok()?;
    let metadata = tokio::fs::metadata(&file).await.ok()?;
    Some((metadata.modified().ok()?, metadata.len(), file))
}

/// Reads the file, and the stamp that it had afterwards.
async fn read_file(folder: Option<&Path>, path: &str) -> (Stamp, ModuleBytes) {
    let Some(folder) = folder else {
        let message = "the webhook was started without a policy folder".to_owned();
        return (
            None,
            Err(unreachable(message, "start it with --policy-folder, or use a ConfigMap")),
        );
    };
    let content = match read_below(folder, path).await {
        Ok(bytes) => Ok(Arc::from(bytes)),
        Err(error) => {
            let message = format!("cannot read {}: {error}", folder.join(path).display());
            Err(unreachable(message, "put the module there; it is then loaded by itself"))
        }
    };
    (stamp(Some(folder), path).await, content)
}

/// Symbolic links may stay inside the folder (as those of a mounted ConfigMap do), not leave it.
async fn read_below(folder: &Path, path: &str) -> io::Result<Vec<u8>> {
    let folder = tokio::fs::canonicalize(folder).await?;
    let file = tokio::fs::canonicalize(folder.join(path)).await?;
    if !file.starts_with(&folder) {
        return Err(io::Error::other("it leads out of the policy folder"));
    }
    if tokio::fs::metadata(&file).await?.len() > MAX_SIZE {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_SIZE >> 20)));
    }
    tokio::fs::read(file).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_of_a_config_map_is_read_and_each_way_to_miss_it_is_named() {
        let read = |object: Option<&Value>| {
            read_key(object, "n", "c", "p.wasm").map_err(|problem| problem.message)
        };
        let object = json!({"binaryData": {"p.wasm": "AGFzbQ=="}});
        assert_eq!(read(Some(&object)).unwrap().as_ref(), b"\0asm");
        assert_eq!(read(None).unwrap_err(), "there is no ConfigMap n/c");
        assert!(read(Some(&json!({"data": {"p.wasm": "x"}}))).unwrap_err().contains("no key"));
        let bad = json!({"binaryData": {"p.wasm": "*"}});
        assert!(read(Some(&bad)).unwrap_err().contains("not base64"));
    }

    #[tokio::test]
    async fn a_file_is_read_only_below_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        std::fs::write(folder.path().join("policy"), "module").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(outside.path().join("secret"), link).unwrap();
        let read = async |path| read_file(Some(folder.path()), path).await.1;
        assert_eq!(read("policy").await.unwrap().as_ref(), b"module");
        assert!(read("link").await.unwrap_err().message.contains("leads out"));
        assert_eq!(read("absent").await.unwrap_err().fault, Fault::SourceUnreachable);
        assert_eq!(read_file(None, "policy").await.1.unwrap_err().fault, Fault::SourceUnreachable);
    }
}
