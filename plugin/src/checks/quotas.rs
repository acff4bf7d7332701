//! Whether quotas and limits leave room: for components in their namespaces, and for our own programs in theirs.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_deploy::names;
use serde_json::Value;

use super::cluster_api::quantity;
use super::few;
use super::report::Verdict;
use super::world::World;
use crate::snapshot::{Read, list, namespace, number, text, title};

/// Less than this no database starts with.
const LEAST_MEMORY: f64 = 1024.0 * 1024.0 * 1024.0;
/// What our own pods do not state (`deploy/webhook/deployment.yaml`, `deploy/operator/deployment.yaml`).
const NOT_STATED_BY_OURS: &str = "limits.cpu";

pub(super) fn quotas(world: &World) -> Verdict {
    let (Read::Known(quotas), Read::Known(limits)) = (&world.quotas, &world.limits) else {
        let why = world.quotas.why_unknown().or(world.limits.why_unknown());
        return Verdict::uncertain(format!(
            "quotas and limits may not be read: {}",
            why.unwrap_or("none served")
        ));
    };
    let own = own_pods(world);
    let of_components = world.component_namespaces();
    let mut places = of_components.clone();
    places.extend(own.keys().cloned());
    let mut wrong = Vec::new();
    let is_there = |one: &&Value| places.contains(namespace(one)) && is_about_ours(one);
    for quota in quotas.iter().filter(is_there) {
        let place = namespace(quota);
        let has_defaults =
            limits.iter().any(|limit| namespace(limit) == place && has_default(limit));
        let asks = Asks {
            states_all: has_defaults,
            components: of_components.contains(place),
            own_pods: own.get(place).copied(),
        };
        wrong.extend(of_quota(quota, &asks));
    }
    let of_components = limits.iter().filter(|limit| of_components.contains(namespace(limit)));
    wrong.extend(of_components.filter(|limit| is_too_small(limit)).map(|limit| {
        format!("LimitRange {} allows a database less than 1 GiB of memory", title(limit))
    }));
    match wrong.is_empty() {
        true => Verdict::ok(format!("there is room in {}", few(&Vec::from_iter(places)))),
        false => Verdict::warn(few(&wrong)).fix(format!(
            "kubectl describe resourcequota,limitrange -n {}",
            place_of(&wrong, &places)
        )),
    }
}

/// The namespace that is named first.
fn place_of<'a>(wrong: &[String], places: &'a BTreeSet<String>) -> &'a str {
    let first = wrong.first().map(String::as_str).unwrap_or_default();
    let named = places.iter().find(|place| first.contains(&format!(" {place}/")));
    named.map(String::as_str).unwrap_or_default()
}

/// What a namespace needs.
struct Asks {
    /// Whether a LimitRange states requests and limits for pods that have none.
    states_all: bool,
    /// Whether components are there.
    components: bool,
    /// How many pods of our own programs are to be there that are not; nothing where none of them is.
    own_pods: Option<u32>,
}

/// Whether pods of ours count in it: they run without an end, state some of what they take, name no pods of other namespaces,
/// and have the priorities of the system. Where a scope leaves that open they count.
fn is_about_ours(quota: &Value) -> bool {
    const OF_OTHERS: [&str; 2] = ["Terminating", "CrossNamespacePodAffinity"];
    const OURS: [&str; 2] = ["system-node-critical", "system-cluster-critical"];
    if list(quota, "/spec/scopes").filter_map(Value::as_str).any(|one| OF_OTHERS.contains(&one)) {
        return false;
    }
    list(quota, "/spec/scopeSelector/matchExpressions").all(|one| {
        let has_ours =
            list(one, "/values").filter_map(Value::as_str).any(|one| OURS.contains(&one));
        match (text(one, "/scopeName"), text(one, "/operator")) {
            (scope, "Exists") => !OF_OTHERS.contains(&scope),
            ("PriorityClass", "In") => has_ours,
            // All of ours are named: none is left.
            ("PriorityClass", "NotIn") => !OURS
                .iter()
                .all(|ours| list(one, "/values").any(|value| value.as_str() == Some(ours))),
            ("PriorityClass", "DoesNotExist") => false,
            _ => true,
        }
    })
}

/// What of a quota leaves no room.
fn of_quota(quota: &Value, asks: &Asks) -> Vec<String> {
    let hard = quota.pointer("/status/hard").or(quota.pointer("/spec/hard"));
    let hard = hard.and_then(Value::as_object).into_iter().flatten();
    let mut wrong = Vec::new();
    for (what, most) in hard.filter(|(what, _)| is_asked(what)) {
        let used = quota.pointer("/status/used").and_then(|used| used.get(what));
        let (used, most) = (used.and_then(quantity), quantity(most));
        let is_stated = asks.states_all || (!asks.components && what != NOT_STATED_BY_OURS);
        let left = used.zip(most).map(|(used, most)| most - used);
        let missing = asks.own_pods.filter(|_| ["pods", "count/pods"].contains(&what.as_str()));
        // Where nothing was counted yet, nothing is used.
        let left_for_ours = most.map(|most| most - used.unwrap_or_default());
        if left.is_some_and(|left| left <= 0.0) {
            wrong.push(format!("ResourceQuota {} has no {what} left", title(quota)));
        } else if let Some((missing, left)) = missing.zip(left_for_ours)
            && left < f64::from(missing)
        {
            let title = title(quota);
            wrong.push(format!(
                "ResourceQuota {title} has {left} {what} left, and {missing} more are to run there"
            ));
        } else if is_per_pod(what) && !is_stated {
            // Init containers of vrouters state neither requests nor limits.
            wrong.push(format!("ResourceQuota {} refuses pods without {what}", title(quota)));
        }
    }
    wrong
}

/// The Deployments that the defaults install, and their replicas.
const DEPLOYMENTS: [(&str, i64); 3] =
    [(names::webhook::NAME, 3), (names::configuration::NAME, 2), (names::operator::NAME, 2)];

/// By namespace, how many pods of our own programs are to run that do not yet: as they are stored, else by the defaults.
fn own_pods(world: &World) -> BTreeMap<String, u32> {
    let mut missing: BTreeMap<String, u32> = BTreeMap::new();
    for (name, replicas) in DEPLOYMENTS {
        let stored = world.deployments.get(name).and_then(Read::known);
        let replicas = stored.map_or(Some(replicas), |one| number(one, "/spec/replicas"));
        let there = stored.and_then(|one| number(one, "/status/replicas")).unwrap_or(0);
        let more = replicas.unwrap_or(1).saturating_sub(there).max(0);
        let is_operator = name == names::operator::NAME;
        let place = if is_operator { &world.places.operator } else { &world.places.webhook };
        let sum = missing.entry(place.clone()).or_default();
        *sum = sum.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
    }
    missing
}

fn has_default(limit: &Value) -> bool {
    list(limit, "/spec/limits").any(|one| one.pointer("/default").is_some())
}

/// Whether it allows pods less memory than a database needs.
fn is_too_small(limit: &Value) -> bool {
    let mut of_pods =
        list(limit, "/spec/limits").filter(|one| text(one, "/type") != "PersistentVolumeClaim");
    of_pods.any(|one| {
        one.pointer("/max/memory").and_then(quantity).is_some_and(|most| most < LEAST_MEMORY)
    })
}

/// Whether what runs takes some of what the quota is about.
fn is_asked(what: &str) -> bool {
    const COUNTED: [&str; 9] = [
        "pods",
        "configmaps",
        "secrets",
        "services",
        "count/pods",
        "count/configmaps",
        "count/secrets",
        "count/services",
        "count/statefulsets.apps",
    ];
    COUNTED.contains(&what) || is_per_pod(what)
}

/// Whether every pod has to state it where there is a quota of it.
fn is_per_pod(what: &str) -> bool {
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"]
        .contains(&what)
}

#[cfg(test)]
mod tests {
    use opensdn_deploy::Values;

    use super::*;
    use crate::snapshot::name;

    #[test]
    fn our_own_programs_are_those_that_the_defaults_install() {
        let steps = opensdn_deploy::render(&Values::default()).unwrap();
        let objects = steps.iter().flat_map(|step| &step.objects);
        let mut replicas: BTreeMap<&str, i64> = objects
            .filter(|object| text(object, "/kind") == "Deployment")
            .map(|one| (name(one), number(one, "/spec/replicas").unwrap()))
            .collect();
        for (name, number) in DEPLOYMENTS {
            assert_eq!(replicas.remove(name), Some(number), "{name}");
        }
        assert!(replicas.is_empty(), "{replicas:?}");
        let limits = objects_of_containers(&steps);
        assert!(limits.iter().all(|limits| limits.get("cpu").is_none()), "{NOT_STATED_BY_OURS}");
    }

    fn objects_of_containers(steps: &[opensdn_deploy::Step]) -> Vec<&Value> {
        let objects = steps.iter().flat_map(|step| &step.objects);
        let containers = objects.flat_map(|one| list(one, "/spec/template/spec/containers"));
        containers.filter_map(|one| one.pointer("/resources/limits")).collect()
    }
}
