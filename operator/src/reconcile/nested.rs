//! The pass over a component whose cluster is nested in the network of another: in the place of the component's
//! usual pods there are a Deployment of one kube-manager and a DaemonSet of the CNI agent.
//!
//! | step | what |
//! | --- | --- |
//! | settings | the account, its token, what the containers read |
//! | CNI agent | the DaemonSet, on every node |
//! | kube-manager | the Deployment, for the first time when the CNI agent is ready on every node |
//!
//! What belongs to the other mode is never deleted here, and nothing starts while it runs: two kube-managers hand out
//! the same VLANs. What the objects are is opensdn-nested-workloads's.

pub mod objects;
pub mod secrets;
pub mod status;

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use opensdn_crds::pod::PodConfiguration;
use opensdn_nested_workloads::{Names, SecretKey};
use opensdn_runtime::apply::read_as;
use opensdn_runtime::error_chain;

use super::fetch::Fetched;
use super::status::{Outcome, Status};
use super::validate::{Invalid, Settings, check_secret};
use super::{Context, Error, UNTIL_IT_IS_OURS, apply, now};
use crate::component::{ComponentKind, Given, Nested, word};
use crate::kind::Kind;
use crate::names::{self, Instance};
use crate::release::Release;
use status::Ended;

/// Secrets that the settings name are no watch's, so that they are read again after so long.
const UNTIL_READ_AGAIN: Duration = Duration::from_secs(120);

/// A component of a nested cluster, by its settings.
pub struct Described {
    instance: Instance,
    nested: Nested,
    common: PodConfiguration,
    stopped: Option<String>,
}

impl Described {
    fn names(&self) -> Names {
        names(&self.instance)
    }

    fn own_secret(&self) -> String {
        own_secret(&self.instance)
    }
}

/// The Secret with the passwords in the form in which kube-manager's container reads them.
fn own_secret(instance: &Instance) -> String {
    format!("{}-passwords", names(instance).kube_manager())
}

/// So that no two objects of a kind, nor the two modes of one, have a name in common.
fn names(instance: &Instance) -> Names {
    Names::new(&format!("{}-", instance.name))
}

/// What the settings say of a nested cluster; none where the component runs as usual.
///
/// # Errors
/// The settings cannot be read, or name a Secret of the operator's own.
pub fn described(
    component: &dyn ComponentKind,
    fetched: &Fetched,
) -> Result<Option<Described>, Invalid> {
    if !component.takes_nested() {
        return Ok(None);
    }
    let Settings { common, own } = Settings::of(fetched)?;
    let given = Given {
        name: fetched.name(),
        settings: &own,
        common: &common,
        peers: &fetched.peers,
        cluster: &fetched.cluster,
        release: Release::default(),
        profiles: &[],
    };
    let Some(mut nested) = component.nested(&given)? else { return Ok(None) };
    let instance = Instance { word: word(component.facts()), name: fetched.name().to_owned() };
    nested.inputs.namespace = fetched.namespace();
    nested.inputs.names_prefix = format!("{}-", instance.name);
    if let Some(keystone) = &mut nested.inputs.keystone
        && nested.keystone_password.is_some()
    {
        let key = secrets::KEYSTONE_PASSWORD.to_owned();
        keystone.password = SecretKey { secret: own_secret(&instance), key };
    }
    let stopped = names::stopped(&fetched.object, fetched.manager.as_deref());
    let described = Described { instance, nested, common, stopped };
    for named in &described.nested.secrets {
        check_secret(&named.secret, "the spec", named.field)?;
    }
    Ok(Some(described))
}

/// Makes what is described, and says how it is.
pub(super) async fn pass(
    ctx: &Context,
    fetched: &Fetched,
    described: &Described,
) -> (Status, Result<Action, Error>) {
    let invalid = |fetched: &Fetched, invalid: &Invalid| {
        super::status::status(fetched, Outcome::Invalid(invalid), &now())
    };
    if let Err(why) = can_be_made(fetched, described) {
        return (invalid(fetched, &why), Ok(Action::await_change()));
    }
    let paused = names::paused(&fetched.object, fetched.manager.as_deref());
    if let Some(why) = paused {
        let status = status::status(fetched, described, Ended::Paused(&why), &now());
        return (status, Ok(Action::await_change()));
    }
    let made = make_so(ctx, fetched, described).await;
    let fetched = Fetched::read(&ctx.cache, fetched.object.clone(), &described.instance);
    match made {
        Err(Error::Refused(why)) => {
            (invalid(&fetched, &why), Ok(Action::requeue(UNTIL_IT_IS_OURS)))
        }
        Err(error) => {
            let why = error_chain(&error);
            let status = status::status(&fetched, described, Ended::Failed(&why), &now());
            (status, Err(error))
        }
        Ok(action) => (status::status(&fetched, described, Ended::Applied, &now()), Ok(action)),
    }
}

/// # Errors
/// A value is not as it must be, or the other mode runs.
fn can_be_made(fetched: &Fetched, described: &Described) -> Result<(), Invalid> {
    let stateful_set = (Kind::StatefulSet, described.instance.stateful_set());
    if fetched.owned.contains_key(&stateful_set) {
        return Err(runs_in_the_other_mode(&fetched.object, &[stateful_set]));
    }
    objects::check(described)
}

async fn make_so(ctx: &Context, fetched: &Fetched, described: &Described) -> Result<Action, Error> {
    let deployment = (Kind::Deployment, described.names().kube_manager());
    let is_first = !fetched.owned.contains_key(&deployment);
    if is_first {
        // Watches report only what has our label, which anybody can take off.
        is_gone(ctx, fetched, (Kind::StatefulSet, described.instance.stateful_set())).await?;
    }
    let stored = secrets::read(ctx, fetched, described).await?;
    let own = secrets::own(described, &stored)?;
    let mut built = objects::build(&fetched.object, described, &own, None)?;
    let passwords = (Kind::Secret, described.own_secret());
    // With nothing in it, it is only there to take a password away that is not needed any more.
    if own.is_empty() && !fetched.owned.contains_key(&passwords) {
        built.settings.retain(|one| (one.kind, &one.name) != (passwords.0, &passwords.1));
    }
    let (writer, cache, metrics) = (&ctx.writer, &ctx.cache, &ctx.metrics);
    apply::apply(writer, cache, metrics, fetched, &built.settings).await?;
    apply::apply(writer, cache, metrics, fetched, &[built.cni_agent]).await?;
    let after = Fetched::read(cache, fetched.object.clone(), &described.instance);
    let waits =
        described.stopped.is_some() || status::awaited_before_start(&after, described).is_some();
    if is_first && waits {
        return Ok(until_read_again(described));
    }
    let made = [described.own_secret(), described.names().token()];
    let made = made.map(|name| after.owned.get(&(Kind::Secret, name)).cloned());
    let digest = stored.digest(made.iter().flatten().map(Arc::as_ref));
    let built = objects::build(&fetched.object, described, &own, Some(digest))?;
    apply::apply(writer, cache, metrics, fetched, &[built.kube_manager]).await?;
    Ok(until_read_again(described))
}

fn until_read_again(described: &Described) -> Action {
    match described.nested.secrets.is_empty() {
        true => Action::await_change(),
        false => Action::requeue(UNTIL_READ_AGAIN),
    }
}

/// Before a component's usual pods are made for the first time: that nothing of nested mode runs.
///
/// # Errors
/// It runs, or that cannot be read.
pub(super) async fn is_not_nested(
    ctx: &Context,
    component: &dyn ComponentKind,
    fetched: &Fetched,
    instance: &Instance,
) -> Result<(), Error> {
    let keeper = instance.keeper(component.workload());
    if !component.takes_nested() || fetched.owned.contains_key(&keeper) {
        return Ok(());
    }
    is_gone(ctx, fetched, (Kind::Deployment, names(instance).kube_manager())).await
}

async fn is_gone(ctx: &Context, fetched: &Fetched, other: (Kind, String)) -> Result<(), Error> {
    let namespace = fetched.object.namespace();
    let (kind, name) = &other;
    let there: Option<DynamicObject> =
        read_as(&ctx.writer, &kind.resource(), namespace.as_deref(), name).await?;
    match there {
        Some(_) => Err(Error::Refused(runs_in_the_other_mode(&fetched.object, &[other]))),
        None => Ok(()),
    }
}

/// Of a component that runs as usual: that it has no workload of nested mode.
///
/// # Errors
/// It has.
pub(super) fn workloads_are_gone(fetched: &Fetched, instance: &Instance) -> Result<(), Invalid> {
    let mut left = keepers(instance).to_vec();
    left.retain(|keeper| fetched.owned.contains_key(keeper));
    if left.is_empty() {
        return Ok(());
    }
    // Nothing else takes the passwords away before the object itself goes.
    let passwords = (Kind::Secret, own_secret(instance));
    left.extend(fetched.owned.contains_key(&passwords).then_some(passwords));
    Err(runs_in_the_other_mode(&fetched.object, &left))
}

/// Of a component that runs as usual: why it has to wait for pods of nested mode.
pub(super) fn pods_end(fetched: &Fetched, instance: &Instance) -> Option<String> {
    waits_for_pods_of(fetched, &keepers(instance))
}

fn keepers(instance: &Instance) -> [(Kind, String); 2] {
    let names = names(instance);
    [(Kind::Deployment, names.kube_manager()), (Kind::DaemonSet, names.cni_agent())]
}

fn waits_for_pods_of(fetched: &Fetched, keepers: &[(Kind, String)]) -> Option<String> {
    let is_left =
        |pod: &&crate::pod::Pod| pod.keeper.as_ref().is_some_and(|keeper| keepers.contains(keeper));
    let pod = fetched.labelled.iter().find(is_left)?;
    Some(format!("waits for pod {} of the mode before to end", pod.name))
}

fn runs_in_the_other_mode(object: &DynamicObject, left: &[(Kind, String)]) -> Invalid {
    let titles = left.iter().map(|(kind, name)| format!("{} {name}", kind.name()));
    let paths = left.iter().map(|(kind, name)| format!("{}/{name}", kind.name().to_lowercase()));
    Invalid {
        reason: "OtherModeRuns",
        message: format!(
            "{} of the mode before, nested or not, is there: two kube-managers at once hand out the same VLANs, and the \
             operator deletes no workload. To change the mode: kubectl delete -n {} {}",
            titles.collect::<Vec<_>>().join(" and "),
            object.namespace().unwrap_or_default(),
            paths.collect::<Vec<_>>().join(" "),
        ),
    }
}
