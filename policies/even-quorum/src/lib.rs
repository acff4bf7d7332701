//! ZooKeeper, RabbitMQ or the config database with an even number of members.
//!
//! There is no replicas field: one member runs on each node that the node selector matches. Of
//! four members three must be alive, so four survive the loss of one, as three do, and there is
//! one more to lose; when the network parts two from two, neither side has a majority.
//!
//! ```yaml
//! spec:
//!   commonConfiguration:
//!     nodeSelector: {rack: a}     # four nodes carry this label
//! ```
//!
//! The number of members is judged when the object is written. A node that gets the label later
//! is not seen here. Nor may a change take out more than one member at once of those that run, which is
//! judged also of what the operator makes of a Manager; how many members there are is said of the Manager alone.
//! Of a nested cluster, whose databases are those of its underlay, the addresses are counted that it is given.

mod members;
mod shrink;
mod underlay;

use opensdn_policy_components::{
    Field, Item, Level, Owners, effective, is_analytics_database,
    nodes::{NODES, Selector, few, selected},
    null_as_default,
};
use opensdn_policy_sdk::{
    Failure, Message, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use schemars::JsonSchema;
use serde::Deserialize;

use underlay::{Nested, Underlay};

/// Settings of the policy `even-quorum`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What an even number of members does to the request.
    pub severity: Level,
}

impl Default for Settings {
    fn default() -> Self {
        Self { severity: Level::Warn }
    }
}

const EVEN: Message = Message {
    code: "OSDN1205",
    severity: Severity::Warn,
    title: "a quorum service has an even number of members",
    explanation: "ZooKeeper, RabbitMQ and the config database run one member on each node that \
        their node selector matches. ZooKeeper and the database need more than half of them, RabbitMQ does with \
        clusterPartitionHandling pause_minority. An even number survives no more failures than one less, and a \
        network that parts in two halves stops both.",
    hint: "make it 1, 3 or 5: label one node more (kubectl label node NODE KEY=VALUE) or, while the service does not \
        run yet, one less (kubectl label node NODE KEY-)",
};

const NONE: Message = Message {
    code: "OSDN1202",
    severity: Severity::Warn,
    title: "no node matches the node selector of a quorum service",
    explanation: "The service gets no member, and all that depends on it waits until a node is \
        labelled. Usually a label is misspelt, or kubeadm gave the nodes another one.",
    hint: "compare with the labels of the nodes: kubectl get nodes --show-labels",
};

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration/nodeSelector")]
    selector: Option<Selector>,
    #[read("/spec/services/zookeeper")]
    zookeeper: Option<Item<Placed>>,
    #[read("/spec/services/rabbitmq")]
    rabbitmq: Option<Item<Placed>>,
    #[read("/spec/services/cassandras")]
    cassandras: Option<Vec<Item<Placed>>>,
    #[read("/spec/nested")]
    nested: Option<Nested>,
    #[read("/spec/services/kubemanager")]
    kubemanager: Option<Item<KubemanagerSpec>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KubemanagerSpec {
    #[serde(default, deserialize_with = "null_as_default")]
    service_configuration: KubemanagerConfiguration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct KubemanagerConfiguration {
    nested: Option<Nested>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placed {
    common_configuration: Option<Placement>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placement {
    node_selector: Option<Selector>,
}

/// The services that run on the nodes of one selector.
struct Group<'a> {
    selector: Field<Option<&'a Selector>>,
    /// Kind and name of each.
    services: Vec<(&'a str, String)>,
}

fn manager(request: &Request<Manager>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
    let Some(manager) = &request.object else { return Ok(()) };
    let services = Pointer::from("/spec/services");
    let single = [(&manager.zookeeper, "Zookeeper"), (&manager.rabbitmq, "Rabbitmq")];
    let single = single.into_iter().filter_map(|(item, kind)| {
        item.as_ref().map(|item| (item, kind, services.key(&kind.to_lowercase())))
    });
    let cassandras = manager.cassandras.iter().flatten().enumerate();
    let databases = cassandras
        .filter(|(_, item)| !is_analytics_database(item.name()))
        .map(|(number, item)| (item, "Cassandra", services.key("cassandras").index(number)));

    let mut groups: Vec<Group<'_>> = Vec::new();
    for (item, kind, at) in single.chain(databases) {
        let Some(component) = item.component(kind, &at) else { continue };
        let own = component.spec.common_configuration.as_ref();
        let selector = effective(
            (own.and_then(|own| own.node_selector.as_ref()), component.shared("/nodeSelector")),
            Some((manager.selector.as_ref(), "/spec/commonConfiguration/nodeSelector".into())),
        );
        match groups.iter_mut().find(|group| group.selector == selector) {
            Some(group) => group.services.push((kind, component.name.to_owned())),
            None => {
                groups.push(Group { selector, services: vec![(kind, component.name.to_owned())] })
            }
        }
    }
    for group in &groups {
        let members = judge_change(group, &request.namespace, verdict)?;
        judge_number(group, &members, settings, verdict);
    }
    judge_underlay(manager, verdict);
    Ok(())
}

/// What kube-manager has itself wins over what the Manager has.
fn judge_underlay(manager: &Manager, verdict: &mut Verdict) {
    let item = Pointer::from("/spec/services/kubemanager");
    let component =
        manager.kubemanager.as_ref().and_then(|one| one.component("Kubemanager", &item));
    let own = component.as_ref().and_then(|one| {
        Some((one.spec.service_configuration.nested.as_ref()?, one.setting("/nested")))
    });
    let nested = own.or_else(|| Some((manager.nested.as_ref()?, "/spec/nested".into())));
    if let Some((nested, at)) = nested {
        underlay::judge_nested(nested, &at, verdict);
    }
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Kubemanager")]
struct Kubemanager {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec/serviceConfiguration/nested")]
    nested: Option<Nested>,
}

fn kubemanager(request: &Request<Kubemanager>, _: &Settings, verdict: &mut Verdict) -> Outcome {
    let Some(Kubemanager { owners, nested: Some(nested) }) = &request.object else {
        return Ok(());
    };
    if owners.as_ref().and_then(Owners::manager).is_none() {
        underlay::judge_nested(nested, &"/spec/serviceConfiguration/nested".into(), verdict);
    }
    Ok(())
}

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "NestedCluster")]
struct NestedCluster {
    #[read("/spec/services")]
    services: Option<Underlay>,
}

fn nested_cluster(
    request: &Request<NestedCluster>,
    _: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    if let Some(NestedCluster { services: Some(services) }) = &request.object {
        underlay::judge(services, &"/spec/services".into(), verdict);
    }
    Ok(())
}

macro_rules! stand_alone {
    ($($function:ident: $kind:ident = $name:literal),+ $(,)?) => {$(
        #[derive(Reads)]
        #[reads(group = "tf.tungsten.io", kind = $name)]
        struct $kind {
            #[read("/spec/commonConfiguration/nodeSelector")]
            selector: Option<Selector>,
            #[read("/metadata/ownerReferences")]
            owners: Option<Owners>,
        }

        fn $function(request: &Request<$kind>, settings: &Settings, verdict: &mut Verdict) -> Outcome {
            match &request.object {
                Some($kind { selector, owners }) => {
                    standalone(request, (selector.as_ref(), owners.as_ref()), settings, verdict)
                }
                None => Ok(()),
            }
        }
    )+};
}

stand_alone! {
    zookeeper: Zookeeper = "Zookeeper",
    rabbitmq: Rabbitmq = "Rabbitmq",
    cassandra: Cassandra = "Cassandra",
}

fn standalone<T>(
    request: &Request<T>,
    (selector, owners): (Option<&Selector>, Option<&Owners>),
    settings: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    if request.kind == "Cassandra" && is_analytics_database(&request.name) {
        return Ok(());
    }
    let selector = effective((selector, "/spec/commonConfiguration/nodeSelector".into()), None);
    let services = vec![(request.kind.as_str(), request.name.clone())];
    let group = Group { selector, services };
    let members = judge_change(&group, &request.namespace, verdict)?;
    // A Manager that is stored with an even number may get its objects again.
    if owners.and_then(Owners::manager).is_none() {
        judge_number(&group, &members, settings, verdict);
    }
    Ok(())
}

/// Whether too many members go; the answer are the nodes of those that there would be.
fn judge_change(
    group: &Group<'_>,
    namespace: &str,
    verdict: &mut Verdict,
) -> Result<Vec<String>, Failure> {
    let members = selected(group.selector.value)?;
    if !members.is_empty() {
        for (kind, name) in &group.services {
            let service = (*kind, name.as_str(), namespace);
            shrink::judge(service, members.len(), &group.selector.at, verdict)?;
        }
    }
    Ok(members)
}

fn judge_number(group: &Group<'_>, members: &[String], settings: &Settings, verdict: &mut Verdict) {
    let titles = group.services.iter().map(|(kind, name)| format!("{kind} {name}"));
    let services = titles.collect::<Vec<_>>().join(", ");
    let wanted = members::describe(group.selector.value);
    let at = &group.selector.at;
    if members.is_empty() {
        verdict.add(NONE.at(at).says(format!("{services}: no node has {wanted}")));
    } else if members.len().is_multiple_of(2) {
        let number = members.len();
        let nodes = few(members.iter().map(String::as_str));
        verdict.add(EVEN.at(at).severity(settings.severity.severity()).says(format!(
            "{services}: {number} members, one on each node that has {wanted} ({nodes}); \
                 an even number survives no more failures than {}",
            number - 1
        )));
    }
}

policy! {
    name: "even-quorum",
    summary: "ZooKeeper, RabbitMQ and the config database have an odd number of members",
    settings: Settings,
    messages: [EVEN, NONE, shrink::FEWER, underlay::EVEN],
    tells_absence: [(NONE, NODES)],
    indexes: [NODES, shrink::STATEFUL_SETS],
    validate: [manager, zookeeper, rabbitmq, cassandra, kubemanager, nested_cluster],
}
