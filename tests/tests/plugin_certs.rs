//! `kubectl opensdn certs renew`: what it asks of the real operator, and that this does it, one address at a time.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use k8s_openapi::ByteString;
use opensdn_pki::{Authority, KeyKind, LeafProfile, RsaBits, Usage};
use opensdn_testing::eventually::eventually;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Map, Value, json};

use crate::operator::{CERTIFICATES, change, get, pem, running};
use crate::plugin_status::{document, plugin};

/// Certificates as the operator would have made them yesterday: those that it has just made have no turn yet.
async fn age(sandbox: &Sandbox) -> Result<Map<String, Value>, Failed> {
    let ca = Authority::from_pem(&pem(sandbox, "ca.crt").await?, &pem(sandbox, "ca.key").await?)?;
    let yesterday = time::OffsetDateTime::now_utc() - time::Duration::days(1);
    let mut data = Map::new();
    for number in 0..3 {
        let host = format!("node-{number}");
        let node = get(sandbox, ["node", &host]).await;
        let addresses = node["status"]["addresses"].as_array().cloned().unwrap_or_default();
        let address =
            addresses.iter().find(|one| one["type"] == "InternalIP").ok_or("no address")?;
        let address = address["address"].as_str().ok_or("no address")?.to_owned();
        for (side, usage) in [("server", Usage::ServerAndClient), ("client", Usage::Client)] {
            let profile = LeafProfile {
                common_name: address.clone(),
                names: vec![host.clone(), address.clone()],
                lifetime: time::Duration::days(365),
                usage,
                key: KeyKind::Rsa(RsaBits::default()),
            };
            let leaf = ca.issue(&profile, yesterday)?;
            let value = |text: &str| serde_json::to_value(ByteString(text.as_bytes().to_vec()));
            data.insert(format!("{side}-{address}.crt"), value(leaf.certificate())?);
            data.insert(format!("{side}-key-{address}.pem"), value(leaf.key())?);
        }
    }
    Ok(data)
}

/// How many of the Secret's certificates are not these any more.
async fn renewed(sandbox: &Sandbox, before: &Map<String, Value>) -> usize {
    let secret = get(sandbox, CERTIFICATES).await;
    let certificates = before.iter().filter(|(key, _)| key.ends_with(".crt"));
    certificates.filter(|(key, value)| secret["data"][key.as_str()] != **value).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_renews_what_it_is_asked_for_one_address_at_a_time() -> Outcome {
    let (sandbox, _operator) = running(1).await?;
    let kubeconfig = sandbox.kubeconfig();
    let before = age(&sandbox).await?;
    let patch = json!({"data": before}).to_string();
    change(&sandbox, &["patch"], CERTIFICATES, &["--type=merge", "-p", &patch]).await?;
    let (planned, code) = document(&kubeconfig, &["certs", "renew", "--all", "--dry-run"])?;
    assert_eq!((code, &planned["secrets"][0]["addresses"]), (0, &json!(3)), "{planned:#}");
    assert_eq!(planned["secrets"].as_array().map(Vec::len), Some(1), "no CA: {planned:#}");
    // Without a terminal and a yes nothing is asked for.
    let refused = plugin(&kubeconfig, &["certs", "renew", "redis1"])?;
    let said = String::from_utf8(refused.stderr)?;
    assert!(refused.status.code() == Some(5) && said.contains("6 minutes at least"), "{said}");
    assert_eq!(renewed(&sandbox, &before).await, 0, "what is good is kept");
    assert_eq!(plugin(&kubeconfig, &["certs", "renew", "redis2", "--yes"])?.status.code(), Some(2));

    let (done, code) = document(&kubeconfig, &["certs", "renew", "redis1", "--yes"])?;
    assert_eq!((code, &done["dryRun"]), (0, &json!(false)), "{done:#}");
    let has_turn = async || renewed(&sandbox, &before).await == 2;
    eventually("the first address has new certificates", has_turn).await;
    // The next has its turn three minutes later.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(renewed(&sandbox, &before).await, 2, "one address, both sides");
    let (report, code) = document(&kubeconfig, &["certs", "status"])?;
    assert_eq!(code, 0, "{report:#}");
    Ok(())
}
