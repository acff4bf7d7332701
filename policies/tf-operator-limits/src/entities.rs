//! Values that tf-operator changes on their way into `params.env`, which its agents read.

use opensdn_policy_components::{
    ComponentView, UNUSED_OF_VROUTER,
    characters::{found, shown},
};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde_json::Value;

use crate::Spec;

pub(crate) const ENTITIES: Message = Message {
    code: "OSDN1824",
    severity: Severity::Warn,
    title: "tf-operator turns characters of a value into entities",
    explanation: "It renders params.env with html/template, which makes entities of quotes, &, <, > and +: the daemon gets \
        another value than the one that stands here, as a&#43;b for a+b.",
    hint: "choose values without the characters that the message names",
};

const CHANGED: &[char] = &['"', '\'', '&', '<', '>', '+'];

/// Judges every text of a Vrouter but those that only a comment has, and those of its containers.
pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    if component.kind != "Vrouter" {
        return;
    }
    let own = component.spec.service_configuration.iter();
    let rendered =
        |field: &&String| *field != "containers" && !UNUSED_OF_VROUTER.contains(&field.as_str());
    for (field, value) in own.filter(|(field, _)| rendered(field)) {
        judge_value(field, value, &component.setting("").key(field), verdict);
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
