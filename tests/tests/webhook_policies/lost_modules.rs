//! Replicas that start while the module of a running policy is gone.

use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;

use super::*;

/// Starts another replica in place of this one, and returns when the API server calls it.
async fn restart(world: &World, mut before: Replica, flags: &[&str]) -> Result<Replica, Failed> {
    before.stop();
    before.kill();
    world.replica("a", flags).await
}

async fn remove_module(world: &World) -> Outcome {
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), NAMESPACE);
    config_maps.delete("module", &DeleteParams::default()).await?;
    world.becomes("gizmos", "False", "SourceUnreachable").await;
    Ok(())
}

/// Whether there is an Event of that reason and type at the AdmissionPolicy.
async fn has_event(world: &World, reason: &str, of_type: &str) -> Result<bool, Failed> {
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let about = "regarding.kind=AdmissionPolicy,regarding.name=gizmos";
    let events = events.list(&ListParams::default().fields(about)).await?;
    let is_it = |event: &Event| {
        event.reason.as_deref() == Some(reason) && event.type_.as_deref() == Some(of_type)
    };
    Ok(events.iter().any(is_it))
}

async fn refused_with(world: &World, what: &str) {
    let said = async || world.try_gizmo("plain").await.err().unwrap_or_default();
    eventually(&format!("refused with {what:?}"), async || said().await.contains(what)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_object_is_refused_also_by_a_replica_that_starts_when_the_module_is_gone() -> Outcome
{
    let (world, gizmos) = with_gizmos().await?;
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache").display().to_string();
    let flags = ["--cache-folder", cache.as_str()];
    let replica = world.replica("a", &flags).await?;
    let spec = from_config_map("module", &gizmos, json!({"failureMode": "fail"}));
    world.apply("gizmos", spec).await?;
    refused_with(&world, modules::MESSAGE).await;
    world.becomes("gizmos", "True", "Serving").await;
    remove_module(&world).await?;
    refused_with(&world, modules::MESSAGE).await;

    // What has been compiled of it is the pinned module.
    let replica = restart(&world, replica, &flags).await?;
    refused_with(&world, modules::MESSAGE).await;
    assert_eq!(world.try_vrouter("plain").await, Ok(()), "it is not about others");
    let reported = "opensdn_webhook_policy_loaded{policy=\"gizmos\"}";
    eventually("it says so", async || replica.metric(reported) == Some(0.0)).await;

    // Nothing is left of it, and the status says what it was about.
    let _replica = restart(&world, replica, &[]).await?;
    refused_with(&world, "policy gizmos: the policy is not active: OSDN4010").await;
    assert_eq!(world.try_vrouter("plain").await, Ok(()), "it is not about others");

    // It comes back by itself.
    world.config_map("module", &gizmos).await?;
    refused_with(&world, modules::MESSAGE).await;
    world.becomes("gizmos", "True", "Serving").await;
    for (reason, of_type) in [("SourceUnreachable", "Warning"), ("Serving", "Normal")] {
        eventually(&format!("an Event says {reason}"), async || {
            has_event(&world, reason, of_type).await.is_ok_and(|has| has)
        })
        .await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_policy_is_in_the_rules_also_when_these_are_written_from_nothing() -> Outcome {
    let (world, gizmos) = with_gizmos().await?;
    let mut replica = world.replica("a", &[]).await?;
    let kinds = json!([{"group": "example.io", "kind": "Gizmo"}]);
    let spec = from_config_map("module", &gizmos, json!({"failureMode": "fail", "kinds": kinds}));
    world.apply("gizmos", spec).await?;
    refused_with(&world, modules::MESSAGE).await;
    world.becomes("gizmos", "True", "Serving").await;
    remove_module(&world).await?;

    replica.stop();
    replica.kill();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    mutating.delete(CONFIGURATION, &DeleteParams::default()).await?;
    world.validating().delete(CONFIGURATION, &DeleteParams::default()).await?;
    let passes = async || world.try_gizmo("plain").await.is_ok();
    eventually("nothing is judged", passes).await;

    let _replica = world.replica("a", &[]).await?;
    refused_with(&world, "policy gizmos: the policy is not active: OSDN4010").await;
    assert_eq!(world.try_vrouter("plain").await, Ok(()), "it is not about others");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_was_never_loaded_refuses_our_kinds_until_it_is_repaired() -> Outcome {
    let (world, gizmos) = with_gizmos().await?;
    let _replica = world.replica("a", &[]).await?;
    assert_eq!(world.try_vrouter("plain").await, Ok(()));
    world.apply("early", from_config_map("later", &gizmos, json!({}))).await?;
    let said = async || world.try_vrouter("plain").await.err().unwrap_or_default();
    let named = async || said().await.contains("policy early: the policy is not active: OSDN4010");
    eventually("what may be its kind is refused, and why", named).await;
    // Nothing of ours is in the way of the repair.
    let spec = from_config_map("later", &gizmos, json!({"failureMode": "ignore"}));
    world.apply("early", spec).await?;
    accepted(&world, "plain").await;
    world.apply("early", from_config_map("later", &gizmos, json!({"mode": "audit"}))).await?;
    accepted(&world, "plain").await;
    world.apply("early", from_config_map("later", &gizmos, json!({}))).await?;
    refused(&world, "plain").await;
    world.config_map("later", &gizmos).await?;
    accepted(&world, "plain").await;
    Ok(())
}
