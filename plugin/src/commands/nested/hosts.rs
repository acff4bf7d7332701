//! `nested hosts`: the lines of /etc/hosts by which kube-manager's node finds names of nodes, printed or put into a file.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use opensdn_manifests::read_limited_text;
use opensdn_nested_workloads::hosts::{Host, HostsError, block, merged};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::atomic_write;
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::dry_run::outside_the_cluster;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::snapshot::{Read, list, name, text};
use crate::ui::{Ui, one_line};

/// The most of a file of names.
const MOST: u64 = 16 << 20;

const EXAMPLES: &str = "\
Examples:
  # The lines, to be put into /etc/hosts of the nodes
  kubectl opensdn nested hosts

  # Into a copy of a node's file; what else is in it stays, and a second time nothing changes
  scp node1:/etc/hosts hosts.node1
  kubectl opensdn nested hosts --merge hosts.node1

kube-manager looks up the full name of its own node at its start, and ends where that is not
found; other names it does not need. Pods take /etc/hosts of their node when they start: after a
change, kubectl -n kube-system rollout restart deployment opensdn-kube-manager. Where DNS has
the nodes' names, nothing of this is needed.

Exit codes: 0 done, or nothing to change, 2 the arguments or the file, 3 the cluster cannot be
asked.";

/// Arguments of `nested hosts`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct HostsCommand {
    /// Put the lines into this file, in the place of those that an earlier run has put there.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    merge: Option<PathBuf>,
    /// Say whether the file would change; it is not written
    /// (without a value it means client, the older spelling).
    #[arg(long, requires = "merge", value_name = "HOW", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client", value_parser = outside_the_cluster())]
    dry_run: bool,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

/// What `nested hosts` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeHosts {
    /// The nodes.
    hosts: Vec<NodeHost>,
    /// The lines, with their markers.
    block: String,
    /// The file that they were put into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<HostsFile>,
}

/// A node.
#[derive(Debug, Serialize, JsonSchema)]
struct NodeHost {
    /// Its InternalIP.
    address: IpAddr,
    /// Its names.
    names: Vec<String>,
}

/// A file that lines are put into.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HostsFile {
    /// Its path.
    path: String,
    /// Whether it was another before.
    changed: bool,
    /// Whether it was only looked at.
    dry_run: bool,
}

impl Answer for NodeHosts {
    const KIND: &'static str = "NodeHosts";
}

impl HostsCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        // A file that cannot be read is said before the cluster is asked.
        let existing = self.merge.as_deref().map(read).transpose()?;
        let nodes = Runtime::start(global)?.block_on(async {
            let (client, server) = global.client_and_server().await?;
            ui.progress(&format!("asking {server}"));
            let asker = Asker::new(client);
            asker.version(&server).await?;
            Ok::<_, Failure>(asker.list("/api/v1/nodes").await)
        })?;
        let Read::Known(nodes) = nodes else {
            let message = "the nodes of the cluster cannot be read";
            let hint = "your user needs the right to list nodes";
            return Err(Failure::new(Exit::Unreachable, "forbidden", message, hint));
        };
        let hosts = hosts_of(&nodes)?;
        let block = block(&hosts).map_err(|error| unusable(&error))?;
        let file = match (&self.merge, existing) {
            (Some(path), Some(existing)) => Some(self.put(path, &existing, &hosts)?),
            _ => None,
        };
        let hosts = hosts.into_iter().map(|Host { address, names }| NodeHost { address, names });
        let answer = NodeHosts { hosts: hosts.collect(), block, file };
        ui.answer(&answer, |out| answer.write(out))?;
        if answer.file.as_ref().is_some_and(|file| file.changed) {
            ui.hint(
                "pods read it when they start: restart kube-manager once its node has the file",
            );
        }
        Ok(Exit::Done)
    }

    fn put(&self, path: &Path, existing: &str, hosts: &[Host]) -> Result<HostsFile, Failure> {
        let text = merged(existing, hosts).map_err(|error| unusable(&error))?;
        let changed = text != existing;
        if changed && !self.dry_run {
            atomic_write::replace(path, text.as_bytes()).map_err(|error| {
                let message = format!("{} cannot be written", path.display());
                let hint = "give yourself the right to write to the file and its folder; in a container /etc/hosts \
                            cannot be replaced: merge into a copy";
                Failure::new(Exit::Usage, "unwritable-file", message, hint).because(&error)
            })?;
        }
        Ok(HostsFile { path: path.display().to_string(), changed, dry_run: self.dry_run })
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    read_limited_text(path, MOST).map_err(|error| {
        let message = format!("{} cannot be read", path.display());
        Failure::new(Exit::Usage, "unreadable-file", message, "is the path right?").because(&error)
    })
}

fn unusable(error: &HostsError) -> Failure {
    let hint = match error {
        HostsError::Markers => "correct the file by hand, and run the command again",
        HostsError::Name { .. } | HostsError::NoName(_) => {
            "look at it: kubectl get nodes -o jsonpath='{.items[*].status.addresses}'"
        }
    };
    Failure::new(Exit::Usage, "hosts", error.to_string(), hint)
}

/// The nodes in the order of their addresses. One without an address is an error: its name would be missing without a word.
fn hosts_of(nodes: &[Value]) -> Result<Vec<Host>, Failure> {
    let host = |node: &Value| {
        let of_kind = |kind: &'static str| {
            let all = list(node, "/status/addresses").filter(move |one| text(one, "/type") == kind);
            all.map(|one| text(one, "/address").to_owned())
        };
        let address = of_kind("InternalIP").find_map(|one| one.parse().ok()).ok_or_else(|| {
            let message = format!("the node {} has no InternalIP", name(node));
            Failure::new(Exit::Unreachable, "no-address", message, "is its kubelet running?")
        })?;
        // The full name is what kube-manager looks up, where the node has one.
        let names = of_kind("InternalDNS").chain(of_kind("Hostname"));
        let names =
            names.chain([name(node).to_owned()]).filter(|name| name.parse::<IpAddr>().is_err());
        let mut seen = BTreeSet::new();
        let names = names.filter(|name| seen.insert(name.clone())).collect();
        Ok(Host { address, names })
    };
    let mut hosts = nodes.iter().map(host).collect::<Result<Vec<_>, Failure>>()?;
    hosts.sort_by_key(|host| host.address);
    Ok(hosts)
}

impl NodeHosts {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(HostsFile { path, changed, dry_run }) = &self.file else {
            return write!(out, "{}", self.block);
        };
        let what = match (changed, dry_run) {
            (false, _) => "has these lines already; it was not written",
            (true, true) => "would be changed",
            (true, false) => "was changed",
        };
        writeln!(out, "{}", one_line(&format!("{path} {what}.")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, addresses: &[(&str, &str)]) -> Value {
        let addresses: Vec<Value> = addresses
            .iter()
            .map(|(kind, address)| json!({"type": kind, "address": address}))
            .collect();
        json!({"metadata": {"name": name}, "status": {"addresses": addresses}})
    }

    #[test]
    fn a_node_has_its_full_name_first_and_each_name_once() {
        let nodes = [
            node("b", &[("InternalIP", "10.0.0.10"), ("Hostname", "b")]),
            node(
                "a",
                &[("Hostname", "a"), ("InternalIP", "10.0.0.9"), ("InternalDNS", "a.example.net")],
            ),
        ];
        let hosts = hosts_of(&nodes).unwrap();
        let lines = block(&hosts).unwrap();
        let lines: Vec<&str> = lines.lines().skip(1).take(2).collect();
        assert_eq!(lines, ["10.0.0.9 a.example.net a", "10.0.0.10 b"]);
        // A node that is known by its address has no name to look up.
        let nameless = [node("10.0.0.3", &[("InternalIP", "10.0.0.3"), ("Hostname", "10.0.0.3")])];
        assert_eq!(
            block(&hosts_of(&nameless).unwrap()),
            Err(HostsError::NoName("10.0.0.3".parse().unwrap()))
        );
        assert!(hosts_of(&[node("c", &[])]).unwrap_err().message.contains("node c"));
    }

    #[test]
    fn a_file_is_changed_once_and_one_without_an_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        std::fs::write(&path, "127.0.0.1 localhost\n").unwrap();
        let hosts = hosts_of(&[node("a", &[("InternalIP", "10.0.0.9")])]).unwrap();
        let command = |dry_run| HostsCommand {
            merge: Some(path.clone()),
            dry_run,
            _cluster: AsksCluster {},
            _output: Output { output: crate::output::Format::Human },
        };
        let put = |dry_run| {
            let existing = read(&path).unwrap();
            command(dry_run).put(&path, &existing, &hosts).unwrap().changed
        };
        assert!(put(true));
        assert_eq!(read(&path).unwrap(), "127.0.0.1 localhost\n", "a dry run writes nothing");
        assert!(put(false));
        assert!(!put(false), "the second time nothing changes");
        assert!(read(&path).unwrap().contains("10.0.0.9 a\n"));
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().causes, ["it is larger than 16 MiB"]);
    }
}
