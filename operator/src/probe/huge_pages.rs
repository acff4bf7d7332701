//! Huge pages of the node, by /sys, and where they are mounted, by the mounts of its first process.

use opensdn_node_probe::{HugePageMount, HugePages, NumaPages};

use super::host::Host;

const FOLDER: &str = "/sys/kernel/mm/hugepages";
const NUMA: &str = "/sys/devices/system/node";
const SMALL: &str = "2048kB";
const LARGE: &str = "1048576kB";
const SYSTEM: &str = "hugetlbfs";
/// So many of each are shown.
const SHOWN: usize = 16;

pub(super) fn look(host: &Host) -> Result<HugePages, String> {
    let of = |size: &str, what: &str| count(host, FOLDER, size, what);
    Ok(HugePages {
        of_2_mib: of(SMALL, "nr_hugepages")?,
        free_of_2_mib: of(SMALL, "free_hugepages")?,
        of_1_gib: of(LARGE, "nr_hugepages")?,
        free_of_1_gib: of(LARGE, "free_hugepages")?,
        mounts: mounts(host).into(),
        numa_nodes: numa_nodes(host).into(),
    })
}

/// A kernel does not have each size.
fn count(host: &Host, folder: &str, size: &str, what: &str) -> Result<u64, String> {
    let path = format!("{folder}/hugepages-{size}/{what}");
    let Some(text) = host.text(&path)? else { return Ok(0) };
    text.trim().parse().map_err(|_| format!("{path} is {:?}", text.trim()))
}

fn mounts(host: &Host) -> Result<Vec<HugePageMount>, String> {
    let mounts = host.needed("/proc/1/mountinfo")?;
    // `36 35 0:31 / /dev/hugepages rw,relatime shared:1 - hugetlbfs hugetlbfs rw,pagesize=2M`
    let found = mounts.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        (system.next()? == SYSTEM).then_some(())?;
        let size = system.nth(1)?.split(',').find_map(|option| option.strip_prefix("pagesize="));
        Some(HugePageMount {
            path: mount.split(' ').nth(4)?.to_owned(),
            mebibytes_of_page: size.and_then(mebibytes),
        })
    });
    Ok(found.take(SHOWN).collect())
}

/// The kernel writes `2M`, `1024M`, and for small ones `64K`, which is no MiB.
fn mebibytes(size: &str) -> Option<u64> {
    match (size.strip_suffix('M'), size.strip_suffix('G')) {
        (Some(number), _) => number.parse().ok(),
        (_, Some(number)) => number.parse::<u64>().ok()?.checked_mul(1024),
        _ => None,
    }
}

fn numa_nodes(host: &Host) -> Result<Vec<NumaPages>, String> {
    let names = host.names(NUMA)?.unwrap_or_default();
    let numbers = names.iter().filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok());
    let mut found = Vec::new();
    for node in numbers.take(SHOWN) {
        let folder = format!("{NUMA}/node{node}/hugepages");
        // Upstream's script counts those that have one.
        if host.metadata(&folder)?.is_none() {
            continue;
        }
        let of = |what: &str| -> Result<u64, String> {
            let (small, large) =
                (count(host, &folder, SMALL, what)?, count(host, &folder, LARGE, what)?);
            Ok(small.saturating_mul(2).saturating_add(large.saturating_mul(1024)))
        };
        found.push(NumaPages { node, mebibytes: of("nr_hugepages")?, free: of("free_hugepages")? });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use opensdn_node_probe::Seen;

    use super::super::tests::node;
    use super::*;

    const OF_2_MIB: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";

    #[test]
    fn pages_are_counted_and_a_size_that_is_not_there_is_none() {
        let (_folder, host) = node(&[
            (&format!("{OF_2_MIB}/nr_hugepages"), "512\n"),
            (&format!("{OF_2_MIB}/free_hugepages"), "12\n"),
            (
                "proc/1/mountinfo",
                "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                36 35 0:31 / /dev/hugepages rw,relatime shared:1 - hugetlbfs hugetlbfs rw,pagesize=2M\n\
                37 35 0:32 / /dev/huge1G rw shared:2 - hugetlbfs none rw,pagesize=1024M\n\
                38 35 0:33 / /dev/old rw - hugetlbfs none rw\n",
            ),
            ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "500\n"),
            ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "0\n"),
            ("sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "2\n"),
            ("sys/devices/system/node/node1/hugepages/hugepages-1048576kB/free_hugepages", "1\n"),
            ("sys/devices/system/node/node2/cpulist", "\n"),
            ("sys/devices/system/node/possible", "0-2\n"),
        ]);
        let seen = look(&host).unwrap();
        assert_eq!((seen.of_2_mib, seen.free_of_2_mib), (512, 12));
        assert_eq!((seen.of_1_gib, seen.free_of_1_gib), (0, 0));
        let mount = |path: &str, mebibytes_of_page: Option<u64>| HugePageMount {
            path: path.to_owned(),
            mebibytes_of_page,
        };
        let mounts = vec![
            mount("/dev/hugepages", Some(2)),
            mount("/dev/huge1G", Some(1024)),
            mount("/dev/old", None),
        ];
        assert_eq!(seen.mounts, Seen::Is(mounts));
        let nodes = vec![
            NumaPages { node: 0, mebibytes: 1000, free: 0 },
            NumaPages { node: 1, mebibytes: 2048, free: 1024 },
        ];
        assert_eq!(seen.numa_nodes, Seen::Is(nodes));
    }

    #[test]
    fn mounts_that_cannot_be_read_are_not_known_and_no_numa_is_none() {
        let (_folder, host) =
            node(&[(&format!("{OF_2_MIB}/nr_hugepages"), "1\n"), ("proc/swaps", "")]);
        let seen = look(&host).unwrap();
        assert_eq!(seen.mounts.known(), None);
        assert_eq!(seen.numa_nodes, Seen::Is(vec![]));
    }
}
