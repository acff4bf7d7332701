//! The Secrets with certificates that the operator has made. Keys come along, as a Secret is read whole; they are
//! dropped at once. Anybody who may write Secrets may give them the operator's label, and so they are read in pages, and
//! those of other namespaces are not kept.

use std::collections::BTreeSet;

use opensdn_deploy::names;
use serde_json::Value;

use super::ask::Asker;
use super::{Read, namespace};

/// Those of one namespace or of all (`namespaces/NAME/`, or nothing), of which `own` are kept, where that is known.
pub(crate) async fn secrets(
    asker: &Asker,
    within: &str,
    own: Option<&BTreeSet<String>>,
) -> Read<Vec<Value>> {
    let path = format!(
        "/api/v1/{within}secrets?labelSelector={}%3D{}",
        names::MANAGED_BY_LABEL,
        names::operator::NAME
    );
    let is_own = |secret: &Value| own.is_none_or(|own| own.contains(namespace(secret)));
    asker.picked(&path, |secret| is_own(secret).then(|| without_keys(secret))).await
}

/// Nothing of ours needs them, and what is not there cannot be shown.
pub(crate) fn without_keys(secret: &Value) -> Value {
    let mut kept = secret.clone();
    if let Some(Value::Object(data)) = kept.get_mut("data") {
        data.retain(|key, _| key.ends_with(".crt"));
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn keys_are_dropped_as_soon_as_they_are_read() {
        let secret = json!({"data": {"ca.crt": "a", "ca.key": "b", "server-key-1.pem": "c"}});
        assert_eq!(super::without_keys(&secret), json!({"data": {"ca.crt": "a"}}));
    }
}
