//! Settings of the node: huge pages, sysctls, swap.

use opensdn_node_probe::{HugePages, Sysctl};

use super::host::Host;

pub(super) fn huge_pages(host: &Host) -> Result<HugePages, String> {
    const FOLDER: &str = "/sys/kernel/mm/hugepages";
    let count = |size: &str, what: &str| -> Result<u64, String> {
        let path = format!("{FOLDER}/hugepages-{size}/{what}");
        // A kernel does not have each size.
        let Some(text) = host.text(&path)? else { return Ok(0) };
        text.trim().parse().map_err(|_| format!("{path} is {:?}", text.trim()))
    };
    Ok(HugePages {
        of_2_mib: count("2048kB", "nr_hugepages")?,
        free_of_2_mib: count("2048kB", "free_hugepages")?,
        of_1_gib: count("1048576kB", "nr_hugepages")?,
        free_of_1_gib: count("1048576kB", "free_hugepages")?,
    })
}

pub(super) fn sysctls(host: &Host, names: &[String]) -> Vec<Sysctl> {
    let of = |name: &String| {
        let read = host.text(&format!("/proc/sys/{}", name.replace('.', "/")));
        let value = read.map(|text| text.map(|text| text.trim().to_owned()));
        Sysctl { name: name.clone(), value: value.into() }
    };
    names.iter().map(of).collect()
}

pub(super) fn swaps(host: &Host) -> Result<Vec<String>, String> {
    let table = host.needed("/proc/swaps")?;
    let devices = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    Ok(devices.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use opensdn_node_probe::Seen;

    use super::super::tests::node;
    use super::*;

    #[test]
    fn settings_are_read_and_what_is_not_there_is_none() {
        let (_folder, host) = node(&[
            ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n"),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "12\n"),
            ("proc/sys/net/ipv4/conf/all/rp_filter", "1\n"),
            ("proc/swaps", "Filename Type Size\n/dev/sda2 partition 1\n"),
        ]);
        let pages = HugePages { of_2_mib: 512, free_of_2_mib: 12, of_1_gib: 0, free_of_1_gib: 0 };
        assert_eq!(huge_pages(&host), Ok(pages));
        let names = ["net.ipv4.conf.all.rp_filter".to_owned(), "vm.none".to_owned()];
        let values: Vec<Seen<Option<String>>> =
            sysctls(&host, &names).into_iter().map(|one| one.value).collect();
        assert_eq!(values, [Seen::Is(Some("1".to_owned())), Seen::Is(None)]);
        assert_eq!(swaps(&host), Ok(vec!["/dev/sda2".to_owned()]));
    }
}
