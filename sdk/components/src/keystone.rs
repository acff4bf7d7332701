//! The Secret with the password of Keystone's user: who reads it.

use serde::{Deserialize, de::IgnoredAny};

use crate::nulls::null_as_default;

/// `authParameters` of a commonConfiguration, as far as the Secret goes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeystoneSecret {
    auth_mode: Option<String>,
    keystone_secret_name: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    keystone_auth_parameters: Parameters,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Parameters {
    admin_password: Option<IgnoredAny>,
}

impl KeystoneSecret {
    /// Its name, if an operator reads it for components of these kinds: ours with Keystone, whatever adminPassword says, and
    /// for the web UI in noauth, too; tf-operator for a Manager without adminPassword, whatever the mode
    /// (`pkg/apis/tf/v1alpha1/auth_types.go:67-73`, `pkg/controller/manager/manager_controller.go:550`).
    pub fn read_for<'k>(
        &self,
        mut kinds: impl Iterator<Item = &'k str>,
        for_manager: bool,
    ) -> Option<&str> {
        let name = self.keystone_secret_name.as_deref().filter(|name| !name.is_empty())?;
        let has_password = self.keystone_auth_parameters.admin_password.is_some();
        let is_read = self.auth_mode.as_deref() == Some("keystone")
            || (for_manager && !has_password)
            || kinds.any(|kind| kind == "Webui");
        is_read.then_some(name)
    }
}
