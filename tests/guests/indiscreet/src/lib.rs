//! A policy that says all that it is given of Secrets, in every way in which a policy can say something:
//! by findings that warn and that refuse, by a claim, a failure and a patch. A test looks for values in
//! what comes of it.

use opensdn_policy_sdk::{
    Failure, Index, Message, NoSettings, Operation, Outcome, Patch, Pointer, Reads, Request,
    Severity, Verdict, policy,
};
use serde_json::{Value, json};

/// All that a policy may read of a Secret that it judges.
#[derive(Reads)]
#[reads(group = "", kind = "Secret")]
struct Secret {
    #[read("/metadata/name")]
    name: Value,
    #[read("/metadata/namespace")]
    namespace: Value,
    #[read("/metadata/labels")]
    labels: Option<Value>,
    #[read("/type")]
    kind: Option<Value>,
}

/// Makes it look Secrets up.
#[derive(Reads)]
#[reads(group = "", kind = "ConfigMap")]
struct ConfigMap {
    #[read("/metadata/namespace")]
    namespace: String,
}

/// All that an index may have of Secrets.
const SECRETS: Index = Index {
    name: "secrets",
    group: "",
    kind: "Secret",
    key: "",
    reads: &["/data", "/type", "/metadata/labels", "/metadata/name"],
};

const SAID: Message = Message {
    code: "TEST0002",
    severity: Severity::Warn,
    title: "there is a Secret",
    explanation: "The test looks for values in what is said of it.",
    hint: "look for values",
};

fn everything(secret: &Secret) -> String {
    let Secret { name, namespace, labels, kind } = secret;
    json!([name, namespace, labels, kind]).to_string()
}

/// What the test wants of it.
fn wish(secret: &Secret) -> Option<&str> {
    secret.labels.as_ref()?.get("wish")?.as_str()
}

fn secret(request: &Request<Secret>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    for secret in request.object.iter().chain(&request.old_object) {
        let said = everything(secret);
        verdict.add(SAID.at("/data/password").says(said.as_str()).hint(said.as_str()));
        match wish(secret) {
            Some("refuse") => verdict.add(SAID.at("/type").says(said).severity(Severity::Deny)),
            Some("claim") => verdict.claim(&SAID, "indiscreet", said, "/type"),
            Some("fail") => return Err(Failure(said)),
            _ => {}
        }
    }
    Ok(())
}

fn config_map(request: &Request<ConfigMap>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let namespace = request.object.as_ref().map_or("", |map| map.namespace.as_str());
    for found in SECRETS.find("")?.iter().filter(|found| found.namespace() == namespace) {
        let part = |number| found.part::<Value>(number);
        let said = json!([part(0)?, part(1)?, part(2)?, part(3)?]).to_string();
        verdict.add(SAID.at("/data").says(said.as_str()).hint(said));
    }
    Ok(())
}

fn annotate(request: &Request<Secret>, _: &NoSettings, patch: &mut Patch) -> Outcome {
    let Some(secret) = request.object.as_ref().filter(|_| request.operation == Operation::Create)
    else {
        return Ok(());
    };
    let at = Pointer::from("/metadata/annotations");
    // Each Secret of the test has annotations.
    if wish(secret) == Some("patch") {
        patch.default_value(&mut json!({}), &at, "/indiscreet", everything(secret))?;
    }
    Ok(())
}

policy! {
    name: "indiscreet",
    summary: "says what it knows of Secrets",
    settings: NoSettings,
    messages: [SAID],
    indexes: [SECRETS],
    claims: true,
    validate: [secret, config_map],
    mutate: [annotate],
}
