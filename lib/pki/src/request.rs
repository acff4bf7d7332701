//! A certificate that another signer issues (no I/O): its key, and the request by which it is asked for.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, KeyUsagePurpose};

use crate::authority::AuthorityError;
use crate::profile::{KeyKind, LeafProfile};

/// What a signer is asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningRequest {
    /// PKCS #10, in PEM. It has no key.
    pub pem: String,
    /// The public key: by it two requests are known to be for one key.
    pub public_key: Vec<u8>,
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
    let pem = request.pem().map_err(AuthorityError::Make)?;
    let usages = profile.key.usages().into_iter().filter_map(|usage| match usage {
        KeyUsagePurpose::DigitalSignature => Some("digital signature"),
        KeyUsagePurpose::KeyAgreement => Some("key agreement"),
        KeyUsagePurpose::KeyEncipherment => Some("key encipherment"),
        _ => None,
    });
    Ok(SigningRequest { pem, public_key: key.public_key_raw().to_vec(), usages: usages.collect() })
}

#[cfg(test)]
mod tests {
    use x509_parser::certification_request::X509CertificationRequest;
    use x509_parser::extensions::ParsedExtension;
    use x509_parser::prelude::FromDer as _;

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
            assert_ne!(asked.public_key, other.public_key);
            assert_eq!(asked.public_key, request(&profile(kind), &key).unwrap().public_key);
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

    #[test]
    fn what_is_no_key_is_an_error() {
        let profile = profile(KeyKind::EcdsaP256);
        assert!(matches!(request(&profile, "no key"), Err(AuthorityError::Key(_))));
    }
}
