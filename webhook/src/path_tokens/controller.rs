//! A replica's path tokens: taken from the Secret that all replicas share, and, on the leader, replaced
//! when it is time. Every write carries the resourceVersion that was read, so of two replicas that write
//! at once one loses and takes what the other wrote.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Client, Resource as _};
use opensdn_deploy::names::webhook::NAME;
use opensdn_runtime::apply::{Context, WriteOutcome, read, write_as_read};
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::ReadinessCheck;
use opensdn_runtime::watch::{Event, WatchSpec, watch as start_watch};
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::secret::{ROTATE, Stored};
use super::{PathToken, PathTokens, TokenError};

/// How often their age is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// How often a quiet watch has to be answered.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// Why the Secret was not read or written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("make a path token")]
    Make(#[from] TokenError),
}

/// Keeps a replica's tokens those of the Secret, and on the leader replaces them.
pub struct PathTokenController {
    client: Client,
    secret: SharedSecret,
    period: Duration,
    stored: Stored,
    tokens: PathTokens,
}

impl PathTokenController {
    /// Gets or makes the tokens, trying until it succeeds; `waiting` says why it has not.
    pub async fn start(
        client: Client,
        namespace: &str,
        name: &str,
        period: Duration,
        waiting: &ReadinessCheck,
    ) -> Self {
        let secret = SharedSecret::new(client.clone(), namespace, name);
        loop {
            match secret.obtain().await {
                Ok(stored) => {
                    waiting.pass();
                    let tokens = PathTokens::new(stored.current.clone(), stored.others());
                    return Self { client, secret, period, stored, tokens };
                }
                Err(error) => {
                    let error = error_chain(&error);
                    tracing::error!(error, "failed to obtain the path tokens; will retry");
                    waiting.fail(format!("no path tokens yet: {error}"));
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// What is accepted, now and later.
    #[must_use]
    pub fn tokens(&self) -> PathTokens {
        self.tokens.clone()
    }

    /// Runs until dropped. `published` is what all webhook configurations carry; while that is not the
    /// current token, none is replaced.
    pub async fn run(
        mut self,
        leadership: Leadership,
        mut published: watch::Receiver<Option<PathToken>>,
    ) {
        let spec = watch_spec(&self.secret.namespace, &self.secret.name);
        let mut events = start_watch(self.client.clone(), spec);
        let mut tick = interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(event) = events.recv() => self.observe(event),
                _ = tick.tick() => {}
                Ok(()) = published.changed() => {}
            }
            if !leadership.is_held() {
                continue;
            }
            let published = published.borrow_and_update().clone();
            if let Err(error) = self.reconcile(published.as_ref()).await {
                let error = error_chain(&error);
                tracing::warn!(error, "failed to reconcile the Secret of the path tokens");
            }
        }
    }

    fn observe(&mut self, event: Event) {
        if let Event::InitApply(object) | Event::Apply(object) = event
            && let Some(stored) =
                serde_json::from_value(object).ok().as_ref().and_then(Stored::read)
        {
            self.adopt(stored);
        }
    }

    /// Takes what the Secret has. What API servers use now is accepted further, also where it is not
    /// in the Secret any more: a user has recreated it, or restored an old one.
    fn adopt(&mut self, stored: Stored) {
        if stored == self.stored {
            return;
        }
        let others = stored.others().chain([self.stored.current.clone()]);
        self.tokens.replace(stored.current.clone(), others);
        self.stored = stored;
    }

    /// Replaces the tokens when it is time, and restores those that this replica knows where the Secret
    /// was deleted or damaged.
    async fn reconcile(&mut self, published: Option<&PathToken>) -> Result<(), Error> {
        let found = self.secret.find().await?;
        let name = &self.secret.name;
        let Some(stored) = found.as_ref().and_then(Stored::read) else {
            tracing::error!(secret = name, "lost the path tokens; restoring their Secret");
            self.secret.write(found, &self.stored).await?;
            return Ok(());
        };
        let requested = found.as_ref().is_some_and(is_requested);
        let period = time::Duration::try_from(self.period).unwrap_or(time::Duration::MAX);
        let now = OffsetDateTime::now_utc();
        let next = stored.advance(published, requested, period, now)?;
        self.adopt(stored);
        if let Some(next) = next
            && self.secret.write(found, &next).await? == WriteOutcome::Stored
        {
            tracing::info!(secret = self.secret.name, "replaced the path tokens");
            self.adopt(next);
        }
        Ok(())
    }
}

pub(super) fn watch_spec(namespace: &str, name: &str) -> WatchSpec {
    WatchSpec {
        path: Secret::url_path(&(), Some(namespace)),
        name: Some(name.to_owned()),
        label_selector: String::new(),
        metadata_only: false,
        heartbeat: HEARTBEAT,
    }
}

fn is_requested(secret: &Secret) -> bool {
    secret.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(ROTATE))
}

/// The Secret that all replicas share.
struct SharedSecret {
    ctx: Context,
    namespace: String,
    name: String,
}

impl SharedSecret {
    fn new(client: Client, namespace: &str, name: &str) -> Self {
        let ctx = Context::new(client, NAME).timeout(CALL_TIMEOUT);
        Self { ctx, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Its tokens; made if there are none. However many replicas do this at once, all get the same.
    async fn obtain(&self) -> Result<Stored, Error> {
        loop {
            let found = self.find().await?;
            if let Some(stored) = found.as_ref().and_then(Stored::read) {
                return Ok(stored);
            }
            let made = Stored::first(OffsetDateTime::now_utc())?;
            if self.write(found, &made).await? == WriteOutcome::Stored {
                return Ok(made);
            }
        }
    }

    async fn find(&self) -> Result<Option<Secret>, CallError> {
        read(&self.ctx, Some(&self.namespace), &self.name).await
    }

    /// Stores these tokens, if the Secret is still the one that was found.
    async fn write(
        &self,
        found: Option<Secret>,
        stored: &Stored,
    ) -> Result<WriteOutcome, CallError> {
        let mut secret = found.unwrap_or_default();
        secret.metadata.namespace = Some(self.namespace.clone());
        secret.metadata.name = Some(self.name.clone());
        if let Some(annotations) = &mut secret.metadata.annotations {
            annotations.remove(ROTATE);
        }
        secret.data = Some(stored.data());
        write_as_read(&self.ctx, &secret).await
    }
}
