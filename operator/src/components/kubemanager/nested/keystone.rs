//! Keystone as kube-manager of a nested cluster reaches it. Of its settings the region and the port for users mean
//! nothing to it, and whether any certificate is accepted is not asked: its certificate is checked.

use opensdn_nested_workloads::{Keystone, Protocol, SecretKey};

use super::Wrong;
use crate::component::Given;
use crate::components::shared::keystone::{self as shared, text};

const PLACE: &str = "spec.commonConfiguration.authParameters";

/// Keystone, and the password where the spec has it. The Secret with that is named by who makes it.
pub(super) fn keystone(given: &Given<'_>, wrong: &mut Wrong) -> (Option<Keystone>, Option<String>) {
    if !shared::is_asked(given.common) {
        return (None, None);
    }
    let said = shared::parameters(given.common);
    let place = format!("{PLACE}.keystoneAuthParameters");
    let domain = text(said.user_domain_name, "Default");
    let of_project = text(said.project_domain_name, "Default");
    if domain != of_project {
        let text = format!(
            "{place}.userDomainName is {domain:?} and projectDomainName {of_project:?}: kube-manager takes one domain for \
             both"
        );
        wrong.push(("keystone.domain", text));
    }
    let protocol = match text(said.auth_protocol, "https").as_str() {
        "http" => Protocol::Http,
        "https" => Protocol::Https,
        other => {
            let text = format!("{place}.authProtocol is {other:?}: it must be http or https");
            wrong.push(("keystone.protocol", text));
            Protocol::Https
        }
    };
    let secret = shared::secret(given.common);
    let password = said.admin_password.filter(|_| secret.is_none());
    if secret.is_none() && password.is_none() {
        let text = format!(
            "{PLACE}.keystoneSecretName is missing: name the Secret whose key password is that of the user"
        );
        wrong.push(("keystone.password", text));
    }
    let keystone = Keystone {
        host: text(said.address, ""),
        port: said.admin_port.unwrap_or(5000),
        protocol,
        domain,
        user: text(said.admin_username, "admin"),
        project: text(said.admin_tenant, "admin"),
        password: SecretKey { secret: secret.unwrap_or_default(), key: shared::KEY.to_owned() },
        escaped_password: None,
    };
    (Some(keystone), password)
}
