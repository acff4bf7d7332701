//! What an AdmissionPolicy asks for, checked against what its module says of itself. Pure: the
//! module is compiled already.

use opensdn_crds::admission_policy as crd;
use opensdn_crds::admission_policy::AdmissionPolicySpec;
use opensdn_policy_host::{
    Binding, Exemptions, FailureMode, Index, Interest, KindRule, Limits, MAX_MEMORY, Metadata,
    Mode, Operation, Policy, Ratcheting, Requirement, Scope, Selector, SelectorOperator, quoted,
    quoted_name,
};
use std::time::Duration;

use crate::never_judged::never_judged;
use crate::problem::{Fault, Problem};
use crate::secrets;
use crate::source::Source;

/// The groups whose requests are refused when a policy is inconclusive.
pub const CLOSED_GROUPS: [&str; 2] = [opensdn_crds::TUNGSTEN_GROUP, opensdn_crds::OPENSDN_GROUP];

/// Puts the policy in force under this name.
///
/// # Errors
/// Everything that is in the way.
pub fn bind(
    name: &str,
    spec: &AdmissionPolicySpec,
    source: &Source,
    policy: Policy,
    limits: Limits,
) -> Result<Binding, Vec<Problem>> {
    let metadata = policy.metadata();
    let settings = serde_json::Value::Object(spec.settings.clone().unwrap_or_default());
    let mut problems: Vec<Problem> = policy
        .check_settings(&settings)
        .into_iter()
        .map(|text| settings_problem(metadata, &text))
        .collect();
    let kinds = spec.kinds.as_deref().unwrap_or_default();
    problems.extend(uncovered(metadata, kinds));
    problems.extend(unnamed(metadata, kinds));
    problems.extend(never_judged(metadata, kinds));
    problems.extend(secrets::problems(metadata));
    problems.extend(secrets::judged(metadata, kinds));
    if !source.is_built_in() {
        problems.extend(forbidden_lookups(metadata, spec));
    }
    let mut collect = |result: Result<_, Problem>| result.map_err(|one| problems.push(one)).ok();
    let namespace_selector =
        collect(selector(spec.namespace_selector.as_ref(), "/spec/namespaceSelector")).flatten();
    let object_selector =
        collect(selector(spec.object_selector.as_ref(), "/spec/objectSelector")).flatten();
    let (limits, wrong) = limit(spec.limits.as_ref(), limits);
    problems.extend(wrong);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Binding {
        name: name.to_owned(),
        settings: settings.to_string(),
        mode: mode(spec.mode),
        failure_mode: spec.failure_mode.map(failure_mode),
        ratcheting: ratcheting(spec.ratcheting),
        scope: Scope {
            kinds: kinds.iter().map(kind_rule).collect(),
            namespace_selector,
            object_selector,
            exemptions: exemptions(spec.exemptions.as_ref()),
        },
        limits,
        policy,
    })
}

fn settings_problem(metadata: &Metadata, text: &str) -> Problem {
    // The schema's own text begins with the place inside the settings, if it is not the root.
    let (place, message) = match text.split_once(": ") {
        Some((place, message)) if place.starts_with('/') => (place, message),
        _ => ("", text),
    };
    let known = metadata.settings_schema.get("properties").and_then(|value| value.as_object());
    let hint = match known {
        Some(known) if !known.is_empty() => {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            format!("the settings of {} are {}", metadata.name, names.join(", "))
        }
        _ => format!("{} has no settings", metadata.name),
    };
    Problem::new(Fault::SettingsInvalid, format!("/spec/settings{place}"), message, hint)
}

fn fits(interest: &Interest, group: &str, kind: &str) -> bool {
    let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
    is(&interest.group, group) && is(&interest.kind, kind)
}

/// Kinds and operations that are named, but that the policy is not about.
fn uncovered(metadata: &Metadata, kinds: &[crd::KindRule]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, rule) in kinds.iter().enumerate() {
        let about: Vec<&Interest> = metadata
            .interests
            .iter()
            .filter(|interest| fits(interest, &rule.group, &rule.kind))
            .collect();
        let place = format!("/spec/kinds/{number}");
        let title = title(&rule.group, &rule.kind);
        if about.is_empty() {
            let message = format!("the policy {} is not about {title}", metadata.name);
            problems.push(Problem::new(Fault::KindNotCovered, place, message, subjects(metadata)));
            continue;
        }
        for operation in rule.operations.iter().map(|operation| self::operation(*operation)) {
            // Said by `never_judged`.
            if operation == Operation::Connect {
                continue;
            }
            if !about.iter().any(|interest| interest.operations.contains(&operation)) {
                let message = format!("{} does not judge {operation:?} of {title}", metadata.name);
                let hint = "take the operation out of the list";
                let place = format!("{place}/operations");
                problems.push(Problem::new(Fault::KindNotCovered, place, message, hint));
            }
        }
    }
    problems
}

pub(crate) fn title(group: &str, kind: &str) -> String {
    let (group, kind) = (quoted_name(group), quoted_name(kind));
    if group.is_empty() { kind.into_owned() } else { format!("{kind}.{group}") }
}

fn subjects(metadata: &Metadata) -> String {
    let mut titles: Vec<String> =
        metadata.interests.iter().map(|one| title(&one.group, &one.kind)).collect();
    titles.sort();
    titles.dedup();
    format!("it is about {}", titles.join(", "))
}

/// A policy about any kind at all needs spec.kinds: "all of the cluster's" is never meant,
/// and Pods, Nodes and Leases must not come into reach because a module says so.
fn unnamed(metadata: &Metadata, kinds: &[crd::KindRule]) -> Option<Problem> {
    let any = metadata.interests.iter().any(|interest| {
        interest.group == "*"
            || (interest.kind == "*" && !CLOSED_GROUPS.contains(&interest.group.as_str()))
    });
    (any && kinds.is_empty()).then(|| {
        let message = format!("{} is about any kind, and none is named", metadata.name);
        let hint = "name in spec.kinds the group and kind of the objects to be judged";
        Problem::new(Fault::KindsRequired, "/spec/kinds", message, hint)
    })
}

/// Lookups that the administrator has not allowed. What is to be judged may be looked up too,
/// if the administrator named it or it is OpenSDN's: not because a module says so.
fn forbidden_lookups(metadata: &Metadata, spec: &AdmissionPolicySpec) -> Vec<Problem> {
    // What is never allowed is not proposed either.
    let possible = |index: &&Index| secrets::is_allowed(index);
    let allowed = |index: &&Index| {
        let is = |group: &str, kind: &str| group == index.group && kind == index.kind;
        let lookups = spec.allowed_lookups.as_deref().unwrap_or_default();
        let kinds = spec.kinds.as_deref().unwrap_or_default();
        lookups.iter().any(|one| is(&one.group, &one.kind))
            || kinds.iter().any(|one| is(&one.group, &one.kind))
            || metadata
                .interests
                .iter()
                .any(|one| CLOSED_GROUPS.contains(&one.group.as_str()) && is(&one.group, &one.kind))
    };
    let mut titles: Vec<(String, &Index)> = metadata
        .indexes
        .iter()
        .filter(|index| possible(index) && !allowed(index))
        .map(|index| (title(&index.group, &index.kind), index))
        .collect();
    titles.dedup_by(|one, other| one.0 == other.0);
    titles
        .into_iter()
        .map(|(title, index)| {
            let message = format!("{} wants to look up {title}", metadata.name);
            let hint = format!(
                "if it may, add {{group: {:?}, kind: {}}} to spec.allowedLookups",
                index.group, index.kind
            );
            Problem::new(Fault::LookupNotAllowed, "/spec/allowedLookups", message, hint)
        })
        .collect()
}

pub(crate) fn mode(mode: crd::Mode) -> Mode {
    match mode {
        crd::Mode::Enforce => Mode::Enforce,
        crd::Mode::Warn => Mode::Warn,
        crd::Mode::Audit => Mode::Audit,
    }
}

pub(crate) fn failure_mode(mode: crd::FailureMode) -> FailureMode {
    match mode {
        crd::FailureMode::Fail => FailureMode::Fail,
        crd::FailureMode::Ignore => FailureMode::Ignore,
    }
}

fn ratcheting(setting: Option<bool>) -> Ratcheting {
    match setting {
        None | Some(true) => Ratcheting::Enabled,
        Some(false) => Ratcheting::Disabled,
    }
}

pub(crate) fn operation(operation: crd::Operation) -> Operation {
    match operation {
        crd::Operation::Create => Operation::Create,
        crd::Operation::Update => Operation::Update,
        crd::Operation::Delete => Operation::Delete,
        crd::Operation::Connect => Operation::Connect,
    }
}

pub(crate) fn kind_rule(rule: &crd::KindRule) -> KindRule {
    let crd::KindRule { group, version, kind, operations } = rule;
    KindRule {
        group: group.clone(),
        version: version.clone(),
        kind: kind.clone(),
        operations: operations.iter().copied().map(operation).collect(),
    }
}

pub(crate) fn exemptions(exemptions: Option<&crd::Exemptions>) -> Exemptions {
    let Some(crd::Exemptions { users, groups, namespaces }) = exemptions else {
        return Exemptions::default();
    };
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    Exemptions { users: list(users), groups: list(groups), namespaces: list(namespaces) }
}

pub(crate) fn selector(
    selector: Option<&crd::LabelSelector>,
    place: &str,
) -> Result<Option<Selector>, Problem> {
    let Some(crd::LabelSelector { match_labels, match_expressions }) = selector else {
        return Ok(None);
    };
    let mut selector = Selector {
        match_labels: match_labels.clone().unwrap_or_default(),
        match_expressions: Vec::new(),
    };
    for (number, one) in match_expressions.iter().flatten().enumerate() {
        let wrong = |message: String, hint: &str| {
            let place = format!("{place}/matchExpressions/{number}");
            Err(Problem::new(Fault::SelectorInvalid, place, message, hint))
        };
        let values = one.values.clone().unwrap_or_default();
        let operator = match (one.operator.as_str(), values.is_empty()) {
            ("In", false) => SelectorOperator::In,
            ("NotIn", false) => SelectorOperator::NotIn,
            ("Exists", true) => SelectorOperator::Exists,
            ("DoesNotExist", true) => SelectorOperator::DoesNotExist,
            ("In" | "NotIn", true) => {
                return wrong(format!("{} has no values", one.operator), "give at least one");
            }
            ("Exists" | "DoesNotExist", false) => {
                return wrong(format!("{} has values", one.operator), "remove them, or use In");
            }
            (other, _) => {
                let hint = "use In, NotIn, Exists or DoesNotExist";
                return wrong(format!("there is no operator {:?}", quoted(other)), hint);
            }
        };
        selector.match_expressions.push(Requirement { key: one.key.clone(), operator, values });
    }
    Ok(Some(selector))
}

fn limit(limits: Option<&crd::Limits>, default: Limits) -> (Limits, Vec<Problem>) {
    const MEBIBYTE: u64 = 1 << 20;
    let most = (MAX_MEMORY as u64) / MEBIBYTE;
    let (mut result, mut problems) = (default, Vec::new());
    let mut read = |value: Option<i64>, name: &str, most: u64| {
        let given = value?;
        let fitting = u64::try_from(given).ok().filter(|value| (1..=most).contains(value));
        if fitting.is_none() {
            let (place, hint) = (format!("/spec/limits/{name}"), format!("use 1 to {most}"));
            let message = format!("{given} is not possible");
            problems.push(Problem::new(Fault::LimitOutOfRange, place, message, hint));
        }
        fitting
    };
    let limits = limits.cloned().unwrap_or_default();
    if let Some(time) = read(limits.timeout_milliseconds, "timeoutMilliseconds", 1000) {
        result.time = Duration::from_millis(time);
    }
    if let Some(memory) = read(limits.memory_mebibytes, "memoryMebibytes", most) {
        result.memory = usize::try_from(memory * MEBIBYTE).unwrap_or(result.memory);
    }
    (result, problems)
}

#[cfg(test)]
pub(crate) mod tests {
    use opensdn_policy_host::Step;
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn metadata(group: &str, kind: &str) -> Metadata {
        Metadata {
            name: "some-policy".into(),
            version: "1".into(),
            summary: String::new(),
            interests: vec![Interest {
                step: Step::Validate,
                group: group.into(),
                kind: kind.into(),
                operations: vec![Operation::Create],
                reads: vec![String::new()],
            }],
            indexes: vec![Index {
                name: "i".into(),
                group: String::new(),
                kind: "Secret".into(),
                key: String::new(),
                reads: vec![],
            }],
            messages: vec![],
            settings_schema: json!({"properties": {"profile": {}}}),
            claims: false,
        }
    }

    fn spec(rest: &Value) -> AdmissionPolicySpec {
        let mut spec = json!({"module": {"builtIn": "x"}});
        spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn a_kind_or_operation_that_the_policy_is_not_about_is_named() {
        let spec = spec(&json!({"kinds": [
            {"group": "g", "kind": "Other"},
            {"group": "g", "kind": "Thing", "operations": ["CREATE", "DELETE"]}]}));
        let problems = uncovered(&metadata("g", "Thing"), &spec.kinds.unwrap());
        let texts: Vec<String> = problems.iter().map(Problem::text).collect();
        assert_eq!(
            texts,
            [
                "OSDN4006: /spec/kinds/0: the policy some-policy is not about Other.g; it is about Thing.g",
                "OSDN4006: /spec/kinds/1/operations: some-policy does not judge Delete of Thing.g; take the operation out of the list",
            ]
        );
        assert_eq!(uncovered(&metadata("*", "*"), &[]).len(), 0);
    }

    #[test]
    fn a_policy_about_any_kind_has_to_have_them_named() {
        assert!(unnamed(&metadata("*", "*"), &[]).is_some());
        assert!(unnamed(&metadata("", "*"), &[]).is_some());
        assert!(unnamed(&metadata("tf.tungsten.io", "*"), &[]).is_none());
        assert!(unnamed(&metadata("", "ConfigMap"), &[]).is_none());
    }

    #[test]
    fn a_module_cannot_grant_itself_look_ups() {
        let forbidden =
            |kind: &str, rest: Value| forbidden_lookups(&metadata("", kind), &spec(&rest)).len();
        assert_eq!(forbidden("Secret", json!({})), 1, "being about Secrets is its own word only");
        assert_eq!(forbidden("Pod", json!({"allowedLookups": [{"kind": "Secret"}]})), 0);
        assert_eq!(forbidden("Secret", json!({"kinds": [{"kind": "Secret"}]})), 0);
    }

    #[test]
    fn what_is_never_allowed_is_not_proposed_to_be_allowed() {
        let mut metadata = metadata("", "Pod");
        metadata.indexes[0].reads = vec!["/data".into(), "/metadata/annotations".into()];
        assert_eq!(forbidden_lookups(&metadata, &spec(&json!({}))), []);
        let problems: Vec<Problem> = secrets::problems(&metadata).collect();
        assert_eq!(problems.len(), 1);
        let text = problems[0].text();
        assert!(text.starts_with("OSDN4016: /spec/module: "), "{text}");
        assert!(text.contains("/metadata/annotations") && text.contains("/type"), "{text}");
    }

    #[test]
    fn selectors_that_kubernetes_would_refuse_are_refused() {
        let check = |expression: Value| {
            let selector = serde_json::from_value(json!({"matchExpressions": [expression]}));
            super::selector(Some(&selector.unwrap()), "/s").map(|_| ()).map_err(|one| one.message)
        };
        assert!(check(json!({"key": "a", "operator": "In", "values": ["x"]})).is_ok());
        assert_eq!(check(json!({"key": "a", "operator": "In"})), Err("In has no values".into()));
        assert!(check(json!({"key": "a", "operator": "Exists", "values": ["x"]})).is_err());
        assert!(check(json!({"key": "a", "operator": "Like"})).is_err());
    }

    #[test]
    fn limits_are_taken_within_their_range() {
        let limits =
            serde_json::from_value(json!({"timeoutMilliseconds": 5, "memoryMebibytes": 0}));
        let (result, problems) = limit(Some(&limits.unwrap()), Limits::default());
        assert_eq!(result.time, Duration::from_millis(5));
        assert_eq!(result.memory, Limits::default().memory);
        assert_eq!(problems[0].pointer, "/spec/limits/memoryMebibytes");
    }
}
