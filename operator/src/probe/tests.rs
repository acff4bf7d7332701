//! The answer as a whole, and nodes for the tests of its parts.

use std::fs;

use super::*;

/// A node with these files.
pub(super) fn node(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let host = Host::below(folder.path());
    (folder, host)
}

#[test]
fn what_is_wanted_in_another_format_is_refused() {
    assert!(wanted(r#"{"format": 1, "module": "vrouter"}"#).is_ok());
    let refused = wanted(r#"{"format": 2}"#).unwrap_err();
    assert!(refused.contains("format 2"), "{refused}");
}

#[test]
fn of_a_node_whose_files_are_not_there_nothing_is_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = Wanted {
        format: FORMAT,
        directories: vec!["/var/lib/contrail/zookeeper".to_owned()],
        sysctls: vec!["vm.swappiness".to_owned()],
        module: "vrouter".to_owned(),
        ..Wanted::default()
    };
    let seen = look(&Host::below(folder.path()), &wanted, &[]);
    assert!(seen.kernel.release.known().is_none() && seen.kernel.loaded.known().is_none());
    assert!(seen.kernel.files.known().is_none() && seen.kernel.secure_boot.known().is_none());
    assert!(seen.interfaces.known().is_none() && seen.routes.known().is_none());
    assert!(seen.cni.known().is_none() && seen.huge_pages.known().is_none());
    assert!(seen.devices.as_ref().unwrap().known().is_none());
    assert!(seen.swaps.known().is_none() && seen.firewall.known().is_none());
    assert!(seen.directories.iter().all(|one| one.state.known().is_none()), "{seen:#?}");
    assert!(seen.sysctls.iter().all(|one| one.value.known().is_none()), "{seen:#?}");
}
