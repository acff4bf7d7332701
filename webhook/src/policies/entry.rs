//! One AdmissionPolicy on its way: what is asked for, what is being loaded, what waits for its
//! lookups, what is in force, and what went wrong last.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use opensdn_admission_policy::{Fault, Problem, Source};
use opensdn_crds::admission_policy::{AdmissionPolicy, Mode, ReplicaStatus};
use opensdn_policy_host::{Binding, Digest, InactivePolicy, Interest, Limits, Metadata};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::demand::LostPolicy;
use super::loader::{Loader, Waiting};
use super::module_store::{ModuleBytes, ModuleStore};
use super::reporter::Reported;
use super::status::{LOADING, ModuleFacts, SERVING, WAITING};
use crate::metrics::Loaded as LoadedMetric;

mod loading;

use loading::{Failed, Job, Loaded, Retry};

pub(super) use loading::Loading;

/// How long a policy of which no version is in force waits for its lookups. It is then put in
/// force without them: where it looks something up, it is inconclusive, and the failure mode decides.
const WAIT: Duration = Duration::from_secs(3);
/// How long after a failure that is not the module's the same content is loaded again; each time
/// twice as long.
const RETRY_DELAY: Duration = Duration::from_secs(5);
const LONGEST_RETRY_DELAY: Duration = Duration::from_secs(300);
/// The same where there was no room for it, which may be there the next moment.
const LONGEST_WAIT_FOR_ROOM: Duration = Duration::from_secs(20);

/// One AdmissionPolicy.
pub(super) struct Entry {
    object: AdmissionPolicy,
    /// Why that is not all that is stored.
    wrong: Option<Problem>,
    /// The source of the specification, or what is wrong with it.
    source: Result<(Source, Option<Digest>), Vec<Problem>>,
    state: State,
    /// The content that `state` is about.
    content: Option<ModuleBytes>,
    attempt: u64,
    /// Whether the attempt of that number is under way.
    is_loading: bool,
    /// Whether that waits for other modules.
    waiting: Arc<Waiting>,
    /// When the same content is to be loaded again.
    retry_at: Option<Instant>,
    retry_delay: Duration,
    /// What the module says that it is about, where it has been asked.
    interests: Option<Vec<Interest>>,
    /// Why nothing is in force, from the first failure on. Not undone by what may become of the next
    /// attempt: until that is in force, nothing judges.
    failure: Option<Vec<Problem>>,
    serving: Option<Binding>,
}

/// What became of the newest specification.
enum State {
    /// Nothing has been started.
    Fresh,
    /// The module is being read or compiled.
    Loading,
    /// It is loaded and waits for its lookups. `despite`: what is wrong with its source.
    Waiting { candidate: Box<Binding>, since: Instant, why: String, despite: Vec<Problem> },
    /// It is in force; where that was done without its lookups, why.
    Serving { without: Option<String> },
    /// It is not to be used, or not as it is now: what was loaded before may be in force.
    Failed(Vec<Problem>),
}

impl Entry {
    /// `wrong`: why the object is not all that is stored.
    pub(super) fn new(object: AdmissionPolicy, wrong: Option<Problem>) -> Self {
        let source = source(&object, wrong.as_ref());
        Self {
            object,
            wrong,
            source,
            state: State::Fresh,
            content: None,
            attempt: 0,
            is_loading: false,
            waiting: Arc::default(),
            retry_at: None,
            retry_delay: RETRY_DELAY,
            interests: None,
            failure: None,
            serving: None,
        }
    }

    /// The object as it is now. A change of the status alone starts nothing.
    pub(super) fn update(&mut self, object: AdmissionPolicy, wrong: Option<Problem>) {
        let is_new = self.object.spec != object.spec || self.wrong != wrong;
        if self.object.spec.module != object.spec.module {
            self.interests = None;
        }
        // A new object of the same name: it owes nothing to the old one but continuity.
        (self.object, self.wrong) = (object, wrong);
        // What is switched off refuses nothing from now on, whatever becomes of the version to come.
        if let Some(serving) = self.serving.as_mut().filter(|serving| enforces(serving)) {
            serving.mode = mode_of(&self.object).unwrap_or(serving.mode);
        }
        if is_new {
            self.source = source(&self.object, self.wrong.as_ref());
            self.state = State::Fresh;
            self.content = None;
            self.is_loading = false;
        }
    }

    pub(super) fn source(&self) -> Option<&Source> {
        self.source.as_ref().ok().map(|(source, _)| source)
    }

    /// Whether the object says that the policy enforces.
    pub(super) fn enforces(&self) -> bool {
        self.object.spec.mode == Mode::Enforce
    }

    /// Starts what can be started: loading, when there is a content other than the last, or when
    /// the last is to be tried again.
    pub(super) fn advance(
        &mut self,
        name: &str,
        contents: &ModuleStore,
        loader: &Arc<Loader>,
        limits: Limits,
        results: &mpsc::UnboundedSender<Loading>,
    ) {
        let Some((source, pinned)) = self.usable_source() else { return };
        let Some(content) = contents.get(&source) else { return };
        if self.content.as_ref() != Some(&content) {
            self.content = Some(content.clone());
            self.state = State::Loading;
            self.retry_delay = RETRY_DELAY;
        } else if !self.is_due() {
            return;
        }
        self.attempt += 1;
        (self.is_loading, self.retry_at, self.waiting) = (true, None, Arc::default());
        let waiting = Arc::clone(&self.waiting);
        let (attempt, spec) = (self.attempt, self.object.spec.clone());
        let name = name.to_owned();
        let job = Job { name, attempt, spec, source, pinned, content, limits, waiting };
        let (loader, results) = (Arc::clone(loader), results.clone());
        tokio::spawn(async move {
            // The receiver is gone when the process ends.
            let _ = results.send(job.run(&loader).await);
        });
    }

    /// Where the module comes from; none where the specification says nothing that can be used, which is
    /// a failure then.
    fn usable_source(&mut self) -> Option<(Source, Option<Digest>)> {
        match &self.source {
            Ok(source) => Some(source.clone()),
            Err(problems) => {
                if matches!(self.state, State::Fresh) {
                    self.failure = Some(problems.clone());
                    self.state = State::Failed(problems.clone());
                }
                None
            }
        }
    }

    fn is_due(&self) -> bool {
        !self.is_loading && self.retry_at.is_some_and(|at| at <= Instant::now())
    }

    /// Takes the result of loading, unless it has been overtaken.
    pub(super) fn finish(&mut self, loading: Loading) {
        if loading.attempt != self.attempt || !self.is_loading {
            return;
        }
        self.is_loading = false;
        match loading.result {
            Ok(Loaded { binding, despite }) => {
                self.interests = Some(binding.policy.metadata().interests.clone());
                let despite = despite.map(|failed| self.fail(&loading.name, failed));
                self.state = State::Waiting {
                    candidate: Box::new(binding),
                    since: Instant::now(),
                    why: "its lookups are not answered yet".to_owned(),
                    despite: despite.unwrap_or_default(),
                };
            }
            Err(failed) => {
                let problems = self.fail(&loading.name, failed);
                self.failure = Some(problems.clone());
                self.state = State::Failed(problems);
            }
        }
    }

    /// Notes and logs what went wrong, and whether it is tried again.
    fn fail(&mut self, name: &str, failed: Failed) -> Vec<Problem> {
        let Failed { problems, interests, retry } = failed;
        self.interests = interests.or(self.interests.take());
        if retry == Retry::Later {
            let is_full = problems.iter().any(|problem| problem.fault == Fault::CacheFull);
            let longest = if is_full { LONGEST_WAIT_FOR_ROOM } else { LONGEST_RETRY_DELAY };
            self.retry_at = Some(Instant::now() + self.retry_delay.min(longest));
            self.retry_delay = (self.retry_delay * 2).min(longest);
        }
        for problem in &problems {
            tracing::warn!(policy = name, problem = problem.text(), "failed to load the policy");
        }
        problems
    }

    /// Puts what waits in force, when its lookups are answered or it has waited long enough.
    pub(super) fn promote(&mut self, lookups: impl Fn(&Binding) -> Result<(), String>) {
        // One before it may be in force, but not refuse what this one is to refuse.
        let judges = self.judges();
        match &mut self.state {
            State::Waiting { candidate, since, why, .. } => {
                let without = lookups(candidate).err();
                if let Some(reason) = &without {
                    why.clone_from(reason);
                    if judges || since.elapsed() < WAIT {
                        return;
                    }
                }
                let state = std::mem::replace(&mut self.state, State::Serving { without });
                if let State::Waiting { candidate, despite, .. } = state {
                    (self.serving, self.failure) = (Some(*candidate), None);
                    if !despite.is_empty() {
                        self.state = State::Failed(despite);
                    }
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

    /// Whether something of it is in force that refuses, if the object says that the policy does: an earlier
    /// version that only warned or audited is none.
    fn judges(&self) -> bool {
        self.serving().is_some_and(|binding| !self.enforces() || enforces(binding))
    }

    /// The policy as one that should judge and cannot, if it is that. A policy that is new is not
    /// missed while it is loaded; one that was there when the process started is.
    pub(super) fn inactive(&self, name: &str, is_starting: bool) -> Option<InactivePolicy> {
        let problems = match &self.failure {
            _ if self.judges() => return None,
            Some(problems) => problems.clone(),
            None if is_starting => vec![just_started()],
            None => return None,
        };
        let interests = self.interests.clone().or_else(|| self.last_known());
        opensdn_admission_policy::inactive(name, &self.object.spec, interests, &problems)
    }

    /// What the status says that the module is about. It can narrow what is refused, so it is asked only where the
    /// administrator has named no kinds, and only about the module that he asks for now.
    fn last_known(&self) -> Option<Vec<Interest>> {
        let AdmissionPolicy { metadata, spec, status } = &self.object;
        let status = status.as_ref().filter(|_| spec.kinds.as_ref().is_none_or(Vec::is_empty))?;
        let pinned = spec.module.digest.as_ref();
        let is_of_the_same = pinned.is_none()
            || pinned == status.digest.as_ref()
            || (status.observed_generation.is_some()
                && status.observed_generation == metadata.generation);
        let judges = status.judges.as_deref().filter(|_| is_of_the_same)?;
        Some(opensdn_admission_policy::interests(judges))
    }

    /// What is known of the policy without its module, if nothing of it is in force or about to be because
    /// it could not be loaded. Its status may know more, but is not to say what is asked of us.
    pub(super) fn lost(&self) -> Option<LostPolicy> {
        // With an earlier version in force here another replica may have this one.
        if self.failure.is_none() || matches!(self.state, State::Waiting { .. }) {
            return None;
        }
        let (kinds, failure_mode) = opensdn_admission_policy::named(&self.object.spec);
        Some(LostPolicy { interests: self.interests.clone(), kinds, failure_mode })
    }

    /// Whether what is in force here, or waits to be, is what the object asks for now.
    pub(super) fn is_current(&self) -> bool {
        matches!(self.state, State::Waiting { .. } | State::Serving { .. })
    }

    /// What is in force, and what waits to be.
    pub(super) fn bindings(&self) -> impl Iterator<Item = &Binding> {
        let candidate = match &self.state {
            State::Waiting { candidate, .. } => Some(&**candidate),
            _ => None,
        };
        self.serving().into_iter().chain(candidate)
    }

    /// Whether nothing of it is in force here although it enforces, and it is tried again: a replica that
    /// starts had better not take the place of one that runs it.
    pub(super) fn is_worth_waiting_for(&self) -> bool {
        let is_tried_again = self.retry_at.is_some() || self.is_loading;
        matches!(self.state, State::Failed(_)) && is_tried_again && !self.judges()
    }

    /// Whether nothing is in progress any more.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, State::Serving { .. } | State::Failed(_))
    }

    pub(super) fn metric(&self) -> LoadedMetric {
        match self.state {
            State::Serving { .. } => LoadedMetric::Current,
            _ => LoadedMetric::Broken,
        }
    }

    /// Its name and how far it is, for people.
    pub(super) fn describe(&self) -> String {
        let message = self.report("").replica.message.unwrap_or_default();
        format!("{}: {message}", self.object.metadata.name.as_deref().unwrap_or_default())
    }

    /// What this replica has to say.
    pub(super) fn report(&self, replica: &str) -> Reported {
        let (ready, reason, message) = match &self.state {
            State::Fresh | State::Loading => {
                let message = if self.waiting.is_so() {
                    "the module waits until another one is compiled: that is done one at a time"
                } else {
                    "the module is read and compiled"
                };
                (false, LOADING.to_owned(), message.to_owned())
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
        Reported {
            object: self.object.clone(),
            module: digest.clone().zip(policy.map(|policy| facts(policy.metadata()))),
            claims: self.enforces() && policy.is_some_and(|policy| policy.metadata().claims),
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
        let rest = if self.judges() {
            "the previous version stays in force"
        } else if self.serving.is_some() {
            "the previous version, which refuses nothing, stays in force, and what this one is about is inconclusive"
        } else if self.enforces() {
            "nothing of this policy is in force, and what it is about is inconclusive"
        } else {
            "nothing of this policy is in force"
        };
        (false, reason, format!("{} ({rest})", texts.join("\n")))
    }
}

/// What the object says that findings do, if that is not to refuse.
fn mode_of(object: &AdmissionPolicy) -> Option<opensdn_policy_host::Mode> {
    match object.spec.mode {
        Mode::Enforce => None,
        Mode::Warn => Some(opensdn_policy_host::Mode::Warn),
        Mode::Audit => Some(opensdn_policy_host::Mode::Audit),
    }
}

fn enforces(binding: &Binding) -> bool {
    binding.mode == opensdn_policy_host::Mode::Enforce
}

/// Of an object that cannot be read nothing is loaded: its settings may be what is missing.
fn source(
    object: &AdmissionPolicy,
    wrong: Option<&Problem>,
) -> Result<(Source, Option<Digest>), Vec<Problem>> {
    match wrong {
        Some(problem) => Err(vec![problem.clone()]),
        None => opensdn_admission_policy::parse(&object.spec.module),
    }
}

fn just_started() -> Problem {
    let message = "the webhook has just started and loads the module";
    Problem::new(Fault::Starting, "/spec/module", message, "try again")
}

/// What the status has of a module, so that a replica that cannot load it knows what it is about.
fn facts(metadata: &Metadata) -> ModuleFacts {
    let judges = opensdn_admission_policy::judges(&metadata.interests);
    ModuleFacts { version: metadata.version.clone(), judges }
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

#[cfg(test)]
mod tests;
