//! Probes on addresses of 127.0.0.0/8, each of which is a node to the others. Nothing leaves this machine.

use std::net::{TcpListener, UdpSocket};

use futures::future::join_all;
use opensdn_node_probe::{Extent, PacketFindings, PeerGroup, Ports, Seen, Stopped};

use super::*;

const TOKEN: &str = "opensdn-probe-0a1b2c3d";

fn node(last: u8) -> IpAddr {
    IpAddr::from([127, 66, 0, last])
}

/// A port that is free on these nodes, of both protocols.
fn free(nodes: &[IpAddr]) -> u16 {
    (0..100)
        .find_map(|_| {
            let port = TcpListener::bind((IpAddr::from([127, 0, 0, 1]), 0)).ok()?;
            let number = port.local_addr().ok()?.port();
            let is_free = nodes.iter().all(|node| {
                TcpListener::bind((*node, number)).is_ok()
                    && UdpSocket::bind((*node, number)).is_ok()
            });
            is_free.then_some(number)
        })
        .unwrap()
}

fn tcp(number: u16) -> WantedPort {
    WantedPort { number, transport: Transport::Tcp }
}

fn udp(number: u16) -> WantedPort {
    WantedPort { number, transport: Transport::Udp }
}

/// Nodes that need these ports of each other.
fn matrix(seconds: u16, nodes: &[IpAddr], ports: Ports) -> Matrix {
    let group = PeerGroup {
        addresses: nodes.to_vec(),
        is_member: true,
        for_members: ports,
        ..PeerGroup::default()
    };
    Matrix { token: TOKEN.to_owned(), seconds, extent: Extent::Full, groups: vec![group] }
}

/// Nodes of vrouters that are to send each other packets of that size.
fn with_packets(seconds: u16, nodes: &[IpAddr], packet: u16, udp: u16) -> Matrix {
    let mut wanted = matrix(seconds, nodes, Ports::default());
    let group = wanted.groups.first_mut().unwrap();
    (group.has_vrouter, group.packet) = (true, packet);
    group.for_vrouters.udp = vec![udp];
    wanted
}

fn missed(found: &MatrixFindings) -> Vec<(IpAddr, WantedPort, Miss)> {
    found.missed.iter().map(|one| (one.peer, one.port, one.miss.clone())).collect()
}

#[tokio::test]
async fn probes_reach_each_other_by_tcp_and_udp_also_where_one_starts_later() {
    let nodes = [node(2), node(3), node(4)];
    let ports = [free(&nodes), free(&nodes)];
    let ports = Ports { tcp: ports.to_vec(), udp: ports.to_vec(), ..Ports::default() };
    let wanted = matrix(20, &nodes, ports);
    let probes = nodes.iter().enumerate().map(async |(number, node)| {
        // Pods start at different times; until then nothing is there that could be waited for.
        sleep(Duration::from_millis(700) * u32::try_from(number).unwrap()).await;
        look(&wanted, &[*node]).await.unwrap()
    });
    for found in join_all(probes).await {
        let is_good = found.missed.is_empty() && found.untried == 0 && found.silent.is_empty();
        assert!(is_good && found.tried.is_some_and(|tried| tried >= found.since), "{found:#?}");
    }
}

#[tokio::test]
async fn what_is_refused_and_what_another_answers_is_not_reached() {
    let nodes = [node(12), node(13)];
    let other = TcpListener::bind((node(13), 0)).unwrap();
    let (number, closed) = (other.local_addr().unwrap().port(), free(&nodes));
    let ports = Ports { tcp: vec![closed, number], udp: vec![closed], ..Ports::default() };
    // The second node has no probe.
    let found = look(&matrix(1, &nodes, ports), &[node(12)]).await.unwrap();
    let mut expected = vec![
        (node(13), tcp(number), Miss::Another),
        (node(13), tcp(closed), Miss::Refused),
        (node(13), udp(closed), Miss::Refused),
    ];
    expected.sort_by_key(|(_, port, miss)| (*miss == Miss::Refused, *port));
    assert_eq!(missed(&found), expected);
}

#[tokio::test]
async fn a_port_that_another_has_is_left_to_it_and_a_connection_is_enough_there() {
    let nodes = [node(22), node(23)];
    let held = TcpListener::bind((node(23), 0)).unwrap();
    let (number, closed) = (held.local_addr().unwrap().port(), free(&nodes));
    let connect = Ports { connect: vec![number, closed], ..Ports::default() };
    let wanted = matrix(20, &nodes, connect);
    let start = Instant::now();
    let found = look(&wanted, &[node(22)]).await.unwrap();
    assert_eq!(missed(&found), [(node(23), tcp(closed), Miss::Refused)]);
    assert!(start.elapsed() < Duration::from_secs(10), "a refusal does not change by waiting");

    // Where it was free a moment ago, the probe says that it is not.
    let wanted = matrix(1, &nodes, Ports { tcp: vec![number], ..Ports::default() });
    let found = look(&wanted, &[node(23)]).await.unwrap();
    let silent: Vec<WantedPort> = found.silent.iter().map(|one| one.port).collect();
    assert_eq!(silent, [tcp(number)]);
    assert!(found.silent.iter().all(|one| one.why.contains("in use")), "{found:#?}");
}

#[tokio::test]
async fn what_does_not_answer_is_tried_until_the_time_is_over_and_not_longer() {
    let nodes = [node(32), node(33)];
    let mute = UdpSocket::bind((node(33), 0)).unwrap();
    let number = mute.local_addr().unwrap().port();
    let wanted = matrix(3, &nodes, Ports { udp: vec![number], ..Ports::default() });
    let start = Instant::now();
    let found = look(&wanted, &[node(32)]).await.unwrap();
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(12), "{took:?}");
    assert_eq!(missed(&found), [(node(33), udp(number), Miss::NoAnswer(2))]);
}

#[tokio::test]
async fn a_datagram_without_the_token_gets_no_answer() {
    let nodes = [node(42)];
    let number = free(&nodes);
    let until = Instant::now() + Duration::from_secs(30);
    let silent = answering::start(TOKEN, node(42), [udp(number)].into(), until).await;
    assert_eq!(silent, []);
    let at = SocketAddr::new(node(42), number);
    assert_eq!(trying::udp(at, "opensdn-probe-of-another").await, Err(Miss::NoAnswer(2)));
    assert_eq!(trying::udp(at, TOKEN).await, Ok(()));
}

#[tokio::test]
async fn answering_ends_and_lets_the_ports_go() {
    let nodes = [node(52)];
    let number = free(&nodes);
    let until = Instant::now() + Duration::from_millis(200);
    let silent = answering::start(TOKEN, node(52), [tcp(number)].into(), until).await;
    assert_eq!(silent, []);
    let at = SocketAddr::new(node(52), number);
    assert_eq!(trying::tcp(at, TOKEN).await, Ok(()));
    // Until it ends it may well answer: only after its time is that wrong.
    sleep(Duration::from_millis(400)).await;
    assert_eq!(trying::connect(at).await, Err(Miss::Refused));
}

#[tokio::test]
async fn an_answer_names_a_bounded_number_of_ports_and_no_time_is_no_pass() {
    let nodes: Vec<IpAddr> = (60..90).map(node).collect();
    let closed: Vec<u16> = (0..20).map(|_| free(&nodes)).collect();
    let connect = Ports { connect: closed, ..Ports::default() };
    let found = look(&matrix(10, &nodes, connect.clone()), &[node(60)]).await.unwrap();
    let expected = connect.connect.iter().collect::<std::collections::BTreeSet<_>>().len() * 29;
    assert_eq!((found.missed.len(), found.left_out), (MOST_MISSED, expected - MOST_MISSED));
    let none = look(&matrix(0, &nodes, connect), &[node(60)]).await.unwrap();
    assert_eq!((none.missed.len(), none.untried, none.tried), (0, expected, None));
}

#[tokio::test]
async fn a_node_that_is_not_meant_tries_nothing() {
    let refused = look(&matrix(1, &[node(2)], Ports::default()), &[node(99)]).await.unwrap_err();
    assert!(refused.contains("127.66.0.99"), "{refused}");
}

#[tokio::test]
async fn packets_that_loopback_carries_pass_whole_also_where_a_peer_starts_later() {
    let nodes = [node(102), node(103)];
    let wanted = with_packets(20, &nodes, 9000, free(&nodes));
    let probes = nodes.iter().enumerate().map(async |(number, node)| {
        // Pods start at different times; until then nothing is there that could be waited for.
        sleep(Duration::from_millis(700) * u32::try_from(number).unwrap()).await;
        look(&wanted, &[*node]).await.unwrap().packets.unwrap()
    });
    for found in join_all(probes).await {
        assert_eq!(found, PacketFindings { passed: 1, ..PacketFindings::default() });
    }
}

#[tokio::test]
async fn the_largest_packet_is_found_that_a_path_lets_through() {
    let nodes = [node(112), node(113)];
    let udp = free(&nodes);
    let peer = tokio::net::UdpSocket::bind((node(113), udp)).await.unwrap();
    // A path that drops what is larger, and says nothing.
    drop(tokio::spawn(async move {
        let mut bytes = vec![0; 10_000];
        while let Ok((length, from)) = peer.recv_from(&mut bytes).await {
            if length + 28 <= 1437 {
                let answer = answering::answer_of_size(TOKEN, node(113), length);
                peer.send_to(answer.as_bytes(), from).await.unwrap();
            }
        }
    }));
    let found = look(&with_packets(4, &nodes, 9000, udp), &[node(112)]).await.unwrap();
    let found = found.packets.unwrap();
    let expected = Stopped { peer: node(113), wanted: 9000, passes: Seen::Is(1437) };
    assert_eq!((found.passed, found.stopped), (0, vec![expected]));
}

#[tokio::test]
async fn of_a_peer_that_answers_no_small_packet_no_size_is_claimed() {
    let nodes = [node(122), node(123)];
    let wanted = with_packets(1, &nodes, 1500, free(&nodes));
    let found = look(&wanted, &[node(122)]).await.unwrap().packets.unwrap();
    let [Stopped { passes: Seen::Unknown(why), .. }] = &*found.stopped else {
        panic!("{found:#?}")
    };
    assert!(why.contains("not even 576 bytes were answered"), "{why}");
}
