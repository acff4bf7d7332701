//! What must hold of what comes of a change, whatever the change was.

use serde_json::Value;

use super::accepted;
use super::changes::{Change, SECRET};
use super::world::{Key, Objects, Running, World, refused_by_schema};

/// tf-operator's, which its source has.
const PUBLIC_PASSWORD: &str = "contrail123";

/// What is wrong, if anything is.
pub(super) type Verdict = Result<(), String>;

fn holds(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

/// Of what is there after a step; `in_effect` is by what it differs from what was there at first.
pub(super) fn of_state(world: &World, in_effect: &[&Change]) -> Verdict {
    for ((kind, name), running) in &world.components {
        let of = format!("{kind} {name}");
        for ((object, _), value) in &running.applied {
            let problems = accepted::problems(value);
            holds(problems.is_empty(), || {
                format!(
                    "{of}: the API server refuses {object} {}: {}",
                    value["metadata"]["name"],
                    problems.join("; ")
                )
            })?;
            holds(object == "Secret" || !has_secret(value), || {
                format!("{of}: a secret is in {object} {}", value["metadata"]["name"])
            })?;
        }
        holds(!has_secret(&running.object["status"]), || {
            format!("{of}: a secret is in its status")
        })?;
        is_explained(&of, running, in_effect)?;
        if running.refused.is_none() {
            let problem = refused_by_schema(&running.object);
            holds(problem.is_none(), || {
                format!("{of}: its schema refuses it: {}", problem.unwrap_or_default())
            })?;
            let (seen, is) = (
                &running.object["status"]["observedGeneration"],
                &running.object["metadata"]["generation"],
            );
            holds(seen == is, || format!("{of}: the status is of generation {seen}, not {is}"))?;
        }
    }
    Ok(())
}

fn has_secret(value: &Value) -> bool {
    let text = value.to_string();
    text.contains(SECRET) || text.contains(PUBLIC_PASSWORD)
}

/// Who reads why nothing was made knows which field to look at.
fn is_explained(of: &str, running: &Running, in_effect: &[&Change]) -> Verdict {
    let Some(message) = &running.refused else { return Ok(()) };
    holds(!message.contains(SECRET), || format!("{of}: a secret is in {message:?}"))?;
    let names: Vec<String> = in_effect.iter().flat_map(|change| change.names()).collect();
    // A service that others need is gone as a whole.
    let is_named = names.iter().any(|name| message.contains(name.as_str()))
        || message.contains("the services of its Manager");
    holds(is_named, || format!("{of}: {message:?} names none of {names:?}"))
}

/// Of a step from one state to the next.
pub(super) fn of_step(before: &World, after: &World) -> Verdict {
    for (key, running) in &before.components {
        let Some(next) = after.components.get(key) else {
            return Err(format!("{} {} is gone", key.0, key.1));
        };
        stays(key, &running.applied, &next.applied)?;
    }
    Ok(())
}

/// What never changes: Kubernetes would not let it, or what runs is known by it.
fn stays(of: &Key, before: &Objects, after: &Objects) -> Verdict {
    let of = format!("{} {}", of.0, of.1);
    for ((kind, name), one) in before {
        let Some(next) = after.get(&(kind.clone(), name.clone())) else {
            holds(kind == "PodDisruptionBudget", || format!("{of}: {kind} {name} is gone"))?;
            continue;
        };
        let fixed: &[&str] = match kind.as_str() {
            "StatefulSet" => &[
                "/spec/selector",
                "/spec/serviceName",
                "/spec/podManagementPolicy",
                "/spec/volumeClaimTemplates",
                "/spec/template/metadata/labels",
            ],
            "DaemonSet" | "Deployment" => &["/spec/selector", "/spec/template/metadata/labels"],
            "Service" => &["/spec/selector", "/spec/type", "/spec/clusterIP"],
            "PodDisruptionBudget" => &["/spec/selector"],
            "Secret" => &["/type"],
            "PersistentVolumeClaim" => &["/spec/accessModes", "/spec/storageClassName"],
            _ => &[],
        };
        for pointer in ["/metadata/labels", "/metadata/ownerReferences"].iter().chain(fixed) {
            let (was, is) = (one.pointer(pointer), next.pointer(pointer));
            holds(was == is, || {
                format!("{of}: {kind} {name}: {pointer} was {was:?} and is {is:?}")
            })?;
        }
        let size = |object: &Value| {
            mebibytes(
                object["spec"]["resources"]["requests"]["storage"].as_str().unwrap_or_default(),
            )
        };
        holds(kind != "PersistentVolumeClaim" || size(one) <= size(next), || {
            format!("{of}: {name} shrinks")
        })?;
    }
    // Of a service that has not started yet all come later.
    let is_keeper =
        |key: &&Key| ["StatefulSet", "DaemonSet", "Deployment"].contains(&key.0.as_str());
    if before.keys().any(|key| is_keeper(&key)) {
        let more = after.keys().filter(is_keeper).find(|key| !before.contains_key(*key));
        holds(more.is_none(), || format!("{of}: {more:?} is new"))?;
    }
    Ok(())
}

fn mebibytes(size: &str) -> u64 {
    let number: u64 =
        size.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().unwrap_or_default();
    match size.trim_start_matches(|c: char| c.is_ascii_digit()) {
        "Mi" => number,
        "Gi" => number << 10,
        "Ti" => number << 20,
        _ => 0,
    }
}

/// That two states are the same, but for Secrets that nothing names any more, which stay until their owner goes.
pub(super) fn are_same(what: &str, one: &Objects, other: &Objects) -> Verdict {
    for key in one.keys().chain(other.keys()) {
        if key.0 == "Secret" && !(one.contains_key(key) && other.contains_key(key)) {
            continue;
        }
        let (first, second) = (one.get(key), other.get(key));
        holds(first == second, || {
            format!("{what}: {} {} {}", key.0, key.1, difference(first, second))
        })?;
    }
    Ok(())
}

/// The first place where two values differ.
fn difference(one: Option<&Value>, other: Option<&Value>) -> String {
    fn find(pointer: &str, one: &Value, other: &Value) -> Option<String> {
        match (one, other) {
            (Value::Object(first), Value::Object(second)) => {
                let keys = first.keys().chain(second.keys());
                keys.map(|key| (key, one.get(key), other.get(key)))
                    .find(|(_, first, second)| first != second)
                    .and_then(|(key, first, second)| {
                        find(
                            &format!("{pointer}/{key}"),
                            first.unwrap_or(&Value::Null),
                            second.unwrap_or(&Value::Null),
                        )
                    })
            }
            (Value::Array(first), Value::Array(second)) if first.len() == second.len() => {
                let mut pairs = first.iter().zip(second).enumerate();
                pairs.find(|(_, (first, second))| first != second).and_then(
                    |(at, (first, second))| find(&format!("{pointer}/{at}"), first, second),
                )
            }
            _ => Some(format!("{pointer}: {one} is {other}")),
        }
    }
    match (one, other) {
        (Some(one), Some(other)) => find("", one, other).unwrap_or_default(),
        (one, _) => if one.is_some() { "is not there" } else { "is there" }.to_owned(),
    }
}
