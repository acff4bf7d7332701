//! A container image without a version, or with another version than the rest of the cluster.
//!
//! ```yaml
//! containers: [{name: zookeeper, image: "tungstenfabric/contrail-external-zookeeper:latest"}]
//! ```
//!
//! Upstream's own manifests have the tag `latest`, so it is a warning, and a denial under
//! `profile: strict`. What is no name of an image at all is refused under any profile.

mod reference;

use std::collections::BTreeMap;

use opensdn_policy_components::{
    ComponentView, Owners, Profile, Services, null_as_default,
    owning_manager::{MANAGERS, owning_manager},
};
use opensdn_policy_sdk::{Message, Outcome, Pointer, Reads, Request, Severity, Verdict, policy};
use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

use reference::Reference;

/// Settings of the policy `unversioned-image`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Whether an image without a version is a warning (default) or refused (strict).
    pub profile: Profile,
}

const UNVERSIONED: Message = Message {
    code: "OSDN1306",
    severity: Severity::Warn,
    title: "a container image has no version",
    explanation: "With the tag latest, or none, two nodes may run two versions, it is not known \
        which, and an upgrade is not noticed because the name of the image stays the same. Without \
        an image, or with what is no name of one, the pods are refused.",
    hint: "give the tag of a release, or a digest: registry/image:TAG, registry/image@sha256:…",
};

const MIXED: Message = Message {
    code: "OSDN1307",
    severity: Severity::Warn,
    title: "the images of a cluster are of different versions or registries",
    explanation: "The services are released and tested together. tf-operator compares one image \
        only, so it does not notice that the others are to be upgraded.",
    hint: "give all containers of the Manager the same registry and tag",
};

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*")]
struct Standalone {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec")]
    spec: Option<Spec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: Containers,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Containers {
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<Container>,
}

#[derive(Clone, Debug, Deserialize)]
struct Container {
    name: Option<String>,
    image: Option<String>,
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { services: Some(services) }) = &request.object else { return Ok(()) };
    let components: Vec<_> = services.walk().collect();
    components.iter().for_each(|service| judge(service, settings, verdict));
    judge_mixtures(&components, verdict);
    Ok(())
}

fn standalone(
    request: &Request<Standalone>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(Standalone { owners, spec: Some(spec) }) = &request.object else { return Ok(()) };
    judge(&ComponentView::standalone(&request.kind, &request.name, spec), settings, verdict);
    if verdict.refuses() {
        // What the operator makes of a Manager is not refused: that is stored, whenever and under whichever settings
        // it was judged.
        let identity = (&*request.namespace, &*request.kind, &*request.name);
        if let Some(owner) = owning_manager::<IgnoredAny>(owners.as_ref(), identity)? {
            verdict.leave_to(&owner.title);
        }
    }
    Ok(())
}

/// One finding for a component, with all of its images: upstream's manifests have sixty. Where that
/// is every image, the texts are the same, and thirteen components become one line.
fn judge(component: &ComponentView<'_, Spec>, settings: &Settings, verdict: &mut Verdict) {
    let mut unversioned = Vec::new();
    for (number, container) in component.spec.service_configuration.containers.iter().enumerate() {
        let name = container.name.as_deref().unwrap_or("(without a name)");
        let image = container.image.as_deref().unwrap_or_default();
        match Reference::parse(image) {
            Some(reference) if !reference.is_versioned() => unversioned.push(name),
            Some(_) => {}
            None => {
                let what = if image.is_empty() {
                    "has no image".to_owned()
                } else {
                    format!("has {:?}, which is no name of an image", without_login(image))
                };
                let text = format!("{}: container {name} {what}", component.title());
                let at = component.setting("/containers").index(number).key("image");
                verdict.add(UNVERSIONED.at(at).severity(Severity::Deny).says(text));
            }
        }
    }
    if !unversioned.is_empty() {
        let title = component.title();
        let containers = &component.spec.service_configuration.containers;
        let which = if unversioned.len() == containers.len() {
            "every image has the tag latest or none".to_owned()
        } else {
            format!("images with the tag latest or none: {}", unversioned.join(", "))
        };
        let finding = UNVERSIONED.at(component.setting("/containers"));
        verdict
            .add(finding.severity(settings.profile.severity()).says(format!("{title}: {which}")));
    }
}

/// The text without what stands before a registry: in `user:password@registry/image` that is a password, which
/// belongs into a Secret and into no message.
fn without_login(image: &str) -> String {
    let (name, digest) = match image.rsplit_once('@') {
        Some((name, digest)) if digest.starts_with("sha") => (name, format!("@{digest}")),
        _ => (image, String::new()),
    };
    match name.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}{digest}"),
        None => image.to_owned(),
    }
}

/// Who uses each version, or each registry: the first that does, and how many do.
type Users<'a> = BTreeMap<&'a str, (&'a ComponentView<'a, Spec>, &'a str, usize)>;

/// A finding when the images differ in their registries, and one when they do in their tags.
fn judge_mixtures<'a>(components: &'a [ComponentView<'a, Spec>], verdict: &mut Verdict) {
    let (mut registries, mut tags) = (Users::new(), Users::new());
    for component in components {
        for container in &component.spec.service_configuration.containers {
            let Some(image) = container.image.as_deref().and_then(Reference::parse) else {
                continue;
            };
            let name = container.name.as_deref().unwrap_or_default();
            for (users, value) in [(&mut registries, image.registry()), (&mut tags, image.tag())] {
                let Some(value) = value else { continue };
                users.entry(value).or_insert((component, name, 0)).2 += 1;
            }
        }
    }
    report_mixture("registries", &registries, verdict);
    report_mixture("tags", &tags, verdict);
}

/// One finding with who has what, where there is more than one.
fn report_mixture(parts: &str, users: &Users<'_>, verdict: &mut Verdict) {
    if users.len() < 2 {
        return;
    }
    let shown: Vec<_> = users
        .iter()
        .map(|(value, (first, container, count))| {
            let first = format!("{} {container}", first.title());
            match count {
                1 => format!("{value} ({first})"),
                _ => format!("{value} ({first} and {} more)", count - 1),
            }
        })
        .collect();
    let text = format!("images of {} {parts}: {}", users.len(), shown.join(", "));
    verdict.add(MIXED.at(Pointer::from("/spec/services")).says(text));
}

policy! {
    name: "unversioned-image",
    summary: "every image has a version, and a cluster has one",
    settings: Settings,
    messages: [UNVERSIONED, MIXED],
    indexes: [MANAGERS],
    validate: [manager, standalone],
}

#[cfg(test)]
mod tests {
    use super::without_login;

    #[test]
    fn no_password_of_a_registry_is_quoted() {
        for (image, quoted) in [
            ("robot:hunter2@registry/a:R24.1", "…@registry/a:R24.1"),
            ("robot:hun@ter2@registry/a", "…@registry/a"),
            ("robot:hunter2@registry/a@sha256:12", "…@registry/a@sha256:12"),
            ("registry/a@sha256:12", "registry/a@sha256:12"),
            ("a b", "a b"),
        ] {
            assert_eq!(without_login(image), quoted);
        }
    }
}
