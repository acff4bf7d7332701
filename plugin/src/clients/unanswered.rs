//! Why a cluster did not answer, in words that may be shown: neither logins in addresses nor what a credential plugin
//! printed are among them.

use kube::client::AuthError;

use super::bounded::GivenUp;
use super::refusal::advice;
use crate::bundle::redact;
use crate::exit::{Exit, Failure};

use opensdn_error_chain::error_causes;

/// So much of what a credential plugin says is shown.
const SAID: usize = 300;

/// Why a cluster did not answer; `doing` fits after "failed to".
#[must_use]
pub fn unanswered(doing: &str, error: &kube::Error) -> Failure {
    let given_up = find::<GivenUp>(error);
    let (code, hint) = match (error, given_up) {
        (kube::Error::Api(status), _) => advice(status),
        (_, Some(GivenUp::Busy { .. })) => (
            "busy-cluster",
            "the API server is overloaded, or starts: kubectl get --raw '/readyz?verbose'; to wait longer: \
             --request-timeout 2m",
        ),
        (_, given_up) if given_up.is_some() || is_timeout(error) => (
            "no-answer-in-time",
            "the API server hangs, or something on the way drops what is sent: kubectl get --raw \
             '/readyz?verbose'; to wait longer: --request-timeout 2m",
        ),
        (kube::Error::Auth(_), _) => (
            "no-credentials",
            "log in again; what gets the credentials: kubectl config view --minify",
        ),
        _ => ("unreachable-cluster", "is this the right cluster? kubectl config current-context"),
    };
    let failure = Failure::new(Exit::Unreachable, code, format!("failed to {doing}"), hint);
    Failure { causes: causes(error), ..failure }
}

/// Why a cluster did not answer, in one line that begins with nothing of what was asked.
pub(crate) fn why(error: &kube::Error) -> String {
    causes(error).join(": ")
}

/// What led to it, for people.
pub(super) fn causes(error: &kube::Error) -> Vec<String> {
    if let kube::Error::Api(status) = error
        && !status.message.is_empty()
    {
        // Only its message is text for people: kube's own error says it three times, once as Rust would.
        return vec![opensdn_error_chain::shown(&status.message)];
    }
    if let Some(given_up) = find::<GivenUp>(error) {
        return vec![given_up.to_string()];
    }
    match find::<AuthError>(error) {
        Some(AuthError::AuthExecRun { out, .. }) => vec![plugin_failed(out)],
        Some(AuthError::AuthExecParse(_)) => {
            vec!["the credential plugin printed something else than an ExecCredential".to_owned()]
        }
        _ => error_causes(error).iter().map(|cause| redact::logins(cause)).collect(),
    }
}

/// Its standard output is for credentials, and its command line may have some.
fn plugin_failed(out: &std::process::Output) -> String {
    let said = String::from_utf8_lossy(&out.stderr);
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let last: String = redact::text(last).chars().take(SAID).collect();
    match last.is_empty() {
        true => format!("the credential plugin failed with {}", out.status),
        false => format!("the credential plugin failed with {}: {last}", out.status),
    }
}

/// The error and what led to it.
fn chain(error: &kube::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
}

/// The first cause of this type.
fn find<E: std::error::Error + 'static>(error: &kube::Error) -> Option<&E> {
    chain(error).find_map(|error| error.downcast_ref())
}

/// Whether a time limit ended the call: of connecting or TLS.
fn is_timeout(error: &kube::Error) -> bool {
    chain(error).any(|error| {
        let of_io = error.downcast_ref::<std::io::Error>();
        error.is::<tokio::time::error::Elapsed>()
            || of_io.is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
    })
}
