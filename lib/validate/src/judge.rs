//! What is wrong with one object: its schema and rules, then the policies, by the function that the
//! webhook calls. The object is first made what the API server would make of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opensdn_crds::OPENSDN_GROUP;
use opensdn_crds::component::Component;
use opensdn_policy_host::scan::{self, Mount, Paths};
use opensdn_policy_host::{
    self as host, Claim, Context, EvalFailure, Mode, Mutation, Operation, PolicySet, Request,
    Verdict, apply,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::active_policies::{self, ActivePolicies, Modules};
use crate::claims::{Claimant, Identity};
use crate::cluster::{Cluster, ObjectName};
use crate::error::Error;
use crate::loader::Loader;
use crate::located::{Located, Subject, of_problem};
use crate::nested::NestedFindings;
use crate::report::{Finding, Location, NotChecked, ObjectId, Severity, Step, codes};
use crate::schemas::Schemas;
use crate::suppress::Suppressions;
use crate::table::{Table, View};

/// How long all policies together may take for one object.
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the parts of an object that the policies read are in the text of a request.
pub(crate) struct ReadPaths {
    paths: Paths,
    new: Mount,
    old: Mount,
}

impl ReadPaths {
    pub(crate) fn of(set: &PolicySet) -> Self {
        let mut paths = Paths::new();
        let new = paths.mount("/object", set.paths());
        let old = paths.mount("/oldObject", set.paths());
        Self { paths, new, old }
    }
}

/// Judges one object after the other.
pub(crate) struct Judge<'a> {
    pub(crate) loader: Loader<'a>,
    pub(crate) active: &'a ActivePolicies,
    pub(crate) read_paths: ReadPaths,
    pub(crate) schemas: &'a Schemas,
    pub(crate) table: Arc<Table>,
    pub(crate) modules: &'a Modules,
    pub(crate) nested: &'a NestedFindings,
    pub(crate) cluster: Option<&'a dyn Cluster>,
    /// The namespace of objects that name none.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) strict: bool,
    /// Kinds that policies looked up although no object of theirs is known.
    pub(crate) unanswered: Arc<Mutex<BTreeSet<String>>>,
}

/// What the policies found in one object.
struct Answers {
    findings: Vec<host::Finding>,
    claims: Vec<Claim>,
    failures: Vec<EvalFailure>,
}

/// What came of one object.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) object: ObjectId,
    pub(crate) identity: Identity,
    /// Where its name is.
    pub(crate) place: Location,
    pub(crate) findings: Vec<Finding>,
    pub(crate) claims: Vec<Claimant>,
    pub(crate) not_checked: Vec<NotChecked>,
    /// Whether neither a schema nor a policy knows the kind.
    pub(crate) ignored: bool,
}

impl Judge<'_> {
    /// Everything that is wrong with the object.
    pub(crate) async fn judge(&self, located: Located<'_>) -> Result<Judged, Error> {
        let mut value = located.document.value.clone();
        self.add_namespace(&mut value);
        let subject = Subject::of(&value);
        let mut judged = Judged {
            object: subject.object.clone(),
            identity: subject.identity(),
            place: located.place_of("/metadata/name"),
            ..Judged::default()
        };
        let object = self.schemas.as_stored(&value);
        let old = self.old(&subject).await?;
        let answers = self.evaluate(&subject, &object, old.as_ref()).await;
        // An object that cannot be sent is reported below.
        let concerned = answers.as_ref().map_or(true, Option::is_some);
        let nested = self.nested.at(located, &subject.object);
        if !subject.is_ours() && !concerned && nested.is_none() {
            judged.ignored = true;
            if self.strict && !self.table.wants(&subject.group, &subject.object.kind) {
                judged.findings.push(unknown_kind(located, &subject));
            }
            return Ok(judged);
        }
        for problem in self.schemas.check(located.document) {
            judged.findings.push(of_problem(located, &subject.object, problem));
        }
        judged.findings.extend(nested.into_iter().flatten());
        match answers {
            Ok(Some(answers)) => {
                self.take_answers(located, (&subject, &object), answers, &mut judged);
            }
            Ok(None) => {}
            // A document that was read is JSON; it can only be too deep or too long.
            Err(why) => judged
                .not_checked
                .push(NotChecked { what: format!("{} by the policies", subject.object), why }),
        }
        if subject.group == OPENSDN_GROUP && subject.object.kind == "AdmissionPolicy" {
            self.check_policy(located, &subject, &value, &mut judged).await;
        }
        self.suppress(located, &subject, &mut judged);
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
    async fn old(&self, subject: &Subject) -> Result<Option<Value>, Error> {
        let Some(cluster) = self.cluster else { return Ok(None) };
        let ObjectId { kind, namespace, name, .. } = &subject.object;
        cluster.get(ObjectName { group: &subject.group, kind, namespace, name }).await
    }

    /// Hands over the request that the API server would send to the webhook. `Err` says why the
    /// object cannot be sent.
    async fn with_request<T>(
        &self,
        subject: &Subject,
        object: &Value,
        old: Option<&Value>,
        send: impl AsyncFnOnce(&Request<'_>) -> T,
    ) -> Result<T, String> {
        let ReadPaths { paths, new, old: stored } = &self.read_paths;
        let text = json!({"object": object, "oldObject": old}).to_string();
        let found = scan::scan(text.as_bytes(), paths).map_err(|error| error.to_string())?;
        let ObjectId { kind, namespace, name, .. } = &subject.object;
        let request = Request {
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
        };
        Ok(send(&request).await)
    }

    /// Mutates, then validates the result, as admission does. Nothing where no policy is concerned;
    /// `Err` says why the object cannot be sent.
    async fn evaluate(
        &self,
        subject: &Subject,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Option<Answers>, String> {
        let (group, kind, namespace, name) = subject.identity();
        let view = View::new(&self.table, (group, kind), (namespace, name), &self.unanswered);
        let context = Context {
            lookup: Arc::new(view),
            deadline: Instant::now() + EVALUATION_TIMEOUT,
            is_background: false,
        };
        let set = &self.active.set;
        let evaluate = async |request: &Request<'_>| {
            let mut verdict = set.evaluate(request, &context).await;
            set.ratchet(&mut verdict, request, &context).await;
            let Verdict { findings, claims, failures, .. } = verdict;
            Answers { findings, claims, failures }
        };
        // Most objects are not changed, so that one scan of their text serves both steps.
        let first = self.with_request(subject, object, old, async |request: &Request<'_>| {
            let (mutated, validated) = (
                set.concerns(host::Step::Mutate, request),
                set.concerns(host::Step::Validate, request),
            );
            let mutation = match mutated {
                true => set.mutate(request, &context).await,
                false => Mutation::default(),
            };
            let unchanged = mutation.patch.is_empty();
            let answers = match unchanged {
                true => Some(evaluate(request).await),
                false => None,
            };
            (mutated || validated).then_some((mutation, answers))
        });
        let first = first.await?;
        let Some((mutation, answers)) = first else { return Ok(None) };
        let mut answers = match answers {
            Some(answers) => answers,
            None => {
                let mut object = object.clone();
                // The host has tried the patch of each policy on the object already.
                if apply(&mut object, &mutation.patch).is_ok() {
                    object = self.schemas.as_stored(&object);
                }
                self.with_request(subject, &object, old, evaluate).await?
            }
        };
        answers.failures.splice(0..0, mutation.failures);
        Ok(Some(answers))
    }

    fn take_answers(
        &self,
        located: Located<'_>,
        (subject, object): (&Subject, &Value),
        answers: Answers,
        judged: &mut Judged,
    ) {
        let Answers { findings, claims, failures } = answers;
        // Where nothing is known of a kind, that an object of it is not there is no finding: what was not
        // looked up is reported once.
        let findings =
            findings.into_iter().filter(|found| !self.is_unknown(subject, object, found));
        judged.findings.extend(findings.map(|found| {
            let is_of_files = !self.table.is_live() && self.absent_kind(&found).is_some();
            let finding = self.of_policy(located, subject, found);
            if is_of_files { only_in_the_documents(finding) } else { finding }
        }));
        judged.claims = claims
            .into_iter()
            .map(|claim| Claimant {
                object: subject.object.clone(),
                place: located.place_of(&claim.pointer),
                title: self.title(&claim.policy, &claim.code),
                policy: self.active.ids.get(&claim.policy).cloned(),
                granted: None,
                claim,
            })
            .collect();
        self.take_failures(located, subject, failures, judged);
    }

    /// A policy that gets what the schema refuses may fail on it; that is no finding of its own.
    fn take_failures(
        &self,
        located: Located<'_>,
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
                    why: format!(
                        "fix the schema's errors first; the policy failed with: {}",
                        failure.reason
                    ),
                });
                continue;
            }
            judged.findings.push(Finding {
                code: codes::INCONCLUSIVE.to_owned(),
                severity: if failure.denies() { Severity::Error } else { Severity::Warning },
                step: Step::Policy,
                title: String::new(),
                message: format!("policy {}: {}", failure.policy, failure.reason),
                hint: "an answer that could not be computed is never a pass".to_owned(),
                object: Some(subject.object.clone()),
                pointer: Some(String::new()),
                place: located.place_of("/metadata/name"),
                related: Vec::new(),
                policy: self.active.ids.get(&failure.policy).cloned(),
                suppression: None,
                fix: None,
            });
        }
    }

    fn of_policy(&self, located: Located<'_>, subject: &Subject, found: host::Finding) -> Finding {
        let severity = match (found.mode, found.severity) {
            (Mode::Enforce, host::Severity::Deny) => Severity::Error,
            (Mode::Enforce | Mode::Warn, _) => Severity::Warning,
            (Mode::Audit, _) => Severity::Info,
        };
        Finding {
            severity,
            step: Step::Policy,
            title: self.title(&found.policy, &found.code),
            message: found.message,
            hint: found.hint,
            object: Some(subject.object.clone()),
            place: located.place_of(&found.pointer),
            pointer: Some(found.pointer),
            related: Vec::new(),
            policy: self.active.ids.get(&found.policy).cloned(),
            code: found.code,
            suppression: None,
            fix: None,
        }
    }

    /// Whether the finding says that there is no object of a kind of which none is known.
    fn is_unknown(&self, subject: &Subject, object: &Value, found: &host::Finding) -> bool {
        let kind = self.absent_kind(found);
        let Some(kind) = kind.filter(|kind| !self.table.knows_kind(kind)) else { return false };
        let Some(component) = Component::of_kind(kind) else { return true };
        // Who names none asks for none. A Manager that lists components of the kind names one of these as a rule; the
        // others are objects of their own.
        let named = object.pointer(&found.pointer).and_then(Value::as_str);
        let listed = object.pointer(&format!("/spec/services/{}", component.key));
        let lists = subject.object.kind == "Manager"
            && listed.and_then(Value::as_array).is_some_and(|items| !items.is_empty());
        !lists && named.is_some_and(|name| !name.is_empty())
    }

    /// The kind of which the finding says that an object is not there. Where a code is about several kinds, it is about
    /// the one whose key in a Manager the field is, and of another field says nothing of the kind.
    fn absent_kind(&self, found: &host::Finding) -> Option<&str> {
        let mut bindings = self.active.set.bindings();
        let binding = bindings.find(|binding| binding.name == found.policy)?;
        let kinds: Vec<_> = host::absent_kinds(binding.policy.metadata(), &found.code).collect();
        if let [kind] = kinds.as_slice() {
            return Some(*kind);
        }
        let key = found.pointer.rsplit('/').next();
        let has_key = |kind: &&str| Component::of_kind(kind).map(|known| known.key) == key;
        kinds.into_iter().find(has_key)
    }

    fn title(&self, policy: &str, code: &str) -> String {
        let binding = self.active.set.bindings().find(|binding| binding.name == policy);
        let message = binding.and_then(|binding| binding.policy.message(code));
        message.map(|message| message.title.clone()).unwrap_or_default()
    }

    async fn check_policy(
        &self,
        located: Located<'_>,
        subject: &Subject,
        value: &Value,
        judged: &mut Judged,
    ) {
        match active_policies::check(self.loader, value, self.modules).await {
            Ok(found) => {
                let findings = found.into_iter().map(|one| self.of_policy(located, subject, one));
                judged.findings.extend(findings);
            }
            Err(why) => judged
                .not_checked
                .push(NotChecked { what: format!("the module of {}", subject.object), why }),
        }
    }

    fn suppress(&self, located: Located<'_>, subject: &Subject, judged: &mut Judged) {
        let Located { document, source, origin, file_number, .. } = located;
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

/// What is not among the documents may be in the cluster: that it is missing is no error, and who reads it has to know.
fn only_in_the_documents(finding: Finding) -> Finding {
    Finding {
        severity: finding.severity.min(Severity::Warning),
        message: format!("{}; only the documents were looked at", finding.message),
        hint: format!("{}; --live asks the cluster too", finding.hint),
        ..finding
    }
}

fn unknown_kind(located: Located<'_>, subject: &Subject) -> Finding {
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
        place: located.place_of("/kind"),
        related: Vec::new(),
        policy: None,
        suppression: None,
        fix: None,
    }
}
