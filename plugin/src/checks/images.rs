//! Images and the Secrets for their registries. Whether a node reaches the registry, and is let in, only a pull on it shows:
//! where nodes were asked to, what came of it counts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::probed::rolled;
use super::report::{NodeResult, Outcome, Verdict};
use super::roles::is_selected;
use super::world::World;
use super::{few, number_of};
use crate::probe::pull::{AllPulled, Pull, Pulled};
use crate::snapshot::{Read, list, namespace, text};

const TYPES: [&str; 2] = ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"];
const OLDER: &str = "kubernetes.io/dockercfg";
const HUB: &str = "docker.io";

/// The images of a node, by the namespace of their components and the Secrets that these name for registries.
pub(crate) type Needed = BTreeMap<(String, BTreeSet<String>), BTreeSet<String>>;

/// The images that the components need which are to run on the node.
pub(crate) fn needed(world: &World, node: &Value) -> Needed {
    let mut needed = Needed::new();
    for service in world.services().iter().filter(|one| is_selected(one, node)) {
        let own = list(service.spec, "/commonConfiguration/imagePullSecrets");
        let common = list(service.manager, "/spec/commonConfiguration/imagePullSecrets");
        let secrets = own.chain(common).filter_map(Value::as_str).map(str::to_owned).collect();
        let containers = list(service.spec, "/serviceConfiguration/containers");
        let images = containers.map(|one| text(one, "/image")).filter(|image| !image.is_empty());
        let images: Vec<String> = images.map(str::to_owned).collect();
        if !images.is_empty() {
            let at = (namespace(service.manager).to_owned(), secrets);
            needed.entry(at).or_default().extend(images);
        }
    }
    needed
}

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

pub(super) fn images(world: &World) -> Verdict {
    let secrets = pull_secrets(world);
    let Some(pulled) = world.pulled.as_ref().filter(|pulled| !pulled.is_empty()) else {
        return secrets;
    };
    let pulled = on_nodes(pulled);
    match secrets.outcome {
        // A Secret that is named has to be there, also where an image is on its node already.
        Outcome::Fail => {
            let message = format!("{}; {}", secrets.message, pulled.message);
            Verdict { message, nodes: pulled.nodes, ..secrets }
        }
        // What a node pulls it may pull, whichever Secrets there are.
        _ => pulled,
    }
}

fn on_nodes(pulled: &AllPulled) -> Verdict {
    let results = pulled.iter().map(|(node, pulled)| {
        let (result, message) = on_node(pulled);
        NodeResult { name: node.clone(), result, message }
    });
    let alike: usize = pulled.values().map(|one| one.alike).sum();
    let good = match alike {
        0 => "they have pulled their images".to_owned(),
        _ => format!(
            "they have pulled their images, for {alike} more that are alike (--pull=all: each)"
        ),
    };
    rolled(results.collect(), &good)
}

fn on_node(pulled: &Pulled) -> (Outcome, String) {
    let mut bad: BTreeMap<(bool, &str), Vec<String>> = BTreeMap::new();
    for (image, pull) in &pulled.images {
        let (is_unknown, why) = match pull {
            Pull::Done => continue,
            Pull::Failed(why) => (false, why),
            Pull::Unknown(why) => (true, why),
        };
        bad.entry((is_unknown, why)).or_default().push(image.clone());
    }
    let Some(((is_unknown, _), _)) = bad.first_key_value() else {
        return (Outcome::Ok, format!("{} pulled", number_of(pulled.images.len(), "image")));
    };
    let outcome = if *is_unknown { Outcome::Uncertain } else { Outcome::Fail };
    let texts: Vec<String> =
        bad.iter().map(|((_, why), images)| format!("{}: {why}", few(images))).collect();
    (outcome, texts.join("; "))
}

fn pull_secrets(world: &World) -> Verdict {
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
    // The first that is wrong.
    let mut bad: Option<(&str, &str)> = None;
    for ((place, name), read) in &world.registries {
        let before = wrong.len();
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
        if wrong.len() > before {
            bad.get_or_insert((place, name));
        }
    }
    if !wrong.is_empty() {
        let (place, name) = bad.unwrap_or_default();
        // From a file: an argument is seen by everyone on the machine. One of its own: that of a user has all logins, or,
        // with a credsStore, none.
        return Verdict::fail(few(&wrong)).fix(format!(
            "podman login --authfile FOLDER/config.json REGISTRY; kubectl create secret generic {name} -n {place} \
             --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=FOLDER/config.json"
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
