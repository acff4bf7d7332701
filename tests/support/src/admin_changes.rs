//! What an administrator changes while the product is in use: policies, the webhook's CA.
//! Deliberately not here: the requests that run meanwhile (`steady_load`).

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use futures::future::try_join3;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use opensdn_crds::admission_policy::AdmissionPolicy;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::{Instant, sleep};

use crate::Failed;
use crate::eventually::eventually_within;
use opensdn_deploy::names::{NAMESPACE, webhook};

/// Asks for a new CA, as docs/src/operations.md says.
const ROTATE: &str = "opensdn.io/rotate-ca";
const PAUSE: Duration = Duration::from_millis(30);
/// As long as the longest fault lasts during which something is changed, and some more.
const TIMEOUT: Duration = Duration::from_secs(240);

/// What the CA's Secret holds, by its keys.
type Entries = BTreeMap<String, ByteString>;

/// The product to change.
pub struct AdminChanges {
    client: Client,
    replicas: usize,
}

impl AdminChanges {
    /// By an administrator's client, of so many replicas.
    #[must_use]
    pub fn new(client: Client, replicas: usize) -> Self {
        Self { client, replicas }
    }

    /// Changes policies back and forth; each change is in force in every replica before the next.
    ///
    /// # Errors
    /// The API server does not take it.
    ///
    /// # Panics
    /// It does not come into force.
    pub async fn swap_policies(&self) -> Result<(), Failed> {
        let elsewhere = json!({"namespaces": ["elsewhere"]});
        for even in [true, false, true] {
            let exemptions = if even { elsewhere.clone() } else { Value::Null };
            let mode = if even { "warn" } else { "enforce" };
            let secrets = if even { "deny" } else { "warn" };
            let swap = |policy, spec| Box::pin(self.swap(policy, spec));
            try_join3(
                swap("unsafe-parameter", json!({"exemptions": exemptions})),
                swap("plaintext", json!({"mode": mode})),
                swap("missing-reference", json!({"settings": {"secrets": secrets}})),
            )
            .await?;
        }
        Ok(())
    }

    /// Changes this policy's spec, and waits until the change is in force in every replica.
    ///
    /// # Errors
    /// The API server does not take it.
    ///
    /// # Panics
    /// It does not come into force.
    pub async fn swap(&self, policy: &str, spec: Value) -> Result<(), Failed> {
        let policies: Api<AdmissionPolicy> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"spec": spec}));
        let changed = until_taken(&format!("change {policy}"), async || {
            Ok(policies.patch(policy, &PatchParams::default(), &patch).await?)
        })
        .await?;
        let generation = changed.metadata.generation;
        until_so(&format!("{policy} is in force in every replica"), async || {
            let status = policies.get(policy).await.ok().and_then(|policy| policy.status);
            let replicas = status.and_then(|status| status.replicas).unwrap_or_default();
            replicas.len() == self.replicas
                && replicas.iter().all(|one| one.ready && one.observed_generation == generation)
        })
        .await;
        Ok(())
    }

    /// A whole rotation, except that its minute and its day of waiting are not waited for: the
    /// test does what the leader would do then. When it returns, only the new CA is trusted.
    /// `expiries` says when the certificates of the replicas that answer expire.
    ///
    /// # Errors
    /// The CA cannot be read or changed.
    ///
    /// # Panics
    /// A replica does not get a certificate of it.
    pub async fn rotate_ca(&self, expiries: impl AsyncFn() -> Vec<String>) -> Result<(), Failed> {
        let mut before = expiries().await;
        let secrets = self.secrets();
        let ask = json!({"metadata": {"annotations": {ROTATE: "the key was seen"}}});
        let asked = async || {
            Ok(secrets
                .patch(webhook::CA_SECRET, &PatchParams::default(), &Patch::Merge(&ask))
                .await?)
        };
        until_taken("ask for a new CA", asked).await?;
        let announced = async || self.is_announced().await.unwrap_or(false);
        until_so("the next CA is in every webhook configuration", announced).await;

        before.extend(expiries().await);
        // Certificates differ by the second in which they expire, and a replica that has
        // just been started got one of the old CA in this very second.
        sleep(Duration::from_secs(1)).await;
        until_taken("use the next CA", async || self.step(use_next).await).await?;
        let reissued = async || {
            let now = expiries().await;
            now.len() == self.replicas && now.iter().all(|now| !before.contains(now))
        };
        let what = format!("every replica has a certificate of the new CA, none of {before:?}");
        until_so(&what, reissued).await;
        until_taken("forget the old CA", async || self.step(forget_previous).await).await?;
        let alone = async || self.trusted().await.is_ok_and(|trusted| trusted == Some(1));
        until_so("only the new CA is in every webhook configuration", alone).await;
        Ok(())
    }

    /// Advances the stored rotation, unless that has been done.
    async fn step(&self, next: fn(&mut Entries) -> bool) -> Result<(), Failed> {
        let mut secret = self.secrets().get(webhook::CA_SECRET).await?;
        let entries = secret.data.get_or_insert_default();
        if !next(entries) {
            return Ok(());
        }
        let now = OffsetDateTime::now_utc().format(&Rfc3339)?;
        entries.insert("since".to_owned(), ByteString(now.into_bytes()));
        // It carries the resourceVersion that was read: a change meanwhile is a conflict.
        self.secrets().replace(webhook::CA_SECRET, &PostParams::default(), &secret).await?;
        Ok(())
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Whether there is a next CA, and every webhook configuration has it. There is none as long
    /// as the one before the present is trusted, a day.
    async fn is_announced(&self) -> Result<bool, Failed> {
        let entries = self.secrets().get(webhook::CA_SECRET).await?.data.unwrap_or_default();
        Ok(entries.contains_key("next.crt") && self.trusted().await? == Some(2))
    }

    /// How many CAs all webhooks of both configurations trust, if it is the same number.
    async fn trusted(&self) -> Result<Option<usize>, kube::Error> {
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let validating = validating.get(webhook::NAME).await?.webhooks.unwrap_or_default();
        let mutating = mutating.get(webhook::NAME).await?.webhooks.unwrap_or_default();
        let validating = validating.into_iter().map(|one| one.client_config);
        let configs = validating.chain(mutating.into_iter().map(|one| one.client_config));
        let counts: Vec<usize> = configs.map(|config| certificates(&config)).collect();
        let same = counts.windows(2).all(|pair| pair.first() == pair.last());
        Ok(counts.first().copied().filter(|_| same))
    }
}

fn use_next(entries: &mut Entries) -> bool {
    let (Some(certificate), Some(key)) = (entries.remove("next.crt"), entries.remove("next.key"))
    else {
        return false;
    };
    let before = entries.insert("ca.crt".to_owned(), certificate);
    entries.insert("ca.key".to_owned(), key);
    entries.extend(before.map(|before| ("previous.crt".to_owned(), before)));
    true
}

fn forget_previous(entries: &mut Entries) -> bool {
    entries.remove("previous.crt").is_some()
}

/// Tries again as an administrator would, for as long as the cluster does not get to it. A
/// refusal by a policy is an answer.
async fn until_taken<T>(
    what: &str,
    attempt: impl AsyncFn() -> Result<T, Failed>,
) -> Result<T, Failed> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => {
                let last = error.to_string().contains("denied the request");
                if last || Instant::now() > deadline {
                    return Err(format!("{what}: {error}").into());
                }
            }
        }
        sleep(PAUSE).await;
    }
}

async fn until_so<F: Future<Output = bool>>(what: &str, so: impl FnMut() -> F) {
    eventually_within(TIMEOUT, what, so).await;
}

/// The line of a replica's metrics that says when its certificate expires.
#[must_use]
pub fn certificate_expiry(metrics: &str) -> Option<String> {
    let name = "opensdn_webhook_certificate_expiry_timestamp";
    metrics.lines().find(|line| line.starts_with(name)).map(str::to_owned)
}

fn certificates(config: &WebhookClientConfig) -> usize {
    let bundle = config.ca_bundle.as_ref().map(|bundle| String::from_utf8_lossy(&bundle.0));
    bundle.map_or(0, |bundle| bundle.matches("BEGIN CERTIFICATE").count())
}
