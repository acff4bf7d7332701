//! How an Upgrade went: a view of its object, whose format stays (`opensdn.io/upgrade-report/v1`).

use opensdn_crds::upgrade::{
    GateCheck, ImageChange, NodeInterruption, OnFailure, Phase, ServiceHealth, Skip, State, Step,
    UpgradeRemark, UpgradeSpec, UpgradeStatus,
};
use serde::{Deserialize, Serialize};

use crate::next::{self, is_failure, is_on_its_way_back};
use crate::plan;
use crate::time::parse;

/// The name of the format.
pub const FORMAT: &str = "opensdn.io/upgrade-report/v1";

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It has not ended.
    Running,
    /// All services run the new images.
    Succeeded,
    /// What had been changed runs the earlier images again.
    RolledBack,
    /// A person has to decide.
    Stopped,
    /// A person has to decide, and the way back failed too.
    Failed,
    /// Nothing was begun.
    Refused,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// [`FORMAT`].
    pub format: String,
    /// The Upgrade: namespace and name.
    pub upgrade: String,
    /// The Manager.
    pub manager: String,
    /// How it ended.
    pub verdict: Verdict,
    /// The releases that ran.
    pub from: Option<String>,
    /// The releases that shall run.
    pub to: Option<String>,
    /// The hash of the plan.
    pub plan: Option<String>,
    /// Who asked for it, as he said.
    pub requested_by: Option<String>,
    /// How it was to be done.
    #[serde(default)]
    pub options: Options,
    /// RFC 3339.
    pub started_at: Option<String>,
    /// RFC 3339.
    pub finished_at: Option<String>,
    /// How long it took.
    pub seconds: Option<i64>,
    /// What it says last.
    pub message: Option<String>,
    /// What spoke against it, and by what waves failed.
    pub remarks: Vec<UpgradeRemark>,
    /// By what it failed, and what became of what had been changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The waves with their services.
    pub waves: Vec<WaveReport>,
    /// How many pods were to be replaced.
    pub predicted_restarts: usize,
    /// How often containers were restarted besides.
    pub unplanned_restarts: i64,
    /// How the services were before.
    pub before: Vec<ServiceHealth>,
}

/// How an Upgrade was to be done, with what counts where nothing was said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Options {
    /// How long a wave may be without progress, in seconds.
    pub wave_timeout_seconds: u64,
    /// How long all has to be well after the first pod of a service and after each wave, in seconds.
    pub soak_seconds: u64,
    /// What becomes of a wave that fails, where it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Whether nodes pull the new images before anything is changed.
    pub pre_pull: bool,
    /// On how many nodes vrouters are replaced at a time.
    pub vrouters_at_once: i64,
    /// Whether vrouters wait until their nodes are drained.
    pub wait_for_drain: bool,
    /// Waves before which it pauses.
    pub pause_before: Vec<String>,
    /// Refusals that it passes over.
    pub force: Vec<String>,
    /// Services that are left out, with the reason and who wants it.
    pub left_out: Vec<Skip>,
}

impl Options {
    fn of(spec: &UpgradeSpec, steps: &[Step]) -> Self {
        // What is asked for when all is over was not done, nor was what is no step.
        let is_left_out = |skip: &&Skip| {
            let step = steps.iter().find(|step| step.id == skip.step);
            step.map_or(steps.is_empty(), |step| step.state != State::Succeeded)
        };
        Self {
            wave_timeout_seconds: next::wave_timeout(spec).as_secs(),
            soak_seconds: next::soak(spec).as_secs(),
            on_failure: spec.on_failure,
            pre_pull: spec.pre_pull != Some(false),
            vrouters_at_once: spec.vrouters_at_once.unwrap_or(1),
            wait_for_drain: spec.wait_for_drain == Some(true),
            pause_before: spec.pause_before.clone().unwrap_or_default(),
            force: spec.force.clone().unwrap_or_default(),
            left_out: spec.skip.iter().flatten().filter(is_left_out).cloned().collect(),
        }
    }
}

/// By what it failed last.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The wave, and what it waited for.
    pub message: String,
    /// Services that have their earlier images again.
    pub rolled_back: Vec<String>,
    /// Services that were changed and have new images on at least one pod, or may have.
    pub not_rolled_back: Vec<String>,
}

/// How a wave went.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaveReport {
    /// Its name.
    pub name: String,
    /// How far it came.
    pub state: State,
    /// RFC 3339.
    #[serde(default)]
    pub started_at: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    pub finished_at: Option<String>,
    /// How long it took.
    pub seconds: Option<i64>,
    /// Why there is no way back behind it, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_way_back: Option<String>,
    /// What its gate asked, and what was found last.
    pub gate: Vec<GateCheck>,
    /// Its services.
    pub services: Vec<ServiceReport>,
}

/// How a service went.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceReport {
    /// Kind and name.
    pub service: String,
    /// How far it came.
    pub state: State,
    /// Its images.
    pub images: Vec<ImageChange>,
    /// Its pods, when it was planned; of many some are named.
    pub pods: Vec<String>,
    /// How many pods it had, when it was planned.
    #[serde(default)]
    pub pod_count: usize,
    /// RFC 3339.
    #[serde(default)]
    pub started_at: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    pub finished_at: Option<String>,
    /// How long it took.
    pub seconds: Option<i64>,
    /// How often it was begun.
    pub attempts: i64,
    /// How often containers of its new pods were restarted.
    pub restarts: i64,
    /// For how long nodes were without it, of Vrouter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interruptions: Vec<NodeInterruption>,
    /// What it says last.
    pub message: Option<String>,
}

/// The verdict.
#[must_use]
pub fn verdict(status: &UpgradeStatus) -> Verdict {
    match status.phase.unwrap_or(Phase::Pending) {
        Phase::Pending | Phase::Running | Phase::Paused | Phase::RollingBack => Verdict::Running,
        Phase::Stopped if is_on_its_way_back(status) => Verdict::Failed,
        Phase::Stopped => Verdict::Stopped,
        Phase::Succeeded => Verdict::Succeeded,
        Phase::RolledBack => Verdict::RolledBack,
        Phase::Refused => Verdict::Refused,
    }
}

/// The report of an Upgrade by its namespace and name.
#[must_use]
pub fn report(upgrade: &str, spec: &UpgradeSpec, status: &UpgradeStatus) -> Report {
    let steps = status.steps.as_deref().unwrap_or_default();
    let waves = status.waves.iter().flatten().map(|wave| WaveReport {
        name: wave.name.clone(),
        state: wave.state,
        started_at: wave.started_at.clone(),
        finished_at: wave.finished_at.clone(),
        seconds: seconds(wave.started_at.as_ref(), wave.finished_at.as_ref()),
        no_way_back: wave.no_way_back.clone(),
        gate: wave.gate.clone().unwrap_or_default(),
        services: steps.iter().filter(|step| step.wave == wave.name).map(service).collect(),
    });
    Report {
        format: FORMAT.to_owned(),
        upgrade: upgrade.to_owned(),
        manager: spec.manager.clone(),
        verdict: verdict(status),
        from: status.from.clone(),
        to: status.to.clone(),
        plan: status.plan.clone(),
        requested_by: spec.requested_by.clone(),
        options: Options::of(spec, steps),
        started_at: status.started_at.clone(),
        finished_at: status.finished_at.clone(),
        seconds: seconds(status.started_at.as_ref(), status.finished_at.as_ref()),
        message: status.message.clone(),
        remarks: status.remarks.clone().unwrap_or_default(),
        failure: failure(status),
        waves: waves.collect(),
        predicted_restarts: plan::pods(steps),
        unplanned_restarts: steps
            .iter()
            .filter_map(|step| step.restarts)
            .fold(0, i64::saturating_add),
        before: status.snapshot.clone().unwrap_or_default(),
    }
}

fn failure(status: &UpgradeStatus) -> Option<Failure> {
    let last = status.remarks.iter().flatten().find(|one| is_failure(one))?;
    let tried = status.steps.iter().flatten().filter(|step| step.attempts.is_some());
    let (back, not): (Vec<&Step>, Vec<&Step>) =
        tried.partition(|step| step.state == State::RolledBack);
    let ids = |steps: Vec<&Step>| steps.into_iter().map(|step| step.id.clone()).collect();
    Some(Failure {
        message: last.message.clone(),
        rolled_back: ids(back),
        not_rolled_back: ids(not),
    })
}

fn service(step: &Step) -> ServiceReport {
    ServiceReport {
        service: step.id.clone(),
        state: step.state,
        images: step.images.clone(),
        pods: step.pods.clone().unwrap_or_default(),
        pod_count: plan::pod_count(step).unwrap_or_default(),
        started_at: step.started_at.clone(),
        finished_at: step.finished_at.clone(),
        seconds: seconds(step.started_at.as_ref(), step.finished_at.as_ref()),
        attempts: step.attempts.unwrap_or_default(),
        restarts: step.restarts.unwrap_or_default(),
        interruptions: step.interruptions.clone().unwrap_or_default(),
        message: step.message.clone(),
    }
}

/// Between two times, RFC 3339.
#[must_use]
pub fn seconds(from: Option<&String>, to: Option<&String>) -> Option<i64> {
    Some((parse(to?)? - parse(from?)?).whole_seconds())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::next::FAILURE;

    #[test]
    fn the_verdict_is_that_of_the_phase_and_each_phase_has_one() {
        for phase in Phase::ALL {
            let status = UpgradeStatus { phase: Some(*phase), ..UpgradeStatus::default() };
            let is_over = !matches!(
                phase,
                Phase::Pending | Phase::Running | Phase::Paused | Phase::RollingBack
            );
            assert_eq!(verdict(&status) != Verdict::Running, is_over, "{phase}");
        }
    }

    #[test]
    fn a_report_says_by_what_it_failed_and_what_became_of_what_was_changed() {
        let step = |id: &str, state, attempts| Step {
            state,
            attempts,
            ..Step::new(id.to_owned(), "config".to_owned(), Vec::new())
        };
        let mut status = UpgradeStatus {
            phase: Some(Phase::Stopped),
            steps: Some(vec![
                step("Zookeeper/a", State::RolledBack, Some(1)),
                step("Config/a", State::RollingBack, Some(1)),
                step("Webui/a", State::Pending, None),
            ]),
            waves: serde_json::from_str(r#"[{"name": "config", "state": "RollingBack"}]"#).unwrap(),
            ..UpgradeStatus::default()
        };
        let of = |status: &UpgradeStatus| report("tf/a", &UpgradeSpec::default(), status);
        assert_eq!((of(&status).verdict, of(&status).failure), (Verdict::Failed, None));
        let remark = |code: &str| UpgradeRemark {
            code: code.to_owned(),
            severity: "Failed".to_owned(),
            message: format!("of {code}"),
        };
        status.remarks = Some(vec![remark("OSDN5013"), remark(FAILURE)]);
        let failure = of(&status).failure.unwrap();
        assert_eq!(failure.message, format!("of {FAILURE}"));
        assert_eq!(failure.rolled_back, ["Zookeeper/a"]);
        assert_eq!(failure.not_rolled_back, ["Config/a"]);
        status.steps.as_mut().unwrap()[1].state = State::Failed;
        status.waves = None;
        assert_eq!(of(&status).verdict, Verdict::Stopped);
    }

    #[test]
    fn a_report_has_each_service_in_its_wave_with_times() {
        let time = |second: u8| Some(format!("2026-01-01T00:00:{second:02}Z"));
        let step = |id: &str| opensdn_crds::upgrade::Step {
            state: State::Succeeded,
            pods: Some(vec!["a-0".to_owned(), "a-1".to_owned()]),
            pod_count: Some(300),
            started_at: time(1),
            finished_at: time(8),
            attempts: Some(1),
            restarts: Some(3),
            ..opensdn_crds::upgrade::Step::new(id.to_owned(), "config".to_owned(), Vec::new())
        };
        let wave = opensdn_crds::upgrade::Wave {
            name: "config".to_owned(),
            state: State::Succeeded,
            started_at: time(1),
            finished_at: time(31),
            deadline: None,
            progress: None,
            healthy_since: None,
            restarts: None,
            gate: None,
            no_way_back: None,
        };
        let status = UpgradeStatus {
            phase: Some(Phase::Succeeded),
            started_at: time(0),
            finished_at: time(40),
            waves: Some(vec![wave]),
            steps: Some(vec![step("Config/a")]),
            ..UpgradeStatus::default()
        };
        let report = report("tf/to-r25", &UpgradeSpec::default(), &status);
        assert_eq!(
            (report.seconds, report.predicted_restarts, report.unplanned_restarts),
            (Some(40), 300, 3)
        );
        let service = &report.waves[0].services[0];
        assert_eq!(
            (&*service.service, service.seconds, report.waves[0].seconds),
            ("Config/a", Some(7), Some(30))
        );
        assert_eq!((&service.started_at, &service.finished_at), (&time(1), &time(8)));
        assert_eq!(report.waves[0].finished_at, time(31));
        let text = serde_json::to_value(&report).unwrap();
        assert_eq!((&text["format"], &text["verdict"]), (&FORMAT.into(), &"succeeded".into()));
    }

    #[test]
    fn a_report_says_how_it_was_to_be_done_also_where_nothing_was_said() {
        let of = |spec: &UpgradeSpec| report("tf/a", spec, &UpgradeStatus::default()).options;
        let usual = of(&UpgradeSpec::default());
        assert_eq!((usual.wave_timeout_seconds, usual.soak_seconds), (900, 30));
        assert!(usual.pre_pull && !usual.wait_for_drain && usual.vrouters_at_once == 1);
        let skip = Skip {
            step: "Webui/a".to_owned(),
            reason: "later".to_owned(),
            requested_by: Some("ann".to_owned()),
        };
        let given = of(&UpgradeSpec {
            wave_timeout: Some("1h".to_owned()),
            soak: Some("2m".to_owned()),
            on_failure: Some(OnFailure::Stop),
            pre_pull: Some(false),
            force: Some(vec!["OSDN5008".to_owned()]),
            skip: Some(vec![skip.clone()]),
            ..UpgradeSpec::default()
        });
        assert_eq!((given.wave_timeout_seconds, given.soak_seconds), (3600, 120));
        assert_eq!((given.on_failure, given.pre_pull), (Some(OnFailure::Stop), false));
        assert_eq!((given.force, given.left_out), (vec!["OSDN5008".to_owned()], vec![skip]));
    }
}
