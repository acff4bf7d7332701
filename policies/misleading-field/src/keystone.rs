//! How the services reach Keystone: what is ignored, and what has a default that cannot work.

use std::net::IpAddr;

use opensdn_policy_components::{ComponentView, null_as_default};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde::{Deserialize, de::IgnoredAny};

use crate::Spec;

pub(crate) const ADDRESS: Message = Message {
    code: "OSDN1401",
    severity: Severity::Warn,
    title: "Keystone is looked for on each node itself",
    explanation: "With authMode keystone all services log in there, and their pods have the network of their \
        node. A loopback address, which is also what an unset one means, is right only where each node with a \
        service has a Keystone, such as on a single node.",
    hint: "set keystoneAuthParameters.address to what all nodes reach",
};

pub(crate) const PASSWORD: Message = Message {
    code: "OSDN1402",
    severity: Severity::Warn,
    title: "Keystone's password is empty, or the one that is printed everywhere",
    explanation: "Where neither a Secret nor a password is given both operators log in with contrail123, which is in \
        their source. Either the login fails, or each that has read that may do what OpenSDN may. An empty adminPassword \
        tf-operator takes as it is, and no Keystone does; to our operator it is none at all, and what it logs in with is \
        the password of before, or empty too.",
    hint: "put the password into a Secret with the key password, and name it in keystoneSecretName",
};

pub(crate) const TWO_PASSWORDS: Message = Message {
    code: "OSDN1403",
    severity: Severity::Warn,
    title: "Keystone's password is given twice",
    explanation: "tf-operator takes adminPassword, an empty one too, and ignores the Secret, so a new password in \
        the Secret changes nothing. Our operator takes the Secret and ignores adminPassword.",
    hint: "remove adminPassword, and have the password in the Secret",
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
    address: Option<String>,
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
    let has_secret = given(&authentication.keystone_secret_name);
    // One that is empty is no unset one (tf-operator, `pkg/apis/tf/v1alpha1/auth_types.go:67`).
    let password = keystone.admin_password.as_deref();
    if let Some(password) = password.filter(|_| has_secret) {
        let text = match password {
            "" => {
                "adminPassword is empty and not unset: tf-operator takes that and ignores the Secret, our operator takes \
                 the Secret"
            }
            _ => {
                "adminPassword and keystoneSecretName are both set: tf-operator ignores the Secret, our operator the \
                 adminPassword"
            }
        };
        verdict.add(TWO_PASSWORDS.at(parameters.key("adminPassword")).says(text));
    }
    if authentication.mode() != "keystone" {
        return;
    }
    let address = keystone.address.as_deref().unwrap_or_default();
    if address.is_empty() {
        let text = "address is unset, which means 127.0.0.1, on each node the node itself";
        verdict.add(ADDRESS.at(parameters.key("address")).says(text));
    } else if is_loopback(address) {
        let text = format!("address is {address}, on each node the node itself");
        verdict.add(ADDRESS.at(parameters.key("address")).says(text));
    }
    match password.filter(|_| !has_secret) {
        Some("") => {
            let text = "adminPassword is empty, and keystoneSecretName unset: the password is empty, with our operator \
                unless it has one of before";
            let hint = "remove adminPassword, put the password into a Secret with the key password, and name that in \
                keystoneSecretName";
            verdict.add(PASSWORD.at(parameters.key("adminPassword")).says(text).hint(hint));
        }
        None if !has_secret => {
            let text =
                "keystoneSecretName is unset, and so is adminPassword: the password is contrail123";
            verdict.add(PASSWORD.at(at.key("keystoneSecretName")).says(text));
        }
        _ => {}
    }
    if keystone.admin_port.is_none() {
        let text = "adminPort is unset, which means 35357, where no current Keystone answers";
        verdict.add(ADMIN_PORT.at(parameters.key("adminPort")).says(text));
    }
}

fn is_loopback(address: &str) -> bool {
    address == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// A service within a Manager with authParameters.
pub(crate) fn ignored(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let text = format!("{}: its authParameters are ignored", component.title());
    verdict.add(IGNORED.at(component.shared("/authParameters")).says(text));
}
