//! What is stored, judged page by page: each object once, also where the list has to begin again. And what is in
//! one namespace, which may claim what an object of another has.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::sync::Mutex;

use opensdn_crds::unique_claim::UniqueClaimSpec;
use opensdn_policy_host::{Cache, Engine, Metering};
use opensdn_validate::{
    Answer, Cluster, Listed, Loader, ObjectName, Page, WhatIf, WouldSay, what_if,
};
use serde_json::{Value, json};

/// Three pages of one object each; the token of the second is too old when the third is asked for. Before, they are
/// asked for by who looks things up.
#[derive(Default)]
struct Paged {
    asked: Mutex<Vec<Option<String>>>,
}

fn service(number: usize, row: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": format!("s{number}"), "namespace": namespace, "uid": format!("u{number}"),
            "creationTimestamp": format!("2026-01-01T00:00:0{number}Z")},
        "spec": {"name": row, "ip": "169.254.9.1", "port": 80,
            "fabric": {"addresses": ["10.0.0.5"], "port": 80}},
    })
}

/// Which services there are.
trait Services: Sync {
    fn page(&self, namespace: Option<&str>, after: Option<String>) -> Page;
}

/// A cluster with these services and nothing else.
struct Only<S>(S);

impl Services for Paged {
    fn page(&self, _: Option<&str>, after: Option<String>) -> Page {
        let mut asked = self.asked.lock().unwrap();
        let has_expired = asked.iter().any(|token| token.as_deref() == Some("2"));
        let is_lookup = asked.is_empty();
        asked.push(after.clone());
        let (objects, next) = match after.as_deref() {
            None if is_lookup => (Vec::new(), None),
            None | Some("") => (vec![service(1, "a", "tf")], Some("1")),
            Some("1") => (vec![service(2, "a", "tf")], Some("2")),
            Some(_) if !has_expired => (Vec::new(), Some("")),
            Some(_) => (vec![service(3, "b", "tf")], None),
        };
        Page { listed: Listed::Objects(objects), next: next.map(str::to_owned) }
    }
}

impl<S: Services> Cluster for Only<S> {
    fn page<'a>(
        &'a self,
        _: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
        after: Option<String>,
    ) -> Answer<'a, Page> {
        let page = match kind {
            "LinkLocalService" => self.0.page(namespace, after),
            _ => Listed::Objects(Vec::new()).into(),
        };
        Box::pin(async move { Ok(page) })
    }

    fn kinds<'a>(&'a self, _: &'a str) -> Answer<'a, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn get<'a>(&'a self, _: ObjectName<'a>) -> Answer<'a, Option<Value>> {
        Box::pin(async { Ok(None) })
    }

    fn claims(&self) -> Answer<'_, Vec<UniqueClaimSpec>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// One service in each of two namespaces, with one address and two targets.
struct TwoNamespaces {
    /// Whether the user may list the services of all namespaces.
    all: bool,
}

impl Services for TwoNamespaces {
    fn page(&self, namespace: Option<&str>, _: Option<String>) -> Page {
        let younger = service(2, "b", "other");
        let listed = match namespace {
            None if !self.all => Listed::Forbidden("not you".to_owned()),
            None => Listed::Objects(vec![service(1, "a", "tf"), younger]),
            Some("other") => Listed::Objects(vec![younger]),
            Some(_) => Listed::Objects(Vec::new()),
        };
        listed.into()
    }
}

/// What the policy on link-local services would say of what is in the namespace, or in all.
async fn said_of(cluster: &dyn Cluster, namespace: Option<&str>) -> WouldSay {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("links.yaml");
    let text = "{apiVersion: opensdn.io/v1alpha1, kind: AdmissionPolicy, metadata: {name: links}, \
        spec: {module: {builtIn: duplicate-link-local}}}";
    std::fs::write(&policy, text).unwrap();
    let engine = Engine::start_metered(4, Metering::Off).unwrap();
    let below = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache/opensdn");
    let cache = Cache::below(below.as_ref()).unwrap();
    let loader = Loader { engine: &engine, cache: Some(&cache), compiler: None };
    let asked = WhatIf { policies: vec![policy], namespace: namespace.map(str::to_owned) };
    what_if(loader, &asked, cluster).await.unwrap()
}

/// The object and the code of each finding.
fn found(said: &WouldSay) -> Vec<(String, &str)> {
    said.findings.iter().map(|(object, one)| (object.title(), &*one.code)).collect()
}

#[tokio::test]
async fn what_is_stored_is_judged_page_by_page_and_once() {
    let cluster = Only(Paged::default());
    let said = said_of(&cluster, Some("tf")).await;
    assert_eq!(said.objects, 3);
    let tokens = cluster.0.asked.into_inner().unwrap();
    let tokens: Vec<_> = tokens.iter().map(Option::as_deref).collect();
    let (looked_up, again) = (None, Some(""));
    assert_eq!(tokens, [looked_up, None, Some("1"), Some("2"), again, Some("1"), Some("2")]);
    // Two say the same of the address, and share it; the third says something else.
    assert_eq!(found(&said), [("LinkLocalService tf/s3".to_owned(), "OSDN3009")]);
}

#[tokio::test]
async fn what_another_namespace_has_is_found_where_one_is_judged() {
    let all = Only(TwoNamespaces { all: true });
    let said = said_of(&all, Some("other")).await;
    assert_eq!(found(&said), [("LinkLocalService other/s2".to_owned(), "OSDN3009")]);
    assert_eq!((said.objects, said.not_checked), (1, Vec::new()));
    let said = said_of(&all, Some("tf")).await;
    assert_eq!((found(&said), said.objects), (Vec::new(), 1), "the older one has it");
}

#[tokio::test]
async fn claims_of_namespaces_that_may_not_be_listed_are_not_checked() {
    let said = said_of(&Only(TwoNamespaces { all: false }), Some("other")).await;
    assert_eq!(said.objects, 1);
    let not_checked: Vec<_> = said.not_checked.iter().map(|one| one.what.as_str()).collect();
    assert!(
        not_checked.contains(&"what is claimed by each LinkLocalService outside of other"),
        "{not_checked:?}"
    );
}
