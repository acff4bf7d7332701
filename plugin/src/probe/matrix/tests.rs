//! What nodes are given to try, by worlds: of which ports, and how long it is.

use opensdn_node_probe::{Holder, PortFinding, Seen, Trial};
use serde_json::json;

use super::*;
use crate::checks::tests::{findings, node};
use crate::probe::Answer;
use crate::snapshot::Read;

const TOKEN: &str = "opensdn-probe-0a1b2c3d";

/// A cluster without a Manager: three nodes of the control plane, and so many others. All of them have answered.
fn cluster(workers: u16) -> (World, Answers) {
    let mut nodes = Vec::new();
    let mut answers = Answers::new();
    for number in 0..workers + 3 {
        let [high, low] = number.to_be_bytes();
        let address = format!("10.200.{high}.{low}");
        let is_worker = number >= 3;
        let name = format!("{}-{number:04}", if is_worker { "w" } else { "m" });
        let mut node = node(&name, &address);
        if is_worker {
            node["metadata"]["labels"] = json!({"kubernetes.io/os": "linux"});
        }
        nodes.push(node);
        let answer = Answer { findings: findings(&address), ahead: Seen::Is(0) };
        answers.insert(name, Ok(answer));
    }
    let mut world = World { nodes: Read::Known(nodes), ..World::default() };
    world.pods = Read::Known(vec![]);
    (world, answers)
}

fn of<'a>(plan: &'a Plan, node: &str) -> (&'a Peer, &'a PeerGroup) {
    let (address, peer) = plan.peers.iter().find(|(_, peer)| peer.node == node).unwrap();
    let group = plan.matrix.groups.iter().find(|group| group.addresses.contains(address));
    (peer, group.unwrap())
}

fn needs(plan: &Plan, from: &str, to: &str) -> Vec<(u16, &'static str, Trial)> {
    let of = of(plan, from).1.needs(of(plan, to).1).into_iter();
    of.map(|(port, trial)| (port.number, port.transport.word(), trial)).collect()
}

fn hold(answers: &mut Answers, node: &str, number: u16, transport: Transport) {
    let findings = &mut answers.get_mut(node).unwrap().as_mut().unwrap().findings;
    let address = findings.addresses[0];
    let port = WantedPort { number, transport };
    let holder = Seen::Is(Holder::Hidden("of others".to_owned()));
    findings.ports.push(PortFinding { port, address, holder });
}

#[test]
fn the_document_is_bounded_whatever_the_number_of_nodes() {
    for workers in [0, 17, 18, 997, 4997] {
        let (world, answers) = cluster(workers);
        let plan = Plan::of(&world, &answers, None, TOKEN);
        let wanted = plan.wanted(Duration::from_secs(120));
        let text = serde_json::to_string(&wanted).unwrap();
        assert!(text.len() < 64 << 10, "{workers}: {}", text.len());
        let expected = if workers < 18 { Extent::Full } else { Extent::Sample };
        assert_eq!(plan.matrix.extent, expected, "{workers}");
        // A thousand fit, and what does not is said.
        assert_eq!(plan.left_out.is_empty(), workers <= 997, "{workers}");
        assert_eq!(plan.peers.len() + plan.left_out.len(), answers.len());
        assert!((20..=90).contains(&plan.matrix.seconds));
        assert_eq!(plan.matrix.groups.len(), if workers == 0 { 1 } else { 2 });
        assert!(plan.matrix.groups[0].is_member, "the control plane has its place in any case");
    }
    let (world, answers) = cluster(2);
    let sample = Plan::of(&world, &answers, Some(Extent::Sample), TOKEN);
    assert_eq!((sample.matrix.extent, sample.matrix.token.as_str()), (Extent::Sample, TOKEN));
    let wanted = sample.wanted(Duration::from_secs(10));
    assert_eq!(wanted.matrix.unwrap().seconds, 5, "it answers in its time");
}

#[test]
fn also_where_each_node_has_other_ports_the_document_is_bounded() {
    let (world, mut answers) = cluster(997);
    let names: Vec<String> = answers.keys().cloned().collect();
    let udp = [53, 514, 3514, 6343, 4739, 3333, 4789, 6635];
    for (number, name) in names.iter().enumerate() {
        for (bit, port) in udp.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1) {
            hold(&mut answers, name, *port, Transport::Udp);
            hold(&mut answers, name, 8082 + u16::try_from(bit).unwrap(), Transport::Tcp);
        }
    }
    let plan = Plan::of(&world, &answers, None, TOKEN);
    let text = serde_json::to_string(&plan.wanted(Duration::from_secs(120))).unwrap();
    assert!(text.len() < 64 << 10, "{}", text.len());
    assert_eq!(plan.peers.len() + plan.left_out.len(), 1000);
}

#[test]
fn vrouters_need_what_agents_ask_and_the_control_plane_all_of_itself() {
    let (world, answers) = cluster(2);
    let plan = Plan::of(&world, &answers, None, TOKEN);
    let (tcp, udp, answer) = ("TCP", "UDP", Trial::Answer);
    assert_eq!(
        needs(&plan, "w-0003", "m-0000"),
        [
            (53, tcp, answer),
            (53, udp, answer),
            (4789, udp, answer),
            (5269, tcp, answer),
            (6635, udp, answer),
            (8082, tcp, answer),
            (8086, tcp, answer),
            (8093, tcp, answer),
        ]
    );
    let tunnels = [(4789, udp, answer), (6635, udp, answer)];
    assert_eq!(needs(&plan, "w-0003", "w-0004"), tunnels);
    assert_eq!(needs(&plan, "m-0000", "w-0003"), tunnels);
    let among = needs(&plan, "m-0000", "m-0001");
    // RabbitMQ's management among them; neither JMX nor rndc, nor what is for people at an agent.
    for number in [179, 2181, 2888, 5673, 7013, 8082, 15_673, 25_673] {
        assert!(among.contains(&(number, tcp, answer)), "{number}: {among:?}");
    }
    assert!(among.iter().all(|(number, ..)| ![7201, 8094, 8085, 9091].contains(number)));
}

#[test]
fn what_is_held_is_left_alone_and_where_components_run_nothing_is_taken_from_them() {
    let (mut world, mut answers) = cluster(2);
    for (number, transport) in
        [(8082, Transport::Tcp), (179, Transport::Tcp), (4789, Transport::Udp)]
    {
        hold(&mut answers, "m-0001", number, transport);
    }
    let pod =
        json!({"metadata": {"labels": {"tf_manager": "vrouter"}}, "spec": {"nodeName": "w-0004"}});
    world.pods = Read::Known(vec![pod]);
    let plan = Plan::of(&world, &answers, None, TOKEN);
    let among = needs(&plan, "m-0000", "m-0001");
    assert!(among.contains(&(8082, "TCP", Trial::Connect)), "{among:?}");
    let is_left = |number: u16| among.iter().all(|(other, ..)| *other != number);
    assert!(is_left(179) && is_left(4789), "{among:?}");
    let held: Vec<u16> = of(&plan, "m-0001").0.held.keys().map(|port| port.number).collect();
    assert_eq!(held, [179, 4789]);
    assert_eq!(needs(&plan, "w-0003", "w-0004"), [], "UDP of an agent is its own");
    assert!(of(&plan, "w-0004").1.answered().is_empty());
    assert_eq!(of(&plan, "w-0004").0.held.len(), 2);
    // Where pods may not be read it may be so everywhere.
    world.pods = Read::Unknown("is forbidden".to_owned());
    let plan = Plan::of(&world, &answers, None, TOKEN);
    assert!(plan.matrix.groups.iter().all(|group| group.answered().is_empty()));
}

#[test]
fn a_node_that_did_not_answer_or_has_the_address_of_another_is_not_tried() {
    let (world, mut answers) = cluster(2);
    answers.insert("m-0002".to_owned(), Err("no answer in 120 s".to_owned()));
    let address = answers["m-0000"].as_ref().unwrap().findings.addresses.clone();
    answers.get_mut("m-0001").unwrap().as_mut().unwrap().findings.addresses = address;
    answers.get_mut("w-0003").unwrap().as_mut().unwrap().findings.addresses.clear();
    let plan = Plan::of(&world, &answers, None, TOKEN);
    let nodes: Vec<String> = plan.nodes().unwrap().into_keys().collect();
    assert_eq!(nodes, ["m-0000", "w-0004"]);
    assert!(plan.left_out["m-0001"].contains("m-0000 has the same address"), "{plan:?}");
    assert!(plan.left_out["w-0003"].contains("was not given"), "{plan:?}");
    answers.remove("w-0004");
    assert_eq!(Plan::of(&world, &answers, None, TOKEN).nodes(), None, "it has no other");
}

#[test]
fn only_the_tunnels_of_the_encapsulations_that_are_named_are_needed() {
    let (mut world, answers) = cluster(2);
    let manager = |stated: Value| {
        json!({"metadata": {"name": "c", "namespace": "tf"}, "spec": {"services": {"vrouters": [
            {"metadata": {"name": "v"}, "spec": {"serviceConfiguration": {"encapsulationPriorities": stated}}}]}}})
    };
    let mut numbers = |stated: Value| -> Vec<u16> {
        world.managers = Read::Known(vec![manager(stated)]);
        let plan = Plan::of(&world, &answers, None, TOKEN);
        needs(&plan, "w-0003", "w-0004").into_iter().map(|(number, ..)| number).collect()
    };
    assert_eq!(numbers(json!(["MPLSoUDP", "MPLSoGRE"])), [6635]);
    assert_eq!(numbers(json!(["VXLAN"])), [4789]);
    assert_eq!(numbers(Value::Null), [4789, 6635]);
}
