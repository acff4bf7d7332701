//! The kernel, and whether the module can be loaded into it: what `modinfo`, `mokutil` and `lsmod` would say.

use opensdn_node_probe::{Kernel, ModuleFile, Seen};

use super::host::Host;

/// So deep folders of modules are.
const DEPTH: usize = 6;
/// What the end of a signed module is.
const SIGNED: &[u8] = b"~Module signature appended~\n";
const SECURE_BOOT: &str =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

pub(super) fn look(host: &Host, module: &str) -> Kernel {
    let release = host.needed("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned());
    let of_release = |read: &dyn Fn(&str) -> Result<Seen<bool>, String>| match &release {
        Ok(release) => read(release).unwrap_or_else(Seen::Unknown),
        Err(why) => Seen::Unknown(why.clone()),
    };
    let headers = of_release(&|release| {
        let folder = format!("/lib/modules/{release}");
        if host.metadata(&folder)?.is_none() {
            return Err(format!("the node has no {folder}"));
        }
        let makefile = host.metadata(&format!("{folder}/build/Makefile"))?;
        Ok(Seen::Is(makefile.is_some()))
    });
    let files = match &release {
        Ok(release) => files(host, release, module),
        Err(why) => Err(why.clone()),
    };
    Kernel {
        loaded: is_loaded(host, module).into(),
        files: files.into(),
        headers,
        secure_boot: secure_boot(host).into(),
        only_signed: only_signed(host).into(),
        lockdown: lockdown(host).into(),
        release: release.into(),
    }
}

fn is_loaded(host: &Host, module: &str) -> Result<bool, String> {
    let modules = host.needed("/proc/modules")?;
    Ok(modules.lines().any(|line| line.split(' ').next() == Some(module)))
}

fn files(host: &Host, release: &str, module: &str) -> Result<Vec<ModuleFile>, String> {
    let folder = format!("/lib/modules/{release}");
    if host.metadata(&folder)?.is_none() {
        return Err(format!("the node has no {folder}"));
    }
    let mut found = Vec::new();
    walk(host, &folder, module, DEPTH, &mut found)?;
    found.into_iter().map(|path| file(host, path)).collect()
}

fn walk(
    host: &Host,
    folder: &str,
    module: &str,
    depth: usize,
    found: &mut Vec<String>,
) -> Result<(), String> {
    for name in host.names(folder)?.unwrap_or_default() {
        let path = format!("{folder}/{name}");
        let is_module = name
            .strip_prefix(module)
            .is_some_and(|rest| [".ko", ".ko.xz", ".ko.zst", ".ko.gz"].contains(&rest));
        if is_module {
            found.push(path);
        } else if depth > 0
            && !["build", "source"].contains(&name.as_str())
            && host.metadata(&path)?.is_some_and(|one| one.is_dir())
        {
            walk(host, &path, module, depth - 1, found)?;
        }
    }
    Ok(())
}

fn file(host: &Host, path: String) -> Result<ModuleFile, String> {
    if !path.ends_with(".ko") {
        let why = || "it is compressed".to_owned();
        return Ok(ModuleFile {
            path,
            vermagic: Seen::Unknown(why()),
            signed: Seen::Unknown(why()),
        });
    }
    let bytes = host.bytes(&path)?.unwrap_or_default();
    let vermagic = vermagic(&bytes).ok_or_else(|| "the file has none".to_owned());
    Ok(ModuleFile { path, vermagic: vermagic.into(), signed: Seen::Is(bytes.ends_with(SIGNED)) })
}

/// `5.14.0-503.el9.x86_64 SMP mod_unload` of the section `.modinfo`, whose strings end in zeros.
fn vermagic(bytes: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"vermagic=";
    let at = bytes.windows(KEY.len()).position(|part| part == KEY)?;
    let value = bytes.get(at + KEY.len()..)?;
    let value = value.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn secure_boot(host: &Host) -> Result<bool, String> {
    if host.metadata("/sys/firmware/efi")?.is_none() {
        // Without EFI there is none.
        return Ok(false);
    }
    match host.bytes(SECURE_BOOT)? {
        // Four bytes of attributes, then the value.
        Some(bytes) => match bytes.get(4) {
            Some(value) => Ok(*value == 1),
            None => Err(format!("{SECURE_BOOT} is too short")),
        },
        None => Err("the variables of EFI are not mounted".to_owned()),
    }
}

fn only_signed(host: &Host) -> Result<bool, String> {
    let enforce = host.text("/sys/module/module/parameters/sig_enforce")?;
    // A kernel that knows no signatures does not have it.
    Ok(enforce.is_some_and(|text| text.trim() == "Y"))
}

/// The mode in brackets: `none [integrity] confidentiality`.
fn lockdown(host: &Host) -> Result<String, String> {
    match host.text("/sys/kernel/security/lockdown")? {
        Some(text) => {
            let mode = text.split(['[', ']']).nth(1);
            mode.map(str::to_owned).ok_or_else(|| format!("lockdown is {:?}", text.trim()))
        }
        None if host.names("/sys/kernel/security")?.is_none_or(|names| names.is_empty()) => {
            Err("securityfs is not mounted".to_owned())
        }
        // It is mounted, and this kernel has no such thing.
        None => Ok("none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    #[test]
    fn a_module_is_found_with_the_kernel_that_it_is_for() {
        let module = "\u{7f}ELF\0name=vrouter\0vermagic=5.14.0-1.el9 SMP mod_unload \0rest";
        let signed = format!("{module}~Module signature appended~\n");
        let (_folder, host) = node(&[
            ("proc/sys/kernel/osrelease", "5.14.0-2.el9\n"),
            ("proc/modules", "vrouter_other 1 0\nnf_tables 2 0\n"),
            ("lib/modules/5.14.0-2.el9/extra/vrouter.ko", module),
            ("lib/modules/5.14.0-2.el9/updates/dkms/vrouter.ko", &signed),
            ("lib/modules/5.14.0-2.el9/updates/vrouter.ko.xz", "x"),
            ("lib/modules/5.14.0-2.el9/build/Makefile", ""),
            (
                "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                "\u{6}\0\0\0\u{1}",
            ),
            ("sys/module/module/parameters/sig_enforce", "N\n"),
            ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
        ]);
        let seen = look(&host, "vrouter");
        assert_eq!(seen.release, Seen::Is("5.14.0-2.el9".to_owned()));
        assert_eq!((&seen.loaded, &seen.headers), (&Seen::Is(false), &Seen::Is(true)));
        assert_eq!((&seen.secure_boot, &seen.only_signed), (&Seen::Is(true), &Seen::Is(false)));
        assert_eq!(seen.lockdown, Seen::Is("integrity".to_owned()));
        let files = seen.files.known().unwrap();
        let signed: Vec<Option<&bool>> = files.iter().map(|one| one.signed.known()).collect();
        assert_eq!(signed, [Some(&false), Some(&true), None]);
        let vermagic = files.first().unwrap().vermagic.known().unwrap();
        assert_eq!(vermagic, "5.14.0-1.el9 SMP mod_unload ");
    }

    #[test]
    fn a_machine_without_efi_has_no_secure_boot() {
        let (_folder, host) = node(&[("sys/kernel/x", ""), ("proc/modules", "vrouter 1 0\n")]);
        let seen = look(&host, "vrouter");
        assert_eq!((seen.secure_boot, seen.loaded), (Seen::Is(false), Seen::Is(true)));
        assert!(seen.release.known().is_none() && seen.files.known().is_none());
    }
}
