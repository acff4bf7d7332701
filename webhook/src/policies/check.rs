//! Whether an AdmissionPolicy makes sense, asked when one is applied. The same checks as on
//! loading, by the same functions; codes and severities are in `sdk/admission-policy`.
//!
//! Who knows the path of reviews can ask without any right in the cluster. So whether a module is
//! absent, may not be read or is another one is in the condition `Ready` alone, and nothing is
//! compiled whose digest is not given.

use std::sync::Arc;
use std::time::Duration;

use opensdn_admission_policy::{Fault, Problem, Source, bind, parse};
use opensdn_crds::admission_policy::{AdmissionPolicy, AdmissionPolicySpec};
use opensdn_policy_host::{Finding, Limits, quoted, quoted_name};
use opensdn_runtime::discovery::{Discovery, Resolution};
use opensdn_runtime::levels;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::loader::Loader;
use super::module_store::ModuleStore;

/// How long reading and compiling a module may hold up the request. What takes longer continues in
/// the background, is looked at when the policy is loaded, and is fast the next time.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(2);

/// Modules that are checked at once. Each holds its bytes until it is compiled, also when no request
/// waits for the answer any more.
const MAX_CHECKS: usize = 4;

/// Checks AdmissionPolicies; cheap to clone.
#[derive(Clone)]
pub(crate) struct Checker {
    loader: Arc<Loader>,
    contents: ModuleStore,
    kinds: Discovery,
    limits: Limits,
    slots: Arc<Semaphore>,
}

/// What is wrong with an AdmissionPolicy of which a watch would not show all.
fn why_it_would_be_cut(object: &str) -> Option<Problem> {
    let error = levels::check_text(object).err()?;
    Some(Problem::new(Fault::Unreadable, "", error.to_string(), "make its settings flatter"))
}

impl Checker {
    pub(super) fn new(
        loader: Arc<Loader>,
        contents: ModuleStore,
        kinds: Discovery,
        limits: Limits,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(MAX_CHECKS));
        Self { loader, contents, kinds, limits, slots }
    }

    /// Everything that is wrong with the AdmissionPolicy, given as JSON text.
    pub(crate) async fn check(&self, object: &str) -> Vec<Finding> {
        let problems = match serde_json::from_str::<AdmissionPolicy>(object) {
            Ok(read) => match why_it_would_be_cut(object) {
                None => self.problems(&read).await,
                Some(problem) => vec![problem],
            },
            Err(error) => vec![Problem::new(
                Fault::Unreadable,
                "",
                format!("not an AdmissionPolicy: {}", quoted(&error.to_string())),
                "see `kubectl explain admissionpolicy.spec`",
            )],
        };
        problems.into_iter().map(Problem::finding).collect()
    }

    async fn problems(&self, object: &AdmissionPolicy) -> Vec<Problem> {
        let mut problems = self.absent_kinds(&object.spec);
        let name = object.metadata.name.as_deref().unwrap_or_default();
        match timeout(COMPILE_TIMEOUT, self.module(name, &object.spec)).await {
            Ok(found) => problems.extend(found),
            Err(_) => problems.push(Problem::new(
                Fault::NotCompiled,
                "/spec/module",
                "the module could not be read and compiled within the request",
                "it is checked when it is loaded: see the condition Ready",
            )),
        }
        problems
    }

    async fn module(&self, name: &str, spec: &AdmissionPolicySpec) -> Vec<Problem> {
        let (source, pinned) = match parse(&spec.module) {
            Ok(source) => source,
            Err(problems) => return problems,
        };
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            return vec![Problem::new(
                Fault::NotCompiled,
                "/spec/module",
                format!("{MAX_CHECKS} other modules are being checked"),
                "it is checked when it is loaded: see the condition Ready",
            )];
        };
        let bytes = match self.contents.read_once(&source).await {
            Ok(bytes) => bytes,
            Err(problem) => return vec![not_found(&source, problem)],
        };
        let loader = Arc::clone(&self.loader);
        // A task of its own, so that a compilation that takes too long is not wasted.
        let loading = tokio::spawn(async move {
            let _slot = slot;
            loader.load(bytes, pinned).await
        });
        match loading.await {
            Ok(Ok(policy)) => {
                bind(name, spec, &source, policy, self.limits).err().unwrap_or_default()
            }
            Ok(Err(error)) => vec![match error.into_problem() {
                problem if problem.fault == Fault::DigestMismatch => not_found(&source, problem),
                problem => problem,
            }],
            Err(_) => Vec::new(),
        }
    }

    fn absent_kinds(&self, spec: &AdmissionPolicySpec) -> Vec<Problem> {
        let table = self.kinds.snapshot();
        let mut problems = Vec::new();
        for (number, rule) in spec.kinds.iter().flatten().enumerate() {
            if table.find(&rule.group, &rule.kind) == Resolution::Absent {
                problems.push(Problem::new(
                    Fault::KindAbsent,
                    format!("/spec/kinds/{number}"),
                    format!(
                        "the cluster has no kind {} in the group {:?}",
                        quoted_name(&rule.kind),
                        quoted_name(&rule.group)
                    ),
                    "if that is no mistake, the policy begins to work when the kind comes",
                ));
            }
        }
        problems
    }
}

/// What is said of a module that is not where it should be, whatever is there instead. Built-in ones
/// are no secret.
fn not_found(source: &Source, problem: Problem) -> Problem {
    let place = match source {
        Source::BuiltIn(_) => return problem,
        Source::ConfigMap { namespace, name, key } => {
            let (namespace, name) = (quoted_name(namespace), quoted_name(name));
            format!("under {:?} in the ConfigMap {namespace}/{name}", quoted_name(key))
        }
        Source::Folder(path) => format!("in {:?} of the policy folder", quoted(path)),
    };
    Problem::new(
        Fault::SourceUnreachable,
        "/spec/module",
        format!("no module with that digest can be read {place}"),
        "put it there, and it is loaded by itself; until then the condition Ready says what is wrong",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admission_policy_of_more_levels_than_a_watch_shows_is_refused() {
        let deep = |levels| {
            let settings = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
            why_it_would_be_cut(&format!(r#"{{"spec":{{"settings":{settings}}}}}"#))
        };
        assert!(deep(levels::MOST_LEVELS - 2).is_none());
        let problem = deep(levels::MOST_LEVELS - 1).unwrap();
        assert!(problem.message.contains("more than 120 levels"), "{problem:?}");
    }

    #[test]
    fn whether_a_module_is_absent_unreadable_or_another_one_is_not_told_to_who_asks() {
        let source = Source::ConfigMap { namespace: "n".into(), name: "c".into(), key: "k".into() };
        let problem = |fault, message: &str| Problem::new(fault, "/spec/module", message, "a hint");
        let said = not_found(&source, problem(Fault::SourceUnreachable, "there is no ConfigMap"));
        assert!(said.message.contains("n/c"), "{said:?}");
        for (fault, message) in [
            (Fault::SourceUnreachable, "it has no key"),
            (Fault::SourceUnreachable, "it is forbidden"),
            (Fault::DigestMismatch, "the digest is another"),
        ] {
            assert_eq!(not_found(&source, problem(fault, message)), said, "{message}");
        }
        let long = || "x".repeat(9_000);
        for source in [
            Source::ConfigMap { namespace: long(), name: long(), key: long() },
            Source::Folder(long()),
        ] {
            let said = not_found(&source, problem(Fault::SourceUnreachable, "it has no key"));
            assert!(said.message.len() < 4 * 300 && said.hint.len() < 300, "{said:?}");
        }
        let built_in = problem(Fault::DigestMismatch, "the digest is another");
        assert_eq!(not_found(&Source::BuiltIn("plaintext"), built_in.clone()), built_in);
    }
}
