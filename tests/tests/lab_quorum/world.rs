//! A service of a Manager on real nodes, and a client that writes to it. Several share a sandbox (`lab_upgrade`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opensdn_testing::kubectl::{Said, kubectl, read, send};
use opensdn_testing::lab_client::LabClient;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::sandbox::lab::{Lab, TOOLS_IMAGE};
use opensdn_testing::{Failed, Outcome, lab_image, lab_operator};
use serde_json::{Map, Value, json};

/// Members come one after the other, each takes up to two minutes on two busy cores, and a lost node is noticed after
/// most of a minute.
const LONGEST: Duration = Duration::from_secs(600);
const LABEL: &str = "node-role.kubernetes.io/control-plane";
const MANAGER: [&str; 3] = ["managers.tf.tungsten.io", "-n=tf", "cluster1"];
/// So many writes show that the service takes them.
const SOME: usize = 20;

/// What differs between the services.
#[derive(Clone, Copy)]
pub(crate) struct Service {
    /// The folder of its image in `tests/images`.
    pub(crate) image: &'static str,
    /// Its container, and the word of it in labels and names.
    pub(crate) word: &'static str,
    /// Its kind, as kubectl takes it.
    pub(crate) kind: &'static str,
    /// What a Manager calls it, and whether that is a list.
    pub(crate) field: (&'static str, bool),
    /// The name of the object.
    pub(crate) name: &'static str,
    /// Where a node has what it stores.
    pub(crate) data: &'static str,
    /// The script of its client.
    pub(crate) client: &'static str,
    /// The containers beside it, of OpenSDN's own images, and the ports on which they would listen.
    pub(crate) beside: &'static [(&'static str, u16)],
}

/// Nodes, the operator, and the service.
pub(crate) struct World {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) service: Service,
    pub(crate) client: LabClient,
}

impl Service {
    /// As a Manager has it. What the settings name of containers comes first.
    pub(crate) fn item(&self, image: &str, mut settings: Value) -> (&'static str, Value) {
        let mut containers = settings["containers"].as_array().cloned().unwrap_or_default();
        containers.push(json!({"name": self.word, "image": image}));
        containers.extend(self.beside.iter().map(|(name, port)| stand_in(name, *port)));
        settings["containers"] = json!(containers);
        let object =
            json!({"metadata": {"name": self.name}, "spec": {"serviceConfiguration": settings}});
        let (field, is_list) = self.field;
        (field, if is_list { json!([object]) } else { object })
    }
}

/// Creates the Manager with these services.
pub(crate) async fn create_manager(
    sandbox: &Sandbox,
    services: impl IntoIterator<Item = (&'static str, Value)>,
) -> Outcome {
    let services: Map<String, Value> =
        services.into_iter().map(|(field, item)| (field.to_owned(), item)).collect();
    let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster1", "namespace": "tf"}, "spec": {"services": services}});
    send(sandbox, &["create"], &manager).await?.success();
    Ok(())
}

impl World {
    /// With so many nodes, and a service that is Ready on the first of them. The client does not write yet.
    pub(super) async fn start(
        service: Service,
        nodes: u8,
        members: usize,
        settings: Value,
    ) -> Result<Self, Failed> {
        let sandbox = Arc::new(Sandbox::with_real_nodes(nodes).await?);
        lab_operator::install_alone(&sandbox).await?;
        let world = Self::of(service, &sandbox)?;
        let image = lab_image::load(world.lab()?, service.image).await?;
        let first: Vec<String> = (1..=members).map(|number| format!("node-{number}")).collect();
        let first: Vec<&str> = first.iter().map(String::as_str).collect();
        for node in &first {
            world.label(node).await?;
        }
        create_manager(&world.sandbox, [service.item(&image, settings)]).await?;
        world.ready_on(&first).await?;
        Ok(world)
    }

    /// The service in a sandbox with others.
    pub(crate) fn of(service: Service, sandbox: &Arc<Sandbox>) -> Result<Self, Failed> {
        let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
        let hosts = lab.nodes().map(|node| node.plan().address.to_string()).collect();
        let client = LabClient::new(service.client, hosts)?;
        Ok(Self { sandbox: Arc::clone(sandbox), service, client })
    }

    pub(crate) fn lab(&self) -> Result<&Lab, Failed> {
        self.sandbox.lab().ok_or_else(|| "the sandbox has no real nodes".into())
    }

    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Result<Said, Failed> {
        Ok(kubectl(&self.sandbox, arguments).await?)
    }

    /// Members are to run there.
    pub(crate) async fn label(&self, node: &str) -> Outcome {
        let label = format!("{LABEL}=");
        self.kubectl(&["label", "--overwrite", "node", node, &label]).await?.success();
        Ok(())
    }

    /// None is to run there any more.
    pub(super) async fn unlabel(&self, node: &str) -> Outcome {
        let label = format!("{LABEL}-");
        self.kubectl(&["label", "node", node, &label]).await?.success();
        Ok(())
    }

    pub(crate) fn address_of(&self, node: &str) -> Result<String, Failed> {
        Ok(self.lab()?.node(node)?.plan().address.to_string())
    }

    /// What its StatefulSet has in a place.
    pub(super) async fn stateful_set(&self, path: &str) -> String {
        let name = format!("{}-{}-statefulset", self.service.name, self.service.word);
        let path = format!("-o=jsonpath={path}");
        let said = self.kubectl(&["get", "statefulset", "-n=tf", &name, &path]).await;
        said.map(|said| said.out).unwrap_or_default()
    }

    /// How many of its pods may be evicted now.
    pub(super) async fn budget(&self) -> String {
        let path = "-o=jsonpath={.items[*].status.disruptionsAllowed}";
        let said = self.kubectl(&["get", "pdb", "-n=tf", path]).await;
        said.map(|said| said.out).unwrap_or_default()
    }

    pub(super) async fn ready_pods(&self) -> usize {
        let pods = self.pods().await;
        pods.iter().filter(|pod| entry(pod, "Ready")[0] == "True").count()
    }

    /// What containers wait for.
    pub(super) async fn trouble(&self) -> String {
        let path = "-o=jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}";
        let said = self.kubectl(&["get", "pods", "-n=tf", &self.selector(), path]).await;
        said.map(|said| said.out).unwrap_or_default()
    }

    pub(super) async fn image(&self) -> String {
        self.stateful_set("{.spec.template.spec.containers[0].image}").await
    }

    pub(super) async fn set_image(&self, image: &str) -> Outcome {
        self.set(&json!({"containers": [{"name": self.service.word, "image": image}]})).await
    }

    /// Changes settings of the service in the Manager.
    pub(super) async fn set(&self, settings: &Value) -> Outcome {
        let (field, _) = self.service.field;
        let patch =
            json!({"spec": {"services": {(field): {"spec": {"serviceConfiguration": settings}}}}});
        let [kind, namespace, name] = MANAGER;
        let patch = ["patch", kind, namespace, name, "--type=merge", "-p", &patch.to_string()];
        self.kubectl(&patch).await?.success();
        Ok(())
    }

    pub(super) fn selector(&self) -> String {
        format!("--selector={}={}", self.service.word, self.service.name)
    }

    pub(super) async fn pods(&self) -> Vec<Value> {
        let pods = read(&self.sandbox, &["pods", "-n=tf", &self.selector()]).await;
        pods.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default()
    }

    /// The pod on that node.
    pub(super) async fn pod_on(&self, node: &str) -> Result<String, Failed> {
        let pods = self.pods().await;
        let pod = pods.iter().find(|pod| pod["spec"]["nodeName"] == node);
        let name = pod.and_then(|pod| pod["metadata"]["name"].as_str());
        name.map(str::to_owned).ok_or_else(|| format!("there is no pod on {node}").into())
    }

    pub(super) async fn uids(&self) -> BTreeSet<String> {
        let text = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.pods().await.iter().map(text).collect()
    }

    /// Status, reason and message of a condition of the service.
    pub(super) async fn condition(&self, type_: &str) -> [String; 3] {
        let object = read(&self.sandbox, &[self.service.kind, "-n=tf", self.service.name]).await;
        entry(&object.unwrap_or_default(), type_)
    }

    /// Until that is so, or an error with all there is to see.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) -> Outcome {
        let begun = Instant::now();
        while !is_so().await {
            if begun.elapsed() > LONGEST {
                let seen = self.seen().await;
                return Err(format!("{what}: not in {} s\n{seen}", LONGEST.as_secs()).into());
            }
            // What happens takes seconds.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        eprintln!("{what}: after {} s", begun.elapsed().as_secs());
        Ok(())
    }

    /// Until the Manager is Ready, with a member on each of these nodes and on no others.
    pub(crate) async fn ready_on(&self, nodes: &[&str]) -> Outcome {
        let wanted: BTreeSet<&str> = nodes.iter().copied().collect();
        let is_so = async || {
            let pods = self.pods().await;
            let places: BTreeSet<&str> =
                pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
            let manager = read(&self.sandbox, &MANAGER).await.unwrap_or_default();
            pods.len() == nodes.len()
                && places == wanted
                && entry(&manager, "Ready")[0] == "True"
                && self.condition("Ready").await[0] == "True"
                && pods.iter().all(|pod| entry(pod, "Ready")[0] == "True")
        };
        self.until(&format!("{} is Ready on {nodes:?}", self.service.name), is_so).await
    }

    /// Until the service says that it is not Ready, for that reason.
    pub(super) async fn says(&self, reason: &str, part: &str) -> Outcome {
        let is_so = async || {
            let [status, said, message] = self.condition("Ready").await;
            status == "False" && said == reason && message.contains(part)
        };
        self.until(&format!("{} says {reason}: {part}", self.service.name), is_so).await
    }

    /// Until more has been acknowledged than now.
    pub(crate) async fn writes_go_on(&self) -> Outcome {
        let before = self.client.acknowledged().len();
        let is_so = async || self.client.acknowledged().len() >= before + SOME;
        let more = self.until("writes are acknowledged", is_so).await;
        more.map_err(|error| format!("{error}\nthe client: {}", self.client.complaints()).into())
    }

    /// Gives the client what stands under a key of a Secret or ConfigMap, under that name.
    pub(crate) async fn give(&self, name: &str, kind: &str, object: &str, key: &str) -> Outcome {
        let decode = if kind == "secret" { " | base64decode" } else { "" };
        let template = format!("-o=go-template={{{{index .data \"{key}\"{decode}}}}}");
        let said = self.kubectl(&["get", kind, "-n=tf", object, &template]).await?;
        self.client.give(name, said.success().as_bytes())
    }

    /// Those that were acknowledged and are not there.
    pub(super) fn lost(&self, numbers: &Value) -> Vec<u64> {
        let stored: BTreeSet<u64> =
            numbers.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        self.client.acknowledged().difference(&stored).copied().collect()
    }

    pub(crate) async fn seen(&self) -> String {
        let selector = self.selector();
        let all: [&[&str]; 5] = [
            &["get", "pods", "-A", "-o=wide"],
            &["get", self.service.kind, "-n=tf", self.service.name, "-o=yaml"],
            &["describe", "pods", "-n=tf", &selector],
            &["logs", "-n=tf", &selector, "--prefix", "--tail=60"],
            &[
                "logs",
                "-n=opensdn-operator",
                "-l=app.kubernetes.io/name=opensdn-operator",
                "--tail=60",
            ],
        ];
        let mut seen = String::new();
        for arguments in all {
            let said = self.kubectl(arguments).await;
            let said = said.map_or_else(|error| error.to_string(), |said| said.out + &said.err);
            seen.push_str(&format!("--- kubectl {}\n{said}\n", arguments.join(" ")));
        }
        seen
    }
}

/// A container that does nothing but listen.
fn stand_in(name: &str, port: u16) -> Value {
    let listen = format!("trap 'exit 0' TERM; httpd -p {port}; while :; do sleep 1; done");
    json!({"name": name, "image": TOOLS_IMAGE, "command": ["sh", "-c", listen]})
}

/// Status, reason and message of a condition.
pub(crate) fn entry(object: &Value, type_: &str) -> [String; 3] {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
    ["status", "reason", "message"].map(|key| one[key].as_str().unwrap_or_default().to_owned())
}
