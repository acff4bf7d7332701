//! Certificates that the webhook makes for itself: a CA, kept in a Secret that all replicas share,
//! and one serving certificate per replica, which never leaves its memory.
//!
//! Here is what is made (no I/O). When the CA changes is in `certificates/rotation.rs`, the Secret
//! in `certificates/secret.rs`, and what a replica does about both in `certificates/keeper.rs`.

pub mod keeper;
pub mod rotation;
pub mod secret;

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::tls::{self, Identity};

/// How long a CA lives.
const CA_LIFETIME: Duration = Duration::days(3650);
/// How long a replica's certificate lives; it is renewed at two thirds of that.
const LEAF_LIFETIME: Duration = Duration::days(30);
/// How far another machine's clock may be behind ours.
const CLOCK_SKEW: Duration = Duration::hours(1);

/// Why a certificate could not be made or read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("make a certificate")]
    Make(#[source] rcgen::Error),
    #[error("read a CA's certificate: not a PEM certificate")]
    Certificate,
    #[error("read a CA's key")]
    Key(#[source] rcgen::Error),
    #[error("pair a CA's certificate and key: they do not belong together")]
    Pair,
    #[error("use the certificate that was made")]
    Identity(#[source] tls::Error),
}

/// The names under which the webhook is reached.
#[derive(Clone, Debug)]
pub struct Names {
    /// Name of the Service.
    pub service: String,
    /// Namespace of the Service.
    pub namespace: String,
    /// Further DNS names and IP addresses.
    pub further: Vec<String>,
}

impl Names {
    /// What the API server uses (AR-03) first, then the shorter and longer forms, then those for
    /// a webhook that is reached by URL on the same machine.
    fn all(&self) -> Vec<String> {
        let Self { service, namespace, further } = self;
        let mut names = vec![
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
            service.clone(),
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        names.extend(further.iter().cloned());
        names
    }
}

/// A CA that can sign: certificate and key in PEM, checked to belong together.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    certificate: Arc<str>,
    key: Arc<str>,
    not_after: OffsetDateTime,
}

/// The key is left out.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes a CA (ECDSA P-256) that is valid from `now`.
    pub fn create(now: OffsetDateTime) -> Result<Self, Error> {
        let key = KeyPair::generate().map_err(Error::Make)?;
        let mut params = CertificateParams::default();
        params.not_before = now - CLOCK_SKEW;
        params.not_after = now + CA_LIFETIME;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name = DistinguishedName::new();
        // Two CAs of one name in a bundle would have to be told apart by trial.
        let name = format!("opensdn-webhook CA {}", now.unix_timestamp());
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).map_err(Error::Make)?;
        Self::from_pem(&certificate.pem(), &key.serialize_pem())
    }

    /// Reads a CA.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, Error> {
        let (not_after, public_key) = read_certificate(certificate)?;
        let pair = KeyPair::from_pem(key).map_err(Error::Key)?;
        if pair.public_key_raw() != public_key {
            return Err(Error::Pair);
        }
        Ok(Self { certificate: certificate.into(), key: key.into(), not_after })
    }

    /// The certificate in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// When it expires.
    pub fn not_after(&self) -> OffsetDateTime {
        self.not_after
    }

    /// Makes a serving certificate with a new key.
    pub fn issue(&self, names: &Names, now: OffsetDateTime) -> Result<Leaf, Error> {
        let ca_key = KeyPair::from_pem(&self.key).map_err(Error::Key)?;
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, ca_key).map_err(Error::Make)?;
        let key = KeyPair::generate().map_err(Error::Make)?;
        let mut params = CertificateParams::new(names.all()).map_err(Error::Make)?;
        params.not_before = now - CLOCK_SKEW;
        params.not_after = (now + LEAF_LIFETIME).min(self.not_after);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "opensdn-webhook");
        let certificate = params.signed_by(&key, &issuer).map_err(Error::Make)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let identity = Identity::new(vec![certificate.der().clone()], key);
        let renew_at = now + (params.not_after - now) * 2 / 3;
        Ok(Leaf { identity: identity.map_err(Error::Identity)?, renew_at })
    }
}

/// A replica's serving certificate.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Certificate and key.
    pub identity: Identity,
    /// When the next one should be made.
    pub renew_at: OffsetDateTime,
}

/// When a certificate in PEM expires, and its public key.
fn read_certificate(pem: &str) -> Result<(OffsetDateTime, Vec<u8>), Error> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| Error::Certificate)?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(|_| Error::Certificate)?;
    let public_key = parsed.public_key().subject_public_key.data.to_vec();
    Ok((parsed.validity().not_after.to_datetime(), public_key))
}

#[cfg(test)]
mod tests {
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::{RootCertStore, crypto::ring};
    use rustls_pki_types::{ServerName, UnixTime};

    use super::*;

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    fn names() -> Names {
        Names {
            service: "opensdn-webhook".into(),
            namespace: "opensdn".into(),
            further: vec!["hook.example.org".into(), "192.0.2.7".into()],
        }
    }

    /// As the API server would verify it.
    fn verifies(ca: &Authority, leaf: &Leaf, name: &str, at: OffsetDateTime) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.certificate.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(
            at.unix_timestamp().try_into().unwrap(),
        ));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(leaf.identity.leaf(), &[], &name, &[], at).is_ok()
    }

    #[test]
    fn a_leaf_bears_every_name_of_the_service_and_those_of_the_own_machine() {
        let ca = Authority::create(now()).unwrap();
        let leaf = ca.issue(&names(), now()).unwrap();
        for name in [
            "opensdn-webhook.opensdn.svc",
            "opensdn-webhook.opensdn.svc.cluster.local",
            "opensdn-webhook.opensdn",
            "opensdn-webhook",
            "localhost",
            "127.0.0.1",
            "::1",
            "hook.example.org",
            "192.0.2.7",
        ] {
            assert!(verifies(&ca, &leaf, name, now()), "{name}");
        }
        assert!(!verifies(&ca, &leaf, "opensdn-webhook.other.svc", now()));
        let other = Authority::create(now()).unwrap();
        assert!(!verifies(&other, &leaf, "localhost", now()));
    }

    #[test]
    fn a_leaf_is_renewed_at_two_thirds_of_its_life_and_never_outlives_its_ca() {
        let ca = Authority::create(now()).unwrap();
        let leaf = ca.issue(&names(), now()).unwrap();
        assert_eq!(leaf.renew_at - now(), Duration::days(20));
        assert_eq!(leaf.identity.not_after - now(), Duration::days(30));
        let late = ca.not_after() - Duration::days(3);
        let leaf = ca.issue(&names(), late).unwrap();
        assert_eq!(leaf.identity.not_after, ca.not_after());
        assert_eq!(leaf.renew_at - late, Duration::days(2));
    }

    #[test]
    fn a_clock_that_is_behind_by_less_than_an_hour_does_not_matter() {
        let ca = Authority::create(now()).unwrap();
        let leaf = ca.issue(&names(), now()).unwrap();
        assert!(verifies(&ca, &leaf, "localhost", now() - Duration::minutes(59)));
        assert!(!verifies(&ca, &leaf, "localhost", now() - Duration::minutes(61)));
    }

    #[test]
    fn a_key_of_another_ca_is_refused() {
        let (one, other) = (Authority::create(now()).unwrap(), Authority::create(now()).unwrap());
        let mixed = Authority::from_pem(&one.certificate, &other.key);
        assert!(matches!(mixed, Err(Error::Pair)));
        assert!(matches!(Authority::from_pem("", &one.key), Err(Error::Certificate)));
        assert!(matches!(Authority::from_pem(&one.certificate, "x"), Err(Error::Key(_))));
    }

    #[test]
    fn the_key_is_not_in_the_debug_form() {
        let ca = Authority::create(now()).unwrap();
        assert!(!format!("{ca:?}").contains("PRIVATE"));
    }
}
