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
//! labels of the other. Only where one must be on every node of the other the labels of the nodes are
//! looked up.

mod configuration;
mod databases;
mod nested;
mod networks;
mod placement;
mod ports;
mod presence;

use opensdn_policy_components::{Owners, Services, nodes::NODES, null_as_default};
use opensdn_policy_sdk::{
    Failure, Index, NoSettings, Outcome, Pointer, Reads, Request, Verdict, policy,
};
use serde::{Deserialize, de::IgnoredAny};

use configuration::Configuration;
use placement::Selector;

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/metadata/annotations/opensdn.io~1confirm-loss")]
    confirmed: Option<String>,
    #[read("/spec/commonConfiguration/nodeSelector")]
    selector: Option<Selector>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
    #[read("/spec/nested")]
    nested: Option<IgnoredAny>,
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
    reads: &["/spec/serviceConfiguration/dataSubnet"],
};

/// Of all namespaces: a subcluster is one of the whole network.
const CONTROLS_BY_SUBCLUSTER: Index = Index {
    name: "controls-by-subcluster",
    group: "tf.tungsten.io",
    kind: "Control",
    key: "/spec/serviceConfiguration/subcluster",
    reads: &["/metadata/name"],
};

fn makes_subcluster(name: &str) -> Result<bool, Failure> {
    Ok(!CONTROLS_BY_SUBCLUSTER.find_first(name, 1)?.is_empty())
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { confirmed, selector, services: Some(services), nested }) = &request.object
    else {
        return Ok(());
    };
    let nothing = Spec::default();
    let components: Vec<_> = services.walk_all(&nothing).collect();
    if components.is_empty() {
        return Ok(());
    }
    if nested.is_some() || nested::is_nested(&components) {
        nested::judge(&components, verdict);
    } else {
        let confirmed = confirmed.as_deref().unwrap_or_default();
        presence::judge(&components, &request.namespace, confirmed, verdict)?;
    }
    networks::judge(&components, &makes_subcluster, verdict)?;
    let placed = placement::place(&components, selector.as_ref());
    databases::judge(&placed, verdict);
    placement::judge(&placed, verdict);
    placement::judge_redis(&placed, verdict)?;
    ports::judge(&placed, verdict);
    Ok(())
}

/// The Control may be an object of its own too. That it is not there is for `missing-reference` to
/// say. A Control is not judged by the vrouters that name it: one of the two must be changed first.
fn vrouter(request: &Request<Vrouter>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(vrouter) = &request.object else { return Ok(()) };
    let name = vrouter.control.as_deref().unwrap_or_default();
    if vrouter.owners.as_ref().and_then(Owners::manager).is_some() {
        return Ok(());
    }
    let own = networks::Settings {
        title: format!("Vrouter {}", request.name),
        data_subnet: vrouter.data_subnet.as_deref(),
        subcluster: vrouter.subcluster.as_deref(),
    };
    let at = Pointer::from("/spec/serviceConfiguration");
    networks::judge_subcluster(&own, &at, &makes_subcluster, verdict)?;
    let control = if name.is_empty() { None } else { CONTROLS.get(&request.namespace, name)? };
    let Some(control) = control else { return Ok(()) };
    let data_subnet = control.part::<String>(0)?;
    let theirs = networks::Settings {
        title: format!("Control {name}"),
        data_subnet: data_subnet.as_deref(),
        subcluster: None,
    };
    networks::compare(&own, &theirs, &at, verdict);
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
        nested::OF_THE_UNDERLAY,
        databases::WRONG_NAME,
        databases::TOO_MANY,
        networks::AS_NUMBERS,
        networks::DATA_SUBNETS,
        networks::SUBCLUSTERS,
        placement::CONTROLS,
        placement::VROUTERS,
        placement::REDIS,
        ports::OF_DATABASES,
        ports::TAKEN,
    ],
    tells_absence: [
        (networks::SUBCLUSTERS, CONTROLS_BY_SUBCLUSTER),
        (presence::MISSING, presence::CONFIGS),
        (presence::MISSING, presence::RABBITMQS),
        (presence::MISSING, presence::REDIS),
        (presence::MISSING, presence::ZOOKEEPERS),
    ],
    indexes: [
        CONTROLS,
        CONTROLS_BY_SUBCLUSTER,
        NODES,
        presence::CONFIGS,
        presence::RABBITMQS,
        presence::REDIS,
        presence::ZOOKEEPERS,
    ],
    validate: [manager, vrouter],
}
