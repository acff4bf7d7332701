//! The Secret with the certificates of the pods: for each address one for its server and one for its
//! clients, with their keys, as tf-operator names them. What is good is kept. What is missing or cannot be used is
//! issued at once; what is due, or of a CA that is to go, in turn: who reads a new certificate starts again, and not all
//! at once.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;
use opensdn_pki::leaf::{self, LeafError, Times};
use opensdn_pki::{Authorities, Authority, AuthorityError, KeyKind, LeafProfile, Usage};
use time::{Duration, OffsetDateTime};

use super::Owner;

/// The keys of the Secret.
pub type Data = BTreeMap<String, ByteString>;

/// Renewed at two thirds.
const LIFETIME: Duration = Duration::days(365);
/// Between two turns: until a daemon has the new certificate and serves again.
const PAUSE: Duration = Duration::minutes(3);
/// With less left than this it is renewed whether or not all pods are ready.
const URGENT: Duration = Duration::days(30);
/// Of so many addresses one has its turn at a time.
const IN_TURN: usize = 20;
/// Until it is looked at again whether all pods are ready.
const LOOK_AGAIN: Duration = Duration::minutes(1);

const SIDES: [(&str, Usage); 2] = [("server", Usage::ServerAndClient), ("client", Usage::Client)];

/// An address that has certificates, and the names by which it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The address.
    pub address: String,
    /// The name of its node.
    pub host: Option<String>,
}

/// The certificates of all pods.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// What the Secret shall hold.
    pub data: Data,
    /// When it is to be looked at again.
    pub renew_at: OffsetDateTime,
    /// When the first expires.
    pub expires_at: OffsetDateTime,
    /// How many are new.
    pub issued: usize,
    /// When the newest of an address was issued.
    pub issued_at: BTreeMap<String, OffsetDateTime>,
}

/// What is stored of an address, for one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing that can be used.
    Nothing,
    /// It is to be replaced in turn.
    Due(Times),
    Good(Times),
}

/// Keeps the certificates of the Secret that are good, and issues the others. What is due has its turn only while
/// the pods are ready.
///
/// # Errors
/// A certificate cannot be made.
pub fn certificates(
    stored: Option<&DynamicObject>,
    subjects: &[Subject],
    authorities: &Authorities,
    now: OffsetDateTime,
    are_ready: bool,
) -> Result<Certificates, AuthorityError> {
    let stored: Data = stored
        .and_then(|secret| secret.data.get("data"))
        .and_then(|data| serde_json::from_value(data.clone()).ok())
        .unwrap_or_default();
    let found: Vec<[Found; 2]> = subjects
        .iter()
        .map(|subject| SIDES.map(|(side, _)| find(&stored, subject, side, authorities, now)))
        .collect();
    let end = now + LIFETIME;
    let (turn, next_turn) = turn(&found, now, are_ready);
    let mut all = Certificates {
        data: Data::new(),
        renew_at: next_turn.unwrap_or(end),
        expires_at: end,
        issued: 0,
        issued_at: BTreeMap::new(),
    };
    for (number, (subject, found)) in subjects.iter().zip(&found).enumerate() {
        for ((side, usage), found) in SIDES.iter().zip(found) {
            match found {
                Found::Good(times) => all.keep(&stored, subject, side, *times, Some(times.due)),
                Found::Due(times) if !turn.contains(&number) => {
                    all.keep(&stored, subject, side, *times, None);
                }
                Found::Due(_) | Found::Nothing => {
                    all.issue(subject, side, *usage, &authorities.current, now)?;
                }
            }
        }
    }
    Ok(all)
}

/// Whose turn it is, by their places, and when the next is, if somebody waits for one.
fn turn(
    found: &[[Found; 2]],
    now: OffsetDateTime,
    are_ready: bool,
) -> (Vec<usize>, Option<OffsetDateTime>) {
    let is_due = |sides: &[Found; 2]| sides.iter().any(|one| matches!(one, Found::Due(_)));
    let due: Vec<usize> = found
        .iter()
        .enumerate()
        .filter(|(_, sides)| is_due(sides))
        .map(|(number, _)| number)
        .collect();
    if due.is_empty() {
        return (due, None);
    }
    let all = || found.iter().flatten();
    let is_urgent = all().any(|one| matches!(one, Found::Due(times) if times.until - now < URGENT));
    let newest = all().filter_map(|one| match one {
        Found::Good(times) | Found::Due(times) => Some(times.issued),
        Found::Nothing => None,
    });
    let not_before = newest.max().map_or(now, |newest| newest + PAUSE);
    let starts_anew = all().any(|one| *one == Found::Nothing);
    if !starts_anew && not_before <= now && (are_ready || is_urgent) {
        let count = (found.len() / IN_TURN).max(1);
        let next = (due.len() > count).then(|| now + PAUSE);
        return (due.into_iter().take(count).collect(), next);
    }
    (Vec::new(), Some(not_before.max(now + LOOK_AGAIN)))
}

fn keys(side: &str, address: &str) -> (String, String) {
    (format!("{side}-{address}.crt"), format!("{side}-key-{address}.pem"))
}

fn find(
    stored: &Data,
    subject: &Subject,
    side: &str,
    authorities: &Authorities,
    now: OffsetDateTime,
) -> Found {
    let keys = keys(side, &subject.address);
    let text = |key: &str| std::str::from_utf8(&stored.get(key)?.0).ok();
    let Some((certificate, key)) = text(&keys.0).zip(text(&keys.1)) else { return Found::Nothing };
    let names = subject.names();
    let of = |ca: &str| leaf::times(certificate, key, ca, &names);
    match of(authorities.current.certificate()) {
        Ok(times) if times.until <= now => Found::Nothing,
        Ok(times) if times.due > now => Found::Good(times),
        Ok(times) => Found::Due(times),
        // All trust it until nobody has such a one any more.
        Err(LeafError::Issuer) => {
            let before = authorities.previous.as_deref().and_then(|ca| of(ca).ok());
            before.filter(|times| times.until > now).map_or(Found::Nothing, Found::Due)
        }
        Err(_) => Found::Nothing,
    }
}

impl Subject {
    fn names(&self) -> Vec<String> {
        self.host.iter().chain([&self.address]).cloned().collect()
    }
}

impl Certificates {
    fn keep(
        &mut self,
        stored: &Data,
        subject: &Subject,
        side: &str,
        times: Times,
        due: Option<OffsetDateTime>,
    ) {
        let keys = keys(side, &subject.address);
        for key in [keys.0, keys.1] {
            let value = stored.get(&key).cloned().unwrap_or_default();
            self.data.insert(key, value);
        }
        self.renew_at = due.map_or(self.renew_at, |due| self.renew_at.min(due));
        self.expires_at = self.expires_at.min(times.until);
        self.made(&subject.address, times.issued);
    }

    fn issue(
        &mut self,
        subject: &Subject,
        side: &str,
        usage: Usage,
        authority: &Authority,
        now: OffsetDateTime,
    ) -> Result<(), AuthorityError> {
        let profile = LeafProfile {
            common_name: subject.address.clone(),
            names: subject.names(),
            lifetime: LIFETIME,
            usage,
            key: KeyKind::default(),
        };
        let leaf = authority.issue(&profile, now)?;
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let keys = keys(side, &subject.address);
        self.data.insert(keys.0, bytes(leaf.certificate()));
        self.data.insert(keys.1, bytes(leaf.key()));
        self.renew_at = self.renew_at.min(leaf.renew_at);
        self.issued += 1;
        self.made(&subject.address, now);
        Ok(())
    }

    fn made(&mut self, address: &str, at: OffsetDateTime) {
        let newest = self.issued_at.entry(address.to_owned()).or_insert(at);
        *newest = (*newest).max(at);
    }
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

    fn authority() -> Authorities {
        Authorities::first(&CaProfile::new("test CA"), now()).unwrap()
    }

    fn certificates(
        stored: Option<&DynamicObject>,
        subjects: &[Subject],
        authorities: &Authorities,
        now: OffsetDateTime,
    ) -> Result<Certificates, AuthorityError> {
        super::certificates(stored, subjects, authorities, now, true)
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

    /// Three addresses whose certificates are due, and the Secret that they are in.
    fn due(authorities: &Authorities) -> (Vec<Subject>, DynamicObject, OffsetDateTime) {
        let subjects = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(subject).to_vec();
        let first = certificates(None, &subjects, authorities, now()).unwrap();
        (subjects, stored(&first), now() + Duration::days(250))
    }

    #[test]
    fn who_is_due_has_a_turn_when_the_one_before_is_back_and_all_are_ready() {
        let authority = authority();
        let (subjects, mut secret, mut now) = due(&authority);
        let not_ready = super::certificates(Some(&secret), &subjects, &authority, now, false);
        let not_ready = not_ready.unwrap();
        assert_eq!((not_ready.issued, not_ready.renew_at - now), (0, LOOK_AGAIN));
        let mut turns = Vec::new();
        for _ in 0..3 {
            let all = certificates(Some(&secret), &subjects, &authority, now).unwrap();
            assert_eq!(all.issued, 2, "one address, both sides");
            let newest = all.issued_at.iter().filter(|(_, at)| **at == now);
            turns.extend(newest.map(|(address, _)| address.clone()));
            secret = stored(&all);
            let soon = now + PAUSE - Duration::seconds(1);
            let too_early = certificates(Some(&secret), &subjects, &authority, soon).unwrap();
            assert_eq!(too_early.issued, 0);
            now += PAUSE;
        }
        assert_eq!(turns, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
        assert_eq!(certificates(Some(&secret), &subjects, &authority, now).unwrap().issued, 0);
        // Ready or not: an expired one helps nobody.
        let (_, secret, _) = due(&authority);
        let late = self::now() + Duration::days(340);
        let late = super::certificates(Some(&secret), &subjects, &authority, late, false).unwrap();
        assert_eq!(late.issued, 2);
    }

    #[test]
    fn what_the_previous_ca_signed_is_replaced_in_turn_and_no_pod_is_left_without() {
        let before = authority();
        let (subjects, secret, _) = due(&before);
        let later = now() + Duration::days(1);
        let after = Authorities {
            current: authority().current,
            next: None,
            previous: Some(before.current.certificate().to_owned()),
        };
        let all = certificates(Some(&secret), &subjects, &after, later).unwrap();
        assert_eq!((all.issued, all.data.len()), (2, 12));
        let ca = after.current.certificate();
        let signed = |all: &Certificates| {
            let pems = all.data.iter().filter(|(key, _)| key.ends_with(".crt"));
            let text = |value: &ByteString| String::from_utf8(value.0.clone()).unwrap();
            pems.filter(|(_, pem)| leaf::is_issued_by(&text(pem), ca).unwrap()).count()
        };
        assert_eq!(signed(&all), 2);
        // When the previous one is not trusted any more there is nothing to wait for.
        let dropped = Authorities { previous: None, ..after.clone() };
        let all = certificates(Some(&secret), &subjects, &dropped, later).unwrap();
        assert_eq!(signed(&all), 6);
    }
}
