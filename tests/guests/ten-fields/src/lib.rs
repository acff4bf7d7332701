//! The policy that the benchmark measures. It reads ten fields, nine single values and a list of
//! containers, and finds nothing wrong with the benchmark's object.

use opensdn_policy_sdk::{
    Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use serde::Deserialize;

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Vrouter")]
struct Vrouter {
    #[read("/metadata/name")]
    name: String,
    #[read("/spec/commonConfiguration/logLevel")]
    log_level: Option<String>,
    #[read("/spec/commonConfiguration/distribution")]
    distribution: Option<String>,
    #[read("/spec/serviceConfiguration/controlInstance")]
    control_instance: Option<String>,
    #[read("/spec/serviceConfiguration/physicalInterface")]
    physical_interface: Option<String>,
    #[read("/spec/serviceConfiguration/dataSubnet")]
    data_subnet: Option<String>,
    #[read("/spec/serviceConfiguration/cniMTU")]
    cni_mtu: Option<u32>,
    #[read("/spec/serviceConfiguration/hugePages2M")]
    huge_pages: Option<u32>,
    #[read("/spec/serviceConfiguration/sslEnable")]
    ssl_enable: Option<bool>,
    #[read("/spec/serviceConfiguration/containers")]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    name: String,
    #[serde(default)]
    image: String,
}

const WRONG: Message = Message {
    code: "BENCH0001",
    severity: Severity::Deny,
    title: "a field has a value that the benchmark's object does not have",
    explanation: "The benchmark measures the passing path.",
    hint: "use the benchmark's object",
};

fn vrouter(request: &Request<Vrouter>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(vrouter) = &request.object else { return Ok(()) };
    let texts = [
        &vrouter.log_level,
        &vrouter.distribution,
        &vrouter.control_instance,
        &vrouter.physical_interface,
        &vrouter.data_subnet,
    ];
    if vrouter.name.is_empty() || texts.iter().any(|text| text.as_deref() == Some("")) {
        verdict.add(WRONG.at("/metadata/name"));
    }
    if vrouter.cni_mtu.is_some_and(|mtu| mtu < 1280) || vrouter.huge_pages == Some(u32::MAX) {
        verdict.add(WRONG.at("/spec/serviceConfiguration/cniMTU"));
    }
    if vrouter.ssl_enable == Some(false) {
        verdict.add(WRONG.at("/spec/serviceConfiguration/sslEnable"));
    }
    for (number, container) in vrouter.containers.iter().enumerate() {
        if container.image.is_empty() || container.name.is_empty() {
            let place = Pointer::from("/spec/serviceConfiguration/containers").index(number);
            verdict.add(WRONG.at(&place));
        }
    }
    Ok(())
}

policy! {
    name: "ten-fields",
    summary: "reads ten fields",
    settings: NoSettings,
    messages: [WRONG],
    validate: [vrouter],
}
