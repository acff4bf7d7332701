//! An object that its own owner is in the way of, while the lookup of the owner lags.

use std::sync::atomic::{AtomicBool, Ordering};

use opensdn_policy_host::Index;
use opensdn_policy_host::lookup::{Answer, FoundObject};

use super::*;

/// Shows the owner as it is only after claims were refused so many times.
#[derive(Clone, Default)]
pub(super) struct Lagging {
    before: Documents,
    after: Documents,
    lags_for: Option<usize>,
    is_current: Arc<AtomicBool>,
}

impl Lagging {
    /// Claims were asked for so many times.
    pub(super) fn asked(&self, times: usize) {
        if self.lags_for.is_some_and(|lags_for| times >= lags_for) {
            self.is_current.store(true, Ordering::Relaxed);
        }
    }

    fn shown(&self) -> &Documents {
        if self.is_current.load(Ordering::Relaxed) { &self.after } else { &self.before }
    }
}

impl Lookup for Lagging {
    fn get<'a>(
        &'a self,
        index: &'a Index,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Option<FoundObject>> {
        self.shown().get(index, namespace, name)
    }

    fn find<'a>(
        &'a self,
        index: &'a Index,
        key: &'a str,
        most: usize,
    ) -> Answer<'a, Vec<FoundObject>> {
        self.shown().find(index, key, most)
    }
}

const SERVICE: &str = r#"{"serviceConfiguration": {"linklocalServices":
    [{"name": "ntp", "ip": "169.254.20.1", "port": 123, "ipFabricServiceHost": "192.0.2.1"}]}}"#;

/// The Manager has given its Config a service; the claims are the Manager's.
async fn bench(held_by: &str, lags_for: Option<usize>) -> Bench {
    let manager = |spec: Value| {
        json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
            "metadata": {"name": "m", "namespace": "tf", "uid": "owner"},
            "spec": {"services": {"config": {"metadata": {"name": "config1"}, "spec": spec}}}})
    };
    let service = serde_json::from_str(SERVICE).unwrap();
    let lookup = Lagging {
        before: Documents::new(vec![manager(json!({}))]),
        after: Documents::new(vec![manager(service)]),
        lags_for,
        is_current: Arc::default(),
    };
    let around =
        Around { held: true, held_by: Some(held_by.to_owned()), lookup, ..Around::default() };
    bench_around(&[CLAIMS], around, |_| {}).await
}

/// As the operator writes it.
fn config() -> Value {
    let spec: Value = serde_json::from_str(SERVICE).unwrap();
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Config",
        "metadata": {"name": "config1", "namespace": "tf", "uid": "u3", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other"},
            {"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager", "name": "m",
                "uid": "owner", "controller": true}]},
        "spec": spec})
}

/// What is answered where the API server waits so long.
async fn validate(bench: &Bench, timeout: Duration) -> Value {
    let body = review("CREATE", config(), Value::Null).to_string().into();
    let deadline = Instant::now() + timeout;
    let answer = bench.admission.review(Call { step: Step::Validate, body, deadline }).await;
    assert!(Instant::now() < deadline);
    serde_json::from_slice::<Value>(&answer).unwrap()["response"].clone()
}

/// So much that a slow machine has time for all retries.
const LONG: Duration = Duration::from_secs(60);

async fn asked(bench: &Bench) -> usize {
    bench.around.taken.lock().await.len()
}

#[tokio::test]
async fn a_write_that_its_own_owner_is_in_the_way_of_passes_when_the_lookup_has_caught_up() {
    for lags_for in 1..=3 {
        let bench = bench("owner", Some(lags_for)).await;
        let response = validate(&bench, LONG).await;
        assert_eq!(response["allowed"], true, "{response}");
        assert_eq!(asked(&bench).await, lags_for);
    }
}

#[tokio::test]
async fn where_the_lookup_never_catches_up_the_write_is_refused_within_its_deadline() {
    for timeout in [LONG, Duration::from_secs(5)] {
        let bench = bench("owner", None).await;
        let response = validate(&bench, timeout).await;
        assert_eq!(response["allowed"], false);
        let message = response["status"]["message"].as_str().unwrap();
        assert!(message.contains("is held by another"), "{message}");
        let asked = asked(&bench).await;
        assert!(
            asked <= 4 && (asked == 4 || timeout < LONG),
            "once, and three times again: {asked}"
        );
    }
}

#[tokio::test]
async fn a_conflict_with_any_other_object_refuses_at_once() {
    for other in ["other", "u3", ""] {
        let bench = bench(other, Some(1)).await;
        assert_eq!(validate(&bench, LONG).await["allowed"], false);
        assert_eq!(asked(&bench).await, 1);
    }
}
