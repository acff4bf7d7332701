//! `kubectl opensdn connectivity test` on real nodes with the lab's network of pods: what works is reached, and what is cut
//! between two nodes is named. Deliberately not here: what each answer means (the plugin).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;

use opensdn_deploy::names::operator::NAME;
use opensdn_testing::Outcome;
use opensdn_testing::development_image::DevelopmentImage;
use opensdn_testing::sandbox::{Sandbox, User};
use serde_json::Value;

use crate::plugin_check::namespaces;
use crate::plugin_status::document;

/// What each test says, by its id.
fn results(report: &Value) -> BTreeMap<&str, &str> {
    let tests = report["tests"].as_array().into_iter().flatten();
    tests.filter_map(|one| Some((one["id"].as_str()?, one["result"].as_str()?))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_reach_each_other_and_what_is_cut_is_named_and_nothing_is_left() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    lab.load_image(DevelopmentImage::of_ours(NAME)?.archive()).await?;
    let admin = sandbox.kubeconfig_for(&User::new("tester").in_group("system:masters"))?;
    let test = ["connectivity", "test"];

    let (report, code) = document(&admin, &test)?;
    let all = results(&report);
    for id in [
        "pod-address",
        "node-to-api",
        "pod-to-api",
        "pod-to-pod-on-node",
        "pod-to-pod",
        "pod-to-service",
        "dns",
    ] {
        assert_eq!(all.get(id), Some(&"ok"), "{report:#}");
    }
    assert_eq!((all.get("outside"), code), (Some(&"skipped"), 0), "{report:#}");
    let (status, _) = document(&admin, &["status", "--connectivity"])?;
    assert_eq!(results(&status["connectivity"]), all, "{status:#}");
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());

    // How fast: one way after the other, over pods and without them.
    let perf = ["connectivity", "perf", "--seconds", "1", "--streams", "2"];
    let (speed, code) = document(&admin, &perf)?;
    let all = speed["measurements"].as_array().cloned().unwrap_or_default();
    assert_eq!((all.len(), code), (4, 0), "{speed:#}");
    for one in &all {
        assert!(one["megabitsPerSecond"].as_u64().is_some_and(|rate| rate > 0), "{speed:#}");
        let trip = |field: &str| one[field].as_u64().unwrap_or_default();
        let (median, p99) = (trip("roundTripMicroseconds"), trip("roundTripP99Microseconds"));
        assert!(0 < median && median <= p99, "{speed:#}");
    }
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());

    // Packets of pods on other nodes do not get to this one any more.
    let cut = lab.nodes().last().ok_or("no nodes")?.name().to_owned();
    let rule = "FORWARD -s 10.244.0.0/16 -p tcp --dport 24224 -j DROP";
    lab.run_on(&cut, "cut pods off", &format!("iptables -I {rule}"))?;
    let only = ["connectivity", "test", "--only", "pod-to-pod,dns"];
    let (report, code) = document(&admin, &only)?;
    assert_eq!((results(&report).get("pod-to-pod"), code), (Some(&"fail"), 1), "{report:#}");
    let pods = report["tests"].as_array().into_iter().flatten();
    let pods = pods.filter(|one| one["id"] == "pod-to-pod");
    let said: Vec<&str> = pods.filter_map(|one| one["message"].as_str()).collect();
    assert!(said.iter().any(|said| said.contains(&cut)), "{said:?}");
    assert_eq!(results(&report).get("dns"), Some(&"ok"), "it is not cut: {report:#}");
    let first = lab.nodes().next().ok_or("no nodes")?.name();
    let perf = ["connectivity", "perf", "--seconds", "1", "--node", first, "--node", &cut];
    let (speed, code) = document(&admin, &perf)?;
    let to_cut = speed["measurements"].as_array().into_iter().flatten();
    let to_cut = to_cut.filter(|one| one["to"] == *cut && one["over"] == "pods");
    let why: Vec<&str> = to_cut.filter_map(|one| one["why"].as_str()).collect();
    assert!(matches!(*why, [why] if why.contains("no connection within 10 s")), "{speed:#}");
    let fast = speed["measurements"].as_array().into_iter().flatten();
    let fast = fast.filter(|one| one["megabitsPerSecond"].as_u64().is_some()).count();
    // The rule is about what this node forwards, in and out; the network of the nodes is not cut.
    assert_eq!((fast, code), (2, 1), "{speed:#}");
    lab.run_on(&cut, "let pods through", &format!("iptables -D {rule}"))?;
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());
    Ok(())
}
