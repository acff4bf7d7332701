//! Modules that the kernel brings along: a part of it, loaded, or loaded when they are needed.

use opensdn_node_probe::{ModuleFinding, ModuleState, Seen};

use super::host::Host;

pub(super) fn look(host: &Host, wanted: &[String]) -> Vec<ModuleFinding> {
    let of =
        |name: &String| ModuleFinding { name: name.clone(), state: Seen::from(state(host, name)) };
    wanted.iter().map(of).collect()
}

fn state(host: &Host, name: &str) -> Result<ModuleState, String> {
    let loaded = host.needed("/proc/modules")?;
    if loaded.lines().any(|line| is_same(line.split(' ').next().unwrap_or_default(), name)) {
        return Ok(ModuleState::Loaded);
    }
    let release = host.needed("/proc/sys/kernel/osrelease")?;
    let folder = format!("/lib/modules/{}", release.trim());
    // Without the first a kernel has nothing built in that could be a module.
    let built_in = host.text(&format!("{folder}/modules.builtin"))?.unwrap_or_default();
    if built_in.lines().any(|path| is_file_of(path, name)) {
        return Ok(ModuleState::BuiltIn);
    }
    let files = host.needed(&format!("{folder}/modules.dep"))?;
    let is_there = files.lines().filter_map(|line| line.split(':').next());
    Ok(match is_there.into_iter().any(|path| is_file_of(path, name)) {
        true => ModuleState::Loadable,
        false => ModuleState::Missing,
    })
}

/// `kernel/net/8021q/8021q.ko.xz` of `8021q`.
fn is_file_of(path: &str, name: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    let own =
        file.split_once(".ko").filter(|(_, packed)| ["", ".xz", ".zst", ".gz"].contains(packed));
    own.is_some_and(|(own, _)| is_same(own, name))
}

/// The kernel and modprobe take `-` and `_` in names of modules for one: `vfio-pci` is loaded as `vfio_pci`.
fn is_same(one: &str, other: &str) -> bool {
    one.replace('-', "_") == other.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    #[test]
    fn a_module_is_built_in_loaded_loadable_or_missing() {
        let (_folder, host) = node(&[
            ("proc/modules", "macvlan 32768 0 - Live 0x0\nvfio_pci 16384 0 - Live 0x0\n"),
            ("proc/sys/kernel/osrelease", "6.8.0-1\n"),
            ("lib/modules/6.8.0-1/modules.builtin", "kernel/net/ipv4/tunnel4.ko\n"),
            (
                "lib/modules/6.8.0-1/modules.dep",
                "kernel/net/8021q/8021q.ko.zst: kernel/net/802/garp.ko\n",
            ),
        ]);
        let wanted = ["macvlan", "tunnel4", "8021q", "garp", "vfio-pci"].map(str::to_owned);
        let found = look(&host, &wanted);
        let states: Vec<ModuleState> =
            found.iter().filter_map(|one| one.state.known().copied()).collect();
        assert_eq!(
            states,
            [
                ModuleState::Loaded,
                ModuleState::BuiltIn,
                ModuleState::Loadable,
                ModuleState::Missing,
                ModuleState::Loaded,
            ],
            "garp is only named behind the colon"
        );
    }

    #[test]
    fn without_the_folder_of_modules_it_is_not_known() {
        let (_folder, host) = node(&[
            ("proc/modules", ""),
            ("proc/sys/kernel/osrelease", "6.8.0-1\n"),
            ("usr/x", ""),
        ]);
        let found = look(&host, &["macvlan".to_owned()]);
        assert!(found.iter().all(|one| one.state.known().is_none()), "{found:#?}");
    }
}
