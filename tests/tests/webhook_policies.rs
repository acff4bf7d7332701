//! AdmissionPolicies over the wire: a real API server, the webhook's own configuration, and what
//! a user is answered. Deliberately not here: what single policies find (their cases), the protocol
//! (the webhook's HTTP tests), claims.

mod failures;
mod lookups;
mod lost_modules;
pub(crate) mod modules;
mod repair;
mod replica;
mod tampering;
mod unreadable;
mod versions;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_pki::{Authority, CaProfile};
use opensdn_runtime::readiness::Readiness;
use opensdn_testing::eventually::eventually;
use opensdn_testing::installer::install_crds;
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use replica::{NAMESPACE, Replica};

/// A control plane with our CRDs, and what is needed to start replicas.
struct World {
    sandbox: Sandbox,
    authority: Authority,
    client: Client,
    /// As whom replicas act.
    user: User,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
        let client = sandbox.client()?;
        let now = OffsetDateTime::now_utc();
        let authority = Authority::create(&CaProfile::new("test CA"), now)?;
        let world = Self { sandbox, authority, client, user: User::admin() };
        for name in [NAMESPACE, "plain", "judged"] {
            world.namespace(name).await?;
        }
        Ok(world)
    }

    async fn namespace(&self, name: &str) -> Outcome {
        let labels = json!({"judge": if name == "judged" { "yes" } else { "no" }});
        let object = json!({"metadata": {"name": name, "labels": labels}});
        let api: Api<Namespace> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    /// A replica, when it is ready and the API server calls a webhook.
    async fn replica(&self, name: &str, further: &[&str]) -> Result<Replica, Failed> {
        let replica = self.start_replica(name, further, Readiness::default()).await?;
        let ready = async || replica.readiness.missing().is_empty();
        eventually(&format!("{name} is ready"), ready).await;
        let senseless = json!({"module": {"builtIn": "none-of-these"}});
        let called = async || self.try_apply(senseless.clone()).await.is_err();
        eventually("the webhook is called", called).await;
        Ok(replica)
    }

    async fn start_replica(
        &self,
        name: &str,
        further: &[&str],
        readiness: Readiness,
    ) -> Result<Replica, Failed> {
        Replica::start(&self.sandbox, &self.user, &self.authority, name, further, readiness).await
    }

    fn policies(&self) -> Api<AdmissionPolicy> {
        Api::all(self.client.clone())
    }

    fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    async fn apply(&self, name: &str, spec: Value) -> Result<AdmissionPolicy, kube::Error> {
        self.apply_as(name, spec, &PatchParams::apply("test").force()).await
    }

    /// By dry run, since what is stored and wrong may stay so.
    async fn try_apply(&self, spec: Value) -> Result<(), String> {
        let params = PatchParams { dry_run: true, ..PatchParams::apply("test") };
        let answer = self.apply_as("tried", spec, &params).await;
        answer.map(drop).map_err(|error| error.to_string())
    }

    async fn apply_as(
        &self,
        name: &str,
        spec: Value,
        params: &PatchParams,
    ) -> Result<AdmissionPolicy, kube::Error> {
        let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
            "metadata": {"name": name}, "spec": spec});
        self.policies().patch(name, params, &Patch::Apply(object)).await
    }

    async fn try_vrouter(&self, namespace: &str) -> Result<(), String> {
        try_vrouter(&self.client, namespace).await
    }

    async fn try_zookeeper(&self) -> Result<(), String> {
        let resource = resource("tf.tungsten.io", "v1alpha1", "Zookeeper", "zookeepers");
        let api = Api::namespaced_with(self.client.clone(), "plain", &resource);
        let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
            "metadata": {"name": "z"}, "spec": {
                "commonConfiguration": {"nodeSelector": {"rack": "a"}},
                "serviceConfiguration": {}}});
        create(&api, &object).await
    }

    async fn node(&self, name: &str) -> Outcome {
        let object = json!({"metadata": {"name": name, "labels": {"rack": "a"}}});
        let api: Api<Node> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    async fn try_gizmo(&self, namespace: &str) -> Result<(), String> {
        self.try_gizmo_in("v1", namespace).await
    }

    async fn try_gizmo_in(&self, version: &str, namespace: &str) -> Result<(), String> {
        let resource = resource("example.io", version, "Gizmo", "gizmos");
        let api = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let object = json!({"apiVersion": format!("example.io/{version}"), "kind": "Gizmo",
            "metadata": {"name": "g"}});
        create(&api, &object).await
    }

    /// Served in two versions.
    async fn install_gizmos(&self) -> Outcome {
        let version = |name: &str| {
            json!({"name": name, "served": true, "storage": name == "v1", "schema":
                {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}})
        };
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "metadata": {"name": "gizmos.example.io"},
            "spec": {"group": "example.io", "scope": "Namespaced",
                "names": {"kind": "Gizmo", "plural": "gizmos"},
                "versions": [version("v1"), version("v2")]}});
        let crd: CustomResourceDefinition = serde_json::from_value(crd)?;
        install_crds(&self.client, &[crd]).await?;
        Ok(())
    }

    async fn config_map(&self, name: &str, module: &[u8]) -> Outcome {
        let data = base64::engine::general_purpose::STANDARD.encode(module);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name}, "binaryData": {"policy.wasm": data}});
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await?;
        Ok(())
    }

    /// The condition Ready: status, reason, message.
    async fn ready(&self, policy: &str) -> Option<(String, String, String)> {
        let conditions = self.policies().get(policy).await.ok()?.status?.conditions?;
        let ready = conditions.into_iter().find(|one| one.type_ == "Ready")?;
        Some((ready.status, ready.reason?, ready.message?))
    }

    async fn becomes(&self, policy: &str, status: &str, reason: &str) {
        let is =
            async || self.ready(policy).await.is_some_and(|(s, r, _)| s == status && r == reason);
        eventually(&format!("{policy} is {status} because of {reason}"), is).await;
    }
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

const CONFIGURATION: &str = "opensdn-webhook";

/// OSDN1812 of `unsafe-parameter`: the schema lets it pass, and bash would run it.
fn bad_vrouter() -> Value {
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": "v", "labels": {"tier": "test"}}, "spec": {"serviceConfiguration":
            {"physicalInterface": "e0$(reboot)"}}})
}

/// The failurePolicy of an entry, if there is such an entry.
fn entry<'o>(object: &'o Value, part: &str) -> Option<&'o Value> {
    let name = format!("{part}.validate.opensdn.io");
    let mut entries = object["webhooks"].as_array().into_iter().flatten();
    entries.find(|entry| entry["name"] == name.as_str()).map(|entry| &entry["failurePolicy"])
}

fn unsafe_parameter(further: Value) -> Value {
    let mut spec = json!({"module": {"builtIn": "unsafe-parameter"}});
    merge(&mut spec, further);
    spec
}

fn merge(spec: &mut Value, further: Value) {
    if let (Value::Object(spec), Value::Object(further)) = (spec, further) {
        spec.extend(further);
    }
}

fn from_config_map(name: &str, module: &[u8], further: Value) -> Value {
    let place = json!({"namespace": NAMESPACE, "name": name, "key": "policy.wasm"});
    let mut spec = json!({"module": {"configMap": place, "digest": modules::digest(module)}});
    merge(&mut spec, further);
    spec
}

/// Bad objects, created repeatedly while other things happen; none may be admitted.
struct Window {
    tried: Arc<AtomicUsize>,
    admitted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Window {
    fn open(client: Client) -> Self {
        let (tried, admitted) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counts = (Arc::clone(&tried), Arc::clone(&admitted));
        let task = tokio::spawn(async move {
            loop {
                let result = try_vrouter(&client, "plain").await;
                counts.0.fetch_add(1, Ordering::Relaxed);
                counts.1.fetch_add(usize::from(result.is_ok()), Ordering::Relaxed);
                sleep(Duration::from_millis(10)).await;
            }
        });
        Self { tried, admitted, task }
    }

    /// How many were tried, and how many of them admitted.
    fn close(self) -> (usize, usize) {
        self.task.abort();
        (self.tried.load(Ordering::Relaxed), self.admitted.load(Ordering::Relaxed))
    }
}

/// Creates by dry run, and says what is answered.
async fn create(api: &Api<DynamicObject>, object: &Value) -> Result<(), String> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let object = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    api.create(&params, &object).await.map(|_| ()).map_err(|error| error.to_string())
}

async fn try_vrouter(client: &Client, namespace: &str) -> Result<(), String> {
    let resource = resource("tf.tungsten.io", "v1alpha1", "Vrouter", "vrouters");
    create(&Api::namespaced_with(client.clone(), namespace, &resource), &bad_vrouter()).await
}

/// A world that serves Gizmos, and the module that refuses them, which is in a ConfigMap.
async fn with_gizmos() -> Result<(World, Vec<u8>), Failed> {
    let (world, gizmos) = (World::start().await?, modules::gizmos()?);
    world.install_gizmos().await?;
    world.config_map("module", &gizmos).await?;
    Ok((world, gizmos))
}

async fn refused(world: &World, namespace: &str) {
    eventually("it is refused", async || world.try_vrouter(namespace).await.is_err()).await;
}

async fn accepted(world: &World, namespace: &str) {
    eventually("it is accepted", async || world.try_vrouter(namespace).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_comes_into_force_changes_and_goes() -> Outcome {
    let world = World::start().await?;
    let replica = world.replica("a", &[]).await?;
    assert_eq!(world.try_vrouter("plain").await, Ok(()), "without policies nothing is enforced");

    // The first time it is compiled; what is promised is about a webhook that knows it.
    world.apply("unsafe", unsafe_parameter(json!({"mode": "audit"}))).await?;
    world.becomes("unsafe", "True", "Serving").await;
    assert_eq!(world.try_vrouter("plain").await, Ok(()), "audit refuses nothing");
    world.apply("unsafe", unsafe_parameter(json!({}))).await?;
    refused(&world, "plain").await;

    world.becomes("unsafe", "True", "Serving").await;
    let status = world.policies().get("unsafe").await?.status.unwrap_or_default();
    let replicas = status.replicas.unwrap_or_default();
    assert_eq!(replicas.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["a"]);
    assert_eq!(replicas[0].digest, status.digest);
    assert!(status.version.is_some());

    world.apply("unsafe", unsafe_parameter(json!({"mode": "warn"}))).await?;
    accepted(&world, "plain").await;
    let exempt = json!({"exemptions": {"namespaces": ["plain"]}});
    world.apply("unsafe", unsafe_parameter(exempt)).await?;
    refused(&world, "judged").await;
    accepted(&world, "plain").await;
    let selector = json!({"namespaceSelector": {"matchLabels": {"judge": "no"}}});
    world.apply("unsafe", unsafe_parameter(selector)).await?;
    refused(&world, "plain").await;
    accepted(&world, "judged").await;

    world.policies().delete("unsafe", &DeleteParams::default()).await?;
    accepted(&world, "plain").await;
    assert_eq!(replica.metric("opensdn_webhook_policy_loaded{policy=\"unsafe\"}"), None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_by_their_labels_and_users_by_name_and_group_can_be_left_out() -> Outcome {
    let world = World::start().await?;
    let _replica = world.replica("a", &[]).await?;
    let of_tier = |tier: &str| json!({"objectSelector": {"matchLabels": {"tier": tier}}});
    world.apply("unsafe", unsafe_parameter(of_tier("test"))).await?;
    refused(&world, "plain").await;
    world.apply("unsafe", unsafe_parameter(of_tier("production"))).await?;
    accepted(&world, "plain").await;

    let operator = User::new("operator").in_group("system:masters").in_group("sdn");
    let operator = world.sandbox.client_for(&operator)?;
    for exempt in [json!({"users": ["operator"]}), json!({"groups": ["sdn"]})] {
        world.apply("unsafe", unsafe_parameter(json!({}))).await?;
        let is_refused = async || try_vrouter(&operator, "plain").await.is_err();
        eventually("no object is exempt", is_refused).await;
        world.apply("unsafe", unsafe_parameter(json!({"exemptions": exempt}))).await?;
        let is_accepted = async || try_vrouter(&operator, "plain").await.is_ok();
        eventually("the operator is exempt", is_accepted).await;
        assert!(world.try_vrouter("plain").await.is_err(), "{exempt}: others are not");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_senseless_policy_is_refused_when_it_is_applied() -> Outcome {
    let (world, gizmos) = (World::start().await?, modules::gizmos()?);
    let _replica = world.replica("a", &[]).await?;
    // What takes too long to load is not refused, so a busy machine may take some of them once.
    let refused_with = async |spec: Value, parts: &[&str]| {
        let is = async || {
            let text = world.try_apply(spec.clone()).await.err().unwrap_or_default();
            let is = parts.iter().all(|part| text.contains(part));
            assert!(is || !text.contains("OSDN4"), "refused otherwise than with {parts:?}: {text}");
            is
        };
        eventually(&format!("refused with {parts:?}"), is).await;
    };
    let misnamed = json!({"module": {"builtIn": "unsafe-parameters"}});
    refused_with(misnamed, &["OSDN4001", "did you mean unsafe-parameter?"]).await;
    let coloured = unsafe_parameter(json!({"settings": {"colour": "red"}}));
    refused_with(coloured, &["OSDN4005", "colour"]).await;
    let about_pods = unsafe_parameter(json!({"kinds": [{"kind": "Pod"}]}));
    refused_with(about_pods, &["OSDN4006", "spec.kinds[0]"]).await;
    world.config_map("broken", b"no module").await?;
    refused_with(from_config_map("broken", b"no module", json!({})), &["OSDN4004"]).await;
    // What may come later is no reason to refuse.
    let early = from_config_map("later", &gizmos, json!({}));
    world.apply("early", early).await?;
    world.becomes("early", "False", "SourceUnreachable").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_module_leaves_its_previous_version_and_all_others_in_force() -> Outcome {
    let (world, gizmos) = with_gizmos().await?;
    let _replica = world.replica("a", &[]).await?;
    world.apply("gizmos", from_config_map("module", &gizmos, json!({}))).await?;
    world.apply("unsafe", unsafe_parameter(json!({}))).await?;
    let is = async || world.try_gizmo("plain").await.is_err_and(|e| e.contains(modules::MESSAGE));
    eventually("gizmos are refused", is).await;
    refused(&world, "plain").await;

    world.config_map("module", b"something else").await?;
    world.becomes("gizmos", "False", "DigestMismatch").await;
    let (_, _, message) = world.ready("gizmos").await.unwrap_or_default();
    assert!(message.contains("the previous version stays in force"), "{message}");
    assert!(world.try_gizmo("plain").await.is_err());
    assert!(world.try_vrouter("plain").await.is_err());

    // Once fixed, it is loaded by itself.
    world.config_map("module", &gizmos).await?;
    world.becomes("gizmos", "True", "Serving").await;

    // Nor does it matter that the source is gone, once it has been read.
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), NAMESPACE);
    config_maps.delete("module", &DeleteParams::default()).await?;
    world.becomes("gizmos", "False", "SourceUnreachable").await;
    assert!(world.try_gizmo("plain").await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_comes_later_is_judged_when_it_comes() -> Outcome {
    let (world, gizmos) = (World::start().await?, modules::gizmos()?);
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("gizmos.wasm"), &gizmos)?;
    let path = folder.path().display().to_string();
    let _replica = world.replica("a", &["--policy-folder", &path]).await?;
    let digest = modules::digest(&gizmos);
    let module = json!({"folder": {"path": "gizmos.wasm"}, "digest": digest});
    world.apply("gizmos", json!({"module": module})).await?;
    world.becomes("gizmos", "True", "Serving").await;
    world.install_gizmos().await?;
    let is = async || world.try_gizmo("plain").await.is_err_and(|e| e.contains(modules::MESSAGE));
    eventually("gizmos are refused", is).await;
    let own = world.try_gizmo(NAMESPACE).await;
    assert_eq!(own, Ok(()), "our own namespace is never blocked by kinds that are not ours");
    let object = serde_json::to_value(world.validating().get(CONFIGURATION).await?)?;
    assert_eq!(entry(&object, "others"), Some(&json!("Ignore")));
    world.apply("gizmos", json!({"module": module, "failureMode": "fail"})).await?;
    let closed = async || {
        let object = world.validating().get(CONFIGURATION).await.ok();
        let object = object.and_then(|object| serde_json::to_value(object).ok());
        object.is_some_and(|object| {
            entry(&object, "others-fail") == Some(&json!("Fail"))
                && entry(&object, "others").is_none()
        })
    };
    eventually("it fails closed, as the AdmissionPolicy says", closed).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_configuration_is_written_by_a_replica_that_is_ready() -> Outcome {
    let world = World::start().await?;
    let readiness = Readiness::default();
    let missing = readiness.add_check("test", "it is not to be ready yet");
    let _replica = world.start_replica("a", &[], readiness).await?;
    // Reported by the leader, which could write the configuration as well.
    world.apply("unsafe", unsafe_parameter(json!({}))).await?;
    world.becomes("unsafe", "True", "Serving").await;
    // The configurations are looked at every two seconds.
    sleep(Duration::from_secs(5)).await;
    assert!(world.validating().get_opt(CONFIGURATION).await?.is_none());
    accepted(&world, "plain").await;
    missing.pass();
    refused(&world, "plain").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_configuration_is_restored_and_a_restarted_api_server_survived() -> Outcome {
    let world = World::start().await?;
    let replica = world.replica("a", &[]).await?;
    world.apply("unsafe", unsafe_parameter(json!({}))).await?;
    refused(&world, "plain").await;
    world.validating().delete(CONFIGURATION, &DeleteParams::default()).await?;
    let is = async || world.validating().get(CONFIGURATION).await.is_ok();
    eventually("it is restored", is).await;
    refused(&world, "plain").await;
    let kind = "kind=\"ValidatingWebhookConfiguration\"";
    let restored = format!("opensdn_webhook_configuration_restored_total{{{kind}}}");
    assert_eq!(replica.metric(&restored), Some(1.0));

    world.sandbox.restart_api_server().await?;
    refused(&world, "plain").await;
    world.apply("unsafe", unsafe_parameter(json!({"mode": "warn"}))).await?;
    accepted(&world, "plain").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_came_in_unseen_are_told_and_nothing_else_suffers() -> Outcome {
    let world = World::start().await?;
    // No webhook was there to refuse it.
    world.apply("bad", unsafe_parameter(json!({"settings": {"colour": "red"}}))).await?;
    world.apply("good", unsafe_parameter(json!({}))).await?;
    let replica = world.replica("a", &[]).await?;
    world.becomes("bad", "False", "SettingsInvalid").await;
    world.becomes("good", "True", "Serving").await;
    refused(&world, "plain").await;
    assert_eq!(replica.metric("opensdn_webhook_policy_loaded{policy=\"bad\"}"), Some(0.0));
    // Once fixed, the same object is in force.
    world.apply("bad", unsafe_parameter(json!({"settings": null}))).await?;
    world.becomes("bad", "True", "Serving").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_are_written_in_and_the_rules_go_with_the_policy() -> Outcome {
    let world = World::start().await?;
    let _replica = world.replica("a", &[]).await?;
    world.apply("defaults", json!({"module": {"builtIn": "explicit-defaults"}})).await?;
    let resource = resource("tf.tungsten.io", "v1alpha1", "Cassandra", "cassandras");
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "plain", &resource);
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Cassandra",
        "metadata": {"name": "c"}, "spec": {"serviceConfiguration": {}}}))?;
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let port = async || {
        let made = api.create(&params, &object).await.ok();
        made.and_then(|made| made.data.pointer("/spec/serviceConfiguration/port").cloned())
    };
    eventually("the port is written in", async || port().await == Some(json!(9161))).await;
    world.policies().delete("defaults", &DeleteParams::default()).await?;
    eventually("it is not any more", async || port().await.is_none()).await;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    let none = async || {
        let object = mutating.get(CONFIGURATION).await;
        object.is_ok_and(|object| object.webhooks.unwrap_or_default().is_empty())
    };
    eventually("no rule is left", none).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_is_ready_when_all_replicas_run_it_and_another_leads_when_one_dies() -> Outcome {
    let world = World::start().await?;
    let mut first = world.replica("first", &[]).await?;
    let second = world.replica("second", &[]).await?;
    world.apply("unsafe", unsafe_parameter(json!({}))).await?;
    let both = async || {
        world.ready("unsafe").await.is_some_and(|(_, _, message)| message.contains("2 replicas"))
    };
    eventually("both run it", both).await;
    refused(&world, "plain").await;
    let window = Window::open(world.client.clone());
    let spec = unsafe_parameter(json!({"limits": {"timeoutMilliseconds": 100}}));
    world.apply("unsafe", spec).await?;
    eventually("both run it again", both).await;

    first.kill();
    // Until another leads, the API server cannot reach the one that is named, and fails closed.
    let is = async || world.try_vrouter("plain").await.is_err_and(|e| e.contains("OSDN"));
    eventually("the second one answers", is).await;
    let one = async || {
        let status = world.policies().get("unsafe").await.ok().and_then(|one| one.status);
        let replicas = status.and_then(|status| status.replicas).unwrap_or_default();
        replicas.len() == 1 && replicas[0].name == "second"
    };
    eventually("the dead replica's entry is gone", one).await;
    world.becomes("unsafe", "True", "Serving").await;
    let (tried, admitted) = window.close();
    assert!(tried > 20, "{tried}");
    assert_eq!(admitted, 0, "of {tried} bad objects");

    // One that drains does not restore what an uninstall removes.
    second.stop();
    world.validating().delete(CONFIGURATION, &DeleteParams::default()).await?;
    let third = world.replica("third", &[]).await?;
    refused(&world, "plain").await;
    drop(third);
    Ok(())
}
