//! Updates: which pass unjudged, what of the stored object counts, and AdmissionPolicies.

use super::*;

const RUNS_CODE: &str = "e0$(reboot)";

impl Bench {
    async fn update(&self, old: &Value, new: &Value) -> Value {
        let body = review("UPDATE", new.clone(), old.clone()).to_string();
        self.answer(Step::Validate, body).await
    }
}

/// One that is being deleted and has these finalizers.
fn leaving(service: Value, finalizers: &[&str]) -> Value {
    let mut object = vrouter(service);
    object["metadata"]["deletionTimestamp"] = json!("2026-11-21T09:00:00Z");
    object["metadata"]["finalizers"] = json!(finalizers);
    object
}

#[tokio::test]
async fn an_object_that_waits_for_its_finalizers_changes_nothing_but_metadata_unjudged() {
    let bench = bench(&[TLS, UNSAFE], false).await;
    let wrong = json!({"sslEnable": false, "physicalInterface": RUNS_CODE});
    let old = leaving(wrong.clone(), &["a/x", "a/y"]);
    let response = bench.update(&old, &leaving(wrong, &["a/y"])).await;
    let passed = json!({"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": true});
    assert_eq!(response, passed);

    let good = leaving(json!({"sslEnable": true}), &["a/x"]);
    for spec in
        [json!({"sslEnable": true, "physicalInterface": RUNS_CODE}), json!({"sslEnable": false})]
    {
        let response = bench.update(&good, &leaving(spec, &[])).await;
        assert_eq!(response["allowed"], false, "{response}");
    }
    let response = bench.update(&good, &leaving(json!({"sslEnable": true, "mtu": "1"}), &[])).await;
    assert_eq!(response["allowed"], true, "a good change passes: {response}");
}

#[tokio::test]
async fn an_object_that_waits_for_its_finalizers_claims_what_it_takes() {
    let bench = bench(&[CLAIMS], true).await;
    let mut old = link_local("metrics");
    old["metadata"]["deletionTimestamp"] = json!("2026-11-21T09:00:00Z");
    let mut new = old.clone();
    new["spec"]["ip"] = json!("169.254.99.9");
    let response = bench.update(&old, &new).await;
    assert_eq!(response["allowed"], false, "{response}");
}

#[tokio::test]
async fn an_object_that_its_owner_lets_go_claims_nothing() {
    let bench = bench(&[CLAIMS], true).await;
    let mut old = link_local("metrics");
    old["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"}]);
    let mut new = old.clone();
    new["metadata"]["ownerReferences"] = json!([]);
    let response = bench.update(&old, &new).await;
    assert_eq!(response["allowed"], true, "{response}");
    new["metadata"]["labels"] = json!({"a": "b"});
    let response = bench.update(&old, &new).await;
    assert_eq!(response["allowed"], false, "with anything else it does: {response}");
}

#[tokio::test]
async fn an_update_is_not_refused_for_what_is_stored_already() {
    let bench = bench(&[TLS], false).await;
    let old = vrouter(json!({"sslEnable": false}));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    new["spec"]["serviceConfiguration"]["mtu"] = json!("9000");
    let response = bench.update(&old, &new).await;
    assert_eq!(response["allowed"], true, "{response}");
    let warning = response["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("[OSDN1816] spec.serviceConfiguration.sslEnable: "), "{warning}");
    assert!(warning.contains("the stored object has it too"), "{warning}");

    let body = review("CREATE", new.clone(), Value::Null).to_string();
    assert_eq!(bench.answer(Step::Validate, body).await["allowed"], false, "a create is");
    let good = vrouter(json!({"sslEnable": true}));
    assert_eq!(bench.update(&good, &new).await["allowed"], false, "so is what is new");
}

#[tokio::test]
async fn what_must_go_refuses_every_update() {
    let bench = bench(&[UNSAFE], false).await;
    let old = vrouter(json!({"physicalInterface": RUNS_CODE}));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    let response = bench.update(&old, &new).await;
    assert_eq!(response["allowed"], false, "{response}");
}

#[tokio::test]
async fn ratcheting_can_be_switched_off() {
    let disable = |binding: &mut Binding| binding.ratcheting = Ratcheting::Disabled;
    let bench = bench_with(&[TLS], false, disable).await;
    let old = vrouter(json!({"sslEnable": false}));
    assert_eq!(bench.update(&old, &old).await["allowed"], false);
}

fn admission_policy(mode: &str, settings: Value) -> Value {
    json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {"module": {"builtIn": "plaintext"}, "mode": mode, "settings": settings}})
}

#[tokio::test]
async fn an_admission_policy_can_always_be_switched_off() {
    let bench = bench(&[], false).await;
    let (good, wrong) = (json!({}), json!({"colour": 1}));
    for mode in ["warn", "audit"] {
        let off = admission_policy(mode, wrong.clone());
        let response = bench.update(&admission_policy("enforce", wrong.clone()), &off).await;
        assert_eq!(response["allowed"], true, "{response}");
        assert!(response["warnings"][0].as_str().unwrap().starts_with("[OSDN4005]"), "{response}");
        let response = bench.update(&admission_policy("enforce", good.clone()), &off).await;
        assert_eq!(response["allowed"], true, "{response}");
    }
    let on = admission_policy("enforce", wrong.clone());
    for before in [admission_policy("enforce", good.clone()), admission_policy("audit", good)] {
        assert_eq!(bench.update(&before, &on).await["allowed"], false, "{before}");
    }
    let stored = admission_policy("audit", wrong);
    assert_eq!(bench.update(&stored, &on).await["allowed"], true, "it is stored already");
    let body = review("DELETE", Value::Null, on).to_string();
    assert_eq!(bench.answer(Step::Validate, body).await["allowed"], true);
}

#[tokio::test]
async fn an_admission_policy_of_megabytes_is_refused_unread() {
    let bench = bench(&[], false).await;
    let numbers = json!({"colour": vec![0; 1 << 20]});
    let response = bench.validate(admission_policy("audit", numbers)).await;
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("[OSDN4013]: it is larger than 1024 KiB"), "{message}");
}

#[tokio::test]
async fn what_was_written_in_another_version_is_told_so() {
    let bench = bench(&[TLS], false).await;
    let mut body = review("CREATE", vrouter(json!({"sslEnable": false})), Value::Null);
    body["request"]["requestKind"] =
        json!({"group": "tf.tungsten.io", "version": "v1", "kind": "Vrouter"});
    let response = bench.answer(Step::Validate, body.to_string()).await;
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("in Vrouter tf/vrouter1 (judged as v1alpha1):"), "{message}");
}

/// As trees, both objects together are 64 MiB.
#[cfg(not(target_env = "musl"))]
#[tokio::test]
async fn objects_are_compared_without_being_copied() {
    let bench = bench(&[], false).await;
    let numbers = "0,".repeat(1 << 20);
    let object = |annotation: &str| {
        format!(
            r#"{{"metadata":{{"name":"v","deletionTimestamp":"2026-11-21T09:00:00Z","annotations":
                {{"opensdn.io/confirm-loss":"{annotation}"}}}},"spec":[{numbers}0]}}"#
        )
    };
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u",
            "operation":"UPDATE","kind":{{"group":"tf.tungsten.io","kind":"Vrouter"}},
            "object":{},"oldObject":{}}}}}"#,
        object("a"),
        object("b")
    );
    let body = Bytes::from(body);
    let answered = bench.answer(Step::Validate, body.clone());
    let (response, most) = super::super::allocated::most(answered).await;
    assert_eq!(response["allowed"], true, "{response}");
    assert!(most < body.len() / 4, "{most} bytes for a body of {}", body.len());
}
