//! First sketch.
use opensdn_policy_sdk::{
    Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Zookeeper")]
struct Zookeeper {
    #[read("/metadata/annotations/replicas")]
    replicas: Option<String>,
}

const EVEN: Message = Message {
    code: "OSDN1205",
    severity: Severity::Deny,
    title: "an even number of members",
    explanation: "",
    hint: "use 1, 3 or 5",
};

fn zookeeper(request: &Request<Zookeeper>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    if let Some(Zookeeper { replicas: Some(replicas) }) = &request.object
        && replicas.parse::<u32>().is_ok_and(|number| number.is_multiple_of(2))
    {
        verdict.add(EVEN.at(Pointer::from("/metadata")).says(format!("{replicas} is even")));
    }
    Ok(())
}

policy! {
    name: "even-quorum",
    summary: "quorum services have an odd number of members",
    settings: NoSettings,
    messages: [EVEN],
    validate: [zookeeper],
}
