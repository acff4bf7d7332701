//! A container image without a version.
//!
//! ```yaml
//! containers: [{name: zookeeper, image: "tungstenfabric/contrail-external-zookeeper:latest"}]
//! ```
//!
//! Upstream's own manifests have the tag `latest`, so it is a warning, and a denial under
//! `profile: strict`.

use opensdn_policy_components::{ComponentView, Profile, Services, or_default};
use opensdn_policy_sdk::{Message, Outcome, Reads, Request, Severity, Verdict, policy};
use schemars::JsonSchema;
use serde::Deserialize;

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
    explanation: "With the tag latest, or none, two nodes may run two versions, nobody can say \
        which, and an upgrade is not noticed because the name of the image stays the same.",
    hint: "give the tag of a release, or a digest: registry/image:TAG, registry/image@sha256:…",
};

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*")]
struct Alone {
    #[read("/spec")]
    spec: Option<Spec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "or_default")]
    service_configuration: Containers,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Containers {
    #[serde(deserialize_with = "or_default")]
    containers: Vec<Container>,
}

#[derive(Clone, Debug, Deserialize)]
struct Container {
    name: Option<String>,
    image: Option<String>,
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let services = request.object.iter().filter_map(|manager| manager.services.as_ref());
    services.flat_map(Services::walk).for_each(|service| judge(&service, settings, verdict));
    Ok(())
}

fn alone(request: &Request<Alone>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    if let Some(Alone { spec: Some(spec) }) = &request.object {
        judge(&ComponentView::alone(&request.kind, &request.name, spec), settings, verdict);
    }
    Ok(())
}

/// One finding for a component, with all of its images: upstream's manifests have sixty.
fn judge(component: &ComponentView<'_, Spec>, settings: &Settings, verdict: &mut Verdict) {
    let containers = &component.spec.service_configuration.containers;
    let unversioned: Vec<_> = containers
        .iter()
        .filter(|container| container.image.as_deref().is_some_and(|image| !is_versioned(image)))
        .map(|container| container.name.as_deref().unwrap_or("(without a name)"))
        .collect();
    if !unversioned.is_empty() {
        let (title, names) = (component.title(), unversioned.join(", "));
        let finding = UNVERSIONED.at(component.setting("/containers"));
        verdict.add(
            finding
                .severity(settings.profile.severity())
                .says(format!("{title}: images with the tag latest or none: {names}")),
        );
    }
}

/// The tag follows the last colon after the last slash; one before it is of the registry's port.
/// An empty image is another mistake.
fn is_versioned(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    let tag = name.split_once(':').map(|(_, tag)| tag);
    image.is_empty() || name.contains('@') || tag.is_some_and(|tag| tag != "latest")
}

policy! {
    name: "unversioned-image",
    summary: "every image has a version",
    settings: Settings,
    messages: [UNVERSIONED],
    validate: [manager, alone],
}

#[cfg(test)]
mod tests {
    use super::is_versioned;

    #[test]
    fn a_registrys_port_is_no_tag() {
        assert!(is_versioned("r:5000/a/b:R24.1"));
        assert!(is_versioned("a@sha256:00"));
        assert!(!is_versioned("r:5000/a/b"));
        assert!(!is_versioned("a:latest"));
    }
}
