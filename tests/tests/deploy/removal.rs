//! OpenSDN is taken out of a cluster whose webhook is dead.

use std::time::Duration;

use opensdn_testing::Outcome;
use opensdn_testing::eventually::TIMEOUT;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::product::Installation;
use opensdn_testing::sandbox::Sandbox;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::service;

const KINDS: [&str; 2] = ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_dead_webhook_only_our_kinds_are_refused_and_everything_can_be_deleted() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let product = Installation::built()?.replicas(2).install(&sandbox).await?;
    kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
    send(&sandbox, &["create"], &service("kept", "169.254.7.1")).await?.success();
    (0..product.backends().len()).for_each(|number| product.kill_replica(number));

    let dead = ["failed calling webhook", "opensdn.io"];
    send(&sandbox, &["create"], &service("new", "169.254.7.2")).await?.refused(&dead);
    let port = r#"{"spec":{"port":81}}"#;
    let patch = ["patch", "linklocalservice", "kept", "-n", "tf", "--type=merge", "-p", port];
    kubectl(&sandbox, &patch).await?.refused(&dead);
    for kind in ["ConfigMap", "Secret"] {
        let object = json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"name": "other", "namespace": "tf"}});
        send(&sandbox, &["create"], &object).await?.success();
    }
    kubectl(&sandbox, &["label", "namespace", "tf", "a=b"]).await?.success();
    kubectl(&sandbox, &["get", "linklocalservice", "kept", "-n", "tf"]).await?.success();

    for kind in KINDS {
        kubectl(&sandbox, &["delete", kind, "opensdn-webhook"]).await?.success();
    }
    // The API server forgets a webhook some time after its configuration is gone.
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let delete = ["delete", "linklocalservice", "kept", "-n", "tf"];
        let said = kubectl(&sandbox, &delete).await?;
        if said.ok {
            break;
        }
        assert!(Instant::now() < deadline, "still refused: {}", said.err);
        sleep(Duration::from_millis(100)).await;
    }
    kubectl(&sandbox, &["delete", "uniqueclaims", "--all"]).await?.success();
    kubectl(&sandbox, &["delete", "admissionpolicies", "--all"]).await?.success();
    let crds = ["delete", "crd", "linklocalservices.opensdn.io", "uniqueclaims.opensdn.io"];
    kubectl(&sandbox, &crds).await?.success();
    kubectl(&sandbox, &["delete", "namespace", "opensdn-system", "--wait=false"]).await?.success();
    for kind in KINDS {
        let said = kubectl(&sandbox, &["get", kind, "opensdn-webhook"]).await?;
        said.refused(&["not found"]);
    }
    Ok(())
}
