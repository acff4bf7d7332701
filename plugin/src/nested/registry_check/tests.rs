//! A Secret, pods and a registry, each in a state of its own.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::*;

const IMAGE: &str = "hub.example.com/a/opensdn-kubernetes-kube-manager:1";

fn secret(namespace: &str, registry: &str) -> Secret {
    let file = json!({"auths": {registry: {"auth": "dTpw"}}}).to_string();
    Secret {
        metadata: ObjectMeta {
            name: Some("r".to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        data: Some([(".dockerconfigjson".to_owned(), ByteString(file.into_bytes()))].into()),
        ..Secret::default()
    }
}

fn puller(title: &str, secrets: &[&str]) -> Puller {
    let reference = |name: &&str| LocalObjectReference { name: (*name).to_owned() };
    let pod = PodSpec {
        image_pull_secrets: Some(secrets.iter().map(reference).collect()),
        containers: vec![Container { image: Some(IMAGE.to_owned()), ..Container::default() }],
        ..PodSpec::default()
    };
    Puller { title: title.to_owned(), pod, account: None }
}

fn codes(secret: Option<Secret>, pullers: Vec<Puller>) -> Vec<(String, Severity)> {
    let found = Found { secret, pullers, unknown: Vec::new() };
    let images = found.images().collect();
    let asked = Asked { name: "r", namespace: "kube-system", images: &[] };
    let all = problems(&found, &asked, &images).into_iter();
    all.map(|one| (one.code, one.severity)).collect()
}

#[test]
fn a_secret_is_right_missing_elsewhere_not_named_or_for_another_registry() {
    let both = || vec![puller("Deployment a", &["r"]), puller("DaemonSet b", &["r"])];
    let code = |code: &str, severity| vec![(code.to_owned(), severity)];
    assert_eq!(codes(Some(secret("kube-system", "hub.example.com")), both()), []);
    assert_eq!(codes(None, both()), code("OSDN3061", Severity::Error));
    let other = Some(secret("default", "hub.example.com"));
    assert_eq!(codes(other, both()), code("OSDN3063", Severity::Error));
    let one = vec![puller("Deployment a", &["r"]), puller("DaemonSet b", &["other"])];
    let here = || Some(secret("kube-system", "hub.example.com"));
    assert_eq!(codes(here(), one), code("OSDN3063", Severity::Error));
    let uncovered = Some(secret("kube-system", "other.example.com"));
    assert_eq!(codes(uncovered, both()), code("OSDN3062", Severity::Warning));
    assert_eq!(codes(here(), Vec::new()), [], "before the workloads are there");
}

fn report(findings: Vec<Finding>) -> RegistrySecretReport {
    RegistrySecretReport {
        namespace: "kube-system".to_owned(),
        name: "r".to_owned(),
        workloads: vec!["Deployment a".to_owned()],
        images: vec![IMAGE.to_owned()],
        findings,
        unknown: Vec::new(),
    }
}

#[test]
fn an_image_without_a_login_is_no_finding_where_the_registry_gives_it_and_an_error_where_not() {
    let uncovered = || {
        let secret = Some(secret("kube-system", "other.example.com"));
        let found =
            Found { secret, pullers: vec![puller("Deployment a", &["r"])], unknown: Vec::new() };
        let asked = Asked { name: "r", namespace: "kube-system", images: &[] };
        problems(&found, &asked, &found.images().collect())
    };
    let mut public = report(uncovered());
    public.take(IMAGE, Ok(()));
    assert_eq!(public.findings, []);

    let refusal = || Error::Login {
        host: "hub.example.com".to_owned(),
        what: "GET".to_owned(),
        has_login: false,
    };
    let mut private = report(uncovered());
    private.take(IMAGE, Err(refusal()));
    let found: Vec<(&str, Severity)> =
        private.findings.iter().map(|one| (one.code.as_str(), one.severity)).collect();
    assert_eq!(found, [("OSDN3062", Severity::Error), ("OSDN3064", Severity::Warning)]);

    let mut unreached = report(uncovered());
    let what = "GET".to_owned();
    unreached.take(IMAGE, Err(Error::TimedOut { host: "h".to_owned(), what, seconds: 1 }));
    assert_eq!((unreached.findings.len(), unreached.unknown.len()), (1, 1));
}

#[test]
fn names_of_others_reach_no_terminal() {
    let mut report = report(Vec::new());
    report.workloads = vec!["Deployment a\u{1b}[31m".to_owned()];
    report.unknown.push(unknown("b\u{1b}[2J".to_owned()));
    let mut out = Vec::new();
    report.write(Layout { width: 80, unicode: false }, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains('\u{1b}') && text.contains("Deployment a"), "{text:?}");
}
