//! Which cluster and which user: the kubeconfig files by the rules of client-go, with the flags over
//! them. Deliberately not here: certificates, tokens and plugins, which are kube's.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};

use super::ClusterFlags;
use crate::exit::{Exit, Failure};

/// What the chosen cluster, user and context are called once the flags are in them.
const CHOSEN: &str = "chosen";

/// A kubeconfig with exactly the cluster and user that the flags and files say. Nothing where there
/// is no file and no flag, but a pod's service account.
pub(super) fn chosen(flags: &ClusterFlags) -> Result<Option<Kubeconfig>, Failure> {
    let Files { merged, looked_at } = Files::read(flags)?;
    let Some(config) = merged.or_else(|| flags.server.is_some().then(Kubeconfig::default)) else {
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty()) {
            return Ok(None);
        }
        let message = format!("no kubeconfig found; looked at {looked_at}");
        let hint = "name one with --kubeconfig, or set KUBECONFIG";
        return Err(Failure::new(Exit::Unreachable, "no-kubeconfig", message, hint));
    };
    let context = context(&config, flags)?;
    let cluster = cluster(&config, flags, &context)?;
    let user = user(&config, flags, &context)?;
    let named = |name: &str| name.to_owned();
    Ok(Some(Kubeconfig {
        clusters: vec![NamedCluster {
            name: named(CHOSEN),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: named(CHOSEN),
            auth_info: Some(user),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: named(CHOSEN),
            context: Some(Context {
                cluster: named(CHOSEN),
                user: Some(named(CHOSEN)),
                namespace: context.namespace.filter(|namespace| !namespace.is_empty()),
                ..Context::default()
            }),
            ..NamedContext::default()
        }],
        current_context: Some(named(CHOSEN)),
        ..Kubeconfig::default()
    }))
}

struct Files {
    /// Nothing where there is no file.
    merged: Option<Kubeconfig>,
    /// For the message when there is none.
    looked_at: String,
}

impl Files {
    /// `--kubeconfig` alone if given, else each of `KUBECONFIG` that exists, else the file at home.
    fn read(flags: &ClusterFlags) -> Result<Self, Failure> {
        let variable = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let listed: Vec<PathBuf> =
            std::env::split_paths(&variable).filter(|path| !path.as_os_str().is_empty()).collect();
        let home = std::env::home_dir().map(|home| home.join(".kube").join("config"));
        let (paths, whence) = match &flags.kubeconfig {
            Some(path) => (vec![path.clone()], "--kubeconfig"),
            None if listed.is_empty() => (home.into_iter().collect(), "home"),
            None => (listed, "KUBECONFIG"),
        };
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let looked_at = match names.as_slice() {
            [] => "nothing, for HOME is not set".to_owned(),
            names => format!("{} ({whence})", names.join(", ")),
        };
        let mut merged: Option<Kubeconfig> = None;
        for path in paths {
            // Like client-go: only the file that a flag names has to be there.
            if flags.kubeconfig.is_none() && !path.exists() {
                continue;
            }
            let file = Kubeconfig::read_from(&path).map_err(|error| unusable(&path, &error))?;
            merged = Some(match merged {
                None => file,
                Some(before) => before.merge(file).map_err(|error| unusable(&path, &error))?,
            });
        }
        Ok(Self { merged, looked_at })
    }
}

/// The current context, where a kubeconfig can be read and names one.
pub(super) fn current_context(flags: &ClusterFlags) -> Option<String> {
    let config = Files::read(flags).ok()?.merged?;
    config.current_context.filter(|name| !name.is_empty())
}

fn unusable(path: &std::path::Path, error: &kube::config::KubeconfigError) -> Failure {
    let message = format!("the kubeconfig {} cannot be used", path.display());
    let hint = "correct the file, or name another one with --kubeconfig";
    Failure::new(Exit::Usage, "kubeconfig", message, hint).because(error)
}

fn context(config: &Kubeconfig, flags: &ClusterFlags) -> Result<Context, Failure> {
    let current = config.current_context.as_ref().filter(|name| !name.is_empty());
    let Some(name) = flags.context.as_ref().or(current) else {
        if flags.cluster.is_some() || flags.server.is_some() {
            return Ok(Context::default());
        }
        let names = config.contexts.iter().map(|context| context.name.as_str());
        let message = "the kubeconfig has no current context".to_owned();
        return Err(missing(message, "--context", names));
    };
    let found = config.contexts.iter().find(|context| &context.name == name);
    found.and_then(|found| found.context.clone()).ok_or_else(|| {
        let names = config.contexts.iter().map(|context| context.name.as_str());
        missing(format!("the kubeconfig has no context {name}"), "--context", names)
    })
}

fn cluster(
    config: &Kubeconfig,
    flags: &ClusterFlags,
    context: &Context,
) -> Result<Cluster, Failure> {
    let name = flags.cluster.as_deref().unwrap_or(&context.cluster);
    let found = config.clusters.iter().find(|cluster| cluster.name == name);
    let mut cluster = match found.and_then(|found| found.cluster.clone()) {
        Some(cluster) => cluster,
        None if flags.cluster.is_none() && flags.server.is_some() => Cluster::default(),
        None => {
            let names = config.clusters.iter().map(|cluster| cluster.name.as_str());
            let message = format!("the kubeconfig has no cluster {name}");
            return Err(missing(message, "--cluster", names));
        }
    };
    if let Some(server) = &flags.server {
        cluster.server = Some(with_scheme(server));
    }
    // A name for the certificate belongs to one address.
    if flags.server.is_some() || flags.tls_server_name.is_some() {
        cluster.tls_server_name.clone_from(&flags.tls_server_name);
    }
    if flags.insecure_skip_tls_verify || flags.certificate_authority.is_some() {
        cluster.insecure_skip_tls_verify = Some(flags.insecure_skip_tls_verify);
        cluster.certificate_authority.clone_from(&flags.certificate_authority);
        cluster.certificate_authority_data = None;
    }
    Ok(cluster)
}

/// client-go takes `localhost:8080` too, and means http.
fn with_scheme(server: &str) -> String {
    if server.contains("://") { server.to_owned() } else { format!("http://{server}") }
}

fn user(config: &Kubeconfig, flags: &ClusterFlags, context: &Context) -> Result<AuthInfo, Failure> {
    let name = flags.user.as_ref().or(context.user.as_ref());
    let found = config.auth_infos.iter().find(|user| Some(&user.name) == name);
    let mut user = match found.and_then(|found| found.auth_info.clone()) {
        Some(user) => user,
        // A context without a user, or with one that is not there, is anonymous for client-go.
        None if flags.user.is_none() => AuthInfo::default(),
        None => {
            let names = config.auth_infos.iter().map(|user| user.name.as_str());
            let name = name.map(String::as_str).unwrap_or_default();
            return Err(missing(format!("the kubeconfig has no user {name}"), "--user", names));
        }
    };
    identify(flags, &mut user);
    Ok(user)
}

/// Puts the flags that say who one is over what a file or pod says.
pub(super) fn identify(flags: &ClusterFlags, user: &mut AuthInfo) {
    if let Some(token) = &flags.token {
        *user = AuthInfo {
            token: Some(token.0.clone().into()),
            client_certificate: user.client_certificate.take(),
            client_certificate_data: user.client_certificate_data.take(),
            client_key: user.client_key.take(),
            client_key_data: user.client_key_data.take(),
            ..AuthInfo::default()
        };
    }
    if flags.client_certificate.is_some() {
        user.client_certificate.clone_from(&flags.client_certificate);
        user.client_certificate_data = None;
    }
    if flags.client_key.is_some() {
        user.client_key.clone_from(&flags.client_key);
        user.client_key_data = None;
    }
    if flags.impersonate.is_some() {
        user.impersonate.clone_from(&flags.impersonate);
        user.impersonate_uid.clone_from(&flags.as_uid);
        user.impersonate_groups = Some(flags.as_group.clone());
        let mut extras = std::collections::HashMap::<String, Vec<String>>::new();
        for (key, value) in &flags.as_user_extra {
            extras.entry(key.clone()).or_default().push(value.clone());
        }
        user.impersonate_user_extra = Some(extras);
    }
}

fn missing<'a>(message: String, flag: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let names: Vec<&str> = names.collect();
    let hint = match names.as_slice() {
        [] => "the kubeconfig names none: is it the right file?".to_owned(),
        names => format!("use {flag} with one of: {}", names.join(", ")),
    };
    Failure::new(Exit::Usage, "kubeconfig", message, hint)
}

/// Completes the names of one list of the kubeconfig. It stays silent where there is none.
pub(super) fn completer(list: &'static str) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let Ok(Files { merged: Some(config), .. }) =
            Files::read(&crate::completion::objects::asked())
        else {
            return Vec::new();
        };
        let names: Vec<String> = match list {
            "contexts" => config.contexts.into_iter().map(|one| one.name).collect(),
            "clusters" => config.clusters.into_iter().map(|one| one.name).collect(),
            _ => config.auth_infos.into_iter().map(|one| one.name).collect(),
        };
        let current = current.to_string_lossy();
        let fitting = names.into_iter().filter(|name| name.starts_with(current.as_ref()));
        fitting.map(CompletionCandidate::new).collect()
    })
}

#[cfg(test)]
mod tests;
