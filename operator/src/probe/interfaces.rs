//! The interfaces of the node, by /sys/class/net.

use opensdn_node_probe::{Interface, Interfaces, MOST_ENTRIES, Seen};

use super::host::Host;
use super::routes;

const FOLDER: &str = "/sys/class/net";
/// How those of pods begin, by their CNI. There may be hundreds.
const OF_PODS: [&str; 4] = ["cali", "veth", "lxc", "tap"];

pub(super) fn look(host: &Host) -> Result<Interfaces, String> {
    let names = host.names(FOLDER)?.ok_or_else(|| format!("the node has no {FOLDER}"))?;
    let networks = routes::direct(host).ok();
    let mut found = Interfaces::default();
    for name in names {
        if is_of_pod(&name) && !is_device(host, &name) {
            found.of_pods += 1;
            found.first_of_pods.get_or_insert(name);
        // A file is among them where bonds can be: bonding_masters.
        } else if host.metadata(&format!("{FOLDER}/{name}"))?.is_some_and(|one| one.is_dir()) {
            found.shown.push(interface(host, name, networks.as_deref()));
        }
    }
    Ok(found)
}

/// By its name.
pub(super) fn is_of_pod(name: &str) -> bool {
    OF_PODS.iter().any(|start| name.starts_with(start))
}

fn is_device(host: &Host, name: &str) -> bool {
    host.link_name(&format!("{FOLDER}/{name}/device")).is_some()
}

fn interface(host: &Host, name: String, networks: Option<&[(String, String)]>) -> Interface {
    let at = |what: &str| format!("{FOLDER}/{name}/{what}");
    let text = |what: &str| host.needed(&at(what)).map(|text| text.trim().to_owned());
    let mtu =
        text("mtu").and_then(|mtu| mtu.parse().map_err(|_| format!("{} is {mtu:?}", at("mtu"))));
    let bond = host.text(&at("bonding/mode")).ok().flatten();
    let own = |networks: &[(String, String)]| {
        let own = networks.iter().filter(|(interface, _)| *interface == name);
        own.map(|(_, network)| network.clone()).take(MOST_ENTRIES).collect()
    };
    Interface {
        state: text("operstate").into(),
        mtu: Seen::from(mtu),
        master: host.link_name(&at("master")),
        driver: host.link_name(&at("device/driver")),
        bond: bond.and_then(|mode| Some(mode.split_whitespace().next()?.to_owned())),
        networks: networks.map(own),
        name,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::tests::node;
    use super::*;

    #[test]
    fn interfaces_are_shown_and_those_of_pods_counted() {
        let (folder, host) = node(&[
            ("sys/class/net/eth0/mtu", "9000\n"),
            ("sys/class/net/eth0/operstate", "up\n"),
            ("sys/class/net/bond0/operstate", "down\n"),
            ("sys/class/net/bond0/mtu", "many\n"),
            ("sys/class/net/bond0/bonding/mode", "802.3ad 4\n"),
            ("sys/class/net/cali1234/mtu", "1450\n"),
            ("sys/class/net/cali5678/mtu", "1450\n"),
            ("sys/class/net/bonding_masters", "bond0\n"),
            (
                "proc/net/route",
                "Iface\tDestination\tGateway\n\
                eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
                eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n",
            ),
        ]);
        symlink("../bond0", folder.path().join("sys/class/net/eth0/master")).unwrap();
        let seen = look(&host).unwrap();
        assert_eq!((seen.of_pods, seen.first_of_pods.as_deref()), (2, Some("cali1234")));
        let [bond, eth] = &*seen.shown else { panic!("{seen:#?}") };
        assert_eq!((bond.bond.as_deref(), eth.master.as_deref()), (Some("802.3ad"), Some("bond0")));
        assert_eq!((&eth.mtu, bond.mtu.known()), (&Seen::Is(9000), None));
        assert_eq!(eth.state, Seen::Is("up".to_owned()));
        let networks = |one: &Interface| one.networks.as_ref().map(|all| all.join(" "));
        assert_eq!(
            networks(eth).as_deref(),
            Some("192.168.1.0/24"),
            "the default route is by a router"
        );
        assert_eq!(networks(bond).as_deref(), Some(""));
        std::fs::remove_file(folder.path().join("proc/net/route")).unwrap();
        assert_eq!(look(&host).unwrap().shown.first().unwrap().networks, None);
    }
}
