//! Pods as any other.

use super::super::pods::asks;
use super::*;

/// All of them have an address, and reach all that they ask.
pub(super) fn good(plan: &Plan, input: &Input) -> PodAnswers {
    let peers = NODES.iter().zip(1..).map(|(node, number)| {
        let mut answer = answer(&format!("10.32.0.{number}"), vec![]);
        answer.findings.listens = Some(Seen::Is(24_224));
        ((*node).to_owned(), Ok(answer))
    });
    let peers: Answers = peers.collect();
    let asked = asks(plan, input, &peers).services;
    let askers = NODES.iter().zip(11..).map(|(node, number)| {
        let answer = answer(&format!("10.32.0.{number}"), answered(asked.clone()));
        ((*node).to_owned(), Ok(answer))
    });
    PodAnswers { askers: askers.collect(), peers, mark: MARK.to_owned() }
}

fn cluster(connectivity: Connectivity, change: impl FnOnce(&mut PodAnswers)) -> Cluster {
    let mut cluster = Cluster::good(connectivity);
    change(cluster.of_pods.as_mut().unwrap());
    cluster
}

fn asker<'a>(pods: &'a mut PodAnswers, node: &str) -> &'a mut NodeFindings {
    &mut pods.askers.get_mut(node).unwrap().as_mut().unwrap().findings
}

/// What the pod on `w1` says of what has this address becomes the reason.
fn without(pods: &mut PodAnswers, part: &str) {
    let mut all = asker(pods, "w1").services.iter_mut();
    let found = all.find(|one| one.wanted.at.to_string().starts_with(part)).unwrap();
    found.reached = Reached::No("no answer within 5 s".to_owned());
}

#[test]
fn an_address_of_another_network_is_none_of_the_cluster() {
    let flannel = cluster(Connectivity::FabricSnat, |pods| {
        asker(pods, "w1").addresses = vec!["10.244.1.7".parse().unwrap()];
    });
    let found = flannel.result(Part::Pods, "addresses");
    says(&found, "OSDN3084", Outcome::Fail, "10.244.1.7, which is in none of 10.32.0.0/12");
    let mut given = flannel;
    given.input.choices.kubernetes.pod_subnets = vec!["10.244.0.0/16".parse().unwrap()];
    let found = given.result(Part::Pods, "addresses");
    // The others are in the image's own network, which this cluster has not.
    says(&found, "OSDN3084", Outcome::Fail, "m1: its pod has 10.32.0.11");
}

#[test]
fn a_pod_that_does_not_start_where_one_on_the_nodes_network_answered_lacks_a_network() {
    let why = "no answer in 120 s: ContainerCreating: failed to setup network";
    let silent = |pods: &mut PodAnswers| {
        pods.askers.insert("w1".to_owned(), Err(why.to_owned()));
    };
    let mut cluster = cluster(Connectivity::FabricSnat, silent);
    says(&cluster.result(Part::Pods, "addresses"), "OSDN3084", Outcome::Fail, why);
    // Where that one is silent too, it may be the image.
    cluster.of_nodes.insert("w1".to_owned(), Err("ImagePullBackOff".to_owned()));
    says(&cluster.result(Part::Pods, "addresses"), "OSDN3084", Outcome::Uncertain, why);
}

#[test]
fn a_pod_that_does_not_reach_the_api_server_or_another_pod_fails() {
    let api = cluster(Connectivity::FabricSnat, |pods| without(pods, API));
    says(&api.result(Part::Pods, "kubernetes"), "OSDN3085", Outcome::Fail, "w1: 10.96.0.1:443");
    let peer = cluster(Connectivity::FabricSnat, |pods| without(pods, "10.32.0.1:"));
    let found = peer.result(Part::Pods, "other nodes");
    says(&found, "OSDN3086", Outcome::Fail, "1 of 1 not reached: m1 (10.32.0.1:24224)");
    // What a pod says of the peer on its own node is not the question.
    let own = cluster(Connectivity::FabricSnat, |pods| without(pods, "10.32.0.2:"));
    says(&own.result(Part::Pods, "other nodes"), "OSDN3086", Outcome::Ok, "2/2 nodes");
    let other = cluster(Connectivity::FabricSnat, |pods| pods.mark = "another".to_owned());
    let found = other.result(Part::Pods, "other nodes");
    says(&found, "OSDN3086", Outcome::Fail, "something else answers");
    let mut unknown = cluster(Connectivity::FabricSnat, |pods| {
        asker(pods, "w1").services.clear();
    });
    says(&unknown.result(Part::Pods, "other nodes"), "OSDN3086", Outcome::Uncertain, "older");
    unknown.input.choices.kubernetes.api_service = Fact::Unknown("is forbidden".to_owned());
    says(&unknown.result(Part::Pods, "kubernetes"), "OSDN3085", Outcome::Uncertain, "forbidden");
}

#[test]
fn pods_have_to_reach_the_config_api_by_link_local_services_and_need_not_with_snat() {
    let by_row = cluster(Connectivity::LinkLocal, |pods| without(pods, "10.10.10.1:8082"));
    says(&by_row.result(Part::Pods, "Config API"), "OSDN3087", Outcome::Fail, "10.10.10.1:8082");
    let by_snat = cluster(Connectivity::FabricSnat, |pods| without(pods, "192.168.1.100:8082"));
    let found = by_snat.result(Part::Pods, "Config API");
    says(&found, "OSDN3087", Outcome::Warn, "192.168.1.100:8082");
    let silent = cluster(Connectivity::LinkLocal, |pods| asker(pods, "w1").services.clear());
    says(&silent.result(Part::Pods, "Config API"), "OSDN3087", Outcome::Uncertain, "older");
}

#[test]
fn with_one_node_there_is_no_peer_and_without_pods_nothing_is_claimed() {
    let one = cluster(Connectivity::FabricSnat, |pods| {
        pods.peers.remove("w1");
        pods.askers.remove("w1");
    });
    says(&one.result(Part::Pods, "other nodes"), "OSDN3086", Outcome::Skipped, "no pod on another");
    let mut none = one;
    none.of_pods = None;
    for found in none.verified().results.iter().filter(|one| one.part == Part::Pods) {
        assert_eq!(found.result, Outcome::Skipped, "{found:#?}");
        assert!(found.message.contains("--no-pods"), "{found:#?}");
    }
}
