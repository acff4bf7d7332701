//! How the services reach Keystone: what is ignored, and what has a default that cannot work.

use opensdn_policy_components::{ComponentView, null_as_default};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde::{Deserialize, de::IgnoredAny};

use crate::Spec;

pub(crate) const TWO_PASSWORDS: Message = Message {
    code: "OSDN1403",
    severity: Severity::Warn,
    title: "Keystone's password is given twice",
    explanation: "tf-operator takes adminPassword and ignores the Secret, so a new password in \
        the Secret changes nothing.",
    hint: "remove adminPassword",
};

pub(crate) const ADMIN_PORT: Message = Message {
    code: "OSDN1407",
    severity: Severity::Warn,
    title: "the port of Keystone's tokens is unset",
    explanation: "Every service but the web UI asks for its tokens at adminPort. Its default, \
        35357, is a port that Keystone has not had for years.",
    hint: "set adminPort to the port that Keystone has, usually 5000",
};

pub(crate) const IGNORED: Message = Message {
    code: "OSDN1411",
    severity: Severity::Warn,
    title: "a service of a Manager has authParameters of its own",
    explanation: "The Manager's are used for all services, and the service's are ignored; while \
        tf-operator upgrades the cluster, it is the other way round.",
    hint: "move them to spec.commonConfiguration.authParameters",
};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AuthParameters {
    auth_mode: Option<String>,
    keystone_secret_name: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    keystone_auth_parameters: Keystone,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Keystone {
    admin_password: Option<String>,
    admin_port: Option<IgnoredAny>,
}

impl AuthParameters {
    /// Empty where it is unset.
    pub(crate) fn mode(&self) -> &str {
        self.auth_mode.as_deref().unwrap_or_default()
    }
}

pub(crate) fn judge(authentication: &AuthParameters, at: &Pointer, verdict: &mut Verdict) {
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let keystone = &authentication.keystone_auth_parameters;
    let parameters = at.key("keystoneAuthParameters");
    if given(&keystone.admin_password) && given(&authentication.keystone_secret_name) {
        let text = "adminPassword and keystoneSecretName are both set: the Secret is ignored";
        verdict.add(TWO_PASSWORDS.at(parameters.key("adminPassword")).says(text));
    }
    let keystone_in_use = authentication.auth_mode.as_deref() == Some("keystone");
    if keystone_in_use && keystone.admin_port.is_none() {
        let text = "adminPort is unset, which means 35357, where no current Keystone answers";
        verdict.add(ADMIN_PORT.at(parameters.key("adminPort")).says(text));
    }
}

/// A service within a Manager with authParameters.
pub(crate) fn ignored(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let text = format!("{}: its authParameters are ignored", component.title());
    verdict.add(IGNORED.at(component.shared("/authParameters")).says(text));
}
