//! Whether the API server takes an object that the operator makes: the rules of `pkg/apis/core/validation` and of server-side apply for
//! all that a user's value may get into. That these are the API server's shows `tests/tests/operator_objects.rs`.

use std::collections::BTreeSet;

use serde_json::Value;

/// Of etcd, for one object, and of ConfigMaps and Secrets alone.
const MOST_BYTES: usize = 1_500_000;
const MOST_DATA: usize = 1 << 20;

/// What is wrong with it.
pub(super) fn problems(object: &Value) -> Vec<String> {
    let mut found = Found(Vec::new());
    let (kind, metadata, spec) = (text(&object["kind"]), &object["metadata"], &object["spec"]);
    found.unless(is_subdomain(text(&metadata["name"])), || format!("name {}", metadata["name"]));
    found.labels("labels", &metadata["labels"]);
    for (key, _) in map(&metadata["annotations"]) {
        found.unless(is_key(key), || format!("annotation {key:?}"));
    }
    found.unless(object.to_string().len() < MOST_BYTES, || "too large for etcd".to_owned());
    match kind {
        "ConfigMap" | "Secret" => found.data(&object["data"]),
        "Service" => {
            found.unless(is_label_name(text(&metadata["name"])), || {
                format!("name {}", metadata["name"])
            });
            for port in list(&spec["ports"]) {
                found.port("port", &port["port"]);
                found.port("targetPort", &port["targetPort"]);
            }
        }
        "StatefulSet" | "DaemonSet" | "Deployment" => {
            let template = &spec["template"];
            found.labels("selector", &spec["selector"]["matchLabels"]);
            found.labels("labels of pods", &template["metadata"]["labels"]);
            let of_pods = &template["metadata"]["labels"];
            let selects = map(&spec["selector"]["matchLabels"])
                .all(|(key, value)| of_pods.get(key) == Some(value));
            found.unless(selects, || "the selector does not select its pods".to_owned());
            // Kubernetes makes a label of it, with the hash of the revision.
            let is_short = kind != "StatefulSet" || text(&metadata["name"]).len() <= 52;
            found.unless(is_short, || "the name is too long for the label of its pods".to_owned());
            found.pod(&template["spec"]);
        }
        "PodDisruptionBudget" => {
            let both = spec["maxUnavailable"].is_null() == spec["minAvailable"].is_null();
            found.unless(!both, || "minAvailable and maxUnavailable".to_owned());
        }
        "PersistentVolumeClaim" => {
            let size = text(&spec["resources"]["requests"]["storage"]);
            found.unless(is_amount(size) && !size.starts_with('0'), || format!("size {size:?}"));
            let class = spec["storageClassName"].as_str();
            found.unless(class.is_none_or(is_subdomain), || format!("class {class:?}"));
        }
        _ => {}
    }
    found.0
}

struct Found(Vec<String>);

impl Found {
    fn unless(&mut self, is_right: bool, what: impl FnOnce() -> String) {
        if !is_right {
            self.0.push(what());
        }
    }

    fn labels(&mut self, what: &str, labels: &Value) {
        for (key, value) in map(labels) {
            self.unless(is_key(key), || format!("{what}: {key:?}"));
            self.unless(is_label_value(text(value)), || format!("{what}: {key}={value}"));
        }
    }

    fn data(&mut self, data: &Value) {
        let mut bytes = 0;
        for (key, value) in map(data) {
            let is_key = !key.is_empty()
                && key.len() <= 253
                && key.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
            self.unless(is_key, || format!("key {key:?}"));
            self.unless(value.is_string(), || format!("{key} is {value}"));
            bytes += key.len() + text(value).len();
        }
        self.unless(bytes <= MOST_DATA, || format!("{bytes} bytes of data"));
    }

    fn port(&mut self, what: &str, port: &Value) {
        let is_right =
            port.is_null() || port.as_i64().is_some_and(|port| (1..=65_535).contains(&port));
        self.unless(is_right, || format!("{what} {port}"));
    }

    fn pod(&mut self, pod: &Value) {
        self.labels("nodeSelector", &pod["nodeSelector"]);
        for one in list(&pod["tolerations"]) {
            self.toleration(one);
        }
        self.each_once(
            "imagePullSecrets",
            list(&pod["imagePullSecrets"]).map(|one| text(&one["name"])),
        );
        for one in list(&pod["imagePullSecrets"]) {
            self.unless(!text(&one["name"]).is_empty(), || {
                "imagePullSecrets without a name".to_owned()
            });
        }
        let volumes: Vec<&str> = list(&pod["volumes"]).map(|one| text(&one["name"])).collect();
        self.each_once("volumes", volumes.iter().copied());
        for volume in list(&pod["volumes"]) {
            self.volume(volume);
        }
        let containers: Vec<&Value> =
            list(&pod["containers"]).chain(list(&pod["initContainers"])).collect();
        self.unless(list(&pod["containers"]).next().is_some(), || "no container".to_owned());
        self.each_once("containers", containers.iter().map(|one| text(&one["name"])));
        for container in containers {
            let before = self.0.len();
            self.container(container, &volumes);
            let name = text(&container["name"]);
            self.0[before..].iter_mut().for_each(|one| *one = format!("container {name}: {one}"));
        }
    }

    fn each_once<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a str>) {
        let mut seen = BTreeSet::new();
        for name in names {
            self.unless(seen.insert(name), || format!("{what}: {name:?} twice"));
        }
    }

    fn toleration(&mut self, one: &Value) {
        let (key, operator, effect) =
            (text(&one["key"]), text(&one["operator"]), text(&one["effect"]));
        let value = text(&one["value"]);
        self.unless(key.is_empty() || is_key(key), || format!("toleration: key {key:?}"));
        self.unless(!key.is_empty() || operator == "Exists", || {
            "toleration: neither key nor Exists".to_owned()
        });
        self.unless(["", "Equal", "Exists"].contains(&operator), || {
            format!("toleration: operator {operator}")
        });
        self.unless(["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect), || {
            format!("toleration: effect {effect}")
        });
        self.unless(operator != "Exists" || value.is_empty(), || {
            "toleration: Exists with a value".to_owned()
        });
        self.unless(is_label_value(value), || format!("toleration: value {value:?}"));
        let has_time = !one["tolerationSeconds"].is_null();
        self.unless(!has_time || effect == "NoExecute", || {
            "toleration: seconds without NoExecute".to_owned()
        });
    }

    fn volume(&mut self, volume: &Value) {
        let name = text(&volume["name"]);
        self.unless(is_label_name(name), || format!("volume {name:?}"));
        if let Some(path) = volume["hostPath"]["path"].as_str() {
            let is_right = path.starts_with('/') && !path.split('/').any(|part| part == "..");
            self.unless(is_right, || format!("volume {name}: path {path:?}"));
        }
        for of in ["/secret/secretName", "/configMap/name", "/persistentVolumeClaim/claimName"] {
            let other = volume.pointer(of).map(text);
            self.unless(other.is_none_or(|other| !other.is_empty()), || {
                format!("volume {name}: {of} {other:?}")
            });
        }
    }

    fn container(&mut self, container: &Value, volumes: &[&str]) {
        let name = text(&container["name"]);
        self.unless(is_label_name(name), || "name".to_owned());
        let image = text(&container["image"]);
        self.unless(!image.is_empty() && image.trim() == image, || format!("image {image:?}"));
        self.each_once("env", list(&container["env"]).map(|one| text(&one["name"])));
        for one in list(&container["env"]) {
            let name = text(&one["name"]);
            let is_right =
                !name.is_empty() && name.chars().all(|c| (' '..='~').contains(&c) && c != '=');
            self.unless(is_right, || format!("variable {name:?}"));
        }
        self.each_once(
            "volumeMounts",
            list(&container["volumeMounts"]).map(|one| text(&one["mountPath"])),
        );
        for mount in list(&container["volumeMounts"]) {
            let path = text(&mount["mountPath"]);
            self.unless(!path.is_empty(), || format!("mount {path:?}"));
            self.unless(volumes.contains(&text(&mount["name"])), || {
                format!("mounts {}", mount["name"])
            });
        }
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            for how in ["tcpSocket", "httpGet"] {
                self.port(probe, &container[probe][how]["port"]);
            }
        }
        self.resources(&container["resources"]);
    }

    fn resources(&mut self, resources: &Value) {
        let (requests, limits) = (&resources["requests"], &resources["limits"]);
        for (name, amount) in map(requests).chain(map(limits)) {
            self.unless(is_amount(text(amount)), || format!("{name} is {amount}"));
        }
        for (name, amount) in map(limits).filter(|(name, _)| name.starts_with("hugepages-")) {
            self.unless(requests.get(name) == Some(amount), || format!("{name}: {requests}"));
            let has_other = ["cpu", "memory"].iter().any(|one| !requests[one].is_null());
            self.unless(has_other, || format!("{name} without cpu or memory"));
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Of letters, numbers and some signs, with a letter or number at both ends.
fn is_word(text: &str, others: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    ends(text.chars().next())
        && ends(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

fn is_lower(text: &str) -> bool {
    !text.chars().any(|c| c.is_ascii_uppercase())
}

fn is_label_name(text: &str) -> bool {
    text.len() <= 63 && is_word(text, "-") && is_lower(text)
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && is_lower(text) && text.split('.').all(|part| is_word(part, "-"))
}

fn is_label_value(text: &str) -> bool {
    text.is_empty() || (text.len() <= 63 && is_word(text, "-_."))
}

fn is_key(text: &str) -> bool {
    let (domain, name) =
        text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    domain.is_none_or(is_subdomain) && name.len() <= 63 && is_word(name, "-_.")
}

fn is_amount(text: &str) -> bool {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    number.parse::<f64>().is_ok_and(|number| number >= 0.0)
        && ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
            .contains(&unit)
}
