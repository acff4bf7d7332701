//! Whose certificates are accepted. Certificates of our own, shown to servers, are not here: no server asks for them.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::Error;

/// The most of a file with certificates, of which a machine has some hundred KiB.
const MOST: u64 = 16 << 20;

/// Whose certificates are accepted.
#[derive(Clone, Debug)]
pub struct Trust(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Authorities(RootCertStore),
    Anyone,
}

impl Trust {
    /// The CAs of this machine.
    #[must_use]
    pub fn of_machine() -> Self {
        let mut roots = RootCertStore::empty();
        // One that cannot be read is one that is not trusted; without any the error says so.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self(Kind::Authorities(roots))
    }

    /// No CA but those that are added.
    #[must_use]
    pub fn of_none() -> Self {
        Self(Kind::Authorities(RootCertStore::empty()))
    }

    /// Every certificate of every server: what is on the way can read and change everything.
    #[must_use]
    pub fn unverified() -> Self {
        Self(Kind::Anyone)
    }

    /// The CAs of a file (PEM) as well.
    ///
    /// # Errors
    /// It cannot be read, or has no certificate.
    pub fn with_file(self, path: &Path) -> Result<Self, Error> {
        let from = path.display().to_string();
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) if bytes.len() as u64 > MOST => {
                let why = format!("it is larger than {} MiB", MOST >> 20);
                Err(Error::Certificates { from, why })
            }
            Ok(_) => self.with_pem(&from, &bytes),
            Err(error) => Err(Error::Certificates { from, why: error.to_string() }),
        }
    }

    /// The CAs of these bytes (PEM) as well; `from` is what has them.
    ///
    /// # Errors
    /// They have no certificate.
    pub fn with_pem(self, from: &str, bytes: &[u8]) -> Result<Self, Error> {
        self.with(from.to_owned(), CertificateDer::pem_slice_iter(bytes))
    }

    fn with(
        self,
        from: String,
        all: impl Iterator<Item = Result<CertificateDer<'static>, pem::Error>>,
    ) -> Result<Self, Error> {
        let wrong = |why: String| Error::Certificates { from: from.clone(), why };
        let all: Result<Vec<_>, _> = all.collect();
        let all = all.map_err(|error| wrong(error.to_string()))?;
        if all.is_empty() {
            return Err(wrong("there is no certificate in it".to_owned()));
        }
        let Kind::Authorities(mut roots) = self.0 else { return Ok(self) };
        for one in all {
            roots.add(one).map_err(|error| wrong(error.to_string()))?;
        }
        Ok(Self(Kind::Authorities(roots)))
    }

    pub(crate) fn tls(self) -> Result<ClientConfig, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?;
        let builder = match self.0 {
            Kind::Authorities(roots) => builder.with_root_certificates(roots),
            Kind::Anyone => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            }
        };
        Ok(builder.with_no_client_auth())
    }
}

/// Accepts every certificate, but only from who has its key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
