//! What the process counts, and the handles through which its parts count. Handles are made when
//! a part starts or a policy is loaded, so that a review looks up no label.
//!
//! Times are in seconds with buckets well below a millisecond. Labels are policy, kind, operation,
//! mode, verdict and a fixed failure category; never a namespace or a name, of which there is no
//! end. Deliberately not here: when something is counted.

mod audit;
mod background;
mod configuration;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use opensdn_policy_host::{Mode, Operation, Step};
use opensdn_runtime::metrics::{self, Histograms, SecondsGauge, histograms, register};
use opensdn_runtime::{counts, label_values};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::tls::CertificateMetrics;

pub use audit::AuditMetrics;
pub use background::BackgroundMetrics;
pub use configuration::ConfigurationMetrics;

/// Scopes of claims that have series of their own.
const MAX_SCOPES: usize = 64;
/// Bytes of such a scope.
const MAX_SCOPE_BYTES: usize = 63;
/// What everything else is counted as.
const OTHER: &str = "other";

/// How a review, or the evaluation of one policy, came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Allowed without a warning.
    Allowed,
    /// Allowed with warnings.
    Warned,
    /// Denied by a finding.
    Denied,
    /// Could not be computed; the failure mode decided.
    Failed,
}

label_values! {
    Verdict { Allowed = "allowed", Warned = "warned", Denied = "denied", Failed = "failed" }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    step: &'static str,
    kind: Arc<str>,
    operation: &'static str,
    verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabel {
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EvaluationLabels {
    policy: String,
    mode: &'static str,
    verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabel {
    policy: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    policy: String,
    category: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScopeLabel {
    scope: String,
}

/// All metrics of the process; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    all: Arc<All>,
    registry: Arc<Registry>,
}

struct All {
    reviews: Family<ReviewLabels, Counter>,
    review_seconds: Histograms<StepLabel>,
    evaluations: Family<EvaluationLabels, Counter>,
    evaluation_seconds: Histograms<PolicyLabel>,
    failures: Family<FailureLabels, Counter>,
    policy_loaded: Family<PolicyLabel, Gauge>,
    policies_outdated: Gauge,
    cache_synced: Family<KindLabel, Gauge>,
    cache_staleness: Family<KindLabel, SecondsGauge>,
    claims_taken: Family<ScopeLabel, Counter>,
    claim_conflicts: Family<ScopeLabel, Counter>,
    /// The scopes with series of their own.
    scopes: Mutex<HashSet<String>>,
    server: ServerMetrics,
    certificate: CertificateMetrics,
    background: BackgroundMetrics,
    audit: AuditMetrics,
    configuration: ConfigurationMetrics,
    /// By group, then by kind.
    kinds: RwLock<HashMap<String, HashMap<String, Arc<KindMetrics>>>>,
    other_kinds: Arc<KindMetrics>,
}

/// What the HTTPS port counts.
#[derive(Clone, Debug)]
pub struct ServerMetrics {
    /// Connections open now.
    pub connections: Gauge,
    /// Calls answered 429.
    pub shed: Counter,
    /// Calls to paths that are not served, which no API server makes.
    pub unknown_paths: Counter,
    mutate_seconds: Histogram,
    validate_seconds: Histogram,
}

impl ServerMetrics {
    /// Counts the time from a request's head to its answer.
    pub fn review_took(&self, step: Step, time: Duration) {
        match step {
            Step::Mutate => self.mutate_seconds.observe(time.as_secs_f64()),
            Step::Validate => self.validate_seconds.observe(time.as_secs_f64()),
        }
    }
}

/// The reviews of one kind; from [`Metrics::kind`]. A series appears with its first review: most
/// combinations never occur, and a series of zeros costs its reader as much as any other.
pub struct KindMetrics {
    kind: Arc<str>,
    family: Family<ReviewLabels, Counter>,
}

impl KindMetrics {
    fn new(kind: &str, family: Family<ReviewLabels, Counter>) -> Arc<Self> {
        Arc::new(Self { kind: kind.into(), family })
    }

    /// Counts one review.
    pub fn reviewed(&self, step: Step, operation: Operation, verdict: Verdict) {
        let (step, operation) = (step.label(), operation.label());
        let labels = ReviewLabels { step, kind: self.kind.clone(), operation, verdict };
        self.family.get_or_create(&labels).inc();
    }
}

impl fmt::Debug for KindMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindMetrics").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The evaluations of one policy in one mode; from [`Metrics::policy`].
#[derive(Clone, Debug)]
pub struct PolicyMetrics {
    policy: String,
    verdicts: VerdictCounters,
    seconds: Histogram,
    failures: Family<FailureLabels, Counter>,
}

/// One counter for each [`Verdict`].
#[derive(Clone, Debug)]
struct VerdictCounters {
    allowed: Counter,
    warned: Counter,
    denied: Counter,
    failed: Counter,
}

impl VerdictCounters {
    fn of(&self, verdict: Verdict) -> &Counter {
        match verdict {
            Verdict::Allowed => &self.allowed,
            Verdict::Warned => &self.warned,
            Verdict::Denied => &self.denied,
            Verdict::Failed => &self.failed,
        }
    }
}

impl PolicyMetrics {
    /// Counts one evaluation and its time.
    pub fn evaluated(&self, verdict: Verdict, time: Duration) {
        self.verdicts.of(verdict).inc();
        self.seconds.observe(time.as_secs_f64());
    }

    /// Counts an evaluation that could not be computed, beside [`PolicyMetrics::evaluated`].
    pub fn failed(&self, category: &'static str) {
        let policy = self.policy.clone();
        self.failures.get_or_create_owned(&FailureLabels { policy, category }).inc();
    }
}

/// Group and kind of a label.
fn split(label: &str) -> (&str, &str) {
    label.rsplit_once('/').unwrap_or(("", label))
}

impl Metrics {
    /// Makes and registers every metric. Names are prefixed `opensdn_webhook_`.
    pub fn new() -> Self {
        let review_seconds = histograms();
        let seconds =
            |step: Step| review_seconds.get_or_create_owned(&StepLabel { step: step.label() });
        let server = ServerMetrics {
            connections: Gauge::default(),
            shed: Counter::default(),
            unknown_paths: Counter::default(),
            mutate_seconds: seconds(Step::Mutate),
            validate_seconds: seconds(Step::Validate),
        };
        let reviews = Family::default();
        let all = All {
            other_kinds: KindMetrics::new(OTHER, reviews.clone()),
            reviews,
            review_seconds,
            evaluations: Family::default(),
            evaluation_seconds: histograms(),
            failures: Family::default(),
            policy_loaded: Family::default(),
            policies_outdated: Gauge::default(),
            cache_synced: Family::default(),
            cache_staleness: Family::default(),
            claims_taken: Family::default(),
            claim_conflicts: Family::default(),
            scopes: Mutex::default(),
            server,
            certificate: CertificateMetrics::default(),
            background: BackgroundMetrics::default(),
            audit: AuditMetrics::default(),
            configuration: ConfigurationMetrics::default(),
            kinds: RwLock::default(),
        };
        let mut registry = metrics::registry("opensdn_webhook");
        all.register_reviews(&mut registry);
        all.register_state(&mut registry);
        all.background.register(&mut registry);
        all.audit.register(&mut registry);
        all.configuration.register(&mut registry);
        counts::register_all(&mut registry);
        Self { all: Arc::new(all), registry: Arc::new(registry) }
    }

    /// What the HTTPS port counts.
    pub fn server(&self) -> ServerMetrics {
        self.all.server.clone()
    }

    /// What the certificate controller counts.
    pub fn certificate(&self) -> CertificateMetrics {
        self.all.certificate.clone()
    }

    /// What the controller of the webhook configurations counts.
    pub fn configuration(&self) -> ConfigurationMetrics {
        self.all.configuration.clone()
    }

    /// What the work in the background counts.
    pub fn background(&self) -> BackgroundMetrics {
        self.all.background.clone()
    }

    /// What the audit counts.
    pub fn audit(&self) -> AuditMetrics {
        self.all.audit.clone()
    }

    /// Says which kinds (`group/Kind`) have series of their own: those that loaded policies are
    /// about. All others are counted as `other`, since any client could invent them.
    pub fn know_kinds<'a>(&self, labels: impl IntoIterator<Item = &'a str>) {
        let mut known = self.all.kinds.write().unwrap_or_else(PoisonError::into_inner);
        for label in labels {
            let (group, kind) = split(label);
            let kinds = known.entry(group.to_owned()).or_default();
            if !kinds.contains_key(kind) {
                kinds.insert(kind.to_owned(), KindMetrics::new(label, self.all.reviews.clone()));
            }
        }
    }

    /// The handle for one kind (`group/Kind`).
    pub fn kind(&self, label: &str) -> Arc<KindMetrics> {
        let (group, kind) = split(label);
        self.kind_of(group, kind)
    }

    /// The same without a label: a review makes none.
    pub fn kind_of(&self, group: &str, kind: &str) -> Arc<KindMetrics> {
        let known = self.all.kinds.read().unwrap_or_else(PoisonError::into_inner);
        let kinds = known.get(group);
        kinds.and_then(|kinds| kinds.get(kind)).unwrap_or(&self.all.other_kinds).clone()
    }

    /// The handle for one policy; its series appear now, with zeros.
    pub fn policy(&self, name: &str, mode: Mode) -> PolicyMetrics {
        let policy = name.to_owned();
        let count = |verdict| {
            let mode = mode.label();
            let labels = EvaluationLabels { policy: policy.clone(), mode, verdict };
            self.all.evaluations.get_or_create_owned(&labels)
        };
        let verdicts = VerdictCounters {
            allowed: count(Verdict::Allowed),
            warned: count(Verdict::Warned),
            denied: count(Verdict::Denied),
            failed: count(Verdict::Failed),
        };
        let label = PolicyLabel { policy: policy.clone() };
        let seconds = self.all.evaluation_seconds.get_or_create_owned(&label);
        PolicyMetrics { policy, verdicts, seconds, failures: self.all.failures.clone() }
    }

    /// Whether the newest version of a policy is the one that serves: 1 yes, 0 no. A policy that
    /// is gone keeps its counters (they are sums) and loses this.
    pub fn policy_loaded(&self, name: &str, state: Loaded) {
        let (loaded, label) = (&self.all.policy_loaded, PolicyLabel { policy: name.to_owned() });
        let current = match state {
            Loaded::Gone => {
                loaded.remove(&label);
                return;
            }
            Loaded::Current => 1,
            Loaded::Broken => 0,
        };
        loaded.get_or_create_owned(&label).set(current);
    }

    /// 1 while the AdmissionPolicies cannot be read, so that what is active may be outdated.
    pub fn policies_outdated(&self) -> &Gauge {
        &self.all.policies_outdated
    }

    /// 1 when the lookup cache of a kind can be relied on, else 0.
    pub fn lookup_cache_synced(&self, kind: &str) -> Gauge {
        self.all.cache_synced.get_or_create_owned(&KindLabel { kind: kind.to_owned() })
    }

    /// Seconds since the last answer of the API server to the lookup cache of a kind.
    pub fn lookup_cache_staleness(&self, kind: &str) -> SecondsGauge {
        self.all.cache_staleness.get_or_create_owned(&KindLabel { kind: kind.to_owned() })
    }

    /// Removes the series of a lookup cache that is no longer needed.
    pub fn forget_lookup_cache(&self, kind: &str) {
        let label = KindLabel { kind: kind.to_owned() };
        self.all.cache_synced.remove(&label);
        self.all.cache_staleness.remove(&label);
    }

    /// Claims taken in a scope.
    pub fn claims_taken(&self, scope: &str) -> Counter {
        self.all.claims_taken.get_or_create_owned(&self.scope(scope))
    }

    /// Claims that another object held already.
    pub fn claim_conflicts(&self, scope: &str) -> Counter {
        self.all.claim_conflicts.get_or_create_owned(&self.scope(scope))
    }

    /// A scope is free text of a policy, and an evaluation may make it of what it was given: the
    /// first [`MAX_SCOPES`] have series of their own.
    fn scope(&self, scope: &str) -> ScopeLabel {
        let mut known = self.all.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = scope.len() <= MAX_SCOPE_BYTES && known.len() < MAX_SCOPES;
        if !known.contains(scope) {
            if !fits {
                return ScopeLabel { scope: OTHER.to_owned() };
            }
            known.insert(scope.to_owned());
        }
        ScopeLabel { scope: scope.to_owned() }
    }

    /// What the admin port shows.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// What has become of a policy's newest version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It serves.
    Current,
    /// It could not be loaded; an older one may serve.
    Broken,
    /// The policy was deleted.
    Gone,
}

impl All {
    /// Registers what a review adds to. The registry appends `_total` and the unit.
    fn register_reviews(&self, registry: &mut Registry) {
        let seconds = Some(Unit::Seconds);
        register(
            registry,
            [
                ("reviews", "Reviews answered", None, Box::new(self.reviews.clone())),
                (
                    "review_duration",
                    "Time from a request's head to its answer",
                    seconds.clone(),
                    Box::new(self.review_seconds.clone()),
                ),
                (
                    "policy_evaluations",
                    "Evaluations of a policy",
                    None,
                    Box::new(self.evaluations.clone()),
                ),
                (
                    "policy_evaluation_duration",
                    "Time of one evaluation of a policy",
                    seconds,
                    Box::new(self.evaluation_seconds.clone()),
                ),
                (
                    "evaluation_failures",
                    "Evaluations that could not be computed",
                    None,
                    Box::new(self.failures.clone()),
                ),
                (
                    "claims_taken",
                    "Uniqueness claims taken",
                    None,
                    Box::new(self.claims_taken.clone()),
                ),
                (
                    "claim_conflicts",
                    "Uniqueness claims that another object held",
                    None,
                    Box::new(self.claim_conflicts.clone()),
                ),
            ],
        );
    }

    /// Registers what describes the process.
    fn register_state(&self, registry: &mut Registry) {
        self.certificate.register(registry);
        register(
            registry,
            [
                (
                    "requests_shed",
                    "Calls answered 429 because too many were waiting",
                    None,
                    Box::new(self.server.shed.clone()),
                ),
                (
                    "unknown_paths",
                    "Calls answered 404: the path has no token that is accepted",
                    None,
                    Box::new(self.server.unknown_paths.clone()),
                ),
                (
                    "connections",
                    "Open connections",
                    None,
                    Box::new(self.server.connections.clone()),
                ),
                (
                    "policy_loaded",
                    "1 if the newest version of the policy serves",
                    None,
                    Box::new(self.policy_loaded.clone()),
                ),
                (
                    "policies_outdated",
                    "1 while the AdmissionPolicies cannot be read",
                    None,
                    Box::new(self.policies_outdated.clone()),
                ),
                (
                    "lookup_cache_synced",
                    "1 if lookups of the kind are answered",
                    None,
                    Box::new(self.cache_synced.clone()),
                ),
                (
                    "lookup_cache_staleness",
                    "Time since the last answer of the API server",
                    Some(Unit::Seconds),
                    Box::new(self.cache_staleness.clone()),
                ),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use opensdn_runtime::metrics::encode;

    use super::*;

    #[test]
    fn scopes_of_claims_have_a_bounded_number_of_series() {
        let metrics = Metrics::new();
        for number in 0..1_000 {
            metrics.claims_taken(&format!("scope-{number}")).inc();
            metrics.claim_conflicts(&format!("scope-{number}")).inc();
        }
        metrics.claims_taken(&"x".repeat(MAX_SCOPE_BYTES + 1)).inc();
        metrics.claims_taken("scope-0").inc();
        let text = encode(&metrics.registry()).unwrap();
        let series = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(series("opensdn_webhook_claims_taken_total{"), MAX_SCOPES + 1);
        assert_eq!(series("opensdn_webhook_claim_conflicts_total{"), MAX_SCOPES + 1);
        assert!(text.contains(r#"claims_taken_total{scope="scope-0"} 2"#), "{text}");
        assert!(text.contains(r#"claims_taken_total{scope="other"} 937"#), "{text}");
    }
}
