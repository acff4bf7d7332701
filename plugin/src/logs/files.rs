//! Files that daemons write on their nodes: most of those of OpenSDN write hardly anything else. The kubelet gives what is
//! below `/var/log` to whom has the right to `nodes/proxy`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use opensdn_policy_host::is_unseen;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::sources::{Part, Source, Subject, TYPE, Times};
use super::time::{behind_utc, written};
use crate::snapshot::ask::{Asker, NotRead};
use crate::snapshot::{label, list, text};

/// What the kubelet gives, and where those of OpenSDN are below it, with either operator.
const SERVED: &str = "/var/log/";
const ROOT: &str = "/var/log/contrail/";
/// Whose nodes have the folder of the CNI, and where it is.
const CNI: (&str, &str) = ("vrouter", "contrail/cni");
/// Folders of a pod have folders for each container, at most.
const DEEPEST: usize = 2;
/// As many files of a folder are looked at.
const MOST: usize = 200;
/// And as many folders of a node, and within one of them.
const MOST_FOLDERS: usize = 32;
/// The page of a folder with so many names has less, in bytes.
const LARGEST_PAGE: u64 = 1 << 20;
/// Nodes that are asked at once.
const AT_ONCE: usize = 16;
/// So long a node is asked.
const PATIENCE: Duration = Duration::from_secs(60);
/// The last bytes of a file, of which its last line is seen.
const LAST: u64 = 8 << 10;
/// And so many are read of it.
pub(crate) const MOST_BYTES: u64 = 10 << 20;
/// Of a name so many characters fit, whatever they are.
const LONGEST_NAME: usize = 60;
/// What has been compressed is over.
const COMPRESSED: [&str; 4] = [".gz", ".bz2", ".xz", ".zst"];

/// A folder of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Folder {
    pub(crate) node: String,
    /// Below `/var/log`: `contrail/config`.
    pub(crate) path: String,
}

/// A file in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFile {
    pub(crate) folder: Folder,
    /// Below the folder.
    pub(crate) name: String,
    /// When it was changed last.
    pub(crate) changed: Option<Timestamp>,
    /// By how much its times are behind UTC; none where its lines have no times.
    behind_utc: Option<SignedDuration>,
}

/// What could not be read, and why.
pub(crate) type Unread = (String, String);

/// The folders that pods of these have for files.
pub(crate) fn folders(
    pods: &[Value],
    subject: Subject,
    is_meant: impl Fn(&str) -> bool,
) -> BTreeSet<Folder> {
    let mut found = BTreeSet::new();
    for pod in pods.iter().filter(|pod| subject.has(pod)) {
        let node = text(pod, "/spec/nodeName");
        if node.is_empty() || !is_meant(node) {
            continue;
        }
        // The CNI writes on the node itself (tf-controller, `src/container/cni/internal/contrail/cni.go:64`).
        if label(pod, TYPE) == Some(CNI.0) {
            found.insert(Folder { node: node.to_owned(), path: CNI.1.to_owned() });
        }
        for volume in list(pod, "/spec/volumes") {
            let path = text(volume, "/hostPath/path");
            let is_plain = path.split('/').all(|part| part != ".." && part != ".");
            if !format!("{path}/").starts_with(ROOT) || !is_plain {
                continue;
            }
            let below = path.strip_prefix(SERVED).unwrap_or_default().trim_matches('/');
            found.insert(Folder { node: node.to_owned(), path: below.to_owned() });
        }
    }
    found
}

impl Folder {
    fn path_of(&self, name: &str) -> String {
        let parts = self.path.split('/').chain(name.split('/').filter(|part| !part.is_empty()));
        let encoded: Vec<String> =
            parts.map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()).collect();
        format!("/api/v1/nodes/{}/proxy/logs/{}", self.node, encoded.join("/"))
    }

    /// As people say it.
    pub(crate) fn title(&self) -> String {
        format!("{} {SERVED}{}", self.node, self.path)
    }
}

impl LogFile {
    /// Where it is at the API server.
    pub(crate) fn path(&self) -> String {
        self.folder.path_of(&self.name)
    }

    /// The node, and where it is below `/var/log`, as the name of a file: what a node calls its files may be anything.
    pub(crate) fn place(&self) -> String {
        let place = format!("{}/{}/{}", self.folder.node, self.folder.path, self.name);
        let parts = place.split('/').map(|part| {
            let shown = part.chars().map(|one| if is_unseen(one) { '?' } else { one });
            shown.take(LONGEST_NAME).collect::<String>()
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// As a source of lines.
    pub(crate) fn source(&self, part: &Part, now: Timestamp) -> Source {
        let since = part.since.and_then(|since| now.checked_sub(since).ok());
        Source {
            node: self.folder.node.clone(),
            pod: format!("{SERVED}{}", self.folder.path),
            container: self.name.clone(),
            path: self.path(),
            times: Times::Written {
                behind_utc: self.behind_utc.unwrap_or_default(),
                // A part of a line is in front of them. Lines that never have a time are as old as the last change.
                undated: match self.behind_utc {
                    Some(_) => Timestamp::UNIX_EPOCH,
                    None => self.changed.unwrap_or(now),
                },
                since,
                tail: part.tail,
            },
        }
    }
}

/// The files of folders that were changed in that time, and what could not be listed. Nodes are asked side by side; one that
/// fails, or takes long, is not asked any more.
pub(crate) async fn files(
    asker: &Asker,
    folders: &BTreeSet<Folder>,
    since: Option<Duration>,
    now: Timestamp,
) -> (Vec<LogFile>, Vec<Unread>) {
    let oldest = since.and_then(|since| now.checked_sub(since).ok());
    let mut by_node: BTreeMap<&str, Vec<&Folder>> = BTreeMap::new();
    for folder in folders {
        by_node.entry(&folder.node).or_default().push(folder);
    }
    let asked = by_node.into_values().map(|folders| of_node(asker, folders));
    let mut asked = futures::stream::iter(asked).buffered(AT_ONCE);
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    while let Some((files, why)) = asked.next().await {
        found.extend(files);
        unread.extend(why);
    }
    let is_recent = |file: &LogFile| match (file.changed, oldest) {
        (Some(changed), Some(oldest)) => changed >= oldest,
        _ => true,
    };
    found.retain(is_recent);
    (found, unread)
}

/// What a node has in its folders.
async fn of_node(asker: &Asker, folders: Vec<&Folder>) -> (Vec<LogFile>, Vec<Unread>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let until = Instant::now() + PATIENCE;
    let mut left = folders.into_iter();
    for folder in left.by_ref().take(MOST_FOLDERS) {
        let looked = timeout_at(until, of_folder(asker, folder, &mut found, &mut unread));
        match looked.await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => {
                unread.push((folder.title(), why));
                break;
            }
            Err(_) => {
                let why = format!("its node has not answered for {} s", PATIENCE.as_secs());
                unread.push((folder.title(), why));
                break;
            }
        }
    }
    let number = left.len();
    if let Some(next) = left.next() {
        let why = format!("{number} folders of the node were not looked at, this one first");
        unread.push((next.title(), why));
    }
    (found, unread)
}

async fn of_folder(
    asker: &Asker,
    folder: &Folder,
    found: &mut Vec<LogFile>,
    unread: &mut Vec<Unread>,
) -> Result<(), String> {
    let (mut names, is_all) = names(asker, folder).await?;
    if !is_all || names.len() > MOST {
        names.truncate(MOST);
        let why = format!("it has more than the {} files that were looked at", names.len());
        unread.push((folder.title(), why));
    }
    for name in names {
        match looked_at(asker, folder, &name).await {
            Ok(file) => found.push(file),
            Err(why) => unread.push((format!("{}/{name}", folder.title()), why)),
        }
    }
    Ok(())
}

/// What is in a folder and those in it, and whether that is all. One that is not there, as no daemon has written yet, is empty.
async fn names(asker: &Asker, folder: &Folder) -> Result<(Vec<String>, bool), String> {
    let (mut found, mut open, mut listings) = (Vec::new(), vec![(String::new(), 0)], 0);
    while let Some((below, depth)) = open.pop() {
        listings += 1;
        if found.len() > MOST || listings > MOST_FOLDERS {
            return Ok((found, false));
        }
        let path = format!("{}/", folder.path_of(&below));
        let page = match asker.page(&path, LARGEST_PAGE).await {
            Ok(page) => page,
            Err(NotRead::Absent) => continue,
            Err(why) => return Err(why.to_string()),
        };
        for name in listed(&page) {
            match name.strip_suffix('/') {
                Some(inner) if depth < DEEPEST => {
                    open.push((format!("{below}{inner}/"), depth + 1))
                }
                Some(_) => {}
                None if COMPRESSED.iter().any(|end| name.ends_with(end)) => {}
                None => found.push(format!("{below}{name}")),
            }
        }
    }
    found.sort();
    Ok((found, true))
}

/// The names in the page of a folder, as Go's file server writes it; those of folders end in a slash.
fn listed(page: &str) -> Vec<String> {
    let names = page.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let names = names.filter_map(|name| percent_decode_str(name).decode_utf8().ok());
    let is_plain = |name: &str| {
        let plain = name.strip_suffix('/').unwrap_or(name);
        !plain.is_empty() && !plain.contains('/') && plain != ".." && plain != "."
    };
    names
        .map(|name| name.trim_start_matches("./").to_owned())
        .filter(|name| is_plain(name))
        .collect()
}

async fn looked_at(asker: &Asker, folder: &Folder, name: &str) -> Result<LogFile, String> {
    let end = asker.end(&folder.path_of(name), LAST).await.map_err(|why| why.to_string())?;
    let lines = String::from_utf8_lossy(&end.bytes);
    let last = lines.lines().rev().find_map(written);
    let behind =
        last.map(|last| end.changed.map_or(SignedDuration::ZERO, |at| behind_utc(last, at)));
    Ok(LogFile {
        folder: folder.clone(),
        name: name.to_owned(),
        changed: end.changed,
        behind_utc: behind,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn folders_are_those_of_opensdn_that_pods_have_on_their_nodes() {
        let pod = |node: &str, path: &str| {
            json!({"metadata": {"labels": {"tf_manager": "config"}}, "spec": {"nodeName": node,
                "volumes": [{"name": "a", "hostPath": {"path": path}}, {"name": "b", "emptyDir": {}}]}})
        };
        let pods = [
            pod("m1", "/var/log/contrail/config"),
            pod("m1", "/var/log/contrail/config/"),
            pod("m2", "/var/log/contrail"),
            pod("m3", "/var/log"),
            pod("m3", "/var/log/contrail/../secret"),
            pod("m3", "/var/log/contrail-other"),
            pod("", "/var/log/contrail/config"),
        ];
        let found = folders(&pods, Subject::All, |_| true);
        let titles: Vec<String> = found.iter().map(Folder::title).collect();
        assert_eq!(titles, ["m1 /var/log/contrail/config", "m2 /var/log/contrail"]);
        assert_eq!(folders(&pods, Subject::All, |node| node == "m2").len(), 1);
        let agent =
            json!({"metadata": {"labels": {"tf_manager": "vrouter"}}, "spec": {"nodeName": "w1"}});
        let found = folders(&[agent], Subject::All, |_| true);
        assert_eq!(found.first().map(Folder::title).as_deref(), Some("w1 /var/log/contrail/cni"));
        let folder = Folder { node: "m1".to_owned(), path: "contrail/config".to_owned() };
        assert_eq!(
            folder.path_of("a b/c.log"),
            "/api/v1/nodes/m1/proxy/logs/contrail/config/a%20b/c%2Elog"
        );
    }

    #[test]
    fn in_an_archive_a_file_has_a_name_that_can_be_unpacked() {
        let folder = Folder { node: "m1".to_owned(), path: "contrail/config".to_owned() };
        let name = format!("a\u{1b}[2J\u{202e}/{}", "é".repeat(300));
        let file = LogFile { folder, name, changed: None, behind_utc: None };
        assert_eq!(file.place(), format!("m1/contrail/config/a?[2J?/{}", "é".repeat(LONGEST_NAME)));
    }

    #[test]
    fn the_page_of_a_folder_names_what_is_in_it() {
        let page = "<!doctype html>\n<pre>\n<a href=\"api/\">api/</a>\n<a href=\"a%20b.log\">a b.log</a>\n\
                    <a href=\"/etc/passwd\">x</a>\n<a href=\"..\">x</a>\n<a href=\"../\">x</a>\n</pre>\n";
        assert_eq!(listed(page), ["api/", "a b.log"]);
        assert_eq!(listed("404 page not found"), [""; 0]);
    }
}
