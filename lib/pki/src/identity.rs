//! A certificate chain with its key, as TLS uses it. Deliberately not here: where it comes from
//! (files, or a CA of our own) and how a server swaps it.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Why a chain and a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum IdentityError {
    #[error("parse certificate: not PEM")]
    Pem(#[source] rustls_pki_types::pem::Error),
    #[error("parse certificate: no BEGIN CERTIFICATE in it")]
    NoCertificate,
    #[error("parse certificate: not X.509")]
    X509,
    #[error("parse private key: no usable BEGIN PRIVATE KEY in it")]
    Key(#[source] rustls_pki_types::pem::Error),
    #[error("use private key: it is not the certificate's, or of an unknown kind")]
    Mismatch(#[source] rustls::Error),
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
    ///
    /// # Errors
    /// One of them cannot be parsed, or they do not belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = parse_certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(IdentityError::Key)?;
        Self::new(chain, key)
    }

    /// Pairs a chain with its key.
    ///
    /// # Errors
    /// A certificate cannot be parsed, or they do not belong together.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, IdentityError> {
        let mut expiries = Vec::with_capacity(chain.len());
        let mut serial = None;
        for certificate in &chain {
            let (_, parsed) =
                X509Certificate::from_der(certificate).map_err(|_| IdentityError::X509)?;
            serial.get_or_insert_with(|| parsed.tbs_certificate.raw_serial_as_string());
            expiries.push(parsed.validity().not_after.to_datetime());
        }
        let (Some(not_after), Some(serial)) = (expiries.into_iter().min(), serial) else {
            return Err(IdentityError::NoCertificate);
        };
        let certified = CertifiedKey::from_der(chain, key, &crypto_provider())
            .map_err(IdentityError::Mismatch)?;
        Ok(Self { certified: Arc::new(certified), not_after, serial })
    }

    /// Chain and key as rustls takes them.
    #[must_use]
    pub fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }
}

/// The certificates of a PEM text, at least one.
///
/// # Errors
/// It is not PEM, or there is no certificate in it.
pub fn parse_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(IdentityError::Pem)?;
    if chain.is_empty() { Err(IdentityError::NoCertificate) } else { Ok(chain) }
}

/// The one provider of cryptography in the process.
#[must_use]
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
