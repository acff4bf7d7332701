//! The annotation in which a user names what may be lost, as `Kind/name`.

use serde::Deserialize;

const ANNOTATION: &str = "opensdn.io/confirm-loss";

/// What the annotation says: `Zookeeper/zookeeper1, Redis/redis1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Confirmed(String);

impl Confirmed {
    /// Whether the loss of that very object is confirmed.
    pub(crate) fn has(&self, loss: &str) -> bool {
        self.0.split(',').any(|item| item.trim() == loss)
    }
}

/// How the annotation names an object.
pub(crate) fn item(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// How to confirm in the manifest that brings the loss about.
pub(crate) fn in_manifest(losses: &[String]) -> String {
    format!("metadata.annotations: {{{ANNOTATION}: \"{}\"}}", losses.join(", "))
}

/// How to confirm on the object that is stored.
pub(crate) fn by_command(namespace: &str, kind: &str, name: &str) -> String {
    let resource = kind.to_lowercase();
    format!(
        "kubectl annotate --overwrite -n {namespace} {resource}s.tf.tungsten.io/{name} \
         {ANNOTATION}={}",
        item(kind, name)
    )
}
