//! NestedClusters and LinkLocalServices by the operator, on a real API server and the fake of the Config API: what is
//! written into a cloud, kept there against others, and taken away.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::time::Duration;

use http::Method;
use opensdn_testing::config_api::{
    Disturbance, FakeConfigApi, Mode, Service, Settings, Times, Tls, User, WorkedExample,
};
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{TRUST, calls, get, redis};
use crate::operator_given_ca::{authority, secret};

pub(crate) const CLUSTER: [&str; 2] = ["nestedclusters.opensdn.io", "a"];
const SERVICE: [&str; 2] = ["linklocalservices.opensdn.io", "exporter"];
const CONFIG: [&str; 2] = ["configs.tf.tungsten.io", "config1"];
pub(crate) const PASSWORD: &str = "not-to-be-seen";

/// A cluster with the operator, and a cloud.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) operator: Operator,
    pub(crate) api: FakeConfigApi,
}

impl World {
    pub(crate) async fn start() -> Result<Self, Failed> {
        Self::with(Settings {
            mode: Mode::CloudAdmin,
            users: vec![User::new("admin", PASSWORD, &["admin"])],
            ..Settings::default()
        })
        .await
    }

    async fn with(settings: Settings) -> Result<Self, Failed> {
        Self::looking_every("1s", settings).await
    }

    async fn looking_every(interval: &str, settings: Settings) -> Result<Self, Failed> {
        let api = FakeConfigApi::start(settings)?;
        WorkedExample::fill(&api).map_err(|refusal| refusal.text)?;
        let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
        let operator = Operator::install_looking_at_clouds_every(&sandbox, 1, interval).await?;
        Ok(Self { sandbox, operator, api })
    }

    /// The namespace has a Config on a node at which the fake listens, and trusts its certificate.
    async fn with_own_config(interval: &str, settings: Value) -> Result<Self, Failed> {
        let tls = Tls::for_names(&["127.0.0.1"])?;
        let fake = Settings { tls: Some(tls.clone()), mode: Mode::NoAuth, ..Settings::default() };
        let world = Self::looking_every(interval, fake).await?;
        let (certificate, key) = authority("test")?;
        let bundle = format!("{certificate}{}", tls.certificate());
        world.create_object(&secret(&bundle, &key)).await?;
        world
            .create_object(
                &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "master1",
                "labels": {"node-role.kubernetes.io/control-plane": ""}}}),
            )
            .await?;
        let status =
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}});
        let patch = ["patch", "node", "master1", "--subresource=status", "--type=merge", "-p"];
        kubectl(&world.sandbox, &[&patch[..], &[&status.to_string()]].concat()).await?.success();
        let port: u16 = world.api.url().rsplit(':').next().unwrap_or_default().parse()?;
        let mut settings = settings;
        settings["apiPort"] = port.into();
        world
            .create_object(&json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Config",
                "metadata": {"name": "config1", "namespace": "tf"},
                "spec": {"serviceConfiguration": settings}}))
            .await?;
        // Something that runs, so that the CA is published.
        world.create_object(&redis(&["redis", "stunnel"])).await?;
        Ok(world)
    }

    pub(crate) async fn create_object(&self, object: &Value) -> Outcome {
        send(&self.sandbox, &["create"], object).await?.success();
        Ok(())
    }

    pub(crate) async fn login(&self, password: &str) -> Outcome {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud", "namespace": "tf"},
            "stringData": {"OS_AUTH_URL": self.api.keystone_url(), "OS_USERNAME": "admin",
                "OS_PASSWORD": password, "OS_PROJECT_NAME": "admin", "OPENSDN_CONFIG_API": self.api.url()}});
        send(&self.sandbox, &["apply"], &secret).await?.success();
        Ok(())
    }

    /// The worked example, by option 2 unless `more` says otherwise.
    pub(crate) async fn create(&self, more: Value) -> Outcome {
        send(&self.sandbox, &["create"], &self.object(&more)?).await?.success();
        Ok(())
    }

    /// The same, not created yet.
    pub(crate) fn object(&self, more: &Value) -> Result<Value, Failed> {
        let api = json!({"urls": [self.api.url()], "credentialsSecretName": "cloud"});
        let mut fields = json!({"connectivity": "LinkLocal", "configApi": api});
        let all = fields.as_object_mut().ok_or("no object")?;
        all.extend(more.as_object().cloned().unwrap_or_default());
        Ok(WorkedExample::nested_cluster(&self.api, &fields))
    }

    pub(crate) async fn ready(&self, what: [&str; 2]) -> (String, String, String) {
        let object = get(&self.sandbox, what).await;
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|one| one["type"] == "Ready").unwrap_or_default();
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    pub(crate) async fn until(&self, what: [&str; 2], status: &str, reason: &str) {
        let is = async || {
            let (now, why, _) = self.ready(what).await;
            now == status && why == reason
        };
        eventually(&format!("{} is {status} for {reason}", what[0]), is).await;
    }

    pub(crate) async fn delete(&self, what: [&str; 2]) -> Outcome {
        kubectl(&self.sandbox, &["delete", "-n", "tf", what[0], what[1], "--wait=false"])
            .await?
            .success();
        Ok(())
    }

    pub(crate) async fn gone(&self, what: [&str; 2]) {
        let is_gone = async || get(&self.sandbox, what).await == Value::Null;
        eventually(&format!("{} is gone", what[0]), is_gone).await;
    }

    fn puts(&self) -> usize {
        let all = self.api.count(&Method::PUT, "/global-vrouter-config");
        all + self.api.count(&Method::PUT, "/virtual-network")
    }

    fn paths(&self) -> Vec<String> {
        self.api.calls().into_iter().map(|call| call.path).collect()
    }

    fn names(&self) -> Vec<String> {
        let entries = self.api.entries();
        let name =
            |row: &Value| row["linklocal_service_name"].as_str().unwrap_or_default().to_owned();
        entries.as_array().into_iter().flatten().map(name).collect()
    }

    async fn events(&self, reason: &str) -> Vec<String> {
        let all = read(&self.sandbox, &["events.events.k8s.io", "-n", "tf"]).await;
        let all = all.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default();
        let all = all.iter().filter(|event| event["reason"] == reason);
        all.map(|event| event["note"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nested_cluster_is_written_into_its_cloud_kept_there_and_taken_away() -> Outcome {
    let world = World::start().await?;
    let before = world.api.entries();
    world.login(PASSWORD).await?;
    world.create(json!({})).await?;
    world.until(CLUSTER, "True", "InPlace").await;
    let written = world.api.entries();
    assert_eq!(written.as_array().map(Vec::len), Some(13), "the metadata row, and twelve");
    assert_eq!(written[0], before[0]);
    let status = get(&world.sandbox, CLUSTER).await["status"].clone();
    assert_eq!(status["rows"].as_array().map(Vec::len), Some(12));
    assert!(
        status["rows"]
            .as_array()
            .is_some_and(|rows| rows.iter().all(|row| row["state"] == "InPlace"))
    );
    let remarks = status["remarks"].to_string();
    assert!(remarks.contains("OSDN3039"), "who reaches the services is said: {remarks}");
    let backup = get(&world.sandbox, ["configmap", "a-nestedcluster-backup"]).await;
    let saved = backup["data"].as_object().and_then(|data| data.values().next()?.as_str());
    let saved: Value = serde_json::from_str(saved.unwrap_or_default())?;
    assert_eq!(saved["linklocal_service_entry"], before, "the rows as they were: {backup}");

    // After a write all is read once more, for what others have changed beside it.
    let is_version = |path: &String| path.contains("/global-vrouter-config/");
    let rests =
        async || world.paths().last_chunk::<4>().is_some_and(|four| four.iter().all(is_version));
    eventually("nothing is left to do", rests).await;
    // What needs nothing writes nothing, and asks for one version a pass.
    world.api.forget_calls();
    let calls_before = calls(&world.sandbox)?.len();
    let asked = async || world.paths().len() >= 4;
    eventually("the cloud is looked at again and again", asked).await;
    assert_eq!(world.puts(), 0);
    let all = world.paths();
    assert!(all.iter().all(is_version), "{all:?}");
    let new = calls(&world.sandbox)?.split_off(calls_before);
    assert!(
        new.iter().all(|call| call.contains("get") && call.contains("/secrets/cloud")),
        "{new:?}"
    );

    // Another writer that had read before.
    world.api.write_entries(before.clone()).map_err(|refusal| refusal.text)?;
    let is_back = async || world.api.entries() == written;
    eventually("the rows are put back", is_back).await;
    world.until(CLUSTER, "True", "InPlace").await;
    let repaired =
        async || world.events("DriftRepaired").await.iter().any(|note| note.contains("OSDN3090"));
    eventually("an Event says what had drifted", repaired).await;

    world.delete(CLUSTER).await?;
    world.gone(CLUSTER).await;
    assert_eq!(world.api.entries(), before);
    let uuid = world.api.global_vrouter_config();
    let left = world.api.read(
        "global-vrouter-config",
        &["default-global-system-config", "default-global-vrouter-config"],
    );
    let left = left.ok_or("no object")?["annotations"].to_string();
    assert!(!left.contains("kubectl-opensdn/"), "its record is gone: {uuid} {left}");
    let taken = async || !world.events("TakenAway").await.is_empty();
    eventually("an Event says what was taken away", taken).await;
    let log = std::fs::read_to_string(world.sandbox.data_folder().join("logs/operator-0.log"))?;
    assert!(!log.contains(PASSWORD), "no password in the log");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fabric_snat_that_another_switches_off_is_switched_on_again_and_goes_with_the_cluster()
-> Outcome {
    let world = World::start().await?;
    world.login(PASSWORD).await?;
    world.create(json!({"connectivity": "FabricSNAT"})).await?;
    world.until(CLUSTER, "True", "InPlace").await;
    let name = ["default-domain", "admin", "k8s-vms"];
    let snat =
        || world.api.read("virtual-network", &name).unwrap_or_default()["fabric_snat"].clone();
    assert_eq!(snat(), true);
    let uuid = world.api.read("virtual-network", &name).ok_or("no network")?["uuid"].clone();
    let uuid = uuid.as_str().ok_or("no uuid")?;
    world.api.update(uuid, json!({"fabric_snat": false})).map_err(|refusal| refusal.text)?;
    eventually("SNAT is on again", async || snat() == true).await;
    world.until(CLUSTER, "True", "InPlace").await;
    world.delete(CLUSTER).await?;
    world.gone(CLUSTER).await;
    assert_eq!(snat(), false, "as it was before");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_writer_that_never_gives_in_the_operator_gives_up_after_a_while() -> Outcome {
    let world = World::start().await?;
    world.login(PASSWORD).await?;
    world.api.stale_writer(Times::Always);
    world.create(json!({})).await?;
    world.until(CLUSTER, "False", "GivenUp").await;
    let (_, _, message) = world.ready(CLUSTER).await;
    assert!(message.contains("OSDN3099") && message.contains("OSDN3090"), "{message}");
    let puts = world.puts();
    let backup = get(&world.sandbox, ["configmap", "a-nestedcluster-backup"]).await;
    assert!(backup["data"].is_object(), "{backup}");
    world.api.forget_calls();
    let looks_on = async || world.api.count(&Method::GET, "/global-vrouter-config") >= 6;
    eventually("it looks on", looks_on).await;
    assert_eq!(world.puts(), 0, "after {puts} writes");

    // A new wish is tried again.
    world.api.stale_writer(Times::Never);
    let patch = r#"{"spec": {"serviceAddresses": ["10.10.11.0/24"]}}"#;
    kubectl(&world.sandbox, &["patch", "-n", "tf", CLUSTER[0], "a", "--type=merge", "-p", patch])
        .await?
        .success();
    world.until(CLUSTER, "True", "InPlace").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_takes_the_port_pools_away_again_and_again_is_not_fought_for_all_time()
-> Outcome {
    let world = World::start().await?;
    world.login(PASSWORD).await?;
    world.create(json!({"connectivity": "FabricSNAT"})).await?;
    world.until(CLUSTER, "True", "InPlace").await;
    let uuid = world.api.global_vrouter_config();
    let none = json!({"port_translation_pools": {"port_translation_pool": []}});
    let takes_away = async {
        loop {
            world.api.update(&uuid, none.clone()).map_err(|refusal| refusal.text)?;
            // So that it is seen in between, and put right.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        #[allow(unreachable_code, reason = "it says of what kind an error is")]
        Ok::<(), Failed>(())
    };
    tokio::select! {
        ended = takes_away => ended?,
        () = world.until(CLUSTER, "False", "GivenUp") => {}
    }
    let (_, _, message) = world.ready(CLUSTER).await;
    assert!(
        message.contains("OSDN3099") && message.contains("port translation pools"),
        "{message}"
    );
    let repairs = world.events("DriftRepaired").await;
    assert!(repairs.iter().any(|note| note.contains("port translation pools")), "{repairs:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_is_refused_is_said_without_the_password_and_used_when_it_is_right() -> Outcome
{
    let world = World::start().await?;
    let before = world.api.entries();
    world.create(json!({})).await?;
    world.until(CLUSTER, "False", "NoConnection").await;
    assert!(world.ready(CLUSTER).await.2.contains("the Secret cloud"), "it is not there yet");
    world.login("wrong-password").await?;
    world.until(CLUSTER, "False", "Unauthorized").await;
    let object = get(&world.sandbox, CLUSTER).await.to_string();
    assert!(object.contains("OSDN3097") && !object.contains("wrong-password"), "{object}");
    assert_eq!((world.puts(), world.api.entries()), (0, before));
    world.login(PASSWORD).await?;
    world.until(CLUSTER, "True", "InPlace").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_with_errors_is_not_carried_out_and_the_status_has_them() -> Outcome {
    let world = World::start().await?;
    let before = world.api.entries();
    world.login(PASSWORD).await?;
    // One address for five that are needed.
    world.create(json!({"serviceAddresses": ["10.10.10.1"]})).await?;
    world.until(CLUSTER, "False", "Refused").await;
    let object = get(&world.sandbox, CLUSTER).await;
    let remarks = object["status"]["remarks"].as_array().cloned().unwrap_or_default();
    let error = remarks.iter().find(|one| one["code"] == "OSDN3013").ok_or("no OSDN3013")?;
    assert_eq!(error["severity"], "Error");
    assert_eq!((world.puts(), world.api.entries()), (0, before));
    assert!(object["metadata"]["finalizers"].is_null(), "it has nothing in the cloud");
    world.delete(CLUSTER).await?;
    world.gone(CLUSTER).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_nodes_the_operator_does_not_know_is_kept_when_it_has_pods() -> Outcome {
    let world = World::start().await?;
    world.login(PASSWORD).await?;
    world.create(json!({})).await?;
    world.until(CLUSTER, "True", "InPlace").await;
    let written = world.api.entries();
    let port = ["default-domain", "admin", "vm-201-port"];
    let port = world.api.read("virtual-machine-interface", &port).ok_or("no port")?;
    WorkedExample::pod(&world.api, "k8s-a", port["uuid"].as_str())
        .map_err(|refusal| refusal.text)?;
    world.api.write_entries(json!([written[0]])).map_err(|refusal| refusal.text)?;
    eventually("the rows are put back", async || world.api.entries() == written).await;
    world.until(CLUSTER, "True", "InPlace").await;
    let remarks = get(&world.sandbox, CLUSTER).await["status"]["remarks"].clone();
    let remarks = remarks.as_array().cloned().unwrap_or_default();
    let unknown = remarks.iter().find(|one| one["code"] == "OSDN3032").ok_or("no OSDN3032")?;
    assert_eq!(unknown["severity"], "Unknown", "{unknown}");

    // After its removal nothing says whose the pods are.
    world.delete(CLUSTER).await?;
    world.gone(CLUSTER).await;
    let before = world.api.entries();
    world.api.forget_calls();
    world.create(json!({})).await?;
    world.until(CLUSTER, "False", "ClusterNameInDoubt").await;
    let (_, _, message) = world.ready(CLUSTER).await;
    assert!(message.contains("OSDN3033") && message.contains("adopt-name"), "{message}");
    assert_eq!((world.puts(), world.api.entries()), (0, before));
    let object = get(&world.sandbox, CLUSTER).await;
    assert!(object["metadata"]["finalizers"].is_null(), "it has nothing in the cloud");
    let allow = ["annotate", "-n", "tf", CLUSTER[0], "a", "opensdn.io/allow=adopt-name"];
    kubectl(&world.sandbox, &allow).await?.success();
    world.until(CLUSTER, "True", "InPlace").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cloud_that_does_not_answer_keeps_no_object_that_may_leave_behind_what_it_has() -> Outcome
{
    let world = World::start().await?;
    world.login(PASSWORD).await?;
    world.create(json!({})).await?;
    world.until(CLUSTER, "True", "InPlace").await;
    world.api.disturb(Service::ConfigApi, Disturbance::Unavailable, Times::Always);
    world.delete(CLUSTER).await?;
    world.until(CLUSTER, "False", "Unreachable").await;
    assert!(world.ready(CLUSTER).await.2.contains("OSDN3098"));
    let leave = ["annotate", "-n", "tf", CLUSTER[0], "a", "opensdn.io/leave-behind=true"];
    kubectl(&world.sandbox, &leave).await?.success();
    world.gone(CLUSTER).await;
    let said = async || {
        world
            .events("LeftBehind")
            .await
            .iter()
            .any(|note| note.contains("nested remove --cluster-id"))
    };
    eventually("an Event says how it is taken away", said).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_local_service_is_a_row_of_the_config_api_of_its_namespace() -> Outcome {
    let world = World::with_own_config("1s", json!({})).await?;
    let before = world.names();
    world.create_object(&exporter()).await?;
    world.until(SERVICE, "True", "InPlace").await;
    let with = |names: &[&str]| {
        let mut all = before.clone();
        all.extend(names.iter().map(|name| (*name).to_owned()));
        all
    };
    assert_eq!(world.names(), with(&["exporter"]));

    // By name, and at another port: a row in place of the one before.
    let patch = r#"{"spec": {"port": 9101, "fabric": {"addresses": null, "dnsName": "mirror.example.com"}}}"#;
    kubectl(
        &world.sandbox,
        &["patch", "-n", "tf", SERVICE[0], "exporter", "--type=merge", "-p", patch],
    )
    .await?
    .success();
    let has_changed = async || {
        let entries = world.api.entries().to_string();
        entries.contains("mirror.example.com")
            && entries.contains("9101")
            && !entries.contains("192.0.2.1\"")
    };
    eventually("the row is changed", has_changed).await;
    world.until(SERVICE, "True", "InPlace").await;
    assert_eq!(world.names(), with(&["exporter"]));

    world.delete(SERVICE).await?;
    world.gone(SERVICE).await;
    assert_eq!(world.names(), before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_the_cloud_is_put_right_when_the_config_api_reports_it() -> Outcome {
    // By looking alone it would take an hour.
    let world = World::with_own_config("1h", json!({})).await?;
    world.create_object(&exporter()).await?;
    let second = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": "second", "namespace": "tf"},
        "spec": {"ip": "169.254.1.2", "port": 9100, "fabric": {"addresses": ["192.0.2.1"], "port": 9100}}});
    world.create_object(&second).await?;
    let both = async || {
        world.names().contains(&"exporter".to_owned())
            && world.names().contains(&"second".to_owned())
    };
    touch(&world).await;
    eventually("both rows are written", both).await;
    world.until(SERVICE, "True", "InPlace").await;
    eventually("one watch serves all", async || world.api.watches() == 1).await;
    let written = world.api.entries();
    let mut fewer = written.clone();
    let rows = fewer.as_array_mut().ok_or("no list")?;
    rows.retain(|row| row["linklocal_service_name"] != "exporter");
    world.api.write_entries(fewer).map_err(|refusal| refusal.text)?;
    eventually("the row is put back", both).await;
    Ok(())
}

/// What was not ready when the object came is looked at again after an hour only, or when something beside it changes.
async fn touch(world: &World) {
    let trust_is_there = async || get(&world.sandbox, TRUST).await.is_object();
    eventually("the CA is published", trust_is_there).await;
    let annotate = ["annotate", "-n", "tf", "config.tf.tungsten.io", "config1", "touched=yes"];
    let _ = kubectl(&world.sandbox, &annotate).await;
}

fn exporter() -> Value {
    json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": "exporter", "namespace": "tf"},
        "spec": {"ip": "169.254.1.1", "port": 9100, "fabric": {"addresses": ["192.0.2.1"], "port": 9100}}})
}

/// Control nodes in the Config API: a member, one that is gone, another cluster's, and one of which nothing is known.
fn register(world: &World, cluster: &str) -> Outcome {
    let nodes = [
        ("member", "127.0.0.1", None),
        ("gone", "192.0.2.7", Some(cluster)),
        ("other", "192.0.2.8", Some("another-cluster")),
        ("unknown", "192.0.2.9", None),
    ];
    for (name, address, cluster) in nodes {
        let mark = cluster.map(|id| json!({"key": "opensdn/cluster", "value": id}));
        let router = json!({"fq_name": router(name), "parent_type": "routing-instance",
            "bgp_router_parameters": {"address": address, "router_type": "control-node"},
            "annotations": {"key_value_pair": mark.into_iter().collect::<Vec<_>>()}});
        world.api.create("bgp-router", router).map_err(|refusal| refusal.text)?;
    }
    Ok(())
}

fn router(name: &str) -> [&str; 5] {
    ["default-domain", "default-project", "ip-fabric", "__default__", name]
}

fn component(kind: &str, name: &str, settings: &Value) -> Value {
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "tf"},
        "spec": {"serviceConfiguration": settings}})
}

/// The message of the condition, if it has that status.
async fn network_written(world: &World, status: &str) -> Option<String> {
    let config = get(&world.sandbox, CONFIG).await;
    let all = config["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == "NetworkWritten").unwrap_or_default();
    (one["status"] == status).then(|| one["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_vrouters_want_of_the_network_is_written_and_what_is_gone_is_registered_no_more()
-> Outcome {
    let ntp = json!({"name": "ntp", "ip": "169.254.1.9", "port": 123,
        "ipFabricServiceHost": "192.0.2.1", "ipFabricServicePort": 123});
    let world = World::with_own_config("1s", json!({"linklocalServices": [ntp]})).await?;
    let ours = "config.tf.config1";
    register(&world, ours)?;
    // As the provisioner of the Config gives it to a new API.
    let default =
        json!({"encapsulation_priorities": {"encapsulation": ["MPLSoUDP", "MPLSoGRE", "VXLAN"]}});
    let object = world.api.global_vrouter_config();
    let provision = || world.api.update(&object, default.clone()).map_err(|refusal| refusal.text);
    let order = |order: &[&str]| json!({ "encapsulationPriorities": order });
    world.create_object(&component("Vrouter", "a", &order(&["VXLAN", "MPLSoUDP"]))).await?;
    world.create_object(&component("Control", "control1", &json!({}))).await?;
    // No pod runs here that would make it so.
    let active = r#"{"status": {"active": true}}"#;
    let patch = ["patch", "-n", "tf", CONFIG[0], CONFIG[1], "--subresource=status", "--type=merge"];
    kubectl(&world.sandbox, &[&patch[..], &["-p", active]].concat()).await?.success();

    let waits = async || {
        network_written(&world, "False").await.is_some_and(|why| why.contains("provisioner"))
    };
    eventually("it waits for the provisioner", waits).await;
    provision()?;
    let written = async || network_written(&world, "True").await.is_some();
    eventually("the network is written", written).await;
    let network = || {
        let name = ["default-global-system-config", "default-global-vrouter-config"];
        let object = world.api.read("global-vrouter-config", &name).unwrap_or_default();
        object["encapsulation_priorities"]["encapsulation"].clone()
    };
    assert_eq!(network(), json!(["VXLAN", "MPLSoUDP"]));
    assert!(world.names().contains(&"ntp".to_owned()), "{:?}", world.names());
    let read = |name: &str| world.api.read("bgp-router", &router(name));
    eventually("the registration is removed", async || read("gone").is_none()).await;
    assert!(read("other").is_some() && read("unknown").is_some(), "not marked as this cluster's");
    let member = read("member").ok_or("a member is gone")?["annotations"].to_string();
    assert!(member.contains(ours), "marked: {member}");
    let said = async || {
        let notes = world.events("NodeDeregistered").await;
        notes.iter().any(|note| note.contains("bgp-router gone (192.0.2.7)"))
    };
    eventually("an Event says it", said).await;

    // One setting of the whole network, and two that want different ones.
    world.create_object(&component("Vrouter", "b", &order(&["MPLSoGRE"]))).await?;
    let conflict = async || network_written(&world, "False").await.is_some();
    eventually("the conflict is said", conflict).await;
    let message = network_written(&world, "False").await.unwrap_or_default();
    let names_both = message.contains("Vrouter a wants") && message.contains("Vrouter b wants");
    assert!(names_both, "{message}");
    assert_eq!(network(), json!(["VXLAN", "MPLSoUDP"]));
    Ok(())
}
