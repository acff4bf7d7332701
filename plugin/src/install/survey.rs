//! What is in the cluster of an installation, and what an apply would do: the inventory, and a plan of every object.
//! Nothing is written.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ApiResource, GroupVersionKind};
use opensdn_crds::{OPENSDN_GROUP, VERSION as DEFINED};
use opensdn_deploy::{Phase, Values};
use serde_json::Value;

use super::inventory::{self, Entry, Inventory, Progress, VERSION};
use super::object::{ObjectKey, is_member, with_labels};
use super::plan::{Action, Adopt, Counts, DryRun, Planned, decide, is_foreign};
use super::requests::Requests;
use super::take_over::{SECOND, TakeOver, operators, take_over};
use super::values::steps;
use crate::exit::{Exit, Failure};
use crate::snapshot::limits_tf_operator;

/// Requests at once.
pub(super) const CONCURRENT: usize = 16;

/// What is to be installed, and what is there.
pub(crate) struct Survey {
    /// With which values.
    pub(crate) values: Values,
    /// What an earlier run has written.
    pub(crate) before: Option<Inventory>,
    /// What an apply does to each object, in the order in which they are applied.
    pub(crate) plan: Vec<Planned>,
}

/// How objects of others are dealt with.
#[derive(Clone, Debug)]
pub(crate) struct Takeover {
    /// Whether objects that are not of this installation are taken over.
    pub(crate) adopt: Adopt,
    /// The objects, as `KIND/NAME`, whose fields are taken over.
    pub(crate) force: Vec<String>,
}

/// The inventory in this namespace, if there is one.
///
/// # Errors
/// The cluster does not answer, or what is there is no inventory.
pub(crate) async fn inventory(
    requests: &Requests,
    namespace: &str,
) -> Result<Option<Inventory>, Failure> {
    let key = inventory::key(namespace);
    let Some(stored) = requests.get(&key).await? else { return Ok(None) };
    if !is_installed(requests, namespace).await? {
        return Ok(None);
    }
    Inventory::read(&stored).map(Some).map_err(|error| {
        let message = format!("{key} does not say what is installed");
        let hint = "use the version of kubectl-opensdn that wrote it (`kubectl opensdn version`), or delete it and install again";
        Failure::new(Exit::Refused, "broken-inventory", message, hint).because(&error)
    })
}

/// Whether an inventory in this namespace counts. Who may write ConfigMaps there can make one; who may label the namespace
/// itself, or our CRDs, administrates the cluster. One that says that the namespace was there before is written before the
/// label is: then it says nothing that the next run does not see by itself.
async fn is_installed(requests: &Requests, namespace: &str) -> Result<bool, Failure> {
    let installation = inventory::installation(namespace);
    let marks = [
        ObjectKey::cluster("v1", "Namespace", namespace),
        ObjectKey::cluster(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "managers.tf.tungsten.io",
        ),
    ];
    for mark in marks {
        if requests.get(&mark).await?.is_some_and(|stored| is_member(&stored, &installation)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The namespaces of all inventories that count: for a user who named another one. None where he may not ask.
pub(crate) async fn namespaces_of_inventories(requests: &Requests) -> Vec<String> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let found = requests.list(&kind, None, &inventory::selector()).await.unwrap_or_default();
    let mut namespaces = Vec::new();
    for namespace in found.iter().filter_map(|stored| ObjectKey::of(stored).namespace) {
        if is_installed(requests, &namespace).await.unwrap_or_default() {
            namespaces.push(namespace);
        }
    }
    namespaces
}

/// What is done where tf-operator runs.
pub(crate) enum BesideTfOperator {
    /// It does not, or what it cannot do is judged.
    Nothing,
    /// This is to be known.
    Note(String),
    /// What it runs is taken over.
    TakeOver(TakeOver),
}

/// Two operators would change the same objects for as long as both run. Where it is upstream's that runs, and not
/// ours, a note says so if its limits are not judged.
///
/// # Errors
/// Ours is to be installed where tf-operator runs, and is not to take it over, or cannot.
pub(crate) async fn beside_tf_operator(
    requests: &Requests,
    managers: &[Value],
    values: &Values,
    adopt: Adopt,
) -> Result<BesideTfOperator, Failure> {
    let operators = operators(requests, values).await?;
    let running: Vec<String> =
        operators.iter().filter(|one| one.runs()).map(|one| one.key.to_string()).collect();
    let others = running.join(", ");
    if !values.operator.enabled {
        let is_judged = running.is_empty()
            || values.policies.tf_operator
            || limits_are_in_force(requests).await;
        let note = format!(
            "{others} runs, and what it cannot do with manifests that are right is not judged: \
             --set policies.tfOperator=true puts that in force"
        );
        return Ok(if is_judged {
            BesideTfOperator::Nothing
        } else {
            BesideTfOperator::Note(note)
        });
    }
    if running.is_empty() || adopt == Adopt::Yes {
        let found = take_over(requests, (operators, managers), values).await?;
        return Ok(found.map_or(BesideTfOperator::Nothing, BesideTfOperator::TakeOver));
    }
    let message = format!("{others} runs, and two operators would change the same objects");
    let hint = "to have its objects judged: --set operator.enabled=false --set policies.tfOperator=true; \
                to have ours take over what it runs: --adopt, with \
                --dry-run=server to see what that is";
    Err(Failure::new(Exit::Refused, SECOND, message, hint))
}

/// Whether someone has applied the policy without us. Advice only: who may not list them gets the note.
async fn limits_are_in_force(requests: &Requests) -> bool {
    let kind = GroupVersionKind::gvk(OPENSDN_GROUP, DEFINED, "AdmissionPolicy");
    let resource = ApiResource::from_gvk_with_plural(&kind, "admissionpolicies");
    let found = requests.list(&resource, None, "").await.unwrap_or_default();
    found.iter().any(limits_tf_operator)
}

impl Survey {
    /// Asks what an apply would do.
    ///
    /// # Errors
    /// The cluster does not answer, or `force` names what there is not.
    pub(crate) async fn of(
        requests: &Requests,
        values: Values,
        before: Option<Inventory>,
        takeover: &Takeover,
    ) -> Result<Self, Failure> {
        let installation = inventory::installation(&values.namespace);
        let objects: Vec<(Phase, Value)> = rendered(&values, &installation)?;
        for words in &takeover.force {
            if !objects.iter().any(|(_, object)| ObjectKey::of(object).is_meant_by(words)) {
                let message =
                    format!("--force-conflicts={words}: nothing of that name is installed");
                return Err(Failure::usage(message, "give KIND/NAME, as the conflict is listed"));
            }
        }
        let planned = objects.into_iter().map(|(phase, object)| {
            let installation = &installation;
            async move { planned(requests, phase, object, installation, takeover).await }
        });
        let plan = stream::iter(planned).buffered(CONCURRENT).try_collect().await?;
        Ok(Self { values, before, plan })
    }

    /// How many objects each action is planned for.
    pub(crate) fn counts(&self) -> Counts {
        Counts::of(&self.plan)
    }

    /// What it is not known of whether it would be taken, with the reason.
    pub(crate) fn untried(&self) -> Vec<String> {
        let untried = self
            .plan
            .iter()
            .filter_map(|one| Some(format!("{}: {}", one.key, one.untried.as_ref()?)));
        untried.collect()
    }

    /// What is being deleted.
    pub(crate) fn ending(&self) -> Vec<ObjectKey> {
        let ending = self.plan.iter().filter(|one| matches!(one.action, Action::Ending { .. }));
        ending.map(|one| one.key.clone()).collect()
    }

    /// The inventory as it shall be.
    pub(crate) fn inventory(&self, progress: Progress) -> Inventory {
        let entries =
            self.plan.iter().map(|one| Entry { key: one.key.clone(), existed: one.existed });
        let inventory = Inventory {
            namespace: self.values.namespace.clone(),
            version: VERSION.to_owned(),
            values: self.values.clone(),
            progress,
            entries: entries.collect(),
        };
        inventory.merged(self.before.as_ref())
    }

    /// What was installed before and is not any more.
    pub(crate) fn obsolete(&self) -> Vec<ObjectKey> {
        let wanted: BTreeSet<ObjectKey> = self.plan.iter().map(|one| one.key.clone()).collect();
        let obsolete = self.before.iter().flat_map(|before| before.obsolete(&wanted));
        obsolete.map(|entry| entry.key).collect()
    }

    /// Whether nothing at all is to be written.
    pub(crate) fn is_done(&self) -> bool {
        !self.counts().writes() && self.before.as_ref() == Some(&self.inventory(Progress::Applied))
    }
}

/// Every object with the labels of a member, in order.
pub(crate) fn rendered(
    values: &Values,
    installation: &str,
) -> Result<Vec<(Phase, Value)>, Failure> {
    let steps = steps(values)?.into_iter();
    let objects =
        steps.flat_map(|step| step.objects.into_iter().map(move |object| (step.phase, object)));
    Ok(objects.map(|(phase, object)| (phase, with_labels(object, installation))).collect())
}

async fn planned(
    requests: &Requests,
    phase: Phase,
    object: Value,
    installation: &str,
    takeover: &Takeover,
) -> Result<Planned, Failure> {
    let key = ObjectKey::of(&object);
    let live = requests.get(&key).await?;
    let force = takeover.force.iter().any(|words| key.is_meant_by(words));
    let is_asked = live
        .as_ref()
        .is_some_and(|live| takeover.adopt == Adopt::Yes || !is_foreign(live, installation));
    // What a binding gives is judged by its role, which is not there before either.
    let is_binding = key.kind.ends_with("RoleBinding");
    let dry = match is_asked {
        true => Some(requests.dry_run(&object, force).await?),
        false if live.is_none() && !is_binding => requests.dry_create(&object).await?,
        false => None,
    };
    let action = decide(&object, live.as_ref(), dry.as_ref(), installation, takeover.adopt);
    // Nothing of what others want changes then: else the action would be a conflict.
    let is_shared = matches!(dry, Some(DryRun::Conflicts { .. }));
    let untried = match &dry {
        Some(DryRun::Untried(why)) => Some(why.clone()),
        _ => None,
    };
    let existed = live.is_some_and(|live| !is_member(&live, installation));
    Ok(Planned { key, phase, object, action, existed, force: force || is_shared, untried })
}
