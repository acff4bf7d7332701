//! From a case to what the policy says to it.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Case, CaseRequest, Conditions, Report};
use crate::{
    binding::{Binding, Ratcheting, Scope},
    contract::{Operation, Step},
    lookup::Lookup,
    patch,
    policy::Policy,
    request::Request,
    scan::{self, ScanError},
    set::{Context, PolicySet},
    verdict::Mode,
};

/// Asks one policy about one case.
pub(super) struct Judge<'c> {
    case: &'c Case,
    conditions: &'c Conditions,
    set: PolicySet,
    lookup: Arc<dyn Lookup>,
    report: Report,
}

impl<'c> Judge<'c> {
    pub(super) fn new(
        policy: &Policy,
        case: &'c Case,
        conditions: &'c Conditions,
        lookup: Arc<dyn Lookup>,
    ) -> Self {
        let binding = Binding {
            name: policy.metadata().name.clone(),
            policy: policy.clone(),
            settings: case.settings.to_string(),
            mode: Mode::Enforce,
            failure_mode: None,
            ratcheting: Ratcheting::Enabled,
            scope: Scope::default(),
            limits: conditions.limits,
        };
        let set = PolicySet::new(vec![binding], Vec::new());
        let report =
            Report { problems: policy.check_settings(&case.settings), ..Report::default() };
        Self { case, conditions, set, lookup, report }
    }

    pub(super) async fn report(mut self) -> Result<Report, ScanError> {
        // What was counted before is not of this case.
        let _ = self.conditions.meter.take();
        let object = self.case.object.clone();
        self.step(object.as_ref(), Step::Mutate).await?;
        let mutation = std::mem::take(&mut self.report.mutation);
        let mutated = self.patched(object, &mutation.patch);
        self.step(mutated.as_ref(), Step::Mutate).await?;
        let again = std::mem::replace(&mut self.report.mutation, mutation).patch;
        if !again.0.is_empty() {
            let text = format!("run again on its result it patches: {}", json!(again));
            self.report.problems.push(text);
        }
        self.step(mutated.as_ref(), Step::Validate).await?;
        self.report.object = mutated;
        Ok(self.report)
    }

    fn patched(&mut self, object: Option<Value>, patch: &json_patch::Patch) -> Option<Value> {
        let mut object = object?;
        if let Err(error) = patch::apply(&mut object, patch) {
            self.report.problems.push(format!("its patch does not fit the object: {error}"));
        }
        Some(object)
    }

    async fn step(&mut self, object: Option<&Value>, step: Step) -> Result<(), ScanError> {
        let case = self.case;
        let mut paths = scan::Paths::new();
        let new = paths.mount("/object", self.set.paths());
        let old = paths.mount("/oldObject", self.set.paths());
        let text = json!({"object": object, "oldObject": case.old_object}).to_string();
        let found = scan::scan(text.as_bytes(), &paths)?;
        let subject = Subject::of(object.or(case.old_object.as_ref()), case);
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
        let first = !self.report.seen.iter().any(|seen| seen.step == step);
        if first {
            self.report.seen.extend(self.set.seen(step, &request));
        }
        self.report.reached |= self.set.concerns(step, &request);
        // What counts is the policy's own limit, not how busy the machine is.
        let deadline = Instant::now() + 100 * self.conditions.limits.time;
        let context = Context { lookup: Arc::clone(&self.lookup), deadline, is_background: false };
        match step {
            Step::Mutate => self.report.mutation = self.set.mutate(&request, &context).await,
            Step::Validate => self.report.verdict = self.set.evaluate(&request, &context).await,
        }
        let costs = self.conditions.meter.take();
        if first {
            self.report.costs.extend(costs.into_iter().map(|cost| (step, cost)));
        }
        Ok(())
    }
}

/// What the request is about, according to its object.
struct Subject {
    operation: Operation,
    group: String,
    version: String,
    kind: String,
    name: String,
    namespace: String,
}

impl Subject {
    fn of(object: Option<&Value>, case: &Case) -> Self {
        let text = |pointer| {
            let value = object.and_then(|object| object.pointer(pointer));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
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
