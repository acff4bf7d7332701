//! Names, passwords and keys that are written into ini files, scripts, JavaScript and JSON.

use opensdn_policy_components::{
    ComponentView,
    characters::{found, shown},
};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde::Deserialize;

use crate::{Spec, texts::Texts};

pub(crate) const UNSAFE_CREDENTIAL: Message = Message {
    code: "OSDN1408",
    severity: Severity::Deny,
    title: "a name or password breaks the files that it is written into",
    explanation: "With tf-operator Keystone's values are written as they are into ini files (where Python takes % for an \
        interpolation), into scripts between double quotes, into JavaScript and into JSON: a \
        quote, backtick, $, backslash, % or line break ends the string in one of them, and the \
        service does not start, or runs what follows. Without Keystone only JavaScript has them. RabbitMQ's are written into ini files, where # \
        and ; begin a comment, and into an address, which / ? and # end. Our operator quotes for each file; what breaks the address, \
        which the daemons make, breaks it there too.",
    hint: "choose a value without the characters that the message names; a longer one of letters \
        and digits is as strong",
};

/// What no credential may contain.
const SPECIAL: &[char] = &['"', '\'', '`', '$', '\\', '%', '\n', '\r'];
/// What those of a cluster without Keystone may not: the web UI alone has them, in JavaScript between single quotes
/// (tf-operator, `pkg/apis/tf/v1alpha1/templates/webui_config.go:177-193`).
const SPECIAL_WITHOUT_KEYSTONE: &[char] = &['\'', '\\', '\n', '\r'];

/// Fields of one kind, and what they may not contain.
pub(crate) struct Credentials {
    fields: &'static [&'static str],
    forbidden: &'static [char],
}

impl Credentials {
    /// Only its hash is in definitions.json; the address of the broker has the password itself
    /// (tf-controller, `src/config/common/cfgm_common/vnc_kombu.py:350`).
    pub(crate) const RABBITMQ_PASSWORD: Self =
        Self { fields: &["/password"], forbidden: &['%', '/', '?', '#', ';', '\n', '\r'] };
    /// They are in definitions.json as they are.
    pub(crate) const RABBITMQ_USER: Self =
        Self { fields: &["/user"], forbidden: &['%', '/', '?', '#', ';', '"', '\\', '\n', '\r'] };
    pub(crate) const RABBITMQ_VHOST: Self =
        Self { fields: &["/vhost"], forbidden: &['%', '?', '#', ';', '"', '\\', '\n', '\r'] };
    /// Its $, backticks and line breaks are judged with the environment of the provisioner.
    pub(crate) const CONTROL: Self =
        Self { fields: &["/rndckey"], forbidden: &['"', '\'', '\\', '%'] };
    /// A dict in Python's notation, so quotes belong into it. It is in an ini file alone, which no shell reads.
    pub(crate) const KUBEMANAGER: Self =
        Self { fields: &["/publicFIPPool"], forbidden: &['\\', '%', '\n', '\r'] };
}

pub(crate) fn judge(
    credentials: &Credentials,
    texts: &Texts,
    component: &ComponentView<'_, Spec>,
    verdict: &mut Verdict,
) {
    for path in credentials.fields {
        if let Some(value) = texts.get(path) {
            let name = path.trim_start_matches('/');
            check(name, value, credentials.forbidden, &component.setting(path), verdict);
        }
    }
}

fn check(name: &str, value: &str, forbidden: &[char], at: &Pointer, verdict: &mut Verdict) {
    if let Some(what) = found(value, forbidden) {
        let text = format!("{name} contains {what}{}", shown(name, value));
        verdict.add(UNSAFE_CREDENTIAL.at(at).says(text));
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AuthParameters {
    auth_mode: Option<String>,
    keystone_auth_parameters: Texts,
}

/// Every string of `keystoneAuthParameters`; `spec` is where the spec is.
pub(crate) fn judge_keystone(
    authentication: &AuthParameters,
    spec: Pointer,
    verdict: &mut Verdict,
) {
    let forbidden = match authentication.auth_mode.as_deref() {
        Some("keystone") => SPECIAL,
        _ => SPECIAL_WITHOUT_KEYSTONE,
    };
    let at = spec.join("/commonConfiguration/authParameters/keystoneAuthParameters");
    for (path, value) in authentication.keystone_auth_parameters.iter() {
        check(path.trim_start_matches('/'), value, forbidden, &at.join(path), verdict);
    }
}
