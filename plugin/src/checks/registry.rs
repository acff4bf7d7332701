//! Whether registries have the images that Managers name, as seen from here. How registries are asked is in
//! `ask/registry.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::report::Verdict;
use super::world::World;
use super::{few, number_of};
use crate::snapshot::{list, text};

/// What a registry says of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AtRegistry {
    /// It has it.
    Present,
    /// It has not.
    Absent,
    /// It did not say, and why.
    Unknown(String),
}

/// The images of all containers that Managers name, each once.
pub(crate) fn images(world: &World) -> BTreeSet<String> {
    let services = world.services();
    let containers =
        services.iter().flat_map(|one| list(one.spec, "/serviceConfiguration/containers"));
    let images = containers.map(|one| text(one, "/image")).filter(|image| !image.is_empty());
    images.map(str::to_owned).collect()
}

pub(super) fn has_images(world: &World) -> Verdict {
    if let Some(why) = world.managers.why_unknown() {
        return Verdict::uncertain(format!("Managers, which name images, may not be read: {why}"));
    }
    let images = images(world);
    if images.is_empty() {
        return Verdict::skipped("no Manager names an image");
    }
    let Some(said) = &world.images else {
        return Verdict::skipped("registries are asked with --probe, or --only I802");
    };
    let (mut absent, mut unknown) = (Vec::new(), BTreeMap::<&str, Vec<String>>::new());
    for image in &images {
        match said.get(image) {
            Some(AtRegistry::Present) => {}
            Some(AtRegistry::Absent) => absent.push(image.clone()),
            Some(AtRegistry::Unknown(why)) => unknown.entry(why).or_default().push(image.clone()),
            None => unknown.entry("it was not asked for").or_default().push(image.clone()),
        }
    }
    let unknown: Vec<String> =
        unknown.into_iter().map(|(why, images)| format!("{}: {why}", few(&images))).collect();
    if !absent.is_empty() {
        return Verdict::warn(format!("not there: {}", few(&absent)));
    }
    if !unknown.is_empty() {
        return Verdict::uncertain(format!("not known of {}", unknown.join("; ")));
    }
    Verdict::ok(format!("{} in their registries", number_of(images.len(), "image")))
}
