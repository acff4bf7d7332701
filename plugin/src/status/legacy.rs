//! The layout of contrail-status: pods of a node with their services. What it says of a service comes from Kubernetes
//! and the operator, not from introspect.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::report::StatusReport;
use super::text::one_line;

impl StatusReport {
    /// Writes it as contrail-status does.
    pub(crate) fn write_legacy(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for one in &self.components {
            let lines = groups.entry(group(&one.kind)).or_default();
            for pod in &one.pods {
                lines.extend(pod.containers.iter().map(|container| {
                    let why = match container.message.as_str() {
                        "" => String::new(),
                        message => format!(" ({message})"),
                    };
                    let place = if self.is_of_one_node() {
                        String::new()
                    } else {
                        format!("{} ", pod.node)
                    };
                    format!("{place}{}: {}{why}", container.name, container.state.text())
                }));
            }
        }
        for (at, (group, lines)) in groups.iter().filter(|(_, lines)| !lines.is_empty()).enumerate()
        {
            if at > 0 {
                writeln!(out)?;
            }
            writeln!(out, "== Contrail {group} ==")?;
            lines.iter().try_for_each(|line| writeln!(out, "{}", one_line(line)))?;
        }
        Ok(())
    }

    fn is_of_one_node(&self) -> bool {
        let mut nodes = self.components.iter().flat_map(|one| &one.pods).map(|pod| &pod.node);
        let first = nodes.next();
        nodes.all(|node| Some(node) == first)
    }
}

/// What contrail-status calls the pods of a kind.
fn group(kind: &str) -> String {
    match kind {
        "Cassandra" | "Zookeeper" | "Rabbitmq" => "config-database".to_owned(),
        "AnalyticsAlarm" => "analytics-alarm".to_owned(),
        "AnalyticsSnmp" => "analytics-snmp".to_owned(),
        "Kubemanager" => "kubernetes".to_owned(),
        "QueryEngine" => "database".to_owned(),
        kind => kind.to_lowercase(),
    }
}
