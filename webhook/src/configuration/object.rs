//! The webhook configurations as they should be, and whether one is so. Pure.

use std::collections::BTreeMap;

use base64::Engine as _;
use opensdn_policy_host::{Digest, Step};
use serde_json::{Value, json};

use super::rules::{Part, Plan};
use crate::path_tokens::PathToken;
use crate::server::Class;

/// Name of both configurations.
pub(super) const NAME: &str = "opensdn-webhook";
/// Field manager of the configurations.
pub(super) const MANAGER: &str = "opensdn-webhook";
/// The annotation with the digest of the entries as we have written them: one that leads only since a
/// moment knows by it whether another client has changed them.
const ENTRIES: &str = "opensdn.io/entries";

/// There is one configuration for each.
pub(super) const STEPS: [Step; 2] = [Step::Mutate, Step::Validate];

/// How the API server reaches us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Through a Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// By URL, without path: for a webhook that runs beside the API server.
    Url(String),
}

/// What does not depend on policies.
#[derive(Clone, Debug)]
pub(super) struct WebhookEndpoint {
    pub(super) address: Address,
    /// The webhook's own namespace.
    pub(super) namespace: String,
    /// The user as which the webhook is known to the API server.
    pub(super) user: Option<String>,
    /// What is in the paths that API servers use.
    pub(super) token: PathToken,
}

pub(super) fn kind(step: Step) -> &'static str {
    match step {
        Step::Mutate => "MutatingWebhookConfiguration",
        Step::Validate => "ValidatingWebhookConfiguration",
    }
}

pub(super) fn plural(step: Step) -> &'static str {
    match step {
        Step::Mutate => "mutatingwebhookconfigurations",
        Step::Validate => "validatingwebhookconfigurations",
    }
}

/// The whole configuration.
pub(super) fn desired(step: Step, plan: &Plan, endpoint: &WebhookEndpoint, bundle: &str) -> Value {
    let entries: Vec<Value> = plan
        .iter()
        .flat_map(|(part, coverage)| {
            coverage.entries().into_iter().enumerate().map(|(number, rules)| {
                let mut entry = entry(step, *part, endpoint, bundle);
                if let Value::Object(entry) = &mut entry {
                    entry.insert("name".to_owned(), part.name(step, number).into());
                    entry.insert("rules".to_owned(), rules);
                }
                entry
            })
        })
        .collect();
    signed(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind(step),
        "metadata": {
            "name": NAME,
            "labels": {
                "app.kubernetes.io/name": "opensdn-webhook",
                "app.kubernetes.io/managed-by": "opensdn-webhook",
            },
        },
        "webhooks": entries,
    }))
}

/// Without it a controller of AKS writes a namespaceSelector of its own into every webhook, and would keep doing
/// so as often as ours is restored (https://learn.microsoft.com/azure/aks/faq, Admissions Enforcer).
const LEAVE_ALONE: (&str, &str) = ("admissions.enforcer/disabled", "true");

/// The object with the digest of its entries.
pub(super) fn signed(mut object: Value) -> Value {
    let digest = entries_digest(&object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = json!({ENTRIES: digest, LEAVE_ALONE.0: LEAVE_ALONE.1});
        metadata.insert("annotations".to_owned(), annotations);
    }
    object
}

fn entries_digest(object: &Value) -> String {
    let entries: BTreeMap<&str, Value> =
        normal_entries(object).into_iter().map(|(name, entry)| (name, sorted(&entry))).collect();
    // A map of JSON values is JSON.
    Digest::of(&serde_json::to_vec(&entries).unwrap_or_default()).to_string()
}

/// The same with the keys of all objects in their order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> =
                fields.iter().map(|(key, field)| (key, sorted(field))).collect();
            fields.into_iter().map(|(key, field)| (key.clone(), field)).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Whether another client than us has written entries of the object since we did: they are not those of
/// the digest, or another field manager has some of them. One that was written before there were digests
/// has only its managers.
pub(super) fn is_changed_by_others(object: &Value) -> bool {
    let digest = metadata(object, "annotations", ENTRIES).and_then(Value::as_str);
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut managers = managers.into_iter().flatten();
    digest.is_some_and(|digest| digest != entries_digest(object))
        || managers.any(|manager| {
            manager.get("manager").and_then(Value::as_str) != Some(MANAGER)
                && manager.pointer("/fieldsV1/f:webhooks").is_some()
        })
}

fn metadata<'o>(object: &'o Value, part: &str, key: &str) -> Option<&'o Value> {
    object.get("metadata")?.get(part)?.get(key)
}

fn entry(step: Step, part: Part, endpoint: &WebhookEndpoint, bundle: &str) -> Value {
    let mut entry = json!({
        "admissionReviewVersions": ["v1"],
        "clientConfig": client_config(step, part, endpoint, bundle),
        "failurePolicy": part.failure_policy(),
        "matchPolicy": "Equivalent",
        // Named also where they select everything: what others put here is then theirs no more.
        "namespaceSelector": {},
        "objectSelector": {},
        "sideEffects": match step { Step::Mutate => "None", Step::Validate => "NoneOnDryRun" },
        "timeoutSeconds": 5,
    });
    if let Value::Object(fields) = &mut entry {
        if step == Step::Mutate {
            fields.insert("reinvocationPolicy".to_owned(), json!("IfNeeded"));
        }
        // Kinds that are not ours may be those that keep us running: our Lease, our Secret.
        if part != Part::Ours {
            fields.insert("namespaceSelector".to_owned(), outside(&endpoint.namespace));
            if let Some(user) = &endpoint.user {
                fields.insert("matchConditions".to_owned(), not_by(user));
            }
        }
    }
    entry
}

fn outside(namespace: &str) -> Value {
    json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]}]})
}

fn not_by(user: &str) -> Value {
    // JSON strings are CEL strings.
    let expression = format!("request.userInfo.username != {}", json!(user));
    json!([{"name": "not-the-webhook-itself", "expression": expression}])
}

fn client_config(step: Step, part: Part, endpoint: &WebhookEndpoint, bundle: &str) -> Value {
    let class = if part == Part::Ours { Class::Ours } else { Class::Others };
    // The token is what comes last.
    let path = format!("/{}{}/{}", step.label(), class.suffix(), endpoint.token.as_str());
    let bundle = base64::engine::general_purpose::STANDARD.encode(bundle);
    match &endpoint.address {
        Address::Service { namespace, name } => json!({
            "caBundle": bundle,
            "service": {"namespace": namespace, "name": name, "path": path, "port": 443},
        }),
        Address::Url(url) => json!({
            "caBundle": bundle,
            "url": format!("{}{path}", url.trim_end_matches('/')),
        }),
    }
}

/// Whether the object is as it should be. Its metadata may have more; of the entries each field
/// counts, since one more condition or selector is enough to keep requests from us.
pub(super) fn is_as(observed: &Value, desired: &Value) -> bool {
    let is_in_metadata = |part: &str| {
        let wanted = desired.get("metadata").and_then(|metadata| metadata.get(part)?.as_object());
        let mut wanted = wanted.into_iter().flatten();
        wanted.all(|(key, value)| metadata(observed, part, key) == Some(value))
    };
    is_in_metadata("labels")
        && is_in_metadata("annotations")
        && normal_entries(observed) == normal_entries(desired)
}

/// The object with our entries, and nothing left of what others put there.
pub(super) fn put_right(observed: &Value, desired: &Value) -> Value {
    let mut object = observed.clone();
    if let (Some(fields), Some(webhooks)) = (object.as_object_mut(), desired.get("webhooks")) {
        fields.insert("webhooks".to_owned(), webhooks.clone());
    }
    object
}

/// The entries by their names.
pub(super) fn entries(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    entries.map(|entry| (entry.get("name").and_then(Value::as_str).unwrap_or_default(), entry))
}

/// The entries without what says nothing, which the API server writes in some places and leaves out
/// in others. Their order means nothing: no two of them are asked about the same object.
fn normal_entries(object: &Value) -> BTreeMap<&str, Value> {
    let says_something = |field: &Value| match field {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    let normal = |entry: &Value| -> Value {
        let fields = entry.as_object().into_iter().flatten();
        let fields = fields.filter(|(_, field)| says_something(field));
        fields.map(|(key, field)| (key.clone(), field.clone())).collect()
    };
    entries(object).map(|(name, entry)| (name, normal(entry))).collect()
}

/// The bundle that all our entries of the objects carry, if it is one and the same.
pub(super) fn bundle(objects: &[&Value]) -> Option<String> {
    let first =
        common(objects, |entry| entry.pointer("/clientConfig/caBundle").and_then(Value::as_str))?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(first).ok()?;
    String::from_utf8(bytes).ok()
}

/// The token in the paths of all our entries of the objects, if it is one and the same.
pub(super) fn path_token(objects: &[&Value]) -> Option<PathToken> {
    let path = |entry| {
        let path = Value::pointer(entry, "/clientConfig/service/path");
        path.or_else(|| entry.pointer("/clientConfig/url"))?.as_str()
    };
    PathToken::parse(common(objects, |entry| Some(path(entry)?.rsplit_once('/')?.1))?).ok()
}

/// What `read` finds in all our entries of the objects, if it is one and the same.
fn common<'o>(
    objects: &[&'o Value],
    read: impl Fn(&'o Value) -> Option<&'o str>,
) -> Option<&'o str> {
    let entries = objects.iter().flat_map(|object| entries(object));
    let entries = entries.filter(|(name, _)| name.ends_with(".opensdn.io"));
    let mut found = entries.map(|(_, entry)| read(entry));
    let first = found.next()??;
    found.all(|other| other == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::super::rules;
    use super::*;
    use opensdn_runtime::discovery::Snapshot;

    const TOKEN: &str = "a-token-of-some-length";

    fn endpoint() -> WebhookEndpoint {
        WebhookEndpoint {
            address: Address::Url("https://127.0.0.1:8443/".to_owned()),
            namespace: "opensdn".to_owned(),
            user: Some("system:serviceaccount:opensdn:opensdn-webhook".to_owned()),
            token: PathToken::parse(TOKEN).unwrap(),
        }
    }

    fn object(bundle: &str) -> Value {
        let plan = rules::plan(
            Step::Validate,
            &[],
            &Snapshot::default(),
            &["admissionpolicies".to_owned()],
        );
        desired(Step::Validate, &plan, &endpoint(), bundle)
    }

    #[test]
    fn whatever_keeps_requests_from_us_is_noticed_and_put_right() {
        let desired = object("CA");
        assert!(is_as(&desired, &desired));
        assert!(!is_as(&desired, &object("another CA")));
        let never = json!([{"name": "off", "expression": "false"}]);
        for (field, value) in [
            ("matchConditions", never),
            ("objectSelector", json!({"matchLabels": {"a": "b"}})),
            (
                "namespaceSelector",
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
            ),
            ("matchPolicy", json!("Exact")),
            ("failurePolicy", json!("Ignore")),
            ("timeoutSeconds", json!(1)),
            ("rules", json!([])),
            ("aFieldOfTheFuture", json!("that leaves requests out")),
        ] {
            let mut observed = desired.clone();
            observed["metadata"]["annotations"]["of"] = json!("another");
            assert!(is_as(&observed, &desired), "metadata of others do not matter");
            observed["webhooks"][0][field] = value;
            assert!(!is_as(&observed, &desired), "{field}");
            let put_right = put_right(&observed, &desired);
            assert_eq!(put_right["webhooks"], desired["webhooks"]);
            assert_eq!(put_right["metadata"]["annotations"]["of"], "another");
        }
        for webhooks in [json!([]), json!([desired["webhooks"][0], {"name": "of.another.io"}])] {
            let mut observed = desired.clone();
            observed["webhooks"] = webhooks;
            assert!(!is_as(&observed, &desired), "{observed}");
        }
    }

    #[test]
    fn what_the_api_server_fills_in_or_leaves_out_is_no_change() {
        let mut observed = object("CA");
        observed["webhooks"][0]["matchConditions"] = json!([]);
        observed["webhooks"][0].as_object_mut().unwrap().remove("objectSelector");
        let ours = json!([{"manager": MANAGER, "fieldsV1": {"f:webhooks": {}}},
            {"manager": "another", "fieldsV1": {"f:metadata": {}}}]);
        observed["metadata"]["managedFields"] = ours;
        assert!(is_as(&observed, &object("CA")));
        assert!(!is_changed_by_others(&observed));
    }

    #[test]
    fn without_the_digest_of_the_entries_it_is_not_as_it_should_be() {
        let mut observed = object("CA");
        observed["metadata"].as_object_mut().unwrap().remove("annotations");
        assert!(!is_as(&observed, &object("CA")));
        assert!(!is_changed_by_others(&observed), "an older version of ours wrote none");
    }

    #[test]
    fn the_published_bundle_is_that_of_all_entries() {
        let empty = json!({"webhooks": []});
        assert_eq!(bundle(&[&object("CA"), &empty]).as_deref(), Some("CA"));
        assert_eq!(bundle(&[&object("CA"), &object("other")]), None);
        assert_eq!(bundle(&[&empty]), None);
    }

    #[test]
    fn the_published_path_token_is_that_of_all_entries_by_service_or_url() {
        let by_url = object("CA");
        let mut by_service = object("CA");
        let path = |token| json!({"service": {"path": format!("/validate/{token}")}});
        by_service["webhooks"][0]["clientConfig"] = path(TOKEN);
        let token = PathToken::parse(TOKEN).unwrap();
        assert_eq!(path_token(&[&by_url, &by_service]), Some(token));
        by_service["webhooks"][0]["clientConfig"] = path("another-token-0123456789");
        assert_eq!(path_token(&[&by_url, &by_service]), None);
        by_service["webhooks"][0]["clientConfig"] = json!({"service": {"path": "/validate"}});
        assert_eq!(path_token(&[&by_service]), None);
    }

    #[test]
    fn every_entry_says_how_it_is_to_be_called() {
        let endpoint = endpoint();
        for step in STEPS {
            for part in Part::ALL {
                let entry = entry(step, part, &endpoint, "CA");
                assert_eq!(entry["timeoutSeconds"], 5);
                assert_eq!(entry["matchPolicy"], "Equivalent");
                assert_eq!(entry["admissionReviewVersions"], json!(["v1"]));
                let (effects, again) = match step {
                    Step::Mutate => ("None", json!("IfNeeded")),
                    Step::Validate => ("NoneOnDryRun", Value::Null),
                };
                assert_eq!(entry["sideEffects"], effects);
                assert_eq!(entry["reinvocationPolicy"], again);
                let open = if part == Part::Others { "Ignore" } else { "Fail" };
                assert_eq!(entry["failurePolicy"], open);
                let ours = part == Part::Ours;
                assert_eq!(entry["namespaceSelector"] == json!({}), ours);
                assert_eq!(entry["objectSelector"], json!({}));
                let path =
                    if ours { step.label().to_owned() } else { format!("{}-others", step.label()) };
                let url = format!("https://127.0.0.1:8443/{path}/{TOKEN}");
                assert_eq!(entry["clientConfig"]["url"], url);
                let condition = &entry["matchConditions"][0]["expression"];
                let user = "request.userInfo.username != \
                            \"system:serviceaccount:opensdn:opensdn-webhook\"";
                assert_eq!(condition.as_str(), (!ours).then_some(user));
            }
        }
    }

    #[test]
    fn our_own_entry_fails_closed_and_is_called_under_its_own_path() {
        let object = object("CA");
        let (_, entry) =
            entries(&object).find(|(name, _)| *name == "ours.validate.opensdn.io").unwrap();
        let url = format!("https://127.0.0.1:8443/validate/{TOKEN}");
        assert_eq!(entry["clientConfig"]["url"], url);
        assert_eq!(entry["failurePolicy"], "Fail");
        assert_eq!(entry["sideEffects"], "NoneOnDryRun");
    }
}
