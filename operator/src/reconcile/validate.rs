//! From an object and what the cluster has to what can be built, or to why not (pure).

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use opensdn_crds::component::Component;
use opensdn_crds::pod::{Container as Given, PodConfiguration};
use serde::Deserialize;
use serde_json::Value;

use super::fetch::Fetched;
use super::{nested, status, tolerations, volumes};
use crate::build::certificates::parts;
use crate::build::{Image, Members, Valid};
use crate::component::{ComponentKind, Description, Given as About, SettingsError, word};
use crate::ensemble::record::Record;
use crate::kind::{Kind, Profiles};
use crate::names::{self, Instance};
use crate::node::{Node, addresses_of, nodes_of};
use crate::object::field_with;
use crate::release::{ANNOTATION, Known};
use crate::report::HAD_QUORUM;

/// What only a person can put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// One word, for programs.
    pub reason: &'static str,
    /// What is wrong, where, and what to do.
    pub message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    common_configuration: Option<PodConfiguration>,
    service_configuration: Value,
}

/// The two parts of the spec of an object.
pub(super) struct Settings {
    /// `commonConfiguration`.
    pub(super) common: PodConfiguration,
    /// `serviceConfiguration`.
    pub(super) own: Value,
}

impl Settings {
    /// # Errors
    /// They cannot be read.
    pub(super) fn of(fetched: &Fetched) -> Result<Self, Invalid> {
        let spec = fetched.object.data.get("spec").cloned().unwrap_or_default();
        let spec: Option<Spec> = serde_json::from_value(spec).map_err(unreadable)?;
        let Spec { common_configuration, service_configuration } = spec.unwrap_or_default();
        let common = common_configuration.unwrap_or_default();
        Ok(Self { common, own: or_empty(service_configuration) })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Containers {
    containers: Option<Vec<Given>>,
}

/// Reads the object.
///
/// # Errors
/// All that is wrong with it, in one text.
pub fn validate(component: &dyn ComponentKind, fetched: &Fetched) -> Result<Valid, Invalid> {
    let facts = component.facts();
    let Settings { common, own: settings } = Settings::of(fetched)?;
    needs(facts, fetched)?;
    check_texts(&fetched.object.data)?;
    let given: Containers = serde_json::from_value(settings.clone()).map_err(unreadable)?;
    let given = given.containers.unwrap_or_default();
    let known = release(fetched, &given);
    let workload = component.workload();
    let nodes = nodes_of(&fetched.nodes, common.node_selector.as_ref(), workload);
    let profiles = profiles(component, fetched, &settings, &nodes)?;
    let about = About {
        name: fetched.name(),
        settings: &settings,
        common: &common,
        peers: &fetched.peers,
        cluster: &fetched.cluster,
        release: known.release,
        profiles: &profiles,
    };
    let description = component.describe(&about)?;
    check_credentials(&description, &fetched.object.data)?;
    let images = images(&description, &given)?;
    let doubt = known.doubt.filter(|_| description.depends_on_release);
    let name = fetched.name().to_owned();
    check_name(facts, fetched, &name)?;
    let addresses = fetched.addresses(&nodes);
    let instance = Instance { word: word(facts), name };
    nested::workloads_are_gone(fetched, &instance)?;
    let stopped = names::stopped(&fetched.object, fetched.manager.as_deref());
    let waits_for = waits_for(component, fetched, &instance, &description);
    volumes::are_as_before(fetched, &description)?;
    let counts = description.ensemble.is_some();
    let members = counts.then(|| members(fetched, &instance, &description, &nodes, &addresses));
    let mut valid = Valid {
        instance,
        workload,
        description,
        common,
        images,
        nodes,
        addresses,
        stopped,
        waits_for,
        lacks_certificates: None,
        renewal: None,
        members,
        homes: None,
        certificates_since: BTreeMap::new(),
        certificates_expire: None,
        key: known.release.key(key_length(fetched)),
        doubt,
        refused_ca: None,
        refused_volume: None,
        refused_tolerations: None,
        pace: fetched.pace.clone(),
        as_before: false,
    };
    volumes::settle(fetched, &mut valid);
    valid.refused_tolerations = tolerations::refused(fetched, &valid);
    Ok(valid)
}

fn unreadable(error: serde_json::Error) -> Invalid {
    Invalid {
        reason: "UnreadableSpec",
        message: format!("failed to read spec: {error}; compare it with kubectl explain"),
    }
}

impl From<SettingsError> for Invalid {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Unreadable(error) => unreadable(error),
            SettingsError::Unfit { reason, message } => Self { reason, message },
        }
    }
}

/// No settings are settings that say nothing.
fn or_empty(settings: Value) -> Value {
    match settings {
        Value::Null => Value::Object(serde_json::Map::new()),
        settings => settings,
    }
}

/// What it needs is there, if not yet active.
fn needs(facts: &Component, fetched: &Fetched) -> Result<(), Invalid> {
    let missing = fetched.peers.missing(facts);
    if !missing.is_empty() {
        return Err(Invalid {
            reason: "NeedMissing",
            message: format!(
                "needs {}, and there is none: add it to the services of its Manager",
                missing.join(" and ")
            ),
        });
    }
    Ok(())
}

/// The specs of the profiles that it names, in their order, but for those that are for other nodes.
fn profiles(
    component: &dyn ComponentKind,
    fetched: &Fetched,
    settings: &Value,
    nodes: &[Node],
) -> Result<Vec<Value>, Invalid> {
    let Some(Profiles { kind, .. }) = component.profiles() else { return Ok(Vec::new()) };
    let names = settings.get("profiles").and_then(Value::as_array).into_iter().flatten();
    let mut all = Vec::new();
    for name in names.filter_map(Value::as_str) {
        let Some(profile) = fetched.profiles.get(name) else {
            return Err(Invalid {
                reason: "ProfileMissing",
                message: format!(
                    "there is no {kind} {name}, which spec.serviceConfiguration.profiles names: create it"
                ),
            });
        };
        let spec = profile.data.get("spec").cloned().unwrap_or_default();
        let labels = spec.get("nodeSelector").cloned().unwrap_or_default();
        let labels: Option<BTreeMap<String, String>> =
            serde_json::from_value(labels).unwrap_or_default();
        let labels = labels.unwrap_or_default();
        match nodes.iter().filter(|node| node.has(&labels)).count() {
            count if count == nodes.len() => all.push(spec),
            0 => {}
            count => {
                return Err(Invalid {
                    reason: "ProfileForSomeNodes",
                    message: format!(
                        "{kind} {name} is for {count} of the {} nodes only, and all pods are alike: make an object of \
                         its own for those nodes, with their labels in spec.commonConfiguration.nodeSelector",
                        nodes.len()
                    ),
                });
            }
        }
    }
    Ok(all)
}

/// A script would put there what it has of Secrets, or of the node.
fn check_texts(spec: &serde_json::Value) -> Result<(), Invalid> {
    const PLACES: [&str; 2] = ["@credentials/", "@address-in/"];
    let Some(spec) = spec.get("spec") else { return Ok(()) };
    let field_of = |place: &str| field_with(spec, &|text: &str| text.contains(place));
    let found = PLACES.iter().find_map(|place| Some((place, field_of(place)?)));
    found.map_or(Ok(()), |(place, field)| {
        Err(Invalid {
            reason: "UnreadableSpec",
            message: format!(
                "spec{field} contains {place}, which is for files of the operator: take it out"
            ),
        })
    })
}

/// Whoever may write an object would have its pods, whose images he chooses, read what signs all certificates.
fn check_credentials(description: &Description, object: &Value) -> Result<(), Invalid> {
    let mut all = description.credentials.iter();
    all.try_for_each(|one| {
        let field =
            object.get("spec").and_then(|spec| field_with(spec, &|text| text == one.secret));
        let field = field.map_or_else(|| "the spec".to_owned(), |field| format!("spec{field}"));
        check_secret(&one.secret, &field, one.folder)
    })
}

/// Where it is named, and of what it is to have the credentials, is in the message.
pub(super) fn check_secret(secret: &str, field: &str, of: &str) -> Result<(), Invalid> {
    let signs = [names::CA_SECRET, names::GIVEN_CA_SECRET];
    let has_keys = [names::CERTIFICATES, names::REQUESTS];
    if !signs.contains(&secret) && !has_keys.iter().any(|end| parts::is_of(secret, end)) {
        return Ok(());
    }
    Err(Invalid {
        reason: "SecretNotAllowed",
        message: format!(
            "{field} names the Secret {secret}, which has keys of certificates: name one with the credentials of {of}"
        ),
    })
}

/// All that is named after it can have the name.
fn check_name(facts: &Component, fetched: &Fetched, name: &str) -> Result<(), Invalid> {
    if name.len() > usize::from(facts.longest_name) {
        return Err(Invalid {
            reason: "NameTooLong",
            message: format!(
                "the name has {} characters; with more than {} the labels of its pods are too long: make an object \
                 with a shorter name",
                name.len(),
                facts.longest_name
            ),
        });
    }
    if let Some(holder) = &fetched.holder {
        return Err(Invalid {
            reason: "NameTaken",
            message: format!(
                "the Secret {name}-secret-certificates, in whose name no kind is, is that of {holder}: give one of \
                 the two another name"
            ),
        });
    }
    Ok(())
}

/// Bits of the RSA keys, as the Manager has them.
pub(super) fn key_length(fetched: &Fetched) -> Option<i64> {
    let manager = fetched.manager.as_deref()?;
    manager.data.pointer("/spec/commonConfiguration/certKeyLength")?.as_i64()
}

/// Of which release the images are: by the annotation of the object or its Manager, else by the images.
fn release(fetched: &Fetched, given: &[Given]) -> Known {
    let managers =
        fetched.manager.as_ref().and_then(|manager| manager.annotations().get(ANNOTATION));
    let annotation = fetched.object.annotations().get(ANNOTATION).or(managers);
    Known::of(annotation.map(String::as_str), given.iter().filter_map(|one| one.image.as_deref()))
}

/// What is on record of it, else that of a service that is started now.
fn members(
    fetched: &Fetched,
    instance: &Instance,
    description: &Description,
    nodes: &[Node],
    addresses: &[String],
) -> Members {
    let has_volumes = description.storage.is_some();
    let keeper = if has_volumes {
        (Kind::ConfigMap, instance.config_map())
    } else {
        (Kind::StatefulSet, instance.stateful_set())
    };
    let read = Record::read(fetched.owned.get(&keeper).map(|keeper| &**keeper));
    let is_recorded = read.is_some();
    let mut record = read.unwrap_or_else(|| Record::first(&addresses_of(nodes)));
    if has_volumes {
        let homes = volumes::homes_of(fetched, record.homes.take(), nodes);
        record = record.at_home(homes);
    }
    let conditions = status::before(fetched).common.conditions.unwrap_or_default();
    let had_quorum = conditions.iter().any(|one| one.type_ == HAD_QUORUM && one.status == "True");
    Members { record: record.with(addresses), is_recorded, had_quorum, waits: None }
}

/// What it waits for. Once its pods have been started they are kept as they shall be, whatever becomes of what they
/// need: that has to find them there when it comes back.
fn waits_for(
    component: &dyn ComponentKind,
    fetched: &Fetched,
    instance: &Instance,
    description: &Description,
) -> Option<String> {
    if fetched.keepers(component.workload()).next().is_some() {
        return None;
    }
    if let Some(why) = nested::pods_end(fetched, instance) {
        return Some(why);
    }
    let peer = fetched.peers.first_not_active(component.facts());
    let peer = peer.map(|peer| format!("waits for {}: {}", peer.title(), peer.state));
    peer.or_else(|| description.waits_for.clone())
}

fn images(
    description: &Description,
    given: &[Given],
) -> Result<BTreeMap<&'static str, Image>, Invalid> {
    let mut images = BTreeMap::new();
    let mut missing = Vec::new();
    let all = description.init_containers.iter().chain(&description.containers);
    for container in all {
        let entry = container.entry.unwrap_or(container.name);
        // Of several with one name tf-operator takes the first, too.
        let given = given.iter().find(|given| given.name.as_deref() == Some(entry));
        let image = given.and_then(|given| given.image.clone()).filter(|image| !image.is_empty());
        match image {
            Some(image) if image.contains(char::is_whitespace) => {
                return Err(Invalid {
                    reason: "ImageWrong",
                    message: format!(
                        "spec.serviceConfiguration.containers has for {entry} the image {image:?}, with a space or line break in \
                         it: take that out"
                    ),
                });
            }
            Some(image) => {
                let command = given.and_then(|given| given.command.clone());
                let command = command.filter(|command| !command.is_empty());
                images.insert(container.name, Image { image, command });
            }
            None if container.is_optional => {}
            None => missing.push(entry),
        }
    }
    if missing.is_empty() {
        return Ok(images);
    }
    Err(Invalid {
        reason: "ImageMissing",
        message: format!(
            "spec.serviceConfiguration.containers has no image for {}: add an entry with name and image for each",
            missing.join(" and ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::check_secret;

    #[test]
    fn no_secret_with_keys_of_certificates_is_given_to_pods_as_credentials() {
        for secret in [
            "opensdn-ca",
            "contrail-ca-certificate",
            "config1-secret-certificates",
            "vrouter1-secret-certificates-2",
            "config1-secret-requests",
        ] {
            let refused = check_secret(secret, "spec.x", "Keystone").unwrap_err();
            assert_eq!(refused.reason, "SecretNotAllowed");
            assert!(refused.message.contains(secret), "{}", refused.message);
        }
        for secret in ["keystone-credentials", "requests", "rabbitmq1-secret"] {
            assert!(check_secret(secret, "spec.x", "Keystone").is_ok(), "{secret}");
        }
    }
}
