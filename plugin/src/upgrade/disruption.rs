//! What users notice while the pods of a service are replaced, by its kind and the number of its pods. That one pod is
//! away at a time is the operator's promise; whether the others serve on is the service's own nature.

use schemars::JsonSchema;
use serde::Serialize;

/// What users notice of a service that gets other images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Disruption {
    /// How far it reaches.
    pub(crate) reach: Reach,
    /// In words.
    pub(crate) text: String,
}

/// How far it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reach {
    /// Nothing is interrupted.
    None,
    /// Other pods of the service serve on; clients connect again.
    Reconnect,
    /// The service is away while a pod is replaced; workloads are not touched.
    Service,
    /// Workloads are cut off.
    Workloads,
}

use Reach::{Reconnect, Service, Workloads};

/// How far it reaches, and in words.
type Noticed = (Reach, &'static str);

/// Kind, from how many pods on the others serve on without one, what is so with fewer, and with as many.
///
/// Cassandra's keyspaces are on all nodes and are read and written by a majority (`cfgm_common/datastore/drivers/
/// cassandra_cql.py`), as ZooKeeper's are, so that of two members one does not suffice. An agent has sessions with two
/// control nodes (`agent.h`, MAX_XMPP_SERVERS); when the last one ends, it keeps routes only with graceful restart
/// (`controller_timer.cc`, LlgrStaleTimer). Kafka is in the pods of AnalyticsAlarm: 2.6.3 up to R24.1 and 3.9.1 in R25.1
/// (tf-container-builder, `containers/external/kafka/Dockerfile`). As upstream, the operator gives no inter.broker.protocol.version,
/// so that brokers of the later one speak to each other as the earlier ones do not understand.
const KINDS: [(&str, usize, Noticed, Noticed); 13] = [
    (
        "Cassandra",
        3,
        (Service, "away for Config and Analytics while a pod is replaced: nothing is configured"),
        (Reconnect, "the other members serve on"),
    ),
    (
        "Zookeeper",
        3,
        (
            Service,
            "away for Config, Kubemanager and alarms while a pod is replaced: nothing is configured",
        ),
        (Reconnect, "the other members serve on"),
    ),
    (
        "Rabbitmq",
        2,
        (
            Service,
            "away while its pod is replaced: a change that is made then may not come to Control until that is started again",
        ),
        (Reconnect, "the other members serve on; clients connect again"),
    ),
    (
        "Redis",
        2,
        (
            Service,
            "away while its pod is replaced: no analytics can be read, and users of the web UI log in again",
        ),
        (
            Reconnect,
            "away on one node after the other: analytics of the others can be read, and users of the web UI of that node log in again",
        ),
    ),
    (
        "Config",
        2,
        (
            Service,
            "away while its pod is replaced: nothing is configured; what runs is not touched",
        ),
        (Reconnect, "clients of the API connect to another pod"),
    ),
    (
        "Control",
        2,
        (
            Workloads,
            "away while its pod is replaced: without graceful restart agents lose the routes to other nodes",
        ),
        (Reconnect, "agents keep another control node; BGP sessions of each begin again"),
    ),
    (
        "Kubemanager",
        2,
        (Service, "away while its pod is replaced: new pods wait for their network"),
        (Reconnect, "a standby takes over; new pods wait until it works"),
    ),
    (
        "Analytics",
        2,
        (Service, "away while its pod is replaced: what is sent meanwhile is lost"),
        (Reconnect, "daemons send to another collector"),
    ),
    (
        "QueryEngine",
        2,
        (Service, "away while its pod is replaced: queries fail"),
        (Reconnect, "queries that run fail once; another pod answers the next"),
    ),
    (
        "AnalyticsAlarm",
        2,
        (Service, "away while its pod is replaced: no alarm is raised"),
        (
            Reconnect,
            "the others raise alarms for it; with another Kafka some may be missing until the last pod is replaced",
        ),
    ),
    (
        "AnalyticsSnmp",
        2,
        (Service, "away while its pod is replaced: devices are not asked"),
        (Reconnect, "the others ask its devices"),
    ),
    (
        "Webui",
        2,
        (Service, "away while its pod is replaced"),
        (Reconnect, "another pod answers; users may have to log in again"),
    ),
    (
        "Vrouter",
        usize::MAX,
        (Workloads, "workloads of a node are cut off for some minutes while its pod is replaced"),
        (Workloads, ""),
    ),
];

/// What users notice while this many pods of the kind are replaced.
pub(super) fn disruption(kind: &str, pods: usize) -> Disruption {
    let facts = KINDS.iter().find(|one| one.0 == kind);
    let Some((_, enough, alone, several)) = facts.filter(|_| pods > 0) else {
        return Disruption { reach: Reach::None, text: "nothing: it has no pods yet".to_owned() };
    };
    let (reach, text) = if pods < *enough { alone } else { several };
    let rest = pods.saturating_sub(1);
    let text = match text.strip_prefix("the other members serve on") {
        Some(more) => format!("{rest} of {pods} members serve on{more}"),
        None if pods == 2 && *enough == 3 => format!("{text} (one of two is no majority)"),
        None => (*text).to_owned(),
    };
    Disruption { reach: *reach, text }
}

#[cfg(test)]
mod tests {
    use opensdn_crds::component::COMPONENTS;

    use super::*;

    #[track_caller]
    fn check(kind: &str, pods: usize, reach: Reach, part: &str) {
        let found = disruption(kind, pods);
        assert_eq!(found.reach, reach, "{kind} {pods}: {}", found.text);
        assert!(found.text.contains(part), "{kind} {pods}: {}", found.text);
    }

    #[test]
    fn a_service_with_one_pod_is_away_and_with_several_the_others_serve_on() {
        for facts in COMPONENTS {
            let [alone, three] = [1, 3].map(|pods| disruption(facts.kind, pods).reach);
            assert!(alone >= Service, "{}", facts.kind);
            let expected = if facts.kind == "Vrouter" { Workloads } else { Reconnect };
            assert_eq!(three, expected, "{}", facts.kind);
        }
        check("Webui", 0, Reach::None, "no pods");
    }

    #[test]
    fn data_stores_that_vote_need_a_majority_of_their_members() {
        check("Cassandra", 3, Reconnect, "2 of 3 members serve on");
        check("Zookeeper", 5, Reconnect, "4 of 5 members serve on");
        check("Zookeeper", 2, Service, "one of two is no majority");
        check("Rabbitmq", 2, Reconnect, "1 of 2 members serve on");
    }

    #[test]
    fn alarms_may_be_missing_while_brokers_of_kafka_have_several_versions() {
        check("AnalyticsAlarm", 3, Reconnect, "until the last pod is replaced");
        check("AnalyticsAlarm", 1, Service, "no alarm is raised");
    }

    #[test]
    fn workloads_notice_vrouters_and_a_single_control_node() {
        check("Vrouter", 12, Workloads, "of a node");
        check("Control", 1, Workloads, "routes");
        check("Control", 2, Reconnect, "another control node");
    }
}
