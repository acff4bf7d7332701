//! Settings as the operator renders them: `operator/src/components/vrouter/profile.rs` has the same cases.

use serde_json::json;

use super::*;
use crate::checks::world::World;

fn world(fields: Value, profiles: Value) -> World {
    let node = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
    let profiles =
        profiles.as_object().unwrap().iter().map(
            |(name, spec)| json!({"metadata": {"name": name, "namespace": "tf"}, "spec": spec}),
        );
    World {
        nodes: Read::Known(vec![node("w1", json!({"fast": ""})), node("w2", json!({}))]),
        managers: Read::Known(vec![json!({"metadata": {"name": "m", "namespace": "tf"}, "spec":
            {"services": {"vrouters": [{"metadata": {"name": "v"}, "spec": {"serviceConfiguration": fields}}]}}})]),
        profiles: Read::Known(profiles.collect()),
        ..World::default()
    }
}

fn driver(fields: Value, profiles: Value) -> Result<Option<String>, String> {
    let world = world(fields, profiles);
    let all = groups(&world);
    let settings = all.into_iter().next().unwrap().settings?;
    Ok(settings.dpdk_driver().map(str::to_owned))
}

fn functions(fields: Value, profiles: Value) -> Result<Vec<(String, u32)>, String> {
    let world = world(fields, profiles);
    let all = groups(&world);
    let wanted = all.into_iter().next().unwrap().settings?.functions()?;
    Ok(wanted.into_iter().map(|one| (one.interface, one.count)).collect())
}

#[test]
fn the_driver_is_that_of_the_variable_then_of_the_group_then_of_the_later_profile() {
    let is = |expected: &str| Ok(Some(expected.to_owned()));
    let none = || json!({});
    assert_eq!(driver(json!({}), none()), Ok(None));
    assert_eq!(driver(json!({"dpdk": {}}), none()), is("uio_pci_generic"));
    assert_eq!(
        driver(json!({"dpdkUioDriver": "vfio-pci"}), none()),
        Ok(None),
        "it runs in the kernel"
    );
    let profiles = || {
        json!({"a": {"dpdk": {"uioDriver": "vfio-pci", "coreMask": "0x1"}}, "b": {"dpdk": {"coreMask": "0x2"}},
            "k": {"kernel": {}}, "e": {"moreConfig": {"DPDK_UIO_DRIVER": "mlnx"}}})
    };
    assert_eq!(driver(json!({"profiles": ["a", "b"]}), profiles()), is("vfio-pci"));
    assert_eq!(driver(json!({"profiles": ["a", "k"]}), profiles()), Ok(None));
    assert_eq!(driver(json!({"profiles": ["k", "a"]}), profiles()), is("vfio-pci"));
    let own = json!({"profiles": ["a"], "dpdk": {"uioDriver": "uio_pci_generic"}});
    assert_eq!(driver(own, profiles()), is("uio_pci_generic"));
    let variable = json!({"profiles": ["a", "e"], "envVariablesConfig": {"DPDK_UIO_DRIVER": "x"}});
    assert_eq!(driver(variable, profiles()), is("mlnx"), "that of a profile wins");
    let mode = json!({"envVariablesConfig": {"AGENT_MODE": "dpdk", "DPDK_UIO_DRIVER": ""}});
    assert_eq!(driver(mode, none()), is(""));
}

#[test]
fn a_profile_for_other_nodes_counts_for_nothing_and_one_for_some_is_refused() {
    let profiles = |labels: Value| json!({"a": {"dpdk": {}, "nodeSelector": labels}});
    let named = || json!({"profiles": ["a"]});
    assert_eq!(driver(named(), profiles(json!({"other": ""}))), Ok(None));
    let some = driver(named(), profiles(json!({"fast": ""}))).unwrap_err();
    assert!(some.contains("1 of the 2 nodes"), "{some}");
    let missing = driver(named(), json!({})).unwrap_err();
    assert!(missing.contains("there is no VrouterProfile tf/a"), "{missing}");
}

#[test]
fn functions_are_those_of_fields_of_profiles_and_of_variables() {
    let one = |count| Ok(vec![("eth1".to_owned(), count)]);
    let sriov = json!({"sriov": {"physicalInterface": "eth1", "numberOfVfs": 4}});
    assert_eq!(functions(sriov.clone(), json!({})), one(4));
    assert_eq!(functions(json!({"profiles": ["a"]}), json!({"a": sriov})), one(4));
    assert_eq!(functions(json!({}), json!({})), Ok(vec![]));
    let variables =
        json!({"sriovPhysicalInterface": "eth1,eth2", "envVariablesConfig": {"SRIOV_VF": "2, 3"}});
    let two = vec![("eth1".to_owned(), 2), ("eth2".to_owned(), 3)];
    assert_eq!(functions(variables, json!({})), Ok(two));
    // The kernel reads them, as C does.
    for (word, count) in [("0x10", 16), ("010", 8), ("0", 0), ("+4", 4)] {
        let variables =
            json!({"sriovPhysicalInterface": "eth1", "envVariablesConfig": {"SRIOV_VF": word}});
        assert_eq!(functions(variables, json!({})), one(count), "{word}");
    }
    for (fields, part) in [
        (json!({"sriovPhysicalInterface": "eth1"}), "1 interface are named, and 0 numbers"),
        (
            json!({"sriov": {"physicalInterface": "eth1", "numberOfVfs": 1}, "envVariablesConfig": {"SRIOV_VF": "many"}}),
            "is no number",
        ),
        (
            json!({"sriovPhysicalInterface": "eth1", "envVariablesConfig": {"SRIOV_VF": "08"}}),
            "\"08\" is no number",
        ),
    ] {
        let why = functions(fields, json!({})).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
}
