//! Secrets for which tf-operator has a constant. That one is set to it is the business of `plaintext`.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::Spec;

pub(crate) const PUBLIC: Message = Message {
    code: "OSDN1523",
    severity: Severity::Warn,
    title: "an unset secret is one that tf-operator has in its source",
    explanation: "RabbitMQ's erlang cookie and the rndc key of the name servers are constants of tf-operator where they \
        are unset. Anyone who knows the cookie and reaches the distribution port runs code on the RabbitMQ nodes; with \
        the key one stops and reconfigures the name server of a control node.",
    hint: "set a value of your own before the first start",
};

/// Upstream's `pkg/apis/tf/v1alpha1/rabbitmq_types.go:386` and `pkg/apis/tf/v1alpha1/control_types.go:540`.
const SECRETS: &[(&str, &str, &str)] = &[
    (
        "Rabbitmq",
        "erlangCookie",
        "set it before the first start, made for instance by: openssl rand -hex 20; in a cluster that runs a change \
            parts it",
    ),
    ("Control", "rndckey", "set it, made for instance by: openssl rand -base64 16"),
];

pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    for (_, field, hint) in SECRETS.iter().filter(|(kind, ..)| *kind == component.kind) {
        if component.spec.given(field).is_none() {
            let text = format!(
                "a limit of tf-operator: {field} of {} is unset, which means its public default",
                component.title()
            );
            let at = component.setting("").key(field);
            verdict.add(PUBLIC.at(at).says(text).hint(*hint));
        }
    }
}
