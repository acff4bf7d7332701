//! The Secret with the login to a registry: made, and one that is there checked. Whether the registry takes
//! the login is not here: that takes a client.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{PodSpec, Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::finding::Severity;
use crate::shape;

const TYPE: &str = "kubernetes.io/dockerconfigjson";
const KEY: &str = ".dockerconfigjson";
/// What kubelet takes, too: the older form, without `auths` around it.
const OLD_TYPE: &str = "kubernetes.io/dockercfg";
const OLD_KEY: &str = ".dockercfg";
/// What images without a registry are of, and kubelet's name for it.
const DOCKER_HUB: &str = "docker.io";
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// A login to a registry. The password comes from a file, the environment or stdin, never from the
/// command line.
#[derive(Clone)]
pub struct Login {
    /// The registry; a path behind the host, as in `hub.example.com/contrail`, is left out.
    pub server: String,
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
    /// The address that some registries want.
    pub email: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, username, .. } = self;
        formatter.debug_struct("Login").field("server", server).field("username", username).finish()
    }
}

/// Why there is no Secret of a login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The name is no name of a Secret, or the namespace none.
    #[error("{field} is {value:?}: it {rule}")]
    Name {
        /// Which of them.
        field: &'static str,
        /// As given.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// The registry is no host.
    #[error("the registry {0:?} is not a host with or without a port")]
    Server(String),
    /// The user is empty, or would end at its colon.
    #[error("the user of the registry {0:?} is empty or has a colon")]
    Username(String),
    /// The file is not written.
    #[error("write the login as JSON")]
    Json(#[source] serde_json::Error),
}

#[derive(Serialize)]
struct File<'l> {
    auths: BTreeMap<String, Written<'l>>,
}

#[derive(Serialize)]
struct Written<'l> {
    username: &'l str,
    password: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'l str>,
    auth: String,
}

/// The Secret that pods name in imagePullSecrets.
///
/// # Errors
/// A name is none, or the login is not as it must be.
pub fn secret(name: &str, namespace: &str, login: &Login) -> Result<Secret, LoginError> {
    let names = [("name", name, shape::NAME), ("namespace", namespace, shape::LABEL)];
    for (field, value, shape) in names {
        if !shape.holds(value) {
            let (value, rule) = (value.to_owned(), shape.rule);
            return Err(LoginError::Name { field, value, rule });
        }
    }
    let host = host(&login.server);
    if !is_host(host) {
        return Err(LoginError::Server(login.server.clone()));
    }
    let Login { username, password, email, .. } = login;
    if username.is_empty() || username.contains(':') {
        return Err(LoginError::Username(username.clone()));
    }
    let auth = BASE64_STANDARD.encode(format!("{username}:{password}"));
    let written = Written { username, password, email: email.as_deref(), auth };
    let file = File { auths: [(key(&login.server).to_owned(), written)].into() };
    let json = serde_json::to_vec(&file).map_err(LoginError::Json)?;
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some(TYPE.to_owned()),
        data: Some([(KEY.to_owned(), ByteString(json))].into()),
        ..Secret::default()
    })
}

/// The key under which the login to a registry is: its host, without the path.
#[must_use]
pub fn key(server: &str) -> &str {
    let host = host(server);
    if host == DOCKER_HUB { DOCKER_HUB_KEY } else { host }
}

/// What is wrong with the Secret of a registry, or with who refers to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is none of that name.
    #[error("the registry Secret {0} is not there")]
    Missing(String),
    /// It is of a type that kubelet does not take.
    #[error("the registry Secret has type {0:?}; kubelet takes kubernetes.io/dockerconfigjson")]
    Type(String),
    /// It has not the key of its type.
    #[error("the registry Secret has no key {0}")]
    Key(&'static str),
    /// It does not parse; what is in it is not shown.
    #[error("{key} of the registry Secret is not as docker login writes it: line {line}")]
    Json {
        /// The key.
        key: &'static str,
        /// Where.
        line: usize,
    },
    /// The login of a registry is not base64 of USER:PASSWORD, for which kubelet refuses the whole Secret.
    #[error("the login of {0:?} in the registry Secret is not USER:PASSWORD in base64")]
    Auth(String),
    /// No login is for the registry of the image.
    #[error(
        "the registry Secret has no login for {registry}, from which {image} comes; it has: {logins}"
    )]
    NotCovered {
        /// The image.
        image: String,
        /// Its registry.
        registry: String,
        /// Those that it has a login for.
        logins: String,
    },
    /// It is in another namespace than the pods.
    #[error("the registry Secret is in namespace {found}, the pods are in {wanted}")]
    Namespace {
        /// Where it is.
        found: String,
        /// Where it must be.
        wanted: String,
    },
    /// Neither the pods nor their account name it.
    #[error(
        "neither the pods nor their service account name the registry Secret {0} in imagePullSecrets"
    )]
    NotReferenced(String),
}

impl Problem {
    /// Its stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing(_) | Self::Type(_) | Self::Key(_) | Self::Json { .. } | Self::Auth(_) => {
                "OSDN3061"
            }
            Self::NotCovered { .. } => "OSDN3062",
            Self::Namespace { .. } | Self::NotReferenced(_) => "OSDN3063",
        }
    }

    /// What to do.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Missing(_) => {
                "make it: kubectl opensdn nested registry-secret NAME --registry HOST"
            }
            Self::Type(_) => "delete it, and make it: the type of a Secret cannot be changed",
            Self::Key(_) | Self::Json { .. } | Self::Auth(_) => {
                "write it again: kubectl opensdn nested registry-secret NAME --registry HOST"
            }
            Self::NotCovered { .. } => {
                "add a login for the host, unless the registry is public or the nodes have logins of their own"
            }
            Self::Namespace { .. } => "make it in the namespace of the pods: -n NAMESPACE",
            Self::NotReferenced(_) => {
                "name it in imagePullSecrets of the pods (nested manifest --registry-secret) or of their account"
            }
        }
    }

    /// A registry may be public, or the nodes have logins of their own: without trying it, no login for it
    /// is no error.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::NotCovered { .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

/// Who uses the Secret.
#[derive(Clone, Copy, Debug)]
pub struct Use<'u> {
    /// Namespace of the pods.
    pub namespace: &'u str,
    /// The pods.
    pub pod: &'u PodSpec,
    /// Their service account, if it is known.
    pub account: Option<&'u ServiceAccount>,
    /// The images that they pull.
    pub images: &'u [&'u str],
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
}

/// All that is wrong with a Secret of that name, which is none where it was not found.
#[must_use]
pub fn check(name: &str, secret: Option<&Secret>, of: &Use<'_>) -> Vec<Problem> {
    let Some(secret) = secret else { return vec![Problem::Missing(name.to_owned())] };
    let mut found = content(secret, of.images);
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    if namespace != of.namespace {
        let (found_in, wanted) = (namespace.to_owned(), of.namespace.to_owned());
        found.push(Problem::Namespace { found: found_in, wanted });
    }
    let of_pod = of.pod.image_pull_secrets.iter().flatten();
    let of_account = of.account.into_iter().flat_map(|account| account.image_pull_secrets.iter());
    if !of_pod.chain(of_account.flatten()).any(|reference| reference.name == name) {
        found.push(Problem::NotReferenced(name.to_owned()));
    }
    found
}

fn content(secret: &Secret, images: &[&str]) -> Vec<Problem> {
    let entries = match logins(secret) {
        Ok(entries) => entries,
        Err(problem) => return vec![problem],
    };
    let broken = entries.iter().filter(|(_, entry)| !entry.is_right());
    let mut found: Vec<_> = broken.map(|(key, _)| Problem::Auth(key.clone())).collect();
    for image in images {
        if !entries.keys().any(|key| covers(key, image)) {
            let logins = entries.keys().cloned().collect::<Vec<_>>().join(", ");
            let registry = registry(image).to_owned();
            found.push(Problem::NotCovered { image: (*image).to_owned(), registry, logins });
        }
    }
    found
}

fn logins(secret: &Secret) -> Result<BTreeMap<String, Entry>, Problem> {
    let (key, is_old) = match secret.type_.as_deref().unwrap_or("Opaque") {
        TYPE => (KEY, false),
        OLD_TYPE => (OLD_KEY, true),
        other => return Err(Problem::Type(other.to_owned())),
    };
    let bytes = secret.data.as_ref().and_then(|data| data.get(key)).ok_or(Problem::Key(key))?;
    let read = if is_old {
        serde_json::from_slice(&bytes.0)
    } else {
        serde_json::from_slice::<Read>(&bytes.0).map(|read| read.auths)
    };
    read.map_err(|error| Problem::Json { key, line: error.line() })
}

impl Entry {
    fn is_right(&self) -> bool {
        let decoded = BASE64_STANDARD.decode(self.auth.trim()).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        self.auth.is_empty() || text.is_some_and(|text| text.contains(':'))
    }
}

/// As kubelet compares them: by the host, and by the beginning of the path where the key has one.
fn covers(key: &str, image: &str) -> bool {
    let path = |text: &str| {
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (_, path) = text.split_once('/').unwrap_or_default();
        let path = path.trim_end_matches('/').to_owned();
        // Those of the protocol, as docker login writes them.
        if path == "v1" || path == "v2" { String::new() } else { path }
    };
    let key_path = path(key);
    is_same_host(host(key), registry(image))
        && (key_path.is_empty() || path(image).starts_with(&key_path))
}

/// A part of the key may have a `*`, as in `*.example.com`.
fn is_same_host(key: &str, registry: &str) -> bool {
    let is_part = |(key, part): (&str, &str)| match key.split_once('*') {
        Some((begin, end)) => {
            part.len() >= begin.len() + end.len() && part.starts_with(begin) && part.ends_with(end)
        }
        None => key == part,
    };
    let parts = key.split('.').zip(registry.split('.'));
    key.split('.').count() == registry.split('.').count() && parts.into_iter().all(is_part)
}

/// The registry of an image.
#[must_use]
pub fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => canonical(first),
        _ => DOCKER_HUB,
    }
}

fn canonical(host: &str) -> &str {
    if ["index.docker.io", "registry-1.docker.io"].contains(&host) { DOCKER_HUB } else { host }
}

/// Without scheme and path.
fn host(server: &str) -> &str {
    let server = server.split_once("://").map_or(server, |(_, rest)| rest);
    canonical(server.split('/').next().unwrap_or_default())
}

/// A name or an address, with or without a port.
pub(crate) fn is_host(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    shape::is_name(host) && port.is_none_or(is_port)
}

#[cfg(test)]
mod tests;
