//! Changes that take nothing away for good, but interrupt.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use opensdn_policy_components::{ComponentView, nodes::Selector, null_as_default};
use opensdn_policy_sdk::{Message, Severity, Verdict};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

pub(crate) const CREDENTIALS: Message = Message {
    code: "OSDN1517",
    severity: Severity::Warn,
    title: "the user or password of RabbitMQ changes",
    explanation: "With tf-operator RabbitMQ restarts with the new ones by itself, and its clients read them when they \
        start: until Config and what else uses it have restarted they do not get in. With our operator the clients \
        restart by themselves, each at a moment of its own within some minutes, and are without RabbitMQ until then.",
    hint: "make the change when Config and the services that use RabbitMQ may restart",
};

pub(crate) const VROUTERS: Message = Message {
    code: "OSDN1819",
    severity: Severity::Warn,
    title: "the vrouters restart",
    explanation: "While its vrouter restarts, the pods of a node have no network. tf-operator writes \
        changed parameters and variables to all nodes of the group and restarts all agents at once. \
        A changed image it leaves to the administrator: a node has it when its vrouter pod is deleted \
        by hand. Our operator replaces the pods for both, one node after the other, and the next when the \
        one before has been ready for a while. For other control nodes and another secret of the metadata \
        service it replaces none: there each agent is started again at a moment of its own within some \
        minutes, and vhost0 stays up.",
    hint: "change parameters when nodes of the group may lose their network for a moment, with tf-operator \
        all of them at once, or try them in a group of few nodes first; for images with tf-operator delete \
        the pods one node after the other: kubectl -n NAMESPACE get pods -o wide -l tf_manager=vrouter, then \
        kubectl -n NAMESPACE delete pod POD",
};

/// What is read of the spec of a component.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) common_configuration: Common,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) service_configuration: Configuration,
}

/// What is read of a commonConfiguration, the Manager's too.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Common {
    pub(crate) node_selector: Option<Selector>,
}

/// What is read of a serviceConfiguration; each kind has some of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configuration {
    // Rabbitmq
    user: Option<String>,
    password: Option<String>,
    // Vrouter
    containers: Vec<Container>,
    variables: BTreeMap<String, String>,
    /// Those of [`PARAMETERS`] and [`OF_OURS`] that are given, neither null nor empty.
    parameters: BTreeMap<&'static str, Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    image: Option<String>,
}

/// The fields that tf-operator writes into the file of which a change restarts the agents
/// (upstream's `pkg/apis/tf/v1alpha1/templates/vrouter_config.go:37-179` and
/// `vrouter_types.go:874-995`).
const PARAMETERS: &[&str] = &[
    "cloudOrchestrator",
    "configApiServerCaCertfile",
    "configApiSslEnable",
    "controlInstance",
    "dataSubnet",
    "dpdkUioDriver",
    "hugePages1G",
    "hugePages2M",
    "hypervisorType",
    "introspectSslEnable",
    "kubernetesPodSubnet",
    "l3mhCidr",
    "logLocal",
    "metadataProxySecret",
    "metadataSslCaCertfile",
    "metadataSslCertType",
    "metadataSslCertfile",
    "metadataSslEnable",
    "metadataSslKeyfile",
    "physicalInterface",
    "sandeshCaCertfile",
    "sandeshCertfile",
    "sandeshKeyfile",
    "sandeshServerCertfile",
    "sandeshServerKeyfile",
    "sandeshSslEnable",
    "serverCaCertfile",
    "serverCertfile",
    "serverKeyfile",
    "sriovPhysicalInterface",
    "sriovPhysicalNetwork",
    "sslEnable",
    "subcluster",
    "vrouterGateway",
    "xmmpSslEnable",
    "xmppServerCaCertfile",
    "xmppServerCertfile",
    "xmppServerKeyfile",
];

/// Those of which our operator alone makes something of its pods or their files (`operator/src/components/vrouter.rs`).
const OF_OURS: &[&str] =
    &["cniMTU", "fabricSnatHashTableSize", "profiles", "sriov", "xmppSslEnable"];

/// What an absent one means (`vrouter_types.go:497-575`): to write it out changes nothing.
fn default_of(parameter: &str) -> Option<Value> {
    Some(match parameter {
        "cloudOrchestrator" => "kubernetes".into(),
        "hypervisorType" => "kvm".into(),
        "logLocal" => 1.into(),
        "configApiSslEnable"
        | "introspectSslEnable"
        | "sandeshSslEnable"
        | "sslEnable"
        | "xmmpSslEnable"
        | "xmppSslEnable" => true.into(),
        "cniMTU" | "hugePages1G" | "hugePages2M" => 0.into(),
        "profiles" => Value::Array(Vec::new()),
        "sriov" => Value::Object(serde_json::Map::new()),
        _ => return None,
    })
}

impl<'de> Deserialize<'de> for Configuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ConfigurationVisitor)
    }
}

struct ConfigurationVisitor;

impl<'de> Visitor<'de> for ConfigurationVisitor {
    type Value = Configuration;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Configuration, A::Error> {
        let mut read = Configuration::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "user" => read.user = map.next_value()?,
                "password" => read.password = map.next_value()?,
                "containers" => {
                    read.containers = map.next_value::<Option<_>>()?.unwrap_or_default();
                }
                "envVariablesConfig" => {
                    read.variables = map.next_value::<Option<_>>()?.unwrap_or_default();
                }
                key => match PARAMETERS.iter().chain(OF_OURS).find(|name| **name == key) {
                    Some(name) => {
                        let value: Value = map.next_value()?;
                        if !value.is_null() && value != "" {
                            read.parameters.insert(name, value);
                        }
                    }
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                },
            }
        }
        Ok(read)
    }
}

/// Judges a component as it will be, beside its spec as it is.
pub(crate) fn judge(old: &Spec, new: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let old = &old.service_configuration;
    match new.kind {
        "Rabbitmq" => judge_credentials(old, new, verdict),
        "Vrouter" => judge_vrouter(old, new, verdict),
        _ => {}
    }
}

/// An empty value keeps what is in the Secret (tf-operator,
/// `pkg/apis/tf/v1alpha1/rabbitmq_types.go:199-207`).
fn judge_credentials(old: &Configuration, new: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let is = &new.spec.service_configuration;
    let fields = [("user", &old.user, &is.user), ("password", &old.password, &is.password)];
    for (field, was, is) in fields {
        let is = is.as_deref().unwrap_or_default();
        if !is.is_empty() && was.as_deref().unwrap_or_default() != is {
            let text = format!("{}: the {field} changes, and clients lose it", new.title());
            verdict.add(CREDENTIALS.at(new.setting("").key(field)).says(text));
        }
    }
}

fn judge_vrouter(old: &Configuration, new: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let is = &new.spec.service_configuration;
    let (old_images, new_images) = (images(old), images(is));
    let images = changed(&old_images, &new_images);
    if !images.is_empty() {
        let text = format!(
            "{}: pods on its nodes lose their network while it restarts (image of {})",
            new.title(),
            images.join(", ")
        );
        let hint = "our operator replaces the pods, one node after the other; with tf-operator, delete them so: kubectl -n \
            NAMESPACE get pods -o wide -l tf_manager=vrouter, then kubectl -n NAMESPACE delete pod POD";
        verdict.add(VROUTERS.at(new.setting("/containers")).says(text).hint(hint));
    }
    let variables: Vec<_> = changed(&old.variables, &is.variables)
        .into_iter()
        .map(|name| (new.setting("/envVariablesConfig").key(name), name))
        .collect();
    let of = |names: &'static [&'static str]| {
        let parameters = names.iter().filter(|name| {
            let value =
                |of: &Configuration| of.parameters.get(**name).cloned().or(default_of(name));
            value(old) != value(is)
        });
        parameters.map(|name| (new.setting("").key(name), *name))
    };
    let of_both: Vec<_> = of(PARAMETERS).chain(variables).collect();
    let is_of_ours_alone = of_both.is_empty();
    let all: Vec<_> = of_both.into_iter().chain(of(OF_OURS)).collect();
    if let Some((at, _)) = all.first() {
        let names: Vec<_> = all.iter().map(|(_, name)| *name).collect();
        // What the pods of our operator read again is no reason to replace them: the list of control nodes, and the secret
        // of the metadata service, unless there was none or is none.
        let has_secret = |of: &Configuration| of.parameters.contains_key("metadataProxySecret");
        let is_read_again = |name: &&str| match *name {
            "controlInstance" => true,
            "metadataProxySecret" => has_secret(old) && has_secret(is),
            _ => false,
        };
        let ours = if names.iter().all(is_read_again) { EACH } else { IN_TURN };
        let text = restarts(&new.title(), &names, ours, is_of_ours_alone);
        verdict.add(VROUTERS.at(at).says(text).hint(when_to_restart(is, &names)));
    }
}

/// What is up of the data plane stays so (`operator/templates/vrouter/run-vrouteragent.sh.j2`).
const EACH: &str = "each at a moment of its own within some minutes, while vhost0 stays up";
const IN_TURN: &str = "one node after the other";

/// What restarts of which operator, and in which order.
fn restarts(title: &str, names: &[&str], ours: &str, is_of_ours_alone: bool) -> String {
    let names = names.join(", ");
    if is_of_ours_alone {
        return format!(
            "{title}: with our operator its agents restart, {ours}, and pods there lose their network meanwhile; with \
             tf-operator none restarts ({names})"
        );
    }
    format!(
        "{title}: its agents restart, and pods there lose their network meanwhile: with tf-operator all at once, with our \
         operator {ours} ({names})"
    )
}

fn when_to_restart(is: &Configuration, names: &[&str]) -> String {
    let mut hint = "make the change when nodes of the group may lose their network for a moment (with tf-operator: all of \
        them at once); to try it on few nodes first, give them a group of their own"
        .to_owned();
    let is_given = |field: &str| is.parameters.contains_key(field);
    let has_gateway = is_given("vrouterGateway") || is.variables.contains_key("VROUTER_GATEWAY");
    let has_another = is_given("physicalInterface") && names.contains(&"physicalInterface");
    if has_another && !has_gateway && !is_given("l3mhCidr") {
        hint.push_str(
            "; vrouterGateway is unset, so an agent looks for its gateway on the interface by which its node reaches the \
             first control node: set it where that is not the right one",
        );
    }
    hint
}

pub(crate) fn images(configuration: &Configuration) -> BTreeMap<String, String> {
    let containers = configuration.containers.iter();
    containers.map(|one| (one.name.clone(), one.image.clone().unwrap_or_default())).collect()
}

/// The keys whose values are not the same in both, in order.
pub(crate) fn changed<'a>(
    old: &'a BTreeMap<String, String>,
    new: &'a BTreeMap<String, String>,
) -> Vec<&'a str> {
    let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    keys.into_iter().filter(|key| old.get(*key) != new.get(*key)).map(String::as_str).collect()
}
