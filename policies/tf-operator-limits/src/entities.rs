//! Values that tf-operator changes on their way into files that it renders as if they were pages: `params.env` of the agents,
//! and those of the alarm generator, the SNMP collector and the topology.

use opensdn_policy_components::{
    ComponentView, UNUSED_OF_VROUTER,
    characters::{found, shown},
};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde_json::Value;

use crate::{Spec, fields};

pub(crate) const ENTITIES: Message = Message {
    code: "OSDN1824",
    severity: Severity::Warn,
    title: "tf-operator turns characters of a value into entities",
    explanation: "It renders params.env of the agents, and what AnalyticsAlarm and AnalyticsSnmp know of RabbitMQ, with \
        html/template, which makes entities of quotes, &, <, > and +: the daemon gets another value than the one that stands \
        here, as a&#43;b for a+b.",
    hint: "choose values without the characters that the message names",
};

const CHANGED: &[char] = &['"', '\'', '&', '<', '>', '+'];

/// Judges every text of a Vrouter but those that only a comment has, and those of its containers.
pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    if component.kind != "Vrouter" {
        return;
    }
    let own = component.spec.service_configuration.iter();
    let is_rendered = |field: &str| {
        field != "containers"
            && !UNUSED_OF_VROUTER.contains(&field)
            && !fields::is_ours("Vrouter", field)
    };
    for (field, value) in own.filter(|(field, _)| is_rendered(field)) {
        judge_value(field, value, &component.setting("").key(field), verdict);
    }
}

/// What these two are given of RabbitMQ, which the others get as it is.
pub(crate) fn judge_queue(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    let is_rendered =
        |one: &ComponentView<'_, Spec>| ["AnalyticsAlarm", "AnalyticsSnmp"].contains(&one.kind);
    if !components.iter().any(is_rendered) {
        return;
    }
    for queue in components.iter().filter(|one| one.kind == "Rabbitmq") {
        for field in ["user", "password", "vhost"] {
            if let Some(value) = queue.spec.given(field) {
                judge_value(field, value, &queue.setting("").key(field), verdict);
            }
        }
    }
}

fn judge_value(name: &str, value: &Value, at: &Pointer, verdict: &mut Verdict) {
    match value {
        Value::String(text) => {
            if let Some(what) = found(text, CHANGED) {
                let text = format!(
                    "a limit of tf-operator: it turns characters of {name} into entities: {what}{}",
                    shown(name, text)
                );
                verdict.add(ENTITIES.at(at).says(text));
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                judge_value(name, item, &at.index(number), verdict);
            }
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                judge_value(field, value, &at.key(field), verdict);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
