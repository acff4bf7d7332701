//! Apply, apply of a status, delete.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::ObjectMeta;
use opensdn_runtime::apply::{
    Context, Deletion, Exactly, WriteOutcome, apply, apply_status, apply_status_if_unchanged,
    delete_exactly, delete_named, patch_status, read, write_as_read,
};
use serde_json::{Value, json};

use crate::api_server::{ApiServer, refusal};

fn pod() -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some("a".into()),
            namespace: Some("n".into()),
            uid: Some("u1".into()),
            resource_version: Some("7".into()),
            ..ObjectMeta::default()
        },
        status: Some(PodStatus { phase: Some("Running".into()), ..PodStatus::default() }),
        ..Pod::default()
    }
}

fn stored() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u2"}})
}

#[tokio::test]
async fn an_object_is_applied_by_force_and_returned_as_stored() {
    let (server, client) = ApiServer::start(|_| Some((200, stored()))).await;
    let mut pod = pod();
    pod.metadata.uid = None;
    let stored = apply(&Context::new(client, "operator"), &pod).await.unwrap();
    assert_eq!(stored.metadata.uid.as_deref(), Some("u2"));
    let seen = &server.seen()[0];
    assert_eq!(seen.method, "PATCH");
    let (path, query) = seen.uri.split_once('?').unwrap();
    assert_eq!(path, "/api/v1/namespaces/n/pods/a");
    assert!(query.contains("fieldManager=operator") && query.contains("force=true"), "{query}");
    assert_eq!(seen.body["kind"], "Pod");
}

#[tokio::test]
async fn a_status_is_applied_without_anything_else_of_the_object() {
    let (server, client) = ApiServer::start(|_| Some((200, stored()))).await;
    let manager = "m".repeat(200);
    apply_status(&Context::new(client, &manager), &pod()).await.unwrap();
    let seen = &server.seen()[0];
    let (path, query) = seen.uri.split_once('?').unwrap();
    assert_eq!(path, "/api/v1/namespaces/n/pods/a/status");
    assert!(query.contains(&"m".repeat(128)) && !query.contains(&"m".repeat(129)), "{query}");
    assert_eq!(
        seen.body,
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "n", "uid": "u1"},
            "status": {"phase": "Running"},
        })
    );
}

#[tokio::test]
async fn a_status_is_applied_only_over_the_version_that_was_read() {
    let answer = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "8"}});
    let (server, client) = ApiServer::start(move |_| Some((200, answer.clone()))).await;
    let version = apply_status_if_unchanged(&Context::new(client, "m"), &(), &pod()).await.unwrap();
    assert_eq!(version.as_deref(), Some("8"));
    let metadata = json!({"name": "a", "namespace": "n", "uid": "u1", "resourceVersion": "7"});
    assert_eq!(server.seen()[0].body["metadata"], metadata);

    let (_, client) = ApiServer::start(|_| Some(refusal(409, "Conflict", "modified"))).await;
    let refused = apply_status_if_unchanged(&Context::new(client, "m"), &(), &pod()).await;
    assert!(refused.unwrap_err().is_conflict());
}

#[tokio::test]
async fn what_others_have_written_however_deep_fails_neither_a_read_nor_an_apply() {
    // An API server keeps the `managedFields` that a create brings with it.
    let (open, close) = (r#"{"f:a":"#.repeat(500), "}".repeat(500));
    let mut deep = stored();
    deep["metadata"]["managedFields"] =
        json!([{"manager": "m", "operation": "Update", "fieldsV1": "DEEP"}]);
    let deep = deep.to_string().replace(r#""DEEP""#, &format!("{open}{{}}{close}"));
    let (_, client) = ApiServer::start_text(move |_| Some((200, deep.clone()))).await;
    let ctx = Context::new(client, "operator");
    apply(&ctx, &pod()).await.unwrap();
    apply_status(&ctx, &pod()).await.unwrap();
    let found: Option<Pod> = read(&ctx, Some("n"), "a").await.unwrap();
    assert_eq!(found.unwrap().metadata.uid.as_deref(), Some("u2"));
}

#[tokio::test]
async fn an_error_names_the_write() {
    let (_, client) = ApiServer::start(|_| Some(refusal(422, "Invalid", "no"))).await;
    let ctx = Context::new(client, "operator");
    let error = apply(&ctx, &pod()).await.unwrap_err();
    assert_eq!(error.to_string(), "patch pods a");
    assert_eq!(apply_status(&ctx, &pod()).await.unwrap_err().to_string(), "patch pods/status a");
}

#[tokio::test]
async fn exactly_the_object_that_was_read_is_deleted() {
    let (server, client) = ApiServer::start(|_| Some((200, stored()))).await;
    let ctx = Context::new(client, "operator");
    for (exactly, preconditions) in [
        (Exactly::ThisObject, json!({"uid": "u1"})),
        (Exactly::ThisVersion, json!({"uid": "u1", "resourceVersion": "7"})),
    ] {
        assert_eq!(delete_exactly(&ctx, &pod(), exactly).await.unwrap(), Deletion::Deleted);
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.method, "DELETE");
        assert_eq!(seen.body["preconditions"], preconditions);
    }
    for (code, reason) in [(404, "NotFound"), (409, "Conflict")] {
        let (_, client) = ApiServer::start(move |_| Some(refusal(code, reason, "no"))).await;
        let ctx = Context::new(client, "operator");
        let deletion = delete_exactly(&ctx, &pod(), Exactly::ThisObject).await.unwrap();
        assert_eq!(deletion, Deletion::NotTheSame);
    }
    let (_, client) = ApiServer::start(|_| Some(refusal(500, "InternalError", "no"))).await;
    let ctx = Context::new(client, "operator");
    assert!(delete_exactly(&ctx, &pod(), Exactly::ThisObject).await.is_err());
}

#[tokio::test]
async fn a_named_object_is_deleted_whichever_it_is() {
    let (server, client) = ApiServer::start(|_| Some((200, stored()))).await;
    let ctx = Context::new(client, "operator");
    let deletion = delete_named::<Pod>(&ctx, Some("n"), "a").await.unwrap();
    assert_eq!(deletion, Deletion::Deleted);
    let seen = &server.seen()[0];
    assert_eq!(seen.method, "DELETE");
    assert!(seen.uri.starts_with("/api/v1/namespaces/n/pods/a"), "{}", seen.uri);
    assert!(seen.body.get("preconditions").is_none_or(Value::is_null));
}

#[tokio::test]
async fn a_status_is_patched_as_json() {
    let (server, client) = ApiServer::start(|_| Some((200, stored()))).await;
    let patch = json!([{"op": "remove", "path": "/status/replicas/0"}]);
    let patch_of = serde_json::from_value(patch.clone()).unwrap();
    patch_status(&Context::new(client, "operator"), &pod(), patch_of).await.unwrap();
    let seen = &server.seen()[0];
    assert!(seen.uri.starts_with("/api/v1/namespaces/n/pods/a/status?"), "{}", seen.uri);
    assert_eq!(seen.body, patch);
}

#[tokio::test]
async fn what_was_read_is_replaced_and_what_was_not_there_is_created() {
    for (version, method, path) in [
        (Some("7"), "PUT", "/api/v1/namespaces/n/pods/a"),
        // Not by POST, of which RBAC cannot know the name.
        (None, "PATCH", "/api/v1/namespaces/n/pods/a"),
    ] {
        let (server, client) = ApiServer::start(|_| Some((200, stored()))).await;
        let mut pod = pod();
        pod.metadata.resource_version = version.map(str::to_owned);
        let written = write_as_read(&Context::new(client, "operator"), &pod).await.unwrap();
        assert_eq!(written, WriteOutcome::Stored);
        let seen = &server.seen()[0];
        assert_eq!((seen.method.as_str(), seen.uri.split('?').next()), (method, Some(path)));
        assert!(seen.uri.contains("fieldManager=operator"), "{}", seen.uri);
        assert!(!seen.uri.contains("force"), "{}", seen.uri);
        let sent = seen.body["metadata"].get("resourceVersion");
        assert_eq!(sent.and_then(Value::as_str), version);
    }
}

#[tokio::test]
async fn a_faster_writer_is_a_conflict_and_no_error() {
    for (code, version, expected) in [
        (409, Some("7"), Some(WriteOutcome::Conflict)),
        (409, None, Some(WriteOutcome::Conflict)),
        (404, Some("7"), Some(WriteOutcome::Conflict)),
        (404, None, None),
        (500, Some("7"), None),
    ] {
        let (_server, client) =
            ApiServer::start(move |_| Some(refusal(code, "Refused", "no"))).await;
        let mut pod = pod();
        pod.metadata.resource_version = version.map(str::to_owned);
        let written = write_as_read(&Context::new(client, "operator"), &pod).await;
        assert_eq!(written.ok(), expected, "{code} {version:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_read_as_nothing() {
    let (server, client) = ApiServer::start(|_| Some(refusal(404, "NotFound", "none"))).await;
    let found: Option<Pod> = read(&Context::new(client, "o"), Some("n"), "a b").await.unwrap();
    assert_eq!(found, None);
    assert_eq!(server.seen()[0].uri, "/api/v1/namespaces/n/pods/a%20b");
}
