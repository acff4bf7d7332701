//! What the APIs of OpenSDN check about a request, and when they check nothing.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::Spec;

pub(crate) const MODE: Message = Message {
    code: "OSDN1410",
    severity: Severity::Warn,
    title: "aaaMode does not do what it says",
    explanation: "Who asks is known from Keystone only. Without it rbac and cloud-admin check nothing: \
        everybody may do everything, as with no-auth. And noauth is no word that the Config API knows. tf-operator \
        writes it into the configuration as it is, and the Config API takes cloud-admin instead; our operator writes \
        no-auth, with which everybody may do everything.",
    hint: "set authMode keystone with rbac or cloud-admin, or write no-auth",
};

/// Judges a component by the authentication that counts for it.
pub(crate) fn judge(component: &ComponentView<'_, Spec>, mode: &str, verdict: &mut Verdict) {
    if !["Analytics", "Config"].contains(&component.kind) {
        return;
    }
    let given = component.spec.service_configuration.text("aaaMode").unwrap_or_default();
    let title = component.title();
    let (text, hint) = match (given, mode) {
        ("rbac" | "cloud-admin", mode) if mode != "keystone" => (
            format!("{title}: aaaMode {given} checks nothing, for authMode is not keystone"),
            "set commonConfiguration.authParameters.authMode to keystone, or aaaMode to no-auth",
        ),
        ("noauth", "keystone") if component.kind == "Config" => (
            format!(
                "{title}: aaaMode noauth becomes cloud-admin with tf-operator, whose word the Config API does not know, \
                 and no-auth with our operator, by which the API is open to all"
            ),
            "write no-auth if nothing is to be checked, else rbac or cloud-admin",
        ),
        _ => return,
    };
    verdict.add(MODE.at(component.setting("/aaaMode")).says(text).hint(hint));
}
