//! Fields that no process ever sees.

use opensdn_policy_components::{
    ComponentView, UNUSED_OF_VROUTER,
    component::{Component, Setting},
};
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::{SetFields, Spec};

pub(crate) const PORT: Message = Message {
    code: "OSDN1608",
    severity: Severity::Warn,
    title: "a port of Control or Analytics cannot be changed",
    explanation: "The daemons listen on 179 (BGP), 5269 (XMPP), 53 (DNS), 8092 (introspection of \
        DNS), 8081 (Analytics API) and 8086 (collector) whatever is written here. Others are given \
        the other port: status and web UI show it, and every daemon sends its analytics to a \
        collectorPort on which no daemon listens.",
    hint: "remove the field",
};

pub(crate) const ANALYTICS: Message = Message {
    code: "OSDN1617",
    severity: Severity::Warn,
    title: "a setting of the analytics services has no effect",
    explanation: "Operators accept the settings of AnalyticsAlarm, AnalyticsSnmp and QueryEngine and write fixed \
        values into their configuration, whatever the fields say. What has the fixed value may stay.",
    hint: "remove the fields",
};

pub(crate) const VROUTER: Message = Message {
    code: "OSDN1809",
    severity: Severity::Warn,
    title: "a setting of the vrouters has no effect",
    explanation: "Operators accept the field and never write it into the parameters of the \
        agent, or no script there reads it. A variable in envVariablesConfig does reach it.",
    hint: "remove the fields, and set in envVariablesConfig instead what the message names",
};

/// Fields with what the configuration of the daemons has anyway, where that is one value (tf-operator,
/// `pkg/apis/tf/v1alpha1/templates/analyticsalarm_config.go:10-20`, `templates/analyticssnmp_config.go:10-66`,
/// `templates/queryengine_config.go:6-17` and `defaults.go:36`).
type Fixed = &'static [(&'static str, &'static [&'static str])];

const ALARM_FIELDS: Fixed = &[
    ("logFilePath", LOG_FOLDER),
    ("logLocal", &["1"]),
    ("alarmgenRedisAggregateDbOffset", &[]),
    ("alarmgenPartitions", &["30"]),
    ("alarmgenIntrospectListenPort", &["5995"]),
    ("alarmgenLogFileName", &["tf-alarm-gen.log", "/var/log/contrail/tf-alarm-gen.log"]),
];

const SNMP_FIELDS: Fixed = &[
    ("logFilePath", LOG_FOLDER),
    ("logLocal", &["1"]),
    ("snmpCollectorScanFrequency", &["600"]),
    ("snmpCollectorFastScanFrequency", &["60"]),
    ("snmpCollectorIntrospectListenPort", &["5920"]),
    (
        "snmpCollectorLogFileName",
        &["tf-snmp-collector.log", "/var/log/contrail/tf-snmp-collector.log"],
    ),
    ("topologySnmpFrequency", &["600"]),
    ("topologyIntrospectListenPort", &["5921"]),
    ("topologyLogFileName", &["tf-topology.log", "/var/log/contrail/tf-topology.log"]),
];

const QUERY_FIELDS: Fixed =
    &[("analyticsdbPort", &["9160"]), ("analyticsdbIntrospectPort", &["8091"])];

const LOG_FOLDER: &[&str] = &["/var/log/contrail", "/var/log/contrail/"];

/// Secrets, which do not belong into an object, and what no script reads as a variable either.
const WITHOUT_A_VARIABLE: &[&str] = &[
    "barbicanPassword",
    "k8sToken",
    "keystoneAuthAdminPassword",
    // Of a variable of this name CONTAINER_LOG_DIR, which is set always, takes nothing.
    "logDir",
    "requiredKernelVrouterEncryption",
    "vrouterCryptInterface",
    "vrouterDecryptInterface",
    "vrouterDecryptKey",
    "vrouterEncryption",
];

/// What the provisioner makes something of together with the interfaces alone.
const NETWORK: &str = "sriovPhysicalNetwork";

/// Variables that do nothing, or are refused, without others.
const COMPANIONS: &[(&str, &str)] = &[
    ("priorityId", "PRIORITY_BANDWIDTH and PRIORITY_SCHEDULING, with an item for each of its own,"),
    (NETWORK, "SRIOV_PHYSICAL_INTERFACE, with as many items,"),
    ("sriovVf", "SRIOV_PHYSICAL_INTERFACE, with as many items,"),
];

pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    judge_ports(component, verdict);
    match component.kind {
        "AnalyticsAlarm" => judge_analytics(component, ALARM_FIELDS, verdict),
        "AnalyticsSnmp" => judge_analytics(component, SNMP_FIELDS, verdict),
        "QueryEngine" => judge_analytics(component, QUERY_FIELDS, verdict),
        "Vrouter" => judge_vrouter(component, verdict),
        _ => {}
    }
}

/// Judges the fields that are given with another value than the one that holds.
fn judge_analytics(component: &ComponentView<'_, Spec>, fields: Fixed, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    let deceives = |(field, values): &&(&str, &[&str])| {
        given.shown(field).is_some_and(|value| !values.contains(&&*value))
    };
    let dead: Vec<&str> = fields.iter().filter(deceives).map(|(field, _)| *field).collect();
    let Some(first) = dead.first() else { return };
    let text = format!("{}: without effect: {}", component.title(), dead.join(", "));
    verdict.add(ANALYTICS.at(component.setting("").key(first)).says(text));
}

fn judge_vrouter(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    let mut dead: Vec<&str> =
        UNUSED_OF_VROUTER.iter().copied().filter(|field| given.has(field)).collect();
    // Of the interfaces of a profile nothing is known here.
    let interfaces = ["sriovPhysicalInterface", "sriov", "profiles"];
    let has_interface = interfaces.iter().any(|field| given.has(field))
        || given.variable("SRIOV_PHYSICAL_INTERFACE").is_some();
    if given.has(NETWORK) && !has_interface {
        dead.push(NETWORK);
    }
    let Some(first) = dead.first() else { return };
    let text = format!("{}: without effect: {}", component.title(), dead.join(", "));
    let finding = VROUTER.at(component.setting("").key(first)).says(text);
    verdict.add(finding.hint(instead(&dead, given)));
}

/// What to do instead of setting these fields of a Vrouter.
fn instead(dead: &[&str], given: &SetFields) -> String {
    let mut hint = "remove them".to_owned();
    let wants_dpdk = given.text("agentMode").is_some_and(|mode| mode.eq_ignore_ascii_case("dpdk"));
    let variables: Vec<_> = dead
        .iter()
        .filter(|field| !WITHOUT_A_VARIABLE.contains(field))
        .filter(|field| **field != "agentMode" || !wants_dpdk)
        .map(|field| variable(field))
        .collect();
    if !variables.is_empty() {
        hint.push_str(&format!(
            ", and set in envVariablesConfig instead: {}",
            variables.join(", ")
        ));
    }
    for (field, companions) in COMPANIONS.iter().filter(|(field, _)| dead.contains(field)) {
        hint.push_str(&format!("; {} needs {companions} besides", variable(field)));
    }
    if wants_dpdk {
        hint.push_str("; for a DPDK process give dpdk, of which tf-operator knows nothing");
    }
    hint
}

fn judge_ports(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let ports = Component::of_kind(component.kind).map_or(&[][..], |known| known.ports);
    for (field, port) in ports.iter().filter_map(|port| match port.setting {
        Setting::ShownAs(field) => Some((field, i64::from(port.number))),
        Setting::Fixed | Setting::Field(_) | Setting::Above(..) => None,
    }) {
        let given = component.spec.service_configuration.number(field);
        if let Some(other) = given.filter(|given| *given != port) {
            let text = format!(
                "{}: {field} is {other}, and the daemon stays on {port}",
                component.title()
            );
            verdict.add(PORT.at(component.setting("").key(field)).says(text));
        }
    }
}

/// The environment variable of the agent that a field was meant to set.
fn variable(field: &str) -> String {
    if field == "fabricSntHashTableSize" {
        return "FABRIC_SNAT_HASH_TABLE_SIZE".to_owned();
    }
    let mut name = String::new();
    for letter in field.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{UNUSED_OF_VROUTER, variable};

    #[test]
    fn the_variables_are_those_of_the_agent() {
        assert_eq!(variable("keystoneAuthAdminPort"), "KEYSTONE_AUTH_ADMIN_PORT");
        assert_eq!(variable("k8sTokenFile"), "K8S_TOKEN_FILE");
        assert_eq!(variable("fabricSntHashTableSize"), "FABRIC_SNAT_HASH_TABLE_SIZE");
        assert_eq!(UNUSED_OF_VROUTER.len(), 45);
    }
}
