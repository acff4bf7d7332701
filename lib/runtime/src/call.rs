//! One call of the API server: bounded in time, with one error that names verb and resource and,
//! where RBAC forbids the call, the grant that is missing.
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::Secret;
//! # use opensdn_runtime::call::{Call, CallError, Verb};
//! # async fn read(api: kube::Api<Secret>, name: &str) -> Result<Option<Secret>, CallError> {
//! Call::of::<Secret>(Verb::Get).name(name).run(api.get_opt(name)).await
//! # }
//! ```
//!
//! Deliberately not here: retries. What can be tried again, and when, is known to the caller only.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use kube::Resource;
use kube::core::Status;
use tokio::time::timeout;

use crate::counts;

/// How long a call may take, unless its caller says otherwise.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// What is done to a resource, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are Kubernetes' own")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}

/// What a call does, to what, and for how long.
#[derive(Clone, Debug)]
pub struct Call {
    verb: Verb,
    resource: String,
    name: Option<String>,
    timeout: Duration,
}

impl Call {
    /// A call to a resource by its plural name, with its subresource: `admissionpolicies/status`.
    pub fn new(verb: Verb, resource: impl Into<String>) -> Self {
        Self { verb, resource: resource.into(), name: None, timeout: CALL_TIMEOUT }
    }

    /// A call to a kind that is known when this is compiled.
    #[must_use]
    pub fn of<K: Resource>(verb: Verb) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new(verb, K::plural(&K::DynamicType::default()))
    }

    /// The one object that is meant.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Another time limit than [`CALL_TIMEOUT`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Makes the call.
    ///
    /// # Errors
    /// The API server refuses it, cannot be reached, or does not answer in time. A write that timed
    /// out may have been made all the same.
    pub async fn run<T>(
        self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        match timeout(self.timeout, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failed(CallFailure::from(error))),
            Err(_) => Err(self.timed_out()),
        }
    }

    /// The error of this call where the caller measures the time itself.
    #[must_use]
    pub fn timed_out(self) -> CallError {
        let limit = self.timeout;
        self.failed(CallFailure::Timeout(limit))
    }

    fn failed(self, source: CallFailure) -> CallError {
        let Self { verb, resource, name, .. } = self;
        let operation = format!("{verb} {resource}");
        let error = CallError { verb, resource, name, source };
        counts::call_failed(operation, error.category());
        error
    }
}

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {resource}{}", .name.as_ref().map(|name| format!(" {name}")).unwrap_or_default())]
pub struct CallError {
    verb: Verb,
    resource: String,
    name: Option<String>,
    source: CallFailure,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// No answer within the time limit.
    #[error("no answer from the API server within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// RBAC forbids it.
    #[error("missing RBAC rule: {grant}: {}", said(.status))]
    Forbidden {
        /// The rule that would allow it.
        grant: Grant,
        /// What the API server says.
        status: Box<Status>,
    },
    /// The API server refuses it. Only its message is text for people: kube's own error says it three times,
    /// once as Rust would.
    #[error("{}", said(.0))]
    Refused(Box<Status>),
    /// No connection, or no answer that can be read.
    #[error(transparent)]
    Kube(Box<kube::Error>),
}

/// What an answer says to people.
fn said(status: &Status) -> Cow<'_, str> {
    match status.code {
        // Of a kind that is served the answer is a Status, which names the object.
        404 if status.message.starts_with("404 page not found") => {
            "the API server does not serve this kind: its CustomResourceDefinition is missing, or the \
             API server that serves it"
                .into()
        }
        401 => "the API server refuses our token (401): check that our ServiceAccount exists, that the token is its \
                own and not older than it, and that the clocks of this node and the API server agree"
            .into(),
        code if status.message.is_empty() => format!("the API server answered {code}").into(),
        _ => status.message.as_str().into(),
    }
}

/// The rule that is missing in a Role or ClusterRole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of a rule")]
pub struct Grant {
    pub verb: String,
    pub resource: String,
    pub api_group: String,
    /// `None` where it has to be a ClusterRole.
    pub namespace: Option<String>,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, api_group, namespace } = self;
        let rule =
            format!("apiGroups: [{api_group:?}], resources: [{resource:?}], verbs: [{verb:?}]");
        match namespace {
            Some(namespace) => write!(f, "{rule} in namespace {namespace}"),
            None => write!(f, "{rule} for the whole cluster"),
        }
    }
}

impl Grant {
    /// From what the API server says when RBAC forbids a call, the only place that names the verb it
    /// asked for: an apply may need `create` besides `patch`. `None` where something else forbids it
    /// (admission, a quota).
    fn from_message(message: &str) -> Option<Self> {
        let (_, after) = message.split_once(" cannot ")?;
        let (verb, after) = after.split_once(" resource ")?;
        let (resource, after) = quoted(after)?;
        let (api_group, after) = quoted(after.strip_prefix(" in API group ")?)?;
        let namespace = after.strip_prefix(" in the namespace ").and_then(quoted);
        Some(Self {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            api_group: api_group.to_owned(),
            namespace: namespace.map(|(namespace, _)| namespace.to_owned()),
        })
    }
}

/// A text in quotes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

impl From<kube::Error> for CallFailure {
    fn from(error: kube::Error) -> Self {
        let mut status = match error {
            kube::Error::Api(status) => status,
            other => return Self::Kube(Box::new(other)),
        };
        status.message = opensdn_error_chain::shown(&status.message);
        match (status.code == 403).then(|| Grant::from_message(&status.message)).flatten() {
            Some(grant) => Self::Forbidden { grant, status },
            None => Self::Refused(status),
        }
    }
}

impl CallFailure {
    fn status(&self) -> Option<&Status> {
        match self {
            Self::Timeout(_) | Self::Kube(_) => None,
            Self::Forbidden { status, .. } | Self::Refused(status) => Some(status),
        }
    }

    /// A fixed label for metrics.
    pub(crate) fn category(&self) -> &'static str {
        match (self, self.status().map(|status| status.code)) {
            (Self::Timeout(_), _) => "timeout",
            (Self::Forbidden { .. }, _) => "forbidden",
            (_, Some(404)) => "not_found",
            (_, Some(409)) => "conflict",
            (_, Some(_)) => "refused",
            (_, None) => "unreachable",
        }
    }
}

impl CallError {
    /// Why it failed.
    #[must_use]
    pub fn failure(&self) -> &CallFailure {
        &self.source
    }

    /// The status with which the API server answered, if it did.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        self.source.status()
    }

    /// There is no such object, or no such kind.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.has_code(404)
    }

    /// The object is not the one that was read, or exists already.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.has_code(409)
    }

    /// A `test` operation of a JSON patch found something else.
    #[must_use]
    pub fn is_failed_test(&self) -> bool {
        // What admission or a schema refuses has the same code, and names the fields.
        const SAID: &str = "rejected our request due to an error in our request";
        self.status().is_some_and(|status| status.code == 422 && status.message.contains(SAID))
    }

    /// What would be stored is not valid.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.has_code(422) && !self.is_failed_test()
    }

    /// The API server has refused it for what it says; another try says the same.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.status().is_some_and(|status| (400..500).contains(&status.code) && status.code != 429)
    }

    /// A webhook that the API server asks did not answer: what is to be written is not taken as long as that is so.
    #[must_use]
    pub fn is_of_a_webhook(&self) -> bool {
        self.status().is_some_and(|status| {
            status.code >= 500 && opensdn_error_chain::is_of_webhook(&status.message)
        })
    }

    /// The position in a list or watch is lost.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.has_code(410)
    }

    /// There was no answer in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.source, CallFailure::Timeout(_))
    }

    /// The rule that is missing, where RBAC forbids the call.
    #[must_use]
    pub fn missing_grant(&self) -> Option<&Grant> {
        match &self.source {
            CallFailure::Forbidden { grant, .. } => Some(grant),
            CallFailure::Timeout(_) | CallFailure::Refused(_) | CallFailure::Kube(_) => None,
        }
    }

    /// A fixed label for metrics.
    #[must_use]
    pub fn category(&self) -> &'static str {
        self.source.category()
    }

    fn has_code(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }
}
