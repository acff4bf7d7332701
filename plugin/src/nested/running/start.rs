//! Applies the workloads: accounts, settings, the CNI agent, and kube-manager when that is ready on every node. Each waits
//! for the one before, and the same command takes up what another run has left.

use opensdn_nested_workloads::Phase;

use super::survey::{Surveyed, WorkloadSurvey};
use crate::clients::unanswered;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::plan::Action;
use crate::install::requests::{Apply, Requests, conflicts};
use crate::install::waiting::Deadline;
use crate::install::workload::workload;
use crate::ui::Ui;

const PHASES: [(Phase, &str); 4] = [
    (Phase::Access, "accounts and rights"),
    (Phase::Settings, "settings"),
    (Phase::CniAgent, "CNI agent"),
    (Phase::KubeManager, "kube-manager"),
];

/// Carries it out.
///
/// # Errors
/// The cluster refuses an object or does not answer, or one of the workloads does not get ready.
pub(crate) async fn start(
    requests: &Requests,
    survey: &WorkloadSurvey,
    deadline: Deadline,
    ui: &mut Ui,
) -> Result<(), Failure> {
    // What runs is kept, whatever becomes of a node.
    let runs_already = survey.has_kube_manager();
    for (phase, title) in PHASES {
        for one in of_phase(survey, phase).filter(|one| one.action != Action::Same) {
            store(requests, one, deadline).await?;
        }
        let is_waited_for = phase == Phase::CniAgent && !runs_already;
        if is_waited_for {
            wait(requests, survey, phase, title, deadline, ui).await?;
        }
    }
    for (phase, title) in PHASES {
        wait(requests, survey, phase, title, deadline, ui).await?;
    }
    Ok(())
}

fn of_phase(survey: &WorkloadSurvey, phase: Phase) -> impl Iterator<Item = &Surveyed> {
    survey.all.iter().filter(move |one| one.staged.phase == phase)
}

async fn store(requests: &Requests, one: &Surveyed, deadline: Deadline) -> Result<(), Failure> {
    let doing = format!("apply {}", one.staged.key);
    let applied = requests.apply(&one.staged.object, one.force, Apply::Store);
    match deadline.within(&doing, applied).await? {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 && !conflicts(&status).is_empty() => {
            let message = format!("{} has got fields of other managers meanwhile", one.staged.key);
            let hint = "the same command says which, and how to take them over";
            Err(Failure::new(Exit::Refused, "conflict", message, hint))
        }
        Err(error) => Err(unanswered(&doing, &error)),
    }
}

/// Waits for the workloads of a phase; the other phases have nothing to wait for.
async fn wait(
    requests: &Requests,
    survey: &WorkloadSurvey,
    phase: Phase,
    title: &str,
    deadline: Deadline,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let is_workload = |key: &&ObjectKey| ["Deployment", "DaemonSet"].contains(&key.kind.as_str());
    let keys = of_phase(survey, phase).map(|one| &one.staged.key).filter(is_workload).cloned();
    let waited =
        deadline.wait_for(title, keys.collect(), ui, async |key| workload(requests, key).await);
    waited.await.map_err(|failure| match failure.code {
        "not-ready" => {
            let hint = "what its pods say: kubectl describe and kubectl logs; what is not reached: kubectl opensdn \
                        nested verify; then the same command again";
            Failure { hint: hint.to_owned(), ..failure }
        }
        _ => failure,
    })
}
