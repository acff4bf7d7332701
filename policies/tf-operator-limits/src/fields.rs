//! Fields that tf-operator applies in half of the places, or drops.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde_json::Value;

use crate::{Common, Spec};

pub(crate) const AGENTS_KEYSTONE: Message = Message {
    code: "OSDN1412",
    severity: Severity::Warn,
    title: "the agents do not know of Keystone",
    explanation: "tf-operator renders vnc_api_lib.ini of the agents without authentication unless the \
        variable AUTH_MODE says otherwise; only their provisioner gets Keystone's parameters.",
    hint: "set AUTH_MODE: keystone and the variables KEYSTONE_AUTH_* in envVariablesConfig of the Vrouter",
};

pub(crate) const ZOOKEEPER_PORT: Message = Message {
    code: "OSDN1510",
    severity: Severity::Deny,
    title: "tf-operator has ZooKeeper's port in its code",
    explanation: "Its probes ask at 2181, whatever clientPort says: the pods never become ready.",
    hint: "remove clientPort",
};

pub(crate) const API_PORT: Message = Message {
    code: "OSDN1601",
    severity: Severity::Deny,
    title: "tf-operator has the port of the Config API in its code",
    explanation: "The schema transformer, the service monitor and the device manager ask the API at 8082, \
        whatever apiPort says.",
    hint: "remove apiPort",
};

pub(crate) const REVERSE_NAMES: Message = Message {
    code: "OSDN1611",
    severity: Severity::Warn,
    title: "tf-operator needs names for the addresses of the data network",
    explanation: "It asks DNS for the name of each address in dataSubnet, on the node where it runs \
        itself. Without an answer the service is not configured.",
    hint: "make the reverse names known to the operator's node: getent hosts ADDRESS must answer",
};

pub(crate) const LOG_LEVEL: Message = Message {
    code: "OSDN1618",
    severity: Severity::Warn,
    title: "not every daemon has this level of logs",
    explanation: "tf-operator writes the word in capital letters into ZooKeeper's log4j, which knows \
        neither WARNING nor CRITICAL nor NONE and then logs everything, and none as it is into the \
        configuration of the daemons.",
    hint: "use info, debug or error",
};

pub(crate) const OF_THE_CLUSTER: Message = Message {
    code: "OSDN1701",
    severity: Severity::Warn,
    title: "tf-operator does not read a setting of kube-manager",
    explanation: "It takes the API server, the networks of pods and Services and the token from the \
        cluster. A value here that differs deceives its readers.",
    hint: "remove the fields",
};

pub(crate) const NESTED: Message = Message {
    code: "OSDN1707",
    severity: Severity::Warn,
    title: "tf-operator knows no nested mode",
    explanation: "It writes nested_mode=0 into the configuration of kube-manager whatever the object says, and \
        waits for a control plane in the same cluster.",
    hint: "remove nested: what runs in a nested cluster is made without tf-operator, as by \
        kubernetes/manifests/contrail-nested-kubernetes.yaml of tf-container-builder",
};

pub(crate) const UNKNOWN: Message = Message {
    code: "OSDN1823",
    severity: Severity::Warn,
    title: "tf-operator does nothing with a field",
    explanation: "It is one of ours, which tf-operator drops without a word when it writes the object of the service, so \
        that no container gets it. Or it is sriovPhysicalNetwork, which it writes for the agent alone, and only the \
        provisioner reads it.",
    hint: "remove the fields, or let our operator run the cluster; physical networks may be variables",
};

/// Fields whose port is in tf-operator's code, with the number: upstream's
/// `pkg/controller/zookeeper/sts.go:62` and `pkg/apis/tf/v1alpha1/templates/config_config.go:95,200,242`. Those of
/// Control and Analytics no operator changes: they are the business of `misleading-field`.
const PORTS: &[(&Message, &str, &str, i64)] =
    &[(&API_PORT, "Config", "apiPort", 8082), (&ZOOKEEPER_PORT, "Zookeeper", "clientPort", 2181)];

const KUBEMANAGER_FIELDS: &[&str] = &[
    "kubernetesAPIServer",
    "kubernetesAPIPort",
    "kubernetesAPISSLPort",
    "podSubnet",
    "serviceSubnet",
    "kubernetesTokenFile",
];

/// What our API has more than upstream's, by kind.
const OURS: &[(&str, &[&str])] = &[
    ("Config", &["linklocalServices"]),
    (
        "Vrouter",
        &[
            "dpdk",
            "encapsulationPriorities",
            "fabricSnatHashTableSize",
            "profiles",
            "sriov",
            "xmppSslEnable",
        ],
    ),
];

/// Whether it is a field of ours, which it drops.
pub(crate) fn is_ours(kind: &str, field: &str) -> bool {
    OURS.iter().any(|(of, fields)| *of == kind && fields.contains(&field))
}

/// `at` is where the commonConfiguration stands.
pub(crate) fn judge_common(common: &Common, at: &Pointer, verdict: &mut Verdict) {
    if ["critical", "none", "warning"].contains(&common.log_level.as_str()) {
        let text = format!(
            "a limit of tf-operator: not every daemon that it configures has logLevel {}",
            common.log_level
        );
        verdict.add(LOG_LEVEL.at(at.key("logLevel")).says(text));
    }
}

/// Whether it says so itself.
pub(crate) fn is_nested(component: &ComponentView<'_, Spec>) -> bool {
    component.kind == "Kubemanager" && component.spec.given("nested").is_some()
}

/// `nested`: whether the cluster is, by the component or by its Manager.
pub(crate) fn judge(component: &ComponentView<'_, Spec>, nested: bool, verdict: &mut Verdict) {
    let title = component.title();
    let own = component.at.as_str() != "/spec";
    if own {
        // Of a stand-alone object it is judged with the rest of it.
        judge_common(&component.spec.common_configuration, &component.shared(""), verdict);
    }
    for (message, kind, field, usual) in PORTS {
        let given = component.spec.given(field).and_then(Value::as_i64);
        if let Some(port) = given.filter(|port| component.kind == *kind && port != usual) {
            let text = format!(
                "a limit of tf-operator: {title} has {field} {port}, and a part of what it makes stays at \
                 {usual}"
            );
            verdict.add(message.at(component.setting("").key(field)).says(text));
        }
    }
    if ["Control", "Vrouter"].contains(&component.kind)
        && component.spec.given("dataSubnet").is_some()
    {
        let text = format!(
            "{title}: a limit of tf-operator: it is configured only when DNS knows names for its addresses in \
             dataSubnet"
        );
        verdict.add(REVERSE_NAMES.at(component.setting("/dataSubnet")).says(text));
    }
    if is_nested(component) {
        let text = format!("a limit of tf-operator: {title} is nested, and it does not know that");
        verdict.add(NESTED.at(component.setting("/nested")).says(text));
    }
    judge_unread(component, nested, verdict);
}

/// Fields that it passes over.
fn judge_unread(component: &ComponentView<'_, Spec>, nested: bool, verdict: &mut Verdict) {
    // In nested mode they are needed, by whatever runs it instead.
    let is_read = component.kind != "Kubemanager" || nested;
    let read_from_the_cluster: &[&str] = if is_read { &[] } else { KUBEMANAGER_FIELDS };
    let ours = OURS.iter().find(|(kind, _)| *kind == component.kind);
    for (message, fields, what) in [
        (&OF_THE_CLUSTER, read_from_the_cluster, "does not read"),
        (&UNKNOWN, ours.map_or(&[][..], |(_, fields)| fields), "does not know"),
    ] {
        let given: Vec<_> =
            fields.iter().copied().filter(|field| component.spec.given(field).is_some()).collect();
        if let Some(first) = given.first() {
            let text = format!(
                "a limit of tf-operator: of {} it {what} {}",
                component.title(),
                given.join(", ")
            );
            verdict.add(message.at(component.setting("").key(first)).says(text));
        }
    }
    let given = |field: &str| component.spec.given(field).is_some();
    let variables = component.spec.given("envVariablesConfig");
    let is_variable = ["SRIOV_PHYSICAL_INTERFACE", "SRIOV_PHYSICAL_NETWORK"]
        .iter()
        .all(|name| variables.is_some_and(|all| all.get(name).is_some()));
    // Without an interface it has no effect anywhere, which is the business of `misleading-field`.
    if given("sriovPhysicalNetwork") && given("sriovPhysicalInterface") && !is_variable {
        let text = format!(
            "a limit of tf-operator: the provisioner of {} does not get sriovPhysicalNetwork",
            component.title()
        );
        let hint =
            "set SRIOV_PHYSICAL_INTERFACE and SRIOV_PHYSICAL_NETWORK in envVariablesConfig instead";
        let at = component.setting("/sriovPhysicalNetwork");
        verdict.add(UNKNOWN.at(at).says(text).hint(hint));
    }
}

pub(crate) fn judge_keystone(
    common: &Common,
    components: &[ComponentView<'_, Spec>],
    verdict: &mut Verdict,
) {
    if !common.has_keystone() {
        return;
    }
    for vrouter in components.iter().filter(|component| component.kind == "Vrouter") {
        let variables = vrouter.spec.given("envVariablesConfig");
        if variables.and_then(|all| all.get("AUTH_MODE")).is_none() {
            let text = format!(
                "a limit of tf-operator: the agents of {} do not authenticate, for AUTH_MODE is unset",
                vrouter.title()
            );
            verdict.add(AGENTS_KEYSTONE.at(vrouter.setting("/envVariablesConfig")).says(text));
        }
    }
}
