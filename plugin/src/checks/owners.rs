//! Who manages what is there of OpenSDN already.

use std::collections::BTreeMap;

use opensdn_deploy::names;
use serde_json::Value;

use super::cluster_api::minor;
use super::report::Verdict;
use super::world::World;
use super::{few, number_of};
use crate::snapshot::tf_operator::{TfOperator, component_of};
use crate::snapshot::{
    Read, TF_OPERATOR_LIMITS, annotation, label, limits_tf_operator, list, name, text,
};

/// The marks of tools that write an object again when another has changed it.
fn tool(object: &Value) -> Option<&'static str> {
    let managed_by = label(object, "app.kubernetes.io/managed-by");
    let managers = || list(object, "/metadata/managedFields").map(|one| text(one, "/manager"));
    let has_manager = |names: &[&str]| managers().any(|manager| names.contains(&manager));
    if managed_by == Some("Helm") || annotation(object, "meta.helm.sh/release-name").is_some() {
        Some("Helm")
    } else if label(object, "kustomize.toolkit.fluxcd.io/name").is_some()
        || has_manager(&["kustomize-controller", "helm-controller"])
    {
        Some("Flux")
    } else if annotation(object, "argocd.argoproj.io/tracking-id").is_some()
        || has_manager(&["argocd-controller"])
    {
        Some("Argo CD")
    } else if label(object, "olm.owner").is_some() || label(object, "olm.managed").is_some() {
        Some("the Operator Lifecycle Manager")
    } else {
        None
    }
}

/// A tf-operator that runs.
pub(super) fn tf_operator(world: &World) -> Option<&TfOperator> {
    world.tf_operators.items().iter().find(|one| one.runs())
}

/// Where one was scaled to 0, workloads that it has made, and which no operator of ours looks after.
fn left_alone(world: &World, has_ours: bool) -> Option<Verdict> {
    let away = world.tf_operators.items().first()?;
    if tf_operator(world).is_some() {
        return None;
    }
    let made = world.workloads.items().iter().filter(|one| component_of(one).is_some()).count();
    (!has_ours && made > 0).then(|| {
        Verdict::fail(format!(
            "tf-operator ({}) is scaled to 0, and no operator looks after the {} that it has made",
            away.title(),
            number_of(made, "workload")
        ))
        .fix("kubectl opensdn install --adopt --dry-run=server")
    })
}

/// The version of the API server where it has no API any more that tf-operator needs (`zookeeper_controller.go:29`).
fn too_new(world: &World) -> Option<&str> {
    let is_too_new = minor(text(&world.version, "/minor"))? >= 25;
    is_too_new.then(|| text(&world.version, "/gitVersion"))
}

/// What is wrong with an installation beside upstream's operator, or missing from it.
fn beside(world: &World, upstream: &TfOperator, has: impl Fn(&str) -> bool) -> Option<Verdict> {
    let running: Vec<String> =
        world.tf_operators.items().iter().filter(|one| one.runs()).map(TfOperator::title).collect();
    let title = few(&running);
    if has(names::operator::NAME) {
        let said = format!("tf-operator runs ({title}), and changes what this operator changes");
        return Some(Verdict::fail(said).fix(upstream.end()));
    }
    let said = if !has(names::webhook::NAME) {
        format!("tf-operator runs ({title}): install puts no operator of ours beside it")
    } else if let Some(why) = world.policies.why_unknown() {
        return Some(Verdict::uncertain(format!(
            "tf-operator runs ({title}), and whether {TF_OPERATOR_LIMITS} is in force is not known: {why}"
        )));
    } else if world.policies.items().iter().any(limits_tf_operator) {
        return too_new(world).map(|version| {
            Verdict::warn(format!(
                "tf-operator runs ({title}) on Kubernetes {version}: it asks for policy/v1beta1, which is gone since \
                 1.25, and deploys nothing beyond databases and vrouters"
            ))
            .fix(format!(
                "kubectl -n {} logs deployment/{} | grep PodDisruptionBudget",
                upstream.namespace(),
                upstream.key.name
            ))
        });
    } else {
        format!(
            "tf-operator runs ({title}), and the policy {TF_OPERATOR_LIMITS} is not in force, or with mode audit \
             alone: nothing says what it cannot do with manifests that are right"
        )
    };
    // With another installation's values unsaid, an install would take them back.
    let fix = if has(names::webhook::NAME) {
        "kubectl opensdn policy manifest tf-operator-limits | kubectl apply -f -"
    } else {
        "kubectl opensdn install --set operator.enabled=false --set policies.tfOperator=true"
    };
    Some(Verdict::warn(said).fix(fix))
}

pub(super) fn owners(world: &World) -> Verdict {
    let reads = || world.definitions.values().chain(world.deployments.values());
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let mut alone = 0;
    for object in reads().filter_map(Read::known) {
        match tool(object) {
            Some(tool) => found.entry(tool).or_default().push(name(object).to_owned()),
            None => alone += 1,
        }
    }
    let all = found.iter().map(|(tool, names)| format!("{tool} manages {}", few(names)));
    let all = all.collect::<Vec<_>>().join("; ");
    if found.len() > 1 || (!found.is_empty() && alone > 0) {
        return Verdict::fail(format!("{all}; other objects of OpenSDN are not of it"));
    }
    let has = |name: &str| world.deployments.get(name).is_some_and(|one| one.known().is_some());
    if let Some(verdict) = left_alone(world, has(names::operator::NAME)) {
        return verdict;
    }
    if let Some(upstream) = tf_operator(world)
        && let Some(verdict) = beside(world, upstream, has)
    {
        return verdict;
    }
    if let Some(why) = reads().find_map(Read::why_unknown).or(world.tf_operators.why_unknown()) {
        return Verdict::uncertain(format!("not all that may be there could be read: {why}"));
    }
    match (found.keys().next(), alone) {
        (Some(tool), _) if has(names::webhook::NAME) || has(names::operator::NAME) => {
            Verdict::ok(format!("all of OpenSDN is managed by {tool}: change it there"))
        }
        (Some(_), _) => Verdict::warn(format!("{all}, and nothing else of OpenSDN is there")),
        (None, 0) => Verdict::ok("nothing of OpenSDN is there"),
        (None, known) => Verdict::ok(format!(
            "{} of OpenSDN, managed by no other tool",
            number_of(known, "object")
        )),
    }
}
