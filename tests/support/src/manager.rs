//! Managers of tests: services named as in upstream's samples, with an image for each of their containers.

use opensdn_crds::component::{COMPONENTS, Component, Count};
use serde_json::{Map, Value, json};

/// As in upstream's samples: `redis1`.
#[must_use]
pub fn service_name(kind: &str) -> String {
    if kind == "Cassandra" { "configdb1".to_owned() } else { format!("{}1", kind.to_lowercase()) }
}

/// A service as an item of a Manager, with images by the names of containers.
pub fn service(facts: &Component, image: impl Fn(&str) -> String) -> Value {
    let containers = facts.containers.main.iter();
    let containers: Vec<Value> =
        containers.map(|name| json!({"name": name, "image": image(name)})).collect();
    json!({"metadata": {"name": service_name(facts.kind)},
        "spec": {"serviceConfiguration": {"containers": containers}}})
}

/// `spec.services` of a Manager, of these kinds.
pub fn services(kinds: &[&str], service: impl Fn(&Component) -> Value) -> Value {
    let mut services = Map::new();
    for facts in COMPONENTS.iter().filter(|facts| kinds.contains(&facts.kind)) {
        let item = service(facts);
        let item = if facts.count == Count::Many { json!([item]) } else { item };
        services.insert(facts.key.to_owned(), item);
    }
    Value::Object(services)
}

/// A Manager of these kinds.
pub fn manager(
    namespace: &str,
    name: &str,
    kinds: &[&str],
    image: impl Fn(&str) -> String,
) -> Value {
    let services = services(kinds, |facts| service(facts, &image));
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": name, "namespace": namespace}, "spec": {"services": services}})
}

/// A Manager with a service of each kind, which becomes Ready in a sandbox.
pub fn whole(namespace: &str, name: &str, image: impl Fn(&str) -> String) -> Value {
    let kinds: Vec<&str> = COMPONENTS.iter().map(|facts| facts.kind).collect();
    let mut manager = manager(namespace, name, &kinds, image);
    for (service, field, value) in [
        ("vrouters/0", "controlInstance", "control1"),
        // The API server of a sandbox is on loopback, which is in no EndpointSlice.
        ("kubemanager", "kubernetesAPIServer", "192.0.2.100"),
    ] {
        let settings = format!("/spec/services/{service}/spec/serviceConfiguration");
        let settings = manager.pointer_mut(&settings).and_then(Value::as_object_mut);
        if let Some(settings) = settings {
            settings.insert(field.to_owned(), json!(value));
        }
    }
    manager
}
