//! Pods as any other, one a node: whether they have an address of the cluster's networks, and reach the API server, each
//! other and the Config API. Some listen, and when their addresses are known, others ask.

use std::net::{Ipv4Addr, SocketAddr};

use opensdn_crds::nested_cluster::Connectivity;
use opensdn_nested::{Fact, Input, Plan, Role, Subnet};
use opensdn_node_probe::{FORMAT, Question, Reached, Wanted, WantedService};

use super::code::Code;
use super::services::{Target, targets};
use super::{Part, Verified, World};
use crate::checks::probed::{Said, rolled};
use crate::checks::report::{NodeResult, Outcome, Verdict};
use crate::probe::peers::{OLDER, address, all_reached, found, listener, questions};
use crate::probe::{Answer, Answers};

/// Of the Service `kubernetes`.
const API_PORT: u16 = 443;
/// What the image of kube-manager takes for pods, and for pods in the fabric.
const DEFAULTS: [([u8; 4], u8); 2] = [([10, 32, 0, 0], 12), ([10, 64, 0, 0], 12)];

/// What pods answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodAnswers {
    /// Those that listen.
    pub(crate) peers: Answers,
    /// Those that ask.
    pub(crate) askers: Answers,
    /// By which line peers are known.
    pub(crate) mark: String,
}

/// What the others ask.
pub(crate) fn asks(plan: &Plan, input: &Input, peers: &Answers) -> Wanted {
    let api = api(input).map(|at| WantedService { at, question: Question::Connect });
    let config = config(plan, input).map(Target::question);
    let services = api.into_iter().chain(config).chain(questions(peers)).collect();
    Wanted { format: FORMAT, services, ..Wanted::default() }
}

fn api(input: &Input) -> Option<SocketAddr> {
    let address = input.choices.kubernetes.api_service.known()?;
    Some((*address, API_PORT).into())
}

fn config(plan: &Plan, input: &Input) -> impl Iterator<Item = Target> {
    targets(plan, input).into_iter().filter(|one| one.role == Role::Config)
}

/// All that pods show; that they were not to be made is said.
pub(super) fn judge(world: &World<'_>) -> Vec<Verified> {
    let parts: [(Code, &str, &str, Judge); 4] = [
        (
            Code::PodWithoutNetwork,
            "pods have addresses",
            "an address of the networks of pods",
            of_address,
        ),
        (Code::PodWithoutApi, "pods reach the Service kubernetes", "connected", of_api),
        (Code::PodWithoutPeer, "pods reach pods on other nodes", "all of them", of_peers),
        (Code::PodWithoutConfig, "pods reach the Config API", "the expected answer", of_config),
    ];
    let each = parts.map(|(code, subject, good, judge)| {
        let verdict = match world.of_pods {
            None => Verdict::skipped("left out by --no-pods"),
            Some(pods) => of_nodes(world, pods, good, judge),
        };
        Verified::of(Part::Pods, code, subject, verdict)
    });
    each.into()
}

type Judge = fn(&World<'_>, &PodAnswers, &str, &Answer) -> Said;

fn of_nodes(world: &World<'_>, pods: &PodAnswers, good: &str, judge: Judge) -> Verdict {
    let results = pods.askers.iter().map(|(node, answer)| {
        let (result, message) = match answer {
            Ok(answer) => judge(world, pods, node, answer),
            Err(why) => (without(world, node), why.clone()),
        };
        NodeResult { name: node.clone(), result, message }
    });
    let results: Vec<NodeResult> = results.collect();
    let looked = results.iter().filter(|one| one.result != Outcome::Skipped);
    match results.first() {
        Some(first) if looked.count() == 0 => Verdict::skipped(first.message.clone()),
        _ => rolled(results, good),
    }
}

/// A pod of the same image answered on the network of the node: what this one lacks is a network.
fn without(world: &World<'_>, node: &str) -> Outcome {
    match world.of_nodes.get(node) {
        Some(Ok(_)) => Outcome::Fail,
        _ => Outcome::Uncertain,
    }
}

fn of_address(world: &World<'_>, pods: &PodAnswers, node: &str, asker: &Answer) -> Said {
    let kubernetes = &world.input.choices.kubernetes;
    let mut networks: Vec<Subnet> =
        kubernetes.pod_subnets.iter().chain(&kubernetes.fabric_subnets).copied().collect();
    let given = [kubernetes.pod_subnets.is_empty(), kubernetes.fabric_subnets.is_empty()];
    let defaults = DEFAULTS.iter().zip(given).filter(|(_, is_default)| *is_default);
    networks
        .extend(defaults.filter_map(|((first, length), _)| Subnet::new((*first).into(), *length)));
    let peer = pods.peers.get(node).and_then(|answer| answer.as_ref().ok());
    let addresses: Vec<Option<Ipv4Addr>> =
        [Some(asker), peer].into_iter().flatten().map(address).collect();
    let Some(first) = addresses.first().copied().flatten() else {
        return (Outcome::Fail, "its pod has no address of IPv4".to_owned());
    };
    let is_of_cluster =
        |address: Ipv4Addr| networks.iter().any(|network| network.contains(address));
    match addresses.into_iter().flatten().find(|address| !is_of_cluster(*address)) {
        Some(other) => {
            let networks = networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            (Outcome::Fail, format!("its pod has {other}, which is in none of {networks}"))
        }
        None => (Outcome::Ok, first.to_string()),
    }
}

fn of_api(world: &World<'_>, _: &PodAnswers, _: &str, asker: &Answer) -> Said {
    let at = match (&world.input.choices.kubernetes.api_service, api(world.input)) {
        (_, Some(at)) => at,
        (Fact::Unknown(why), None) => return (Outcome::Uncertain, why.clone()),
        (Fact::Known(_), None) => {
            return (Outcome::Uncertain, "its address is not known".to_owned());
        }
    };
    match found(asker, at).map(|one| &one.reached) {
        None => (Outcome::Uncertain, OLDER.to_owned()),
        Some(Reached::No(why)) => (Outcome::Fail, format!("{at}: {why}")),
        Some(_) => (Outcome::Ok, at.to_string()),
    }
}

fn of_peers(_: &World<'_>, pods: &PodAnswers, node: &str, asker: &Answer) -> Said {
    let others = pods.peers.iter().filter(|(other, _)| *other != node);
    let others: Vec<(&String, SocketAddr)> = others
        .filter_map(|(other, answer)| Some((other, listener(answer.as_ref().ok()?)?)))
        .collect();
    if others.is_empty() {
        let why = "no pod on another node listens";
        return (
            if pods.peers.len() > 1 { Outcome::Uncertain } else { Outcome::Skipped },
            why.to_owned(),
        );
    }
    all_reached(asker, &others, &pods.mark)
}

/// One address of it is enough.
fn of_config(world: &World<'_>, _: &PodAnswers, _: &str, asker: &Answer) -> Said {
    let mut wrong = None;
    for target in config(world.plan, world.input) {
        match found(asker, target.at).map(|one| target.judge(&one.reached)) {
            None => return (Outcome::Uncertain, OLDER.to_owned()),
            Some(Ok(good)) => return (Outcome::Ok, format!("{}: {good}", target.at)),
            Some(Err((_, why))) => wrong = wrong.or(Some(format!("{}: {why}", target.at))),
        }
    }
    let bad = match world.plan.connectivity {
        Connectivity::LinkLocal => Outcome::Fail,
        // Nodes need it, and pods need not.
        Connectivity::FabricSnat => Outcome::Warn,
    };
    match wrong {
        Some(why) => (bad, why),
        None => (Outcome::Uncertain, "the plan has no address of it".to_owned()),
    }
}
