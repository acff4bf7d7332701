//! A certificate that another signer issues (no I/O): its key, and the request by which it is asked for.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, KeyUsagePurpose};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::authority::AuthorityError;
use crate::bundle::in_pem;
use crate::profile::{KeyKind, LeafProfile};

const REQUEST: &str = "CERTIFICATE REQUEST";

/// What a signer is asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningRequest {
    /// PKCS #10, in PEM. It has no key.
    pub pem: String,
    /// What is asked for: names, usages and the public key, in DER. Two requests for the same have the same, though each is signed
    /// anew.
    pub content: Vec<u8>,
    /// What the key may be used for, in the words of `certificates.k8s.io`, without the sides of a connection.
    pub usages: Vec<&'static str>,
}

/// A new key, in PEM.
///
/// # Errors
/// There is no randomness.
pub fn new_key(kind: KeyKind) -> Result<String, AuthorityError> {
    Ok(kind.generate().map_err(AuthorityError::Make)?.serialize_pem())
}

/// The request for a certificate with that key (PEM), for the names and usages of the profile. How long the certificate is to last
/// is no part of it.
///
/// # Errors
/// The key cannot be read, or a name cannot be written in a request.
pub fn request(profile: &LeafProfile, key: &str) -> Result<SigningRequest, AuthorityError> {
    let key = KeyPair::from_pem(key).map_err(AuthorityError::Key)?;
    let params = CertificateParams::new(profile.names.clone());
    let mut params = params.map_err(AuthorityError::Make)?;
    params.key_usages = profile.key.usages();
    params.extended_key_usages = profile.usage.purposes();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, &*profile.common_name);
    let request = params.serialize_request(&key).map_err(AuthorityError::Make)?;
    let pem = in_pem(REQUEST, request.der());
    let usages = profile.key.usages().into_iter().filter_map(|usage| match usage {
        KeyUsagePurpose::DigitalSignature => Some("digital signature"),
        KeyUsagePurpose::KeyAgreement => Some("key agreement"),
        KeyUsagePurpose::KeyEncipherment => Some("key encipherment"),
        _ => None,
    });
    let content = content(pem.as_bytes()).ok_or(AuthorityError::Request)?;
    Ok(SigningRequest { pem, content, usages: usages.collect() })
}

/// What a request (PEM) asks for, as [`SigningRequest::content`]. None, if it is no request, or not written byte for byte as ours are:
/// of a text with two, or with anything around one, readers of PEM disagree which it is.
#[must_use]
pub fn content(request: &[u8]) -> Option<Vec<u8>> {
    let der = pem::parse(request).ok()?;
    if in_pem(REQUEST, der.contents()).as_bytes() != request {
        return None;
    }
    let (rest, request) = X509CertificationRequest::from_der(der.contents()).ok()?;
    rest.is_empty().then(|| request.certification_request_info.raw.to_vec())
}

/// Whether it is a key (PEM) of that kind. Of RSA any length will do.
#[must_use]
pub fn is_key(key: &str, kind: KeyKind) -> bool {
    KeyPair::from_pem(key).is_ok_and(|key| kind.is_of(&key))
}

#[cfg(test)]
mod tests {
    use x509_parser::extensions::ParsedExtension;

    use super::*;
    use crate::profile::Usage;

    fn profile(key: KeyKind) -> LeafProfile {
        let names = ["host-1", "192.0.2.7"].map(str::to_owned).to_vec();
        LeafProfile {
            key,
            usage: Usage::ServerAndClient,
            ..LeafProfile::server("192.0.2.7", names)
        }
    }

    #[test]
    fn a_request_has_names_and_usages_and_no_key() {
        for kind in [
            KeyKind::EcdsaP256,
            #[cfg(feature = "rsa")]
            KeyKind::Rsa(crate::profile::RsaBits::Bits2048),
        ] {
            let key = new_key(kind).unwrap();
            let asked = request(&profile(kind), &key).unwrap();
            let other = request(&profile(kind), &new_key(kind).unwrap()).unwrap();
            assert_ne!(asked.content, other.content, "it is for another key");
            assert_eq!(asked.content, request(&profile(kind), &key).unwrap().content);
            let mut more = profile(kind);
            more.names.push("host-2".to_owned());
            assert_ne!(asked.content, request(&more, &key).unwrap().content);
            assert!(is_key(&key, kind));
            let der = pem::parse(&asked.pem).unwrap();
            assert_eq!(der.tag(), "CERTIFICATE REQUEST");
            let (_, read) = X509CertificationRequest::from_der(der.contents()).unwrap();
            let all: Vec<String> =
                read.requested_extensions().unwrap().map(|one| format!("{one:?}")).collect();
            let all = all.join("\n");
            assert!(all.contains("host-1") && all.contains("[192, 0, 2, 7]"), "{all}");
            let purposes = read.requested_extensions().unwrap().find_map(|one| match one {
                ParsedExtension::ExtendedKeyUsage(usage) => {
                    Some((usage.server_auth, usage.client_auth))
                }
                _ => None,
            });
            assert_eq!(purposes, Some((true, true)));
            assert!(!asked.pem.contains("PRIVATE"));
        }
    }

    #[cfg(feature = "rsa")]
    #[test]
    fn a_key_of_another_kind_is_known() {
        let rsa = KeyKind::Rsa(crate::profile::RsaBits::Bits2048);
        let longer = KeyKind::Rsa(crate::profile::RsaBits::Bits3072);
        let (one, other) = (new_key(rsa).unwrap(), new_key(KeyKind::EcdsaP256).unwrap());
        assert!(is_key(&one, longer) && !is_key(&one, KeyKind::EcdsaP256) && !is_key(&other, rsa));
    }

    #[test]
    fn of_a_text_with_two_requests_or_more_than_one_nothing_is_read() {
        let kind = KeyKind::EcdsaP256;
        let ours = request(&profile(kind), &new_key(kind).unwrap()).unwrap();
        let theirs = request(&profile(kind), &new_key(kind).unwrap()).unwrap();
        assert_eq!(content(ours.pem.as_bytes()), Some(ours.content));
        // Go takes what is at the start of a line, and this library the first.
        let hidden = format!("x{}\n{}", ours.pem, theirs.pem);
        let both = format!("{}{}", ours.pem, theirs.pem);
        let windows = ours.pem.replace('\n', "\r\n");
        for text in [hidden, both, windows, format!("{}x", ours.pem), format!("\n{}", ours.pem)] {
            assert_eq!(content(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_key_is_an_error() {
        let profile = profile(KeyKind::EcdsaP256);
        assert!(matches!(request(&profile, "no key"), Err(AuthorityError::Key(_))));
        assert!(!is_key("no key", KeyKind::EcdsaP256) && content(b"no request").is_none());
    }
}
