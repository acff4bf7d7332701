//! One bounded call and its error.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Resource as _};
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::discovery::{Discovery, Resolution};
use opensdn_runtime::{counts, error_chain, metrics};
use serde_json::json;

use crate::api_server::{ApiServer, refusal};

async fn get(code: u16, reason: &'static str, message: &'static str) -> CallError {
    let (_, client) = ApiServer::start(move |_| Some(refusal(code, reason, message))).await;
    let api: Api<Secret> = Api::namespaced(client, "opensdn");
    Call::of::<Secret>(Verb::Get).name("ca").run(api.get("ca")).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_is_returned() {
    let (server, client) = ApiServer::start(|_| {
        Some((200, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})))
    })
    .await;
    let api: Api<ConfigMap> = Api::namespaced(client, "opensdn");
    let call = Call::of::<ConfigMap>(Verb::Get).name("a");
    let found = call.run(api.get("a")).await.unwrap();
    assert_eq!(found.meta().name.as_deref(), Some("a"));
    assert_eq!(server.seen()[0].uri, "/api/v1/namespaces/opensdn/configmaps/a");
}

#[tokio::test]
async fn a_call_without_an_answer_ends_in_time() {
    let (_, client) = ApiServer::start(|_| None).await;
    let api: Api<Secret> = Api::namespaced(client, "opensdn");
    let call = Call::of::<Secret>(Verb::List).timeout(Duration::from_millis(50));
    let error = call.run(api.list(&Default::default())).await.unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(error.category(), "timeout");
    assert_eq!(error_chain(&error), "list secrets: no answer from the API server within 0.05 s");
}

#[tokio::test]
async fn a_forbidden_call_names_the_rule_that_is_missing() {
    let error = get(
        403,
        "Forbidden",
        r#"secrets "ca" is forbidden: User "system:serviceaccount:opensdn:webhook" cannot get resource "secrets" in API group "" in the namespace "opensdn""#,
    )
    .await;
    let grant = error.missing_grant().unwrap();
    assert_eq!((grant.verb.as_str(), grant.resource.as_str()), ("get", "secrets"));
    assert_eq!(grant.namespace.as_deref(), Some("opensdn"));
    assert_eq!(error.category(), "forbidden");
    let text = error_chain(&error);
    let rule = r#"apiGroups: [""], resources: ["secrets"], verbs: ["get"] in namespace opensdn"#;
    let said = r#"secrets "ca" is forbidden: User "system:serviceaccount:opensdn:webhook" cannot get resource "secrets" in API group "" in the namespace "opensdn""#;
    assert_eq!(text, format!("get secrets ca: missing RBAC rule: {rule}: {said}"));
}

#[tokio::test]
async fn an_answer_is_told_once_and_in_words() {
    for (code, message, said) in [
        (409, "it was changed", "it was changed"),
        (404, "404 page not found\n", "the API server does not serve this kind"),
        (404, "secrets \"ca\" not found", "secrets \"ca\" not found"),
        (401, "Unauthorized", "the API server refuses our token (401): check that"),
    ] {
        let text = error_chain(&get(code, "Reason", message).await);
        let told = text.strip_prefix("get secrets ca: ").unwrap();
        assert!(told.starts_with(said), "{text}");
        assert_eq!(told.matches(said).count(), 1, "{text}");
        assert!(!text.contains("Status {") && !text.contains("ApiError"), "{text}");
    }
}

#[tokio::test]
async fn the_rule_is_the_one_that_the_api_server_asked_for() {
    // An apply is a patch; where there is no object yet, RBAC asks for `create`.
    let error = get(
        403,
        "Forbidden",
        r#"leases.coordination.k8s.io "x" is forbidden: User "u" cannot create resource "leases/status" in API group "coordination.k8s.io""#,
    )
    .await;
    let grant = error.missing_grant().unwrap();
    assert_eq!(grant.verb, "create");
    assert_eq!(
        grant.to_string(),
        r#"apiGroups: ["coordination.k8s.io"], resources: ["leases/status"], verbs: ["create"] for the whole cluster"#
    );
}

#[tokio::test]
async fn what_admission_or_a_quota_refuses_lacks_no_rule() {
    for message in [
        r#"admission webhook "x" denied the request: no"#,
        r#"pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1"#,
    ] {
        let error = get(403, "Forbidden", message).await;
        assert_eq!(error.missing_grant(), None, "{message}");
        assert_eq!(error.category(), "refused");
    }
}

#[tokio::test]
async fn an_absent_object_and_a_conflict_are_distinguishable() {
    let absent = get(404, "NotFound", "secrets \"ca\" not found").await;
    assert!(absent.is_not_found() && !absent.is_conflict());
    assert_eq!(absent.category(), "not_found");
    let conflict = get(409, "Conflict", "the object has been modified").await;
    assert!(conflict.is_conflict() && !conflict.is_not_found());
    assert_eq!(conflict.category(), "conflict");
    let expired = get(410, "Expired", "too old resource version").await;
    assert!(expired.is_expired() && !expired.is_conflict());
}

#[tokio::test]
async fn an_api_server_that_is_away_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut config = kube::Config::new(url.parse().unwrap());
    config.proxy_url = None;
    config.default_retry = false;
    let api: Api<Secret> = Api::all(kube::Client::try_from(config).unwrap());
    let error =
        Call::of::<Secret>(Verb::List).run(api.list(&Default::default())).await.unwrap_err();
    assert_eq!(error.category(), "unreachable");
    assert!(error.status().is_none());
}

#[tokio::test]
async fn where_the_token_is_refused_discovery_says_so_and_what_to_check() {
    let refused = refusal(401, "Unauthorized", "Unauthorized");
    let (_, client) = ApiServer::start(move |_| Some(refused.clone())).await;
    let discovery = Discovery::start(client, Duration::from_secs(10));
    discovery.changed().changed().await.unwrap();
    let found = discovery.snapshot().find("tf.tungsten.io", "Manager");
    let Resolution::Unknown(why) = found else { panic!("{found:?}") };
    assert!(why.contains("refuses our token (401): check that our ServiceAccount exists"), "{why}");
}

/// That there is no such object, or that another writer was faster, is an answer.
#[tokio::test]
async fn calls_that_fail_are_counted_and_answers_are_not() {
    for (code, reason) in [(403, "Forbidden"), (503, "Away"), (404, "NotFound"), (409, "Conflict")]
    {
        get(code, reason, "why").await;
    }
    let mut registry = metrics::registry("test");
    counts::register_all(&mut registry);
    let text = metrics::encode(&registry).unwrap();
    let counted = r#"test_api_calls_failed_total{operation="get secrets",reason="refused"} "#;
    assert!(text.contains(counted), "{text}");
    for reason in ["not_found", "conflict"] {
        assert!(!text.contains(reason), "{text}");
    }
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_is_known_and_the_path_of_its_url_is_not_shown() {
    let message = "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: Post \
                   \"https://10.0.0.1:443/validate/SECRET-TOKEN?timeout=10s\": dial tcp 10.0.0.1:443: connect: refused";
    let error = get(500, "InternalError", message).await;
    assert!(error.is_of_a_webhook() && !error.is_refusal());
    let text = error_chain(&error);
    assert!(text.contains("\"https://10.0.0.1:443/...\": dial tcp 10.0.0.1:443"), "{text}");
    assert!(!format!("{text} {error:?}").contains("SECRET-TOKEN"), "{error:?}");
    let other = get(500, "InternalError", "see https://kubernetes.io/docs/a/b").await;
    assert!(!other.is_of_a_webhook());
    assert!(error_chain(&other).contains("https://kubernetes.io/docs/a/b"));
}
