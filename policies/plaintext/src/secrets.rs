//! Well-known secrets, and secrets that any user can read. No message repeats one.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Finding, Message, Pointer, Severity, Verdict};

use crate::{Settings, Spec};

pub(crate) const ERLANG_COOKIE: Message = Message {
    code: "OSDN1515",
    severity: Severity::Warn,
    title: "RabbitMQ has the erlang cookie that everybody knows",
    explanation: "Anyone who knows the cookie and reaches the distribution port runs code on the \
        RabbitMQ nodes. tf-operator has one constant cookie in its source, and uses it where \
        erlangCookie is unset; our operator makes one. Members with different cookies do not speak with each other, so \
        a change parts a running cluster.",
    hint: "set erlangCookie to a value of your own before the first start, made for instance by: \
        openssl rand -hex 20",
};

pub(crate) const RNDC_KEY: Message = Message {
    code: "OSDN1612",
    severity: Severity::Warn,
    title: "the name servers have no rndc key of their own",
    explanation: "Anyone who knows the key can stop and reconfigure the name server of a control \
        node. tf-operator has one constant key in its source.",
    hint: "set rndckey to a value of your own, made for instance by: openssl rand -base64 16",
};

pub(crate) const CLEAR_TEXT: Message = Message {
    code: "OSDN1409",
    severity: Severity::Warn,
    title: "a password is in the resource in clear text",
    explanation: "Everybody who may read the resource reads the password, and it is kept in etcd, \
        in backups and in the repository that the manifest comes from.",
    hint: "put it into a Secret and name that",
};

/// tf-operator's constants.
const KNOWN_COOKIE: &str = "47EFF3BB-4786-46E0-A5BB-58455B3C2CB4";
const KNOWN_RNDC_KEY: &str = "xvysmOR8lnUQRBcunkC6vg==";

pub(crate) fn judge_rabbitmq(
    component: &ComponentView<'_, Spec>,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let spec = &component.spec.service_configuration;
    let cookie = (spec.erlang_cookie.as_deref(), "erlangCookie", KNOWN_COOKIE);
    judge_known(component, &ERLANG_COOKIE, cookie, settings, verdict);
    if is_given(spec.password.as_deref()) {
        clear_text(&component.setting("/password"), "password", settings, verdict);
    }
}

/// The cookie before and after an update; `before` is the spec as it is stored, if it is.
pub(crate) fn cookie_change<'a>(
    component: &ComponentView<'_, Spec>,
    before: impl IntoIterator<Item = &'a Spec>,
) -> Option<Finding> {
    if component.kind != "Rabbitmq" {
        return None;
    }
    let cookie = Cookie::of(component.spec);
    let why = before.into_iter().find_map(|before| Cookie::of(before).becomes(cookie))?;
    let title = component.title();
    let text = format!("{title}: erlangCookie would change, which parts the running cluster{why}");
    // The object of a service that a Manager names is made again as it was: what is to change has
    // to leave the Manager.
    let hint = if component.at == Pointer::from("/spec") {
        format!(
            "keep the cookie that is stored. To change it, delete the Rabbitmq (it asks for \
             opensdn.io/confirm-loss=Rabbitmq/{}), wait until its pods are gone, and create it \
             with the new cookie: clients are without messages meanwhile",
            component.name
        )
    } else {
        format!(
            "keep the cookie that is stored. To change it, take rabbitmq out of spec.services \
             with the annotation opensdn.io/confirm-loss: Rabbitmq/{} in the same change, wait \
             until its pods are gone, and put it back with the new cookie: clients are without \
             messages meanwhile",
            component.name
        )
    };
    let at = component.setting("/erlangCookie");
    Some(ERLANG_COOKIE.at(at).severity(Severity::Deny).says(text).hint(hint))
}

/// Whether both have the same one, given or not.
pub(crate) fn has_same_cookie(one: &Spec, other: &Spec) -> bool {
    Cookie::of(one) == Cookie::of(other)
}

/// What the members have. Which operator runs the cluster is not known here, so what parts it under either of them is
/// no change to make: neither takes anything from who leaves the field as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cookie<'a> {
    /// tf-operator's constant, or a random one that our operator made, and that it keeps; of a cluster that it took
    /// over the constant too.
    Unset,
    Public,
    Own(&'a str),
}

impl<'a> Cookie<'a> {
    fn of(spec: &'a Spec) -> Self {
        match spec.service_configuration.erlang_cookie.as_deref() {
            None | Some("") => Self::Unset,
            Some(KNOWN_COOKIE) => Self::Public,
            Some(cookie) => Self::Own(cookie),
        }
    }

    /// Where the cluster is parted by the change, with what is to be said of that; none where it is not.
    fn becomes(self, other: Self) -> Option<&'static str> {
        match (self, other) {
            _ if self == other => None,
            // Our operator keeps what its Secret has, and to tf-operator it is the same.
            (Self::Public, Self::Unset) => None,
            (Self::Unset, Self::Public) => Some(
                " where our operator made the cookie; to tf-operator an unset one is this one already",
            ),
            (Self::Own(_), Self::Unset) => {
                Some(" where tf-operator runs it, or ran it before: an unset one is its public one")
            }
            _ => Some(""),
        }
    }
}

pub(crate) fn judge_control(
    component: &ComponentView<'_, Spec>,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let key = (component.spec.service_configuration.rndckey.as_deref(), "rndckey", KNOWN_RNDC_KEY);
    judge_known(component, &RNDC_KEY, key, settings, verdict);
    if key.0.is_some_and(|key| !key.is_empty() && !is_base64(key)) {
        let text = format!("{}: rndckey is not valid base64: named refuses it", component.title());
        verdict.add(RNDC_KEY.at(component.setting("/rndckey")).says(text));
    }
}

pub(crate) fn judge_vrouter(
    component: &ComponentView<'_, Spec>,
    settings: &Settings,
    verdict: &mut Verdict,
) {
    let spec = &component.spec.service_configuration;
    for (field, value) in [
        ("keystoneAuthAdminPassword", &spec.keystone_auth_admin_password),
        ("barbicanPassword", &spec.barbican_password),
        ("k8sToken", &spec.kubernetes_token),
    ] {
        if is_given(value.as_deref()) {
            clear_text(&component.setting("").key(field), field, settings, verdict);
        }
    }
}

pub(crate) fn judge_variable(name: &str, at: &Pointer, settings: &Settings, verdict: &mut Verdict) {
    if ["KEYSTONE_AUTH_ADMIN_PASSWORD", "BARBICAN_PASSWORD", "K8S_TOKEN"].contains(&name) {
        let text =
            format!("{name} is given in clear text, for everybody who may read the resource");
        let severity = settings.profile.severity();
        verdict.add(CLEAR_TEXT.at(at).severity(severity).says(text).hint(OF_A_VARIABLE));
    }
}

/// The agent's scripts read it from there, and neither operator sets it from a Secret.
const OF_A_VARIABLE: &str = "remove it where the agents need it for nothing (certificates that Kubernetes signs, load balancers \
    with Barbican or Keystone); else give that of a user who may do nothing else";

/// A finding about the secret in `field`, wherever it is.
pub(crate) fn clear_text(at: &Pointer, field: &str, settings: &Settings, verdict: &mut Verdict) {
    let hint = match field {
        "adminPassword" => {
            "remove adminPassword and set keystoneSecretName to a Secret with the key password: \
             kubectl create secret generic NAME --from-file=password=FILE"
        }
        "password" => {
            "remove password and secret: the operator makes the Secret NAME-secret, and keeps the \
             password that is in it"
        }
        _ => "remove it: nothing reads it from here",
    };
    let text = format!("{field} is given in clear text, for everybody who may read the resource");
    let severity = settings.profile.severity();
    verdict.add(CLEAR_TEXT.at(at).severity(severity).says(text).hint(hint));
}

fn judge_known(
    component: &ComponentView<'_, Spec>,
    message: &Message,
    (value, field, known): (Option<&str>, &str, &str),
    settings: &Settings,
    verdict: &mut Verdict,
) {
    if value == Some(known) {
        verdict.add(
            message
                .at(component.setting("").key(field))
                .severity(settings.profile.severity())
                .says(format!("{}: {field} is tf-operator's public default", component.title())),
        );
    }
}

fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    text.len().is_multiple_of(4)
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_given(value: Option<&str>) -> bool {
    value.is_some_and(|value| !value.is_empty())
}
