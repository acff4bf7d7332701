//! Writes the answer to an AdmissionReview. The types cannot express what the API server would
//! take for a failed call: a validating answer has no patch, a patch always has its type.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use opensdn_policy_host::{EvalFailure, Finding, Step, UnappliedPatch};
use serde::Serialize;

use super::{review::Review, text};

/// Causes for programs; a person has the message, which says how many more there are.
const CAUSES: usize = 200;

/// What becomes of the request.
#[derive(Debug, Default)]
pub(super) struct Decision {
    pub(super) findings: Vec<Finding>,
    pub(super) failures: Vec<EvalFailure>,
    pub(super) patch: json_patch::Patch,
    pub(super) unapplied: Vec<UnappliedPatch>,
    /// An object of that name is stored, so it cannot be created.
    pub(super) name_is_taken: bool,
}

impl Decision {
    pub(super) fn of(findings: Vec<Finding>, failures: Vec<EvalFailure>) -> Self {
        Self { findings, failures, ..Self::default() }
    }

    /// Whether no policy has anything to say, in any mode.
    pub(super) fn is_silent(&self) -> bool {
        !self.name_is_taken
            && self.findings.is_empty()
            && self.failures.is_empty()
            && self.unapplied.is_empty()
    }

    pub(super) fn denies(&self) -> bool {
        self.name_is_taken || self.policies_deny()
    }

    fn policies_deny(&self) -> bool {
        self.findings.iter().any(Finding::denies) || self.failures.iter().any(EvalFailure::denies)
    }
}

/// The answer to one review.
pub(super) struct Answer<'a> {
    pub(super) review: &'a Review<'a>,
    pub(super) step: Step,
    pub(super) decision: Decision,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<&'static str, String>,
    #[serde(flatten)]
    patch: Option<JsonPatch>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonPatch {
    patch_type: &'static str,
    patch: String,
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    code: u16,
    reason: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Serialize)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Serialize)]
struct Cause {
    reason: String,
    message: String,
    field: String,
}

impl Answer<'_> {
    pub(super) fn into_bytes(self) -> Bytes {
        let Self { review, step, decision } = self;
        let (denies, policies_deny) = (decision.denies(), decision.policies_deny());
        let Decision { findings, failures, patch, unapplied, .. } = &decision;
        let message = denies.then(|| {
            if policies_deny {
                text::refusal(&review.subject(), findings, failures)
            } else {
                format!("{} already exists", review.subject())
            }
        });
        let status = message.as_deref().map(|message| {
            if policies_deny { status(message, findings, failures) } else { exists(message) }
        });
        let patch = (step == Step::Mutate && !denies && !patch.0.is_empty())
            .then(|| encode(patch))
            .flatten();
        write(Response {
            uid: &review.uid,
            allowed: !denies,
            status,
            warnings: text::warnings(findings, failures, unapplied),
            audit_annotations: annotations(&decision),
            patch,
        })
    }
}

/// A refusal that no policy has to do with.
pub(super) fn refusal(uid: &str, code: u16, reason: &str, message: &str) -> Bytes {
    write(Response {
        uid,
        allowed: false,
        status: Some(Status { status: "Failure", code, reason, message, details: None }),
        warnings: Vec::new(),
        audit_annotations: BTreeMap::new(),
        patch: None,
    })
}

/// As the API server says it of a create whose name is taken: clients act by the reason.
fn exists(message: &str) -> Status<'_> {
    Status { status: "Failure", code: 409, reason: "AlreadyExists", message, details: None }
}

fn status<'a>(message: &'a str, findings: &[Finding], failures: &[EvalFailure]) -> Status<'a> {
    let denials = findings.iter().filter(|finding| finding.denies());
    let causes: Vec<Cause> = denials
        .map(|finding| Cause {
            reason: finding.code.clone(),
            message: text::problem(finding),
            field: text::field(&finding.pointer),
        })
        .chain(failures.iter().filter(|failure| failure.denies()).map(|failure| Cause {
            reason: failure.reason.category().to_owned(),
            message: text::failure(failure),
            field: String::new(),
        }))
        .take(CAUSES)
        .collect();
    let judged = findings.iter().any(Finding::denies);
    let (code, reason) = if judged { (403, "Forbidden") } else { (500, "InternalError") };
    Status { status: "Failure", code, reason, message, details: Some(Details { causes }) }
}

fn encode(patch: &json_patch::Patch) -> Option<JsonPatch> {
    let text = serde_json::to_vec(patch).ok()?;
    Some(JsonPatch { patch_type: "JSONPatch", patch: STANDARD.encode(text) })
}

/// For the audit log: which policies reported or were inconclusive. Texts stay out of it.
fn annotations(decision: &Decision) -> BTreeMap<&'static str, String> {
    let Decision { findings, failures, unapplied, .. } = decision;
    let mut annotations = BTreeMap::new();
    let mut add = |key, values: String| {
        if !values.is_empty() {
            annotations.insert(key, values);
        }
    };
    let found = findings.iter().map(|one| format!("{}/{}", one.policy, one.code));
    add("findings", text::listed(found));
    let failed = |one: &EvalFailure| format!("{}/{}", one.policy, one.reason.category());
    add("failures", text::listed(failures.iter().map(failed)));
    add("unapplied-patches", text::listed(unapplied.iter().map(|one| one.policy.clone())));
    annotations
}

fn write(response: Response<'_>) -> Bytes {
    let envelope =
        Envelope { api_version: "admission.k8s.io/v1", kind: "AdmissionReview", response };
    // Texts, numbers and lists of them: there is nothing in these types that cannot be written.
    serde_json::to_vec(&envelope).unwrap_or_default().into()
}
