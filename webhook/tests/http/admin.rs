//! `/live`, `/ready`, `/metrics`.

use opensdn_policy_host::{Mode, Operation, Step};
use opensdn_runtime::metrics::encode;
use opensdn_runtime::shutdown::{self, Phase};
use opensdn_runtime::{admin, readiness::Readiness};
use opensdn_webhook::metrics::{Loaded, Metrics, Verdict};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::stage::metric;

pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn is_ready_when_every_condition_holds_and_not_while_stopping() {
    let (readiness, metrics) = (Readiness::default(), Metrics::new());
    let policies = readiness.add_check("policies", "3 of 6 are compiled");
    let caches = readiness.add_check("lookups", "Secrets are being listed");
    let (shutdown, drain) = shutdown::channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, metrics.registry(), readiness.clone(), drain));

    assert!(get(address, "/live").await.starts_with("HTTP/1.1 200"));
    let answer = get(address, "/ready").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(
        answer.ends_with(
            "not ready\nlookups: Secrets are being listed\npolicies: 3 of 6 are compiled\n"
        ),
        "{answer}"
    );
    policies.pass();
    drop(caches);
    assert!(get(address, "/ready").await.starts_with("HTTP/1.1 503"), "a dead part is not ready");
    readiness.add_check("lookups", "listed again").pass();
    assert!(get(address, "/ready").await.starts_with("HTTP/1.1 200"));
    shutdown.announce(Phase::Draining);
    let answer = get(address, "/ready").await;
    assert!(answer.contains("shutdown: the process is stopping"), "{answer}");
    assert!(get(address, "/live").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn metrics_are_in_openmetrics_text() {
    let metrics = Metrics::new();
    let (_shutdown, drain) = shutdown::channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, metrics.registry(), Readiness::default(), drain));
    metrics.server().review_took(Step::Validate, Duration::from_micros(60));
    metrics.certificate().expiry.set(1_900_000_000.0);
    metrics.policy_loaded("even-quorum", Loaded::Current);
    metrics.lookup_cache_synced("Secret").set(1);
    metrics.claim_conflicts("link-local").inc();

    let answer = get(address, "/metrics").await;
    assert!(answer.contains("content-type: application/openmetrics-text"), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    for (name, value) in [
        ("opensdn_webhook_certificate_expiry_timestamp_seconds", 1.9e9),
        (r#"opensdn_webhook_policy_loaded{policy="even-quorum"}"#, 1.0),
        (r#"opensdn_webhook_lookup_cache_synced{kind="Secret"}"#, 1.0),
        (r#"opensdn_webhook_claim_conflicts_total{scope="link-local"}"#, 1.0),
    ] {
        assert_eq!(metric(&answer, name), value, "{name}");
    }
}

#[test]
fn an_evaluation_of_60_microseconds_is_seen_as_one() {
    let metrics = Metrics::new();
    let policy = metrics.policy("even-quorum", Mode::Enforce);
    policy.evaluated(Verdict::Denied, Duration::from_micros(60));
    policy.evaluated(Verdict::Failed, Duration::from_micros(60));
    policy.failed("deadline");
    let text = encode(&metrics.registry()).unwrap();
    let bucket = |le: &str| {
        let labels = format!(r#"{{le="{le}",policy="even-quorum"}}"#);
        metric(&text, &format!("opensdn_webhook_policy_evaluation_duration_seconds_bucket{labels}"))
    };
    assert_eq!((bucket("0.00005"), bucket("0.0001")), (0.0, 2.0));
    let labels = r#"{policy="even-quorum",mode="enforce",verdict="denied"}"#;
    assert_eq!(metric(&text, &format!("opensdn_webhook_policy_evaluations_total{labels}")), 1.0);
    let labels = r#"{policy="even-quorum",category="deadline"}"#;
    assert_eq!(metric(&text, &format!("opensdn_webhook_evaluation_failures_total{labels}")), 1.0);
}

#[test]
fn kinds_that_no_policy_is_about_share_one_series() {
    let metrics = Metrics::new();
    metrics.know_kinds(["tf.tungsten.io/Manager"]);
    metrics.kind("tf.tungsten.io/Manager").reviewed(
        Step::Validate,
        Operation::Create,
        Verdict::Allowed,
    );
    for n in 0..1000 {
        let kind = format!("invented-{n}.example/Thing");
        metrics.kind(&kind).reviewed(Step::Validate, Operation::Update, Verdict::Denied);
    }
    let text = encode(&metrics.registry()).unwrap();
    let series: Vec<_> =
        text.lines().filter(|l| l.starts_with("opensdn_webhook_reviews_total{")).collect();
    assert_eq!(series.len(), 2, "{series:#?}");
    let labels = r#"{step="validate",kind="other",operation="update",verdict="denied"}"#;
    assert_eq!(metric(&text, &format!("opensdn_webhook_reviews_total{labels}")), 1000.0);
}

/// A kubelet's probe, which has one second.
async fn probe(address: SocketAddr) {
    let answer = tokio::time::timeout(Duration::from_secs(10), get(address, "/live")).await;
    assert!(answer.unwrap().starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn strangers_hold_few_connections_of_the_admin_port_and_do_not_keep_the_kubelet_out() {
    let (_shutdown, drain) = shutdown::channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, Metrics::new().registry(), Readiness::default(), drain));
    // Some send nothing, some half a head; all stay.
    let mut crowd = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /live HTTP/1.1\r\nx: ").await.unwrap();
        }
        crowd.push(stream);
        if number % 100 == 99 {
            probe(address).await;
        }
    }
    // Those that had to go see it; at most 64 are still held.
    let mut open = 0;
    for stream in &mut crowd {
        let ended = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut [0; 1])).await;
        open += usize::from(ended.is_err());
    }
    assert!(open <= 64, "{open} connections are held");
    probe(address).await;
}

#[tokio::test]
async fn a_head_that_has_no_end_is_cut_off_at_8_kib() {
    let (_shutdown, drain) = shutdown::channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, Metrics::new().registry(), Readiness::default(), drain));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = [b"GET /live HTTP/1.1\r\nx: ".as_slice(), &[b'x'; 64 << 10]].concat();
    // The server may have gone before all is sent.
    let _ = stream.write_all(&head).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    probe(address).await;
}
