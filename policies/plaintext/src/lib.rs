//! Traffic without TLS, well-known keys, secrets in clear text.
//!
//! ```yaml
//! spec:
//!   commonConfiguration:
//!     certKeyLength: 512                                        # can be factored at home
//!     authParameters:
//!       authMode: keystone
//!       keystoneAuthParameters: {authProtocol: http}            # the token can be read on the wire
//!   services:
//!     rabbitmq: {spec: {serviceConfiguration: {erlangCookie: 47EFF3BB-…}}}             # it is in tf-operator's source
//!     vrouters: [{spec: {serviceConfiguration: {sslEnable: false}}}]   # no server answers
//! ```
//!
//! What upstream's own manifests contain (an unverified Keystone, a
//! password in the resource) is a warning, and a denial under `profile: strict`. A value is never
//! repeated in a message when it is secret.
//!
//! A cookie that is in use may not be changed: members with different cookies do not speak with each
//! other, so the cluster of RabbitMQ parts while it is rolled out.
//!
//! Two secrets are known here, the erlang cookie and the rndc key that tf-operator has as
//! constants. That it uses them where the field is unset is said by `tf-operator-limits`: our operator makes its own.

mod keystone;
mod secrets;
mod tls;

use std::collections::BTreeMap;

use opensdn_policy_components::{
    ComponentView, Owners, Profile, Services, null_as_default,
    owning_manager::{MANAGERS, owning_manager},
};
use opensdn_policy_sdk::{Finding, Outcome, Pointer, Reads, Request, Severity, Verdict, policy};
use schemars::JsonSchema;
use serde::Deserialize;

use keystone::AuthParameters;

/// Settings of the policy `plaintext`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Whether what upstream's own manifests contain is a warning (default) or refused (strict).
    pub profile: Profile,
}

type Environment = BTreeMap<String, String>;

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration/authParameters")]
    authentication: Option<AuthParameters>,
    #[read("/spec/commonConfiguration/certKeyLength")]
    key_length: Option<i64>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*")]
struct Standalone {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec/commonConfiguration/authParameters")]
    authentication: Option<AuthParameters>,
    #[read("/spec")]
    spec: Option<Spec>,
}

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "VrouterProfile")]
struct VrouterProfile {
    #[read("/spec/moreConfig")]
    environment: Option<Environment>,
}

/// What is read of the spec of any component; each kind has some of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: ServiceConfiguration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceConfiguration {
    // Rabbitmq
    erlang_cookie: Option<String>,
    password: Option<String>,
    // Control
    rndckey: Option<String>,
    // Vrouter
    ssl_enable: Option<bool>,
    xmmp_ssl_enable: Option<bool>,
    xmpp_ssl_enable: Option<bool>,
    sandesh_ssl_enable: Option<bool>,
    config_api_ssl_enable: Option<bool>,
    introspect_ssl_enable: Option<bool>,
    keystone_auth_admin_password: Option<String>,
    barbican_password: Option<String>,
    #[serde(rename = "k8sToken")]
    kubernetes_token: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    env_variables_config: Environment,
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let Some(manager) = &request.object else { return Ok(()) };
    let common = Pointer::from("/spec/commonConfiguration");
    tls::judge_key_length(manager.key_length, &common.key("certKeyLength"), verdict);
    if let Some(authentication) = &manager.authentication {
        keystone::judge(authentication, &common.key("authParameters"), settings, verdict);
    }
    // A service's own authParameters are never used; the Manager's are.
    let old = request.old_object.as_ref().and_then(|old| old.services.as_ref());
    for component in manager.services.iter().flat_map(Services::walk) {
        judge(&component, settings, verdict);
        let before = old.iter().flat_map(|old| old.of_kind("Rabbitmq"));
        let before = before.filter(|before| before.name == component.name);
        if let Some(change) = secrets::cookie_change(&component, before.map(|one| one.spec)) {
            verdict.add(change);
        }
    }
    Ok(())
}

fn standalone(
    request: &Request<Standalone>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(object) = &request.object else { return Ok(()) };
    // tf-operator writes Keystone's password into every child, in noauth too
    // (pkg/apis/tf/v1alpha1/auth_types.go:67-80); what the Manager has is judged there.
    let owned = object.owners.as_ref().and_then(Owners::manager).is_some();
    if let Some(authentication) = object.authentication.as_ref().filter(|_| !owned) {
        let at = Pointer::from("/spec/commonConfiguration/authParameters");
        keystone::judge(authentication, &at, settings, verdict);
    }
    if let Some(spec) = &object.spec {
        let component = ComponentView::standalone(&request.kind, &request.name, spec);
        judge(&component, settings, verdict);
        let before = request.old_object.iter().filter_map(|old| old.spec.as_ref());
        let change = secrets::cookie_change(&component, before);
        leave_to_manager(
            object.owners.as_ref(),
            (request.namespace.as_str(), &component),
            change,
            verdict,
        )?;
    }
    Ok(())
}

/// What the operator makes of a Manager is not refused: that is stored, whenever and under whichever settings it was
/// judged. A change of the cookie is one of the Manager only if that has the same one.
fn leave_to_manager(
    owners: Option<&Owners>,
    (namespace, component): (&str, &ComponentView<'_, Spec>),
    change: Option<Finding>,
    verdict: &mut Verdict,
) -> Outcome {
    if !verdict.refuses() && change.is_none() {
        return Ok(());
    }
    let owner = owning_manager::<Spec>(owners, (namespace, component.kind, component.name))?;
    if let Some(owner) = &owner {
        verdict.leave_to(&owner.title);
    }
    if let Some(change) = change {
        let is_its_own = owner.as_ref().is_some_and(|owner| {
            let mut all = owner.services.of_kind("Rabbitmq");
            all.any(|theirs| secrets::has_same_cookie(theirs.spec, component.spec))
        });
        verdict.add(if is_its_own { change.severity(Severity::Warn) } else { change });
    }
    Ok(())
}

fn vrouter_profile(
    request: &Request<VrouterProfile>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let object = request.object.as_ref();
    if let Some(environment) = object.and_then(|object| object.environment.as_ref()) {
        judge_environment(environment, &"/spec/moreConfig".into(), settings, verdict);
    }
    Ok(())
}

fn judge(component: &ComponentView<'_, Spec>, settings: &Settings, verdict: &mut Verdict) {
    match component.kind {
        "Rabbitmq" => secrets::judge_rabbitmq(component, settings, verdict),
        "Control" => secrets::judge_control(component, settings, verdict),
        "Vrouter" => {
            tls::judge_vrouter(component, settings, verdict);
            secrets::judge_vrouter(component, settings, verdict);
            let environment = &component.spec.service_configuration.env_variables_config;
            let at = component.setting("/envVariablesConfig");
            judge_environment(environment, &at, settings, verdict);
        }
        _ => {}
    }
}

/// Environment variables are written after the fields, so they win over them.
fn judge_environment(
    environment: &Environment,
    at: &Pointer,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    for (name, value) in environment.iter().filter(|(_, value)| !value.is_empty()) {
        let here = at.key(name);
        tls::judge_variable(name, value, &here, settings, verdict);
        keystone::judge_variable(name, value, &here, settings, verdict);
        secrets::judge_variable(name, &here, settings, verdict);
    }
}

policy! {
    name: "plaintext",
    summary: "TLS is on, keys are long and one's own, secrets are in Secrets",
    settings: Settings,
    messages: [
        tls::OFF,
        tls::KEY_LENGTH,
        keystone::UNPROTECTED,
        secrets::ERLANG_COOKIE,
        secrets::RNDC_KEY,
        secrets::CLEAR_TEXT,
    ],
    indexes: [MANAGERS],
    validate: [manager, standalone, vrouter_profile],
}
