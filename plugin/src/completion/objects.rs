//! Names of a cluster's objects. The user waits for them with a finger on a key: what does not come at once does not come, and
//! no error is shown.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::time::Duration;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use http::Request;
use opensdn_deploy::names::MANAGED_BY_LABEL;
use opensdn_deploy::names::operator::NAME as OPERATOR;
use serde_json::Value;

use crate::clients::ClusterFlags;
use crate::snapshot::{list, name, text};

/// Until then, with all that has to be run for it.
const PATIENCE: Duration = Duration::from_millis(300);
/// More than these nobody looks through.
const MOST: usize = 500;
/// Only the names of objects, without what is in them.
const NAMES: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

thread_local! {
    /// What the words before say of the cluster.
    static ASKED: RefCell<ClusterFlags> = RefCell::default();
}

/// Reads which cluster the words mean.
pub(super) fn note(words: &[OsString]) {
    let mut flags = ClusterFlags::default();
    let mut words = words.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (word.into_owned(), None),
        };
        let place = match flag.as_str() {
            "--context" => &mut flags.context,
            "--cluster" => &mut flags.cluster,
            "--user" => &mut flags.user,
            "--as" => &mut flags.impersonate,
            "--server" | "-s" => &mut flags.server,
            "--kubeconfig" => {
                let value = value.or_else(|| words.next().map(|word| word.into_owned()));
                flags.kubeconfig = value.map(Into::into);
                continue;
            }
            _ => continue,
        };
        *place = value.or_else(|| words.next().map(|word| word.into_owned()));
    }
    ASKED.set(flags);
}

/// Which cluster the words mean.
pub(crate) fn asked() -> ClusterFlags {
    ASKED.with_borrow(Clone::clone)
}

/// The nodes of a cluster.
const NODES: &str = "/api/v1/nodes";

/// Which words an object of a list stands for.
type Words = fn(&Value) -> Vec<String>;

/// Completes the names of nodes.
pub(crate) fn nodes() -> ArgValueCompleter {
    completer(NODES)
}

/// Completes the names of a list of the API server, such as `/api/v1/nodes`.
pub(crate) fn completer(path: &'static str) -> ArgValueCompleter {
    of_list(path.to_owned(), |item| vec![name(item).to_owned()])
}

/// Completes what has certificates of the operator, by the owners of its Secrets, and the Secrets of CAs. What is in them is
/// not asked for.
pub(crate) fn renewable() -> ArgValueCompleter {
    let label = format!("{MANAGED_BY_LABEL}%3D{OPERATOR}");
    of_list(format!("/api/v1/secrets?labelSelector={label}"), |secret| {
        let owners = list(secret, "/metadata/ownerReferences").map(|owner| text(owner, "/name"));
        let ca = Some(name(secret)).filter(|name| name.ends_with("-ca"));
        owners.chain(ca).map(str::to_owned).collect()
    })
}

fn of_list(path: String, words: Words) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy().into_owned();
        let fits = |word: &String| word.starts_with(&current);
        let fitting: BTreeSet<String> = soon(&path, words).into_iter().filter(fits).collect();
        fitting.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// Completes one of these words.
pub(crate) fn words(words: fn() -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy().to_lowercase();
        let fits = |word: &String| word.to_lowercase().starts_with(&current);
        let words = words().into_iter().filter(fits);
        words.map(CompletionCandidate::new).collect()
    })
}

/// The names, if they come soon. A program that gets credentials may take longer, so all of it has a thread of its own, which
/// ends with the process.
fn soon(path: &str, words: Words) -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    let (flags, path) = (asked(), path.to_owned());
    let begun = std::thread::Builder::new().spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Nobody waits any more where this fails.
        let _ = runtime
            .map(|runtime| sender.send(runtime.block_on(Box::pin(found(&flags, &path, words)))));
    });
    begun.ok().and_then(|_| receiver.recv_timeout(PATIENCE).ok().flatten()).unwrap_or_default()
}

async fn found(flags: &ClusterFlags, path: &str, words: Words) -> Option<Vec<String>> {
    let (client, _) = flags.client_and_server(|_| {}).await.ok()?;
    let joint = if path.contains('?') { '&' } else { '?' };
    let request =
        Request::get(format!("{path}{joint}limit={MOST}")).header(http::header::ACCEPT, NAMES);
    let found = client.request::<Value>(request.body(Vec::new()).ok()?).await.ok()?;
    Some(list(&found, "/items").flat_map(words).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_before_say_which_cluster_is_meant() {
        let words =
            ["status", "--context", "a", "--kubeconfig=/k", "-s", "https://x", "--node", ""];
        note(&words.map(OsString::from));
        let flags = asked();
        assert_eq!(
            (flags.context.as_deref(), flags.server.as_deref()),
            (Some("a"), Some("https://x"))
        );
        assert_eq!(flags.kubeconfig, Some("/k".into()));
        note(&[]);
        assert_eq!(asked().given(), None);
    }

    #[test]
    fn what_does_not_answer_is_not_waited_for() {
        // It takes connections, and says nothing.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        note(&["--kubeconfig=/dev/null", "-s", &server].map(OsString::from));
        let begun = std::time::Instant::now();
        assert_eq!(soon(NODES, |_| Vec::new()), [""; 0]);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
}
