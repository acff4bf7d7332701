//! A Manager with all services that keep data, each on three nodes with a client that writes to it, and upgrades of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use opensdn_testing::eventually::eventually_within;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::sandbox::lab::{Lab, TOOLS_IMAGE};
use opensdn_testing::{Failed, Outcome, lab_image, lab_operator};
use serde_json::{Value, json};

use super::redis;
use super::watch::{Watch, has_version};
use crate::lab_quorum::world::{Service, World, create_manager, entry};
use crate::lab_quorum::{cassandra, rabbitmq, stories, zookeeper};

pub(super) const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];
/// The images that run first.
pub(super) const FIRST: &str = "R24.1";
/// The same under another tag.
pub(super) const GOOD: &str = "R24.1.1";
/// One in which no service starts.
pub(super) const BAD: &str = "R24.1.2";
/// One that no node has.
pub(super) const MISSING: &str = "R24.1.3";
/// The same as the first, once more.
pub(super) const AGAIN: &str = "R24.1.5";
/// The same, for an upgrade that finds no room.
pub(super) const FULL: &str = "R24.1.4";
/// In that time an operator answers a wish, on two busy cores.
const TAKEN_UP: Duration = Duration::from_secs(60);
/// By what steps know them.
pub(super) const IDS: [&str; 4] =
    ["Zookeeper/zookeeper1", "Rabbitmq/rabbitmq1", "Cassandra/configdb1", "Redis/redis1"];
/// Where the operator has ZooKeeper keep its data on each node.
const DATA: &str = "/var/lib/contrail/zookeeper";
/// As a kubelet completes names without a host.
const REGISTRY: &str = "docker.io/library";
/// All members of four services, one after the other on two busy cores, with a node that is lost for minutes.
const LONGEST: Duration = Duration::from_secs(1200);
/// So much of what it says is shown.
const SHOWN: usize = 240;
const OVER: [&str; 4] = ["Succeeded", "RolledBack", "Refused", "Stopped"];

/// The nodes that are left when the third has gone for good, and another has come in its place.
pub(super) const LEFT: [&str; 3] = ["node-1", "node-2", "node-4"];

/// Each service with its client.
pub(super) struct Services {
    zookeeper: World,
    rabbitmq: World,
    cassandra: World,
    redis: World,
}

impl Services {
    /// All are Ready on the first three of so many nodes, and no client writes yet.
    pub(super) async fn start(nodes: u8) -> Result<Self, Failed> {
        let sandbox = Arc::new(Sandbox::with_real_nodes(nodes).await?);
        lab_operator::install(&sandbox).await?;
        let of = |service| World::of(service, &sandbox);
        let services = Self {
            zookeeper: of(zookeeper::ZOOKEEPER)?,
            rabbitmq: of(rabbitmq::RABBITMQ)?,
            cassandra: of(cassandra::CASSANDRA)?,
            redis: of(redis::REDIS)?,
        };
        services.load_images().await?;
        for node in NODES {
            services.zookeeper.label(node).await?;
        }
        let items = services.all().map(|world| {
            let image = image(&world.service, FIRST);
            let settings = match world.service.word {
                "rabbitmq" => rabbitmq::settings(),
                "cassandra" => cassandra::settings(),
                "redis" => redis::settings(&image),
                _ => json!({}),
            };
            world.service.item(&image, settings)
        });
        create_manager(&sandbox, items).await?;
        services.are_ready().await?;
        Ok(services)
    }

    fn all(&self) -> [&World; 4] {
        [&self.zookeeper, &self.rabbitmq, &self.cassandra, &self.redis]
    }

    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.zookeeper.sandbox
    }

    pub(super) fn lab(&self) -> Result<&Lab, Failed> {
        self.zookeeper.lab()
    }

    async fn load_images(&self) -> Outcome {
        let lab = self.lab()?;
        for world in self.all() {
            let service = &world.service;
            let loaded = match service.word {
                "redis" => redis::IMAGE.to_owned(),
                _ => lab_image::load(lab, service.image).await?,
            };
            let loaded = format!("{REGISTRY}/{loaded}");
            for (source, version) in [
                (&*loaded, FIRST),
                (&*loaded, GOOD),
                (&*loaded, AGAIN),
                (&*loaded, FULL),
                (TOOLS_IMAGE, BAD),
            ] {
                let name = format!("{REGISTRY}/{}", image(service, version));
                lab.tag_image(source, &name).await?;
            }
        }
        Ok(())
    }

    /// Has all clients write.
    pub(super) async fn write(&mut self) -> Outcome {
        rabbitmq::give(&self.rabbitmq).await?;
        cassandra::give(&self.cassandra).await?;
        redis::give(&self.redis).await?;
        for world in [&mut self.zookeeper, &mut self.rabbitmq, &mut self.cassandra, &mut self.redis]
        {
            stories::write(world).await?;
        }
        Ok(())
    }

    async fn are_ready(&self) -> Outcome {
        self.are_ready_on(&NODES).await
    }

    /// All are Ready, on these nodes and no others.
    pub(super) async fn are_ready_on(&self, nodes: &[&str]) -> Outcome {
        for world in self.all() {
            world.ready_on(nodes).await?;
        }
        Ok(())
    }

    /// Has no room where ZooKeeper keeps its data, for each member that is started from now on.
    pub(super) fn fill_volumes(&self) -> Outcome {
        for node in NODES {
            let fill = format!(
                "mount -t tmpfs -o size=64k tmpfs {DATA}\ndd if=/dev/zero of={DATA}/of-others bs=4k 2>/dev/null || true\n"
            );
            self.lab()?.run_on(node, "fill a volume", &fill)?;
        }
        Ok(())
    }

    /// What was there before is there again.
    pub(super) fn free_volumes(&self) -> Outcome {
        for node in NODES {
            self.lab()?.run_on(node, "free a volume", &format!("umount --lazy {DATA}\n"))?;
        }
        Ok(())
    }

    /// Has a node in the place of one that is gone for good.
    pub(super) async fn replace_node(&self, gone: &str, next: &str) -> Outcome {
        kubectl(self.sandbox(), &["delete", "node", gone]).await?.success();
        self.zookeeper.label(next).await
    }

    /// Has all certificates issued again, each in its turn.
    pub(super) async fn renew_certificates(&self) -> Outcome {
        let asked = time::OffsetDateTime::now_utc();
        let asked = asked.format(&time::format_description::well_known::Rfc3339)?;
        let annotation = format!("{}={asked}", opensdn_deploy::names::operator::RENEW);
        for secret in self.certificates().await?.keys() {
            kubectl(self.sandbox(), &["annotate", "-n=tf", "secret", secret, &annotation])
                .await?
                .success();
        }
        Ok(())
    }

    /// The Secrets with the certificates of services, and what they hold.
    pub(super) async fn certificates(&self) -> Result<BTreeMap<String, Value>, Failed> {
        let all = read(self.sandbox(), &["secrets", "-n=tf"]).await?;
        let all = all["items"].as_array().into_iter().flatten();
        let named = all.filter_map(|one| Some((one["metadata"]["name"].as_str()?, &one["data"])));
        let of_services = named.filter(|(name, _)| name.ends_with("-secret-certificates"));
        Ok(of_services.map(|(name, data)| (name.to_owned(), data.clone())).collect())
    }

    /// Until each client has written more.
    pub(super) async fn are_written(&self) -> Outcome {
        for world in self.all() {
            world.writes_go_on().await?;
        }
        Ok(())
    }

    /// How much each client has written.
    pub(super) fn written(&self) -> [usize; 4] {
        self.all().map(|world| world.client.acknowledged().len())
    }

    /// The longest that a client has waited since it had written that.
    pub(super) fn print_waits(&self, what: &str, written: &[usize; 4]) -> Duration {
        let waits = self.all().into_iter().zip(written).map(|(world, written)| {
            let wait = world.client.longest_wait(*written);
            eprintln!("{what}: a client of {} waited for {wait:?}", world.service.name);
            wait
        });
        waits.max().unwrap_or_default()
    }

    /// Makes an upgrade to a version.
    pub(super) async fn upgrade(&self, name: &str, version: &str, wave_timeout: &str) -> Outcome {
        self.upgrade_with(name, version, &json!({"waveTimeout": wave_timeout})).await
    }

    /// The same with these settings.
    pub(super) async fn upgrade_with(&self, name: &str, version: &str, more: &Value) -> Outcome {
        let mut spec = json!({"manager": "cluster1", "version": version, "soak": "5s"});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let upgrade = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": name, "namespace": "tf"}, "spec": spec});
        send(self.sandbox(), &["create"], &upgrade).await?.success();
        Ok(())
    }

    /// Has one that has stopped try again.
    pub(super) async fn try_again(&self, name: &str) -> Outcome {
        let patch = r#"{"spec":{"retries":1}}"#;
        let again = ["patch", "upgrade", "-n=tf", name, "--type=merge", "-p", patch];
        kubectl(self.sandbox(), &again).await?.success();
        // Until then it says that it has stopped.
        let is_taken_up = async || self.status(name).await["retries"] == 1;
        eventually_within(TAKEN_UP, "the operator tries again", is_taken_up).await;
        Ok(())
    }

    /// Its status; none where the API server is away.
    pub(super) async fn status(&self, name: &str) -> Value {
        let said = kubectl(self.sandbox(), &["get", "upgrade", "-n=tf", name, "-o=json"]).await;
        let said = said.ok().and_then(|said| serde_json::from_str::<Value>(&said.out).ok());
        said.unwrap_or_default()["status"].clone()
    }

    /// Until it has come there. What happens meanwhile is watched.
    pub(super) async fn until(
        &self,
        name: &str,
        phase: &str,
        watch: &mut Watch,
    ) -> Result<Value, Failed> {
        let is_there = |status: &Value, _: &Watch| status["phase"] == phase;
        self.watched(name, phase, watch, is_there).await
    }

    /// Until a pod has an image of its version.
    pub(super) async fn until_one_is_new(&self, name: &str, watch: &mut Watch) -> Outcome {
        let is_new = |_: &Value, watch: &Watch| watch.has_new();
        self.watched(name, "in the middle", watch, is_new).await.map(drop)
    }

    async fn watched(
        &self,
        name: &str,
        what: &str,
        watch: &mut Watch,
        is_so: impl Fn(&Value, &Watch) -> bool,
    ) -> Result<Value, Failed> {
        let started = Instant::now();
        let mut said = String::new();
        loop {
            self.look(watch).await;
            let status = self.status(name).await;
            let message = format!("{} {}", status["phase"], status["message"]);
            let message: String = message.chars().take(SHOWN).collect();
            if message != said {
                eprintln!("{name} at {} s: {message}", started.elapsed().as_secs());
                said = message;
            }
            if is_so(&status, watch) {
                eprintln!("the upgrade {name} is {what} after {} s", started.elapsed().as_secs());
                return Ok(status);
            }
            if OVER.iter().any(|phase| status["phase"] == *phase) || started.elapsed() > LONGEST {
                let seen = self.seen().await;
                return Err(format!("{name} is not {what}: {status:#}\n{seen}").into());
            }
            // A pod takes seconds.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// One that the API server does not answer shows nothing.
    async fn look(&self, watch: &mut Watch) {
        let Some(pods) = self.pods().await else { return };
        for world in self.all() {
            watch.look(&world.service, &members(&world.service, &pods));
        }
    }

    async fn pods(&self) -> Option<Vec<Value>> {
        let said = kubectl(self.sandbox(), &["get", "pods", "-n=tf", "-o=json"]).await.ok()?;
        let said: Value = serde_json::from_str(&said.out).ok()?;
        said["items"].as_array().cloned()
    }

    /// The UIDs of all members on other nodes.
    pub(super) async fn pods_beside(&self, node: &str) -> BTreeSet<String> {
        let pods = self.pods().await.unwrap_or_default();
        let members = self.all().into_iter().flat_map(|world| members(&world.service, &pods));
        let others = members.filter(|pod| pod["spec"]["nodeName"] != node);
        others.filter_map(|pod| pod["metadata"]["uid"].as_str().map(str::to_owned)).collect()
    }

    /// Members have their turns one after the other, every three minutes: some have had theirs. ZooKeeper and Cassandra, which
    /// read theirs when they start, have it when all members have been there for ten minutes.
    pub(super) async fn have_new_certificates(&self, before: &BTreeMap<String, Value>) -> Outcome {
        let now = self.certificates().await?;
        for name in ["rabbitmq1-secret-certificates", "redis1-secret-certificates"] {
            let (before, now) = (&before[name], &now[name]);
            let all = before.as_object().into_iter().flatten();
            let others = all.filter(|(key, value)| now[key.as_str()] != **value).count();
            assert!(others > 0, "{name} is as it was");
        }
        Ok(())
    }

    /// Until all have their members on these nodes, ready, whatever their images.
    pub(super) async fn members_are_on(&self, nodes: &[&str]) -> Outcome {
        let wanted: BTreeSet<&str> = nodes.iter().copied().collect();
        for world in self.all() {
            let are_there = async || {
                let pods = members(&world.service, &self.pods().await.unwrap_or_default());
                let ready = pods.iter().filter(|pod| entry(pod, "Ready")[0] == "True");
                let places = ready.filter_map(|pod| pod["spec"]["nodeName"].as_str());
                pods.len() == nodes.len() && places.collect::<BTreeSet<_>>() == wanted
            };
            let what = format!("{} has its members on {nodes:?}", world.service.name);
            world.until(&what, are_there).await?;
        }
        Ok(())
    }

    /// Until the node counts as lost.
    pub(super) async fn until_lost(&self, node: &str) -> Outcome {
        let is_lost = async || {
            let node = read(self.sandbox(), &["node", node]).await.unwrap_or_default();
            entry(&node, "Ready")[0] != "True"
        };
        self.zookeeper.until(&format!("{node} counts as lost"), is_lost).await
    }

    /// Until all members on other nodes are ready.
    pub(super) async fn until_others_are_ready(&self, node: &str) -> Outcome {
        for world in self.all() {
            let are_ready = async || {
                let pods = self.pods().await.unwrap_or_default();
                let others = members(&world.service, &pods).into_iter();
                let others = others.filter(|pod| pod["spec"]["nodeName"] != node);
                others.filter(|pod| entry(pod, "Ready")[0] == "True").count() == NODES.len() - 1
            };
            let what = format!("{} is ready on the other nodes", world.service.name);
            world.until(&what, are_ready).await?;
        }
        Ok(())
    }

    /// All are ready on these nodes, with images of that version.
    pub(super) async fn run_on(&self, nodes: &[&str], version: &str) -> Outcome {
        self.are_ready_on(nodes).await?;
        let pods = self.pods().await.ok_or("the API server does not answer")?;
        for world in self.all() {
            let members = members(&world.service, &pods);
            let are_such = members.iter().all(|pod| has_version(pod, version));
            assert!(are_such, "{} has not {version}: {members:#?}", world.service.name);
        }
        Ok(())
    }

    /// Every member on these nodes has what was acknowledged; and each service lists its members alone.
    pub(super) async fn have_all_that_was_acknowledged(mut self, nodes: &[&str]) -> Outcome {
        zookeeper::is_one_ensemble_with_all_that_was_acknowledged(&mut self.zookeeper, nodes)?;
        let rabbitmq = &mut self.rabbitmq;
        rabbitmq::is_one_cluster_with_all_that_was_confirmed(rabbitmq, nodes).await?;
        cassandra::is_one_ring_with_all_that_was_acknowledged(&mut self.cassandra, nodes)?;
        redis::has_what_was_acknowledged_last(&mut self.redis, nodes)
    }

    async fn seen(&self) -> String {
        let mut seen = String::new();
        for world in self.all() {
            seen.push_str(&world.seen().await);
        }
        seen
    }
}

/// Named as one of OpenSDN's own, so that an upgrade to a version changes it.
fn image(service: &Service, version: &str) -> String {
    format!("opensdn-tests-{}:{version}", service.image)
}

/// The members of a service among these pods.
fn members(service: &Service, pods: &[Value]) -> Vec<Value> {
    let is_kept = |pod: &Value| pod["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet";
    let is_member =
        |pod: &&Value| pod["metadata"]["labels"][service.word] == service.name && is_kept(pod);
    pods.iter().filter(is_member).cloned().collect()
}
