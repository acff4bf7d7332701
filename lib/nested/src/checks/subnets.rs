//! The networks of the cluster's pods and Services, against those of its nodes and of the cloud.

use std::collections::BTreeSet;

use super::World;
use crate::catalogue::Code;
use crate::finding::{Report, Subject};
use crate::subnet::Subnet;

pub(super) fn check(world: &World, report: &mut Report) {
    unknown(world, report);
    empty(world, report);
    api_service(world, report);
    of_the_nodes(world, report);
    of_the_fabric(world, report);
    of_other_clusters(world, report);
}

/// What overlaps with a network that is not known is not known either.
fn unknown(world: &World, report: &mut Report) {
    if let Some(why) = world.input.choices.kubernetes.unknown_subnets() {
        for code in [
            Code::AddressOfCluster,
            Code::SubnetOfNodes,
            Code::SubnetOfFabric,
            Code::SubnetOfOtherCluster,
        ] {
            report.unknown(code, format!("not all networks of pods and Services are known: {why}"));
        }
    }
}

fn empty(world: &World, report: &mut Report) {
    let kubernetes = &world.input.choices.kubernetes;
    if kubernetes.unknown_subnets().is_some() {
        return;
    }
    let parts = [
        ("networks of pods", &kubernetes.pod_subnets, "10.32.0.0/12"),
        ("networks of Services", &kubernetes.service_subnets, "10.96.0.0/12"),
        ("networks of pods in the fabric", &kubernetes.fabric_subnets, "10.64.0.0/12"),
    ];
    for (field, _, default) in parts.into_iter().filter(|(_, given, _)| given.is_empty()) {
        report.find(
            Code::SubnetsEmpty,
            Subject::Field(field.to_owned()),
            format!("no {field} are given: the image of kube-manager takes {default}"),
            "give the networks of this cluster, unless they are these",
        );
    }
}

/// Its IPAM has to have every ClusterIP.
fn api_service(world: &World, report: &mut Report) {
    let kubernetes = &world.input.choices.kubernetes;
    let Some(address) = report.known(&kubernetes.api_service, &[Code::ApiServiceOutside]) else {
        return;
    };
    let subnets = kubernetes.subnets();
    let mut services =
        subnets.iter().filter(|(what, _)| *what == "Services").map(|(_, subnet)| subnet);
    if !services.any(|subnet| subnet.contains(*address)) {
        report.find(
            Code::ApiServiceOutside,
            Subject::Address(*address),
            format!("the Service kubernetes has {address}, which is in none of the networks of Services: no pod reaches it"),
            "give the networks of kubectl get servicecidrs",
        );
    }
}

fn overlaps<'a>(
    world: &World,
    others: impl IntoIterator<Item = &'a Subnet>,
) -> BTreeSet<(&'static str, Subnet, Subnet)> {
    let ours = world.input.choices.kubernetes.subnets();
    let mut found = BTreeSet::new();
    for other in others {
        let met = ours.iter().filter(|(_, subnet)| subnet.overlaps(*other));
        found.extend(met.map(|(what, subnet)| (*what, *subnet, *other)));
    }
    found
}

fn of_the_nodes(world: &World, report: &mut Report) {
    let Some(network) = report.known(&world.live.network, &[Code::SubnetOfNodes]) else { return };
    let subnets = network.iter().flat_map(|network| &network.subnets);
    for (what, subnet, other) in overlaps(world, subnets) {
        report.find(
            Code::SubnetOfNodes,
            Subject::Network(subnet.to_string()),
            format!(
                "the network {subnet} of {what} overlaps {other} of {}: a pod would look for nodes among pods",
                world.input.network.joined()
            ),
            "choose a network for it that is not in the cloud",
        );
    }
}

fn of_the_fabric(world: &World, report: &mut Report) {
    let control_plane: Vec<Subnet> =
        world.input.control_plane().into_iter().filter_map(|one| Subnet::new(one, 32)).collect();
    for (what, subnet, node) in overlaps(world, &control_plane) {
        report.find(
            Code::SubnetOfFabric,
            Subject::Network(subnet.to_string()),
            format!("the network {subnet} of {what} has {}, a node of the control plane", node.first()),
            "choose another network: pods do not reach that node, and service addresses may not be from it",
        );
    }
}

/// Networks of pods are apart from each other until a policy connects them.
fn of_other_clusters(world: &World, report: &mut Report) {
    let Some(used) = report.known(&world.live.subnets, &[Code::SubnetOfOtherCluster]) else {
        return;
    };
    let own = format!("{}-", world.input.cluster);
    for one in used {
        let name = one.owner.rsplit(':').next().unwrap_or_default();
        let is_of_cluster = CLUSTER_ENDINGS.iter().any(|ending| name.ends_with(ending));
        if !is_of_cluster || name.starts_with(&own) {
            continue;
        }
        for (what, subnet, other) in overlaps(world, [&one.subnet]) {
            report.find(
                Code::SubnetOfOtherCluster,
                Subject::Network(subnet.to_string()),
                format!("the network {subnet} of {what} overlaps {other} of {}", one.owner),
                "choose another network if pods of both clusters are ever to reach each other",
            );
        }
    }
}

/// What kube-manager puts behind the name of the cluster.
const CLUSTER_ENDINGS: [&str; 5] = [
    "-pod-ipam",
    "-service-ipam",
    "-ip-fabric-ipam",
    "-default-pod-network",
    "-default-service-network",
];
