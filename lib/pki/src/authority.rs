//! A CA and the certificates that it issues (no I/O). When a CA changes is in `rotation`.

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::identity::{Identity, IdentityError};
use crate::profile::{CaProfile, LeafProfile};

/// How far another machine's clock may be behind ours: what our CAs issue begins so long before it is made.
pub const CLOCK_SKEW: Duration = Duration::hours(1);

/// Why a certificate could not be made or read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AuthorityError {
    #[error("make certificate")]
    Make(#[source] rcgen::Error),
    #[error("parse CA certificate: not a PEM certificate")]
    Certificate,
    #[error("parse CA key")]
    Key(#[source] rcgen::Error),
    #[error("use CA key: it is not the CA certificate's")]
    Mismatch,
    #[error("use the request that was made: it cannot be read")]
    Request,
    #[error("use the certificate that was made")]
    Identity(#[source] IdentityError),
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
    /// Makes a CA that is valid from `now`.
    ///
    /// # Errors
    /// A name cannot be written in a certificate, or there is no randomness.
    pub fn create(profile: &CaProfile, now: OffsetDateTime) -> Result<Self, AuthorityError> {
        let key = profile.key.generate().map_err(AuthorityError::Make)?;
        let mut params = CertificateParams::default();
        params.not_before = now - CLOCK_SKEW;
        params.not_after = now + profile.lifetime;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name = DistinguishedName::new();
        let name = format!("{} {}", profile.common_name, now.unix_timestamp());
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).map_err(AuthorityError::Make)?;
        Self::from_pem(&certificate.pem(), &key.serialize_pem())
    }

    /// Reads a CA.
    ///
    /// # Errors
    /// Certificate or key cannot be parsed, or they do not belong together.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let (not_after, public_key) = read_certificate(certificate)?;
        let pair = KeyPair::from_pem(key).map_err(AuthorityError::Key)?;
        if pair.public_key_raw() != public_key {
            return Err(AuthorityError::Mismatch);
        }
        Ok(Self { certificate: certificate.into(), key: key.into(), not_after })
    }

    /// The certificate in PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The key in PEM, to be stored.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// When it expires.
    #[must_use]
    pub fn not_after(&self) -> OffsetDateTime {
        self.not_after
    }

    /// Issues a certificate with a new key. It never outlives the CA.
    ///
    /// # Errors
    /// A name cannot be written in a certificate, or there is no randomness.
    pub fn issue(
        &self,
        profile: &LeafProfile,
        now: OffsetDateTime,
    ) -> Result<Leaf, AuthorityError> {
        let key = profile.key.generate().map_err(AuthorityError::Make)?;
        self.issue_with(&key, profile, now)
    }

    /// Issues a certificate with the key of another, in PEM: of one owner, for another use. To make a key of RSA takes far longer
    /// than all else.
    ///
    /// # Errors
    /// As [`Self::issue`]; or the key is none.
    pub fn issue_for(
        &self,
        key: &str,
        profile: &LeafProfile,
        now: OffsetDateTime,
    ) -> Result<Leaf, AuthorityError> {
        let key = KeyPair::from_pem(key).map_err(AuthorityError::Key)?;
        self.issue_with(&key, profile, now)
    }

    fn issue_with(
        &self,
        key: &KeyPair,
        profile: &LeafProfile,
        now: OffsetDateTime,
    ) -> Result<Leaf, AuthorityError> {
        let ca_key = KeyPair::from_pem(&self.key).map_err(AuthorityError::Key)?;
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, ca_key);
        let issuer = issuer.map_err(AuthorityError::Make)?;
        let params = CertificateParams::new(profile.names.clone());
        let mut params = params.map_err(AuthorityError::Make)?;
        params.not_before = now - CLOCK_SKEW;
        params.not_after = (now + profile.lifetime).min(self.not_after);
        params.key_usages = profile.key.usages();
        params.extended_key_usages = profile.usage.purposes();
        params.use_authority_key_identifier_extension = true;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, &*profile.common_name);
        let certificate = params.signed_by(key, &issuer).map_err(AuthorityError::Make)?;
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let identity = Identity::new(vec![certificate.der().clone()], der);
        Ok(Leaf {
            identity: identity.map_err(AuthorityError::Identity)?,
            renew_at: now + (params.not_after - now) * 2 / 3,
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// A certificate that a CA of ours issued, with its key.
#[derive(Clone)]
pub struct Leaf {
    /// Certificate and key as TLS uses them.
    pub identity: Identity,
    /// When the next one should be issued.
    pub renew_at: OffsetDateTime,
    certificate: String,
    key: String,
}

impl Leaf {
    /// The certificate in PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The key in PEM: for the Secret of the server that presents the certificate, nowhere else.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// The key is left out.
impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let serial = &self.identity.serial;
        let leaf = &mut f.debug_struct("Leaf");
        leaf.field("serial", serial).field("renew_at", &self.renew_at).finish_non_exhaustive()
    }
}

/// When a certificate in PEM expires, and its public key.
pub(crate) fn read_certificate(pem: &str) -> Result<(OffsetDateTime, Vec<u8>), AuthorityError> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes());
    let der = der.map_err(|_| AuthorityError::Certificate)?;
    let parsed = X509Certificate::from_der(&der);
    let (_, parsed) = parsed.map_err(|_| AuthorityError::Certificate)?;
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
    use crate::profile::{KeyKind, Usage, service_dns_names};

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    fn new_ca() -> Authority {
        Authority::create(&CaProfile::new("test CA"), now()).unwrap()
    }

    fn profile() -> LeafProfile {
        let mut names = service_dns_names("opensdn-webhook", "opensdn");
        names.extend(
            ["localhost", "127.0.0.1", "::1", "hook.example.org", "192.0.2.7"].map(str::to_owned),
        );
        LeafProfile::server("opensdn-webhook", names)
    }

    /// As the API server would verify it.
    fn verifies(ca: &Authority, leaf: &Leaf, name: &str, at: OffsetDateTime) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.certificate().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(
            at.unix_timestamp().try_into().unwrap(),
        ));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier
            .verify_server_cert(&leaf.identity.certified_key().cert[0], &[], &name, &[], at)
            .is_ok()
    }

    #[test]
    fn a_leaf_bears_every_name_of_its_profile() {
        let ca = new_ca();
        let leaf = ca.issue(&profile(), now()).unwrap();
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
        let other = new_ca();
        assert!(!verifies(&other, &leaf, "opensdn-webhook", now()));
    }

    #[test]
    fn the_key_of_a_leaf_may_agree_on_keys_which_openssl_1_0_2_asks_for() {
        use x509_parser::prelude::FromDer as _;
        let ca = Authority::create(&CaProfile::new("a"), now()).unwrap();
        let leaf = ca.issue(&LeafProfile::server("a", vec!["a".into()]), now()).unwrap();
        let der = CertificateDer::from_pem_slice(leaf.certificate().as_bytes()).unwrap();
        let (_, leaf) = x509_parser::prelude::X509Certificate::from_der(&der).unwrap();
        let usage = leaf.key_usage().unwrap().unwrap().value;
        assert!(usage.key_agreement() && usage.digital_signature() && !usage.key_cert_sign());
    }

    #[test]
    fn a_leaf_is_renewed_at_two_thirds_of_its_life_and_never_outlives_its_ca() {
        let ca = new_ca();
        let leaf = ca.issue(&profile(), now()).unwrap();
        assert_eq!(leaf.renew_at - now(), Duration::days(20));
        assert_eq!(leaf.identity.not_after - now(), Duration::days(30));
        let late = ca.not_after() - Duration::days(3);
        let leaf = ca.issue(&profile(), late).unwrap();
        assert_eq!(leaf.identity.not_after, ca.not_after());
        assert_eq!(leaf.renew_at - late, Duration::days(2));
    }

    #[test]
    fn a_clock_that_is_behind_by_less_than_an_hour_does_not_matter() {
        let ca = new_ca();
        let leaf = ca.issue(&profile(), now()).unwrap();
        assert!(verifies(&ca, &leaf, "opensdn-webhook", now() - Duration::minutes(59)));
        assert!(!verifies(&ca, &leaf, "opensdn-webhook", now() - Duration::minutes(61)));
    }

    #[test]
    fn a_key_of_another_ca_is_rejected() {
        let (one, other) = (new_ca(), new_ca());
        let mixed = Authority::from_pem(&one.certificate, &other.key);
        assert!(matches!(mixed, Err(AuthorityError::Mismatch)));
        assert!(matches!(Authority::from_pem("", &one.key), Err(AuthorityError::Certificate)));
        assert!(matches!(Authority::from_pem(&one.certificate, "x"), Err(AuthorityError::Key(_))));
    }

    #[test]
    fn a_leaf_is_valid_only_for_the_usage_of_its_profile() {
        let ca = new_ca();
        let leaf = |usage| ca.issue(&LeafProfile { usage, ..profile() }, now()).unwrap();
        let serves = |usage| verifies(&ca, &leaf(usage), "opensdn-webhook", now());
        assert!(serves(Usage::ServerAndClient));
        assert!(!serves(Usage::Client));
    }

    #[test]
    fn every_kind_of_key_signs_and_is_read_back() {
        let kinds = [
            (KeyKind::EcdsaP256, false),
            (KeyKind::EcdsaP384, false),
            (KeyKind::Ed25519, false),
            #[cfg(feature = "rsa")]
            (KeyKind::Rsa(crate::profile::RsaBits::Bits2048), true),
        ];
        for (key, is_rsa) in kinds {
            let ca = CaProfile { key, ..CaProfile::new("test CA") };
            let ca = Authority::create(&ca, now()).unwrap();
            let leaf = ca.issue(&LeafProfile { key, ..profile() }, now()).unwrap();
            assert!(verifies(&ca, &leaf, "opensdn-webhook", now()), "{key:?}");
            let read = Identity::from_pem(leaf.certificate().as_bytes(), leaf.key().as_bytes());
            assert_eq!(read.unwrap().serial, leaf.identity.serial, "{key:?}");
            assert_eq!(crate::leaf::is_rsa(leaf.certificate()).unwrap(), is_rsa, "{key:?}");
        }
    }

    #[test]
    fn the_key_is_not_in_the_debug_form() {
        let ca = new_ca();
        let leaf = ca.issue(&profile(), now()).unwrap();
        assert!(!format!("{ca:?} {leaf:?}").contains("PRIVATE"));
    }
}
