//! The certificate of both services, where they have one.

use std::fmt;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

use crate::Failed;

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Tls {
    certificate: String,
    key: String,
}

impl fmt::Debug for Tls {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Tls").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Tls {
    /// Signed by itself, for these names and addresses; [`Tls::certificate`] is what clients trust.
    ///
    /// # Errors
    /// A name is none.
    pub fn for_names(names: &[&str]) -> Result<Self, Failed> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names)?;
        Ok(Self { certificate: cert.pem(), key: signing_key.serialize_pem() })
    }

    /// As PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, Failed> {
        let chain = vec![CertificateDer::from_pem_slice(self.certificate.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
