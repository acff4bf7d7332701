//! What there is to say of upstream's operator beside ours, or in its place.

use opensdn_deploy::Values;
use serde_json::Value;

use super::report::{Part, Word};
use super::surroundings::program;
use super::world::World;
use crate::snapshot::tf_operator::{component_of, watching_all};
use crate::snapshot::{Read, TF_OPERATOR, namespace, number, title};

/// Of one that runs, if one does. Nothing where there is none, or where all are away and ours is there.
pub(super) fn part(world: &World) -> Option<Part> {
    let runs = |deployment: &&Value| number(deployment, "/spec/replicas") != Some(0);
    let running = world.tf_operators.iter().find(runs);
    let deployment = running.or(world.tf_operators.first())?;
    let part = program(TF_OPERATOR, &Read::Known(deployment.clone()));
    match (running.is_some(), has_ours(world)) {
        (true, Some(false) | None) => Some(part),
        (true, Some(true)) => Some(Part {
            message: format!(
                "{} runs beside our operator, and changes what that changes: find out who starts it, and scale it to 0",
                title(deployment)
            ),
            degrades: true,
            look: Some(format!(
                "kubectl scale deployment {TF_OPERATOR} -n {} --replicas=0",
                namespace(deployment)
            )),
            ..part
        }),
        // Its take-over was interrupted, or someone has ended it.
        (false, Some(false)) if made_something(world) => Some(Part {
            state: Some(Word::Inactive),
            message: format!(
                "{} is scaled to 0, and there is no operator in its place: {}",
                title(deployment),
                take_over(world)
            ),
            degrades: true,
            look: Some(format!("{} --dry-run=server", take_over(world))),
            ..part
        }),
        (false, _) => None,
    }
}

/// By which ours takes over, with all namespaces of Managers watched.
fn take_over(world: &World) -> String {
    let watched = Values::default().operator.watched_namespaces;
    let set = watching_all(world.managers.items(), &watched);
    let set = set.map_or(String::new(), |set| format!(" {set}"));
    format!("kubectl opensdn install --adopt{set}")
}

/// Nothing where that is not known.
fn has_ours(world: &World) -> Option<bool> {
    match &world.operator {
        Read::Known(_) => Some(true),
        Read::Absent => Some(false),
        Read::Unknown(_) => None,
    }
}

/// Whether workloads of components are there to be looked after.
fn made_something(world: &World) -> bool {
    let mut workloads = world.stateful_sets.items().iter().chain(world.daemon_sets.items());
    workloads.any(|one| component_of(one).is_some())
}
