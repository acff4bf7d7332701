//! What daemons say of themselves by introspect, the pages of Sandesh: whether they work, which sessions are up. A pod is
//! ready as soon as its port is open; a daemon that has lost its database, or an agent without a control node, is seen only
//! here. All daemons of all pods are asked in rounds, and what a service's come to is written into its status when it
//! differs from before. Deliberately not here: conditions (a service whose daemon is not functional is what it was before
//! to all that waits for it), and the pages of what is no service of ours.
//!
//! ```text
//! ask       one daemon, over the network
//! page      what a page says, pure
//! summary   what the answers of one service come to, pure
//! xml       elements and their texts, pure
//! ```

mod ask;
mod page;
mod summary;
mod xml;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::stream::FuturesUnordered;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::component::Component;
use opensdn_crds::status::IntrospectStatus;
use opensdn_http_client::{HttpClient, Trust};
use opensdn_runtime::error_chain;
use time::OffsetDateTime;
use tokio::time::MissedTickBehavior;

use crate::cache::Cache;
use crate::component::{Container, Introspect as At, Sessions as Counted};
use crate::kind::Kind;
use crate::names::{Instance, TRUST, TRUST_KEY};
use crate::object::{controller_of, list, text};
use crate::pod::{keepers, labelled};

use ask::Endpoint;
pub(crate) use summary::bounded;
use summary::{Heard, Said, summary};

/// So many daemons of a namespace are asked at a time: of a thousand nodes that are all away a round takes five minutes.
const AT_ONCE: usize = 32;
/// Until there is a connection.
const CONNECT: Duration = Duration::from_secs(3);

/// A service: its kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Service {
    /// The one that an object describes.
    #[must_use]
    pub fn of(facts: &'static Component, object: &DynamicObject) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        Self { kind: facts.kind, namespace, name: object.name_any() }
    }
}

#[derive(Default)]
struct Known {
    /// The containers with introspect of each service, as it was described last.
    described: BTreeMap<Service, Vec<Daemon>>,
    services: BTreeMap<Service, IntrospectStatus>,
    /// Those whose daemons were asked once, if they have any, and when that began the last time.
    asked: BTreeMap<Service, OffsetDateTime>,
}

/// A container with introspect.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Daemon {
    container: &'static str,
    at: At,
}

/// What came of asking the daemons of a service.
pub(crate) struct LastRound {
    /// What they said; nothing, where none of them could be asked.
    pub(crate) said: Option<IntrospectStatus>,
    /// When it began; unset before they were asked, and where none could be.
    pub(crate) began: Option<OffsetDateTime>,
}

/// What is known of the daemons of all services.
pub struct Introspect {
    /// From the end of one round to the next; nothing where daemons are not asked.
    interval: Option<Duration>,
    known: Mutex<Known>,
    /// Clients by namespace, each with the version of the CAs that it trusts.
    clients: Mutex<BTreeMap<String, (String, Arc<HttpClient>)>>,
    changed: UnboundedSender<Service>,
    changes: Mutex<Option<UnboundedReceiver<Service>>>,
}

/// A daemon that is to be asked.
struct Target {
    service: Service,
    daemon: Daemon,
    pod: String,
    node: String,
    endpoint: Endpoint,
    client: Arc<HttpClient>,
}

impl Introspect {
    /// One that has asked no daemon yet; without an interval it never does.
    #[must_use]
    pub fn new(interval: Option<Duration>) -> Self {
        let (changed, changes) = unbounded();
        Self {
            interval,
            known: Mutex::default(),
            clients: Mutex::default(),
            changed,
            changes: Mutex::new(Some(changes)),
        }
    }

    /// Takes note of how the containers of a service are asked.
    pub(crate) fn describe(&self, service: &Service, containers: &[Container]) {
        let daemons = containers
            .iter()
            .filter_map(|one| Some(Daemon { container: one.name, at: one.introspect.clone()? }));
        let daemons: Vec<_> = daemons.collect();
        if !daemons.is_empty() {
            self.known().described.insert(service.clone(), daemons);
        }
    }

    /// Takes note that it is not known how a service is asked: what was said of it by who led before is not true for ever.
    pub(crate) fn not_described(&self, service: &Service) {
        let mut known = self.known();
        if !known.described.contains_key(service) {
            known.asked.insert(service.clone(), OffsetDateTime::now_utc());
        }
    }

    /// Forgets a service that is gone, or is made of other pods than those.
    pub(crate) fn forget(&self, service: &Service) {
        let mut known = self.known();
        known.described.remove(service);
        known.services.remove(service);
        known.asked.remove(service);
    }

    /// What the daemons of the service have said last. Before they were asked it is what was said `before`: who leads next
    /// takes nothing back. Where none is ever asked nothing is said.
    #[must_use]
    pub fn of(
        &self,
        service: &Service,
        before: Option<&IntrospectStatus>,
    ) -> Option<IntrospectStatus> {
        self.heard(service, before)?.said
    }

    /// The same, and when they began to be asked for it. Nothing where none is ever asked.
    pub(crate) fn heard(
        &self,
        service: &Service,
        before: Option<&IntrospectStatus>,
    ) -> Option<LastRound> {
        self.interval?;
        let known = self.known();
        match known.asked.get(service) {
            Some(began) => {
                let said = known.services.get(service).cloned();
                Some(LastRound { began: said.is_some().then_some(*began), said })
            }
            None => Some(LastRound { said: Some(before?.clone()), began: None }),
        }
    }

    /// The services of which something else is known than before, once.
    pub(crate) fn changes(&self) -> Option<UnboundedReceiver<Service>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Asks in rounds, without end: each namespace in its own, so that none waits for the daemons of another.
    pub(crate) async fn run(&self, cache: &Cache) {
        let Some(interval) = self.interval else { return std::future::pending().await };
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut rounds, mut busy) = (FuturesUnordered::new(), BTreeSet::new());
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    for namespace in self.namespaces() {
                        if busy.insert(namespace.clone()) {
                            rounds.push(self.round(cache, namespace));
                        }
                    }
                }
                Some(namespace) = rounds.next(), if !rounds.is_empty() => {
                    busy.remove(&namespace);
                }
            }
        }
    }

    /// Those that have a service with daemons.
    fn namespaces(&self) -> BTreeSet<String> {
        self.known().described.keys().map(|service| service.namespace.clone()).collect()
    }

    /// Asks each daemon of each pod of the namespace once, and says which namespace it was.
    async fn round(&self, cache: &Cache, namespace: String) -> String {
        let began = OffsetDateTime::now_utc();
        // What they said last stays, and stays of the time when they said it.
        let Some(client) = self.client(cache, &namespace) else { return namespace };
        let targets = self.targets(cache, &namespace, &client);
        let services = self.described_in(&namespace);
        let asked = futures::stream::iter(targets).map(|target| async move {
            let heard = target.ask().await;
            (target.service, heard)
        });
        let mut by_service: BTreeMap<Service, Vec<Heard>> = BTreeMap::new();
        let mut asked = asked.buffer_unordered(AT_ONCE);
        while let Some((service, heard)) = asked.next().await {
            by_service.entry(service).or_default().push(heard);
        }
        let now =
            by_service.into_iter().filter_map(|(service, heard)| Some((service, summary(heard)?)));
        self.replace(services, now.collect(), began);
        namespace
    }

    fn described_in(&self, namespace: &str) -> BTreeSet<Service> {
        let known = self.known();
        known.described.keys().filter(|service| service.namespace == namespace).cloned().collect()
    }

    /// Notes what is known of these services now, and names those of which it is something else than before. One that was
    /// forgotten in the meantime stays so.
    fn replace(
        &self,
        asked: BTreeSet<Service>,
        mut now: BTreeMap<Service, IntrospectStatus>,
        began: OffsetDateTime,
    ) {
        let mut known = self.known();
        for service in asked {
            if !known.described.contains_key(&service) {
                continue;
            }
            let status = now.remove(&service);
            let is_first = known.asked.insert(service.clone(), began).is_none();
            if known.services.get(&service) != status.as_ref() || is_first {
                tracing::debug!(?service, ?status, "daemons say something else than before");
                // An error means that the process ends.
                let _ = self.changed.unbounded_send(service.clone());
            }
            match status {
                Some(status) => known.services.insert(service, status),
                None => known.services.remove(&service),
            };
        }
    }

    fn targets(&self, cache: &Cache, namespace: &str, client: &Arc<HttpClient>) -> Vec<Target> {
        let known = self.known();
        let services = known.described.iter().filter(|(one, _)| one.namespace == namespace);
        services.flat_map(|(one, daemons)| targets_of(cache, one, daemons, client)).collect()
    }

    /// One that trusts the CAs of the namespace. None before they are published.
    fn client(&self, cache: &Cache, namespace: &str) -> Option<Arc<HttpClient>> {
        let trusted = cache.get(Kind::ConfigMap, namespace, TRUST)?;
        let pem = text(&trusted.data, &format!("/data/{TRUST_KEY}"));
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((with, client)) = clients.get(namespace)
            && with == pem
        {
            return Some(client.clone());
        }
        let trust = Trust::of_none().with_pem(&format!("the ConfigMap {TRUST}"), pem.as_bytes());
        match trust.and_then(|trust| HttpClient::new(trust, CONNECT)) {
            Ok(client) => {
                let client = Arc::new(client);
                clients.insert(namespace.to_owned(), (pem.to_owned(), client.clone()));
                Some(client)
            }
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(
                    namespace,
                    error,
                    "failed to read the CAs of daemons; will not ask them"
                );
                None
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // What was half changed is asked for again.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The daemons of a service that run.
fn targets_of(
    cache: &Cache,
    service: &Service,
    daemons: &[Daemon],
    client: &Arc<HttpClient>,
) -> Vec<Target> {
    let instance = Instance { word: service.kind.to_lowercase(), name: service.name.clone() };
    let object = cache.get(Kind::Component(service.kind), &service.namespace, &service.name);
    let owner = object.and_then(|object| object.uid()).unwrap_or_default();
    let keepers = keepers(cache, &service.namespace, &instance, &owner);
    // Labels anybody can set.
    let is_kept = |pod: &DynamicObject| {
        pod.metadata.deletion_timestamp.is_none()
            && controller_of(pod).is_some_and(|owner| {
                keepers.iter().any(|keeper| {
                    let metadata = &keeper.metadata;
                    (&metadata.uid, &metadata.name)
                        == (&Some(owner.uid.clone()), &Some(owner.name.clone()))
                })
            })
    };
    let pods = labelled(cache, &service.namespace, &instance);
    let mut targets = Vec::new();
    for pod in pods.iter().filter(|pod| is_kept(pod)) {
        let Ok(address) = text(&pod.data, "/status/podIP").parse::<IpAddr>() else { continue };
        let running = daemons.iter().filter(|daemon| runs(daemon.container, pod));
        let each = running.flat_map(|one| one.at.ports.iter().map(move |port| (one, *port)));
        targets.extend(each.map(|(daemon, port)| Target {
            service: service.clone(),
            daemon: daemon.clone(),
            pod: pod.name_any(),
            node: text(&pod.data, "/spec/nodeName").to_owned(),
            endpoint: Endpoint {
                address: SocketAddr::new(address, port),
                is_plain: daemon.at.is_plain,
            },
            client: client.clone(),
        }));
    }
    targets
}

fn runs(container: &str, pod: &DynamicObject) -> bool {
    let mut containers = list(&pod.data, "/status/containerStatuses");
    containers.any(|one| text(one, "/name") == container && one.pointer("/state/running").is_some())
}

impl Target {
    async fn ask(&self) -> Heard {
        let answered = ask::process(&self.client, &self.endpoint).await;
        let is_answered = answered.is_ok();
        let said = match answered {
            Ok(process) => Said::Answered(process),
            Err(error) if error.is_timeout() => Said::Silent,
            Err(error) if error.is_refused() && self.daemon.at.may_listen_elsewhere => {
                Said::Unreadable(
                    "listens at the address of the vrouter alone (INTROSPECT_LISTEN_ALL)"
                        .to_owned(),
                )
            }
            Err(error) if error.is_refused() => Said::Refused,
            Err(error) => Said::Unreadable(ask::in_words(&error_chain(&error))),
        };
        let at = &self.daemon.at;
        let bgp = match at.sessions == Counted::Bgp && is_answered {
            // What it does not say is left out, and asked for the next time.
            true => ask::bgp(&self.client, &self.endpoint).await.ok().flatten(),
            false => None,
        };
        Heard {
            pod: self.pod.clone(),
            node: self.node.clone(),
            container: self.daemon.container,
            is_elected: at.is_elected,
            is_agent: at.sessions == Counted::WithControlNodes,
            said,
            bgp,
        }
    }
}

#[cfg(test)]
mod tests;
