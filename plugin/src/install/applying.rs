//! The steps of an installation, one after the other: the inventory first, then each phase, which the next waits for, and
//! at the end the webhook as the API server calls it. Each step is left out where nothing is to be written, so that the
//! same command takes up what another run has left.

use opensdn_deploy::Phase;
use serde_json::Value;
use tokio::time::sleep;

use super::inventory::{Inventory, Progress};
use super::object::ObjectKey;
use super::plan::{Action, DryRun, Planned};
use super::removal::webhook_configurations;
use super::requests::{Apply, Requests, conflicts};
use super::survey::{Survey, inventory};
use super::take_over::is_alone;
use super::waiting::{Deadline, POLL_INTERVAL};
use super::waits::{self, State};
use super::workload::workload;
use crate::clients::{unanswered, why};
use crate::exit::{Exit, Failure};
use crate::ui::{Ui, one_line};

/// Whether is waited until all of it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until it does.
    Ready,
    /// Only for what the next step needs.
    NoLonger,
}

/// How far an installation is, for who interrupts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing of what runs has been touched.
    Starting,
    /// tf-operator is scaled to 0, of which a take-over takes what it runs.
    TfOperatorEnded,
    /// Our programs are applied, and begin.
    Programs,
    /// All is applied; what is waited for happens by itself.
    Waiting,
}

/// An installation that is carried out.
pub(crate) struct Applying<'a> {
    /// In this cluster.
    pub(crate) requests: &'a Requests,
    /// This.
    pub(crate) survey: &'a Survey,
    /// Until then.
    pub(crate) deadline: Deadline,
    /// So far.
    pub(crate) wait: Wait,
    /// Where it is now.
    pub(crate) stage: &'a std::cell::Cell<Stage>,
}

const PHASES: [Phase; 4] = [Phase::Definitions, Phase::Access, Phase::Program, Phase::Policies];

fn title(phase: Phase) -> &'static str {
    match phase {
        Phase::Definitions => "CRDs",
        Phase::Access => "namespaces and rights",
        Phase::Program => "programs",
        Phase::Policies => "policies",
    }
}

impl Applying<'_> {
    /// Carries it out.
    ///
    /// # Errors
    /// The cluster refuses an object or does not answer, or what is waited for does not happen.
    pub(crate) async fn run(&self, ui: &mut Ui) -> Result<(), Failure> {
        if !self.survey.is_done() {
            self.begin(ui).await?;
            for phase in PHASES {
                self.is_the_last().await?;
                if phase == Phase::Program {
                    self.is_alone().await?;
                    self.stage.set(Stage::Programs);
                }
                self.apply(phase, ui).await?;
            }
            // Whoever started tf-operator again in the meantime has two of them now.
            self.is_alone().await?;
            self.is_the_last().await?;
            self.write_inventory(Progress::Applied).await?;
        }
        self.stage.set(Stage::Waiting);
        if self.wait == Wait::Ready {
            self.wait_for_webhook(ui).await?;
        }
        Ok(())
    }

    async fn is_alone(&self) -> Result<(), Failure> {
        match self.survey.values.operator.enabled {
            true => is_alone(self.requests, &self.survey.values).await,
            false => Ok(()),
        }
    }

    /// That no other install has written other values since, and no removal has begun: what is in the cluster is of both then.
    async fn is_the_last(&self) -> Result<(), Failure> {
        let stored = inventory(self.requests, &self.survey.values.namespace).await?;
        // It was written before the first object: where there is none any more a removal has ended.
        let stored = stored.filter(|stored| stored.progress != Progress::Removing);
        if stored.ok_or_else(removed_meanwhile)?.values == self.survey.values {
            return Ok(());
        }
        let message = "another install has written other values meanwhile: what is in the cluster may be of both";
        let hint =
            "agree on the values, see what differs by kubectl opensdn diff, and install again";
        Err(Failure::new(Exit::Refused, "installed-meanwhile", message, hint))
    }

    /// The namespace of the inventory, and the inventory.
    async fn begin(&self, ui: &mut Ui) -> Result<(), Failure> {
        let namespace = &self.survey.values.namespace;
        let progress = |inventory: &Inventory| inventory.progress;
        let stored = inventory(self.requests, namespace).await?.as_ref().map(progress);
        let before = self.survey.before.as_ref().map(progress);
        // A removal that was interrupted is known from the survey; what one has ended is not as the plan has it.
        let is_removed = before.is_some() && stored.is_none();
        if is_removed || (stored == Some(Progress::Removing) && before != stored) {
            return Err(removed_meanwhile());
        }
        let is_it = |one: &&Planned| one.key.kind == "Namespace" && one.key.name == *namespace;
        let own = self.survey.plan.iter().find(is_it);
        // Where it was there before, that is written down before it gets our label: who is killed between the two must
        // not take it for ours the next time.
        let was_there = own.is_some_and(|planned| planned.existed);
        if was_there {
            self.write_inventory(Progress::Installing).await?;
        }
        if let Some(planned) = own {
            let is_new = planned.action == Action::Create;
            if is_new && self.requests.get(&planned.key).await?.is_some() {
                return Err(made_meanwhile(&planned.key));
            }
            self.store(planned, ui).await?;
        }
        if !was_there {
            self.write_inventory(Progress::Installing).await?;
        }
        ui.note("inventory: written");
        Ok(())
    }

    async fn write_inventory(&self, progress: Progress) -> Result<(), Failure> {
        let object = self.survey.inventory(progress).object();
        let applied = self.requests.apply(&object, true, Apply::Store).await;
        applied
            .map(drop)
            .map_err(|error| unanswered(&format!("apply {}", ObjectKey::of(&object)), &error))
    }

    async fn apply(&self, phase: Phase, ui: &mut Ui) -> Result<(), Failure> {
        let objects: Vec<&Planned> =
            self.survey.plan.iter().filter(|one| one.phase == phase).collect();
        if objects.is_empty() {
            return Ok(());
        }
        let mut written = 0;
        for planned in &objects {
            written += usize::from(self.store(planned, ui).await?);
        }
        self.wait_for(phase, &objects, ui).await?;
        ui.note(&format!("{}: {written} of {} applied", title(phase), objects.len()));
        Ok(())
    }

    /// Whether the object was written.
    async fn store(&self, planned: &Planned, ui: &mut Ui) -> Result<bool, Failure> {
        if planned.action == Action::Same {
            return Ok(false);
        }
        if planned.existed && planned.key.kind != "Namespace" {
            let doing = format!("take over {}", planned.key);
            self.deadline.within(&doing, self.requests.adopt(&planned.key)).await??;
        }
        let doing = format!("apply {}", planned.key);
        let mut said = false;
        loop {
            let applied = self.requests.apply(&planned.object, planned.force, Apply::Store);
            match self.deadline.within(&doing, applied).await? {
                Ok(_) => return Ok(true),
                Err(kube::Error::Api(status))
                    if status.code == 409 && !conflicts(&status).is_empty() =>
                {
                    return Err(conflict(&planned.key, &conflicts(&status)));
                }
                Err(error) if self.has_lost_its_namespace(planned, &error) => {
                    let message = format!("failed to {doing}: its namespace was deleted meanwhile");
                    let hint = "the same command makes it again";
                    return Err(Failure::new(Exit::Refused, "namespace-gone", message, hint));
                }
                Err(error) if is_passing(&error) => {
                    let why = why(&error);
                    if self.deadline.is_over() {
                        return Err(self.deadline.passed(&doing, &why));
                    }
                    if !std::mem::replace(&mut said, true) {
                        ui.note(&format!("waits to {doing}: {}", one_line(&why)));
                    }
                    sleep(POLL_INTERVAL).await;
                }
                Err(error) => return Err(unanswered(&doing, &error)),
            }
        }
    }

    /// Whether the namespace is gone that was there when the plan was made: nobody makes it again.
    fn has_lost_its_namespace(&self, planned: &Planned, error: &kube::Error) -> bool {
        let kube::Error::Api(status) = error else { return false };
        let Some(namespace) = &planned.key.namespace else { return false };
        let is_it = |one: &&Planned| one.key.kind == "Namespace" && one.key.name == *namespace;
        let own = self.survey.plan.iter().find(is_it);
        let was_there = own.is_some_and(|one| one.action != Action::Create);
        let said = format!("namespaces {namespace:?} not found");
        was_there && status.code == 404 && status.message.contains(&said)
    }

    async fn wait_for(
        &self,
        phase: Phase,
        objects: &[&Planned],
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let keys = |kind: &str| -> Vec<ObjectKey> {
            objects.iter().map(|one| &one.key).filter(|key| key.kind == kind).cloned().collect()
        };
        let what = title(phase);
        match phase {
            Phase::Definitions => {
                let keys = keys("CustomResourceDefinition");
                self.deadline
                    .wait_for(what, keys, ui, async |key| self.state(key, waits::definition).await)
                    .await
            }
            Phase::Program if self.wait == Wait::Ready => {
                let keys = keys("Deployment");
                self.deadline
                    .wait_for(what, keys, ui, async |key| workload(self.requests, key).await)
                    .await
            }
            Phase::Policies if self.wait == Wait::Ready => {
                let keys = keys("AdmissionPolicy");
                self.deadline
                    .wait_for(what, keys, ui, async |key| self.state(key, waits::policy).await)
                    .await
            }
            _ => Ok(()),
        }
    }

    async fn state(&self, key: &ObjectKey, of: fn(&Value) -> State) -> Result<State, Failure> {
        let stored = self.requests.get(key).await?;
        Ok(stored.map_or_else(
            || State::Hopeless("it was deleted meanwhile".to_owned()),
            |stored| of(&stored),
        ))
    }

    /// Programs and policies of an installation that was there already, then the webhook configurations, which our own
    /// pods write when they are ready, and whether the API server gets answers.
    async fn wait_for_webhook(&self, ui: &mut Ui) -> Result<(), Failure> {
        for phase in [Phase::Program, Phase::Policies] {
            let objects: Vec<&Planned> =
                self.survey.plan.iter().filter(|one| one.phase == phase).collect();
            self.wait_for(phase, &objects, ui).await?;
        }
        let written = async |key: &ObjectKey| -> Result<State, Failure> {
            Ok(match self.requests.get(key).await? {
                Some(_) => State::Ready,
                None => State::Waiting(
                    "the pods of opensdn-webhook-configuration have not written it yet".to_owned(),
                ),
            })
        };
        self.deadline
            .wait_for("webhook configurations", webhook_configurations().into(), ui, written)
            .await?;
        // A dry run is reviewed as any other write.
        let reviewed = self.survey.plan.iter().filter(|one| one.phase == Phase::Policies).take(1);
        let answers = async |key: &ObjectKey| -> Result<State, Failure> {
            let planned = self.survey.plan.iter().find(|one| one.key == *key);
            let Some(planned) = planned else { return Ok(State::Ready) };
            Ok(match self.requests.dry_run(&planned.object, planned.force).await? {
                DryRun::Refused(why) | DryRun::Untried(why) => State::Waiting(why),
                _ => State::Ready,
            })
        };
        let keys = reviewed.map(|one| one.key.clone()).collect();
        self.deadline.wait_for("answers of the webhook", keys, ui, answers).await
    }
}

/// Whether the same request may succeed in a moment: the webhook is late, a kind is not served by every API server yet, a
/// namespace of before is on its way out.
pub(super) fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => {
            status.code == 404
                || opensdn_error_chain::is_of_webhook(&status.message)
                || ["being terminated", "failed to call webhook"]
                    .iter()
                    .any(|part| status.message.contains(part))
        }
        _ => false,
    }
}

fn removed_meanwhile() -> Failure {
    let message = "a removal has started meanwhile: what this command has created is deleted by it";
    let hint = "agree with who removes it; when that has ended: the same command";
    Failure::new(Exit::Refused, "removal-at-work", message, hint)
}

/// Whose it is was not known when the plan was made.
fn made_meanwhile(key: &ObjectKey) -> Failure {
    let message = format!("{key} was created meanwhile by another user");
    Failure::new(Exit::Refused, "made-meanwhile", message, "run the same command again")
}

/// Fields were taken by others after the plan was made.
fn conflict(key: &ObjectKey, fields: &[(String, String)]) -> Failure {
    let message = format!("{key} has fields of other managers");
    let hint = format!(
        "the same command lists both values; to take them over: --force-conflicts={}/{}",
        key.kind, key.name
    );
    let mut failure = Failure::new(Exit::Refused, "conflict", message, hint);
    failure.causes =
        fields.iter().map(|(field, manager)| format!("{field} belongs to {manager}")).collect();
    failure
}
