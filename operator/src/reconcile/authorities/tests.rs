//! Which step comes next, by what the cache has.

use opensdn_pki::{Authority, KeyKind, Request};
use opensdn_runtime::watch::Event;
use serde_json::Value;

use super::*;
use crate::build::certificates::{Subject, Wanted, certificates};
use crate::cache::Feed;

fn start() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

fn text(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap()
}

/// One pod of that kind, made so many minutes after the start.
fn pod(word: &str, is_ready: bool, minutes: i64) -> Value {
    let ready = if is_ready { "True" } else { "False" };
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": word, "namespace": "tf", "uid": word, "resourceVersion": "1",
            "creationTimestamp": text(start() + Duration::minutes(minutes)), "labels": {(names::TYPE): word},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "set", "uid": "set", "controller": true}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]}})
}

fn trust(authorities: &Authorities, minutes: i64) -> Arc<DynamicObject> {
    let at = text(start() + Duration::minutes(minutes));
    let trust = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": names::TRUST, "namespace": "tf", "annotations": {(names::PUBLISHED): at}},
        "data": {(names::TRUST_KEY): authorities.bundle()}});
    Arc::new(serde_json::from_value(trust).unwrap())
}

fn cache(pods: &[Value]) -> Cache {
    let cache = Cache::default();
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "set", "namespace": "tf", "uid": "set", "resourceVersion": "1"}});
    Feed::new(Kind::StatefulSet, "").take(&cache, Event::Apply(set));
    let redis = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis",
        "metadata": {"name": "redis1", "namespace": "tf", "uid": "r", "resourceVersion": "1"}});
    Feed::new(Kind::Component("Redis"), "").take(&cache, Event::Apply(redis));
    for pod in pods {
        Feed::new(Kind::Pod, "").take(&cache, Event::Apply(pod.clone()));
    }
    cache
}

fn ca() -> Authority {
    Authority::create(&CaProfile::new("test CA"), start()).unwrap()
}

fn announced() -> Authorities {
    Authorities { current: ca(), next: Some(ca()), previous: None }
}

fn step(cache: &Cache, authorities: &Authorities, minutes: i64) -> Option<Authorities> {
    let state = SecretState::Complete {
        authorities: authorities.clone(),
        since: start(),
        request: Request::None,
    };
    let now = start() + Duration::minutes(minutes);
    next(cache, "tf", Some(&*trust(authorities, 0)), &state, now, &rotation(None)).unwrap()
}

#[test]
fn a_new_ca_is_used_when_every_pod_has_had_it_for_a_while() {
    let authorities = announced();
    let ready = cache(&[pod("redis", true, -60), pod("zookeeper", true, 5)]);
    assert_eq!(step(&ready, &authorities, 9), None, "daemons are being started again");
    let changed = step(&ready, &authorities, 11).unwrap();
    assert_eq!(Some(&changed.current), authorities.next.as_ref());
    assert_eq!(changed.previous.as_deref(), Some(authorities.current.certificate()));
    let sick = cache(&[pod("redis", false, -60)]);
    assert_eq!(step(&sick, &authorities, 60), None, "nobody knows what it trusts");
}

#[test]
fn a_server_that_reads_it_once_has_to_have_started_since() {
    let components = components::described();
    let once: Vec<_> = components.filter(|one| one.reads_certificates_once()).collect();
    assert!(!once.is_empty());
    let authorities = announced();
    for component in once {
        let word = crate::component::word(component.facts());
        if components::of_word(&word).is_none() {
            continue;
        }
        let old = cache(&[pod(&word, true, -60)]);
        assert_eq!(step(&old, &authorities, 60), None, "{word}");
        assert!(step(&cache(&[pod(&word, true, 5)]), &authorities, 60).is_some(), "{word}");
    }
}

#[test]
fn the_old_ca_is_trusted_as_long_as_a_pod_shows_a_certificate_of_it() {
    let (before, after) = (ca(), ca());
    let previous = Some(before.certificate().to_owned());
    let authorities = Authorities { current: after.clone(), next: None, previous };
    let days = |days: i64| days * 24 * 60;
    let owned_by = |signer: &Authority, owner: &str| {
        let cache = cache(&[pod("redis", true, 0)]);
        let subject = Subject { address: "192.0.2.1".to_owned(), host: None };
        let signer = Authorities { current: signer.clone(), next: None, previous: None };
        let made = certificates(
            &[],
            &Wanted { subjects: &[subject], key: KeyKind::default(), most: usize::MAX },
            &signer,
            start(),
            true,
        )
        .unwrap();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": made.data,
            "metadata": {"name": "redis1-secret-certificates", "namespace": "tf", "uid": "s", "resourceVersion": "1",
                "ownerReferences": [{"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis", "name": "redis1",
                    "uid": owner, "controller": true}]}});
        Feed::new(Kind::Secret, "").take(&cache, Event::Apply(secret));
        cache
    };
    let with = |signer: &Authority| owned_by(signer, "r");
    assert_eq!(step(&with(&after), &authorities, days(1) - 1), None, "not before a day");
    assert_eq!(step(&with(&before), &authorities, days(3)), None);
    let last = step(&with(&after), &authorities, days(1)).unwrap();
    assert_eq!((last.current, last.previous), (after, None));
    // What a user has made holds nothing up.
    assert!(step(&owned_by(&before, "forged"), &authorities, days(3)).is_some());
}

#[test]
fn a_pod_that_a_user_labelled_so_is_none_of_ours() {
    let authorities = announced();
    let mut foreign = pod("redis", false, -60);
    foreign["metadata"]["ownerReferences"][0]["uid"] = "another".into();
    assert!(step(&cache(&[foreign]), &authorities, 60).is_some());
}

#[test]
fn what_is_given_is_known_by_the_name_of_its_secret_and_in_its_namespace_only() {
    let cache = cache(&[]);
    let read = |namespace: &str, current| given(&cache, namespace, current, start());
    assert_eq!(read("tf", None).unwrap(), None);
    let ca = ca();
    let bytes = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
    let put = |version: u64, certificate: &str| {
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": names::GIVEN_CA_SECRET, "namespace": "tf", "uid": "s",
                "resourceVersion": version.to_string()},
            "data": {(names::GIVEN_CA_CERTIFICATE): bytes(certificate), (names::GIVEN_CA_KEY): bytes("none")}});
        Feed::new(Kind::GivenCa, "").take(&cache, Event::Apply(secret));
    };
    put(1, ca.certificate());
    assert!(read("tf", None).is_err());
    assert_eq!(read("other", None).unwrap(), None);
    // That of the current one is known to be good, until it ends.
    assert_eq!(read("tf", Some(&ca)).unwrap().as_ref(), Some(&ca));
    let expired = given(&cache, "tf", Some(&ca), ca.not_after());
    assert!(expired.unwrap_err().to_string().contains("expired"), "it signs nothing any more");
}

#[test]
fn what_cert_manager_writes_is_read_with_the_root_once() {
    let bytes = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
    let read = |certificate: &str, root: Option<&str>| {
        let mut data = json!({"tls.crt": bytes(certificate), "tls.key": bytes("K")});
        if let Some(root) = root {
            data["ca.crt"] = bytes(root);
        }
        let secret = json!({"metadata": {"name": "s"}, "data": data});
        certificates_and_key(&serde_json::from_value(secret).unwrap())
    };
    let of = |text: &str| (text.to_owned(), "K".to_owned());
    assert_eq!(read("A\nB\n", Some("R\n")), of("A\nB\nR\n"));
    assert_eq!(read("A", Some("R\n")), of("A\nR\n"));
    assert_eq!(read("R\n", Some("R\n")), of("R\n"), "one that has signed itself");
    assert_eq!(read("A\n", None), of("A\n"));
}
