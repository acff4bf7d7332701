//! What an administrator changes while the product is in use: policies, the webhook's CA.
//! Deliberately not here: the requests that go on meanwhile (`steady_load`).

use std::error::Error;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_webhook::certificates::rotation::{Authorities, Stored};
use opensdn_webhook::certificates::secret::{CaSecret, ROTATE, Written};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::eventually::eventually;
use crate::product::NAMESPACE;

const SECRET: &str = "opensdn-webhook-ca";

/// Why a change was not made.
pub type Failed = Box<dyn Error + Send + Sync>;

/// The product to change.
pub struct Changes {
    client: Client,
    replicas: usize,
}

impl Changes {
    /// By an administrator's client, of so many replicas.
    #[must_use]
    pub fn new(client: Client, replicas: usize) -> Self {
        Self { client, replicas }
    }

    /// Changes policies to and fro; each change is in force in every replica before the next.
    ///
    /// # Errors
    /// The API server does not take it.
    ///
    /// # Panics
    /// It does not come into force.
    pub async fn swap_policies(&self) -> Result<(), Failed> {
        let elsewhere = json!({"namespaces": ["elsewhere"]});
        for turn in 0..3 {
            let exemptions = if turn % 2 == 0 { elsewhere.clone() } else { Value::Null };
            self.swap("unsafe-parameter", json!({"exemptions": exemptions})).await?;
            let mode = if turn % 2 == 0 { "warn" } else { "enforce" };
            self.swap("plaintext", json!({"mode": mode})).await?;
            let secrets = if turn % 2 == 0 { "deny" } else { "warn" };
            self.swap("missing-reference", json!({"settings": {"secrets": secrets}})).await?;
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
        let changed = policies.patch(policy, &PatchParams::default(), &patch).await?;
        let generation = changed.metadata.generation;
        let in_force = async || {
            let status = policies.get(policy).await.ok().and_then(|policy| policy.status);
            let replicas = status.and_then(|status| status.replicas).unwrap_or_default();
            replicas.len() == self.replicas
                && replicas.iter().all(|one| one.ready && one.observed_generation == generation)
        };
        eventually(&format!("{policy} is in force in every replica"), in_force).await;
        Ok(())
    }

    /// A whole rotation, except that its minute of waiting is not waited for: the test does what
    /// the leader would do then. `expiries` says when each replica's certificate expires.
    ///
    /// # Errors
    /// The CA cannot be read or changed.
    ///
    /// # Panics
    /// A replica does not get a certificate of the new CA.
    pub async fn rotate_ca(
        &self,
        expiries: impl AsyncFn() -> Result<Vec<String>, Failed>,
    ) -> Result<(), Failed> {
        let before = expiries().await?;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        let ask = json!({"metadata": {"annotations": {ROTATE: "the key was seen"}}});
        secrets.patch(SECRET, &PatchParams::default(), &Patch::Merge(ask)).await?;
        let secret = CaSecret::new(self.client.clone(), NAMESPACE, SECRET);
        let announced = async || self.is_announced(&secret).await.unwrap_or(false);
        eventually("the next CA is in every webhook configuration", announced).await;

        let found = secret.read().await?;
        let Stored::Whole { authorities, .. } = &found.stored else {
            return Err("no usable CA is stored".into());
        };
        let next = authorities.next.clone().ok_or("no CA is announced")?;
        let previous = Some(authorities.current.certificate().to_owned());
        let changed = Authorities { current: next, next: None, previous };
        let written = secret.write(&found, &changed, OffsetDateTime::now_utc()).await?;
        assert_eq!(written, Written::Stored);
        let reissued = async || {
            let now = expiries().await.unwrap_or_default();
            now.len() == self.replicas && now.iter().zip(&before).all(|(now, before)| now != before)
        };
        eventually("every replica has a certificate of the new CA", reissued).await;
        Ok(())
    }

    /// Whether there is a next CA, and every webhook configuration has it. There is none as long
    /// as the one before the present is trusted, a day.
    async fn is_announced(&self, secret: &CaSecret) -> Result<bool, Failed> {
        let Stored::Whole { authorities, .. } = &secret.read().await?.stored else {
            return Ok(false);
        };
        Ok(authorities.next.is_some() && self.trusted().await? == Some(2))
    }

    /// How many CAs all webhooks of both configurations trust, if it is the same number.
    async fn trusted(&self) -> Result<Option<usize>, kube::Error> {
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let validating = validating.get("opensdn-webhook").await?.webhooks.unwrap_or_default();
        let mutating = mutating.get("opensdn-webhook").await?.webhooks.unwrap_or_default();
        let validating = validating.into_iter().map(|webhook| webhook.client_config);
        let configs = validating.chain(mutating.into_iter().map(|webhook| webhook.client_config));
        let counts: Vec<usize> = configs.map(|config| certificates(&config)).collect();
        let same = counts.windows(2).all(|pair| pair.first() == pair.last());
        Ok(counts.first().copied().filter(|_| same))
    }
}

fn certificates(config: &WebhookClientConfig) -> usize {
    let bundle = config.ca_bundle.as_ref().map(|bundle| String::from_utf8_lossy(&bundle.0));
    bundle.map_or(0, |bundle| bundle.matches("BEGIN CERTIFICATE").count())
}
