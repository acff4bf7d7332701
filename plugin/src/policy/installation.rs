//! The objects that put a policy in force, checked as the webhook will check them. Pure.
//! Deliberately not here: applying them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use opensdn_crds::admission_policy::{
    AdmissionPolicySpec, ConfigMapKey, Folder, LookupKind, Module as ModuleSpec,
};
use opensdn_policy_host::{Limits, Policy};
use serde_json::{Value, json};

use super::reference::Module;
use super::rights::rights;
use crate::exit::{Exit, Failure};

/// What the API server takes as the data of one ConfigMap.
const MAX_CONFIG_MAP: usize = 1 << 20;

/// Beyond this, `kubectl apply` cannot keep what it applied in an annotation of 256 KiB.
const MAX_CLIENT_SIDE: usize = 180 << 10;

/// Where the module is to come from.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A ConfigMap in the webhook's namespace.
    ConfigMap,
    /// A file of the webhook's container.
    Folder(String),
}

/// What is to be applied.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    /// In the order in which they are to be applied.
    pub(crate) objects: Vec<Value>,
    /// Whether `kubectl apply` needs `--server-side`.
    pub(crate) server_side: bool,
    /// What the objects let the webhook read: `widgets.example.com`.
    pub(crate) readable: Vec<String>,
}

impl Installation {
    /// The objects for a policy named `name`. The specification says everything but the module and
    /// the lookups, which follow from the policy. `namespace` is the webhook's.
    ///
    /// # Errors
    /// The webhook would refuse it, or the module is too large for a ConfigMap.
    pub(crate) fn new(
        name: &str,
        module: &Module,
        policy: &Policy,
        place: &Target,
        namespace: &str,
        spec: AdmissionPolicySpec,
    ) -> Result<Self, Failure> {
        let mut objects = Vec::new();
        let mut spec = AdmissionPolicySpec { module: ModuleSpec::default(), ..spec };
        let digest = policy.digest().to_string();
        match (module.built_in(), place) {
            (Some(built_in), _) => spec.module.built_in = Some(built_in.to_owned()),
            (None, Target::Folder(path)) => {
                spec.module.folder = Some(Folder { path: path.clone() });
            }
            (None, Target::ConfigMap) => {
                let (key, object) = config_map(namespace, policy, &module.bytes)?;
                spec.module.config_map = Some(key);
                objects.push(object);
            }
        }
        let mut readable = Vec::new();
        if module.built_in().is_none() {
            if let Some(rights) = rights(name, policy.metadata(), namespace) {
                objects.extend(rights.objects);
                readable = rights.resources;
            }
            spec.module.digest = Some(digest);
            spec.allowed_lookups = look_ups(policy);
        }
        check(name, &spec, policy)?;
        let object = json!({
            "apiVersion": "opensdn.io/v1alpha1",
            "kind": "AdmissionPolicy",
            "metadata": {"name": name},
            "spec": spec,
        });
        let in_config_map = spec.module.config_map.is_some();
        objects.push(object);
        let server_side = in_config_map && module.bytes.len() > MAX_CLIENT_SIDE;
        Ok(Self { objects, server_side, readable })
    }
}

/// The name says which bytes are in it, so that a new version is a new object: whatever still
/// points to the old one keeps it.
fn config_map(
    namespace: &str,
    policy: &Policy,
    bytes: &[u8],
) -> Result<(ConfigMapKey, Value), Failure> {
    let policy_name = &policy.metadata().name;
    if bytes.len() + 4096 > MAX_CONFIG_MAP {
        let message = format!(
            "the module has {} KiB, and a ConfigMap takes {} KiB",
            bytes.len() >> 10,
            MAX_CONFIG_MAP >> 10
        );
        let hint = format!(
            "let it be a file of the webhook: start the webhook with --policy-folder on a volume that \
             its pods mount, copy the module there, and name its path below that folder: --folder \
             {policy_name}.wasm"
        );
        return Err(Failure::new(Exit::Usage, "module-too-large", message, hint));
    }
    let digest = policy.digest().to_string();
    let digits = digest.split(':').nth(1).and_then(|digits| digits.get(..12)).unwrap_or_default();
    let key = ConfigMapKey {
        namespace: namespace.to_owned(),
        name: format!("opensdn-policy-{policy_name}-{digits}"),
        key: format!("{policy_name}.wasm"),
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": key.name, "namespace": namespace},
        "immutable": true,
        "binaryData": {key.key.clone(): BASE64_STANDARD.encode(bytes)},
    });
    Ok((key, object))
}

/// The kinds that the policy declares as lookups. Applying the object allows them.
fn look_ups(policy: &Policy) -> Option<Vec<LookupKind>> {
    let indexes = policy.metadata().indexes.iter();
    let kinds: BTreeSet<_> =
        indexes.map(|index| (index.group.clone(), index.kind.clone())).collect();
    let kinds: Vec<LookupKind> =
        kinds.into_iter().map(|(group, kind)| LookupKind { group, kind }).collect();
    Some(kinds).filter(|kinds| !kinds.is_empty())
}

/// As the webhook does when the object is applied.
fn check(name: &str, spec: &AdmissionPolicySpec, policy: &Policy) -> Result<(), Failure> {
    let checked = opensdn_admission_policy::parse(&spec.module).and_then(|(source, _)| {
        opensdn_admission_policy::bind(name, spec, &source, policy.clone(), Limits::default())
    });
    checked.map(|_| ()).map_err(|problems| {
        let message = format!("the webhook would refuse the AdmissionPolicy {name}");
        let hint = "what the policy takes: kubectl opensdn policy inspect";
        let mut failure = Failure::new(Exit::Usage, "invalid-admission-policy", message, hint);
        failure.causes = problems.iter().map(opensdn_admission_policy::Problem::text).collect();
        failure
    })
}
