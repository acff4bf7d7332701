//! A whole cluster on real nodes by the operator as it is installed: one Manager with all thirteen kinds, three of each,
//! becomes Ready, nothing is written while nothing changes, and a lost node is said of every service and comes back.
//! ZooKeeper, RabbitMQ, Cassandra and Redis are real. Of OpenSDN's own daemons, whose images cannot be had, something
//! stands in for each: it is started by the operator's scripts, reads the files that they write, opens the daemon's ports,
//! speaks with what the daemon needs, and says in introspect whether that answers; behind those of the Config API is a
//! fake of it. Deliberately not here: members that
//! come and go while clients write (`lab_quorum`), and upgrades (`lab_upgrade`).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]
#![allow(clippy::print_stderr, reason = "how long each step took, for who runs it by hand")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use opensdn_crds::component::{ANALYTICS_DATABASE_PORTS, COMPONENTS};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::lab_daemons::{self, LabDaemons};
use opensdn_testing::lab_operator::REDIS_IMAGE;
use opensdn_testing::manager::{service_name, services};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::sandbox::lab::Lab;
use opensdn_testing::{Failed, Outcome, lab_image, lab_operator};
use serde_json::{Value, json};

use crate::lab_quorum::cassandra;
use crate::lab_quorum::world::entry;
use crate::operator::{LABEL, calls};

const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];
const MANAGER: [&str; 3] = ["managers.tf.tungsten.io", "-n=tf", "cluster1"];
/// One of each kind, and a second Cassandra.
const SERVICES: usize = COMPONENTS.len() + 1;
/// Some 120 containers on two cores, of which those that keep data start one after the other.
const LONGEST: Duration = Duration::from_secs(1800);
/// Longer than the operator rests between two rounds of introspect, and than a cloud is not looked at.
const QUIET: Duration = Duration::from_secs(75);
/// Kinds with daemons that are asked by introspect.
const ASKED: [&str; 8] = [
    "Analytics",
    "AnalyticsAlarm",
    "AnalyticsSnmp",
    "Config",
    "Control",
    "Kubemanager",
    "QueryEngine",
    "Vrouter",
];
/// What the operator makes in the namespace, besides the services.
const OWNED: &str = "managers.tf.tungsten.io,statefulsets,daemonsets,controllerrevisions,configmaps,secrets,services,\
                     serviceaccounts,poddisruptionbudgets,pods";

/// The images of what is real.
struct Images {
    zookeeper: String,
    rabbitmq: String,
    cassandra: String,
}

impl Images {
    async fn load(lab: &Lab) -> Result<Self, Failed> {
        Ok(Self {
            zookeeper: lab_image::load(lab, "zookeeper").await?,
            rabbitmq: lab_image::load(lab, "rabbitmq").await?,
            cassandra: lab_image::load(lab, cassandra::CASSANDRA.image).await?,
        })
    }

    /// Of a container.
    fn of(&self, container: &str) -> String {
        match container {
            "zookeeper" => &self.zookeeper,
            "rabbitmq" => &self.rabbitmq,
            "cassandra" => &self.cassandra,
            "redis" | "stunnel" => REDIS_IMAGE,
            _ => lab_daemons::IMAGE,
        }
        .to_owned()
    }

    /// As `deploy/samples/manager.yaml`: with two databases, and with all that prepares nodes.
    fn manager(&self) -> Value {
        let kinds: Vec<&str> = COMPONENTS.iter().map(|facts| facts.kind).collect();
        let mut services = services(&kinds, |facts| {
            let containers = facts.containers.all();
            let containers = containers.map(|name| json!({"name": name, "image": self.of(name)}));
            let mut settings = match facts.kind {
                "Cassandra" => cassandra::settings(),
                "Vrouter" | "Webui" => json!({"controlInstance": service_name("Control")}),
                "Config" => json!({"linklocalServices": [
                    {"name": "ntp", "ip": "169.254.0.11", "port": 123, "ipFabricServiceHost": "192.0.2.1",
                     "ipFabricServicePort": 123}]}),
                _ => json!({}),
            };
            settings["containers"] = containers.collect();
            json!({"metadata": {"name": service_name(facts.kind)}, "spec": {"serviceConfiguration": settings}})
        });
        let mut of_analytics = services["cassandras"][0].clone();
        of_analytics["metadata"]["name"] = json!("analyticsdb1");
        for (field, port) in ANALYTICS_DATABASE_PORTS {
            of_analytics["spec"]["serviceConfiguration"][*field] = json!(port);
        }
        services["cassandras"]
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.push(of_analytics.clone()));
        json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
            "metadata": {"name": "cluster1", "namespace": "tf"}, "spec": {"services": services}})
    }
}

/// The Manager as it is now; nothing where the API server does not answer.
async fn state(sandbox: &Sandbox) -> Value {
    read(sandbox, &MANAGER).await.unwrap_or_default()
}

fn rows(manager: &Value) -> Vec<Value> {
    manager["status"]["services"].as_array().cloned().unwrap_or_default()
}

async fn items(sandbox: &Sandbox, kinds: &str) -> Vec<Value> {
    let all = read(sandbox, &[kinds, "-n=tf"]).await.unwrap_or_default();
    all["items"].as_array().cloned().unwrap_or_default()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The kinds as kubectl takes them.
fn plurals() -> String {
    let all: Vec<_> =
        COMPONENTS.iter().map(|facts| format!("{}.tf.tungsten.io", facts.plural)).collect();
    all.join(",")
}

/// Until that is so; what the Manager says meanwhile is shown, and where it is not so in time all there is to see.
async fn until(sandbox: &Sandbox, what: &str, is_so: impl AsyncFn(&Value) -> bool) -> Outcome {
    let (began, mut said) = (Instant::now(), String::new());
    loop {
        let manager = state(sandbox).await;
        let [_, _, message] = entry(&manager, "Ready");
        if message != said {
            eprintln!("{what}, at {} s: {message}", began.elapsed().as_secs());
            said = message;
        }
        if is_so(&manager).await {
            eprintln!("{what}: after {} s", began.elapsed().as_secs());
            return Ok(());
        }
        if began.elapsed() > LONGEST {
            return Err(format!("{what}: not in time\n{}", seen(sandbox).await).into());
        }
        // A pod takes seconds, and each look takes from what starts.
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

/// Each service by its row, its object and its pods.
async fn is_ready(sandbox: &Sandbox, manager: &Value) -> bool {
    let rows = rows(manager);
    let are_ready = entry(manager, "Ready")[0] == "True"
        && rows.len() == SERVICES
        && rows.iter().all(|row| row["ready"] == true && row["nodes"] == json!(NODES));
    if !are_ready {
        return false;
    }
    let (objects, pods) = (items(sandbox, &plurals()).await, items(sandbox, "pods").await);
    let all_ready = |all: &[Value]| all.iter().all(|one| entry(one, "Ready")[0] == "True");
    objects.len() == SERVICES
        && all_ready(&objects)
        && pods.len() == SERVICES * NODES.len()
        && all_ready(&pods)
}

/// All daemons say that all works that they need, and each agent has sessions with all control nodes.
fn daemons_work(manager: &Value) -> bool {
    let rows = rows(manager);
    let asked: BTreeSet<&str> = rows
        .iter()
        .filter(|row| {
            let said = &row["introspect"];
            let all = said["daemons"].as_u64().unwrap_or_default();
            all > 0 && all % 3 == 0 && said["functional"] == all
        })
        .map(|row| text(row, "/kind"))
        .collect();
    let vrouter = rows.iter().find(|row| row["kind"] == "Vrouter").cloned().unwrap_or_default();
    let said = &vrouter["introspect"];
    asked == ASKED.into()
        && said["xmpp"] == json!({"up": 3, "all": 3})
        && said["xmppSessions"] == json!({"up": 9, "all": 9})
}

/// What the operator is to write there, by whichever of the three.
async fn the_config_api_has_all(sandbox: &Sandbox, daemons: &LabDaemons) -> bool {
    let config = read(sandbox, &["configs.tf.tungsten.io", "-n=tf", "config1"]).await;
    let entries = daemons.api().entries();
    let names = entries.as_array().into_iter().flatten();
    let names: Vec<&str> = names.map(|row| text(row, "/linklocal_service_name")).collect();
    entry(&config.unwrap_or_default(), "NetworkWritten")[0] == "True" && names == ["ntp"]
}

/// What is stored, each with its version.
async fn versions(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let all = items(sandbox, &format!("{OWNED},{}", plurals())).await;
    let version = |one: &Value| {
        let name = format!("{} {}", text(one, "/kind"), text(one, "/metadata/name"));
        (name, text(one, "/metadata/resourceVersion").to_owned())
    };
    all.iter().map(version).collect()
}

/// What the operator has written so far.
fn writes(sandbox: &Sandbox) -> Result<Vec<String>, Failed> {
    let mut calls = calls(sandbox)?;
    let verbs = ["create", "update", "patch", "delete"].map(|verb| format!("{:?} ", verb));
    // Members are asked in their pods.
    calls.retain(|call| {
        verbs.iter().any(|verb| call.starts_with(verb.as_str())) && !call.contains("/exec?")
    });
    Ok(calls)
}

/// Kubernetes counts a pod of Control only when it has been ready for a minute.
async fn are_available(sandbox: &Sandbox) -> bool {
    let sets = items(sandbox, "statefulsets").await;
    sets.iter().all(|set| set["status"]["availableReplicas"] == set["spec"]["replicas"])
}

async fn nothing_is_written(sandbox: &Sandbox) -> Outcome {
    until(sandbox, "all pods count", async |_| are_available(sandbox).await).await?;
    let (before, written) = (versions(sandbox).await, writes(sandbox)?);
    // Nothing shows that nothing is done.
    tokio::time::sleep(QUIET).await;
    let (after, written_now) = (versions(sandbox).await, writes(sandbox)?);
    assert!(before.len() > 4 * SERVICES && written.len() > SERVICES, "{before:#?} {written:#?}");
    assert_eq!(written_now.get(written.len()..), Some(&[][..]), "the operator writes");
    let changed: Vec<_> =
        after.iter().filter(|(name, now)| before.get(*name) != Some(now)).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "changed: {changed:#?}");
    eprintln!("{} objects stay as they are", after.len());
    Ok(())
}

async fn uids(sandbox: &Sandbox) -> BTreeSet<String> {
    let pods = items(sandbox, "pods").await;
    pods.iter().map(|pod| text(pod, "/metadata/uid").to_owned()).collect()
}

/// Every service has lost one of three, and can do its work without but for the vrouters, one of which is a node's own.
async fn a_lost_node_is_said_and_all_come_back_with_it(sandbox: &Sandbox) -> Outcome {
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    let before = uids(sandbox).await;
    lab.kill_node(NODES[2])?;
    let are_degraded = async |manager: &Value| {
        let rows = rows(manager);
        let misses = |row: &Value| {
            row["ready"] == false && text(row, "/message").contains("2 of 3 pods ready")
        };
        rows.len() == SERVICES
            && rows.iter().all(misses)
            && entry(manager, "Ready")[0] == "False"
            && entry(manager, "Degraded")[0] == "True"
    };
    until(sandbox, "every service says that it has lost a pod", are_degraded).await?;
    let objects = items(sandbox, &plurals()).await;
    let idle = objects.iter().filter(|one| one["status"]["active"] != true);
    assert_eq!(idle.map(|one| text(one, "/kind")).collect::<Vec<_>>(), ["Vrouter"]);

    lab.start_node(&sandbox.client()?, NODES[2]).await?;
    until(sandbox, "all are Ready again", async |manager| is_ready(sandbox, manager).await).await?;
    until(sandbox, "all daemons work again", async |manager| daemons_work(manager)).await?;
    assert_eq!(uids(sandbox).await, before, "no pod is replaced");
    Ok(())
}

async fn seen(sandbox: &Sandbox) -> String {
    let mut all = vec![
        vec!["get", "pods", "-A", "-o=wide"],
        vec!["get", MANAGER[0], MANAGER[1], MANAGER[2], "-o=jsonpath={.status}"],
        vec!["get", "events", "-n=tf", "--sort-by=.lastTimestamp"],
        vec![
            "logs",
            "-n=opensdn-operator",
            "-l=app.kubernetes.io/name=opensdn-operator",
            "--tail=80",
        ],
    ];
    let pods = items(sandbox, "pods").await;
    let unready = pods.iter().filter(|pod| entry(pod, "Ready")[0] != "True");
    let unready: Vec<&str> = unready.map(|pod| text(pod, "/metadata/name")).collect();
    for pod in unready.iter().take(8) {
        all.push(vec!["describe", "pod", "-n=tf", pod]);
        all.push(vec!["logs", "-n=tf", pod, "--all-containers", "--prefix", "--tail=20"]);
    }
    let mut seen = String::new();
    for arguments in all {
        let said = kubectl(sandbox, &arguments).await;
        let said = said.map_or_else(|error| error.to_string(), |said| said.out + &said.err);
        seen.push_str(&format!("--- kubectl {}\n{said}\n", arguments.join(" ")));
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_thirteen_kinds_become_ready_on_three_nodes_write_nothing_then_and_outlive_a_lost_node()
-> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    lab_operator::install(&sandbox).await?;
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    let daemons = LabDaemons::start(lab).await?;
    let images = Images::load(lab).await?;
    kubectl(&sandbox, &["label", "nodes", "--all", "--overwrite", LABEL]).await?.success();

    send(&sandbox, &["create"], &images.manager()).await?.success();
    until(&sandbox, "all are Ready", async |manager| is_ready(&sandbox, manager).await).await?;
    let pods = uids(&sandbox).await.len();
    eprintln!("{pods} pods, and {} writes of the operator", writes(&sandbox)?.len());
    until(&sandbox, "all daemons work", async |manager| daemons_work(manager)).await?;
    until(&sandbox, "the Config API has all", async |_| {
        the_config_api_has_all(&sandbox, &daemons).await
    })
    .await?;
    nothing_is_written(&sandbox).await?;
    a_lost_node_is_said_and_all_come_back_with_it(&sandbox).await
}
