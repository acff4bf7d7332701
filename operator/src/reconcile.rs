//! One pass over one object, in five steps:
//!
//! | step | what | calls |
//! | --- | --- | --- |
//! | fetch | the object and what the caches have around it | none |
//! | validate | what can be built, or why not | none, pure |
//! | build | all objects as they shall be | none, pure |
//! | apply | write what differs | one for each difference |
//! | status | say how it is | one, if it is not said yet |
//!
//! A pass that finds everything as it shall be makes no call. It may be broken off at any point and done
//! again: no step relies on one that was done before.

pub(crate) mod apply;
mod as_before;
mod authorities;
mod certificates;
pub mod fetch;
pub(crate) mod live;
pub mod members;
pub mod nested;
mod next_pod;
mod pod_of_node;
pub(crate) mod signer;
pub mod status;
mod take_over;
mod tolerations;
pub mod validate;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use opensdn_crds::status::TakenOver;
use opensdn_pki::{AuthorityError, GivenError, SecretError, bundle, crypto_provider};
use opensdn_runtime::apply::{Context as Writer, read_as};
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::Leadership;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::build::certificates::Data;
use crate::build::passwords::{NoRandomness, passwords};
use crate::build::{BuildError, Secrets, Valid, build};
use crate::cache::Cache;
use crate::component::{ComponentKind, word};
use crate::ensemble::AccessError;
use crate::ensembles::simulated::Simulated;
use crate::introspect::{Introspect, Service};
use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::names::{self, Instance};
use crate::report::Reporter;
use crate::template::Templates;
use apply::ApplyError;
use certificates::{Cas, Made, issue, since};
use fetch::Fetched;
use next_pod::to_be_updated;
use pod_of_node::to_be_replaced;
use status::{Outcome, Status};
use validate::{Invalid, validate};

/// Certificates are looked at again when the first is due, and no later than that.
const LONGEST_PAUSE: Duration = Duration::from_secs(12 * 60 * 60);

/// An object that is somebody else's is read again after so long.
const UNTIL_IT_IS_OURS: Duration = Duration::from_secs(30);

/// What all passes need.
pub struct Context {
    /// The client by which CAs are read.
    pub client: kube::Client,
    /// Writes in our name.
    pub writer: Writer,
    /// What is known of the cluster.
    pub cache: Arc<Cache>,
    /// The files of the components.
    pub templates: Templates,
    /// What is counted.
    pub metrics: Metrics,
    /// Says how objects are.
    pub reporter: Reporter,
    /// Whose members are as they shall be.
    pub settled: members::Settled,
    /// What daemons say of themselves.
    pub introspect: Introspect,
    /// Whether this replica may still change something, which is asked before a service is changed by its own protocol.
    pub leadership: Leadership,
    /// In the place of members that could be asked, where no container runs.
    pub simulated: Option<Simulated>,
}

/// Why a pass ended early. It is tried again.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Call(Box<CallError>),
    #[error("obtain the CA of the namespace")]
    Ca(#[source] SecretError),
    #[error("use the CA in Secret {}", names::GIVEN_CA_SECRET)]
    GivenCa(#[from] GivenError),
    #[error("make certificates")]
    Certificates(#[source] AuthorityError),
    #[error(
        "certificates of {0} addresses are more than the Secrets for them take: choose shorter keys \
         (spec.commonConfiguration.certKeyLength of the Manager: 2048), or release R25, whose keys are shorter"
    )]
    TooManyCertificates(usize),
    #[error(transparent)]
    Password(#[from] NoRandomness),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("show the service who the operator is")]
    Access(#[source] AccessError),
    #[error("{}", .0.message)]
    Refused(Invalid),
    #[error(transparent)]
    Behind(#[from] live::Behind),
    #[error(
        "the pass panicked, as the line of the log before says: a defect of the operator, which others do not suffer from; please \
         report it with the object"
    )]
    Panicked,
}

impl Error {
    /// Whether no person has to hear of it yet: members that change at once have a pass decide by what is over, each time for a moment.
    #[must_use]
    pub fn is_of_a_moment(&self, failures: u32) -> bool {
        // Some seven seconds.
        matches!(self, Self::Behind(_)) && failures <= 3
    }
}

impl From<ApplyError> for Error {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Call(error) => error.into(),
            ApplyError::NotOurs(invalid) => Self::Refused(invalid),
            ApplyError::Behind(behind) => Self::Behind(behind),
        }
    }
}

impl From<live::LiveError> for Error {
    fn from(error: live::LiveError) -> Self {
        ApplyError::from(error).into()
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// Knows nothing any more of an object that goes, or is gone. Where there is another of its name, what is known by that is the other's.
pub fn forget(ctx: &Context, component: &dyn ComponentKind, object: &DynamicObject) {
    ctx.reporter.forget(object);
    ctx.metrics.margin(object, None, component.facts().kind, None);
    let uid = object.uid().unwrap_or_default();
    ctx.settled.forget(&uid);
    if let Some(simulated) = &ctx.simulated {
        simulated.forget(&uid);
    }
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let there = ctx.cache.get(Kind::Component(component.facts().kind), &namespace, &name);
    if there.is_some_and(|there| there.metadata.uid != object.metadata.uid) {
        return;
    }
    ctx.introspect.forget(&Service::of(component.facts(), object));
    let instance = Instance { word: word(component.facts()), name };
    ctx.metrics.certificates(&namespace, &instance.certificates(), None);
}

/// Makes one pass.
///
/// # Errors
/// A call fails, or something of ours is wrong.
pub async fn reconcile(
    ctx: &Context,
    component: &'static dyn ComponentKind,
    resource: &ApiResource,
    object: Arc<DynamicObject>,
) -> Result<Action, Error> {
    if object.metadata.deletion_timestamp.is_some() {
        forget(ctx, component, &object);
        // What it owns goes with it: the garbage collector does that.
        return Ok(Action::await_change());
    }
    let object = ctx.reporter.newest(object);
    let instance = Instance { word: word(component.facts()), name: object.name_any() };
    let fetched = Fetched::read(&ctx.cache, object, &instance);
    let before = status::before(&fetched);
    let mut taken_over =
        as_before::known(ctx, component, resource, &fetched, &before.common).await?;
    let (mut status, made) = match nested::described(component, &fetched) {
        Err(invalid) => (
            status::status(&fetched, Outcome::Invalid(&invalid), &now()),
            Ok(Action::await_change()),
        ),
        Ok(Some(described)) => {
            // Of pods of nested mode the CA is not this namespace's.
            ctx.introspect.forget(&Service::of(component.facts(), &fetched.object));
            nested::pass(ctx, &fetched, &described).await
        }
        Ok(None) => pass(ctx, component, &fetched, &instance, &mut taken_over).await,
    };
    if matches!(made, Err(Error::Behind(_))) {
        // Nothing of it is worth saying: the pass that sees what is now says it.
        return made;
    }
    let service = Service::of(component.facts(), &fetched.object);
    status.common.introspect = ctx.introspect.of(&service, before.common.introspect.as_ref());
    status.common.taken_over = taken_over;
    let (stored, status) = (json!(before), json!(status));
    let reported = ctx.reporter.report(resource, &fetched.object, &stored, status).await;
    let action = made?;
    reported?;
    Ok(action)
}

/// Makes the component's usual pods, and says how they are.
async fn pass(
    ctx: &Context,
    component: &'static dyn ComponentKind,
    fetched: &Fetched,
    instance: &Instance,
    taken_over: &mut Option<TakenOver>,
) -> (Status, Result<Action, Error>) {
    let paused = names::paused(&fetched.object, fetched.manager.as_deref());
    let validated = validate(component, fetched);
    if let Ok(valid) = &validated {
        let service = Service::of(component.facts(), &fetched.object);
        ctx.introspect.describe(&service, &valid.description.containers);
    }
    let count = |fetched: &Fetched, margin: Option<i32>| {
        let (object, manager) = (&fetched.object, fetched.manager.as_deref());
        ctx.metrics.margin(object, manager, component.facts().kind, margin);
    };
    count(fetched, validated.as_ref().ok().and_then(|valid| valid.margin(&fetched.pods)));
    let mut valid = match (validated, &paused) {
        (Err(invalid), _) => {
            ctx.introspect.not_described(&Service::of(component.facts(), &fetched.object));
            let status = status::status(fetched, Outcome::Invalid(&invalid), &now());
            return (status, Ok(Action::await_change()));
        }
        (Ok(valid), Some(why)) => {
            let status = status::status(fetched, Outcome::Paused(&valid, why), &now());
            return (status, Ok(Action::await_change()));
        }
        (Ok(valid), None) => valid,
    };
    let made = make_so(ctx, component, fetched, &mut valid, taken_over).await;
    // With what was applied just now.
    let fetched = &Fetched::read(&ctx.cache, fetched.object.clone(), instance);
    let made = match made {
        Ok(action) if valid.as_before => Ok(action),
        Ok(action) => replace_a_pod(ctx, fetched, &valid).await.map(|()| action),
        Err(error) => Err(error),
    };
    let why;
    let refused = valid.refused_ca.as_ref().or(valid.refused_volume.as_ref());
    let refused = refused.or(valid.refused_tolerations.as_ref());
    let outcome = match (&made, refused) {
        // All else is done, with the CA before it, and with volumes as they are.
        (Ok(_), Some(why)) => Outcome::Refused(&valid, why),
        (Ok(_), None) => Outcome::Applied(&valid),
        (Err(Error::Refused(invalid)), _) => Outcome::Invalid(invalid),
        (Err(error), _) => {
            let again = if matches!(error, Error::Call(_)) { "; it is tried again" } else { "" };
            why = format!("{}{again}", error_chain(error));
            Outcome::Failed(&valid, &why)
        }
    };
    let status = status::status(fetched, outcome, &now());
    // Its members may be others by now.
    count(fetched, valid.margin(&fetched.pods));
    match made {
        // No watch reports what is not ours.
        Err(Error::Refused(_)) => (status, Ok(Action::requeue(UNTIL_IT_IS_OURS))),
        made => (status, made),
    }
}

/// Builds and applies what the component consists of.
async fn make_so(
    ctx: &Context,
    component: &dyn ComponentKind,
    fetched: &Fetched,
    valid: &mut Valid,
    taken_over: &mut Option<TakenOver>,
) -> Result<Action, Error> {
    let namespace = fetched.namespace();
    if valid.description.storage.is_some() && taken_over.is_some() {
        return Err(Error::Refused(volumes::added(&valid.instance.stateful_set())));
    }
    nested::is_not_nested(ctx, component, fetched, &valid.instance).await?;
    let (authorities, refused) = authorities::obtain(ctx, fetched).await?;
    valid.refused_ca = refused.map(|error| error_chain(&Error::from(error)));
    let trusted = authorities::publish(ctx, fetched, &authorities).await?;
    let expiry = authorities.current.not_after();
    ctx.metrics.certificates(&namespace, names::CA_SECRET, Some(expiry));
    if let Some(left) = as_before::stays(ctx, fetched, valid, &authorities, taken_over).await? {
        valid.as_before = true;
        return Ok(Action::requeue(left));
    }
    let now = OffsetDateTime::now_utc();
    let cas = Cas { ours: &authorities, trusted: bundle::certificates(&trusted) };
    let Made { certificates, parts, poll } =
        issue(ctx, component, fetched, valid, &cas, now).await?;
    if component.reads_certificates_once() {
        valid.certificates_since = since(fetched, &certificates.issued_at);
    }
    let plan = members::plan(ctx, fetched, valid, &authorities, &trusted).await?;
    // With the members that come or go now.
    volumes::settle(fetched, valid);
    let secret = valid.instance.certificates();
    ctx.metrics.certificates(&namespace, &secret, certificates.expires_at);
    valid.certificates_expire = certificates.expires_at;
    if certificates.issued > 0 {
        tracing::info!(
            namespace,
            name = fetched.name(),
            count = certificates.issued,
            "issued certificates"
        );
    }
    let passwords = own_passwords(ctx, fetched, valid).await?;
    let secrets = Secrets { certificates: parts, passwords };
    let intents =
        build(&ctx.templates, &fetched.object, valid, secrets).map_err(refused_or_failed)?;
    if let Some(why) = volumes::apply(ctx, fetched, valid, &intents).await? {
        valid.refused_volume.get_or_insert(why);
    }
    apply::apply(&ctx.writer, &ctx.cache, &ctx.metrics, fetched, &intents).await?;
    if let Some(plan) = plan {
        members::act(ctx, fetched, valid, &plan).await?;
    }
    let waits = valid.members.as_ref().is_some_and(|members| members.waits.is_some());
    let until = Duration::try_from(certificates.renew_at - now).unwrap_or_default();
    let until = [
        Some(until.min(LONGEST_PAUSE)),
        authorities::is_rotating(&authorities).then_some(authorities::POLL_INTERVAL),
        // What a signer has not issued yet is no reason for the next pass.
        (certificates.left > 0 && poll.is_none()).then_some(Duration::ZERO),
        waits.then_some(members::POLL_INTERVAL),
        // Nothing reports that a StorageClass is another now.
        valid.refused_volume.as_ref().map(|_| UNTIL_IT_IS_OURS),
        members::until_old(fetched, valid, now),
        poll,
    ];
    Ok(Action::requeue(until.into_iter().flatten().min().unwrap_or(LONGEST_PAUSE)))
}

/// What a user has written is for him to put right; all else is tried again.
pub(super) fn refused_or_failed(error: BuildError) -> Error {
    match &error {
        BuildError::LineBreak { .. } => {
            Error::Refused(Invalid { reason: "UnreadableSpec", message: error_chain(&error) })
        }
        _ => error.into(),
    }
}

/// Of a service that does not count its members: has the next pod go that is to be another one, by what was applied: a template
/// or number of pods that its StatefulSet has not seen yet has none go.
async fn replace_a_pod(ctx: &Context, fetched: &Fetched, valid: &Valid) -> Result<(), Error> {
    if valid.members.is_some() {
        return Ok(());
    }
    let goes = valid
        .to_be_moved(&fetched.pods)
        .or_else(|| to_be_replaced(fetched, valid))
        .or_else(|| to_be_updated(fetched, valid));
    match goes {
        Some(pod) => delete_pod(ctx, fetched, &pod.name).await,
        None => Ok(()),
    }
}

/// Has a pod go, and the cache know it at once: else another could be chosen, too.
async fn delete_pod(ctx: &Context, fetched: &Fetched, name: &str) -> Result<(), Error> {
    let namespace = fetched.namespace();
    if let Some(pod) = ctx.cache.get(Kind::Pod, &namespace, name) {
        live::may_replace(&ctx.writer, fetched, &pod).await?;
        apply::delete(&ctx.writer, Kind::Pod, &pod).await?;
        ctx.cache.mark_going(Kind::Pod, &pod);
    }
    Ok(())
}

/// The passwords of the component. Before they are made for the first time the Secret is read: tf-operator may have
/// made it, and daemons are running with what it has.
async fn own_passwords(ctx: &Context, fetched: &Fetched, valid: &Valid) -> Result<Data, Error> {
    let wanted = &valid.description.passwords;
    if wanted.is_empty() {
        return Ok(Data::new());
    }
    let name = valid.own_secret();
    let stored = match fetched.owned.get(&(Kind::Secret, name.clone())) {
        Some(stored) => Some((**stored).clone()),
        None => {
            let namespace = fetched.object.namespace();
            read_as(&ctx.writer, &Kind::Secret.resource(), namespace.as_deref(), &name).await?
        }
    };
    let provider = crypto_provider();
    let random = |bytes: &mut [u8]| provider.secure_random.fill(bytes).map_err(|_| NoRandomness);
    Ok(passwords(stored.as_ref(), wanted, random)?)
}

/// RFC 3339.
pub(crate) fn now() -> String {
    OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default()
}
