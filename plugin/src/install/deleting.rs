//! Deletions of objects as they were read, and the wait until they are gone: through a webhook that does not answer, one of
//! ours that was restored, and an API server that is away for a moment.

use std::collections::BTreeMap;

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::Value;
use tokio::time::sleep;

use super::applying::is_passing;
use super::object::ObjectKey;
use super::removal::{is_of_webhook, webhook_configurations};
use super::requests::Requests;
use super::waiting::{Deadline, END_OF, OF_WEBHOOK, POLL_INTERVAL};
use super::waits::{State, remains};
use crate::clients::{unanswered, why};
use crate::exit::Failure;
use crate::ui::{Ui, one_line};

/// So often a refusal by a webhook of ours is tried again where its configuration is not there any more.
const MOST_DENIALS: u32 = 10;

/// Deletions.
pub(crate) struct Deleting<'a> {
    /// In this cluster.
    pub(crate) requests: &'a Requests,
    /// Until then.
    pub(crate) deadline: Deadline,
    /// Of the installation in this namespace.
    pub(crate) namespace: &'a str,
}

impl Deleting<'_> {
    /// Deletes the objects as they were read.
    pub(crate) async fn delete(&self, objects: &[Value], ui: &mut Ui) -> Result<(), Failure> {
        for stored in objects {
            self.delete_one(stored, ui).await?;
        }
        Ok(())
    }

    async fn delete_one(&self, stored: &Value, ui: &mut Ui) -> Result<(), Failure> {
        let doing = format!("delete {}", ObjectKey::of(stored));
        let (mut denials, mut said) = (0, false);
        loop {
            let error = match self.deadline.within(&doing, self.requests.delete(stored)).await? {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let is_denied = is_denied_by_ours(&error) && denials < MOST_DENIALS;
            if !(is_denied || is_passing(&error)) {
                return Err(unanswered(&doing, &error));
            }
            if self.deadline.is_over() {
                return Err(self.deadline.passed(&doing, &why(&error)));
            }
            if !std::mem::replace(&mut said, true) {
                ui.note(&format!("waits to {doing}: {}", one_line(&why(&error))));
                if opensdn_error_chain::is_of_webhook(&why(&error)) {
                    ui.hint(OF_WEBHOOK);
                }
            }
            // What is refused by a webhook that was restored would be so to the end. Without one an API server that
            // still knows it asks it for a moment; a webhook of another installation asks on.
            let was_there = self.restored().await? > 0;
            denials = if was_there { 0 } else { denials + u32::from(is_denied) };
            sleep(POLL_INTERVAL).await;
        }
    }

    /// What an object that is being deleted waits for. While pods of a namespace end, it does not say so itself.
    async fn held_by(&self, key: &ObjectKey, stored: &Value) -> String {
        let text = remains(stored);
        let has_reason = text.contains(':') || text.contains(',');
        if key.kind != "Namespace" || has_reason {
            return text;
        }
        let pods = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
        // Who may not list them is given no reason.
        let pods = self.requests.list(&pods, Some(&key.name), "").await.unwrap_or_default();
        let Some(pod) = pods.first() else { return text };
        let node = pod.pointer("/spec/nodeName").and_then(Value::as_str);
        let node = node.map_or_else(String::new, |node| format!(" on node {node}"));
        format!("{text}; {}{node}: {}", ObjectKey::of(pod), remains(pod))
    }

    /// Waits until the objects are gone.
    pub(crate) async fn gone(
        &self,
        what: &str,
        objects: &[Value],
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        self.gone_or(what, objects, |_| false, ui).await
    }

    /// The same, or until they are such that is not waited for.
    pub(super) async fn gone_or(
        &self,
        what: &str,
        objects: &[Value],
        is_enough: fn(&Value) -> bool,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let uid = |stored: &Value| stored.pointer("/metadata/uid").cloned().unwrap_or_default();
        let uids: BTreeMap<ObjectKey, Value> =
            objects.iter().map(|one| (ObjectKey::of(one), uid(one))).collect();
        let state = async |key: &ObjectKey| -> Result<State, Failure> {
            Ok(match self.requests.get(key).await? {
                Some(stored) if uids.get(key) == Some(&uid(&stored)) && !is_enough(&stored) => {
                    State::Waiting(self.held_by(key, &stored).await)
                }
                _ => State::Ready,
            })
        };
        let what = format!("{END_OF} {what}");
        self.deadline.wait_for(&what, uids.keys().cloned().collect(), ui, state).await
    }

    /// Deletes webhook configurations that are there again: a pod may have restored them before it lost the right.
    /// How many there were.
    pub(super) async fn restored(&self) -> Result<usize, Failure> {
        let mut deletions = 0;
        for key in webhook_configurations() {
            let stored = self.requests.get(&key).await?;
            let Some(stored) = stored.filter(|one| is_of_webhook(one, self.namespace)) else {
                continue;
            };
            let deleted = self.requests.delete(&stored).await;
            deleted.map_err(|error| unanswered(&format!("delete {key}"), &error))?;
            deletions += 1;
        }
        Ok(deletions)
    }
}

/// Whether a webhook of ours has judged the request, and refused it: its entries have names below our domain.
fn is_denied_by_ours(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let Some((_, said)) = status.message.split_once("admission webhook \"") else { return false };
    said.split_once('"').is_some_and(|(name, said)| {
        name.ends_with(".opensdn.io") && said.trim_start().starts_with("denied the request")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opensdn_deploy::names::webhook;
    use serde_json::json;

    use super::*;
    use crate::clients::of_tests;
    use crate::fake_api_server::{FakeApiServer, Reply, refusal};

    const DENIAL: &str =
        "admission webhook \"ours.validate.opensdn.io\" denied the request: it has claims";

    fn manager() -> Value {
        json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
            "metadata": {"name": "cluster1", "namespace": "tf", "uid": "1"}})
    }

    #[tokio::test]
    async fn what_a_restored_webhook_refuses_is_deleted_when_its_configuration_is_gone_again() {
        let server = FakeApiServer::start(|request, before| {
            let is_validating = request.contains("/validatingwebhookconfigurations");
            match (request.split_once(' ').unwrap_or_default().0, before) {
                ("DELETE", 0) if request.contains("/managers/") => {
                    refusal(403, "Forbidden", DENIAL)
                }
                ("GET", 0) if is_validating => Reply::Document(
                    200,
                    "",
                    json!({"metadata": {"name": webhook::NAME, "uid": "2",
                        "labels": {"app.kubernetes.io/managed-by": webhook::NAME}}, "webhooks": []}),
                ),
                ("DELETE", _) => {
                    Reply::Document(200, "", json!({"kind": "Status", "status": "Success"}))
                }
                _ => refusal(404, "NotFound", "not found"),
            }
        });
        let requests = Requests::new(of_tests(server.url()));
        let deadline = Deadline::after(Duration::from_secs(60));
        let work = Deleting { requests: &requests, deadline, namespace: "opensdn-system" };
        let mut ui = Ui::plain(anstream::ColorChoice::Never, None::<crate::output::DocumentFormat>);
        work.delete(&[manager()], &mut ui).await.unwrap();
        let deletions = server.seen().into_iter().filter(|one| one.starts_with("DELETE"));
        let deletions: Vec<String> = deletions.collect();
        assert_eq!(deletions.len(), 3, "{deletions:?}");
        assert!(deletions[1].contains("validatingwebhookconfigurations"), "{deletions:?}");
    }

    #[test]
    fn only_a_refusal_by_an_entry_of_ours_is_one() {
        let api = |message: &str| {
            let status: kube::core::Status =
                serde_json::from_value(json!({"message": message, "code": 403})).unwrap();
            kube::Error::Api(Box::new(status))
        };
        assert!(is_denied_by_ours(&api(DENIAL)));
        for other in [
            "admission webhook \"policy.example.com\" denied the request: no",
            "admission webhook \"ours.validate.opensdn.io\" does not answer",
            "managers is forbidden",
        ] {
            assert!(!is_denied_by_ours(&api(other)), "{other}");
        }
    }
}
