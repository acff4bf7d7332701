//! The operator with a view of the cluster that is not what the cluster is: one that is of before, one in which changes are
//! missing, one that is overtaken while it writes. It deletes and takes back nothing by what was, and comes to the same end as one
//! that has seen all (the bugs that Sieve found in others, sections 13 and 16 of the notes on controllers).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use opensdn_testing::eventually::eventually;
use opensdn_testing::fault_proxy::{Fault, FaultProxy, Moment, Reach, Thaw, Which, Write};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{BUDGET, LABEL, REDIS, STATEFUL_SET, change, condition, get, ready, redis};

/// Longer than between two writes of one pass.
const QUIET: Duration = Duration::from_millis(700);
const MANAGER: [&str; 2] = ["managers.tf.tungsten.io", "it"];
/// What the operator makes for a component, and what comes of that.
const OWNED: &str = "statefulsets,configmaps,secrets,serviceaccounts,poddisruptionbudgets,pods";

/// A cluster of three simulated nodes, and an operator that sees it through a proxy.
struct World {
    sandbox: Sandbox,
    proxy: FaultProxy,
    operator: Operator,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
        kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
        kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
        let proxy = FaultProxy::start(sandbox.client()?, []).await?;
        let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
        let operator = Operator::start_with(&sandbox, &kubeconfig, "tf")?;
        Ok(Self { sandbox, proxy, operator })
    }

    async fn with_redis() -> Result<Self, Failed> {
        let world = Self::start().await?;
        send(&world.sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
        world.has_pods(3).await;
        Ok(world)
    }

    /// Until there are so many, all of them ready, and nothing is left to do.
    async fn has_pods(&self, number: usize) {
        let is_so = async || {
            let redis = get(&self.sandbox, REDIS).await;
            let said = format!("{number} of {number} pods ready");
            redis["status"]["observedGeneration"] == redis["metadata"]["generation"]
                && condition(&self.sandbox, "Ready").await.2.contains(&said)
                && get(&self.sandbox, STATEFUL_SET).await["spec"]["replicas"] == number
                && get(&self.sandbox, BUDGET).await.is_object() == (number > 2)
        };
        eventually(&format!("the Redis has {number} pods"), is_so).await;
        self.proxy.quiet_for(QUIET).await;
    }

    /// Those of the control plane are from now on these.
    async fn control_plane(&self, nodes: &[&str]) -> Outcome {
        let without = LABEL.replace('=', "-");
        for node in ["node-0", "node-1", "node-2"] {
            let label = if nodes.contains(&node) { LABEL } else { &without };
            kubectl(&self.sandbox, &["label", "nodes", node, label]).await?.success();
        }
        Ok(())
    }

    /// The operator is killed, and starts with what was then; it has decided what to do by that when this returns.
    async fn restarts_at(&self, moment: Moment, resources: &[&str], reach: Reach) -> Outcome {
        self.operator.kill(0);
        self.proxy.freeze_at(moment, resources, reach);
        self.operator.start(0)?;
        self.has_looked().await;
        Ok(())
    }

    async fn has_looked(&self) {
        let passes = async || self.operator.metric(0, "opensdn_reconcile_total").await > 0.0;
        eventually("it has looked at something", passes).await;
        self.proxy.quiet_for(QUIET).await;
    }

    /// All sees again what is, and has made of it what it is to be.
    async fn thaws(&self) {
        self.proxy.thaw(Thaw::Expire);
        self.proxy.quiet_for(QUIET).await;
    }

    /// Who is who: the UID and the owner of all that there is, by kind and name.
    async fn identities(&self) -> Result<BTreeMap<String, (String, String)>, Failed> {
        let list = read(&self.sandbox, &["-n", "tf", OWNED]).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let identity = |one: &Value| {
            let metadata = &one["metadata"];
            let name = format!("{} {}", text(&one["kind"]), text(&metadata["name"]));
            (name, (text(&metadata["uid"]), text(&metadata["ownerReferences"][0]["uid"])))
        };
        Ok(list["items"].as_array().into_iter().flatten().map(identity).collect())
    }

    async fn pods(&self) -> Result<usize, Failed> {
        let list = read(&self.sandbox, &["-n", "tf", "pods"]).await?;
        Ok(list["items"].as_array().map_or(0, Vec::len))
    }

    fn deletions(&self) -> Vec<Write> {
        let mut writes = self.proxy.writes();
        writes.retain(|write| write.method == Method::DELETE);
        writes
    }

    /// Each deletes one object, that very one.
    fn deletions_are_exact(&self) {
        for write in self.deletions() {
            let uid = write.body()["preconditions"]["uid"].clone();
            assert!(uid.is_string(), "{write:?}: {}", write.body());
        }
    }
}

/// Has something be deleted that waits then for a finalizer: the moment before, and that at which it is going.
async fn deleted(world: &World, what: [&str; 2]) -> Result<[Moment; 2], Failed> {
    let held = r#"{"metadata":{"finalizers":["example.com/held"]}}"#;
    change(&world.sandbox, &["patch", "--type=merge", "-p", held], what, &[]).await?;
    world.proxy.quiet_for(QUIET).await;
    let before = world.proxy.moment().await?;
    change(&world.sandbox, &["delete", "--wait=false"], what, &[]).await?;
    let going = world.proxy.moment().await?;
    let free = r#"{"metadata":{"finalizers":null}}"#;
    change(&world.sandbox, &["patch", "--type=merge", "-p", free], what, &[]).await?;
    eventually("it is gone", async || get(&world.sandbox, what).await.is_null()).await;
    let is_gone = async || get(&world.sandbox, STATEFUL_SET).await.is_null();
    eventually("so is what it owned", is_gone).await;
    Ok([before, going])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_component_that_was_made_again_nothing_goes_by_a_view_of_the_one_before() -> Outcome {
    let world = World::with_redis().await?;
    let [before, going] = deleted(&world, REDIS).await?;
    send(&world.sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
    world.has_pods(3).await;
    let expected = world.identities().await?;
    // With all that was there, and with nothing of the past but the component.
    for (moment, resources) in
        [(going, &[][..]), (before, &[]), (going, &["redis"]), (before, &["redis"])]
    {
        world.restarts_at(moment, resources, Reach::Lists).await?;
        assert_eq!(world.identities().await?, expected, "{moment:?} {resources:?}");
        world.thaws().await;
        assert_eq!(world.identities().await?, expected, "{moment:?} {resources:?}, thawed");
    }
    ready(&world.sandbox).await;
    world.deletions_are_exact();
    Ok(())
}

/// Redis and Webui, by a Manager.
fn manager() -> Value {
    let image = |name: &str| format!("registry.example.com/{name}:R24.1");
    opensdn_testing::manager::manager("tf", MANAGER[1], &["Redis", "Webui"], image)
}

const WEBUI: [&str; 2] = ["webuis.tf.tungsten.io", "webui1"];

/// The UIDs of the Manager's services.
async fn services(world: &World) -> [Value; 2] {
    let uid = async |what| get(&world.sandbox, what).await["metadata"]["uid"].clone();
    [uid(REDIS).await, uid(WEBUI).await]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_manager_that_was_made_again_no_service_goes_by_a_view_of_before() -> Outcome {
    let world = World::start().await?;
    send(&world.sandbox, &["create"], &manager()).await?.success();
    world.has_pods(3).await;
    let [before, going] = deleted(&world, MANAGER).await?;
    send(&world.sandbox, &["create"], &manager()).await?.success();
    world.has_pods(3).await;
    let expected = (services(&world).await, world.identities().await?);
    let there = async || Ok::<_, Failed>((services(&world).await, world.identities().await?));
    for (moment, resources) in [(going, &[][..]), (before, &[]), (before, &["managers"])] {
        world.restarts_at(moment, resources, Reach::Lists).await?;
        assert_eq!(there().await?, expected, "{moment:?} {resources:?}");
        world.thaws().await;
    }

    // A service that was given up, which was confirmed, and is wanted again.
    let change_of = |webui: &Value, confirm: Value| {
        let metadata = json!({"annotations": {"opensdn.io/confirm-loss": confirm}});
        json!({"metadata": metadata, "spec": {"services": {"webui": webui}}}).to_string()
    };
    let patch = ["patch", "--type=merge", "-p"];
    let given_up = change_of(&Value::Null, json!("Webui/webui1"));
    change(&world.sandbox, &[&patch[..], &[&given_up]].concat(), MANAGER, &[]).await?;
    eventually("it is gone", async || get(&world.sandbox, WEBUI).await.is_null()).await;
    let without = world.proxy.moment().await?;
    let wanted = change_of(&manager()["spec"]["services"]["webui"], Value::Null);
    change(&world.sandbox, &[&patch[..], &[&wanted]].concat(), MANAGER, &[]).await?;
    eventually("it is there", async || get(&world.sandbox, WEBUI).await.is_object()).await;
    world.proxy.quiet_for(QUIET).await;
    let expected = services(&world).await;
    world.restarts_at(without, &["managers"], Reach::Lists).await?;
    assert_eq!(services(&world).await, expected);
    world.thaws().await;
    assert_eq!(services(&world).await, expected);
    assert!(world.deletions().iter().any(|write| write.path.ends_with("webui1")), "it deletes");
    world.deletions_are_exact();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_three_members_none_goes_by_a_view_of_when_there_was_one() -> Outcome {
    let world = World::with_redis().await?;
    let three = world.proxy.moment().await?;
    world.control_plane(&["node-0"]).await?;
    world.has_pods(1).await;
    let one = world.proxy.moment().await?;
    world.control_plane(&["node-0", "node-1", "node-2"]).await?;
    world.has_pods(3).await;
    let expected = world.identities().await?;
    let generation =
        async || get(&world.sandbox, STATEFUL_SET).await["metadata"]["generation"].clone();
    let first = generation().await;
    for (moment, resources) in [
        (one, &["nodes"][..]),
        (one, &["pods"]),
        (one, &["statefulsets"]),
        (one, &["poddisruptionbudgets"]),
        (three, &["poddisruptionbudgets"]),
        (three, &["nodes", "pods", "poddisruptionbudgets"]),
        (one, &["nodes", "pods", "poddisruptionbudgets"]),
        (one, &["nodes", "statefulsets"]),
        (one, &[]),
    ] {
        world.restarts_at(moment, resources, Reach::Lists).await?;
        assert_eq!(world.identities().await?, expected, "{moment:?} {resources:?}");
        assert_eq!(generation().await, first, "{moment:?} {resources:?}: the number of pods");
        world.thaws().await;
        assert_eq!(world.identities().await?, expected, "{moment:?} {resources:?}, thawed");
        assert_eq!(generation().await, first, "{moment:?} {resources:?}, thawed");
    }
    ready(&world.sandbox).await;
    assert!(!world.deletions().is_empty(), "two members have no budget");
    world.deletions_are_exact();
    Ok(())
}

/// What there is of the Redis, but for identities and what is made by chance.
async fn shape(world: &World) -> Result<Value, Failed> {
    let kinds = "statefulsets,configmaps,serviceaccounts,poddisruptionbudgets";
    let list = read(&world.sandbox, &["-n", "tf", kinds]).await?;
    let all = list["items"].as_array().into_iter().flatten();
    let ours = all.filter(|one| one["metadata"]["ownerReferences"][0]["name"] == "redis1");
    let mut shapes: Vec<Value> = ours
        .map(|one| {
            let mut spec = one["spec"].clone();
            // A digest of certificates is among them.
            if let Some(template) = spec.pointer_mut("/template/metadata") {
                template["annotations"] = Value::Null;
            }
            let metadata = &one["metadata"];
            json!([one["kind"], metadata["name"], metadata["labels"], spec, one["data"]])
        })
        .collect();
    shapes.sort_by_key(Value::to_string);
    Ok(shapes.into())
}

fn port(number: u16) -> String {
    json!({"spec": {"serviceConfiguration": {"redisPort": number}}}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_changed_before_it_was_seen_becomes_the_same() -> Outcome {
    let world = World::start().await?;
    let sandbox = &world.sandbox;
    let patch = async |number| {
        change(sandbox, &["patch", "--type=merge", "-p", &port(number)], REDIS, &[]).await
    };
    let withheld = world.proxy.withhold(|object| object["kind"] == "Redis");
    send(sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
    patch(7000).await?;
    world.proxy.quiet_for(QUIET).await;
    assert!(get(sandbox, STATEFUL_SET).await.is_null(), "it has not seen it");
    world.proxy.deliver(withheld);
    world.has_pods(3).await;
    let unseen = shape(&world).await?;

    change(sandbox, &["delete"], REDIS, &[]).await?;
    eventually("it is gone", async || get(sandbox, STATEFUL_SET).await.is_null()).await;
    eventually("and its pods", async || world.pods().await.is_ok_and(|pods| pods == 0)).await;
    send(sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
    world.has_pods(3).await;
    let first = shape(&world).await?;
    patch(7000).await?;
    world.has_pods(3).await;
    let slowly = shape(&world).await?;
    assert_ne!(first, slowly, "the change changes something");
    assert_eq!(unseen, slowly);
    Ok(())
}

/// All that the operator made for objects, whichever.
async fn owned(world: &World) -> Result<Vec<String>, Failed> {
    let all = world.identities().await?.into_iter();
    Ok(all.filter(|(_, (_, owner))| !owner.is_empty()).map(|(name, _)| name).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_what_was_deleted_while_it_was_being_made_nothing_stays() -> Outcome {
    let world = World::start().await?;
    let sandbox = &world.sandbox;
    for resource in ["serviceaccounts", "secrets", "statefulsets"] {
        let written = world.proxy.writes().len();
        let held = world.proxy.disturb(Which::writes().of(resource), Fault::Hold);
        send(sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
        let uid = get(sandbox, REDIS).await["metadata"]["uid"].clone();
        held.happened(1).await;
        change(sandbox, &["delete"], REDIS, &[]).await?;
        held.end();
        let is_answered = async || {
            let writes = world.proxy.writes();
            let mut late = writes.iter().skip(written);
            late.all(|write| write.status.is_some())
        };
        eventually("what was held is written", is_answered).await;
        world.proxy.quiet_for(QUIET).await;
        let made = async || owned(&world).await;
        eventually("nothing is left", async || made().await.is_ok_and(|all| all.is_empty())).await;
        let writes = world.proxy.writes();
        let of_it = |write: &&Write| write.path.contains(&format!("/{resource}/redis1-"));
        let late: Vec<_> = writes.iter().skip(written).filter(of_it).collect();
        assert!(!late.is_empty(), "{resource}");
        for write in writes.iter().skip(written).filter(|write| write.path.contains("/redis1-")) {
            assert_eq!(write.body()["metadata"]["ownerReferences"][0]["uid"], uid, "{write:?}");
        }
    }

    // It is made again meanwhile.
    let held = world.proxy.disturb(Which::writes().of("statefulsets"), Fault::Hold);
    send(sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
    held.happened(1).await;
    change(sandbox, &["delete"], REDIS, &[]).await?;
    send(sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
    held.end();
    world.has_pods(3).await;
    let uid = get(sandbox, REDIS).await["metadata"]["uid"].clone();
    let is_its = async || {
        let all = world.identities().await.unwrap_or_default();
        let sets = ["StatefulSet", "ConfigMap redis1", "ServiceAccount redis1", "Secret redis1"];
        sets.iter().all(|kind| {
            let mut of_kind = all.iter().filter(|(name, _)| name.starts_with(kind));
            of_kind.clone().count() > 0 && of_kind.all(|(_, (_, owner))| uid == *owner)
        })
    };
    eventually("all is of the second", is_its).await;
    world.deletions_are_exact();
    Ok(())
}

const ZOOKEEPER: [&str; 2] = ["zookeepers.tf.tungsten.io", "zookeeper1"];
const ENSEMBLE: [&str; 2] = ["statefulset", "zookeeper1-zookeeper-statefulset"];

async fn members(sandbox: &Sandbox, number: usize) {
    let is_so = async || {
        let (zookeeper, set) = (get(sandbox, ZOOKEEPER).await, get(sandbox, ENSEMBLE).await);
        let all = zookeeper["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let record = set["metadata"]["annotations"]["opensdn.io/ensemble"].as_str();
        let record: Value = serde_json::from_str(record.unwrap_or_default()).unwrap_or_default();
        all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
            && set["spec"]["replicas"] == number
            && record["members"] == number
    };
    eventually(&format!("ZooKeeper is Ready with {number} members"), is_so).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_were_not_seen_to_come_leave_before_their_pods_go() -> Outcome {
    let world = World::start().await?;
    let sandbox = &world.sandbox;
    world.control_plane(&["node-0"]).await?;
    let container = json!({"name": "zookeeper", "image": "registry.example.com/zookeeper:R24.1"});
    let zookeeper = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "zookeeper1", "namespace": "tf"},
        "spec": {"serviceConfiguration": {"containers": [container]}}});
    send(sandbox, &["create"], &zookeeper).await?.success();
    members(sandbox, 1).await;
    world.proxy.quiet_for(QUIET).await;
    let generation = async || get(sandbox, ENSEMBLE).await["metadata"]["generation"].as_i64();
    let first = generation().await.unwrap_or_default();

    // Three are wanted for a moment that it does not see.
    world.proxy.freeze(&["nodes"], Reach::Watches).await?;
    world.control_plane(&["node-0", "node-1", "node-2"]).await?;
    world.control_plane(&["node-0", "node-1"]).await?;
    world.proxy.thaw(Thaw::Expire);
    members(sandbox, 2).await;
    assert_eq!(generation().await, Some(first + 1), "there were never three");

    let two = world.proxy.moment().await?;
    world.control_plane(&["node-0", "node-1", "node-2"]).await?;
    members(sandbox, 3).await;
    world.proxy.quiet_for(QUIET).await;
    let three = generation().await;
    // It starts with what was before the third came, while one is wanted.
    world.operator.kill(0);
    world.control_plane(&["node-0"]).await?;
    world.restarts_at(two, &["statefulsets", "pods"], Reach::Lists).await?;
    assert_eq!(generation().await, three, "a pod went whose member had not left");
    world.thaws().await;
    members(sandbox, 1).await;
    world.deletions_are_exact();
    Ok(())
}
