//! What is stored, judged page by page: each object once, also where the list has to begin again.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::sync::Mutex;

use opensdn_crds::unique_claim::UniqueClaimSpec;
use opensdn_policy_host::{Cache, Engine, Metering};
use opensdn_validate::{Answer, Cluster, Listed, Loader, ObjectName, Page, WhatIf, what_if};
use serde_json::{Value, json};

/// Three pages of one object each; the token of the second is too old when the third is asked for.
#[derive(Default)]
struct Paged {
    asked: Mutex<Vec<Option<String>>>,
}

fn service(number: usize, row: &str) -> Value {
    json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": format!("s{number}"), "namespace": "tf", "uid": format!("u{number}"),
            "creationTimestamp": format!("2026-01-01T00:00:0{number}Z")},
        "spec": {"name": row, "ip": "169.254.9.1", "port": 80,
            "fabric": {"addresses": ["10.0.0.5"], "port": 80}},
    })
}

impl Paged {
    fn answer(&self, after: Option<String>) -> Page {
        let mut asked = self.asked.lock().unwrap();
        let has_expired = asked.iter().any(|token| token.as_deref() == Some("2"));
        asked.push(after.clone());
        let (objects, next) = match after.as_deref() {
            None | Some("") => (vec![service(1, "a")], Some("1")),
            Some("1") => (vec![service(2, "a")], Some("2")),
            Some(_) if !has_expired => (Vec::new(), Some("")),
            Some(_) => (vec![service(3, "b")], None),
        };
        Page { listed: Listed::Objects(objects), next: next.map(str::to_owned) }
    }
}

impl Cluster for Paged {
    fn page<'a>(
        &'a self,
        _: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
        after: Option<String>,
    ) -> Answer<'a, Page> {
        // What is looked up is asked for in all namespaces.
        let is_judged = kind == "LinkLocalService" && namespace.is_some();
        let page = if is_judged { self.answer(after) } else { Listed::Objects(Vec::new()).into() };
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

#[tokio::test]
async fn what_is_stored_is_judged_page_by_page_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("links.yaml");
    let text = "{apiVersion: opensdn.io/v1alpha1, kind: AdmissionPolicy, metadata: {name: links}, \
        spec: {module: {builtIn: duplicate-link-local}}}";
    std::fs::write(&policy, text).unwrap();
    let engine = Engine::start_metered(4, Metering::Off).unwrap();
    let below = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache/opensdn");
    let cache = Cache::below(below.as_ref()).unwrap();
    let loader = Loader { engine: &engine, cache: Some(&cache), compiler: None };
    let asked = WhatIf { policies: vec![policy], namespace: Some("tf".to_owned()) };
    let cluster = Paged::default();
    let said = what_if(loader, &asked, &cluster).await.unwrap();
    assert_eq!(said.objects, 3);
    let tokens = cluster.asked.into_inner().unwrap();
    let tokens: Vec<_> = tokens.iter().map(Option::as_deref).collect();
    let again = Some("");
    assert_eq!(tokens, [None, Some("1"), Some("2"), again, Some("1"), Some("2")]);
    // Two say the same of the address, and share it; the third says something else.
    let found: Vec<_> =
        said.findings.iter().map(|(object, one)| (object.title(), &*one.code)).collect();
    assert_eq!(found, [("LinkLocalService tf/s3".to_owned(), "OSDN3009")]);
}
