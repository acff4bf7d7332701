//! An upgrade while its writes fail: for every single write that the operator makes for an Upgrade it is killed before that
//! arrives, or when it has, and the answer is lost: on the way to the new images, and on the way back. In the end all is as if
//! nothing had happened, no image was set twice, and no pod was replaced twice. Which write it is decides a number, and no clock.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::iter;
use http::Method;
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::fault_proxy::{Fault, FaultProxy, Write};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome, long_runs};
use serde_json::{Value, json};

use crate::operator::LABEL;
use crate::watched_pods::Pods;

/// With others beside it on two cores.
const LONG: Duration = Duration::from_secs(300);
/// Each way sets images twice: of the one service, and of the other.
const SERVICES: usize = 2;

/// How far a run goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    There,
    AndBack,
}
const NODES: usize = 2;
/// How the names begin of the pods that pull images.
const PULLER: &str = "pull-images-";

struct Run<'s> {
    sandbox: &'s Sandbox,
    namespace: String,
    proxy: FaultProxy,
    operator: Operator,
    pods: Pods,
}

/// What there is in the end: all but what is different each time.
#[derive(Debug, PartialEq)]
struct End {
    steps: Vec<(String, String, i64)>,
    images: Vec<String>,
    /// How often the specs of the Manager and of its services were changed.
    generations: BTreeMap<String, i64>,
    /// How many templates there were of each StatefulSet: one before and on the way back, one after.
    templates: usize,
    /// How many pods of each name there were: a deletion that is sent twice, as its answer was lost, replaces one.
    pods: BTreeMap<String, usize>,
}

impl<'s> Run<'s> {
    /// A Manager whose services are ready, and the operator behind a proxy that disturbs its writes from then on.
    async fn start(
        sandbox: &'s Sandbox,
        name: &str,
        faults: &[(usize, Fault)],
    ) -> Result<Self, Failed> {
        let namespace = format!("run-{name}");
        kubectl(sandbox, &["create", "namespace", &namespace]).await?.success();
        let pods = Pods::watch(sandbox, &namespace)?;
        let proxy = FaultProxy::start(sandbox.client()?, faults.iter().copied()).await?;
        {
            let first = Operator::start_with(sandbox, &sandbox.kubeconfig(), &namespace)?;
            send(sandbox, &["create"], &manager(&namespace)).await?.success();
            let is_ready = async || {
                let what = ["-n", &namespace, "managers.tf.tungsten.io", "it"];
                let manager = read(sandbox, &what).await.unwrap_or_default();
                let all = manager["status"]["conditions"].as_array().cloned().unwrap_or_default();
                all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
            };
            eventually_within(LONG, "the Manager is Ready", is_ready).await;
            first.stop(0).await;
        }
        let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
        let operator = Operator::start_with(sandbox, &kubeconfig, &namespace)?;
        Ok(Self { sandbox, namespace, proxy, operator, pods })
    }

    /// Whether the fault took place, what there is in the end, and what was written.
    async fn play(self, way: Way) -> Result<(bool, End, Vec<Write>), Failed> {
        let upgrade = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": "it", "namespace": self.namespace},
            "spec": {"manager": "it", "version": "R24.1.1", "soak": "1s"}});
        send(self.sandbox, &["create"], &upgrade).await?.success();
        let mut is_killed = false;
        self.until("Succeeded", &mut is_killed).await?;
        if way == Way::AndBack {
            let it = ["-n", &self.namespace, "patch", "upgrades.opensdn.io", "it", "--type=merge"];
            let goal = ["-p", r#"{"spec":{"goal":"RollBack"}}"#];
            kubectl(self.sandbox, &[&it[..], &goal[..]].concat()).await?.success();
            self.until("RolledBack", &mut is_killed).await?;
        }
        let end = self.end().await?;
        kubectl(self.sandbox, &["delete", "namespace", &self.namespace, "--wait=false"])
            .await?
            .success();
        Ok((self.proxy.is_broken(), end, self.proxy.writes()))
    }

    /// Until it is there; where a write is disturbed meanwhile the operator is killed, and starts anew.
    async fn until(&self, phase: &str, is_killed: &mut bool) -> Outcome {
        let what = format!("the upgrade is {phase}");
        let is_there = async || self.upgrade().await["status"]["phase"] == phase;
        if !*is_killed {
            tokio::select! {
                () = eventually_within(LONG, &what, is_there) => return Ok(()),
                () = self.proxy.broken() => {}
            }
            self.operator.kill(0);
            self.operator.start(0)?;
            *is_killed = true;
        }
        eventually_within(LONG, &what, is_there).await;
        Ok(())
    }

    async fn upgrade(&self) -> Value {
        let what = ["-n", &self.namespace, "upgrades.opensdn.io", "it"];
        read(self.sandbox, &what).await.unwrap_or_default()
    }

    async fn end(&self) -> Result<End, Failed> {
        let steps = self.upgrade().await["status"]["steps"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let steps = steps.iter().map(|step| {
            (text(&step["id"]), text(&step["state"]), step["attempts"].as_i64().unwrap_or_default())
        });
        let pods = read(self.sandbox, &["-n", &self.namespace, "pods"]).await?;
        let containers = pods["items"].as_array().into_iter().flatten();
        let containers = containers.flat_map(|pod| pod["spec"]["containers"].as_array()).flatten();
        let mut images: Vec<String> = containers.map(|one| text(&one["image"])).collect();
        images.sort_unstable();
        let kinds = "managers.tf.tungsten.io,redis.tf.tungsten.io,zookeepers.tf.tungsten.io";
        let objects = read(self.sandbox, &["-n", &self.namespace, kinds]).await?;
        let generations = objects["items"].as_array().into_iter().flatten().map(|one| {
            let (kind, name) = (text(&one["kind"]), text(&one["metadata"]["name"]));
            (format!("{kind}/{name}"), one["metadata"]["generation"].as_i64().unwrap_or_default())
        });
        let revisions = read(self.sandbox, &["-n", &self.namespace, "controllerrevisions"]).await?;
        Ok(End {
            steps: steps.collect(),
            images,
            generations: generations.collect(),
            templates: revisions["items"].as_array().map_or(0, Vec::len),
            pods: self.pods.by_name(),
        })
    }
}

fn manager(namespace: &str) -> Value {
    let image = |name: &str| format!("registry.example.com/contrail-{name}:R24.1");
    opensdn_testing::manager::manager(namespace, "it", &["Redis", "Zookeeper"], image)
}

/// Of a pod that pulls images.
fn is_of_puller(write: &Write, method: &Method) -> bool {
    write.method == *method && write.path.contains(&format!("/pods/{PULLER}"))
}

/// Of the Upgrade and of its acts; what else is written is disturbed in `operator_faults`.
fn is_of_upgrade(write: &Write) -> bool {
    let is_act = write.path.contains("/managers/") && !write.path.ends_with("/status");
    write.method == Method::PATCH && (write.path.contains("/upgrades/") || is_act)
}

async fn disturbed(
    sandbox: &Sandbox,
    way: Way,
    number: usize,
    fault: Fault,
    expected: &End,
) -> Result<bool, Failed> {
    let name = format!("{way:?}-{number}-{fault:?}").to_lowercase();
    let run = Run::start(sandbox, &name, &[(number, fault)]).await?;
    let (is_broken, end, _) = run.play(way).await?;
    if end != *expected {
        return Err(format!("write {number}, {fault:?}: {end:#?}\nis not\n{expected:#?}").into());
    }
    Ok(is_broken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_write_of_an_upgrade_it_comes_to_the_same_end_and_does_nothing_twice()
-> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(u32::try_from(NODES)?).with_crds().await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    let (_, there, writes) = Run::start(&sandbox, "calm", &[]).await?.play(Way::There).await?;
    // Each way sets images twice, and before all others is a write that stores nothing: whether the API server would take them.
    assert_eq!(acts(&writes), SERVICES + 1, "{writes:#?}");
    is_the_end(&there, "R24.1.1", 2);
    let mut numbers = of_upgrade(&writes);
    let count = numbers.len();
    // One of each: the others are the same on other nodes.
    for method in [Method::PATCH, Method::DELETE] {
        let number = writes.iter().position(|write| is_of_puller(write, &method));
        numbers.push(number.ok_or_else(|| format!("{method} of no pod that pulls: {writes:#?}"))?);
    }
    let (_, back, writes) =
        Run::start(&sandbox, "calm-back", &[]).await?.play(Way::AndBack).await?;
    assert_eq!(acts(&writes), 2 * SERVICES + 1, "{writes:#?}");
    is_the_end(&back, "R24.1", 3);
    let of_back: Vec<usize> = of_upgrade(&writes).into_iter().skip(count).collect();
    assert!(count >= 5 && of_back.len() >= 4, "{writes:#?}");
    let runs = numbers.iter().map(|number| (Way::There, *number, &there));
    let runs = runs.chain(of_back.iter().map(|number| (Way::AndBack, *number, &back)));
    let runs = long_runs::every(2, runs.collect());
    let runs = long_runs::pairs(runs, [Fault::LoseRequest, Fault::LoseAnswer]);
    let runs = runs
        .into_iter()
        .map(|((way, number, expected), fault)| disturbed(&sandbox, way, number, fault, expected));
    let ended: Vec<Result<bool, Failed>> = iter(runs).buffer_unordered(4).collect().await;
    let number = ended.len();
    let reached = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    let reached = reached.into_iter().filter(|reached| *reached).count();
    assert!(reached + number / 10 + 2 >= number, "{reached} of {number} faults took place");
    Ok(())
}

/// How often the Manager was written.
fn acts(writes: &[Write]) -> usize {
    let acts = writes.iter().filter(|write| is_of_upgrade(write));
    acts.filter(|write| write.path.contains("/managers/")).count()
}

fn of_upgrade(writes: &[Write]) -> Vec<usize> {
    let all = writes.iter().enumerate().filter(|(_, write)| is_of_upgrade(write));
    all.map(|(number, _)| number).collect()
}

/// Each pod has the images, and there were so many of each.
fn is_the_end(end: &End, tag: &str, pods: usize) {
    assert!(end.images.iter().all(|image| image.ends_with(&format!(":{tag}"))), "{end:#?}");
    assert_eq!(end.templates, 2 * SERVICES, "{end:#?}");
    assert_eq!(end.pods.values().sum::<usize>(), pods * NODES * SERVICES, "{end:#?}");
}
