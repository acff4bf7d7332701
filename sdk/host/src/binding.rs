//! How a policy is put in force: which requests it sees, and what its findings do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    contract::{Interest, Operation, Step},
    engine::Limits,
    policy::Policy,
    request::Request,
    verdict::{FailureMode, Mode},
};

/// A policy in force.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Name of the AdmissionPolicy, unique in a set.
    pub name: String,
    /// The policy.
    pub policy: Policy,
    /// Its settings as JSON text; `{}` for none.
    pub settings: String,
    /// What its findings do.
    pub mode: Mode,
    /// What becomes of a request that it cannot judge; by default that depends on the kind's group.
    pub failure_mode: Option<FailureMode>,
    /// What becomes of an update for what the stored object has wrong already.
    pub ratcheting: Ratcheting,
    /// Which requests it sees.
    pub scope: Scope,
    /// Limits of one evaluation.
    pub limits: Limits,
}

/// Whether an update is refused for what the stored object has wrong already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ratcheting {
    /// It is not: that is a warning, unless the policy says otherwise of the code.
    #[default]
    Enabled,
    /// It is, as a new object would be.
    Disabled,
}

/// Which requests a policy in force sees.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scope {
    /// Narrows the kinds that the policy asks for; empty: all of them.
    pub kinds: Vec<KindRule>,
    /// Labels that the namespace must have.
    pub namespace_selector: Option<Selector>,
    /// Labels that the object, old or new, must have.
    pub object_selector: Option<Selector>,
    /// Who is not judged.
    pub exemptions: Exemptions,
}

/// A kind of object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindRule {
    /// API group; `""` is the core group.
    pub group: String,
    /// API version; absent: any.
    #[serde(default)]
    pub version: Option<String>,
    /// Kind.
    pub kind: String,
    /// Operations.
    #[serde(default = "writes")]
    pub operations: Vec<Operation>,
}

fn writes() -> Vec<Operation> {
    vec![Operation::Create, Operation::Update]
}

/// Who is not judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Exemptions {
    /// Names of users.
    pub users: Vec<String>,
    /// Names of groups.
    pub groups: Vec<String>,
    /// Names of namespaces.
    pub namespaces: Vec<String>,
}

/// A label selector as Kubernetes has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// Labels with these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<Requirement>,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// How its value relates to `values`.
    pub operator: SelectorOperator,
    /// Values.
    #[serde(default)]
    pub values: Vec<String>,
}

/// How a label relates to the values of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelectorOperator {
    /// One of them.
    In,
    /// None of them; also when the label is absent.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl Selector {
    /// Whether the labels fit.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            SelectorOperator::In => listed,
            SelectorOperator::NotIn => !listed,
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        }
    }
}

impl Scope {
    /// Whether a request is within this scope. `labels` are those of the object and the old
    /// object; they are only asked for where a selector needs them.
    pub(crate) fn covers(
        &self,
        request: &Request<'_>,
        labels: impl Fn() -> Option<Vec<BTreeMap<String, String>>>,
    ) -> bool {
        let kind_fits = self.kinds.is_empty() || self.kinds.iter().any(|kind| kind.fits(request));
        let namespace_fits = match (&self.namespace_selector, request.namespace_labels) {
            (Some(selector), Some(labels)) => selector.matches(labels),
            _ => true,
        };
        kind_fits
            && namespace_fits
            && !self.exemptions.cover(request)
            && self.object_selector.as_ref().is_none_or(|selector| {
                // What is not known is judged.
                labels().is_none_or(|all| all.iter().any(|labels| selector.matches(labels)))
            })
    }
}

impl KindRule {
    fn fits(&self, request: &Request<'_>) -> bool {
        self.kind == request.kind
            && self.group == request.group
            && self.version.as_ref().is_none_or(|version| version == request.version)
            && self.operations.contains(&request.operation)
    }
}

impl Exemptions {
    fn cover(&self, request: &Request<'_>) -> bool {
        self.users.iter().any(|user| user == request.user)
            || self.groups.iter().any(|group| request.groups.contains(group))
            || self.namespaces.iter().any(|namespace| namespace == request.namespace)
    }
}

/// The number of the first interest that fits. A subresource is not the object itself, so its
/// requests are left alone. A connection is always one to a subresource.
pub(crate) fn interest(interests: &[Interest], step: Step, request: &Request<'_>) -> Option<usize> {
    if !request.subresource.is_empty() || request.operation == Operation::Connect {
        return None;
    }
    let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
    interests.iter().position(|interest| {
        interest.step == step
            && is(&interest.kind, request.kind)
            && is(&interest.group, request.group)
            && interest.operations.contains(&request.operation)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Scope, Selector};
    use crate::{
        contract::Operation,
        request::{Request, tests::request},
    };

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels: BTreeMap<_, _> =
            labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        serde_json::from_str::<Selector>(selector).unwrap().matches(&labels)
    }

    #[test]
    fn unknown_labels_of_a_namespace_match_every_selector() {
        let text = r#"{"matchLabels":{"judge":"yes"}}"#;
        let namespace_selector = Some(serde_json::from_str::<Selector>(text).unwrap());
        let scope = Scope { namespace_selector, ..Scope::default() };
        let covers = |labels: Option<&BTreeMap<String, String>>| {
            let request =
                Request { namespace_labels: labels, ..request("g", "Thing", Operation::Create) };
            scope.covers(&request, || Some(Vec::new()))
        };
        assert!(covers(None));
        assert!(!covers(Some(&BTreeMap::new())));
        assert!(covers(Some(&[("judge".to_owned(), "yes".to_owned())].into())));
    }

    #[test]
    fn selectors_match_as_in_kubernetes() {
        let expression = |operator: &str, values: &str| {
            format!(
                r#"{{"matchExpressions":[{{"key":"a","operator":"{operator}","values":{values}}}]}}"#
            )
        };
        assert!(matches("{}", &[]));
        assert!(matches(r#"{"matchLabels":{"a":"1"}}"#, &[("a", "1"), ("b", "2")]));
        assert!(!matches(r#"{"matchLabels":{"a":"1"}}"#, &[("a", "2")]));
        assert!(matches(&expression("In", r#"["1","2"]"#), &[("a", "2")]));
        assert!(!matches(&expression("In", r#"["1"]"#), &[]));
        assert!(matches(&expression("NotIn", r#"["1"]"#), &[]));
        assert!(!matches(&expression("NotIn", r#"["1"]"#), &[("a", "1")]));
        assert!(matches(&expression("Exists", "[]"), &[("a", "")]));
        assert!(matches(&expression("DoesNotExist", "[]"), &[("b", "")]));
    }
}
