//! The requests of `upgrade`: the only file below it that reads or writes a cluster. What is written is the spec of an
//! Upgrade; images are the operator's to set.

use futures::future::try_join_all;
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, ApiResource, DeleteParams, GroupVersionKind, LogParams, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::{Client, CustomResourceExt as _, Error, ResourceExt as _};
use opensdn_crds::component::Component;
use opensdn_crds::upgrade::Upgrade;
use opensdn_crds::{TUNGSTEN_GROUP, VERSION};
use serde_json::{Value, json};

use super::last_lines::{BYTES, Failing, LINES};
use super::world::{self, World};
use crate::clients::{is_absent, unanswered};
use crate::exit::{Exit, Failure};
use crate::install::object::MANAGER;
use crate::install::requests::Apply;
use crate::live::Live;
use crate::snapshot::{namespace, text};
use crate::status::TYPE;

/// The longest name of a user that an Upgrade takes.
const MOST_USER: usize = 256;

/// A namespace of a cluster.
pub(crate) struct Requests {
    client: Client,
    live: Live,
    api: Api<Upgrade>,
    /// Its name.
    pub(crate) namespace: String,
}

/// What became of a change.
pub(crate) enum Patched {
    /// It is stored so.
    Stored,
    /// Another one has changed it since it was read.
    Conflict,
}

impl Requests {
    /// By this client.
    pub(crate) fn new(client: Client, namespace: String) -> Self {
        let (live, api) = (Live::new(client.clone()), Api::namespaced(client.clone(), &namespace));
        Self { client, live, api, namespace }
    }

    /// All Upgrades of the namespace.
    ///
    /// # Errors
    /// The cluster does not serve them, or does not answer, or not this user.
    pub(crate) async fn upgrades(&self) -> Result<Vec<Upgrade>, Failure> {
        let all = self.list(&Upgrade::api_resource(), "").await?;
        all.into_iter().map(readable).collect()
    }

    /// An Upgrade, if it is there.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn upgrade(&self, name: &str) -> Result<Option<Upgrade>, Failure> {
        match self.api.get(name).await {
            Ok(upgrade) => Ok(Some(upgrade)),
            // Not what an API server that starts says of a path that it does not serve yet.
            Err(Error::Api(status)) if status.reason == "NotFound" => Ok(None),
            Err(error) => Err(unanswered(&format!("read the Upgrade {name}"), &error)),
        }
    }

    /// Makes it.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn create(&self, upgrade: &Upgrade, apply: Apply) -> Result<Upgrade, Failure> {
        let params =
            PostParams { dry_run: apply == Apply::DryRun, field_manager: Some(MANAGER.to_owned()) };
        self.api.create(&params, upgrade).await.map_err(|error| {
            let name = upgrade.name_any();
            if matches!(&error, Error::Api(status) if status.reason == "AlreadyExists") {
                let message = format!("another user has made the Upgrade {name} meanwhile");
                let hint = "the same command attaches to it, if it asks for the same";
                return Failure::new(Exit::Refused, "name-taken", message, hint);
            }
            refused(unanswered(&format!("create the Upgrade {name}"), &error), &error)
        })
    }

    /// Changes the spec of the Upgrade, if it is still as it was read.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn change(
        &self,
        upgrade: &Upgrade,
        spec: &Value,
        apply: Apply,
    ) -> Result<Patched, Failure> {
        let name = upgrade.name_any();
        let version = &upgrade.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec});
        let params = PatchParams {
            dry_run: apply == Apply::DryRun,
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        match self.api.patch(&name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => Ok(Patched::Stored),
            Err(Error::Api(status)) if status.code == 409 => Ok(Patched::Conflict),
            Err(error) => {
                Err(refused(unanswered(&format!("change the Upgrade {name}"), &error), &error))
            }
        }
    }

    /// Deletes the Upgrade, if it is still as it was read.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer.
    pub(crate) async fn delete(&self, upgrade: &Upgrade) -> Result<(), Failure> {
        let preconditions = Preconditions {
            uid: upgrade.metadata.uid.clone(),
            resource_version: upgrade.metadata.resource_version.clone(),
        };
        let params = DeleteParams::background().preconditions(preconditions);
        let name = upgrade.name_any();
        match self.api.delete(&name, &params).await {
            Ok(_) => Ok(()),
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            Err(Error::Api(status)) if status.code == 409 => {
                let message = format!("the Upgrade {name} has changed meanwhile");
                Err(Failure::new(Exit::Refused, "changed", message, "the same command looks again"))
            }
            Err(error) => Err(unanswered(&format!("delete the Upgrade {name}"), &error)),
        }
    }

    /// What the API server calls this user; nothing where it does not say.
    pub(crate) async fn user(&self) -> Option<String> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes());
        // Who asked is for the report, and no reason not to upgrade.
        let answer = self.client.request::<Value>(request.ok()?).await.ok()?;
        let name: String =
            text(&answer, "/status/userInfo/username").chars().take(MOST_USER).collect();
        Some(name).filter(|name| !name.is_empty())
    }

    /// A Manager with its services.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn world(&self, manager: Value) -> Result<World, Failure> {
        let lists = world::kinds(&manager).into_iter().map(async |facts: &'static Component| {
            let found = self.list(&resource(facts.kind, facts.plural), "").await;
            found.map(|objects| (facts, objects))
        });
        let objects = try_join_all(lists).await?;
        let pods = self.pods(TYPE).await?;
        Ok(World::of(manager, &objects, &pods))
    }

    /// The pods with these labels.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn pods(&self, labels: &str) -> Result<Vec<Value>, Failure> {
        self.list(&ApiResource::erase::<Pod>(&()), labels).await
    }

    /// What a container wrote last.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user, or its node does not.
    pub(crate) async fn last_lines(&self, of: &Failing) -> Result<String, Error> {
        let params = LogParams {
            container: Some(of.container.clone()),
            previous: of.is_of_before,
            tail_lines: Some(LINES),
            limit_bytes: Some(BYTES),
            ..LogParams::default()
        };
        Api::<Pod>::namespaced(self.client.clone(), &self.namespace).logs(&of.pod, &params).await
    }

    /// The Manager that is meant.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user; or there is no such Manager.
    pub(crate) async fn manager(&self, wanted: Option<&str>) -> Result<Value, Failure> {
        let managers = resource("Manager", "managers");
        let found = self.list(&managers, "").await?;
        if !found.is_empty() {
            return world::pick(found, wanted, &self.namespace);
        }
        // Only a hint: who may not list all may be in the right namespace.
        let all = self.live.selected(&managers, None, "").await.unwrap_or_default();
        let mut namespaces: Vec<&str> = all.iter().map(namespace).collect();
        namespaces.dedup();
        world::pick(found, wanted, &self.namespace).map_err(|failure| match namespaces.as_slice() {
            [] => failure,
            namespaces => Failure {
                hint: format!(
                    "there are Managers in other namespaces; -n with one of: {}",
                    namespaces.join(", ")
                ),
                ..failure
            },
        })
    }

    async fn list(&self, resource: &ApiResource, labels: &str) -> Result<Vec<Value>, Failure> {
        let namespace = &self.namespace;
        let listed = self.live.selected(resource, Some(namespace), labels).await;
        listed.map_err(|error| match &error {
            Error::Api(status) if is_absent(status) => not_served(&resource.kind),
            _ => unanswered(
                &format!("list {} in the namespace {namespace}", resource.plural),
                &error,
            ),
        })
    }
}

fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(TUNGSTEN_GROUP, VERSION, kind), plural)
}

fn not_served(kind: &str) -> Failure {
    let message = format!(
        "this cluster does not serve the kind {kind}: the CRDs of OpenSDN are missing or older"
    );
    let hint =
        "kubectl opensdn install brings them up to date; with Helm, apply its folder crds first";
    Failure::new(Exit::Unreachable, "not-served", message, hint)
}

/// What the rules of the kind or a policy refuse is refused, and was asked.
fn refused(failure: Failure, error: &Error) -> Failure {
    let is_invalid = matches!(error, Error::Api(status) if status.code == 422);
    if !is_invalid && failure.code != "refused-by-admission" {
        return failure;
    }
    Failure { exit: Exit::Refused, ..failure }
}

fn readable(object: Value) -> Result<Upgrade, Failure> {
    let name = crate::snapshot::name(&object).to_owned();
    serde_json::from_value(object).map_err(|error| {
        let message = format!("the Upgrade {name} cannot be read");
        let hint =
            "a newer OpenSDN may have written it: take its plugin, see kubectl opensdn version";
        Failure::new(Exit::Unreachable, "unreadable", message, hint).because(&error)
    })
}
