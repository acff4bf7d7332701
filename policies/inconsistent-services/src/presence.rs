//! Services that need each other, and are not both there.

use opensdn_policy_components::{
    ComponentView,
    component::{COMPONENTS, Component, Need, Place},
    is_analytics_database,
};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::Spec;

pub(crate) const MISSING: Message = Message {
    code: "OSDN1105",
    severity: Severity::Deny,
    title: "a service that others wait for is missing",
    explanation: "Config needs its database, ZooKeeper and RabbitMQ, and everything else needs \
        Config. Analytics and the web UI need Redis on their nodes. What waits for a service that \
        is not there waits without limit, with a line in a log at most. A key that is misspelt, such \
        as zookeepers, counts as none: the API server drops it.",
    hint: "add the services to spec.services",
};

pub(crate) const IDLE_QUERIES: Message = Message {
    code: "OSDN1508",
    severity: Severity::Warn,
    title: "there is a query engine without a database of its own",
    explanation: "Without a Cassandra named analyticsdb1 the analytics data goes into the config \
        database, which is not made for it.",
    hint: "add a Cassandra named analyticsdb1 to cassandras, or remove queryengine",
};

pub(crate) const IDLE_DATABASE: Message = Message {
    code: "OSDN1509",
    severity: Severity::Warn,
    title: "the analytics database stays empty",
    explanation: "Without a query engine the collector writes nothing into analyticsdb1.",
    hint: "add queryengine, or remove the second Cassandra",
};

pub(crate) const SECOND_REDIS: Message = Message {
    code: "OSDN1518",
    severity: Severity::Warn,
    title: "there is more than one Redis",
    explanation: "The others use the first only, on their own node.",
    hint: "leave one item in redis",
};

pub(crate) const NO_DATA_PLANE: Message = Message {
    code: "OSDN1820",
    severity: Severity::Warn,
    title: "there is a kube-manager, and there are no vrouters",
    explanation: "kube-manager makes networks and ports for pods, and nothing on the nodes \
        connects the pods to them.",
    hint: "add vrouters, or remove kubemanager",
};

/// What everything else needs: Config, and what that needs.
fn needed() -> impl Iterator<Item = &'static Component> {
    let config = Component::of_kind("Config");
    let below = config.into_iter().flat_map(|config| config.needs);
    config.into_iter().chain(below.filter_map(|need| Component::of_kind(need.kind)))
}

/// What needs Redis on its own node.
fn users_of_redis() -> impl Iterator<Item = &'static str> {
    let need = Need { kind: "Redis", place: Place::SameNode };
    let users = COMPONENTS.iter().filter(move |component| component.needs.contains(&need));
    users.map(|component| component.kind)
}

pub(crate) fn judge(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    let has = |kind: &str| components.iter().any(|component| component.kind == kind);
    let services = Pointer::from("/spec/services");
    let missing: Vec<_> =
        needed().filter(|component| !has(component.kind)).map(|component| component.key).collect();
    if !missing.is_empty() {
        let text = format!("no {}: the cluster cannot start", missing.join(", no "));
        verdict.add(MISSING.at(&services).says(text));
    }
    let users: Vec<_> = users_of_redis().filter(|kind| has(kind)).collect();
    if !users.is_empty() && !has("Redis") {
        let text = format!("no redis: {} cannot start without it", users.join(" and "));
        verdict.add(MISSING.at(&services).says(text));
    }
    if !has("Analytics") {
        let text = "no analytics: nothing collects what happens in the network, and the web UI \
            shows nothing of it";
        verdict.add(MISSING.at(&services).severity(Severity::Warn).says(text));
    }
    if has("Kubemanager") && !has("Vrouter") {
        verdict.add(NO_DATA_PLANE.at(services.key("kubemanager")));
    }
    judge_pairs(components, &has, &services, verdict);
}

fn judge_pairs(
    components: &[ComponentView<'_, Spec>],
    has: &dyn Fn(&str) -> bool,
    services: &Pointer,
    verdict: &mut Verdict,
) {
    let database = components
        .iter()
        .find(|component| component.kind == "Cassandra" && is_analytics_database(component.name));
    match (has("QueryEngine"), database) {
        (true, None) => verdict.add(IDLE_QUERIES.at(services.key("queryengine"))),
        (false, Some(database)) => {
            let text = format!("{}: there is no query engine to use it", database.title());
            verdict.add(IDLE_DATABASE.at(&database.at).says(text));
        }
        _ => {}
    }
    for redis in components.iter().filter(|component| component.kind == "Redis").skip(1) {
        let text = format!("{}: the others use the first Redis only", redis.title());
        verdict.add(SECOND_REDIS.at(&redis.at).says(text));
    }
}
