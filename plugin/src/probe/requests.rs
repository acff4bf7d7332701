//! The requests of a run: the only ones of `check` and `nested verify` that write.

use http::{Method, Request};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::objects::LABEL;
use crate::clients::unanswered;
use crate::snapshot::ask::Asker;
use crate::snapshot::{Read, list, name, text};

/// One API server.
pub(super) struct Requests {
    client: Client,
    asker: Asker,
}

/// What of a namespace is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It is there, or goes away at the moment.
    Namespace,
    /// Nothing.
    Nothing,
}

impl Requests {
    pub(super) fn new(client: &Client) -> Self {
        Self { client: client.clone(), asker: Asker::new(client.clone()) }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, Error> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(Error::HttpError)?;
        self.client.request(request).await
    }

    async fn create(&self, path: &str, object: &Value) -> Result<Value, String> {
        let doing = format!("create {} {}", text(object, "/kind"), name(object));
        self.send(Method::POST, path, object).await.map_err(|error| words(&doing, &error))
    }

    /// Its UID.
    pub(super) async fn create_namespace(&self, object: &Value) -> Result<String, String> {
        let made = self.create("/api/v1/namespaces", object).await?;
        Ok(text(&made, "/metadata/uid").to_owned())
    }

    pub(super) async fn create_pod(&self, namespace: &str, object: &Value) -> Result<(), String> {
        self.create(&format!("/api/v1/namespaces/{namespace}/pods"), object).await.map(drop)
    }

    /// Deletes it, if it is there.
    pub(super) async fn delete_pod(&self, namespace: &str, name: &str) -> Result<(), String> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        match self.send(Method::DELETE, &path, &options).await {
            Ok(_) => Ok(()),
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(words(&format!("delete Pod {name}"), &error)),
        }
    }

    /// Those with a label.
    pub(super) async fn selected_pods(
        &self,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Value>, String> {
        let selector = selector.replace('/', "%2F").replace('=', "%3D");
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}");
        match self.asker.list(&path).await {
            Read::Known(pods) => Ok(pods),
            Read::Absent => Ok(Vec::new()),
            Read::Unknown(why) => Err(why),
        }
    }

    /// The Service as it is stored, with its address.
    pub(super) async fn create_service(
        &self,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, String> {
        self.create(&format!("/api/v1/namespaces/{namespace}/services"), object).await
    }

    /// How many addresses a Service has behind it.
    pub(super) async fn endpoints(&self, namespace: &str, service: &str) -> Result<usize, String> {
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
        );
        match self.asker.list(&path).await {
            Read::Known(slices) => {
                Ok(slices.iter().flat_map(|slice| list(slice, "/endpoints")).count())
            }
            Read::Absent => Ok(0),
            Read::Unknown(why) => Err(why),
        }
    }

    pub(super) async fn create_daemon_set(
        &self,
        namespace: &str,
        object: &Value,
    ) -> Result<(), String> {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/daemonsets");
        self.create(&path, object).await.map(drop)
    }

    /// Deletes it; what is in it goes with it.
    pub(super) async fn delete_namespace(&self, namespace: &str) -> Result<(), String> {
        let path = format!("/api/v1/namespaces/{namespace}");
        let options =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        match self.send(Method::DELETE, &path, &options).await {
            Ok(_) => Ok(()),
            // Gone, or going already.
            Err(Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
            Err(error) => Err(words(&format!("delete Namespace {namespace}"), &error)),
        }
    }

    pub(super) async fn left(&self, namespace: &str) -> Result<Left, String> {
        match self.asker.get(&format!("/api/v1/namespaces/{namespace}")).await {
            Read::Known(_) => Ok(Left::Namespace),
            Read::Absent => Ok(Left::Nothing),
            Read::Unknown(why) => Err(why),
        }
    }

    /// The namespaces of all runs.
    pub(super) async fn namespaces(&self) -> Read<Vec<Value>> {
        let path = format!("/api/v1/namespaces?labelSelector={}", LABEL.replace('/', "%2F"));
        self.asker.list(&path).await
    }

    pub(super) async fn pods(&self, namespace: &str) -> Result<Vec<Value>, String> {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        match self.asker.list(&path).await {
            Read::Known(pods) => Ok(pods),
            Read::Absent => Ok(Vec::new()),
            Read::Unknown(why) => Err(why),
        }
    }

    /// Why pods are not made; nothing where events may not be read.
    pub(super) async fn events(&self, namespace: &str) -> Vec<Value> {
        let path = format!("/api/v1/namespaces/{namespace}/events");
        self.asker.list(&path).await.items().to_vec()
    }

    /// The first right that is missing: without it nothing is created.
    pub(super) async fn missing_right(&self, namespace: &str, by: &str) -> Option<String> {
        const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let of = |verb: &str, group: &str, resource: &str, subresource: &str, namespace: &str| {
            let attributes = json!({"verb": verb, "group": group, "resource": resource,
                "subresource": subresource, "namespace": namespace});
            let slash = if subresource.is_empty() { "" } else { "/" };
            (format!("{verb} {resource}{slash}{subresource}"), attributes)
        };
        let needed = [
            of("create", "", "namespaces", "", ""),
            of("get", "", "namespaces", "", ""),
            of("delete", "", "namespaces", "", ""),
            of("create", "apps", "daemonsets", "", namespace),
            of("list", "", "pods", "", namespace),
            of("get", "", "pods", "log", namespace),
        ];
        for (right, attributes) in needed {
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes}});
            match self.asker.review(REVIEW, &review).await {
                Read::Known(said)
                    if said.pointer("/status/allowed").and_then(Value::as_bool) == Some(true) => {}
                Read::Known(_) | Read::Absent => {
                    return Some(format!("you may not {right}, which {by} needs"));
                }
                Read::Unknown(why) => {
                    return Some(format!("whether you may {right} is not known: {why}"));
                }
            }
        }
        None
    }
}

fn words(doing: &str, error: &Error) -> String {
    let failure = unanswered(doing, error);
    format!("{}: {}", failure.message, failure.causes.join(": "))
}
