//! A certificate that was issued before: whether it is still the one that is wanted, and when it is due.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use time::OffsetDateTime;
use x509_parser::oid_registry::OID_PKCS1_RSAENCRYPTION;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate, X509Extension};

use crate::authority::CLOCK_SKEW;
use crate::identity::{Identity, IdentityError};

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

/// When a certificate was made, should be replaced, and has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it was made.
    pub issued: OffsetDateTime,
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
    Ok(Times { issued: from + CLOCK_SKEW, due: from + (until - from) * 2 / 3, until })
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

/// Two CAs that were made in the same second have the same name, but not the same key.
fn is_issuer(leaf: &X509Certificate<'_>, ca: &str) -> Result<bool, LeafError> {
    let ca = der(ca)?;
    let ca = parse(&ca)?;
    Ok(leaf.issuer().as_raw() == ca.subject().as_raw() && authority_key(leaf) == own_key(&ca))
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
    use crate::authority::Authority;
    use crate::profile::{CaProfile, LeafProfile};

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
        let Times { issued, due, until } =
            times(leaf.certificate(), leaf.key(), ca.certificate(), &names()).unwrap();
        assert!(until > due);
        assert_eq!(issued, now());
        // It is valid from a little earlier than it was made.
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
}
