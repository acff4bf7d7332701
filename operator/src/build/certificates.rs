//! The Secret with the certificates of the pods: for each address one for its server and one for its
//! clients, with their keys, as tf-operator names them. What is good is kept; only what is missing or
//! due is issued.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;
use opensdn_pki::leaf::{self, Times};
use opensdn_pki::{Authority, AuthorityError, KeyKind, LeafProfile, Usage};
use time::{Duration, OffsetDateTime};

use super::Owner;

/// The keys of the Secret.
pub type Data = BTreeMap<String, ByteString>;

/// Renewed at two thirds.
const LIFETIME: Duration = Duration::days(365);

/// An address that has certificates, and the names by which it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The address.
    pub address: String,
    /// The name of its node.
    pub host: Option<String>,
}

/// The certificates of all pods.
#[derive(Debug)]
pub struct Certificates {
    /// What the Secret shall hold.
    pub data: Data,
    /// When the first is due.
    pub renew_at: OffsetDateTime,
    /// When the first expires.
    pub expires_at: OffsetDateTime,
    /// How many are new.
    pub issued: usize,
}

/// Keeps the certificates of the Secret that are good, and issues the others.
///
/// # Errors
/// A certificate cannot be made.
pub fn certificates(
    stored: Option<&DynamicObject>,
    subjects: &[Subject],
    authority: &Authority,
    now: OffsetDateTime,
) -> Result<Certificates, AuthorityError> {
    let stored: Data = stored
        .and_then(|secret| secret.data.get("data"))
        .and_then(|data| serde_json::from_value(data.clone()).ok())
        .unwrap_or_default();
    let end = now + LIFETIME;
    let mut all = Certificates { data: Data::new(), renew_at: end, expires_at: end, issued: 0 };
    for Subject { address, host } in subjects {
        let names: Vec<String> = host.iter().chain([address]).cloned().collect();
        for (side, usage) in [("server", Usage::ServerAndClient), ("client", Usage::Client)] {
            let keys = (format!("{side}-{address}.crt"), format!("{side}-key-{address}.pem"));
            let text = |key: &str| std::str::from_utf8(&stored.get(key)?.0).ok();
            let times = text(&keys.0).zip(text(&keys.1)).and_then(|(certificate, key)| {
                leaf::times(certificate, key, authority, &names).ok()
            });
            if let Some(Times { due, until }) = times.filter(|times| times.due > now) {
                for key in [&keys.0, &keys.1] {
                    let value = stored.get(key).cloned().unwrap_or_default();
                    all.data.insert(key.clone(), value);
                }
                all.renew_at = all.renew_at.min(due);
                all.expires_at = all.expires_at.min(until);
                continue;
            }
            let profile = LeafProfile {
                common_name: address.clone(),
                names: names.clone(),
                lifetime: LIFETIME,
                usage,
                key: KeyKind::default(),
            };
            let leaf = authority.issue(&profile, now)?;
            let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
            all.data.insert(keys.0, bytes(leaf.certificate()));
            all.data.insert(keys.1, bytes(leaf.key()));
            all.renew_at = all.renew_at.min(leaf.renew_at);
            all.issued += 1;
        }
    }
    Ok(all)
}

pub(super) fn build(owner: &Owner<'_>, data: Data) -> Secret {
    Secret {
        metadata: owner.metadata(owner.valid.instance.certificates()),
        data: Some(data),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use opensdn_pki::CaProfile;
    use serde_json::json;

    use super::*;

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    fn authority() -> Authority {
        Authority::create(&CaProfile::new("test CA"), now()).unwrap()
    }

    fn subject(address: &str) -> Subject {
        Subject { address: address.to_owned(), host: Some(format!("host-of-{address}")) }
    }

    fn stored(all: &Certificates) -> DynamicObject {
        let secret = json!({"metadata": {"name": "a"}, "data": all.data});
        serde_json::from_value(secret).unwrap()
    }

    #[test]
    fn each_address_has_four_entries_as_tf_operator_names_them() {
        let all = certificates(None, &[subject("192.0.2.1")], &authority(), now()).unwrap();
        let keys: Vec<_> = all.data.keys().map(String::as_str).collect();
        let expected = [
            "client-192.0.2.1.crt",
            "client-key-192.0.2.1.pem",
            "server-192.0.2.1.crt",
            "server-key-192.0.2.1.pem",
        ];
        assert_eq!((keys.as_slice(), all.issued), (expected.as_slice(), 2));
    }

    #[test]
    fn what_is_good_is_kept_when_a_member_comes_or_goes() {
        let authority = authority();
        let subjects = [subject("192.0.2.1"), subject("192.0.2.2")];
        let one = certificates(None, &subjects[..1], &authority, now()).unwrap();
        let two = certificates(Some(&stored(&one)), &subjects, &authority, now()).unwrap();
        assert_eq!(two.issued, 2);
        assert!(one.data.iter().all(|(key, value)| two.data.get(key) == Some(value)));
        let again = certificates(Some(&stored(&two)), &subjects, &authority, now()).unwrap();
        assert_eq!((again.issued, &again.data), (0, &two.data));
        let less = certificates(Some(&stored(&two)), &subjects[1..], &authority, now()).unwrap();
        assert_eq!((less.issued, less.data.len()), (0, 4));
    }

    #[test]
    fn certificates_are_renewed_at_two_thirds_of_their_life() {
        let (authority, subjects) = (authority(), [subject("192.0.2.1")]);
        let first = certificates(None, &subjects, &authority, now()).unwrap();
        let later = |days| {
            let now = now() + Duration::days(days);
            certificates(Some(&stored(&first)), &subjects, &authority, now).unwrap().issued
        };
        assert_eq!((later(242), later(244)), (0, 2));
        let again = certificates(Some(&stored(&first)), &subjects, &authority, now());
        assert!((again.unwrap().expires_at - now() - LIFETIME).abs() < Duration::days(1));
        let expected = now() + Duration::days(243);
        assert!((first.renew_at - expected).abs() < Duration::days(1), "{}", first.renew_at);
    }

    #[test]
    fn what_another_ca_signed_or_somebody_spoilt_is_issued_again() {
        let (authority, subjects) = (authority(), [subject("192.0.2.1")]);
        let all = certificates(None, &subjects, &authority, now()).unwrap();
        let other = self::authority();
        let of_other = certificates(Some(&stored(&all)), &subjects, &other, now()).unwrap();
        assert_eq!(of_other.issued, 2);
        let mut spoilt = stored(&all);
        let data = &mut spoilt.data["data"];
        data["server-key-192.0.2.1.pem"] = data["client-key-192.0.2.1.pem"].clone();
        assert_eq!(certificates(Some(&spoilt), &subjects, &authority, now()).unwrap().issued, 1);
        let renamed = [Subject { host: Some("another".to_owned()), ..subject("192.0.2.1") }];
        assert_eq!(
            certificates(Some(&stored(&all)), &renamed, &authority, now()).unwrap().issued,
            2
        );
    }
}
