//! What is wrong with one object: its schema and rules, then the policies, by the function that the
//! webhook calls. The object is first made what the API server would make of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opensdn_crds::OPENSDN_GROUP;
use opensdn_policy_host::scan::{self, Mount, Paths};
use opensdn_policy_host::{
    Claim, Context, EvalFailure, Finding as Said, Mode, Mutation, Operation, PolicySet, Request,
    Severity as Word, Step as Round, Verdict, apply,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::claims::{Claimant, Identity};
use super::live::Live;
use super::policies::{self, InForce, Modules};
use super::schemas::Schemas;
use super::suppress::Suppressions;
use super::table::{Table, View};
use super::written::{Subject, Written, of_problem};
use crate::exit::Failure;
use crate::report::codes;
use crate::report::{Finding, NotChecked, ObjectId, Place, Severity, Step};
use crate::runtime::Runtime;

/// How long all policies together may take for one object.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the parts of an object that the policies read are in the text of a request.
pub(crate) struct Lens {
    paths: Paths,
    new: Mount,
    old: Mount,
}

impl Lens {
    pub(crate) fn of(set: &PolicySet) -> Self {
        let mut paths = Paths::new();
        let new = paths.mount("/object", set.paths());
        let old = paths.mount("/oldObject", set.paths());
        Self { paths, new, old }
    }
}

/// Judges one object after the other.
pub(crate) struct Judge<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) in_force: &'a InForce,
    pub(crate) lens: Lens,
    pub(crate) schemas: &'a Schemas,
    pub(crate) table: Arc<Table>,
    pub(crate) modules: &'a Modules,
    pub(crate) live: Option<&'a Live>,
    /// The namespace of objects that name none.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) strict: bool,
    pub(crate) blind: Arc<Mutex<BTreeSet<String>>>,
}

/// What the policies say of one object.
struct Answers {
    findings: Vec<Said>,
    claims: Vec<Claim>,
    failures: Vec<EvalFailure>,
}

/// What came of one object.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) object: ObjectId,
    pub(crate) identity: Identity,
    /// Where its name stands.
    pub(crate) place: Place,
    pub(crate) findings: Vec<Finding>,
    pub(crate) claims: Vec<Claimant>,
    pub(crate) not_checked: Vec<NotChecked>,
    /// Whether nobody here knows the kind.
    pub(crate) ignored: bool,
}

impl Judge<'_> {
    /// Everything that is wrong with the object.
    pub(crate) fn judge(&self, written: Written<'_>) -> Result<Judged, Failure> {
        let mut value = written.document.value.clone();
        self.add_namespace(&mut value);
        let subject = Subject::of(&value);
        let mut judged = Judged {
            object: subject.object.clone(),
            identity: subject.identity(),
            place: written.place_of("/metadata/name"),
            ..Judged::default()
        };
        let object = self.schemas.as_stored(&value);
        let old = self.old(&subject)?;
        let answers = self.ask(&subject, &object, old.as_ref());
        // What cannot be sent is told where it is judged.
        let concerned = answers.as_ref().map_or(true, Option::is_some);
        if !subject.is_ours() && !concerned {
            judged.ignored = true;
            if self.strict && !self.table.wants(&subject.group, &subject.object.kind) {
                judged.findings.push(unknown_kind(written, &subject));
            }
            return Ok(judged);
        }
        for problem in self.schemas.check(written.document) {
            judged.findings.push(of_problem(written, &subject.object, problem));
        }
        match answers {
            Ok(Some(answers)) => self.take_answers(written, &subject, answers, &mut judged),
            Ok(None) => {}
            // A document that was read is JSON; it can only be too deep or too long.
            Err(why) => judged
                .not_checked
                .push(NotChecked { what: format!("{} by the policies", subject.object), why }),
        }
        if subject.group == OPENSDN_GROUP && subject.object.kind == "AdmissionPolicy" {
            self.check_policy(written, &subject, &value, &mut judged)?;
        }
        self.suppress(written, &subject, &mut judged);
        Ok(judged)
    }

    fn add_namespace(&self, value: &mut Value) {
        let Some(namespace) = self.namespace else { return };
        let namespaced = self.schemas.is_namespaced(value);
        let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata.filter(|_| namespaced) {
            metadata.entry("namespace").or_insert_with(|| json!(namespace));
        }
    }

    /// The object as the cluster has it.
    fn old(&self, subject: &Subject) -> Result<Option<Value>, Failure> {
        let Some(live) = self.live else { return Ok(None) };
        let ObjectId { kind, namespace, name, .. } = &subject.object;
        self.runtime.block_on(live.read(&subject.group, kind, namespace, name))
    }

    /// Hands over the request that the API server would send to the webhook. `Err` says why the
    /// object cannot be sent.
    fn with_request<T>(
        &self,
        subject: &Subject,
        object: &Value,
        old: Option<&Value>,
        ask: impl FnOnce(&Request<'_>) -> T,
    ) -> Result<T, String> {
        let Lens { paths, new, old: stored } = &self.lens;
        let text = json!({"object": object, "oldObject": old}).to_string();
        let found = scan::scan(text.as_bytes(), paths).map_err(|error| error.to_string())?;
        let ObjectId { kind, namespace, name, .. } = &subject.object;
        Ok(ask(&Request {
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            group: &subject.group,
            version: &subject.version,
            kind,
            subresource: "",
            name,
            namespace,
            namespace_labels: self.table.namespace_labels(namespace),
            user: "",
            groups: &[],
            dry_run: false,
            object: found.document(new),
            old_object: found.document(stored),
        }))
    }

    /// Mutates, then validates the result, as admission does. Nothing where no policy is concerned;
    /// `Err` says why the object cannot be sent.
    fn ask(
        &self,
        subject: &Subject,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Option<Answers>, String> {
        let (group, kind, namespace, name) = subject.identity();
        let view = View::new(&self.table, (group, kind), (namespace, name), &self.blind);
        let context = Context { lookup: Arc::new(view), deadline: Instant::now() + PATIENCE };
        let set = &self.in_force.set;
        let evaluate = |request: &Request<'_>| {
            let Verdict { findings, claims, failures, .. } =
                self.runtime.block_on(set.evaluate(request, &context));
            Answers { findings, claims, failures }
        };
        // Most objects are not changed, so that one scan of their text serves both rounds.
        let first = self.with_request(subject, object, old, |request| {
            let (mutated, validated) =
                (set.concerns(Round::Mutate, request), set.concerns(Round::Validate, request));
            let mutation = match mutated {
                true => self.runtime.block_on(set.mutate(request, &context)),
                false => Mutation::default(),
            };
            let unchanged = mutation.patch.is_empty();
            let answers = unchanged.then(|| evaluate(request));
            (mutated || validated).then_some((mutation, answers))
        })?;
        let Some((mutation, answers)) = first else { return Ok(None) };
        let mut answers = match answers {
            Some(answers) => answers,
            None => {
                let mut object = object.clone();
                // The host has tried the patch of each policy on the object already.
                if apply(&mut object, &mutation.patch).is_ok() {
                    object = self.schemas.as_stored(&object);
                }
                self.with_request(subject, &object, old, evaluate)?
            }
        };
        answers.failures.splice(0..0, mutation.failures);
        Ok(Some(answers))
    }

    fn take_answers(
        &self,
        written: Written<'_>,
        subject: &Subject,
        answers: Answers,
        judged: &mut Judged,
    ) {
        let Answers { findings, claims, failures } = answers;
        judged
            .findings
            .extend(findings.into_iter().map(|said| self.of_policy(written, subject, said)));
        judged.claims = claims
            .into_iter()
            .map(|claim| Claimant {
                object: subject.object.clone(),
                place: written.place_of(&claim.pointer),
                title: self.title(&claim.policy, &claim.code),
                policy: self.in_force.ids.get(&claim.policy).cloned(),
                granted: None,
                claim,
            })
            .collect();
        self.take_failures(written, subject, failures, judged);
    }

    /// A policy that gets what the schema refuses may not understand it; that is no news then.
    fn take_failures(
        &self,
        written: Written<'_>,
        subject: &Subject,
        failures: Vec<EvalFailure>,
        judged: &mut Judged,
    ) {
        let malformed = judged
            .findings
            .iter()
            .any(|one| one.step == Step::Schema && one.severity == Severity::Error);
        for failure in failures {
            if malformed {
                judged.not_checked.push(NotChecked {
                    what: format!("{} by the policy {}", subject.object, failure.policy),
                    why: format!("mend the schema's errors first; it said: {}", failure.reason),
                });
                continue;
            }
            judged.findings.push(Finding {
                code: codes::COULD_NOT_TELL.to_owned(),
                severity: if failure.denies() { Severity::Error } else { Severity::Warning },
                step: Step::Policy,
                title: String::new(),
                message: format!("policy {}: {}", failure.policy, failure.reason),
                hint: "an answer that could not be computed is never a pass".to_owned(),
                object: Some(subject.object.clone()),
                pointer: Some(String::new()),
                place: written.place_of("/metadata/name"),
                related: Vec::new(),
                policy: self.in_force.ids.get(&failure.policy).cloned(),
                suppression: None,
                fix: None,
            });
        }
    }

    fn of_policy(&self, written: Written<'_>, subject: &Subject, said: Said) -> Finding {
        let severity = match (said.mode, said.severity) {
            (Mode::Enforce, Word::Deny) => Severity::Error,
            (Mode::Enforce | Mode::Warn, _) => Severity::Warning,
            (Mode::Audit, _) => Severity::Info,
        };
        Finding {
            severity,
            step: Step::Policy,
            title: self.title(&said.policy, &said.code),
            message: said.message,
            hint: said.hint,
            object: Some(subject.object.clone()),
            place: written.place_of(&said.pointer),
            pointer: Some(said.pointer),
            related: Vec::new(),
            policy: self.in_force.ids.get(&said.policy).cloned(),
            code: said.code,
            suppression: None,
            fix: None,
        }
    }

    fn title(&self, policy: &str, code: &str) -> String {
        let binding = self.in_force.set.bindings().find(|binding| binding.name == policy);
        let message = binding.and_then(|binding| binding.policy.message(code));
        message.map(|message| message.title.clone()).unwrap_or_default()
    }

    fn check_policy(
        &self,
        written: Written<'_>,
        subject: &Subject,
        value: &Value,
        judged: &mut Judged,
    ) -> Result<(), Failure> {
        match policies::check(self.runtime, value, self.modules)? {
            Ok(said) => {
                let findings = said.into_iter().map(|one| self.of_policy(written, subject, one));
                judged.findings.extend(findings);
            }
            Err(why) => judged
                .not_checked
                .push(NotChecked { what: format!("the module of {}", subject.object), why }),
        }
        Ok(())
    }

    fn suppress(&self, written: Written<'_>, subject: &Subject, judged: &mut Judged) {
        let Written { document, source, origin, file_number } = written;
        let mut suppressions = Suppressions::read(document, source, origin, file_number);
        for finding in &mut judged.findings {
            finding.suppression = suppressions.grant(&finding.code, finding.place.line);
        }
        for claimant in &mut judged.claims {
            claimant.granted = suppressions.grant(&claimant.claim.code, claimant.place.line);
        }
        judged.findings.extend(suppressions.findings(&subject.object));
    }
}

fn unknown_kind(written: Written<'_>, subject: &Subject) -> Finding {
    let ObjectId { api_version, kind, .. } = &subject.object;
    Finding {
        code: codes::UNKNOWN_KIND.to_owned(),
        severity: Severity::Error,
        step: Step::Schema,
        title: String::new(),
        message: format!("neither a schema nor a policy knows {kind} of {api_version}"),
        hint: "look at the spelling, or leave --strict out".to_owned(),
        object: Some(subject.object.clone()),
        pointer: Some("/kind".to_owned()),
        place: written.place_of("/kind"),
        related: Vec::new(),
        policy: None,
        suppression: None,
        fix: None,
    }
}
