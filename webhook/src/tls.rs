//! What the server presents, which clients may connect, and the swap from one identity to the next
//! without a restart. Where identities come from is in `tls/files.rs` and `certificates`.

mod client_auth;
pub mod files;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use opensdn_pki::{Identity, IdentityError, crypto_provider};
use opensdn_runtime::metrics::{SecondsGauge, register};
use opensdn_runtime::readiness::ReadinessCheck;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::{Registry, Unit};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage};
use rustls::sign::SingleCertAndKey;
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::{MissedTickBehavior, interval};

use client_auth::NamedClientVerifier;

/// Why an identity or a client CA cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("read {path}")]
    Read { path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("use the certificate: it expired at {0}")]
    Expired(String),
    #[error("use the client CA")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
    #[error("set up TLS")]
    Config(#[source] rustls::Error),
}

/// The oldest version of TLS that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3 only.
    #[default]
    #[value(name = "1.3")]
    Tls13,
}

impl MinVersion {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static BOTH: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        static NEWEST: [&SupportedProtocolVersion; 1] = [&version::TLS13];
        match self {
            Self::Tls12 => &BOTH,
            Self::Tls13 => &NEWEST,
        }
    }
}

/// What does not change while the process runs.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The oldest version spoken.
    pub min_version: MinVersion,
    /// With a client CA: a client's certificate must bear one of these names, as common name or DNS
    /// name. Empty: any certificate of that CA will do.
    pub client_names: Vec<String>,
}

fn expires(identity: &Identity) -> String {
    identity.not_after.format(&Rfc3339).unwrap_or_default()
}

/// What is counted about the serving certificate; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CertificateMetrics {
    /// When the certificate that is served now expires, in seconds since 1970.
    pub expiry: SecondsGauge,
    /// Certificates that were put in place and could not be used.
    pub reload_failures: Counter,
    /// Certificates that were put in place and are or were served.
    pub reloads: Counter,
}

impl CertificateMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        register(
            registry,
            [
                (
                    "certificate_expiry_timestamp",
                    "When the serving certificate expires, since 1970",
                    Some(Unit::Seconds),
                    Box::new(self.expiry.clone()),
                ),
                (
                    "certificate_reload_failures",
                    "Certificates put in place that could not be used",
                    None,
                    Box::new(self.reload_failures.clone()),
                ),
                (
                    "certificate_reloads",
                    "Certificates put in place and served",
                    None,
                    Box::new(self.reloads.clone()),
                ),
            ],
        );
    }
}

/// TLS as it is now. Connections that are open keep what they were opened with.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    current: ArcSwap<Current>,
    /// Held while the next state is made from the present one, so that of two changes at once
    /// (certificate and client CA) neither undoes the other.
    changing: Mutex<()>,
    metrics: CertificateMetrics,
    ready: ReadinessCheck,
}

struct Current {
    config: Arc<ServerConfig>,
    identity: Identity,
    client_auth: Arc<dyn ClientCertVerifier>,
}

impl Tls {
    /// Starts with `identity`, even with an expired one: readiness reports that.
    pub fn new(
        settings: Settings,
        identity: Identity,
        client_ca: Option<&[u8]>,
        metrics: CertificateMetrics,
        ready: ReadinessCheck,
    ) -> Result<Self, Error> {
        let client_auth = client_auth(&settings, client_ca)?;
        let current = ArcSwap::from_pointee(Current::new(&settings, identity, client_auth)?);
        let changing = Mutex::new(());
        let tls = Self { shared: Arc::new(Shared { settings, current, changing, metrics, ready }) };
        tls.observe(OffsetDateTime::now_utc());
        Ok(tls)
    }

    /// Serves `identity` from the next connection on. An expired one is rejected while the present
    /// one is good.
    pub fn install(&self, identity: Identity) -> Result<(), Error> {
        let now = OffsetDateTime::now_utc();
        if identity.not_after <= now && self.shared.current.load().identity.not_after > now {
            return Err(Error::Expired(expires(&identity)));
        }
        let (serial, expires) = (identity.serial.clone(), expires(&identity));
        self.change(|current| {
            Current::new(&self.shared.settings, identity, current.client_auth.clone())
        })?;
        tracing::info!(serial, expires, "started serving a new certificate");
        self.shared.metrics.reloads.inc();
        self.observe(now);
        Ok(())
    }

    /// From the next connection on, clients need a certificate of this CA (PEM).
    pub fn trust(&self, client_ca: &[u8]) -> Result<(), Error> {
        let settings = &self.shared.settings;
        let client_auth = client_auth(settings, Some(client_ca))?;
        self.change(|current| Current::new(settings, current.identity.clone(), client_auth))?;
        tracing::info!("started using a new client CA");
        Ok(())
    }

    fn change(&self, next: impl FnOnce(&Current) -> Result<Current, Error>) -> Result<(), Error> {
        // The lock guards no data that could be left half changed.
        let _changing = self.shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = next(&self.shared.current.load())?;
        self.shared.current.store(Arc::new(next));
        Ok(())
    }

    /// Counts and logs that what was put in place cannot be used.
    pub fn rejected(&self, error: &dyn std::error::Error) {
        self.shared.metrics.reload_failures.inc();
        tracing::error!(
            error = %opensdn_runtime::error_chain(error),
            serial_served = self.shared.current.load().identity.serial,
            expires = expires(&self.shared.current.load().identity),
            "failed to use the new certificate; still serving the previous one; put in a PEM \
             chain with the key of its first certificate"
        );
    }

    /// What a connection that is accepted now is served with.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.shared.current.load().config.clone()
    }

    /// Keeps metric and readiness in step with the clock, until dropped.
    pub async fn watch_expiry(self) {
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.observe(OffsetDateTime::now_utc());
        }
    }

    fn observe(&self, now: OffsetDateTime) {
        let current = self.shared.current.load();
        let identity = &current.identity;
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 are exact in f64")]
        self.shared.metrics.expiry.set(identity.not_after.unix_timestamp() as f64);
        if identity.not_after > now {
            self.shared.ready.pass();
        } else {
            let expires = expires(identity);
            self.shared.ready.fail(format!("the serving certificate expired at {expires}"));
        }
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl Current {
    fn new(
        settings: &Settings,
        identity: Identity,
        client_auth: Arc<dyn ClientCertVerifier>,
    ) -> Result<Self, Error> {
        let resolver = SingleCertAndKey::from(identity.certified_key());
        let mut config = ServerConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(settings.min_version.versions())
            .map_err(Error::Config)?
            .with_client_cert_verifier(client_auth.clone())
            .with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A resumed session would bypass what a new certificate or client CA is put in place for,
        // and the API server keeps its connections anyway.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), identity, client_auth })
    }
}

fn client_auth(
    settings: &Settings,
    client_ca: Option<&[u8]>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    Ok(match client_ca {
        None => Arc::new(NoClientAuth),
        Some(pem) => Arc::new(NamedClientVerifier::new(pem, settings.client_names.clone())?),
    })
}
