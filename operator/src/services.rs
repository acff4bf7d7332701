//! From the spec of a Manager to the objects that it shall have (pure): one for each service, with what the
//! Manager says for all.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_crds::component::{COMPONENTS, Component};
use serde_json::{Map, Value, json};

use crate::component::ComponentKind;
use crate::components;
use crate::names::{CA_SECRET, GIVEN_CA_SECRET};

/// A service that shall run.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its kind.
    pub facts: &'static Component,
    /// The name of its object.
    pub name: String,
    /// The labels of its object.
    pub labels: BTreeMap<String, String>,
    /// The spec of its object.
    pub spec: Value,
}

/// An item of which no object can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnamed {
    /// Its kind.
    pub kind: &'static str,
    /// What is wrong, where, and what to do.
    pub message: String,
}

/// The services of a spec, in the order of their kinds.
#[must_use]
pub fn services(spec: &Value) -> (Vec<Service>, Vec<Unnamed>) {
    let (mut services, mut unnamed) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    let common = spec.get("commonConfiguration").unwrap_or(&Value::Null);
    for facts in COMPONENTS {
        let given = spec.pointer("/services").and_then(|services| services.get(facts.key));
        let items: Vec<(String, &Value)> = match given {
            None | Some(Value::Null) => continue,
            Some(Value::Array(items)) => {
                let numbered = items.iter().enumerate();
                numbered.map(|(number, item)| (format!("{}[{number}]", facts.key), item)).collect()
            }
            Some(item) => vec![(facts.key.to_owned(), item)],
        };
        for (place, item) in items {
            let name = item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let wrong = match name {
                "" => Some("is missing: give the service a name"),
                name if !names.insert((facts.kind, name.to_owned())) => {
                    Some("is that of another item: give each a name of its own")
                }
                _ => None,
            };
            if let Some(wrong) = wrong {
                let message = format!("spec.services.{place}.metadata.name {wrong}");
                unnamed.push(Unnamed { kind: facts.kind, message });
                continue;
            }
            services.push(Service {
                facts,
                name: name.to_owned(),
                labels: labels(item),
                spec: with_nested(
                    facts,
                    merged(item.get("spec").unwrap_or(&Value::Null), common),
                    spec.get("nested"),
                ),
            });
        }
    }
    (services, unnamed)
}

/// Whether it is the name of a signer that is asked. Those of Kubernetes itself issue no certificates that are for servers and
/// clients both.
#[must_use]
pub fn is_asked(signer: &str) -> bool {
    signer.contains('/') && !signer.starts_with("kubernetes.io/")
}

/// What is wrong where the Manager asks for certificates that none issues: its services have those of the operator's own CA.
#[must_use]
pub fn other_signer(spec: &Value) -> Option<String> {
    let signer = spec.pointer("/commonConfiguration/certSigner").and_then(Value::as_str);
    let signer =
        signer.filter(|signer| !["", "SelfSignedCA"].contains(signer) && !is_asked(signer))?;
    let why = match signer {
        "External" => "the operator does not use certificates that lie on nodes",
        _ if signer.contains('/') => {
            "signers of kubernetes.io issue none that are for servers and clients both"
        }
        _ => "a signer of Kubernetes has a name with a domain, such as example.com/opensdn",
    };
    Some(format!(
        "spec.commonConfiguration.certSigner is {signer:?}, but {why}: certificates are issued by a CA of the operator's own \
         (the Secret {CA_SECRET}) or by that of the Secret {GIVEN_CA_SECRET}; set the field to SelfSignedCA or to another signer, or \
         remove it"
    ))
}

fn labels(item: &Value) -> BTreeMap<String, String> {
    let labels = item.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    labels.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}

/// What comes of a service's own value and of the Manager's (tf-operator,
/// `pkg/controller/utils/utils.go:392-418`).
#[derive(Clone, Copy, Debug)]
enum Merge {
    /// The service's, unless it is empty; never both together.
    UnlessEmpty,
    /// The service's, if there is any, also an empty one.
    IfGiven,
    /// The Manager's: all services have to agree.
    Managers,
}

const COMMON: [(&str, Merge); 6] = [
    ("nodeSelector", Merge::UnlessEmpty),
    ("imagePullSecrets", Merge::UnlessEmpty),
    ("tolerations", Merge::UnlessEmpty),
    ("logLevel", Merge::UnlessEmpty),
    ("distribution", Merge::IfGiven),
    ("authParameters", Merge::Managers),
];

/// The spec of a service's object: its own, with what the Manager says for all. In every phase of a cluster's
/// life the same.
fn merged(own: &Value, managers: &Value) -> Value {
    let mut spec = own.as_object().cloned().unwrap_or_default();
    let mut common = match spec.get("commonConfiguration") {
        Some(Value::Object(common)) => common.clone(),
        _ => Map::new(),
    };
    for (field, merge) in COMMON {
        let own = common.remove(field);
        let managers = managers.get(field).filter(|value| !value.is_null()).cloned();
        let value = match merge {
            Merge::UnlessEmpty => own.filter(|own| !is_empty(own)).or(managers),
            Merge::IfGiven => own.filter(|own| !own.is_null()).or(managers),
            Merge::Managers => managers,
        };
        common.extend(value.map(|value| (field.to_owned(), value)));
    }
    if common.is_empty() {
        spec.remove("commonConfiguration");
    } else {
        spec.insert("commonConfiguration".to_owned(), Value::Object(common));
    }
    spec.entry("serviceConfiguration").or_insert_with(|| json!({}));
    Value::Object(spec)
}

/// With what the Manager says of the cloud that the cluster is nested in, where the service has nothing of its own.
fn with_nested(facts: &Component, mut spec: Value, managers: Option<&Value>) -> Value {
    let takes = components::of_kind(facts.kind).is_some_and(ComponentKind::takes_nested);
    let managers = managers.filter(|managers| takes && !managers.is_null());
    if let (Some(managers), Some(settings)) =
        (managers, spec.get_mut("serviceConfiguration").and_then(Value::as_object_mut))
    {
        let own = settings.entry("nested").or_insert(Value::Null);
        if own.is_null() {
            own.clone_from(managers);
        }
    }
    spec
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(own: Value, managers: Value) -> Value {
        let own = json!({"commonConfiguration": own, "serviceConfiguration": {"a": 1}});
        let spec = merged(&own, &managers);
        assert_eq!(spec["serviceConfiguration"], json!({"a": 1}));
        spec.get("commonConfiguration").cloned().unwrap_or_default()
    }

    #[test]
    fn a_services_own_value_comes_first_and_an_empty_one_is_none() {
        for (field, own, managers, empty) in [
            ("nodeSelector", json!({"a": ""}), json!({"b": "", "c": ""}), json!({})),
            ("imagePullSecrets", json!(["a"]), json!(["b", "c"]), json!([])),
            ("tolerations", json!([{"key": "a"}]), json!([{"key": "b"}]), json!([])),
            ("logLevel", json!("info"), json!("debug"), json!("")),
        ] {
            let of = |value: &Value| json!({ field: value });
            assert_eq!(common(of(&own), of(&managers)), of(&own), "no union");
            assert_eq!(common(of(&empty), of(&managers)), of(&managers), "{field}");
            assert_eq!(common(json!({}), of(&managers)), of(&managers), "{field}");
            assert_eq!(common(of(&own), Value::Null), of(&own), "{field}");
            assert_eq!(common(json!({}), Value::Null), Value::Null, "{field}");
        }
    }

    #[test]
    fn an_empty_distribution_is_one_and_who_may_use_the_api_says_the_manager() {
        let managers =
            json!({"distribution": "ubuntu", "authParameters": {"authMode": "keystone"}});
        let own = json!({"distribution": "", "authParameters": {"authMode": "noauth"}});
        let expected = json!({"distribution": "", "authParameters": {"authMode": "keystone"}});
        assert_eq!(common(own.clone(), managers), expected);
        assert_eq!(common(own, json!({})), json!({"distribution": ""}));
    }

    #[test]
    fn each_service_is_an_object_and_what_all_share_is_in_each() {
        let spec = json!({
            "commonConfiguration": {"logLevel": "debug", "certKeyLength": 2048},
            "services": {
                "zookeeper": {"metadata": {"name": "zookeeper1", "labels": {"tf_cluster": "cluster1"}}},
                "redis": [{"metadata": {"name": "redis1"}, "spec": {"serviceConfiguration": {"redisPort": 1}}}],
                "webui": null, "unknown": {"metadata": {"name": "a"}},
            },
        });
        let (services, unnamed) = services(&spec);
        let found: Vec<_> = services.iter().map(|one| (one.facts.kind, &*one.name)).collect();
        assert_eq!(found, [("Redis", "redis1"), ("Zookeeper", "zookeeper1")]);
        assert_eq!(unnamed, []);
        let common = json!({"logLevel": "debug"});
        let expected =
            json!({"commonConfiguration": common, "serviceConfiguration": {"redisPort": 1}});
        assert_eq!(services[0].spec, expected);
        assert_eq!(services[1].labels["tf_cluster"], "cluster1");
        assert_eq!(services[1].spec["serviceConfiguration"], json!({}));
    }

    #[test]
    fn what_the_manager_says_of_a_nested_cluster_reaches_who_takes_it_unless_it_has_its_own() {
        let item = |settings: Value| json!({"metadata": {"name": "a"}, "spec": {"serviceConfiguration": settings}});
        let nested = |services: Value, managers: Value| {
            let spec = json!({ "services": services, "nested": managers });
            let of = |service: &Service| service.spec["serviceConfiguration"]["nested"].clone();
            services_of(&spec).iter().map(of).collect::<Vec<_>>()
        };
        let [managers, own] = ["of-manager", "own"].map(|name| json!({ "clusterName": name }));
        let both = json!({"kubemanager": item(json!({})), "webui": item(json!({}))});
        assert_eq!(nested(both.clone(), managers.clone()), [managers.clone(), Value::Null]);
        assert_eq!(nested(both, Value::Null), [Value::Null, Value::Null]);
        let given = json!({"kubemanager": item(json!({ "nested": own }))});
        assert_eq!(nested(given, managers), [own]);
    }

    fn services_of(spec: &Value) -> Vec<Service> {
        services(spec).0
    }

    #[test]
    fn a_service_without_a_name_or_with_that_of_another_is_named_by_its_place() {
        let item = json!({"metadata": {"name": "a"}});
        let spec = json!({"services": {"webui": {}, "redis": [item, item, {"metadata": {"name": ""}}],
            "zookeeper": item}});
        let (services, unnamed) = services(&spec);
        assert_eq!(services.len(), 2, "two kinds may have one name");
        let messages: Vec<_> = unnamed.iter().map(|one| &*one.message).collect();
        assert_eq!(
            messages,
            [
                "spec.services.redis[1].metadata.name is that of another item: give each a name of its own",
                "spec.services.redis[2].metadata.name is missing: give the service a name",
                "spec.services.webui.metadata.name is missing: give the service a name",
            ]
        );
    }

    #[test]
    fn another_signer_than_our_own_is_reported() {
        let of = |common: Value| other_signer(&json!({"commonConfiguration": common}));
        for ours in [json!({}), json!({"certSigner": "SelfSignedCA"}), json!({"certSigner": null})]
        {
            assert_eq!(of(ours), None);
        }
        for asked in ["example.com/opensdn", "clusterissuers.cert-manager.io/opensdn"] {
            assert_eq!(of(json!({"certSigner": asked})), None, "it is asked");
        }
        for other in ["External", "kubernetes.io/kubelet-serving", "other"] {
            let wrong = of(json!({"certSigner": other})).unwrap();
            assert!(wrong.contains(other) && wrong.contains("opensdn-ca"), "{wrong}");
        }
    }
}
