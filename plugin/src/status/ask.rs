//! Reads the world of `status`: one list for each kind, in one call whatever its length (but for Secrets, which are read
//! in pages), and few objects by their names.
//! A Manager's status has what the operator knows of all its services, so that their objects need not be read.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_crds::component::{COMPONENTS, Component};
use opensdn_deploy::names;

use super::components::{TYPE, owner};
use super::denied::{Denied, denied};
use super::world::World;
use crate::snapshot::Read;
use crate::snapshot::ask::Asker;
use crate::snapshot::certificates;
use crate::snapshot::places::Places;

/// Lists for objects of components, besides the seven that are always asked for, and that of inventories: twelve together.
/// That of the webhook's replicas is asked for where there is one less of these.
const MOST_KINDS: usize = 4;
/// Namespaces in which upstream's operator is looked for.
const MOST_NAMESPACES: usize = 3;
const TF: &str = "/apis/tf.tungsten.io/v1alpha1";

/// Which part of the cluster is asked about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Of one namespace, or of all.
    pub(crate) namespace: Option<String>,
    /// The namespace of the webhook.
    pub(crate) control_namespace: String,
    /// A kind whose objects are read in any case.
    pub(crate) kind: Option<&'static Component>,
}

impl Scope {
    /// The path of a list, of the namespace or of all.
    fn path(&self, api: &str, plural: &str) -> String {
        format!("{api}/{}{plural}", self.within())
    }

    /// The same of one namespace, where components are in no other: what a tenant has labelled elsewhere, as large and as many
    /// as he likes, is not read.
    fn narrowed(&self, own: Option<&BTreeSet<String>>) -> Self {
        let mut own = own.into_iter().flatten();
        let (first, second) = (own.next(), own.next());
        let one = first.filter(|_| second.is_none()).cloned();
        Self { namespace: self.namespace.clone().or(one), ..self.clone() }
    }

    /// What stands in it before the plural.
    fn within(&self) -> String {
        self.namespace
            .as_ref()
            .map(|namespace| format!("namespaces/{namespace}/"))
            .unwrap_or_default()
    }
}

/// The paths of lists: pods, StatefulSets, DaemonSets.
fn lists_of(scope: &Scope) -> [String; 3] {
    let labelled =
        |api: &str, plural: &str| format!("{}?labelSelector={TYPE}", scope.path(api, plural));
    [
        labelled("/api/v1", "pods"),
        labelled("/apis/apps/v1", "statefulsets"),
        labelled("/apis/apps/v1", "daemonsets"),
    ]
}

/// The paths of objects: the operator's Deployment and Lease, the webhook's with what it is asked by, and the other
/// Deployment beside it.
fn objects_of(places: &Places) -> [String; 6] {
    let deployment = |namespace: &str, name: &str| {
        format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
    };
    let lease = |namespace: &str, name: &str| {
        format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
    };
    [
        deployment(&places.operator, names::operator::NAME),
        lease(&places.operator, names::operator::LEADER_LEASE),
        deployment(&places.webhook, names::webhook::NAME),
        lease(&places.webhook, names::webhook::LEADER_LEASE),
        format!(
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{}",
            names::webhook::NAME
        ),
        deployment(&places.webhook, names::configuration::NAME),
    ]
}

/// Reads it. What may not be read is unknown in it.
pub(crate) async fn world(asker: &Asker, scope: &Scope) -> World {
    let places = Places::of(asker, &scope.control_namespace).await;
    let objects = objects_of(&places);
    let [operator, lease, webhook, webhook_lease, reviews, configuration] = &objects;
    let of_cluster = Box::pin(async {
        tokio::join!(
            of_managers(asker, scope, &places),
            asker.list("/api/v1/nodes"),
            asker.list("/apis/opensdn.io/v1alpha1/admissionpolicies"),
        )
    });
    let of_programs = Box::pin(async {
        tokio::join!(
            asker.get(operator),
            asker.get(lease),
            asker.get(webhook),
            asker.get(webhook_lease),
            asker.get(reviews),
            asker.get(configuration)
        )
    });
    let (of_cluster, of_programs) = tokio::join!(of_cluster, of_programs);
    let (OfManagers { managers, secrets, workloads }, nodes, policies) = of_cluster;
    let [pods, stateful_sets, daemon_sets] = workloads;
    let (operator, lease, webhook, webhook_lease, reviews, configuration) = of_programs;
    let mut world = World {
        managers,
        pods,
        stateful_sets,
        daemon_sets,
        nodes,
        policies,
        secrets,
        operator,
        lease,
        webhook,
        webhook_lease,
        reviews,
        configuration,
        places,
        ..World::default()
    };
    let (kinds, rest) = kinds(&world, scope.kind);
    world.not_listed = rest;
    let has_room = kinds.len() < MOST_KINDS;
    let alone = objects_of_kinds(asker, scope, kinds);
    let of_webhook = of_webhook(asker, &world, has_room);
    let (alone, tf_operators, denied) =
        tokio::join!(alone, tf_operators(asker, &world), Box::pin(of_webhook));
    (world.alone, world.tf_operators, world.denied) = (alone, tf_operators, denied);
    world
}

/// What the webhook has denied, where there is a policy by which it does so, and room for a list.
async fn of_webhook(asker: &Asker, world: &World, has_room: bool) -> Denied {
    match (world.policies.items(), world.webhook.known()) {
        ([], _) | (_, None) => Denied::Nothing,
        _ if !has_room => Denied::Unknown("no more lists are asked for".to_owned()),
        _ => denied(asker, &world.places).await,
    }
}

/// Upstream's operators, each of which looks after the Managers of its namespace. A name says enough there: who may make
/// Deployments beside Managers looks after them.
async fn tf_operators(asker: &Asker, world: &World) -> Vec<serde_json::Value> {
    let namespaces: BTreeSet<&str> =
        world.managers.items().iter().map(crate::snapshot::namespace).collect();
    let mut found = Vec::new();
    for namespace in namespaces.into_iter().take(MOST_NAMESPACES) {
        let path = format!(
            "/apis/apps/v1/namespaces/{namespace}/deployments/{}",
            crate::snapshot::TF_OPERATOR
        );
        found.extend(asker.get(&path).await.known().cloned());
    }
    found
}

/// What is read of Managers and in the namespaces of components, which are known by them.
struct OfManagers {
    managers: Objects,
    secrets: Objects,
    /// Pods, StatefulSets, DaemonSets.
    workloads: [Objects; 3],
}

async fn of_managers(asker: &Asker, scope: &Scope, places: &Places) -> OfManagers {
    let managers = asker.list(&scope.path(TF, "managers")).await;
    let own = places.of_components(&managers);
    let [pods, stateful_sets, daemon_sets] = lists_of(&scope.narrowed(own.as_ref()));
    let in_scope = scope.within();
    let (secrets, pods, stateful_sets, daemon_sets) = tokio::join!(
        certificates::secrets(asker, &in_scope, own.as_ref()),
        asker.list(&pods),
        asker.list(&stateful_sets),
        asker.list(&daemon_sets)
    );
    let workloads = [pods, stateful_sets, daemon_sets].map(|read| within(read, own.as_ref()));
    OfManagers { managers, secrets, workloads }
}

type Objects = Read<Vec<serde_json::Value>>;

/// Those of a list that are in one of the namespaces.
fn within(
    read: Read<Vec<serde_json::Value>>,
    namespaces: Option<&BTreeSet<String>>,
) -> Read<Vec<serde_json::Value>> {
    match (read, namespaces) {
        (Read::Known(mut items), Some(namespaces)) => {
            items.retain(|one| namespaces.contains(crate::snapshot::namespace(one)));
            Read::Known(items)
        }
        (read, _) => read,
    }
}

/// The kinds whose objects are read, and those whose objects might be there and are not.
fn kinds(
    world: &World,
    asked: Option<&'static Component>,
) -> (Vec<&'static Component>, Vec<&'static str>) {
    let asked = asked.into_iter();
    match &world.managers {
        // The API server does not know our kinds.
        Read::Absent => return (Vec::new(), Vec::new()),
        Read::Known(managers) if !managers.is_empty() => {
            let kinds = asked.chain(unexplained(world));
            return (once(kinds).into_iter().take(MOST_KINDS).collect(), Vec::new());
        }
        Read::Known(_) | Read::Unknown(_) => {}
    }
    // Without a Manager any kind may have objects. What others need comes first.
    let mut by_depth: Vec<&'static Component> = COMPONENTS.iter().collect();
    by_depth.sort_by_key(|facts| super::depth(facts));
    let kinds = once(asked.chain(unexplained(world)).chain(by_depth));
    let rest = kinds.iter().skip(MOST_KINDS).map(|facts| facts.kind).collect();
    (kinds.into_iter().take(MOST_KINDS).collect(), rest)
}

/// Kinds of workloads that no Manager's service explains.
fn unexplained(world: &World) -> Vec<&'static Component> {
    let workloads = world.stateful_sets.items().iter().chain(world.daemon_sets.items());
    let owners = workloads.filter_map(|workload| Some((owner(workload)?, workload)));
    let alone = owners.filter(|((facts, name), workload)| {
        let namespace = crate::snapshot::namespace(workload);
        let mut managers = world.managers.items().iter();
        !managers.any(|manager| {
            crate::snapshot::namespace(manager) == namespace
                && super::components::has(manager, facts, name)
        })
    });
    alone.map(|((facts, _), _)| facts).collect()
}

/// Each once, in the order in which they came.
fn once(kinds: impl Iterator<Item = &'static Component>) -> Vec<&'static Component> {
    let mut seen = BTreeSet::new();
    kinds.filter(|facts| seen.insert(facts.kind)).collect()
}

async fn objects_of_kinds(
    asker: &Asker,
    scope: &Scope,
    kinds: Vec<&'static Component>,
) -> BTreeMap<&'static str, Read<Vec<serde_json::Value>>> {
    let mut running = tokio::task::JoinSet::new();
    for facts in kinds {
        let (asker, path) = (asker.clone(), scope.path(TF, facts.plural));
        running.spawn(async move { (facts.kind, asker.list(&path).await) });
    }
    running.join_all().await.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_components_are_in_one_namespace_nothing_of_others_is_read() {
        let paths = |own: &[&str], namespace: Option<&str>| {
            let own: BTreeSet<String> = own.iter().map(|one| (*one).to_owned()).collect();
            let scope = Scope { namespace: namespace.map(str::to_owned), ..Scope::default() };
            let [pods, ..] = lists_of(&scope.narrowed(Some(&own)));
            pods
        };
        assert_eq!(paths(&["tf"], None), "/api/v1/namespaces/tf/pods?labelSelector=tf_manager");
        assert_eq!(paths(&["net", "tf"], None), "/api/v1/pods?labelSelector=tf_manager");
        let asked = "/api/v1/namespaces/net/pods?labelSelector=tf_manager";
        assert_eq!(paths(&["tf"], Some("net")), asked);
    }
}
