//! Time that passes at once: whatever the operator takes a time from is moved back by so much, so that to it, whose
//! clock goes on as any, so much more has passed since. Deliberately not here: which waits a test has pass.

use std::time::Duration;

use k8s_openapi::ByteString;
use opensdn_deploy::names::operator::{NAME, NAMESPACE};
use opensdn_pki::{CLOCK_SKEW, leaf};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::lab_script::make_older;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::world::World;

const PUBLISHED: &str = "opensdn.io/published-at";
const LEAVING: &str = "opensdn.io/leaving-since";

/// Has so much time pass for these services, which are all of their namespace and have certificates of these CAs: since
/// their pods were made, certificates put into place, the CA changed, and what is trusted published. The operator, which
/// would see one of these changed without the others, is away meanwhile.
pub(super) async fn let_pass(worlds: &[&World], cas: &[&str], by: Duration) -> Outcome {
    let Some(sandbox) = worlds.first().map(|world| &*world.sandbox) else { return Ok(()) };
    let replicas = scale(sandbox, "0").await?;
    let mut pods = Vec::new();
    for world in worlds {
        let is_there = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        let all = world.pods().await;
        let names = all.iter().filter(is_there).filter_map(|pod| pod["metadata"]["name"].as_str());
        pods.extend(names.map(|name| format!("tf/{name}")));
    }
    make_older(sandbox, &pods, by)?;
    let secret = read(sandbox, &["secret", "-n=tf", "opensdn-ca"]).await?;
    let since = earlier(&decoded(&secret["data"]["since"])?, by)?;
    let patch = json!({"stringData": {"since": since}}).to_string();
    let patch = ["patch", "secret", "-n=tf", "opensdn-ca", "--type=merge", "-p", &patch];
    kubectl(sandbox, &patch).await?.success();
    for world in worlds {
        certificates(world, cas, by).await?;
    }
    bundle(sandbox, by).await?;
    scale(sandbox, &replicas).await?;
    Ok(())
}

/// Has so many of the operator run, and returns how many there were to be before.
async fn scale(sandbox: &Sandbox, replicas: &str) -> Result<String, Failed> {
    let (namespace, deployment) = (format!("-n={NAMESPACE}"), format!("deployment/{NAME}"));
    let ask = ["get", &namespace, &deployment, "-o=jsonpath={.spec.replicas}"];
    let before = kubectl(sandbox, &ask).await?.success().to_owned();
    let wanted = format!("--replicas={replicas}");
    kubectl(sandbox, &["scale", &namespace, &deployment, &wanted]).await?.success();
    let pods = format!("--selector=app.kubernetes.io/name={NAME}");
    let there = match replicas {
        "0" => vec!["wait", "--for=delete", "pods", &namespace, &pods, "--timeout=120s"],
        _ => vec!["rollout", "status", &namespace, &deployment, "--timeout=120s"],
    };
    kubectl(sandbox, &there).await?.success();
    Ok(before)
}

/// Since when certificates are in place. The operator takes that of its own from these, unless it is noted, as that of a
/// signer is. It is noted as the operator would, so that this takes the note away with its certificate.
async fn certificates(world: &World, cas: &[&str], by: Duration) -> Outcome {
    let name = format!("{}-secret-certificates", world.service.name);
    let secret = read(&world.sandbox, &["secret", "-n=tf", &name]).await?;
    let there = &secret["metadata"];
    let mut data = secret["data"].as_object().cloned().unwrap_or_default();
    for node in world.lab()?.nodes() {
        let address = node.plan().address.to_string();
        for side in ["server", "client"] {
            let text = |key: &str| decoded(&secret["data"][key]);
            let certificate = text(&format!("{side}-{address}.crt"))?;
            let key = text(&format!("{side}-key-{address}.pem"))?;
            let noted = format!("{side}-since-{address}");
            let since = match text(&noted)?.as_str() {
                noted if !noted.is_empty() => OffsetDateTime::parse(noted, &Rfc3339)?,
                _ => {
                    let names = [node.name().to_owned(), address.clone()];
                    let times = |ca: &&str| leaf::times(&certificate, &key, ca, &names).ok();
                    let times = cas.iter().find_map(times);
                    times.ok_or("a certificate is of no CA of this test")?.from + CLOCK_SKEW
                }
            };
            let since = ByteString((since - by).format(&Rfc3339)?.into_bytes());
            data.insert(noted, serde_json::to_value(since)?);
        }
    }
    let noted = json!({"apiVersion": "v1", "kind": "Secret", "type": secret["type"], "data": data,
        "metadata": {"name": name, "namespace": "tf", "labels": there["labels"],
            "annotations": there["annotations"], "ownerReferences": there["ownerReferences"]}});
    let manager = format!("--field-manager={NAME}");
    let apply = ["apply", "--server-side", "--force-conflicts", &manager];
    send(&world.sandbox, &apply, &noted).await?.success();
    Ok(())
}

/// Since when it is published, and CAs in it leave.
async fn bundle(sandbox: &Sandbox, by: Duration) -> Outcome {
    let trust = read(sandbox, &["configmap", "-n=tf", "csr-signer-ca"]).await?;
    let annotations = &trust["metadata"]["annotations"];
    let mut changed = Vec::new();
    if let Some(at) = annotations[PUBLISHED].as_str() {
        changed.push(format!("{PUBLISHED}={}", earlier(at, by)?));
    }
    if let Some(leaving) = annotations[LEAVING].as_str() {
        let mut leaving: Map<String, Value> = serde_json::from_str(leaving)?;
        for at in leaving.values_mut() {
            *at = json!(earlier(at.as_str().unwrap_or_default(), by)?);
        }
        changed.push(format!("{LEAVING}={}", Value::Object(leaving)));
    }
    for annotation in changed {
        let annotate = ["annotate", "--overwrite", "-n=tf", "configmap/csr-signer-ca", &annotation];
        kubectl(sandbox, &annotate).await?.success();
    }
    Ok(())
}

fn earlier(at: &str, by: Duration) -> Result<String, Failed> {
    Ok((OffsetDateTime::parse(at, &Rfc3339)? - by).format(&Rfc3339)?)
}

/// What a Secret has under a key.
pub(super) fn decoded(value: &Value) -> Result<String, Failed> {
    let bytes: ByteString = serde_json::from_value(value.clone())?;
    Ok(String::from_utf8(bytes.0)?)
}
