//! Who manages what is there of OpenSDN already.

use std::collections::BTreeMap;

use serde_json::Value;

use super::report::Verdict;
use super::world::World;
use super::{few, number_of};
use crate::snapshot::{Read, annotation, label, list, name, text};

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

pub(super) fn owners(world: &World) -> Verdict {
    let reads = || world.definitions.values().chain(world.deployments.values());
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for object in reads().filter_map(Read::known) {
        if let Some(tool) = tool(object) {
            found.entry(tool).or_default().push(name(object).to_owned());
        }
    }
    if !found.is_empty() {
        let all = found.iter().map(|(tool, names)| format!("{tool} manages {}", few(names)));
        return Verdict::fail(all.collect::<Vec<_>>().join("; "));
    }
    if world.deployments.get("tf-operator").is_some_and(|one| one.known().is_some()) {
        return Verdict::fail(
            "tf-operator runs in the namespace tf, and changes what this operator changes",
        );
    }
    if let Some(why) = reads().find_map(Read::why_unknown) {
        return Verdict::uncertain(format!("not all that may be there could be read: {why}"));
    }
    let known = reads().filter_map(Read::known).count();
    match known {
        0 => Verdict::ok("nothing of OpenSDN is there"),
        known => Verdict::ok(format!(
            "{} of OpenSDN, managed by no other tool",
            number_of(known, "object")
        )),
    }
}
