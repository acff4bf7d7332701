//! {{kinds}} without an owner.
//!
//! When an object fails at night, its label tells whom to call.

use std::collections::BTreeMap;

use opensdn_policy_sdk::{
    Message, Outcome, Reads, Request, Severity, Verdict, policy, schemars::JsonSchema,
};
use serde::Deserialize;

/// What an administrator can set in the AdmissionPolicy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "opensdn_policy_sdk::schemars")]
pub struct Settings {
    /// The label that names the owner; unset: owner.
    label: Option<String>,
}

const NO_OWNER: Message = Message {
    code: "TEAM0001",
    severity: Severity::Deny,
    title: "the object has no owner",
    explanation: "When it fails at night, nobody knows whom to call.",
    hint: "name the team in a label under metadata.labels, for example owner: network",
};

{{#kinds}}
/// All that the policy gets to see of an object: each field is a part of it.
#[derive(Reads)]
#[reads(group = "{{group}}", kind = "{{kind}}")]
pub struct {{kind}}Parts {
    #[read("/metadata/labels")]
    labels: Option<BTreeMap<String, String>>,
}

fn check_owner_of_{{kind-function}}(
    request: &Request<{{kind}}Parts>,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    if let Some(object) = &request.object {
        let label = settings.label.as_deref().unwrap_or("owner");
        let owner = object.labels.as_ref().and_then(|labels| labels.get(label));
        if owner.is_none_or(String::is_empty) {
            let text = format!("{} has no label {label}", request.kind);
            verdict.add(NO_OWNER.at("/metadata/labels").says(text));
        }
    }
    Ok(())
}

{{/kinds}}
policy! {
    name: "{{name}}",
    summary: "every object names its owner",
    settings: Settings,
    messages: [NO_OWNER],
    validate: [{{functions}}],
}
