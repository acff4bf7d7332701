//! Policies that end without a verdict.

use opensdn_testing::link_local::service;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_crashes_refuses_our_kinds_and_lets_others_pass() -> Outcome {
    let (world, _) = with_gizmos().await?;
    let _replica = world.replica("a", &[]).await?;
    for (name, group, kind) in
        [("ours", "opensdn.io", "LinkLocalService"), ("theirs", "example.io", "Gizmo")]
    {
        let module = modules::crashing(group, kind)?;
        world.config_map(name, &module).await?;
        world.apply(name, from_config_map(name, &module, json!({}))).await?;
        world.becomes(name, "True", "Serving").await;
    }
    let resource = resource("opensdn.io", "v1alpha1", "LinkLocalService", "linklocalservices");
    let services = Api::namespaced_with(world.client.clone(), "plain", &resource);
    let mut object = serde_json::to_value(service(&json!({"name": "s"}), "169.254.9.1")?)?;
    object["apiVersion"] = "opensdn.io/v1alpha1".into();
    object["kind"] = "LinkLocalService".into();
    let refused = async || {
        let said = create(&services, &object).await.err().unwrap_or_default();
        said.contains("denied the request") && said.contains("policy ours: ")
    };
    eventually("our kind is refused by the policy that crashed", refused).await;

    // It is asked about Gizmos, too, when it may refuse them; by itself it does not.
    let module = modules::crashing("example.io", "Gizmo")?;
    let strict = from_config_map("theirs", &module, json!({"failureMode": "fail"}));
    world.apply("theirs", strict).await?;
    let said = async || world.try_gizmo("plain").await.err().unwrap_or_default();
    eventually("it crashes", async || said().await.contains("policy theirs: ")).await;
    world.apply("theirs", from_config_map("theirs", &module, json!({}))).await?;
    eventually("another kind passes", async || world.try_gizmo("plain").await.is_ok()).await;
    Ok(())
}
