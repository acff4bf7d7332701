//! Volumes in the place of folders of the nodes, for the services that store something.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The volume of each member, in the place of a folder of its node. It belongs to the node: it stays when the pod, the
/// node or the service goes, and only a user deletes it. Given when the service is created, and never added to one that
/// runs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The StorageClass of the volumes. Default: the cluster's. That of a volume which is there never changes.
    pub class: Option<String>,
    /// How large each volume is, such as 100Gi. It may grow, if the class has allowVolumeExpansion, and never shrinks.
    pub size: String,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let name = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";
    let _ = crate::schema::Fields::of(schema)
        .matches("", &["class"], name, crate::schema::HOST, "the name of a StorageClass")
        .longest(&["size"], 16)
        .field(
            "",
            "size",
            "self.matches('^[1-9][0-9]{0,4}(Mi|Gi|Ti)$')",
            "must be a whole number of at most five digits with Mi, Gi or Ti, such as 100Gi",
        );
}
