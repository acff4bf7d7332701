//! The policy that a test sends deep objects to: it reads the whole object and walks it by recursion,
//! as the policy of a hurried author does.

use opensdn_policy_sdk::{Message, NoSettings, Outcome, Reads, Request, Severity, Verdict, policy};
use serde_json::Value;

#[derive(Reads)]
#[reads(group = "example.com", kind = "Thing")]
struct Thing {
    #[read("")]
    whole: Value,
}

const FOUND: Message = Message {
    code: "TEST0001",
    severity: Severity::Deny,
    title: "the object has a needle",
    explanation: "The test looks whether the walk arrives.",
    hint: "take the needle out",
};

/// Where the needle is, by a walk that needs stack for each level.
fn find(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(map) => {
            map.iter().find_map(|(key, value)| find(value, &format!("{path}/{key}")))
        }
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(number, value)| find(value, &format!("{path}/{number}"))),
        Value::String(text) if text == "needle" => Some(path.to_owned()),
        _ => None,
    }
}

fn thing(request: &Request<Thing>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    if let Some(place) = request.object.as_ref().and_then(|thing| find(&thing.whole, "")) {
        verdict.add(FOUND.at(place.as_str()));
    }
    Ok(())
}

policy! {
    name: "whole-object",
    summary: "no object has a needle",
    settings: NoSettings,
    messages: [FOUND],
    validate: [thing],
}
