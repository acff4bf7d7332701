//! The spec of one component: fields that have another name or place now, and containers that there are no more.

use opensdn_crds::component::Component;
use serde_json::{Value, json};

use super::fields::{put, take};
use super::{Notes, reasons};

/// Fields by kind, from and to; below the spec. An empty kind is any.
const RENAMED: &[(&str, &str, &str)] = &[
    ("", "serviceConfiguration.logLevel", "commonConfiguration.logLevel"),
    ("", "serviceConfiguration.authMode", "commonConfiguration.authParameters.authMode"),
    (
        "",
        "serviceConfiguration.keystoneSecretName",
        "commonConfiguration.authParameters.keystoneSecretName",
    ),
    (
        "",
        "serviceConfiguration.keystoneSecretInstance",
        "commonConfiguration.authParameters.keystoneSecretName",
    ),
    ("", "serviceConfiguration.distribution", "commonConfiguration.distribution"),
    ("Kubemanager", "serviceConfiguration.podSubnets", "serviceConfiguration.podSubnet"),
    ("Kubemanager", "serviceConfiguration.serviceSubnets", "serviceConfiguration.serviceSubnet"),
    ("Vrouter", "serviceConfiguration.gateway", "serviceConfiguration.vrouterGateway"),
    ("Vrouter", "serviceConfiguration.metaDataSecret", "serviceConfiguration.metadataProxySecret"),
    ("Vrouter", "serviceConfiguration.subclaster", "serviceConfiguration.subcluster"),
];

/// Containers by kind, from and to: Config had those of Analytics beside its own (tf-operator R2011,
/// `deploy/kustomize/contrail/templates/config.yaml.j2`).
const CONTAINERS: &[(&str, &str, &str)] = &[
    ("Config", "nodemanagerconfig", "nodemanager"),
    ("Config", "provisionerconfig", "provisioner"),
];

/// Words of the daemons' own for how much they log.
const LEVELS: &[(&str, &str)] = &[
    ("SYS_CRIT", "critical"),
    ("SYS_DEBUG", "debug"),
    ("SYS_ERR", "error"),
    ("SYS_INFO", "info"),
    ("SYS_NOTICE", "info"),
    ("SYS_WARN", "warning"),
];

const LOG_LEVEL: &str = "commonConfiguration.logLevel";
const STATUS_IMAGE: &str = "serviceConfiguration.contrailStatusImage";
const PREFETCH: &str = "nodeinit-status-prefetch";

/// Converts the spec, which is at `path` of its object.
pub(super) fn convert(kind: &str, spec: &mut Value, path: &str, notes: &mut Notes) {
    for (of, from, to) in RENAMED {
        if of.is_empty() || *of == kind {
            rename(spec, from, to, path, notes);
        }
    }
    log_level(spec, path, notes);
    let Some(component) = Component::of_kind(kind) else { return };
    if kind == "Vrouter" {
        status_image(spec, path, notes);
    }
    containers(component, spec, path, notes);
}

/// The field under its new name, unless that is set already.
pub(super) fn rename(spec: &mut Value, from: &str, to: &str, path: &str, notes: &mut Notes) {
    let Some(value) = take(spec, from) else { return };
    let field = format!("{path}.{from}");
    match put(spec, to, value) {
        Ok(()) => notes.moved(&field, &format!("{path}.{to}")),
        Err(_) => notes.dropped(&field, &format!("{path}.{to} is set too, and stays")),
    }
}

/// The Manager's and the components' is the same set of words.
pub(super) fn log_level(spec: &mut Value, path: &str, notes: &mut Notes) {
    let Some(level) = spec.pointer_mut("/commonConfiguration/logLevel") else { return };
    let word = level.as_str().unwrap_or_default().to_owned();
    if let Some((_, ours)) = LEVELS.iter().find(|(theirs, _)| *theirs == word) {
        *level = json!(ours);
        notes.say(&format!("{path}.{LOG_LEVEL}"), format!("{word} is called {ours} now"));
    }
}

/// The image of contrail-status is that of a container now.
fn status_image(spec: &mut Value, path: &str, notes: &mut Notes) {
    let Some(image) = take(spec, STATUS_IMAGE) else { return };
    let field = format!("{path}.{STATUS_IMAGE}");
    let containers =
        spec.pointer_mut("/serviceConfiguration/containers").and_then(Value::as_array_mut);
    match containers {
        Some(containers) if !containers.iter().any(|one| one["name"] == PREFETCH) => {
            containers.push(json!({"name": PREFETCH, "image": image}));
            notes.moved(&field, &format!("the image of container {PREFETCH}"));
        }
        _ => notes.dropped(&field, &format!("it is the image of container {PREFETCH}")),
    }
}

fn containers(component: &Component, spec: &mut Value, path: &str, notes: &mut Notes) {
    let pointer = "/serviceConfiguration/containers";
    let Some(containers) = spec.pointer_mut(pointer).and_then(Value::as_array_mut) else { return };
    for (_, from, to) in CONTAINERS.iter().filter(|(kind, ..)| *kind == component.kind) {
        if containers.iter().any(|one| one["name"] == *to) {
            continue;
        }
        for container in containers.iter_mut().filter(|one| one["name"] == *from) {
            container["name"] = json!(to);
            let field = format!("{path}.serviceConfiguration.containers[{from}]");
            notes.moved(&field, &format!("container {to}"));
        }
    }
    containers.retain(|container| {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_known = component.containers.all().any(|one| one == name);
        if !is_known {
            let field = format!("{path}.serviceConfiguration.containers[{name}]");
            notes.dropped(&field, reasons::of_container(name));
        }
        is_known
    });
}
