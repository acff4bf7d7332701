//! Worlds of huge pages on nodes that were looked at: free or not, mounted or not, on each NUMA node or not, and not to be
//! known.

use opensdn_node_probe::{HugePages, NumaPages, Seen};
use serde_json::{Value, json};

use super::super::report::Outcome;
use super::super::world::World;
use super::probed::{answer, mount, probed, unknown};
use super::{forbidden, known, says};

const D306: &str = "D306";

fn vrouter(world: &mut World) -> &mut Value {
    &mut known(&mut world.managers)[0]["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"]
}

/// The second node has other pages.
fn with(change: impl FnOnce(&mut HugePages)) -> World {
    probed(|findings| match &mut findings.huge_pages {
        Seen::Is(pages) => change(pages),
        Seen::Unknown(why) => panic!("they are known: {why}"),
    })
}

fn run_a_vrouter(world: &mut World) {
    known(&mut world.pods).push(
        json!({"metadata": {"namespace": "tf", "labels": {"tf_manager": "vrouter"}}, "spec": {"nodeName": "m2"}}),
    );
}

#[test]
fn pages_have_to_be_free_unless_a_vrouter_runs_that_may_have_them() {
    let mut held = with(|pages| pages.free_of_2_mib = 12);
    says(
        &held,
        D306,
        Outcome::Fail,
        "m2: its kernel has 256 huge pages of 2 MiB, of which 12 are free",
    );
    run_a_vrouter(&mut held);
    says(&held, D306, Outcome::Ok, "3/3 nodes");
    held.pods = forbidden();
    says(&held, D306, Outcome::Uncertain, "pods may not be read");
    says(&with(|pages| pages.free_of_2_mib = 128), D306, Outcome::Ok, "3/3 nodes");
}

#[test]
fn pages_have_to_be_mounted_where_the_agent_looks_for_them() {
    let mounted = |mounts: Vec<(&str, u64)>| {
        let mounts = mounts.into_iter().map(|(path, size)| mount(path, size)).collect();
        with(|pages| pages.mounts = Seen::Is(mounts))
    };
    says(
        &mounted(vec![]),
        D306,
        Outcome::Fail,
        "m2: no huge pages are mounted at /dev/hugepages: mount",
    );
    says(&mounted(vec![("/mnt/huge", 2)]), D306, Outcome::Ok, "3/3 nodes");
    let large = mounted(vec![("/dev/hugepages", 1024)]);
    says(&large, D306, Outcome::Warn, "no pages of 2 MiB are mounted, and those at /dev/hugepages");
    let mut named = mounted(vec![("/mnt/huge", 2)]);
    vrouter(&mut named)["envVariablesConfig"] = json!({"HUGE_PAGES_2MB_DIR": "/mnt/other/"});
    says(&named, D306, Outcome::Fail, "at /mnt/other: mount");
    says(&with(|pages| pages.mounts = unknown()), D306, Outcome::Uncertain, "hidden");
}

/// All nodes ask for DPDK; each has two NUMA nodes with 2 GiB.
fn dpdk(change: impl FnOnce(&mut HugePages)) -> World {
    let mut world = probed(|_| {});
    vrouter(&mut world)["dpdk"] = json!({"uioDriver": "vfio-pci"});
    let pages = |node: u32| NumaPages { node, mebibytes: 2048, free: 2048 };
    for node in ["m1", "m2", "m3"] {
        if let Seen::Is(found) = &mut answer(&mut world, node).findings.huge_pages {
            found.numa_nodes = Seen::Is(vec![pages(0), pages(1)]);
        }
    }
    if let Seen::Is(found) = &mut answer(&mut world, "m2").findings.huge_pages {
        change(found);
    }
    world
}

#[test]
fn dpdk_takes_as_much_of_each_numa_node() {
    let second = |mebibytes: u64, free: u64| {
        let pages = |node: u32, mebibytes: u64, free: u64| NumaPages { node, mebibytes, free };
        dpdk(|found| {
            found.numa_nodes = Seen::Is(vec![pages(0, 4096, 4096), pages(1, mebibytes, free)])
        })
    };
    says(&second(1024, 1024), D306, Outcome::Ok, "3/3 nodes");
    says(
        &second(0, 0),
        D306,
        Outcome::Fail,
        "m2: NUMA node 1 has 0 MiB of huge pages, and DPDK takes 1024",
    );
    let mut held = second(2048, 8);
    says(&held, D306, Outcome::Fail, "NUMA node 1 has 2048 MiB of huge pages, of which 8 are free");
    run_a_vrouter(&mut held);
    says(&held, D306, Outcome::Ok, "");
    let mut less = second(512, 512);
    vrouter(&mut less)["envVariablesConfig"] = json!({"DPDK_MEM_PER_SOCKET": "512"});
    says(&less, D306, Outcome::Ok, "");
    vrouter(&mut less)["envVariablesConfig"] = json!({"DPDK_MEM_PER_SOCKET": "512,0"});
    says(&less, D306, Outcome::Uncertain, "no number of MiB");
    says(&dpdk(|found| found.numa_nodes = unknown()), D306, Outcome::Uncertain, "hidden");
    let other = dpdk(|found| found.mounts = Seen::Is(vec![mount("/mnt/huge", 2)]));
    says(&other, D306, Outcome::Fail, "no huge pages are mounted at /dev/hugepages");
}

#[test]
fn what_dpdk_takes_without_the_kubelet_is_seen_on_nodes_alone() {
    let mut world = dpdk(|_| {});
    vrouter(&mut world)["hugePages2M"] = Value::Null;
    says(&world, D306, Outcome::Ok, "3/3 nodes");
    vrouter(&mut world)["dpdk"]["hugePages2M"] = json!(100_000);
    says(&world, D306, Outcome::Fail, "m1 has 256 of 100000 hugepages-2Mi");
    vrouter(&mut world)["dpdk"]["hugePages2M"] = Value::Null;
    world.probed = None;
    says(&world, D306, Outcome::Uncertain, "needs --probe");
    vrouter(&mut world)["profiles"] = json!(["fast"]);
    says(&world, D306, Outcome::Uncertain, "there is no VrouterProfile tf/fast");
}

#[test]
fn an_answer_of_an_older_image_is_read_and_says_nothing_of_mounts() {
    let older = json!({"of2Mib": 256, "freeOf2Mib": 256, "of1Gib": 0, "freeOf1Gib": 0});
    let pages: HugePages = serde_json::from_value(older).unwrap();
    assert_eq!((pages.of_2_mib, pages.mounts.known()), (256, None));
    let world = probed(|findings| findings.huge_pages = Seen::Is(pages));
    says(
        &world,
        D306,
        Outcome::Uncertain,
        "m2: where huge pages are mounted: it was not looked at",
    );
}
