//! Settings of the node: sysctls, swap.

use opensdn_node_probe::Sysctl;

use super::host::Host;

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
            ("proc/sys/net/ipv4/conf/all/rp_filter", "1\n"),
            ("proc/swaps", "Filename Type Size\n/dev/sda2 partition 1\n"),
        ]);
        let names = ["net.ipv4.conf.all.rp_filter".to_owned(), "vm.none".to_owned()];
        let values: Vec<Seen<Option<String>>> =
            sysctls(&host, &names).into_iter().map(|one| one.value).collect();
        assert_eq!(values, [Seen::Is(Some("1".to_owned())), Seen::Is(None)]);
        assert_eq!(swaps(&host), Ok(vec!["/dev/sda2".to_owned()]));
    }
}
