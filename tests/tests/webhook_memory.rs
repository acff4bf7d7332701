//! What callers can make a replica hold: ten thousand connections, half-sent heads and bodies of the worst
//! shapes do not take it beyond the memory of its pod, and it judges meanwhile. Each limit by itself is
//! tested in `webhook/tests/http/abuse.rs`.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use kube::api::PostParams;
use kube::{Api, Client, Config};
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_runtime::open_files;
use opensdn_testing::eventually::eventually;
use opensdn_testing::link_local::service;
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The memory limit in `deploy/webhook/deployment.yaml`.
const LIMIT_MIB: u64 = 512;
const CROWD: usize = 10_000;
/// As large as a review may be.
const BODY: usize = (8 << 20) - (64 << 10);
/// Bodies of each shape at once.
const BODIES: usize = 12;

/// What the process had resident at most, in MiB.
fn most_resident(product: &Product) -> Result<u64, Failed> {
    let id = product.process_id(0).ok_or("the replica has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib >> 10)
}

/// Half of them say nothing; the others begin a TLS handshake and leave it there.
async fn crowd(address: SocketAddr) -> Vec<TcpStream> {
    const HELLO: &[u8] = b"\x16\x03\x01\x40\x00\x01\x00";
    let connect = async |number: usize| {
        // Whom the server has closed out by now may see a reset.
        let mut stream = TcpStream::connect(address).await.ok()?;
        if number.is_multiple_of(2) {
            let _ = stream.write_all(&[HELLO, &[b'x'; 16 << 10]].concat()).await;
        }
        Some(stream)
    };
    let mut all = Vec::new();
    for start in (0..CROWD).step_by(500) {
        all.extend(join_all((start..start + 500).map(connect)).await.into_iter().flatten());
    }
    all
}

/// Reviews of an update whose new and old object differ in an annotation, filled up with `filler`.
fn body(name: &str, filler: &str) -> Vec<u8> {
    let head = |annotation: &str| {
        format!(
            r#"{{"apiVersion":"opensdn.io/v1alpha1","kind":"LinkLocalService","metadata":{{"name":"{name}","namespace":"default","uid":"u","annotations":{{"opensdn.io/confirm-loss":"{annotation}"}}}},"spec":{{"filler":["#
        )
    };
    let space = (BODY / 2 - 1024) / filler.len();
    let filled = |annotation: &str| format!("{}{}0]}}}}", head(annotation), filler.repeat(space));
    let kind = r#"{"group":"opensdn.io","version":"v1alpha1","kind":"LinkLocalService"}"#;
    let resource = r#"{"group":"opensdn.io","version":"v1alpha1","resource":"linklocalservices"}"#;
    let (new, old) = (filled("new"), filled("old"));
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{kind},"resource":{resource},"name":"{name}","namespace":"default","operation":"UPDATE","userInfo":{{}},"dryRun":false,"options":null,"object":{new},"oldObject":{old}}}}}"#
    )
    .into_bytes()
}

async fn is_alive(admin: SocketAddr) -> bool {
    let config = format!("http://{admin}").parse().map(Config::new);
    let Ok(client) = config.map_err(Failed::from).and_then(|config| Ok(Client::try_from(config)?))
    else {
        return false;
    };
    let request = http::Request::get("/live").body(Vec::new());
    let Ok(request) = request else { return false };
    let answer = timeout(Duration::from_secs(20), client.request_text(request)).await;
    matches!(answer, Ok(Ok(text)) if text == "alive\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_connections_and_the_worst_bodies_stay_within_the_pods_memory() -> Outcome {
    open_files::raise_limit();
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let limit = format!("--memory-mib={LIMIT_MIB}");
    let product = Installation::built()?.argument(limit).install(&sandbox).await?;
    let backend = *product.backends().first().ok_or("a replica")?;
    let path = product.validate_path(&sandbox).await?;
    let crowd = crowd(backend.serve).await;
    assert!(crowd.len() > CROWD / 2, "{} connections were made", crowd.len());
    assert!(is_alive(backend.admin).await);

    let mut config = Config::new(format!("https://{}", backend.serve).parse()?);
    config.accept_invalid_certs = true;
    config.proxy_url = None;
    let caller = Client::try_from(config)?;
    for filler in ["0,", "{},", r#""","#, "[[[[[]]]]],"] {
        let send = |number: usize| {
            let (caller, path) = (caller.clone(), format!("{path}?timeout=30s"));
            let body = body(&format!("large-{number}"), filler);
            async move {
                let request = http::Request::post(path).header("content-type", "application/json");
                // Answered, shed or given up: what it takes is asked, not what it says.
                let answer = caller.request_text(request.body(body)?).await;
                Ok::<_, http::Error>(answer.is_ok())
            }
        };
        for sent in join_all((0..BODIES).map(send)).await {
            sent?;
        }
        assert!(is_alive(backend.admin).await, "{filler}");
        let most = most_resident(&product)?;
        assert!(most < LIMIT_MIB, "{most} MiB after bodies of {filler}");
    }

    let services: Api<LinkLocalService> = Api::namespaced(sandbox.client()?, "default");
    let good = service(&json!({"name": "good"}), "169.254.9.1")?;
    eventually("a good review passes", async || {
        services.create(&PostParams::default(), &good).await.is_ok()
    })
    .await;
    drop(crowd);
    Ok(())
}
