//! TLS that is switched off, and keys too short for it.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::{Settings, Spec};

pub(crate) const OFF: Message = Message {
    code: "OSDN1816",
    severity: Severity::Deny,
    title: "TLS is switched off",
    explanation: "The control nodes, the collector and the Config API accept TLS only, so an \
        agent that speaks plain text reaches none of them and the node has no network. Where the \
        other side does not insist (introspection), anyone on the wire can read and change the traffic.",
    hint: "remove the field; TLS is the default",
};

pub(crate) const KEY_LENGTH: Message = Message {
    code: "OSDN1904",
    severity: Severity::Deny,
    title: "the RSA keys of the certificates are too short, or needlessly long",
    explanation: "Keys of 1024 bits are within reach of those who want them, and shorter ones can be \
        factored at home; tf-operator accepts 512. Keys of 8192 bits take minutes a node to make, and every \
        handshake is slow.",
    hint: "set certKeyLength to a number from 2048 to 4096, or remove it: unset means 4096 to tf-operator and 2048 \
        to ours, and explicit-defaults writes 4096 into a new Manager",
};

pub(crate) fn judge_key_length(length: Option<i64>, at: &Pointer, verdict: &mut Verdict) {
    let finding = KEY_LENGTH.at(at);
    match length {
        // Zero is Go's way to say unset.
        None | Some(0 | 2048..=4096) => {}
        Some(length) if length < 0 => verdict.add(
            finding
                .severity(Severity::Warn)
                .says(format!("certKeyLength {length} has no effect; it counts as unset")),
        ),
        Some(length) if length > 4096 => {
            verdict.add(finding.severity(Severity::Warn).says(format!(
                "certKeyLength {length}: such a key takes long to make (minutes a node at 8192) and slows down \
                 every handshake; 4096 is enough"
            )))
        }
        Some(length) => verdict.add(
            finding.says(format!("certKeyLength is {length}; 2048 is the least that is safe")),
        ),
    }
}

pub(crate) fn judge_vrouter(
    component: &ComponentView<'_, Spec>,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let spec = &component.spec.service_configuration;
    let lenient = settings.profile.severity();
    for (field, value, severity) in [
        ("sslEnable", spec.ssl_enable, Severity::Deny),
        ("xmmpSslEnable", spec.xmmp_ssl_enable, Severity::Deny),
        ("xmppSslEnable", spec.xmpp_ssl_enable, Severity::Deny),
        ("sandeshSslEnable", spec.sandesh_ssl_enable, Severity::Deny),
        ("configApiSslEnable", spec.config_api_ssl_enable, Severity::Deny),
        ("introspectSslEnable", spec.introspect_ssl_enable, lenient),
    ] {
        if value == Some(false) {
            let at = component.setting("").key(field);
            let text = format!("{}: {field} switches TLS off{}", component.title(), peer(field));
            verdict.add(OFF.at(at).severity(severity).says(text));
        }
    }
}

/// Who is on the other side of a switch, a field or a variable.
fn peer(switch: &str) -> &'static str {
    match switch {
        "xmmpSslEnable" | "xmppSslEnable" | "XMPP_SSL_ENABLE" => {
            " towards the control nodes, which accept nothing else"
        }
        "sandeshSslEnable" | "SANDESH_SSL_ENABLE" => {
            " towards the collector, which accepts nothing else"
        }
        "configApiSslEnable" | "CONFIG_API_SSL_ENABLE" => {
            " towards the Config API, which accepts nothing else"
        }
        "introspectSslEnable" | "INTROSPECT_SSL_ENABLE" => {
            " for introspection: anybody on the network can read the agent's state"
        }
        _ => ", and every server requires it",
    }
}

pub(crate) fn judge_variable(
    name: &str,
    value: &str,
    at: &Pointer,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let severity = match name {
        "SSL_ENABLE" | "XMPP_SSL_ENABLE" | "SANDESH_SSL_ENABLE" | "CONFIG_API_SSL_ENABLE" => {
            Severity::Deny
        }
        "INTROSPECT_SSL_ENABLE" => settings.profile.severity(),
        _ => return,
    };
    if !is_on(value) {
        let text = format!("{name}={value} switches TLS off{}", peer(name));
        let hint = format!("remove {name}; TLS is the default");
        verdict.add(OFF.at(at).severity(severity).says(text).hint(hint));
    }
}

/// How the scripts in the images read a switch; an empty one is as good as none.
fn is_on(value: &str) -> bool {
    ["", "true", "yes", "enabled"].iter().any(|word| value.eq_ignore_ascii_case(word))
}
