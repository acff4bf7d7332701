//! What an API checks about a request.

use opensdn_crds::pod::{AaaMode, AuthMode};

use crate::component::Given;

/// What is given, else as much as can be (tf-operator, `pkg/apis/tf/v1alpha1/config_types.go:722-729`).
pub(in crate::components) fn aaa_mode(given: &Given<'_>, mode: Option<AaaMode>) -> &'static str {
    let auth = given.common.auth_parameters.as_ref().and_then(|given| given.auth_mode);
    let mode = match mode {
        // tf-operator's spelling, which the daemons do not know.
        Some(AaaMode::NoauthMisspelt) => AaaMode::NoAuth,
        Some(mode) => mode,
        None if auth == Some(AuthMode::Keystone) => AaaMode::Rbac,
        None => AaaMode::NoAuth,
    };
    mode.as_str()
}
