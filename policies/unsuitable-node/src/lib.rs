//! What the nodes do not have on which it is to run: huge pages, cores, memory; and a kernel module that is not for
//! their system.
//!
//! ```yaml
//! kind: Vrouter
//! spec:
//!   commonConfiguration: {nodeSelector: {role: compute}}
//!   serviceConfiguration: {hugePages2M: 1024}      # the nodes reserve 128, as upstream's README says
//! ```
//!
//! What the nodes have is looked up when the object is written. A node that comes later, or gets more
//! memory, is not seen here; so everything is a warning, which goes away with the next change.

mod distribution;
mod nodes;
mod quantity;

use opensdn_policy_components::{
    ComponentView, Field, Owners, Services, effective,
    nodes::{Selector, few},
    null_as_default,
};
use opensdn_policy_sdk::{Message, NoSettings, Outcome, Reads, Request, Severity, Verdict, policy};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    distribution::DISTRIBUTION,
    nodes::{Node, RESOURCES, nodes_of},
};

const HUGE_PAGES: Message = Message {
    code: "OSDN1807",
    severity: Severity::Warn,
    title: "nodes have fewer huge pages than the vrouters ask for",
    explanation: "The pod asks for them, so it stays Pending on a node that has not reserved as many, and \
        the node has no network.",
    hint: "reserve them on the nodes (vm.nr_hugepages, or hugepages= on the kernel's command line, then \
        restart kubelet), or lower the number; kubectl describe node shows what is allocatable",
};

const WORKERS: Message = Message {
    code: "OSDN1602",
    severity: Severity::Warn,
    title: "the Config API has more workers than its nodes have cores",
    explanation: "Each worker is a process that uses a core under load: they take it from each other, and \
        from the databases beside them.",
    hint: "lower apiWorkerCount to the cores of the smallest of the nodes, or less",
};

const HEAP: Message = Message {
    code: "OSDN1520",
    severity: Severity::Warn,
    title: "Cassandra's heap is more than half of the memory of a node",
    explanation: "Cassandra needs as much again outside of its heap, and the other services run beside \
        it: the kernel ends one of them when the memory is used up.",
    hint: "lower maxHeapSize to a quarter of the memory of the smallest node, or less",
};

const FABRIC_ADDRESS: Message = Message {
    code: "OSDN1605",
    severity: Severity::Warn,
    title: "the device managers of several nodes have one address",
    explanation: "fabricMgmtIP is what every device manager takes for its own address (host_ip), whichever node it is on. Queues \
        of RabbitMQ are named after it: with one address for all of them two managers share a queue, and what one of them \
        is sent, as to end a job, may reach the other.",
    hint: "leave fabricMgmtIP unset, so that each takes the address of its node, or have Config run on the node of that address \
        alone",
};

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration")]
    common: Option<Common>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

macro_rules! stand_alone {
    ($($function:ident: $kind:ident = $name:literal),+ $(,)?) => {$(
        #[derive(Reads)]
        #[reads(group = "tf.tungsten.io", kind = $name)]
        struct $kind {
            #[read("/metadata/ownerReferences")]
            owners: Option<Owners>,
            #[read("/spec")]
            spec: Option<Spec>,
        }

        fn $function(request: &Request<$kind>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
            let Some($kind { owners, spec: Some(spec) }) = &request.object else { return Ok(()) };
            if owners.as_ref().and_then(Owners::manager).is_some() {
                return Ok(());
            }
            let component = ComponentView::standalone(&request.kind, &request.name, spec);
            judge(&component, None, verdict)
        }
    )+};
}

stand_alone! {
    cassandra: Cassandra = "Cassandra",
    config: Config = "Config",
    vrouter: Vrouter = "Vrouter",
}

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
    distribution: Option<String>,
}

/// What asks something of a node; each kind has some of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Configuration {
    // Cassandra
    max_heap_size: Option<String>,
    // Config
    api_worker_count: Option<u64>,
    #[serde(rename = "fabricMgmtIP")]
    fabric_address: Option<String>,
    // Vrouter
    #[serde(rename = "hugePages2M")]
    small_pages: Option<i64>,
    #[serde(rename = "hugePages1G")]
    large_pages: Option<i64>,
    dpdk: Option<Dpdk>,
    #[serde(deserialize_with = "null_as_default")]
    profiles: Vec<IgnoredAny>,
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<Container>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Dpdk {
    #[serde(rename = "hugePages2M")]
    small_pages: Option<i64>,
    #[serde(rename = "hugePages1G")]
    large_pages: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: Option<String>,
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { common, services: Some(services) }) = &request.object else {
        return Ok(());
    };
    let nothing = Common::default();
    for component in services.walk() {
        judge(&component, Some(common.as_ref().unwrap_or(&nothing)), verdict)?;
    }
    Ok(())
}

/// What a component asks of each of its nodes: a resource, how much, and how a message says it.
struct Asked {
    message: &'static Message,
    /// Where it is said, in the settings.
    at: &'static str,
    resource: &'static str,
    amount: f64,
    text: String,
    /// What of a node it is more than.
    than: &'static str,
}

fn asked(component: &ComponentView<'_, Spec>) -> Vec<Asked> {
    let given = &component.spec.service_configuration;
    let mut all = Vec::new();
    all.extend(asked_pages(given));
    if let Some(number) = given.api_worker_count.filter(|number| *number > 1) {
        let text = format!("apiWorkerCount is {number}");
        let (at, resource) = ("/apiWorkerCount", "cpu");
        let (amount, than) = (quantity::of(number), "the cores of");
        all.push(Asked { message: &WORKERS, at, resource, amount, text, than });
    }
    let heap = given.max_heap_size.as_deref();
    if let Some((text, bytes)) = heap.and_then(|text| Some((text, quantity::bytes(text)?))) {
        let (at, resource) = ("/maxHeapSize", "memory");
        let text = format!("maxHeapSize is {text}");
        let (amount, than) = (2.0 * bytes, "half of the memory of");
        all.push(Asked { message: &HEAP, at, resource, amount, text, than });
    }
    all
}

/// For the kernel module pods ask for pages of one size: of two our operator takes the larger one (`misleading-field` says
/// what tf-operator takes). For DPDK they ask for both; where the group has no numbers of its own, those of the block hold.
fn asked_pages(given: &Configuration) -> Vec<Asked> {
    const OF_BLOCK: [&str; 2] = ["/dpdk/hugePages1G", "/dpdk/hugePages2M"];
    const OWN: [&str; 2] = ["/hugePages1G", "/hugePages2M"];
    let is_own = given.small_pages.is_some() || given.large_pages.is_some();
    let ([at_large, at_small], large, small) = match &given.dpdk {
        Some(block) if !is_own => (OF_BLOCK, block.large_pages, block.small_pages),
        _ => (OWN, given.large_pages, given.small_pages),
    };
    let sizes = [
        (large, at_large, "hugepages-1Gi", 1_u64 << 30),
        (small, at_small, "hugepages-2Mi", 2_u64 << 20),
    ];
    let asked = sizes.into_iter().filter_map(|(number, at, resource, size)| {
        let number = u64::try_from(number?).ok().filter(|number| *number > 0)?;
        let amount = quantity::of(number.saturating_mul(size));
        let field = at.trim_start_matches('/').replace('/', ".");
        let text = format!("{field} asks for {number} pages of each node");
        let than = "are allocatable on";
        Some(Asked { message: &HUGE_PAGES, at, resource, amount, text, than })
    });
    asked.take(if given.dpdk.is_some() { sizes.len() } else { 1 }).collect()
}

/// `common` is the Manager's `commonConfiguration`, of a component that it lists.
fn judge(
    component: &ComponentView<'_, Spec>,
    common: Option<&Common>,
    verdict: &mut Verdict,
) -> Outcome {
    let asked = asked(component);
    let module = distribution::module(component, common);
    let address = component.spec.service_configuration.fabric_address.as_deref();
    let address = address.filter(|address| component.kind == "Config" && !address.is_empty());
    if asked.is_empty() && module.is_none() && address.is_none() {
        return Ok(());
    }
    let own = component.spec.common_configuration.node_selector.as_ref();
    let inherited = common.map(|common| common.node_selector.as_ref());
    let Field { value: selector, .. } = effective(
        (own, component.shared("/nodeSelector")),
        inherited.map(|selector| (selector, "/spec/commonConfiguration/nodeSelector".into())),
    );
    let nodes = nodes_of(component.kind, selector)?;
    if let Some(module) = module {
        module.judge(component, &nodes, verdict);
    }
    if let Some(address) = address.filter(|_| nodes.len() > 1) {
        let text = format!(
            "{}: fabricMgmtIP is {address} on each of its {} nodes: {}",
            component.title(),
            nodes.len(),
            few(nodes.iter().map(|node| node.name.as_str()))
        );
        verdict.add(FABRIC_ADDRESS.at(component.setting("/fabricMgmtIP")).says(text));
    }
    for Asked { message, at, resource, amount, text, than } in asked {
        let lacks = |node: &&Node| node.has(resource).is_some_and(|has| has < amount);
        let small: Vec<&Node> = nodes.iter().filter(lacks).collect();
        if !small.is_empty() {
            let text = format!(
                "{}: {text}, more than {than} {} of its {} nodes: {}",
                component.title(),
                small.len(),
                nodes.len(),
                few(small.iter().map(|node| node.name.as_str()))
            );
            verdict.add(message.at(component.setting(at)).says(text));
        }
    }
    Ok(())
}

policy! {
    name: "unsuitable-node",
    summary: "the nodes have what is asked of them, and are what they are said to be",
    settings: NoSettings,
    messages: [HUGE_PAGES, WORKERS, HEAP, FABRIC_ADDRESS, DISTRIBUTION],
    indexes: [RESOURCES],
    validate: [manager, cassandra, config, vrouter],
}
