//! How far an Upgrade is, for what may be done with it: whether it is over, whether the operator has seen what a user
//! wants, and which one is meant where none is named.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use opensdn_crds::upgrade::{Goal, Phase, State, Upgrade, UpgradeStatus, Wave};
use opensdn_upgrade::report::{Verdict, verdict};

use crate::exit::{Exit, Failure};

/// What a command does with an Upgrade that it is not given the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// It shows one: the newest.
    Shown,
    /// It changes one: that which is at work, where one is.
    Changed,
}

/// Its status, if the operator has written one.
pub(crate) fn status(upgrade: &Upgrade) -> UpgradeStatus {
    upgrade.status.clone().unwrap_or_default()
}

/// Its phase, if the operator has written one.
pub(crate) fn phase(upgrade: &Upgrade) -> Option<Phase> {
    upgrade.status.as_ref().and_then(|status| status.phase)
}

/// `tf/to-r25-1`.
pub(crate) fn id(upgrade: &Upgrade) -> String {
    format!("{}/{}", upgrade.namespace().unwrap_or_default(), upgrade.name_any())
}

/// The command that deletes it.
pub(crate) fn deletion(upgrade: &Upgrade) -> String {
    let namespace = upgrade.namespace().unwrap_or_default();
    format!("kubectl delete upgrades.opensdn.io {} -n {namespace}", upgrade.name_any())
}

/// Whether nothing of it will change any more, unless a user wants something else.
pub(crate) fn is_over(upgrade: &Upgrade) -> bool {
    let Some(status) = &upgrade.status else { return false };
    let has_steps = status.steps.as_ref().is_some_and(|steps| !steps.is_empty());
    match status.phase {
        Some(Phase::RolledBack) => true,
        Some(Phase::Succeeded) => upgrade.spec.goal != Some(Goal::RollBack) || !has_steps,
        Some(Phase::Stopped | Phase::Refused) => is_seen(upgrade),
        _ => false,
    }
}

/// When the operator noted that it looked at one that is at work.
pub(crate) fn looked_at(upgrade: &Upgrade) -> Option<&str> {
    let status = upgrade.status.as_ref()?;
    let is_at_work = matches!(status.phase, Some(Phase::Running | Phase::RollingBack));
    status.looked_at.as_deref().filter(|_| is_at_work)
}

/// When someone asked for something of it last, as far as the API server keeps that; else when it was made.
pub(crate) fn asked_at(upgrade: &Upgrade) -> Option<Timestamp> {
    let writes = upgrade.metadata.managed_fields.iter().flatten();
    let of_spec = writes.filter(|one| one.subresource.as_deref().unwrap_or_default().is_empty());
    of_spec
        .filter_map(|one| one.time.as_ref())
        .map(|time| time.0)
        .max()
        .or_else(|| created(upgrade))
}

/// Whether the status is about what the spec says now.
pub(crate) fn is_seen(upgrade: &Upgrade) -> bool {
    let Some(status) = upgrade.status.as_ref().filter(|status| status.phase.is_some()) else {
        return false;
    };
    match (status.observed_generation, upgrade.metadata.generation) {
        (Some(seen), Some(generation)) => seen >= generation,
        _ => true,
    }
}

/// The exit code: 0 while it runs and when all services have the new images.
pub(crate) fn exit(upgrade: &Upgrade) -> Exit {
    match verdict(&status(upgrade)) {
        Verdict::Running | Verdict::Succeeded => Exit::Done,
        _ if !is_over(upgrade) => Exit::Done,
        Verdict::RolledBack | Verdict::Stopped | Verdict::Failed | Verdict::Refused => {
            Exit::Findings
        }
    }
}

/// Whether something of a wave or of a step was done, and not undone.
pub(crate) fn is_started(state: State) -> bool {
    !matches!(state, State::Pending | State::RolledBack)
}

/// The first wave that is not over.
pub(crate) fn wave_ahead(status: &UpgradeStatus) -> Option<&Wave> {
    let is_over = |wave: &&Wave| matches!(wave.state, State::Succeeded | State::Skipped);
    status.waves.iter().flatten().find(|wave| !is_over(wave))
}

/// The newest first.
pub(crate) fn newest_first(mut all: Vec<Upgrade>) -> Vec<Upgrade> {
    all.sort_by_key(|one| std::cmp::Reverse((created(one), one.name_any())));
    all
}

/// When it was made.
pub(crate) fn created(upgrade: &Upgrade) -> Option<Timestamp> {
    upgrade.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// The one that is meant.
///
/// # Errors
/// There is none of the name, or none at all.
pub(crate) fn chosen(
    all: Vec<Upgrade>,
    wanted: Option<&str>,
    want: Want,
    namespace: &str,
) -> Result<Upgrade, Failure> {
    let mut all = newest_first(all);
    let place = match (wanted, want) {
        (Some(name), _) => all.iter().position(|one| one.name_any() == name),
        (None, Want::Shown) => (!all.is_empty()).then_some(0),
        (None, Want::Changed) => {
            let is_at_work = |one: &Upgrade| {
                use Phase::{Paused, RollingBack, Running, Stopped};
                matches!(phase(one), Some(Running | Paused | Stopped | RollingBack))
            };
            let at_work = all.iter().position(is_at_work);
            at_work.or_else(|| all.iter().position(|one| !is_over(one))).or(Some(0))
        }
    };
    match place.filter(|place| *place < all.len()) {
        Some(place) => Ok(all.swap_remove(place)),
        None => Err(none(&all, wanted, namespace)),
    }
}

fn none(all: &[Upgrade], wanted: Option<&str>, namespace: &str) -> Failure {
    let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    let (message, hint) = match wanted {
        Some(name) if !names.is_empty() => {
            let hint = format!("there are: {}", names.join(", "));
            (format!("there is no Upgrade {name} in the namespace {namespace}"), hint)
        }
        _ => {
            let hint = "name its namespace with -n, or see what an upgrade would do: kubectl opensdn upgrade plan";
            (format!("there is no Upgrade in the namespace {namespace}"), hint.to_owned())
        }
    };
    Failure::new(Exit::Usage, "no-upgrade", message, hint)
}
