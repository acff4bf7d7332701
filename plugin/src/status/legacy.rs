//! The layout of contrail-status: pods of a node with their services, in its words (tf-container-builder,
//! `containers/status/contrail-status.py:35`). What it says of a service comes from Kubernetes and the operator. What it lists only
//! in its table, Redis, is here by its own names.

use std::collections::BTreeMap;
use std::io::{self, Write};

use opensdn_crds::component::Component;

use super::report::{ComponentStatus, StatusReport};
use super::text::cell;

impl StatusReport {
    /// Writes it as contrail-status does.
    pub(crate) fn write_legacy(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for one in &self.components {
            let lines = groups.entry(self.group(one)).or_default();
            for pod in &one.pods {
                lines.extend(pod.containers.iter().filter_map(|container| {
                    let name = word(&one.kind, &container.name)?;
                    let why = match container.message.as_str() {
                        "" => String::new(),
                        message => format!(" ({message})"),
                    };
                    let place = if self.is_of_one_node() {
                        String::new()
                    } else {
                        format!("{} ", pod.node)
                    };
                    Some(format!("{place}{name}: {}{why}", container.state.text()))
                }));
            }
        }
        if groups.values().all(Vec::is_empty) {
            return writeln!(out, "no pod of OpenSDN is here: kubectl opensdn status says why");
        }
        for (at, (group, lines)) in groups.iter().filter(|(_, lines)| !lines.is_empty()).enumerate()
        {
            if at > 0 {
                writeln!(out)?;
            }
            writeln!(out, "== Contrail {group} ==")?;
            lines.iter().try_for_each(|line| writeln!(out, "{}", cell(line)))?;
        }
        Ok(())
    }

    fn is_of_one_node(&self) -> bool {
        let mut nodes = self.components.iter().flat_map(|one| &one.pods).map(|pod| &pod.node);
        let first = nodes.next();
        nodes.all(|node| Some(node) == first)
    }

    /// What contrail-status calls the pods of a component: by the node type, which for databases depends on how many Cassandras
    /// there are (tf-operator, `pkg/apis/tf/v1alpha1/base_types.go:2010`).
    fn group(&self, one: &ComponentStatus) -> String {
        let is_of_analytics = one.name.starts_with(OF_ANALYTICS);
        let cassandras = self
            .components
            .iter()
            .filter(|other| other.kind == "Cassandra" && other.namespace == one.namespace);
        let is_alone = cassandras.count() == 1;
        match one.kind.as_str() {
            "Cassandra" if is_of_analytics => "database".to_owned(),
            "Cassandra" | "Zookeeper" | "Rabbitmq" if is_alone => "database".to_owned(),
            "Cassandra" | "Zookeeper" | "Rabbitmq" => "config-database".to_owned(),
            "AnalyticsAlarm" => "analytics-alarm".to_owned(),
            "AnalyticsSnmp" => "analytics-snmp".to_owned(),
            "Kubemanager" => "kubernetes".to_owned(),
            "QueryEngine" => "database".to_owned(),
            kind => kind.to_lowercase(),
        }
    }
}

/// How the name of a Cassandra of analytics begins.
const OF_ANALYTICS: &str = "analyticsdb";

/// Kind, container, and what contrail-status calls it.
const WORDS: &[(&str, &str, &str)] = &[
    ("Analytics", "analyticsapi", "api"),
    ("AnalyticsAlarm", "analytics-alarm-gen", "alarm-gen"),
    ("AnalyticsSnmp", "analytics-snmp-collector", "snmp-collector"),
    ("AnalyticsSnmp", "analytics-snmp-topology", "topology"),
    ("Config", "devicemanager", "device-manager"),
    ("Config", "schematransformer", "schema"),
    ("Config", "servicemonitor", "svc-monitor"),
    ("Kubemanager", "kubemanager", "kube-manager"),
    ("QueryEngine", "queryengine", "query-engine"),
    ("Vrouter", "vrouteragent", "agent"),
    ("Webui", "webuijob", "job"),
    ("Webui", "webuiweb", "web"),
];

/// What contrail-status calls a container. Nothing of one that it does not list: what prepares a node, and what registers it.
fn word<'a>(kind: &str, container: &'a str) -> Option<&'a str> {
    let prepares = Component::of_kind(kind).is_some_and(|known| {
        known.containers.init.contains(&container)
            || known.containers.conditional.contains(&container)
    });
    match container {
        "nodemanager" => Some("nodemgr"),
        "provisioner" => None,
        _ if prepares => None,
        _ => {
            let mut words = WORDS.iter();
            let found = words.find(|(of, name, _)| *of == kind && *name == container);
            Some(found.map_or(container, |(_, _, word)| *word))
        }
    }
}
