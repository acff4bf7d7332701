//! What of an image is a data store of another project: which version it has, how far an earlier one reads what it has
//! written, and whether one may follow the other. And what OpenSDN itself rewrites in them.

use std::cmp::Ordering;

use opensdn_crds::upgrade::{ImageChange, Step};

use crate::images;
use crate::version::Version;

const CASSANDRA: &str = "cassandra";
const ZOOKEEPER: &str = "zookeeper";
const KAFKA: &str = "kafka";
const RABBITMQ: &str = "rabbitmq";
/// The last major version of it whose file `cassandra.yaml` the operator writes: a later one ends on keys of Thrift.
const CONFIGURED: u32 = 3;

/// How a Cassandra follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To the same version, a later one of the same major version, or one of the next.
    On,
    /// To one of a later major version than the next.
    OverAMajor,
    /// To an earlier one.
    Back,
    /// To an earlier one whose first two numbers are the same: it has the same files.
    PatchBack,
    /// To an earlier one of a version that the operator does not configure, and that therefore never worked.
    BackFromUnconfigured,
}

/// How the Cassandra of a service follows the one before, where both tags say what they are.
pub(super) fn way_of_cassandra<'a>(
    id: &str,
    images: &'a [ImageChange],
) -> Option<(Way, &'a ImageChange)> {
    id.split_once('/').filter(|(kind, _)| *kind == "Cassandra")?;
    let change = images.iter().find(|one| one.container == CASSANDRA)?;
    let (from, to) = (version_of(CASSANDRA, &change.from)?, version_of(CASSANDRA, &change.to)?);
    let major = to.0.cmp(&from.0);
    let minor = from.1.zip(to.1).map_or(Ordering::Equal, |(from, to)| to.cmp(&from));
    let patch = from.2.zip(to.2).map_or(Ordering::Equal, |(from, to)| to.cmp(&from));
    let way = match major.then(minor) {
        Ordering::Less if from.0 > CONFIGURED && to.0 <= CONFIGURED => Way::BackFromUnconfigured,
        Ordering::Less => Way::Back,
        Ordering::Equal if from.1.is_some() && to.1.is_some() && patch.is_lt() => Way::PatchBack,
        _ if to.0 > from.0 + 1 => Way::OverAMajor,
        _ => Way::On,
    };
    Some((way, change))
}

/// The change to an image of which the operator does not write the file that configures it, and why it ends at its start.
pub(super) fn not_configured<'a>(
    id: &str,
    images: &'a [ImageChange],
) -> Option<(&'a ImageChange, &'static str)> {
    let (container, is_unknown, why): (_, fn(Numbers) -> bool, _) = match id.split_once('/')?.0 {
        "Cassandra" => (
            CASSANDRA,
            |(major, ..)| major > CONFIGURED,
            "the operator configures Cassandra 3.11, and cassandra.yaml has keys of Thrift, which this one does not know",
        ),
        "Zookeeper" => (
            ZOOKEEPER,
            |(major, minor, _)| minor.is_some_and(|minor| (major, minor) < (3, 5)),
            "zoo.cfg has dynamicConfigFile, which ZooKeeper knows since 3.5",
        ),
        "AnalyticsAlarm" => (
            KAFKA,
            |(major, ..)| major >= 4,
            "its configuration names ZooKeeper, and Kafka runs without since 4.0",
        ),
        _ => return None,
    };
    let change = images.iter().find(|one| one.container == container)?;
    version_of(container, &change.to).filter(|to| is_unknown(*to))?;
    Some((change, why))
}

/// The change to a ZooKeeper that is older than the one before, by the first two numbers of their tags. What Kafka stores ends
/// with its container (`kafka.properties.j2`, `log.dirs`).
pub(super) fn older<'a>(id: &str, images: &'a [ImageChange]) -> Option<&'a ImageChange> {
    id.split_once('/').filter(|(kind, _)| *kind == "Zookeeper")?;
    let change = images.iter().find(|one| one.container == ZOOKEEPER)?;
    // Of two releases it is said that one is older.
    if [&change.from, &change.to].iter().all(|image| release_of(image).is_some()) {
        return None;
    }
    let line = |image: &str| {
        version_of(ZOOKEEPER, image).and_then(|(major, minor, _)| Some((major, minor?)))
    };
    let (from, to) = line(&change.from).zip(line(&change.to))?;
    (to < from).then_some(change)
}

/// Major, minor and patch, as far as a tag says them.
type Numbers = (u32, Option<u32>, Option<u32>);

/// Those of a tag of another project's.
fn numbers(tag: &str) -> Option<Numbers> {
    let mut numbers = tag.split(['.', '-', '_', '+']).map(|part| part.parse::<u32>().ok());
    let major = numbers.next()??;
    let minor = numbers.next().flatten();
    let patch = minor.and_then(|_| numbers.next().flatten());
    // Of such numbers none is a version: 20240101 is a date.
    (major < 19).then_some((major, minor, patch))
}

fn release_of(image: &str) -> Option<Version> {
    images::tag(image).and_then(Version::of_tag)
}

/// Which version of the container's program an image has, as far as its tag says it. One of OpenSDN's says what is in its images
/// (tf-container-builder, `containers/external`, of each release).
fn version_of(container: &str, image: &str) -> Option<Numbers> {
    if let Some(release) = release_of(image) {
        let (major, minor) = match container {
            CASSANDRA => line(CASSANDRA, image)?,
            ZOOKEEPER => (3, 7),
            KAFKA if release.year >= 25 => (3, 9),
            KAFKA => (2, 6),
            _ => return None,
        };
        return Some((major, Some(minor), None));
    }
    let tag = images::tag(image)?;
    if container != KAFKA {
        return numbers(tag);
    }
    // Confluent counts otherwise, and some tags begin with the version of Scala: 2.13-3.9.1.
    let is_of_confluent = images::parts(image).1.starts_with("cp-");
    let of_scala =
        tag.split_once('-').filter(|(scala, _)| scala.starts_with("2.1") && scala.len() == 4);
    let tag = of_scala.map_or(tag, |(_, version)| version);
    if is_of_confluent { None } else { numbers(tag) }
}

/// What of a service counts its version, and the change of it, where old and new are not of one line, or tags do not tell.
pub(super) fn other_line<'a>(
    id: &str,
    images: &'a [ImageChange],
) -> Option<(&'static str, &'a ImageChange)> {
    let container = match id.split_once('/')?.0 {
        "Cassandra" => CASSANDRA,
        "Rabbitmq" => RABBITMQ,
        _ => return None,
    };
    let change = images.iter().find(|one| one.container == container)?;
    let lines = line(container, &change.from).zip(line(container, &change.to));
    lines.is_none_or(|(from, to)| from != to).then_some((container, change))
}

/// Why a RabbitMQ cannot follow the one before member by member, as far as tags tell (rabbitmq.com/docs/upgrade,
/// rabbitmq.com/docs/feature-flags). Nothing of those that OpenSDN's releases have.
pub(super) fn rabbitmq_over(from: &str, to: &str) -> Option<String> {
    // What a release of up to R24.1 has its tag does not say: 3.10 at most.
    let (known, (major, minor, _)) = (version_of(RABBITMQ, from), version_of(RABBITMQ, to)?);
    let (from_major, from_minor) =
        known.map_or((3, 10), |(major, minor, _)| (major, minor.unwrap_or_default()));
    if known.is_some() && (from_major, Some(from_minor)) >= (major, minor) {
        return None;
    }
    if major >= 4 {
        return Some(format!(
            "{to} has no mirrored queues any more (they went in 4.0), by which the bus keeps what is queued on all members, and is \
             reached from 3.13 only: keep a version of 3.10"
        ));
    }
    let minor = minor.filter(|minor| major == 3 && *minor >= 11)?;
    let skipped = match minor - from_minor.min(minor) {
        ..=1 => "",
        _ => "; and one minor version after the other is the way, to 3.12 from 3.11.18 or later",
    };
    let look = if known.is_some() { "" } else { "; rabbitmqctl version says what runs" };
    Some(format!(
        "{to} starts only where the feature flags of the version before are enabled: rabbitmqctl list_feature_flags in a pod, \
         rabbitmqctl enable_feature_flag all before{skipped}{look}"
    ))
}

/// Why a service cannot have its earlier image again once it ran the new one.
pub(super) fn no_way_back(id: &str, images: &[ImageChange]) -> Option<String> {
    let (container, change) = other_line(id, images)?;
    let what = match container {
        "cassandra" => "may write tables that the earlier one does not read",
        _ => "may enable feature flags with which the earlier one does not start",
    };
    Some(format!("{id}: {} {what} ({})", change.to, change.from))
}

/// Within which an earlier version reads what a later one has written: of the project's own images the first two numbers
/// of the tag; of those that OpenSDN packs what is in them (tf-container-builder, `containers/external`).
fn line(container: &str, image: &str) -> Option<(u32, u32)> {
    let tag = images::tag(image)?;
    let Some(release) = Version::of_tag(tag) else {
        let mut numbers = tag.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        return Some((numbers.next()?.ok()?, numbers.next()?.ok()?));
    };
    Some(match (container, (release.year, release.number)) {
        ("cassandra", _) => (3, 11),
        (_, (..=20, _) | (21, ..=3)) => (3, 7),
        (_, (21, 4)) if release.patch == 1 => (3, 7),
        (_, (21, _)) => return None,
        // 3.7.28 or 3.10.7, by the system that the image was built on, which is the same for a release.
        (_, (year @ ..=24, number)) => (1000 + year, number),
        _ => (3, 10),
    })
}

/// What the API of Config rewrites when it is of another version, which its earlier image does not undo (tf-controller,
/// `src/config/api-server/vnc_cfg_api_server/vnc_db.py`: `db_resync`, `_dbe_resync_worker`). Patches count too: it compares the
/// whole of what its image is tagged with. Nothing where only the registry is another.
#[must_use]
pub fn rewrites(step: &Step) -> Option<String> {
    step.id.split_once('/').filter(|(kind, _)| *kind == "Config")?;
    let change = step.images.iter().find(|one| one.container == "api")?;
    if images::tag(&change.from).is_some_and(|from| images::tag(&change.to) == Some(from)) {
        return None;
    }
    Some(format!(
        "{}: the first API of another version ({}) looks through the whole database when it starts, answers 503 until that has \
         ended, and writes objects back as it read them: a change that another API takes meanwhile may be undone, so have nothing \
         configured during the wave; on the way back {} gets the database as it is then, and its first API does the same with it: take a \
         backup",
        step.id, change.to, change.from
    ))
}
