//! What the status says while a right of the webhook's account is missing.

use std::time::Duration;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::ResourceExt as _;
use tokio::time::{Instant, sleep};

use super::*;

/// A policy that claims.
const POLICY: &str = "duplicate-link-local";
/// For so long nothing may be written again and again: longer than any interval of the webhook's.
const WATCHED: Duration = Duration::from_secs(35);

fn roles(world: &World) -> Api<ClusterRole> {
    Api::all(world.client.clone())
}

async fn set_rules(world: &World, rules: &[PolicyRule]) -> Outcome {
    let change = Patch::Merge(json!({"rules": rules}));
    roles(world).patch(webhook::NAME, &PatchParams::default(), &change).await?;
    Ok(())
}

/// The rules of the account that answers reviews.
async fn rules(world: &World) -> Result<Vec<PolicyRule>, Failed> {
    Ok(roles(world).get(webhook::NAME).await?.rules.ok_or("no rules")?)
}

/// Status, reason and message of a condition of the policy.
async fn condition(world: &World, type_: &str) -> [String; 3] {
    let policies: Api<AdmissionPolicy> = Api::all(world.client.clone());
    let status = policies.get(POLICY).await.ok().and_then(|policy| policy.status);
    let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
    let found = conditions.into_iter().find(|one| one.type_ == type_).unwrap_or_default();
    [found.status, found.reason.unwrap_or_default(), found.message.unwrap_or_default()]
}

/// Waits until a condition of the policy has this status and reason; its message.
async fn becomes(world: &World, type_: &str, status: &str, reason: &str) -> String {
    let is = async || {
        let [now, why, _] = condition(world, type_).await;
        now == status && why == reason
    };
    eventually(&format!("{type_} is {status}: {reason}"), is).await;
    let [_, _, message] = condition(world, type_).await;
    message
}

/// Nothing writes the policy, its status among it.
async fn is_left_alone(world: &World) -> Outcome {
    let policies: Api<AdmissionPolicy> = Api::all(world.client.clone());
    let before = policies.get(POLICY).await?;
    let until = Instant::now() + WATCHED;
    while Instant::now() < until {
        sleep(Duration::from_secs(1)).await;
        let now = policies.get(POLICY).await?;
        assert_eq!(
            now.resource_version(),
            before.resource_version(),
            "written again: {:#?} after {:#?}",
            now.status,
            before.status
        );
    }
    Ok(())
}

/// The value of a metric of the replica, by the beginning of its line.
async fn replica_metric(world: &World, beginning: &str) -> Option<f64> {
    let text = admin_port::get(world.product.backends().first()?.admin, "/metrics").await.ok()?;
    let line = text.lines().find(|line| line.starts_with(beginning))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uniqueness_is_not_said_to_hold_while_claims_cannot_be_written() -> Outcome {
    let world = World::start().await?;
    becomes(&world, "UniquenessHolds", "True", "StoredObjectsClaimed").await;
    let before = rules(&world).await?;
    let is_other = |rule: &&PolicyRule| {
        !rule.resources.iter().flatten().any(|resource| resource == "uniqueclaims")
    };
    let without: Vec<PolicyRule> = before.iter().filter(is_other).cloned().collect();
    assert_ne!(without.len(), before.len());
    set_rules(&world, &without).await?;

    let message = becomes(&world, "UniquenessHolds", "False", "ClaimsNotWritten").await;
    for part in ["missing RBAC rule", "uniqueclaims", "deploy/webhook/rbac.yaml"] {
        assert!(message.contains(part), "{message}");
    }
    let said = world.create("first", "169.254.7.1").await.err().ok_or("it is stored")?;
    assert!(said.to_string().contains("uniqueclaims"), "{said}");
    let failed = r#"opensdn_webhook_api_calls_failed_total{operation="create uniqueclaims""#;
    assert!(replica_metric(&world, failed).await > Some(0.0));
    is_left_alone(&world).await?;

    set_rules(&world, &before).await?;
    becomes(&world, "UniquenessHolds", "True", "StoredObjectsClaimed").await;
    world.create("first", "169.254.7.1").await?;
    let log = std::fs::read_to_string(world.sandbox.data_folder().join("logs/webhook-0.log"))?;
    for line in ["failed to write claims", "claims can be written again"] {
        assert_eq!(log.matches(line).count(), 1, "{line}: {log}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_are_not_said_to_be_ready_while_they_cannot_be_read() -> Outcome {
    let world = World::start().await?;
    becomes(&world, "Ready", "True", "Serving").await;
    let outdated = "opensdn_webhook_policies_outdated ";
    assert_eq!(replica_metric(&world, outdated).await, Some(0.0));
    let before = rules(&world).await?;
    let mut without = before.clone();
    // The kinds of OpenSDN in all, the AdmissionPolicies among them.
    let all = without.iter_mut().find(|rule| rule.resources == Some(vec!["*".to_owned()]));
    let kinds = opensdn_crds::all().into_iter().map(|kind| kind.spec.names.plural);
    let others = kinds.filter(|plural| plural != "admissionpolicies").collect();
    all.ok_or("no such rule")?.resources = Some(others);
    set_rules(&world, &without).await?;

    let message = becomes(&world, "Ready", "Unknown", "Outdated").await;
    for part in ["cannot read AdmissionPolicies", "missing RBAC rule", "admissionpolicies"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(replica_metric(&world, outdated).await, Some(1.0));
    assert!(replica_metric(&world, "opensdn_webhook_watches_disconnected ").await > Some(0.0));
    // What was read last is in force.
    world.create("first", "169.254.7.1").await?;
    let said = world.create("second", "169.254.7.1").await.err().ok_or("it is taken")?;
    assert!(said.to_string().contains("is already taken"), "{said}");
    is_left_alone(&world).await?;

    set_rules(&world, &before).await?;
    becomes(&world, "Ready", "True", "Serving").await;
    assert_eq!(replica_metric(&world, outdated).await, Some(0.0));
    Ok(())
}
