//! The cluster's network and its name. kube-manager deletes each virtual machine and load balancer of the whole cloud that
//! carries the name of its cluster and is not its own, so two clusters of one name delete each other's pods.

use super::World;
use crate::catalogue::Code;
use crate::finding::{Report, Subject};
use crate::input::Permission;
use crate::live::TraceOwner;

/// The name that clusters have where none was chosen.
const DEFAULT_NAME: &str = "k8s";

pub(super) fn check(world: &World, report: &mut Report) {
    network(world, report);
    default_name(world, report);
    name_in_use(world, report);
}

fn network(world: &World, report: &mut Report) {
    let network = &world.input.network;
    if network.project.trim().is_empty() || network.name.trim().is_empty() {
        return;
    }
    if let Some(None) = report.known(&world.live.network, &[Code::NetworkMissing]) {
        let name = network.joined();
        report.find(
            Code::NetworkMissing,
            Subject::Network(name.clone()),
            format!("the cloud has no virtual network {name}"),
            "give clusterNetwork the domain, project and name of the network of the nodes, as OpenSDN has them",
        );
    }
}

fn default_name(world: &World, report: &mut Report) {
    if world.input.cluster == DEFAULT_NAME {
        report.find(
            Code::DefaultClusterName,
            Subject::Cluster(DEFAULT_NAME.to_owned()),
            "k8s is the name of each cluster for which none was chosen, clusters that are not nested among them: \
             kube-managers of one name delete each other's pods in the whole cloud"
                .to_owned(),
            "choose a clusterName of its own",
        );
    }
}

fn name_in_use(world: &World, report: &mut Report) {
    let name = &world.input.cluster;
    if let Some(before) = recorded(world).filter(|before| *before != name) {
        report.find(
            Code::ClusterNameTaken,
            Subject::Cluster(name.clone()),
            format!("in its record in the cloud this cluster is {before}: what kube-manager has made carries that name"),
            "keep the name; or remove the cluster from the cloud by nested remove, with what kube-manager has made, \
             and begin with the new one",
        );
    }
    let is_ours = is_ours(world);
    if !is_ours {
        in_record_of_another(world, report);
    }
    let Some(traces) = report.known(&world.live.traces, &[Code::ClusterNameTaken]) else { return };
    for trace in traces {
        match &trace.owner {
            TraceOwner::Ours => {}
            TraceOwner::Other(owner) => report.find(
                Code::ClusterNameTaken,
                Subject::Cluster(name.clone()),
                format!(
                    "the name {name} is in use: {owner} ({}), and each kube-manager would delete the other's pods",
                    trace.object
                ),
                "choose another clusterName, which no cluster of the whole cloud has",
            ),
            TraceOwner::Undecided if is_ours => {}
            TraceOwner::Undecided => report.unknown(
                Code::ClusterNameTaken,
                format!(
                    "{} carries the name {name}, and nothing on it says whose it is: if it is left from this \
                     cluster, say so; else choose another clusterName",
                    trace.object
                ),
            ),
        }
    }
}

/// Before its first pod nothing else of another cluster is in the cloud.
fn in_record_of_another(world: &World, report: &mut Report) {
    let name = &world.input.cluster;
    let Some(records) = world.live.records.known() else { return };
    if let Some(id) = records.other_clusters.get(name) {
        report.unknown(
            Code::ClusterNameTaken,
            format!(
                "the record {id} in the cloud is of a cluster {name}, too: if that is this cluster's from before, say so; \
                 else choose another clusterName"
            ),
        );
    }
}

/// The name that our record has.
fn recorded<'a>(world: &World<'a>) -> Option<&'a String> {
    world.live.records.known().and_then(|records| records.ours.cluster.as_ref())
}

/// Whether what the cloud has of the name counts as ours: our record has it, or it is said.
fn is_ours(world: &World) -> bool {
    world.input.choices.permissions.adopt_name == Permission::Granted
        || recorded(world) == Some(&world.input.cluster)
}

/// Why it is not known whose the name is, where that is neither in our record nor said.
pub(crate) fn doubt(world: &World, report: &Report) -> Option<String> {
    if is_ours(world) {
        return None;
    }
    let unknown = report.unknown.iter().find(|unknown| unknown.code == Code::ClusterNameTaken);
    unknown.map(|unknown| unknown.why.clone())
}
