//! `nested remove`: what a cluster has in the cloud is shown, confirmed, and taken away.

use std::io::{self, Write};

use clap::Args;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::Timing;
use opensdn_config_api::ownership::{ClusterId, Pools};
use opensdn_config_api::vrouter_config::RemovedPools;
use opensdn_nested_cloud::{Removal, Removed, removal, remove};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::workloads_flags::WorkloadsFlags;
use super::writing::{WritingFlags, failed, writing};
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::requests::Requests;
use crate::nested::cluster::NestedFacts;
use crate::nested::connection::ConfigApiFlags;
use crate::nested::running::file::WorkloadFile;
use crate::nested::running::stop::Stored;
use crate::nested::running::survey::kube_managers;
use crate::nested::waited::waited;
use crate::nested::world::{cluster_id, unreachable};
use crate::output::{Answer, Output};
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::ui::{Ui, one_line};

const EXAMPLES: &str = "\
Examples:
  # What does this cluster have in the cloud, and what of it would go?
  kubectl opensdn nested remove --config-api https://192.168.1.100:8082 --dry-run=client

  # Stop kube-manager and the CNI agent, and take it away
  kubectl opensdn nested remove --config-api https://192.168.1.100:8082 --workloads workloads.yaml

  # Of a cluster that is gone, by the uid that its namespace kube-system had
  kubectl opensdn nested remove --config-api https://192.168.1.100:8082 --cluster-id UID

First delete Services and pods, so that kube-manager removes what it has made for them. Then it
is stopped, with the CNI agent, by --workloads, or by you: with fabric SNAT it reaches the cloud
by what is taken away here. What they have made is not touched; it is listed.

Only that goes which the record of the cluster in the cloud has: link-local services that were
there before, or that another cluster uses, stay, and so does SNAT that was on before. What
stays is listed.

Exit codes: 0 it is gone, or there was nothing, 2 the arguments, 3 the cluster or the Config API
cannot be asked, 4 pods of the workloads do not end within --timeout, 5 not confirmed.";

/// Arguments of `nested remove`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct RemoveCommand {
    #[command(flatten)]
    config_api: ConfigApiFlags,
    /// The uid that the cluster's namespace kube-system has, or had [default: it is read from the cluster].
    #[arg(long, value_name = "UID", conflicts_with = "workloads")]
    cluster_id: Option<String>,
    #[command(flatten)]
    workloads: WorkloadsFlags,
    #[command(flatten)]
    writing: WritingFlags,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

/// What `nested remove` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NestedRemoval {
    /// By what the record is known.
    cluster_id: String,
    /// Whether it was only shown.
    dry_run: bool,
    /// The workloads that were stopped, or would be.
    stopped: Vec<String>,
    /// What went from the cloud, or would go, a line each.
    removed: Vec<String>,
    /// What stays, with the reason.
    left: Vec<String>,
    /// What the workloads have made elsewhere, which is not touched.
    of_workloads: Vec<String>,
    /// The file with the link-local services as they were before, if they were changed.
    backup: Option<String>,
}

impl Answer for NestedRemoval {
    const KIND: &'static str = "NestedRemoval";
}

impl RemoveCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        Runtime::start(global)?.block_on(self.remove(global, ui))
    }

    async fn remove(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let file = self.workloads.read()?;
        let api = self.config_api.client_without_spec()?;
        let text = self.id(global, ui).await?;
        let id = cluster_id(&text)?;
        let workloads = self.running(global, file.as_ref(), ui).await?;
        ui.progress("asking the Config API");
        let found = found(&api, &id, ui).await?;
        let mut answer = NestedRemoval {
            cluster_id: text,
            dry_run: true,
            stopped: workloads.as_ref().map(|(_, stored)| stored.lines()).unwrap_or_default(),
            removed: lines(&found),
            left: found.left.iter().map(ToString::to_string).collect(),
            of_workloads: of_workloads(&found),
            backup: None,
        };
        if self.writing.dry_run || (found.is_nothing() && answer.stopped.is_empty()) {
            answer.dry_run = self.writing.dry_run;
            ui.answer(&answer, |out| answer.write(out))?;
            return Ok(Exit::Done);
        }
        if !self.writing.yes {
            answer.lines().iter().for_each(|line| ui.note(line));
            let what = if answer.stopped.is_empty() { "" } else { "stop the workloads, and " };
            ui.confirm(&format!("{what}take this away from the cloud"))?;
            // What was shown is what is done, however long the answer took.
            if self::found(&api, &id, ui).await? != found {
                let message =
                    "nothing was removed: the record of the cluster has changed meanwhile";
                let hint = "look again: the same command with --dry-run=client";
                return Err(Failure::new(Exit::Refused, "outdated-removal", message, hint));
            }
        }
        if let Some((requests, stored)) = &workloads {
            stored.delete(requests, self.workloads.deadline(), ui).await?;
        }
        answer.dry_run = false;
        if !found.is_nothing() {
            let removed = self.carry_out(&api, &id, ui).await?;
            answer.removed = done(&removed);
            answer.left = removed.left.iter().map(ToString::to_string).collect();
            answer.backup = removed.rows.backup;
        }
        ui.answer(&answer, |out| answer.write(out))?;
        Ok(Exit::Done)
    }

    /// The workloads of the manifest that are there. Where none is given, what runs all the same is warned of: it loses its
    /// way into the cloud.
    async fn running(
        &self,
        global: &Global,
        file: Option<&WorkloadFile>,
        ui: &mut Ui,
    ) -> Result<Option<(Requests, Stored)>, Failure> {
        if self.cluster_id.is_some() {
            return Ok(None);
        }
        let requests = Requests::new(global.client().await?);
        if let Some(file) = file {
            let stored = Stored::of(&requests, file).await?;
            return Ok(Some((requests, stored)));
        }
        // Who may not list them is not kept from it.
        for running in kube_managers(&requests).await.unwrap_or_default() {
            let key = ObjectKey::of(&running);
            ui.warn(&format!("{key} runs kube-manager, which loses its way into the cloud"));
            ui.hint("to have it stopped before: --workloads FILE");
        }
        Ok(None)
    }

    /// By what the record is known.
    async fn id(&self, global: &Global, ui: &mut Ui) -> Result<String, Failure> {
        if let Some(id) = &self.cluster_id {
            return Ok(id.clone());
        }
        let (client, server) = global.client_and_server().await?;
        ui.progress(&format!("asking {server}"));
        Ok(NestedFacts::ask(&Asker::new(client), &server).await?.id)
    }

    async fn carry_out(
        &self,
        api: &ConfigApi,
        id: &ClusterId,
        ui: &mut Ui,
    ) -> Result<Removed, Failure> {
        let save = async |rows: Value| self.writing.save(&id.to_string(), &rows);
        let timing = Timing::default();
        writing(ui, Box::pin(remove(api, id, &timing, save))).await.map_err(|error| {
            let message = "not all of it is gone";
            let hint = "when the cause is gone, the same command continues: the cluster's record is still there";
            failed(&error, "not-removed", message, hint)
        })
    }
}

/// What the cluster has in the cloud.
async fn found(api: &ConfigApi, id: &ClusterId, ui: &mut Ui) -> Result<Removal, Failure> {
    let found = waited(ui, "waiting for the Config API", removal(api, id)).await;
    found.map_err(|error| unreachable(&error))
}

/// What is gone, and not what was foreseen.
fn done(removed: &Removed) -> Vec<String> {
    let snat =
        removed.snat_off.iter().map(|network| format!("fabric SNAT of the network {network}"));
    let is_pools = removed.pools == Some(RemovedPools::Removed);
    let pools = is_pools.then(|| "the port translation pools".to_owned());
    let rows = removed.rows.changes.iter().map(|change| format!("the link-local service {change}"));
    snat.chain(pools).chain(rows).collect()
}

/// What kube-manager and the CNI agent leave behind, by the names that they give it (tf-controller `container/kube-manager`,
/// tf-container-builder `containers/kubernetes/cni-init`).
fn of_workloads(removal: &Removal) -> Vec<String> {
    if removal.is_nothing() {
        return Vec::new();
    }
    let cluster = removal.cluster.as_deref().unwrap_or("CLUSTER");
    let all = |what: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("{cluster}-{name}")).collect();
        format!("in the cloud, {what}: {}", names.join(", "))
    };
    let pools = match removal.pools {
        Pools::Ours => "",
        _ => " and port_translation_pools",
    };
    vec![
        all("virtual networks", &["default-pod-network", "default-service-network"]),
        all("IPAMs", &["pod-ipam", "service-ipam", "ip-fabric-ipam"]),
        all(
            "policies",
            &[
                "default-ip-fabric-np",
                "default-service-np",
                "default-pod-service-np",
                "nested-underlay-np",
            ],
        ),
        format!(
            "in the cloud: the application policy set {cluster}, security groups {cluster}-NAMESPACE-default-sg, and load \
             balancers and interfaces of Services and pods that were not deleted before kube-manager"
        ),
        format!(
            "in the cloud: flow_aging_timeout_list{pools} of global-vrouter-config, and the queue in RabbitMQ"
        ),
        "on nodes: /etc/cni/net.d/10-contrail.conf, which the kubelet uses while it is there, /opt/cni/bin/contrail-k8s-cni and \
         /var/lib/contrail"
            .to_owned(),
    ]
}

fn lines(removal: &Removal) -> Vec<String> {
    let snat =
        removal.snat_off.iter().map(|network| format!("fabric SNAT of the network {network}"));
    let pools = (removal.pools == Pools::Ours).then(|| "the port translation pools".to_owned());
    let rows = removal.rows.iter().map(|row| format!("the link-local service {row}"));
    snat.chain(pools).chain(rows).collect()
}

impl NestedRemoval {
    fn lines(&self) -> Vec<String> {
        let has_nothing = self.removed.is_empty() && self.left.is_empty();
        let nothing = has_nothing
            .then(|| format!("The cluster {} has nothing in the cloud.", self.cluster_id));
        let (word, stop) = match self.dry_run {
            true => ("would remove", "would stop"),
            false => ("removed", "stopped"),
        };
        let stopped = self.stopped.iter().map(|line| format!("{stop}: {line}"));
        let removed = self.removed.iter().map(|line| format!("{word} {line}"));
        let left = self.left.iter().map(|line| format!("stays: {line}"));
        let backup = self.backup.iter();
        let backup =
            backup.map(|file| format!("The link-local services as they were before are in {file}"));
        let workloads = self.of_workloads.iter();
        let workloads = workloads.map(|line| format!("not touched, made by the workloads {line}"));
        let cloud = removed.chain(left).chain(workloads).chain(backup);
        stopped.chain(nothing).chain(cloud).collect()
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.lines().iter().try_for_each(|line| writeln!(out, "{}", one_line(line)))
    }
}
