//! The objects of `deploy/webhook` and `deploy/operator`, in the order in which a cluster takes them: the same as those of
//! `kubectl kustomize`, which a test compares. Of kustomize this understands what our own files use, and refuses
//! the rest.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::bases::{self, Base};
use crate::values::Platform;

/// The CRDs, which come from the crate that generates them.
const CRDS: &str = "../../crds";

/// Why a manifest of ours cannot be rendered: never on a user's account.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A file is not what this understands.
    #[error("read {file}")]
    Read {
        /// The file.
        file: String,
        /// What the parser says.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// The kustomization names a file that was not built in.
    #[error("find {0}, which kustomization.yaml names")]
    Missing(String),
    /// A type of ours is no JSON.
    #[error("write a CRD")]
    Crd(#[from] serde_json::Error),
}

/// When an object is applied: what comes before is served by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// CRDs. The next ones wait until they are established.
    Definitions,
    /// The namespace, and who may do what.
    Access,
    /// The program and what calls and protects it.
    Program,
    /// The policies. They are in force when each has the condition `Ready`.
    Policies,
}

/// The objects of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When they are applied.
    pub phase: Phase,
    /// What is applied, in this order.
    pub objects: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "what a kustomization says of itself")]
struct Kustomization {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    resources: Vec<String>,
    #[serde(default)]
    images: Vec<Image>,
    #[serde(default)]
    patches: Vec<Patch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    patch: String,
}

/// What a patch of ours does: it takes an object out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "what a patch says of itself")]
struct Removal {
    #[serde(rename = "$patch")]
    directive: Delete,
    api_version: String,
    kind: String,
    metadata: Removed,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Delete {
    Delete,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Removed {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Image {
    name: String,
    new_name: String,
    new_tag: String,
}

/// The webhook with its CRDs and the built-in policies, in four steps.
///
/// # Errors
/// A file of `deploy/webhook` is not what this understands; a test sees to it that each is.
pub fn webhook() -> Result<Vec<Step>, RenderError> {
    webhook_on(Platform::Kubernetes)
}

/// The operator with its CRDs and the namespace `tf` that it watches, in three steps.
///
/// # Errors
/// As of [`webhook`].
pub fn operator() -> Result<Vec<Step>, RenderError> {
    operator_on(Platform::Kubernetes)
}

/// [`webhook`], with what the platform needs.
///
/// # Errors
/// As of [`webhook`].
pub fn webhook_on(platform: Platform) -> Result<Vec<Step>, RenderError> {
    let base = match platform {
        Platform::Kubernetes | Platform::Openstack => bases::WEBHOOK,
        Platform::Openshift => bases::OPENSHIFT_WEBHOOK,
    };
    base.steps()
}

/// [`operator`], with what the platform needs, and without what it has no use for.
///
/// # Errors
/// As of [`webhook`].
pub fn operator_on(platform: Platform) -> Result<Vec<Step>, RenderError> {
    let base = match platform {
        Platform::Kubernetes => bases::OPERATOR,
        Platform::Openshift => bases::OPENSHIFT_OPERATOR,
        Platform::Openstack => bases::OPENSTACK,
    };
    base.steps()
}

/// What the installer of OpenShift puts on the machines of a new cluster, and its Network.
///
/// # Errors
/// As of [`webhook`].
pub fn openshift_machines() -> Result<Vec<Value>, RenderError> {
    bases::OPENSHIFT_MACHINES.objects()
}

/// The policies for a cluster that tf-operator runs.
pub(crate) fn tf_operator_policies() -> Result<Vec<Value>, RenderError> {
    bases::WEBHOOK.documents("tf-operator.yaml")
}

/// The policy that has every Secret read whole.
pub(crate) fn secret_keys_policies() -> Result<Vec<Value>, RenderError> {
    bases::WEBHOOK.documents("secret-keys.yaml")
}

impl Base {
    fn steps(&self) -> Result<Vec<Step>, RenderError> {
        let objects = self.objects()?;
        let phases = [Phase::Definitions, Phase::Access, Phase::Program, Phase::Policies];
        let steps = phases.map(|phase| {
            let objects = objects.iter().filter(|object| phase_of(object) == phase);
            Step { phase, objects: objects.cloned().collect() }
        });
        Ok(steps.into_iter().filter(|step| !step.objects.is_empty()).collect())
    }

    fn objects(&self) -> Result<Vec<Value>, RenderError> {
        let kustomization: Kustomization = serde_saphyr::from_str(self.kustomization)
            .map_err(|source| self.read_error("kustomization.yaml", source))?;
        let mut objects = Vec::new();
        for resource in &kustomization.resources {
            objects.extend(match self.below {
                _ if resource == CRDS => crds()?,
                Some((name, base)) if name == resource => base.objects()?,
                _ => self.documents(resource)?,
            });
        }
        for object in &mut objects {
            kustomization.complete(object);
        }
        for Patch { patch } in &kustomization.patches {
            let removal: Removal = serde_saphyr::from_str(patch)
                .map_err(|source| self.read_error("kustomization.yaml", source))?;
            let Removal { directive: Delete::Delete, kind: of_kind, metadata, .. } = removal;
            objects.retain(|object| {
                kind(object) != of_kind
                    || object.pointer("/metadata/name").and_then(Value::as_str)
                        != Some(metadata.name.as_str())
            });
        }
        Ok(objects)
    }

    fn documents(&self, file: &str) -> Result<Vec<Value>, RenderError> {
        let found = self.files.iter().find(|(name, _)| *name == file);
        let (_, text) = found.ok_or_else(|| RenderError::Missing(self.path(file)))?;
        serde_saphyr::from_multiple(text).map_err(|source| self.read_error(file, source))
    }

    fn read_error(&self, file: &str, source: serde_saphyr::Error) -> RenderError {
        RenderError::Read { file: self.path(file), source: Box::new(source) }
    }

    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }
}

fn crds() -> Result<Vec<Value>, RenderError> {
    let definitions = opensdn_crds::all().into_iter();
    Ok(definitions.map(serde_json::to_value).collect::<Result<_, _>>()?)
}

impl Kustomization {
    /// Gives an object its namespace and its images, where it has any.
    fn complete(&self, object: &mut Value) {
        let phase = phase_of(object);
        let is_namespaced = !CLUSTER_SCOPED.contains(&kind(object));
        if let Some(namespace) = &self.namespace
            && is_namespaced
            && let Some(metadata) = object.get_mut("metadata")
        {
            metadata["namespace"] = json!(namespace);
        }
        if phase == Phase::Program
            && let Some(Value::Array(containers)) =
                object.pointer_mut("/spec/template/spec/containers")
        {
            containers.iter_mut().for_each(|container| self.set_image(container));
        }
    }

    fn set_image(&self, container: &mut Value) {
        let is = |image: &&Image| container["image"] == image.name.as_str();
        if let Some(image) = self.images.iter().find(is) {
            container["image"] = json!(format!("{}:{}", image.new_name, image.new_tag));
        }
    }
}

/// The kinds of ours that have no namespace.
const CLUSTER_SCOPED: [&str; 10] = [
    "AdmissionPolicy",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MachineConfig",
    "Namespace",
    "Network",
    "SecurityContextConstraints",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

pub(crate) fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

fn phase_of(object: &Value) -> Phase {
    match kind(object) {
        "CustomResourceDefinition" => Phase::Definitions,
        "AdmissionPolicy" => Phase::Policies,
        "Deployment" | "Service" | "PodDisruptionBudget" | "NetworkPolicy" => Phase::Program,
        _ => Phase::Access,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    fn objects(phase: Phase) -> Vec<Value> {
        webhook().unwrap().into_iter().find(|step| step.phase == phase).unwrap().objects
    }

    #[test]
    fn steps_come_in_their_order_and_none_is_empty() {
        for (steps, count) in [(webhook().unwrap(), 4), (operator().unwrap(), 3)] {
            assert!(steps.is_sorted_by_key(|step| step.phase));
            assert!(steps.iter().all(|step| !step.objects.is_empty()), "{steps:?}");
            assert_eq!(steps.len(), count);
        }
    }

    #[test]
    fn objects_have_the_names_that_our_programs_use() {
        let access = objects(Phase::Access);
        let named = |kind: &str, name: &str| {
            let is = |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == name;
            access.iter().any(|one| is(&one))
        };
        assert!(named("Namespace", names::NAMESPACE));
        assert!(named("ServiceAccount", names::webhook::NAME));
        assert!(named("ServiceAccount", names::configuration::NAME));
        for name in [names::UNIQUE_CLAIMS_POLICY, names::LEASES_POLICY] {
            assert!(named("ValidatingAdmissionPolicy", name));
            assert!(named("ValidatingAdmissionPolicyBinding", name));
        }
        let all = json!(access).to_string();
        use names::webhook::{
            AUDIT_REPORT, CA_SECRET, LEADER_LEASE, NAME, REPLICA_LEASE_PREFIX, USER,
        };
        let leases = [LEADER_LEASE, REPLICA_LEASE_PREFIX, names::configuration::LEADER_LEASE];
        for name in [USER, CA_SECRET, AUDIT_REPORT].into_iter().chain(leases) {
            assert!(all.contains(name), "{name} is in no object");
        }
        for object in objects(Phase::Program) {
            assert!(PROGRAMS.map(Value::from).contains(&object["metadata"]["name"]), "{object}");
            assert_eq!(object["metadata"]["namespace"], names::NAMESPACE);
        }
        for name in PROGRAMS {
            let deployment = program("Deployment", name);
            let labels = &deployment["spec"]["template"]["metadata"]["labels"];
            assert_eq!(labels[names::NAME_LABEL], name);
            assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], name);
        }
        assert_eq!(names::configuration::USER, USER.replace(NAME, names::configuration::NAME));
    }

    const PROGRAMS: [&str; 2] = [names::webhook::NAME, names::configuration::NAME];

    fn program(kind: &str, name: &str) -> Value {
        let is = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects(Phase::Program).into_iter().find(is).unwrap()
    }

    /// What a pod listens on is what the network lets in, and the Service sends to one of them.
    #[test]
    fn the_network_policy_lets_in_what_the_pods_listen_on() {
        let names_of = |ports: &Value, key: &str| -> Vec<String> {
            let ports = ports.as_array().unwrap().iter();
            ports.map(|port| port[key].as_str().unwrap().to_owned()).collect()
        };
        for name in PROGRAMS {
            let deployment = program("Deployment", name);
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let listens = names_of(&container["ports"], "name");
            let policy = program("NetworkPolicy", name);
            assert_eq!(names_of(&policy["spec"]["ingress"][0]["ports"], "port"), listens);
            let service = program("Service", names::webhook::NAME);
            let sends_to = names_of(&service["spec"]["ports"], "targetPort");
            let is_sent_to = sends_to.iter().all(|port| listens.contains(port));
            assert_eq!(is_sent_to, name == names::webhook::NAME, "{sends_to:?}");
        }
    }

    /// Else the webhook would not work in another namespace, and nothing would say why.
    #[test]
    fn where_kustomize_does_not_change_the_namespace_the_readme_does() {
        let readme = include_str!("../README.md");
        let objects = webhook().unwrap().into_iter().flat_map(|step| step.objects);
        let objects: Vec<Value> = objects.filter(|one| one["kind"] != "Namespace").collect();
        let all = json!(objects).to_string();
        let count = |text: &str| all.matches(text).count();
        let changed = count(&format!("\"namespace\":\"{}\"", names::NAMESPACE));
        assert_eq!(count(names::NAMESPACE) - changed, 1, "one more place names the namespace");
        let claims =
            objects.iter().find(|one| one["metadata"]["name"] == names::UNIQUE_CLAIMS_POLICY);
        let expression = &claims.unwrap()["spec"]["validations"][0]["expression"];
        assert!(readme.contains(&format!("name: {}}}", names::UNIQUE_CLAIMS_POLICY)));
        assert!(readme.contains("[spec.validations.0.expression]"));
        assert!(readme.contains(r#"{delimiter: ":", index: 2}"#));
        assert_eq!(expression.as_str().unwrap().split(':').nth(2), Some(names::NAMESPACE));
    }

    /// Both run the same image, as careful as each other, and differ in what they do.
    #[test]
    fn both_deployments_run_the_same_program_with_the_same_care() {
        let [reviews, configuration] =
            PROGRAMS.map(|name| program("Deployment", name)["spec"]["template"]["spec"].clone());
        for part in ["securityContext", "priorityClassName", "tolerations", "volumes"] {
            assert_eq!(reviews[part], configuration[part], "{part}");
        }
        let [one, other] = [&reviews["containers"][0], &configuration["containers"][0]];
        for part in ["image", "securityContext", "readinessProbe", "livenessProbe", "env"] {
            assert_eq!(one[part], other[part], "{part}");
        }
        assert_eq!(one["args"][0], "--run=reviews");
        assert_eq!(other["args"][0], "--run=configuration");
    }

    /// The image is named as the Deployment names it, and made for the user that it is run as.
    #[test]
    fn the_image_is_what_the_deployment_runs() {
        let dockerfile = include_str!("../images/webhook/Dockerfile");
        let deployment = program("Deployment", names::webhook::NAME);
        let pod = &deployment["spec"]["template"]["spec"];
        let user = &pod["securityContext"];
        let user = format!("USER {}:{}", user["runAsUser"], user["runAsGroup"]);
        assert!(dockerfile.lines().any(|line| line == user), "{user}");
        let listens = pod["containers"][0]["ports"].as_array().unwrap().iter();
        let ports: Vec<String> = listens.map(|port| port["containerPort"].to_string()).collect();
        let expose = format!("EXPOSE {}", ports.join(" "));
        assert!(dockerfile.lines().any(|line| line == expose), "{expose}");
        let image = format!("{}:{}", names::webhook::NAME, env!("CARGO_PKG_VERSION"));
        assert_eq!(pod["containers"][0]["image"], image);
    }
}
