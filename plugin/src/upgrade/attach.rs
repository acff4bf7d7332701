//! What `upgrade apply` does with Upgrades that are there: it attaches to one that asks for the same and is not over, and
//! gives another one a name that is free.

use kube::ResourceExt as _;
use opensdn_crds::upgrade::{Goal, Phase, Upgrade, UpgradeSpec};

use super::next_command::NextCommand;
use super::stage;
use crate::exit::{Exit, Failure};

/// As many Upgrades to one release have names of their own.
const MOST: usize = 100;

/// What is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Way {
    /// The one that is there is watched.
    Attach(Box<Upgrade>),
    /// One is made; the one that is in its place was refused, and goes first.
    Make(Option<Box<Upgrade>>),
}

/// Which way it is.
///
/// # Errors
/// The one that is there asks for something else.
pub(crate) fn way(
    all: &[Upgrade],
    name: Option<&str>,
    wanted: &UpgradeSpec,
    next: &NextCommand,
) -> Result<Way, Failure> {
    let is_named = |one: &&Upgrade| name.is_none_or(|name| one.name_any() == name);
    let is_open = |one: &&Upgrade| !is_finished(one);
    let same = |one: &&Upgrade| asks_for_the_same(&one.spec, wanted);
    let mut open = all.iter().filter(is_named).filter(is_open);
    let Some(found) = open.find(same) else {
        // It would have the name.
        let name = name.map(str::to_owned).or_else(|| wanted.version.as_deref().map(named_after));
        // Nothing will come of one that is refused, and another name is free.
        let is_in_its_place = |one: &&Upgrade| {
            one.spec.manager == wanted.manager
                && Some(one.name_any()) == name
                && stage::phase(one) != Some(Phase::Refused)
        };
        return match all.iter().filter(is_open).find(is_in_its_place) {
            Some(other) => Err(other_than_wanted(other, "other images", next)),
            None => Ok(Way::Make(None)),
        };
    };
    // Nothing of it was done, and it would be refused by what was looked at then.
    if stage::phase(found) == Some(Phase::Refused) {
        return Ok(Way::Make(Some(Box::new(found.clone()))));
    }
    match difference(&found.spec, wanted) {
        Some(what) => Err(other_than_wanted(found, what, next)),
        None => Ok(Way::Attach(Box::new(found.clone()))),
    }
}

fn is_finished(upgrade: &Upgrade) -> bool {
    matches!(stage::phase(upgrade), Some(Phase::Succeeded | Phase::RolledBack))
}

/// Whether it gives the same images to the same Manager.
fn asks_for_the_same(spec: &UpgradeSpec, wanted: &UpgradeSpec) -> bool {
    let images = |spec: &UpgradeSpec| spec.images.clone().unwrap_or_default();
    (&spec.manager, &spec.version, &spec.registry)
        == (&wanted.manager, &wanted.version, &wanted.registry)
        && images(spec) == images(wanted)
}

/// What is wanted otherwise than it is; what was not given is as it is. Not the waves before which it pauses: those that
/// are behind it are no longer among them.
fn difference(spec: &UpgradeSpec, wanted: &UpgradeSpec) -> Option<&'static str> {
    if spec.goal == Some(Goal::RollBack) {
        return Some("the way back");
    }
    fn differs<T: PartialEq>(is: &Option<T>, wanted: &Option<T>) -> bool {
        wanted.is_some() && is != wanted
    }
    let time = |text: &Option<String>| {
        text.as_ref().map(|text| opensdn_duration::parse(text).map_err(|_| text.clone()))
    };
    let all = [
        (differs(&spec.plan, &wanted.plan), "another plan"),
        (differs(&spec.on_failure, &wanted.on_failure), "another --on-failure"),
        (differs(&time(&spec.wave_timeout), &time(&wanted.wave_timeout)), "another --wave-timeout"),
        (differs(&time(&spec.soak), &time(&wanted.soak)), "another --soak"),
        (differs(&spec.vrouters_at_once, &wanted.vrouters_at_once), "another --vrouters-at-once"),
        (differs(&spec.wait_for_drain, &wanted.wait_for_drain), "another --wait-for-drain"),
        (differs(&spec.pre_pull, &wanted.pre_pull), "another --no-pre-pull"),
        (spec.force != wanted.force, "another --force"),
        (spec.skip.is_some(), "steps to be left out"),
    ];
    all.into_iter().find_map(|(differs, what)| differs.then_some(what))
}

fn other_than_wanted(other: &Upgrade, what: &str, next: &NextCommand) -> Failure {
    let name = other.name_any();
    let message = format!("the Upgrade {name} is not over, and asks for {what}");
    let hint = format!("watch it: {}", next.of(&["status", &name, "--watch"]));
    Failure::new(Exit::Refused, "another-upgrade", message, hint)
}

/// The name of one that is made: as given, else by the version or the plan, and free.
///
/// # Errors
/// The name that was given is taken.
pub(crate) fn free_name(
    all: &[Upgrade],
    given: Option<&str>,
    version: Option<&str>,
    hash: &str,
) -> Result<String, Failure> {
    let is_taken = |name: &str| all.iter().any(|one| one.name_any() == name);
    let taken = |name: &str| {
        let message = format!("there is an Upgrade {name} already, and it is over");
        let hint = "give another name: --name NAME; what there is: kubectl opensdn upgrade history";
        Failure::new(Exit::Refused, "name-taken", message, hint)
    };
    if let Some(name) = given {
        return if is_taken(name) { Err(taken(name)) } else { Ok(name.to_owned()) };
    }
    let base = version.map_or_else(|| format!("upgrade-{hash}"), named_after);
    let mut names = (1..=MOST).map(|number| match number {
        1 => base.clone(),
        number => format!("{base}-{number}"),
    });
    names.find(|name| !is_taken(name)).ok_or_else(|| taken(&base))
}

/// `to-r25-1` of R25.1.
fn named_after(version: &str) -> String {
    let letter = |letter: char| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    let text: String = version.chars().map(letter).collect();
    format!("to-{}", text.trim_matches('-'))
}

/// Another Upgrade of the Manager that has to end before a new one begins.
pub(crate) fn comes_first<'a>(
    all: impl IntoIterator<Item = &'a Upgrade>,
    manager: &str,
) -> Option<&'a Upgrade> {
    let mut open = all.into_iter().filter(|one| one.spec.manager == manager && !is_finished(one));
    open.find(|one| stage::phase(one) != Some(Phase::Refused))
}
