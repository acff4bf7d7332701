//! Certificates in every state, as the operator stores them.

use opensdn_pki::{Authority, CaProfile, KeyKind, LeafProfile, Usage};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use super::*;

const NOW: i64 = 1_800_000_000;

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(NOW).unwrap()
}

fn ca(name: &str) -> Authority {
    Authority::create(&CaProfile::new(name), now()).unwrap()
}

/// A leaf that lasts so many days from now.
fn leaf(ca: &Authority, days: i64) -> String {
    let profile = LeafProfile {
        common_name: "10.0.0.1".to_owned(),
        names: vec!["10.0.0.1".to_owned()],
        lifetime: Duration::days(days + 400),
        usage: Usage::Server,
        key: KeyKind::default(),
    };
    let issued = now() - Duration::days(400) + Duration::hours(1);
    ca.issue(&profile, issued).unwrap().certificate().to_owned()
}

fn secret(name: &str, key: &str, pem: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "tf",
        "ownerReferences": [{"kind": "Cassandra", "name": "configdb"}]},
        "data": {key: BASE64_STANDARD.encode(pem)}})
}

fn trust(pem: &str) -> Value {
    json!({"metadata": {"name": "csr-signer-ca", "namespace": "tf"}, "data": {"ca-bundle.crt": pem}})
}

fn states(secrets: Vec<Value>, trusted: &str) -> Vec<(String, State)> {
    let world = World { secrets, trust: vec![trust(trusted)], not_read: Vec::new() };
    let report = assess(&world, Timestamp::from_second(NOW).unwrap());
    report.certificates.into_iter().map(|one| (one.secret, one.state)).collect()
}

#[test]
fn a_certificate_is_as_good_as_the_days_that_are_left_and_the_worst_comes_first() {
    let ca = ca("OpenSDN CA");
    let days =
        [("ok", 100), ("late", 59), ("urgent", 13), ("over", -1), ("edge", 60), ("two-weeks", 14)];
    let secrets = days.map(|(name, days)| secret(name, "server-10.0.0.1.crt", &leaf(&ca, days)));
    let expected = [
        ("over", State::Expired),
        ("urgent", State::Urgent),
        ("two-weeks", State::Late),
        ("late", State::Late),
        ("edge", State::Ok),
        ("ok", State::Ok),
    ];
    let expected = expected.map(|(name, state)| (name.to_owned(), state));
    assert_eq!(states(secrets.to_vec(), ca.certificate()), expected);
}

#[test]
fn a_certificate_of_another_ca_is_untrusted_even_if_that_has_the_same_name() {
    let (ours, other) = (ca("OpenSDN CA"), ca("OpenSDN CA"));
    let secrets = || vec![secret("leaf", "server-10.0.0.1.crt", &leaf(&other, 100))];
    assert_eq!(states(secrets(), ours.certificate())[0].1, State::Untrusted);
    let both = format!("{}{}", ours.certificate(), other.certificate());
    assert_eq!(states(secrets(), &both)[0].1, State::Ok, "as within a rotation");
    // A CA is trusted by being in the bundle, and a new one before that.
    let new = vec![secret("opensdn-ca", "next.crt", other.certificate())];
    assert_eq!(states(new, ours.certificate())[0].1, State::Ok);
    let world = World { secrets: secrets(), ..World::default() };
    let unknown = assess(&world, Timestamp::from_second(NOW).unwrap());
    assert_eq!(unknown.certificates[0].state, State::Ok, "what pods trust is not known");
}

#[test]
fn what_cannot_be_read_is_said_and_needs_care() {
    let world = World { secrets: vec![secret("s", "server-1.crt", "nothing")], ..World::default() };
    let report = assess(&world, Timestamp::from_second(NOW).unwrap());
    assert_eq!(report.certificates[0].state, State::Unreadable);
    assert!(report.is_bad());
    assert_eq!(report.certificates[0].used_by, "Cassandra configdb");
}

#[test]
fn keys_and_bundles_are_no_certificates_of_anything() {
    let ca = ca("OpenSDN CA");
    let mut one = secret("s", "server-1.crt", &leaf(&ca, 100));
    one["data"]["server-key-1.pem"] = json!("a2V5");
    one["data"]["ca-bundle.crt"] = json!(BASE64_STANDARD.encode(ca.certificate()));
    assert_eq!(states(vec![one], ca.certificate()).len(), 1);
}

#[test]
fn what_does_not_fit_into_80_columns_is_below() {
    let of = |issuer: &str| CertificatesReport {
        certificates: vec![CertificateStatus {
            state: State::Ok,
            namespace: "tf".to_owned(),
            secret: "configdb1-secret-certificates".to_owned(),
            key: "server-10.0.0.1.crt".to_owned(),
            used_by: "Cassandra configdb1".to_owned(),
            subject: "10.0.0.1".to_owned(),
            issuer: issuer.to_owned(),
            not_after: Some(NOW),
            days: Some(200),
        }],
        ..CertificatesReport::default()
    };
    let shown = |issuer: &str, is_wide, width| {
        let mut out = Vec::new();
        let layout = crate::ui::Layout { width, unicode: false };
        of(issuer).write(is_wide, layout, &mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    };
    let text = |issuer: &str, width| shown(issuer, false, width);
    let narrow = text("contrail-signer of a cluster with a long name", 80);
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(narrow.contains("issuer contrail-signer"), "{narrow}");
    assert_eq!(text("ca", 140).lines().count(), 2);
    let ends = Timestamp::from_second(NOW).unwrap().to_string();
    let wide = shown("ca", true, 160);
    assert!(wide.contains("DAYS  NOT AFTER") && wide.contains(&ends), "{wide}");
    assert!(!text("ca", 160).contains(&ends));
}
