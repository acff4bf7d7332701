//! `nested insecure-registry`: what the runtime of each node has to be given to pull from a registry without TLS, or with a
//! certificate that nodes do not know. It is printed: nothing here writes to a node.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use opensdn_manifests::read_limited_text;
use opensdn_nested_workloads::insecure_registry::{
    InsecureRegistryError, Insecurity, Runtime as ContainerRuntime, Snippet, snippet,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::snapshot::{Read, name, text};
use crate::ui::{Ui, one_line};

/// The most of a file of docker's settings.
const MOST: u64 = 1 << 20;
/// What kubelet says where a runtime has not been given it.
const SYMPTOMS: [&str; 2] = ["server gave HTTP response to HTTPS client", "x509"];

const EXAMPLES: &str = "\
Examples:
  # What do the nodes need for a registry without TLS?
  kubectl opensdn nested insecure-registry --registry ci-repo.example.net:5010

  # Of a registry whose certificate nodes do not know
  kubectl opensdn nested insecure-registry --registry ci-repo.example.net:5010 --tls unverified

  # Docker has one file for all: what is in it already stays
  scp node1:/etc/docker/daemon.json .
  kubectl opensdn nested insecure-registry --registry ci-repo.example.net:5010 \\
    --existing daemon.json

The runtimes are what the nodes say of themselves. Nothing is written: put the files there by
what manages your nodes, one node after the other, before the workloads are applied. A
certificate of an authority that nodes know is better than either.

Exit codes: 0 printed, 1 a node has a runtime that is not known here, 2 the arguments or the
file, 3 the cluster cannot be asked.";

/// Arguments of `nested insecure-registry`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct InsecureRegistryCommand {
    /// The registry: a host with or without a port; a path behind it is left out.
    #[arg(long, value_name = "HOST[:PORT]")]
    registry: String,
    /// How the registry speaks TLS.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    tls: Tls,
    /// The /etc/docker/daemon.json that nodes with docker have.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    existing: Option<PathBuf>,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

/// How a registry speaks TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Tls {
    /// Not at all: HTTP.
    #[default]
    None,
    /// With a certificate that nodes cannot check.
    Unverified,
}

/// What `nested insecure-registry` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InsecureRegistry {
    /// The registry, without a path.
    registry: String,
    /// What is to be done, by runtime.
    runtimes: Vec<Instructions>,
    /// Nodes with a runtime that is not known here.
    unknown: Vec<UnknownRuntime>,
    /// Nodes whose runtime has refused the registry within the last hour (OSDN3065).
    refusing: Vec<String>,
}

/// What is to be done on nodes of one runtime.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Instructions {
    /// The runtime.
    runtime: String,
    /// The nodes.
    nodes: Vec<String>,
    /// The file.
    file: String,
    /// All that is in it.
    content: String,
    /// Another file, which has to have these lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    also: Option<Lines>,
    /// What is run then.
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<String>,
}

/// Lines of a file.
#[derive(Debug, Serialize, JsonSchema)]
struct Lines {
    /// The file.
    file: String,
    /// The lines.
    lines: String,
}

/// A node whose runtime is not known here.
#[derive(Debug, Serialize, JsonSchema)]
struct UnknownRuntime {
    /// The node.
    node: String,
    /// What it says of its runtime.
    runtime: String,
}

impl Answer for InsecureRegistry {
    const KIND: &'static str = "InsecureRegistry";
}

impl InsecureRegistryCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let existing = self.existing()?;
        // What is wrong with the arguments is said before the cluster is asked.
        self.snippet(ContainerRuntime::Docker, existing.as_deref())?;
        let (nodes, events) = Runtime::start(global)?.block_on(async {
            let (client, server) = global.client_and_server().await?;
            ui.progress(&format!("asking {server}"));
            let asker = Asker::new(client);
            asker.version(&server).await?;
            let events = "/api/v1/events?fieldSelector=reason%3DFailed";
            Ok::<_, Failure>(futures::join!(asker.list("/api/v1/nodes"), asker.list(events)))
        })?;
        let Read::Known(nodes) = nodes else {
            let message = "the nodes of the cluster cannot be read";
            let hint = "your user needs the right to list nodes";
            return Err(Failure::new(Exit::Unreachable, "forbidden", message, hint));
        };
        let answer = self.answer(&nodes, &events, existing.as_deref())?;
        let has_docker = answer.runtimes.iter().any(|one| one.runtime == "docker");
        ui.answer(&answer, |out| answer.write(out))?;
        match (has_docker, existing.is_some()) {
            (true, false) => ui.hint(
                "this is the whole of /etc/docker/daemon.json: where nodes have one, give it by --existing; a \
                 second object in the file keeps docker from starting",
            ),
            (false, true) => ui.warn("--existing has no effect: no node has docker"),
            _ => {}
        }
        Ok(if answer.unknown.is_empty() { Exit::Done } else { Exit::Findings })
    }

    fn existing(&self) -> Result<Option<String>, Failure> {
        let read = |path: &PathBuf| {
            read_limited_text(path, MOST).map_err(|error| {
                let message = format!("{} cannot be read", path.display());
                let hint = "is the path right?";
                Failure::new(Exit::Usage, "unreadable-file", message, hint).because(&error)
            })
        };
        self.existing.as_ref().map(read).transpose()
    }

    fn snippet(
        &self,
        runtime: ContainerRuntime,
        existing: Option<&str>,
    ) -> Result<Snippet, Failure> {
        let insecurity = match self.tls {
            Tls::None => Insecurity::Http,
            Tls::Unverified => Insecurity::UnknownCertificate,
        };
        snippet(runtime, &self.registry, insecurity, existing).map_err(|error| {
            let code = error.code().map(|code| format!("[{code}] ")).unwrap_or_default();
            let hint = match error {
                InsecureRegistryError::Registry(_) => "write it as ci-repo.example.net:5010",
                _ => "correct the file on the nodes, too: docker does not start with it",
            };
            Failure::new(Exit::Usage, "insecure-registry", format!("{code}{error}"), hint)
        })
    }

    fn answer(
        &self,
        nodes: &[Value],
        events: &Read<Vec<Value>>,
        existing: Option<&str>,
    ) -> Result<InsecureRegistry, Failure> {
        let registry = self.registry.split('/').next().unwrap_or_default().to_owned();
        let mut by_runtime: BTreeMap<&'static str, (ContainerRuntime, Vec<String>)> =
            BTreeMap::new();
        let mut unknown = Vec::new();
        for node in nodes {
            let version = text(node, "/status/nodeInfo/containerRuntimeVersion");
            let node = name(node).to_owned();
            match ContainerRuntime::of(version) {
                Some(runtime) => {
                    by_runtime.entry(runtime.name()).or_insert((runtime, Vec::new())).1.push(node);
                }
                None => unknown.push(UnknownRuntime { node, runtime: version.to_owned() }),
            }
        }
        let instructions = |(name, (runtime, nodes)): (&'static str, (ContainerRuntime, _))| {
            let Snippet { path, content, also, then } = self.snippet(runtime, existing)?;
            Ok(Instructions {
                runtime: name.to_owned(),
                nodes,
                file: path,
                content,
                also: also
                    .map(|(file, lines)| Lines { file: file.to_owned(), lines: lines.to_owned() }),
                then: then.map(str::to_owned),
            })
        };
        let runtimes = by_runtime.into_iter().map(instructions).collect::<Result<_, Failure>>()?;
        let refusing = refusing(events, &registry);
        Ok(InsecureRegistry { registry, runtimes, unknown, refusing })
    }
}

/// The nodes whose kubelet has said so of an image of the registry. Kubernetes keeps events for an hour.
fn refusing(events: &Read<Vec<Value>>, registry: &str) -> Vec<String> {
    let Read::Known(events) = events else { return Vec::new() };
    let is_refusal = |event: &&Value| {
        let message = text(event, "/message");
        message.contains(&format!("{registry}/"))
            && SYMPTOMS.iter().any(|one| message.contains(one))
    };
    let node = |event: &Value| match text(event, "/source/host") {
        "" => text(event, "/reportingInstance").to_owned(),
        host => host.to_owned(),
    };
    let nodes = events.iter().filter(is_refusal).map(node);
    nodes.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

impl InsecureRegistry {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, one) in self.runtimes.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            one.write(out)?;
        }
        for UnknownRuntime { node, runtime } in &self.unknown {
            let line =
                format!("{node} has the runtime {runtime:?}, for which it is not known what to do");
            writeln!(out, "unknown  {}", one_line(&line))?;
        }
        for node in &self.refusing {
            let line = format!(
                "[OSDN3065] {node} has refused {} within the last hour: what is above is not done there, or was not",
                self.registry
            );
            writeln!(out, "{}", one_line(&line))?;
        }
        Ok(())
    }
}

impl Instructions {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { runtime, nodes, file, content, also, then } = self;
        writeln!(out, "# {}", one_line(&format!("{runtime} on {}", nodes.join(", "))))?;
        writeln!(out, "# {file}")?;
        // Of a file that was given only what a terminal shows: the document has it as it is.
        write!(out, "{content}")?;
        if let Some(Lines { file, lines }) = also {
            writeln!(out, "# {file} has to have, once, with a restart of the runtime")?;
            write!(out, "{lines}")?;
        }
        match then {
            Some(then) => writeln!(out, "# then: {then}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
