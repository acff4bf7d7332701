//! Whether the certificates lead from the CA up to a root. OpenSSL, which the services use, trusts no other chain.

use time::OffsetDateTime;
use x509_parser::prelude::{ParsedExtension, X509Certificate};

use super::GivenError;

/// Follows the issuers of the first certificate.
///
/// # Errors
/// One of them is missing, has expired, or may not sign for servers and clients.
pub(super) fn check(
    certificates: &[X509Certificate<'_>],
    now: OffsetDateTime,
) -> Result<(), GivenError> {
    let mut current = certificates.first().ok_or(GivenError::NoCertificate)?;
    // A chain has no more links than there are certificates; more would be a circle.
    for _ in certificates {
        check_link(current, now)?;
        if is_issuer(current, current) {
            return Ok(());
        }
        let issuer = certificates.iter().find(|one| is_issuer(one, current));
        current = issuer.ok_or_else(|| GivenError::NoRoot(current.issuer().to_string()))?;
    }
    Err(GivenError::NoRoot(current.issuer().to_string()))
}

fn check_link(one: &X509Certificate<'_>, now: OffsetDateTime) -> Result<(), GivenError> {
    let until = one.validity().not_after.to_datetime();
    if until <= now {
        return Err(GivenError::LinkExpired(one.subject().to_string(), until.date()));
    }
    let may_sign = match one.extended_key_usage() {
        Ok(Some(usage)) => usage.value.any || (usage.value.server_auth && usage.value.client_auth),
        Ok(None) => true,
        Err(_) => false,
    };
    if may_sign { Ok(()) } else { Err(GivenError::Purpose(one.subject().to_string())) }
}

fn is_issuer(issuer: &X509Certificate<'_>, of: &X509Certificate<'_>) -> bool {
    let is_named = of.issuer().as_raw() == issuer.subject().as_raw();
    // Two CAs may have one name. Not all say which key signed.
    let own = key(issuer, |one| match one {
        ParsedExtension::SubjectKeyIdentifier(found) => Some(found.0),
        _ => None,
    });
    let signer = key(of, |one| match one {
        ParsedExtension::AuthorityKeyIdentifier(found) => Some(found.key_identifier.as_ref()?.0),
        _ => None,
    });
    is_named && (own.is_none() || signer.is_none() || own == signer)
}

fn key<'a>(
    of: &'a X509Certificate<'_>,
    read: impl Fn(&'a ParsedExtension<'a>) -> Option<&'a [u8]>,
) -> Option<&'a [u8]> {
    of.extensions().iter().find_map(|extension| read(extension.parsed_extension()))
}
