//! `install`: what will change is shown and confirmed, then applied; an interrupted run is taken up by the next. What the
//! steps are is in `crate::install`.

use std::cell::Cell;
use std::io::{self, Write};
use std::time::Duration;

use clap::{Args, ValueEnum};
use opensdn_deploy::Values;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::checks::planned::Planned as PlannedObjects;
use crate::checks::report::Outcome;
use crate::checks::{Chosen, Purpose, ask, judge};
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::install::applying::{Applying, Stage, Wait};
use crate::install::in_the_way::refuse;
use crate::install::inventory::{Inventory, Progress, VERSION};
use crate::install::object::ObjectKey;
use crate::install::plan::{Action, Adopt, Counts, Planned};
use crate::install::removal_mark::RemovalMark;
use crate::install::requests::Requests;
use crate::install::survey::{BesideTfOperator, Survey, Takeover, beside_tf_operator, inventory};
use crate::install::take_over::{TakeOver, managers, unwatched};
use crate::install::target::Target;
use crate::install::tenants::refuse_tenants;
use crate::install::values::{ValuesArgs, forgotten, steps};
use crate::install::waiting::Deadline;
use crate::output::{Answer, ObjectsOutput};
use crate::runtime::Runtime;
use crate::snapshot::Read;
use crate::ui::{Ui, one_line};
use crate::upgrade::outdated::{self, ManagerRelease};

const EXAMPLES: &str = "\
Examples:
  # Webhook, operator and policies, with what a cluster of three nodes needs
  kubectl opensdn install

  # What would it do?
  kubectl opensdn install -f prod.yaml --dry-run=server

  # All images from your registry, one node, no questions
  kubectl opensdn install --set registry=registry.local/opensdn --profile single-node --yes

  # What tf-operator runs is taken over: what that is, and then do it
  kubectl opensdn install --adopt --dry-run=server
  kubectl opensdn install --adopt

Without -f, --set and --profile an installation keeps the values it has. The same command
continues one that was interrupted, and changes nothing in one that is complete.

Exit codes: 0 installed, 1 something will not become ready, 4 not ready within --timeout,
5 refused or not confirmed, 130 interrupted: what is applied stays.";

/// Whether anything is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// It is.
    #[default]
    None,
    /// Nothing is written, nor tried by the API server; `install` asks no cluster then.
    Client,
    /// Nothing is written; the cluster is asked what it would do.
    Server,
}

/// Where the webhook is.
#[derive(Debug, Args)]
pub(crate) struct ControlNamespace {
    /// The namespace of the webhook, where values do not say so.
    #[arg(
        long,
        env = "OPENSDN_NAMESPACE",
        hide_env_values = true,
        default_value = opensdn_deploy::names::NAMESPACE,
        value_name = "NAME"
    )]
    pub(crate) control_namespace: String,
}

impl ControlNamespace {
    /// kubectl's flag means another namespace.
    ///
    /// # Errors
    /// It was given.
    pub(crate) fn check(global: &Global) -> Result<(), Failure> {
        if global.cluster.namespace.is_none() {
            return Ok(());
        }
        let message = "--namespace has no effect: an installation is of the whole cluster";
        Err(Failure::usage(message, "for the namespace of the webhook: --control-namespace"))
    }
}

/// Arguments of `install`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Install {
    #[command(flatten)]
    values: ValuesArgs,
    /// Take over objects that are there already and not of this installation: of Helm, or of kubectl apply -k; and what
    /// tf-operator runs, where it runs.
    #[arg(long)]
    adopt: bool,
    /// Take over the fields of others of this object (repeatable). Without it they are listed, and nothing is written.
    #[arg(long, value_name = "KIND/NAME")]
    force_conflicts: Vec<String>,
    /// Wait until the webhook answers and the policies are in force.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    wait: bool,
    /// How long to wait.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = opensdn_duration::parse)]
    timeout: Duration,
    /// Only show what would be done.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    dry_run: DryRun,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    place: ControlNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    output: ObjectsOutput,
}

/// What `install` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Installation {
    /// The API server; none where no cluster was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The namespace of the webhook.
    namespace: String,
    /// The version of OpenSDN's programs.
    version: &'static str,
    /// Whether it was only shown.
    dry_run: bool,
    /// Whether the webhook answered and the policies were in force at the end.
    ready: bool,
    /// How many objects were, or would be, written.
    counts: Counts,
    /// Each object, and what was done.
    objects: Vec<ObjectAction>,
    /// What tf-operator runs, and our operator takes over.
    #[serde(skip_serializing_if = "Option::is_none")]
    take_over: Option<TakeOver>,
    /// What an earlier run has installed and this one does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    obsolete: Vec<ObjectKey>,
    /// The Managers, whose services keep their images: each with the release that it could have next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    managers: Vec<ManagerRelease>,
}

/// An object, and what is done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ObjectAction {
    #[serde(flatten)]
    key: ObjectKey,
    #[serde(flatten)]
    action: Action,
}

impl ObjectAction {
    /// What it is called.
    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// What is done.
    pub(crate) fn action(&self) -> &Action {
        &self.action
    }

    /// Of a plan.
    pub(crate) fn all(plan: &[Planned]) -> Vec<Self> {
        plan.iter().map(|one| Self { key: one.key.clone(), action: one.action.clone() }).collect()
    }
}

impl Answer for Installation {
    const KIND: &'static str = "Installation";
}

/// The values that the command line gives, else those of what is installed, and that.
pub(crate) async fn chosen(
    requests: &Requests,
    values: &ValuesArgs,
    namespace: &str,
    ui: &mut Ui,
) -> Result<(Values, Option<Inventory>), Failure> {
    let given = values.read(namespace)?;
    ui.progress("asking the cluster what is installed");
    let before = inventory(requests, &given.namespace).await?;
    match &before {
        Some(before) if !values.are_given() => {
            ui.detail("the values are those of the installation");
            Ok((before.values.clone(), Some(before.clone())))
        }
        _ => {
            let before_values = before.as_ref().map(|before| &before.values);
            let forgotten =
                before_values.map(|before| forgotten(before, &given)).unwrap_or_default();
            if !forgotten.is_empty() {
                let paths = forgotten.join(", ");
                ui.warn(&format!(
                    "back to the default, as the command line does not say them: {paths}"
                ));
                ui.hint("with any value given the command line is all that counts: give the same files again");
            }
            Ok((given, before))
        }
    }
}

impl Install {
    pub(crate) fn asks_cluster(&self) -> bool {
        self.dry_run != DryRun::Client
    }

    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        ControlNamespace::check(global)?;
        if !self.asks_cluster() {
            let why = "with --dry-run=client no cluster is asked";
            global.cluster.must_be_absent(why, "use --dry-run=server")?;
            return self.show_without_cluster(ui);
        }
        Runtime::start(global)?.block_on(self.install(global, ui))
    }

    fn show_without_cluster(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        let values = self.values.read(&self.place.control_namespace)?;
        let keys: Vec<ObjectKey> = steps(&values)?
            .iter()
            .flat_map(|step| step.objects.iter().map(ObjectKey::of))
            .collect();
        let answer = Installation {
            server: None,
            namespace: values.namespace,
            version: VERSION,
            dry_run: true,
            ready: false,
            counts: Counts { create: keys.len(), ..Counts::default() },
            objects: keys
                .into_iter()
                .map(|key| ObjectAction { key, action: Action::Create })
                .collect(),
            take_over: None,
            obsolete: Vec::new(),
            managers: Vec::new(),
        };
        self.answer(&answer, ui)?;
        Ok(Exit::Done)
    }

    fn answer(&self, answer: &Installation, ui: &mut Ui) -> Result<(), Failure> {
        let names = answer.objects.iter().map(|one| one.key.kubectl_name());
        ui.answer_objects(self.output.output, answer, names, |out| answer.write(out))
    }

    /// What would be done; where objects are being deleted, when these are gone.
    async fn survey(
        &self,
        requests: &Requests,
        adopt: Adopt,
        deadline: Deadline,
        ui: &mut Ui,
    ) -> Result<Survey, Failure> {
        let takeover = Takeover { adopt, force: self.force_conflicts.clone() };
        let mut is_looked_at = false;
        loop {
            let (values, before) =
                chosen(requests, &self.values, &self.place.control_namespace, ui).await?;
            if before.as_ref().is_some_and(|before| before.progress == Progress::Removing) {
                if self.dry_run != DryRun::None {
                    ui.warn("a removal is at work or was interrupted: what is there may go");
                } else if !is_looked_at {
                    RemovalMark::new(requests, &values.namespace).refuse_if_at_work(ui).await?;
                    // What there was then may be another's by now.
                    is_looked_at = true;
                    continue;
                }
            }
            ui.progress("asking the cluster what would change");
            let survey = Survey::of(requests, values, before, &takeover).await?;
            let ending = survey.ending();
            if ending.is_empty() || !self.wait || self.dry_run != DryRun::None {
                return Ok(survey);
            }
            ui.note(&format!(
                "objects that are being deleted: {}; waits for their end",
                ending.len()
            ));
            deadline.end_of("what is being deleted", requests, ending, ui).await?;
        }
    }

    async fn install(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let (target, requests) = Target::of(global).await?;
        let adopt = if self.adopt { Adopt::Yes } else { Adopt::No };
        let deadline = Deadline::after(self.timeout);
        let survey = self.survey(&requests, adopt, deadline, ui).await?;
        let stored = managers(&requests).await;
        // Of releases that is advice only.
        let managers = outdated::releases(stored.as_deref().unwrap_or_default());
        show_plan(&target, &survey, ui);
        let layout = ui.layout();
        outdated::lines(&managers, layout).iter().for_each(|line| ui.note(line));
        refuse(&requests, &survey).await?;
        refuse_tenants(&requests, &survey, adopt).await?;
        warn_of_untried(&survey.untried(), ui);
        if survey.counts().create > 0 {
            preflight(&requests, &target, &survey, ui).await?;
        }
        let take_over = taken_over(&requests, &stored?, &survey.values, adopt, ui).await?;
        let mut answer = Installation { managers, take_over, ..Installation::of(&target, &survey) };
        if self.dry_run == DryRun::Server {
            answer.dry_run = true;
            self.answer(&answer, ui)?;
            return Ok(Exit::Done);
        }
        if (survey.counts().writes() || answer.take_over.is_some()) && !self.yes {
            ui.confirm(&format!("install in {}", target.name()))?;
        }
        let wait = if self.wait { Wait::Ready } else { Wait::NoLonger };
        let stage = Cell::new(Stage::Starting);
        let work = Applying { requests: &requests, survey: &survey, deadline, wait, stage: &stage };
        let install = async {
            let Some(found) = &answer.take_over else {
                let done = work.run(ui).await;
                let next = "what is applied stays, and the same command continues";
                return done.map_err(|failure| failure.half_way(next));
            };
            let taken = async {
                found.end_tf_operator(&requests, deadline, &stage, ui).await?;
                work.run(ui).await
            };
            taken.await.map_err(|failure| found.explain(stage.get(), failure))
        };
        let done = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => None,
            done = install => Some(done),
        };
        match done {
            None => Err(interrupted(stage.get(), answer.take_over.as_ref())),
            Some(done) => {
                done?;
                answer.ready = self.wait;
                self.answer(&answer, ui)?;
                hint(&answer, ui);
                Ok(Exit::Done)
            }
        }
    }
}

/// What is wrong with the cluster before the first object is in it. Advice: some of it is put right by what is installed.
///
/// # Errors
/// This user may not give the rights that are to be given: the half of it would be written, and tf-operator ended.
async fn preflight(
    requests: &Requests,
    target: &Target,
    survey: &Survey,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let asker = requests.asker();
    let planned = PlannedObjects::of_values(survey.values.clone());
    let world = match Box::pin(ask::world(&asker, &target.server, &planned)).await {
        Ok(world) => world,
        Err(failure) => {
            ui.warn(&format!("the cluster is not checked: {}", failure.message));
            return Ok(());
        }
    };
    let binds =
        |one: &Planned| one.key.kind.ends_with("RoleBinding") && one.action == Action::Create;
    if world.may_grant == Read::Known(false) && survey.plan.iter().any(binds) {
        let message =
            "nothing has been changed: you may not give the rights that the programs need";
        let hint = "install as cluster-admin, or have the verbs escalate and bind on clusterroles given to you";
        return Err(Failure::new(Exit::Refused, "may-not-grant", message, hint));
    }
    let (only, skip) = (Vec::new(), Vec::new());
    let report = judge(&world, &Chosen { only, skip, purpose: Purpose::Installation });
    let failed = report.checks.iter().filter(|check| check.result == Outcome::Fail);
    for check in failed.clone() {
        ui.warn(&format!("check {}: {}", check.id, check.message));
    }
    if failed.count() > 0 {
        ui.hint("all checks, and what to do: kubectl opensdn check --pre");
    }
    Ok(())
}

/// What there is beside tf-operator: said, and returned where ours is to take it over.
async fn taken_over(
    requests: &Requests,
    managers: &[Value],
    values: &Values,
    adopt: Adopt,
    ui: &mut Ui,
) -> Result<Option<TakeOver>, Failure> {
    let found = match beside_tf_operator(requests, managers, values, adopt).await? {
        BesideTfOperator::Nothing => {
            if let Some(warning) = unwatched(managers, values) {
                ui.warn(&warning);
            }
            return Ok(None);
        }
        BesideTfOperator::Note(note) => {
            ui.note(&note);
            return Ok(None);
        }
        BesideTfOperator::TakeOver(found) => found,
    };
    found.lines().iter().for_each(|line| ui.note(line));
    found.remarks.iter().for_each(|remark| ui.warn(remark));
    Ok(Some(found))
}

/// What is applied stays, and what is waited for happens by itself.
fn interrupted(stage: Stage, take_over: Option<&TakeOver>) -> Failure {
    let failure = |code, message, hint: &str| Failure::new(Exit::Interrupted, code, message, hint);
    match (stage, take_over) {
        (Stage::Waiting, _) => failure(
            "detached",
            "detached: all is applied, and the cluster continues by itself",
            "kubectl opensdn status -w shows the rest",
        ),
        (_, None) => failure(
            "interrupted",
            "interrupted: what is applied stays",
            "the same command continues",
        ),
        (stage, Some(found)) => {
            failure("interrupted", "interrupted: what is applied stays", &found.way_on(stage))
        }
    }
}

fn hint(answer: &Installation, ui: &mut Ui) {
    if answer.take_over.is_some() {
        ui.hint("how far the services are, one by one: kubectl opensdn status -w");
    }
    if !answer.obsolete.is_empty() {
        let number = answer.obsolete.len();
        ui.hint(&format!(
            "{number} objects of before are not part of it any more: kubectl opensdn prune"
        ));
    }
    if let Some(next) = answer.managers.iter().find_map(|one| one.next.as_ref()) {
        ui.hint(&format!("to see what an upgrade of the services would do: {next}"));
    }
    if !answer.ready {
        ui.hint("to see when it is ready, or why it is not: the same command without --wait=false");
    }
}

/// Objects that the cluster could not try, as a webhook did not answer.
fn warn_of_untried(untried: &[String], ui: &mut Ui) {
    let [first, ..] = untried else { return };
    ui.warn(&format!(
        "it is not known whether {} objects would be taken: {}",
        untried.len(),
        one_line(first)
    ));
    ui.hint("each is tried until that webhook answers: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations");
}

fn show_plan(target: &Target, survey: &Survey, ui: &mut Ui) {
    let namespace = &survey.values.namespace;
    ui.note(&format!("{}, namespace {namespace}, OpenSDN {VERSION}", target.described()));
    let before = survey.before.as_ref().map(|before| before.version.as_str());
    if let Some(before) = before.filter(|before| *before != VERSION) {
        ui.warn(&format!("OpenSDN {before} is installed, and this installs {VERSION}"));
    }
    let Counts { create, change, same, refused } = survey.counts();
    if !survey.counts().writes() && refused == 0 {
        ui.note(&format!("nothing to change: {same} objects are as they should be"));
        return;
    }
    let definitions =
        survey.plan.iter().filter(|one| one.key.kind == "CustomResourceDefinition").count();
    let all = survey.plan.len();
    ui.note(&format!(
        "{all} objects, {definitions} of them CRDs: will create {create}, change {change}, leave {same} as they are"
    ));
    ui.note(&format!("images: {}", images(survey).join(", ")));
}

fn images(survey: &Survey) -> Vec<String> {
    let mut found: Vec<String> = survey
        .plan
        .iter()
        .filter_map(|one| one.object.pointer("/spec/template/spec/containers/0/image")?.as_str())
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

impl Installation {
    fn of(target: &Target, survey: &Survey) -> Self {
        Self {
            server: Some(target.server.clone()),
            namespace: survey.values.namespace.clone(),
            version: VERSION,
            dry_run: false,
            ready: false,
            counts: survey.counts(),
            objects: ObjectAction::all(&survey.plan),
            take_over: None,
            obsolete: survey.obsolete(),
            managers: Vec::new(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Counts { create, change, same, refused: _ } = self.counts;
        let version = self.version;
        match (&self.server, self.dry_run) {
            (None, _) => writeln!(
                out,
                "OpenSDN {version} has {create} objects; no cluster was asked which of them differ"
            ),
            (_, true) => writeln!(
                out,
                "nothing was written: {create} objects would be created, {change} changed, {same} left as they are"
            ),
            _ => {
                let ready = if self.ready { ", and the webhook answers" } else { "" };
                writeln!(
                    out,
                    "OpenSDN {version} is installed{ready}: {create} objects created, {change} changed, {same} left as they were"
                )
            }
        }
    }
}
