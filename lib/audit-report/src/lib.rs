//! What the background audit found, as it is stored in a cluster: the webhook writes it, the plugin
//! reads it. Two forms: a [`Summary`] of bounded size in a ConfigMap, always; and a
//! [`PolicyReport`] per object with findings, where the API that Kyverno, Kubewarden, Falco and
//! policy-reporter share is installed. Deliberately not here: how findings come about, and any client.

mod policy_report;
mod summary;

pub use policy_report::{
    API_GROUPS, ApiGroup, Counts, FINGERPRINT, MANAGED_BY, MANAGED_BY_LABEL, MOST_RESULTS,
    NAME_PREFIX, Outcome, PolicyReport, ReportResult, ReportSeverity, SOURCE, Scope, Timestamp,
    name_of,
};
pub use summary::{Example, NotChecked, PolicyReports, PolicySummary, Summary};

/// Key of the [`Summary`] in its ConfigMap.
pub const SUMMARY_KEY: &str = "report.json";
