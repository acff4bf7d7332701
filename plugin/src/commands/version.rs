//! `version`: what this program is, what runs in the cluster, and which programs on PATH hide its commands.
//! How the cluster is asked is in `version/server.rs`.

use std::io::{self, Write};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::Global;
use crate::clients::{AsksCluster, WebhookNamespace};
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::plugins;
use crate::ui::Ui;

mod server;

use server::Server;

const EXAMPLES: &str = "\
Examples:
  # This program, and what runs in the cluster of the current context
  kubectl opensdn version

  # This program alone, without a cluster
  kubectl opensdn version --client -o json";

/// Arguments of `version`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Version {
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
    /// What it was built for: `x86_64-linux`.
    platform: String,
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

impl Version {
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
            platform: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        }
    }
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
        let Client { version, commit, platform } = &self.client;
        let commit = commit.map(|commit| format!("{commit}, ")).unwrap_or_default();
        writeln!(out, "client      {version} ({commit}{platform})")?;
        if let Some(server) = &self.server {
            server.write(out)?;
        }
        if let Some(problem) = &self.problem {
            writeln!(out, "server      unknown: {}", problem.message)?;
            for cause in &problem.causes {
                writeln!(out, "            because: {cause}")?;
            }
        }
        Ok(())
    }
}
