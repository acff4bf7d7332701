//! Whether API servers reach the webhook, asked of one of them, which calls a ready pod of the Service. For a
//! review it calls the Service's address, so this shows that the network of the pods works, not that
//! every API server's way does. Where it cannot be asked, a replica that is ready has to be known.
//!
//! A configuration that is deleted while they do not is left as it is: a user has switched the webhook off
//! because nothing could be written any more, and to restore it would close the way out again.

use std::time::Duration;

use kube::Client;
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::error_chain;

use tokio::time::Instant;

use super::object::Address;
use crate::replicas::ReadyReplicas;
use crate::server::UNKNOWN_PATH;

const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// For so long an answer is taken for the present.
const VALID: Duration = Duration::from_secs(2);

/// Where reviews are answered.
pub(crate) enum Serving {
    /// By this process, which knows itself when it is ready.
    Here,
    /// By other processes, which say in their Leases when they are.
    Elsewhere(Box<ReadyReplicas>),
}

/// Whether a configuration may send requests to the webhook, asked when one is to be written.
pub(super) struct Reachability {
    client: Client,
    address: Address,
    has_client_auth: bool,
    serving: Serving,
    /// The last answer, and when it was given.
    last: Option<(Instant, bool)>,
}

impl Reachability {
    pub(super) fn new(
        client: Client,
        address: Address,
        has_client_auth: bool,
        serving: Serving,
    ) -> Self {
        Self { client, address, has_client_auth, serving, last: None }
    }

    /// Whether an API server reaches a replica that is ready, as far as can be known.
    pub(super) async fn may_write(&mut self) -> bool {
        if let Some((asked, answer)) = self.last
            && asked.elapsed() < VALID
        {
            return answer;
        }
        let refused = self.refusal().await;
        let was_allowed = self.last.is_none_or(|(_, answer)| answer);
        if let Some(error) = &refused
            && was_allowed
        {
            tracing::warn!(
                error,
                "failed to reach the webhook: its configurations are not written, and nothing is \
                 reviewed, until a replica can be called"
            );
        }
        self.last = Some((Instant::now(), refused.is_none()));
        refused.is_none()
    }

    /// Why nothing may be written.
    async fn refusal(&mut self) -> Option<String> {
        let reach = match self.has_client_auth {
            true => Reach::Unknown,
            false => ask(&self.client, &self.address).await,
        };
        match (reach, &mut self.serving) {
            (Reach::Reached, _) | (Reach::Unknown, Serving::Here) => None,
            (Reach::NotReached(error), _) => Some(error),
            (Reach::Unknown, Serving::Elsewhere(replicas)) => match replicas.any().await {
                Ok(true) => None,
                Ok(false) => Some("no replica has said in its Lease that it is ready".to_owned()),
                Err(error) => Some(error_chain(&error)),
            },
        }
    }
}

/// What is known of the way to the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach {
    /// An API server got an answer of a replica.
    Reached,
    /// It did not, and why.
    NotReached(String),
    /// It cannot be known: the webhook is not behind a Service, wants a certificate of its callers, or may
    /// not ask.
    Unknown,
}

/// Asks an API server to call a path that is not served.
async fn ask(client: &Client, address: &Address) -> Reach {
    let Address::Service { namespace, name } = address else { return Reach::Unknown };
    let path = format!("/api/v1/namespaces/{namespace}/services/https:{name}:443/proxy/");
    let Ok(request) = http::Request::get(path).body(Vec::new()) else { return Reach::Unknown };
    let call = Call::new(Verb::Get, "services/proxy").name(name);
    meaning(call.timeout(CALL_TIMEOUT).run(client.request_text(request)).await)
}

fn meaning(answer: Result<String, CallError>) -> Reach {
    let error = match answer {
        Ok(_) => return Reach::Reached,
        Err(error) => error,
    };
    // Our own port answers none of these: RBAC, or an admission policy about connections.
    if error.status().is_some_and(|status| [401, 403, 405].contains(&status.code)) {
        tracing::warn!(error = error_chain(&error), "failed to ask whether API servers reach us");
        return Reach::Unknown;
    }
    match error.status() {
        // The answer of our own port, passed on.
        Some(status) if status.message.contains(UNKNOWN_PATH) => Reach::Reached,
        _ => Reach::NotReached(error_chain(&error)),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    async fn answered(code: u16, message: &str) -> Reach {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        let answer = async { Err::<String, _>(kube::Error::Api(status.boxed())) };
        meaning(Call::new(Verb::Get, "services/proxy").run(answer).await)
    }

    #[tokio::test]
    async fn only_the_answer_of_our_own_port_shows_that_it_is_reached() {
        let ours = crate::server::unknown_path_message();
        assert_eq!(answered(404, ours).await, Reach::Reached);
        for (code, message) in [
            (404, r#"services "opensdn-webhook" not found"#),
            (503, "no endpoints available for service \"opensdn-webhook\""),
            (503, "error trying to reach service: dial tcp 10.0.0.1:8443: i/o timeout"),
        ] {
            let reach = answered(code, message).await;
            assert!(matches!(&reach, Reach::NotReached(why) if why.contains(message)), "{reach:?}");
        }
    }

    #[tokio::test]
    async fn who_may_not_ask_knows_nothing() {
        let forbidden = "services \"https:opensdn-webhook:443\" is forbidden: User \"x\" cannot get \
                         resource \"services/proxy\" in API group \"\" in the namespace \"n\"";
        assert_eq!(answered(403, forbidden).await, Reach::Unknown);
        let denied = "admission webhook \"x\" denied the request: no connections to services";
        assert_eq!(answered(403, denied).await, Reach::Unknown);
    }
}
