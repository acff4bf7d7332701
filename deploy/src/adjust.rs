//! From values to the objects of an installation: the files of `deploy/webhook` and `deploy/operator`, with what an
//! administrator has chosen written into them. Pure. With the default values nothing is changed.

use serde_json::{Value, json};

use crate::names::{self, configuration, operator, webhook};
use crate::render::{self, Phase, RenderError, Step, kind};
use crate::values::{Image, Mode, Profile, Values};

/// The objects of an installation, in the order in which a cluster takes them. The values must have no
/// [problems](Values::problems).
///
/// # Errors
/// A file of ours is not what this understands; a test sees to it that each is.
pub fn render(values: &Values) -> Result<Vec<Step>, RenderError> {
    let mut steps = render::webhook_on(values.platform)?;
    if values.operator.enabled {
        for step in render::operator_on(values.platform)? {
            match steps.iter_mut().find(|one| one.phase == step.phase) {
                // Both have the CRDs.
                Some(_) if step.phase == Phase::Definitions => {}
                Some(one) => one.objects.extend(step.objects),
                None => steps.push(step),
            }
        }
    }
    for step in &mut steps {
        match step.phase {
            Phase::Definitions => {}
            Phase::Access | Phase::Program => {
                step.objects = std::mem::take(&mut step.objects)
                    .into_iter()
                    .flat_map(|object| each_watched(object, values))
                    .collect();
                for object in &mut step.objects {
                    place(object, values);
                    program(object, values);
                }
            }
            Phase::Policies => step.objects = policies(std::mem::take(&mut step.objects), values)?,
        }
    }
    steps.retain(|step| !step.objects.is_empty());
    Ok(steps)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    if let Some(place) = object.pointer_mut(pointer) {
        *place = value;
    }
}

/// What the profile `ha` needs.
const HA_NODES: u32 = 3;
/// The namespace of the files whose components the operator looks after.
const WATCHED: &str = "tf";
/// All accounts of it.
const ACCOUNTS: &str = "system:serviceaccounts:tf";

fn accounts_of(namespace: &str) -> String {
    format!("system:serviceaccounts:{namespace}")
}

/// What the files have once for the namespace `tf` is there for each that is watched.
fn each_watched(object: Value, values: &Values) -> Vec<Value> {
    let watched = &values.operator.watched_namespaces;
    let pointer = match kind(&object) {
        "Namespace" => "/metadata/name",
        _ => "/metadata/namespace",
    };
    if text(&object, pointer) == WATCHED {
        let of = |name: &String| {
            let mut object = object.clone();
            set(&mut object, pointer, json!(name));
            if let Some(Value::Array(subjects)) = object.get_mut("subjects") {
                let accounts = subjects.iter_mut().filter(|one| text(one, "/name") == ACCOUNTS);
                accounts.for_each(|one| set(one, "/name", json!(accounts_of(name))));
            }
            object
        };
        return watched.iter().map(of).collect();
    }
    let mut object = object;
    if let Some(Value::Array(subjects)) = object.get_mut("subjects")
        && let [subject] = subjects.as_slice()
        && text(subject, "/namespace") == WATCHED
    {
        let of = |name: &String| {
            let mut subject = subject.clone();
            set(&mut subject, "/namespace", json!(name));
            subject
        };
        *subjects = watched.iter().map(of).collect();
    }
    vec![object]
}

/// Moves an object, and what it says of namespaces, to those that were chosen.
fn place(object: &mut Value, values: &Values) {
    let moved = |name: &str| match name {
        names::NAMESPACE => Some(json!(values.namespace)),
        operator::NAMESPACE => Some(json!(values.operator.namespace)),
        _ => None,
    };
    let own = if kind(object) == "Namespace" { "/metadata/name" } else { "/metadata/namespace" };
    if let Some(name) = moved(text(object, own)) {
        set(object, own, name);
    }
    if let Some(Value::Array(subjects)) = object.get_mut("subjects") {
        for subject in subjects {
            if let Some(name) = moved(text(subject, "/namespace")) {
                set(subject, "/namespace", name);
            }
        }
    }
    // Claims are in no namespace, so the expression has to name the account's.
    if text(object, "/metadata/name") == names::UNIQUE_CLAIMS_POLICY {
        let expression = "/spec/validations/0/expression";
        let user = format!("system:serviceaccount:{}:{}", values.namespace, webhook::NAME);
        let written = text(object, expression).replace(webhook::USER, &user);
        set(object, expression, json!(written));
    }
}

/// Writes image, replicas, log level and ports into what runs.
fn program(object: &mut Value, values: &Values) {
    match kind(object) {
        "Deployment" => deployment(object, values),
        "NetworkPolicy" => network_policy(object, values),
        _ => {}
    }
}

fn deployment(object: &mut Value, values: &Values) {
    let (replicas, image, log_level) = match text(object, "/metadata/name") {
        webhook::NAME => (values.webhook.replicas, &values.webhook.image, values.webhook.log_level),
        configuration::NAME => {
            let webhook = &values.webhook;
            (webhook.configuration_replicas, &webhook.image, webhook.log_level)
        }
        operator::NAME => {
            (values.operator.replicas, &values.operator.image, values.operator.log_level)
        }
        _ => return,
    };
    let single = (values.profile == Profile::SingleNode).then_some(1);
    if let Some(replicas) = replicas.or(single) {
        set(object, "/spec/replicas", json!(replicas));
    }
    if values.profile == Profile::Ha {
        // With fewer than three nodes, or where others are full, two would share one all the same without minDomains.
        let spread = object.pointer_mut("/spec/template/spec/topologySpreadConstraints/0");
        if let Some(Value::Object(spread)) = spread {
            spread.insert("whenUnsatisfiable".to_owned(), json!("DoNotSchedule"));
            spread.insert("minDomains".to_owned(), json!(HA_NODES));
        }
    }
    let container = "/spec/template/spec/containers/0";
    let written = text(object, &format!("{container}/image")).to_owned();
    set(object, &format!("{container}/image"), json!(reference(&written, image, values)));
    if let (Some(level), Some(Value::Array(arguments))) =
        (log_level, object.pointer_mut(&format!("{container}/args")))
    {
        arguments.push(json!(format!("--log={},kube=warn", level.word())));
    }
    if !values.image_pull_secrets.is_empty()
        && let Some(Value::Object(pod)) = object.pointer_mut("/spec/template/spec")
    {
        let secrets = values.image_pull_secrets.iter().map(|name| json!({"name": name}));
        pod.insert("imagePullSecrets".to_owned(), secrets.collect());
    }
    if let Some(Value::Array(variables)) = object.pointer_mut(&format!("{container}/env"))
        && let Some(variable) =
            variables.iter_mut().find(|one| text(one, "/name") == operator::NAMESPACES)
    {
        set(variable, "/value", json!(values.operator.watched_namespaces.join(",")));
    }
}

/// `opensdn-webhook:0.1.0` of the files, as the values have it.
fn reference(written: &str, image: &Image, values: &Values) -> String {
    let (name, tag) = written.split_once(':').unwrap_or((written, ""));
    let name = image.name.as_deref().unwrap_or(name);
    let name = match &values.registry {
        Some(registry) => format!("{registry}/{name}"),
        None => name.to_owned(),
    };
    match &image.digest {
        Some(digest) => format!("{name}@{digest}"),
        None => format!("{name}:{}", image.tag.as_deref().unwrap_or(tag)),
    }
}

/// The ports of the API server come first in the files; those of DNS stay.
fn network_policy(object: &mut Value, values: &Values) {
    let Some(Value::Array(ports)) = object.pointer_mut("/spec/egress/0/ports") else { return };
    let is_of_api_server = |port: &Value| [json!(443), json!(6443)].contains(&port["port"]);
    ports.retain(|port| !is_of_api_server(port));
    let wanted =
        values.api_server_ports.iter().map(|port| json!({"port": port, "protocol": "TCP"}));
    *ports = wanted.chain(std::mem::take(ports)).collect();
}

fn policies(built_in: Vec<Value>, values: &Values) -> Result<Vec<Value>, RenderError> {
    let chosen = &values.policies;
    let mut objects = if chosen.enabled { built_in } else { Vec::new() };
    if chosen.tf_operator {
        add(&mut objects, render::tf_operator_policies()?);
    }
    if chosen.secret_keys {
        add(&mut objects, render::secret_keys_policies()?);
    }
    objects
        .retain(|object| !chosen.without.iter().any(|name| name == text(object, "/metadata/name")));
    if let Some(mode) = chosen.mode {
        let mode = match mode {
            Mode::Enforce => "enforce",
            Mode::Warn => "warn",
            Mode::Audit => "audit",
        };
        for object in &mut objects {
            if let Some(Value::Object(spec)) = object.get_mut("spec") {
                spec.insert("mode".to_owned(), json!(mode));
            }
        }
    }
    Ok(objects)
}

/// One of the same name takes the place of the other.
fn add(objects: &mut Vec<Value>, more: Vec<Value>) {
    for object in more {
        let name = text(&object, "/metadata/name").to_owned();
        match objects.iter_mut().find(|one| text(one, "/metadata/name") == name) {
            Some(one) => *one = object,
            None => objects.push(object),
        }
    }
}

#[cfg(test)]
mod tests;
