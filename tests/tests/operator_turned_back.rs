//! Services that count their members, on a real control plane with simulated nodes, while members come or go and the user wants
//! them as before: turned back in the middle, with the operator killed there or not, all ends as if it had been wanted all the
//! time. And one whose member stays away does not grow, and says which; what else the Manager has does.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::{BTreeMap, BTreeSet};

use opensdn_testing::eventually::{eventually, eventually_within};
use opensdn_testing::fault_proxy::{Disturbance, Fault, FaultProxy, Which};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{LABEL, get};
use crate::operator_upgrade::{MANAGER, WHOLE, manager};

/// By word and name.
const ENSEMBLES: [(&str, &str); 3] =
    [("zookeeper", "zookeeper1"), ("rabbitmq", "rabbitmq1"), ("cassandra", "configdb1")];
const NODES: [&str; 5] = ["node-0", "node-1", "node-2", "node-3", "node-4"];

struct World {
    sandbox: Sandbox,
    proxy: FaultProxy,
    operator: Operator,
}

fn set_of((word, name): (&str, &str)) -> String {
    format!("{name}-{word}-statefulset")
}

impl World {
    /// Five nodes, of which three are of the control plane, and a Manager that is Ready on these.
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().simulated_nodes(5).with_crds().await?;
        kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
        let proxy = FaultProxy::start(sandbox.client()?, []).await?;
        let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
        let operator = Operator::start_with(&sandbox, &kubeconfig, "tf")?;
        let world = Self { sandbox, proxy, operator };
        world.label(&NODES[..3], true).await?;
        let kinds = ["Zookeeper", "Rabbitmq", "Cassandra", "Redis"];
        send(&world.sandbox, &["create"], &manager(&kinds)).await?.success();
        world.ends_on(&NODES[..3], "at first").await;
        Ok(world)
    }

    /// Whether those nodes are of the control plane.
    async fn label(&self, nodes: &[&str], is: bool) -> Outcome {
        let without = LABEL.replace('=', "-");
        let label = if is { LABEL } else { &without };
        kubectl(&self.sandbox, &[&["label", "nodes"], nodes, &[label]].concat()).await?.success();
        Ok(())
    }

    async fn pods(&self) -> Vec<Value> {
        let pods = read(&self.sandbox, &["-n", "tf", "pods"]).await.unwrap_or_default();
        pods["items"].as_array().cloned().unwrap_or_default()
    }

    /// The UIDs of pods, by service and node.
    async fn homes(&self) -> BTreeMap<(String, String), String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pods = self.pods().await;
        let home = |pod: &Value| {
            let service = text(&pod["metadata"]["labels"]["tf_manager"]);
            ((service, text(&pod["spec"]["nodeName"])), text(&pod["metadata"]["uid"]))
        };
        pods.iter().map(home).collect()
    }

    /// What is on record of the members of a service.
    async fn record(&self, ensemble: (&str, &str)) -> Value {
        let set = get(&self.sandbox, ["statefulset", &set_of(ensemble)]).await;
        let text = set["metadata"]["annotations"]["opensdn.io/ensemble"].as_str();
        let record: Value = serde_json::from_str(text.unwrap_or_default()).unwrap_or_default();
        json!({"record": record, "replicas": set["spec"]["replicas"]})
    }

    /// As many members, with a number each, as there are pods, one on each of these nodes.
    async fn has_members(&self, ensemble: (&str, &str), nodes: &[&str]) -> bool {
        let seen = self.record(ensemble).await;
        let ids = seen["record"]["ids"].as_object().cloned().unwrap_or_default();
        let addresses = nodes.iter().filter_map(|node| {
            let number: u8 = node.strip_prefix("node-")?.parse().ok()?;
            Some(format!("10.91.0.{}", number + 1))
        });
        let numbers: BTreeSet<String> =
            addresses.filter_map(|address| Some(ids.get(&address)?.to_string())).collect();
        seen["replicas"] == nodes.len()
            && seen["record"]["members"] == nodes.len()
            && seen["record"]["replicas"] == nodes.len()
            && numbers.len() == nodes.len()
    }

    async fn row(&self, name: &str) -> Value {
        let rows = get(&self.sandbox, MANAGER).await["status"]["services"].clone();
        let row = rows.as_array().into_iter().flatten().find(|row| row["name"] == name);
        row.cloned().unwrap_or_default()
    }

    /// Ready, with a pod of each service on each of these nodes and on no other, all of them members.
    async fn ends_on(&self, nodes: &[&str], when: &str) {
        let wanted: BTreeSet<&str> = nodes.iter().copied().collect();
        let is_so = async || {
            for ensemble in ENSEMBLES {
                if !self.has_members(ensemble, nodes).await {
                    return false;
                }
            }
            let (pods, homes) = (self.pods().await.len(), self.homes().await);
            let places: BTreeSet<&str> = homes.keys().map(|(_, node)| node.as_str()).collect();
            let number = 4 * nodes.len();
            let manager = get(&self.sandbox, MANAGER).await["status"]["conditions"].to_string();
            pods == number
                && homes.len() == number
                && places == wanted
                && manager.contains("ServicesReady")
        };
        eventually_within(WHOLE, &format!("all is well on {nodes:?} {when}"), is_so).await;
    }

    /// From the second write of each service's StatefulSet on: a member has come, or gone, and another one is next.
    fn hold_in_the_middle(&self) -> Vec<Disturbance> {
        let of = |ensemble| {
            let set = set_of(ensemble);
            let which = Which::writes().of("statefulsets").named(&set).after(1).always();
            self.proxy.disturb(which, Fault::Hold)
        };
        ENSEMBLES.into_iter().map(of).collect()
    }

    /// Those nodes come or go, until in the middle of that it is to be as before.
    async fn turned_back(&self, nodes: &[&str], is_growth: bool, is_killed: bool) -> Outcome {
        let held = self.hold_in_the_middle();
        self.label(nodes, is_growth).await?;
        for one in &held {
            one.happened(1).await;
        }
        self.label(nodes, !is_growth).await?;
        if is_killed {
            self.operator.kill(0);
        }
        held.iter().for_each(Disturbance::end);
        if is_killed {
            self.operator.start(0)?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_come_or_go_and_are_wanted_as_before_end_so_also_when_the_operator_is_killed()
-> Outcome {
    let world = World::start().await?;
    let (three, more) = (&NODES[..3], &NODES[3..]);
    let first = world.homes().await;
    for is_killed in [false, true] {
        world.turned_back(more, true, is_killed).await?;
        world.ends_on(three, &format!("after a growth, killed: {is_killed}")).await;
        assert_eq!(world.homes().await, first, "those that were to stay, killed: {is_killed}");
    }
    one_that_stays_away_holds_up_its_own_service_alone(&world).await?;

    world.label(&NODES[4..], true).await?;
    world.ends_on(&NODES, "with all").await;
    // The first of them leads.
    for (gone, is_killed) in [(["node-3", "node-4"], true), (["node-0", "node-3"], false)] {
        world.turned_back(&gone, false, is_killed).await?;
        world.ends_on(&NODES, &format!("after {gone:?} were to go, killed: {is_killed}")).await;
    }
    // And then they do go.
    world.label(&["node-0", "node-3"], false).await?;
    world.ends_on(&["node-1", "node-2", "node-4"], "in the end").await;
    Ok(())
}

/// Whether the pod is ready, as its kubelet says.
async fn say_ready(world: &World, pod: &str, is_ready: bool) -> Outcome {
    let ready = json!([{"type": "Ready", "status": if is_ready { "True" } else { "False" }}]);
    let patch = json!({"status": {"conditions": ready}}).to_string();
    let verb = ["patch", "pod", "-n", "tf", pod, "--subresource=status", "-p", &patch];
    kubectl(&world.sandbox, &verb).await?.success();
    Ok(())
}

/// A database takes what a new member shall have from all others, of which one is away.
async fn one_that_stays_away_holds_up_its_own_service_alone(world: &World) -> Outcome {
    const CASSANDRA: (&str, &str) = ENSEMBLES[2];
    let pods = world.pods().await;
    let is_it = |pod: &&Value| {
        pod["metadata"]["labels"]["cassandra"] == CASSANDRA.1 && pod["spec"]["nodeName"] == NODES[0]
    };
    let pod = pods.iter().find(is_it).ok_or("no pod of Cassandra on the first node")?;
    let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
    say_ready(world, pod, false).await?;
    world.label(&NODES[3..4], true).await?;
    let is_said = async || {
        let row = world.row(CASSANDRA.1).await;
        let message = row["message"].as_str().unwrap_or_default();
        row["ready"] == false && message.contains("waits for the member on 10.91.0.1 to serve")
    };
    eventually("it says which member it waits for", is_said).await;
    for other in ["zookeeper1", "rabbitmq1", "redis1"] {
        let has_grown = async || {
            let row = world.row(other).await;
            row["ready"] == true && row["nodes"].as_array().is_some_and(|all| all.len() == 4)
        };
        eventually(&format!("{other} has grown"), has_grown).await;
    }
    let waits = world.record(CASSANDRA).await;
    assert_eq!((&waits["replicas"], &waits["record"]["members"]), (&json!(3), &json!(3)));
    say_ready(world, pod, true).await?;
    world.ends_on(&NODES[..4], "with the fourth").await;
    Ok(())
}
