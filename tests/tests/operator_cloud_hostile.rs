//! What NestedClusters of others cannot do to the operator, on a real API server: servers that answer without an end, that
//! are not to be asked any more, whose words are not the writer's to read; finalizers of others; copies.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::get;
use crate::operator_cloud::{CLUSTER, PASSWORD, World};

/// As the Deployment has it, in MiB.
const MEMORY_LIMIT: f64 = 128.0;

/// A server that whoever writes a NestedCluster may name.
struct Hostile {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Hostile {
    /// Answers a path with a status and a body.
    fn start(answer: fn(&str) -> (u16, Vec<u8>)) -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = counted.clone();
                std::thread::spawn(move || serve(&stream, answer, &asked));
            }
        });
        Ok(Self { url, asked })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// One request of each connection.
fn serve(stream: &TcpStream, answer: fn(&str) -> (u16, Vec<u8>), asked: &AtomicUsize) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    // The rest of the head; the body is of no interest.
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    asked.fetch_add(1, Ordering::SeqCst);
    let (status, body) = answer(request.split(' ').nth(1).unwrap_or_default());
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let mut writer = stream;
    // Who is asked too much hangs up.
    let _ = writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(&body));
}

fn refuses(_: &str) -> (u16, Vec<u8>) {
    (400, b"the secret of the server".to_vec())
}

/// As large as an answer can be: either at the limit, of what takes the most memory, or far above it.
fn large(path: &str) -> (u16, Vec<u8>) {
    let small = |value: Value| (200, value.to_string().into_bytes());
    if path.starts_with("/fqname-to-id") {
        return small(json!({"uuid": "u"}));
    }
    let kind = path.trim_start_matches('/').split(['?', '/']).next().unwrap_or_default();
    let Some(one) = kind.strip_suffix('s').filter(|_| path.contains("detail=true")) else {
        return small(json!({ kind: {"uuid": "u", "fq_name": ["a", "b"]} }));
    };
    let subnets = json!({"to": ["a"], "attr": {"ipam_subnets": [{"subnet": {"ip_prefix": "1.1.1.0", "ip_prefix_len": 24}}]}});
    let element = json!({ one: {"uuid": "", "instance_ip_address": "1.1.1.1",
        "virtual_machine_interface_refs": [{"uuid": ""}, {"uuid": ""}, {"uuid": ""}],
        "network_ipam_refs": [subnets]}})
    .to_string();
    let most =
        if kind == "instance-ips" || kind == "virtual-networks" { 8 << 20 } else { 60 << 20 };
    let count = (most - 100) / (element.len() + 1);
    let list = vec![element; count].join(",");
    (200, format!("{{\"{kind}\": [{list}]}}").into_bytes())
}

/// A NestedCluster without a login.
async fn create(world: &World, name: &str, url: &str, finalizers: &[&str]) -> Outcome {
    let network = json!({"project": "admin", "name": "vms"});
    let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "NestedCluster",
        "metadata": {"name": name, "namespace": "tf", "finalizers": finalizers},
        "spec": {"clusterName": name, "clusterNetwork": network, "configApi": {"urls": [url]},
            "services": {"config": {"addresses": ["192.168.1.100"]}}, "serviceAddresses": ["10.10.10.0/24"]}});
    send(&world.sandbox, &["create"], &object).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_any_length_leave_the_operator_within_its_memory() -> Outcome {
    let world = World::start().await?;
    let hostile = Hostile::start(large)?;
    let names = ["n1", "n2"];
    for name in names {
        create(&world, name, &hostile.url, &[]).await?;
    }
    for name in names {
        let object = ["nestedclusters.opensdn.io", name];
        let said = async || {
            let (_, reason, _) = world.ready(object).await;
            !reason.is_empty() && reason != "Busy"
        };
        eventually(&format!("{name} has been looked at"), said).await;
    }
    let peak = world.operator.peak_memory(0).ok_or("it has ended")?;
    assert!(peak < MEMORY_LIMIT, "{peak} MiB");
    // The others are looked at all the same.
    world.login(PASSWORD).await?;
    world.create(json!({})).await?;
    world.until(CLUSTER, "True", "InPlace").await;
    Ok(())
}

/// The API server bounds the name of an owner by the size of the whole object alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_with_a_megabyte_of_metadata_do_not_fill_the_operators_memory() -> Outcome {
    const OBJECTS: usize = 60;
    let world = World::start().await?;
    let name = "x".repeat(1 << 20);
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "uid": "u", "name": name});
    for number in 0..OBJECTS {
        let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
            "metadata": {"name": format!("large{number}"), "namespace": "tf", "ownerReferences": [owner]},
            "spec": {"ip": "169.254.1.1", "port": 10_000 + number,
                "fabric": {"addresses": ["192.0.2.1"], "port": 9100}}});
        world.create_object(&object).await?;
    }
    let name = format!("large{}", OBJECTS - 1);
    let said = async || {
        let (_, reason, _) = world.ready(["linklocalservices.opensdn.io", &name]).await;
        !reason.is_empty()
    };
    eventually("the last has been looked at", said).await;
    let used = world.operator.memory(0).ok_or("it has ended")?;
    assert!(used < MEMORY_LIMIT * 0.75, "{used} MiB");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_says_is_in_no_status_where_no_login_says_who_may_be_asked() -> Outcome {
    let world = World::start().await?;
    let hostile = Hostile::start(refuses)?;
    create(&world, "n1", &hostile.url, &[]).await?;
    let object = ["nestedclusters.opensdn.io", "n1"];
    let said = async || !world.ready(object).await.1.is_empty();
    eventually("it has been looked at", said).await;
    let stored = get(&world.sandbox, object).await["status"].to_string();
    assert!(stored.contains("400") && !stored.contains("secret of the server"), "{stored}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_what_is_gone_before_anything_was_written_nobody_is_asked_any_more() -> Outcome {
    let world = World::start().await?;
    let hostile = Hostile::start(refuses)?;
    for name in ["n1", "n2", "n3"] {
        create(&world, name, &hostile.url, &[]).await?;
    }
    let is_asked = async || hostile.asked() >= 6;
    eventually("it is asked", is_asked).await;
    let delete = ["delete", "nestedclusters.opensdn.io", "--all", "-n", "tf"];
    kubectl(&world.sandbox, &delete).await?.success();
    // A call that was under way ends, and after that there is none.
    eventually("nothing is asked for as long as it was asked again after before", async || {
        let before = hostile.asked();
        // Watches and passes ask at least every ten seconds; that none comes, nothing shows sooner.
        tokio::time::sleep(Duration::from_secs(15)).await;
        hostile.asked() == before
    })
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_goes_whoever_has_set_its_finalizer() -> Outcome {
    let world = World::start().await?;
    world.login(PASSWORD).await?;
    let before = world.api.entries();
    // As an export that is created again has it.
    let finalizers = json!(["opensdn.io/cloud"]);
    let mut object = world.object(&json!({}))?;
    object["metadata"]["finalizers"] = finalizers;
    send(&world.sandbox, &["create"], &object).await?.success();
    world.until(CLUSTER, "True", "InPlace").await;
    world.delete(CLUSTER).await?;
    world.gone(CLUSTER).await;
    assert_eq!(world.api.entries(), before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_takes_nothing_away_of_what_the_first_has_by_the_same_record() -> Outcome {
    let world = World::start().await?;
    world.login(PASSWORD).await?;
    let record = json!({"stringData": {"OPENSDN_RECORD": "0a1b2c3d-0000-4000-8000-000000000001"}})
        .to_string();
    let patch = ["patch", "secret", "cloud", "-n", "tf", "--type=merge", "-p", &record];
    kubectl(&world.sandbox, &patch).await?.success();
    world.create(json!({})).await?;
    world.until(CLUSTER, "True", "InPlace").await;
    let written = world.api.entries();
    let mut copy = world.object(&json!({}))?;
    copy["metadata"]["name"] = "copy".into();
    copy["metadata"]["finalizers"] = json!(["opensdn.io/cloud"]);
    send(&world.sandbox, &["create"], &copy).await?.success();
    let object = ["nestedclusters.opensdn.io", "copy"];
    world.until(object, "False", "ClusterNameTaken").await;
    // What would be put back at once is not seen.
    let pause = ["annotate", "-n", "tf", CLUSTER[0], CLUSTER[1], "opensdn.io/paused=by the test"];
    kubectl(&world.sandbox, &pause).await?.success();
    world.until(CLUSTER, "False", "Paused").await;
    world.delete(object).await?;
    world.gone(object).await;
    assert_eq!(world.api.entries(), written);
    Ok(())
}
