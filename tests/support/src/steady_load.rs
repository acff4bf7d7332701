//! Users who make, change and remove good objects and try bad ones, all the time, while a test does
//! something to what judges them; and what became of their requests. Deliberately not here: what is
//! done meanwhile, which is the tests' matter.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::eventually::{TIMEOUT, eventually};

/// The least time between the starts of two rounds of one user.
const PACE: Duration = Duration::from_millis(250);
/// Requests of one round that have a verdict.
const ROUND: usize = 8;
/// What a claim is held on, so that others are refused.
const HELD: &str = "169.254.9.1";

/// Why there is no load.
#[derive(Debug, thiserror::Error)]
#[error("make the object that holds the address {HELD}, which others then may not have")]
pub struct LoadError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// What became of the requests since it was asked last.
#[derive(Debug, Default)]
pub struct Became {
    /// Good ones that were refused, bad ones that were stored. Never right.
    pub wrong: Vec<String>,
    /// Neither: the webhook, or the API server, could not be asked.
    pub unjudged: Vec<String>,
}

/// The load. Dropping it ends it.
pub struct SteadyLoad {
    users: JoinSet<()>,
    tally: Arc<Tally>,
    client: Client,
    namespace: String,
}

impl SteadyLoad {
    /// One user for each of the clients, in this namespace, which exists.
    ///
    /// # Errors
    /// Not even one good object can be stored.
    pub async fn start(clients: Vec<Client>, namespace: &str) -> Result<Self, LoadError> {
        let Some(client) = clients.first().cloned() else {
            return Err(LoadError("there is no client".into()));
        };
        let tally = Arc::<Tally>::default();
        let holder = service("holder", HELD, 80).map_err(|error| LoadError(error.into()))?;
        let services = User::new(0, &client, namespace, Arc::clone(&tally)).services;
        let stored = services.create(&PostParams::default(), &holder).await;
        stored.map_err(|error| LoadError(error.into()))?;
        let mut users = JoinSet::new();
        for (number, client) in (1..).zip(&clients) {
            users.spawn(User::new(number, client, namespace, Arc::clone(&tally)).work());
        }
        Ok(Self { users, tally, client, namespace: namespace.to_owned() })
    }

    /// How many requests had the right verdict until now.
    #[must_use]
    pub fn judged(&self) -> usize {
        self.tally.judged.load(Ordering::Relaxed)
    }

    /// How many requests had none, since [`became`](Self::became) was asked last.
    #[must_use]
    pub fn unjudged(&self) -> usize {
        self.tally.unjudged.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// What became of the others since this was called last.
    #[must_use]
    pub fn became(&self) -> Became {
        Became { wrong: take(&self.tally.wrong), unjudged: take(&self.tally.unjudged) }
    }

    /// Waits until there are about three more rounds of each user with a verdict.
    ///
    /// # Panics
    /// Not within [`TIMEOUT`].
    pub async fn goes_on(&self, what: &str) {
        let wanted = self.judged() + 3 * ROUND * self.users.len();
        eventually(&format!("{what}: the load continues"), async || self.judged() >= wanted).await;
    }

    /// While this happens, and a while after, every request is judged, and rightly.
    ///
    /// # Errors
    /// Those of the change.
    ///
    /// # Panics
    /// A request was judged wrongly, or not judged.
    pub async fn unnoticed<E>(
        &self,
        what: &str,
        change: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        change.await?;
        self.goes_on(what).await;
        let Became { wrong, unjudged } = self.became();
        assert!(wrong.is_empty(), "{what}: wrong verdicts: {wrong:#?}");
        assert!(unjudged.is_empty(), "{what}: requests without a verdict: {unjudged:#?}");
        Ok(())
    }

    /// While this happens requests may fail, but none is judged wrongly; afterwards all are
    /// judged again, without anything being done about it. Returns those that failed.
    ///
    /// # Errors
    /// Those of the change.
    ///
    /// # Panics
    /// A request was judged wrongly, or they still fail after [`TIMEOUT`].
    pub async fn recovers<E>(
        &self,
        what: &str,
        change: impl Future<Output = Result<(), E>>,
    ) -> Result<Vec<String>, E> {
        change.await?;
        let deadline = Instant::now() + TIMEOUT;
        let mut failed = Vec::new();
        loop {
            let Became { wrong, unjudged } = self.became();
            assert!(wrong.is_empty(), "{what}: wrong verdicts: {wrong:#?}");
            failed.extend(unjudged);
            self.goes_on(what).await;
            let Became { wrong, unjudged } = self.became();
            assert!(wrong.is_empty(), "{what}: wrong verdicts: {wrong:#?}");
            if unjudged.is_empty() {
                return Ok(failed);
            }
            failed.extend(unjudged);
            assert!(Instant::now() < deadline, "{what}: does not recover: {failed:#?}");
        }
    }

    /// What is stored in the end, whatever the answers were.
    ///
    /// # Errors
    /// The API server does not list it.
    ///
    /// # Panics
    /// Something bad is stored, or an address has two holders.
    pub async fn nothing_bad_is_stored(&self) -> kube::Result<()> {
        let user = User::new(0, &self.client, &self.namespace, Arc::clone(&self.tally));
        for vrouter in user.vrouters.list(&ListParams::default()).await? {
            assert!(!vrouter.data.to_string().contains("reboot"), "{vrouter:?}");
        }
        let services = user.services.list(&ListParams::default()).await?;
        let holders = services.iter().filter(|one| one.data.to_string().contains(HELD));
        assert_eq!(holders.count(), 1);
        Ok(())
    }
}

/// What became of the requests.
#[derive(Default)]
struct Tally {
    judged: AtomicUsize,
    /// Good ones that were refused, bad ones that were stored. Never right.
    wrong: Mutex<Vec<String>>,
    /// Neither: the webhook, or the API server, could not be asked.
    unjudged: Mutex<Vec<String>>,
}

impl Tally {
    /// A request that has to succeed.
    async fn good<T>(&self, what: &str, request: impl Future<Output = kube::Result<T>>) {
        match timeout(TIMEOUT, request).await {
            Ok(Ok(_)) => self.right(),
            Ok(Err(kube::Error::Api(status)))
                if status.code == 403 && status.message.contains("denied the request") =>
            {
                note(&self.wrong, format!("{what}: {}", status.message));
            }
            Ok(Err(error)) => note(&self.unjudged, format!("{what}: {error}")),
            Err(_) => note(&self.unjudged, format!("{what}: no answer")),
        }
    }

    /// A request that has to be refused for this reason.
    async fn bad<T>(
        &self,
        what: &str,
        reason: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) {
        match timeout(TIMEOUT, request).await {
            Ok(Ok(_)) => note(&self.wrong, format!("{what}: it was stored")),
            Ok(Err(kube::Error::Api(status))) if status.message.contains(reason) => self.right(),
            Ok(Err(error)) => note(&self.unjudged, format!("{what}: {error}")),
            Err(_) => note(&self.unjudged, format!("{what}: no answer")),
        }
    }

    fn right(&self) {
        self.judged.fetch_add(1, Ordering::Relaxed);
    }
}

fn note(list: &Mutex<Vec<String>>, text: String) {
    list.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}

fn take(list: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner))
}

/// One user, who makes, changes and removes good objects and tries bad ones.
struct User {
    number: usize,
    services: Api<DynamicObject>,
    vrouters: Api<DynamicObject>,
    tally: Arc<Tally>,
}

impl User {
    fn new(number: usize, client: &Client, namespace: &str, tally: Arc<Tally>) -> Self {
        let services = resource("opensdn.io", "LinkLocalService", "linklocalservices");
        let vrouters = resource("tf.tungsten.io", "Vrouter", "vrouters");
        Self {
            number,
            services: Api::namespaced_with(client.clone(), namespace, &services),
            vrouters: Api::namespaced_with(client.clone(), namespace, &vrouters),
            tally,
        }
    }

    async fn work(self) {
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for round in 0..50_000 {
            pace.tick().await;
            if let Err(error) = self.round(round).await {
                note(&self.tally.wrong, format!("the test's own objects: {error}"));
            }
        }
    }

    async fn round(&self, round: usize) -> Result<(), serde_json::Error> {
        let Self { services, vrouters, tally, .. } = self;
        let (create, change) = (PostParams::default(), PatchParams::default());
        let name = format!("user-{}-{round}", self.number);
        let service = service(&name, &format!("169.254.10.{}", self.number), 1024 + round)?;
        let further = Patch::Merge(json!({"spec": {"fabric": {"port": 8081}}}));
        tally.good("create a service", services.create(&create, &service)).await;
        let patch = services.patch(&name, &change, &further);
        tally.good("change a service", patch).await;
        let taken = self::service(&format!("{name}-taken"), HELD, 80)?;
        let request = services.create(&create, &taken);
        tally.bad("take an address", "is already taken by", request).await;

        let good = vrouter(&name, "eth0")?;
        tally.good("create a vrouter", vrouters.create(&create, &good)).await;
        let injected = "e0$(reboot)";
        let bad = vrouter(&format!("{name}-bad"), injected)?;
        let request = vrouters.create(&create, &bad);
        tally.bad("create a bad vrouter", "[OSDN1812]", request).await;
        let bad = json!({"spec": {"serviceConfiguration": {"physicalInterface": injected}}});
        let bad = Patch::Merge(bad);
        let request = vrouters.patch(&name, &change, &bad);
        tally.bad("make a vrouter bad", "[OSDN1812]", request).await;

        let delete = DeleteParams::default();
        tally.good("delete a service", services.delete(&name, &delete)).await;
        tally.good("delete a vrouter", vrouters.delete(&name, &delete)).await;
        Ok(())
    }
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk(group, "v1alpha1", kind);
    ApiResource::from_gvk_with_plural(&kind, plural)
}

fn service(name: &str, ip: &str, port: usize) -> Result<DynamicObject, serde_json::Error> {
    serde_json::from_value(json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": name},
        "spec": {"ip": ip, "port": port, "fabric": {"addresses": ["10.1.1.1"], "port": 8080}},
    }))
}

fn vrouter(name: &str, interface: &str) -> Result<DynamicObject, serde_json::Error> {
    let containers = ["vrouteragent", "nodemanager", "provisioner"]
        .map(|name| json!({"name": name, "image": format!("registry.example.com/{name}:R24.1")}));
    serde_json::from_value(json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {
            "name": name,
            "annotations": {"opensdn.io/confirm-loss": format!("Vrouter/{name}")},
        },
        "spec": {"serviceConfiguration": {
            "controlInstance": "control1", "dataSubnet": "10.1.0.0/24",
            "physicalInterface": interface,
            "containers": containers.as_slice(),
        }},
    }))
}
