//! The containers of each kind, as tf-operator names them and existing manifests give them.

/// The containers of one kind.
pub(crate) struct Containers {
    /// Those that do the work.
    pub(crate) main: &'static [&'static str],
    /// Those that prepare the node.
    pub(crate) init: &'static [&'static str],
    /// Known, and needed in some cases only.
    pub(crate) other: &'static [&'static str],
}

pub(crate) const KERNEL_INIT: &str = "vrouterkernelinit";
pub(crate) const KERNEL_BUILD: &str = "vrouterkernelbuildinit";
pub(crate) const NODE_INIT: &str = "nodeinit";
pub(crate) const STATUS: &str = "nodeinit-status-prefetch";

const fn only(main: &'static [&'static str]) -> Containers {
    Containers { main, init: &[], other: &[] }
}

const ANALYTICS: Containers = only(&["analyticsapi", "collector", "nodemanager", "provisioner"]);
const ANALYTICS_ALARM: Containers =
    only(&["analytics-alarm-gen", "kafka", "nodemanager", "provisioner"]);
const ANALYTICS_SNMP: Containers =
    only(&["analytics-snmp-collector", "analytics-snmp-topology", "nodemanager", "provisioner"]);
const CASSANDRA: Containers = only(&["cassandra", "nodemanager", "provisioner"]);
const CONFIG: Containers = Containers {
    main: &[
        "api",
        "devicemanager",
        "dnsmasq",
        "schematransformer",
        "servicemonitor",
        "nodemanager",
        "provisioner",
    ],
    init: &[NODE_INIT, STATUS, "nodeinit-tools-prefetch"],
    other: &[],
};
const CONTROL: Containers = only(&["control", "dns", "named", "nodemanager", "provisioner"]);
const KUBEMANAGER: Containers = only(&["kubemanager"]);
const QUERY_ENGINE: Containers = only(&["queryengine"]);
const RABBITMQ: Containers = only(&["rabbitmq"]);
const REDIS: Containers = only(&["redis", "stunnel"]);
const VROUTER: Containers = Containers {
    main: &["provisioner", "nodemanager", "vrouteragent"],
    init: &["vroutercni", NODE_INIT, STATUS, "nodeinit-tools-prefetch"],
    other: &[KERNEL_INIT, KERNEL_BUILD],
};
const WEBUI: Containers = only(&["webuiweb", "webuijob"]);
const ZOOKEEPER: Containers = only(&["zookeeper"]);

impl Containers {
    /// The containers of a kind; `None` for a kind that has none.
    pub(crate) fn of(kind: &str) -> Option<&'static Self> {
        Some(match kind {
            "Analytics" => &ANALYTICS,
            "AnalyticsAlarm" => &ANALYTICS_ALARM,
            "AnalyticsSnmp" => &ANALYTICS_SNMP,
            "Cassandra" => &CASSANDRA,
            "Config" => &CONFIG,
            "Control" => &CONTROL,
            "Kubemanager" => &KUBEMANAGER,
            "QueryEngine" => &QUERY_ENGINE,
            "Rabbitmq" => &RABBITMQ,
            "Redis" => &REDIS,
            "Vrouter" => &VROUTER,
            "Webui" => &WEBUI,
            "Zookeeper" => &ZOOKEEPER,
            _ => return None,
        })
    }

    /// Every name that the kind has.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static str> {
        self.main.iter().chain(self.init).chain(self.other).copied()
    }

    /// The name that was meant, where a known one is near.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'static str> {
        let limit = (name.len() / 3).max(1);
        let distances = self.all().map(|known| (distance(&name.to_lowercase(), known), known));
        distances.min().filter(|(distance, _)| *distance <= limit).map(|(_, known)| known)
    }
}

/// How many characters to insert, remove or replace to make one of the other.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, character) in left.bytes().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(right.bytes()) {
            let replaced = diagonal + usize::from(character != other);
            diagonal = *cell;
            before = replaced.min(diagonal + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Containers, distance};

    #[test]
    fn counts_edits() {
        for (left, right, edits) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("api", "apis", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }

    #[test]
    fn guesses_what_is_near_only() {
        let vrouter = Containers::of("Vrouter").unwrap();
        assert_eq!(vrouter.nearest("vrouter-agent"), Some("vrouteragent"));
        assert_eq!(vrouter.nearest("NodeManager"), Some("nodemanager"));
        assert_eq!(vrouter.nearest("dpdk"), None);
    }
}
