//! The pods that have nodes pull images: of each image a container that ends at once, on its node without the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, LocalObjectReference, Pod, PodSecurityContext, PodSpec,
    SeccompProfile, SecurityContext, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_runtime::apply::{Context as Writer, WriteOutcome, write_as_read};
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use opensdn_upgrade::digest::digest;
use opensdn_upgrade::pull::{Pull, Puller, container_name};
use serde_json::json;
use time::OffsetDateTime;

use crate::kind::Kind;
use crate::names::TYPE;
use crate::object::{controller_of, created};
use crate::reconcile::Context;
use crate::reconcile::apply::delete;

/// What the label of the kind of component says of them: they are of none.
const WORD: &str = "upgrade";
/// The user of what runs nothing.
const NOBODY: i64 = 65_534;
/// One that its kubelet does not take is made again after so long: it would be refused again at once.
const PAUSE: Duration = Duration::from_secs(30);
/// So many seconds one that is deleted has.
const GRACE: i64 = 1;

/// Those that there are.
pub(super) fn pods(ctx: &Context, upgrade: &DynamicObject) -> Vec<(Puller, Arc<DynamicObject>)> {
    let (namespace, uid) = (upgrade.namespace().unwrap_or_default(), upgrade.uid());
    let all = ctx.cache.list(Kind::Pod, &namespace).into_iter();
    let is_ours = |pod: &Arc<DynamicObject>| {
        pod.labels().get(TYPE).map(String::as_str) == Some(WORD)
            && controller_of(pod).map(|owner| &owner.uid) == uid.as_ref()
    };
    all.filter(is_ours).map(|pod| (Puller::of_object(&json!(*pod)), pod)).collect()
}

/// Has those be there that are wanted, and no others. Why the API server refuses one, by its node.
///
/// # Errors
/// A call fails for another reason.
pub(super) async fn ensure(
    ctx: &Context,
    writer: &Writer,
    upgrade: &DynamicObject,
    wanted: &[Pull],
) -> Result<BTreeMap<String, String>, CallError> {
    let wanted: Vec<Pod> = wanted.iter().map(|pull| pod(upgrade, pull)).collect();
    let names: BTreeSet<String> = wanted.iter().map(kube::ResourceExt::name_any).collect();
    let (there, now) = (pods(ctx, upgrade), OffsetDateTime::now_utc());
    // The kubelet does not try again what it did not take, and the next has the name only when it is gone.
    for (puller, pod) in &there {
        let has_failed = puller.has_failed && created(pod).is_some_and(|at| now - at >= PAUSE);
        if !has_failed && names.contains(&puller.name) {
            continue;
        }
        match delete(writer, Kind::Pod, pod).await {
            Ok(()) => {}
            // It ends with the Upgrade, and is in the way of nothing else.
            Err(error) if error.is_refusal() => {
                let (namespace, name) = (&pod.metadata.namespace, &puller.name);
                tracing::warn!(
                    namespace,
                    name,
                    "failed to delete a pod that pulled images: {}",
                    error_chain(&error)
                );
            }
            Err(error) => return Err(error),
        }
    }
    let mut refusals = BTreeMap::new();
    for pod in wanted {
        if there.iter().any(|(puller, _)| puller.name == pod.name_any()) {
            continue;
        }
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        match write_as_read(writer, &pod).await {
            Ok(WriteOutcome::Stored) => {}
            // Where it is ours and the cache does not know it yet, the next pass says so no more.
            Ok(WriteOutcome::Conflict) => {
                let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
                let why = format!(
                    "node {node}: a pod {name} is there that is not of this upgrade: kubectl delete pod {name} -n {namespace}"
                );
                refusals.insert(node, why);
            }
            Err(error) if error.is_refusal() && !error.is_not_found() => {
                let why = format!(
                    "node {node}: failed to make the pod that pulls: {}",
                    error_chain(&error)
                );
                refusals.insert(node, why);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(refusals)
}

fn pod(upgrade: &DynamicObject, pull: &Pull) -> Pod {
    let owner = OwnerReference {
        api_version: Kind::Upgrade.resource().api_version,
        kind: Kind::Upgrade.name().to_owned(),
        name: upgrade.name_any(),
        uid: upgrade.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    let secrets = pull.secrets.iter().map(|name| LocalObjectReference { name: name.clone() });
    Pod {
        metadata: ObjectMeta {
            name: Some(name(upgrade, pull)),
            namespace: upgrade.namespace(),
            labels: Some([(TYPE.to_owned(), WORD.to_owned())].into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            containers: pull.images.iter().map(|image| container(image)).collect(),
            enable_service_links: Some(false),
            // The network of pods may be what is upgraded, or broken.
            host_network: Some(true),
            image_pull_secrets: Some(secrets.collect()),
            node_name: Some(pull.node.clone()),
            restart_policy: Some("Never".to_owned()),
            security_context: Some(PodSecurityContext {
                run_as_user: Some(NOBODY),
                run_as_non_root: Some(true),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    ..SeccompProfile::default()
                }),
                ..PodSecurityContext::default()
            }),
            termination_grace_period_seconds: Some(GRACE),
            tolerations: Some(vec![Toleration {
                operator: Some("Exists".to_owned()),
                ..Toleration::default()
            }]),
            ..PodSpec::default()
        }),
        status: None,
    }
}

/// Whether its command is in the image is no matter: that is pulled before it is looked for.
fn container(image: &str) -> Container {
    Container {
        name: container_name(image),
        image: Some(image.to_owned()),
        command: Some(vec!["/bin/true".to_owned()]),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// Another one for other images: what a pod pulls cannot be changed.
fn name(upgrade: &DynamicObject, pull: &Pull) -> String {
    let what = json!([upgrade.uid(), pull.node, pull.images, pull.secrets]);
    format!("pull-images-{}", digest(&what.to_string(), 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_pulls_runs_nothing_of_an_image_with_any_right() {
        let upgrade: DynamicObject =
            serde_json::from_value(json!({"apiVersion": "opensdn.io/v1alpha1",
            "kind": "Upgrade", "metadata": {"name": "a", "namespace": "tf", "uid": "u"}}))
            .unwrap();
        let pull = Pull {
            node: "n1".to_owned(),
            images: ["r/a:2", "r/b:2"].map(str::to_owned).into(),
            secrets: ["login".to_owned()].into(),
        };
        let made = json!(pod(&upgrade, &pull));
        assert_eq!(made["spec"]["nodeName"], "n1");
        assert_eq!(made["spec"]["imagePullSecrets"][0]["name"], "login");
        assert_eq!(made["spec"]["automountServiceAccountToken"], false);
        assert_eq!(made["spec"]["securityContext"]["runAsNonRoot"], true);
        assert_eq!(made["spec"]["hostNetwork"], true, "it needs no network of pods");
        assert!(made["spec"].get("volumes").is_none());
        let containers = made["spec"]["containers"].as_array().unwrap();
        assert_eq!(containers.len(), 2);
        assert!(containers.iter().all(|one| one["command"] == json!(["/bin/true"])
            && one["securityContext"]["capabilities"]["drop"] == json!(["ALL"])));
        let other = Pull { images: ["r/a:3".to_owned()].into(), ..pull.clone() };
        assert_eq!(name(&upgrade, &pull), name(&upgrade, &pull.clone()));
        assert_ne!(name(&upgrade, &pull), name(&upgrade, &other));
    }
}
