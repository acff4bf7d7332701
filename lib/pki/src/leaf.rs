//! A certificate that was issued before: whether it is still the one that is wanted, and when it is due.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use time::OffsetDateTime;
use x509_parser::oid_registry::OID_PKCS1_RSAENCRYPTION;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate, X509Extension};

use crate::identity::{Identity, IdentityError, crypto_provider};
use crate::profile::Usage;

/// Why another certificate is needed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LeafError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("parse certificate: not X.509")]
    X509,
    #[error("it was issued by another CA")]
    Issuer,
    #[error("it has other names")]
    Names,
}

/// From when a certificate is valid, when it should be replaced, and when it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Its begin. Our CAs make it [`CLOCK_SKEW`](crate::authority::CLOCK_SKEW) later, other signers at this time or later.
    pub from: OffsetDateTime,
    /// At two thirds of its life.
    pub due: OffsetDateTime,
    /// Its end.
    pub until: OffsetDateTime,
}

/// When a certificate that the CA issued for `names` should be replaced. All three are PEM.
///
/// # Errors
/// It cannot be used any more: it or its key cannot be read, they do not belong together, another CA issued
/// it, or it has other names.
pub fn times(certificate: &str, key: &str, ca: &str, names: &[String]) -> Result<Times, LeafError> {
    Identity::from_pem(certificate.as_bytes(), key.as_bytes())?;
    let der = der(certificate)?;
    let leaf = parse(&der)?;
    if !is_issuer(&leaf, ca)? {
        return Err(LeafError::Issuer);
    }
    if names_of(&leaf) != names.iter().cloned().collect() {
        return Err(LeafError::Names);
    }
    let validity = leaf.validity();
    let (from, until) = (validity.not_before.to_datetime(), validity.not_after.to_datetime());
    Ok(Times { from, due: from + (until - from) * 2 / 3, until })
}

/// Whether it was the key of that CA that signed the certificate: names can be anything. Both are PEM.
///
/// # Errors
/// One of them is no certificate.
pub fn is_signed_by(certificate: &str, ca: &str) -> Result<bool, LeafError> {
    let (leaf, ca) = (der(certificate)?, der(ca)?);
    let (leaf, ca) = (parse(&leaf)?, parse(&ca)?);
    let key = &*ca.public_key().subject_public_key.data;
    let (what, signature) = (leaf.tbs_certificate.as_ref(), &*leaf.signature_value.data);
    // One for another kind of key fails.
    let known = crypto_provider().signature_verification_algorithms.all;
    Ok(known.iter().any(|one| one.verify_signature(key, what, signature).is_ok()))
}

/// Whether that CA issued the certificate. Both are PEM.
///
/// # Errors
/// One of them is no certificate.
pub fn is_issued_by(certificate: &str, ca: &str) -> Result<bool, LeafError> {
    is_issuer(&parse(&der(certificate)?)?, ca)
}

/// Whether its key is one of RSA. The certificate is PEM.
///
/// # Errors
/// It is no certificate.
pub fn is_rsa(certificate: &str) -> Result<bool, LeafError> {
    let der = der(certificate)?;
    Ok(parse(&der)?.public_key().algorithm.algorithm == OID_PKCS1_RSAENCRYPTION)
}

/// Whether its key may sign in a handshake, and issue nothing. The certificate is PEM.
///
/// # Errors
/// It is no certificate.
pub fn is_of_end_entity(certificate: &str) -> Result<bool, LeafError> {
    let der = der(certificate)?;
    let leaf = parse(&der)?;
    let usage = leaf.key_usage().map_err(|_| LeafError::X509)?;
    let signs = usage.is_none_or(|usage| usage.value.digital_signature());
    Ok(signs && !leaf.is_ca())
}

/// Whether a certificate (PEM) may be shown on that side of a connection. One that says nothing of it may be on both.
///
/// # Errors
/// It is no certificate.
pub fn serves_as(certificate: &str, usage: Usage) -> Result<bool, LeafError> {
    let der = der(certificate)?;
    let leaf = parse(&der)?;
    let purposes = leaf.extended_key_usage().map_err(|_| LeafError::X509)?;
    let Some(purposes) = purposes.map(|purposes| purposes.value) else { return Ok(true) };
    let (server, client) = match usage {
        Usage::Server => (true, false),
        Usage::Client => (false, true),
        Usage::ServerAndClient => (true, true),
    };
    let has = |is_set: bool| is_set || purposes.any;
    Ok((!server || has(purposes.server_auth)) && (!client || has(purposes.client_auth)))
}

/// Two CAs that were made in the same second have the same name, but not the same key. Not all say which key signed.
fn is_issuer(leaf: &X509Certificate<'_>, ca: &str) -> Result<bool, LeafError> {
    let ca = der(ca)?;
    let ca = parse(&ca)?;
    let is_key = match (authority_key(leaf), own_key(&ca)) {
        (Some(signer), Some(own)) => signer == own,
        _ => true,
    };
    Ok(leaf.issuer().as_raw() == ca.subject().as_raw() && is_key)
}

fn der(pem: &str) -> Result<CertificateDer<'static>, LeafError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| LeafError::X509)
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, LeafError> {
    let (_, parsed) = X509Certificate::from_der(der).map_err(|_| LeafError::X509)?;
    Ok(parsed)
}

fn authority_key<'a>(leaf: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    leaf.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(found) => Some(found.key_identifier.as_ref()?.0),
        _ => None,
    })
}

fn own_key<'a>(ca: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    ca.extensions().iter().find_map(|extension: &X509Extension<'_>| {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(found) => Some(found.0),
            _ => None,
        }
    })
}

fn names_of(leaf: &X509Certificate<'_>) -> BTreeSet<String> {
    let names = leaf.subject_alternative_name().ok().flatten();
    let names = names.into_iter().flat_map(|names| names.value.general_names.iter());
    names
        .filter_map(|name| match name {
            // Who looks for an address does not find it there.
            GeneralName::DNSName(name) if name.parse::<IpAddr>().is_ok() => {
                Some(format!("DNS:{name}"))
            }
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
            _ => None,
        })
        .collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;
    use crate::authority::{Authority, CLOCK_SKEW};
    use crate::profile::{CaProfile, KeyKind, LeafProfile};

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    fn ca() -> Authority {
        Authority::create(&CaProfile::new("test CA"), now()).unwrap()
    }

    fn names() -> Vec<String> {
        ["host.example.org", "192.0.2.7", "2001:db8::1"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_certificate_is_due_when_it_was_said_to_be() {
        let ca = ca();
        let leaf = ca.issue(&LeafProfile::server("a", names()), now()).unwrap();
        let Times { from, due, until } =
            times(leaf.certificate(), leaf.key(), ca.certificate(), &names()).unwrap();
        assert!(until > due);
        assert_eq!(from, now() - CLOCK_SKEW, "it is valid from a little earlier than it was made");
        assert!((leaf.renew_at - due).abs() < Duration::hours(2), "{due} {}", leaf.renew_at);
    }

    #[test]
    fn another_ca_other_names_and_another_key_are_seen() {
        let ca = ca();
        let leaf = ca.issue(&LeafProfile::server("a", names()), now()).unwrap();
        let of_other = times(leaf.certificate(), leaf.key(), self::ca().certificate(), &names());
        assert!(matches!(of_other, Err(LeafError::Issuer)), "{of_other:?}");
        assert!(is_issued_by(leaf.certificate(), ca.certificate()).unwrap());
        assert!(!is_issued_by(leaf.certificate(), self::ca().certificate()).unwrap());
        let fewer = times(leaf.certificate(), leaf.key(), ca.certificate(), &names()[1..]);
        assert!(matches!(fewer, Err(LeafError::Names)), "{fewer:?}");
        let other = ca.issue(&LeafProfile::server("a", names()), now()).unwrap();
        let mixed = times(leaf.certificate(), other.key(), ca.certificate(), &names());
        assert!(matches!(mixed, Err(LeafError::Identity(_))), "{mixed:?}");
        assert!(times("", leaf.key(), ca.certificate(), &names()).is_err());
    }

    #[test]
    fn only_what_the_key_of_a_ca_has_signed_is_its_own() {
        let kinds = [
            KeyKind::EcdsaP256,
            #[cfg(feature = "rsa")]
            KeyKind::Rsa(crate::profile::RsaBits::Bits2048),
        ];
        for key in kinds {
            let profile = CaProfile { key, ..CaProfile::new("test CA") };
            let ca = || Authority::create(&profile, now()).unwrap();
            let (ca, twin) = (ca(), ca());
            let leaf = ca.issue(&LeafProfile::server("a", names()), now()).unwrap();
            let by = |ca: &Authority| is_signed_by(leaf.certificate(), ca.certificate()).unwrap();
            assert!(by(&ca) && !by(&twin), "of a CA of the same name it is none");
        }
        assert!(is_signed_by("", ca().certificate()).is_err());
    }

    #[test]
    fn a_certificate_for_one_side_is_known_as_such() {
        let ca = ca();
        let of = |usage| {
            let profile = LeafProfile { usage, ..LeafProfile::server("a", names()) };
            let leaf = ca.issue(&profile, now()).unwrap();
            [Usage::Server, Usage::Client, Usage::ServerAndClient]
                .map(|usage| serves_as(leaf.certificate(), usage).unwrap())
        };
        assert_eq!(of(Usage::Server), [true, false, false]);
        assert_eq!(of(Usage::Client), [false, true, false]);
        assert_eq!(of(Usage::ServerAndClient), [true; 3]);
        assert!(serves_as(ca.certificate(), Usage::ServerAndClient).unwrap(), "it says nothing");
        assert!(serves_as("", Usage::Client).is_err());
        let leaf = ca.issue(&LeafProfile::server("a", names()), now()).unwrap();
        assert!(is_of_end_entity(leaf.certificate()).unwrap());
        assert!(!is_of_end_entity(ca.certificate()).unwrap());
    }
}
