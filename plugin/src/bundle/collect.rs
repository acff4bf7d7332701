//! Asks for what the plan has, and takes the secrets out of it before it is kept anywhere.

use std::sync::Arc;

use futures::{Stream, StreamExt as _, stream};
use serde_json::Value;

use super::cleaner::Cleaner;
use super::introspect::{Daemon, MOST_PAGE};
use super::plan::{KernelLog, MOST_KERNEL, MOST_LOG, Task};
use super::redactor::Redactor;
use crate::logs::files::MOST_BYTES;
use crate::snapshot::ask::{Asker, NotRead, Part};
use crate::snapshot::{Read, list};

/// Questions at once.
const AT_ONCE: usize = 20;
/// And of those whose answers may be as large as a log.
const LARGE_AT_ONCE: usize = 6;
/// The most of a list that is read: others make objects as large and as many as they like.
const MOST_LIST: usize = 32 << 20;

/// What came of asking for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// This is in it.
    Content(Vec<u8>),
    /// This is in it, and why no more is.
    Part(Vec<u8>, String),
    /// There is nothing of the kind.
    Nothing,
    /// It is not there to be had, and why.
    Absent(String),
    /// It could not be had, and why.
    Failed(String),
}

/// A file, and what came of it.
pub(crate) type Collected = (String, Found);

/// Lists as the API server gave them, which nothing but the plan may read: they have their secrets.
#[derive(Debug)]
pub(crate) struct Lists(Vec<(Task, Read<Part>)>);

/// Asks one API server.
#[derive(Clone)]
pub(crate) struct Collector {
    asker: Asker,
    cleaner: Cleaner,
}

impl Collector {
    pub(crate) fn new(asker: Asker, redactor: Arc<Redactor>) -> Self {
        Self { asker, cleaner: Cleaner::new(redactor) }
    }

    pub(crate) fn asker(&self) -> &Asker {
        &self.asker
    }

    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        self.cleaner.redactor()
    }

    /// Asks for lists.
    pub(crate) async fn lists(&self, tasks: Vec<Task>) -> Lists {
        let one = |task: Task| async move {
            let read = self.asker.part(&task.path, MOST_LIST).await;
            (task, read)
        };
        Lists(stream::iter(tasks).map(one).buffered(AT_ONCE).collect().await)
    }

    /// Asks for logs.
    pub(crate) fn logs(&self, tasks: Vec<Task>) -> impl Stream<Item = Collected> + use<> {
        self.each(tasks, LARGE_AT_ONCE, |of, task| async move {
            // Whether a kubelet keeps to what it is asked for or not.
            let found = match of.asker.page(&task.path, MOST_LOG as u64).await {
                Ok(text) => of.cleaner.clean(text, Redactor::text).await,
                Err(why) => Found::Failed(why.to_string()),
            };
            (task.file, found)
        })
    }

    /// Asks for metrics, which are what any pod with our label says.
    pub(crate) fn metrics(&self, tasks: Vec<Task>) -> impl Stream<Item = Collected> + use<> {
        self.each(tasks, AT_ONCE, |of, task| async move {
            let found = match of.asker.page(&task.path, MOST_PAGE).await {
                Ok(text) => of.cleaner.clean(text, Redactor::text).await,
                Err(why) => Found::Failed(why.to_string()),
            };
            (task.file, found)
        })
    }

    /// Asks for files of nodes: of each the end.
    pub(crate) fn files(&self, tasks: Vec<Task>) -> impl Stream<Item = Collected> + use<> {
        self.each(tasks, LARGE_AT_ONCE, |of, task| async move {
            let found = match of.asker.end(&task.path, MOST_BYTES).await {
                Ok(end) => of.cleaner.clean(into_text(end.bytes), Redactor::text).await,
                Err(why) => Found::Failed(why.to_string()),
            };
            (task.file, found)
        })
    }

    /// Asks daemons for their pages. One that does not give the first is not asked for the others.
    pub(crate) fn pages(&self, daemons: Vec<Daemon>) -> impl Stream<Item = Collected> + use<> {
        let found =
            self.each(daemons, AT_ONCE, |of, daemon| async move { of.pages_of(daemon).await });
        found.flat_map(stream::iter)
    }

    async fn pages_of(&self, daemon: Daemon) -> Vec<Collected> {
        let mut found = Vec::with_capacity(daemon.pages.len());
        let mut silent: Option<Found> = None;
        for (number, (file, path)) in daemon.pages.into_iter().enumerate() {
            if let Some(silent) = &silent {
                found.push((file, silent.clone()));
                continue;
            }
            let (is_silent, page) = match self.asker.page(&path, MOST_PAGE).await {
                Ok(page) => (false, self.cleaner.clean(page, Redactor::page).await),
                // An earlier release of the daemon.
                Err(NotRead::Absent) => {
                    (true, Found::Absent("the daemon has no such page".to_owned()))
                }
                Err(NotRead::Refused(_)) if daemon.is_elected => {
                    let why = "nothing listens: it waits for another of its kind to end".to_owned();
                    (true, Found::Absent(why))
                }
                Err(why) => (true, Found::Failed(why.to_string())),
            };
            if number == 0 && is_silent {
                silent = Some(page.clone());
            }
            found.push((file, page));
        }
        found
    }

    /// Asks nodes for what their kernels said.
    pub(crate) fn kernels(&self, logs: Vec<KernelLog>) -> impl Stream<Item = Collected> + use<> {
        self.each(logs, AT_ONCE, |of, log| async move {
            let found = of.kernel(&log.paths).await;
            (log.file, found)
        })
    }

    async fn kernel(&self, paths: &[String; 3]) -> Found {
        for path in paths {
            match self.asker.end(path, MOST_KERNEL).await {
                Ok(end) => {
                    let text = into_text(end.bytes);
                    let text = if path.ends_with("/messages") { of_kernel(&text) } else { text };
                    return self.cleaner.clean(text, Redactor::text).await;
                }
                Err(NotRead::Absent) => {}
                Err(why) => return Found::Failed(why.to_string()),
            }
        }
        let why = "the node has no /var/log/dmesg, kern.log or messages: run dmesg on it";
        Found::Absent(why.to_owned())
    }

    /// So many at once, each in a task of its own; what came of them in their order.
    fn each<T, R, F>(
        &self,
        tasks: Vec<T>,
        at_once: usize,
        one: fn(Self, T) -> F,
    ) -> impl Stream<Item = R> + use<T, R, F>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        let of = self.clone();
        let running = stream::iter(tasks).map(move |task| tokio::spawn(one(of.clone(), task)));
        // One is lost by a panic alone, which says so itself.
        running.buffered(at_once).filter_map(|one| async move { one.ok() })
    }
}

impl Lists {
    /// The objects of a list by its file; none where it could not be had.
    pub(crate) fn items(&self, file: String) -> impl Iterator<Item = &Value> {
        let lists = self.0.iter().filter(move |(task, _)| task.file == file);
        lists.filter_map(|(_, read)| read.known()).flat_map(|part| list(&part.list, "/items"))
    }

    fn all_of(&self, end: &'static str) -> impl Iterator<Item = &Value> {
        let lists = self.0.iter().filter(move |(task, _)| task.file.ends_with(end));
        lists.filter_map(|(_, read)| read.known()).flat_map(|part| list(&part.list, "/items"))
    }

    /// The pods of all namespaces.
    pub(crate) fn pods(&self) -> Vec<Value> {
        self.all_of("/pods.json").cloned().collect()
    }

    /// The Secrets that could be read.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Value> {
        self.all_of("/secrets.json")
    }

    /// As files, without their secrets: one is made at a time.
    pub(crate) fn files(self, redactor: &Redactor) -> impl Iterator<Item = Collected> {
        self.0.into_iter().map(|(task, read)| {
            let found = match read {
                Read::Known(mut part) => {
                    clean(&mut part.list, redactor);
                    match (serde_json::to_vec_pretty(&part.list), part.is_whole) {
                        (Ok(content), true) => Found::Content(content),
                        (Ok(content), false) => Found::Part(content, not_whole(&part.list)),
                        (Err(error), _) => Found::Failed(error.to_string()),
                    }
                }
                Read::Absent => Found::Nothing,
                Read::Unknown(why) => Found::Failed(why),
            };
            (task.file, found)
        })
    }
}

fn not_whole(part: &Value) -> String {
    let (count, mebibytes) = (list(part, "/items").count(), MOST_LIST >> 20);
    format!("the list has more than {mebibytes} MiB: its first {count} objects are in it")
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The items of a list do not say what they are; the list does: `SecretList`.
fn clean(list: &mut Value, redactor: &Redactor) {
    let kind = list.pointer("/kind").and_then(Value::as_str).unwrap_or_default();
    let kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
    let Some(Value::Array(items)) = list.get_mut("items") else { return redactor.object(list) };
    for item in items {
        if let Some(item) = item.as_object_mut() {
            item.entry("kind").or_insert_with(|| kind.clone().into());
        }
        redactor.object(item);
    }
}

/// The lines of the kernel in a log of all.
fn of_kernel(text: &str) -> String {
    text.lines().filter(|line| line.contains(" kernel: ")).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_items_of_a_list_of_secrets_are_secrets() {
        let mut list = json!({"kind": "SecretList", "items": [{"metadata": {"name": "s"}, "data": {"plain": "aHVudGVyMg=="}}]});
        clean(&mut list, &Redactor::default());
        assert!(!list.to_string().contains("aHVudGVyMg"), "{list}");
    }

    #[test]
    fn of_a_log_of_all_the_lines_of_the_kernel_are_kept() {
        let text = "Nov 1 m1 kernel: vrouter: loaded\nNov 1 m1 sshd[1]: bob\n";
        assert_eq!(of_kernel(text), "Nov 1 m1 kernel: vrouter: loaded\n");
    }
}
