//! Worlds of what nodes reach of each other.

use std::net::IpAddr;

use opensdn_node_probe::{
    Extent, Matrix, MatrixFindings, Miss, Missed, PacketFindings, Seen, SilentPort, Stopped,
    Transport, WantedPort,
};
use serde_json::json;

use super::super::report::Outcome;
use super::super::world::World;
use super::probed::{findings, probed};
use super::{known, says, verdict};
use crate::probe::Answer;
use crate::probe::matrix::{Plan, Tried};
use crate::snapshot::Read;

const P203: &str = "P203";
const D304: &str = "D304";
const SECOND: i64 = 1_000_000;

/// Each node has reached the others.
pub(super) fn tried(world: &World) -> Tried {
    let answers = world.probed.clone().unwrap_or_default();
    let plan = Plan::of(world, &answers, None, "opensdn-probe-0a1b2c3d");
    let answers = plan.peers.iter().map(|(address, peer)| {
        let mut findings = findings(&address.to_string());
        findings.matrix = Some(Seen::Is(MatrixFindings {
            address: *address,
            since: 0,
            until: 50 * SECOND,
            tried: Some(20 * SECOND),
            silent: vec![],
            missed: vec![],
            left_out: 0,
            untried: 0,
            packets: Some(PacketFindings { passed: 2, ..PacketFindings::default() }),
        }));
        (peer.node.clone(), Ok(Answer { findings, ahead: Seen::Is(0) }))
    });
    Tried { answers: answers.collect(), plan }
}

/// Without components that run: their ports are free, and probes answer on them.
fn empty() -> World {
    let mut world = probed(|_| {});
    world.pods = Read::Known(vec![]);
    world.matrix = Some(tried(&world));
    world
}

fn answer<'a>(world: &'a mut World, node: &str) -> &'a mut Answer {
    world.matrix.as_mut().unwrap().answers.get_mut(node).unwrap().as_mut().unwrap()
}

fn found<'a>(world: &'a mut World, node: &str) -> &'a mut MatrixFindings {
    match answer(world, node).findings.matrix.as_mut() {
        Some(Seen::Is(found)) => found,
        other => panic!("{other:?}"),
    }
}

fn tcp(number: u16) -> WantedPort {
    WantedPort { number, transport: Transport::Tcp }
}

fn udp(number: u16) -> WantedPort {
    WantedPort { number, transport: Transport::Udp }
}

fn missed(port: WantedPort, miss: Miss) -> Missed {
    Missed { peer: IpAddr::from([192, 168, 0, 2]), port, miss }
}

/// The first node has missed these of the second.
fn misses(all: &[(WantedPort, Miss)]) -> World {
    let mut world = empty();
    let of = |(port, miss): &(WantedPort, Miss)| missed(*port, miss.clone());
    found(&mut world, "m1").missed = all.iter().map(of).collect();
    world
}

#[test]
fn nodes_that_reach_each_other_pass_and_a_sample_says_that_it_is_one() {
    says(&empty(), P203, Outcome::Ok, "3/3 nodes: they reach each other");
    let mut sample = empty();
    sample.matrix.as_mut().unwrap().plan.matrix.extent = Extent::Sample;
    says(&sample, P203, Outcome::Ok, "as a sample (--matrix full: all)");
}

#[test]
fn a_port_that_is_dropped_and_one_that_is_rejected_fail_and_are_said_apart() {
    let dropped = misses(&[(tcp(2888), Miss::NoAnswer(3))]);
    says(
        &dropped,
        P203,
        Outcome::Fail,
        "2/3 nodes: they reach each other on the ports that they need; m1: to m2, port 2888/TCP of Zookeeper: no answer \
         in 3 s (does a firewall drop it?)",
    );
    assert_eq!(verdict(&dropped, P203).fix, None, "the catalogue has the command");
    let results: Vec<Outcome> =
        verdict(&dropped, P203).nodes.iter().map(|one| one.result).collect();
    assert_eq!(results, [Outcome::Fail, Outcome::Ok, Outcome::Ok]);
    let tunnel = misses(&[(udp(6635), Miss::NoAnswer(2))]);
    says(&tunnel, P203, Outcome::Fail, "port 6635/UDP of Vrouter: no answer in 2 s");
    for port in [tcp(5269), udp(4789)] {
        let refused = misses(&[(port, Miss::Refused)]);
        says(&refused, P203, Outcome::Fail, "refused, although its probe listens there");
    }
    let rejected = misses(&[(tcp(8108), Miss::Rejected("No route to host".to_owned()))]);
    says(
        &rejected,
        P203,
        Outcome::Fail,
        "of Kubemanager: No route to host (does a firewall reject",
    );
    let another = misses(&[(tcp(179), Miss::Another)]);
    says(&another, P203, Outcome::Fail, "does another machine have 192.168.0.2?");
}

#[test]
fn what_is_the_same_of_many_is_said_once() {
    let all: Vec<(WantedPort, Miss)> = [2181, 2182, 2888, 3888, 5269, 8083, 8092]
        .iter()
        .map(|number| (tcp(*number), Miss::NoAnswer(3)))
        .collect();
    let mut many = misses(&all);
    let of_third: Vec<Missed> = all
        .iter()
        .map(|(port, miss)| Missed {
            peer: IpAddr::from([192, 168, 0, 3]),
            ..missed(*port, miss.clone())
        })
        .collect();
    found(&mut many, "m1").missed.extend(of_third);
    says(
        &many,
        P203,
        Outcome::Fail,
        "m1: to m2, m3, ports 2181/TCP of Zookeeper, 2182/TCP of Zookeeper, 2888/TCP of Zookeeper, 3888/TCP of Zookeeper, \
         5269/TCP of Control and 2 more: no answer in 3 s",
    );
}

#[test]
fn where_a_peer_was_not_there_nothing_is_claimed_of_what_only_it_could_answer() {
    let all = [(udp(6635), Miss::NoAnswer(2)), (tcp(5269), Miss::Refused)];
    let mut late = misses(&all);
    let peer = found(&mut late, "m2");
    (peer.since, peer.until) = (30 * SECOND, 80 * SECOND);
    says(&late, P203, Outcome::Uncertain, "its probe was not there at that time");
    // By its own clock it was in time.
    answer(&mut late, "m2").ahead = Seen::Is(30 * SECOND);
    says(&late, P203, Outcome::Fail, "refused, although");
    let mut over = misses(&all);
    found(&mut over, "m1").tried = Some(45 * SECOND);
    says(&over, P203, Outcome::Uncertain, "its probe was not there at that time");
    let mut hidden = misses(&all);
    answer(&mut hidden, "m1").ahead = Seen::Unknown("it is hidden".to_owned());
    says(&hidden, P203, Outcome::Uncertain, "is not known");

    let mut silent = misses(&all);
    let late = || Err("no answer in 120 s".to_owned());
    silent.matrix.as_mut().unwrap().answers.insert("m2".to_owned(), late());
    says(&silent, P203, Outcome::Uncertain, "its probe did not answer (no answer in 120 s)");
    // A node that is up refuses what nothing listens on, so that silence is a firewall's all the same.
    let mut dropped = misses(&[(tcp(5269), Miss::NoAnswer(3))]);
    dropped.matrix.as_mut().unwrap().answers.insert("m2".to_owned(), late());
    says(&dropped, P203, Outcome::Fail, "m1: to m2, port 5269/TCP of Control: no answer in 3 s");
}

#[test]
fn a_port_that_something_has_is_reached_by_a_refusal_and_of_udp_it_is_not_known() {
    let all = [(tcp(5269), Miss::Refused), (tcp(8083), Miss::Another), (udp(53), Miss::Refused)];
    let mut held = misses(&all);
    let silent = |port| SilentPort { port, why: "Address already in use".to_owned() };
    found(&mut held, "m2").silent = [tcp(5269), tcp(8083), udp(53), udp(6635)].map(silent).into();
    says(&held, P203, Outcome::Ok, "3/3 nodes");
    found(&mut held, "m1").missed = vec![missed(udp(6635), Miss::NoAnswer(2))];
    says(&held, P203, Outcome::Uncertain, "something else has the port there");

    // m1 has a pod of a component.
    let installed = probed(|_| {});
    assert_eq!(super::outcome(&installed, P203), Outcome::Uncertain);
    says(
        &installed,
        P203,
        Outcome::Uncertain,
        "m2 m3: to m1, ports 53/UDP of Control, 179/TCP of Control",
    );
    says(&installed, P203, Outcome::Uncertain, "not tried, as it belongs to what runs there");
}

#[test]
fn what_was_not_tried_is_no_pass() {
    let mut world = empty();
    found(&mut world, "m1").untried = 7;
    says(&world, P203, Outcome::Uncertain, "m1: 7 ports of others were not tried in time");
    let mut world = misses(&[(tcp(5269), Miss::Untried("Too many open files".to_owned()))]);
    found(&mut world, "m1").left_out = 9;
    says(&world, P203, Outcome::Uncertain, "this node could not try it: Too many open files");
    says(&world, P203, Outcome::Uncertain, "and 9 more that it did not reach");

    let mut gre = empty();
    let services = &mut known(&mut gre.managers)[0]["spec"]["services"];
    services["vrouters"][0]["spec"]["serviceConfiguration"]["encapsulationPriorities"] =
        json!(["MPLSoGRE", "VXLAN"]);
    gre.matrix = Some(tried(&gre));
    says(&gre, P203, Outcome::Uncertain, "GRE (IP protocol 47) was not tried");
}

#[test]
fn an_older_image_and_a_node_that_did_not_answer_are_uncertain_with_the_reason() {
    let mut older = empty();
    answer(&mut older, "m2").findings.matrix = None;
    says(
        &older,
        P203,
        Outcome::Uncertain,
        "m2: it tried no other: the image of its probe does not know how",
    );
    let mut lost = empty();
    answer(&mut lost, "m2").findings.matrix = Some(Seen::Unknown("it is elsewhere".to_owned()));
    says(&lost, P203, Outcome::Uncertain, "m2: it tried no other: it is elsewhere");

    let mut away = empty();
    let why = || Err("no answer in 120 s: ImagePullBackOff".to_owned());
    away.probed.as_mut().unwrap().insert("m3".to_owned(), why());
    away.matrix = Some(tried(&away));
    says(&away, P203, Outcome::Uncertain, "2/3 nodes");
    away.probed.as_mut().unwrap().insert("m2".to_owned(), why());
    away.matrix = Some(tried(&away));
    says(&away, P203, Outcome::Uncertain, "m1: no other node answered");

    let mut one = empty();
    one.probed.as_mut().unwrap().retain(|name, _| name == "m1");
    one.matrix = Some(tried(&one));
    says(&one, P203, Outcome::Skipped, "it has no other to reach");
    one.matrix = None;
    says(&one, P203, Outcome::Skipped, "nodes tried nothing");
}

#[test]
fn a_node_for_which_there_is_no_room_says_so_and_one_without_components_has_nothing_to_reach() {
    let mut world = empty();
    let plan = &mut world.matrix.as_mut().unwrap().plan;
    plan.peers.retain(|_, peer| peer.node != "m3");
    plan.left_out.insert("m3".to_owned(), "there are more nodes than fit".to_owned());
    says(&world, P203, Outcome::Uncertain, "m3: it tried no other: there are more nodes than fit");
    world.matrix.as_mut().unwrap().plan.left_out.clear();
    says(&world, P203, Outcome::Ok, "3/3 nodes");
    // Places and peers are of one document.
    world.matrix.as_mut().unwrap().plan.matrix = Matrix::default();
    says(&world, P203, Outcome::Uncertain, "it has no place");
}

/// To the second node, packets of 1500 bytes pass from the first only up to this size.
fn narrow(mut world: World, passes: Seen<u16>) -> World {
    let stopped = Stopped { peer: IpAddr::from([192, 168, 0, 2]), wanted: 1500, passes };
    found(&mut world, "m1").packets =
        Some(PacketFindings { passed: 1, stopped: vec![stopped], left_out: 0 });
    world
}

fn with_mtu(mtu: u16, encapsulations: serde_json::Value) -> World {
    let mut world = probed(|_| {});
    world.pods = Read::Known(vec![]);
    let service = &mut known(&mut world.managers)[0]["spec"]["services"]["vrouters"][0];
    service["spec"]["serviceConfiguration"] =
        json!({"cniMTU": mtu, "encapsulationPriorities": encapsulations});
    world.matrix = Some(tried(&world));
    world
}

#[test]
fn packets_are_tried_as_large_as_vrouters_send_them() {
    let packets = |world: &World| -> Vec<u16> {
        world.matrix.as_ref().unwrap().plan.matrix.groups.iter().map(|one| one.packet).collect()
    };
    assert_eq!(packets(&empty()), [1500], "without a cniMTU all that the interfaces carry");
    assert_eq!(packets(&with_mtu(1400, json!(["MPLSoUDP"]))), [1446]);
    assert_eq!(packets(&with_mtu(1400, json!(["MPLSoUDP", "VXLAN"]))), [1450]);
    // What the interface does not carry fails by itself.
    assert_eq!(packets(&with_mtu(1500, json!(["VXLAN"]))), [1500]);
    let mut elsewhere = empty();
    super::probed::answer(&mut elsewhere, "m2").findings.routes = Seen::Is(vec![]);
    elsewhere.matrix = Some(tried(&elsewhere));
    assert_eq!(packets(&elsewhere), [1500, 0]);
    says(&elsewhere, D304, Outcome::Uncertain, "m2: no route leads to 192.168.0.1, a control node");
}

#[test]
fn a_path_that_carries_less_than_the_interfaces_is_said_with_the_nodes_and_what_to_set() {
    says(&empty(), D304, Outcome::Ok, "cniMTU 1450 fits");
    let short = narrow(empty(), Seen::Is(1450));
    says(
        &short,
        D304,
        Outcome::Warn,
        "m1: to m2 packets of at most 1450 bytes pass, of 1500 that the interfaces have: cniMTU has to leave room for that",
    );
    let fix = verdict(&short, D304).fix.unwrap();
    assert!(fix.contains("cniMTU") && fix.contains("1400"), "{fix}");

    let good = with_mtu(1450, json!(["VXLAN"]));
    says(&good, D304, Outcome::Ok, "3/3 nodes");
    let short = narrow(good, Seen::Is(1450));
    says(
        &short,
        D304,
        Outcome::Fail,
        "m1: to m2 packets of at most 1450 bytes pass, of 1500, and pods have 1450: with VXLAN (50 around it) it does not fit",
    );
    let fix = verdict(&short, D304).fix.unwrap();
    assert!(fix.contains("/cniMTU") && fix.contains("\"value\":1400"), "{fix}");
    let second = narrow(with_mtu(1450, json!(["MPLSoGRE", "VXLAN"])), Seen::Is(1494));
    says(
        &second,
        D304,
        Outcome::Uncertain,
        "that is only for peers that know none of those before",
    );
}

#[test]
fn of_paths_that_were_not_tried_nothing_is_claimed() {
    let silent = narrow(empty(), Seen::Unknown("not even 576 bytes were answered".to_owned()));
    says(
        &silent,
        D304,
        Outcome::Uncertain,
        "m1: whether packets pass whole to m2 is not known: not even 576 bytes were answered",
    );
    let mut older = empty();
    found(&mut older, "m2").packets = None;
    says(&older, D304, Outcome::Uncertain, "m2: whether packets pass whole to other nodes");
    says(&older, D304, Outcome::Uncertain, "--probe-image");
    let mut away = empty();
    let why = || Err("no answer in 120 s".to_owned());
    away.matrix.as_mut().unwrap().answers.insert("m2".to_owned(), why());
    says(&away, D304, Outcome::Uncertain, "was not tried: no answer in 120 s");
    away.matrix = None;
    says(&away, D304, Outcome::Ok, "3/3 nodes");
}
