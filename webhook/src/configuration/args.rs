//! The flags of the webhook configurations.

use std::path::PathBuf;

use super::Address;

/// What the webhook configurations say.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Webhook configurations")]
pub struct ConfigurationArgs {
    /// URL, without path, by which the API server reaches the webhook, for one that runs beside
    /// it. Default: through the Service.
    #[arg(long, env = "OPENSDN_WEBHOOK_URL", value_name = "URL")]
    pub webhook_url: Option<String>,

    /// PEM file with the CAs by which the API server knows the webhook's certificate, to be
    /// written into the webhook configurations. Needed only where that comes from --tls-cert; without
    /// it the configurations are then left alone. Read again whenever its content changes.
    #[arg(long, env = "OPENSDN_WEBHOOK_CA_BUNDLE", value_name = "FILE")]
    pub ca_bundle: Option<PathBuf>,

    /// The webhook's ServiceAccount; what it does itself to kinds that are not OpenSDN's is not
    /// sent to it.
    #[arg(long, env = "OPENSDN_WEBHOOK_SERVICE_ACCOUNT", default_value = "opensdn-webhook")]
    pub service_account: String,
}

impl ConfigurationArgs {
    /// Where the API server finds the webhook, which is behind `service` of `namespace`.
    pub(crate) fn address(&self, namespace: &str, service: &str) -> Address {
        match &self.webhook_url {
            Some(url) => Address::Url(url.clone()),
            None => Address::Service { namespace: namespace.to_owned(), name: service.to_owned() },
        }
    }

    /// The webhook's own user.
    pub(crate) fn user(&self, namespace: &str) -> Option<String> {
        let account = &self.service_account;
        (!account.is_empty()).then(|| format!("system:serviceaccount:{namespace}:{account}"))
    }
}
