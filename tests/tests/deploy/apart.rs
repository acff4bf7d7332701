//! The account of the processes that answer reviews cannot write the webhook configurations, by its token
//! and a real API server; the other account can, and only those. Each writes its own Leases.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use opensdn_deploy::Phase;
use opensdn_deploy::names::{LEASES_POLICY, NAMESPACE, configuration, webhook};
use opensdn_testing::Outcome;
use opensdn_testing::eventually::eventually;
use opensdn_testing::installer;
use opensdn_testing::sandbox::Sandbox;
use serde_json::{Value, json};

const KINDS: [(&str, &str); 2] = [
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
];

fn api(client: &Client, (kind, plural): (&str, &str)) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, plural))
}

/// Sends everything to somewhere else.
fn everything(kind: &str) -> Value {
    let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
        "resources": ["*/*"]});
    let entry = json!({"name": "all.example.io", "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/"}});
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": webhook::NAME}, "webhooks": [entry]})
}

fn is_forbidden<T>(what: &str, answer: kube::Result<T>) -> Outcome {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        Err(error) => Err(format!("{what}: {error}").into()),
        Ok(_) => Err(format!("{what}: it is done").into()),
    }
}

/// All ways to write it.
async fn try_all(api: &Api<DynamicObject>, kind: &str) -> Outcome {
    let wide = everything(kind);
    let object: DynamicObject = serde_json::from_value(wide.clone())?;
    let create = PostParams::default();
    is_forbidden("create", api.create(&create, &object).await)?;
    is_forbidden("update", api.replace(webhook::NAME, &create, &object).await)?;
    let (apply, merge) = (PatchParams::apply(webhook::NAME).force(), PatchParams::default());
    is_forbidden("apply", api.patch(webhook::NAME, &apply, &Patch::Apply(&wide)).await)?;
    let webhooks = Patch::Merge(json!({"webhooks": wide["webhooks"]}));
    is_forbidden("patch", api.patch(webhook::NAME, &merge, &webhooks).await)?;
    is_forbidden("delete", api.delete(webhook::NAME, &DeleteParams::default()).await)?;
    let (delete, all) = (DeleteParams::default(), ListParams::default());
    is_forbidden("delete all", api.delete_collection(&delete, &all).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answers_reviews_cannot_widen_what_is_sent_to_him() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let steps = opensdn_deploy::webhook()?;
    for step in steps.iter().filter(|step| step.phase < Phase::Program) {
        installer::apply(&sandbox, step).await?;
    }
    let serving = sandbox.client_for_service_account(NAMESPACE, webhook::NAME).await?;
    let writer = sandbox.client_for_service_account(NAMESPACE, configuration::NAME).await?;
    for kind in KINDS {
        // Where there is none, and where there is one.
        try_all(&api(&serving, kind), kind.0).await?;
        let apply = PatchParams::apply(webhook::NAME);
        let empty = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind.0,
            "metadata": {"name": webhook::NAME}, "webhooks": []});
        // The API server learns of a Role some time after it was stored.
        let written = async || {
            let patch = Patch::Apply(&empty);
            api(&writer, kind).patch(webhook::NAME, &apply, &patch).await.is_ok()
        };
        eventually("the other account writes it", written).await;
        try_all(&api(&serving, kind), kind.0).await?;

        let is_it = ListParams::default().fields(&format!("metadata.name={}", webhook::NAME));
        assert_eq!(api(&serving, kind).list(&is_it).await?.items.len(), 1, "it may look");
        let mut other = empty.clone();
        other["metadata"]["name"] = json!("other");
        let answer = api(&writer, kind).patch("other", &apply, &Patch::Apply(&other)).await;
        is_forbidden("another configuration", answer)?;
        let deleted = api(&writer, kind).delete(webhook::NAME, &DeleteParams::default()).await;
        is_forbidden("delete by the writer", deleted)?;
    }
    Ok(())
}

fn lease(name: &str) -> Lease {
    let spec = LeaseSpec { holder_identity: Some("somebody".to_owned()), ..LeaseSpec::default() };
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Lease { metadata, spec: Some(spec) }
}

/// By which right the write is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusedBy {
    /// The policy about Leases; RBAC would allow it.
    Policy,
    /// RBAC, already.
    Rbac,
}

fn is_refused<T>(what: &str, answer: kube::Result<T>, by: RefusedBy) -> Outcome {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let is_policy = status.message.contains(LEASES_POLICY)
                && status.message.contains("each account of OpenSDN writes its own");
            assert_eq!(is_policy, by == RefusedBy::Policy, "{what}: {}", status.message);
            Ok(())
        }
        Err(error) => Err(format!("{what}: {error}").into()),
        Ok(_) => Err(format!("{what}: it is done").into()),
    }
}

/// All that can be done to a Lease that is there, and to one that is not.
async fn no_lease_of(leases: &Api<Lease>, names: [&str; 2], rights: &[RefusedBy; 4]) -> Outcome {
    let [there, new] = names;
    let (write, apply) = (PostParams::default(), PatchParams::apply("thief").force());
    let [create, update, patch, delete] = *rights;
    is_refused("create", leases.create(&write, &lease(new)).await, create)?;
    let mut taken = leases.get(there).await.unwrap_or_else(|_| lease(there));
    taken.metadata.managed_fields = None;
    taken.spec = lease(there).spec;
    is_refused("update", leases.replace(there, &write, &taken).await, update)?;
    let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": there}, "spec": {"holderIdentity": "thief"}});
    is_refused("patch", leases.patch(there, &apply, &Patch::Apply(&object)).await, patch)?;
    is_refused("delete", leases.delete(there, &DeleteParams::default()).await, delete)
}

/// A token that is stolen from the pods that answer reviews must not hold the Lease of those that write
/// the webhook configurations; and the Leases of others are not our business.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_of_ours_writes_its_own_leases_and_nobody_else_is_held_up() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    for step in opensdn_deploy::webhook()?.iter().filter(|step| step.phase < Phase::Program) {
        installer::apply(&sandbox, step).await?;
    }
    let admin: Api<Lease> = Api::namespaced(sandbox.client()?, NAMESPACE);
    let serving = sandbox.client_for_service_account(NAMESPACE, webhook::NAME).await?;
    let writer = sandbox.client_for_service_account(NAMESPACE, configuration::NAME).await?;
    let (serving, writer) =
        (Api::<Lease>::namespaced(serving, NAMESPACE), Api::namespaced(writer, NAMESPACE));
    let write = PostParams::default();
    let (theirs, ours) = (configuration::LEADER_LEASE, webhook::LEADER_LEASE);
    let replica = format!("{}pod-1", webhook::REPLICA_LEASE_PREFIX);

    // RBAC and the policy are enforced some time after they were stored.
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let enforced = async || {
        let [own, other] = [ours, "other"].map(lease);
        serving.create(&dry_run, &own).await.is_ok()
            && serving.create(&dry_run, &other).await.is_err()
            && writer.create(&dry_run, &lease(theirs)).await.is_ok()
            && writer.create(&dry_run, &other).await.is_err()
    };
    eventually("each account is kept to its own Leases", enforced).await;

    writer.create(&write, &lease(theirs)).await?;
    no_lease_of(&serving, [theirs, "other"], &[RefusedBy::Policy; 4]).await?;
    for name in [ours, &replica] {
        let mut stored = serving.create(&write, &lease(name)).await?;
        stored.spec = Some(LeaseSpec::default());
        serving.replace(name, &write, &stored).await?;
    }
    let (policy, rbac) = (RefusedBy::Policy, RefusedBy::Rbac);
    no_lease_of(&writer, [ours, "other"], &[policy, rbac, rbac, rbac]).await?;
    no_lease_of(&writer, [replica.as_str(), ours], &[policy, rbac, rbac, rbac]).await?;
    let mut stored = writer.get(theirs).await?;
    stored.spec = Some(LeaseSpec::default());
    writer.replace(theirs, &write, &stored).await?;
    serving.delete(&replica, &DeleteParams::default()).await?;

    // An administrator, as to uninstall.
    admin.create(&write, &lease("of-an-administrator")).await?;
    for name in ["of-an-administrator", theirs, ours] {
        admin.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}
