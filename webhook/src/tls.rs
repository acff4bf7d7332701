//! The serving identity (certificate chain and key), who may connect, and the swap from one
//! identity to the next without a restart. Where identities come from is in `tls/files.rs` and
//! `certificates`.

pub mod files;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use opensdn_runtime::readiness::ReadinessCheck;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::{MissedTickBehavior, interval};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::metrics::CertificateMetrics;
use callers::NamedCallers;

mod callers;

/// Why an identity or a client CA cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("read {path}")]
    Read { path: std::path::PathBuf, source: std::io::Error },
    #[error("read a certificate: not PEM")]
    CertificatePem(#[source] rustls_pki_types::pem::Error),
    #[error("read a certificate: no BEGIN CERTIFICATE in it")]
    NoCertificate,
    #[error("read a certificate: it is not X.509")]
    CertificateDer,
    #[error("read the private key: no usable BEGIN PRIVATE KEY in it")]
    KeyPem(#[source] rustls_pki_types::pem::Error),
    #[error("pair certificate and key: they do not belong together, or the key's kind is unknown")]
    Pair(#[source] rustls::Error),
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
    /// With a client CA: the names of which a caller's certificate must bear one, as common name
    /// or DNS name. Empty: any certificate of that CA will do.
    pub client_names: Vec<String>,
}

/// A certificate chain with its key, checked to belong together.
#[derive(Clone, Debug)]
pub struct Identity {
    certified: Arc<CertifiedKey>,
    /// When the first certificate of the chain expires.
    pub not_after: OffsetDateTime,
    /// The leaf's serial number, for people to compare with what they put in place.
    pub serial: String,
}

impl Identity {
    /// Reads a chain (leaf first, then intermediates) and the leaf's key, both in PEM.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(Error::KeyPem)?;
        Self::new(chain, key)
    }

    /// Pairs a chain with its key.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, Error> {
        let mut expiries = Vec::with_capacity(chain.len());
        let mut serial = None;
        for certificate in &chain {
            let (_, parsed) =
                X509Certificate::from_der(certificate).map_err(|_| Error::CertificateDer)?;
            serial.get_or_insert_with(|| parsed.tbs_certificate.raw_serial_as_string());
            expiries.push(parsed.validity().not_after.to_datetime());
        }
        let (Some(not_after), Some(serial)) = (expiries.into_iter().min(), serial) else {
            return Err(Error::NoCertificate);
        };
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(Error::Pair)?;
        Ok(Self { certified: Arc::new(certified), not_after, serial })
    }

    /// The leaf's certificate.
    #[cfg(test)]
    pub(crate) fn leaf(&self) -> &CertificateDer<'static> {
        &self.certified.cert[0]
    }

    fn expires(&self) -> String {
        self.not_after.format(&Rfc3339).unwrap_or_default()
    }
}

/// The certificates of a PEM text, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(Error::CertificatePem)?;
    if chain.is_empty() { Err(Error::NoCertificate) } else { Ok(chain) }
}

/// The one provider of cryptography in the process.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
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
    callers: Arc<dyn ClientCertVerifier>,
}

impl Tls {
    /// Begins with `identity`, also with an expired one: the condition tells.
    pub fn new(
        settings: Settings,
        identity: Identity,
        client_ca: Option<&[u8]>,
        metrics: CertificateMetrics,
        ready: ReadinessCheck,
    ) -> Result<Self, Error> {
        let callers = callers(&settings, client_ca)?;
        let current = ArcSwap::from_pointee(Current::new(&settings, identity, callers)?);
        let changing = Mutex::new(());
        let tls = Self { shared: Arc::new(Shared { settings, current, changing, metrics, ready }) };
        tls.look(OffsetDateTime::now_utc());
        Ok(tls)
    }

    /// Serves `identity` from the next connection on. An expired one is refused while the present
    /// one is good.
    pub fn install(&self, identity: Identity) -> Result<(), Error> {
        let now = OffsetDateTime::now_utc();
        if identity.not_after <= now && self.shared.current.load().identity.not_after > now {
            return Err(Error::Expired(identity.expires()));
        }
        let (serial, expires) = (identity.serial.clone(), identity.expires());
        self.change(|current| {
            Current::new(&self.shared.settings, identity, current.callers.clone())
        })?;
        tracing::info!(serial, expires, "new certificate served");
        self.shared.metrics.reloads.inc();
        self.look(now);
        Ok(())
    }

    /// From the next connection on, callers need a certificate of this CA (PEM).
    pub fn trust(&self, client_ca: &[u8]) -> Result<(), Error> {
        let settings = &self.shared.settings;
        let callers = callers(settings, Some(client_ca))?;
        self.change(|current| Current::new(settings, current.identity.clone(), callers))?;
        tracing::info!("new client CA in use");
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
    pub fn refused(&self, error: &dyn std::error::Error) {
        self.shared.metrics.reload_failures.inc();
        tracing::error!(
            error = %opensdn_runtime::error_chain(error),
            serial_served = self.shared.current.load().identity.serial,
            expires = self.shared.current.load().identity.expires(),
            "new certificate refused, the one before is served further; put in a PEM chain with \
             the key of its first certificate"
        );
    }

    /// What a connection that is accepted now is served with.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.shared.current.load().config.clone()
    }

    /// Keeps metric and readiness in step with the clock, for ever.
    pub async fn watch_expiry(self) {
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.look(OffsetDateTime::now_utc());
        }
    }

    fn look(&self, now: OffsetDateTime) {
        let current = self.shared.current.load();
        let identity = &current.identity;
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 are exact in f64")]
        self.shared.metrics.expiry.set(identity.not_after.unix_timestamp() as f64);
        if identity.not_after > now {
            self.shared.ready.pass();
        } else {
            let expires = identity.expires();
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
        callers: Arc<dyn ClientCertVerifier>,
    ) -> Result<Self, Error> {
        let resolver = SingleCertAndKey::from(identity.certified.clone());
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(settings.min_version.versions())
            .map_err(Error::Config)?
            .with_client_cert_verifier(callers.clone())
            .with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A resumed session would bypass what a new certificate or client CA is put in place for,
        // and the API server keeps its connections anyway.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), identity, callers })
    }
}

fn callers(
    settings: &Settings,
    client_ca: Option<&[u8]>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    Ok(match client_ca {
        None => Arc::new(NoClientAuth),
        Some(pem) => Arc::new(NamedCallers::new(pem, settings.client_names.clone())?),
    })
}
