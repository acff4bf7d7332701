//! Declarative cases of a policy: a request in a YAML file, and what the policy must say to it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    binding::{Binding, Scope},
    contract::{Operation, Severity, Step},
    engine::Limits,
    lookup::Documents,
    patch,
    policy::Policy,
    request::Request,
    scan::{self, ScanError},
    set::{Context, PolicySet},
    verdict::{Mode, Mutation, Verdict},
};

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// Why this case matters.
    #[serde(default)]
    pub description: String,
    /// Settings of the policy.
    #[serde(default = "empty")]
    pub settings: Value,
    /// Who asks for what; by default a user creates, updates or deletes, as the objects tell.
    #[serde(default)]
    pub request: CaseRequest,
    /// The object as it will be.
    #[serde(default)]
    pub object: Option<Value>,
    /// The object as it is stored.
    #[serde(default)]
    pub old_object: Option<Value>,
    /// Other objects, which answer look-ups.
    #[serde(default)]
    pub cluster: Vec<Value>,
    /// What the policy must say.
    pub expect: Expected,
}

/// Who asks for what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CaseRequest {
    /// Operation.
    pub operation: Option<Operation>,
    /// Name, by default the object's.
    pub name: Option<String>,
    /// Namespace, by default the object's.
    pub namespace: Option<String>,
    /// Subresource.
    pub subresource: String,
    /// Name of the user.
    pub user: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// What the policy must say: all of it, in this order.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Expected {
    /// Findings.
    pub findings: Vec<ExpectedFinding>,
    /// Claims, sorted by scope and key.
    pub claims: Vec<ExpectedClaim>,
    /// The patch of the mutating step.
    pub patch: Option<Value>,
    /// The object after the mutating step.
    pub object: Option<Value>,
    /// A part of the reason why the policy cannot tell.
    pub failure: Option<String>,
}

/// A finding; message and hint are parts of the texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectedFinding {
    /// Code.
    pub code: String,
    /// Severity.
    pub severity: Severity,
    /// JSON Pointer.
    pub pointer: String,
    /// Part of the message.
    #[serde(default)]
    pub message: String,
    /// Part of the hint.
    #[serde(default)]
    pub hint: String,
}

/// A claim.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectedClaim {
    /// Scope.
    pub scope: String,
    /// Key.
    pub key: String,
    /// JSON Pointer.
    pub pointer: String,
}

/// What became of a case.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is not as expected; empty when the case passes.
    pub problems: Vec<String>,
    /// What the policy said.
    pub verdict: Verdict,
    /// What the policy patched.
    pub mutation: Mutation,
    /// Whether the policy saw the request at all.
    pub reached: bool,
}

fn empty() -> Value {
    json!({})
}

/// Runs the case against the policy, the mutating step twice.
///
/// # Errors
/// The objects of the case cannot be scanned.
pub async fn run(policy: &Policy, case: &Case) -> Result<Report, ScanError> {
    let set = PolicySet::new(vec![bind(policy, case)], Vec::new());
    let lookup = Arc::new(Documents::new(case.cluster.clone()));
    let limits = Limits::default();
    let context = Context { lookup, deadline: Instant::now() + 20 * limits.time };
    let mut report =
        Report { problems: policy.check_settings(&case.settings), ..Report::default() };

    let mutation = step(&set, case, case.object.as_ref(), &context, Step::Mutate).await?;
    let mutated = mutated(case, &mutation, &mut report);
    let again = step(&set, case, mutated.as_ref(), &context, Step::Mutate).await?;
    if !again.mutation.patch.0.is_empty() {
        report
            .problems
            .push(format!("run again on its result it patches: {}", json!(again.mutation.patch)));
    }
    let validation = step(&set, case, mutated.as_ref(), &context, Step::Validate).await?;
    report.reached = mutation.reached || validation.reached;
    report.mutation = mutation.mutation;
    report.verdict = validation.verdict;
    compare(case, &mut report, mutated.as_ref());
    Ok(report)
}

fn bind(policy: &Policy, case: &Case) -> Binding {
    Binding {
        name: policy.metadata().name.clone(),
        policy: policy.clone(),
        settings: case.settings.to_string(),
        mode: Mode::Enforce,
        failure_mode: None,
        scope: Scope::default(),
        // A case tests what the policy says; how fast it says so is measured elsewhere.
        limits: Limits { time: 20 * Limits::default().time, ..Limits::default() },
    }
}

async fn step(
    set: &PolicySet,
    case: &Case,
    object: Option<&Value>,
    context: &Context,
    step: Step,
) -> Result<Report, ScanError> {
    let mut paths = scan::Paths::new();
    let new = paths.mount("/object", set.paths());
    let old = paths.mount("/oldObject", set.paths());
    let text = json!({"object": object, "oldObject": case.old_object}).to_string();
    let found = scan::scan(text.as_bytes(), &paths)?;
    let subject = object.or(case.old_object.as_ref()).cloned().unwrap_or_default();
    let subject = Subject::of(&subject, case);
    let request = Request {
        operation: subject.operation,
        group: &subject.group,
        version: &subject.version,
        kind: &subject.kind,
        subresource: &case.request.subresource,
        name: &subject.name,
        namespace: &subject.namespace,
        namespace_labels: None,
        user: &case.request.user,
        groups: &case.request.groups,
        dry_run: case.request.dry_run,
        object: found.document(&new),
        old_object: found.document(&old),
    };
    let mut report = Report { reached: set.concerns(step, &request), ..Report::default() };
    match step {
        Step::Mutate => report.mutation = set.mutate(&request, context).await,
        Step::Validate => report.verdict = set.evaluate(&request, context).await,
    }
    Ok(report)
}

/// What the request is about, as its object tells.
struct Subject {
    operation: Operation,
    group: String,
    version: String,
    kind: String,
    name: String,
    namespace: String,
}

impl Subject {
    fn of(object: &Value, case: &Case) -> Self {
        let text = |pointer| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let api_version = text("/apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let operation = match (&case.object, &case.old_object) {
            (Some(_), Some(_)) => Operation::Update,
            (None, Some(_)) => Operation::Delete,
            (_, None) => Operation::Create,
        };
        let CaseRequest { name, namespace, .. } = &case.request;
        Self {
            operation: case.request.operation.unwrap_or(operation),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text("/kind"),
            name: name.clone().unwrap_or_else(|| text("/metadata/name")),
            namespace: namespace.clone().unwrap_or_else(|| text("/metadata/namespace")),
        }
    }
}

fn mutated(case: &Case, step: &Report, report: &mut Report) -> Option<Value> {
    let mut object = case.object.clone()?;
    if let Err(error) = patch::apply(&mut object, &step.mutation.patch) {
        report.problems.push(format!("its patch does not fit the object: {error}"));
    }
    Some(object)
}

fn compare(case: &Case, report: &mut Report, mutated: Option<&Value>) {
    let Expected { findings, claims, patch, object, failure } = &case.expect;
    let mut problems = Vec::new();
    if !report.reached {
        problems.push("the case never reaches the policy: it has no interest in it".to_owned());
    }
    let said: Vec<_> = report.verdict.findings.iter().collect();
    let fits = said.len() == findings.len()
        && said.iter().zip(findings).all(|(said, expected)| {
            said.code == expected.code
                && said.severity == expected.severity
                && said.pointer == expected.pointer
                && said.message.contains(&expected.message)
                && said.hint.contains(&expected.hint)
        });
    if !fits {
        problems.push(format!("expected the findings {findings:#?}\nfound {}", json!(said)));
    }
    let claimed: Vec<_> = report
        .verdict
        .claims
        .iter()
        .map(|claim| ExpectedClaim {
            scope: claim.scope.clone(),
            key: claim.key.clone(),
            pointer: claim.pointer.clone(),
        })
        .collect();
    if claimed != *claims {
        problems.push(format!("expected the claims {claims:#?}\nfound {claimed:#?}"));
    }
    let failures: Vec<_> =
        report.verdict.failures.iter().chain(&report.mutation.failures).collect();
    let reasons: Vec<_> = failures.iter().map(|failure| failure.reason.to_string()).collect();
    match failure {
        None if !reasons.is_empty() => problems.push(format!("it could not tell: {reasons:?}")),
        Some(part) if !reasons.iter().any(|reason| reason.contains(part)) => {
            problems.push(format!("expected a failure with {part:?}, found {reasons:?}"));
        }
        _ => {}
    }
    let patched = json!(report.mutation.patch);
    if patch.as_ref().is_some_and(|patch| *patch != patched) {
        problems.push(format!("expected another patch than {patched}"));
    }
    if object.as_ref().is_some_and(|object| Some(object) != mutated) {
        problems.push(format!("expected another object than {}", json!(mutated)));
    }
    report.problems.extend(problems);
}
