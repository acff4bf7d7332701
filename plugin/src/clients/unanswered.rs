//! Why a cluster did not answer, in words.

use super::bounded::GivenUp;
use crate::exit::{Exit, Failure};

use opensdn_error_chain::error_causes;

/// Why a cluster did not answer; `doing` fits after "failed to".
#[must_use]
pub fn unanswered(doing: &str, error: &kube::Error) -> Failure {
    let given_up = find::<GivenUp>(error);
    let (code, hint) = match (error, given_up) {
        (kube::Error::Api(status), _) => match status.code {
            401 => ("unauthenticated", "log in again: the API server does not know who you are"),
            403 => {
                ("forbidden", "ask for the right that the cause names, or use another --context")
            }
            _ => ("refused-by-server", ""),
        },
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
        _ => ("unreachable-cluster", "is this the right cluster? kubectl config current-context"),
    };
    let failure = Failure::new(Exit::Unreachable, code, format!("failed to {doing}"), hint);
    Failure { causes: causes(error), ..failure }
}

/// What led to it, for people.
pub(super) fn causes(error: &kube::Error) -> Vec<String> {
    if let kube::Error::Api(status) = error
        && !status.message.is_empty()
    {
        // Only its message is text for people: kube's own error says it three times, once as Rust would.
        return vec![status.message.clone()];
    }
    if let Some(given_up) = find::<GivenUp>(error) {
        return vec![given_up.to_string()];
    }
    error_causes(error)
}

/// The first cause of this type.
fn find<E: std::error::Error + 'static>(error: &kube::Error) -> Option<&E> {
    let first: Option<&(dyn std::error::Error + 'static)> = Some(error);
    std::iter::successors(first, |error| error.source()).find_map(|error| error.downcast_ref())
}

/// Whether a time limit ended the call: of connecting or TLS.
fn is_timeout(error: &kube::Error) -> bool {
    let first: Option<&(dyn std::error::Error + 'static)> = Some(error);
    std::iter::successors(first, |error| error.source()).any(|error| {
        let of_io = error.downcast_ref::<std::io::Error>();
        error.is::<tokio::time::error::Elapsed>()
            || of_io.is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
    })
}
