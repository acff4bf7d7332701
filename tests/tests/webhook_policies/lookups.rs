//! Lookups while the cluster changes, while one kind cannot be read, and while nothing is known of the
//! API server.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_follow_the_cluster_and_fail_when_it_is_not_heard_of() -> Outcome {
    let world = World::start().await?;
    let replica = world.replica("a", &["--lookup-staleness-seconds", "4"]).await?;
    let spec = json!({"module": {"builtIn": "even-quorum"}, "settings": {"severity": "deny"}});
    world.apply("even", spec).await?;
    world.becomes("even", "True", "Serving").await;
    for name in ["n1", "n2"] {
        world.node(name).await?;
    }
    let even = async || world.try_zookeeper().await.is_err_and(|text| text.contains("OSDN1205"));
    eventually("two members are refused", even).await;
    world.node("n3").await?;
    let odd = async || world.try_zookeeper().await.is_ok();
    eventually("three members are accepted", odd).await;

    world.sandbox.kill_api_server();
    let named =
        async || replica.readiness.missing().iter().any(|(name, _)| name.contains("API server"));
    eventually("readiness says that nothing is heard", named).await;
    let synced = "opensdn_webhook_lookup_cache_synced{kind=\"/Node\"}";
    eventually("so does the metric", async || replica.metric(synced) == Some(0.0)).await;
    world.sandbox.start_api_server().await?;
    let ready = async || replica.readiness.missing().is_empty();
    eventually("it recovers by itself", ready).await;
    eventually("three members are accepted again", odd).await;
    // It is written twice a second.
    eventually("so does the metric", async || replica.metric(synced) == Some(1.0)).await;

    // No policy needs the cache any more.
    world.policies().delete("even", &DeleteParams::default()).await?;
    eventually("the cache ends", async || replica.metric(synced).is_none()).await;
    Ok(())
}

/// Lets the user do all that a webhook does, by two roles of which one is about Nodes.
async fn grant(world: &World, user: &str) -> Outcome {
    let rule = |groups: &[&str], resources: &[&str]| json!([{"apiGroups": groups, "resources": resources, "verbs": ["*"]}]);
    let groups = [
        "opensdn.io",
        "tf.tungsten.io",
        "coordination.k8s.io",
        "events.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
    ];
    let rules = [
        rule(&groups, &["*"]),
        rule(&[""], &["configmaps", "namespaces", "secrets"]),
        rule(&["apps"], &["statefulsets"]),
    ];
    let most: Vec<&Value> =
        rules.iter().flat_map(|rules| rules.as_array().into_iter().flatten()).collect();
    let nodes = rule(&[""], &["nodes"]);
    for (name, rules) in [("most", json!(most)), ("nodes", nodes)] {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        let roles: Api<ClusterRole> = Api::all(world.client.clone());
        roles.create(&PostParams::default(), &serde_json::from_value(role)?).await?;
        let binding = json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
        let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
        bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_cannot_be_read_harms_the_policies_that_look_it_up_and_no_other() -> Outcome {
    let mut world = World::start().await?;
    grant(&world, "limited").await?;
    world.user = User::new("limited");
    let replica = world.replica("a", &["--lookup-staleness-seconds", "4"]).await?;
    let spec = json!({"module": {"builtIn": "even-quorum"}, "settings": {"severity": "deny"}});
    world.apply("even", spec).await?;
    world.apply("unsafe", unsafe_parameter(json!({}))).await?;
    world.becomes("even", "True", "Serving").await;
    refused(&world, "plain").await;
    world.node("n1").await?;
    let passes = async || world.try_zookeeper().await.is_ok();
    eventually("what it looks up is answered", passes).await;

    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    bindings.delete("nodes", &DeleteParams::default()).await?;
    let said = async || {
        let said = world.try_zookeeper().await.err().unwrap_or_default();
        said.contains("policy even: ") && said.contains("cache of Node cannot be relied on")
    };
    eventually("the policy that needs it is inconclusive, and refuses", said).await;
    world.becomes("even", "False", "WaitingForLookups").await;
    let synced = "opensdn_webhook_lookup_cache_synced{kind=\"/Node\"}";
    eventually("the metric says so", async || replica.metric(synced) == Some(0.0)).await;
    assert_eq!(replica.readiness.missing(), [], "the replica stays in the Service");
    let judged = world.try_vrouter("plain").await;
    assert!(judged.is_err_and(|said| said.contains("OSDN1812")), "others judge on");
    Ok(())
}
