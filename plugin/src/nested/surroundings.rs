//! What stands beside a plan and decides whether it works: the release of the images, the certificates of services that
//! speak TLS, and the passwords that kube-manager will read. What cannot be found out is unknown with its reason. A password
//! is looked at and not kept.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use futures::future::join_all;
use opensdn_crds::nested_cluster::Connectivity;
use opensdn_error_chain::error_chain;
use opensdn_http_client::certificate_of;
use opensdn_nested::{Code, Driver, Fact, Finding, Input, Role, Severity, Subject};
use opensdn_nested_workloads::Release;
use opensdn_nested_workloads::password::{InFile, for_keystone, in_configuration};
use serde_json::Value;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::snapshot::Read;
use crate::snapshot::ask::Asker;

/// How long a server has to show its certificate.
const LIMIT: Duration = Duration::from_secs(5);
/// Where nested manifest puts the workloads, and so their Secrets.
const NAMESPACE: &str = "kube-system";
/// By whose JSON upstream's client logs in.
const KEYSTONE: &str = "KEYSTONE_AUTH_ADMIN_PASSWORD";
const RABBITMQ: &str = "RABBITMQ_PASSWORD";
/// The first release whose images speak CQL alone.
const FIRST_CQL: Release = Release(24, 1);

/// What a plan looks at beside the cloud.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workloads")]
pub(crate) struct SurroundingsFlags {
    /// The tag of the images, such as R24.1: by the release it is known how they speak to the config database.
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Name of the Secret with the password of kube-manager's user, in -n or else kube-system: whether kube-manager can
    /// use the password is looked at [default: $KEYSTONE_AUTH_ADMIN_PASSWORD, where it is set].
    #[arg(long, value_name = "NAME")]
    keystone_secret: Option<String>,
    /// Key of that Secret that has the password.
    #[arg(long, value_name = "KEY", default_value = "password", requires = "keystone_secret")]
    keystone_password_key: String,
    /// Name of the Secret with the key password of the message bus [default: $RABBITMQ_PASSWORD, where it is set].
    #[arg(long, value_name = "NAME")]
    rabbitmq_secret: Option<String>,
}

/// A password that kube-manager will read.
struct Looked {
    variable: &'static str,
    /// How it gets there; nothing where none was given.
    state: Fact<Option<InFile>>,
}

impl SurroundingsFlags {
    /// Puts what is found into the inputs of a plan.
    pub(crate) async fn look(
        &self,
        input: &mut Input,
        asker: &Asker,
        namespace: Option<&str>,
        config_api: &[String],
    ) {
        input.choices.driver = self.tag.as_deref().map(driver_of);
        let namespace = namespace.unwrap_or(NAMESPACE);
        let keystone =
            (KEYSTONE, self.keystone_secret.as_deref(), self.keystone_password_key.as_str());
        let rabbitmq = (RABBITMQ, self.rabbitmq_secret.as_deref(), "password");
        let (keystone, rabbitmq) =
            futures::join!(looked(asker, namespace, keystone), looked(asker, namespace, rabbitmq));
        take_passwords(input, [keystone, rabbitmq]);
        if input.connectivity == Connectivity::LinkLocal {
            take_certificates(input, config_api).await;
        }
    }
}

async fn looked(
    asker: &Asker,
    namespace: &str,
    (variable, secret, key): (&'static str, Option<&str>, &str),
) -> Looked {
    let state = match secret {
        Some(secret) => {
            let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
            let unknown =
                |why: &str| Fact::Unknown(format!("the Secret {namespace}/{secret}: {why}"));
            match asker.get(&path).await {
                Read::Known(object) => match password(&object, key) {
                    Some(password) => Fact::Known(Some(in_file(variable, &password))),
                    None => unknown(&format!("it has no text under the key {key}")),
                },
                Read::Absent => unknown("it is not there yet"),
                Read::Unknown(why) => unknown(&why),
            }
        }
        None => {
            let set = std::env::var(variable).ok().filter(|value| !value.is_empty());
            Fact::Known(set.map(|password| in_file(variable, &password)))
        }
    };
    Looked { variable, state }
}

fn password(secret: &Value, key: &str) -> Option<String> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
}

fn in_file(variable: &str, password: &str) -> InFile {
    if variable == KEYSTONE { for_keystone(password) } else { in_configuration(password) }
}

/// Of a cluster with Keystone somebody's password will be read; whose is not known where none was named.
fn take_passwords(input: &mut Input, all: [Looked; 2]) {
    let mut percent = Vec::new();
    let mut unknown = Vec::new();
    let mut is_any = false;
    for Looked { variable, state } in all {
        match state {
            Fact::Known(Some(InFile::Escaped(_))) => percent.push(variable.to_owned()),
            Fact::Known(Some(InFile::Impossible(why))) => {
                input.problems.push(impossible(variable, why))
            }
            Fact::Known(Some(InFile::Plain)) => {}
            Fact::Known(None)
                if variable == KEYSTONE && input.services.contains_key(&Role::Keystone) =>
            {
                unknown.push("Keystone's password was not looked at: --keystone-secret".to_owned());
            }
            Fact::Known(None) => continue,
            Fact::Unknown(why) => unknown.push(why),
        }
        is_any = true;
    }
    input.choices.percent_passwords = match unknown.is_empty() {
        // One that is known to be bad is worth more than one that is not known.
        true => is_any.then_some(Fact::Known(percent)),
        false if percent.is_empty() => Some(Fact::Unknown(unknown.join("; "))),
        false => Some(Fact::Known(percent)),
    };
}

fn impossible(variable: &str, why: &str) -> Finding {
    Finding {
        code: Code::PasswordUnusable,
        severity: Severity::Warning,
        about: Subject::Field(variable.to_owned()),
        message: format!("kube-manager cannot log in by the password: {why}"),
        hint: "change the password, in the service and in the Secret".to_owned(),
    }
}

/// How images of a release speak to the config database.
pub(super) fn driver_of(tag: &str) -> Fact<Driver> {
    match Release::of_tag(tag) {
        Some(release) if release >= FIRST_CQL => Fact::Known(Driver::Cql),
        Some(_) => Fact::Known(Driver::Thrift),
        None => {
            Fact::Unknown(format!("the tag {tag:?} does not say of which release the images are"))
        }
    }
}

/// Of services that speak TLS, which their own addresses say.
async fn take_certificates(input: &mut Input, config_api: &[String]) {
    let is_tls = |address: &String| address.starts_with("https:");
    let keystone = std::env::var("OS_AUTH_URL").ok();
    let speaking = [
        (Role::Config, config_api.iter().any(is_tls)),
        (Role::Keystone, keystone.as_ref().is_some_and(is_tls)),
    ];
    for (role, _) in speaking.into_iter().filter(|(_, speaks)| *speaks) {
        let Some(service) = input.services.get(&role) else { continue };
        let port = service.fabric_port;
        let nodes: Vec<Ipv4Addr> = service.nodes.iter().copied().collect();
        let names = names_of(&nodes, port).await;
        input.choices.certificates.insert(role, names);
    }
}

/// The names in the certificates of all nodes: each node may have one of its own.
async fn names_of(nodes: &[Ipv4Addr], port: u16) -> Fact<BTreeSet<String>> {
    let one = async |node: &Ipv4Addr| {
        let server = SocketAddr::from((*node, port));
        let shown = certificate_of(server, LIMIT).await.map_err(|error| error_chain(&error))?;
        names_in(&shown).ok_or_else(|| format!("the certificate of {server} cannot be read"))
    };
    let all = join_all(nodes.iter().map(one)).await;
    let all: Result<Vec<BTreeSet<String>>, String> = all.into_iter().collect();
    match all {
        Ok(all) => Fact::Known(all.into_iter().flatten().collect()),
        Err(why) => Fact::Unknown(format!("{why}, from this machine")),
    }
}

/// The names and addresses that a certificate is for. The common name does not count for today's clients.
fn names_in(certificate: &[u8]) -> Option<BTreeSet<String>> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let extension = certificate.subject_alternative_name().ok()?;
    let names = extension.iter().flat_map(|one| one.value.general_names.iter());
    Some(
        names
            .filter_map(|name| match name {
                GeneralName::DNSName(name) => Some((*name).to_owned()),
                GeneralName::IPAddress(bytes) => {
                    let octets: [u8; 4] = (*bytes).try_into().ok()?;
                    Some(Ipv4Addr::from(octets).to_string())
                }
                _ => None,
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests;
