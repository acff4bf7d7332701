//! The webhook's own CA in a Secret of a real API server: replicas that start together, rotation,
//! damage. The rules of a rotation are tested in `lib/pki`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it must be"
)]

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use opensdn_pki::{ROTATE, SecretState, parse};
use opensdn_runtime::leader::{Election, Leadership};
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::{self, Shutdown};
use opensdn_testing::eventually::TIMEOUT;
use opensdn_testing::shared::Shared;
use opensdn_webhook::certificates::{Bundle, CertificateController, ca_secret, leaf_profile};
use opensdn_webhook::metrics::Metrics;
use opensdn_webhook::tls::{Settings, Tls};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

const NAME: &str = "opensdn-webhook-ca";

async fn namespace(client: &Client, name: &str) -> Api<Secret> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    let api: Api<Namespace> = Api::all(client.clone());
    api.create(&PostParams::default(), &namespace).await.unwrap();
    Api::namespaced(client.clone(), name)
}

#[tokio::test]
async fn replicas_that_start_together_make_one_ca() {
    let sandbox = Shared::with_crds().await.unwrap();
    let client = sandbox.client().unwrap();
    let secrets = namespace(&client, "one-ca").await;
    let replicas = (0..20).map(|_| {
        let secret = ca_secret(sandbox.client().unwrap(), "one-ca", NAME);
        async move { secret.obtain().await }
    });
    let all = try_join_all(replicas).await.unwrap();
    let SecretState::Complete { authorities, .. } = parse(&secrets.get(NAME).await.unwrap()) else {
        panic!("no usable CA is stored");
    };
    assert!(all.iter().all(|one| *one == authorities));

    // The same where the Secret is there but cannot be used.
    let empty = json!({"data": {"ca.key": null}});
    secrets.patch(NAME, &PatchParams::default(), &Patch::Merge(empty)).await.unwrap();
    let replicas = (0..20).map(|_| {
        let secret = ca_secret(sandbox.client().unwrap(), "one-ca", NAME);
        async move { secret.obtain().await }
    });
    let again = try_join_all(replicas).await.unwrap();
    assert!(again.iter().all(|one| *one == again[0]));
    assert_ne!(again[0].current, authorities.current);
    assert_eq!(again[0].previous.as_deref(), Some(authorities.current.certificate()));
}

/// A replica as far as certificates go.
struct Replica {
    bundle: Bundle,
    _shutdown: Shutdown,
}

async fn replica(client: Client, namespace: &str, name: &str) -> Replica {
    let (shutdown, drain) = shutdown::channel();
    let profile = leaf_profile("opensdn-webhook", namespace, &[]);
    let condition = Readiness::default().add_check("certificate", "none yet");
    let secret = ca_secret(client.clone(), namespace, NAME);
    let controller = CertificateController::start(secret, profile, &condition).await;
    let (bundle, counts) = (controller.bundle(), Metrics::new().certificate());
    let identity = controller.identity();
    let tls = Tls::new(Settings::default(), identity, None, counts, condition).unwrap();
    let leadership = Leadership::start(client, Election::new(namespace, "leader", name), drain);
    let (sender, published) = watch::channel(None);
    tokio::spawn(async move {
        controller.run(tls, leadership, published).await;
        drop(sender);
    });
    Replica { bundle, _shutdown: shutdown }
}

impl Replica {
    /// Waits until the bundle holds so many CAs.
    async fn trusts(&mut self, cas: usize) -> String {
        let count = |bundle: &str| bundle.matches("BEGIN CERTIFICATE").count();
        let wait = self.bundle.wait_for(|bundle| count(bundle.as_deref().unwrap()) == cas);
        let bundle = timeout(TIMEOUT, wait).await.expect("in time").unwrap();
        bundle.as_deref().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_rotation_that_is_asked_for_is_announced_by_every_replica() {
    let sandbox = Shared::with_crds().await.unwrap();
    let client = sandbox.client().unwrap();
    let secrets = namespace(&client, "rotation").await;
    let mut one = replica(client.clone(), "rotation", "one").await;
    let mut two = replica(client.clone(), "rotation", "two").await;
    let before = one.trusts(1).await;
    assert_eq!(two.trusts(1).await, before);

    let ask = json!({"metadata": {"annotations": {ROTATE: "the key was seen"}}});
    secrets.patch(NAME, &PatchParams::default(), &Patch::Merge(ask)).await.unwrap();
    let after = one.trusts(2).await;
    assert_eq!(two.trusts(2).await, after);
    assert!(after.starts_with(&before), "the old one is trusted further");
    let secret = secrets.get(NAME).await.unwrap();
    assert!(!secret.metadata.annotations.unwrap_or_default().contains_key(ROTATE));
    let data = secret.data.unwrap();
    assert_eq!(data["ca-bundle.crt"].0, after.as_bytes());
    assert!(data.contains_key("next.key"));
}

#[tokio::test]
async fn a_secret_that_is_deleted_or_damaged_is_restored_with_the_same_ca() {
    let sandbox = Shared::with_crds().await.unwrap();
    let client = sandbox.client().unwrap();
    let secrets = namespace(&client, "restored").await;
    let mut replica = replica(client.clone(), "restored", "one").await;
    let bundle = replica.trusts(1).await;
    let restored = async {
        loop {
            let secret = secrets.get_opt(NAME).await.unwrap();
            let stored = secret.map(|secret| parse(&secret));
            if let Some(SecretState::Complete { authorities, .. }) = stored {
                return authorities.bundle();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    secrets.delete(NAME, &DeleteParams::default()).await.unwrap();
    assert_eq!(timeout(TIMEOUT, restored).await.unwrap(), bundle);

    let mut secret = secrets.get(NAME).await.unwrap();
    let nonsense = ByteString(b"nonsense".to_vec());
    secret.data = Some([("ca.key".to_owned(), nonsense)].into());
    secrets.replace(NAME, &PostParams::default(), &secret).await.unwrap();
    let restored = async {
        loop {
            if let SecretState::Complete { authorities, .. } =
                parse(&secrets.get(NAME).await.unwrap())
            {
                return authorities.bundle();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert_eq!(timeout(TIMEOUT, restored).await.unwrap(), bundle);
    assert_eq!(replica.trusts(1).await, bundle);
}
