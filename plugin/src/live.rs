//! A live cluster, read only: which kinds it serves, their objects, one object, the claims that are
//! taken. Which cluster it is says `clients.rs`.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::TypeMeta;
use kube::discovery::{ApiResource, Discovery, Scope};
use kube::{Client, Error};
use opensdn_crds::OPENSDN_GROUP;
use opensdn_crds::unique_claim::{UniqueClaim, UniqueClaimSpec};
use opensdn_validate::{Answer, Cluster, Listed, ObjectName, Page};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::clients::unanswered;
use crate::exit::Failure;

/// Objects a page: what kubectl asks for.
const PAGE: u32 = 500;

/// A live cluster.
pub(crate) struct Live {
    client: Client,
    /// What it serves, asked once.
    discovery: OnceCell<Discovery>,
}

impl Live {
    /// Asks with this client.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, discovery: OnceCell::new() }
    }

    /// Every object of the kind; nothing where the cluster does not serve it.
    ///
    /// # Errors
    /// The cluster does not answer, or (within) not this list.
    pub(crate) async fn objects(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<Option<Result<Vec<Value>, Error>>, Failure> {
        let Some((resource, scope)) = self.resource(group, kind).await? else { return Ok(None) };
        let namespace = namespace.filter(|_| scope == Scope::Namespaced);
        Ok(Some(self.selected(&resource, namespace, "").await))
    }

    async fn discovery(&self) -> Result<&Discovery, Failure> {
        let ask = || Discovery::new(self.client.clone()).run_aggregated();
        let discovery = self.discovery.get_or_try_init(ask).await;
        discovery.map_err(|error| unanswered("ask the cluster which kinds it serves", &error))
    }

    pub(crate) async fn resource(
        &self,
        group: &str,
        kind: &str,
    ) -> Result<Option<(ApiResource, Scope)>, Failure> {
        let discovery = self.discovery().await?;
        let found = discovery.get(group).and_then(|group| group.recommended_kind(kind));
        Ok(found.map(|(resource, capabilities)| (resource, capabilities.scope)))
    }

    /// The objects of the kind with these labels, in one namespace or in all.
    ///
    /// # Errors
    /// The cluster does not answer, or not this list.
    pub(crate) async fn selected(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Value>, Error> {
        pages(&self.api(resource, namespace), resource, ListParams::default().labels(labels)).await
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }

    /// The ConfigMap, if there is one.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ConfigMap>, Error> {
        Api::namespaced(self.client.clone(), namespace).get_opt(name).await
    }

    async fn stored(&self, object: ObjectName<'_>) -> Result<Option<Value>, Failure> {
        let ObjectName { group, kind, namespace, name } = object;
        let served = self.resource(group, kind).await?;
        let Some((resource, scope)) = served.filter(|_| !name.is_empty()) else { return Ok(None) };
        let client = self.client.clone();
        let api: Api<DynamicObject> = match (scope, namespace) {
            (Scope::Namespaced, "") => Api::default_namespaced_with(client, &resource),
            (Scope::Namespaced, namespace) => Api::namespaced_with(client, namespace, &resource),
            (Scope::Cluster, _) => Api::all_with(client, &resource),
        };
        let doing = format!("read {kind} {name}");
        let found = api.get_opt(name).await.map_err(|error| unanswered(&doing, &error))?;
        Ok(found.and_then(|object| serde_json::to_value(object).ok()))
    }

    async fn taken(&self) -> Result<Vec<UniqueClaimSpec>, Failure> {
        if self.resource(OPENSDN_GROUP, "UniqueClaim").await?.is_none() {
            return Ok(Vec::new());
        }
        let api: Api<UniqueClaim> = Api::all(self.client.clone());
        let listed = api.list(&ListParams::default()).await;
        let listed = listed.map_err(|error| unanswered("list UniqueClaims", &error))?;
        Ok(listed.into_iter().map(|claim| claim.spec).collect())
    }
}

impl Cluster for Live {
    fn page<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
        after: Option<String>,
    ) -> Answer<'a, Page> {
        Box::pin(async move {
            let Some((resource, scope)) = self.resource(group, kind).await? else {
                return Ok(Listed::NotServed.into());
            };
            let namespace = namespace.filter(|_| scope == Scope::Namespaced);
            let after = after.filter(|after| !after.is_empty());
            let continues = after.is_some();
            let mut params = ListParams::default().limit(PAGE);
            params.continue_token = after;
            match page(&self.api(&resource, namespace), &resource, &params).await {
                Ok((objects, next)) => Ok(Page { listed: Listed::Objects(objects), next }),
                Err(Error::Api(status)) if status.code == 403 => {
                    Ok(Listed::Forbidden(status.message.clone()).into())
                }
                // To judge the page before took longer than the API server keeps a list, some minutes.
                Err(Error::Api(status)) if status.code == 410 && continues => {
                    Ok(Page { listed: Listed::Objects(Vec::new()), next: Some(String::new()) })
                }
                Err(error) => Err(unanswered(&format!("list {kind}"), &error).into()),
            }
        })
    }

    fn kinds<'a>(&'a self, group: &'a str) -> Answer<'a, Vec<String>> {
        Box::pin(async move {
            let discovery = self.discovery().await?;
            let group = discovery.get(group);
            let kinds = group.map(|group| group.recommended_resources()).unwrap_or_default();
            Ok(kinds.into_iter().map(|(resource, _)| resource.kind).collect())
        })
    }

    fn get<'a>(&'a self, object: ObjectName<'a>) -> Answer<'a, Option<Value>> {
        Box::pin(async move { Ok(self.stored(object).await?) })
    }

    fn claims(&self) -> Answer<'_, Vec<UniqueClaimSpec>> {
        Box::pin(async move { Ok(self.taken().await?) })
    }
}

async fn pages(
    api: &Api<DynamicObject>,
    resource: &ApiResource,
    params: ListParams,
) -> Result<Vec<Value>, Error> {
    let mut params = params.limit(PAGE);
    let mut objects = Vec::new();
    loop {
        let (more, next) = page(api, resource, &params).await?;
        objects.extend(more);
        match next {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

/// Objects, and by what the list is continued where there are more.
async fn page(
    api: &Api<DynamicObject>,
    resource: &ApiResource,
    params: &ListParams,
) -> Result<(Vec<Value>, Option<String>), Error> {
    let page = api.list(params).await?;
    let mut objects = Vec::new();
    for mut object in page.items {
        // The items of a list do not repeat what they are.
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        objects.push(serde_json::to_value(object).map_err(Error::SerdeError)?);
    }
    Ok((objects, page.metadata.continue_.filter(|token| !token.is_empty())))
}
