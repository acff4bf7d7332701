//! TLS out of PEM files: a port's, and that towards a service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

/// Why a certificate or a key could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is no such file, or it is not PEM.
    #[error("read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// It has nothing of what is wanted.
    #[error("there is no certificate in {}", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// The TLS library does not take it.
    #[error("use {} with {}", certificate.display(), key.display())]
    Refused {
        /// The chain.
        certificate: PathBuf,
        /// Its key, or what should be.
        key: PathBuf,
        /// Why: they do not belong together, say.
        source: rustls::Error,
    },
    /// The TLS library does not take an authority.
    #[error("trust {}", path.display())]
    Untrusted {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The TLS library cannot be set up.
    #[error("set TLS up")]
    Library(#[from] rustls::Error),
}

/// A certificate's chain and its key, as files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Files<'a> {
    /// The chain.
    pub(crate) certificate: &'a Path,
    /// The key.
    pub(crate) key: &'a Path,
}

/// TLS of a port.
///
/// # Errors
/// A file cannot be used, or certificate and key do not belong together.
pub(crate) fn server(files: Files<'_>) -> Result<Arc<ServerConfig>, Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth();
    let (chain, key) = (certificates(files.certificate)?, private_key(files.key)?);
    let configuration = builder.with_single_cert(chain, key);
    Ok(Arc::new(configuration.map_err(refused(files))?))
}

/// TLS towards a service. Without authorities, any server is trusted.
///
/// # Errors
/// A file cannot be used, or certificate and key do not belong together.
pub(crate) fn client(
    authorities: Option<&Path>,
    own: Option<Files<'_>>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let trusted = authorities.map(roots).transpose()?;
    let verifier = Arc::new(SignedBy { trusted, provider: Arc::clone(&provider) });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let configuration = match own {
        None => builder.with_no_client_auth(),
        Some(files) => {
            let (chain, key) = (certificates(files.certificate)?, private_key(files.key)?);
            builder.with_client_auth_cert(chain, key).map_err(refused(files))?
        }
    };
    Ok(Arc::new(configuration))
}

fn refused(files: Files<'_>) -> impl FnOnce(rustls::Error) -> Error {
    let (certificate, key) = (files.certificate.to_owned(), files.key.to_owned());
    |source| Error::Refused { certificate, key, source }
}

fn roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|source| Error::Untrusted { path: path.to_owned(), source })?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let found = CertificateDer::pem_file_iter(path).map_err(read)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(read)?;
    if found.is_empty() { Err(Error::Empty { path: path.to_owned() }) } else { Ok(found) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Accepts a certificate that an authority has signed, whatever name it is for: upstream's clients
/// of the databases do not compare names, and their certificates need not have the right ones.
#[derive(Debug)]
struct SignedBy {
    trusted: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for SignedBy {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.trusted {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(end_entity)?,
                roots,
                intermediates,
                now,
                self.provider.signature_verification_algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
