//! What there is to say of upstream's operator beside ours, or in its place.

use opensdn_crds::component::COMPONENTS;
use serde_json::Value;

use super::report::{Part, Word};
use super::surroundings::program;
use super::world::World;
use crate::snapshot::{Read, TF_OPERATOR, list, number, text, title};

/// Nothing where there is none, or where it is away and ours is there.
pub(super) fn part(world: &World) -> Option<Part> {
    let deployment = world.tf_operator.known()?;
    let part = program(TF_OPERATOR, &world.tf_operator);
    let (runs, has_ours) = (number(deployment, "/spec/replicas") != Some(0), has_ours(world));
    match (runs, has_ours) {
        (true, Some(false) | None) => Some(part),
        (true, Some(true)) => Some(Part {
            message: format!(
                "{} runs beside our operator, and changes what that changes: find out who starts it, and scale it to 0",
                title(deployment)
            ),
            degrades: true,
            ..part
        }),
        // Its take-over was interrupted, or someone has ended it.
        (false, Some(false)) if made_something(world) => Some(Part {
            state: Some(Word::Inactive),
            message: format!(
                "{} is scaled to 0, and there is no operator in its place: kubectl opensdn install --adopt",
                title(deployment)
            ),
            degrades: true,
            ..part
        }),
        (false, _) => None,
    }
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
    let workloads = world.stateful_sets.items().iter().chain(world.daemon_sets.items());
    let mut owners = workloads.flat_map(|one| list(one, "/metadata/ownerReferences"));
    owners.any(|owner: &Value| COMPONENTS.iter().any(|facts| facts.kind == text(owner, "/kind")))
}
