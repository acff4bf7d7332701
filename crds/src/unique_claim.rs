//! UniqueClaim: a lock on something that must be unique in the cluster, such as a link-local
//! address. Its name is made from scope and key, so the API server's own conflict on create is
//! what keeps the second holder out. Who takes and releases claims is in the webhook.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What is taken, and by whom.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "opensdn.io",
        version = "v1alpha1",
        kind = "UniqueClaim",
        plural = "uniqueclaims",
        shortname = "uclaim",
        derive = "PartialEq",
        doc = "UniqueClaim keeps something unique in the cluster: it names who holds it. The webhook writes it; do not edit it by hand.",
        printcolumn(name = "Scope", type_ = "string", json_path = ".spec.scope"),
        printcolumn(name = "Key", type_ = "string", json_path = ".spec.key"),
        printcolumn(name = "Holder", type_ = "string", json_path = ".spec.holder.kind"),
        printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.holder.namespace"),
        printcolumn(name = "Name", type_ = "string", json_path = ".spec.holder.name"),
        printcolumn(name = "Shared", type_ = "boolean", json_path = ".spec.shared"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    ),
    schemars(transform = constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct UniqueClaimSpec {
    /// What kind of thing is taken, such as link-local-address.
    pub scope: String,
    /// What is taken, such as 169.254.169.254:80.
    pub key: String,
    /// What objects that share it agree on, such as where a link-local service leads; unset: it is not shared.
    pub value: Option<String>,
    /// Whether other objects than the holder have it too, with the same value. The last that claimed it is the
    /// holder; when that is gone, another is.
    pub shared: Option<bool>,
    /// Who holds it.
    pub holder: Holder,
    /// When it was taken, RFC 3339.
    pub taken_at: Option<String>,
    /// Name of the policy that asked for it.
    pub policy: Option<String>,
}

/// The object, and the field of it, that holds a claim.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "kube", schemars(transform = holder_constraints))]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// API version.
    pub version: Option<String>,
    /// Kind.
    pub kind: String,
    /// Namespace; unset for an object of the cluster.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// UID. Unset until the object is known to be stored.
    pub uid: Option<String>,
    /// The field that claims it, a JSON Pointer.
    pub pointer: Option<String>,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    use serde_json::json;
    const ADVICE: &str = "cannot be changed: delete the claim and let the webhook take a new one";
    let mut fields = crate::schema::Fields::of(schema)
        .longest(&["scope"], 253)
        .longest(&["key", "value"], crate::schema::TEXT)
        .set("takenAt", "format", json!("date-time"));
    for name in ["scope", "key"] {
        fields = fields.set(name, "minLength", json!(1)).field("", name, "self == oldSelf", ADVICE);
    }
    let _ = fields;
}

/// What a claim keeps in etcd, and in the memory of each replica, is bounded.
#[cfg(feature = "kube")]
fn holder_constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .longest(&["group"], 253)
        .longest(&["version", "kind", "namespace", "uid"], 63)
        .longest(&["name", "pointer"], crate::schema::TEXT);
}
