//! Upgrades by the operator, on a real control plane with simulated nodes: images are set in the Manager wave by wave, one
//! pod of a service first; a bad image comes back by itself; a new operator continues. What is decided when is in
//! `lib/upgrade`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::time::Duration;

use opensdn_testing::eventually::{eventually, eventually_within};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::report_apis::ReportApi;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{LABEL, change, get};

pub(crate) const MANAGER: [&str; 2] = ["managers.tf.tungsten.io", "cluster1"];
/// A whole upgrade, with other control planes on two cores.
pub(crate) const WHOLE: Duration = Duration::from_secs(420);

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) operator: Operator,
}

pub(crate) fn image(container: &str, tag: &str) -> String {
    format!("registry.example.com/contrail-{container}:{tag}")
}

pub(crate) fn manager(kinds: &[&str]) -> Value {
    opensdn_testing::manager::manager("tf", "cluster1", kinds, |name| image(name, "R24.1"))
}

/// Whether it is Ready as it is now.
pub(crate) fn is_ready(manager: &Value) -> bool {
    manager["status"]["conditions"].as_array().into_iter().flatten().any(|one| {
        one["type"] == "Ready"
            && one["status"] == "True"
            && one["observedGeneration"] == manager["metadata"]["generation"]
    })
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let kinds = ["Zookeeper", "Redis", "Cassandra", "Rabbitmq", "Config"];
        Self::of(&manager(&kinds), 1).await
    }

    /// With so many replicas of the operator.
    pub(crate) async fn of(manager: &Value, replicas: usize) -> Result<Self, Failed> {
        let world = Self::empty(replicas).await?;
        send(&world.sandbox, &["create"], manager).await?.success();
        eventually_within(WHOLE, "the Manager is Ready", async || world.is_ready().await).await;
        Ok(world)
    }

    /// Without a Manager.
    pub(crate) async fn empty(replicas: usize) -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
        let operator = Operator::install(&sandbox, replicas).await?;
        kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
        Ok(Self { sandbox, operator })
    }

    pub(crate) async fn is_ready(&self) -> bool {
        is_ready(&get(&self.sandbox, MANAGER).await)
    }

    pub(crate) async fn create(&self, name: &str, more: Value) -> Outcome {
        let mut spec = json!({"manager": "cluster1", "soak": "1s", "waveTimeout": "60s"});
        let fields = spec.as_object_mut().ok_or("no object")?;
        fields.extend(more.as_object().cloned().unwrap_or_default());
        let upgrade = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": name, "namespace": "tf"}, "spec": spec});
        send(&self.sandbox, &["create"], &upgrade).await?.success();
        Ok(())
    }

    pub(crate) async fn status(&self, name: &str) -> Value {
        get(&self.sandbox, ["upgrades.opensdn.io", name]).await["status"].clone()
    }

    pub(crate) async fn until(&self, name: &str, phase: &str) {
        let is = async || {
            let status = self.status(name).await;
            assert!(status["phase"] == phase || !is_over(&status), "{status:#}");
            status["phase"] == phase
        };
        eventually_within(WHOLE, &format!("{name} is {phase}"), is).await;
    }

    /// The images of all pods, each once.
    pub(crate) async fn tags(&self) -> Result<Vec<String>, Failed> {
        let pods = read(&self.sandbox, &["pods", "-n", "tf"]).await?;
        let containers = pods["items"].as_array().into_iter().flatten();
        let containers = containers.flat_map(|pod| pod["spec"]["containers"].as_array()).flatten();
        let tag = |one: &Value| one["image"].as_str()?.rsplit(':').next().map(str::to_owned);
        let mut tags: Vec<String> = containers.filter_map(tag).collect();
        tags.sort_unstable();
        tags.dedup();
        Ok(tags)
    }

    pub(crate) async fn patch(&self, name: &str, spec: Value) -> Outcome {
        let patch = json!({ "spec": spec }).to_string();
        let verb = ["patch", "--type=merge", "-p", &patch];
        change(&self.sandbox, &verb, ["upgrades.opensdn.io", name], &[]).await
    }
}

fn is_over(status: &Value) -> bool {
    ["Succeeded", "RolledBack", "Refused"].iter().any(|phase| status["phase"] == *phase)
}

pub(crate) fn steps(status: &Value) -> Vec<(String, String)> {
    let text = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    let steps = status["steps"].as_array().into_iter().flatten();
    steps.map(|step| (text(step, "id"), text(step, "state"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pods_run_the_new_images_wave_by_wave_and_a_new_operator_continues() -> Outcome {
    let world = World::start().await?;
    world.create("to-1", json!({"version": "R24.1.1", "pauseBefore": ["config"]})).await?;
    // Killed while one pod of each data store is looked at.
    let has_canary =
        async || steps(&world.status("to-1").await).iter().any(|(_, state)| state == "Canary");
    eventually("one pod is replaced first", has_canary).await;
    world.operator.kill(0);
    world.operator.start(0)?;
    world.until("to-1", "Paused").await;
    let status = world.status("to-1").await;
    let done: Vec<_> = steps(&status);
    let is = |id: &str, state: &str| done.contains(&(id.to_owned(), state.to_owned()));
    assert!(
        is("Zookeeper/zookeeper1", "Succeeded") && is("Config/config1", "Pending"),
        "{status:#}"
    );
    let both = world.tags().await?;
    assert_eq!(both, ["R24.1", "R24.1.1"]);
    world.patch("to-1", json!({"pauseBefore": null})).await?;
    world.until("to-1", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R24.1.1"]);
    let status = world.status("to-1").await;
    assert_eq!(
        (&status["from"], &status["to"]),
        (&json!("R24.1"), &json!("R24.1.1")),
        "{status:#}"
    );
    for step in status["steps"].as_array().ok_or("no steps")? {
        assert_eq!(
            (&step["state"], &step["attempts"]),
            (&json!("Succeeded"), &json!(1)),
            "{step:#}"
        );
    }
    // What is over is not begun again, and back is another word.
    world.patch("to-1", json!({"goal": "RollBack"})).await?;
    world.until_from("to-1", "RolledBack").await;
    assert_eq!(world.tags().await?, ["R24.1"]);
    Ok(())
}

impl World {
    /// The same after a phase at which it was over.
    pub(crate) async fn until_from(&self, name: &str, phase: &str) {
        let is = async || self.status(name).await["phase"] == phase;
        eventually_within(WHOLE, &format!("{name} is {phase}"), is).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_image_takes_one_pod_of_a_service_and_comes_back_by_itself() -> Outcome {
    let world = World::start().await?;
    let images = json!([{"container": "api", "image": image("api", "bad")}]);
    // As if it could be pulled, and then not be run.
    let more =
        json!({"version": "R24.1.1", "images": images, "waveTimeout": "40s", "prePull": false});
    world.create("bad", more).await?;
    // The API server says in whole seconds when each was made: of two within one it is chance which is older.
    tokio::time::sleep(Duration::from_secs(1)).await;
    // A second one waits, and says for which.
    world.create("second", json!({"version": "R24.1.2"})).await?;
    let waits = async || {
        let status = world.status("second").await;
        status["message"].as_str().is_some_and(|message| message.contains("Upgrade bad"))
    };
    eventually("the second one waits for the first", waits).await;
    let most = async || {
        let pods = read(&world.sandbox, &["pods", "-n", "tf"]).await.unwrap_or_default();
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let bad = pods.iter().filter(|pod| pod["spec"].to_string().contains(":bad")).count();
        assert!(bad <= 1, "{bad} pods with the bad image");
        let status = world.status("bad").await;
        status["phase"] == "RolledBack"
    };
    eventually_within(WHOLE, "it is rolled back", most).await;
    let status = world.status("bad").await;
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("ImagePullBackOff"), "{message}");
    assert!(message.contains("earlier images"), "{message}");
    let manager = get(&world.sandbox, MANAGER).await["spec"].to_string();
    assert!(!manager.contains(":bad"), "{manager}");
    // Now it is the turn of the second one.
    world.until("second", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R24.1.2"]);
    Ok(())
}

/// No Manager may be changed while it is there.
async fn freeze(world: &World, verb: &str) -> Outcome {
    let rule = json!({"apiGroups": ["tf.tungsten.io"], "apiVersions": ["*"], "resources": ["managers"],
        "operations": ["UPDATE"]});
    let of_kind = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "freeze"}, "spec": spec});
    let policy = json!({"matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "change freeze"}]});
    let binding = json!({"policyName": "freeze", "validationActions": ["Deny"]});
    let objects = [
        of_kind("ValidatingAdmissionPolicy", policy),
        of_kind("ValidatingAdmissionPolicyBinding", binding),
    ];
    for object in objects {
        send(&world.sandbox, &[verb], &object).await?.success();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_something_speaks_against_changes_nothing() -> Outcome {
    let world = World::start().await?;
    ReportApi::OpenReports.install(&world.sandbox.client()?).await?;
    let before = get(&world.sandbox, MANAGER).await["metadata"]["generation"].clone();
    world.create("back", json!({"version": "R21.4"})).await?;
    world.create("new", json!({"version": "R26.1"})).await?;
    world.create("typo", json!({"images": [{"container": "apii", "image": "a:1"}]})).await?;
    world.create("nowhere", json!({"version": "R24.1.1", "manager": "none"})).await?;
    world.create("other-plan", json!({"version": "R24.1.1", "plan": "0123456789"})).await?;
    for (name, why) in [
        ("back", "OSDN5005"),
        ("new", "OSDN5009"),
        ("typo", "OSDN5003"),
        ("nowhere", "no Manager none"),
        ("other-plan", "OSDN5010"),
    ] {
        let is = async || {
            let status = world.status(name).await;
            status["phase"] == "Refused" && status["message"].to_string().contains(why)
        };
        eventually(&format!("{name} is refused for {why}"), is).await;
    }
    let reports = async || {
        let all = read(&world.sandbox, &["reports.openreports.io", "-n", "tf"]).await;
        let all = all.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default();
        let of = |one: &Value| {
            let code = one["results"].as_array()?.iter().find(|one| one["rule"] == "OSDN5005")?;
            Some((one["scope"]["name"].clone(), code["result"].clone()))
        };
        all.iter().filter_map(of).collect::<Vec<_>>() == [(json!("back"), json!("fail"))]
    };
    eventually("dashboards of policies show it, too", reports).await;

    freeze(&world, "create").await?;
    let is_frozen = async || {
        let label = ["label", "-n", "tf", MANAGER[0], MANAGER[1], "tried=now", "--dry-run=server"];
        kubectl(&world.sandbox, &label).await.is_ok_and(|said| said.err.contains("change freeze"))
    };
    eventually("nothing may change", is_frozen).await;
    world.create("frozen", json!({"version": "R24.1.1", "soak": "1s"})).await?;
    let is_refused = async || {
        let status = world.status("frozen").await;
        let message = status["message"].to_string();
        status["phase"] == "Refused"
            && message.contains("OSDN5017")
            && message.contains("change freeze")
    };
    eventually("it is known before anything is begun", is_refused).await;
    let after = get(&world.sandbox, MANAGER).await["metadata"]["generation"].clone();
    assert_eq!(before, after);
    freeze(&world, "delete").await?;
    world.until_from("frozen", "Succeeded").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_deleted_leaves_services_that_are_kept() -> Outcome {
    let world = World::start().await?;
    world.create("gone", json!({"version": "R24.1.1", "soak": "1h"})).await?;
    let has_canary = async || {
        let status = world.status("gone").await;
        let steps = status["steps"].as_array().cloned().unwrap_or_default();
        steps.iter().any(|step| step["canarySince"].is_string())
    };
    eventually("one pod is looked at", has_canary).await;
    change(&world.sandbox, &["delete"], ["upgrades.opensdn.io", "gone"], &[]).await?;
    // Nothing holds the other pods back any more.
    eventually_within(WHOLE, "the Manager is Ready", async || world.is_ready().await).await;
    assert_eq!(
        world.tags().await?,
        ["R24.1", "R24.1.1"],
        "the waves that had begun, and the others"
    );
    // It is in nobody's way. That one is in a hurry: nothing may wait for something else to happen.
    world.create("next", json!({"version": "R24.1.2", "waveTimeout": "45s"})).await?;
    world.until("next", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R24.1.2"]);
    Ok(())
}

/// As the page says it of a RabbitMQ of another version (docs/src/upgrade.md).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rabbitmq_that_is_stopped_starts_from_nothing_with_the_image_of_an_upgrade() -> Outcome {
    const RABBITMQ: [&str; 2] = ["rabbitmqs.tf.tungsten.io", "rabbitmq1"];
    let world = World::of(&manager(&["Rabbitmq"]), 1).await?;
    let had_quorum = async || {
        let status = get(&world.sandbox, RABBITMQ).await["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "HadQuorum" && one["status"] == "True")
    };
    eventually("its members have served", had_quorum).await;
    change(&world.sandbox, &["annotate"], RABBITMQ, &["opensdn.io/stopped=true"]).await?;
    eventually("its pods are gone", async || world.tags().await.is_ok_and(|all| all.is_empty()))
        .await;
    let force = json!(["OSDN5014", "OSDN5008"]);
    world.create("over", json!({"version": "R25.1", "force": force, "waveTimeout": "5m"})).await?;
    let waits = async || {
        let step = world.status("over").await["steps"][0].clone();
        step["message"].to_string().contains("opensdn.io/stopped is set")
    };
    eventually("it waits for the annotation", waits).await;
    let nothing = json!({"status": {"conditions": []}}).to_string();
    let patch = ["patch", "--subresource=status", "--type=merge", "-p", &nothing];
    change(&world.sandbox, &patch, RABBITMQ, &[]).await?;
    change(&world.sandbox, &["annotate"], RABBITMQ, &["opensdn.io/stopped-"]).await?;
    world.until("over", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R25.1"]);
    Ok(())
}
