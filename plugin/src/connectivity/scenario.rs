//! The tests: what each is about, and what it makes of what a pod answered.

use std::net::{IpAddr, SocketAddr};

use clap::ValueEnum;
use opensdn_node_probe::{Contact, Reached, Seen};

use super::{NAME, Places, PodAnswers, Tested};
use crate::checks::probed::{Said, rolled};
use crate::checks::report::{NodeResult, Outcome, Verdict};
use crate::probe::Answer;
use crate::probe::peers::{OLDER, address, all_reached, found, listener, why_not_reached};

/// A test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Pods start and have an address.
    PodAddress,
    /// Nodes reach the Service kubernetes.
    NodeToApi,
    /// Pods reach the Service kubernetes.
    PodToApi,
    /// Pods reach pods on their own node.
    PodToPodOnNode,
    /// Pods reach pods on other nodes.
    PodToPod,
    /// Pods reach a Service in front of pods.
    PodToService,
    /// Pods resolve names of the cluster.
    Dns,
    /// Pods reach what is named by --outside.
    Outside,
}

impl Scenario {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::PodAddress => "pod-address",
            Self::NodeToApi => "node-to-api",
            Self::PodToApi => "pod-to-api",
            Self::PodToPodOnNode => "pod-to-pod-on-node",
            Self::PodToPod => "pod-to-pod",
            Self::PodToService => "pod-to-service",
            Self::Dns => "dns",
            Self::Outside => "outside",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::PodAddress => "pods start and have an address",
            Self::NodeToApi => "nodes reach the Service kubernetes",
            Self::PodToApi => "pods reach the Service kubernetes",
            Self::PodToPodOnNode => "pods reach pods on their own node",
            Self::PodToPod => "pods reach pods on other nodes",
            Self::PodToService => "pods reach a Service in front of pods",
            Self::Dns => "pods resolve names of the cluster",
            Self::Outside => "pods reach what is outside of the cluster",
        }
    }

    /// What says more where it is not so.
    fn fix(self) -> &'static str {
        match self {
            // A vrouter brings the network of pods to its node, and a kube-manager gives pods their addresses.
            Self::PodAddress | Self::PodToPodOnNode => "kubectl opensdn status --depth 2",
            // Addresses of Services are kube-proxy's there.
            Self::NodeToApi => "kubectl -n kube-system get pods -l k8s-app=kube-proxy -o wide",
            Self::PodToPod => "kubectl opensdn check --probe --only P201,P203,P204,D304,S501,S502",
            Self::PodToApi | Self::PodToService => "kubectl opensdn logs kubemanager --files",
            Self::Dns => "kubectl -n kube-system get pods,endpoints -l k8s-app=kube-dns -o wide",
            Self::Outside => "kubectl opensdn status kubemanager",
        }
    }

    pub(super) fn tested(self, pods: &PodAnswers, places: &Places) -> Tested {
        let Verdict { outcome, message, fix: _, nodes } = self.verdict(pods, places);
        let is_bad = matches!(outcome, Outcome::Fail | Outcome::Warn);
        Tested {
            id: self.id(),
            title: self.title(),
            result: outcome,
            message,
            fix: is_bad.then(|| self.fix().to_owned()),
            nodes,
        }
    }

    fn verdict(self, pods: &PodAnswers, places: &Places) -> Verdict {
        let by_pods = |good: &str, judge: &dyn Fn(&str, &Answer) -> Said| {
            each(&pods.askers, good, &|node, answer| match answer {
                Ok(answer) => judge(node, answer),
                // That is another test's subject.
                Err(why) => (Outcome::Uncertain, why.clone()),
            })
        };
        match self {
            Self::PodAddress => each(&pods.askers, "have an address", &|node, answer| {
                of_address(pods, node, answer)
            }),
            Self::NodeToApi => each(&pods.of_nodes, "connected", &|_, answer| match answer {
                Ok(answer) => connected(answer, &places.api),
                Err(why) => (Outcome::Uncertain, why.clone()),
            }),
            Self::PodToApi => by_pods("connected", &|_, answer| connected(answer, &places.api)),
            Self::PodToPodOnNode => {
                by_pods("reached", &|node, answer| peers(pods, answer, |other| other == node))
            }
            Self::PodToPod if pods.peers.len() < 2 => {
                Verdict::skipped("there are pods on one node alone")
            }
            Self::PodToPod => {
                by_pods("all of them", &|node, answer| peers(pods, answer, |other| other != node))
            }
            Self::PodToService => by_pods("reached", &|_, answer| of_service(pods, places, answer)),
            Self::Dns => by_pods("resolved", &|_, answer| of_name(places, answer)),
            Self::Outside if places.outside.is_empty() => {
                Verdict::skipped("nothing is named by --outside")
            }
            Self::Outside => by_pods("connected", &|_, answer| of_outside(answer)),
        }
    }
}

fn each(
    answers: &crate::probe::Answers,
    good: &str,
    judge: &dyn Fn(&str, &Result<Answer, String>) -> Said,
) -> Verdict {
    let results = answers.iter().map(|(node, answer)| {
        let (result, message) = judge(node, answer);
        NodeResult { name: node.clone(), result, message }
    });
    rolled(results.collect(), good)
}

/// A pod of the same image that answers on the network of the node shows that what this one lacks is a network.
fn of_address(pods: &PodAnswers, node: &str, answer: &Result<Answer, String>) -> Said {
    let no_peer = pods.peers.get(node).and_then(|peer| peer.as_ref().err());
    match (answer, no_peer) {
        (Ok(answer), None) => match address(answer) {
            Some(address) => (Outcome::Ok, address.to_string()),
            None => (Outcome::Fail, "its pod has no address of IPv4".to_owned()),
        },
        (Err(why), _) | (Ok(_), Some(why)) => {
            let image_runs = pods.of_nodes.get(node).is_some_and(Result::is_ok);
            (if image_runs { Outcome::Fail } else { Outcome::Uncertain }, why.clone())
        }
    }
}

fn connected(answer: &Answer, at: &Result<SocketAddr, String>) -> Said {
    let at = match at {
        Ok(at) => *at,
        Err(why) => return (Outcome::Uncertain, why.clone()),
    };
    match found(answer, at).map(|one| &one.reached) {
        None => (Outcome::Uncertain, OLDER.to_owned()),
        Some(Reached::No(why)) => (Outcome::Fail, format!("{at}: {why}")),
        Some(_) => (Outcome::Ok, at.to_string()),
    }
}

/// Those on the nodes that are meant.
fn peers(pods: &PodAnswers, answer: &Answer, is_meant: impl Fn(&str) -> bool) -> Said {
    let others: Vec<(&String, SocketAddr)> = pods
        .peers
        .iter()
        .filter(|(other, _)| is_meant(other))
        .filter_map(|(other, answer)| Some((other, listener(answer.as_ref().ok()?)?)))
        .collect();
    if others.is_empty() {
        return (Outcome::Uncertain, "no pod listens there".to_owned());
    }
    all_reached(answer, &others, &pods.mark)
}

fn of_service(pods: &PodAnswers, places: &Places, answer: &Answer) -> Said {
    let at = match &places.service {
        Ok(at) => *at,
        Err(why) => return (Outcome::Uncertain, why.clone()),
    };
    match why_not_reached(answer, at, &pods.mark) {
        Err(why) => (Outcome::Uncertain, why.to_owned()),
        Ok(None) => (Outcome::Ok, at.to_string()),
        Ok(Some(why)) => (Outcome::Fail, format!("{at}: {why}")),
    }
}

fn of_name(places: &Places, answer: &Answer) -> Said {
    let Some(finding) = answer.findings.names.wanted.iter().find(|one| one.name == NAME) else {
        return (Outcome::Uncertain, OLDER.to_owned());
    };
    let addresses = match &finding.addresses {
        // A server that does not answer in time is none that answers.
        Seen::Unknown(why) => return (Outcome::Fail, format!("{NAME}: {why}")),
        Seen::Is(addresses) if addresses.is_empty() => {
            return (Outcome::Fail, format!("{NAME} leads nowhere"));
        }
        Seen::Is(addresses) => addresses,
    };
    let expected: Option<IpAddr> = places.api.as_ref().ok().map(SocketAddr::ip);
    match expected.filter(|expected| !addresses.contains(expected)) {
        None => (Outcome::Ok, NAME.to_owned()),
        Some(expected) => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            let addresses = addresses.join(", ");
            (Outcome::Fail, format!("{NAME} leads to {addresses}, and the Service has {expected}"))
        }
    }
}

fn of_outside(answer: &Answer) -> Said {
    let targets = &answer.findings.targets;
    if targets.is_empty() {
        return (Outcome::Uncertain, OLDER.to_owned());
    }
    let each = targets.iter().map(|one| {
        let place = format!("{}:{}", one.target.host, one.target.port);
        match &one.contact {
            Seen::Is(Contact::Made(_)) => (Outcome::Ok, place),
            Seen::Is(Contact::Failed(why)) => (Outcome::Fail, format!("{place}: {why}")),
            Seen::Unknown(why) => (Outcome::Fail, format!("{place}: {why}")),
        }
    });
    crate::checks::probed::worst(each.collect(), "connected")
}
