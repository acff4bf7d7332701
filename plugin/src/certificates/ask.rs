//! Reads the Secrets and ConfigMaps with certificates. Keys come along, as a Secret is read whole; they are dropped here.

use opensdn_deploy::names;
use serde_json::Value;

use super::{NotRead, World, part};
use crate::snapshot::ask::Asker;
use crate::snapshot::places::Places;
use crate::snapshot::{Read, name, namespace};

/// Reads it, of one namespace or of all, and the CA of the webhook.
pub(crate) async fn world(asker: &Asker, of: Option<&str>, control_namespace: &str) -> World {
    let within = of.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    let made = format!("{}%3D{}", names::MANAGED_BY_LABEL, names::operator::NAME);
    let listed = |plural: &str| format!("/api/v1/{within}{plural}?labelSelector={made}");
    let webhook = names::webhook::CA_SECRET;
    let webhook = format!("/api/v1/namespaces/{control_namespace}/secrets/{webhook}");
    let (secrets, maps) = (listed("secrets"), listed("configmaps"));
    let managers = format!("/apis/tf.tungsten.io/v1alpha1/{within}managers");
    let (secrets, maps, webhook, managers) = tokio::join!(
        asker.list(&secrets),
        asker.list(&maps),
        asker.get(&webhook),
        asker.list(&managers)
    );
    let places = Places::of(asker, control_namespace).await;
    // Who has asked for one namespace means it, whatever is in it.
    let own = places.of_components(&managers).filter(|_| of.is_none());
    let is_own = |one: &Value| own.as_ref().is_none_or(|own| own.contains(namespace(one)));
    let mut not_read = Vec::new();
    let mut secrets = part(secrets, "Secrets of the operator", &mut not_read);
    secrets.retain(is_own);
    match webhook {
        Read::Known(secret) => secrets.push(secret),
        Read::Absent => {}
        Read::Unknown(why) => {
            not_read.push(NotRead { what: "the Secret of the webhook's CA".to_owned(), why });
        }
    }
    secrets.iter_mut().for_each(drop_keys);
    let maps = part(maps, "ConfigMaps of the operator", &mut not_read);
    let is_trust = |map: &Value| name(map) == names::operator::TRUST && is_own(map);
    let trust = maps.into_iter().filter(is_trust).collect();
    World { secrets, trust, not_read }
}

/// Nothing of ours needs them, and what is not there cannot be shown.
fn drop_keys(secret: &mut Value) {
    if let Some(Value::Object(data)) = secret.get_mut("data") {
        data.retain(|key, _| key.ends_with(".crt"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn keys_are_dropped_as_soon_as_they_are_read() {
        let mut secret = json!({"data": {"ca.crt": "a", "ca.key": "b", "server-key-1.pem": "c"}});
        super::drop_keys(&mut secret);
        assert_eq!(secret, json!({"data": {"ca.crt": "a"}}));
    }
}
