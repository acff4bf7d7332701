//! Nothing of ours is in the way of its own repair.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_about_policies_can_be_switched_off_and_deleted() -> Outcome {
    let world = World::start().await?;
    let guard = modules::admission_policies()?;
    world.config_map("guard", &guard).await?;
    let _replica = world.replica("a", &[]).await?;
    let spec = |mode: &str| {
        let kind = json!({"group": "opensdn.io", "kind": "AdmissionPolicy"});
        from_config_map("guard", &guard, json!({"kinds": [kind], "mode": mode}))
    };
    let other = async || world.try_apply(unsafe_parameter(json!({}))).await;
    let refused = async || other().await.is_err_and(|said| said.contains(modules::MESSAGE));
    world.apply("guard", spec("enforce")).await?;
    eventually("policies are refused", refused).await;

    world.apply("guard", spec("audit")).await?;
    eventually("no policy is refused any more", async || other().await.is_ok()).await;
    world.apply("guard", spec("enforce")).await?;
    eventually("policies are refused again", refused).await;
    world.policies().delete("guard", &DeleteParams::default()).await?;
    eventually("no policy is refused any more", async || other().await.is_ok()).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_policy_is_asked_about_is_refused_when_it_is_applied() -> Outcome {
    let world = World::start().await?;
    let guard = modules::admission_policies()?;
    world.config_map("guard", &guard).await?;
    let _replica = world.replica("a", &[]).await?;
    let kind = json!({"group": "opensdn.io", "kind": "AdmissionPolicy", "operations": ["DELETE"]});
    let deletions = from_config_map("guard", &guard, json!({"kinds": [kind]}));
    // A module that takes too long to load on a busy machine is looked at later.
    let said = async || world.try_apply(deletions.clone()).await;
    let is_refused = async || said().await.is_err_and(|said| said.contains("OSDN4015"));
    eventually("it is refused", is_refused).await;
    Ok(())
}
