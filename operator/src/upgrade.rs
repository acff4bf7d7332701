//! One pass over an Upgrade: the cluster is looked at, what is next is decided (`opensdn-upgrade`, pure), that is written
//! into the status, and only then done. All that is ever done is to have nodes pull images, and to set these in the Manager;
//! what becomes of them is the work of the controllers of the Manager and of its services.

mod concerned;
mod observe;
mod pull;
mod report;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use json_patch::{Patch, PatchOperation, ReplaceOperation, TestOperation};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use opensdn_crds::upgrade::{Goal, Phase, UpgradeSpec, UpgradeStatus};
use opensdn_runtime::apply::{Context as Writer, patch_as, read_as, try_patch_as};
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use opensdn_upgrade::next::{Decision, SetImages, Situation, next};
use opensdn_upgrade::plan::ziu_state;
use opensdn_upgrade::pull::Puller;
use serde_json::{Value, json};
use time::OffsetDateTime;

pub(crate) use concerned::concerned;

use crate::kind::Kind;
use crate::names;
use crate::reconcile::{Context, Error, now};
use crate::release;

/// What passes over Upgrades share.
pub struct Upgrades {
    /// So that of two that could begin one does.
    turn: tokio::sync::Mutex<()>,
    /// Sets images beside what users write.
    writer: Writer,
    /// When this operator began to look: others before it may have looked until then, or none.
    since: OnceLock<OffsetDateTime>,
    /// Why the API server refused the images of a service, by the Upgrade's UID.
    refusals: Mutex<HashMap<String, BTreeMap<String, String>>>,
    /// The namespaces in which an Upgrade has come further: services wait for it, and others of it.
    changed: UnboundedSender<String>,
    changes: Mutex<Option<UnboundedReceiver<String>>>,
    reports: report::Reports,
    /// When each that waits for a person or for others was looked at last, by its UID, and at which generation.
    looked: Mutex<HashMap<String, (Option<i64>, Instant)>>,
}

/// Until one whose Manager is not there is looked at again, unless something changes.
const NO_MANAGER: Duration = Duration::from_secs(30 * 60);
/// Until the watch has reported what another has written.
const CHANGED: Duration = Duration::from_millis(500);
/// What waits is not looked at for each thing that changes in its namespace.
const PAUSE: Duration = Duration::from_secs(5);

impl Upgrades {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        let (changed, changes) = unbounded();
        Self {
            refusals: Mutex::default(),
            reports: report::Reports::new(client.clone()),
            changed,
            changes: Mutex::new(Some(changes)),
            turn: tokio::sync::Mutex::default(),
            writer: Writer::new(client, names::UPGRADE_OPERATOR),
            since: OnceLock::new(),
            looked: Mutex::default(),
        }
    }

    /// The namespaces in which an Upgrade has come further. Its own watch reports that too late: the cache knows it before.
    pub(crate) fn changes(&self) -> Option<UnboundedReceiver<String>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn refusals(&self, object: &DynamicObject) -> BTreeMap<String, String> {
        let all = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&object.uid().unwrap_or_default()).cloned().unwrap_or_default()
    }

    /// Until when it rests, as it was looked at a moment ago.
    fn rests(&self, object: &DynamicObject, status: &UpgradeStatus) -> Option<Duration> {
        let is_at_work = matches!(status.phase, Some(Phase::Running | Phase::RollingBack));
        let uid = object.uid().unwrap_or_default();
        let generation = object.metadata.generation;
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if is_at_work {
            looked.remove(&uid);
            return None;
        }
        let now = Instant::now();
        looked.retain(|_, (_, at)| now.duration_since(*at) < PAUSE);
        match looked.get(&uid) {
            Some((before, at)) if *before == generation => {
                PAUSE.checked_sub(now.duration_since(*at))
            }
            _ => {
                looked.insert(uid, (generation, now));
                None
            }
        }
    }
}

/// Makes one pass.
///
/// # Errors
/// A call fails that may succeed when it is tried again.
pub(crate) async fn reconcile(
    ctx: &Context,
    upgrades: &Upgrades,
    resource: &ApiResource,
    object: Arc<DynamicObject>,
) -> Result<Action, Error> {
    if object.metadata.deletion_timestamp.is_some() {
        ctx.reporter.forget(&object);
        pull::ensure(ctx, &upgrades.writer, &object, &[]).await?;
        return Ok(Action::await_change());
    }
    let object = ctx.reporter.newest(object);
    let stored = before(&object);
    let spec = match spec(&object) {
        Ok(spec) => spec,
        Err(why) => {
            let status = unreadable(&stored, &object, &why);
            report(ctx, resource, &object, &stored, &status).await?;
            return Ok(Action::await_change());
        }
    };
    if is_over(&spec, &stored) {
        pull::ensure(ctx, &upgrades.writer, &object, &[]).await?;
        let again = upgrades.reports.publish(&upgrades.writer, &object, &stored).await;
        return Ok(again.map_or_else(Action::await_change, Action::requeue));
    }
    if let Some(rest) = upgrades.rests(&object, &stored) {
        return Ok(Action::requeue(rest));
    }
    look(ctx, upgrades, resource, &object, &spec, &stored).await
}

/// Looks at it, decides, writes, acts.
async fn look(
    ctx: &Context,
    upgrades: &Upgrades,
    resource: &ApiResource,
    object: &DynamicObject,
    spec: &UpgradeSpec,
    stored: &UpgradeStatus,
) -> Result<Action, Error> {
    // One whose Manager is not there cannot begin: it neither reads nor holds up others, however many there are.
    let waits_for_manager = matches!(stored.phase, None | Some(Phase::Pending | Phase::Refused))
        && ctx
            .cache
            .get(Kind::Manager, &object.namespace().unwrap_or_default(), &spec.manager)
            .is_none();
    let turn = match waits_for_manager {
        true => None,
        false => Some(upgrades.turn.lock().await),
    };
    let since = *upgrades.since.get_or_init(OffsetDateTime::now_utc);
    let refusals = upgrades.refusals(object);
    let other = observe::comes_first(&ctx.cache, object, &spec.manager);
    let waits = other.is_some() && matches!(stored.phase, None | Some(Phase::Pending));
    // What waits for another reads nothing.
    let manager =
        if waits || waits_for_manager { None } else { manager(ctx, object, spec).await? };
    let pullers: Vec<Puller> =
        pull::pods(ctx, object).into_iter().map(|(puller, _)| puller).collect();
    let manager = manager.as_ref();
    let around = Around { other, manager, refusals: &refusals, pullers: &pullers, since };
    let mut decision = decide(ctx, object, spec, stored, &around);
    if let Some(manager) = manager
        && let Some(why) = rehearse(upgrades, manager, &decision.rehearsed).await?
    {
        let refusals = BTreeMap::from([(spec.manager.clone(), why)]);
        decision = decide(ctx, object, spec, stored, &Around { refusals: &refusals, ..around });
    }
    let written = report(ctx, resource, object, stored, &decision.status).await;
    if matches!(&written, Err(Error::Call(error)) if error.is_conflict()) {
        // A user has changed it, or another operator leads: it is decided anew by what is there then.
        return Ok(Action::requeue(CHANGED));
    }
    if matches!(&written, Err(Error::Call(error)) if error.is_not_found()) {
        // It is gone, and counts no more.
        ctx.cache.remove(Kind::Upgrade, object);
        ctx.reporter.forget(object);
        return Ok(Action::await_change());
    }
    written?;
    if decision.look_again == Some(Duration::ZERO) {
        let _ = upgrades.changed.unbounded_send(object.namespace().unwrap_or_default());
    }
    act(ctx, upgrades, object, manager, &decision).await?;
    // No other waits for that.
    drop(turn);
    upgrades.reports.publish(&upgrades.writer, object, &decision.status).await;
    let look_again = match decision.look_again {
        // When its Manager comes it is looked at.
        Some(pause) if waits_for_manager && !pause.is_zero() => Some(pause.max(NO_MANAGER)),
        pause => pause,
    };
    Ok(look_again.map_or_else(Action::await_change, Action::requeue))
}

/// Does what was decided, and remembers what the API server refused of it.
async fn act(
    ctx: &Context,
    upgrades: &Upgrades,
    object: &DynamicObject,
    manager: Option<&DynamicObject>,
    decision: &Decision,
) -> Result<(), CallError> {
    let mut refused = pull::ensure(ctx, &upgrades.writer, object, &decision.pulls).await?;
    if let Some(manager) = manager {
        for set in &decision.images {
            if let Some(why) = set_images(upgrades, manager, set).await? {
                refused.insert(set.service.clone(), why);
            }
        }
    }
    let uid = object.uid().unwrap_or_default();
    let mut all = upgrades.refusals.lock().unwrap_or_else(PoisonError::into_inner);
    if refused.is_empty() {
        all.remove(&uid);
    } else {
        all.insert(uid, refused);
    }
    Ok(())
}

/// What is around an Upgrade.
struct Around<'a> {
    other: Option<String>,
    manager: Option<&'a DynamicObject>,
    refusals: &'a BTreeMap<String, String>,
    pullers: &'a [Puller],
    since: OffsetDateTime,
}

fn decide(
    ctx: &Context,
    object: &DynamicObject,
    spec: &UpgradeSpec,
    stored: &UpgradeStatus,
    around: &Around<'_>,
) -> Decision {
    let manager = around.manager;
    let services = manager.map(|one| observe::services(&ctx.cache, &ctx.introspect, one));
    let services = services.unwrap_or_default();
    let paused = manager.and_then(|manager| names::paused(manager, None));
    let release = manager.and_then(|manager| manager.annotations().get(release::ANNOTATION));
    let id = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    let drained = observe::drained(&ctx.cache, &id);
    next(&Situation {
        upgrade: &id,
        drained: &drained,
        spec,
        status: stored,
        generation: object.metadata.generation,
        manager: manager.and_then(|manager| manager.data.get("spec")),
        paused: paused.as_deref(),
        release: release.map(String::as_str),
        ziu_state: manager.and_then(|manager| ziu_state(&manager.data)),
        refusals: around.refusals,
        services: &services,
        pullers: around.pullers,
        other: around.other.as_deref(),
        looking_since: around.since,
        now: OffsetDateTime::now_utc(),
    })
}

fn spec(object: &DynamicObject) -> Result<UpgradeSpec, String> {
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    serde_json::from_value(spec).map_err(|error| error.to_string())
}

/// What its status says; what of it cannot be read counts for nothing, and is planned again.
fn before(object: &DynamicObject) -> UpgradeStatus {
    let status = object.data.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

fn unreadable(stored: &UpgradeStatus, object: &DynamicObject, why: &str) -> UpgradeStatus {
    let message = format!("its spec cannot be read: {why}");
    let earlier = stored.conditions.clone().unwrap_or_default();
    let mut conditions = opensdn_crds::status::Conditions::after(&earlier);
    conditions.stalled("UnreadableSpec", &message, object.metadata.generation, &now());
    let conditions = Some(conditions.into_vec());
    UpgradeStatus { message: Some(message), conditions, ..stored.clone() }
}

/// Whether nothing of it is to be done any more.
fn is_over(spec: &UpgradeSpec, status: &UpgradeStatus) -> bool {
    match status.phase {
        Some(Phase::RolledBack) => true,
        Some(Phase::Succeeded) => spec.goal != Some(Goal::RollBack) || status.steps.is_none(),
        _ => false,
    }
}

/// Writes the status, if it is another one. The cache has it before: should the answer be lost, it counts as written.
async fn report(
    ctx: &Context,
    resource: &ApiResource,
    object: &DynamicObject,
    stored: &UpgradeStatus,
    status: &UpgradeStatus,
) -> Result<(), Error> {
    let (before, after) = (json!(stored), json!(status));
    if before == after {
        return Ok(());
    }
    let mut known = object.clone();
    if let Value::Object(data) = &mut known.data {
        data.insert("status".to_owned(), after.clone());
    }
    ctx.cache.put_if_there(Kind::Upgrade, known);
    if stored.phase != status.phase {
        tracing::info!(
            namespace = object.metadata.namespace,
            name = object.metadata.name,
            phase = status.phase.map_or("", Phase::as_str),
            wave = status.wave,
            says = status.message,
            "an upgrade has another phase"
        );
    }
    ctx.reporter.report_if_unchanged(resource, object, &before, after).await?;
    Ok(())
}

/// The Manager as it is now, unless it is going. It is read, as the cache does not keep its spec.
async fn manager(
    ctx: &Context,
    object: &DynamicObject,
    spec: &UpgradeSpec,
) -> Result<Option<DynamicObject>, CallError> {
    let namespace = object.namespace();
    let resource = Kind::Manager.resource();
    let found: Option<DynamicObject> =
        read_as(&ctx.writer, &resource, namespace.as_deref(), &spec.manager).await?;
    Ok(found.filter(|manager| manager.metadata.deletion_timestamp.is_none()))
}

/// Sets the images of one service in the Manager, if they are still those that were read. Why not, where the API server
/// refuses it.
async fn set_images(
    upgrades: &Upgrades,
    manager: &DynamicObject,
    set: &SetImages,
) -> Result<Option<String>, CallError> {
    let resource = Kind::Manager.resource();
    match patch_as(&upgrades.writer, &resource, manager, Patch(patch_of(set))).await {
        Ok(stored) => {
            if stored.is_some() {
                let (namespace, name) = (&manager.metadata.namespace, &manager.metadata.name);
                tracing::info!(namespace, name, service = set.service, images = ?set.images, "set images");
            }
            // Else it was edited meanwhile, and is looked at again.
            Ok(None)
        }
        Err(error) if says_no(&error) => {
            Ok(Some(format!("failed to set its images: {}", error_chain(&error))))
        }
        Err(error) => Err(error),
    }
}

/// Why the API server, or a webhook that it asks, would not take all these images.
async fn rehearse(
    upgrades: &Upgrades,
    manager: &DynamicObject,
    all: &[SetImages],
) -> Result<Option<String>, CallError> {
    if all.is_empty() {
        return Ok(None);
    }
    let patch = all.iter().flat_map(patch_of).collect();
    match try_patch_as(&upgrades.writer, &Kind::Manager.resource(), manager, Patch(patch)).await {
        Ok(_) => Ok(None),
        Err(error) if says_no(&error) => Ok(Some(error_chain(&error))),
        Err(error) => Err(error),
    }
}

/// Whether the status is to say so: the images are not taken, now or until a webhook answers again.
fn says_no(error: &CallError) -> bool {
    (error.is_refusal() && !error.is_not_found()) || error.is_of_a_webhook()
}

fn patch_of(set: &SetImages) -> Vec<PatchOperation> {
    let (_, name) = set.service.split_once('/').unwrap_or_default();
    let mut patch = vec![test(&format!("/spec{}/metadata/name", set.pointer), name)];
    for one in &set.images {
        let entry = format!("/spec{}", one.pointer);
        let image = format!("{entry}/image");
        patch.push(test(&format!("{entry}/name"), &one.container));
        patch.extend([test(&image, &one.from), replace(&image, &one.to)]);
    }
    patch
}

fn test(path: &str, value: &str) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: pointer(path), value: value.into() })
}

fn replace(path: &str, value: &str) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation { path: pointer(path), value: value.into() })
}

/// Of keys and numbers that need no escape.
fn pointer(path: &str) -> json_patch::jsonptr::PointerBuf {
    json_patch::jsonptr::PointerBuf::parse(path).unwrap_or_default()
}
