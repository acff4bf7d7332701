//! Probes of two nodes with a router between them, whose second link carries less than the interfaces of the nodes: what
//! they find out of the path, where the router says so and where it says nothing. Needs root: each has a network of its
//! own.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test, and the line says where")]

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use opensdn_node_probe::{
    Extent, FORMAT, Matrix, MatrixFindings, NodeFindings, PeerGroup, Seen, Stopped, Wanted,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_opensdn-operator");
const NODES: [&str; 2] = ["198.18.1.2", "198.18.2.2"];
/// The interfaces of the nodes have this one, and the link between the router and the second node the other.
const WIDE: u16 = 1550;
const NARROW: u16 = 1437;

/// Two nodes, and the router between them.
struct Networks {
    word: String,
}

impl Drop for Networks {
    fn drop(&mut self) {
        for name in ["node0", "node1", "router"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.name(name)]).output();
        }
    }
}

impl Networks {
    fn new() -> Self {
        let networks = Self { word: format!("mtu{}", std::process::id()) };
        let [first, second, router] = ["node0", "node1", "router"].map(|name| networks.name(name));
        sh(&format!(
            "for one in {first} {second} {router}; do ip netns add $one; ip -n $one link set lo up; done
             ip -n {first} link add eth0 mtu {WIDE} type veth peer name eth0 mtu {WIDE} netns {router}
             ip -n {second} link add eth0 mtu {WIDE} type veth peer name eth1 mtu {NARROW} netns {router}
             ip -n {first} addr add 198.18.1.2/24 dev eth0; ip -n {second} addr add 198.18.2.2/24 dev eth0
             ip -n {router} addr add 198.18.1.1/24 dev eth0; ip -n {router} addr add 198.18.2.1/24 dev eth1
             ip -n {first} link set eth0 up; ip -n {second} link set eth0 up
             ip -n {router} link set eth0 up; ip -n {router} link set eth1 up
             ip -n {first} route add default via 198.18.1.1; ip -n {second} route add default via 198.18.2.1
             ip netns exec {router} sysctl -qw net.ipv4.ip_forward=1"
        ));
        networks
    }

    fn name(&self, of: &str) -> String {
        format!("{}-{of}", self.word)
    }

    /// Both nodes try packets of that size.
    fn findings(&self, packet: u16) -> [MatrixFindings; 2] {
        let group = PeerGroup {
            addresses: NODES.iter().map(|node| node.parse().unwrap()).collect(),
            has_vrouter: true,
            packet,
            ..PeerGroup::default()
        };
        let matrix = Matrix {
            token: "opensdn-probe-0a1b2c3d".to_owned(),
            seconds: 20,
            extent: Extent::Full,
            groups: vec![group],
        };
        let wanted = Wanted { format: FORMAT, matrix: Some(matrix), ..Wanted::default() };
        let wanted = serde_json::to_string(&wanted).unwrap();
        let probe = |number: usize| {
            let network = self.name(&format!("node{number}"));
            Command::new("ip")
                .args(["netns", "exec", &network, PROGRAM, "probe", "--stay", "--wanted", &wanted])
                .args(["--addresses", NODES.get(number).unwrap()])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        // Each answers the other until both are done.
        let mut probes = [probe(0), probe(1)].map(Probe::from);
        probes.each_mut().map(Probe::answer)
    }
}

fn sh(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A probe that stays as in a pod. It ends where nothing reads it any more.
struct Probe {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl From<Child> for Probe {
    fn from(mut child: Child) -> Self {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }
}

impl Probe {
    fn answer(&mut self) -> MatrixFindings {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let found = lines.find_map(|line| serde_json::from_str(&line).ok());
        let found: NodeFindings = found.unwrap();
        match found.matrix.unwrap() {
            Seen::Is(found) => found,
            Seen::Unknown(why) => panic!("{why}"),
        }
    }
}

/// How large packets pass to the peer, of those that were larger.
fn passes(found: &MatrixFindings, peer: &str) -> u16 {
    let found = found.packets.as_ref().unwrap();
    let [Stopped { peer: of, wanted: WIDE, passes: Seen::Is(passes) }] = &*found.stopped else {
        panic!("{found:#?}")
    };
    assert_eq!((of.to_string().as_str(), found.passed), (peer, 0));
    *passes
}

#[test]
fn probes_find_how_large_packets_pass_a_link_that_carries_less_than_their_interfaces() {
    let networks = Networks::new();
    let [first, second] = NODES;
    for found in networks.findings(NARROW).map(|found| found.packets.unwrap()) {
        assert!(found.passed == 1 && found.stopped.is_empty(), "{found:#?}");
    }

    // To the second node the router answers that it would have to split the packet. What comes to the router is dropped by
    // its interface, and nothing says so; for a tag of a VLAN it has 4 bytes more.
    let [there, back] = networks.findings(WIDE);
    assert_eq!(passes(&there, second), NARROW);
    assert!((NARROW..=NARROW + 4).contains(&passes(&back, first)), "{back:#?}");
}
