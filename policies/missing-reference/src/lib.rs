//! A field that names an object that is not there.
//!
//! ```yaml
//! kind: Vrouter
//! spec:
//!   serviceConfiguration:
//!     controlInstance: contrl1        # the agents get no control nodes, and nothing says why
//!     profiles: [dpdk-numa0]          # no such VrouterProfile
//! ```
//!
//! A VrouterProfile and a Control must be there first. A Secret may come later, so that it is
//! missing is a warning unless the settings say otherwise. Of Secrets only existence and type are
//! looked up; their keys are judged by `missing-secret-key`.
//!
//! Whether the operator's own children name existing Controls is not judged: it makes the vrouters
//! before the Controls, and the Manager has been judged.

mod controls;
mod data_planes;
mod profiles;
mod secrets;

use std::collections::BTreeMap;

use opensdn_policy_components::{ComponentView, KeystoneSecret, Owners, Services, null_as_default};
use opensdn_policy_sdk::{Outcome, Pointer, Reads, Request, Severity, Verdict, policy};
use schemars::JsonSchema;
use serde::Deserialize;

use controls::{CONTROLS, Controls, MANAGERS_WITH_CONTROLS};
use data_planes::changed_profile;
use profiles::{MANAGERS, PROFILES, VROUTERS, deleted_profile};
use secrets::SECRETS;

/// Settings of the policy `missing-reference`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What a Secret that is not there does to the request.
    pub secrets: MissingSecret,
}

/// What a Secret that is not there does to the request.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum MissingSecret {
    /// Nothing; Secrets are not looked up.
    Ignore,
    /// It passes with a warning: the Secret may come later.
    #[default]
    Warn,
    /// It is refused.
    Deny,
}

impl MissingSecret {
    fn severity(self) -> Option<Severity> {
        match self {
            Self::Ignore => None,
            Self::Warn => Some(Severity::Warn),
            Self::Deny => Some(Severity::Deny),
        }
    }
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/metadata/uid")]
    uid: Option<String>,
    #[read("/spec/commonConfiguration")]
    common: Option<Common>,
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

/// What is read of the spec of any component; each kind has some of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    common_configuration: Common,
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: ServiceConfiguration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Common {
    #[serde(deserialize_with = "null_as_default")]
    image_pull_secrets: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    auth_parameters: KeystoneSecret,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceConfiguration {
    // Vrouter
    #[serde(deserialize_with = "null_as_default")]
    profiles: Vec<String>,
    // Vrouter, Webui
    control_instance: Option<String>,
    // Vrouter
    #[serde(deserialize_with = "null_as_default")]
    env_variables_config: BTreeMap<String, String>,
    // Rabbitmq
    secret: Option<String>,
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let Some(manager) = &request.object else { return Ok(()) };
    let namespace = request.namespace.as_str();
    let none = Services::default();
    let services = manager.services.as_ref().unwrap_or(&none);
    if let Some(common) = &manager.common {
        let at = Pointer::from("/spec/commonConfiguration");
        let kinds = services.walk().map(|component| component.kind);
        let keystone = common.auth_parameters.read_for(kinds, true);
        secrets::judge_common(common, keystone, &at, (namespace, settings), verdict)?;
    }
    let controls = Controls::of_manager(services, manager.uid.as_deref(), namespace);
    for component in services.walk() {
        let at = component.shared("/imagePullSecrets");
        let names = &component.spec.common_configuration.image_pull_secrets;
        secrets::judge_pull_secrets(names, &at, (namespace, settings), verdict)?;
        judge(&component, &controls, (namespace, settings), verdict)?;
    }
    Ok(())
}

fn standalone(
    request: &Request<Standalone>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(Standalone { owners, spec: Some(spec) }) = &request.object else { return Ok(()) };
    let place = (request.namespace.as_str(), settings);
    let component = ComponentView::standalone(&request.kind, &request.name, spec);
    let kinds = std::iter::once(component.kind);
    let common = &spec.common_configuration;
    let keystone = common.auth_parameters.read_for(kinds, false);
    secrets::judge_common(common, keystone, &component.shared(""), place, verdict)?;
    let controls = match owners.as_ref().and_then(Owners::manager) {
        Some(_) => Controls::NotJudged,
        None => Controls::of_namespace(&request.namespace),
    };
    judge(&component, &controls, place, verdict)
}

/// What is the same for a stand-alone component and a nested one.
fn judge(
    component: &ComponentView<'_, Spec>,
    controls: &Controls<'_>,
    place: (&str, &Settings),
    verdict: &mut Verdict,
) -> Outcome {
    match component.kind {
        "Vrouter" => {
            controls.judge(component, &controls::OF_VROUTER, verdict)?;
            profiles::judge(component, place.0, verdict)
        }
        "Webui" => controls.judge(component, &controls::OF_WEBUI, verdict),
        "Rabbitmq" => secrets::judge_rabbitmq(component, place, verdict),
        _ => Ok(()),
    }
}

policy! {
    name: "missing-reference",
    summary: "what a field names is there",
    settings: Settings,
    messages: [
        controls::OF_VROUTER,
        controls::OF_WEBUI,
        profiles::MISSING,
        data_planes::CONFLICT,
        secrets::KEYSTONE,
        secrets::IMAGE_PULL,
        secrets::RABBITMQ,
    ],
    tells_absence: [
        (controls::OF_VROUTER, CONTROLS),
        (controls::OF_WEBUI, CONTROLS),
        (profiles::MISSING, PROFILES),
        (secrets::KEYSTONE, SECRETS),
        (secrets::IMAGE_PULL, SECRETS),
        (secrets::RABBITMQ, SECRETS),
    ],
    indexes: [
        CONTROLS,
        MANAGERS,
        MANAGERS_WITH_CONTROLS,
        PROFILES,
        SECRETS,
        VROUTERS,
    ],
    validate: [manager, standalone, deleted_profile, changed_profile],
}
