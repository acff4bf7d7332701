//! CAs as users have them, good and bad.

use pem::Pem;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyUsagePurpose};
use time::Duration;

use super::*;
use crate::profile::CaProfile;

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

/// A company's root, with more than a common name.
fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CountryName, "DE");
    params.distinguished_name.push(DnType::OrganizationName, "Größte Firma");
    params.distinguished_name.push(DnType::CommonName, "Root 1");
    params.not_before = now() - Duration::days(1);
    params.not_after = now() + Duration::days(100);
    params
}

fn signed(params: &CertificateParams, key: &KeyPair) -> (String, String) {
    (params.self_signed(key).unwrap().pem(), key.serialize_pem())
}

fn root() -> (String, String) {
    signed(&params(), &KeyPair::generate().unwrap())
}

fn message(certificates: &str, key: &str) -> String {
    given(certificates, key, now()).unwrap_err().to_string()
}

#[test]
fn a_ca_that_is_given_signs() {
    let (certificate, key) = root();
    let authority = given(&certificate, &key, now()).unwrap();
    assert_eq!(authority.not_after(), now() + Duration::days(100));
    // As it is, so that it is known again.
    assert_eq!(authority.certificate(), certificate);
}

#[test]
fn of_several_certificates_that_of_the_key_comes_first() {
    let (root, root_key) = root();
    let issuer = KeyPair::from_pem(&root_key).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(&root, issuer).unwrap();
    let mut params = params();
    params.distinguished_name.push(DnType::CommonName, "Intermediate");
    let key = KeyPair::generate().unwrap();
    let intermediate = params.signed_by(&key, &issuer).unwrap().pem();
    let bundle = format!("{root}{intermediate}");
    let authority = given(&bundle, &key.serialize_pem(), now()).unwrap();
    assert_eq!(authority.certificate(), format!("{intermediate}{root}"));
}

#[test]
fn the_certificates_lead_up_to_a_root_each_of_which_may_sign_for_servers_and_clients() {
    let chain = |root_params: CertificateParams, change: fn(&mut CertificateParams)| {
        let (root, root_key) = signed(&root_params, &KeyPair::generate().unwrap());
        let issuer = KeyPair::from_pem(&root_key).unwrap();
        let issuer = rcgen::Issuer::from_ca_cert_pem(&root, issuer).unwrap();
        let mut params = params();
        params.distinguished_name.push(DnType::CommonName, "Intermediate");
        params.use_authority_key_identifier_extension = true;
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &issuer).unwrap().pem(), root, key.serialize_pem())
    };
    let (intermediate, root, key) = chain(params(), |_| {});
    let alone = message(&intermediate, &key);
    assert!(alone.contains("Root 1") && alone.contains("append it"), "{alone}");
    let (_, other, _) = chain(params(), |_| {});
    let wrong = message(&format!("{intermediate}{other}"), &key);
    assert!(wrong.contains("append it"), "another root of that name is not the issuer: {wrong}");
    given(&format!("{root}{intermediate}"), &key, now()).unwrap();

    let mut expired = params();
    expired.not_after = now() - Duration::hours(1);
    let (intermediate, root, key) = chain(expired, |_| {});
    let said = message(&format!("{intermediate}{root}"), &key);
    assert!(said.contains("Root 1") && said.contains("expired on 2027-01-1"), "{said}");

    let servers = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    };
    let (intermediate, root, key) = chain(params(), servers);
    let said = message(&format!("{intermediate}{root}"), &key);
    assert!(said.contains("extended key usage of") && said.contains("Intermediate"), "{said}");
    let both = |params: &mut CertificateParams| {
        use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        params.extended_key_usages = vec![ServerAuth, ClientAuth];
    };
    let (intermediate, root, key) = chain(params(), both);
    given(&format!("{intermediate}{root}"), &key, now()).unwrap();
}

#[test]
fn a_mark_that_editors_write_is_no_part_of_the_pem() {
    let (certificate, key) = root();
    given(&format!("\u{feff}{certificate}"), &format!("\u{feff}{key}"), now()).unwrap();
}

#[cfg(feature = "rsa")]
#[test]
fn a_key_of_rsa_may_be_in_the_form_that_tf_operator_writes() {
    /// Before the key itself, of 2,048 bits.
    const PKCS8_HEADER: usize = 26;
    let key = KeyKind::Rsa(crate::RsaBits::Bits2048).generate().unwrap();
    let (certificate, _) = signed(&params(), &key);
    let pkcs1 = key.serialize_der().split_off(PKCS8_HEADER);
    let pkcs1 = pem::encode(&Pem::new("RSA PRIVATE KEY", pkcs1));
    given(&certificate, &pkcs1, now()).unwrap();
}

/// SEC1 is what is within PKCS#8: RFC 5958 has it in an octet string behind the algorithm.
#[cfg(feature = "rsa")]
#[test]
fn a_key_of_ecdsa_may_be_in_the_form_that_cert_manager_writes() {
    use aws_lc_rs::encoding::{AsDer as _, EcPrivateKeyRfc5915Der};
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    let key = KeyPair::generate().unwrap();
    let (certificate, _) = signed(&params(), &key);
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &key.serialize_der());
    let pair = pair.unwrap();
    let private = pair.private_key();
    let sec1: EcPrivateKeyRfc5915Der<'_> = private.as_der().unwrap();
    let sec1 = pem::encode(&Pem::new("EC PRIVATE KEY", sec1.as_ref()));
    given(&certificate, &sec1, now()).unwrap();
}

#[test]
fn what_cannot_sign_is_refused_with_what_to_do() {
    let (certificate, key) = root();
    let (other, _) = root();
    assert!(message(&other, &key).contains("none of the certificates is that of the key"));
    assert!(message("", &key).contains("no certificate"));
    assert!(message(&certificate, "").contains("openssl pkcs8"));
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----";
    assert!(message(&certificate, encrypted).contains("without a passphrase"));
    let sec1 = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----";
    assert!(message(&certificate, sec1).contains("openssl pkcs8"));

    let changed = |change: fn(&mut CertificateParams)| {
        let mut params = params();
        params.use_authority_key_identifier_extension = true;
        change(&mut params);
        let (certificate, key) = signed(&params, &KeyPair::generate().unwrap());
        message(&certificate, &key)
    };
    assert!(changed(|params| params.is_ca = IsCa::NoCa).contains("CA:TRUE"));
    let signs_nothing = |params: &mut CertificateParams| {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    };
    assert!(changed(signs_nothing).contains("may sign certificates"));
    assert!(
        changed(|params| params.not_before = now() + Duration::days(1))
            .contains("not valid before")
    );
    assert!(changed(|params| params.not_after = now() - Duration::hours(1)).contains("expired on"));
}

#[test]
fn no_text_of_the_key_is_in_a_message() {
    let (certificate, _) = root();
    let secret = "c2VjcmV0LW9mLXRoZS11c2Vy";
    let key = format!("-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n");
    let error = given(&certificate, &key, now()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(secret));
}

#[test]
fn what_we_make_ourselves_could_be_given() {
    let made = Authority::create(&CaProfile::new("test CA"), now()).unwrap();
    assert_eq!(given(made.certificate(), made.key(), now()).unwrap(), made);
}
