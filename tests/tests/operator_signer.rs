//! Certificates of a signer of Kubernetes: what the operator asks for, who approves it, and what becomes of what was issued. The signer
//! is ours, as no program of the sandbox issues certificates that are for servers and clients both: it signs what is approved, with
//! the names and usages of the request, and nothing else.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use opensdn_pki::{KeyKind, LeafProfile, new_key, request};
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::manager::manager;
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use rcgen::{CertificateSigningRequestParams, Issuer, KeyPair, PublicKeyData as _};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::operator::{CERTIFICATES, LABEL, TRUST, condition, get, issued_by, pem, ready};
use crate::operator_given_ca::authority;

const SIGNER: &str = "example.com/opensdn";
const REQUESTS: [&str; 2] = ["secret", "redis1-secret-requests"];
/// What a user may give the operator for this.
const RIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/operator/signer.yaml");

/// Gives it those whose name ends so.
async fn grant(sandbox: &Sandbox, end: &str) -> Outcome {
    let all: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(RIGHTS)?)?;
    let is_meant =
        |one: &&Value| one["metadata"]["name"].as_str().is_some_and(|name| name.ends_with(end));
    let meant: Vec<&Value> = all.iter().filter(is_meant).collect();
    assert_eq!(meant.len(), 2, "a role and its binding");
    for one in meant {
        send(sandbox, &["create"], one).await?.success();
    }
    Ok(())
}

/// Issues what is approved by now, to begin so long before.
async fn sign(
    api: &Api<CertificateSigningRequest>,
    (ca, key): &(String, String),
    skew: Duration,
) -> Outcome {
    for request in api.list(&ListParams::default()).await?.items {
        let status = request.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let is_approved = conditions.iter().any(|one| one.type_ == "Approved");
        if request.spec.signer_name != SIGNER || !is_approved || status.certificate.is_some() {
            continue;
        }
        let issuer = Issuer::from_ca_cert_pem(ca, KeyPair::from_pem(key)?)?;
        let asked = String::from_utf8(request.spec.request.0.clone())?;
        let mut params = CertificateSigningRequestParams::from_pem(&asked)?;
        let seconds = request.spec.expiration_seconds.ok_or("it does not say how long")?;
        params.params.not_before = OffsetDateTime::now_utc() - skew;
        params.params.not_after = OffsetDateTime::now_utc() + Duration::seconds(seconds.into());
        let certificate = ByteString(params.signed_by(&issuer)?.pem().into_bytes());
        let patch = json!({"status": {"certificate": certificate}});
        let params = PatchParams::default();
        api.patch_status(&request.name_any(), &params, &Patch::Merge(&patch)).await?;
    }
    Ok(())
}

/// The names of all requests.
async fn requests(sandbox: &Sandbox) -> Result<BTreeSet<String>, Failed> {
    let api: Api<CertificateSigningRequest> = Api::all(sandbox.client()?);
    let all = api.list(&ListParams::default()).await?.items;
    Ok(all.iter().map(kube::ResourceExt::name_any).collect())
}

async fn says(sandbox: &Sandbox, words: &str) {
    let what = format!("the status says {words}");
    eventually(&what, async || condition(sandbox, "Ready").await.2.contains(words)).await;
}

fn secret(certificates: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "contrail-ca-certificate", "namespace": "tf"},
        "stringData": {"ca-bundle.crt": certificates}})
}

fn has_a_key_as_the_manager_says(request: &CertificateSigningRequest) -> Outcome {
    let pem = String::from_utf8(request.spec.request.0.clone())?;
    let key = CertificateSigningRequestParams::from_pem(&pem)?.public_key.der_bytes().len();
    assert!((384..512).contains(&key), "it is one of 3072 bits, and has {key} bytes");
    let request = serde_json::to_string(request)?;
    assert!(!request.contains("PRIVATE"), "{request}");
    Ok(())
}

async fn both_are_trusted_and_no_key_is_left_behind(sandbox: &Sandbox, ca: &str) -> Outcome {
    let trusted = get(sandbox, TRUST).await["data"]["ca-bundle.crt"].clone();
    let trusted = trusted.as_str().unwrap_or_default();
    let own = pem(sandbox, "ca.crt").await?;
    assert!(trusted.contains(ca.trim()) && trusted.contains(own.trim()), "{trusted}");
    let is_forgotten = async || {
        let requests = get(sandbox, REQUESTS).await;
        requests["metadata"].is_object() && requests["data"].is_null()
    };
    eventually("no key is kept beside those of the certificates", is_forgotten).await;
    let files = get(sandbox, CERTIFICATES).await["data"].as_object().map_or(0, |data| data.len());
    assert_eq!(files, 12, "certificate and key of two sides, and since when they are there");
    Ok(())
}

/// Puts a request of another in the place of one of the operator's while that does not run: it is neither approved nor used.
async fn a_request_of_another_is_left_alone(
    sandbox: &Sandbox,
    operator: &mut Operator,
    name: &str,
) -> Outcome {
    operator.kill(0);
    kubectl(sandbox, &["delete", "csr", name]).await?.success();
    let profile = LeafProfile::server("198.51.100.66", vec!["198.51.100.66".to_owned()]);
    let theirs = request(&profile, &new_key(KeyKind::EcdsaP256)?)?.pem;
    let theirs = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"signerName": SIGNER, "request": ByteString(theirs.into_bytes()), "usages": ["client auth", "server auth"]}});
    send(sandbox, &["create"], &theirs).await?.success();
    operator.start(0)?;
    let is_asked_again = async || requests(sandbox).await.is_ok_and(|all| all.len() == 5);
    eventually("it is asked for under another name", is_asked_again).await;
    let there: CertificateSigningRequest = Api::all(sandbox.client()?).get(name).await?;
    assert!(there.status.and_then(|status| status.conditions).is_none(), "it is not approved");
    kubectl(sandbox, &["delete", "csr", name]).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signer_of_kubernetes_issues_the_certificates_once_each_request_is_approved() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
    let mut operator = Operator::install(&sandbox, 1).await?;
    for node in ["node-0", "node-1"] {
        kubectl(&sandbox, &["label", "node", node, LABEL]).await?.success();
    }
    let theirs = authority("signer")?;
    let mut it =
        manager("tf", "it", &["Redis"], |name| format!("registry.example.com/{name}:R24.1"));
    it["spec"]["commonConfiguration"] = json!({"certSigner": SIGNER, "certKeyLength": 3072});
    send(&sandbox, &["create"], &it).await?.success();

    // What it lacks is named, one after the other.
    says(&sandbox, "Secret contrail-ca-certificate").await;
    assert_eq!(
        requests(&sandbox).await?,
        BTreeSet::new(),
        "none is asked for whose issuer none would trust"
    );
    send(&sandbox, &["create"], &secret(&theirs.0)).await?.success();
    says(&sandbox, "certificatesigningrequests").await;
    grant(&sandbox, "ask-signer").await?;
    says(&sandbox, "kubectl certificate approve opensdn-operator-tf-redis1-").await;
    let is_asked = async || requests(&sandbox).await.is_ok_and(|all| all.len() == 4);
    eventually("two certificates for each of two nodes are asked for", is_asked).await;
    let asked = requests(&sandbox).await?;

    let first = asked.first().ok_or("there is one")?;
    a_request_of_another_is_left_alone(&sandbox, &mut operator, first).await?;
    let others = asked;
    let asked = requests(&sandbox).await?;
    assert_eq!((asked.len(), asked.intersection(&others).count()), (4, 3), "{asked:?}");

    // An operator that takes over asks for nothing again.
    operator.kill(0);
    operator.start(0)?;
    let api: Api<CertificateSigningRequest> = Api::all(sandbox.client()?);
    for name in &asked {
        has_a_key_as_the_manager_says(&api.get(name).await?)?;
        kubectl(&sandbox, &["certificate", "approve", name]).await?.success();
    }
    let is_ready = async || {
        let signed = sign(&api, &theirs, Duration::ZERO).await.is_ok();
        signed && condition(&sandbox, "Ready").await.0 == "True"
    };
    eventually("the Redis is Ready", is_ready).await;
    assert_eq!(requests(&sandbox).await?, asked);
    assert_eq!(issued_by(&sandbox, &theirs.0).await?.len(), 2);
    both_are_trusted_and_no_key_is_left_behind(&sandbox, &theirs.0).await?;

    // With the right to it the operator approves what it asks for, of this signer and of no other.
    grant(&sandbox, "approve").await?;
    kubectl(&sandbox, &["label", "node", "node-2", LABEL]).await?.success();
    let has_three = async || {
        let signed = sign(&api, &theirs, Duration::minutes(5)).await.is_ok();
        signed && issued_by(&sandbox, &theirs.0).await.is_ok_and(|all| all.len() == 3)
    };
    eventually("the third member has certificates, too", has_three).await;
    ready(&sandbox).await;
    Ok(())
}
