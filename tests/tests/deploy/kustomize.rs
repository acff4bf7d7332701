//! `kubectl apply -k deploy/webhook` and what it leaves, without a webhook that runs: what the
//! API server itself enforces.

use std::collections::BTreeSet;
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{EvictParams, ListParams};
use kube::{Api, ResourceExt as _};
use opensdn_deploy::names::{NAME_LABEL, NAMESPACE, configuration, webhook};
use opensdn_deploy::values::{Platform, Profile};
use opensdn_deploy::{Phase, Step, Values, openshift_machines, operator_on, webhook_on};
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::sandbox::{Binaries, Sandbox};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::{ACCOUNT, WRITER};

const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/webhook");
const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/operator");
const APPLY: [&str; 4] = ["apply", "--server-side", "-k", BASE];

/// A control plane that has taken the base.
async fn applied() -> Result<Sandbox, Failed> {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    // As deploy/README.md says: an AdmissionPolicy is taken only when its CRD is served.
    let taken = async || kubectl(&sandbox, &APPLY).await.is_ok_and(|said| said.ok);
    eventually("the base is taken", taken).await;
    Ok(sandbox)
}

/// Every object of the base as it is stored, without what says who wrote it when.
async fn stored(sandbox: &Sandbox) -> Result<Vec<Value>, Failed> {
    let list = read(sandbox, &["-k", BASE]).await?;
    let objects = list["items"].as_array().cloned().unwrap_or_default();
    Ok(objects
        .into_iter()
        .map(|mut object| {
            let metadata = &object["metadata"];
            let kept = ["name", "namespace", "uid", "generation"].map(|key| metadata[key].clone());
            object["metadata"] = json!(kept);
            object.as_object_mut().map(|object| object.remove("status"));
            object
        })
        .collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_apply_changes_nothing_and_the_pod_passes_restricted_security() -> Outcome {
    let sandbox = applied().await?;
    let before = stored(&sandbox).await?;
    for kind in ["Namespace", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"] {
        assert!(before.iter().any(|object| object["kind"] == kind), "{kind} is missing");
    }
    kubectl(&sandbox, &APPLY).await?.success();
    assert_eq!(stored(&sandbox).await?, before);

    for name in [webhook::NAME, configuration::NAME] {
        passes_restricted_security(&sandbox, name).await?;
    }
    Ok(())
}

async fn passes_restricted_security(sandbox: &Sandbox, name: &str) -> Outcome {
    let deployment = read(sandbox, &["-n", NAMESPACE, "deployment", name]).await?;
    let template = &deployment["spec"]["template"];
    let labels = &template["metadata"]["labels"];
    let pod = |spec: &Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata":
            {"name": "webhook", "namespace": "opensdn-system", "labels": labels}})
    };
    let create = ["create", "--dry-run=server"];
    let said = send(sandbox, &create, &pod(&template["spec"])).await?;
    said.success();
    assert!(!said.err.contains("Warning"), "{}", said.err);
    let mut careless = template["spec"].clone();
    careless["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    send(sandbox, &create, &pod(&careless)).await?.refused(&["violates PodSecurity"]);

    selects(sandbox, name, labels).await
}

/// What we render is what kubectl renders, object by object.
#[tokio::test]
async fn the_rendered_objects_are_those_of_kustomize() -> Outcome {
    compare(BASE, opensdn_deploy::webhook()?).await?;
    compare(OPERATOR, opensdn_deploy::operator()?).await
}

#[tokio::test]
async fn the_objects_of_each_platform_are_those_of_its_overlay() -> Outcome {
    let folder = |name: &str| format!("{}/../deploy/{name}", env!("CARGO_MANIFEST_DIR"));
    let (openshift, openstack) = (Platform::Openshift, Platform::Openstack);
    compare(&folder("openshift/webhook"), webhook_on(openshift)?).await?;
    compare(&folder("openshift/operator"), operator_on(openshift)?).await?;
    compare(&folder("openstack"), operator_on(openstack)?).await?;
    let machines = Step { phase: Phase::Access, objects: openshift_machines()? };
    compare(&folder("openshift/machines"), vec![machines]).await
}

/// The values and the overlays make the same of a profile.
#[tokio::test]
async fn the_objects_of_each_profile_are_those_of_its_overlay() -> Outcome {
    let folder = |name: &str| format!("{}/../deploy/{name}", env!("CARGO_MANIFEST_DIR"));
    let (ha, single) = (of_profile(Profile::Ha)?, of_profile(Profile::SingleNode)?);
    compare(&folder("ha/webhook"), only(&ha, &opensdn_deploy::webhook()?)).await?;
    // With it the operator is as it is without.
    compare(OPERATOR, only(&ha, &opensdn_deploy::operator()?)).await?;
    compare(&folder("single-node/webhook"), only(&single, &opensdn_deploy::webhook()?)).await?;
    compare(&folder("single-node/operator"), only(&single, &opensdn_deploy::operator()?)).await
}

fn of_profile(profile: Profile) -> Result<Vec<Step>, Failed> {
    Ok(opensdn_deploy::render(&Values { profile, ..Values::default() })?)
}

/// Those of the objects that the base has, too.
fn only(all: &[Step], base: &[Step]) -> Vec<Step> {
    let of_base: Vec<&Value> = base.iter().flat_map(|step| &step.objects).collect();
    let is_of_base = |object: &&Value| {
        of_base.iter().any(|one| {
            name(one) == name(object)
                && one["metadata"].get("namespace") == object["metadata"].get("namespace")
        })
    };
    let of_step = |step: &Step| Step {
        phase: step.phase,
        objects: step.objects.iter().filter(is_of_base).cloned().collect(),
    };
    all.iter().map(of_step).collect()
}

async fn compare(folder: &str, steps: Vec<Step>) -> Outcome {
    let kubectl = Binaries::find(None).await?.program("kubectl")?;
    let output = Command::new(kubectl).args(["kustomize", folder]).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8(output.stdout)?)?;
    let ours: Vec<Value> = steps.into_iter().flat_map(|step| step.objects).collect();
    assert_eq!(names(&ours), names(&theirs));
    for object in ours {
        // A Role of the operator is in several namespaces.
        let namespace = object["metadata"].get("namespace");
        let is_in_it =
            |one: &Value| namespace.is_none() || one["metadata"].get("namespace") == namespace;
        let is = |one: &&Value| name(one) == name(&object) && is_in_it(one);
        let mut theirs = theirs.iter().find(is).cloned().ok_or_else(|| object.to_string())?;
        if namespace.is_none() {
            // kustomize does not know which of our kinds have none, and kubectl drops it.
            theirs["metadata"].as_object_mut().map(|metadata| metadata.remove("namespace"));
        }
        assert_eq!(plain(object), plain(theirs));
    }
    Ok(())
}

fn name(object: &Value) -> (&str, &str) {
    let text = |value: &'static str| object.pointer(value).and_then(Value::as_str);
    (text("/kind").unwrap_or_default(), text("/metadata/name").unwrap_or_default())
}

fn names(objects: &[Value]) -> BTreeSet<(&str, &str)> {
    objects.iter().map(name).collect()
}

/// Without nulls, and with numbers that are equal if their values are.
pub(super) fn plain(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(key, value)| (key, plain(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Number(number) => json!(number.as_f64()),
        other => other,
    }
}

/// Budget and network policy of that name are about the pods of the Deployment; the Service is about
/// those that answer reviews, and no others.
async fn selects(sandbox: &Sandbox, name: &str, labels: &Value) -> Outcome {
    for (kind, pointer) in [
        ("poddisruptionbudget", "/spec/selector/matchLabels"),
        ("networkpolicy", "/spec/podSelector/matchLabels"),
    ] {
        let object = read(sandbox, &["-n", NAMESPACE, kind, name]).await?;
        assert_eq!(object.pointer(pointer), Some(labels), "{kind}");
    }
    let service = read(sandbox, &["-n", NAMESPACE, "service", webhook::NAME]).await?;
    assert_eq!(&service["spec"]["selector"] == labels, name == webhook::NAME);
    Ok(())
}

/// Drains take one replica after the other. Simulated nodes say that all are ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_replica_is_not_evicted_while_the_first_is_away() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).start().await?;
    let taken = async || kubectl(&sandbox, &APPLY).await.is_ok_and(|said| said.ok);
    eventually("the base is taken", taken).await;
    let status =
        ["-n", NAMESPACE, "rollout", "status", "deployment/opensdn-webhook", "--timeout=60s"];
    kubectl(&sandbox, &status).await?.success();
    let pods: Api<Pod> = Api::namespaced(sandbox.client()?, NAMESPACE);
    let replicas = format!("{NAME_LABEL}={}", webhook::NAME);
    let listed = pods.list(&ListParams::default().labels(&replicas)).await?;
    let names: Vec<String> = listed.into_iter().map(|pod| pod.name_any()).collect();
    let [first, second, _] = names.as_slice() else {
        return Err(format!("not three replicas: {names:?}").into());
    };
    // Kept, so that no new replica takes its place.
    kubectl(&sandbox, &["cordon", "node-0", "node-1", "node-2"]).await?.success();
    let evicted = async || pods.evict(first, &EvictParams::default()).await.is_ok();
    // The budget may not have counted the pods yet.
    eventually("a replica is evicted", evicted).await;
    match pods.evict(second, &EvictParams::default()).await {
        Err(kube::Error::Api(status)) if status.message.contains("disruption budget") => Ok(()),
        other => Err(format!("a second replica is evicted: {other:?}").into()),
    }
}

/// What who writes the webhook configurations must not do.
const REFUSED_TO_THE_WRITER: [&str; 18] = [
    "patch validatingwebhookconfigurations/other",
    "create mutatingwebhookconfigurations",
    "delete validatingwebhookconfigurations/opensdn-webhook",
    "list secrets",
    "list secrets -n opensdn-system",
    "create secrets -n opensdn-system",
    "update secrets/opensdn-webhook-ca -n opensdn-system",
    "update secrets/opensdn-webhook-paths -n opensdn-system",
    "patch admissionpolicies.opensdn.io",
    "patch admissionpolicies.opensdn.io --subresource=status",
    "create uniqueclaims.opensdn.io",
    "list vrouters.tf.tungsten.io",
    "update leases/opensdn-webhook-leader -n opensdn-system",
    "patch leases -n opensdn-system",
    "create pods -n opensdn-system",
    "patch clusterroles/opensdn-webhook-configuration",
    "create serviceaccounts --subresource=token",
    "delete validatingadmissionpolicybindings/opensdn-webhook-leases",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_webhooks_account_and_an_administrator_must_not_do_is_refused() -> Outcome {
    let sandbox = applied().await?;
    for refused in [
        "patch validatingwebhookconfigurations/other",
        "create validatingwebhookconfigurations",
        "create validatingwebhookconfigurations/opensdn-webhook",
        "update validatingwebhookconfigurations/opensdn-webhook",
        "patch validatingwebhookconfigurations/opensdn-webhook",
        "delete validatingwebhookconfigurations/opensdn-webhook",
        "patch mutatingwebhookconfigurations/other",
        "create mutatingwebhookconfigurations/opensdn-webhook",
        "update mutatingwebhookconfigurations/opensdn-webhook",
        "patch mutatingwebhookconfigurations/opensdn-webhook",
        "delete mutatingwebhookconfigurations/opensdn-webhook",
        "patch validatingadmissionpolicies/opensdn-unique-claims",
        "patch validatingadmissionpolicies/opensdn-webhook-leases",
        "delete validatingadmissionpolicybindings/opensdn-webhook-leases",
        "create admissionpolicies.opensdn.io",
        "update admissionpolicies.opensdn.io",
        "patch admissionpolicies.opensdn.io",
        "delete admissionpolicies.opensdn.io",
        "update vrouters.tf.tungsten.io",
        "patch managers.tf.tungsten.io",
        "delete managers.tf.tungsten.io",
        "patch clusterroles/opensdn-webhook",
        "create clusterrolebindings",
        "escalate clusterroles",
        "bind clusterroles",
        "impersonate users",
        "create pods",
        "get secrets/other",
        "create secrets -n kube-system",
        // By one of type service-account-token he would be any account of the namespace.
        "create secrets -n opensdn-system",
        "update secrets -n opensdn-system",
        "delete secrets/opensdn-webhook-ca -n opensdn-system",
        "update configmaps -n opensdn-system",
        "patch leases -n kube-system",
        "create serviceaccounts --subresource=token",
    ] {
        is_refused(&sandbox, ACCOUNT, refused).await?;
    }
    for refused in REFUSED_TO_THE_WRITER {
        is_refused(&sandbox, WRITER, refused).await?;
    }
    claims_are_the_webhooks(&sandbox).await
}

async fn is_refused(sandbox: &Sandbox, account: &str, refused: &str) -> Outcome {
    let account = format!("--as={account}");
    let groups = "--as-group=system:serviceaccounts:opensdn-system";
    let mut arguments = vec!["auth", "can-i", account.as_str(), groups];
    arguments.extend(refused.split(' '));
    let said = kubectl(sandbox, &arguments).await?;
    assert_eq!(said.out.trim(), "no", "{account} {refused}: {}", said.err);
    Ok(())
}

/// The ValidatingAdmissionPolicy holds while no webhook runs, and for the administrator too.
async fn claims_are_the_webhooks(sandbox: &Sandbox) -> Outcome {
    let claim = json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "UniqueClaim",
        "metadata": {"name": "by-hand"},
        "spec": {
            "scope": "link-local-address", "key": "169.254.7.1:80",
            "holder": {"group": "opensdn.io", "kind": "LinkLocalService", "namespace": "tf",
                "name": "mine"},
        },
    });
    let reason = ["written by the webhook of OpenSDN only", "to free an address"];
    // The API server starts to enforce the policy some time after it was stored.
    let enforced = async || {
        let said = send(sandbox, &["create", "--dry-run=server"], &claim).await;
        said.is_ok_and(|said| !said.ok)
    };
    eventually("claims made by hand are refused", enforced).await;
    send(sandbox, &["create"], &claim).await?.refused(&reason);
    let account = format!("--as={ACCOUNT}");
    send(sandbox, &["create", &account], &claim).await?.success();
    let holder = r#"{"spec":{"holder":{"name":"yours"}}}"#;
    let patch = ["patch", "uniqueclaim", "by-hand", "--type=merge", "-p", holder];
    kubectl(sandbox, &patch).await?.refused(&reason);
    // A claim that waits for a finalizer, as after `--cascade=foreground`, can be cleaned up all the same.
    let finalizers = async |names: &str| {
        let patch = format!(r#"{{"metadata":{{"finalizers":{names}}}}}"#);
        kubectl(sandbox, &["patch", "uniqueclaim", "by-hand", "--type=merge", "-p", &patch]).await
    };
    finalizers(r#"["example.com/wait"]"#).await?.success();
    kubectl(sandbox, &["delete", "uniqueclaim", "by-hand", "--wait=false"]).await?.success();
    finalizers("[]").await?.success();
    let get = ["get", "uniqueclaim", "by-hand", "--ignore-not-found", "-o", "name"];
    assert_eq!(kubectl(sandbox, &get).await?.success(), "");
    Ok(())
}
