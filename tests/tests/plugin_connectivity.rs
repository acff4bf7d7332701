//! `kubectl opensdn connectivity test` of a real control plane in which pods do not answer, and by a user with few rights.
//! What each answer means is tested in the plugin, and pods that reach each other in `lab_connectivity`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_testing::Outcome;
use opensdn_testing::kubectl::kubectl;
use opensdn_testing::sandbox::{Sandbox, User};
use serde_json::Value;

use crate::plugin_check::{namespaces, writes_nothing};
use crate::plugin_status::{document, plugin};

fn results(report: &Value) -> Vec<&str> {
    let tests = report["tests"].as_array().into_iter().flatten();
    tests.filter_map(|one| one["result"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_pod_answers_nothing_is_passed_and_nothing_is_left() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(2).start().await?;
    let create = ["create", "clusterrole", "reader", "--verb=get,list", "--resource=nodes"];
    kubectl(&sandbox, &create).await?.success();
    let bind = ["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=checker"];
    kubectl(&sandbox, &bind).await?.success();
    let reader = sandbox.kubeconfig_for(&User::new("checker"))?;
    let (report, code) = document(&reader, &["connectivity", "test"])?;
    assert_eq!(code, 3, "where nothing is known nothing has passed: {report:#}");
    assert!(!results(&report).contains(&"ok"), "{report:#}");
    assert_eq!(document(&reader, &["connectivity", "test", "--exit-zero"])?.1, 0);
    let message = report["tests"][0]["message"].as_str().unwrap_or_default();
    let lacking = "you may not create namespaces, which connectivity test needs";
    assert!(message.contains(lacking), "{message}");
    writes_nothing(&sandbox)?;

    // The log of a simulated node's pod cannot be read.
    let admin = sandbox.kubeconfig_for(&User::new("tester").in_group("system:masters"))?;
    let flags = ["--probe-timeout", "2s", "--fail-on", "info", "--outside", "127.0.0.1:9"];
    let (report, code) = document(&admin, &[&["connectivity", "test"][..], &flags].concat())?;
    assert_eq!((results(&report), code), (vec!["uncertain"; 8], 1), "{report:#}");
    assert_eq!(report["tests"][0]["nodes"].as_array().map(Vec::len), Some(2), "{report:#}");
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());

    let (cleaned, code) = document(&admin, &["connectivity", "test", "--cleanup"])?;
    assert_eq!((cleaned["removed"].as_array().map(Vec::len), code), (Some(0), 0), "{cleaned:#}");

    let flags = ["connectivity", "perf", "--probe-timeout", "2s"];
    let (speed, code) = document(&admin, &flags)?;
    let why = speed["measurements"].as_array().into_iter().flatten();
    let why: Vec<&str> = why.filter_map(|one| one["why"].as_str()).collect();
    assert_eq!((why.len(), code), (4, 1), "{speed:#}");
    assert!(why.iter().all(|why| why.contains("no answer in 2 s")), "{speed:#}");
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());
    let (speed, code) = document(&reader, &["connectivity", "perf"])?;
    let lacking = "you may not create namespaces, which connectivity perf needs";
    assert_eq!((speed["measurements"][0]["why"].as_str(), code), (Some(lacking), 1), "{speed:#}");

    // What is asked beside it is said in any case.
    let (status, code) = document(&reader, &["status", "--connectivity"])?;
    assert_eq!(results(&status["connectivity"]), [&["uncertain"; 7][..], &["skipped"]].concat());
    assert_ne!(code, 0, "{status:#}");
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());

    for wrong in [
        &["--node", "node-9"][..],
        &["--nodes", "9"],
        &["--nodes", "1"],
        &["--seconds", "31"],
        &["-n", "tf"],
    ] {
        let output = plugin(&admin, &[&["connectivity", "perf"][..], wrong].concat())?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {said}");
    }
    for wrong in [
        &["--node", "node-9"][..],
        &["--outside", "keystone"],
        &["--outside", "keystone:0"],
        &["--nodes", "65"],
        &["-n", "tf"],
    ] {
        let output = plugin(&admin, &[&["connectivity", "test"][..], wrong].concat())?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {said}");
    }
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());
    Ok(())
}
