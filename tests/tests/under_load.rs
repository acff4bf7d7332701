//! A steady load through a real API server while all that may change under it does: policies, the
//! CA, replicas; and while the API server and etcd are away. Deliberately not here: what single
//! policies find, the rules of a rotation (the webhook's `certificates`), clients that want the
//! same keys (`uniqueness`).

use std::error::Error;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_tests::eventually::{PATIENCE, eventually};
use opensdn_tests::product::{Installation, NAMESPACE, Product, install_crds};
use opensdn_tests::sandbox::Sandbox;
use opensdn_webhook::certificates::rotation::{Authorities, Stored};
use opensdn_webhook::certificates::secret::{CaSecret, ROTATE, Written};
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

type Failed = Box<dyn Error + Send + Sync>;
type Outcome = Result<(), Failed>;

const WEBHOOK: &str = env!("CARGO_BIN_EXE_webhook-of-tests");
const CONTROL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples/control.yaml");
const REPLICAS: usize = 3;
const CLIENTS: usize = 3;
/// A client begins its next round so long after the one before, at the earliest.
const PACE: Duration = Duration::from_millis(100);
/// So many verdicts say that the load goes on: about three rounds of each client.
const ENOUGH: usize = 8 * CLIENTS * 3;
const SECRET: &str = "opensdn-webhook-ca";

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
        match timeout(PATIENCE, request).await {
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
        match timeout(PATIENCE, request).await {
            Ok(Ok(_)) => note(&self.wrong, format!("{what}: it was stored")),
            Ok(Err(kube::Error::Api(status))) if status.message.contains(reason) => self.right(),
            Ok(Err(error)) => note(&self.unjudged, format!("{what}: {error}")),
            Err(_) => note(&self.unjudged, format!("{what}: no answer")),
        }
    }

    fn right(&self) {
        self.judged.fetch_add(1, Ordering::Relaxed);
    }

    fn judged(&self) -> usize {
        self.judged.load(Ordering::Relaxed)
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
    fn new(number: usize, client: &Client, tally: Arc<Tally>) -> Self {
        let services = resource("opensdn.io", "LinkLocalService", "linklocalservices");
        let vrouters = resource("tf.tungsten.io", "Vrouter", "vrouters");
        Self {
            number,
            services: Api::namespaced_with(client.clone(), "tf", &services),
            vrouters: Api::namespaced_with(client.clone(), "tf", &vrouters),
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
        let taken = self::service(&format!("{name}-taken"), "169.254.9.1", 80)?;
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
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"ip": ip, "port": port, "fabric": {"addresses": ["10.1.1.1"], "port": 8080}},
    }))
}

fn vrouter(name: &str, interface: &str) -> Result<DynamicObject, serde_json::Error> {
    let containers = ["vrouteragent", "nodemanager", "provisioner"]
        .map(|name| json!({"name": name, "image": format!("registry.example.com/{name}:R24.1")}));
    serde_json::from_value(json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"serviceConfiguration": {
            "controlInstance": "control1", "dataSubnet": "10.1.0.0/24",
            "physicalInterface": interface,
            "containers": containers.as_slice(),
        }},
    }))
}

/// The product under load. Dropping it ends the load.
struct World {
    _users: JoinSet<()>,
    tally: Arc<Tally>,
    client: Client,
    product: Product,
    sandbox: Sandbox,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().start().await?;
        // Before the replicas: then their look-ups know it from the beginning.
        install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
        for arguments in [&["create", "namespace", "tf"][..], &["apply", "-f", CONTROL]] {
            let output = sandbox.kubectl(arguments).await?;
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let product = Installation::of(WEBHOOK).replicas(REPLICAS).install(&sandbox).await?;
        let (client, tally) = (sandbox.client()?, Arc::<Tally>::default());
        let holder = service("holder", "169.254.9.1", 80)?;
        let services = User::new(0, &client, Arc::clone(&tally)).services;
        services.create(&PostParams::default(), &holder).await?;
        let mut users = JoinSet::new();
        for number in 1..=CLIENTS {
            users.spawn(User::new(number, &sandbox.client()?, Arc::clone(&tally)).work());
        }
        Ok(Self { _users: users, tally, client, product, sandbox })
    }

    /// While this happens, and a while after, every request is judged, and rightly.
    async fn unnoticed(&self, what: &str, change: impl Future<Output = Outcome>) -> Outcome {
        change.await.map_err(|error| format!("{what}: {error}"))?;
        self.goes_on(what).await;
        let (wrong, unjudged) = (take(&self.tally.wrong), take(&self.tally.unjudged));
        assert!(wrong.is_empty(), "{what}: wrong verdicts: {wrong:#?}");
        assert!(unjudged.is_empty(), "{what}: requests without a verdict: {unjudged:#?}");
        Ok(())
    }

    /// While this happens requests may fail, but none is judged wrongly; afterwards all are
    /// judged again, and nobody has to do anything about it.
    async fn recovers(&self, what: &str, change: impl Future<Output = Outcome>) -> Outcome {
        change.await.map_err(|error| format!("{what}: {error}"))?;
        let deadline = Instant::now() + PATIENCE;
        let mut unjudged = take(&self.tally.unjudged);
        loop {
            self.goes_on(what).await;
            let wrong = take(&self.tally.wrong);
            assert!(wrong.is_empty(), "{what}: wrong verdicts: {wrong:#?}");
            let again = take(&self.tally.unjudged);
            if again.is_empty() {
                return Ok(());
            }
            unjudged.extend(again);
            assert!(Instant::now() < deadline, "{what}: does not recover: {unjudged:#?}");
        }
    }

    async fn goes_on(&self, what: &str) {
        let before = self.tally.judged();
        let goes_on = async || self.tally.judged() >= before + ENOUGH;
        eventually(&format!("{what}: the load goes on"), goes_on).await;
    }

    /// Changes policies to and fro; each change is in force in every replica before the next.
    async fn swap_policies(&self) -> Outcome {
        let elsewhere = json!({"namespaces": ["elsewhere"]});
        for turn in 0..3 {
            let exemptions = if turn % 2 == 0 { elsewhere.clone() } else { Value::Null };
            self.swap("unsafe-parameter", json!({"exemptions": exemptions})).await?;
            let mode = if turn % 2 == 0 { "warn" } else { "enforce" };
            self.swap("plaintext", json!({"mode": mode})).await?;
            let secrets = if turn % 2 == 0 { "deny" } else { "warn" };
            self.swap("missing-reference", json!({"settings": {"secrets": secrets}})).await?;
        }
        Ok(())
    }

    async fn swap(&self, policy: &str, spec: Value) -> Outcome {
        let policies: Api<AdmissionPolicy> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"spec": spec}));
        let changed = policies.patch(policy, &PatchParams::default(), &patch).await?;
        let generation = changed.metadata.generation;
        let in_force = async || {
            let status = policies.get(policy).await.ok().and_then(|policy| policy.status);
            let replicas = status.and_then(|status| status.replicas).unwrap_or_default();
            replicas.len() == REPLICAS
                && replicas.iter().all(|one| one.ready && one.observed_generation == generation)
        };
        eventually(&format!("{policy} is in force in every replica"), in_force).await;
        Ok(())
    }

    /// A whole rotation, except that its minute of waiting is not waited for: the test does what
    /// the leader would do then.
    async fn rotate(&self) -> Outcome {
        let before = self.expiries().await?;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        let ask = json!({"metadata": {"annotations": {ROTATE: "the key was seen"}}});
        secrets.patch(SECRET, &PatchParams::default(), &Patch::Merge(ask)).await?;
        let announced = async || self.trusted().await.is_ok_and(|trusted| trusted == Some(2));
        eventually("both CAs are in every webhook configuration", announced).await;

        let secret = CaSecret::new(self.client.clone(), NAMESPACE, SECRET);
        let found = secret.read().await?;
        let Stored::Whole { authorities, .. } = &found.stored else {
            return Err("no usable CA is stored".into());
        };
        let next = authorities.next.clone().ok_or("no CA is announced")?;
        let previous = Some(authorities.current.certificate().to_owned());
        let changed = Authorities { current: next, next: None, previous };
        let written = secret.write(&found, &changed, OffsetDateTime::now_utc()).await?;
        assert_eq!(written, Written::Stored);
        let reissued = async || {
            let now = self.expiries().await.unwrap_or_default();
            now.len() == REPLICAS && now.iter().zip(&before).all(|(now, before)| now != before)
        };
        eventually("every replica has a certificate of the new CA", reissued).await;
        Ok(())
    }

    /// How many CAs all webhooks of both configurations trust, if it is the same number.
    async fn trusted(&self) -> Result<Option<usize>, kube::Error> {
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let validating = validating.get("opensdn-webhook").await?.webhooks.unwrap_or_default();
        let mutating = mutating.get("opensdn-webhook").await?.webhooks.unwrap_or_default();
        let validating = validating.into_iter().map(|webhook| webhook.client_config);
        let configs = validating.chain(mutating.into_iter().map(|webhook| webhook.client_config));
        let counts: Vec<usize> = configs.map(|config| certificates(&config)).collect();
        let same = counts.windows(2).all(|pair| pair.first() == pair.last());
        Ok(counts.first().copied().filter(|_| same))
    }

    /// When each replica's certificate expires, as it says itself.
    async fn expiries(&self) -> Result<Vec<String>, Failed> {
        let mut expiries = Vec::new();
        for backend in self.product.backends() {
            let metrics = get(backend.admin, "/metrics").await?;
            let line = metrics
                .lines()
                .find(|line| line.starts_with("opensdn_webhook_certificate_expiry_timestamp"));
            expiries.push(line.ok_or("no metric of the certificate")?.to_owned());
        }
        Ok(expiries)
    }

    /// Each replica once: ended as the kubelet does, and started again.
    async fn drain_and_start(&self) -> Outcome {
        for (number, backend) in self.product.backends().iter().enumerate() {
            self.product.drain_replica(number).await;
            self.product.start_replica(number)?;
            let ready = async || {
                let answer = get(backend.admin, "/ready").await.unwrap_or_default();
                answer.lines().next().is_some_and(|line| line.contains(" 200 "))
            };
            eventually(&format!("replica {number} is ready again"), ready).await;
        }
        Ok(())
    }

    /// What is stored in the end, whatever the clients were told.
    async fn nothing_bad_is_stored(&self) -> Outcome {
        let user = User::new(0, &self.client, Arc::clone(&self.tally));
        for vrouter in user.vrouters.list(&Default::default()).await? {
            assert!(!vrouter.data.to_string().contains("reboot"), "{vrouter:?}");
        }
        let services = user.services.list(&Default::default()).await?;
        let holders = services.iter().filter(|one| one.data.to_string().contains("169.254.9.1"));
        assert_eq!(holders.count(), 1);
        Ok(())
    }
}

fn certificates(config: &WebhookClientConfig) -> usize {
    let bundle = config.ca_bundle.as_ref().map(|bundle| String::from_utf8_lossy(&bundle.0));
    bundle.map_or(0, |bundle| bundle.matches("BEGIN CERTIFICATE").count())
}

async fn get(address: std::net::SocketAddr, path: &str) -> Result<String, Failed> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: replica\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await??;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_changes_or_goes_away_no_bad_object_is_stored_and_no_good_one_refused() -> Outcome
{
    let world = World::start().await?;
    world.unnoticed("policies change", world.swap_policies()).await?;
    world.unnoticed("the CA changes", world.rotate()).await?;
    world.unnoticed("replicas are drained", world.drain_and_start()).await?;
    let restart = async { Ok(world.sandbox.restart_api_server().await?) };
    world.recovers("the API server is restarted", restart).await?;
    let restart = async { Ok(world.sandbox.restart_etcd().await?) };
    world.recovers("etcd is restarted", restart).await?;
    world.unnoticed("policies change again", world.swap_policies()).await?;
    world.nothing_bad_is_stored().await
}
