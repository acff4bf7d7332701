//! What `--progress json` writes to standard error: a JSON object a line, each with its time and its level.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

/// A line.
#[derive(Serialize)]
pub(super) struct Record<'a, F> {
    pub(super) time: String,
    pub(super) level: &'a str,
    #[serde(flatten)]
    pub(super) fields: &'a F,
}

/// What has no more fields.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) message: &'a str,
}

/// The time, to the second: RFC 3339.
pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
