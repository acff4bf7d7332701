//! The account of the processes that answer reviews cannot write the webhook configurations, by its token
//! and a real API server; the other account can, and only those.

use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use opensdn_deploy::Phase;
use opensdn_deploy::names::{NAMESPACE, configuration, webhook};
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
