//! Reads the Secrets and ConfigMaps with certificates.

use opensdn_deploy::names;
use serde_json::Value;

use super::{NotRead, World, part};
use crate::snapshot::ask::Asker;
use crate::snapshot::certificates::{self, without_keys};
use crate::snapshot::places::Places;
use crate::snapshot::{Read, name, namespace};

/// Reads it, of one namespace or of all, and the CA of the webhook.
pub(crate) async fn world(asker: &Asker, of: Option<&str>, control_namespace: &str) -> World {
    let within = of.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    let made = format!("{}%3D{}", names::MANAGED_BY_LABEL, names::operator::NAME);
    let webhook = names::webhook::CA_SECRET;
    let webhook = format!("/api/v1/namespaces/{control_namespace}/secrets/{webhook}");
    let maps = format!("/api/v1/{within}configmaps?labelSelector={made}");
    let managers = format!("/apis/tf.tungsten.io/v1alpha1/{within}managers");
    let (managers, places) =
        tokio::join!(asker.list(&managers), Places::of(asker, control_namespace));
    // Who has asked for one namespace means it, whatever is in it.
    let own = places.of_components(&managers).filter(|_| of.is_none());
    let is_own = |one: &Value| own.as_ref().is_none_or(|own| own.contains(namespace(one)));
    let is_trust = |map: &Value| name(map) == names::operator::TRUST && is_own(map);
    let (secrets, maps, webhook) = tokio::join!(
        certificates::secrets(asker, &within, own.as_ref()),
        asker.picked(&maps, |map| is_trust(map).then(|| map.clone())),
        asker.get(&webhook),
    );
    let mut not_read = Vec::new();
    let mut secrets = part(secrets, "Secrets of the operator", &mut not_read);
    match webhook {
        Read::Known(secret) => secrets.push(without_keys(&secret)),
        Read::Absent => {}
        Read::Unknown(why) => {
            not_read.push(NotRead { what: "the Secret of the webhook's CA".to_owned(), why });
        }
    }
    let trust = part(maps, "ConfigMaps of the operator", &mut not_read);
    World { secrets, trust, not_read }
}
