//! Whether the API server would create a pod as components are: one is created by dry run, which stores nothing. What
//! refuses any pod, as a quota or an account that is missing, is not what is asked for: a pod that needs nothing of its
//! node is tried beside it.

use std::collections::BTreeMap;

use http::{Request, StatusCode};
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::checks::privileged::LetIn;
use crate::checks::world::World;
use crate::clients::why;
use crate::install::object::MANAGER;
use crate::probe::image::image;
use crate::snapshot::{Read, name};

/// What came of it in each namespace of components that there is.
pub(crate) async fn let_in(client: &Client, world: &World) -> BTreeMap<String, LetIn> {
    let mut found = BTreeMap::new();
    let there: Vec<&str> = world.namespaces.items().iter().map(name).collect();
    let operator = world.deployments.get(opensdn_deploy::names::operator::NAME);
    let image = image(operator.and_then(Read::known), world.values.as_ref()).unwrap_or_default();
    let wanted = world.component_namespaces();
    for namespace in wanted.into_iter().filter(|one| there.contains(&one.as_str())) {
        let came = of(client, &namespace, &image).await;
        found.insert(namespace, came);
    }
    found
}

async fn of(client: &Client, namespace: &str, image: &str) -> LetIn {
    let why = match created(client, namespace, &privileged(image)).await {
        Ok(()) => return LetIn::Yes,
        Err(Refusal::Other(why)) => return LetIn::Unknown(why),
        Err(Refusal::OfPod(why)) => why,
    };
    match created(client, namespace, &plain(image)).await {
        Ok(()) => LetIn::No(why),
        Err(Refusal::Other(_) | Refusal::OfPod(_)) => LetIn::Unknown(why),
    }
}

/// Why it would not be created.
enum Refusal {
    /// The API server, or a policy or webhook, refuses what is in it.
    OfPod(String),
    /// Anything else.
    Other(String),
}

fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldManager={MANAGER}")
}

async fn created(client: &Client, namespace: &str, pod: &Value) -> Result<(), Refusal> {
    let request =
        Request::post(path(namespace)).header(http::header::CONTENT_TYPE, "application/json");
    let request = request.body(pod.to_string().into_bytes());
    let request = request.map_err(|error| Refusal::Other(error.to_string()))?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) => {
            // As webhooks answer, and policies.
            let refusals =
                [StatusCode::BAD_REQUEST, StatusCode::FORBIDDEN, StatusCode::UNPROCESSABLE_ENTITY];
            let is_refusal = refusals.iter().any(|code| code.as_u16() == status.code);
            let why = why(&Error::Api(status));
            Err(if is_refusal { Refusal::OfPod(why) } else { Refusal::Other(why) })
        }
        Err(error) => Err(Refusal::Other(why(&error))),
    }
}

/// With what vrouters, and the others in part, have of their node.
fn privileged(image: &str) -> Value {
    let mounts = json!([{"name": "node", "mountPath": "/host/var/lib", "readOnly": true}]);
    let mut pod = pod(image, json!({"privileged": true, "runAsUser": 0}));
    let volumes = json!([{"name": "node", "hostPath": {"path": "/var/lib", "type": "Directory"}}]);
    let mut set = |pointer: &str, name: &str, value: Value| {
        if let Some(Value::Object(fields)) = pod.pointer_mut(pointer) {
            fields.insert(name.to_owned(), value);
        }
    };
    set("/spec", "hostNetwork", json!(true));
    set("/spec", "volumes", volumes);
    set("/spec/containers/0", "volumeMounts", mounts);
    pod
}

/// With nothing of it, as the strictest level of Pod Security has it.
fn plain(image: &str) -> Value {
    pod(
        image,
        json!({"runAsUser": 65_532, "runAsNonRoot": true, "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}),
    )
}

fn pod(image: &str, security: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "opensdn-check-"},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "check", "image": image,
            "securityContext": security,
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}}}]}})
}

#[cfg(test)]
mod tests {
    use kube::Config;

    use super::*;
    use crate::fake_api_server::{FakeApiServer, Reply, refusal};

    /// What is said where the API server answers so to the first pod and to the second.
    async fn said(first: Reply, second: Reply) -> (LetIn, Vec<String>) {
        let answers = std::sync::Mutex::new(vec![second, first]);
        let server = FakeApiServer::start(move |_, _| {
            answers.lock().unwrap().pop().unwrap_or(Reply::Text(500, "none is left"))
        });
        let mut config = Config::new(server.url().parse().unwrap());
        (config.proxy_url, config.default_retry) = (None, false);
        let said = of(&Client::try_from(config).unwrap(), "tf", "image").await;
        (said, server.seen())
    }

    fn taken() -> Reply {
        Reply::Document(201, "", json!({"kind": "Pod"}))
    }

    fn forbidden(message: &str) -> Reply {
        refusal(403, "Forbidden", message)
    }

    #[tokio::test]
    async fn nothing_is_stored_and_what_is_created_is_let_in() {
        let (said, seen) = said(taken(), taken()).await;
        assert_eq!(said, LetIn::Yes);
        assert_eq!(seen.len(), 1);
        assert!(path("tf").contains("?dryRun=All&"));
    }

    #[tokio::test]
    async fn what_is_refused_for_what_it_has_of_its_node_is_not_let_in() {
        let (said, _) = said(forbidden("violates PodSecurity \"baseline:latest\""), taken()).await;
        assert!(matches!(&said, LetIn::No(why) if why.contains("baseline")), "{said:?}");
    }

    #[tokio::test]
    async fn what_refuses_any_pod_says_nothing_of_privileges() {
        let quota = || forbidden("exceeded quota: pods");
        let (said, _) = said(quota(), quota()).await;
        assert!(matches!(&said, LetIn::Unknown(why) if why.contains("quota")), "{said:?}");
    }

    #[tokio::test]
    async fn an_api_server_that_cannot_say_it_is_asked_once() {
        let (said, seen) =
            said(refusal(500, "InternalError", "failed calling webhook"), taken()).await;
        assert!(matches!(&said, LetIn::Unknown(why) if why.contains("webhook")), "{said:?}");
        assert_eq!(seen.len(), 1);
    }
}
