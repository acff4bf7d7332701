//! Names that tf-operator has in its code (upstream's `pkg/apis/tf/v1alpha1/defaults.go:255-265`).

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Pointer, Request, Severity, Verdict};

use crate::{Manager, Spec};

pub(crate) const MANAGER: Message = Message {
    code: "OSDN1101",
    severity: Severity::Deny,
    title: "tf-operator does not see a Manager of this name",
    explanation: "It asks for the Manager cluster1 by name. Of any other one nothing is made, or every \
        service waits for what it cannot find, with a line in the operator's log every few seconds.",
    hint: "name the Manager cluster1",
};

pub(crate) const NAMESPACE: Message = Message {
    code: "OSDN1102",
    severity: Severity::Warn,
    title: "tf-operator upgrades in the namespace tf only",
    explanation: "Installing works in the namespace that it watches; its upgrade looks for the objects \
        in tf, finds none, and waits without limit.",
    hint: "create the Manager in the namespace tf",
};

pub(crate) const SERVICE: Message = Message {
    code: "OSDN1104",
    severity: Severity::Deny,
    title: "tf-operator does not find a service of this name",
    explanation: "What needs the service looks for it by a name in tf-operator's code. With another one \
        it waits without limit, with a line in the operator's log; only the collector continues without AnalyticsAlarm, \
        with an empty list of Kafka's nodes, so that no alarm is raised.",
    hint: "name the services zookeeper1, rabbitmq1, config1, analytics1, analyticsalarm1, and one each of \
        cassandras and redis configdb1 and redis1",
};

pub(crate) const ANALYTICS: Message = Message {
    code: "OSDN1113",
    severity: Severity::Deny,
    title: "without analytics tf-operator configures nothing else",
    explanation: "Config, Control, Kubemanager and Webui are rendered with the nodes of Analytics: \
        while there are none, their pods wait for their files.",
    hint: "add analytics, named analytics1, with redis",
};

/// Kinds with the name that one object of theirs must have.
const NAMES: &[(&str, &str)] = &[
    ("Analytics", "analytics1"),
    ("AnalyticsAlarm", "analyticsalarm1"),
    ("Cassandra", "configdb1"),
    ("Config", "config1"),
    ("Rabbitmq", "rabbitmq1"),
    ("Redis", "redis1"),
    ("Zookeeper", "zookeeper1"),
];

pub(crate) fn judge_manager(request: &Request<Manager>, verdict: &mut Verdict) {
    if request.name != "cluster1" {
        let text = format!(
            "a limit of tf-operator: it looks for Manager cluster1 and does not see {}",
            request.name
        );
        verdict.add(MANAGER.at("/metadata/name").says(text));
    }
    if request.namespace != "tf" {
        let text = format!(
            "a limit of tf-operator: it would not find the cluster in namespace {} when it upgrades it",
            request.namespace
        );
        verdict.add(NAMESPACE.at("/metadata/namespace").says(text));
    }
}

pub(crate) fn judge(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    for (kind, wanted) in NAMES {
        let all: Vec<_> = components.iter().filter(|component| component.kind == *kind).collect();
        if let Some(first) = all.first().filter(|_| all.iter().all(|one| one.name != *wanted)) {
            add(first, wanted, verdict);
        }
    }
}

pub(crate) fn judge_analytics(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    if !components.is_empty() && components.iter().all(|component| component.kind != "Analytics") {
        let text = "a limit of tf-operator: without analytics config, control, kubemanager and webui are \
            not configured";
        verdict.add(ANALYTICS.at("/spec/services").says(text));
    }
}

/// Databases and Redis may have more than one object, the others not.
pub(crate) fn judge_standalone(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let wanted = NAMES.iter().find(|(kind, _)| *kind == component.kind);
    if let Some((kind, wanted)) = wanted
        && !["Cassandra", "Redis"].contains(kind)
        && component.name != *wanted
    {
        add(component, wanted, verdict);
    }
}

fn add(component: &ComponentView<'_, Spec>, wanted: &str, verdict: &mut Verdict) {
    let text = format!(
        "a limit of tf-operator: what needs {} looks for {} {wanted}",
        component.title(),
        component.kind
    );
    let at = match component.at.as_str().strip_suffix("/spec") {
        Some("") | None => Pointer::from("/metadata/name"),
        Some(item) => Pointer::from(item).join("/metadata/name"),
    };
    let finding = SERVICE.at(at).says(text).hint(format!("name it {wanted}"));
    // Its nodes are asked for by who does without them (upstream's `pkg/apis/tf/v1alpha1/base_types.go:1091-1096`).
    let waits = component.kind != "AnalyticsAlarm";
    verdict.add(if waits { finding } else { finding.severity(Severity::Warn) });
}
