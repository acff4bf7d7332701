//! One AdmissionPolicy on its way: what is asked for, what is being loaded, what waits for its
//! lookups, what is in force, and what went wrong last.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use opensdn_admission_policy::{Problem, Source};
use opensdn_crds::admission_policy::{AdmissionPolicy, AdmissionPolicySpec, ReplicaStatus};
use opensdn_policy_host::{Binding, Digest, Limits};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::loader::Loader;
use super::module_store::{ModuleBytes, ModuleStore};
use super::reporter::Reported;
use super::status::{LOADING, SERVING, WAITING};
use crate::metrics::Loaded;

/// How long a policy of which no version is in force waits for its lookups. It is then put in
/// force without them: where it looks something up, it is inconclusive, and the failure mode decides.
const WAIT: Duration = Duration::from_secs(3);

/// One AdmissionPolicy.
pub(super) struct Entry {
    object: AdmissionPolicy,
    /// The source of the specification, or what is wrong with it.
    source: Result<(Source, Option<Digest>), Vec<Problem>>,
    state: State,
    /// The content that `state` is about.
    content: Option<ModuleBytes>,
    attempt: u64,
    serving: Option<Binding>,
}

/// What became of the newest specification.
enum State {
    /// Nothing has been started.
    Fresh,
    /// The module is being read or compiled.
    Loading,
    /// It is loaded and waits for its lookups.
    Waiting { candidate: Box<Binding>, since: Instant, why: String },
    /// It is in force; where that was done without its lookups, why.
    Serving { without: Option<String> },
    /// It is not to be used.
    Failed(Vec<Problem>),
}

/// What came of loading.
pub(super) struct Loading {
    pub(super) name: String,
    attempt: u64,
    result: Result<Binding, Vec<Problem>>,
}

impl Entry {
    pub(super) fn new(object: AdmissionPolicy) -> Self {
        let source = opensdn_admission_policy::parse(&object.spec.module);
        Self { object, source, state: State::Fresh, content: None, attempt: 0, serving: None }
    }

    /// The object as it is now. A change of the status alone starts nothing.
    pub(super) fn update(&mut self, object: AdmissionPolicy) {
        let is_new = self.object.spec != object.spec;
        // A new object of the same name: it owes nothing to the old one but continuity.
        self.object = object;
        if is_new {
            self.source = opensdn_admission_policy::parse(&self.object.spec.module);
            self.state = State::Fresh;
            self.content = None;
        }
    }

    pub(super) fn source(&self) -> Option<&Source> {
        self.source.as_ref().ok().map(|(source, _)| source)
    }

    /// Starts what can be started: loading, when there is a content other than the last.
    pub(super) fn advance(
        &mut self,
        name: &str,
        contents: &ModuleStore,
        loader: &Arc<Loader>,
        limits: Limits,
        results: &mpsc::UnboundedSender<Loading>,
    ) {
        let (source, pinned) = match &self.source {
            Ok(source) => source.clone(),
            Err(problems) => {
                if matches!(self.state, State::Fresh) {
                    self.state = State::Failed(problems.clone());
                }
                return;
            }
        };
        let Some(content) = contents.get(&source) else { return };
        if self.content.as_ref() == Some(&content) {
            return;
        }
        self.content = Some(content.clone());
        self.attempt += 1;
        match content {
            Err(problem) => self.state = State::Failed(vec![problem]),
            Ok(bytes) => {
                self.state = State::Loading;
                let (name, attempt) = (name.to_owned(), self.attempt);
                let spec = self.object.spec.clone();
                let (loader, results) = (Arc::clone(loader), results.clone());
                tokio::spawn(async move {
                    let result = load(&name, &spec, &source, pinned, bytes, &loader, limits).await;
                    // The receiver is gone when the process ends.
                    let _ = results.send(Loading { name, attempt, result });
                });
            }
        }
    }

    /// Takes the result of loading, unless it has been overtaken.
    pub(super) fn finish(&mut self, loading: Loading) {
        if loading.attempt != self.attempt || !matches!(self.state, State::Loading) {
            return;
        }
        self.state = match loading.result {
            Ok(binding) => State::Waiting {
                candidate: Box::new(binding),
                since: Instant::now(),
                why: "its lookups are not answered yet".to_owned(),
            },
            Err(problems) => {
                for problem in &problems {
                    let text = problem.text();
                    tracing::warn!(
                        policy = loading.name,
                        problem = text,
                        "failed to load the policy"
                    );
                }
                State::Failed(problems)
            }
        };
    }

    /// Puts what waits in force, when its lookups are answered or it has waited long enough.
    pub(super) fn promote(&mut self, lookups: impl Fn(&Binding) -> Result<(), String>) {
        match &mut self.state {
            State::Waiting { candidate, since, why } => {
                let without = lookups(candidate).err();
                if let Some(reason) = &without {
                    why.clone_from(reason);
                    let enough = self.serving.is_none() && since.elapsed() >= WAIT;
                    if !enough {
                        return;
                    }
                }
                let state = std::mem::replace(&mut self.state, State::Serving { without });
                if let State::Waiting { candidate, .. } = state {
                    self.serving = Some(*candidate);
                }
            }
            State::Serving { without } => {
                let now = self.serving.as_ref().and_then(|binding| lookups(binding).err());
                *without = now;
            }
            State::Fresh | State::Loading | State::Failed(_) => {}
        }
    }

    /// What is in force.
    pub(super) fn serving(&self) -> Option<&Binding> {
        self.serving.as_ref()
    }

    /// What is in force, and what waits to be.
    pub(super) fn bindings(&self) -> impl Iterator<Item = &Binding> {
        let candidate = match &self.state {
            State::Waiting { candidate, .. } => Some(&**candidate),
            _ => None,
        };
        self.serving().into_iter().chain(candidate)
    }

    /// Whether nothing is in progress any more.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, State::Serving { .. } | State::Failed(_))
    }

    pub(super) fn metric(&self) -> Loaded {
        match self.state {
            State::Serving { .. } => Loaded::Current,
            _ => Loaded::Broken,
        }
    }

    /// What this replica has to say.
    pub(super) fn report(&self, replica: &str) -> Reported {
        let (ready, reason, message) = match &self.state {
            State::Fresh | State::Loading => {
                (false, LOADING.to_owned(), "the module is read and compiled".to_owned())
            }
            State::Waiting { why, .. } => (false, WAITING.to_owned(), why.clone()),
            State::Serving { without: None } => (true, SERVING.to_owned(), "it runs".to_owned()),
            State::Serving { without: Some(why) } => (
                false,
                WAITING.to_owned(),
                format!("it runs, but is inconclusive where it looks something up: {why}"),
            ),
            State::Failed(problems) => self.failed(problems),
        };
        let policy = self.serving().map(|binding| &binding.policy);
        let digest = policy.map(|policy| policy.digest().to_string());
        let version = policy.map(|policy| policy.metadata().version.clone());
        Reported {
            object: self.object.clone(),
            version: digest.clone().zip(version),
            replica: ReplicaStatus {
                name: replica.to_owned(),
                ready,
                digest,
                observed_generation: self.object.metadata.generation,
                reason: Some(reason),
                message: Some(message),
                updated_at: None,
            },
        }
    }

    fn failed(&self, problems: &[Problem]) -> (bool, String, String) {
        let reason = problems.first().map(|problem| problem.fault.reason()).unwrap_or_default();
        let texts: Vec<String> = problems.iter().map(Problem::text).collect();
        let rest = if self.serving.is_some() {
            "the previous version stays in force"
        } else {
            "nothing of this policy is in force"
        };
        (false, reason, format!("{} ({rest})", texts.join("\n")))
    }
}

async fn load(
    name: &str,
    spec: &AdmissionPolicySpec,
    source: &Source,
    pinned: Option<Digest>,
    bytes: Arc<[u8]>,
    loader: &Loader,
    limits: Limits,
) -> Result<Binding, Vec<Problem>> {
    let policy = loader.load(bytes, pinned).await.map_err(|error| vec![error.into_problem()])?;
    opensdn_admission_policy::bind(name, spec, source, policy, limits)
}

/// Whether both put the same in force.
pub(super) fn same(one: &Binding, other: &Binding) -> bool {
    let Binding { name, policy, settings, mode, failure_mode, ratcheting, scope, limits } = one;
    *name == other.name
        && policy.digest() == other.policy.digest()
        && *settings == other.settings
        && *mode == other.mode
        && *failure_mode == other.failure_mode
        && *ratcheting == other.ratcheting
        && *scope == other.scope
        && *limits == other.limits
}

/// Whether both snapshots say the same of the same objects.
pub(super) fn same_report(
    one: &BTreeMap<String, Reported>,
    other: &BTreeMap<String, Reported>,
) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|((name, one), (other_name, other))| {
            name == other_name
                && one.replica == other.replica
                && one.object.metadata.resource_version == other.object.metadata.resource_version
        })
}
