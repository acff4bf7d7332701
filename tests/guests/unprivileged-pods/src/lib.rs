//! No container of a Pod is privileged: the rule that other engines of policies are compared by, written as
//! `kubectl opensdn policy new` begins one. The guest parses the containers.

use opensdn_policy_sdk::{
    Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use serde::Deserialize;

#[derive(Reads)]
#[reads(group = "", kind = "Pod")]
struct Pod {
    #[read("/spec/containers")]
    containers: Vec<Container>,
    #[read("/spec/initContainers")]
    init_containers: Option<Vec<Container>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: String,
    security_context: Option<SecurityContext>,
}

#[derive(Deserialize)]
struct SecurityContext {
    privileged: Option<bool>,
}

const PRIVILEGED: Message = Message {
    code: "BENCH0002",
    severity: Severity::Deny,
    title: "a container is privileged",
    explanation: "It can do on its node what root can.",
    hint: "remove securityContext.privileged",
};

fn unprivileged(request: &Request<Pod>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(pod) = &request.object else { return Ok(()) };
    let init = pod.init_containers.as_deref().unwrap_or_default();
    for (list, containers) in [("containers", pod.containers.as_slice()), ("initContainers", init)]
    {
        for (number, container) in containers.iter().enumerate() {
            let context = container.security_context.as_ref();
            if context.and_then(|context| context.privileged) == Some(true) {
                let place = Pointer::from("/spec").key(list).index(number);
                let text = format!("container {} is privileged", container.name);
                verdict.add(PRIVILEGED.at(&place).says(text));
            }
        }
    }
    Ok(())
}

policy! {
    name: "unprivileged-pods",
    summary: "no container of a Pod is privileged",
    settings: NoSettings,
    messages: [PRIVILEGED],
    validate: [unprivileged],
}
