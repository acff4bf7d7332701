//! The checks before an upgrade. Most are what a plan says of it, by the codes of `opensdn-upgrade`.

use super::Category::Upgrade;
use super::Mode;
use super::Severity::{Fatal, Warning};
use super::{Check, check};
use crate::checks::upgrade;

const OF: Mode = Mode::Upgrade;

/// In the order in which they are reported.
pub(super) const CHECKS: [Check; 20] = [
    check(
        "B001",
        (Upgrade, OF, Fatal),
        "an upgrade can begin",
        "It begins where no plan of a Manager is refused, and no other upgrade is unfinished. A backup and healthy members \
         belong to it: the backup is yours.",
        "kubectl opensdn upgrade plan VERSION",
        Some(upgrade::can_begin),
    ),
    check(
        "B002",
        (Upgrade, OF, Fatal),
        "no other upgrade of the Manager is unfinished",
        "An upgrade waits until the one before it is over. One that has stopped is not: its services may have images of \
         both releases.",
        "kubectl opensdn upgrade history",
        Some(upgrade::unfinished),
    ),
    check(
        "B003",
        (Upgrade, OF, Fatal),
        "the operator is ready and knows upgrades",
        "It is the operator that carries an upgrade out. One that is older than this plugin may decide otherwise than the \
         plan that is shown; without one nothing begins.",
        "kubectl opensdn install",
        Some(upgrade::operator),
    ),
    check(
        "B004",
        (Upgrade, OF, Fatal),
        "the nodes with pods of the services are ready and have room",
        "A pod is replaced on its node. Where the node is not ready the new one does not start; under disk pressure the \
         kubelet pulls no image and evicts pods; on a cordoned node only pods that tolerate it start.",
        "kubectl describe nodes",
        Some(upgrade::nodes),
    ),
    check(
        "B005",
        (Upgrade, OF, Fatal),
        "no certificate ends soon",
        "A pod that starts again reads its certificates. One that has ended, or is not trusted, worked until then in \
         connections that were there.",
        "kubectl opensdn certs status",
        Some(upgrade::certificates),
    ),
    check(
        "B101",
        (Upgrade, OF, Fatal),
        "it is known which image each container gets [OSDN5003]",
        "An image that is named by its digest names no release, so that the one of another release cannot be derived \
         from it.",
        "kubectl opensdn upgrade plan VERSION --image CONTAINER=IMAGE",
        Some(|world| upgrade::remarks(world, "OSDN5003", "each image is known")),
    ),
    check(
        "B102",
        (Upgrade, OF, Fatal),
        "the versions are releases [OSDN5004]",
        "Of a tag that names no release it is not known whether it is older than what runs, nor which releases lie between.",
        "kubectl opensdn explain OSDN5004",
        Some(|world| upgrade::remarks(world, "OSDN5004", "all tags name releases")),
    ),
    check(
        "B103",
        (Upgrade, OF, Fatal),
        "the version is not older than what runs [OSDN5005]",
        "What a newer release has written into databases an older one may not read.",
        "kubectl opensdn upgrade rollback",
        Some(|world| upgrade::remarks(world, "OSDN5005", "it is not older than what runs")),
    ),
    check(
        "B104",
        (Upgrade, OF, Fatal),
        "no release is skipped [OSDN5006]",
        "Upstream has tried the way from one release to the next only.",
        "kubectl opensdn explain OSDN5006",
        Some(|world| upgrade::remarks(world, "OSDN5006", "no release is skipped")),
    ),
    check(
        "B105",
        (Upgrade, OF, Fatal),
        "the Manager is not paused [OSDN5007]",
        "While the annotation opensdn.io/paused is set the operator changes nothing, so that no image would reach a pod.",
        "kubectl annotate managers.tf.tungsten.io NAME opensdn.io/paused-",
        Some(|world| upgrade::remarks(world, "OSDN5007", "no Manager is paused")),
    ),
    check(
        "B106",
        (Upgrade, OF, Fatal),
        "the services that get other images are ready [OSDN5008]",
        "An upgrade takes one more member away from a service that lacks one already, which may cost its quorum.",
        "kubectl opensdn status",
        Some(|world| upgrade::remarks(world, "OSDN5008", "all of them are ready")),
    ),
    check(
        "B107",
        (Upgrade, OF, Fatal),
        "the release is one that is known here [OSDN5009]",
        "A release that came after this program may have other daemons and keys, so that it would be configured as it does \
         not expect.",
        "kubectl opensdn version",
        Some(|world| upgrade::remarks(world, "OSDN5009", "it is known here")),
    ),
    check(
        "B108",
        (Upgrade, OF, Fatal),
        "members of RabbitMQ can be replaced one after the other [OSDN5014]",
        "A member of 3.10 cannot join a cluster of 3.7 members.",
        "kubectl opensdn explain OSDN5014",
        Some(|world| upgrade::remarks(world, "OSDN5014", "its version stays, or they can")),
    ),
    check(
        "B109",
        (Upgrade, OF, Fatal),
        "no annotation says another release [OSDN5015]",
        "The annotation opensdn.io/release wins over tags: services would be configured as the release that it says.",
        "kubectl annotate managers.tf.tungsten.io NAME opensdn.io/release-",
        Some(|world| upgrade::remarks(world, "OSDN5015", "none does")),
    ),
    check(
        "B110",
        (Upgrade, OF, Warning),
        "the images are of one generation [OSDN5011]",
        "From R25.1 on images have other names, keys and certificates; daemons of both generations talk to each other until \
         the last one is replaced.",
        "kubectl opensdn explain OSDN5011",
        Some(|world| upgrade::remarks(world, "OSDN5011", "all are of one generation")),
    ),
    check(
        "B111",
        (Upgrade, OF, Warning),
        "there is a way back behind each wave [OSDN5012]",
        "Once the new version of a data store has run, the earlier one may not read what is on its disks.",
        "kubectl opensdn explain OSDN5012",
        Some(|world| upgrade::remarks(world, "OSDN5012", "there is one behind each")),
    ),
    check(
        "B112",
        (Upgrade, OF, Warning),
        "no workload is interrupted [OSDN5013]",
        "Each vrouter that is replaced interrupts the workloads of its node for some minutes.",
        "kubectl opensdn upgrade apply VERSION --pause-before vrouters",
        Some(|world| upgrade::remarks(world, "OSDN5013", "no vrouter is replaced")),
    ),
    check(
        "B113",
        (Upgrade, OF, Warning),
        "no upgrade of tf-operator is left unfinished [OSDN5016]",
        "Services may run images of two releases, and what the later ones have written the earlier ones may not read.",
        "kubectl opensdn explain OSDN5016",
        Some(|world| upgrade::remarks(world, "OSDN5016", "none is")),
    ),
    check(
        "B114",
        (Upgrade, OF, Warning),
        "Config has what it stored as it was [OSDN5018]",
        "The first API of another version rewrites what earlier ones have stored, and on the way back it stays so.",
        "kubectl opensdn explain OSDN5018",
        Some(|world| upgrade::remarks(world, "OSDN5018", "its version stays")),
    ),
    check(
        "B115",
        (Upgrade, OF, Fatal),
        "the operator configures the data stores of the images [OSDN5019]",
        "It writes cassandra.yaml for 3.11: Cassandra 4.0 and later end at their start on keys of Thrift.",
        "kubectl opensdn explain OSDN5019",
        Some(|world| {
            upgrade::remarks(world, "OSDN5019", "it does, or the tag does not say which it is")
        }),
    ),
];
