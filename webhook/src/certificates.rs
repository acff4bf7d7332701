//! A replica's own certificate: its controller takes the CAs from the Secret that all replicas
//! share, serves a certificate of the current one, publishes the bundle that clients need, and, on
//! the leader, advances rotations. The certificate never leaves this process's memory.
//!
//! Deliberately not here: how certificates are made, when the CA changes and how the Secret is
//! written, which is `opensdn-pki`.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Client, Resource as _};
use opensdn_deploy::names::webhook::NAME;
use opensdn_pki::{
    Authorities, AuthorityError, CaProfile, CaSecret, Identity, Leaf, LeafProfile, Published,
    Rotation, SecretError, SecretSpec, SecretState, Snapshot, parse, service_dns_names,
};
use opensdn_runtime::apply::WriteOutcome;
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::ReadinessCheck;
use opensdn_runtime::watch::{SingleObject, WatchSpec, watch as start_watch};
use serde_json::Value;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::tls::{self, Tls};

mod follow;

pub use follow::follow_secret;

/// How often expiry and the phase of a rotation are checked.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// How often a quiet watch has to be answered.
const HEARTBEAT: Duration = Duration::from_secs(60);
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// The `caBundle` that clients need, as it changes; none where the certificate is not ours.
pub type Bundle = watch::Receiver<Option<Arc<str>>>;

/// The Secret in which the replicas of a namespace share their CA.
#[must_use]
pub fn ca_secret(client: Client, namespace: &str, name: &str) -> CaSecret {
    let spec = SecretSpec {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        labels: [].into(),
        field_manager: NAME.to_owned(),
    };
    CaSecret::new(client, spec, Rotation::new(CaProfile::new(format!("{NAME} CA"))))
}

/// A replica's certificate: for the Service, for a webhook that is reached by URL on the same
/// machine, and for `further` DNS names and IP addresses.
#[must_use]
pub fn leaf_profile(service: &str, namespace: &str, further: &[String]) -> LeafProfile {
    let mut names = service_dns_names(service, namespace);
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    names.extend(further.iter().cloned());
    LeafProfile::server(NAME, names)
}

/// Reconciles a replica's certificate, and on the leader the CA Secret.
pub struct CertificateController {
    secret: CaSecret,
    profile: LeafProfile,
    authorities: Authorities,
    leaf: Leaf,
    bundle: watch::Sender<Option<Arc<str>>>,
}

impl CertificateController {
    /// Gets or makes the CA and a first certificate, trying until it succeeds; `waiting` says why
    /// it has not.
    pub async fn start(secret: CaSecret, profile: LeafProfile, waiting: &ReadinessCheck) -> Self {
        loop {
            let error = match secret.obtain().await {
                Ok(authorities) => {
                    match authorities.current.issue(&profile, OffsetDateTime::now_utc()) {
                        Ok(leaf) => return Self::new(secret, profile, authorities, leaf),
                        Err(error) => SecretError::Make(error),
                    }
                }
                Err(error) => error,
            };
            let error = error_chain(&error);
            tracing::error!(error, "failed to obtain a certificate; will retry");
            waiting.fail(format!("no certificate yet: {error}"));
            sleep(RETRY_DELAY).await;
        }
    }

    fn new(secret: CaSecret, profile: LeafProfile, authorities: Authorities, leaf: Leaf) -> Self {
        let (bundle, _) = watch::channel(Some(authorities.bundle().into()));
        Self { secret, profile, authorities, leaf, bundle }
    }

    /// What to serve at first.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.leaf.identity.clone()
    }

    /// What to write into webhook configurations, now and later.
    #[must_use]
    pub fn bundle(&self) -> Bundle {
        self.bundle.subscribe()
    }

    /// Runs until dropped. `published` is what all webhook configurations have carried, and since
    /// when; without it a rotation waits.
    pub async fn run(
        mut self,
        tls: Tls,
        leadership: Leadership,
        mut published: watch::Receiver<Option<Published>>,
    ) {
        let spec = watch_spec(self.secret.namespace(), self.secret.name());
        let mut events = start_watch(self.secret.client(), spec);
        let mut watched = SingleObject::default();
        let mut tick = interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(event) = events.recv() => match watched.read(event) {
                    Some(Some(secret)) => self.take_secret(secret, &tls),
                    Some(None) => {
                        let secret = self.secret.name();
                        tracing::error!(secret, "lost the CA Secret; will restore it");
                    }
                    None => {}
                },
                _ = tick.tick() => {}
                Ok(()) = published.changed() => {}
            }
            self.renew(&tls, OffsetDateTime::now_utc());
            if leadership.is_held() {
                let published = published.borrow_and_update().clone();
                if let Err(error) = self.reconcile(published.as_ref(), &tls).await {
                    tracing::warn!(
                        error = error_chain(&error),
                        "failed to reconcile the CA Secret"
                    );
                }
            }
        }
    }

    /// Takes what the Secret holds now.
    fn take_secret(&mut self, secret: Value, tls: &Tls) {
        let state = serde_json::from_value(secret).map(|secret| parse(&secret));
        match state {
            Ok(SecretState::Complete { authorities, .. }) => self.adopt(authorities, tls),
            Ok(SecretState::Damaged { .. } | SecretState::Missing) | Err(_) => tracing::error!(
                secret = self.secret.name(),
                "failed to read a CA from its Secret; will restore it"
            ),
        }
    }

    fn adopt(&mut self, authorities: Authorities, tls: &Tls) {
        if authorities == self.authorities {
            return;
        }
        let same_signer = authorities.current == self.authorities.current;
        self.authorities = authorities;
        let bundle: Arc<str> = self.authorities.bundle().into();
        self.bundle.send_replace(Some(bundle));
        if !same_signer {
            self.reissue(tls, OffsetDateTime::now_utc());
        }
    }

    fn renew(&mut self, tls: &Tls, now: OffsetDateTime) {
        if now >= self.leaf.renew_at {
            self.reissue(tls, now);
        }
    }

    /// A new certificate. If that fails the previous one is still served, and the next tick tries
    /// again.
    fn reissue(&mut self, tls: &Tls, now: OffsetDateTime) {
        let issued = self.authorities.current.issue(&self.profile, now);
        let installed = issued.map_err(IssueError::Make).and_then(|leaf| {
            tls.install(leaf.identity.clone()).map_err(IssueError::Install)?;
            Ok(leaf)
        });
        match installed {
            Ok(leaf) => self.leaf = leaf,
            Err(error) => {
                self.leaf.renew_at = now;
                tls.rejected(&error);
            }
        }
    }

    /// Advances the rotation in the Secret, or restores what this replica knows if the Secret was
    /// damaged.
    async fn reconcile(
        &mut self,
        published: Option<&Published>,
        tls: &Tls,
    ) -> Result<(), SecretError> {
        let now = OffsetDateTime::now_utc();
        let snapshot = self.secret.read().await?;
        let next = match &snapshot.state {
            // A new CA would not be trusted until its bundle is in place; the known one is.
            SecretState::Missing | SecretState::Damaged { .. } => Some(self.authorities.clone()),
            SecretState::Complete { .. } => self.secret.advance(&snapshot, published, now)?,
        };
        let Some(next) = next else { return Ok(()) };
        self.store(&snapshot, next, now, tls).await
    }

    async fn store(
        &mut self,
        snapshot: &Snapshot,
        next: Authorities,
        now: OffsetDateTime,
        tls: &Tls,
    ) -> Result<(), SecretError> {
        // After a conflict the watch brings what the other replica has written.
        if self.secret.write(snapshot, &next, now).await? == WriteOutcome::Stored {
            tracing::info!(
                announced = next.next.is_some(),
                previous_trusted = next.previous.is_some(),
                "CA rotation advanced"
            );
            self.adopt(next, tls);
        }
        Ok(())
    }
}

fn watch_spec(namespace: &str, name: &str) -> WatchSpec {
    WatchSpec {
        path: Secret::url_path(&(), Some(namespace)),
        name: Some(name.to_owned()),
        label_selector: String::new(),
        metadata_only: false,
        heartbeat: HEARTBEAT,
    }
}

/// Why the next certificate is not served.
#[derive(Debug, thiserror::Error)]
enum IssueError {
    #[error(transparent)]
    Make(AuthorityError),
    #[error("use the certificate that was made")]
    Install(#[source] tls::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_bears_every_name_of_the_service_and_those_of_the_own_machine() {
        let further = ["hook.example.org".to_owned(), "192.0.2.7".to_owned()];
        let expected = [
            "opensdn-webhook.opensdn.svc",
            "opensdn-webhook.opensdn.svc.cluster.local",
            "opensdn-webhook.opensdn",
            "opensdn-webhook",
            "localhost",
            "127.0.0.1",
            "::1",
            "hook.example.org",
            "192.0.2.7",
        ];
        assert_eq!(leaf_profile("opensdn-webhook", "opensdn", &further).names, expected);
    }
}
