//! What is kept, what is issued, and whose turn it is.

mod signer;

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
    with(stored, &wanted(subjects), authorities, now, true)
}

/// With the one Secret that there is.
fn with(
    stored: Option<&DynamicObject>,
    wanted: &Wanted<'_>,
    authorities: &Authorities,
    now: OffsetDateTime,
    are_ready: bool,
) -> Result<Certificates, AuthorityError> {
    let stored: Vec<Stored> = stored.into_iter().map(Stored::of).collect();
    super::certificates(&stored, wanted, authorities, now, are_ready)
}

fn wanted(subjects: &[Subject]) -> Wanted<'_> {
    Wanted { subjects, key: KeyKind::default(), most: usize::MAX, trusted: &[], signer: None }
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
fn both_sides_of_an_address_have_one_key_and_no_two_addresses_and_times_the_same() {
    let (authority, subjects) = (authority(), [subject("192.0.2.1"), subject("192.0.2.2")]);
    let first = certificates(None, &subjects, &authority, now()).unwrap();
    let later = first.renew_at + Duration::minutes(1);
    let renewed = certificates(Some(&stored(&first)), &subjects, &authority, later).unwrap();
    let key = |all: &Certificates, side: &str, address: &str| {
        all.data[&format!("{side}-key-{address}.pem")].0.clone()
    };
    for all in [&first, &renewed] {
        assert_eq!(key(all, "server", "192.0.2.1"), key(all, "client", "192.0.2.1"));
        assert_ne!(key(all, "server", "192.0.2.1"), key(all, "server", "192.0.2.2"));
    }
    assert_ne!(key(&first, "server", "192.0.2.1"), key(&renewed, "server", "192.0.2.1"));
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
    assert!((again.unwrap().expires_at.unwrap() - now() - LIFETIME).abs() < Duration::days(1));
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
    let key = "server-key-192.0.2.1.pem";
    spoilt.data["data"][key] = json!(of_other.data[key]);
    assert_eq!(certificates(Some(&spoilt), &subjects, &authority, now()).unwrap().issued, 1);
    let mut half = stored(&all);
    half.data["data"].as_object_mut().unwrap().remove("server-192.0.2.1.crt");
    let half = certificates(Some(&half), &subjects, &authority, now()).unwrap();
    assert_eq!(half.issued, 1, "the other side is as good as before");
    let renamed = [Subject { host: Some("another".to_owned()), ..subject("192.0.2.1") }];
    assert_eq!(certificates(Some(&stored(&all)), &renamed, &authority, now()).unwrap().issued, 2);
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
    let not_ready = with(Some(&secret), &wanted(&subjects), &authority, now, false);
    let not_ready = not_ready.unwrap();
    assert_eq!((not_ready.issued, not_ready.renew_at - now), (0, POLL_INTERVAL));
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
    let late = with(Some(&secret), &wanted(&subjects), &authority, late, false).unwrap();
    assert_eq!(late.issued, 2);
}

#[test]
fn who_is_asked_to_renew_has_its_turn_and_what_is_newer_is_kept() {
    let authority = authority();
    let subjects = ["192.0.2.1", "192.0.2.2"].map(subject);
    let mut secret = stored(&certificates(None, &subjects, &authority, now()).unwrap());
    let ask = |secret: &mut DynamicObject, at: OffsetDateTime| {
        let at = at.format(&Rfc3339).unwrap();
        secret.metadata.annotations = Some([(names::RENEW.to_owned(), at)].into());
    };
    let mut now = now() + Duration::days(1);
    let asked = now;
    for expected in [2, 2, 0] {
        ask(&mut secret, asked);
        let all = certificates(Some(&secret), &subjects, &authority, now).unwrap();
        assert_eq!(all.issued, expected, "one address at a time, each once");
        secret = stored(&all);
        now += PAUSE;
    }
    // Of a time to come, or of no time, it says nothing: it would never end.
    ask(&mut secret, now + Duration::hours(1));
    assert_eq!(certificates(Some(&secret), &subjects, &authority, now).unwrap().issued, 0);
    secret.metadata.annotations = Some([(names::RENEW.to_owned(), "now".to_owned())].into());
    assert_eq!(certificates(Some(&secret), &subjects, &authority, now).unwrap().issued, 0);
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

#[test]
fn keys_become_rsa_in_turn_and_stay_so_until_they_are_renewed() {
    let (authority, rsa) = (authority(), KeyKind::Rsa(opensdn_pki::RsaBits::Bits2048));
    let subjects = [subject("192.0.2.1"), subject("192.0.2.2")];
    let ecdsa = certificates(None, &subjects, &authority, now()).unwrap();
    let of = |key, stored: &Certificates, now| {
        let wanted =
            Wanted { subjects: &subjects, key, most: usize::MAX, trusted: &[], signer: None };
        with(Some(&self::stored(stored)), &wanted, &authority, now, true).unwrap()
    };
    let kinds = |all: &Certificates| -> Vec<bool> {
        let certificates = all.data.iter().filter(|(key, _)| key.ends_with(".crt"));
        certificates
            .map(|(_, pem)| leaf::is_rsa(str::from_utf8(&pem.0).unwrap()).unwrap())
            .collect()
    };
    let later = now() + Duration::hours(1);
    let one = of(rsa, &ecdsa, later);
    assert_eq!((one.issued, kinds(&one)), (2, vec![true, false, true, false]));
    let both = of(rsa, &one, one.renew_at);
    assert_eq!((both.issued, kinds(&both)), (2, vec![true; 4]));
    // For images of another release they are good enough.
    assert_eq!(of(rsa, &both, one.renew_at).issued, 0);
    assert_eq!(of(KeyKind::default(), &both, one.renew_at).issued, 0);
}

#[test]
fn what_would_end_with_its_ca_all_the_same_is_not_renewed() {
    let profile = CaProfile { lifetime: Duration::days(90), ..CaProfile::new("given CA") };
    let (authority, subjects) = (Authorities::first(&profile, now()).unwrap(), [subject("a")]);
    let first = certificates(None, &subjects, &authority, now()).unwrap();
    let later = |now| certificates(Some(&stored(&first)), &subjects, &authority, now).unwrap();
    let end = authority.current.not_after();
    let near = later(end - Duration::hours(1));
    assert_eq!((near.issued, near.renew_at), (0, end));
    assert_eq!(later(end + Duration::hours(1)).issued, 2);
}

#[test]
fn of_many_that_are_missing_some_are_issued_at_a_time_and_none_twice() {
    let authority = authority();
    let subjects = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(subject);
    let wanted = Wanted { most: 4, ..wanted(&subjects) };
    let first = with(None, &wanted, &authority, now(), true).unwrap();
    assert_eq!((first.issued, first.missing, first.data.len()), (4, 2, 8));
    let rest = with(Some(&stored(&first)), &wanted, &authority, now(), true).unwrap();
    assert_eq!((rest.issued, rest.missing, rest.data.len()), (2, 0, 12));
    assert!(first.data.iter().all(|(key, value)| rest.data.get(key) == Some(value)));
}

#[test]
fn what_is_asked_of_one_secret_is_asked_of_its_addresses_alone() {
    let authority = authority();
    let subjects = ["192.0.2.1", "192.0.2.2"].map(subject);
    let parts = subjects.each_ref().map(|subject| {
        let all = certificates(None, std::slice::from_ref(subject), &authority, now()).unwrap();
        Stored::of(&stored(&all))
    });
    let later = now() + Duration::hours(1);
    let mut parts = parts.to_vec();
    parts[1].asked = Some(later);
    let all = super::certificates(&parts, &wanted(&subjects), &authority, later, true).unwrap();
    let newer: Vec<_> = all.issued_at.iter().filter(|(_, at)| **at == later).collect();
    assert_eq!((all.issued, newer[0].0.as_str(), newer.len()), (2, "192.0.2.2", 1));
}
