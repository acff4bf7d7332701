//! Client authentication when a client CA is given: a certificate of that CA *and* one of the names.
//! Deliberately not here: reading that CA (`tls/files.rs`).

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use opensdn_pki::{crypto_provider, parse_certificates};

use super::Error;

/// Checks a client's chain by webpki, then its name: a cluster's CA signs far more than the API
/// server's certificate.
#[derive(Debug)]
pub(super) struct NamedClientVerifier {
    chain: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
}

impl NamedClientVerifier {
    pub(super) fn new(ca: &[u8], names: Vec<String>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in parse_certificates(ca)? {
            roots.add(certificate).map_err(Error::Config)?;
        }
        let chain = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider())
            .build()
            .map_err(Error::ClientCa)?;
        Ok(Self { chain, names })
    }

    fn is_named(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
            return false;
        };
        let expected = |name: &str| self.names.iter().any(|expected| expected == name);
        let subject = parsed.subject();
        if subject.iter_common_name().any(|name| name.as_str().is_ok_and(expected)) {
            return true;
        }
        let Ok(Some(alternatives)) = parsed.subject_alternative_name() else {
            return false;
        };
        let mut names = alternatives.value.general_names.iter();
        names.any(|name| matches!(name, GeneralName::DNSName(name) if expected(name)))
    }
}

impl ClientCertVerifier for NamedClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        let verified = self.chain.verify_client_cert(end_entity, intermediates, now)?;
        if self.names.is_empty() || self.is_named(end_entity) {
            return Ok(verified);
        }
        tracing::warn!(
            "failed to authenticate a client: its certificate is of the client CA, but bears none \
             of the expected names"
        );
        Err(TlsError::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
