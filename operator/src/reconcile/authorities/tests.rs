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
            &Wanted {
                subjects: &[subject],
                key: KeyKind::default(),
                most: usize::MAX,
                trusted: &[],
                signer: None,
            },
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

/// A Manager that asks a signer, and the Secret with the certificates of that one's CAs.
fn with_signer(cache: &Cache, signer: &str, certificates: &str) {
    let bytes = json!(ByteString(certificates.as_bytes().to_vec()));
    let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "m", "namespace": "tf", "uid": "m", "resourceVersion": "1"},
        "spec": {"commonConfiguration": {"certSigner": signer}}});
    Feed::new(Kind::Manager, "").take(cache, Event::Apply(manager));
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": names::GIVEN_CA_SECRET, "namespace": "tf", "uid": "s", "resourceVersion": "1"},
        "data": {(names::GIVEN_CA_CERTIFICATE): bytes}});
    Feed::new(Kind::GivenCa, "").take(cache, Event::Apply(secret));
}

#[test]
fn the_cas_of_a_signer_are_trusted_beside_that_of_the_namespace() {
    let (ours, theirs) = (ca(), ca());
    let authorities = Authorities { current: ours, next: None, previous: None };
    let trusted = |signer: &str, certificates: &str| {
        let cache = cache(&[]);
        with_signer(&cache, signer, certificates);
        // A CA without a key is no CA of ours that is wrong.
        let given = given(&cache, "tf", None, start());
        (to_be_trusted(&cache, "tf", &authorities, None, start()).bundle, given.is_ok())
    };
    let both = bundle::with(&authorities.bundle(), &bundle::certificates(theirs.certificate()));
    assert_eq!(trusted("example.com/opensdn", theirs.certificate()), (both, true));
    for other in ["SelfSignedCA", "External", "kubernetes.io/kubelet-serving"] {
        let own = (authorities.bundle(), false);
        assert_eq!(trusted(other, theirs.certificate()), own, "{other}");
    }
    // OpenSSL reads nothing of a bundle with one that is no certificate.
    let broken = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    for wrong in [broken.to_owned(), format!("{}{broken}", theirs.certificate())] {
        assert_eq!(trusted("example.com/opensdn", &wrong), (authorities.bundle(), true));
    }
}

/// What pods trust beside ours, if that Authority has issued what is in place, with what is published, so many minutes after the start.
fn still_trusted(
    signer: &Authority,
    authorities: &Authorities,
    published: &DynamicObject,
    minutes: i64,
) -> Trust {
    let cache = cache(&[]);
    let profile = opensdn_pki::LeafProfile::server("a", vec!["a".to_owned()]);
    let leaf = signer.issue(&profile, start()).unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "redis1-secret-certificates", "namespace": "tf", "uid": "c", "resourceVersion": "1",
            "ownerReferences": [{"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis", "name": "redis1",
                "uid": "r", "controller": true}]},
        "data": {"server-a.crt": json!(ByteString(leaf.certificate().as_bytes().to_vec()))}});
    Feed::new(Kind::Secret, "").take(&cache, Event::Apply(secret));
    let now = start() + Duration::minutes(minutes);
    to_be_trusted(&cache, "tf", authorities, Some(published), now)
}

fn published_bundle(bundle: &str, leaving: &BTreeMap<String, OffsetDateTime>) -> DynamicObject {
    let leaving: BTreeMap<_, _> = leaving.iter().map(|(ca, at)| (ca, text(*at))).collect();
    let trust = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": names::TRUST, "namespace": "tf",
            "annotations": {(names::LEAVING): json!(leaving).to_string()}},
        "data": {(names::TRUST_KEY): bundle}});
    serde_json::from_value(trust).unwrap()
}

#[test]
fn what_was_trusted_stays_so_as_long_as_a_pod_shows_a_certificate_by_it_and_a_day_more() {
    let (ours, theirs, third) = (ca(), ca(), ca());
    let authorities = Authorities { current: ours.clone(), next: None, previous: None };
    // A root, which is in no certificate of a pod, goes with what it has issued.
    let chain = format!("{}{}", theirs.certificate(), third.certificate());
    let both = bundle::with(&authorities.bundle(), &bundle::certificates(&chain));
    let day = 24 * 60;
    let none = BTreeMap::new();
    let at = |signer: &Authority, leaving: &BTreeMap<_, _>, minutes| {
        still_trusted(signer, &authorities, &published_bundle(&both, leaving), minutes)
    };
    let used = at(&theirs, &none, 9 * day);
    assert_eq!((&used.bundle, used.leaving.len()), (&both, 0));
    // Pods may show what was in place until now, and nodes be away.
    let first = at(&ours, &none, 0);
    assert_eq!((&first.bundle, first.leaving.len()), (&both, 2));
    assert_eq!(at(&ours, &first.leaving, day - 1), first);
    let used_again = at(&theirs, &first.leaving, day - 1);
    assert_eq!((&used_again.bundle, used_again.leaving.len()), (&both, 0), "the day starts again");
    let last = at(&ours, &first.leaving, day);
    assert_eq!((last.bundle, last.leaving.len()), (authorities.bundle(), 0));
    // Of a time that is yet to come it would stay until then.
    let of_a_user = first.leaving.keys().map(|ca| (ca.clone(), start() + Duration::days(999)));
    assert_eq!(at(&ours, &of_a_user.collect(), 0), first);
    // What is no certificate any more, or was none, does not stay.
    let spoilt = format!("{both}-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n");
    let left = still_trusted(&theirs, &authorities, &published_bundle(&spoilt, &none), 0);
    assert_eq!(left.bundle, both);
}

#[test]
fn what_pods_trust_is_published_again_only_when_it_is_other_cas() {
    let (before, after) = (ca(), ca());
    let announced =
        Authorities { current: before.clone(), next: Some(after.clone()), previous: None };
    let previous = Some(before.certificate().to_owned());
    let changed = Authorities { current: after.clone(), next: None, previous };
    let alone = Authorities { current: after.clone(), next: None, previous: None };
    let (both, none) = (announced.bundle(), BTreeMap::new());
    assert_ne!(both, changed.bundle(), "each begins with the one that signs");
    let published = published_bundle(&both, &none);
    assert_eq!(still_trusted(&before, &changed, &published, 0).bundle, both);
    let leaves = still_trusted(&after, &alone, &published, 0);
    assert_eq!((&leaves.bundle, leaves.leaving.len()), (&both, 1));
    let published = published_bundle(&both, &leaves.leaving);
    assert_eq!(still_trusted(&after, &alone, &published, 24 * 60).bundle, alone.bundle());
    // What others write into it does not stay.
    let with_more = published_bundle(&format!("{both}# mine\n"), &none);
    assert_eq!(still_trusted(&before, &changed, &with_more, 0).bundle, changed.bundle());
}

/// Whether pods trust that CA at that time, by when it was published.
fn distrust(
    pods: &[Value],
    authorities: &Authorities,
    published: OffsetDateTime,
    now: OffsetDateTime,
) -> Option<String> {
    let cache = cache(pods);
    for (name, is_ready) in [("up", "True"), ("lost", "Unknown")] {
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
            "status": {"conditions": [{"type": "Ready", "status": is_ready}]}});
        Feed::new(Kind::Node, "").take(&cache, Event::Apply(node));
    }
    let ca =
        [authorities.bundle()].iter().flat_map(|all| bundle::certificates(all)).collect::<Vec<_>>();
    let trust = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": names::TRUST, "namespace": "tf", "uid": "t", "resourceVersion": "1",
            "annotations": {(names::PUBLISHED): text(published)}},
        "data": {(names::TRUST_KEY): authorities.bundle()}});
    assert!(do_not_trust(&cache, "tf", &ca, now).unwrap().contains("not published"));
    Feed::new(Kind::ConfigMap, "").take(&cache, Event::Apply(trust));
    let other = [ca[0].clone(), self::ca().certificate().to_owned()];
    assert!(do_not_trust(&cache, "tf", &other, now).unwrap().contains("not published"));
    do_not_trust(&cache, "tf", &ca, now)
}

#[test]
fn a_ca_counts_when_each_pod_has_it_and_else_it_is_said_which_has_not() {
    let authorities = Authorities { current: ca(), next: None, previous: None };
    let components = components::described();
    let once = components.filter(|one| one.reads_certificates_once());
    let mut once = once.map(|one| crate::component::word(one.facts()));
    let once = once.find(|word| components::of_word(word).is_some()).unwrap();
    let now = start() + Duration::hours(1);
    let why = |pods: &[Value], published| distrust(pods, &authorities, published, now);
    // Pods were made at the start, long ago.
    let (before, long_ago) = (start() - Duration::minutes(1), start() + Duration::minutes(1));
    let just_now = now - Duration::minutes(9);
    assert_eq!(why(&[], just_now), None, "the first pods have it from their start");
    assert_eq!(why(&[pod("redis", false, 0), pod(&once, false, 0)], before), None);
    assert_eq!(why(&[pod("redis", false, 0)], long_ago), None, "its kubelet has brought it");
    let late = why(&[pod("redis", true, 0)], just_now).unwrap();
    assert!(late.contains("10 minutes"), "{late}");
    let old = why(&[pod(&once, true, 0)], long_ago).unwrap();
    assert!(old.contains(&once) && old.contains("start again"), "{old}");
    // Such a pod never starts again by itself: one that ends, and one on a node that is lost.
    let mut going = pod(&once, true, 0);
    going["metadata"]["deletionTimestamp"] = text(start()).into();
    assert_eq!(why(&[going], long_ago), None);
    let mut lost = pod(&once, false, 0);
    lost["spec"] = json!({"nodeName": "lost"});
    assert_eq!(why(&[lost.clone()], long_ago), None);
    lost["spec"]["nodeName"] = "up".into();
    assert!(why(&[lost], long_ago).is_some());
}

#[test]
fn the_first_bundle_is_as_old_as_its_config_map() {
    let made = text(start());
    let trust = |annotations: Value| {
        let trust = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": names::TRUST, "creationTimestamp": made, "annotations": annotations}});
        published_since(&serde_json::from_value(trust).unwrap())
    };
    assert_eq!(trust(json!({})), Some(start()));
    let later = start() + Duration::hours(1);
    assert_eq!(trust(json!({(names::PUBLISHED): text(later)})), Some(later));
}
