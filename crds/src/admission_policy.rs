//! AdmissionPolicy: which WebAssembly policy judges which objects, how strictly, and what became
//! of it on each replica of the webhook. What a policy is, is in `sdk/wit/policy.wit`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::status::Condition;

enumeration! {
    /// What a finding of severity deny does.
    #[derive(Default)]
    pub enum Mode {
        /// It refuses the request.
        #[default]
        Enforce = "enforce",
        /// It is a warning; the request passes.
        Warn = "warn",
        /// It is recorded in metrics, log and audit only.
        Audit = "audit",
    }
}

enumeration! {
    /// What a policy that could not answer does to the request.
    pub enum FailureMode {
        /// It refuses it.
        Fail = "fail",
        /// It lets it pass, with a warning.
        Ignore = "ignore",
    }
}

enumeration! {
    /// What a user does to an object.
    pub enum Operation {
        /// Make it.
        Create = "CREATE",
        /// Change it.
        Update = "UPDATE",
        /// Delete it.
        Delete = "DELETE",
        /// Connect to it, as exec does to a pod. The schema does not take it, since no policy is
        /// asked about connections; it is here for what was stored before.
        Connect = "CONNECT",
    }
}

/// Which policy judges which objects, and how strictly.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "opensdn.io",
        version = "v1alpha1",
        kind = "AdmissionPolicy",
        plural = "admissionpolicies",
        shortname = "osdnpol",
        status = "AdmissionPolicyStatus",
        derive = "PartialEq",
        doc = "AdmissionPolicy makes the webhook run a WebAssembly policy: which module, for which objects, with which settings, and how strictly.",
        printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
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
        printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = 1),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    ),
    schemars(transform = constraints::spec)
)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionPolicySpec {
    /// The compiled policy.
    pub module: Module,
    /// The kinds that the policy is about. Unset: those that the policy itself asks for; set, it
    /// narrows them, or names them for a policy that is about any kind.
    pub kinds: Option<Vec<KindRule>>,
    /// Settings of the policy; it has its own schema for them.
    pub settings: Option<serde_json::Map<String, serde_json::Value>>,
    /// What a denial does: enforce refuses the request, warn lets it pass with a warning, audit
    /// records only.
    #[serde(default)]
    pub mode: Mode,
    /// What happens to a request when the policy cannot answer. Default: fail for the kinds of
    /// OpenSDN, ignore for all others.
    pub failure_mode: Option<FailureMode>,
    /// Whether an update passes, with a warning, for what the stored object has wrong already: the
    /// field that is named in the finding is unchanged, and so is what is wrong with it. Some
    /// policies name codes that are refused all the same, such as what runs code. Default true.
    pub ratcheting: Option<bool>,
    /// Namespaces whose objects are judged. Unset: all.
    pub namespace_selector: Option<LabelSelector>,
    /// Objects that are judged, by their labels. Unset: all.
    pub object_selector: Option<LabelSelector>,
    /// Whose requests, and which namespaces, are not judged.
    pub exemptions: Option<Exemptions>,
    /// Kinds whose objects the policy may look up. Unset: none outside its own interests.
    pub allowed_lookups: Option<Vec<LookupKind>>,
    /// How much time and memory one evaluation may take.
    pub limits: Option<Limits>,
}

/// Where the bytes of a policy come from: exactly one source.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::module)
)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// Name of a policy that the webhook carries, such as even-quorum.
    pub built_in: Option<String>,
    /// A key of `binaryData` of a ConfigMap.
    pub config_map: Option<ConfigMapKey>,
    /// A file of the webhook's container.
    pub folder: Option<Folder>,
    /// `sha256:` and the 64 hexadecimal digits of the module's digest. A module with another
    /// digest is not loaded. Required unless builtIn.
    pub digest: Option<String>,
}

/// A key of a ConfigMap.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::config_map)
)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKey {
    /// Namespace of the ConfigMap.
    pub namespace: String,
    /// Name of the ConfigMap.
    pub name: String,
    /// Key in `binaryData`.
    pub key: String,
}

/// A file of the webhook's container.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::folder)
)]
#[serde(rename_all = "camelCase")]
pub struct Folder {
    /// Path of the module, below the folder that the webhook was started with.
    pub path: String,
}

/// A kind, and the operations on it that are judged.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::kind)
)]
#[serde(rename_all = "camelCase")]
pub struct KindRule {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// API version that the policy is about; objects written in another one are converted to it
    /// first. Unset: any, as they are written.
    pub version: Option<String>,
    /// Kind, such as Manager.
    pub kind: String,
    /// What is judged: CREATE, UPDATE, DELETE. Default: CREATE and UPDATE. Connections, as of
    /// kubectl exec, are not judged, nor is the deletion of AdmissionPolicies.
    #[serde(default = "create_and_update")]
    pub operations: Vec<Operation>,
}

/// Objects by their labels, as in Kubernetes: all of matchLabels and matchExpressions must hold,
/// and an empty selector selects everything.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels and their values.
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements on labels.
    pub match_expressions: Option<Vec<LabelRequirement>>,
}

/// A requirement on one label.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::requirement)
)]
#[serde(rename_all = "camelCase")]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    pub operator: String,
    /// Values for In and NotIn.
    pub values: Option<Vec<String>>,
}

/// Whose requests, and which namespaces, are not judged.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::exemptions)
)]
#[serde(rename_all = "camelCase")]
pub struct Exemptions {
    /// User names, such as system:serviceaccount:opensdn:opensdn-operator.
    pub users: Option<Vec<String>>,
    /// Groups of users.
    pub groups: Option<Vec<String>>,
    /// Namespaces.
    pub namespaces: Option<Vec<String>>,
}

/// A kind whose objects may be looked up.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LookupKind {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
}

/// How much time and memory one evaluation may take.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::limits)
)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Milliseconds of processor time, 1 to 1000. Default: what the webhook was started with (50).
    pub timeout_milliseconds: Option<i64>,
    /// Mebibytes, 1 to 256. Default: what the webhook was started with (16).
    pub memory_mebibytes: Option<i64>,
}

/// What became of the policy.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::status)
)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionPolicyStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the policy runs as asked for; see the condition Ready.
    pub conditions: Option<Vec<Condition>>,
    /// Digest of the module that runs.
    pub digest: Option<String>,
    /// Version that the module says it has.
    pub version: Option<String>,
    /// Kinds and operations that the module says it judges. A replica that cannot load it knows by
    /// this what is not judged.
    pub judges: Option<Vec<KindRule>>,
    /// What runs on each replica of the webhook.
    pub replicas: Option<Vec<ReplicaStatus>>,
}

/// What one replica of the webhook runs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = constraints::replica)
)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStatus {
    /// Name of the replica's pod.
    pub name: String,
    /// Whether the replica runs the generation that it observed.
    pub ready: bool,
    /// Digest of the module that the replica runs, which may be that of an older generation.
    pub digest: Option<String>,
    /// The generation that the replica has dealt with.
    pub observed_generation: Option<i64>,
    /// One word that says why, for programs.
    pub reason: Option<String>,
    /// Why, and what to do, for people.
    pub message: Option<String>,
    /// When the replica wrote this, RFC 3339.
    pub updated_at: Option<String>,
}

fn create_and_update() -> Vec<Operation> {
    vec![Operation::Create, Operation::Update]
}

#[cfg(feature = "kube")]
mod constraints {
    use schemars::Schema;
    use serde_json::json;

    use crate::schema::{Fields, HOST, TEXT};

    pub(super) fn spec(schema: &mut Schema) {
        let _ = Fields::of(schema)
            .most_items(&["kinds", "allowedLookups"], 64)
            .set("settings", "x-kubernetes-preserve-unknown-fields", json!(true))
            .remove("settings", "additionalProperties");
    }

    pub(super) fn module(schema: &mut Schema) {
        let _ = Fields::of(schema)
            .longest(&["builtIn"], 63)
            .set("digest", "pattern", json!("^sha256:[0-9a-f]{64}$"))
            .rule(
                "",
                "[has(self.builtIn), has(self.configMap), has(self.folder)].exists_one(s, s)",
                "give exactly one of builtIn, configMap and folder",
            )
            .required(
                "digest",
                "",
                "has(self.builtIn) || has(self.digest)",
                "digest is required unless builtIn is given: sha256: and the output of \
                 sha256sum on the module",
            );
    }

    pub(super) fn config_map(schema: &mut Schema) {
        let _ = Fields::of(schema).longest(&["namespace"], 63).longest(&["name", "key"], HOST);
        let _ = Fields::of(schema)
            .set("namespace", "minLength", json!(1))
            .set("name", "minLength", json!(1))
            .set("key", "minLength", json!(1));
    }

    pub(super) fn folder(schema: &mut Schema) {
        let _ = Fields::of(schema).longest(&["path"], TEXT).field(
            "",
            "path",
            "self != '' && !self.startsWith('/') && !self.split('/').exists(part, part == '..')",
            "must be a path below the folder of the webhook, without a leading / and without ..",
        );
    }

    pub(super) fn kind(schema: &mut Schema) {
        let _ = Fields::of(schema)
            .longest(&["group", "version", "kind"], HOST)
            .set("kind", "minLength", json!(1))
            .set("operations", "minItems", json!(1))
            .set("operations", "maxItems", json!(3))
            .set(
                "operations",
                "items",
                json!({"type": "string", "enum": ["CREATE", "UPDATE", "DELETE"]}),
            )
            .set("operations", "x-kubernetes-list-type", json!("set"));
    }

    pub(super) fn requirement(schema: &mut Schema) {
        let _ = Fields::of(schema).set(
            "operator",
            "enum",
            json!(["In", "NotIn", "Exists", "DoesNotExist"]),
        );
    }

    pub(super) fn exemptions(schema: &mut Schema) {
        let _ = Fields::of(schema).most_items(&["users", "groups", "namespaces"], 256);
    }

    pub(super) fn limits(schema: &mut Schema) {
        let _ = Fields::of(schema)
            .set("timeoutMilliseconds", "minimum", json!(1))
            .set("timeoutMilliseconds", "maximum", json!(1000))
            .set("memoryMebibytes", "minimum", json!(1))
            .set("memoryMebibytes", "maximum", json!(256));
    }

    pub(super) fn status(schema: &mut Schema) {
        crate::status::conditions(schema);
        let _ = Fields::of(schema).set("replicas", "x-kubernetes-list-type", json!("map")).set(
            "replicas",
            "x-kubernetes-list-map-keys",
            json!(["name"]),
        );
    }

    pub(super) fn replica(schema: &mut Schema) {
        let _ = Fields::of(schema).set("updatedAt", "format", json!("date-time"));
    }
}
