//! Services of one cluster that do not fit together.
//!
//! ```yaml
//! kind: Manager
//! spec:
//!   services:                       # no zookeeper, no rabbitmq: config waits forever
//!     config: …
//!     cassandras:
//!       - metadata: {name: configdb1}
//!       - metadata: {name: analytics}     # not analyticsdb…: both write into one folder
//!     controls: [{spec: {serviceConfiguration: {dataSubnet: 10.1.0.0/24}}}]
//!     vrouters: [{spec: {serviceConfiguration: {dataSubnet: 10.2.0.0/24}}}]   # no control node
//! ```
//!
//! Each service is right by itself, so only the network would show it. What one field refers to
//! is there is judged by `missing-reference`. A Manager without any service is not judged: it
//! starts nothing.
//!
//! That two services run on the same node is taken for certain only where one node selector has all
//! labels of the other; the labels of the nodes are not looked up.

mod configuration;
mod databases;
mod networks;
mod placement;
mod ports;
mod presence;

use opensdn_policy_components::{Owners, Services, null_as_default};
use opensdn_policy_sdk::{Index, NoSettings, Outcome, Reads, Request, Verdict, policy};
use serde::Deserialize;

use configuration::Configuration;
use placement::Selector;

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration/nodeSelector")]
    selector: Option<Selector>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Vrouter")]
struct Vrouter {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec/serviceConfiguration/controlInstance")]
    control: Option<String>,
    #[read("/spec/serviceConfiguration/dataSubnet")]
    data_subnet: Option<String>,
    #[read("/spec/serviceConfiguration/subcluster")]
    subcluster: Option<String>,
}

/// What is read of the spec of any service; each kind has some of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    common_configuration: Common,
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: Configuration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Common {
    node_selector: Option<Selector>,
}

const CONTROLS: Index = Index {
    name: "controls",
    group: "tf.tungsten.io",
    kind: "Control",
    key: "",
    reads: &["/spec/serviceConfiguration/dataSubnet", "/spec/serviceConfiguration/subcluster"],
};

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { selector, services: Some(services) }) = &request.object else {
        return Ok(());
    };
    let nothing = Spec::default();
    let components: Vec<_> = services.walk_all(&nothing).collect();
    if components.is_empty() {
        return Ok(());
    }
    presence::judge(&components, verdict);
    databases::judge(&components, verdict);
    networks::judge(&components, verdict);
    let placed = placement::place(&components, selector.as_ref());
    placement::judge(&placed, verdict);
    ports::judge(&placed, verdict);
    Ok(())
}

/// The Control may be an object of its own too. That it is not there is for `missing-reference` to
/// say. A Control is not judged by the vrouters that name it: one of the two must be changed first.
fn vrouter(request: &Request<Vrouter>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(vrouter) = &request.object else { return Ok(()) };
    let name = vrouter.control.as_deref().unwrap_or_default();
    if name.is_empty() || vrouter.owners.as_ref().and_then(Owners::manager).is_some() {
        return Ok(());
    }
    let Some(control) = CONTROLS.get(&request.namespace, name)? else { return Ok(()) };
    let (data_subnet, subcluster) = (control.part::<String>(0)?, control.part::<String>(1)?);
    let own = networks::Settings {
        title: format!("Vrouter {}", request.name),
        data_subnet: vrouter.data_subnet.as_deref(),
        subcluster: vrouter.subcluster.as_deref(),
    };
    let theirs = networks::Settings {
        title: format!("Control {name}"),
        data_subnet: data_subnet.as_deref(),
        subcluster: subcluster.as_deref(),
    };
    networks::compare(&own, &theirs, &"/spec/serviceConfiguration".into(), verdict);
    Ok(())
}

policy! {
    name: "inconsistent-services",
    summary: "the services of a cluster fit together",
    settings: NoSettings,
    messages: [
        presence::MISSING,
        presence::IDLE_QUERIES,
        presence::IDLE_DATABASE,
        presence::SECOND_REDIS,
        presence::NO_DATA_PLANE,
        databases::WRONG_NAME,
        databases::TOO_MANY,
        networks::AS_NUMBERS,
        networks::DATA_SUBNETS,
        networks::SUBCLUSTERS,
        networks::ORCHESTRATORS,
        placement::CONTROLS,
        placement::VROUTERS,
        ports::OF_DATABASES,
        ports::TAKEN,
    ],
    indexes: [CONTROLS],
    validate: [manager, vrouter],
}
