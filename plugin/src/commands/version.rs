//! `version`: what this program is, what runs in the cluster, and which programs on PATH hide its commands.
//! How the cluster is asked is in `version/server.rs`.

use std::io::{self, Write};

use clap::Args;
use opensdn_upgrade::version::{RELEASES, Version};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::Global;
use crate::clients::{AsksCluster, WebhookNamespace};
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::plugins;
use crate::ui::{Ui, one_line};

mod server;

use server::Server;

const EXAMPLES: &str = "\
Examples:
  # This program, and what runs in the cluster of the current context
  kubectl opensdn version

  # This program alone, without a cluster
  kubectl opensdn version --client -o json";

/// So much of a commit's hash is shown to people.
const COMMIT_LETTERS: usize = 7;

/// Arguments of `version`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VersionCommand {
    /// Say the version of this program only; no cluster is asked.
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    webhook: WebhookNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

/// What `version` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Versions {
    /// This program.
    client: Client,
    /// What runs in the cluster, as far as it could be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Server>,
    /// Why the cluster could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Failure>,
    /// Programs on PATH that kubectl runs in the place of a command of this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shadows: Vec<Shadow>,
}

/// This program.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Client {
    /// Its version.
    version: &'static str,
    /// The commit it was built from, where the build said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    /// The release of rustc that built it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rustc: Option<&'static str>,
    /// What it was built for, as rustc names it: `x86_64-unknown-linux-musl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'static str>,
    /// What it was built for: `x86_64-linux`.
    platform: String,
    /// The releases of OpenSDN that it knows.
    opensdn: Range,
    /// The versions of Kubernetes that it is tested with.
    kubernetes: Range,
}

/// From which version to which.
#[derive(Debug, Serialize, JsonSchema)]
struct Range {
    /// The oldest.
    oldest: String,
    /// The newest.
    newest: String,
}

/// A program that takes the place of a command.
#[derive(Debug, Serialize, JsonSchema)]
struct Shadow {
    /// The command.
    command: String,
    /// The program.
    path: String,
}

impl Answer for Versions {
    const KIND: &'static str = "Versions";
}

impl VersionCommand {
    pub(crate) fn asks_cluster(&self) -> bool {
        !self.client
    }

    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let mut versions =
            Versions { client: Client::this(), server: None, problem: None, shadows: shadows() };
        if self.client {
            let why = "with --client no cluster is asked";
            global.cluster.must_be_absent(why, "leave one of them out")?;
        } else if global.cluster.namespace.is_some() {
            let message = "--namespace has no effect: the webhook is what is asked about";
            return Err(Failure::usage(message, "name its namespace: --control-namespace"));
        } else {
            match server::ask(global, &self.webhook.control_namespace, ui) {
                Ok(server) => versions.server = Some(server),
                Err(problem) => versions.problem = Some(problem),
            }
        }
        ui.answer(&versions, |out| versions.write(out))?;
        for shadow in &versions.shadows {
            ui.warn(&format!(
                "`kubectl {}` runs {}, not this program",
                shadow.command, shadow.path
            ));
        }
        if let Some(problem) = &versions.problem {
            if !problem.hint.is_empty() {
                ui.hint(&problem.hint);
            }
            ui.hint("for this program alone: --client");
            return Ok(problem.exit);
        }
        Ok(Exit::Done)
    }
}

impl Client {
    fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("OPENSDN_COMMIT").filter(|commit| !commit.is_empty()),
            rustc: option_env!("OPENSDN_RUSTC"),
            target: option_env!("OPENSDN_TARGET"),
            platform: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            opensdn: known_releases(),
            kubernetes: Range {
                oldest: format!("1.{}", server::SUPPORTED.start()),
                newest: format!("1.{}", server::SUPPORTED.end()),
            },
        }
    }

    /// Of what it was built, by what and for which machine, for people.
    fn build(&self) -> String {
        let commit = self.commit.map(|commit| {
            let (hash, rest) = commit.split_once('-').unwrap_or((commit, ""));
            let short = hash.get(..COMMIT_LETTERS).unwrap_or(hash);
            if rest.is_empty() { short.to_owned() } else { format!("{short}-{rest}") }
        });
        let rustc = self.rustc.map(|version| format!("rustc {version}"));
        let machine = self.target.map_or_else(|| self.platform.clone(), str::to_owned);
        [commit, rustc, Some(machine)].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The releases that an upgrade leads from and to.
fn known_releases() -> Range {
    let tag = |release: Option<&(u32, u32)>| {
        let version = |&(year, number)| Version { year, number, patch: 0 }.to_string();
        release.map(version).unwrap_or_default()
    };
    Range { oldest: tag(RELEASES.first()), newest: tag(RELEASES.last()) }
}

fn shadows() -> Vec<Shadow> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let externals = plugins::found_in(&path);
    if externals.iter().all(|external| external.words.is_empty()) {
        // The common case, without building all commands needlessly.
        return Vec::new();
    }
    plugins::shadows(&externals, &crate::parse::command())
        .map(|external| Shadow {
            command: format!("opensdn {}", external.words.join(" ")),
            path: external.path.display().to_string(),
        })
        .collect()
}

impl Versions {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Client { version, opensdn, kubernetes, .. } = &self.client;
        writeln!(out, "client      {version} ({})", self.client.build())?;
        let (Range { oldest, newest }, versions) = (opensdn, kubernetes);
        write!(out, "knows       OpenSDN {oldest} - {newest}, ")?;
        writeln!(out, "Kubernetes {} - {}", versions.oldest, versions.newest)?;
        if let Some(server) = &self.server {
            server.write(out)?;
        }
        if let Some(problem) = &self.problem {
            writeln!(out, "server      unknown: {}", one_line(&problem.message))?;
            for cause in &problem.causes {
                writeln!(out, "            because: {}", one_line(cause))?;
            }
        }
        Ok(())
    }
}
