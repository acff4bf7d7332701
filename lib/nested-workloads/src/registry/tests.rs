//! Tests of registry Secrets.

use k8s_openapi::api::core::v1::LocalObjectReference;
use serde_json::{Value, json};

use super::*;

fn login(server: &str) -> Login {
    Login {
        server: server.to_owned(),
        username: "ci".to_owned(),
        password: "hunter2:%".to_owned(),
        email: None,
    }
}

fn content_of(secret: &Secret) -> Value {
    serde_json::from_slice(&secret.data.as_ref().unwrap()[KEY].0).unwrap()
}

/// What is wrong with a Secret of that type and content.
fn problems(type_: &str, key: &str, content: &str, image: &str) -> Vec<Problem> {
    let mut secret = secret("regcred", "kube-system", &login("r.example")).unwrap();
    secret.type_ = Some(type_.to_owned());
    secret.data = Some([(key.to_owned(), ByteString(content.as_bytes().to_vec()))].into());
    checked(&secret, image)
}

fn checked(secret: &Secret, image: &str) -> Vec<Problem> {
    let reference = LocalObjectReference { name: "regcred".to_owned() };
    let pod = PodSpec { image_pull_secrets: Some(vec![reference]), ..PodSpec::default() };
    let of = Use { namespace: "kube-system", pod: &pod, account: None, images: &[image] };
    check("regcred", Some(secret), &of)
}

#[test]
fn the_key_of_a_login_is_the_host_alone() {
    for (server, key) in [
        ("hub.juniper.net/contrail", "hub.juniper.net"),
        ("https://r.example:5010/v2/", "r.example:5010"),
        ("docker.io", "https://index.docker.io/v1/"),
    ] {
        let secret = secret("regcred", "kube-system", &login(server)).unwrap();
        let auth = BASE64_STANDARD.encode("ci:hunter2:%");
        let entry = json!({"username": "ci", "password": "hunter2:%", "auth": auth});
        assert_eq!(content_of(&secret), json!({"auths": {key: entry}}));
        assert_eq!(secret.type_.as_deref(), Some(TYPE));
    }
    let with_email = Login { email: Some("a@b.example".to_owned()), ..login("r.example") };
    let secret = secret("regcred", "kube-system", &with_email).unwrap();
    assert_eq!(content_of(&secret)["auths"]["r.example"]["email"], "a@b.example");
}

#[test]
fn a_login_that_could_not_work_is_refused_and_never_shown() {
    for server in ["", "r example", "r.example:0", "r.example:x", "$(id)", "a\nb", "UPPER"] {
        assert!(secret("a", "b", &login(server)).is_err(), "{server:?}");
    }
    assert!(secret("A b", "b", &login("r.example")).is_err());
    assert!(secret("a", "b\n", &login("r.example")).is_err());
    let colon = Login { username: "a:b".to_owned(), ..login("r.example") };
    assert!(secret("a", "b", &colon).is_err());
    assert!(!format!("{:?}", login("r.example")).contains("hunter2"));
}

#[test]
fn what_we_make_covers_its_registry_and_only_that() {
    let ours = secret("regcred", "kube-system", &login("hub.juniper.net/contrail")).unwrap();
    assert_eq!(checked(&ours, "hub.juniper.net/contrail/opensdn-base:1"), []);
    let other = checked(&ours, "hub.juniper.net:443/contrail/opensdn-base:1");
    assert!(matches!(other.as_slice(), [Problem::NotCovered { .. }]), "{other:?}");
    assert_eq!((other[0].code(), other[0].severity()), ("OSDN3062", Severity::Warning));
    let hub = secret("regcred", "kube-system", &login("docker.io")).unwrap();
    for image in ["opensdn/base:1", "docker.io/opensdn/base", "base", "index.docker.io/o/b"] {
        assert_eq!(checked(&hub, image), [], "{image}");
    }
}

#[test]
fn a_key_with_a_path_covers_what_is_below_it() {
    let content = r#"{"auths": {"r.example/contrail": {"auth": "YTpi"}}}"#;
    assert_eq!(problems(TYPE, KEY, content, "r.example/contrail/base:1"), []);
    assert_eq!(problems(TYPE, KEY, content, "r.example/other/base:1").len(), 1);
    let content = r#"{"auths": {"*.example": {"auth": "YTpi"}}}"#;
    assert_eq!(problems(TYPE, KEY, content, "r.example/base:1"), []);
    for other in ["a.r.example/base:1", "r.other/base:1", "r.example:5000/base:1"] {
        assert_eq!(problems(TYPE, KEY, content, other).len(), 1, "{other}");
    }
}

#[test]
fn both_types_that_kubelet_takes_are_taken() {
    let old = r#"{"r.example": {"auth": "YTpi"}}"#;
    assert_eq!(problems(OLD_TYPE, OLD_KEY, old, "r.example/base"), []);
    let found = problems("Opaque", KEY, "{}", "r.example/base");
    assert_eq!(found, [Problem::Type("Opaque".to_owned())]);
}

#[test]
fn a_broken_secret_is_reported_without_what_is_in_it() {
    let broken = problems(TYPE, KEY, r#"{"auths": {"r": {"auth": hunter2}}}"#, "r.example/b");
    assert_eq!(broken, [Problem::Json { key: KEY, line: 1 }]);
    let list = problems(TYPE, KEY, r#"["hunter2"]"#, "r.example/b");
    let number = problems(TYPE, KEY, r#"{"auths": {"r.example": {"auth": 5}}}"#, "r.example/b");
    let auth = problems(TYPE, KEY, r#"{"auths": {"r.example": {"auth": "?"}}}"#, "r.example/b");
    assert_eq!(auth, [Problem::Auth("r.example".to_owned())]);
    let none = problems(TYPE, "other", "{}", "r.example/b");
    assert_eq!(none, [Problem::Key(KEY)]);
    for found in [broken, list, number, auth, none] {
        assert!(found.iter().all(|one| one.code() == "OSDN3061"), "{found:?}");
        assert!(found.iter().all(|one| !one.to_string().contains("hunter2")), "{found:?}");
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn a_secret_that_no_pod_can_use_is_found() {
    let ours = secret("regcred", "default", &login("r.example")).unwrap();
    let pod = PodSpec::default();
    let of = Use { namespace: "kube-system", pod: &pod, account: None, images: &[] };
    let found = check("regcred", Some(&ours), &of);
    assert!(found.iter().all(|one| one.code() == "OSDN3063"));
    assert_eq!(found.len(), 2, "{found:?}");
    let reference = LocalObjectReference { name: "regcred".to_owned() };
    let account =
        ServiceAccount { image_pull_secrets: Some(vec![reference]), ..ServiceAccount::default() };
    let of = Use { namespace: "default", account: Some(&account), ..of };
    assert_eq!(check("regcred", Some(&ours), &of), []);
    let missing = check("regcred", None, &of);
    assert_eq!(missing, [Problem::Missing("regcred".to_owned())]);
    assert_eq!(missing[0].code(), "OSDN3061");
}
