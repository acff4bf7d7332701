//! Services that need each other, and are not both there.

use opensdn_policy_components::{
    ComponentView, Owners,
    component::{COMPONENTS, Component, Need, Place},
    is_analytics_database,
};
use opensdn_policy_sdk::{Failure, Index, Message, Outcome, Pointer, Severity, Verdict};

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

/// Services may be objects of their own: the others find them in the namespace. Only databases
/// cannot (tf-operator, `pkg/apis/tf/v1alpha1/base_types.go:1996`).
macro_rules! elsewhere {
    ($($name:ident: $index:literal of $kind:literal,)*) => {
        $(pub(crate) const $name: Index = Index {
            name: $index,
            group: "tf.tungsten.io",
            kind: $kind,
            key: "/metadata/namespace",
            reads: &["/metadata/ownerReferences"],
        };)*

        const ELSEWHERE: &[Index] = &[$($name),*];
    };
}

elsewhere! {
    CONFIGS: "configs" of "Config",
    RABBITMQS: "rabbitmqs" of "Rabbitmq",
    REDIS: "redis" of "Redis",
    ZOOKEEPERS: "zookeepers" of "Zookeeper",
}

/// Whether the namespace has an object of that kind that no Manager made: what a Manager does not
/// name any more is about to go.
fn is_elsewhere(kind: &str, namespace: &str) -> Result<bool, Failure> {
    let Some(index) = ELSEWHERE.iter().find(|index| index.kind == kind) else { return Ok(false) };
    for object in &index.find(namespace)? {
        if object.part::<Owners>(0)?.unwrap_or_default().manager().is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the annotation says that a service of that kind is taken out by intention.
fn is_taken_out(kind: &str, confirmed: &str) -> bool {
    let mut items = confirmed.split(',').filter_map(|item| item.trim().split_once('/'));
    items.any(|(taken_out, _)| taken_out == kind)
}

pub(crate) const IDLE_QUERIES: Message = Message {
    code: "OSDN1508",
    severity: Severity::Warn,
    title: "there is a query engine without a database of its own",
    explanation: "Without a database for analytics their data goes into the config database, which is not made for it. \
        tf-operator takes a Cassandra named analyticsdb1, by that very name, our operator one whose name begins with \
        analyticsdb.",
    hint: "add a Cassandra named analyticsdb1 to cassandras, or remove queryengine",
};

pub(crate) const IDLE_DATABASE: Message = Message {
    code: "OSDN1509",
    severity: Severity::Warn,
    title: "the analytics database stays empty",
    explanation: "Without a query engine the collector writes nothing into the database of analytics.",
    hint: "add queryengine, or remove the second Cassandra",
};

pub(crate) const SECOND_REDIS: Message = Message {
    code: "OSDN1518",
    severity: Severity::Warn,
    title: "there is more than one Redis",
    explanation: "The services use one only, on their own node: tf-operator gives them the one named \
        redis1, our operator the first by name.",
    hint: "leave one item in redis, named redis1",
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

/// `confirmed` is what the annotation says of services that are taken out.
pub(crate) fn judge(
    components: &[ComponentView<'_, Spec>],
    namespace: &str,
    confirmed: &str,
    verdict: &mut Verdict,
) -> Outcome {
    let has = |kind: &str| components.iter().any(|component| component.kind == kind);
    let services = Pointer::from("/spec/services");
    let mut taken_out = Vec::new();
    for component in needed().filter(|component| !has(component.kind)) {
        if is_taken_out(component.kind, confirmed) {
            taken_out.push(component.key);
        } else if !is_elsewhere(component.kind, namespace)? {
            // Of each by itself: of a kind that may be elsewhere nothing may be known, which the field shows.
            let text = "it is missing, and the cluster cannot start without it";
            verdict.add(MISSING.at(services.key(component.key)).says(text));
        }
    }
    if !taken_out.is_empty() {
        let text = format!("no {}: what needs it waits until it is back", taken_out.join(", no "));
        verdict.add(MISSING.at(&services).severity(Severity::Warn).says(text));
    }
    let users: Vec<_> = users_of_redis().filter(|kind| has(kind)).collect();
    if !users.is_empty() && !has("Redis") && !is_elsewhere("Redis", namespace)? {
        let text = format!("no redis: {} cannot start without it", users.join(" and "));
        verdict.add(MISSING.at(services.key("redis")).says(text));
    }
    if !has("Analytics") {
        let text = "no analytics: nothing collects what happens in the network; with tf-operator \
            config, control, kubemanager and webui are not configured without it";
        verdict.add(MISSING.at(&services).severity(Severity::Warn).says(text));
    }
    if has("Kubemanager") && !has("Vrouter") {
        verdict.add(NO_DATA_PLANE.at(services.key("kubemanager")));
    }
    judge_pairs(components, &has, &services, verdict);
    Ok(())
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
    let has_its_own = components
        .iter()
        .any(|component| component.kind == "Cassandra" && component.name == "analyticsdb1");
    match (has("QueryEngine"), database) {
        (true, None) => verdict.add(IDLE_QUERIES.at(services.key("queryengine"))),
        (true, Some(database)) if !has_its_own => {
            let title = database.title();
            let text =
                format!("our operator takes {title} for analytics, tf-operator analyticsdb1 alone");
            let hint = "name it analyticsdb1, which both take";
            verdict.add(IDLE_QUERIES.at(services.key("queryengine")).says(text).hint(hint));
        }
        (false, Some(database)) => {
            let text = format!("{}: there is no query engine to use it", database.title());
            verdict.add(IDLE_DATABASE.at(&database.at).says(text));
        }
        _ => {}
    }
    judge_redis(components, verdict);
}

/// Of several, which one is used by which operator. Ours: `operator/src/peers.rs`.
fn judge_redis(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    let all: Vec<_> = components.iter().filter(|component| component.kind == "Redis").collect();
    let Some(ours) = all.iter().min_by_key(|redis| redis.name) else { return };
    let used = all.iter().find(|redis| redis.name == "redis1").unwrap_or(ours);
    for redis in all.iter().filter(|redis| redis.at != used.at) {
        let (title, other) = (redis.title(), used.title());
        let text = if redis.at == ours.at {
            format!(
                "{title}: our operator has it used, being the first by name, and tf-operator {other}"
            )
        } else {
            format!("{title}: nothing uses it beside {}", ours.title())
        };
        let hint = format!("remove it and leave {other}");
        verdict.add(SECOND_REDIS.at(&redis.at).says(text).hint(hint));
    }
}
