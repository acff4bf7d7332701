//! The status of a NestedCluster (pure): each link-local service with its state, what speaks against the plan, and
//! conditions.

use std::time::Duration;

use kube::api::DynamicObject;
use opensdn_config_api::ownership::How;
use opensdn_crds::nested_cluster::{NestedClusterStatus, Remark, Row};
use opensdn_nested::drift::State;
use opensdn_nested::plan::SnatAction;
use opensdn_nested::{Code, Drift, Plan, Severity};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::cloud::condition::Said;
use crate::names::ALLOW;

/// How old the time of the last look may be: a status that says nothing else is not written for it.
const LOOKED_AT: Duration = Duration::from_secs(10 * 60);
/// So many of each are in a status, and in a message.
const MOST: usize = 64;
const MOST_IN_MESSAGE: usize = 3;

/// What a pass says.
pub(super) struct Report {
    pub(super) said: Said,
    rows: Option<Vec<Row>>,
    remarks: Option<Vec<Remark>>,
}

impl Report {
    /// Without having read the cloud: what was said of it stays.
    pub(super) fn of(said: Said) -> Self {
        Self { said, rows: None, remarks: None }
    }

    /// After the plan.
    pub(super) fn with(said: Said, plan: &Plan, drift: Vec<Drift>) -> Self {
        let is_in_place = said.is_in_place();
        // What was to go has gone with this pass.
        let there = drift.into_iter().filter(|one| !(is_in_place && one.state == State::Orphan));
        let rows = there.take(MOST).map(|one| row(plan, one, is_in_place)).collect();
        let found = plan.findings.iter().map(|finding| Remark {
            code: finding.code.as_str().to_owned(),
            severity: match finding.severity {
                Severity::Error => "Error".to_owned(),
                Severity::Warning => "Warning".to_owned(),
            },
            message: finding.message.clone(),
            hint: Some(finding.hint.clone()).filter(|hint| !hint.is_empty()),
        });
        let unknown = plan.unknown.iter().map(|unknown| Remark {
            code: unknown.code.as_str().to_owned(),
            severity: "Unknown".to_owned(),
            message: unknown.why.clone(),
            hint: None,
        });
        let remarks = found.chain(unknown).take(MOST).collect();
        Self { remarks: Some(remarks), rows: Some(rows), said }
    }

    /// The whole status. `now` is RFC 3339.
    pub(super) fn status(
        self,
        before: &NestedClusterStatus,
        generation: Option<i64>,
        now: &str,
    ) -> NestedClusterStatus {
        let earlier = before.conditions.clone().unwrap_or_default();
        let has_looked = self.rows.is_some();
        let status = NestedClusterStatus {
            conditions: Some(self.said.conditions(&earlier, generation, now)),
            observed_generation: generation,
            rows: self.rows.or_else(|| before.rows.clone()),
            remarks: self.remarks.or_else(|| before.remarks.clone()),
            last_checked: before.last_checked.clone(),
        };
        if has_looked && (status != *before || is_old(before.last_checked.as_deref(), now)) {
            return NestedClusterStatus { last_checked: Some(now.to_owned()), ..status };
        }
        status
    }
}

fn is_old(before: Option<&str>, now: &str) -> bool {
    let time = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
    match (before.and_then(time), time(now)) {
        (Some(before), Some(now)) => now - before >= LOOKED_AT,
        _ => true,
    }
}

fn row(plan: &Plan, one: Drift, is_in_place: bool) -> Row {
    let adopted = plan.rows.iter().find(|row| row.service.to_string() == one.service);
    let adopted = adopted.is_some_and(|row| row.how == How::Adopted);
    // It was put right in this pass.
    let state = if is_in_place && !one.state.is_served() { State::InPlace } else { one.state };
    Row {
        name: one.name,
        service: one.service,
        target: one.target,
        state: state.word().to_owned(),
        code: state.code().map(str::to_owned),
        found: one.found.filter(|_| state != State::InPlace),
        adopted: adopted.then_some(true),
    }
}

/// What the object says at present.
pub(super) fn before(object: &DynamicObject) -> Option<NestedClusterStatus> {
    serde_json::from_value(object.data.get("status").filter(|status| !status.is_null())?.clone())
        .ok()
}

/// All is in place.
pub(super) fn in_place(plan: &Plan) -> Said {
    let count = plan.rows.len();
    let services = if count == 1 { "link-local service" } else { "link-local services" };
    let snat = match plan.snat {
        SnatAction::Leave => String::new(),
        _ => format!(", and fabric SNAT of {}", plan.network.joined()),
    };
    let warnings = plan.findings.len();
    let warnings = match warnings {
        0 => String::new(),
        1 => "; 1 warning is in status.remarks".to_owned(),
        _ => format!("; {warnings} warnings are in status.remarks"),
    };
    Said::in_place(format!("{count} {services}{snat}{warnings}"))
}

/// What carries the name in the cloud may be another cluster's.
pub(super) fn whose_name(why: &str) -> Said {
    let code = Code::ClusterNameTaken;
    Said::stalled(
        "ClusterNameInDoubt",
        format!(
            "{code}: nothing is written: {why}. To say that it is this cluster's, add adopt-name to the annotation {ALLOW}; or, \
             after nested apply, have OPENSDN_RECORD of the login's Secret name its record"
        ),
    )
}

/// The plan has errors, or parts of the cloud could not be read.
pub(super) fn refused(plan: &Plan) -> Said {
    let errors: Vec<_> =
        plan.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let mut texts: Vec<String> = errors
        .iter()
        .take(MOST_IN_MESSAGE)
        .map(|finding| format!("{}: {}: {}", finding.code, finding.message, finding.hint))
        .collect();
    if errors.len() > MOST_IN_MESSAGE {
        texts.push(format!("and {} more in status.remarks", errors.len() - MOST_IN_MESSAGE));
    }
    if errors.is_empty() {
        let parts: Vec<String> = plan
            .unread
            .iter()
            .filter_map(|part| serde_json::to_value(part).ok())
            .filter_map(|part| part.as_str().map(str::to_owned))
            .collect();
        let why = plan.unknown.first().map(|unknown| format!(": {}", unknown.why));
        let message = format!(
            "OSDN3098: the cloud does not say what is needed of it ({}){}",
            parts.join(", "),
            why.unwrap_or_default()
        );
        return Said::waits("Unreadable", message);
    }
    Said::stalled("Refused", format!("nothing is written: {}", texts.join("; ")))
}
