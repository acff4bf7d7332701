//! What a replica does about its own certificates: it takes the CAs from the Secret, serves a
//! certificate of the current one, says which bundle callers need, and, if it is the one that acts
//! for all, brings rotations forward. The rules are in `rotation`.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watch_object};
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::ReadinessCheck;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::rotation::{Authorities, Published, Stored, advance};
use super::secret::{CaSecret, Error, Found, Written, parse};
use super::{Leaf, Names};
use crate::tls::{Identity, Tls};

/// How often the clock is looked at.
const TICK: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

/// The `caBundle` that callers need, as it changes; none where the certificate is not ours.
pub type Bundle = watch::Receiver<Option<Arc<str>>>;

/// Keeps a replica's certificate.
pub struct Keeper {
    secret: CaSecret,
    names: Names,
    authorities: Authorities,
    leaf: Leaf,
    bundle: watch::Sender<Option<Arc<str>>>,
}

impl Keeper {
    /// Gets or makes the CA and a first certificate, trying until it succeeds; `waiting` says why
    /// it has not.
    pub async fn start(secret: CaSecret, names: Names, waiting: &ReadinessCheck) -> Self {
        loop {
            let error = match secret.obtain().await {
                Ok(authorities) => {
                    match authorities.current.issue(&names, OffsetDateTime::now_utc()) {
                        Ok(leaf) => return Self::new(secret, names, authorities, leaf),
                        Err(error) => Error::Make(error),
                    }
                }
                Err(error) => error,
            };
            let error = error_chain(&error);
            tracing::error!(error, "no certificate yet, trying again");
            waiting.fail(format!("no certificate yet: {error}"));
            sleep(RETRY).await;
        }
    }

    fn new(secret: CaSecret, names: Names, authorities: Authorities, leaf: Leaf) -> Self {
        let (bundle, _) = watch::channel(Some(authorities.bundle().into()));
        Self { secret, names, authorities, leaf, bundle }
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

    /// Goes on for ever. `published` is what all webhook configurations have carried, and since
    /// when; without it a rotation waits.
    pub async fn run(
        mut self,
        tls: Tls,
        leadership: Leadership,
        mut published: watch::Receiver<Option<Published>>,
    ) {
        let changes = watch_object(self.secret.api.clone(), &self.secret.name);
        let mut changes = std::pin::pin!(changes.default_backoff());
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                change = changes.next() => self.take(change, &tls),
                _ = tick.tick() => {}
                Ok(()) = published.changed() => {}
            }
            self.renew(&tls, OffsetDateTime::now_utc());
            if leadership.is_held() {
                let published = published.borrow_and_update().clone();
                if let Err(error) = self.lead(published.as_ref(), &tls).await {
                    tracing::warn!(
                        error = error_chain(&error),
                        "the CA's Secret was not looked after"
                    );
                }
            }
        }
    }

    /// Takes what the Secret holds now.
    fn take(&mut self, change: Option<Change>, tls: &Tls) {
        let secret = match change {
            Some(Ok(Some(secret))) => secret,
            Some(Ok(None)) => {
                let secret = &self.secret.name;
                return tracing::error!(secret, "the CA's Secret is gone; it will be restored");
            }
            Some(Err(error)) => {
                return tracing::warn!(
                    error = error_chain(&error),
                    "watching the CA's Secret failed"
                );
            }
            None => return,
        };
        match parse(&secret) {
            Stored::Whole { authorities, .. } => self.adopt(authorities, tls),
            Stored::Damaged { .. } | Stored::Nothing => tracing::error!(
                secret = self.secret.name,
                "the CA's Secret holds no usable CA; it will be restored"
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

    /// A new certificate. If that fails the one before is served on, and it is tried again at the
    /// next tick.
    fn reissue(&mut self, tls: &Tls, now: OffsetDateTime) {
        let issued = self.authorities.current.issue(&self.names, now);
        let installed = issued.and_then(|leaf| {
            tls.install(leaf.identity.clone()).map_err(super::Error::Identity)?;
            Ok(leaf)
        });
        match installed {
            Ok(leaf) => self.leaf = leaf,
            Err(error) => {
                self.leaf.renew_at = now;
                tls.refused(&error);
            }
        }
    }

    /// Brings the Secret forward, or back to what this replica knows if somebody damaged it.
    async fn lead(&mut self, published: Option<&Published>, tls: &Tls) -> Result<(), Error> {
        let now = OffsetDateTime::now_utc();
        let found = self.secret.read().await?;
        let next = match &found.stored {
            // A new CA would not be trusted until its bundle is in place; the known one is.
            Stored::Nothing | Stored::Damaged { .. } => Some(self.authorities.clone()),
            whole => advance(whole, published, now).map_err(Error::Make)?,
        };
        let Some(next) = next else { return Ok(()) };
        self.store(&found, next, now, tls).await
    }

    async fn store(
        &mut self,
        found: &Found,
        next: Authorities,
        now: OffsetDateTime,
        tls: &Tls,
    ) -> Result<(), Error> {
        // Where it was lost, the watch brings what the other has written.
        if self.secret.write(found, &next, now).await? == Written::Stored {
            tracing::info!(
                announced = next.next.is_some(),
                previous_trusted = next.previous.is_some(),
                "the CA's Secret was brought forward"
            );
            self.adopt(next, tls);
        }
        Ok(())
    }
}

type Change = watcher::Result<Option<k8s_openapi::api::core::v1::Secret>>;
