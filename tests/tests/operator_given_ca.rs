//! The CA that a user gives: how it comes into use, and what is said of one that cannot.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::operator::{
    CA, LABEL, STATEFUL_SET, TRUST, change, condition, get, issued_by, pem, ready, redis,
};

/// Certificate and key.
pub(crate) fn authority(name: &str) -> Result<(String, String), Failed> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::OrganizationName, "Example");
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

pub(crate) fn secret(certificate: &str, key: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "contrail-ca-certificate", "namespace": "tf"},
        "stringData": {"ca-bundle.crt": certificate, "ca-priv-key.pem": key}})
}

async fn bundle(sandbox: &Sandbox) -> String {
    get(sandbox, TRUST).await["data"]["ca-bundle.crt"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ca_that_is_given_signs_and_another_is_announced_first_and_a_bad_one_stops_nothing()
-> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
    let _operator = Operator::install(&sandbox, 1).await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    let (first, key) = authority("first")?;
    let (second, second_key) = authority("second")?;

    send(&sandbox, &["create"], &secret(&first, &second_key)).await?.success();
    send(&sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
    let is_refused = async || {
        let (status, _, message) = condition(&sandbox, "Ready").await;
        status == "False"
            && message.contains("Secret contrail-ca-certificate")
            && message.contains("none of the certificates is that of the key")
    };
    eventually("the status says what is wrong with the CA", is_refused).await;
    assert_eq!(get(&sandbox, CA).await, Value::Null, "none is made instead");
    assert_eq!(get(&sandbox, STATEFUL_SET).await, Value::Null);

    send(&sandbox, &["replace"], &secret(&first, &key)).await?.success();
    ready(&sandbox).await;
    assert_eq!(issued_by(&sandbox, &first).await?.len(), 3);
    assert_eq!(pem(&sandbox, "ca.crt").await?, first);
    assert_eq!(bundle(&sandbox).await.trim(), first.trim());

    // In the keys that cert-manager writes.
    let tls = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "contrail-ca-certificate", "namespace": "tf"},
        "stringData": {"tls.crt": second, "ca.crt": second, "tls.key": second_key}});
    send(&sandbox, &["replace"], &tls).await?.success();
    let both = format!("{}\n{}", first.trim(), second.trim());
    let is_announced = async || bundle(&sandbox).await.trim() == both;
    eventually("pods trust the second beside the first", is_announced).await;
    assert_eq!(issued_by(&sandbox, &first).await?.len(), 3, "some do not trust the second yet");

    send(&sandbox, &["replace"], &secret(&second, "no key")).await?.success();
    let is_refused = async || {
        let message = condition(&sandbox, "Ready").await.2;
        message.contains("contrail-ca-certificate") && message.contains("openssl pkcs8")
    };
    eventually("the status says what is wrong with the key", is_refused).await;
    assert_eq!(issued_by(&sandbox, &first).await?.len(), 3, "what runs is left as it is");
    change(&sandbox, &["delete"], STATEFUL_SET, &[]).await?;
    let is_back = async || get(&sandbox, STATEFUL_SET).await["metadata"]["uid"].is_string();
    eventually("what is lost comes back all the same", is_back).await;
    Ok(())
}
