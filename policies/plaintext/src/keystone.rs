//! A connection to Keystone that others can read or take over.

use opensdn_policy_components::null_as_default;
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde::Deserialize;

use crate::{Settings, secrets};

pub(crate) const UNPROTECTED: Message = Message {
    code: "OSDN1406",
    severity: Severity::Warn,
    title: "the connection to Keystone is not protected",
    explanation: "Over http, or when the certificate is not verified, anyone on the way \
        reads the administrator's password and every token. Verification is off unless it is \
        switched on: upstream's default of insecure is true. With insecure false, the CA of \
        Keystone's certificate must be the CA of the cluster.",
    hint: "set authProtocol: https and insecure: false, and have Keystone's certificate signed by \
        the CA of the cluster (Secret contrail-ca-certificate)",
};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AuthParameters {
    auth_mode: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    keystone_auth_parameters: Keystone,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Keystone {
    auth_protocol: Option<String>,
    insecure: Option<bool>,
    admin_password: Option<String>,
}

pub(crate) fn judge(
    authentication: &AuthParameters,
    at: &Pointer,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let keystone = &authentication.keystone_auth_parameters;
    let at = at.key("keystoneAuthParameters");
    if keystone.admin_password.as_ref().is_some_and(|password| !password.is_empty()) {
        // Whatever the mode: the password is in the resource.
        secrets::clear_text(&at.key("adminPassword"), "adminPassword", settings, verdict);
    }
    if authentication.auth_mode.as_deref() != Some("keystone") {
        return;
    }
    let mut add = |field: &str, text: &str| {
        let severity = settings.profile.severity();
        verdict.add(UNPROTECTED.at(at.key(field)).severity(severity).says(text));
    };
    match (keystone.auth_protocol.as_deref(), keystone.insecure) {
        (Some("http"), _) => {
            add(
                "authProtocol",
                "authProtocol http: passwords and tokens cross the network in clear text",
            );
        }
        (_, Some(true)) => {
            add("insecure", "insecure is true: the services accept any certificate as Keystone's");
        }
        (_, None) => add(
            "insecure",
            "insecure is unset, which means true: the services accept any certificate as \
             Keystone's",
        ),
        (_, Some(false)) => {}
    }
}

pub(crate) fn judge_variable(
    name: &str,
    value: &str,
    at: &Pointer,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let is = |word: &str| value.eq_ignore_ascii_case(word);
    let text = match name {
        "KEYSTONE_AUTH_PROTO" if is("http") => {
            "passwords and tokens cross the network in clear text"
        }
        "KEYSTONE_AUTH_INSECURE" | "SSL_INSECURE" if is("true") || is("yes") || is("enabled") => {
            "the agent accepts any certificate as Keystone's"
        }
        _ => return,
    };
    let hint = "set KEYSTONE_AUTH_PROTO to https, KEYSTONE_AUTH_INSECURE to false, and remove \
        SSL_INSECURE";
    verdict.add(
        UNPROTECTED
            .at(at)
            .severity(settings.profile.severity())
            .says(format!("{name}={value}: {text}"))
            .hint(hint),
    );
}
