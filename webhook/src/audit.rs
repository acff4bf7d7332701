//! Judges what is stored by the policies in force, again and again: objects that were there
//! before a policy, or that passed while the webhook was away. Nothing is changed or deleted.
//!
//! Each object is judged as if it were created and as if it were updated to itself, page by page,
//! by the same function as a request. The report is one ConfigMap of bounded size: counts, the
//! first findings of each policy, and what was not checked and why. One per pass, by the replica
//! that holds the Lease.
//!
//! Deliberately not here: objects that claim one key, which `claims::keeper` watches all the time.

pub(crate) mod args;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::ListMeta;
use kube::{Api, Client};
use opensdn_policy_host::PolicySet;
use opensdn_runtime::discovery::{Discovery, Resolution, Resource};
use opensdn_runtime::leader::Leadership;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::evaluate::{EvaluateAs, Evaluator, StoredObject, Subjects};
use crate::metrics::BackgroundMetrics;
use report::Report;

/// Name of the ConfigMap with the report.
pub const REPORT: &str = "opensdn-webhook-audit";
/// Its key.
pub const REPORT_KEY: &str = "report.json";

/// Objects per page of a list.
const PAGE: u32 = 500;
/// How long the API server may take for one call.
const PATIENCE: Duration = Duration::from_secs(30);
/// A list that changes so much that its position is lost is begun anew so many times.
const ATTEMPTS: u32 = 3;

/// Audits what is stored.
pub struct Audit {
    client: Client,
    evaluator: Evaluator,
    discovery: Discovery,
    namespace: String,
    timing: Timing,
    metrics: BackgroundMetrics,
}

/// When an audit runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long after the Lease was won the first begins.
    pub first: Duration,
    /// How long after the end of one the next begins.
    pub interval: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { first: Duration::from_secs(60), interval: Duration::from_secs(3600) }
    }
}

/// Why a pass is not reported, or a kind not checked.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{doing}; `{verb}` on {what} has to be granted to the webhook")]
    Call {
        doing: &'static str,
        verb: &'static str,
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("{doing}: the API server does not answer")]
    Silent { doing: &'static str },
    #[error("build a request")]
    Request(#[source] http::Error),
    #[error("write the report as JSON")]
    Json(#[source] serde_json::Error),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    metadata: ListMeta,
    #[serde(default)]
    items: Vec<Value>,
}

impl Audit {
    /// Writes its report into `namespace`.
    #[must_use]
    pub fn new(
        client: Client,
        evaluator: Evaluator,
        discovery: Discovery,
        namespace: &str,
        timing: Timing,
        metrics: BackgroundMetrics,
    ) -> Self {
        Self { client, evaluator, discovery, namespace: namespace.to_owned(), timing, metrics }
    }

    /// Audits whenever this replica holds the Lease, until it is dropped.
    pub async fn run(self, mut leadership: Leadership) {
        loop {
            if !leadership.is_held() {
                leadership.changed().await;
                continue;
            }
            tokio::select! {
                () = self.again_and_again() => {}
                () = leadership.changed() => {}
            }
        }
    }

    async fn again_and_again(&self) {
        sleep(self.timing.first).await;
        loop {
            if let Some(set) = self.evaluator.in_force() {
                self.pass(&set).await;
            }
            sleep(self.timing.interval).await;
        }
    }

    async fn pass(&self, set: &Arc<PolicySet>) {
        let mut report = Report::begin(set, Timestamp::now().to_string());
        let mut served = self.discovery.changed();
        // Where they cannot be read, each kind says so in the report.
        let read = served.wait_for(|table| table.read_at.is_some());
        drop(timeout(PATIENCE, read).await);
        let table = self.discovery.snapshot();
        let subjects = Subjects::of(set.bindings(), &table);
        for (policy, why) in subjects.not_listed {
            report.not_checked(format!("policy {policy}"), why);
        }
        for (group, kind) in subjects.kinds {
            let label = format!("{group}/{kind}");
            match table.find(&group, &kind) {
                Resolution::Served(resource) => {
                    if let Err(error) = self.kind(&resource, set, &mut report).await {
                        report.not_checked(label, opensdn_runtime::error_chain(&error));
                    }
                }
                Resolution::Absent => {
                    report.not_checked(label, "the API server serves no such kind".to_owned());
                }
                Resolution::Unknown(why) => report.not_checked(label, why),
            }
        }
        report.end(Timestamp::now().to_string());
        self.publish(&report).await;
    }

    async fn kind(
        &self,
        resource: &Resource,
        set: &PolicySet,
        report: &mut Report,
    ) -> Result<(), Error> {
        let mut attempt = 1;
        let mut next = String::new();
        loop {
            let list = match self.page(resource, &next).await {
                Err(Error::Call { source, .. })
                    if attempt < ATTEMPTS
                        && matches!(&*source, kube::Error::Api(status) if status.code == 410) =>
                {
                    // Judged objects would count twice, so the kind begins anew.
                    attempt += 1;
                    report.forget(&resource.group, &resource.kind);
                    next.clear();
                    continue;
                }
                list => list?,
            };
            let kind = list.kind.strip_suffix("List").unwrap_or(&list.kind);
            for mut item in list.items {
                if let Value::Object(map) = &mut item {
                    // Objects of a list do not say what they are.
                    map.entry("apiVersion").or_insert_with(|| list.api_version.clone().into());
                    map.entry("kind").or_insert_with(|| kind.into());
                }
                self.object(&item, set, report).await;
            }
            next = list.metadata.continue_.unwrap_or_default();
            if next.is_empty() {
                return Ok(());
            }
        }
    }

    async fn page(&self, resource: &Resource, next: &str) -> Result<List, Error> {
        let doing = "list objects";
        let uri = format!("{}?limit={PAGE}&continue={next}", resource.path());
        let request = http::Request::get(uri).body(Vec::new()).map_err(Error::Request)?;
        let answer = timeout(PATIENCE, self.client.request::<List>(request)).await;
        answer.map_err(|_| Error::Silent { doing })?.map_err(|source| Error::Call {
            doing,
            verb: "list",
            what: resource.plural.clone(),
            source: Box::new(source),
        })
    }

    async fn object(&self, object: &Value, set: &PolicySet, report: &mut Report) {
        let Some(stored) = StoredObject::read(object) else { return };
        let mut verdicts = Vec::new();
        for way in [EvaluateAs::Created, EvaluateAs::Updated] {
            match self.evaluator.evaluate(set, &stored, way).await {
                Ok(verdict) => verdicts.push(verdict),
                Err(error) => {
                    report.not_checked(report::subject(&stored), error.to_string());
                    return;
                }
            }
        }
        report.add(&stored, verdicts);
    }

    async fn publish(&self, report: &Report) {
        report.log();
        self.metrics.audited_objects.set(report.objects());
        self.metrics.audit_unchecked.set(report.unchecked());
        self.metrics.found(report.counts());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.metrics.audit_ended.set(since.as_secs_f64());
        if let Err(error) = self.write(report).await {
            tracing::error!(
                error = opensdn_runtime::error_chain(&error),
                "the report of the audit is not written"
            );
        }
    }

    async fn write(&self, report: &Report) -> Result<(), Error> {
        let text = report.text().map_err(Error::Json)?;
        let data = BTreeMap::from([(REPORT_KEY, text)]);
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": REPORT, "namespace": self.namespace},
            "data": data,
        });
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = PatchParams::apply("opensdn-webhook-audit").force();
        let patch = Patch::Apply(&object);
        let doing = "write the report";
        let answer = timeout(PATIENCE, api.patch(REPORT, &params, &patch)).await;
        let answer = answer.map_err(|_| Error::Silent { doing })?;
        answer.map(drop).map_err(|source| Error::Call {
            doing,
            verb: "patch",
            what: format!("the ConfigMap {REPORT}"),
            source: Box::new(source),
        })
    }
}
