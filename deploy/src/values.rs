//! What an administrator chooses of an installation: one typed file, whose JSON Schema is made from these types.
//! Deliberately not here: what becomes of it in the objects (`adjust.rs`), and how files and `--set` are merged, which
//! is the plugin's.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names;

/// The namespace whose components the operator looks after, unless another is named.
const WATCHED_NAMESPACE: &str = "tf";
/// More replicas would be a slip of the finger.
const MOST_REPLICAS: u32 = 32;

/// What is installed, and how. Each field has a default; without any, the objects are those of `kubectl apply -k`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Values {
    /// What OpenSDN runs on, or is the network of.
    pub platform: Platform,
    /// How many replicas there are, and how they are spread, where nothing else says so.
    pub profile: Profile,
    /// The namespace of the webhook.
    pub namespace: String,
    /// The registry, with folders, from which all images come: `registry.example.com/opensdn`. Without it the
    /// nodes use what they know by the bare name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Names of Secrets by which images are pulled. They have to be in the namespaces of webhook and operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<String>,
    /// Ports by which pods reach the API server, where the network enforces NetworkPolicies.
    pub api_server_ports: Vec<u16>,
    /// The webhook.
    pub webhook: Webhook,
    /// The operator.
    pub operator: Operator,
    /// The policies.
    pub policies: Policies,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            platform: Platform::Kubernetes,
            profile: Profile::Default,
            namespace: names::NAMESPACE.to_owned(),
            registry: None,
            image_pull_secrets: Vec::new(),
            api_server_ports: vec![443, 6443],
            webhook: Webhook::default(),
            operator: Operator::default(),
            policies: Policies::default(),
        }
    }
}

/// What OpenSDN runs on, or is the network of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Kubernetes, whatever has made it.
    #[default]
    Kubernetes,
    /// OpenShift: with SecurityContextConstraints for what the pods need.
    Openshift,
    /// Kubernetes, and OpenSDN is the network of an OpenStack: without the rights of kube-manager.
    Openstack,
}

/// How many replicas there are, and how they are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Three replicas answer reviews, two pods write the webhook configurations, two operators; replicas share a node
    /// where there are too few.
    #[default]
    Default,
    /// The same, and no two replicas of the webhook are on one node. It needs three nodes.
    Ha,
    /// One of each.
    SingleNode,
}

/// The image of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Image {
    /// Its name, below `registry` where that is given: `opensdn-webhook`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its tag. Default: the version of this release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Its digest, `sha256:` and 64 digits. It is used in the place of the tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What failed.
    Error,
    /// And what is probably not as it was meant.
    Warn,
    /// And what is done. The default of the programs.
    Info,
    /// And why.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// As the programs take it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Webhook {
    /// Its image.
    pub image: Image,
    /// How many pods answer reviews. Default: what the profile says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// How many pods write the webhook configurations. Default: what the profile says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration_replicas: Option<u32>,
    /// How much it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
}

/// The operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Operator {
    /// Whether it is installed. Without it objects are judged, and no component runs: as where tf-operator runs.
    pub enabled: bool,
    /// Its namespace. It has the network of its node, which the namespace of the webhook refuses.
    pub namespace: String,
    /// The namespaces whose components it looks after. They are made.
    pub watched_namespaces: Vec<String>,
    /// Its image.
    pub image: Image,
    /// How many there are; one of them acts. Default: what the profile says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// How much it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
}

impl Default for Operator {
    fn default() -> Self {
        Self {
            enabled: true,
            namespace: names::operator::NAMESPACE.to_owned(),
            watched_namespaces: vec![WATCHED_NAMESPACE.to_owned()],
            image: Image::default(),
            replicas: None,
            log_level: None,
        }
    }
}

/// The policies that are put in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Policies {
    /// Whether the built-in policies are put in force.
    pub enabled: bool,
    /// Names of built-in policies that are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// What a denial does; without it each policy enforces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whether the limits of tf-operator are in force too: where it runs the cluster.
    pub tf_operator: bool,
    /// Whether it is judged which keys Secrets have. The webhook then reads every Secret of the cluster whole, and keeps
    /// no value.
    pub secret_keys: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            enabled: true,
            without: Vec::new(),
            mode: None,
            tf_operator: false,
            secret_keys: false,
        }
    }
}

/// What a denial does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It refuses the request.
    Enforce,
    /// It is a warning.
    Warn,
    /// It is in the report of the audit only.
    Audit,
}

/// A value that cannot be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidValue {
    /// Its path: `webhook.replicas`.
    pub field: String,
    /// What is wrong, and what fits.
    pub problem: String,
}

impl Values {
    /// What the types cannot say: names, ranges, and what contradicts itself. All of it at once.
    #[must_use]
    pub fn problems(&self) -> Vec<InvalidValue> {
        let mut found = Vec::new();
        let mut report = |field: &str, problem: String| {
            found.push(InvalidValue { field: field.to_owned(), problem });
        };
        self.check_namespaces(&mut report);
        self.check_images(&mut report);
        for (field, replicas) in [
            ("webhook.replicas", self.webhook.replicas),
            ("webhook.configurationReplicas", self.webhook.configuration_replicas),
            ("operator.replicas", self.operator.replicas),
        ] {
            if replicas.is_some_and(|replicas| !(1..=MOST_REPLICAS).contains(&replicas)) {
                report(field, format!("must be 1 to {MOST_REPLICAS}"));
            }
        }
        if self.api_server_ports.is_empty() || self.api_server_ports.contains(&0) {
            report("apiServerPorts", "must be ports from 1 to 65535, at least one".to_owned());
        }
        found
    }

    fn check_namespaces(&self, report: &mut impl FnMut(&str, String)) {
        let watched = &self.operator.watched_namespaces;
        let all =
            [("namespace", &self.namespace), ("operator.namespace", &self.operator.namespace)];
        let all =
            all.into_iter().chain(watched.iter().map(|name| ("operator.watchedNamespaces", name)));
        for (field, name) in all {
            if !is_label(name) {
                report(
                    field,
                    format!("{name:?} is no name of a namespace: small letters, digits and -"),
                );
            } else if ["default", "kube-system", "kube-public", "kube-node-lease"]
                .contains(&name.as_str())
            {
                report(
                    field,
                    format!("{name} is Kubernetes' own: give ours a namespace of its own"),
                );
            }
        }
        if self.namespace == self.operator.namespace {
            report("operator.namespace", "must not be that of the webhook, which refuses pods with the network of their node".to_owned());
        }
        if watched.contains(&self.namespace) {
            report("operator.watchedNamespaces", "must not be that of the webhook, which refuses pods with the network of their node".to_owned());
        }
        if watched.is_empty() {
            report(
                "operator.watchedNamespaces",
                "must name a namespace; to install no operator: operator.enabled=false".to_owned(),
            );
        }
        if watched.iter().collect::<BTreeSet<_>>().len() < watched.len() {
            report("operator.watchedNamespaces", "names a namespace twice".to_owned());
        }
        for secret in &self.image_pull_secrets {
            if !secret.split('.').all(is_label) {
                report("imagePullSecrets", format!("{secret:?} is no name of a Secret"));
            }
        }
    }

    fn check_images(&self, report: &mut impl FnMut(&str, String)) {
        if let Some(registry) = &self.registry {
            if registry.contains('@') {
                report(
                    "registry",
                    "has an @: a password belongs into a Secret, which imagePullSecrets names"
                        .to_owned(),
                );
            } else if !is_image_name(registry) {
                report(
                    "registry",
                    format!(
                        "{registry:?} is none: as in registry.example.com:5000/opensdn, without https://"
                    ),
                );
            }
        }
        for (field, image) in
            [("webhook.image", &self.webhook.image), ("operator.image", &self.operator.image)]
        {
            if image.name.as_ref().is_some_and(|name| !is_image_name(name)) {
                report(
                    &format!("{field}.name"),
                    "is no name of an image; tag and digest have fields of their own".to_owned(),
                );
            }
            let is_tag = |tag: &String| {
                !tag.is_empty()
                    && tag.len() <= 128
                    && tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            };
            if image.tag.as_ref().is_some_and(|tag| !is_tag(tag)) {
                report(
                    &format!("{field}.tag"),
                    "is no tag: letters, digits, dots, - and _".to_owned(),
                );
            }
            let is_digest = |digest: &String| {
                let digits = digest.strip_prefix("sha256:").unwrap_or_default();
                digits.len() == 64 && digits.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
            };
            if image.digest.as_ref().is_some_and(|digest| !is_digest(digest)) {
                report(
                    &format!("{field}.digest"),
                    "is no digest: sha256: and 64 digits".to_owned(),
                );
            }
        }
    }
}

fn is_label(name: &str) -> bool {
    let is_end =
        |letter: Option<char>| letter.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.len() <= 63
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && is_end(name.chars().next())
        && is_end(name.chars().last())
}

/// A registry with folders, or a name below one. A colon only in the first part: a port.
fn is_image_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let mut parts = name.split('/');
    let first = parts.next().unwrap_or_default();
    let is_first = match first.split_once(':') {
        Some((host, port)) => part(host) && port.parse::<u16>().is_ok(),
        None => part(first),
    };
    is_first && parts.all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(change: impl FnOnce(&mut Values)) -> Vec<String> {
        let mut values = Values::default();
        change(&mut values);
        values.problems().into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn defaults_are_good_and_everything_that_is_wrong_is_found_at_once() {
        assert_eq!(fields(|_| {}), [""; 0]);
        let found = fields(|values| {
            values.namespace = "a'b".to_owned();
            values.registry = Some("user:password@registry".to_owned());
            values.webhook.replicas = Some(0);
            values.webhook.image.digest = Some("sha256:0".to_owned());
            values.webhook.image.tag = Some("a b".to_owned());
            values.operator.image.name = Some("name:tag".to_owned());
            values.api_server_ports = vec![];
            values.operator.watched_namespaces = vec!["tf".to_owned(), "tf".to_owned()];
        });
        let expected = [
            "namespace",
            "operator.watchedNamespaces",
            "registry",
            "webhook.image.tag",
            "webhook.image.digest",
            "operator.image.name",
            "webhook.replicas",
            "apiServerPorts",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn namespaces_of_kubernetes_and_of_each_other_are_refused() {
        assert_eq!(fields(|values| values.namespace = "kube-system".to_owned()), ["namespace"]);
        let same = fields(|values| values.operator.namespace.clone_from(&values.namespace));
        assert_eq!(same, ["operator.namespace"]);
    }

    #[test]
    fn registries_with_a_port_and_folders_are_taken() {
        for registry in ["registry.local:5000/a/b", "registry", "10.1.1.1:5000"] {
            assert_eq!(fields(|values| values.registry = Some(registry.to_owned())), [""; 0]);
        }
        assert_eq!(fields(|values| values.registry = Some("https://a".to_owned())), ["registry"]);
    }
}
