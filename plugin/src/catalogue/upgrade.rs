//! What speaks against an upgrade, or is to be known of one, explained. When each is given is decided in
//! `opensdn-upgrade`; here is what is behind it, and what to do.

use opensdn_upgrade::plan::FORCEABLE;

use super::{Finder, Meaning, Severity};
use Severity::{Deny, Warn};

/// Code, how bad it is, what is wrong, why, what to do.
const CODES: [(&str, Severity, &str, &str, &str); 19] = [
    (
        "OSDN5002",
        Deny,
        "a value of an upgrade is none",
        "A registry or an image that is written as no image can be, or a wave that there is not: pods would wait for an \
         image that never comes, or the upgrade would not pause where it should.",
        "correct the field that the message names",
    ),
    (
        "OSDN5003",
        Deny,
        "it is not known which image a container gets",
        "An image that is named by its digest names no release, so that the one of another release cannot be derived \
         from it. An image that is given for a container that no service has would be for nothing.",
        "give the image: --image CONTAINER=IMAGE, or KIND/CONTAINER=IMAGE; correct the name of the container: kubectl \
         opensdn status --depth 3 shows those that there are",
    ),
    (
        "OSDN5004",
        Deny,
        "the version is no release",
        "Releases are tags such as R25.1, R21.4.1 or 2011. Of any other tag it is not known whether it is older than what \
         runs, nor which releases lie between.",
        "name a release; if the tag is one of your own builds: --force OSDN5004",
    ),
    (
        "OSDN5005",
        Deny,
        "the version is older than what runs",
        "What a newer release has written into databases an older one may not read. Back to what ran before one goes by \
         the way back of the upgrade itself, as far as it has one. It is the same with an image of Cassandra that is given.",
        "kubectl opensdn upgrade rollback; from one patch of a release, or of a minor version of Cassandra, to an earlier \
         one, or back from a Cassandra that the operator does not configure (OSDN5019): --force OSDN5005",
    ),
    (
        "OSDN5006",
        Deny,
        "a release is skipped",
        "Upstream has tried the way from one release to the next only: what a release changes in stored data may be \
         missing for the one after it. Cassandra, too, is upgraded to the next major version only.",
        "upgrade to the release between first; if the way was tried with your data: --force OSDN5006",
    ),
    (
        "OSDN5007",
        Deny,
        "the Manager is paused",
        "While the annotation opensdn.io/paused is set the operator changes nothing of the Manager's services, so that no \
         image would reach a pod.",
        "kubectl annotate managers.tf.tungsten.io NAME opensdn.io/paused-",
    ),
    (
        "OSDN5008",
        Deny,
        "a service that gets other images is not ready",
        "An upgrade takes one more member away from a service that lacks one already, which may cost its quorum; and \
         what was wrong before could pass for a fault of the new images.",
        "have it ready first: kubectl opensdn status says what the cause is; if the new images are what repairs it: \
         --force OSDN5008",
    ),
    (
        "OSDN5009",
        Deny,
        "the release is newer than all that are known",
        "What a daemon is called and which keys it reads may be others in a release that came after this program, so \
         that it would be configured as it does not expect.",
        "install the operator and the plugin of that release first; to try it all the same: --force OSDN5009",
    ),
    (
        "OSDN5010",
        Deny,
        "the plan is another one than the one that was looked at",
        "Between the look and the upgrade the Manager was changed, or other flags were given: other services or \
         containers would get other images than those that were agreed to.",
        "look at the plan again: kubectl opensdn upgrade plan; then apply with its hash",
    ),
    (
        "OSDN5011",
        Warn,
        "the images are of another generation",
        "From R25.1 on images are named opensdn-... instead of contrail-..., and have other keys and certificates. Each \
         pod is replaced with another configuration, and daemons of both generations talk to each other until the last \
         one is.",
        "plan a time in which little else changes, and do not leave it paused for long in the middle",
    ),
    (
        "OSDN5012",
        Warn,
        "there is no way back behind a wave",
        "Once the new version of a data store has run, the earlier one may not read what is on its disks. Services of that \
         wave and of those before it keep the new images, whatever fails later.",
        "take a backup of the data stores before; to look once more before that wave: --pause-before with its name",
    ),
    (
        "OSDN5013",
        Warn,
        "vrouters interrupt the workloads of their nodes",
        "Each vrouter that is replaced interrupts the workloads of its node for some minutes. One node comes after the \
         other, and the next when the one before has been ready for a while.",
        "move what must not be interrupted away; to choose the time: --pause-before vrouters, later upgrade resume",
    ),
    (
        "OSDN5014",
        Deny,
        "versions of RabbitMQ that may not run beside each other",
        "Images of RabbitMQ up to R24.1 have 3.7 or 3.10, by the system that they were built on; from R25.1 on 3.10. A member \
         of 3.10 cannot join a cluster of 3.7 members, so that one after the other does not work, and it does not start with \
         what 3.7 has stored either: upstream has no way from one to the other in place. A bus that starts with nothing has lost \
         what was queued. Services declare their exchange and queues again when they connect, but read the database only when \
         they start: in the waves behind it, and where RabbitMQ alone gets another image not at all.",
        "rabbitmqctl version in a pod of it: if both are 3.10, --force OSDN5014. To 3.11 or later: what the message says. From 3.7, with what is queued lost: kubectl \
         annotate rabbitmqs.tf.tungsten.io NAME opensdn.io/stopped=true; when its pods are gone, on each of their nodes: mv \
         /var/lib/contrail/rabbitmq /var/lib/contrail/rabbitmq-before; upgrade apply --force OSDN5014,OSDN5008; when upgrade \
         status says that it waits for the annotation: kubectl patch rabbitmqs.tf.tungsten.io NAME --subresource=status \
         --type=merge -p '{\"status\":{\"conditions\":[]}}', by which it may start from nothing, then kubectl annotate \
         rabbitmqs.tf.tungsten.io NAME opensdn.io/stopped-. Where no wave behind it has Config, Control and Kubemanager, delete \
         their pods one after the other then",
    ),
    (
        "OSDN5015",
        Deny,
        "an annotation says another release",
        "The annotation opensdn.io/release of the Manager wins over tags of images: its services would be configured as the \
         release that it says.",
        "kubectl annotate --overwrite managers.tf.tungsten.io NAME opensdn.io/release=R25.1, or opensdn.io/release- where tags \
         say it",
    ),
    (
        "OSDN5016",
        Warn,
        "an upgrade of tf-operator has not ended",
        "The status of the Manager has ziuState, the stage of an upgrade that tf-operator carries out (ZIU), and it is not at \
         its end: services may run images of two releases. Once tf-operator is gone no program continues it.",
        "kubectl opensdn status says which images run, and the upgrade gives all services those of one release. Where \
         tf-operator is gone: kubectl patch managers.tf.tungsten.io NAME -n NAMESPACE --subresource=status --type=merge -p \
         '{\"status\":{\"ziuState\":-1}}'; while the policy tf-operator-limits is in force it refuses all changes until then",
    ),
    (
        "OSDN5017",
        Deny,
        "the Manager would not get the new images",
        "Before an upgrade begins the API server is asked whether it would take all new images, and a policy or its schema \
         refuses them.",
        "put right what the message says, or ask who has made the policy; it is tried again every minute",
    ),
    (
        "OSDN5018",
        Warn,
        "a Config of another version rewrites what is stored",
        "The first API of another version looks through the whole database when it starts, and answers 503 to everything until \
         that has ended. What earlier releases have stored it rewrites: it fills fields, moves references, and drops what is not \
         used any more. It reads all objects of a kind and writes them back one after the other, while the APIs that still have \
         the earlier image take changes: what is configured meanwhile may be undone without a word. The way back gives Config \
         its earlier image, and not the earlier database.",
        "have nothing configured during the wave, and choose its time: --pause-before config. Before, take a backup of Cassandra \
         and ZooKeeper together, without changes in between (upstream's db_json_exim.py): identifiers and addresses are \
         allocated in ZooKeeper. With a large database give the wave more time: --wave-timeout 1h. With several workers of the \
         API (apiWorkerCount) all but one fail where that takes longer than a minute: set one for the time of the upgrade",
    ),
    (
        "OSDN5019",
        Deny,
        "a data store that the operator does not configure",
        "ZooKeeper before 3.5 does not know dynamicConfigFile, and Kafka 4.0 and later run without the ZooKeeper that their \
         configuration names. Images of OpenSDN have Cassandra 3.11, and the operator writes cassandra.yaml for that: with keys of Thrift, such as \
         start_rpc and thrift_framed_transport_size_in_mb. Cassandra 4.0 and later know none of them and end at their start \
         (Invalid yaml. Please remove properties).",
        "keep an image of Cassandra 3.11, ZooKeeper 3.5 or later, and Kafka before 4.0; if the tag says another version than the \
         image has: --force OSDN5019",
    ),
    (
        "OSDN5020",
        Warn,
        "a wave was not well in time",
        "A service did not get all of its pods ready with the new images, or another one that was well before is not any \
         more. The services of the waves get their earlier images again, as far as there is a way back, or all stays as it \
         is with --on-failure stop.",
        "kubectl opensdn upgrade status says which service and which pod; kubectl opensdn logs what it wrote. Where it \
         stopped: upgrade retry, skip or rollback",
    ),
];

/// `(code, meaning)` of each.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    CODES.iter().map(|(code, severity, title, why, remedy)| {
        let meaning = Meaning {
            found_by: Finder::Upgrade,
            policy: None,
            severity: *severity,
            title: (*title).to_owned(),
            why: (*why).to_owned(),
            remedy: (*remedy).to_owned(),
            rules: Vec::new(),
            sources: Vec::new(),
        };
        (*code, meaning)
    })
}

/// The code that is written so: `5008`, `osdn5008`.
///
/// # Errors
/// It is none that can be passed over.
pub(crate) fn code(text: &str) -> Result<String, String> {
    let code = super::normalized(text);
    if FORCEABLE.contains(&&*code) {
        return Ok(code);
    }
    Err(format!("codes that can be passed over are {}", FORCEABLE.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_of_an_upgrade_is_explained_and_none_is_left_over() {
        let sources = [
            include_str!("../../../lib/upgrade/src/plan.rs"),
            include_str!("../../../lib/upgrade/src/next.rs"),
            include_str!("../../../lib/upgrade/src/next/start.rs"),
            include_str!("../../../lib/upgrade/src/next/forward.rs"),
            include_str!("../../../lib/upgrade/src/next/back.rs"),
        ];
        let codes = sources.iter().flat_map(|text| {
            text.match_indices("OSDN").filter_map(|(at, _)| text.get(at..at + "OSDN5003".len()))
        });
        let given: BTreeSet<&str> = codes.collect();
        let explained: BTreeSet<&str> = CODES.iter().map(|one| one.0).collect();
        assert_eq!(given, explained);
    }

    #[test]
    fn a_code_that_nothing_passes_over_cannot_be_forced() {
        assert_eq!(code("5008").as_deref(), Ok("OSDN5008"));
        assert_eq!(code("osdn-5006").as_deref(), Ok("OSDN5006"));
        for text in ["OSDN5013", "OSDN1201", "all", ""] {
            assert!(code(text).unwrap_err().contains("OSDN5008"), "{text}");
        }
        for text in ["OSDN5002", "OSDN5003", "OSDN5007", "OSDN5010", "OSDN5015", "OSDN5017"] {
            assert!(code(text).unwrap_err().starts_with("codes that can be passed over"), "{text}");
        }
        assert!(
            FORCEABLE.iter().all(|one| CODES.iter().any(|code| code.0 == *one && code.1 == Deny))
        );
    }
}
