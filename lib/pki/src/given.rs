//! A CA that a user gives (no I/O): read, and refused where it could not sign what we need.

mod chain;

use std::fmt::Write as _;

use rcgen::KeyPair;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use time::{Date, OffsetDateTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::authority::{Authority, AuthorityError};
use crate::bundle::{CERTIFICATE, in_pem};
use crate::profile::{KeyKind, LeafProfile, Usage};
use crate::{der, leaf};

/// No chain is longer. Looking at many takes long, and all services would wait for it.
pub const MOST: usize = 20;
/// Of all together.
pub const MOST_BYTES: usize = 64 << 10;

/// Why a CA cannot be used that was given.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GivenError {
    #[error("the key is encrypted: store it without a passphrase")]
    Encrypted,
    #[error(
        "the key is not PEM of a kind that can sign: convert it to PKCS#8 with `openssl pkcs8 -topk8 -nocrypt`"
    )]
    Key,
    #[error("there is no certificate in PEM")]
    NoCertificate,
    #[error(
        "there are more than {MOST} certificates, or they have more than {} KiB: give that of the CA and those above it, and no others",
        MOST_BYTES >> 10
    )]
    TooMany,
    #[error("certificate {0} is not written in DER as OpenSSL reads it: have it issued again")]
    NotCanonical(usize),
    #[error("none of the certificates is that of the key")]
    Mismatch,
    #[error(
        "the certificate is not one of a CA: it needs the basic constraint CA:TRUE, and may sign certificates"
    )]
    NotCa,
    #[error("the CA is not valid before {0}")]
    NotYetValid(Date),
    #[error("the CA expired on {0}: replace certificate and key with those of a new one")]
    Expired(Date),
    #[error(
        "the certificate of {0}, which issued it, is missing: append it and those above it up to the root, without which OpenSSL trusts nothing"
    )]
    NoRoot(String),
    #[error("the certificate of {0} expired on {1}: replace it with a new one")]
    LinkExpired(String, Date),
    #[error(
        "the extended key usage of {0} lets it sign for servers and clients not both: give a CA without one"
    )]
    Purpose(String),
    #[error("issue a certificate by it to try it")]
    Trial(#[source] AuthorityError),
    #[error(
        "certificates that it issues do not name it as it is named: give one with a plain common name"
    )]
    Name,
}

/// Reads a CA: one or more certificates, among them that of the key, and the key.
///
/// # Errors
/// They cannot be used.
pub fn given(certificates: &str, key: &str, now: OffsetDateTime) -> Result<Authority, GivenError> {
    if certificates.len() > MOST_BYTES {
        return Err(GivenError::TooMany);
    }
    let key = pkcs8(without_mark(key))?;
    let authority = with_key(without_mark(certificates), &key)?;
    check(&authority, now)?;
    Ok(authority)
}

/// Looks at the certificates of a signer whose key others have (each in PEM): there is one, and each leads up to a root that is among
/// them.
///
/// # Errors
/// OpenSSL would not trust what it signs.
pub fn check_trusted(certificates: &[String], now: OffsetDateTime) -> Result<(), GivenError> {
    if certificates.len() > MOST || certificates.iter().map(String::len).sum::<usize>() > MOST_BYTES
    {
        return Err(GivenError::TooMany);
    }
    let der = |pem: &String| CertificateDer::from_pem_slice(pem.as_bytes());
    let ders = certificates.iter().map(der).collect::<Result<Vec<_>, _>>();
    let ders = ders.map_err(|_| GivenError::NoCertificate)?;
    if let Some(at) = ders.iter().position(|der| !der::is_canonical(der)) {
        return Err(GivenError::NotCanonical(at + 1));
    }
    let parsed = ders.iter().map(|der| X509Certificate::from_der(der).map(|(_, parsed)| parsed));
    let mut all = parsed.collect::<Result<Vec<_>, _>>().map_err(|_| GivenError::NoCertificate)?;
    if all.is_empty() {
        return Err(GivenError::NoCertificate);
    }
    for _ in 0..all.len() {
        chain::check(&all, now)?;
        all.rotate_left(1);
    }
    match all.iter().find(|one| !one.is_ca()) {
        Some(_) => Err(GivenError::NotCa),
        None => Ok(()),
    }
}

/// Some editors begin a file with a byte order mark.
fn without_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

/// With the certificate of the key before the others, as it is the issuer of ours.
fn with_key(certificates: &str, key: &str) -> Result<Authority, GivenError> {
    let all =
        CertificateDer::pem_slice_iter(certificates.as_bytes()).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|_| GivenError::NoCertificate)?;
    if all.is_empty() {
        return Err(GivenError::NoCertificate);
    }
    let pem = |der: &CertificateDer<'_>| in_pem(CERTIFICATE, der.as_ref());
    for (at, one) in all.iter().enumerate() {
        match Authority::from_pem(&pem(one), key) {
            Ok(_) => {
                let others = all.iter().enumerate().filter(|(other, _)| *other != at);
                let mut bundle = pem(one);
                for (_, other) in others {
                    // Writing to a String cannot fail.
                    let _ = write!(bundle, "{}", pem(other));
                }
                return Authority::from_pem(&bundle, key).map_err(GivenError::Trial);
            }
            Err(AuthorityError::Key(_)) => return Err(GivenError::Key),
            Err(_) => {}
        }
    }
    Err(GivenError::Mismatch)
}

fn check(authority: &Authority, now: OffsetDateTime) -> Result<(), GivenError> {
    let ders = CertificateDer::pem_slice_iter(authority.certificate().as_bytes());
    let ders = ders.collect::<Result<Vec<_>, _>>().map_err(|_| GivenError::NoCertificate)?;
    let parsed = ders.iter().map(|der| X509Certificate::from_der(der).map(|(_, parsed)| parsed));
    let certificates =
        parsed.collect::<Result<Vec<_>, _>>().map_err(|_| GivenError::NoCertificate)?;
    let ca = certificates.first().ok_or(GivenError::NoCertificate)?;
    let may_sign = match ca.key_usage() {
        Ok(Some(usage)) => usage.value.key_cert_sign(),
        Ok(None) => true,
        Err(_) => false,
    };
    if !ca.is_ca() || !may_sign {
        return Err(GivenError::NotCa);
    }
    let from = ca.validity().not_before.to_datetime();
    if now < from {
        return Err(GivenError::NotYetValid(from.date()));
    }
    if authority.not_after() <= now {
        return Err(GivenError::Expired(authority.not_after().date()));
    }
    chain::check(&certificates, now)?;
    let profile = LeafProfile {
        common_name: "trial".to_owned(),
        names: vec!["trial".to_owned()],
        lifetime: time::Duration::days(1),
        usage: Usage::Server,
        key: KeyKind::default(),
    };
    let trial = authority.issue(&profile, now).map_err(GivenError::Trial)?;
    match leaf::is_issued_by(trial.certificate(), authority.certificate()) {
        Ok(true) => Ok(()),
        _ => Err(GivenError::Name),
    }
}

/// The key as all else of ours reads it. tf-operator makes keys of RSA in the older PKCS#1; cert-manager those of RSA too, and
/// those of ECDSA in SEC1, unless it is to do otherwise.
fn pkcs8(key: &str) -> Result<String, GivenError> {
    if key.contains("ENCRYPTED") {
        return Err(GivenError::Encrypted);
    }
    let der = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| GivenError::Key)?;
    let pkcs8 = match &der {
        PrivateKeyDer::Pkcs8(key) => key.secret_pkcs8_der().to_vec(),
        #[cfg(feature = "rsa")]
        PrivateKeyDer::Pkcs1(key) => from_pkcs1(key.secret_pkcs1_der())?,
        #[cfg(feature = "rsa")]
        PrivateKeyDer::Sec1(key) => from_sec1(key.secret_sec1_der())?,
        _ => return Err(GivenError::Key),
    };
    Ok(KeyPair::try_from(pkcs8).map_err(|_| GivenError::Key)?.serialize_pem())
}

#[cfg(feature = "rsa")]
fn from_pkcs1(key: &[u8]) -> Result<Vec<u8>, GivenError> {
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    let pair = aws_lc_rs::rsa::KeyPair::from_der(key).map_err(|_| GivenError::Key)?;
    let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| GivenError::Key)?;
    Ok(der.as_ref().to_vec())
}

#[cfg(feature = "rsa")]
fn from_sec1(key: &[u8]) -> Result<Vec<u8>, GivenError> {
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
    };
    let curves = [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING];
    let pair = curves.iter().find_map(|curve| EcdsaKeyPair::from_private_key_der(curve, key).ok());
    let der = pair.ok_or(GivenError::Key)?.to_pkcs8v1().map_err(|_| GivenError::Key)?;
    Ok(der.as_ref().to_vec())
}

#[cfg(test)]
mod tests;
