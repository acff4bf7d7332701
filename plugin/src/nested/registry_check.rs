//! Whether the pods of nested mode can pull by a Secret: what is in it, who refers to it, and, where that is wanted,
//! whether the registry takes it. What is wrong with a Secret is opensdn-nested-workloads's.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use k8s_openapi::api::core::v1::{LocalObjectReference, PodSpec, Secret, ServiceAccount};
use opensdn_error_chain::error_chain;
use opensdn_nested_workloads::registry::{Problem, Use, check};
use opensdn_nested_workloads::{self as workloads, is_workload};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::exit::Failure;
use crate::oci::credentials::Credentials;
use crate::oci::error::Error;
use crate::oci::http::Http;
use crate::oci::reference::Reference;
use crate::oci::registry::Registries;
use crate::output::Answer;
use crate::snapshot::ask::Asker;
use crate::snapshot::{Read, text};
use crate::ui::{Layout, one_line, style, wrap};

const NOT_COVERED: &str = "OSDN3062";
const REFERENCED: &str = "OSDN3063";
/// Of the registry itself.
const REFUSED: &str = "OSDN3064";

/// What is looked at.
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    /// That of the pods.
    pub(crate) namespace: &'a str,
    /// Images beside those of the pods.
    pub(crate) images: &'a [String],
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Pods cannot pull.
    Error,
    /// They may.
    Warning,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct Finding {
    /// Its code.
    pub(crate) code: String,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

/// Something that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct Unknown {
    /// The code of the check.
    code: String,
    /// Why it is not known.
    why: String,
}

/// What `nested registry-secret --check` answers; nothing of the login is in it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RegistrySecretReport {
    /// Its namespace.
    namespace: String,
    /// Its name.
    name: String,
    /// The workloads that were looked at.
    workloads: Vec<String>,
    /// The images that they pull, and those that were named.
    images: Vec<String>,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
    /// What is not known.
    unknown: Vec<Unknown>,
}

impl Answer for RegistrySecretReport {
    const KIND: &'static str = "RegistrySecretReport";
}

/// The way to registries, where they are asked.
pub(crate) struct RegistryTrial<'a> {
    ca: Option<&'a Path>,
    plain: &'a [String],
}

impl<'a> RegistryTrial<'a> {
    /// # Errors
    /// The file with the authorities cannot be used.
    pub(crate) fn new(ca: Option<&'a Path>, plain: &'a [String]) -> Result<Self, Failure> {
        Http::new(ca, plain)?;
        Ok(Self { ca, plain })
    }

    /// A client with the logins of the Secret.
    fn registries(&self, secret: Option<&Secret>) -> Result<Registries, Error> {
        let data = secret.and_then(|secret| secret.data.as_ref());
        let bytes = data.and_then(|data| data.get(".dockerconfigjson"));
        let credentials = match bytes {
            Some(bytes) => Credentials::of_secret(&bytes.0)?,
            None => Credentials::default(),
        };
        Ok(Registries::new(Http::new(self.ca, self.plain)?, credentials))
    }
}

/// A workload of nested mode.
struct Puller {
    title: String,
    pod: PodSpec,
    account: Option<ServiceAccount>,
}

/// What the cluster has.
struct Found {
    secret: Option<Secret>,
    pullers: Vec<Puller>,
    unknown: Vec<Unknown>,
}

/// Looks at the Secret and the pods, and at the registry where that is wanted.
///
/// # Errors
/// The Secret cannot be read.
pub(crate) async fn look(
    asker: &Asker,
    asked: &Asked<'_>,
    trial: Option<&RegistryTrial<'_>>,
) -> Result<RegistrySecretReport, Failure> {
    let found = ask(asker, asked).await?;
    let images: BTreeSet<String> = found.images().chain(asked.images.iter().cloned()).collect();
    let mut report = RegistrySecretReport {
        namespace: asked.namespace.to_owned(),
        name: asked.name.to_owned(),
        workloads: found.pullers.iter().map(|puller| puller.title.clone()).collect(),
        images: images.iter().cloned().collect(),
        findings: problems(&found, asked, &images),
        unknown: found.unknown,
    };
    match trial {
        Some(trial) => try_registry(&mut report, trial, found.secret.as_ref()).await,
        None => report.unknown.push(Unknown {
            code: REFUSED.to_owned(),
            why: "the registry was not asked: --online".to_owned(),
        }),
    }
    report.findings.sort();
    report.unknown.sort();
    Ok(report)
}

async fn ask(asker: &Asker, asked: &Asked<'_>) -> Result<Found, Failure> {
    let Asked { name, namespace, .. } = asked;
    let mut unknown = Vec::new();
    let secret = match asker.get(&format!("/api/v1/namespaces/{namespace}/secrets/{name}")).await {
        Read::Known(secret) => Some(secret),
        Read::Absent => elsewhere(asker, name).await,
        Read::Unknown(why) => {
            let message = format!("the Secret {namespace}/{name} cannot be read: {why}");
            let hint = "your user needs the right to get Secrets there";
            return Err(Failure::new(crate::exit::Exit::Unreachable, "forbidden", message, hint));
        }
    };
    let (pullers, unread) = pullers(asker, namespace).await;
    unknown.extend(unread);
    if pullers.is_empty() && unknown.is_empty() {
        let why = format!("the namespace {namespace} has no workloads of nested mode yet");
        unknown.push(Unknown { code: REFERENCED.to_owned(), why });
    }
    Ok(Found { secret: secret.as_ref().and_then(typed), pullers, unknown })
}

/// One of the name in another namespace, where pods do not find it.
async fn elsewhere(asker: &Asker, name: &str) -> Option<Value> {
    let all = asker.list(&format!("/api/v1/secrets?fieldSelector=metadata.name%3D{name}")).await;
    match all {
        Read::Known(all) => all.into_iter().next(),
        // That it is missing where it is needed is known in any case.
        Read::Absent | Read::Unknown(_) => None,
    }
}

async fn pullers(asker: &Asker, namespace: &str) -> (Vec<Puller>, Vec<Unknown>) {
    let (mut pullers, mut unknown) = (Vec::new(), Vec::new());
    for (kind, plural) in [("Deployment", "deployments"), ("DaemonSet", "daemonsets")] {
        let list = asker.list(&format!("/apis/apps/v1/namespaces/{namespace}/{plural}")).await;
        let Read::Known(objects) = list else {
            let why = format!("{plural} of {namespace} cannot be read");
            unknown.push(Unknown { code: REFERENCED.to_owned(), why });
            continue;
        };
        for mut object in objects {
            // Entries of a list do not say what they are.
            if let Some(fields) = object.as_object_mut() {
                fields.insert("kind".to_owned(), kind.into());
            }
            let pod = object.pointer("/spec/template/spec").and_then(typed::<PodSpec>);
            let Some(pod) = pod.filter(|_| is_workload(&object)) else { continue };
            let account = pod.service_account_name.as_deref().unwrap_or("default");
            let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}");
            let account = match asker.get(&path).await {
                Read::Known(account) => typed(&account),
                Read::Absent | Read::Unknown(_) => None,
            };
            let title = format!("{kind} {}", text(&object, "/metadata/name"));
            pullers.push(Puller { title, pod, account });
        }
    }
    (pullers, unknown)
}

fn typed<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

impl Found {
    fn images(&self) -> impl Iterator<Item = String> {
        let containers = self.pullers.iter().flat_map(|puller| {
            let inits = puller.pod.init_containers.iter().flatten();
            puller.pod.containers.iter().chain(inits)
        });
        containers.filter_map(|container| container.image.clone())
    }
}

/// What is wrong with the Secret, each once, and who does not refer to it.
fn problems(found: &Found, asked: &Asked<'_>, images: &BTreeSet<String>) -> Vec<Finding> {
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    let secret = found.secret.as_ref();
    let of = |pod: &PodSpec, account: Option<&ServiceAccount>| {
        let of = Use { namespace: asked.namespace, pod, account, images: &images };
        check(asked.name, secret, &of)
    };
    let mut all: BTreeMap<String, Finding> = BTreeMap::new();
    let mut add = |problem: &Problem, who: &str| {
        let finding = finding(problem, who);
        all.insert(finding.message.clone(), finding);
    };
    if found.pullers.is_empty() {
        // Whether anyone refers to it is not known; all else is.
        let reference = LocalObjectReference { name: asked.name.to_owned() };
        let pod = PodSpec { image_pull_secrets: Some(vec![reference]), ..PodSpec::default() };
        of(&pod, None).iter().for_each(|problem| add(problem, ""));
    }
    for puller in &found.pullers {
        let problems = of(&puller.pod, puller.account.as_ref());
        problems.iter().for_each(|problem| add(problem, &puller.title));
    }
    all.into_values().collect()
}

fn finding(problem: &Problem, who: &str) -> Finding {
    let message = match problem {
        Problem::NotReferenced(_) => format!("{who}: {problem}"),
        _ => problem.to_string(),
    };
    Finding {
        code: problem.code().to_owned(),
        severity: match problem.severity() {
            workloads::Severity::Error => Severity::Error,
            workloads::Severity::Warning => Severity::Warning,
        },
        message,
        hint: problem.hint().to_owned(),
    }
}

/// Asks for each image as kubelet would, with the logins of the Secret.
async fn try_registry(
    report: &mut RegistrySecretReport,
    trial: &RegistryTrial<'_>,
    secret: Option<&Secret>,
) {
    let registries = match trial.registries(secret) {
        Ok(registries) => registries,
        // What is wrong with the Secret is a finding already.
        Err(error) => return report.unknown.push(unknown(error_chain(&error))),
    };
    for image in report.images.clone() {
        let reference = match image.parse::<Reference>() {
            Ok(reference) => reference,
            Err(why) => {
                report.unknown.push(unknown(why));
                continue;
            }
        };
        let tried = registries.manifest(&reference, &reference.wanted()).await;
        report.take(&image, tried.map(drop));
    }
}

fn unknown(why: String) -> Unknown {
    Unknown { code: REFUSED.to_owned(), why }
}

impl RegistrySecretReport {
    /// What came of asking for an image. Without a login for its registry the answer also says whether one is needed.
    fn take(&mut self, image: &str, tried: Result<(), Error>) {
        let is_about = |one: &Finding| one.code == NOT_COVERED && one.message.contains(image);
        match tried {
            Ok(()) => self.findings.retain(|one| !is_about(one)),
            Err(error) if error.is_refusal() => {
                let uncovered = self.findings.iter_mut().find(|one| is_about(one));
                if let Some(uncovered) = uncovered {
                    uncovered.severity = Severity::Error;
                }
                self.findings.push(Finding {
                    code: REFUSED.to_owned(),
                    severity: Severity::Warning,
                    message: format!("the registry does not give {image}: {}", error_chain(&error)),
                    hint:
                        "look at user, password, registry and tag; nodes may have another way to it"
                            .to_owned(),
                });
            }
            // From here it is not reached; nodes may reach it.
            Err(error) => self.unknown.push(unknown(format!("{image}: {}", error_chain(&error)))),
        }
    }

    /// For people.
    pub(crate) fn write(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        for Finding { code, severity, message, hint } in &self.findings {
            let (word, style) = match severity {
                Severity::Error => ("error", style::ERROR),
                Severity::Warning => ("warning", style::WARNING),
            };
            let text = one_line(&format!("[{code}] {message} -> {hint}"));
            let mut lines = wrap(&text, layout.width.saturating_sub(4)).into_iter();
            let first = lines.next().unwrap_or_default();
            writeln!(out, "{style}{word:<7}{style:#}  {first}")?;
            lines.try_for_each(|line| writeln!(out, "    {line}"))?;
        }
        for Unknown { code, why } in &self.unknown {
            writeln!(out, "unknown  {}", one_line(&format!("[{code}] {why}")))?;
        }
        if self.findings.is_empty() {
            let Self { namespace, name, workloads, .. } = self;
            let line = format!("Nothing is wrong with the Secret {namespace}/{name}");
            let of = match workloads.is_empty() {
                true => ".".to_owned(),
                false => format!(", by which {} pull.", workloads.join(" and ")),
            };
            writeln!(out, "{}", one_line(&format!("{line}{of}")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
