//! Evaluates the policies in force on what is stored, at intervals: objects that were there before a
//! policy, or that passed while the webhook was away. Nothing is changed or deleted.
//!
//! Each object is evaluated as if it were created and as if it were updated to itself, page by page,
//! by the same function as a request. The summary is one ConfigMap of bounded size: counts, the
//! first findings of each policy, and what was not checked and why. Where an API for reports is
//! installed, each object with findings has one, too (`report_writer.rs`). By the replica that holds the
//! Lease; again after an interval, when the policies in force have changed, and sooner where something could not
//! be read or written, or when conflicts become known that were not.
//!
//! Deliberately not here: which stored objects claim one key, which `claims::controller` finds out all the time.

pub(crate) mod args;
mod object_report;
mod report;
mod report_writer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::ObjectMeta;
use opensdn_audit_report::PolicyReports;
use opensdn_policy_host::stored::{EvaluateAs, StoredObject, Subjects, distinct};
use opensdn_policy_host::{Binding, Mode, PolicySet};
use opensdn_runtime::apply::{Context, apply};
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::discovery::{Discovery, Resolution, Resource};
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::levels;
use opensdn_runtime::list;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::claims::Claims;
use crate::evaluate::Evaluator;
use crate::metrics::AuditMetrics;
use report::Report;
use report_writer::{ReportWriter, Verified};

/// Name of the ConfigMap with the report, and of who writes it.
pub use opensdn_deploy::names::webhook::AUDIT_REPORT as REPORT;

/// Its key.
pub use opensdn_audit_report::SUMMARY_KEY as REPORT_KEY;

/// Objects per page of a list. Anyone who may create objects may give each a megabyte, and a page is held as a
/// whole.
const PAGE: u32 = 20;
/// How long the API server may take for one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// A list that changes so much that its position is lost is started again so many times.
const ATTEMPTS: u32 = 3;

/// After an audit that could not read or write something the next starts so soon, or after the interval.
const RETRY: Duration = Duration::from_secs(300);

/// Audits what is stored.
pub struct Audit {
    client: Client,
    evaluator: Evaluator,
    claims: Claims,
    discovery: Discovery,
    namespace: String,
    timing: Timing,
    metrics: AuditMetrics,
    last: Mutex<Last>,
}

/// How an audit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// All could be read and written that the cluster has.
    Complete,
    /// Not all could.
    Incomplete,
    /// It was not known yet which objects claim what an older one has.
    WithoutConflicts,
}

impl Ended {
    fn of(
        conflicts_are_known: bool,
        is_read: bool,
        reports: Option<&PolicyReports>,
        is_published: bool,
    ) -> Self {
        let is_written = is_published && reports.is_none_or(|reports| reports.failure.is_empty());
        match (conflicts_are_known, is_read && is_written) {
            (false, _) => Self::WithoutConflicts,
            (true, true) => Self::Complete,
            (true, false) => Self::Incomplete,
        }
    }

    /// Returns when the next is due, if nothing changes before: `known` says whether conflicts are known.
    async fn next_due(self, interval: Duration, known: impl Fn() -> bool) {
        let pause = self.pause(interval);
        match self {
            Self::Complete | Self::Incomplete => sleep(pause).await,
            Self::WithoutConflicts => drop(timeout(pause, until(known)).await),
        }
    }

    /// How long after its end the next starts at the latest.
    fn pause(self, interval: Duration) -> Duration {
        match self {
            Self::Complete => interval,
            Self::Incomplete | Self::WithoutConflicts => interval.min(RETRY),
        }
    }
}

/// Returns when it is so.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(POLL_INTERVAL).await;
    }
}

/// What is known of the last audit. One that is broken off forgets it.
#[derive(Default)]
struct Last {
    verified: Verified,
    /// What it found stays where the next cannot look.
    report: Option<Report>,
}

/// When an audit runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long after the Lease was acquired, or the policies in force have changed, one starts.
    pub first: Duration,
    /// How long after the end of one the next starts.
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
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("write the report as JSON")]
    Json(#[source] serde_json::Error),
}

impl Audit {
    /// Writes its report into `namespace`.
    #[must_use]
    pub fn new(
        client: Client,
        evaluator: Evaluator,
        claims: Claims,
        discovery: Discovery,
        namespace: &str,
        timing: Timing,
        metrics: AuditMetrics,
    ) -> Self {
        let (namespace, last) = (namespace.to_owned(), Mutex::default());
        Self { client, evaluator, claims, discovery, namespace, timing, metrics, last }
    }

    /// Audits whenever this replica holds the Lease, until dropped.
    pub async fn run(self, mut leadership: Leadership) {
        loop {
            if !leadership.is_held() {
                leadership.changed().await;
                continue;
            }
            tokio::select! {
                () = self.repeat() => {}
                () = leadership.changed() => {}
            }
            if !leadership.is_held() {
                self.metrics.forget();
                *self.last() = Last::default();
            }
        }
    }

    async fn repeat(&self) {
        let mut changed = self.evaluator.changed();
        sleep(self.timing.first).await;
        loop {
            changed.mark_unchanged();
            let mut ended = Ended::Complete;
            if let Some(set) = self.evaluator.in_force() {
                let mut underway = Underway { is_ended: false };
                ended = self.pass(&set).await;
                underway.is_ended = true;
            }
            let interval = self.timing.interval;
            tokio::select! {
                () = ended.next_due(interval, || self.claims.conflicts_are_known()) => {}
                // Who has put a policy in force wants to know what it says. Several come together.
                Ok(()) = changed.changed() => sleep(self.timing.first).await,
            }
        }
    }

    async fn pass(&self, set: &Arc<PolicySet>) -> Ended {
        let mut report = Report::start(set, Timestamp::now().to_string());
        let mut served = self.discovery.changed();
        // Where they cannot be read, each kind says so in the report.
        let read = served.wait_for(|snapshot| snapshot.read_at.is_some());
        drop(timeout(CALL_TIMEOUT, read).await);
        let snapshot = self.discovery.snapshot();
        let last = std::mem::take(&mut *self.last());
        let mut reports = ReportWriter::open(&self.client, &snapshot, last.verified).await;
        let subjects = Subjects::of(set.bindings(), &|group| snapshot.kinds_of(group));
        for (policy, why) in subjects.not_listed {
            report.not_checked(format!("policy {policy}"), why);
        }
        let are_known = self.conflicts_are_known(set, &mut report).await;
        let mut is_read = true;
        for (group, kind) in subjects.kinds {
            let unread = match snapshot.find(&group, &kind) {
                Resolution::Served(resource) => {
                    let read = self.kind(&resource, set, &mut report, &mut reports).await;
                    read.err().map(|error| opensdn_runtime::error_chain(&error))
                }
                Resolution::Absent => {
                    let why = "the API server serves no such kind".to_owned();
                    report.not_checked(format!("{group}/{kind}"), why);
                    None
                }
                Resolution::Unknown(why) => Some(why),
            };
            if let Some(why) = unread {
                tracing::warn!(group, kind, error = why, "failed to audit a kind");
                report.unread(&group, &kind, why, last.report.as_ref());
                reports.keep_kind(&group, &kind);
                is_read = false;
            }
        }
        let (reports, verified) = reports.finish().await;
        let is_published = self.publish(&report, reports.as_ref()).await;
        *self.last() = Last { verified, report: Some(report) };
        Ended::of(are_known, is_read, reports.as_ref(), is_published)
    }

    /// Whether it is known which objects claim what an older one has, where policies have them claim anything: that takes
    /// a while after the Lease was acquired.
    async fn conflicts_are_known(&self, set: &PolicySet, report: &mut Report) -> bool {
        let claims =
            |binding: &Binding| binding.mode == Mode::Enforce && binding.policy.metadata().claims;
        let is_known = || !set.bindings().any(claims) || self.claims.conflicts_are_known();
        let is_known = timeout(CALL_TIMEOUT, until(is_known)).await.is_ok();
        if !is_known {
            let why = "which objects claim what an older one has is not known (yet): their conditions UniqueConflict say \
                       what is known, and the conditions UniquenessHolds of AdmissionPolicies why it is not more";
            report.not_checked("keys of objects".to_owned(), why.to_owned());
        }
        is_known
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        // It is replaced as a whole.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn kind(
        &self,
        resource: &Resource,
        set: &PolicySet,
        report: &mut Report,
        reports: &mut ReportWriter,
    ) -> Result<(), Error> {
        let mut attempt = 1;
        let (mut next, mut limit) = (String::new(), PAGE);
        loop {
            let list = match self.page(resource, &next, &mut limit).await {
                Err(Error::Call(error)) if attempt < ATTEMPTS && error.is_expired() => {
                    // Objects would count twice, so the kind starts again.
                    attempt += 1;
                    report.forget(&resource.group, &resource.kind);
                    next.clear();
                    continue;
                }
                list => list?,
            };
            list.next().clone_into(&mut next);
            for object in list.into_objects() {
                self.object(&object, set, report, reports).await;
            }
            if next.is_empty() {
                return Ok(());
            }
        }
    }

    async fn page(
        &self,
        resource: &Resource,
        next: &str,
        limit: &mut u32,
    ) -> Result<list::List, Error> {
        let query = format!("{}?continue={next}", resource.path());
        let call = Call::new(Verb::List, resource.plural.clone()).timeout(CALL_TIMEOUT);
        Ok(call.run(list::page(&self.client, &query, "application/json", limit)).await?)
    }

    async fn object(
        &self,
        object: &Value,
        set: &PolicySet,
        report: &mut Report,
        reports: &mut ReportWriter,
    ) {
        let Some(stored) = StoredObject::read(object) else { return };
        if let Err(error) = levels::check(object) {
            report.not_checked(stored.title(), error.to_string());
            reports.keep(&stored);
            return;
        }
        let mut verdicts = Vec::new();
        for evaluate_as in [EvaluateAs::Created, EvaluateAs::Updated] {
            match self.evaluator.evaluate(set, &stored, evaluate_as).await {
                Ok(verdict) => verdicts.push(verdict),
                Err(error) => {
                    report.not_checked(stored.title(), error.to_string());
                    reports.keep(&stored);
                    return;
                }
            }
        }
        let claims = verdicts.iter().any(|verdict| !verdict.claims.is_empty());
        let may_lack_conflicts = claims && !self.claims.conflicts_are_known();
        let mut found = distinct(verdicts);
        found.extend(self.claims.conflicts_of(&stored));
        // What could not be loaded is said by its AdmissionPolicy, and not once more for each object.
        found.retain(|one| set.bindings().any(|binding| binding.name == one.policy));
        report.add(&stored, &found);
        if may_lack_conflicts {
            // It may have a conflict that an earlier audit has found.
            return reports.keep(&stored);
        }
        reports.write(&stored, &found).await;
    }

    /// Whether it is written.
    async fn publish(&self, report: &Report, reports: Option<&PolicyReports>) -> bool {
        report.log();
        self.metrics.objects.set(report.objects());
        self.metrics.unchecked.set(report.unchecked());
        self.metrics.unwritten.set(reports.map_or(0, |reports| {
            if reports.failure.is_empty() { 0 } else { reports.failed.max(1) }
        }));
        self.metrics.found(report.counts());
        let written = self.write(report, reports).await;
        match &written {
            Ok(()) => self.metrics.ended(),
            Err(error) => {
                let (namespace, name) = (&*self.namespace, REPORT);
                let error = opensdn_runtime::error_chain(error);
                tracing::error!(namespace, name, error, "failed to write the summary of the audit");
            }
        }
        written.is_ok()
    }

    async fn write(&self, report: &Report, reports: Option<&PolicyReports>) -> Result<(), Error> {
        let ended = Timestamp::now().to_string();
        let due = self.timing.interval.as_secs();
        let text = report.text(&ended, due, reports).map_err(Error::Json)?;
        let object = ConfigMap {
            metadata: ObjectMeta {
                name: Some(REPORT.to_owned()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(REPORT_KEY.to_owned(), text)])),
            ..ConfigMap::default()
        };
        let ctx = Context::new(self.client.clone(), REPORT).timeout(CALL_TIMEOUT);
        apply(&ctx, &object).await?;
        Ok(())
    }
}

/// An audit that is under way. One that is dropped before its end, with the Lease, says so.
struct Underway {
    is_ended: bool,
}

impl Drop for Underway {
    fn drop(&mut self) {
        if !self.is_ended {
            tracing::warn!("stopped an audit before its end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_of_which_something_is_not_read_or_not_written_is_incomplete() {
        let written = PolicyReports { written: 2, ..PolicyReports::default() };
        let failed = PolicyReports { failure: "no right to".to_owned(), ..written.clone() };
        for (is_read, reports, is_published, ended) in [
            (true, None, true, Ended::Complete),
            (true, Some(&written), true, Ended::Complete),
            (true, Some(&failed), true, Ended::Incomplete),
            (true, Some(&written), false, Ended::Incomplete),
            (false, Some(&written), true, Ended::Incomplete),
        ] {
            assert_eq!(Ended::of(true, is_read, reports, is_published), ended);
            assert_eq!(Ended::of(false, is_read, reports, is_published), Ended::WithoutConflicts);
        }
    }

    #[test]
    fn an_incomplete_audit_is_repeated_after_five_minutes_or_the_interval() {
        let (long, short) = (Duration::from_secs(3600), Duration::from_secs(60));
        for ended in [Ended::Incomplete, Ended::WithoutConflicts] {
            assert_eq!(ended.pause(long), Duration::from_secs(300));
            assert_eq!(ended.pause(short), short);
        }
        assert_eq!(Ended::Complete.pause(long), long);
    }

    #[tokio::test]
    async fn an_audit_that_lacked_the_conflicts_is_repeated_when_they_become_known() {
        let long = Duration::from_secs(3600);
        let is_due = async |ended: Ended, interval: Duration, is_known: bool| {
            let due = ended.next_due(interval, || is_known);
            timeout(POLL_INTERVAL, due).await.is_ok()
        };
        assert!(is_due(Ended::WithoutConflicts, long, true).await);
        assert!(!is_due(Ended::WithoutConflicts, long, false).await);
        assert!(is_due(Ended::WithoutConflicts, Duration::ZERO, false).await, "or later");
        for ended in [Ended::Complete, Ended::Incomplete] {
            assert!(!is_due(ended, long, true).await, "they were known: {ended:?}");
        }
    }
}
