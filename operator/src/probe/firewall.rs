//! Firewalls of the node. Rules are not read, as that needs the right to change them: what is seen is which program
//! writes rules of its own, and whether the kernel can filter at all.

use opensdn_node_probe::Firewall;

use super::host::Host;

pub(super) fn look(host: &Host) -> Result<Firewall, String> {
    let mut programs = Vec::new();
    for pid in host.names("/proc")?.unwrap_or_default() {
        if pid.parse::<u32>().is_err() {
            continue;
        }
        // A process may have ended since.
        let name = host.text(&format!("/proc/{pid}/comm")).ok().flatten().unwrap_or_default();
        if name.trim() == "firewalld" {
            programs.push("firewalld".to_owned());
            break;
        }
    }
    let ufw = host.text("/etc/ufw/ufw.conf")?.unwrap_or_default();
    if ufw.lines().any(|line| line.trim().eq_ignore_ascii_case("ENABLED=yes")) {
        programs.push("ufw".to_owned());
    }
    Ok(Firewall { programs, can_filter: can_filter(host)? })
}

/// Whether nf_tables or the older tables are loaded, or are a part of the kernel.
fn can_filter(host: &Host) -> Result<bool, String> {
    const FILTERS: [&str; 3] = ["nf_tables", "iptable_filter", "ip6table_filter"];
    let loaded = host.needed("/proc/modules")?;
    if loaded.lines().filter_map(|line| line.split(' ').next()).any(|name| FILTERS.contains(&name))
    {
        return Ok(true);
    }
    let release = host.needed("/proc/sys/kernel/osrelease")?;
    let path = format!("/lib/modules/{}/modules.builtin", release.trim());
    let built_in = host.needed(&path)?;
    let is_filter = |line: &str| FILTERS.iter().any(|name| line.ends_with(&format!("/{name}.ko")));
    Ok(built_in.lines().any(is_filter))
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    #[test]
    fn programs_that_write_rules_are_found() {
        let (_folder, host) = node(&[
            ("proc/12/comm", "firewalld\n"),
            ("proc/modules", "nf_tables 1 0\n"),
            ("etc/ufw/ufw.conf", "# x\nENABLED=yes\n"),
        ]);
        let seen = look(&host).unwrap();
        assert_eq!(
            (seen.programs, seen.can_filter),
            (vec!["firewalld".into(), "ufw".into()], true)
        );
    }

    #[test]
    fn a_kernel_without_filters_is_told_from_one_that_is_not_known() {
        let files = [("proc/modules", ""), ("etc/x", ""), ("proc/sys/kernel/osrelease", "5.1\n")];
        let (_folder, host) = node(&files);
        assert!(look(&host).is_err());
        let built_in = ("lib/modules/5.1/modules.builtin", "kernel/net/core/x.ko\n");
        let (_folder, host) = node(&[&files[..], &[built_in]].concat());
        assert_eq!(look(&host), Ok(Firewall::default()));
    }
}
