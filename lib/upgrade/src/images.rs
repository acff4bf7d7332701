//! The images in the spec of a Manager, and those that an Upgrade gives it.

use std::collections::BTreeSet;

use opensdn_crds::component::{COMPONENTS, Component};
use opensdn_crds::upgrade::{Image, ImageChange, UpgradeSpec};
use serde_json::Value;

use crate::version::Version;

/// A service of a Manager with its images.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its kind.
    pub facts: &'static Component,
    /// Its name.
    pub name: String,
    /// Where it is in the spec: `/services/zookeeper`.
    pub pointer: String,
    /// Its containers with their images, as they stand there.
    pub images: Vec<Entry>,
}

/// An entry of `serviceConfiguration.containers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the container.
    pub container: String,
    /// Its image.
    pub image: String,
    /// Where the entry is in the spec.
    pub pointer: String,
}

impl Service {
    /// By what steps know it: `Zookeeper/zookeeper1`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.facts.kind, self.name)
    }
}

/// The services in the spec of a Manager, in the order of their kinds; those without a name are none.
#[must_use]
pub fn services(spec: &Value) -> Vec<Service> {
    let mut all = Vec::new();
    for facts in COMPONENTS {
        let pointer = format!("/services/{}", facts.key);
        match spec.pointer(&pointer) {
            Some(Value::Array(items)) => {
                let items = items.iter().enumerate();
                all.extend(items.filter_map(|(number, item)| {
                    service(facts, item, format!("{pointer}/{number}"))
                }));
            }
            Some(item) => all.extend(service(facts, item, pointer)),
            None => {}
        }
    }
    all
}

fn service(facts: &'static Component, item: &Value, pointer: String) -> Option<Service> {
    let name = item.pointer("/metadata/name")?.as_str().filter(|name| !name.is_empty())?;
    let containers = item.pointer("/spec/serviceConfiguration/containers");
    let containers = containers.and_then(Value::as_array).into_iter().flatten().enumerate();
    let entry = |(number, one): (usize, &Value)| {
        Some(Entry {
            container: one.get("name")?.as_str()?.to_owned(),
            image: one.get("image")?.as_str()?.to_owned(),
            pointer: format!("{pointer}/spec/serviceConfiguration/containers/{number}"),
        })
    };
    let images = containers.filter_map(entry).collect();
    Some(Service { facts, name: name.to_owned(), images, pointer })
}

/// Why an image cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// It is named by what it has, not by a release.
    #[error(
        "{service}: container {container} has the image {image} by its digest, which names no release: give its new image"
    )]
    Digest {
        /// The service.
        service: String,
        /// The container.
        container: String,
        /// The image.
        image: String,
    },
    /// No service has the container.
    #[error("images: no service {}has a container {container}", kind.as_ref().map_or_else(String::new, |kind| format!("of kind {kind} ")))]
    NoContainer {
        /// The kind that was given.
        kind: Option<String>,
        /// The container.
        container: String,
    },
}

/// The images that a service gets, but for those that stay, and what cannot be had.
#[must_use]
pub fn changes(service: &Service, spec: &UpgradeSpec) -> (Vec<ImageChange>, Vec<Unknown>) {
    let (mut changes, mut unknown) = (Vec::new(), Vec::new());
    for entry in &service.images {
        let given = given(spec, service.facts.kind, &entry.container);
        let to = match given {
            Some(image) => Ok(image.clone()),
            None => of_release(service, entry, spec),
        };
        match to {
            Ok(to) if to != entry.image => changes.push(ImageChange {
                container: entry.container.clone(),
                from: entry.image.clone(),
                to,
            }),
            Ok(_) => {}
            Err(why) => unknown.push(why),
        }
    }
    (changes, unknown)
}

/// What is given that no service has.
#[must_use]
pub fn unused(services: &[Service], spec: &UpgradeSpec) -> Vec<Unknown> {
    let is_used = |image: &&Image| {
        services.iter().any(|service| {
            image.kind.as_ref().is_none_or(|kind| kind == service.facts.kind)
                && service.images.iter().any(|entry| entry.container == image.container)
        })
    };
    let unused = spec.images.iter().flatten().filter(|image| !is_used(image));
    unused
        .map(|image| Unknown::NoContainer {
            kind: image.kind.clone(),
            container: image.container.clone(),
        })
        .collect()
}

/// What is given for the container: of its kind, else of all.
fn given<'a>(spec: &'a UpgradeSpec, kind: &str, container: &str) -> Option<&'a String> {
    let mut all = spec.images.iter().flatten().filter(|image| image.container == container);
    let of_all = all.clone().find(|image| image.kind.is_none());
    all.find(|image| image.kind.as_deref() == Some(kind)).or(of_all).map(|image| &image.image)
}

const UP_TO_R24: &str = "contrail-";
const FROM_R25: &str = "opensdn-";
/// What other projects make, and OpenSDN packs (tf-container-builder, `containers/external`).
const EXTERNAL: &str = "external-";

/// The image of the release, or the one that it has where that is not OpenSDN's own.
fn of_release(service: &Service, entry: &Entry, spec: &UpgradeSpec) -> Result<String, Unknown> {
    let Some(tag) = &spec.version else { return Ok(entry.image.clone()) };
    let (registry, name, _) = parts(&entry.image);
    if !is_own(&entry.image) {
        return Ok(entry.image.clone());
    }
    if entry.image.contains('@') {
        return Err(Unknown::Digest {
            service: service.id(),
            container: entry.container.clone(),
            image: entry.image.clone(),
        });
    }
    let becomes_opensdn = Version::of_tag(tag).is_some_and(Version::is_opensdn);
    let name = match name.strip_prefix(UP_TO_R24) {
        Some(rest) if becomes_opensdn => format!("{FROM_R25}{rest}"),
        _ => name.to_owned(),
    };
    let registry = spec.registry.as_deref().or(registry);
    Ok(match registry {
        Some(registry) => format!("{}/{name}:{tag}", registry.trim_end_matches('/')),
        None => format!("{name}:{tag}"),
    })
}

/// Registry with path, name, and tag of an image; a port stands before the last slash.
#[must_use]
pub fn parts(image: &str) -> (Option<&str>, &str, Option<&str>) {
    let image = image.split('@').next().unwrap_or(image);
    let (registry, last) = match image.rsplit_once('/') {
        Some((registry, last)) => (Some(registry), last),
        None => (None, image),
    };
    match last.split_once(':') {
        Some((name, tag)) => (registry, name, Some(tag)),
        None => (registry, last, None),
    }
}

/// Whether it is one that OpenSDN makes, those of other projects that it packs included.
#[must_use]
pub fn is_own(image: &str) -> bool {
    let name = parts(image).1;
    name.starts_with(UP_TO_R24) || name.starts_with(FROM_R25)
}

/// Whether it is of R25.1 or later, by its tag, else by its name.
pub(crate) fn is_opensdn(image: &str) -> bool {
    let release = tag(image).and_then(Version::of_tag);
    release.map_or_else(|| parts(image).1.starts_with(FROM_R25), Version::is_opensdn)
}

/// What says its version: its digest, else its tag.
#[must_use]
pub fn digest_or_tag(image: &str) -> Option<&str> {
    image.split_once('@').map(|(_, digest)| digest).or_else(|| tag(image))
}

/// The tag of an image.
#[must_use]
pub fn tag(image: &str) -> Option<&str> {
    parts(image).2
}

/// The releases, or else the tags, of OpenSDN's own images among these, with commas between; of all of them where none is.
#[must_use]
pub fn release<'a>(images: impl Iterator<Item = &'a str> + Clone) -> String {
    let is_ours = |image: &&str| {
        let name = parts(image).1;
        let own = name.strip_prefix(UP_TO_R24).or_else(|| name.strip_prefix(FROM_R25));
        own.is_some_and(|own| !own.starts_with(EXTERNAL))
    };
    let tags = |images: &mut dyn Iterator<Item = &'a str>| -> BTreeSet<&'a str> {
        images.map(|image| tag(image).unwrap_or(image)).collect()
    };
    let mut ours = tags(&mut images.clone().filter(is_ours));
    if ours.is_empty() {
        ours = tags(&mut images.clone());
    }
    ours.into_iter().take(8).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manager() -> Value {
        let item = |name: &str, containers: Value| json!({"metadata": {"name": name}, "spec": {"serviceConfiguration": {"containers": containers}}});
        json!({"services": {
            "zookeeper": item("zookeeper1", json!([{"name": "zookeeper", "image": "zookeeper:3.7.1"}])),
            "config": item("config1", json!([
                {"name": "api", "image": "registry.example.com:5000/tf/contrail-controller-config-api:R24.1"},
                {"name": "nodemanager", "image": "contrail-nodemgr:R24.1"},
                {"name": "no-image"}])),
            "controls": [item("control1", json!([{"name": "control", "image": "x/contrail-controller-control:R24.1"}])),
                {"metadata": {}}],
        }})
    }

    fn to(spec: &UpgradeSpec, id: &str) -> Vec<String> {
        let all = services(&manager());
        let service = all.iter().find(|one| one.id() == id).unwrap();
        let (changes, unknown) = changes(service, spec);
        let all = changes.into_iter().map(|one| one.to);
        all.chain(unknown.into_iter().map(|one| one.to_string())).collect()
    }

    fn version(tag: &str) -> UpgradeSpec {
        UpgradeSpec { version: Some(tag.to_owned()), ..UpgradeSpec::default() }
    }

    #[test]
    fn services_are_found_with_the_places_of_their_images() {
        let spec = manager();
        let all = services(&spec);
        let ids: Vec<_> = all.iter().map(Service::id).collect();
        assert_eq!(ids, ["Config/config1", "Control/control1", "Zookeeper/zookeeper1"]);
        for entry in all.iter().flat_map(|one| &one.images) {
            assert_eq!(spec.pointer(&entry.pointer).unwrap()["image"], entry.image);
        }
        assert_eq!(all[0].images.len(), 2, "what has no image has none to change");
    }

    #[test]
    fn a_release_is_the_tag_of_opensdns_own_images_and_of_no_others() {
        assert_eq!(
            to(&version("R24.1.1"), "Config/config1"),
            [
                "registry.example.com:5000/tf/contrail-controller-config-api:R24.1.1",
                "contrail-nodemgr:R24.1.1"
            ]
        );
        assert!(to(&version("R24.1.1"), "Zookeeper/zookeeper1").is_empty());
        assert!(to(&version("R24.1"), "Config/config1").is_empty(), "nothing to do");
        let moved = UpgradeSpec {
            registry: Some("mirror.example.com/sdn/".to_owned()),
            ..version("R24.1.1")
        };
        assert_eq!(
            to(&moved, "Control/control1"),
            ["mirror.example.com/sdn/contrail-controller-control:R24.1.1"]
        );
    }

    #[test]
    fn images_have_another_name_from_r25_on() {
        assert_eq!(
            to(&version("R25.1"), "Control/control1"),
            ["x/opensdn-controller-control:R25.1"]
        );
    }

    #[test]
    fn what_names_no_release_has_to_be_given() {
        let mut spec = manager();
        let image = "/services/zookeeper/spec/serviceConfiguration/containers/0/image";
        let of = |spec: &Value, target: &UpgradeSpec| {
            let all = services(spec);
            let zookeeper = all.iter().find(|one| one.facts.kind == "Zookeeper").unwrap();
            changes(zookeeper, target)
        };
        *spec.pointer_mut(image).unwrap() = "contrail-external-zookeeper:R24.1".into();
        assert_eq!(of(&spec, &version("R25.1")).0[0].to, "opensdn-external-zookeeper:R25.1");
        assert_eq!(of(&spec, &version("R24.1.1")).0[0].to, "contrail-external-zookeeper:R24.1.1");
        *spec.pointer_mut(image).unwrap() = "contrail-zookeeper@sha256:12".into();
        assert!(matches!(of(&spec, &version("R25.1")).1[..], [Unknown::Digest { .. }]));
        let given = UpgradeSpec {
            images: Some(vec![Image {
                kind: None,
                container: "zookeeper".into(),
                image: "zookeeper:3.8".into(),
            }]),
            ..version("R25.1")
        };
        assert_eq!(of(&spec, &given).0[0].to, "zookeeper:3.8");
    }

    #[test]
    fn an_image_that_is_given_for_a_kind_wins_over_one_for_all() {
        let image = |kind: Option<&str>, image: &str| Image {
            kind: kind.map(str::to_owned),
            container: "nodemanager".to_owned(),
            image: image.to_owned(),
        };
        let spec = UpgradeSpec {
            images: Some(vec![
                image(None, "a:1"),
                image(Some("Config"), "b:1"),
                image(Some("Webui"), "c:1"),
            ]),
            ..UpgradeSpec::default()
        };
        assert_eq!(to(&spec, "Config/config1"), ["b:1"]);
        let wrong = unused(&services(&manager()), &spec);
        let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong, ["images: no service of kind Webui has a container nodemanager"]);
    }

    #[test]
    fn the_release_of_images_is_that_of_opensdns_own() {
        let of = |images: &[&str]| release(images.iter().copied());
        assert_eq!(
            of(&["zookeeper:3.7.1", "a/contrail-b:R24.1", "opensdn-c:R25.1"]),
            "R24.1,R25.1"
        );
        assert_eq!(of(&["contrail-external-redis:R21", "contrail-a:R24.1"]), "R24.1");
        assert_eq!(of(&["zookeeper:3.7.1", "redis"]), "3.7.1,redis");
    }
}
