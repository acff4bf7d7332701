//! What the lab promises to its tests: a cluster of real nodes that works as any
//! does, and faults that do what they say and are undone. Its beginning and end are in
//! `lab_ends.rs`.

#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "JSON of a test, and the line says where"
)]

use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use kube::Client;
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{Said, kubectl, read};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::sandbox::lab::Lab;
use opensdn_testing::sandbox::lab::fault::{Daemon, Link, Party, Signal};
use opensdn_testing::{Failed, Outcome};

const WORKLOAD: &str = include_str!("lab/workload.yaml");

/// A lab with a web server on each node and a pod with a volume.
struct World {
    sandbox: Sandbox,
    client: Client,
    /// The web servers, that of `node-1` first.
    web: Vec<Web>,
}

struct Web {
    pod: String,
    address: Ipv4Addr,
}

impl World {
    async fn new() -> Result<Self, Failed> {
        let sandbox = Sandbox::with_real_nodes(3).await?;
        let client = sandbox.client()?;
        let applied = sandbox.kubectl_with_input(&["apply", "-f", "-"], WORKLOAD).await?;
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        let mut world = Self { sandbox, client, web: Vec::new() };
        world.wait_for("deployment/web", "jsonpath={.status.readyReplicas}=3").await?;
        world.wait_for("pod/store", "condition=Ready").await?;
        let pods = read(&world.sandbox, &["pods", "-l=app=web"]).await?;
        let mut web = Vec::new();
        for pod in pods["items"].as_array().ok_or("no pods")? {
            let node = pod["spec"]["nodeName"].as_str().ok_or("no node")?.to_owned();
            let name = pod["metadata"]["name"].as_str().ok_or("no name")?.to_owned();
            let address = pod["status"]["podIP"].as_str().ok_or("no address")?.parse()?;
            web.push((node, Web { pod: name, address }));
        }
        web.sort_by(|one, other| one.0.cmp(&other.0));
        let nodes: Vec<&str> = web.iter().map(|(node, _)| node.as_str()).collect();
        assert_eq!(nodes, ["node-1", "node-2", "node-3"], "one web server on each node");
        world.web = web.into_iter().map(|(_, web)| web).collect();
        Ok(world)
    }

    fn lab(&self) -> &Lab {
        self.sandbox.lab().expect("it has real nodes")
    }

    async fn wait_for(&self, object: &str, what: &str) -> Outcome {
        let what = format!("--for={what}");
        let said = kubectl(&self.sandbox, &["wait", object, &what, "--timeout=90s"]).await?;
        said.success();
        Ok(())
    }

    async fn exec(&self, pod: &str, command: &str) -> Result<Said, Failed> {
        Ok(kubectl(&self.sandbox, &["exec", pod, "--", "sh", "-c", command]).await?)
    }

    /// Whether the web server of one node hears that of another.
    async fn hears(&self, from: usize, to: usize) -> bool {
        let command = format!("fetch http://{}:8080/", self.web[to].address);
        let said = self.exec(&self.web[from].pod, &command).await;
        said.is_ok_and(|said| said.ok && said.out.trim() == self.web[to].pod)
    }

    /// What the API server hears from a pod.
    async fn api_server_hears(&self, pod: &str) -> bool {
        let path = format!("/api/v1/namespaces/default/pods/{pod}:8080/proxy/");
        let arguments = ["get", "--raw", &path, "--request-timeout=2s"];
        let said = kubectl(&self.sandbox, &arguments).await;
        said.is_ok_and(|said| said.ok && said.out.trim() == pod)
    }

    async fn node_is(&self, node: &str, ready: &str) -> bool {
        let path = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        let said = kubectl(&self.sandbox, &["get", "node", node, "-o", path]).await;
        said.is_ok_and(|said| said.out == ready)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_of_the_lab_works_as_any_does() -> Outcome {
    let world = World::new().await?;
    pods_reach_each_other_and_services_by_name(&world).await?;
    exec_and_logs_work(&world).await?;
    data_of_a_claim_survives_its_pod(&world).await?;
    nothing_leads_out(&world)?;
    image_is_loaded_into_every_node(&world).await?;
    node_comes_back_with_its_data(&world).await?;
    Ok(())
}

async fn pods_reach_each_other_and_services_by_name(world: &World) -> Outcome {
    for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 1)] {
        let what = format!("node {} hears {}", from + 1, to + 1);
        eventually(&what, || world.hears(from, to)).await;
    }
    let found = world.exec("store", "nslookup web.default.svc.cluster.local").await?;
    let service = read(&world.sandbox, &["service", "web"]).await?;
    let address = service["spec"]["clusterIP"].as_str().ok_or("no address")?.to_owned();
    assert!(found.success().contains(&format!("Address: {address}")), "{}", found.out);

    eventually("every web server answers for the service", || async {
        let ask = "for i in 1 2 3 4 5 6 7 8; do fetch http://web/; done";
        let said = world.exec("store", ask).await;
        said.is_ok_and(|said| world.web.iter().all(|web| said.out.contains(&web.pod)))
    })
    .await;
    Ok(())
}

async fn exec_and_logs_work(world: &World) -> Outcome {
    assert_eq!(world.exec("store", "hostname; exit 3").await?.out, "store\n");
    let logs = kubectl(&world.sandbox, &["logs", &world.web[0].pod]).await?;
    assert_eq!(logs.success(), "serving\n");
    Ok(())
}

async fn data_of_a_claim_survives_its_pod(world: &World) -> Outcome {
    world.exec("store", "echo kept >/data/file && sync").await?.success();
    let pod = read(&world.sandbox, &["pod", "store"]).await?;
    kubectl(&world.sandbox, &["delete", "pod", "store", "--now"]).await?.success();
    world.sandbox.kubectl_with_input(&["apply", "-f", "-"], WORKLOAD).await?;
    world.wait_for("pod/store", "condition=Ready").await?;
    assert_eq!(world.exec("store", "cat /data/file").await?.success(), "kept\n");
    let again = read(&world.sandbox, &["pod", "store"]).await?;
    assert_ne!(pod["metadata"]["uid"], again["metadata"]["uid"]);
    assert_eq!(pod["spec"]["nodeName"], again["spec"]["nodeName"], "where the volume is");
    Ok(())
}

/// Every network of the lab, its pods' too, by the routes that the kernel shows to a process
/// in it.
fn nothing_leads_out(world: &World) -> Outcome {
    let ours = fs::read_link("/proc/self/ns/net")?;
    let mut networks = std::collections::BTreeSet::new();
    for process in world.lab().all_processes() {
        let Ok(network) = fs::read_link(format!("/proc/{process}/ns/net")) else { continue };
        if network == ours || !networks.insert(network) {
            continue;
        }
        let routes = fs::read_to_string(format!("/proc/{process}/net/route"))?;
        for route in routes.lines().skip(1) {
            let fields: Vec<&str> = route.split_whitespace().collect();
            assert_ne!(fields.get(1), Some(&"00000000"), "a default route:\n{routes}");
        }
        let routes = fs::read_to_string(format!("/proc/{process}/net/ipv6_route"))?;
        for route in routes.lines() {
            let fields: Vec<&str> = route.split_whitespace().collect();
            let (length, device) = (fields.get(1), fields.last());
            // The kernel's own way to say that there is none leads to lo.
            let leads_out = length == Some(&"00") && device != Some(&"lo");
            assert!(!leads_out, "a default route:\n{routes}");
        }
        let devices = fs::read_to_string(format!("/proc/{process}/net/dev"))?;
        for device in devices.lines().skip(2).filter_map(|line| line.split(':').next()) {
            let ends = [
                "lo", "eth0", "bridge", "pods", "control", "node-", "veth", "tunl", "sit", "ip6",
                "gre", "erspan", "dummy", "teql", "ip_vti", "bond", "ifb",
            ];
            let name = device.trim();
            assert!(ends.iter().any(|end| name.starts_with(end)), "{name} is not the lab's");
        }
    }
    // Switch, control plane, three nodes, and the pods.
    assert!(networks.len() >= 5 + 4, "{networks:?}");
    Ok(())
}

async fn image_is_loaded_into_every_node(world: &World) -> Outcome {
    let pack = concat!(env!("CARGO_MANIFEST_DIR"), "/control-plane/images/pack.sh");
    let folder = tempfile::TempDir::new()?;
    let (root, archive) = (folder.path().join("root"), folder.path().join("image.tar"));
    fs::create_dir(&root)?;
    fs::copy("/usr/bin/busybox", root.join("busybox"))?;
    let packed = std::process::Command::new(pack)
        .args(["opensdn.lab/loaded:7", "/busybox"])
        .args([&root, &archive])
        .output()?;
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    world.lab().load_image(&archive).await?;
    for node in ["node-1", "node-3"] {
        let name = format!("loaded-{node}");
        let overrides = format!("{{\"spec\": {{\"nodeName\": \"{node}\"}}}}");
        kubectl(
            &world.sandbox,
            &[
                "run",
                &name,
                "--image=opensdn.lab/loaded:7",
                "--image-pull-policy=Never",
                "--restart=Never",
                "--overrides",
                &overrides,
                "--",
                "echo",
                "loaded",
            ],
        )
        .await?
        .success();
        world.wait_for(&format!("pod/{name}"), "jsonpath={.status.phase}=Succeeded").await?;
        assert_eq!(kubectl(&world.sandbox, &["logs", &name]).await?.success(), "loaded\n");
    }
    Ok(())
}

async fn node_comes_back_with_its_data(world: &World) -> Outcome {
    let pod = read(&world.sandbox, &["pod", "store"]).await?;
    let node = pod["spec"]["nodeName"].as_str().ok_or("no node")?;
    world.lab().kill_node(node)?;
    let refused = world.lab().node(node)?.name() == node
        && world.lab().partition_pair(Party::Node(node), Party::ControlPlane).is_err();
    assert!(refused, "a node that is switched off has nothing to cut off");
    eventually("the node counts as lost", || world.node_is(node, "Unknown")).await;
    world.lab().start_node(&world.client, node).await?;
    eventually("the pod runs again, with its data", || async {
        let said = world.exec("store", "cat /data/file").await;
        said.is_ok_and(|said| said.ok && said.out == "kept\n")
    })
    .await;
    let index = node.trim_start_matches("node-").parse::<usize>()? - 1;
    world.wait_for("deployment/web", "jsonpath={.status.readyReplicas}=3").await?;
    eventually("its web server is heard", || async {
        let pods = read(&world.sandbox, &["pod", &world.web[index].pod]).await;
        let Ok(pod) = pods else { return false };
        let Some(address) = pod["status"]["podIP"].as_str() else { return false };
        let command = format!("fetch http://{address}:8080/");
        world.exec("store", &command).await.is_ok_and(|said| said.ok)
    })
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_do_what_they_say_and_are_undone() -> Outcome {
    let world = World::new().await?;
    pulled_cable_cuts_a_node_off(&world).await?;
    only_the_pair_is_parted(&world).await?;
    api_server_is_parted_from_one_pod(&world).await?;
    bad_link_loses_and_delays(&world).await?;
    programs_of_a_node_are_stopped_and_killed(&world).await?;
    container_is_stopped_and_killed(&world).await?;
    full_volume_takes_no_more(&world).await?;
    control_plane_stands_still(&world).await?;
    node_without_heartbeats_is_lost_and_serves_on(&world).await?;
    Ok(())
}

async fn pulled_cable_cuts_a_node_off(world: &World) -> Outcome {
    let fault = world.lab().partition("node-2")?;
    assert!(!world.hears(0, 1).await && !world.api_server_hears(&world.web[1].pod).await);
    eventually("the others are heard", || world.hears(0, 2)).await;
    drop(fault);
    eventually("node-2 is heard again", || world.hears(0, 1)).await;
    Ok(())
}

async fn only_the_pair_is_parted(world: &World) -> Outcome {
    let fault = world.lab().partition_pair(Party::Node("node-1"), Party::Node("node-2"))?;
    assert!(!world.hears(0, 1).await && !world.hears(1, 0).await);
    eventually("node-3 is heard", || world.hears(0, 2)).await;
    eventually("node-3 hears", || world.hears(2, 1)).await;
    fault.undo()?;
    eventually("they hear each other again", || async {
        world.hears(0, 1).await && world.hears(1, 0).await
    })
    .await;
    let pods = [Party::Pod(world.web[0].address), Party::Pod(world.web[1].address)];
    assert!(world.lab().partition_pair(pods[0], pods[1]).is_err());
    Ok(())
}

async fn api_server_is_parted_from_one_pod(world: &World) -> Outcome {
    let [one, two, _] = world.web.as_slice() else { return Err("three web servers".into()) };
    let fault = world.lab().partition_pair(Party::ControlPlane, Party::Pod(one.address))?;
    assert!(!world.api_server_hears(&one.pod).await);
    eventually("the other is heard", || world.api_server_hears(&two.pod)).await;
    eventually("pods hear it", || world.hears(1, 0)).await;
    drop(fault);
    eventually("the API server hears it again", || world.api_server_hears(&one.pod)).await;
    Ok(())
}

async fn bad_link_loses_and_delays(world: &World) -> Outcome {
    let ping = |options: &str| format!("ping {options} {} || true", world.web[0].address);
    let pinged = |said: &Said| {
        let line = said.out.lines().find(|line| line.contains("packets received"));
        let words = line.unwrap_or_default().split(' ').collect::<Vec<_>>();
        words.get(3).and_then(|word| word.parse::<u32>().ok()).unwrap_or_default()
    };
    let link = Link { loss_percent: 30.0, ..Link::default() };
    let fault = world.lab().degrade("node-1", link)?;
    let said = world.exec(&world.web[1].pod, &ping("-c 60 -i 0.05 -W 1")).await?;
    assert!((1..60).contains(&pinged(&said)), "{}", said.out);
    drop(fault);
    let said = world.exec(&world.web[1].pod, &ping("-c 60 -i 0.02 -W 1")).await?;
    assert_eq!(pinged(&said), 60, "{}", said.out);

    let delay = Duration::from_millis(150);
    let fault = world.lab().degrade("node-1", Link { delay, ..Link::default() })?;
    let said = world.exec(&world.web[1].pod, &ping("-c 3 -i 0.1 -W 5")).await?;
    assert_eq!(pinged(&said), 3, "{}", said.out);
    assert!(fastest(&said.out) >= 2.0 * delay.as_secs_f64() * 1000.0, "{}", said.out);
    drop(fault);
    let said = world.exec(&world.web[1].pod, &ping("-c 3 -i 0.1 -W 5")).await?;
    assert!(fastest(&said.out) < delay.as_secs_f64() * 1000.0, "{}", said.out);
    Ok(())
}

/// The least time that ping reports, in milliseconds.
fn fastest(said: &str) -> f64 {
    let line = said.lines().find_map(|line| line.strip_prefix("round-trip min/avg/max = "));
    let least = line.and_then(|line| line.split('/').next());
    least.and_then(|number| number.parse().ok()).unwrap_or(f64::MAX)
}

async fn programs_of_a_node_are_stopped_and_killed(world: &World) -> Outcome {
    let lab = world.lab();
    for daemon in [Daemon::Kubelet, Daemon::Containerd, Daemon::KubeProxy] {
        let fault = lab.signal_daemon("node-3", daemon, Signal::Stop)?;
        let process = lab.node("node-3")?.process_of(daemon).ok_or("no process")?;
        eventually("it stands still", || async { state(process) == Some('T') }).await;
        eventually("its pods serve on", || world.hears(0, 2)).await;
        drop(fault);
        eventually("it goes on", || async { state(process).is_some_and(|s| s != 'T') }).await;

        let fault = lab.signal_daemon("node-3", daemon, Signal::Kill)?;
        assert_eq!(lab.node("node-3")?.process_of(daemon), None);
        assert_eq!(state(process), None);
        eventually("its pods serve on", || world.hears(0, 2)).await;
        drop(fault);
        let node = lab.node("node-3")?;
        eventually("it runs again", || async { node.process_of(daemon).is_some() }).await;
    }
    let pod = &world.web[2].pod;
    eventually("exec works on the node again", || async {
        world.exec(pod, "true").await.is_ok_and(|said| said.ok)
    })
    .await;
    Ok(())
}

/// A process' state letter; none when it is gone.
fn state(process: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

async fn container_is_stopped_and_killed(world: &World) -> Outcome {
    let pod = &world.web[0].pod;
    let strike = async |signal| {
        world.lab().signal_container(&world.client, "default", pod, "web", signal).await
    };
    let fault = strike(Signal::Stop).await?;
    assert!(!world.hears(1, 0).await);
    drop(fault);
    eventually("it answers again", || world.hears(1, 0)).await;

    drop(strike(Signal::Kill).await?);
    eventually("kubelet has started it again", || async {
        let Ok(pod) = read(&world.sandbox, &["pod", pod]).await else { return false };
        pod["status"]["containerStatuses"][0]["restartCount"] == 1 && world.hears(1, 0).await
    })
    .await;
    let missing =
        world.lab().signal_container(&world.client, "default", pod, "no-such", Signal::Kill).await;
    assert!(missing.is_err());
    Ok(())
}

async fn full_volume_takes_no_more(world: &World) -> Outcome {
    world.exec("store", "echo kept >/data/file").await?.success();
    let fault = world.lab().fill_volume(&world.client, "default", "data").await?;
    let said = world.exec("store", "echo more >/data/more").await?;
    assert!(!said.ok && said.err.contains("No space left"), "{}", said.err);
    drop(fault);
    world.exec("store", "echo more >/data/more && cat /data/file").await?.success();
    assert!(world.lab().fill_volume(&world.client, "default", "none").await.is_err());
    Ok(())
}

async fn control_plane_stands_still(world: &World) -> Outcome {
    let create = async |name: &str| {
        let arguments = ["create", "configmap", name, "--request-timeout=3s"];
        kubectl(&world.sandbox, &arguments).await.is_ok_and(|said| said.ok)
    };
    let fault = world.sandbox.pause_etcd()?;
    assert!(!create("while-etcd-is-paused").await);
    drop(fault);
    eventually("it stores again", || create("after-etcd")).await;
    let fault = world.sandbox.pause_api_server()?;
    let before = Instant::now();
    assert!(!create("while-it-is-paused").await && before.elapsed() > Duration::from_secs(1));
    drop(fault);
    eventually("it answers again", || create("after-the-pause")).await;
    world.sandbox.restart_api_server().await?;
    eventually("it answers after a restart", || create("after-the-restart")).await;
    Ok(())
}

async fn node_without_heartbeats_is_lost_and_serves_on(world: &World) -> Outcome {
    let fault = world.lab().cut_heartbeats("node-3")?;
    eventually("the node counts as lost", || world.node_is("node-3", "Unknown")).await;
    eventually("its pods are heard", || world.hears(0, 2)).await;
    eventually("its pods hear", || world.hears(2, 0)).await;
    drop(fault);
    eventually("the node is back", || world.node_is("node-3", "True")).await;
    Ok(())
}
