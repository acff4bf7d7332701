//! Reviews as bytes in, answers as bytes out: every row of the protocol that does not need HTTP.

mod owners;
mod updates;

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use opensdn_policy_host::{
    Binding, Cache, Claim, Engine, FailureMode, Finding, Limits, Mode, Policy, PolicySet,
    Ratcheting, Scope, Selector, Severity, Step,
    lookup::{Documents, Lookup},
};
use opensdn_runtime::levels::MOST_LEVELS;
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::Instant};

use super::review::LARGEST_MANAGED_FIELDS;
use super::{Admission, Claimed, Labels, Purpose, ReviewBackend};
use crate::{
    active::ActivePolicies,
    claims::Holder,
    metrics::Metrics,
    server::{Call, Reviewer as _},
};

/// Records the claims it is asked for; refuses those whose key is `held`.
#[derive(Default)]
struct Around {
    taken: Mutex<Vec<(Holder, Vec<Claim>, Purpose)>>,
    held: bool,
    /// Another object has the name.
    name_is_taken: bool,
    /// The UID of who holds them.
    held_by: Option<String>,
    lookup: owners::Lagging,
}

impl ReviewBackend for Arc<Around> {
    async fn claim(
        &self,
        holder: Holder,
        claims: Vec<Claim>,
        _: Vec<Claim>,
        purpose: Purpose,
        _: Instant,
    ) -> Claimed {
        let findings = claims.iter().filter(|_| self.held).map(|claim| Finding {
            policy: claim.policy.clone(),
            mode: Mode::Enforce,
            code: claim.code.clone(),
            severity: Severity::Deny,
            pointer: claim.pointer.clone(),
            message: format!("{} is held by another", claim.key),
            hint: String::new(),
        });
        let findings: Vec<Finding> = findings.collect();
        let held_by = findings.iter().map(|_| self.held_by.clone()).collect();
        let mut taken = self.taken.lock().await;
        taken.push((holder, claims, purpose));
        self.lookup.asked(taken.len());
        let name_is_taken = self.name_is_taken && purpose == Purpose::Create;
        Claimed { findings, held_by, name_is_taken, ..Claimed::default() }
    }

    async fn check_policy(&self, object: &str) -> Vec<Finding> {
        assert!(object.contains("AdmissionPolicy"));
        let wrong = object.matches("colour").enumerate().map(|(number, _)| Finding {
            policy: "admission-policy".to_owned(),
            mode: Mode::Enforce,
            code: format!("OSDN{}", 4005 + number),
            severity: Severity::Deny,
            pointer: "/spec/settings".to_owned(),
            message: "colour is no setting".to_owned(),
            hint: String::new(),
        });
        wrong.collect()
    }

    fn namespace_labels(&self, _: &str) -> Option<Arc<Labels>> {
        None
    }

    fn lookup(&self) -> Arc<dyn Lookup> {
        Arc::new(self.lookup.clone())
    }
}

struct Bench {
    around: Arc<Around>,
    admission: Admission<Arc<Around>>,
}

async fn bench(policies: &[(&str, Mode)], held: bool) -> Bench {
    bench_with(policies, held, |_| {}).await
}

async fn bench_with(policies: &[(&str, Mode)], held: bool, change: impl Fn(&mut Binding)) -> Bench {
    bench_around(policies, Around { held, ..Around::default() }, change).await
}

async fn bench_around(
    policies: &[(&str, Mode)],
    around: Around,
    change: impl Fn(&mut Binding),
) -> Bench {
    let (engine, cache) = (Engine::start(4).unwrap(), Cache::of_user().unwrap());
    let mut bindings = Vec::new();
    for (name, mode) in policies {
        let built_in = opensdn_policies::find(name).unwrap();
        let policy = Policy::load(&engine, built_in.bytes, None, cache.as_ref()).await.unwrap();
        let mut binding = Binding {
            name: (*name).to_owned(),
            policy,
            settings: "{}".to_owned(),
            mode: *mode,
            failure_mode: None,
            ratcheting: Ratcheting::Enabled,
            scope: Scope::default(),
            limits: Limits { time: Duration::from_secs(2), ..Limits::default() },
        };
        change(&mut binding);
        bindings.push(binding);
    }
    let metrics = Metrics::new();
    let serving = Arc::new(ActivePolicies::new(metrics.clone()));
    serving.swap(PolicySet::new(bindings, vec!["tf.tungsten.io".into(), "opensdn.io".into()]));
    let around = Arc::new(around);
    Bench { admission: Admission::new(serving, Arc::clone(&around), metrics), around }
}

impl Bench {
    async fn answer(&self, step: Step, body: impl Into<Bytes>) -> Value {
        let deadline = Instant::now() + Duration::from_secs(5);
        let bytes = self.admission.review(Call { step, body: body.into(), deadline }).await;
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer.get("request"), None, "the request is never echoed");
        if step == Step::Validate {
            assert_eq!(answer.pointer("/response/patch"), None);
        }
        answer["response"].clone()
    }

    async fn validate(&self, object: Value) -> Value {
        self.answer(Step::Validate, review("CREATE", object, Value::Null).to_string()).await
    }
}

fn review(operation: &str, object: Value, old_object: Value) -> Value {
    let subject = if object.is_null() { &old_object } else { &object };
    let (group, version) = subject["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": group, "version": version, "kind": subject["kind"]},
            "resource": {"group": group, "version": version, "resource": "things"},
            "name": subject["metadata"]["name"], "namespace": subject["metadata"]["namespace"],
            "operation": operation,
            "userInfo": {"username": "jane", "groups": ["system:authenticated"],
                "extra": {"scopes": ["a"]}},
            "object": object, "oldObject": old_object, "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}

fn vrouter(service: Value) -> Value {
    json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": "vrouter1", "namespace": "tf", "uid": "u1"},
        "spec": {"serviceConfiguration": service},
    })
}

fn link_local(name: &str) -> Value {
    json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": name, "namespace": "tf", "uid": "u2"},
        "spec": {"name": name, "ip": "169.254.20.1", "port": 80,
            "fabric": {"addresses": ["192.0.2.7"], "port": 8080}},
    })
}

const TLS: (&str, Mode) = ("plaintext", Mode::Enforce);
const UNSAFE: (&str, Mode) = ("unsafe-parameter", Mode::Enforce);
const CLAIMS: (&str, Mode) = ("duplicate-link-local", Mode::Enforce);

#[tokio::test]
async fn a_refusal_names_every_problem_of_every_policy_with_field_and_remedy() {
    let bench = bench(&[TLS, UNSAFE], false).await;
    let object = vrouter(json!({"sslEnable": false, "physicalInterface": "eth0; $(reboot)"}));
    let response = bench.validate(object).await;
    assert_eq!(response["allowed"], false);
    assert_eq!(response["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("problems in Vrouter tf/vrouter1:"), "{message}");
    assert!(message.contains("[OSDN1816] spec.serviceConfiguration.sslEnable: "), "{message}");
    assert!(
        message.contains("[OSDN1812] spec.serviceConfiguration.physicalInterface"),
        "{message}"
    );
    assert!(message.lines().all(|line| !line.ends_with("->")), "a remedy on every line: {message}");
    assert_eq!(response["status"]["code"], 403);
    let causes = response["status"]["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), message.lines().count() - 1);
    assert!(causes.iter().any(|cause| cause["field"] == "spec.serviceConfiguration.sslEnable"));
}

#[tokio::test]
async fn a_good_object_passes_without_a_word() {
    let bench = bench(&[TLS, UNSAFE], false).await;
    let response = bench.validate(vrouter(json!({"sslEnable": true}))).await;
    assert_eq!(response, json!({"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": true}));
}

#[tokio::test]
async fn modes_warn_and_audit_let_pass() {
    let bad = || vrouter(json!({"sslEnable": false}));
    let warn = bench(&[("plaintext", Mode::Warn)], false).await.validate(bad()).await;
    assert_eq!(warn["allowed"], true);
    assert!(warn["warnings"][0].as_str().unwrap().starts_with("[OSDN1816]"), "{warn}");
    let audit = bench(&[("plaintext", Mode::Audit)], false).await.validate(bad()).await;
    assert_eq!(audit["allowed"], true);
    assert_eq!(audit.get("warnings"), None);
    assert!(audit["auditAnnotations"]["findings"].as_str().unwrap().contains("OSDN1816"));
}

#[tokio::test]
async fn a_policy_that_cannot_be_evaluated_is_reported_and_rejects_by_its_failure_mode() {
    for (mode, allowed) in [(FailureMode::Fail, false), (FailureMode::Ignore, true)] {
        let bench = bench_with(&[TLS], false, |binding| {
            binding.failure_mode = Some(mode);
            binding.limits.memory = 1;
        });
        let response = bench.await.validate(vrouter(json!({"sslEnable": true}))).await;
        assert_eq!(response["allowed"], allowed, "{response}");
        assert_eq!(response["auditAnnotations"]["failures"], "plaintext/memory");
        let said = if allowed {
            response["warnings"][0].as_str().unwrap()
        } else {
            assert_eq!(response["status"]["code"], 500);
            assert_eq!(response["status"]["reason"], "InternalError");
            assert_eq!(response["status"]["details"]["causes"][0]["reason"], "memory");
            response["status"]["message"].as_str().unwrap()
        };
        assert!(said.contains("policy plaintext: "), "{said}");
        let consequence = if allowed { "the object was not checked by it" } else { "try again" };
        assert!(said.contains(consequence), "{said}");
    }
}

/// An update that removes the label is evaluated like one that adds it.
#[tokio::test]
async fn a_label_that_the_old_object_had_selects_the_new_one() {
    let selector: Selector = serde_json::from_str(r#"{"matchLabels":{"tier":"x"}}"#).unwrap();
    let bench = bench_with(&[TLS], false, |binding| {
        binding.scope.object_selector = Some(selector.clone());
    });
    let bench = bench.await;
    let labelled = |labels: &Value, encrypted: bool| {
        let mut object = vrouter(json!({"sslEnable": encrypted}));
        object["metadata"]["labels"] = labels.clone();
        object
    };
    let (with, without) = (json!({"tier": "x"}), json!({}));
    for (old, new, allowed) in [
        (&without, &without, true),
        (&without, &with, false),
        (&with, &without, false),
        (&with, &with, false),
    ] {
        let body = review("UPDATE", labelled(new, false), labelled(old, true)).to_string();
        assert_eq!(bench.answer(Step::Validate, body).await["allowed"], allowed, "{old} {new}");
    }
}

#[tokio::test]
async fn claims_are_taken_only_after_every_policy_allowed() {
    let bench = bench(&[CLAIMS], false).await;
    let response = bench.validate(link_local("metrics")).await;
    assert_eq!(response["allowed"], true, "{response}");
    let taken = bench.around.taken.lock().await;
    let (holder, claims, purpose) = taken.first().unwrap();
    assert_eq!((&*holder.name, &*holder.uid, *purpose), ("metrics", "u2", Purpose::Create));
    assert!(claims.iter().any(|claim| claim.key == "169.254.20.1:80"), "{claims:?}");
    drop(taken);

    let mut refused = link_local("metrics");
    refused["spec"]["ip"] = json!("127.0.0.1");
    assert_eq!(bench.validate(refused).await["allowed"], false);
    assert_eq!(bench.around.taken.lock().await.len(), 1, "a refused object claims nothing");
}

#[tokio::test]
async fn an_object_that_no_list_shows_whole_takes_no_keys() {
    let bench = bench(&[CLAIMS], false).await;
    // With the levels of the object and of its metadata.
    for (levels, allowed) in [(MOST_LEVELS - 2, true), (MOST_LEVELS - 1, false)] {
        let mut object = link_local("deep");
        object["metadata"]["x"] = json!("deep");
        let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let body = review("CREATE", object, Value::Null).to_string();
        let body = body.replace(r#""x":"deep""#, &format!(r#""x":{nested}"#));
        let response = bench.answer(Step::Validate, body).await;
        assert_eq!(response["allowed"], allowed, "{levels}: {response}");
        let said = response["status"]["message"].as_str().unwrap_or_default();
        assert_eq!(said.contains("more than 120 levels deep"), !allowed, "{said}");
        assert_eq!(bench.around.taken.lock().await.len(), 1, "what is refused takes nothing");
    }
    // Nor does it keep those that it has, by claiming nothing while it is so deep.
    for (levels, allowed) in [(MOST_LEVELS - 2, true), (MOST_LEVELS - 1, false)] {
        let mut object = link_local("deep");
        object["spec"]["ip"] = Value::Null;
        object["metadata"]["x"] = json!("deep");
        let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let body = review("UPDATE", object, link_local("deep")).to_string();
        let body = body.replace(r#""x":"deep""#, &format!(r#""x":{nested}"#));
        let response = bench.answer(Step::Validate, body).await;
        assert_eq!(response["allowed"], allowed, "{levels}: {response}");
    }
}

#[tokio::test]
async fn an_object_of_any_depth_that_is_stored_can_be_made_flatter_and_can_go() {
    let bench = bench(&[CLAIMS], false).await;
    let answer = async |operation: &str, object: Value, old: Value, levels: usize| {
        let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let body = review(operation, object, old).to_string().replace(r#""DEEP""#, &deep);
        let response = bench.answer(Step::Validate, body).await;
        (
            response["allowed"].clone(),
            response["status"]["message"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let flat = link_local("deep");
    let mut deep = flat.clone();
    deep["status"] = json!("DEEP");
    for levels in [505, 600, 9_000] {
        let (allowed, said) = answer("CREATE", deep.clone(), Value::Null, levels).await;
        assert_eq!(allowed, false, "{levels}");
        assert!(levels < 510 || said.contains("levels deep, and the webhook"), "{said}");
        let (allowed, said) = answer("UPDATE", flat.clone(), deep.clone(), levels).await;
        assert_eq!(allowed, true, "{levels}: {said}");
        let going = |finalizers: Value| {
            let mut object = deep.clone();
            object["metadata"]["finalizers"] = finalizers;
            object["metadata"]["deletionTimestamp"] = json!("2026-11-26T00:00:00Z");
            object
        };
        let (allowed, said) = answer("UPDATE", going(json!([])), going(json!(["f"])), levels).await;
        assert_eq!(allowed, true, "{levels}: {said}");
        let mut changed = going(json!([]));
        changed["spec"]["port"] = json!(99);
        let (allowed, _) = answer("UPDATE", changed, going(json!(["f"])), levels).await;
        assert_eq!(allowed, false, "{levels}: more than metadata changes");
    }
}

#[tokio::test]
async fn a_create_whose_name_is_taken_is_refused_as_the_api_server_refuses_it() {
    let around = Around { name_is_taken: true, ..Around::default() };
    let bench = bench_around(&[CLAIMS], around, |_| {}).await;
    let response = bench.validate(link_local("metrics")).await;
    let status = &response["status"];
    assert_eq!(response["allowed"], false, "{response}");
    assert_eq!((&status["code"], &status["reason"]), (&json!(409), &json!("AlreadyExists")));
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with("LinkLocalService tf/metrics already exists"), "{message}");

    // Of a server-side apply the API server makes an update, and a dry run stores nothing.
    let mut applied = link_local("metrics");
    applied["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Apply"}]);
    assert_eq!(bench.validate(applied).await["allowed"], true);
    let mut dry = review("CREATE", link_local("metrics"), Value::Null);
    dry["request"]["dryRun"] = json!(true);
    assert_eq!(bench.answer(Step::Validate, dry.to_string()).await["allowed"], true);
    // The name of a manager is anybody's to choose, and of more text than an object has nothing is read.
    let mut named = link_local("metrics");
    named["metadata"]["managedFields"] = json!([{"manager": "Apply", "operation": "Update"}]);
    assert_eq!(bench.validate(named).await["allowed"], false);
    let mut long = link_local("metrics");
    let mut entries = vec![json!({}); LARGEST_MANAGED_FIELDS / 3];
    entries.push(json!({"manager": "kubectl", "operation": "Apply"}));
    long["metadata"]["managedFields"] = entries.into();
    assert_eq!(bench.validate(long).await["allowed"], false);
    let purposes: Vec<Purpose> = bench.around.taken.lock().await.iter().map(|one| one.2).collect();
    let expected =
        [Purpose::Create, Purpose::Write, Purpose::DryRun, Purpose::Create, Purpose::Create];
    assert_eq!(purposes, expected);
}

#[tokio::test]
async fn a_key_that_another_holds_refuses_the_object() {
    let response = bench(&[CLAIMS], true).await.validate(link_local("metrics")).await;
    assert_eq!(response["allowed"], false);
    assert!(response["status"]["message"].as_str().unwrap().contains("is held by another"));
}

#[tokio::test]
async fn a_deletion_has_no_object_and_passes() {
    let bench = bench(&[TLS, CLAIMS, UNSAFE], false).await;
    let old = vrouter(json!({"sslEnable": false}));
    let body = review("DELETE", Value::Null, old).to_string();
    let response = bench.answer(Step::Validate, body).await;
    assert_eq!(response["allowed"], true, "{response}");
}

#[tokio::test]
async fn defaults_are_written_once() {
    let bench = bench(&[("explicit-defaults", Mode::Enforce)], false).await;
    let mut object = json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "zookeeper1", "namespace": "tf"},
        "spec": {"serviceConfiguration": {"clientPort": 2182}},
    });
    let body = review("CREATE", object.clone(), Value::Null).to_string();
    let response = bench.answer(Step::Mutate, body).await;
    assert_eq!((&response["allowed"], &response["patchType"]), (&json!(true), &json!("JSONPatch")));
    let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    json_patch::patch(&mut object, &patch).unwrap();
    assert_eq!(object["spec"]["serviceConfiguration"]["clientPort"], 2182, "what is set stays");
    assert_eq!(object["spec"]["serviceConfiguration"]["electionPort"], 2888);
    let body = review("UPDATE", object.clone(), object.clone()).to_string();
    let again = bench.answer(Step::Mutate, body).await;
    assert_eq!(again.get("patch"), None, "{again}");
    assert_eq!(again.get("patchType"), None);
    // There is nothing to patch.
    let body = review("DELETE", Value::Null, object).to_string();
    let deleted = bench.answer(Step::Mutate, body).await;
    assert_eq!((&deleted["allowed"], deleted.get("patch")), (&json!(true), None));
}

#[tokio::test]
async fn what_a_patch_is_not_about_stays_as_it_was_written() {
    let bench = bench(&[("explicit-defaults", Mode::Enforce)], false).await;
    let before = json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "z", "namespace": "tf", "annotations": {"a/b~c": ""}},
        "spec": {"serviceConfiguration": {"none": null}, "empty": [], "unknown": {"deep": [{}]},
            "big": 9_007_199_254_740_993_u64, "signed": -1, "broken": 0.1},
        "other": {"clientPort": 1},
    });
    let body = review("CREATE", before.clone(), Value::Null).to_string();
    let response = bench.answer(Step::Mutate, body).await;
    let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    let operations: Vec<Value> = serde_json::from_slice(&patch).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    let mut after = before.clone();
    json_patch::patch(&mut after, &patch).unwrap();
    for operation in operations.iter().rev() {
        assert_eq!(operation["op"], "add");
        let (parent, name) = operation["path"].as_str().unwrap().rsplit_once('/').unwrap();
        after.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
    }
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_mutating_policy_that_does_not_enforce_changes_nothing() {
    let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "z"}, "spec": {"serviceConfiguration": {}}});
    let body = review("CREATE", object, Value::Null).to_string();
    for mode in [Mode::Warn, Mode::Audit] {
        let bench = bench(&[("explicit-defaults", mode)], false).await;
        let response = bench.answer(Step::Mutate, body.clone()).await;
        assert_eq!((&response["allowed"], response.get("patch")), (&json!(true), None));
        assert_eq!(response["auditAnnotations"]["unapplied-patches"], "explicit-defaults");
        let heard = response["warnings"].to_string().contains("would have changed the object");
        assert_eq!(heard, mode == Mode::Warn, "{response}");
    }
}

#[tokio::test]
async fn an_unreadable_review_is_refused_in_a_review() {
    let bench = bench(&[TLS], false).await;
    let good = review("CREATE", vrouter(json!({})), Value::Null);
    let good_text = good.to_string();
    let uid = "705ab4f5-6393-11e8-b7cc-42010a800002";
    let api_server_order = format!(r#"{{"kind":"AdmissionReview","request":{{"uid":"{uid}","#);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("truncated", format!("{api_server_order}\"kind\":").into_bytes(), uid),
        ("empty", Vec::new(), ""),
        ("no object", b"[]".to_vec(), ""),
        ("duplicate keys", format!("{api_server_order}\"a\":1,\"a\":2}}}}").into_bytes(), uid),
        ("trailing data", format!("{api_server_order}\"a\":1}}}} x").into_bytes(), uid),
        ("invalid UTF-8", [api_server_order.as_bytes(), b"\"a\":\"\xff\"}}"].concat(), uid),
        ("deep nesting", format!("{api_server_order}\"a\":{}", "[".repeat(5000)).into_bytes(), uid),
        (
            "old version",
            good_text.replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1").into(),
            uid,
        ),
        ("missing uid", good_text.replace("\"uid\":\"705", "\"other\":\"705").into(), ""),
        ("missing kind", good_text.replace("\"Vrouter\"", "null").into(), ""),
        ("odd operation", good_text.replace("\"CREATE\"", "\"PATCH\"").into(), uid),
        ("odd groups", good_text.replace("[\"system:authenticated\"]", "7").into(), uid),
    ];
    for (name, body, uid) in cases {
        let response = bench.answer(Step::Validate, body).await;
        assert_eq!(response["allowed"], false, "{name}");
        assert_eq!(response["status"]["code"], 400, "{name}");
        assert!(!response["status"]["message"].as_str().unwrap().is_empty(), "{name}");
        if !uid.is_empty() {
            assert_eq!(response["uid"], uid, "{name}");
        }
    }
}

#[tokio::test]
async fn no_text_of_an_unreadable_review_is_echoed_beyond_100_bytes() {
    let bench = bench(&[TLS], false).await;
    let good = review("CREATE", vrouter(json!({})), Value::Null).to_string();
    let long = "x".repeat(9_000);
    let key = format!("\"{long}\"");
    for (name, body, most) in [
        (
            "duplicate key",
            good.replace("\"dryRun\":", &format!("{key}:1,{key}:2,\"dryRun\":")),
            100,
        ),
        ("uid", good.replace("\"uid\":\"705", &format!("\"uid\":\"{long}705")), 0),
        ("operation", good.replace("\"CREATE\"", &key), 100),
        ("kind", good.replace("\"AdmissionReview\"", &key), 253),
        ("apiVersion", good.replace("\"admission.k8s.io/v1\"", &key), 253),
    ] {
        assert!(body.contains(&long), "{name}: nothing is replaced");
        let response = bench.answer(Step::Validate, body).await;
        assert_eq!(response["status"]["code"], 400, "{name}: {response}");
        assert_eq!(response.to_string().matches('x').count(), most, "{name}: {response}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_its_uid() {
    let bench = bench(&[], false).await;
    let prefix = br#"{"kind":"AdmissionReview","request":{"uid":"abc-1","kind":{"#;
    let answer: Value = serde_json::from_slice(&bench.admission.too_large(prefix)).unwrap();
    assert_eq!(answer["response"]["uid"], "abc-1");
    assert_eq!(answer["response"]["status"]["code"], 413);
}

#[tokio::test]
async fn shapes_that_policies_do_not_expect_never_crash() {
    let bench = bench(&[TLS, UNSAFE, CLAIMS, ("explicit-defaults", Mode::Enforce)], false).await;
    for spec in [json!(null), json!([]), json!("x"), json!({"serviceConfiguration": 7}), json!({})]
    {
        let mut object = vrouter(json!({}));
        object["spec"] = spec;
        object["metadata"]["labels"] = json!("no map");
        for step in [Step::Mutate, Step::Validate] {
            let body = review("CREATE", object.clone(), Value::Null).to_string();
            let response = bench.answer(step, body).await;
            assert!(response["allowed"].is_boolean());
        }
    }
}

#[tokio::test]
async fn an_unknown_kind_passes() {
    let bench = bench(&[TLS, UNSAFE], false).await;
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "x"}});
    assert_eq!(bench.validate(object).await["allowed"], true);
}

#[tokio::test]
async fn a_generated_name_is_printed_with_a_star() {
    let bench = bench(&[TLS], false).await;
    let mut object = vrouter(json!({"sslEnable": false}));
    object["metadata"] = json!({"generateName": "vrouter-", "namespace": "tf"});
    let response = bench.validate(object).await;
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("Vrouter tf/vrouter-*"), "{message}");
}

/// The schema bounds lists, but not those of a forged review.
#[tokio::test]
async fn an_answer_is_bounded_however_much_is_wrong() {
    let bench = bench(&[], false).await;
    let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {"settings": vec!["colour"; 20_000]}});
    let answer = bench.validate(object).await;
    assert_eq!(answer["allowed"], false);
    assert!(answer.to_string().len() < 256 << 10, "{} bytes", answer.to_string().len());
    let message = answer["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("20000 problems in AdmissionPolicy p:"), "{}", &message[..80]);
    assert!(message.ends_with(" more; fix these and apply again to see the rest"));
    assert_eq!(answer["status"]["details"]["causes"].as_array().unwrap().len(), 200);
    let findings = answer["auditAnnotations"]["findings"].as_str().unwrap();
    assert!(findings.ends_with(",+19980") && findings.len() < 1_000, "{findings}");
}
