//! Checks of the API server: credentials, versions, what it serves, what it admits.

use std::collections::BTreeSet;

use opensdn_deploy::names;
use serde_json::Value;

use super::few;
use super::report::{NodeResult, Outcome, Verdict};
use super::world::World;
use crate::snapshot::{Read, list, name, text};

/// The minor versions that this release is tested with.
const SUPPORTED: std::ops::RangeInclusive<u32> = 33..=36;
/// How much older a kubelet may be.
const MOST_SKEW: u32 = 3;

pub(super) fn credentials(world: &World) -> Verdict {
    match &world.user {
        Read::Known(review) => match text(review, "/status/userInfo/username") {
            "system:anonymous" | "" => {
                Verdict::fail("the API server does not know you: you are anonymous")
            }
            user => Verdict::ok(format!("you are {user}")),
        },
        Read::Absent => Verdict::uncertain("the API server does not say who you are"),
        Read::Unknown(why) => {
            Verdict::uncertain(format!("the API server does not say who you are: {why}"))
        }
    }
}

/// The minor version in `v1.35.2` or `35+`.
pub(super) fn minor(version: &str) -> Option<u32> {
    let part = match version.strip_prefix('v') {
        Some(version) => version.split('.').nth(1)?,
        None => version,
    };
    part.trim_end_matches('+').parse().ok()
}

pub(super) fn versions(world: &World) -> Verdict {
    let version = text(&world.version, "/gitVersion");
    let Some(server) = minor(text(&world.version, "/minor")) else {
        return Verdict::uncertain(format!(
            "the version of the API server cannot be read: {version:?}"
        ));
    };
    let (oldest, newest) = (SUPPORTED.start(), SUPPORTED.end());
    let range = format!("1.{oldest} - 1.{newest}");
    if server < *oldest {
        return Verdict::fail(format!("the API server is {version}; supported are {range}"));
    }
    let of_node = |node: &Value| {
        let kubelet = text(node, "/status/nodeInfo/kubeletVersion");
        let minor = minor(kubelet)?;
        let is_good = minor <= server && server - minor <= MOST_SKEW;
        let message = format!("kubelet {kubelet}, API server {version}");
        (!is_good).then(|| NodeResult {
            name: name(node).to_owned(),
            result: Outcome::Warn,
            message,
        })
    };
    let skewed: Vec<NodeResult> = world.nodes.items().iter().filter_map(of_node).collect();
    let latency = world.latency;
    if server > *newest {
        return Verdict::warn(format!(
            "the API server is {version}; this release is tested with {range}"
        ));
    }
    if let Some(first) = skewed.first() {
        let message = format!(
            "{} of another minor version than is supported: {}: {}",
            super::number_of(skewed.len(), "kubelet"),
            first.name,
            first.message
        );
        return Verdict::warn(message).on(skewed);
    }
    if let Some(why) = world.nodes.why_unknown() {
        return Verdict::uncertain(format!(
            "the API server {version} is supported; nodes may not be read: {why}"
        ));
    }
    Verdict::ok(format!(
        "the API server {version} is supported ({range}) and answers in {latency} ms"
    ))
}

/// Without it the webhook has nothing to judge by.
const POLICIES: &str = "admissionpolicies.opensdn.io";

pub(super) fn apis(world: &World) -> Verdict {
    const NEEDED: [&str; 5] = [
        "admissionregistration.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "coordination.k8s.io/v1",
        "discovery.k8s.io/v1",
        "rbac.authorization.k8s.io/v1",
    ];
    let Read::Known(groups) = &world.groups else {
        return Verdict::uncertain("the API server does not say which APIs it serves");
    };
    let served: BTreeSet<&str> = list(groups, "/groups")
        .flat_map(|group| list(group, "/versions"))
        .map(|version| text(version, "/groupVersion"))
        .collect();
    let missing: Vec<String> =
        NEEDED.iter().filter(|api| !served.contains(*api)).map(|api| (*api).to_owned()).collect();
    if !missing.is_empty() {
        return Verdict::fail(format!("not served: {}", few(&missing)));
    }
    let mut gone = Vec::new();
    for (name, read) in &world.definitions {
        let Read::Known(definition) = read else { continue };
        let stored = list(definition, "/status/storedVersions").filter_map(Value::as_str);
        let others = stored.filter(|version| *version != "v1alpha1");
        gone.extend(others.map(|version| format!("{name} has objects in {version}")));
    }
    if !gone.is_empty() {
        return Verdict::fail(format!("CRDs store versions that ours do not have: {}", few(&gone)))
            .fix("kubectl get crds -o custom-columns=NAME:.metadata.name,STORED:.status.storedVersions");
    }
    let is_installed =
        world.deployments.get(names::webhook::NAME).is_some_and(|read| read.known().is_some());
    if is_installed && matches!(world.definitions.get(POLICIES), Some(Read::Absent)) {
        let message = format!(
            "the webhook is installed, and the CRD {POLICIES} is not there: nothing is judged"
        );
        return Verdict::fail(message).fix("kubectl opensdn install");
    }
    let unread = world.definitions.values().find_map(Read::why_unknown);
    if let Some(why) = unread {
        return Verdict::uncertain(format!(
            "all needed APIs are served; CRDs may not be read: {why}"
        ));
    }
    Verdict::ok("all needed APIs are served")
}

/// Namespace and name.
type Place = (String, String);

/// A webhook with failurePolicy Fail that matches something of ours.
struct Dangerous {
    configuration: String,
    webhook: String,
    service: Option<Place>,
    /// Whether it chooses by labels or conditions as well, which are not compared here.
    chooses: bool,
}

fn dangerous(world: &World) -> Vec<Dangerous> {
    let mut found = Vec::new();
    for configuration in world.webhooks.items() {
        for webhook in list(configuration, "/webhooks") {
            let policy =
                webhook.pointer("/failurePolicy").and_then(Value::as_str).unwrap_or("Fail");
            if policy != "Fail" || !list(webhook, "/rules").any(matches_ours) {
                continue;
            }
            let service = webhook.pointer("/clientConfig/service").map(|service| {
                (text(service, "/namespace").to_owned(), text(service, "/name").to_owned())
            });
            found.push(Dangerous {
                configuration: name(configuration).to_owned(),
                webhook: text(webhook, "/name").to_owned(),
                service,
                chooses: chooses(webhook),
            });
        }
    }
    found
}

/// Whether only some of what its rules match is sent to it.
fn chooses(webhook: &Value) -> bool {
    let is_narrow = |selector: &str| {
        let labels = webhook.get(selector).and_then(Value::as_object).into_iter().flatten();
        labels.into_iter().any(|(_, one)| match one {
            Value::Object(all) => !all.is_empty(),
            Value::Array(all) => !all.is_empty(),
            _ => false,
        })
    };
    is_narrow("namespaceSelector")
        || is_narrow("objectSelector")
        || list(webhook, "/matchConditions").next().is_some()
}

/// What an installation writes, and what the operator does.
fn matches_ours(rule: &Value) -> bool {
    const OURS: [(&str, &[&str]); 9] = [
        ("", &["pods", "configmaps", "secrets", "services", "serviceaccounts", "namespaces"]),
        ("apps", &["deployments", "statefulsets", "daemonsets"]),
        ("apiextensions.k8s.io", &["customresourcedefinitions"]),
        (
            "rbac.authorization.k8s.io",
            &["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
        ),
        ("networking.k8s.io", &["networkpolicies"]),
        ("policy", &["poddisruptionbudgets"]),
        ("coordination.k8s.io", &["leases"]),
        ("tf.tungsten.io", &[]),
        ("opensdn.io", &[]),
    ];
    const WRITES: [&str; 4] = ["*", "CREATE", "UPDATE", "DELETE"];
    let operations: Vec<&str> = list(rule, "/operations").filter_map(Value::as_str).collect();
    if !operations.is_empty() && !operations.iter().any(|one| WRITES.contains(one)) {
        return false;
    }
    let has = |pointer: &str, wanted: &[&str]| {
        list(rule, pointer)
            .filter_map(Value::as_str)
            .any(|one| ["*", "*/*"].contains(&one) || wanted.is_empty() || wanted.contains(&one))
    };
    OURS.iter()
        .any(|(group, resources)| has("/apiGroups", &[group]) && has("/resources", resources))
}

/// The Services whose endpoints have to be known.
pub(super) fn services_of_webhooks(world: &World) -> BTreeSet<(String, String)> {
    dangerous(world).into_iter().filter_map(|one| one.service).collect()
}

pub(super) fn webhooks(world: &World) -> Verdict {
    if let Some(why) = world.webhooks.why_unknown() {
        return Verdict::uncertain(format!("webhook configurations may not be read: {why}"));
    }
    let (mut dead, mut unknown) = (Vec::new(), Vec::new());
    for Dangerous { configuration, webhook, service, chooses } in dangerous(world) {
        // Behind an address instead of a Service: nothing here says whether it answers.
        let Some(key) = service else {
            unknown.push(format!("{configuration} ({webhook}), which has an address outside"));
            continue;
        };
        match world.endpoints.get(&key) {
            Some(Read::Known(slices)) if slices.iter().any(has_ready) => {}
            Some(Read::Known(_)) if chooses => unknown.push(format!(
                "{configuration} ({}/{}), behind which no endpoint is ready, and which chooses by labels or conditions",
                key.0, key.1
            )),
            Some(Read::Known(_)) => dead.push(format!("{configuration} ({}/{})", key.0, key.1)),
            _ => unknown.push(format!("{configuration} ({}/{})", key.0, key.1)),
        }
    }
    dead.dedup();
    if let Some(first) = dead.first() {
        let fix = first.split(' ').next().unwrap_or_default();
        return Verdict::warn(format!(
            "no endpoint is ready behind {}: it refuses what it matches",
            few(&dead)
        ))
        .fix(format!(
            "kubectl describe validatingwebhookconfiguration,mutatingwebhookconfiguration {fix}"
        ));
    }
    if !unknown.is_empty() {
        return Verdict::uncertain(format!(
            "it is not known whether these answer, or refuse something of ours: {}",
            few(&unknown)
        ));
    }
    Verdict::ok("each webhook that may refuse our objects has a ready endpoint")
}

fn has_ready(slice: &Value) -> bool {
    list(slice, "/endpoints").any(|endpoint| {
        // Without the condition it counts as ready.
        endpoint.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true)
    })
}

/// A quantity of Kubernetes: `100m`, `4Gi`, `12`.
pub(super) fn quantity(value: &Value) -> Option<f64> {
    const UNITS: [(&str, f64); 12] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("m", 0.001),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("", 1.0),
    ];
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    UNITS
        .iter()
        .find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor))
}

/// What the machine of a node has, as a quantity.
pub(super) fn capacity(node: &Value, what: &str) -> Option<f64> {
    let status = node.pointer("/status/capacity").or(node.pointer("/status/allocatable"))?;
    quantity(status.get(what)?)
}

/// A number of a node's status, as a quantity.
pub(super) fn allocatable(node: &Value, what: &str) -> Option<f64> {
    let status = node.pointer("/status/allocatable").or(node.pointer("/status/capacity"))?;
    quantity(status.get(what)?)
}
