//! Which objects are looked at, and when: each when it changes, when something that it owns or a pod of it
//! does, and all when the nodes do. The queue, one pass at a time for each object, is kube's.

mod queue;
mod start_watch;

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{FutureExt as _, StreamExt as _};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::{Action, Config, Error as Ended, applier};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::{Readiness, ReadinessCheck};
use opensdn_runtime::shutdown::{Drain, Phase};
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use serde_json::Value;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;

use crate::cache::metadata::bound;
use crate::cache::{Cache, Feed};
use crate::cloud::{self, Clouds};
use crate::component::{ComponentKind, word};
use crate::components::{self, COMPONENTS};
use crate::gone::Gone;
use crate::introspect::Introspect;
use crate::kind::{Kind, Source};
use crate::manager;
use crate::metrics::{Metrics, Outcome};
use crate::names;
use crate::object::controller_of;
use crate::reconcile::{self, Context, Error, reconcile};
use crate::under_way::UnderWay;
use crate::upgrade::{self, Upgrades, concerned};
use queue::{Named, Queue};
use start_watch::{HEARTBEAT, collection, is_closed, start_watch};

/// Until a source that is not there, or must not be read, is asked again.
const RETRY_DELAY: Duration = Duration::from_secs(300);
/// Until a pass that failed is tried again; doubled each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(300);
/// So long a process that stops waits for its passes: with the release of the Lease less than the grace period of its pod.
const STOPPING: Duration = Duration::from_secs(10);

/// All controllers of the process.
#[derive(Clone)]
pub struct Controllers {
    all: Arc<Vec<Controller>>,
    /// Only who leads fills the queues: those of the others are not read.
    is_leading: Arc<AtomicBool>,
    gone: Arc<Gone>,
}

/// What all passes need.
pub struct Shared {
    /// Of the cluster.
    pub ctx: Context,
    /// Of clouds.
    pub clouds: Clouds,
    /// Of upgrades.
    pub upgrades: Upgrades,
    /// The passes that have not ended.
    pub under_way: UnderWay,
}

/// What a controller looks at.
#[derive(Clone, Copy)]
enum Subject {
    Component(&'static dyn ComponentKind),
    Manager,
    NestedCluster,
    LinkLocalService,
    Upgrade,
    /// What the Config API of a component has to know of the others.
    Network,
}

impl Subject {
    /// In metrics.
    fn name(self) -> &'static str {
        match self {
            Self::Network => "Network",
            _ => self.kind().name(),
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Component(component) => Kind::Component(component.facts().kind),
            Self::Manager => Kind::Manager,
            Self::NestedCluster => Kind::NestedCluster,
            Self::LinkLocalService => Kind::LinkLocalService,
            Self::Upgrade => Kind::Upgrade,
            Self::Network => Kind::Component(components::config_api::COMPONENT.kind),
        }
    }
}

/// The controller of one kind in one namespace, or in all.
struct Controller {
    subject: Subject,
    resource: ApiResource,
    store: Store<DynamicObject>,
    queue: Queue,
    failures: Mutex<HashMap<Named, u32>>,
}

impl Controllers {
    /// Starts to watch all kinds in these namespaces; the empty one stands for all.
    #[must_use]
    pub fn watch(
        client: &Client,
        cache: &Arc<Cache>,
        scopes: &[String],
        readiness: &Readiness,
        metrics: &Metrics,
    ) -> Self {
        let mut all = Vec::new();
        let mut writers = Vec::new();
        let components = COMPONENTS.iter().copied().map(Subject::Component);
        let others = [
            Subject::Manager,
            Subject::NestedCluster,
            Subject::LinkLocalService,
            Subject::Upgrade,
            Subject::Network,
        ];
        for subject in components.chain(others) {
            for scope in scopes {
                let kind = subject.kind();
                let resource = kind.resource();
                let (events, check) = start_watch(client, kind, scope, readiness);
                let writer = Writer::new(resource.clone());
                all.push(Controller {
                    subject,
                    resource,
                    store: writer.as_reader(),
                    queue: Queue::new(metrics.depth(subject.name())),
                    failures: Mutex::default(),
                });
                writers.push((writer, Feed::new(kind, scope), events, check));
            }
        }
        let this = Self { all: Arc::new(all), is_leading: Arc::default(), gone: Arc::default() };
        for (number, (writer, feed, events, check)) in writers.into_iter().enumerate() {
            let cache = cache.clone();
            tokio::spawn(this.clone().follow_objects(number, writer, feed, cache, events, check));
        }
        // Those that no controller looks at a Manager makes all the same.
        let others = opensdn_crds::component::COMPONENTS.iter().map(|facts| facts.kind);
        let others = others.filter(|kind| components::of_kind(kind).is_none());
        let others = others.map(Kind::Component).chain(Kind::kubernetes());
        let others = others.chain(components::profiles().map(Kind::Profile));
        for kind in others.chain([Kind::GivenCa]) {
            // Nodes are in no namespace.
            let scopes = if kind == Kind::Node { &[String::new()][..] } else { scopes };
            for scope in scopes {
                let (events, check) = start_watch(client, kind, scope, readiness);
                let feed = Feed::new(kind, scope);
                tokio::spawn(this.clone().follow_others(feed, cache.clone(), events, check));
            }
        }
        for source in Source::ALL {
            let name = format!("{} {}", source.path().1, source.name());
            let check = readiness.add_check(name, "not looked at yet");
            tokio::spawn(this.clone().follow_fact(client.clone(), source, cache.clone(), check));
        }
        this
    }

    /// Keeps the store of one kind, and has each object looked at that changes.
    async fn follow_objects(
        self,
        number: usize,
        mut writer: Writer<DynamicObject>,
        mut feed: Feed,
        cache: Arc<Cache>,
        mut events: Receiver<Event>,
        check: ReadinessCheck,
    ) {
        let Some(controller) = self.all.get(number) else { return };
        while let Some(event) = events.recv().await {
            let kind = feed.kind();
            for object in feed.take(&cache, event.clone()) {
                self.concern(kind, &object);
                // Who does not lead remembers nothing of it.
                if self.is_leading.load(Ordering::Acquire) && cache.is_gone(kind, &object) {
                    self.gone.send(kind, object.as_ref().clone());
                }
            }
            let read = |object: Value| {
                let mut object = serde_json::from_value::<DynamicObject>(object).ok()?;
                bound(kind, &mut object.metadata);
                Some(object)
            };
            let event = match event {
                Event::Init => watcher::Event::Init,
                Event::InitDone(_) => {
                    check.pass();
                    watcher::Event::InitDone
                }
                Event::InitApply(object) => match read(object) {
                    Some(object) => watcher::Event::InitApply(object),
                    None => continue,
                },
                Event::Apply(object) => match read(object) {
                    Some(object) => watcher::Event::Apply(object),
                    None => continue,
                },
                Event::Delete(object) => match read(object) {
                    Some(object) => watcher::Event::Delete(object),
                    None => continue,
                },
                Event::Heartbeat | Event::Disconnected { .. } => continue,
            };
            writer.apply_watcher_event(&event);
            match event {
                watcher::Event::Apply(object) => self.enqueue(controller, &object),
                // What came by a list is in the store only now.
                watcher::Event::InitDone => {
                    for object in controller.store.state() {
                        self.enqueue(controller, &object);
                    }
                }
                _ => {}
            }
        }
    }

    /// Keeps the cache of one kind, and has those looked at whom a change concerns.
    async fn follow_others(
        self,
        mut feed: Feed,
        cache: Arc<Cache>,
        mut events: Receiver<Event>,
        check: ReadinessCheck,
    ) {
        while let Some(event) = events.recv().await {
            let is_listed = matches!(event, Event::InitDone(_));
            for object in feed.take(&cache, event) {
                self.concern(feed.kind(), &object);
            }
            if is_listed {
                check.pass();
            }
        }
    }

    /// Keeps what one source says of the cluster. One that is not there, or must not be read, says nothing.
    async fn follow_fact(
        self,
        client: Client,
        source: Source,
        cache: Arc<Cache>,
        check: ReadinessCheck,
    ) {
        let kind = Kind::Fact(source);
        let mut feed = Feed::new(kind, source.namespace());
        loop {
            let (api, plural) = source.path();
            let spec = WatchSpec {
                path: collection(api, plural, source.namespace()),
                name: Some(source.name().to_owned()),
                label_selector: String::new(),
                metadata_only: false,
                heartbeat: HEARTBEAT,
            };
            let mut events = watch(client.clone(), spec);
            while let Some(event) = events.recv().await {
                let is_closed = is_closed(&event);
                let is_known = is_closed || matches!(event, Event::InitDone(_));
                for object in feed.take(&cache, event) {
                    self.concern(kind, &object);
                }
                if is_known {
                    check.pass();
                }
                if is_closed {
                    break;
                }
            }
            drop(events);
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// Has all looked at whom a change of that object concerns.
    fn concern(&self, kind: Kind, object: &DynamicObject) {
        let namespace = &object.namespace().unwrap_or_default();
        match kind {
            Kind::Node | Kind::Fact(_) => self.enqueue_all(""),
            // Those that it has made are paused with it.
            Kind::Manager => self.enqueue_all(namespace),
            // A volume outlasts what it was made for, and has no owner.
            Kind::Pod | Kind::PersistentVolumeClaim => {
                let label =
                    |key: &str| object.labels().get(key).map(String::as_str).unwrap_or_default();
                let of = label(names::TYPE);
                for controller in self.all.iter() {
                    if let Subject::Component(component) = controller.subject
                        && word(component.facts()) == of
                    {
                        self.enqueue_named(controller, namespace, label(of));
                    }
                }
            }
            // Its own controller looks at it, and nothing else does.
            Kind::NestedCluster | Kind::LinkLocalService => {}
            // It says of which services one pod is replaced at first, and another one may wait for it.
            Kind::Upgrade => self.enqueue_all(namespace),
            // Its Manager reports how it is, another may want one of that name, and others wait for it and have to
            // know where it is.
            Kind::Component(_) | Kind::Profile(_) => self.enqueue_all(namespace),
            // The CA, and one whose name another component wants.
            Kind::Secret | Kind::GivenCa => self.enqueue_all(namespace),
            _ if object.name_any() == names::TRUST => self.enqueue_all(namespace),
            _ => {
                let Some(owner) = controller_of(object) else { return };
                for controller in self.all.iter() {
                    if controller.resource.kind == owner.kind
                        && controller.resource.api_version == owner.api_version
                    {
                        self.enqueue_named(controller, namespace, &owner.name);
                    }
                }
            }
        }
    }

    /// Those of a namespace, of all if it is empty; of Upgrades those that are concerned.
    fn enqueue_all(&self, namespace: &str) {
        let is_there = |object: &Arc<DynamicObject>| {
            namespace.is_empty() || object.namespace().as_deref() == Some(namespace)
        };
        for controller in self.all.iter() {
            let mut all = controller.store.state();
            all.retain(is_there);
            if !matches!(controller.subject, Subject::Upgrade) {
                all.iter().for_each(|object| self.enqueue(controller, object));
                continue;
            }
            let mut namespaces: HashMap<Option<String>, Vec<Arc<DynamicObject>>> = HashMap::new();
            for object in all {
                namespaces.entry(object.namespace()).or_default().push(object);
            }
            for all in namespaces.values() {
                concerned(all).into_iter().for_each(|object| self.enqueue(controller, object));
            }
        }
    }

    /// Who begins to lead has looked at none yet.
    fn enqueue_everything(&self) {
        for controller in self.all.iter() {
            controller.store.state().iter().for_each(|object| self.enqueue(controller, object));
        }
    }

    fn enqueue(&self, controller: &Controller, object: &DynamicObject) {
        self.enqueue_named(controller, &object.namespace().unwrap_or_default(), &object.name_any());
    }

    fn enqueue_named(&self, controller: &Controller, namespace: &str, name: &str) {
        if !self.is_leading.load(Ordering::Acquire) {
            return;
        }
        let object = ObjectRef::new_with(name, controller.resource.clone()).within(namespace);
        controller.queue.send(object);
    }

    /// Waits for the Lease, then has every object looked at until the process drains.
    pub async fn run(
        self,
        shared: Arc<Shared>,
        mut leadership: Leadership,
        mut drain: Drain,
        concurrency: u16,
    ) {
        while !leadership.is_held() {
            tokio::select! {
                () = leadership.changed() => {}
                () = drain.reached(Phase::Draining) => return,
            }
        }
        tracing::info!("started to reconcile");
        shared.ctx.metrics.leads();
        self.is_leading.store(true, Ordering::Release);
        let running = self
            .all
            .iter()
            .map(|controller| controller.run(shared.clone(), drain.clone(), concurrency));
        let running = futures::future::join_all(running);
        // In a task of its own: what daemons write is read and decrypted beside the passes. It ends with this.
        let mut asking = JoinSet::new();
        let asked = shared.clone();
        asking.spawn(async move { asked.ctx.introspect.run(&asked.ctx.cache).await });
        self.enqueue_everything();
        tokio::select! {
            _ = running => {}
            () = self.follow_clouds(&shared.clouds) => {}
            () = self.gone.each(|kind, object| forget_if_gone(&shared, kind, object)) => {}
            () = self.follow_upgrades(&shared.upgrades) => {}
            () = self.follow_daemons(&shared.ctx.introspect) => {}
            // What is to be looked at later keeps a controller of kube's until then.
            () = over(drain.clone(), &shared.under_way) => {}
            () = overdue(drain) => {
                let passes = shared.under_way.list().join(", ");
                tracing::warn!(passes, "failed to finish passes in time; who leads next starts them again");
            }
        }
    }

    /// Has all looked at in a namespace in which an Upgrade has come further.
    async fn follow_upgrades(&self, upgrades: &Upgrades) {
        if let Some(mut changes) = upgrades.changes() {
            while let Some(namespace) = changes.next().await {
                self.enqueue_all(&namespace);
            }
        }
        std::future::pending::<()>().await;
    }

    /// Has each service looked at whose daemons say something else than before.
    async fn follow_daemons(&self, introspect: &Introspect) {
        if let Some(mut changes) = introspect.changes() {
            while let Some(service) = changes.next().await {
                let concerned = self.all.iter().filter(|one| one.resource.kind == service.kind);
                concerned
                    .for_each(|one| self.enqueue_named(one, &service.namespace, &service.name));
            }
        }
        std::future::pending::<()>().await;
    }

    /// Has each object looked at whose cloud has changed.
    async fn follow_clouds(&self, clouds: &Clouds) {
        if let Some(mut changes) = clouds.changes() {
            while let Some(user) = changes.next().await {
                let concerned = self.all.iter().filter(|one| one.resource.kind == user.kind);
                concerned.for_each(|one| self.enqueue_named(one, &user.namespace, &user.name));
            }
        }
        std::future::pending::<()>().await;
    }
}

impl Controller {
    async fn run(&self, shared: Arc<Shared>, mut drain: Drain, concurrency: u16) {
        let Some(requests) = self.queue.receive() else { return };
        let stopping = async move { drain.reached(Phase::Draining).await };
        let requests = requests.map(Ok::<_, std::convert::Infallible>).take_until(stopping.boxed());
        let pass = |object: Arc<DynamicObject>, shared: Arc<Shared>| {
            let (subject, resource) = (self.subject, self.resource.clone());
            self.queue.taken(&ObjectRef::from_obj_with(&*object, resource.clone()));
            async move { Box::pin(pass(&shared, subject, &resource, object)).await }.boxed()
        };
        let retry =
            |object: Arc<DynamicObject>, error: &Error, _: Arc<Shared>| self.retry(&object, error);
        let config = Config::default().concurrency(concurrency);
        let passes = applier(pass, retry, shared, self.store.clone(), requests, config);
        passes
            .for_each(|ended| {
                match ended {
                    Ok((object, _)) => drop(self.failures().remove(&object)),
                    Err(Ended::ObjectNotFound(gone)) => {
                        self.queue.taken(&gone);
                        self.failures().remove(&gone);
                    }
                    // A pass that failed `retry` has reported already.
                    Err(_) => {}
                }
                futures::future::ready(())
            })
            .await;
    }

    /// When an object is tried again, whose pass has failed.
    fn retry(&self, object: &DynamicObject, error: &Error) -> Action {
        let key = ObjectRef::from_obj_with(object, self.resource.clone());
        let mut failures = self.failures();
        let count = failures.entry(key).or_default();
        let pause = FIRST_RETRY.saturating_mul(2_u32.saturating_pow((*count).min(16)));
        *count += 1;
        let pause = pause.min(LAST_RETRY);
        if error.is_of_a_moment(*count) {
            return Action::requeue(pause);
        }
        tracing::warn!(
            kind = self.resource.kind,
            namespace = object.metadata.namespace,
            name = object.metadata.name,
            error = error_chain(error),
            failures = *count,
            retry_in_seconds = pause.as_secs(),
            "failed to reconcile; will retry"
        );
        Action::requeue(pause)
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, HashMap<Named, u32>> {
        // A map of numbers cannot be left half changed.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn pass(
    shared: &Shared,
    subject: Subject,
    resource: &ApiResource,
    object: Arc<DynamicObject>,
) -> Result<Action, Error> {
    let (started, Shared { ctx, clouds, upgrades, under_way }) = (Instant::now(), shared);
    let _under_way = under_way.start(subject.name(), &object);
    let looked_at = object.clone();
    let ended = async {
        match subject {
            Subject::Component(component) => reconcile(ctx, component, resource, object).await,
            Subject::Manager => manager::reconcile(ctx, resource, object).await,
            Subject::NestedCluster => cloud::reconcile_cluster(ctx, clouds, resource, object).await,
            Subject::LinkLocalService => {
                cloud::reconcile_service(ctx, clouds, resource, object).await
            }
            Subject::Upgrade => upgrade::reconcile(ctx, upgrades, resource, object).await,
            Subject::Network => cloud::reconcile_network(ctx, clouds, resource, object).await,
        }
    };
    let ended = apart(Box::pin(ended)).await;
    forget_if_gone(shared, subject.kind(), &looked_at);
    let result = if ended.is_ok() { Outcome::Success } else { Outcome::Error };
    ctx.metrics.pass(subject.name(), result, started.elapsed());
    ended
}

/// Knows nothing any more of an object that is not there: it may have gone while a pass was made, or before it had a finalizer.
fn forget_if_gone(Shared { ctx, clouds, .. }: &Shared, kind: Kind, object: &DynamicObject) {
    if !ctx.cache.is_gone(kind, object) {
        return;
    }
    clouds.forget(object);
    match (kind, components::of_kind(kind.name())) {
        (Kind::Manager, _) => manager::forget(ctx, object),
        (Kind::Component(_), Some(component)) => reconcile::forget(ctx, component, object),
        _ => ctx.reporter.forget(object),
    }
}

/// A pass that panics has failed, and no other with it: what one object says must not end the process for all.
async fn apart<T>(pass: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    AssertUnwindSafe(pass).catch_unwind().await.unwrap_or(Err(Error::Panicked))
}

/// Returns when no pass is under way any more, and none starts.
async fn over(mut drain: Drain, under_way: &UnderWay) {
    drain.reached(Phase::Draining).await;
    under_way.over().await;
}

/// Returns when passes have had their time to end.
async fn overdue(mut drain: Drain) {
    drain.reached(Phase::Draining).await;
    tokio::time::sleep(STOPPING).await;
}

#[cfg(test)]
mod tests;
