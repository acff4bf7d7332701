//! AdmissionPolicies that name a version of their kind: the API server converts what is written in
//! another one.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_about_one_version_judges_what_is_written_in_another() -> Outcome {
    let (world, gizmos) = with_gizmos().await?;
    let _replica = world.replica("a", &[]).await?;
    let kind = json!({"group": "example.io", "version": "v1", "kind": "Gizmo"});
    let spec = from_config_map("module", &gizmos, json!({"kinds": [kind]}));
    world.apply("gizmos", spec).await?;
    for version in ["v1", "v2"] {
        let said = async || world.try_gizmo_in(version, "plain").await;
        let is = async || said().await.is_err_and(|said| said.contains(modules::MESSAGE));
        eventually(&format!("a Gizmo in {version} is refused"), is).await;
    }
    Ok(())
}

/// The policy about one version refuses, whichever version is written, though another policy is about
/// the other one.
async fn both_judge(of_v1: &str, of_v2: &str) -> Outcome {
    let (world, gizmos) = with_gizmos().await?;
    let _replica = world.replica("a", &[]).await?;
    for (version, mode) in [("v1", of_v1), ("v2", of_v2)] {
        let kind = json!({"group": "example.io", "version": version, "kind": "Gizmo"});
        let spec = from_config_map("module", &gizmos, json!({"kinds": [kind], "mode": mode}));
        world.apply(&format!("about-{version}"), spec).await?;
        world.becomes(&format!("about-{version}"), "True", "Serving").await;
    }
    for version in ["v1", "v2"] {
        let said = async || world.try_gizmo_in(version, "plain").await;
        let is = async || said().await.is_err_and(|said| said.contains(modules::MESSAGE));
        eventually(&format!("{of_v1}, {of_v2}: a Gizmo in {version} is refused"), is).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_about_two_versions_of_a_kind_both_judge_all_that_is_written() -> Outcome {
    both_judge("enforce", "audit").await?;
    both_judge("audit", "enforce").await
}
