//! What containers with new images wrote last that do not run, while their pods are still there: on the way back they go. No
//! right to read logs is no failure, and what looks like a secret is taken out.

use opensdn_crds::upgrade::{Phase, State, Step, Upgrade};
use serde::Serialize;
use serde_json::Value;

use super::requests::Requests;
use super::stage;
use crate::bundle::redact;
use crate::snapshot::{condition_is, list, name, number, text};
use crate::status::TYPE;
use crate::ui::Ui;

/// So many lines of a container.
pub(super) const LINES: i64 = 20;
/// So many bytes of them at most.
pub(super) const BYTES: i64 = 64 * 1024;
/// So many containers at most: the others say the same.
const CONTAINERS: usize = 3;

/// A container that does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    /// Its pod.
    pub(crate) pod: String,
    /// Its name.
    pub(crate) container: String,
    /// Whether what it wrote is that of the run before.
    pub(crate) is_of_before: bool,
}

/// One line of a log.
#[derive(Debug, Serialize)]
struct LogLine<'a> {
    pod: &'a str,
    container: &'a str,
    line: &'a str,
}

/// Whether something has just failed.
pub(super) fn has_failed(upgrade: &Upgrade) -> bool {
    matches!(stage::phase(upgrade), Some(Phase::Stopped | Phase::RollingBack))
}

/// Shows them, as far as they can be read.
pub(crate) async fn show(requests: &Requests, upgrade: &Upgrade, ui: &mut Ui) {
    let Ok(pods) = requests.pods(TYPE).await else { return };
    let steps = stage::status(upgrade).steps.unwrap_or_default();
    for failing in failing(&steps, &pods) {
        let Failing { pod, container, .. } = &failing;
        match requests.last_lines(&failing).await {
            Ok(lines) => {
                let lines = redact::text(&lines);
                for line in lines.lines().filter(|line| !line.trim().is_empty()) {
                    let event = LogLine { pod, container, line };
                    ui.event(&event, &format!("pod {pod} container {container}: {line}"));
                }
            }
            Err(why) => ui.detail(&format!("the log of pod {pod} cannot be read: {why}")),
        }
    }
}

/// The containers of steps that failed which have started and do not run.
fn failing(steps: &[Step], pods: &[Value]) -> Vec<Failing> {
    let is_bad = |step: &&Step| matches!(step.state, State::Failed | State::RollingBack);
    let images: Vec<_> = steps.iter().filter(is_bad).flat_map(|step| &step.images).collect();
    let mut found = Vec::new();
    for pod in pods.iter().filter(|pod| !condition_is(pod, "Ready", "True")) {
        for kind in ["initContainers", "containers"] {
            let statuses = format!("/status/{}Statuses", kind.trim_end_matches('s'));
            let declared = format!("/spec/{kind}");
            let new = list(pod, &declared)
                .filter(|one| images.iter().any(|change| change.to == text(one, "/image")));
            for container in new {
                let is_its = |one: &&Value| text(one, "/name") == text(container, "/name");
                let Some(status) = list(pod, &statuses).find(is_its) else { continue };
                found.extend(is_of_before(status).map(|is_of_before| Failing {
                    pod: name(pod).to_owned(),
                    container: text(container, "/name").to_owned(),
                    is_of_before,
                }));
            }
        }
    }
    found.truncate(CONTAINERS);
    found
}

/// Of a container that has failed, whether what it wrote is that of the run before.
fn is_of_before(status: &Value) -> Option<bool> {
    let has_failed = |state: &str| {
        number(status, &format!("/{state}/terminated/exitCode")).is_some_and(|code| code != 0)
    };
    match (has_failed("state"), status.pointer("/state/waiting").is_some()) {
        (true, _) => Some(false),
        (false, true) => has_failed("lastState").then_some(true),
        // It runs, and is not ready: what it writes now says why.
        (false, false) => {
            let is_unready = status.pointer("/ready") == Some(&false.into());
            (is_unready && status.pointer("/state/running").is_some()).then_some(false)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "JSON of a test")]

    use serde_json::json;

    use super::*;

    fn pod(name: &str, image: &str, status: Value) -> Value {
        let mut status = status;
        status["name"] = "api".into();
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "api", "image": image}]},
            "status": {"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [status]}})
    }

    fn found(step: &str, pod: Value) -> Vec<(String, bool)> {
        let step =
            serde_json::from_value(json!({"id": "Config/a", "wave": "config", "state": step,
            "images": [{"container": "api", "from": "x/api:R24.1", "to": "x/api:bad"}]}));
        let all = failing(&[step.unwrap()], &[pod]);
        all.into_iter().map(|one| (one.container, one.is_of_before)).collect()
    }

    #[test]
    fn the_log_that_says_why_is_that_of_the_run_that_failed() {
        let failed = json!({"terminated": {"exitCode": 1}});
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let bad = |status: Value| found("Failed", pod("p", "x/api:bad", status));
        let api = |is_of_before| vec![("api".to_owned(), is_of_before)];
        assert_eq!(bad(json!({"state": failed, "restartCount": 0})), api(false));
        assert_eq!(bad(json!({"state": waits, "lastState": failed})), api(true));
        assert_eq!(bad(json!({"state": {"running": {}}, "ready": false})), api(false));
        // One that never started has written nothing.
        let pulls = json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}});
        assert_eq!(bad(pulls), []);
    }

    #[test]
    fn only_pods_with_the_new_images_of_a_step_that_failed_are_looked_at() {
        let failed = || json!({"state": {"terminated": {"exitCode": 1}}});
        assert_eq!(found("RollingBack", pod("p", "x/api:bad", failed())).len(), 1);
        assert_eq!(found("Failed", pod("p", "x/api:R24.1", failed())), []);
        assert_eq!(found("Running", pod("p", "x/api:bad", failed())), []);
        let mut well = pod("p", "x/api:bad", failed());
        well["status"]["conditions"][0]["status"] = "True".into();
        assert_eq!(found("Failed", well), []);
    }
}
