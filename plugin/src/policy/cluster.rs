//! The objects of a living cluster that a policy's look-ups are about, read once. Nothing is ever
//! written. Deliberately not here: which cluster it is (`clients.rs`).

use std::collections::BTreeSet;

use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::{Api, Client, discovery};
use opensdn_policy_host::Index;
use serde_json::Value;

use crate::clients::unanswered;
use crate::exit::{Exit, Failure};

/// Objects in one answer.
const PAGE: u32 = 500;

/// All objects of the kinds that the indexes are about.
///
/// # Errors
/// The cluster does not answer, or not to this user.
pub(crate) async fn objects(client: &Client, indexes: &[Index]) -> Result<Vec<Value>, Failure> {
    let kinds: BTreeSet<(&str, &str)> =
        indexes.iter().map(|index| (index.group.as_str(), index.kind.as_str())).collect();
    let mut objects = Vec::new();
    for (group, kind) in kinds {
        // A kind that the cluster does not have, has no objects: the webhook says so too.
        if let Some(resource) = resource(client, group, kind).await? {
            list(client, &resource, &mut objects).await?;
        }
    }
    Ok(objects)
}

async fn resource(
    client: &Client,
    group: &str,
    kind: &str,
) -> Result<Option<ApiResource>, Failure> {
    let groups = client
        .list_api_groups()
        .await
        .map_err(|error| unanswered("ask the cluster which kinds it has", &error))?;
    if !group.is_empty() && !groups.groups.iter().any(|served| served.name == group) {
        return Ok(None);
    }
    let served = discovery::group(client, group)
        .await
        .map_err(|error| unanswered(&format!("ask the cluster for the group {group:?}"), &error))?;
    Ok(served.recommended_kind(kind).map(|(resource, _)| resource))
}

async fn list(
    client: &Client,
    resource: &ApiResource,
    objects: &mut Vec<Value>,
) -> Result<(), Failure> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api
            .list(&params)
            .await
            .map_err(|error| unanswered(&format!("list {}", resource.plural), &error))?;
        for mut object in page.items {
            // Lists leave out what their own type says already.
            object.types.get_or_insert_with(|| kube::core::TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            });
            objects.push(serde_json::to_value(object).map_err(|error| {
                let message = format!("the cluster's {} cannot be read", resource.plural);
                Failure::new(Exit::Unreachable, "bad-answer", message, "").because(&error)
            })?);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}
