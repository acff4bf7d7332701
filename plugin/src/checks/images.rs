//! Images and the Secrets for their registries. Whether a node reaches the registry only a pull on it shows.

use std::collections::BTreeSet;

use super::report::Verdict;
use super::world::World;
use super::{few, number_of};
use crate::snapshot::{Read, list, namespace, text};

const TYPES: [&str; 2] = ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"];
const OLDER: &str = "kubernetes.io/dockercfg";
const HUB: &str = "docker.io";

/// The registry of an image, as the runtime reads it.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first,
        _ => HUB,
    }
}

/// A key of a Secret for registries may be an address, with a path.
fn host(key: &str) -> &str {
    let key = key.trim_start_matches("https://").trim_start_matches("http://");
    match key.split('/').next().unwrap_or_default() {
        "index.docker.io" | "registry-1.docker.io" => HUB,
        host => host,
    }
}

pub(super) fn pull_secrets(world: &World) -> Verdict {
    if let Some(why) = world.managers.why_unknown() {
        return Verdict::uncertain(format!(
            "Managers, which name the Secrets, may not be read: {why}"
        ));
    }
    if world.registries.is_empty() {
        return Verdict::skipped(
            "no Secret for a registry is named; whether the registry has the images says I802 (--only I802)",
        );
    }
    let (mut wrong, mut unknown, mut hosts) = (Vec::new(), Vec::new(), BTreeSet::new());
    for ((place, name), read) in &world.registries {
        match read {
            Read::Absent => wrong.push(format!("Secret {place}/{name} is missing")),
            Read::Unknown(why) => {
                unknown.push(format!("Secret {place}/{name} may not be read: {why}"))
            }
            Read::Known(secret) if !TYPES.contains(&secret.type_.as_str()) => {
                wrong.push(format!(
                    "Secret {place}/{name} is of type {}, not {}",
                    secret.type_,
                    TYPES.join(" or ")
                ));
            }
            // The older type keeps its registries elsewhere.
            Read::Known(secret) if secret.type_ == OLDER => {
                unknown.push(format!("Secret {place}/{name} is of the type {}", secret.type_));
            }
            Read::Known(secret) => {
                hosts.extend(secret.hosts.iter().map(|key| (place.as_str(), host(key))))
            }
        }
    }
    if !wrong.is_empty() {
        let place = world.component_namespaces().pop_first().unwrap_or_default();
        // From a file: an argument is seen by everyone on the machine.
        return Verdict::fail(few(&wrong)).fix(format!(
            "kubectl create secret generic NAME -n {place} --type=kubernetes.io/dockerconfigjson \
             --from-file=.dockerconfigjson=$HOME/.docker/config.json"
        ));
    }
    if !unknown.is_empty() {
        return Verdict::uncertain(few(&unknown));
    }
    for_images(world, &hosts)
}

/// Whether each image's registry has one.
fn for_images(world: &World, hosts: &BTreeSet<(&str, &str)>) -> Verdict {
    let mut images = BTreeSet::new();
    for service in world.services() {
        let place = namespace(service.manager);
        let named =
            list(service.spec, "/serviceConfiguration/containers").map(|one| text(one, "/image"));
        images
            .extend(named.filter(|image| !image.is_empty()).map(|image| (place, registry(image))));
    }
    let without: Vec<String> = images
        .iter()
        .filter(|image| !hosts.contains(*image))
        .map(|(place, registry)| format!("{registry} in {place}"))
        .collect();
    if !without.is_empty() {
        // A registry may want no password.
        return Verdict::uncertain(format!(
            "no named Secret is for {}: it may want none",
            few(&without)
        ));
    }
    Verdict::ok(format!(
        "{} for all registries of images",
        number_of(world.registries.len(), "Secret")
    ))
}
