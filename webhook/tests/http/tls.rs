//! Who can connect, with what, and how certificates change under load.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use opensdn_webhook::server::Limits;
use opensdn_webhook::tls::files::{Files, watch_client_ca};
use opensdn_webhook::tls::{MinVersion, Settings};
use rustls::RootCertStore;
use rustls::version::{TLS12, TLS13};

use crate::stage::{Ca, Connection, NAME, Pair, Stage, VALIDATE, client, client_with, until};

/// What the kubelet does with a mounted Secret: a new folder, and one rename of a symbolic link.
struct SecretVolume {
    folder: tempfile::TempDir,
    generation: AtomicUsize,
}

impl SecretVolume {
    fn new(chain: &str, key: &str) -> Self {
        let volume = Self { folder: tempfile::tempdir().unwrap(), generation: AtomicUsize::new(0) };
        volume.write(chain, key);
        for file in ["tls.crt", "tls.key"] {
            let target = Path::new("..data").join(file);
            std::os::unix::fs::symlink(target, volume.folder.path().join(file)).unwrap();
        }
        volume
    }

    fn write(&self, chain: &str, key: &str) {
        let generation = self.generation.fetch_add(1, Ordering::SeqCst);
        let root = self.folder.path();
        let old = std::fs::read_link(root.join("..data")).ok();
        let new = format!("..generation_{generation}");
        std::fs::create_dir(root.join(&new)).unwrap();
        std::fs::write(root.join(&new).join("tls.crt"), chain).unwrap();
        std::fs::write(root.join(&new).join("tls.key"), key).unwrap();
        std::os::unix::fs::symlink(&new, root.join("..data_tmp")).unwrap();
        std::fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        if let Some(old) = old {
            std::fs::remove_dir_all(root.join(old)).unwrap();
        }
    }

    fn files(&self) -> Files {
        let path = |name| self.folder.path().join(name);
        Files { chain: path("tls.crt"), key: path("tls.key") }
    }
}

/// A server whose identity comes from a volume that is looked at every millisecond.
async fn from_volume() -> (Stage, SecretVolume) {
    let ca = Ca::new("server CA");
    let pair = ca.sign(NAME);
    let volume = SecretVolume::new(&pair.chain, &pair.key);
    let stage = Stage::serving(Limits::default(), Settings::default(), None, ca, &pair).await;
    let seen = volume.files().read().await.unwrap().digest();
    tokio::spawn(volume.files().watch(stage.tls.clone(), seen, Duration::from_millis(1)));
    (stage, volume)
}

async fn serves(stage: &Stage, pair: &Pair) {
    let wait = async {
        while stage.connect().await.serial() != pair.serial {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("never served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_rotations_under_load_fail_no_request() {
    let (stage, volume) = from_volume().await;
    let stop = Arc::new(AtomicBool::new(false));
    let loads: Vec<_> = (0..4)
        .map(|n| {
            let (stop, address, config) = (stop.clone(), stage.address, client(&stage.ca, None));
            tokio::spawn(async move {
                let (mut served, mut connection) = (0, None);
                while !stop.load(Ordering::SeqCst) {
                    let mut open = match connection.take() {
                        Some(open) => open,
                        None => Connection::open(address, config.clone()).await.unwrap(),
                    };
                    let answer = open.review(VALIDATE, b"{}").await.unwrap();
                    assert_eq!(answer.status, 200);
                    served += 1;
                    // Half of the callers keep their connection, half open one for each call.
                    connection = (n % 2 == 0).then_some(open);
                }
                served
            })
        })
        .collect();
    for rotation in 0..1_000_u32 {
        let pair = stage.ca.sign(NAME);
        volume.write(&pair.chain, &pair.key);
        until_reloaded(&stage, rotation).await;
        if rotation % 100 == 0 {
            serves(&stage, &pair).await;
        }
    }
    stop.store(true, Ordering::SeqCst);
    for load in loads {
        assert!(load.await.unwrap() > 100);
    }
    assert_eq!(stage.metric("opensdn_webhook_certificate_reload_failures_total"), 0.0);
}

async fn until_reloaded(stage: &Stage, rotation: u32) {
    let reloads = stage.metrics.certificate().reloads;
    until(|| reloads.get() > rotation.into()).await;
}

#[tokio::test]
async fn a_broken_new_certificate_keeps_the_one_before_and_is_counted() {
    let (stage, volume) = from_volume().await;
    let before = stage.connect().await.serial();
    let (one, other) = (stage.ca.sign(NAME), stage.ca.sign(NAME));
    let yesterday = time::OffsetDateTime::now_utc() - time::Duration::days(1);
    let expired = stage.ca.sign_until(NAME, yesterday);
    let failures = stage.metrics.certificate().reload_failures;
    for (n, (chain, key)) in [
        (one.chain.as_str(), other.key.as_str()),
        ("", ""),
        ("not PEM", &one.key),
        (&one.chain, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
        (&expired.chain, &expired.key),
    ]
    .into_iter()
    .enumerate()
    {
        volume.write(chain, key);
        until(|| failures.get() > n as u64).await;
        assert_eq!(stage.connect().await.serial(), before);
    }
    std::fs::remove_file(volume.folder.path().join("tls.key")).unwrap();
    until(|| failures.get() > 5).await;
    std::os::unix::fs::symlink("..data/tls.key", volume.folder.path().join("tls.key")).unwrap();
    volume.write(&one.chain, &one.key);
    serves(&stage, &one).await;
    assert_eq!(failures.get(), 6);
    assert!(stage.readiness.missing().is_empty());
}

#[tokio::test]
async fn an_expired_certificate_is_served_but_the_process_is_not_ready() {
    let ca = Ca::new("server CA");
    let yesterday = time::OffsetDateTime::now_utc() - time::Duration::days(1);
    let pair = ca.sign_until(NAME, yesterday);
    let stage = Stage::serving(Limits::default(), Settings::default(), None, ca, &pair).await;
    let missing = stage.readiness.missing();
    assert!(missing[0].1.contains("the serving certificate expired at"), "{missing:?}");
    let expiry = stage.metric("opensdn_webhook_certificate_expiry_timestamp_seconds");
    assert_eq!(expiry, yesterday.unix_timestamp() as f64);
}

#[tokio::test]
async fn a_chain_is_served_whole() {
    let root = Ca::new("root");
    let intermediate = root.intermediate("intermediate");
    let mut pair = intermediate.sign(NAME);
    pair.chain.push_str(&intermediate.pem);
    let stage = Stage::serving(Limits::default(), Settings::default(), None, root, &pair).await;
    let mut connection = stage.connect().await;
    assert_eq!(connection.review(VALIDATE, b"{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn tls_1_2_is_refused_unless_it_is_allowed() {
    let roots = |ca: &Ca| {
        let mut roots = RootCertStore::empty();
        roots.add(ca.der.clone()).unwrap();
        roots
    };
    for (min_version, version, accepted) in [
        (MinVersion::Tls13, &TLS12, false),
        (MinVersion::Tls13, &TLS13, true),
        (MinVersion::Tls12, &TLS12, true),
        (MinVersion::Tls12, &TLS13, true),
    ] {
        let settings = Settings { min_version, ..Settings::default() };
        let stage = Stage::with(Limits::default(), settings, None).await;
        let config = client_with(roots(&stage.ca), None, &[version]);
        let connection = Connection::open(stage.address, config).await;
        assert_eq!(connection.is_ok(), accepted, "{min_version:?} {version:?}");
    }
}

#[tokio::test]
async fn a_caller_needs_the_right_ca_and_the_right_name() {
    let (right, wrong) = (Ca::new("client CA"), Ca::new("another CA"));
    let settings = Settings { client_names: vec!["kube-apiserver".into()], ..Settings::default() };
    let stage = Stage::with(Limits::default(), settings, Some(&right)).await;
    for (certificate, accepted) in [
        (Some(right.sign("kube-apiserver")), true),
        (Some(right.sign("somebody-else")), false),
        (Some(right.sign("kube-apiserver.example.org")), false),
        (Some(wrong.sign("kube-apiserver")), false),
        (None, false),
    ] {
        let config = client(&stage.ca, certificate.as_ref());
        // With TLS 1.3 the client learns of the refusal when it first reads.
        let answer =
            async { Connection::open(stage.address, config).await?.review(VALIDATE, b"{}").await };
        assert_eq!(answer.await.is_ok(), accepted);
    }
}

#[tokio::test]
async fn a_new_client_ca_counts_from_the_next_connection_on_and_a_broken_one_changes_nothing() {
    let (old, new) = (Ca::new("client CA"), Ca::new("next client CA"));
    let stage = Stage::with(Limits::default(), Settings::default(), Some(&old)).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    std::fs::write(&path, &old.pem).unwrap();
    let every = Duration::from_millis(1);
    tokio::spawn(watch_client_ca(path.clone(), stage.tls.clone(), old.pem.clone().into(), every));
    let accepted = async |ca: &Ca| {
        let config = client(&stage.ca, Some(&ca.sign("anybody")));
        let answer =
            async { Connection::open(stage.address, config).await?.review(VALIDATE, b"{}").await };
        answer.await.is_ok()
    };
    assert!(accepted(&old).await && !accepted(&new).await);
    // In one step: a file that is just being written is broken, too.
    let replace = |content: &str| {
        let beside = folder.path().join("beside");
        std::fs::write(&beside, content).unwrap();
        std::fs::rename(beside, &path).unwrap();
    };
    replace("broken");
    let failures = stage.metrics.certificate().reload_failures;
    until(|| failures.get() == 1).await;
    assert!(accepted(&old).await && !accepted(&new).await);
    replace(&new.pem);
    let wait = async {
        while !accepted(&new).await {
            tokio::time::sleep(every).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.unwrap();
    assert!(!accepted(&old).await);
}
