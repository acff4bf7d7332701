//! VrouterProfile: settings of the data plane that several groups of vrouters share. A Vrouter
//! names the profiles that it uses; of two that say the same thing the later one wins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use crate::status::Condition;

/// The specs of profiles laid over each other in this order.
pub fn merged<'a>(profiles: impl IntoIterator<Item = &'a Value>) -> Value {
    let mut merged = json!({});
    for profile in profiles {
        // A node has one data plane: that of the later profile.
        for (one, other) in [("kernel", "dpdk"), ("dpdk", "kernel")] {
            if profile.get(one).is_some()
                && let Value::Object(merged) = &mut merged
            {
                merged.remove(other);
            }
        }
        lay_over(&mut merged, profile);
    }
    merged
}

/// Objects field by field, all else as a whole.
pub fn lay_over(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                lay_over(under.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// Settings of the data plane: kernel or dpdk or neither, and sriov and variables beside them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "opensdn.io",
        version = "v1alpha1",
        kind = "VrouterProfile",
        plural = "vrouterprofiles",
        shortname = "vrp",
        namespaced,
        status = "VrouterProfileStatus",
        derive = "PartialEq",
        doc = "VrouterProfile holds settings of the data plane that several groups of vrouters share: kernel, DPDK or SR-IOV.",
        printcolumn(
            name = "Ready",
            type_ = "string",
            json_path = r#".status.conditions[?(@.type=="Ready")].status"#
        ),
        printcolumn(
            name = "Reason",
            type_ = "string",
            json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
        ),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    ),
    schemars(transform = constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct VrouterProfileSpec {
    /// The data plane is the kernel module. It has no settings.
    pub kernel: Option<Kernel>,
    /// The data plane is a DPDK process.
    pub dpdk: Option<Dpdk>,
    /// Workloads may have virtual functions of a network interface.
    pub sriov: Option<Sriov>,
    /// Labels of the nodes that the profile is for. Unset: all nodes of the vrouters that use it.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// More environment variables of the vrouter; they win over all others.
    pub more_config: Option<BTreeMap<String, String>>,
}

/// The kernel module. It has no settings.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
pub struct Kernel {}

/// A DPDK process as data plane.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = dpdk_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct Dpdk {
    /// Cores that forward, as hexadecimal mask (0xf) or list (1,2-3): two at least.
    pub core_mask: Option<String>,
    /// Number of 2 MiB huge pages, not bytes.
    #[serde(rename = "hugePages2M")]
    pub huge_pages_2m: Option<i64>,
    /// Number of 1 GiB huge pages, not bytes.
    #[serde(rename = "hugePages1G")]
    pub huge_pages_1g: Option<i64>,
    /// Kernel driver that the interface is bound to, such as vfio-pci or uio_pci_generic.
    pub uio_driver: Option<String>,
}

/// Virtual functions of a network interface.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = sriov_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct Sriov {
    /// The interface whose virtual functions are made.
    pub physical_interface: Option<String>,
    /// How many virtual functions, 1 to 256.
    pub number_of_vfs: Option<i64>,
    /// Which interface leads to which physical network.
    pub mappings: Option<Vec<SriovMapping>>,
}

/// Which interface leads to a physical network.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = mapping_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct SriovMapping {
    /// Name of the network.
    pub physical_network: String,
    /// The interface that leads to it.
    pub physical_interface: String,
}

/// What became of the profile.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = crate::status::conditions)
)]
#[serde(rename_all = "camelCase")]
pub struct VrouterProfileStatus {
    /// Whether the vrouters that use the profile run with it; see the condition Ready.
    pub conditions: Option<Vec<Condition>>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}

#[cfg(feature = "kube")]
const INTERFACE: &str = "^[^ /]{1,15}$";

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .rule(
            "",
            "!has(self.kernel) || !has(self.dpdk)",
            "give kernel or dpdk, not both: a node has one data plane",
        )
        .rule(
            "",
            "has(self.kernel) || has(self.dpdk) || has(self.sriov) || has(self.moreConfig)",
            "give at least one of kernel, dpdk, sriov and moreConfig (kernel: {} has no settings)",
        )
        .map("nodeSelector", 64, 63)
        .map("moreConfig", 512, crate::schema::VARIABLE)
        .field(
            "",
            "moreConfig",
            "self.all(key, key.matches('^[A-Z_][A-Z0-9_]*$'))",
            "has names of environment variables as keys: A-Z, 0-9 and _, not a digit first",
        );
}

#[cfg(feature = "kube")]
fn dpdk_constraints(schema: &mut schemars::Schema) {
    use serde_json::json;
    let _ = crate::schema::Fields::of(schema)
        .matches(
            "",
            &["coreMask"],
            "^(0x[0-9a-fA-F]+|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$",
            crate::schema::HOST,
            "a hexadecimal mask such as 0xf, or a list of cores such as 1,2-3",
        )
        .set("hugePages2M", "minimum", json!(0))
        .set("hugePages1G", "minimum", json!(0))
        .matches("", &["uioDriver"], "^[A-Za-z0-9_-]+$", 64, "the name of a kernel driver");
}

#[cfg(feature = "kube")]
fn sriov_constraints(schema: &mut schemars::Schema) {
    use serde_json::json;
    let _ = crate::schema::Fields::of(schema)
        .matches(
            "",
            &["physicalInterface"],
            INTERFACE,
            64,
            "the name of an interface: 1 to 15 characters, no space or slash",
        )
        .set("numberOfVfs", "minimum", json!(1))
        .set("numberOfVfs", "maximum", json!(256))
        .most_items(&["mappings"], 64);
}

#[cfg(feature = "kube")]
fn mapping_constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .longest(&["physicalNetwork"], crate::schema::HOST)
        .set("physicalNetwork", "minLength", serde_json::json!(1))
        .longest(&["physicalInterface"], 64)
        .field(
            "",
            "physicalInterface",
            &format!("self.matches(r'{INTERFACE}')"),
            "must be the name of an interface: 1 to 15 characters, no space or slash",
        );
}
