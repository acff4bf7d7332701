//! Worlds of each check that nodes answer: one in which it passes, one in which it does not, one in which it cannot be
//! known; a healthy installation, and a cluster in which nothing is installed.

use opensdn_node_probe::{
    Cni, CniFile, Directory, DirectoryState, Firewall, Holder, HugePageMount, HugePages, Interface,
    Interfaces, Kernel, ModuleFile, NodeFindings, PortFinding, Route, Seen, Space, Sysctl,
    Transport, WantedPort,
};
use serde_json::{Value, json};

use super::super::catalogue::{CHECKS, Category, Check, Mode};
use super::super::fabric::fabric;
use super::super::probed_storage::DATA;
use super::super::report::Outcome;
use super::super::world::World;
use super::super::{Chosen, judge};
use super::devices::with_card;
use super::{but, forbidden, good, known, outcome, says, verdict};
use crate::probe::Answer;
use crate::probe::unseen::unseen;
use crate::snapshot::{Read, name};

const RELEASE: &str = "5.14.0-503.14.1.el9_5.x86_64";
/// The good cluster has no tf-operator, and its Manager neither DPDK nor virtual functions nor Keystone, nor a network of
/// data or files of certificates.
const NOT_ASKED_FOR: [&str; 6] = ["D307", "D308", "D309", "N106", "X901", "X903"];
const POD: &str = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f";

pub(super) fn unknown<T>() -> Seen<T> {
    Seen::Unknown("it is hidden".to_owned())
}

pub(super) fn is<T: From<&'static str>>(text: &'static str) -> Seen<T> {
    Seen::Is(text.into())
}

pub(super) fn interface(name: &str, mtu: u32) -> Interface {
    let name = name.to_owned();
    let networks = Some(vec!["192.168.0.0/24".to_owned()]);
    Interface {
        name,
        state: is("up"),
        mtu: Seen::Is(mtu),
        master: None,
        driver: None,
        bond: None,
        networks,
    }
}

fn route(destination: &str, interface: &str, gateway: Option<&str>) -> Route {
    let gateway = gateway.map(str::to_owned);
    Route { destination: destination.to_owned(), interface: interface.to_owned(), gateway }
}

pub(super) fn mount(path: &str, mebibytes: u64) -> HugePageMount {
    HugePageMount { path: path.to_owned(), mebibytes_of_page: Some(mebibytes) }
}

fn space(gib: u64) -> Space {
    Space { free: gib << 30, read_only: Seen::Is(false) }
}

/// A node on which an installation would work.
pub(crate) fn findings(address: &str) -> NodeFindings {
    let file = ModuleFile {
        path: format!("/lib/modules/{RELEASE}/extra/vrouter.ko"),
        vermagic: Seen::Is(format!("{RELEASE} SMP mod_unload ")),
        signed: Seen::Is(false),
    };
    let paths = DATA.iter().map(|(_, path)| *path);
    NodeFindings {
        kernel: Kernel {
            release: is(RELEASE),
            loaded: Seen::Is(false),
            files: Seen::Is(vec![file]),
            headers: Seen::Is(false),
            secure_boot: Seen::Is(false),
            only_signed: Seen::Is(false),
            lockdown: is("none"),
        },
        interfaces: Seen::Is(Interfaces {
            shown: vec![interface("eth0", 1500), interface("lo", 65_536)],
            ..Interfaces::default()
        }),
        routes: Seen::Is(vec![
            route("0.0.0.0/0", "eth0", Some("192.168.0.254")),
            route("192.168.0.0/24", "eth0", None),
        ]),
        cni: Seen::Is(Cni { folder: "/etc/cni/net.d".to_owned(), ..Cni::default() }),
        directories: paths
            .map(|path| Directory {
                path: path.to_owned(),
                state: Seen::Is(DirectoryState::Absent(space(300))),
            })
            .collect(),
        huge_pages: Seen::Is(HugePages {
            of_2_mib: 256,
            free_of_2_mib: 256,
            mounts: Seen::Is(vec![mount("/dev/hugepages", 2)]),
            numa_nodes: Seen::Is(vec![]),
            ..HugePages::default()
        }),
        sysctls: vec![Sysctl {
            name: "net.ipv4.conf.all.rp_filter".to_owned(),
            value: Seen::Is(Some("0".to_owned())),
        }],
        swaps: Seen::Is(vec![]),
        synchronised: Seen::Is(true),
        firewall: Seen::Is(Firewall::default()),
        devices: Some(Seen::Is(with_card("eth0"))),
        ..unseen(address)
    }
}

/// The three nodes of the good cluster have answered, the second with something changed.
pub(super) fn probed(change: impl FnOnce(&mut NodeFindings)) -> World {
    let mut world = good();
    let nodes = ["m1", "m2", "m3"].iter().zip(1..).map(|(name, number)| {
        let findings = findings(&format!("192.168.0.{number}"));
        ((*name).to_owned(), Ok(Answer { findings, ahead: Seen::Is(number * 1000) }))
    });
    world.probed = Some(nodes.collect());
    change(&mut answer(&mut world, "m2").findings);
    world.matrix = Some(super::matrix::tried(&world));
    world
}

pub(super) fn answer<'a>(world: &'a mut World, node: &str) -> &'a mut Answer {
    world.probed.as_mut().unwrap().get_mut(node).unwrap().as_mut().unwrap()
}

fn busy(
    number: u16,
    transport: Transport,
    address: &str,
    holder: Seen<Holder>,
) -> Vec<PortFinding> {
    let port = WantedPort { number, transport };
    vec![PortFinding { port, address: address.parse().unwrap(), holder }]
}

fn process(program: &str, pod: Option<&str>) -> Seen<Holder> {
    let pod = pod.map(str::to_owned);
    Seen::Is(Holder::Process { program: program.to_owned(), pid: 4711, pod })
}

fn is_judged_by_nodes(mode: Mode) -> bool {
    matches!(mode, Mode::Probe | Mode::ApiAndProbe)
}

#[test]
fn of_good_nodes_each_check_that_asks_them_passes() {
    let report = judge(&probed(|_| {}), &Chosen::default());
    for one in report.checks.iter().filter(|one| is_judged_by_nodes(one.mode)) {
        let is_judged = |check: &Check| check.judge.is_some() && check.category != Category::Nested;
        let is_asked = !NOT_ASKED_FOR.contains(&one.id);
        let judged = CHECKS.iter().any(|check| check.id == one.id && is_judged(check) && is_asked);
        let expected = match one.id {
            // Of what its components have it tries no UDP, and no BGP.
            "P203" => Outcome::Uncertain,
            _ if judged => Outcome::Ok,
            _ => Outcome::Skipped,
        };
        assert_eq!(one.result, expected, "{}: {}", one.id, one.message);
    }
}

#[test]
fn without_a_manager_good_nodes_are_good_too() {
    let mut world = probed(|_| {});
    (world.managers, world.pods) = (Read::Absent, Read::Known(vec![]));
    world.matrix = Some(super::matrix::tried(&world));
    let report = judge(&world, &Chosen::default());
    let bad = report.checks.iter().filter(|one| {
        is_judged_by_nodes(one.mode) && ![Outcome::Ok, Outcome::Skipped].contains(&one.result)
    });
    let bad: Vec<_> = bad.map(|one| (one.id, &one.message)).collect();
    assert!(bad.is_empty(), "an empty cluster is refused: {bad:?}");
}

#[test]
fn a_node_that_does_not_answer_is_uncertain_and_the_others_are_judged() {
    let mut world = probed(|_| {});
    let late = Err("no answer in 120 s: ImagePullBackOff".to_owned());
    world.probed.as_mut().unwrap().insert("m3".to_owned(), late);
    says(&world, "P201", Outcome::Uncertain, "2/3 nodes");
    says(&world, "P201", Outcome::Uncertain, "m3: no answer in 120 s: ImagePullBackOff");
    answer(&mut world, "m2").findings.ports =
        busy(9091, Transport::Tcp, "192.168.0.2", process("felix", None));
    says(&world, "P201", Outcome::Fail, "1/3 nodes");
    let results: Vec<Outcome> =
        verdict(&world, "P201").nodes.iter().map(|one| one.result).collect();
    assert_eq!(results, [Outcome::Ok, Outcome::Fail, Outcome::Uncertain]);
}

#[test]
fn where_nothing_can_be_seen_of_a_node_no_check_passes() {
    let mut world = good();
    let none = Err("it is hidden".to_owned());
    world.probed = Some(["m1", "m2", "m3"].map(|name| (name.to_owned(), none.clone())).into());
    let report = judge(&world, &Chosen::default());
    for one in report.checks.iter().filter(|one| one.mode == Mode::Probe) {
        assert!([Outcome::Uncertain, Outcome::Skipped].contains(&one.result), "{}", one.id);
    }
    world.probed = Some([].into());
    says(&world, "P201", Outcome::Uncertain, "no node was looked at");
}

#[test]
fn ports_on_nodes() {
    let with = |ports: Vec<PortFinding>| probed(|findings| findings.ports = ports);
    let tcp = Transport::Tcp;
    let felix = with(busy(9091, tcp, "192.168.0.2", process("calico-node", None)));
    says(&felix, "P201", Outcome::Fail, "m2: port 9091/TCP of Vrouter is held by calico-node");
    let mut in_pod = with(busy(9091, tcp, "192.168.0.2", process("felix", Some(POD))));
    let pod = |labels: Value| {
        json!({"metadata": {"name": "p", "namespace": "n", "uid": POD, "labels": labels},
        "spec": {"nodeName": "m2"}})
    };
    known(&mut in_pod.pods).push(pod(json!({})));
    says(&in_pod, "P201", Outcome::Fail, "of pod n/p");
    // A label alone makes none of it ours: any pod may have it.
    known(&mut in_pod.pods).pop();
    known(&mut in_pod.pods).push(pod(json!({"tf_manager": "vrouter"})));
    says(&in_pod, "P201", Outcome::Fail, "of pod n/p");
    // What our own pods hold is theirs.
    let own = || {
        let mut own = pod(json!({"tf_manager": "vrouter"}));
        own["metadata"]["namespace"] = json!("tf");
        own
    };
    known(&mut in_pod.pods).pop();
    known(&mut in_pod.pods).push(own());
    says(&in_pod, "P201", Outcome::Ok, "3/3 nodes");
    let hidden = || Seen::Is(Holder::Hidden("of others".to_owned()));
    says(&with(busy(9091, tcp, "192.168.0.2", hidden())), "P201", Outcome::Fail, "not seen");
    // Where pods of ours are it may be one of them.
    let mut ours = with(busy(9091, tcp, "192.168.0.2", hidden()));
    known(&mut ours.pods).push(own());
    says(&ours, "P201", Outcome::Uncertain, "maybe by our own pod");
    says(&with(busy(9091, tcp, "192.168.0.2", unknown())), "P201", Outcome::Uncertain, "hidden");
    let local = with(busy(2181, tcp, "127.0.0.1", process("java", None)));
    says(&local, "P201", Outcome::Warn, "on 127.0.0.1 alone");
    let tunnel = || busy(4789, Transport::Udp, "192.168.0.2", Seen::Is(Holder::Kernel));
    says(&with(tunnel()), "P201", Outcome::Fail, "the kernel: a tunnel");
    let own = probed(|findings| {
        findings.ports = tunnel();
        findings.kernel.loaded = Seen::Is(true);
    });
    says(&own, "P201", Outcome::Ok, "");
    // No Redis is to run there.
    let redis = with(busy(6389, tcp, "192.168.0.2", process("redis", None)));
    says(&redis, "P201", Outcome::Ok, "");
    says(&probed(|findings| findings.addresses.clear()), "P201", Outcome::Uncertain, "addresses");

    let with = |firewall| probed(|findings| findings.firewall = firewall);
    let firewalld = Firewall { programs: vec!["firewalld".to_owned()], can_filter: true };
    says(&with(Seen::Is(firewalld)), "P204", Outcome::Warn, "m2: firewalld is active");
    let rules = Firewall { programs: vec![], can_filter: true };
    says(&with(Seen::Is(rules)), "P204", Outcome::Uncertain, "rules are not read");
    says(&with(unknown()), "P204", Outcome::Uncertain, "it is hidden");
}

#[test]
fn the_module_of_the_kernel() {
    let with = |change: &dyn Fn(&mut Kernel)| probed(|findings| change(&mut findings.kernel));
    says(
        &with(&|kernel| kernel.only_signed = Seen::Is(true)),
        "D301",
        Outcome::Fail,
        "no signature",
    );
    let secure = |kernel: &mut Kernel| {
        (kernel.secure_boot, kernel.lockdown) = (Seen::Is(true), unknown());
    };
    says(&with(&secure), "D301", Outcome::Fail, "Secure Boot loads only signed ones");
    says(&with(&|kernel| kernel.lockdown = is("integrity")), "D301", Outcome::Fail, "lockdown");
    let files = |kernel: &mut Kernel, files: Vec<ModuleFile>| kernel.files = Seen::Is(files);
    let none = with(&|kernel| files(kernel, vec![]));
    says(&none, "D301", Outcome::Uncertain, "images from before February 2026 may have one");
    let other = |kernel: &mut Kernel| {
        kernel.release = is("6.8.0-31-generic");
    };
    says(&with(&other), "D301", Outcome::Fail, "vrouter.ko is for 5.14.0");
    let built = with(&|kernel| {
        other(kernel);
        kernel.headers = Seen::Is(true);
    });
    says(&built, "D301", Outcome::Warn, "it will be built");
    let unsigned = with(&|kernel| {
        other(kernel);
        (kernel.headers, kernel.only_signed) = (Seen::Is(true), Seen::Is(true));
    });
    says(&unsigned, "D301", Outcome::Fail, "has no signature");
    let compressed = with(&|kernel| {
        let path = "vrouter.ko.xz".to_owned();
        files(kernel, vec![ModuleFile { path, vermagic: unknown(), signed: unknown() }]);
    });
    says(&compressed, "D301", Outcome::Uncertain, "is not known");
    says(&with(&|kernel| kernel.files = unknown()), "D301", Outcome::Uncertain, "it is hidden");
    let hidden = with(&|kernel| {
        (kernel.lockdown, kernel.secure_boot) = (unknown(), unknown());
    });
    says(&hidden, "D301", Outcome::Uncertain, "whether it loads");
    let loaded = with(&|kernel| {
        other(kernel);
        kernel.loaded = Seen::Is(true);
    });
    says(&loaded, "D301", Outcome::Ok, "");
}

#[test]
fn interfaces_and_other_data_paths() {
    let with = |shown: Vec<Interface>| {
        probed(|findings| {
            findings.interfaces = Seen::Is(Interfaces { shown, ..Interfaces::default() });
        })
    };
    let down = Interface { state: is("down"), ..interface("eth0", 1500) };
    says(&with(vec![down]), "D303", Outcome::Fail, "m2: eth0 is down");
    let part = Interface { master: Some("bond0".to_owned()), ..interface("eth0", 1500) };
    says(&with(vec![part]), "D303", Outcome::Fail, "a part of bond0");
    let bond = Interface { bond: Some("broadcast".to_owned()), ..interface("eth0", 1500) };
    says(&with(vec![bond]), "D303", Outcome::Warn, "bond of mode broadcast");
    says(&probed(|findings| findings.routes = unknown()), "D303", Outcome::Uncertain, "hidden");
    says(&probed(|findings| findings.interfaces = unknown()), "D303", Outcome::Uncertain, "hidden");
    let mut named = probed(|_| {});
    known(&mut named.managers)[0]["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"]
        ["physicalInterface"] = json!("eth9");
    says(&named, "D303", Outcome::Fail, "the node has no such interface");

    let ovs = Interface { master: Some("ovs-system".to_owned()), ..interface("eth0", 1500) };
    says(&with(vec![ovs]), "D302", Outcome::Warn, "a port of Open vSwitch");
    let flannel = with(vec![interface("eth0", 1500), interface("flannel.1", 1450)]);
    says(&flannel, "D302", Outcome::Warn, "flannel.1 of flannel");
    let vhost = || with(vec![interface("eth0", 1500), interface("vhost0", 1500)]);
    says(&vhost(), "D302", Outcome::Warn, "no vrouter of this cluster runs");
    let mut installed = vhost();
    known(&mut installed.pods).push(
        json!({"metadata": {"namespace": "tf", "labels": {"tf_manager": "vrouter"}}, "spec": {"nodeName": "m2"}}),
    );
    says(&installed, "D302", Outcome::Ok, "");
    installed.pods = forbidden();
    says(&installed, "D302", Outcome::Uncertain, "pods may not be read");
    says(&probed(|findings| findings.interfaces = unknown()), "D302", Outcome::Uncertain, "hidden");
}

/// All nodes have two interfaces of the fabric, of which the second is this.
fn l3mh(second: Interface) -> World {
    let mut world = probed(|_| {});
    for node in ["m1", "m2", "m3"] {
        let shown = vec![interface("eth0", 1500), second.clone()];
        answer(&mut world, node).findings.interfaces =
            Seen::Is(Interfaces { shown, ..Interfaces::default() });
    }
    let settings = json!({"physicalInterface": "eth0,eth1", "l3mhCidr": "10.9.0.0/24"});
    known(&mut world.managers)[0]["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"] =
        settings;
    world
}

#[test]
fn each_interface_of_l3mh_is_looked_at() {
    says(&l3mh(interface("eth1", 1500)), "D303", Outcome::Ok, "3/3 nodes");
    let down = Interface { state: is("down"), ..interface("eth1", 1500) };
    says(&l3mh(down), "D303", Outcome::Fail, "eth1 is down");
    let bare = Interface { networks: Some(vec![]), ..interface("eth1", 1500) };
    says(&l3mh(bare), "D303", Outcome::Fail, "eth1 has no address of IPv4");
    let older = Interface { networks: None, ..interface("eth1", 1500) };
    says(&l3mh(older), "D303", Outcome::Uncertain, "--probe-image");
    says(&l3mh(interface("eth1", 1500)), "D304", Outcome::Ok, "3/3 nodes");
    says(
        &l3mh(interface("eth1", 9000)),
        "D304",
        Outcome::Fail,
        "eth0 has 1500, eth1 has 9000: the agent does not",
    );
    let hidden = Interface { mtu: unknown(), ..interface("eth1", 1500) };
    says(&l3mh(hidden), "D304", Outcome::Uncertain, "the MTU of eth1 is not known");
    let mut running = l3mh(interface("eth1", 1500));
    let findings = &mut answer(&mut running, "m2").findings;
    let shown = vec![interface("eth0", 9000), interface("eth1", 9000), interface("vhost0", 1500)];
    findings.interfaces = Seen::Is(Interfaces { shown, ..Interfaces::default() });
    findings.routes = Seen::Is(vec![route("192.168.0.0/24", "vhost0", None)]);
    says(&running, "D304", Outcome::Warn, "m2: eth0 has 9000, eth1 has 9000, others have 1500");
    says(&running, "D303", Outcome::Ok, "3/3 nodes");
    let mut unnamed = l3mh(interface("eth1", 1500));
    known(&mut unnamed.managers)[0]["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"] =
        json!({"l3mhCidr": "10.9.0.0/24"});
    says(&unnamed, "D304", Outcome::Uncertain, "physicalInterface names none");
}

fn set(world: &mut World, field: &str, value: Value) {
    known(&mut world.managers)[0]["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"]
        [field] = value;
}

/// All nodes have a second interface, in a network of its own.
fn two_networks() -> World {
    let mut world = probed(|_| {});
    for (number, node) in ["m1", "m2", "m3"].into_iter().enumerate() {
        let second =
            Interface { networks: Some(vec!["10.9.0.0/24".to_owned()]), ..interface("eth1", 9000) };
        let findings = &mut answer(&mut world, node).findings;
        let shown = vec![interface("eth0", 1500), second];
        findings.interfaces = Seen::Is(Interfaces { shown, ..Interfaces::default() });
        findings.local = Some(Seen::Is(vec![format!("10.9.0.{}", number + 1).parse().unwrap()]));
        findings.routes = Seen::Is(vec![
            route("0.0.0.0/0", "eth0", Some("192.168.0.254")),
            route("192.168.0.0/24", "eth0", None),
            route("10.9.0.0/24", "eth1", None),
        ]);
    }
    world
}

fn fabric_of_m2(world: &World) -> Result<String, (Outcome, String)> {
    let node = world.nodes.items().iter().find(|node| name(node) == "m2").unwrap();
    let findings = &world.probed.as_ref().unwrap()["m2"].as_ref().unwrap().findings;
    fabric(world, node, findings).map(|one| one.name.clone())
}

#[test]
fn the_fabric_is_where_the_gateway_is_reached_else_the_control_nodes() {
    assert_eq!(fabric_of_m2(&two_networks()), Ok("eth0".to_owned()));

    let mut gateway = two_networks();
    set(&mut gateway, "vrouterGateway", json!("10.9.0.254"));
    assert_eq!(fabric_of_m2(&gateway), Ok("eth1".to_owned()));
    set(&mut gateway, "vrouterGateway", json!("203.0.113.1"));
    assert_eq!(fabric_of_m2(&gateway), Ok("eth0".to_owned()));
    answer(&mut gateway, "m2").findings.routes =
        Seen::Is(vec![route("192.168.0.0/24", "eth0", None)]);
    says(&gateway, "D303", Outcome::Uncertain, "no route leads to 203.0.113.1, the vrouterGateway");

    let mut control = two_networks();
    let settings = &mut known(&mut control.managers)[0]["spec"]["services"]["controls"][0];
    settings["spec"]["serviceConfiguration"]["dataSubnet"] = json!("10.9.0.0/24");
    assert_eq!(fabric_of_m2(&control), Ok("eth1".to_owned()));
    // The way of one node to one control node differs.
    if let Seen::Is(routes) = &mut answer(&mut control, "m2").findings.routes {
        routes.push(route("10.9.0.3/32", "eth0", None));
    }
    says(&control, "D303", Outcome::Uncertain, "10.9.0.1 is reached by eth1, 10.9.0.3 by eth0");
    set(&mut control, "physicalInterface", json!("eth1"));
    assert_eq!(fabric_of_m2(&control), Ok("eth1".to_owned()));
}

#[test]
fn a_vhost0_in_another_network_than_the_nodes_is_the_fabric() {
    let mut world = two_networks();
    set(&mut world, "physicalInterface", json!("eth1"));
    let findings = &mut answer(&mut world, "m2").findings;
    let bare = Interface { networks: Some(vec![]), ..interface("eth1", 9000) };
    let networks = Some(vec!["10.9.0.0/24".to_owned()]);
    let vhost = Interface { networks, ..interface("vhost0", 9000) };
    let shown = vec![interface("eth0", 1500), bare, vhost];
    findings.interfaces = Seen::Is(Interfaces { shown, ..Interfaces::default() });
    assert_eq!(fabric_of_m2(&world), Ok("vhost0".to_owned()));
    says(&world, "D303", Outcome::Ok, "3/3 nodes");
}

#[test]
fn an_mtu_is_measured_by_the_encapsulations_that_may_be_used() {
    let mut large = probed(|_| {});
    set(&mut large, "cniMTU", json!(1500));
    says(&large, "D304", Outcome::Fail, "eth0 has 1500, and pods have 1500");
    assert!(verdict(&large, "D304").fix.unwrap().contains("1450"));
    set(&mut large, "cniMTU", json!(1450));
    says(&large, "D304", Outcome::Ok, "3/3 nodes");
    set(&mut large, "cniMTU", json!(1454));
    says(
        &large,
        "D304",
        Outcome::Uncertain,
        "with VXLAN (50 around it) it does not fit; which one",
    );
    set(&mut large, "encapsulationPriorities", json!(["MPLSoUDP", "MPLSoGRE"]));
    says(&large, "D304", Outcome::Ok, "3/3 nodes");
    set(&mut large, "encapsulationPriorities", json!(["MPLSoUDP", "VXLAN"]));
    says(&large, "D304", Outcome::Uncertain, "only for peers that know none");
    set(&mut large, "encapsulationPriorities", json!(["VXLAN", "MPLSoUDP"]));
    says(&large, "D304", Outcome::Fail, "with VXLAN (50 around it) it does not fit");
    set(&mut large, "encapsulationPriorities", json!(["MPLSoGRE"]));
    set(&mut large, "cniMTU", json!(1459));
    says(&large, "D304", Outcome::Fail, "with MPLSoGRE (42 around it) it does not fit");
    let fix = verdict(&large, "D304").fix.unwrap();
    let change = r#"[{"op":"add","path":"/spec/services/vrouters/0/spec/serviceConfiguration/cniMTU","value":1458}]"#;
    let expected =
        format!("kubectl patch managers.tf.tungsten.io cluster1 -n tf --type=json -p '{change}'");
    assert_eq!(fix, expected);
    // A node of others may have what it wants.
    let mut elsewhere = large;
    known(&mut elsewhere.managers)[0]["spec"]["services"]["vrouters"][0]["spec"]["commonConfiguration"] =
        json!({"nodeSelector": {"kubernetes.io/hostname": "m1"}});
    let found = verdict(&elsewhere, "D304").nodes.into_iter().map(|one| one.result);
    assert_eq!(found.collect::<Vec<_>>(), [Outcome::Fail, Outcome::Ok, Outcome::Ok]);
}

#[test]
fn sizes_of_packets_and_pages() {
    says(&probed(|_| {}), "D304", Outcome::Ok, "cniMTU 1450 fits");
    let other = probed(|findings| {
        let shown = vec![interface("eth0", 9000)];
        findings.interfaces = Seen::Is(Interfaces { shown, ..Interfaces::default() });
    });
    says(&other, "D304", Outcome::Warn, "m2: eth0 has 9000, others have 1500");
    assert_eq!(verdict(&other, "D304").fix.as_deref(), Some("ip link set dev eth0 mtu 1500"));
    says(&probed(|findings| findings.interfaces = unknown()), "D304", Outcome::Uncertain, "hidden");

    says(&probed(|_| {}), "D306", Outcome::Ok, "the kernel has what vrouters ask for");
    let few = probed(|findings| findings.huge_pages = Seen::Is(HugePages::default()));
    says(&few, "D306", Outcome::Fail, "m2: its kernel has 0 huge pages of 2 MiB, and 128");
    says(&probed(|findings| findings.huge_pages = unknown()), "D306", Outcome::Uncertain, "hidden");
    let mut none = few;
    set(&mut none, "hugePages2M", json!(0));
    assert_eq!(verdict(&none, "D306").outcome, Outcome::Skipped);
}

#[test]
fn files_of_networks_of_pods() {
    let file = |file: &str, plugin: &str| CniFile {
        file: file.to_owned(),
        network: plugin.to_owned(),
        plugins: vec![plugin.to_owned()],
        error: None,
    };
    let with = |files: Vec<CniFile>, default: Option<&str>| {
        let default_network = default.map(str::to_owned);
        let cni =
            Cni { folder: "/etc/cni/net.d".to_owned(), files, default_network, named_by: None };
        probed(|findings| findings.cni = Seen::Is(cni))
    };
    // As vrouters write it, and as upstream's images for nested clusters do.
    let ours = file("10-tf-cni.conf", "contrail-k8s-cni");
    let upstream = file("10-contrail.conf", "contrail-k8s-cni");
    let (calico, flannel) =
        (file("10-calico.conflist", "calico"), file("10-flannel.conflist", "flannel"));
    for first in [&calico, &flannel] {
        let said = format!("{} ({}) sorts before 10-tf-cni.conf", first.file, first.network);
        says(&with(vec![first.clone(), ours.clone()], None), "C401", Outcome::Fail, &said);
        says(&with(vec![first.clone()], None), "C401", Outcome::Fail, &said);
    }
    says(
        &with(vec![ours.clone(), file("20-weave.conflist", "weave")], None),
        "C401",
        Outcome::Ok,
        "",
    );
    says(&with(vec![upstream.clone(), flannel.clone()], None), "C401", Outcome::Ok, "");
    says(
        &with(vec![calico.clone(), upstream], None),
        "C401",
        Outcome::Fail,
        "before 10-contrail.conf",
    );
    says(&with(vec![file("20-weave.conflist", "weave")], None), "C401", Outcome::Ok, "");
    says(
        &with(vec![ours.clone()], Some("calico")),
        "C401",
        Outcome::Fail,
        "CRI-O is set to calico",
    );
    says(&with(vec![calico.clone(), ours], Some("contrail-k8s-cni")), "C401", Outcome::Ok, "");
    let broken = CniFile { error: Some("EOF".to_owned()), ..file("00-x.conf", "") };
    says(&with(vec![broken], None), "C401", Outcome::Fail, "cannot be read: EOF");
    says(&probed(|findings| findings.cni = unknown()), "C401", Outcome::Uncertain, "hidden");
    where_another_network_is_first_by_intent_or_it_is_not_said(&with(vec![calico], None));
    let multus = file("00-multus.conf", "multus");
    says(&with(vec![multus, flannel], None), "C401", Outcome::Ok, "");
}

fn where_another_network_is_first_by_intent_or_it_is_not_said(calico: &World) {
    let but = |change: &dyn Fn(&mut World)| {
        let mut world = calico.clone();
        change(&mut world);
        world
    };
    let manager =
        |change: &dyn Fn(&mut Value)| but(&|world| change(&mut known(&mut world.managers)[0]));
    // By intent: behind Multus, with another as the network below.
    let multus = but(&|world| {
        known(&mut world.daemon_sets).push(
            json!({"metadata": {"name": "multus", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"image": "multus-cni:v4"}],
            "volumes": [{"hostPath": {"path": "/etc/cni/net.d"}}]}}},
        "status": {"numberAvailable": 3}}),
        );
    });
    says(&multus, "C401", Outcome::Ok, "");
    let nested = manager(&|manager| manager["spec"]["nested"] = json!({}));
    says(&nested, "C401", Outcome::Ok, "");
    let openstack = manager(&|manager| {
        manager["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"]["cloudOrchestrator"] =
            json!("openstack");
    });
    says(&openstack, "C401", Outcome::Ok, "");
    // Where no vrouter is to give pods their network, or that is not said.
    let elsewhere = manager(&|manager| {
        manager["spec"]["services"]["vrouters"][0]["spec"]["commonConfiguration"] =
            json!({"nodeSelector": {"kubernetes.io/hostname": "m1"}});
    });
    says(&elsewhere, "C401", Outcome::Warn, "m2: 10-calico.conflist (calico) sorts before");
    says(&elsewhere, "C401", Outcome::Warn, "no vrouter is to run here");
    let without = manager(&|manager| {
        drop(manager["spec"]["services"].as_object_mut().unwrap().remove("kubemanager"));
    });
    says(&without, "C401", Outcome::Warn, "no Manager has a kubemanager");
    says(&but(&|world| world.managers = Read::Absent), "C401", Outcome::Warn, "no Manager says");
    // What may not be read may say that it is by intent.
    says(&but(&|world| world.managers = forbidden()), "C401", Outcome::Uncertain, "Managers");
    says(&but(&|world| world.daemon_sets = forbidden()), "C401", Outcome::Uncertain, "DaemonSets");
}

#[test]
fn the_network_of_docker_is_apart_from_the_planned_ones_where_it_is_there() {
    let with = |routes| probed(|findings| findings.routes = routes);
    let docker = |network: &str| with(Seen::Is(vec![route(network, "docker0", None)]));
    says(&probed(|_| {}), "S501", Outcome::Ok, "pods 10.32.0.0/12");
    says(&docker("172.17.0.0/16"), "S501", Outcome::Ok, "");
    says(
        &docker("10.40.0.0/16"),
        "S501",
        Outcome::Fail,
        "the network 10.32.0.0/12 of pods overlaps 10.40.0.0/16 of docker0 on node m2",
    );
    says(&with(unknown()), "S501", Outcome::Uncertain, "node m2 are not known: it is hidden");
    let mut late = probed(|_| {});
    late.probed.as_mut().unwrap().insert("m3".to_owned(), Err("no answer in 120 s".to_owned()));
    says(&late, "S501", Outcome::Uncertain, "node m3 are not known: no answer");
}

#[test]
fn routes_clocks_and_settings() {
    let with = |routes| probed(|findings| findings.routes = routes);
    let pods = route("10.33.0.0/16", "eth1", Some("192.168.0.9"));
    says(
        &with(Seen::Is(vec![pods])),
        "S502",
        Outcome::Warn,
        "10.33.0.0/16 by 192.168.0.9 is in 10.32.0.0/12 of pods",
    );
    let own = route("10.33.0.0/16", "vhost0", None);
    says(&with(Seen::Is(vec![own])), "S502", Outcome::Ok, "");
    says(&with(unknown()), "S502", Outcome::Uncertain, "it is hidden");

    let mut ahead = probed(|_| {});
    answer(&mut ahead, "m2").ahead = Seen::Is(700_000);
    says(&ahead, "T602", Outcome::Warn, "m2: its clock is 0.6 s ahead of that of most nodes");
    answer(&mut ahead, "m2").ahead = Seen::Is(-6_000_000);
    says(&ahead, "T602", Outcome::Fail, "6.0 s behind");
    answer(&mut ahead, "m2").ahead = unknown();
    says(&ahead, "T602", Outcome::Uncertain, "not compared");
    says(
        &probed(|findings| findings.synchronised = Seen::Is(false)),
        "T602",
        Outcome::Warn,
        "not synchronised",
    );
    says(
        &probed(|findings| findings.synchronised = unknown()),
        "T602",
        Outcome::Uncertain,
        "hidden",
    );

    let strict = probed(|findings| findings.sysctls[0].value = Seen::Is(Some("1".to_owned())));
    says(&strict, "X902", Outcome::Warn, "m2: net.ipv4.conf.all.rp_filter is 1");
    // The larger of the two is in force.
    let with_new = |all: &str, new: &str| {
        probed(|findings| {
            findings.sysctls[0].value = Seen::Is(Some(all.to_owned()));
            let name = "net.ipv4.conf.default.rp_filter".to_owned();
            findings.sysctls.push(Sysctl { name, value: Seen::Is(Some(new.to_owned())) });
        })
    };
    says(&with_new("0", "1"), "X902", Outcome::Warn, "net.ipv4.conf.default.rp_filter is 1");
    for (all, new) in [("2", "1"), ("1", "2"), ("0", "0")] {
        assert_eq!(outcome(&with_new(all, new), "X902"), Outcome::Ok, "{all} {new}");
    }
    let swap = probed(|findings| findings.swaps = Seen::Is(vec!["/dev/sda2".to_owned()]));
    says(&swap, "X902", Outcome::Warn, "swapped to /dev/sda2");
    says(&probed(|findings| findings.swaps = unknown()), "X902", Outcome::Uncertain, "hidden");
}

#[test]
fn folders_of_databases() {
    const PATH: &str = "/var/lib/contrail/zookeeper";
    let with = |state: Seen<DirectoryState>| {
        probed(|findings| {
            let one = findings.directories.iter_mut().find(|one| one.path == PATH);
            one.unwrap().state = state;
        })
    };
    says(
        &with(Seen::Is(DirectoryState::Absent(space(1)))),
        "V701",
        Outcome::Fail,
        "has 1.0 GiB free of 4",
    );
    says(&with(Seen::Is(DirectoryState::NoFolder)), "V701", Outcome::Fail, "is no folder");
    let read_only = Space { read_only: Seen::Is(true), ..space(300) };
    says(&with(Seen::Is(DirectoryState::Absent(read_only))), "V701", Outcome::Fail, "read-only");
    let unsure = Space { read_only: unknown(), ..space(300) };
    says(&with(Seen::Is(DirectoryState::Absent(unsure))), "V701", Outcome::Uncertain, "hidden");
    says(&with(unknown()), "V701", Outcome::Uncertain, "it is hidden");

    let data = || {
        Seen::Is(DirectoryState::Present { space: space(300), entries: vec!["myid".to_owned()] })
    };
    // Of a Manager that is stored the pods may only be away.
    says(
        &with(data()),
        "V702",
        Outcome::Uncertain,
        "/var/lib/contrail/zookeeper has myid, and no pod of ours runs there",
    );
    let mut planned = with(data());
    known(&mut planned.managers)[0]["metadata"]["annotations"] =
        json!({"kubectl-opensdn/planned": "true"});
    says(
        &planned,
        "V702",
        Outcome::Fail,
        "/var/lib/contrail/zookeeper has myid: another Zookeeper left it",
    );
    // A running one has data of its own.
    let mut installed = with(data());
    known(&mut installed.pods).push(
        json!({"metadata": {"namespace": "tf", "labels": {"tf_manager": "zookeeper"}}, "spec": {"nodeName": "m2"}}),
    );
    says(&installed, "V702", Outcome::Ok, "");
    installed.pods = forbidden();
    says(&installed, "V702", Outcome::Uncertain, "pods may not be read");
    says(&with(unknown()), "V702", Outcome::Uncertain, "it is hidden");
    let empty = || Seen::Is(DirectoryState::Present { space: space(300), entries: vec![] });
    says(&with(empty()), "V702", Outcome::Ok, "");
    // The node has no Rabbitmq to be.
    let other = probed(|findings| findings.directories[2].state = data());
    says(&other, "V702", Outcome::Ok, "");
}

#[test]
fn without_the_flag_nothing_of_nodes_is_claimed() {
    let report = judge(&but(|_| {}), &Chosen::default());
    for one in report.checks.iter().filter(|one| one.mode == Mode::Probe) {
        assert_eq!(one.result, Outcome::Skipped, "{}: {}", one.id, one.message);
    }
}
