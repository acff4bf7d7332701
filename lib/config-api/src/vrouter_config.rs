//! The object global-vrouter-config: the rows of link-local services, the port pools of fabric SNAT, annotations. It is
//! never created: the Config API takes a second one, which no agent reads. What becomes of the rows is in `edit`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::client::{ConfigApi, Error};
use crate::link_local::{NotRows, Rows};
use crate::operations::{Element, Version};
use crate::pairs;

pub(crate) const KIND: &str = "global-vrouter-config";
pub(crate) const NAME: [&str; 2] =
    ["default-global-system-config", "default-global-vrouter-config"];
const ROWS: &str = "linklocal_services";
const POOLS: &str = "port_translation_pools";
pub(crate) const ANNOTATIONS: &str = "annotations";
/// So many removals of the pools at most: the client repeats no write that may have been done.
const ATTEMPTS: u32 = 3;

/// As it was read.
#[derive(Clone, Debug)]
pub struct VrouterConfig {
    /// Its UUID.
    pub uuid: String,
    /// Its link-local services.
    pub rows: Rows,
    /// Its port pools, as they are written.
    pub pools: Vec<Value>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its version.
    pub etag: String,
}

/// Why it is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The Config API does not give it.
    #[error(transparent)]
    Api(#[from] Error),
    /// Its rows are none.
    #[error(transparent)]
    Rows(#[from] NotRows),
}

/// Reads it.
///
/// # Errors
/// It is not there, or its rows are none.
pub async fn read(api: &ConfigApi) -> Result<VrouterConfig, ReadError> {
    let uuid = api.id_of(KIND, &NAME).await?.ok_or(Error::NoVrouterConfig)?;
    read_by_id(api, uuid).await
}

/// Reads it; where what is asked for is not in it, a second time after `confirm`: a writer that replaces a list or a map
/// removes it first, and only what is missing twice is missing.
///
/// # Errors
/// As of [`read`].
pub async fn read_confirmed(
    api: &ConfigApi,
    confirm: Duration,
    is_there: impl FnOnce(&VrouterConfig) -> bool,
) -> Result<VrouterConfig, ReadError> {
    let first = read(api).await?;
    if is_there(&first) {
        return Ok(first);
    }
    tokio::time::sleep(confirm).await;
    read_by_id(api, first.uuid).await
}

pub(crate) async fn read_by_id(api: &ConfigApi, uuid: String) -> Result<VrouterConfig, ReadError> {
    let object = api.object(KIND, &uuid, &[ROWS, POOLS, ANNOTATIONS]).await?;
    let object = object.ok_or(Error::NoVrouterConfig)?;
    let field = |name: &str| object.fields.get(name);
    Ok(VrouterConfig {
        uuid,
        rows: Rows::read(field(ROWS))?,
        pools: pools(field(POOLS)),
        annotations: pairs::read(field(ANNOTATIONS)),
        etag: object.etag,
    })
}

/// Whether what was read is what is stored now.
pub(crate) async fn version(api: &ConfigApi, read: &VrouterConfig) -> Result<Version, Error> {
    api.version(KIND, &read.uuid, &read.etag).await
}

/// Whether that version of it is still current.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn is_current(api: &ConfigApi, uuid: &str, version: &str) -> Result<bool, Error> {
    Ok(api.version(KIND, uuid, version).await? == Version::Newest)
}

/// Replaces all rows.
pub(crate) async fn write_rows(api: &ConfigApi, uuid: &str, rows: &Rows) -> Result<(), Error> {
    let properties: Map<String, Value> = [(ROWS.to_owned(), rows.json())].into_iter().collect();
    api.put(KIND, uuid, properties).await
}

/// Sets one annotation.
pub(crate) async fn annotate(
    api: &ConfigApi,
    uuid: &str,
    name: &str,
    text: &str,
) -> Result<(), Error> {
    let value = json!({"key": name, "value": text});
    let element = Element::Put { field: ANNOTATIONS, operation: "set", position: name, value };
    api.update(uuid, &[element]).await
}

/// Removes one annotation.
pub(crate) async fn remove_annotation(
    api: &ConfigApi,
    uuid: &str,
    name: &str,
) -> Result<(), Error> {
    api.update(uuid, &[Element::Delete { field: ANNOTATIONS, position: name }]).await
}

/// What was done about the port pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnsuredPools {
    /// What was missing has been added.
    Added,
    /// Both protocols have one. They stay as they are.
    Present,
}

/// Adds the port pools that fabric SNAT needs, of each protocol that has none: the numbers of kube-manager, which writes its
/// own over any others when it starts. `confirm` is how long to wait until none are taken for none: a writer that replaces
/// them removes them first.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn ensure_pools(api: &ConfigApi, confirm: Duration) -> Result<EnsuredPools, ReadError> {
    let read = read_confirmed(api, confirm, |config| !config.pools.is_empty()).await?;
    let there: Vec<&str> = read.pools.iter().filter_map(protocol_of).collect();
    let missing = our_pools()
        .into_iter()
        .filter(|pool| protocol_of(pool).is_some_and(|protocol| !there.contains(&protocol)));
    let missing: Vec<Value> = missing.collect();
    if missing.is_empty() {
        return Ok(EnsuredPools::Present);
    }
    // By position, so that adding them twice does not make four.
    let positions = (read.pools.len()..).map(|position| position.to_string());
    let added: Vec<(String, Value)> = positions.zip(missing).collect();
    let add = added.iter().map(|(position, value)| Element::Put {
        field: POOLS,
        operation: "add",
        position,
        value: value.clone(),
    });
    api.update(&read.uuid, &add.collect::<Vec<_>>()).await?;
    Ok(EnsuredPools::Added)
}

/// `tcp` or `udp`, whose flows agents translate by this pool; none where it is of another protocol, or has no ports.
#[must_use]
pub fn protocol_of(pool: &Value) -> Option<&'static str> {
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64(),
    };
    let port = |name: &str| number(pool.get("port_range")?.get(name)?);
    let has_range = port("start_port")
        .zip(port("end_port"))
        .is_some_and(|(start, end)| start > 0 && start <= end);
    let has_count = pool.get("port_count").and_then(number).is_some_and(|count| count > 0);
    if !has_range && !has_count {
        return None;
    }
    match pool.get("protocol")?.as_str()?.to_ascii_lowercase().as_str() {
        "tcp" | "6" => Some("tcp"),
        "udp" | "17" => Some("udp"),
        _ => None,
    }
}

/// Whether there are pools that are not those of kube-manager.
#[must_use]
pub fn are_of_others(pools: &[Value]) -> bool {
    !pools.is_empty() && pools.iter().map(plain).collect::<Vec<Value>>() != our_pools()
}

/// Takes the port pools back, where they are as [`ensure_pools`] adds them; `confirm` is that of it.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn remove_pools(api: &ConfigApi, confirm: Duration) -> Result<RemovedPools, ReadError> {
    let mut read = read_confirmed(api, confirm, |config| !config.pools.is_empty()).await?;
    if read.pools.is_empty() {
        return Ok(RemovedPools::Removed);
    }
    let mut failed = None;
    for _ in 0..ATTEMPTS {
        if are_of_others(&read.pools) {
            return Ok(RemovedPools::Kept);
        }
        let none = json!({"port_translation_pool": []});
        let properties: Map<String, Value> = [(POOLS.to_owned(), none)].into_iter().collect();
        failed = match api.put(KIND, &read.uuid, properties).await {
            Ok(()) => None,
            // It may have been done all the same.
            Err(error) if error.is_passing() => Some(error),
            Err(error) => return Err(error.into()),
        };
        read = read_by_id(api, read.uuid).await?;
        if read.pools.is_empty() {
            return Ok(RemovedPools::Removed);
        }
    }
    failed.map_or(Ok(RemovedPools::Kept), |error| Err(error.into()))
}

/// What became of the port pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovedPools {
    /// They are gone.
    Removed,
    /// They are not as we have added them.
    Kept,
}

fn our_pools() -> [Value; 2] {
    [("tcp", 56000, 57023), ("udp", 57024, 58047)].map(|(protocol, start, end)| {
        json!({"protocol": protocol, "port_range": {"start_port": start, "end_port": end}})
    })
}

/// Without what is null: others write the field that they do not use.
fn plain(pool: &Value) -> Value {
    let fields = pool.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>().into()
}

fn pools(property: Option<&Value>) -> Vec<Value> {
    let list = property.map(|property| property.get("port_translation_pool").unwrap_or(property));
    list.and_then(Value::as_array).cloned().unwrap_or_default()
}
