//! What callers can make a replica hold: ten thousand connections, half-sent handshakes and heads, and bodies
//! of the worst shapes do not take it beyond the memory of its pod, and it judges meanwhile. Where a cgroup can be had it
//! is in one of that size, with the compiler that it starts, as in a pod; elsewhere what it had resident is
//! looked at. Each limit by itself is tested in `webhook/tests/http/abuse.rs`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::PostParams;
use kube::{Api, Client, Config};
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_policy_host::Digest;
use opensdn_runtime::{error_chain, open_files};
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::send;
use opensdn_testing::link_local::service;
use opensdn_testing::memory_cgroup::MemoryCgroup;
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::AbortOnDropHandle;

use crate::hostile_modules::nested_loops;

/// The memory limit in `deploy/webhook/deployment.yaml`.
const LIMIT_MIB: u64 = 512;
const CROWD: usize = 10_000;
/// As large as a review may be.
const BODY: usize = (8 << 20) - (64 << 10);
/// Bodies of each shape at once.
const BODIES: usize = 12;

/// So many loops take most of what a compilation may have to compile (256 MiB).
const LOOPS: usize = 1_400;

/// What holds the webhook to its limit.
enum Limit {
    /// The kernel. The compiler counts, too.
    Cgroup(MemoryCgroup),
    /// We look at it, in MiB; the webhook knows it by a flag.
    Looked(u64),
}

impl Limit {
    fn new(mebibytes: u64) -> Self {
        match MemoryCgroup::new(mebibytes << 20) {
            Ok(group) => Self::Cgroup(group),
            Err(why) => {
                // Whether anybody reads it is not the test's subject.
                let why = error_chain(&why);
                let _ = writeln!(std::io::stderr(), "no cgroup, VmHWM is looked at: {why}");
                Self::Looked(mebibytes)
            }
        }
    }

    fn installation(&self, folder: &Path) -> Result<Installation, Failed> {
        let program = program("opensdn-webhook")?;
        match self {
            Self::Cgroup(group) => Ok(Installation::of(group.starter(&program, folder)?)),
            Self::Looked(mebibytes) => {
                let limit = format!("--memory-mib={mebibytes}");
                Ok(Installation::of(program).argument(limit))
            }
        }
    }

    fn check(&self, product: &Product, after: &str) -> Outcome {
        let id = product.process_id(0).ok_or_else(|| format!("it has ended after {after}"))?;
        match self {
            Self::Cgroup(group) => {
                assert!(group.has(id), "it is not in the group");
                assert_eq!(group.kills()?, 0, "killed for memory after {after}");
            }
            Self::Looked(mebibytes) => {
                let most = most_resident(id)?;
                assert!(most < *mebibytes, "{most} MiB after {after}");
            }
        }
        Ok(())
    }
}

/// What the process had resident at most, in MiB.
fn most_resident(process: u32) -> Result<u64, Failed> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib >> 10)
}

/// Heads of requests that are sent halfway at once, again and again.
const HALF_HEADS: usize = 1_500;
/// As long as the server reads before it must end, and a little less.
const HALF_HEAD: usize = 15 << 10;

/// What a caller needs for a whole TLS handshake with the webhook.
async fn connector(sandbox: &Sandbox) -> Result<TlsConnector, Failed> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(sandbox.client()?);
    let configuration = configurations.get("opensdn-webhook").await?;
    let entry = configuration.webhooks.into_iter().flatten().next().ok_or("an entry")?;
    let bundle = entry.client_config.ca_bundle.ok_or("a bundle")?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bundle.0) {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A connection whose handshake is whole, and whose request is not: half a head, and nothing more.
async fn half_head(
    address: SocketAddr,
    tls: &TlsConnector,
    path: &str,
) -> Result<TlsStream<TcpStream>, Failed> {
    let stream = TcpStream::connect(address).await?;
    let mut stream = tls.connect(ServerName::try_from("127.0.0.1")?, stream).await?;
    let mut head = format!("POST {path} HTTP/1.1\r\nx: ").into_bytes();
    head.resize(HALF_HEAD, b'x');
    stream.write_all(&head).await?;
    stream.flush().await?;
    Ok(stream)
}

/// A crowd of them, each replaced when the server has closed it out, until the task is ended; how many
/// there were in all.
async fn half_heads(address: SocketAddr, tls: TlsConnector, path: String, sent: Arc<AtomicUsize>) {
    let mut held = Vec::new();
    loop {
        for _ in 0..10 {
            let next = (0..HALF_HEADS / 10).map(|_| half_head(address, &tls, &path));
            // Whom the server closes out, or who comes too late, is replaced.
            let made: Vec<_> = join_all(next).await.into_iter().flatten().collect();
            sent.fetch_add(made.len(), Ordering::Relaxed);
            held.extend(made);
            let beyond = held.len().saturating_sub(HALF_HEADS);
            held.drain(..beyond);
        }
        tokio::task::yield_now().await;
    }
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

/// What a body is filled up with.
#[derive(Clone, Copy, Debug)]
enum Filler {
    /// The same again and again, in a list.
    Values(&'static str),
    /// An object with so many short keys, or as many as fit.
    Keys(usize),
}

impl Filler {
    fn text(self, bytes: usize) -> String {
        use std::fmt::Write as _;
        match self {
            Self::Values(text) => text.repeat(bytes / text.len()),
            Self::Keys(most) => {
                let mut object = "{".to_owned();
                for number in (0..most).take_while(|number| number * 10 < bytes) {
                    // Writing to a String cannot fail.
                    let _ = write!(object, "\"{number:x}\":0,");
                }
                object + "\"\":0},"
            }
        }
    }
}

/// Reviews of an update whose new and old object differ in an annotation, filled up with `filler`, by a user in as
/// many groups as there may be.
fn body(name: &str, filler: Filler) -> Vec<u8> {
    let head = |annotation: &str| {
        format!(
            r#"{{"apiVersion":"opensdn.io/v1alpha1","kind":"LinkLocalService","metadata":{{"name":"{name}","namespace":"default","uid":"u","annotations":{{"opensdn.io/confirm-loss":"{annotation}"}}}},"spec":{{"filler":["#
        )
    };
    let filler = filler.text(BODY / 2 - 8192);
    let filled = |annotation: &str| format!("{}{filler}0]}}}}", head(annotation));
    let groups = vec![r#""""#; 2_000].join(",");
    let kind = r#"{"group":"opensdn.io","version":"v1alpha1","kind":"LinkLocalService"}"#;
    let resource = r#"{"group":"opensdn.io","version":"v1alpha1","resource":"linklocalservices"}"#;
    let (new, old) = (filled("new"), filled("old"));
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{kind},"resource":{resource},"name":"{name}","namespace":"default","operation":"UPDATE","userInfo":{{"groups":[{groups}]}},"dryRun":false,"options":null,"object":{new},"oldObject":{old}}}}}"#
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

/// Has a module compiled that takes much to compile, and is none in the end.
async fn compile(sandbox: &Sandbox, folder: &Path) -> Outcome {
    let module = nested_loops(LOOPS)?;
    std::fs::write(folder.join("loops.wasm"), &module)?;
    let digest = Digest::of(&module).to_string();
    let module = json!({"folder": {"path": "loops.wasm"}, "digest": digest});
    let policy = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "loops"}, "spec": {"module": module}});
    // What takes too long is not refused, so a busy machine may take it once.
    let answered = async || {
        let said = send(sandbox, &["apply", "--dry-run=server"], &policy).await;
        said.is_ok_and(|said| !said.ok && said.err.contains("OSDN4004"))
    };
    eventually("it is compiled, and refused for what it lacks", answered).await;
    Ok(())
}

/// Twelve bodies of each shape, all at once.
async fn send_bodies(caller: &Client, path: &str, filler: Filler) -> Outcome {
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
    Ok(())
}

async fn a_good_review_passes(sandbox: &Sandbox, name: &str, ip: &str) -> Outcome {
    let services: Api<LinkLocalService> = Api::namespaced(sandbox.client()?, "default");
    let good = service(&json!({"name": name}), ip)?;
    eventually("a good review passes", async || {
        services.create(&PostParams::default(), &good).await.is_ok()
    })
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_connections_and_the_worst_bodies_stay_within_the_pods_memory() -> Outcome {
    open_files::raise_limit();
    let folder = tempfile::tempdir()?;
    // Before the product, which ends first then.
    let limit = Limit::new(LIMIT_MIB);
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    // Its policies are compiled in the group, too: none is in the cache.
    let product = limit
        .installation(folder.path())?
        .cache_folder(folder.path().join("cache"))
        .argument(format!("--policy-folder={}", folder.path().display()))
        .install(&sandbox)
        .await?;
    let backend = *product.backends().first().ok_or("a replica")?;
    let path = product.validate_path(&sandbox).await?;
    let crowd = crowd(backend.serve).await;
    assert!(crowd.len() > CROWD / 2, "{} connections were made", crowd.len());
    assert!(is_alive(backend.admin).await);
    limit.check(&product, "ten thousand connections that say nothing")?;
    a_good_review_passes(&sandbox, "meanwhile", "169.254.9.2").await?;

    let tls = connector(&sandbox).await?;
    let heads = Arc::new(AtomicUsize::default());
    let half_heads = half_heads(backend.serve, tls, path.clone(), Arc::clone(&heads));
    let half_heads = AbortOnDropHandle::new(tokio::spawn(half_heads));
    eventually("half a head has come in on more connections than there may be", async || {
        heads.load(Ordering::Relaxed) > CROWD / 2
    })
    .await;
    assert!(is_alive(backend.admin).await);
    limit.check(&product, "heads of requests that are sent halfway")?;

    let mut config = Config::new(format!("https://{}", backend.serve).parse()?);
    config.accept_invalid_certs = true;
    config.proxy_url = None;
    let caller = Client::try_from(config)?;
    let values = ["0,", "{},", r#""","#, "[[[[[]]]]],"].map(Filler::Values);
    for filler in values.into_iter().chain([Filler::Keys(260_000), Filler::Keys(usize::MAX)]) {
        send_bodies(&caller, &path, filler).await?;
        assert!(is_alive(backend.admin).await, "{filler:?}");
        limit.check(&product, &format!("{filler:?}"))?;
    }
    // Heads are still being sent: it judges beside them.
    a_good_review_passes(&sandbox, "beside", "169.254.9.3").await?;
    let (compiled, sent) = tokio::join!(
        compile(&sandbox, folder.path()),
        send_bodies(&caller, &path, Filler::Values("0,"))
    );
    compiled.and(sent)?;
    assert!(is_alive(backend.admin).await);
    limit.check(&product, "a compilation beside the bodies")?;
    drop(half_heads);
    a_good_review_passes(&sandbox, "good", "169.254.9.1").await?;
    drop((crowd, product));
    Ok(())
}

/// Objects of a kind that is looked up, and what each has of the values that are most in memory for their text: read
/// whole, each of them takes more than the limit.
const STORED: usize = 6;
const VALUES: usize = 200_000;
const WITH_STORED_MIB: u64 = 160;
const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";

/// A StatefulSet of two megabytes as JSON, nearly all of it maps of one member.
fn stateful_set(number: usize, labels: &serde_json::Value) -> String {
    let object = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": format!("large-{number}"), "labels": labels},
        "spec": {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "a", "image": "a", "env": "ENV"}]}}}});
    let values = vec![r#"{"name":"a"}"#; VALUES].join(",");
    object.to_string().replace(r#""ENV""#, &format!("[{values}]"))
}

async fn store(client: &Client, method: &str, labels: &serde_json::Value) -> Outcome {
    for number in 0..STORED {
        let mut path = STATEFUL_SETS.to_owned();
        if method == "PUT" {
            path += &format!("/large-{number}");
        }
        send_json(client, method, &path, stateful_set(number, labels)).await?;
    }
    Ok(())
}

async fn send_json(client: &Client, method: &str, path: &str, text: String) -> Outcome {
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    client.request_text(request.body(text.into_bytes())?).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tenant_has_stored_stays_within_the_pods_memory() -> Outcome {
    let folder = tempfile::tempdir()?;
    let limit = Limit::new(WITH_STORED_MIB);
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    let client = sandbox.client()?;
    store(&client, "POST", &json!({"app": "a"})).await?;
    let product = limit.installation(folder.path())?.install(&sandbox).await?;
    limit.check(&product, "a start with large objects stored")?;
    for round in 0..2 {
        store(&client, "PUT", &json!({"app": "a", "round": round.to_string()})).await?;
    }
    a_good_review_passes(&sandbox, "good", "169.254.9.1").await?;
    limit.check(&product, "changes of all of them")?;
    Ok(())
}

/// Each would be ten megabytes in memory: the policies that look Secrets up want their types.
fn secret_with_labels(number: usize) -> serde_json::Value {
    let labels: serde_json::Map<_, _> =
        (0..20_000).map(|label| (format!("l{label}"), json!(""))).collect();
    json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("labels-{number}"), "labels": labels}})
}

/// A policy looks at who owns a StatefulSet.
fn stateful_set_of_a_long_owner(number: usize) -> serde_json::Value {
    let owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x".repeat(1_000_000), "uid": "u"});
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": format!("owned-{number}"), "ownerReferences": [owner]},
        "spec": {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "a", "image": "a"}]}}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_objects_with_large_metadata_stay_within_the_pods_memory() -> Outcome {
    let folder = tempfile::tempdir()?;
    let limit = Limit::new(WITH_STORED_MIB);
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    let client = sandbox.client()?;
    for number in 0..60 {
        let secret = secret_with_labels(number).to_string();
        send_json(&client, "POST", "/api/v1/namespaces/default/secrets", secret).await?;
    }
    for number in 0..60 {
        let object = stateful_set_of_a_long_owner(number).to_string();
        send_json(&client, "POST", STATEFUL_SETS, object).await?;
    }
    let product = limit.installation(folder.path())?.install(&sandbox).await?;
    limit.check(&product, "a start with these stored")?;
    for number in 60..140 {
        let object = stateful_set_of_a_long_owner(number).to_string();
        send_json(&client, "POST", STATEFUL_SETS, object).await?;
    }
    a_good_review_passes(&sandbox, "good", "169.254.9.1").await?;
    limit.check(&product, "more of them")?;
    Ok(())
}
