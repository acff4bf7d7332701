//! The webhook as a cluster has it: who answers reviews does not write the webhook configurations, two
//! processes of another account do. A real API server, and the rights of `deploy/webhook`. Deliberately
//! not here: what becomes of the configurations in general (`webhook_policies`), in one process.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

mod lost_rights;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_deploy::names::{NAMESPACE, configuration, webhook};
use opensdn_testing::admin_port;
use opensdn_testing::eventually::eventually;
use opensdn_testing::link_local::service;
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

const TAMPERED: &str = "opensdn_webhook_configuration_tampered_total";

struct World {
    sandbox: Sandbox,
    product: Product,
    client: Client,
}

impl World {
    /// With one replica that answers reviews and two processes that write.
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
        let product = Installation::built()?.apart(2).install(&sandbox).await?;
        let client = sandbox.client()?;
        Ok(Self { sandbox, product, client })
    }

    fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    async fn configuration(&self) -> Result<Value, Failed> {
        Ok(serde_json::to_value(self.validating().get(webhook::NAME).await?)?)
    }

    async fn create(&self, name: &str, ip: &str) -> kube::Result<LinkLocalService> {
        let services: Api<LinkLocalService> = Api::namespaced(self.client.clone(), "default");
        let service = service(&json!({"name": name}), ip).map_err(kube::Error::SerdeError)?;
        services.create(&PostParams::default(), &service).await
    }

    /// The number of the process that writes.
    async fn writer(&self) -> Result<usize, Failed> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let lease = leases.get(configuration::LEADER_LEASE).await?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity).ok_or("nobody writes")?;
        let number = holder.strip_prefix("configuration-").ok_or("another one writes")?;
        Ok(number.parse()?)
    }

    /// The value of a metric of such a process, by the beginning of its line.
    async fn metric(&self, writer: usize, beginning: &str) -> Option<f64> {
        let text = admin_port::get(self.product.writer_admin(writer)?, "/metrics").await.ok()?;
        let line = text.lines().find(|line| line.starts_with(beginning))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// The path that the API server uses.
    async fn path(&self) -> Option<String> {
        let object = self.configuration().await.ok()?;
        let url = object["webhooks"][0]["clientConfig"]["url"].as_str()?;
        Some(url.to_owned())
    }

    async fn annotate(&self, secret: &str, annotation: &str) -> Outcome {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        let ask = json!({"metadata": {"annotations": {annotation: "now"}}});
        secrets.patch(secret, &PatchParams::default(), &Patch::Merge(ask)).await?;
        Ok(())
    }

    /// How many CAs the API server is to trust.
    async fn trusted(&self) -> usize {
        let entries = self.validating().get(webhook::NAME).await.ok().and_then(|one| one.webhooks);
        let entries = entries.unwrap_or_default();
        let bundle = entries.first().and_then(|entry| entry.client_config.ca_bundle.as_ref());
        let text = bundle.map(|bundle| String::from_utf8_lossy(&bundle.0).into_owned());
        text.map_or(0, |text| text.matches("BEGIN CERTIFICATE").count())
    }

    async fn policy(&self, name: &str, spec: Value) -> Outcome {
        let policies: Api<AdmissionPolicy> = Api::all(self.client.clone());
        let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
            "metadata": {"name": name}, "spec": spec});
        let params = PatchParams::apply("test").force();
        policies.patch(name, &params, &Patch::Apply(object)).await?;
        Ok(())
    }

    /// Whether an entry that begins so asks for deletions of this resource.
    async fn covers_deletion(&self, resource: &str) -> bool {
        let Ok(object) = self.configuration().await else { return false };
        let entries = object["webhooks"].as_array().cloned().unwrap_or_default();
        let rules = entries.iter().flat_map(|entry| entry["rules"].as_array()).flatten();
        rules.into_iter().any(|rule| {
            let has =
                |key: &str, word: &str| rule[key].to_string().contains(&format!("\"{word}\""));
            has("resources", resource) && has("operations", "DELETE")
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_configuration_waits_for_a_replica_that_is_ready() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    // It has made the CA and the paths, and has said that it is ready. Then it was killed.
    let product = Installation::built()?.apart(2).prepare(&sandbox).await?;
    let world = World { client: sandbox.client()?, product, sandbox };
    world.product.start_replica(0)?;
    eventually("the replica is ready", async || world.product.is_replica_ready(0)).await;
    world.product.kill_replica(0);

    for number in 0..2 {
        world.product.start_writer(number)?;
    }
    for number in 0..2 {
        let ready = async || world.product.is_writer_ready(number).await;
        eventually("the process that writes is ready itself", ready).await;
    }
    let log = |number: usize| {
        let log = world.sandbox.data_folder().join(format!("logs/configuration-{number}.log"));
        std::fs::read_to_string(log).unwrap_or_default()
    };
    let waits = |number: usize| log(number).contains("failed to reach the webhook");
    eventually("it waits for a replica", async || waits(0) || waits(1)).await;
    assert!(world.validating().get_opt(webhook::NAME).await?.is_none(), "nobody could answer");
    world.create("unjudged", "169.254.7.1").await?;

    world.product.start_replica(0)?;
    let written = async || world.validating().get(webhook::NAME).await.is_ok();
    eventually("the configuration is written", written).await;
    world.product.wait_until_ready(&world.sandbox).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_follow_the_policies_and_rotations_go_through() -> Outcome {
    let world = World::start().await?;
    world.create("first", "169.254.7.1").await?;
    let said = world.create("second", "169.254.7.1").await.err().ok_or("it is taken")?;
    assert!(said.to_string().contains("is already taken"), "{said}");

    // A rule comes and goes with its policy.
    let resource = "cassandras";
    eventually("deletions are asked for", async || world.covers_deletion(resource).await).await;
    let policies: Api<AdmissionPolicy> = Api::all(world.client.clone());
    policies.delete("destructive-change", &Default::default()).await?;
    let none = async || !world.covers_deletion(resource).await;
    eventually("they are not any more", none).await;

    // Paths are replaced only when the configurations carry the current one, which the replica sees.
    let mut paths = vec![world.path().await.ok_or("no path")?];
    for _ in 0..3 {
        world.annotate(webhook::PATH_SECRET, "opensdn.io/rotate-paths").await?;
        let is_new = async || world.path().await.is_some_and(|path| !paths.contains(&path));
        eventually("the API server is told another path", is_new).await;
        paths.push(world.path().await.ok_or("no path")?);
        let said = world.create("second", "169.254.7.1").await.err().ok_or("it is taken")?;
        assert!(said.to_string().contains("is already taken"), "{said}");
    }

    assert_eq!(world.trusted().await, 1);
    world.annotate(webhook::CA_SECRET, opensdn_pki::ROTATE).await?;
    eventually("the next CA is announced", async || world.trusted().await == 2).await;
    world.create("third", "169.254.7.3").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_changed_while_nobody_wrote_is_put_right_and_counted_by_the_next() -> Outcome {
    let world = World::start().await?;
    let (killed, next) = match world.writer().await? {
        0 => (0, 1),
        _ => (1, 0),
    };
    world.product.kill_writer(killed);
    let before = world.configuration().await?;
    let mut entries = before["webhooks"].clone();
    // An apply puts it right without a trace.
    entries[0]["failurePolicy"] = json!("Ignore");
    let change = Patch::Merge(json!({"webhooks": entries}));
    world.validating().patch(webhook::NAME, &PatchParams::default(), &change).await?;

    let is_right =
        async || world.configuration().await.is_ok_and(|now| now["webhooks"] == before["webhooks"]);
    eventually("the other puts it right", is_right).await;
    let counted = async || world.metric(next, TAMPERED).await == Some(1.0);
    eventually("and counts it", counted).await;
    let events: Api<Event> = Api::all(world.client.clone());
    let reported = async || {
        let events = events.list(&ListParams::default()).await;
        events.is_ok_and(|events| {
            events.iter().any(|event| event.reason.as_deref() == Some("ConfigurationTampered"))
        })
    };
    eventually("there is an event", reported).await;

    // What follows from another leader is no tampering.
    world.product.start_writer(killed)?;
    let ready = async || world.product.is_writer_ready(killed).await;
    eventually("the first one is back", ready).await;
    world.product.kill_writer(next);
    let policies: Api<AdmissionPolicy> = Api::all(world.client.clone());
    policies.delete("destructive-change", &Default::default()).await?;
    let none = async || !world.covers_deletion("cassandras").await;
    eventually("the first one writes again", none).await;
    assert_eq!(world.metric(killed, TAMPERED).await, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_judge_on_while_nobody_writes_the_configurations() -> Outcome {
    let world = World::start().await?;
    (0..2).for_each(|number| world.product.kill_writer(number));
    world.create("first", "169.254.7.1").await?;
    let said = world.create("second", "169.254.7.1").await.err().ok_or("it is taken")?;
    assert!(said.to_string().contains("is already taken"), "{said}");
    // A policy changes in the replica; only new rules have to wait.
    let spec = json!({"module": {"builtIn": "duplicate-link-local"}, "mode": "audit"});
    world.policy("duplicate-link-local", spec).await?;
    let accepted = async || world.create("second", "169.254.7.1").await.is_ok();
    eventually("the policy refuses no more", accepted).await;
    // Nor does a rotation go further than what the API server knows.
    let path = world.path().await;
    world.annotate(webhook::PATH_SECRET, "opensdn.io/rotate-paths").await?;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), NAMESPACE);
    let current = async || {
        let data = secrets.get(webhook::PATH_SECRET).await.ok()?.data?;
        String::from_utf8(data.get("current")?.0.clone()).ok()
    };
    let told = path.clone().unwrap_or_default();
    let moved = async || current().await.is_some_and(|current| !told.ends_with(&current));
    eventually("the replicas expect another path", moved).await;
    let expected = current().await;
    world.annotate(webhook::PATH_SECRET, "opensdn.io/rotate-paths").await?;
    for number in 1..=50 {
        world.create(&format!("third-{number}"), &format!("169.254.9.{number}")).await?;
    }
    assert_eq!(current().await, expected, "it would lock the API server out");
    assert_eq!(world.path().await, path);
    world.product.start_writer(0)?;
    let replaced = async || current().await != expected;
    eventually("it goes on when somebody writes again", replaced).await;
    world.create("fourth", "169.254.7.4").await?;
    Ok(())
}
