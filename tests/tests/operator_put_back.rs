//! What a user sets in a Manager and cannot work, on a real control plane with simulated nodes: nodes that there are not, taints
//! that are not tolerated, an image that cannot be pulled, more huge pages than nodes have. Of a service that counts its members,
//! of one that does not and of the vrouters one pod is away at most, and when it is put back all is as before by itself. Images by
//! an Upgrade are in `operator_upgrade_bad_images.rs`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;

use opensdn_crds::component::Component;
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{LOOKED_AGAIN, get};
use crate::operator_upgrade::{MANAGER, WHOLE, World, image, manager};
use crate::watched_pods::Pods;

const KINDS: [&str; 7] =
    ["Zookeeper", "Redis", "Cassandra", "Rabbitmq", "Config", "Control", "Vrouter"];
/// Key in the Manager, place of the item, container, and name; of each of the three sorts one.
const SERVICES: [(&str, &str, &str); 3] = [
    ("/zookeeper", "zookeeper", "zookeeper1"),
    ("/redis/0", "redis", "redis1"),
    ("/vrouters/0", "vrouteragent", "vrouter1"),
];

fn given() -> Value {
    let mut all = manager(&KINDS);
    let vrouters = &mut all["spec"]["services"]["vrouters"];
    vrouters[0]["spec"]["serviceConfiguration"]["controlInstance"] = json!("control1");
    all
}

/// With that below the spec of these services.
fn with(services: &[&str], pointer: &str, value: impl Fn(&str) -> Value) -> Result<Value, Failed> {
    let mut all = given();
    for (place, container, name) in SERVICES.iter().filter(|one| services.contains(&one.2)) {
        let item = format!("/spec/services{place}");
        let item = all.pointer_mut(&item).ok_or("no item")?;
        assert_eq!(item["metadata"]["name"], *name);
        let mut field = &mut item["spec"];
        for part in pointer.split('/') {
            field = match part.parse::<usize>() {
                Ok(number) => &mut field[number],
                Err(_) => &mut field[part],
            };
        }
        *field = value(container);
    }
    Ok(all)
}

/// What must be as it was in the end, and what may be another pod.
#[derive(Debug)]
struct There {
    pods: BTreeMap<String, Value>,
    templates: BTreeMap<String, Value>,
    files: BTreeMap<String, Value>,
    budgets: BTreeMap<String, Value>,
}

async fn there(world: &World) -> Result<There, Failed> {
    let list = async |kind: &str, part: &str| {
        let all = read(&world.sandbox, &["-n", "tf", kind]).await?["items"].take();
        let part = |one: &Value| {
            let name = one["metadata"]["name"].as_str()?.to_owned();
            Some((name, one.pointer(part)?.clone()))
        };
        Ok::<BTreeMap<_, _>, Failed>(
            all.as_array().into_iter().flatten().filter_map(part).collect(),
        )
    };
    let pods = list("pods", "/metadata/uid").await?;
    let templates = list("statefulsets,daemonsets", "/spec/template").await?;
    let files = list("configmaps", "/data").await?;
    let budgets = list("poddisruptionbudgets", "/spec").await?;
    Ok(There { pods, templates, files, budgets })
}

/// The pods of each of the services that are others now.
fn made_again(before: &There, after: &There) -> Vec<String> {
    let is_other = |(name, uid): &(&String, &Value)| before.pods.get(*name) != Some(*uid);
    after.pods.iter().filter(is_other).map(|(name, _)| name.clone()).collect()
}

async fn row(world: &World, name: &str) -> Value {
    let rows = get(&world.sandbox, MANAGER).await["status"]["services"].clone();
    let row = rows.as_array().into_iter().flatten().find(|row| row["name"] == name);
    row.cloned().unwrap_or_default()
}

/// What is set and cannot work.
struct Wrong {
    what: &'static str,
    manager: Value,
    services: &'static [&'static str],
    /// What the Manager's status says of each of them.
    said: &'static str,
    /// How many pods of each may be away.
    away: usize,
}

/// What runs does its work, and its status says so; of vrouters each is missed where it is not.
async fn what_runs_is_available(world: &World, wrong: &Wrong) -> Outcome {
    let Wrong { what, services, away, .. } = wrong;
    for service in *services {
        let is_of = |kind: &&str| format!("{}1", kind.to_lowercase()) == **service;
        let kind = KINDS.into_iter().find(|kind| is_of(kind)).ok_or("of no kind")?;
        let plural = Component::of_kind(kind).ok_or("no component")?.plural;
        let kind = format!("{plural}.tf.tungsten.io");
        let object = read(&world.sandbox, &["-n", "tf", &kind, service]).await?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let available = conditions.iter().find(|one| one["type"] == "Available");
        let available = available.ok_or(format!("{what}: {service} says nothing of Available"))?;
        let ready = (0..=*away)
            .find(|away| available["message"] == format!("{} of 3 pods ready", 3 - away));
        let works = ready.is_some_and(|away| away == 0 || *service != "vrouter1");
        assert!(ready.is_some(), "{what}: {service}: {available}");
        assert_eq!(available["status"] == "True", works, "{what}: {service}: {available}");
    }
    Ok(())
}

/// Until each vrouter has been ready for half a minute: its DaemonSet replaces all at once that have not been, as it does with
/// those that have never worked.
async fn are_available(world: &World) {
    let are_so = async || {
        let all = read(&world.sandbox, &["-n", "tf", "daemonsets"]).await.unwrap_or_default();
        all["items"][0]["status"]["numberAvailable"] == 3
    };
    eventually_within(WHOLE, "the vrouters have been ready for a while", are_so).await;
}

/// Sets it, looks at what becomes of it, and puts it back.
async fn set_and_put_back(world: &World, wrong: &Wrong) -> Outcome {
    let Wrong { what, manager, services, said, away } = wrong;
    let before = there(world).await?;
    let pods = Pods::watch(&world.sandbox, "tf")?;
    let are_seen = async || pods.places("vrouter") == 3 && pods.places("zookeeper") == 3;
    eventually_within(WHOLE, "all pods are seen", are_seen).await;
    are_available(world).await;
    send(&world.sandbox, &["replace"], manager).await?.success();
    for service in *services {
        let is_said = async || {
            let row = row(world, service).await;
            row["ready"] == false && row["message"].to_string().contains(said)
        };
        eventually_within(WHOLE, &format!("{what}: {service} says {said:?}"), is_said).await;
    }
    what_runs_is_available(world, wrong).await?;
    // That no further pod goes, nothing shows sooner.
    tokio::time::sleep(LOOKED_AGAIN).await;
    let most = pods.most_away();
    assert!(most.values().all(|all| all.len() <= *away), "{what}: {most:?}");
    let meanwhile = there(world).await?;
    let of_others = |there: &There| {
        let is_own =
            |file: &String| services.iter().any(|name| file.starts_with(&format!("{name}-")));
        let mut files = there.files.clone();
        files.retain(|file, _| !is_own(file));
        files
    };
    assert_eq!(of_others(&meanwhile), of_others(&before), "{what}: what others know of them");
    assert_eq!(meanwhile.budgets, before.budgets, "{what}: what a drain may take");

    send(&world.sandbox, &["replace"], &given()).await?.success();
    let is_back = async || {
        let pods = read(&world.sandbox, &["-n", "tf", "pods"]).await.unwrap_or_default();
        let all = pods["items"].as_array().cloned().unwrap_or_default();
        world.is_ready().await && all.len() == 3 * KINDS.len()
    };
    eventually_within(WHOLE, &format!("{what}: it is put back"), is_back).await;
    let after = there(world).await?;
    assert_eq!(after.templates, before.templates, "{what}");
    let made = made_again(&before, &after);
    for (_, _, name) in SERVICES {
        let of_it = made.iter().filter(|pod| pod.starts_with(&format!("{name}-"))).count();
        assert!(of_it <= *away, "{what}: {made:?}");
    }
    assert!(made.len() <= services.len() * away, "{what}: {made:?}");
    let most = pods.most_away();
    assert!(most.values().all(|all| all.len() <= *away), "{what}, put back: {most:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_work_takes_one_pod_of_a_service_at_most_and_is_well_when_it_is_put_back()
-> Outcome {
    const ALL: &[&str] = &["zookeeper1", "redis1", "vrouter1"];
    let world = World::of(&given(), 1).await?;
    // What runs there runs on.
    let taint = ["taint", "nodes", "--all", "example.com/rack=b:NoSchedule"];
    kubectl(&world.sandbox, &taint).await?.success();
    let nowhere = |_: &str| json!({"example.com/typo": "yes"});
    let other = |_: &str| json!([{"key": "example.com/other", "operator": "Exists"}]);
    let bad = |container: &str| image(container, "bad");
    let cases = [
        Wrong {
            what: "nodes that there are not",
            manager: with(ALL, "commonConfiguration/nodeSelector", nowhere)?,
            services: ALL,
            said: "no node has the labels example.com/typo=yes",
            away: 0,
        },
        Wrong {
            what: "a taint that is not tolerated",
            manager: with(ALL, "commonConfiguration/tolerations", other)?,
            services: ALL,
            said: "taint",
            away: 1,
        },
        Wrong {
            what: "an image that cannot be pulled",
            manager: with(ALL, "serviceConfiguration/containers/0/image", |container| {
                json!(bad(container))
            })?,
            services: ALL,
            said: "ImagePullBackOff",
            away: 1,
        },
        Wrong {
            what: "more huge pages than nodes have",
            manager: with(&ALL[2..], "serviceConfiguration/hugePages2M", |_| json!(512))?,
            services: &ALL[2..],
            said: "hugepages-2Mi",
            away: 1,
        },
    ];
    for wrong in &cases {
        set_and_put_back(&world, wrong).await?;
    }
    Ok(())
}
