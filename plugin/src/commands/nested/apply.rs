//! `nested apply`: a plan is shown, confirmed, and carried out. How the cloud is written is opensdn-nested-cloud's.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::Timing;
use opensdn_config_api::vrouter_config::EnsuredPools;
use opensdn_nested::Plan;
use opensdn_nested_cloud::{Applied, SnatDone, apply};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::plan::Sources;
use super::workloads_flags::WorkloadsFlags;
use super::writing::{WritingFlags, failed, writing};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::install::requests::Requests;
use crate::nested::plan_file::NestedPlan;
use crate::nested::running::file::WorkloadFile;
use crate::nested::running::start::start;
use crate::nested::running::survey::WorkloadSurvey;
use crate::nested::text;
use crate::output::{Answer, Output};
use crate::runtime::Runtime;
use crate::ui::{Ui, one_line};

const EXAMPLES: &str = "\
Examples:
  # Show the plan, ask, and write it
  kubectl opensdn nested apply -f nested-cluster.yaml

  # A plan that was made and reviewed before; refused if the cloud has changed since
  kubectl opensdn nested apply -f nested-cluster.yaml --plan plan.json

  # Then kube-manager and the CNI agent as well, each waited for
  kubectl opensdn nested manifest --plan plan.json --api-server 10.0.0.10 \\
    --registry registry.example.com/opensdn --tag R25.1 > workloads.yaml
  kubectl opensdn nested apply -f nested-cluster.yaml --workloads workloads.yaml

All link-local services of a cloud are one list, which the Config API replaces as a whole.
Writers of ours wait for each other; what another program overwrites meanwhile is noticed and
written again. The list as it was before is saved first. The same command continues one that was
interrupted, and writes nothing where all is in place. Close pages of the web interface that
show link-local services: they write what they had loaded.

With --workloads the objects of that file are applied when the cloud has its part: accounts and
settings, the CNI agent, and kube-manager when that is ready on every node. What forbids them is
said before anything is written, in the cloud either.

Exit codes: 0 all is in place, 1 errors forbid it, or a workload does not run, 2 the arguments
or a file, 3 the cluster or the Config API cannot be asked or does not keep what is written,
4 the workloads are not ready within --timeout, 5 not confirmed, the cloud has changed, or the
cluster refuses the workloads, 130 interrupted: what is applied stays.";

/// Arguments of `nested apply`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct ApplyCommand {
    #[command(flatten)]
    sources: Sources,
    /// A plan of nested plan --out. The cluster's flags are needed all the same: the cloud is compared with it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    plan: Option<PathBuf>,
    #[command(flatten)]
    workloads: WorkloadsFlags,
    /// Take over the fields of others of this object of the workloads (repeatable). Without it they are listed, and
    /// nothing is written.
    #[arg(long, value_name = "KIND/NAME", requires = "workloads", help_heading = "Workloads")]
    force_conflicts: Vec<String>,
    #[command(flatten)]
    writing: WritingFlags,
    #[command(flatten)]
    _output: Output,
}

/// What `nested apply` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NestedApplication {
    /// The cluster's name in OpenSDN.
    cluster: String,
    /// Whether it was only shown.
    dry_run: bool,
    /// What was done in the cloud, or would be, a line each; nothing where all was in place.
    done: Vec<String>,
    /// What was done with the workloads, or would be, a line each; nothing where all was in place, or none were given.
    workloads: Vec<String>,
    /// The variables by which the workloads find the services.
    environment: std::collections::BTreeMap<String, String>,
    /// The file with the link-local services as they were before, if they were changed.
    backup: Option<String>,
    /// How often the list was written.
    attempts: u32,
    /// How many requests the Config API got.
    calls: u64,
}

impl Answer for NestedApplication {
    const KIND: &'static str = "NestedApplication";
}

impl ApplyCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        Runtime::start(global)?.block_on(self.apply(global, ui))
    }

    async fn apply(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let file = self.workloads.read()?;
        let (api, now) = self.sources.plan(global, ui).await?;
        let plan = match &self.plan {
            Some(path) => unchanged(NestedPlan::read(path)?, &now)?,
            None => now.plan.clone(),
        };
        let layout = ui.layout();
        if !plan.is_applicable() {
            let answer = NestedPlan { config_api: now.config_api, plan };
            ui.answer(&answer, |out| text::write(&answer.plan, layout, out))?;
            ui.hint("nothing was written: correct what the errors name, and try again");
            return Ok(Exit::Findings);
        }
        text::lines(&plan, layout).iter().for_each(|line| ui.note(line));
        check_name(&plan)?;
        let workloads = match &file {
            Some(file) => Some(self.survey(global, file, &plan, ui).await?),
            None => None,
        };
        if self.writing.dry_run {
            return self.answer(&plan, None, workloads.as_ref(), ui);
        }
        if !self.writing.yes {
            let cluster = if workloads.is_some() { ", and into the cluster" } else { "" };
            let clouds = now.config_api.join(", ");
            ui.confirm(&format!("write this into the cloud of {clouds}{cluster}"))?;
            // What was shown is what is done, however long the answer took.
            let (_, again) = self.sources.plan(global, ui).await?;
            unchanged(NestedPlan { config_api: now.config_api, plan: plan.clone() }, &again)?;
        }
        let applied = self.carry_out(&api, &plan, ui).await?;
        if let Some(workloads) = &workloads {
            done(&applied).iter().for_each(|line| ui.note(line));
            self.start(global, workloads, ui).await?;
        }
        self.answer(&plan, Some(applied), workloads.as_ref(), ui)
    }

    /// What the workloads need, and what an apply of them would do.
    async fn survey(
        &self,
        global: &Global,
        file: &WorkloadFile,
        plan: &Plan,
        ui: &mut Ui,
    ) -> Result<WorkloadSurvey, Failure> {
        file.refuse_another(&plan.cluster, &plan.environment)?;
        if plan.prune {
            let message = "--prune takes away what workloads use until they are restarted";
            let hint = "first with --workloads and without --prune; when they are ready, with --prune alone";
            return Err(Failure::usage(message, hint));
        }
        let requests = Requests::new(global.client().await?);
        let survey = WorkloadSurvey::of(&requests, file, &self.force_conflicts, ui).await?;
        survey.lines().iter().for_each(|line| ui.note(&format!("  {}", one_line(line))));
        Ok(survey)
    }

    async fn start(
        &self,
        global: &Global,
        workloads: &WorkloadSurvey,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let requests = Requests::new(global.client().await?);
        let deadline = self.workloads.deadline();
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(Failure::new(
                Exit::Interrupted,
                "interrupted",
                "interrupted: what is applied stays, and so does what is in the cloud",
                "the same command continues",
            )),
            done = start(&requests, workloads, deadline, ui) => done,
        }
    }

    async fn carry_out(
        &self,
        api: &ConfigApi,
        plan: &Plan,
        ui: &mut Ui,
    ) -> Result<Applied, Failure> {
        let foreign = self.sources.spec.choices().foreign();
        let save = async |rows: Value| self.writing.save(&plan.cluster, &rows);
        let timing = Timing::default();
        writing(ui, Box::pin(apply(api, plan, foreign, &timing, save))).await.map_err(|error| {
            let message = format!("{} is not whole in the cloud", plan.cluster);
            let hint = "when the cause is gone, the same command continues: the cluster's record has what was done";
            failed(&error, "not-applied", &message, hint)
        })
    }

    fn answer(
        &self,
        plan: &Plan,
        applied: Option<Applied>,
        workloads: Option<&WorkloadSurvey>,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        let done = applied.as_ref().map_or_else(|| text::actions(plan), done);
        let answer = NestedApplication {
            cluster: plan.cluster.clone(),
            dry_run: applied.is_none(),
            done,
            workloads: workloads.map(WorkloadSurvey::lines).unwrap_or_default(),
            environment: plan.environment.clone(),
            backup: applied.as_ref().and_then(|applied| applied.rows.backup.clone()),
            attempts: applied.as_ref().map_or(0, |applied| applied.rows.attempts),
            calls: applied.as_ref().map_or(0, |applied| applied.calls),
        };
        ui.answer(&answer, |out| answer.write(out))?;
        Ok(Exit::Done)
    }
}

/// kube-manager deletes what carries its cluster's name and is not its own.
fn check_name(plan: &Plan) -> Result<(), Failure> {
    let Some(why) = &plan.whose_name else { return Ok(()) };
    let message = format!("whether {} is free is not known: {why}", plan.cluster);
    let hint = "if what carries the name is this cluster's: --adopt-name";
    Err(Failure::new(Exit::Refused, "unknown-name", message, hint))
}

/// The plan that was made or shown, if it is what would be planned now. A plan is made of the arguments, the cluster and
/// the cloud alone, so one that differs although these are the same was changed by hand.
fn unchanged(planned: NestedPlan, now: &NestedPlan) -> Result<Plan, Failure> {
    let why = if planned.plan.record != now.plan.record {
        "it is for another cluster"
    } else if planned.config_api != now.config_api {
        "it is for another Config API"
    } else if planned.plan.fingerprint != now.plan.fingerprint {
        "the cloud has changed since"
    } else if planned.plan != now.plan {
        "the arguments, the cluster or the cloud are not those of which it was made, or the file was changed"
    } else {
        return Ok(planned.plan);
    };
    let message = format!("the plan is not carried out: {why}");
    let hint = "plan again, and compare: kubectl opensdn nested plan";
    Err(Failure::new(Exit::Refused, "outdated-plan", message, hint))
}

fn done(applied: &Applied) -> Vec<String> {
    let mut lines = Vec::new();
    if applied.pools == Some(EnsuredPools::Added) {
        lines.push("added the port translation pools".to_owned());
    }
    lines.extend(applied.rows.changes.iter().map(|change| format!("link-local service {change}")));
    // One that was dropped several times is said once.
    let put_back: BTreeSet<String> =
        applied.rows.put_back.iter().map(ToString::to_string).collect();
    lines.extend(
        put_back.iter().map(|row| format!("put back, as another writer had dropped it: {row}")),
    );
    if applied.snat == SnatDone::Changed {
        lines.push("turned on fabric SNAT of the network".to_owned());
    }
    lines.extend(applied.snat_off.iter().map(|network| {
        format!(
            "turned off fabric SNAT of the network {network}, which the nodes do not need any more"
        )
    }));
    lines
}

impl NestedApplication {
    fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        if self.dry_run {
            return writeln!(out, "Nothing was written.");
        }
        if self.done.is_empty() && self.workloads.is_empty() {
            return writeln!(out, "All was in place: nothing was written.");
        }
        let workloads = self.workloads.iter().map(|line| format!("workloads: {line}"));
        self.done
            .iter()
            .cloned()
            .chain(workloads)
            .try_for_each(|line| writeln!(out, "{}", one_line(&line)))?;
        if let Some(backup) = &self.backup {
            let backup = one_line(backup);
            writeln!(out, "The link-local services as they were before are in {backup}")?;
        }
        Ok(())
    }
}
