//! Asks for what the plan has, and takes the secrets out of it before it is kept anywhere.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::introspect::{Daemon, MOST_PAGE};
use super::plan::{KernelLog, MOST_KERNEL, Task};
use super::redactor::Redactor;
use crate::logs::files::MOST_BYTES;
use crate::snapshot::ask::{Asker, NotRead};
use crate::snapshot::{Read, list};

/// Questions at once.
const AT_ONCE: usize = 20;

/// What came of asking for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// This is in it.
    Content(Vec<u8>),
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
pub(crate) struct Lists(Vec<(Task, Read<Value>)>);

/// Asks one API server.
#[derive(Clone)]
pub(crate) struct Collector {
    asker: Asker,
    redactor: Arc<Redactor>,
}

impl Collector {
    pub(crate) fn new(asker: Asker, redactor: Redactor) -> Self {
        Self { asker, redactor: Arc::new(redactor) }
    }

    pub(crate) fn asker(&self) -> &Asker {
        &self.asker
    }

    /// For a thread of its own.
    pub(crate) fn shared_redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.redactor)
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Asks for lists.
    pub(crate) async fn lists(&self, tasks: Vec<Task>) -> Lists {
        let one = |task: Task| async move {
            let read = self.asker.get(&task.path).await;
            (task, read)
        };
        Lists(stream::iter(tasks).map(one).buffered(AT_ONCE).collect().await)
    }

    /// Asks for logs.
    pub(crate) async fn logs(&self, tasks: Vec<Task>) -> Vec<Collected> {
        self.each(tasks, |of, task| async move {
            let found = match of.asker.text(&task.path).await {
                Ok(text) => Found::Content(of.redactor.text(&text).into_bytes()),
                Err(why) => Found::Failed(why),
            };
            (task.file, found)
        })
        .await
    }

    /// Asks for metrics, which are what any pod with our label says.
    pub(crate) async fn metrics(&self, tasks: Vec<Task>) -> Vec<Collected> {
        self.each(tasks, |of, task| async move {
            let found = match of.asker.page(&task.path, MOST_PAGE).await {
                Ok(text) => Found::Content(of.redactor.text(&text).into_bytes()),
                Err(why) => Found::Failed(why.to_string()),
            };
            (task.file, found)
        })
        .await
    }

    /// Asks for files of nodes: of each the end.
    pub(crate) async fn files(&self, tasks: Vec<Task>) -> Vec<Collected> {
        self.each(tasks, |of, task| async move {
            let found = match of.asker.end(&task.path, MOST_BYTES).await {
                Ok(end) => {
                    let text = of.redactor.text(&String::from_utf8_lossy(&end.bytes));
                    Found::Content(text.into_bytes())
                }
                Err(why) => Found::Failed(why.to_string()),
            };
            (task.file, found)
        })
        .await
    }

    /// Asks daemons for their pages. One that does not give the first is not asked for the others.
    pub(crate) async fn pages(&self, daemons: Vec<Daemon>) -> Vec<Collected> {
        let found = self.each(daemons, |of, daemon| async move { of.pages_of(daemon).await });
        found.await.into_iter().flatten().collect()
    }

    async fn pages_of(&self, daemon: Daemon) -> Vec<Collected> {
        let mut found = Vec::with_capacity(daemon.pages.len());
        let mut silent: Option<Found> = None;
        for (number, (file, path)) in daemon.pages.into_iter().enumerate() {
            if let Some(silent) = &silent {
                found.push((file, silent.clone()));
                continue;
            }
            let page = match self.asker.page(&path, MOST_PAGE).await {
                Ok(page) => Found::Content(self.redactor.page(&page).into_bytes()),
                // An earlier release of the daemon.
                Err(NotRead::Absent) => Found::Absent("the daemon has no such page".to_owned()),
                Err(NotRead::Refused(_)) if daemon.is_elected => {
                    let why = "nothing listens: it waits for another of its kind to end".to_owned();
                    Found::Absent(why)
                }
                Err(why) => Found::Failed(why.to_string()),
            };
            if number == 0 && !matches!(page, Found::Content(_)) {
                silent = Some(page.clone());
            }
            found.push((file, page));
        }
        found
    }

    /// Asks nodes for what their kernels said.
    pub(crate) async fn kernels(&self, logs: Vec<KernelLog>) -> Vec<Collected> {
        self.each(logs, |of, log| async move {
            let found = of.kernel(&log.paths).await;
            (log.file, found)
        })
        .await
    }

    async fn kernel(&self, paths: &[String; 3]) -> Found {
        for path in paths {
            match self.asker.end(path, MOST_KERNEL).await {
                Ok(end) => {
                    let text = String::from_utf8_lossy(&end.bytes);
                    let text = match path.ends_with("/messages") {
                        true => of_kernel(&text),
                        false => text.into_owned(),
                    };
                    return Found::Content(self.redactor.text(&text).into_bytes());
                }
                Err(NotRead::Absent) => {}
                Err(why) => return Found::Failed(why.to_string()),
            }
        }
        let why = "the node has no /var/log/dmesg, kern.log or messages: run dmesg on it";
        Found::Absent(why.to_owned())
    }

    async fn each<T, R, F>(&self, tasks: Vec<T>, one: fn(Self, T) -> F) -> Vec<R>
    where
        R: Send + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        // Each in a task of its own: to look for secrets takes processors more than the network.
        let running = stream::iter(tasks).map(|task| tokio::spawn(one(self.clone(), task)));
        let done = running.buffered(AT_ONCE);
        // One is lost by a panic alone, which says so itself.
        done.filter_map(|one| async move { one.ok() }).collect().await
    }
}

impl Lists {
    /// The objects of a list by its file; none where it could not be had.
    pub(crate) fn items(&self, file: String) -> impl Iterator<Item = &Value> {
        let lists = self.0.iter().filter(move |(task, _)| task.file == file);
        lists.filter_map(|(_, read)| read.known()).flat_map(|read| list(read, "/items"))
    }

    /// The pods of all namespaces.
    pub(crate) fn pods(&self) -> Vec<Value> {
        let lists = self.0.iter().filter(|(task, _)| task.file.ends_with("/pods.json"));
        let known = lists.filter_map(|(_, read)| read.known());
        known.flat_map(|read| list(read, "/items")).cloned().collect()
    }

    /// As files, without their secrets.
    pub(crate) fn files(self, redactor: &Redactor) -> Vec<Collected> {
        let one = |(task, read): (Task, Read<Value>)| {
            let found = match read {
                Read::Known(mut list) => {
                    clean(&mut list, redactor);
                    match serde_json::to_vec_pretty(&list) {
                        Ok(content) => Found::Content(content),
                        Err(error) => Found::Failed(error.to_string()),
                    }
                }
                Read::Absent => Found::Nothing,
                Read::Unknown(why) => Found::Failed(why),
            };
            (task.file, found)
        };
        self.0.into_iter().map(one).collect()
    }
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
