//! The report on an Upgrade that has come to an end, in the form that policy engines and their dashboards share, where an API
//! for it is installed. It goes with the Upgrade, whose status has all of it and more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::api::{ApiResource, DynamicObject};
use kube::{Client, ResourceExt as _};
use opensdn_audit_report::{
    API_GROUPS, ApiGroup, Counts, MOST_RESULTS, Outcome, PolicyReport, ReportResult, SOURCE, Scope,
    Timestamp,
};
use opensdn_crds::upgrade::{Phase, State, Step, UpgradeStatus, Wave};
use opensdn_runtime::apply::{Context as Writer, apply_as};
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::error_chain;
use opensdn_upgrade::plan::{REFUSED, SKIPPABLE};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::kind::Kind;
use crate::names::UPGRADE_OPERATOR;

/// What the results are called, as those of an AdmissionPolicy are by its name.
const POLICY: &str = "upgrade";
/// What they are about.
const CATEGORY: &str = "Upgrade";
/// Longest message of a result, in characters.
const MESSAGE: usize = 1000;
/// After that it is tried again, where no API for reports is installed, or one is not written.
const PAUSE: Duration = Duration::from_secs(10 * 60);

/// As many are remembered.
const MOST_WRITTEN: usize = 1000;

/// Writes reports.
pub(super) struct Reports {
    client: Client,
    /// The fingerprint of each that was written, by the UID of its Upgrade.
    written: Mutex<HashMap<String, String>>,
    /// Until then none is in that namespace.
    not_before: Mutex<HashMap<String, Instant>>,
    /// Where they are written, and until when that is taken for so.
    target: Mutex<Option<(Instant, &'static ApiGroup, ApiResource)>>,
}

impl Reports {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            written: Mutex::default(),
            not_before: Mutex::default(),
            target: Mutex::default(),
        }
    }

    /// Writes it, if it is at an end and says something new. When it is to be tried again, where that failed: an Upgrade
    /// fails for no report.
    pub(super) async fn publish(
        &self,
        writer: &Writer,
        upgrade: &DynamicObject,
        status: &UpgradeStatus,
    ) -> Option<Duration> {
        let report = report(upgrade, status)?;
        let (uid, fingerprint) = (upgrade.uid().unwrap_or_default(), report.fingerprint());
        let namespace = upgrade.namespace().unwrap_or_default();
        if lock(&self.written).get(&uid) == Some(&fingerprint) {
            return None;
        }
        let until = lock(&self.not_before).get(&namespace).copied();
        let rest = until.and_then(|until| until.checked_duration_since(Instant::now()));
        if rest.is_some() {
            return rest;
        }
        let made = match self.served().await {
            Ok(Some((group, kind))) => write(writer, upgrade, &report, group, &kind).await,
            // Nobody would read it.
            Ok(None) => return self.rest(namespace),
            Err(error) => Err(error),
        };
        if let Err(error) = made {
            let name = upgrade.name_any();
            tracing::warn!(
                namespace,
                name,
                "failed to write the report on an upgrade: {}",
                error_chain(&error)
            );
            return self.rest(namespace);
        }
        let mut written = lock(&self.written);
        // Of one that is gone no pass says so. What is forgotten is applied once more, which changes nothing.
        if written.len() >= MOST_WRITTEN {
            written.clear();
        }
        written.insert(uid, fingerprint);
        None
    }

    fn rest(&self, namespace: String) -> Option<Duration> {
        lock(&self.not_before).insert(namespace, Instant::now() + PAUSE);
        Some(PAUSE)
    }

    /// The first API for reports that the cluster serves: in one alone, as programs that read both would count everything twice.
    async fn served(&self) -> Result<Option<(&'static ApiGroup, ApiResource)>, CallError> {
        let known = lock(&self.target).clone().filter(|(until, ..)| *until > Instant::now());
        if let Some((_, group, kind)) = known {
            return Ok(Some((group, kind)));
        }
        let groups = Call::new(Verb::Get, "API groups").run(self.client.list_api_groups()).await?;
        for group in &API_GROUPS {
            let Some(found) = groups.groups.iter().find(|one| one.name == group.group) else {
                continue;
            };
            let preferred = found.preferred_version.as_ref().or(found.versions.first());
            let Some(version) = preferred else { continue };
            let resources = self.client.list_api_group_resources(&version.group_version);
            let resources = Call::new(Verb::Get, version.group_version.clone()).run(resources);
            let all = resources.await?.resources;
            if let Some(one) = all.iter().find(|one| one.kind == group.namespaced) {
                let kind = ApiResource {
                    group: group.group.to_owned(),
                    version: version.version.clone(),
                    api_version: version.group_version.clone(),
                    kind: one.kind.clone(),
                    plural: one.name.clone(),
                };
                *lock(&self.target) = Some((Instant::now() + PAUSE, group, kind.clone()));
                return Ok(Some((group, kind)));
            }
        }
        Ok(None)
    }
}

async fn write(
    writer: &Writer,
    upgrade: &DynamicObject,
    report: &PolicyReport,
    group: &ApiGroup,
    kind: &ApiResource,
) -> Result<(), CallError> {
    let name = format!("opensdn-upgrade-{}", upgrade.uid().unwrap_or_default());
    let object = report.object(group, &kind.version, &name, UPGRADE_OPERATOR);
    // It was made as an object, of fields that every object has.
    let Ok(object) = serde_json::from_value::<DynamicObject>(object) else { return Ok(()) };
    apply_as(writer, kind, &object).await.map(drop)
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing of it can be left half changed.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What it says, once the Upgrade is over, is refused, or waits for a person.
fn report(upgrade: &DynamicObject, status: &UpgradeStatus) -> Option<PolicyReport> {
    let is_at_end = matches!(
        status.phase?,
        Phase::Succeeded | Phase::RolledBack | Phase::Stopped | Phase::Refused
    );
    if !is_at_end {
        return None;
    }
    let whole = Found {
        rule: "upgrade".to_owned(),
        outcome: match status.phase? {
            Phase::Succeeded => Outcome::Pass,
            _ => Outcome::Fail,
        },
        message: status.message.clone().unwrap_or_default(),
        at: status.finished_at.clone(),
    };
    let remarks = status.remarks.iter().flatten().map(|one| Found {
        rule: one.code.clone(),
        outcome: match [REFUSED, SKIPPABLE].contains(&one.severity.as_str()) {
            true => Outcome::Fail,
            false => Outcome::Warn,
        },
        message: one.message.clone(),
        at: status.started_at.clone(),
    });
    let waves = status.waves.iter().flatten().map(of_wave);
    let steps = status.steps.iter().flatten().map(of_step);
    let mut all: Vec<Found> =
        [whole].into_iter().chain(remarks).chain(waves).chain(steps).collect();
    let counts = Counts::of(all.iter().map(|one| one.outcome));
    // One that was refused has not started.
    let made = upgrade.metadata.creation_timestamp.as_ref().map(|time| time.0.as_second());
    let started = status.started_at.as_deref().and_then(seconds).or(made).unwrap_or_default();
    // Worst first: those that are cut off are in order, or were left out.
    all.sort_by_key(|one| one.outcome);
    let results = all.into_iter().take(MOST_RESULTS).map(|one| one.result(started)).collect();
    Some(PolicyReport { scope: scope(upgrade), results, counts })
}

fn of_wave(wave: &Wave) -> Found {
    let gate = wave.gate.iter().flatten();
    let shut: Vec<_> = gate.filter_map(|check| check.message.as_deref()).collect();
    Found {
        rule: wave.name.clone(),
        outcome: outcome(wave.state),
        message: match shut.is_empty() {
            true => format!("wave: {}", wave.state),
            false => format!("wave: {}: {}", wave.state, shut.join("; ")),
        },
        at: wave.finished_at.clone(),
    }
}

fn of_step(step: &Step) -> Found {
    let images =
        step.images.iter().map(|one| format!("{} {} -> {}", one.container, one.from, one.to));
    let why = step.message.as_ref().map_or_else(String::new, |why| format!("{why}; "));
    Found {
        rule: step.id.clone(),
        outcome: outcome(step.state),
        message: format!("{}: {why}{}", step.state, images.collect::<Vec<_>>().join(", ")),
        at: step.finished_at.clone(),
    }
}

fn outcome(state: State) -> Outcome {
    match state {
        State::Succeeded => Outcome::Pass,
        State::Failed => Outcome::Fail,
        State::RolledBack => Outcome::Warn,
        // What was not done, or is not done yet.
        State::Pending | State::Canary | State::Running | State::Skipped | State::RollingBack => {
            Outcome::Skip
        }
    }
}

/// One result in the making.
struct Found {
    rule: String,
    outcome: Outcome,
    message: String,
    /// RFC 3339.
    at: Option<String>,
}

impl Found {
    fn result(self, started: i64) -> ReportResult {
        ReportResult {
            source: SOURCE.to_owned(),
            policy: POLICY.to_owned(),
            rule: self.rule,
            category: CATEGORY.to_owned(),
            severity: self.outcome.severity(),
            result: self.outcome,
            scored: matches!(self.outcome, Outcome::Pass | Outcome::Fail),
            message: self.message.chars().take(MESSAGE).collect(),
            timestamp: Timestamp {
                seconds: self.at.as_deref().and_then(seconds).unwrap_or(started),
                nanos: 0,
            },
            ..ReportResult::default()
        }
    }
}

fn seconds(text: &str) -> Option<i64> {
    OffsetDateTime::parse(text, &Rfc3339).ok().map(OffsetDateTime::unix_timestamp)
}

fn scope(upgrade: &DynamicObject) -> Scope {
    Scope {
        api_version: Kind::Upgrade.resource().api_version,
        kind: Kind::Upgrade.name().to_owned(),
        namespace: upgrade.namespace().unwrap_or_default(),
        name: upgrade.name_any(),
        uid: upgrade.uid().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn reported(status: Value) -> Option<Value> {
        let upgrade = from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": "to-r25-1", "namespace": "tf", "uid": "u"}}));
        let report = report(&upgrade.unwrap(), &from_value(status).unwrap())?;
        Some(report.object(&API_GROUPS[0], "v1alpha1", "r", "m"))
    }

    #[test]
    fn what_is_at_work_has_no_report() {
        for phase in ["Pending", "Running", "Paused", "RollingBack"] {
            assert_eq!(reported(json!({ "phase": phase })), None, "{phase}");
        }
        assert_eq!(reported(json!({})), None);
    }

    #[test]
    fn the_report_of_what_was_refused_has_the_time_at_which_it_was_asked_for() {
        let upgrade = from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": "a", "namespace": "tf", "creationTimestamp": "2026-01-01T00:00:00Z"}}));
        let status = json!({"phase": "Refused", "message": "OSDN5005",
            "remarks": [{"code": "OSDN5005", "severity": "Refused", "message": "older"}]});
        let report = report(&upgrade.unwrap(), &from_value(status).unwrap()).unwrap();
        let times: Vec<_> = report.results.iter().map(|one| one.timestamp.seconds).collect();
        assert_eq!(times, [1_767_225_600; 2]);
    }

    #[test]
    fn each_wave_service_and_remark_is_a_result_with_its_time() {
        let step = |id: &str, state: &str| {
            json!({"id": id, "wave": "web-ui", "state": state, "finishedAt": "2026-01-01T00:00:09Z",
                "message": (state == "Failed").then_some("pod webui1-2: ImagePullBackOff"),
                "images": [{"container": "webuiweb", "from": "w:1", "to": "w:2"}]})
        };
        let report = reported(json!({"phase": "Stopped", "message": "a person has to decide",
            "startedAt": "2026-01-01T00:00:00Z",
            "remarks": [{"code": "OSDN5012", "severity": "Warning", "message": "no way back"}],
            "waves": [{"name": "config", "state": "Succeeded"}, {"name": "web-ui", "state": "Failed"}],
            "steps": [step("Config/a", "Succeeded"), step("Webui/a", "Failed"), step("Webui/b", "Skipped")]}))
        .unwrap();
        assert_eq!(
            report["summary"],
            json!({"pass": 2, "fail": 3, "warn": 1, "error": 0, "skip": 1})
        );
        let results = report["results"].as_array().unwrap();
        let of = |rule: &str| results.iter().find(|one| one["rule"] == rule).unwrap();
        assert_eq!(of("upgrade")["message"], "a person has to decide");
        let failed = of("Webui/a");
        assert_eq!((&failed["result"], &failed["severity"]), (&json!("fail"), &json!("high")));
        assert_eq!(
            failed["message"],
            "Failed: pod webui1-2: ImagePullBackOff; webuiweb w:1 -> w:2"
        );
        assert_eq!(failed["timestamp"]["seconds"], 1_767_225_609);
        assert_eq!(of("OSDN5012")["timestamp"]["seconds"], 1_767_225_600);
        assert_eq!(report["scope"]["name"], "to-r25-1");
        assert_eq!(report["metadata"]["ownerReferences"][0]["uid"], "u");
    }
}
