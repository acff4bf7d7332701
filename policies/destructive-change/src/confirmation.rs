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

/// Everything that a change of a Manager removes, and what the annotation says of it.
pub(crate) struct Losses<'a> {
    /// Namespace and name of the Manager.
    pub(crate) manager: (&'a str, &'a str),
    pub(crate) all: Vec<String>,
    pub(crate) confirmed: Confirmed,
    /// What it said before the change.
    pub(crate) before: Confirmed,
}

impl Losses<'_> {
    /// Whether this change confirms the loss.
    pub(crate) fn are_meant(&self, loss: &str) -> bool {
        self.confirmed.has(loss) && !self.before.has(loss)
    }

    /// How to confirm all of them, in the manifest that brings them about.
    pub(crate) fn how_to_confirm(&self) -> String {
        let all = self.all.join(", ");
        let mut text = format!("metadata.annotations: {{{ANNOTATION}: \"{all}\"}}");
        if self.all.iter().any(|loss| self.before.has(loss)) {
            let (namespace, name) = self.manager;
            text.push_str(&format!(
                "; what it said before the change does not count, so take it out first: kubectl \
                 annotate -n {namespace} managers.tf.tungsten.io/{name} {ANNOTATION}-"
            ));
        }
        text
    }
}

/// How the annotation names an object.
pub(crate) fn item(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
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
