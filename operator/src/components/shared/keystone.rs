//! Keystone, as `commonConfiguration` says it, with tf-operator's defaults.

use opensdn_crds::pod::{AuthMode, KeystoneAuthParameters, PodConfiguration};

use crate::component::Credentials;

/// As tf-operator has it (`pkg/apis/tf/v1alpha1/auth_types.go:60-80`).
pub(crate) const PASSWORD: &str = "contrail123";
/// The key of a component's own Secret with the password that is in the spec.
pub(crate) const OWN_KEY: &str = "keystone-password";
/// That of the Secret that the spec names.
pub(crate) const KEY: &str = "password";

/// What its files have of the Secret that the spec names.
pub(crate) fn credentials(secret: String) -> Credentials {
    Credentials { folder: "keystone", secret, keys: &[KEY] }
}

/// The login of daemons.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    /// `http` or `https`.
    pub(crate) protocol: String,
    /// Address or name.
    pub(crate) address: String,
    /// The port for tokens.
    pub(crate) admin_port: i64,
    /// The project.
    pub(crate) tenant: String,
    /// The user.
    pub(crate) user: String,
    /// The user's domain.
    pub(crate) user_domain: String,
    /// The project's domain.
    pub(crate) project_domain: String,
    /// Whether any certificate is accepted.
    pub(crate) insecure: bool,
}

impl Login {
    /// By what is said of Keystone, whether it is asked or not.
    pub(crate) fn of(common: &PodConfiguration) -> Self {
        let said = parameters(common);
        Self {
            protocol: text(said.auth_protocol, "https"),
            address: text(said.address, "127.0.0.1"),
            admin_port: said.admin_port.unwrap_or(35357),
            tenant: text(said.admin_tenant, "admin"),
            user: text(said.admin_username, "admin"),
            user_domain: text(said.user_domain_name, "Default"),
            project_domain: text(said.project_domain_name, "Default"),
            insecure: said.insecure.unwrap_or(true),
        }
    }
}

/// What is given, unless it is empty.
pub(in crate::components) fn text(given: Option<String>, default: &str) -> String {
    given.filter(|given| !given.is_empty()).unwrap_or_else(|| default.to_owned())
}

/// Whether it is asked.
pub(crate) fn is_asked(common: &PodConfiguration) -> bool {
    let parameters = common.auth_parameters.as_ref();
    parameters.is_some_and(|parameters| parameters.auth_mode == Some(AuthMode::Keystone))
}

/// What is said of it, whether it is asked or not.
pub(in crate::components) fn parameters(common: &PodConfiguration) -> KeystoneAuthParameters {
    let parameters = common.auth_parameters.as_ref();
    let parameters = parameters.and_then(|auth| auth.keystone_auth_parameters.clone());
    parameters.unwrap_or_default()
}

/// The Secret with the password of the administrator.
pub(crate) fn secret(common: &PodConfiguration) -> Option<String> {
    let secret = common.auth_parameters.as_ref()?.keystone_secret_name.clone();
    secret.filter(|name| !name.is_empty())
}
