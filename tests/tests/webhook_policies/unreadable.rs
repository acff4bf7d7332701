//! AdmissionPolicies that a replica cannot read: stored past the schema, as by an older or a newer release.

use super::*;

/// Takes the schema of `spec` away, as that of another release may be another one.
async fn take_any_spec(world: &World) -> Outcome {
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let mut definition = definitions.get("admissionpolicies.opensdn.io").await?;
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|one| one.open_api_v3_schema.as_mut());
        let properties = schema.and_then(|schema| schema.properties.as_mut());
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        properties.ok_or("a schema")?.insert("spec".to_owned(), serde_json::from_value(any)?);
    }
    definitions
        .replace("admissionpolicies.opensdn.io", &PostParams::default(), &definition)
        .await?;
    Ok(())
}

/// As whatever is stored: the type has no room for it.
fn policies(world: &World) -> Api<DynamicObject> {
    let resource = resource("opensdn.io", "v1alpha1", "AdmissionPolicy", "admissionpolicies");
    Api::all_with(world.client.clone(), &resource)
}

/// The condition Ready: reason and message.
async fn ready(world: &World, policy: &str) -> Option<(String, String)> {
    let stored = policies(world).get(policy).await.ok()?;
    let conditions = stored.data.pointer("/status/conditions")?.as_array()?;
    let ready = conditions.iter().find(|one| one["type"] == "Ready")?;
    let text = |field: &str| Some(ready.get(field)?.as_str()?.to_owned());
    Some((text("reason")?, text("message")?))
}

async fn store(world: &World, name: &str, spec: Value) -> Outcome {
    let policies = policies(world);
    let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": name}, "spec": spec});
    let object: DynamicObject = serde_json::from_value(object)?;
    eventually("it is stored as it is", async || {
        let _there = policies.create(&PostParams::default(), &object).await;
        // The API server takes the new schema some time after it is written.
        let as_it_is = policies.get(name).await.is_ok_and(|stored| stored.data == object.data);
        if !as_it_is {
            let _gone = policies.delete(name, &DeleteParams::default()).await;
        }
        as_it_is
    })
    .await;
    Ok(())
}

/// A good Vrouter: no policy has anything against it.
async fn try_good(world: &World) -> Result<(), String> {
    let resource = resource("tf.tungsten.io", "v1alpha1", "Vrouter", "vrouters");
    let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": "v"}, "spec": {"serviceConfiguration": {"physicalInterface": "eth0"}}});
    create(&Api::namespaced_with(world.client.clone(), "plain", &resource), &object).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_unreadable_policy_may_be_about_is_refused_until_it_is_repaired() -> Outcome {
    let world = World::start().await?;
    take_any_spec(&world).await?;
    store(&world, "newer", json!({"module": {"oci": "registry/policy:2"}, "mode": "insist"}))
        .await?;
    let replica = world.replica("a", &[]).await?;

    let said = async || try_good(&world).await.err().unwrap_or_default();
    let named = async || said().await.contains("policy newer: the policy is not active: OSDN4013");
    eventually("what it may be about is refused, and why", named).await;
    let loaded = || replica.metric("opensdn_webhook_policy_loaded{policy=\"newer\"}");
    eventually("it is counted as not loaded", async || loaded() == Some(0.0)).await;
    let is_reported = async || {
        ready(&world, "newer").await.is_some_and(|(reason, message)| {
            reason == "Unreadable"
                && message.contains("it cannot be read")
                && message.contains("update the webhook")
        })
    };
    eventually("its status says so, and what to do", is_reported).await;

    // Nothing of ours is in the way of the repair.
    policies(&world).delete("newer", &DeleteParams::default()).await?;
    eventually("it is accepted", async || try_good(&world).await.is_ok()).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_unreadable_policy_its_mode_and_its_kinds_hold_where_they_can_be_read() -> Outcome {
    let (world, _) = with_gizmos().await?;
    take_any_spec(&world).await?;
    let gizmos = json!([{"group": "example.io", "kind": "Gizmo"}]);
    let spec = |mode: &str| json!({"module": {"builtIn": 7}, "kinds": gizmos, "mode": mode, "failureMode": "fail"});
    store(&world, "gizmos", spec("enforce")).await?;
    store(&world, "audited", json!({"module": {"builtIn": 7}, "mode": "audit"})).await?;
    let _replica = world.replica("a", &[]).await?;
    let said = async || world.try_gizmo("plain").await.err().unwrap_or_default();
    let named = async || said().await.contains("policy gizmos: the policy is not active: OSDN4013");
    eventually("its kind is refused, and why", named).await;
    assert_eq!(
        try_good(&world).await,
        Ok(()),
        "it is not about others, and the audited one refuses nothing"
    );
    Ok(())
}
