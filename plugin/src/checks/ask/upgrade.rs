//! Reads what only the checks before an upgrade need: the Managers with what a plan is made of, their Upgrades and their
//! certificates.

use futures::future::join_all;
use k8s_openapi::jiff::Timestamp;
use opensdn_crds::component::Component;
use opensdn_crds::upgrade::{Upgrade as Object, UpgradeSpec};
use serde_json::Value;

use crate::certificates::{self, assess};
use crate::checks::upgrade::{Planned, Upgrade};
use crate::snapshot::ask::Asker;
use crate::snapshot::{Read, name, namespace};
use crate::status::{TYPE, owner};
use crate::upgrade::world::{self, World};

const TF: &str = "/apis/tf.tungsten.io/v1alpha1";

/// Reads it, of one namespace or of all; `webhook` is the namespace of the webhook, whose certificate counts too.
pub(crate) async fn upgrade(
    asker: &Asker,
    version: &str,
    of: Option<&str>,
    webhook: &str,
) -> Upgrade {
    let within = of.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
    let managers = format!("{TF}/{within}managers");
    let upgrades = format!("/apis/opensdn.io/v1alpha1/{within}upgrades");
    let (managers, upgrades, certificates) = tokio::join!(
        asker.list(&managers),
        asker.list(&upgrades),
        certificates::ask::world(asker, of, webhook)
    );
    let managers = match managers {
        Read::Known(all) => {
            Read::Known(join_all(all.into_iter().map(|one| planned(asker, one, version))).await)
        }
        Read::Absent => Read::Absent,
        Read::Unknown(why) => Read::Unknown(why),
    };
    Upgrade {
        version: version.to_owned(),
        namespace: of.map(str::to_owned),
        managers,
        upgrades: typed(upgrades),
        certificates: assess(&certificates, Timestamp::now()),
    }
}

async fn planned(asker: &Asker, manager: Value, version: &str) -> Planned {
    let (place, name) = (namespace(&manager).to_owned(), name(&manager).to_owned());
    let lists = world::kinds(&manager).into_iter().map(|facts| objects(asker, facts, &place));
    let pods = format!("/api/v1/namespaces/{place}/pods?labelSelector={TYPE}");
    let (objects, pods) = tokio::join!(join_all(lists), asker.list(&pods));
    let objects: Result<Vec<_>, String> = objects.into_iter().collect();
    let (objects, pods) = match (objects, known(pods, "pods")) {
        (Ok(objects), Ok(pods)) => (objects, pods),
        (Err(why), _) | (_, Err(why)) => {
            return Planned { namespace: place, name, plan: Read::Unknown(why), pods: Vec::new() };
        }
    };
    let spec = UpgradeSpec {
        manager: name.clone(),
        version: Some(version.to_owned()),
        ..UpgradeSpec::default()
    };
    let world = World::of(manager, &objects, &pods);
    let is_of_service = |pod: &Value| {
        let of = owner(pod).map(|(facts, of)| format!("{}/{of}", facts.kind));
        of.is_some_and(|of| world.services.iter().any(|service| service.id == of))
    };
    let plan = world.plan(&spec);
    let pods = pods.into_iter().filter(is_of_service).collect();
    Planned { namespace: place, name, plan: Read::Known(plan), pods }
}

async fn objects(
    asker: &Asker,
    facts: &'static Component,
    place: &str,
) -> Result<(&'static Component, Vec<Value>), String> {
    let path = format!("{TF}/namespaces/{place}/{}", facts.plural);
    Ok((facts, known(asker.list(&path).await, facts.plural)?))
}

fn known(read: Read<Vec<Value>>, what: &str) -> Result<Vec<Value>, String> {
    match read {
        Read::Known(all) => Ok(all),
        Read::Absent => Err(format!("the cluster does not serve {what}: its CRDs are older")),
        Read::Unknown(why) => Err(format!("{what} may not be read: {why}")),
    }
}

fn typed(read: Read<Vec<Value>>) -> Read<Vec<Object>> {
    match read {
        Read::Known(all) => {
            let all: Result<_, _> = all.into_iter().map(serde_json::from_value).collect();
            all.map_or_else(
                |error: serde_json::Error| {
                    Read::Unknown(format!("an Upgrade of a newer release: {error}"))
                },
                Read::Known,
            )
        }
        Read::Absent => Read::Absent,
        Read::Unknown(why) => Read::Unknown(why),
    }
}
