//! LinkLocalServices for tests: objects that hold an address, and their condition when another
//! has it. Deliberately not here: who creates them, and how (`contention`, `steady_load`).

use kube::Api;
use opensdn_crds::link_local_service::LinkLocalService;
use serde_json::{Value, json};

/// One at port 80 of this address.
///
/// # Errors
/// The metadata are none.
pub fn service(metadata: &Value, ip: &str) -> serde_json::Result<LinkLocalService> {
    serde_json::from_value(json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": metadata,
        "spec": {"ip": ip, "port": 80, "fabric": {"addresses": ["10.1.1.1"], "port": 8080}},
    }))
}

/// What its condition about conflicts says.
///
/// # Errors
/// The API server does not give the object.
pub async fn reported(
    services: &Api<LinkLocalService>,
    name: &str,
) -> kube::Result<Option<String>> {
    let status = services.get(name).await?.status.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let ours = conditions.into_iter().find(|condition| condition.type_ == "UniqueConflict");
    Ok(ours.and_then(|condition| condition.message))
}
