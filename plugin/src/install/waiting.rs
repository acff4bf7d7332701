//! Waiting for states of objects: says what for, ends at once where there is no hope, and at a deadline. What a state is
//! (`waits.rs`) is not known here.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::object::ObjectKey;
use super::requests::Requests;
use super::waits::{State, remains};
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

/// How long until objects are read again.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// What has begun may take so much longer than the deadline: how far it is is said also where the time is over.
const LAST_LOOK: Duration = Duration::from_secs(5);
/// What is waited for begins with it, where that is that objects are gone.
pub(crate) const END_OF: &str = "the end of";
/// So many objects are named that are waited for.
const SHOWN: usize = 5;

/// Until when is waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    timeout: Duration,
}

impl Deadline {
    /// From now on.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self { at: Instant::now() + timeout, timeout }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }

    /// When a call that begins now is not waited for any more.
    fn of_call(&self) -> Instant {
        self.at.max(Instant::now() + LAST_LOOK)
    }

    /// Carries out a call within the time; `doing` fits after "failed to".
    ///
    /// # Errors
    /// The time is over. The call may have been carried out all the same.
    pub(crate) async fn within<T>(
        &self,
        doing: &str,
        call: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        timeout_at(self.of_call(), call).await.map_err(|_| {
            let seconds = self.timeout.as_secs();
            let message =
                format!("failed to {doing}: the API server did not answer within --timeout, {seconds} s");
            let hint = "it may be done all the same; the same command continues, longer with --timeout 30m";
            Failure::new(Exit::TimedOut, "timed-out", message, hint)
        })
    }

    /// The time is over, and the last answer was this.
    pub(crate) fn passed(&self, doing: &str, why: &str) -> Failure {
        let message = format!("failed to {doing} within {} s", self.timeout.as_secs());
        let hint = match opensdn_error_chain::is_of_webhook(why) {
            true => OF_WEBHOOK,
            false => "the same command continues, longer with --timeout",
        };
        let mut failure = Failure::new(Exit::TimedOut, "timed-out", message, hint);
        failure.causes = vec![why.to_owned()];
        failure
    }

    /// Waits until each of the objects is ready.
    ///
    /// # Errors
    /// One of them will never be, the time is over, or the cluster does not answer.
    pub(crate) async fn wait_for(
        &self,
        what: &str,
        keys: Vec<ObjectKey>,
        ui: &mut Ui,
        state: impl AsyncFn(&ObjectKey) -> Result<State, Failure>,
    ) -> Result<(), Failure> {
        let total = keys.len();
        let (mut left, mut said) = (keys, String::new());
        loop {
            let (mut waiting, end) = (Vec::new(), self.of_call());
            for key in left {
                match timeout_at(end, state(&key)).await {
                    Ok(Ok(State::Ready)) => {}
                    Ok(Ok(State::Waiting(why))) => waiting.push((key, why)),
                    Ok(Ok(State::Hopeless(why))) => return Err(hopeless(&key, &why)),
                    // It answered before, and does again: an API server that is restarted ends no wait.
                    Ok(Err(failure)) if is_hiccup(&failure) => {
                        let why = failure.causes.first().unwrap_or(&failure.message).clone();
                        waiting.push((key, why));
                    }
                    Ok(Err(failure)) => return Err(failure),
                    Err(_) => waiting.push((key, "the API server does not answer".to_owned())),
                }
            }
            let Some((key, why)) = waiting.first() else { return Ok(()) };
            if self.is_over() {
                return Err(self.late(what, &waiting));
            }
            let text =
                format!("waiting for {what}: {} of {total}; {key}: {why}", total - waiting.len());
            if text != said {
                ui.progress(&text);
                said = text;
            }
            left = waiting.into_iter().map(|(key, _)| key).collect();
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until objects that are being deleted are gone.
    ///
    /// # Errors
    /// The time is over, or the cluster does not answer.
    pub(crate) async fn end_of(
        &self,
        what: &str,
        requests: &Requests,
        keys: Vec<ObjectKey>,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let state = async |key: &ObjectKey| -> Result<State, Failure> {
            Ok(match requests.get(key).await? {
                Some(stored) if stored.pointer("/metadata/deletionTimestamp").is_some() => {
                    State::Waiting(remains(&stored))
                }
                _ => State::Ready,
            })
        };
        self.wait_for(&format!("{END_OF} {what}"), keys, ui, state).await
    }

    fn late(&self, what: &str, waiting: &[(ObjectKey, String)]) -> Failure {
        let (word, hint) = match what.starts_with(END_OF) {
            true => ("not gone", held(waiting)),
            false => (
                "not ready",
                "it may still become ready; the same command continues to wait, longer with --timeout",
            ),
        };
        let message =
            format!("{what}: {} {word} after {} s", waiting.len(), self.timeout.as_secs());
        let mut failure = Failure::new(Exit::TimedOut, "timed-out", message, hint);
        failure.causes =
            waiting.iter().take(SHOWN).map(|(key, why)| format!("{key}: {why}")).collect();
        failure
    }
}

/// Waiting longer helps no webhook that nobody runs.
pub(super) const OF_WEBHOOK: &str = "to find the configuration of that webhook: kubectl opensdn check --only K007; the same command \
    continues when it answers, or that is deleted";

/// What has to be done where something is being deleted, and does not go.
fn held(waiting: &[(ObjectKey, String)]) -> &'static str {
    // As the controller of namespaces says it where an aggregated API does not answer.
    let is_of_api =
        |(_, why): &(ObjectKey, String)| why.contains("Discovery failed for some groups");
    if waiting.iter().any(is_of_api) {
        "an API that does not answer holds it: kubectl get apiservices shows which is not available; start what serves it, or \
         delete that APIService; the same command continues then"
    } else {
        "what holds it has to go first; the same command continues then"
    }
}

/// Whether the cluster may answer the same question in a moment.
pub(crate) fn is_hiccup(failure: &Failure) -> bool {
    failure.exit == Exit::Unreachable && !["unauthenticated", "forbidden"].contains(&failure.code)
}

fn hopeless(key: &ObjectKey, why: &str) -> Failure {
    let again = "then the same command again";
    let hint = if why.contains("not-ready") {
        "where the network of the pods is to be OpenSDN's own: install with --wait=false, apply your Manager, then install again".to_owned()
    } else if why.contains("Unschedulable") {
        format!("add nodes, or fewer replicas: --profile single-node; {again}")
    } else if why.contains("image") {
        format!(
            "is the registry right (--set registry=...), the tag, and imagePullSecrets? {again}"
        )
    } else {
        let namespace = key.namespace.as_deref().map_or(String::new(), |one| format!(" -n {one}"));
        format!("look at its pods: kubectl describe pods{namespace}; {again}")
    };
    let mut failure =
        Failure::new(Exit::Findings, "not-ready", format!("{key} does not become ready"), hint);
    failure.causes = vec![why.to_owned()];
    failure
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::of_tests;
    use crate::fake_api_server::{FakeApiServer, Reply, refusal};
    use crate::install::requests::Requests;
    use crate::output::DocumentFormat;

    async fn waited(server: &FakeApiServer, timeout: Duration) -> Result<(), Failure> {
        let (requests, key) =
            (Requests::new(of_tests(server.url())), ObjectKey::within("a", "v1", "ConfigMap", "b"));
        let mut ui = Ui::plain(anstream::ColorChoice::Never, None::<DocumentFormat>);
        let state = async |key: &ObjectKey| -> Result<State, Failure> {
            let stored = requests.get(key).await?;
            Ok(stored.map_or(State::Waiting("it is not there".to_owned()), |_| State::Ready))
        };
        Deadline::after(timeout).wait_for("objects", vec![key], &mut ui, state).await
    }

    #[tokio::test]
    async fn a_hiccup_of_the_api_server_ends_no_wait() {
        let server = FakeApiServer::start(|_, before| match before {
            0 => refusal(500, "InternalError", "etcdserver: leader changed"),
            1 => Reply::Cut,
            _ => Reply::Document(200, "", json!({"metadata": {"name": "b", "namespace": "a"}})),
        });
        waited(&server, Duration::from_secs(120)).await.unwrap();
        assert_eq!(server.seen().len(), 3, "{:?}", server.seen());
    }

    #[test]
    fn what_holds_a_removal_is_named_with_the_command_that_finds_it() {
        let key = ObjectKey::cluster("v1", "Namespace", "a");
        let said = "it is being deleted: Discovery failed for some groups, 1 failing: unable to retrieve the complete \
                    list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery";
        assert!(held(&[(key.clone(), said.to_owned())]).contains("kubectl get apiservices"));
        assert!(held(&[(key, "it waits for x".to_owned())]).contains("has to go first"));
        let dead = "Internal error occurred: failed calling webhook \"dead.example.com\": service not found";
        let passed = |why: &str| Deadline::after(Duration::ZERO).passed("delete it", why).hint;
        assert!(passed(dead).contains("K007") && passed("no").contains("--timeout"));
    }

    #[tokio::test]
    async fn who_may_not_read_it_does_not_wait() {
        let server = FakeApiServer::start(|_, _| refusal(403, "Forbidden", "cannot get"));
        let failure = waited(&server, Duration::from_secs(120)).await.unwrap_err();
        assert_eq!((failure.code, server.seen().len()), ("forbidden", 1));
    }

    #[tokio::test]
    async fn an_api_server_that_hangs_does_not_make_a_wait_longer() {
        let server = FakeApiServer::start(|_, _| Reply::Silence);
        let failure = waited(&server, Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(failure.exit, Exit::TimedOut);
        let said = "ConfigMap/a/b: the API server does not answer";
        assert_eq!(failure.causes, [said], "{failure:?}");
    }
}
