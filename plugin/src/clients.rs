//! From kubectl's flags and the kubeconfig to a client, by the rules of client-go. What is asked of
//! a cluster is not known here.

use std::time::Duration;

use clap::{Args, ValueHint};
use kube::{Client, Config, config::KubeConfigOptions};

use crate::cli::Global;
use crate::completion::objects::completer;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;
use bounded::{Limit, bounded};
pub use unanswered::unanswered;
pub(crate) use unanswered::why;

/// A connection, also one for an answer that may go on without end, takes no longer. More than other calls may take,
/// whose own limit says more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(65);

mod bounded;
mod call;
mod credential_plugin;
mod kubeconfig;
mod refusal;
mod unanswered;

/// The flags of kubectl that say which cluster is asked, and as whom. Refused by commands that ask
/// none.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster flags")]
pub struct ClusterFlags {
    /// The kubeconfig file [default: $KUBECONFIG or ~/.kube/config].
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<std::path::PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME", add = kubeconfig::completer("contexts"))]
    pub context: Option<String>,
    /// The cluster of the kubeconfig, instead of the context's.
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME", add = kubeconfig::completer("clusters"))]
    pub cluster: Option<String>,
    /// The user of the kubeconfig, instead of the context's.
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME", add = kubeconfig::completer("users"))]
    pub user: Option<String>,
    /// The namespace, instead of the context's.
    #[arg(short, long, global = true, hide_short_help = true, value_name = "NAME", add = completer("/api/v1/namespaces"))]
    pub namespace: Option<String>,
    /// Address of the API server.
    #[arg(short, long, global = true, hide_short_help = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub server: Option<String>,
    /// The name that the API server's certificate must have, instead of the address's.
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// Do not check the API server's certificate: anyone on the way can read and change everything.
    #[arg(long, global = true, hide_short_help = true, conflicts_with = "certificate_authority")]
    pub insecure_skip_tls_verify: bool,
    /// Certificates of the authorities for the API server's certificate (PEM).
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub certificate_authority: Option<String>,
    /// Your certificate (PEM).
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_certificate: Option<String>,
    /// The key of your certificate (PEM).
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_key: Option<String>,
    /// Your bearer token.
    #[arg(long, global = true, hide_short_help = true, value_name = "TOKEN")]
    pub token: Option<Token>,
    /// Act as this user.
    #[arg(long = "as", id = "as", global = true, hide_short_help = true, value_name = "USER")]
    pub impersonate: Option<String>,
    /// Act as the user with this UID.
    #[arg(long, global = true, hide_short_help = true, value_name = "UID", requires = "as")]
    pub as_uid: Option<String>,
    /// Act as a member of this group (repeatable).
    #[arg(long, global = true, hide_short_help = true, value_name = "GROUP", requires = "as")]
    pub as_group: Vec<String>,
    /// Act as a user with this extra attribute (repeatable).
    #[arg(long, global = true, hide_short_help = true, value_name = "KEY=VALUE", requires = "as", value_parser = extra)]
    pub as_user_extra: Vec<(String, String)>,
    /// How long one request may take: 30s, 1m30s, a number of seconds; 0 is without limit [default: 30s to read, 1m to write].
    #[arg(long, global = true, hide_short_help = true, value_name = "TIME", value_parser = opensdn_duration::parse)]
    pub request_timeout: Option<Duration>,
    /// Never ask for compressed answers. This program never does.
    #[arg(long, global = true, hide_short_help = true)]
    pub disable_compression: bool,
}

/// Marks a command that asks a cluster: `#[command(flatten)] cluster: AsksCluster`. Others refuse
/// [`ClusterFlags`], which would have no effect, and do not show them in their help.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct AsksCluster {}

impl AsksCluster {
    /// The name of the group of arguments by which the mark is found.
    pub(crate) const GROUP: &'static str = "AsksCluster";
}

/// Where the installation is that a command looks at.
#[derive(Clone, Debug, Args)]
pub(crate) struct WebhookNamespace {
    /// The namespace that the webhook runs in.
    #[arg(
        long,
        env = "OPENSDN_NAMESPACE",
        hide_env_values = true,
        default_value = opensdn_deploy::names::NAMESPACE,
        value_name = "NAME"
    )]
    pub(crate) control_namespace: String,
}

/// Marks a command that asks no cluster but says of which context it speaks: of [`ClusterFlags`] it
/// takes `--context` only.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct NamesContext {}

impl NamesContext {
    /// The name of the group of arguments by which the mark is found.
    pub(crate) const GROUP: &'static str = "NamesContext";
}

/// Whether an answer says that there is no such object, or that the API server does not serve such a path. Other servers,
/// such as a proxy on the way, say 404 too, and know nothing of it.
pub(crate) fn is_absent(status: &kube::core::Status) -> bool {
    status.code == 404
        && (status.reason == "NotFound" || status.message.trim() == "404 page not found")
}

/// No API server takes a login in its address, and addresses are shown.
fn without_login(url: http::Uri) -> http::Uri {
    let Some((_, host)) = url.authority().and_then(|authority| authority.as_str().rsplit_once('@'))
    else {
        return url;
    };
    let host = host.parse().ok();
    let mut parts = url.clone().into_parts();
    parts.authority = host.or(parts.authority);
    http::Uri::from_parts(parts).unwrap_or(url)
}

/// A bearer token; never shown.
#[derive(Clone)]
pub struct Token(String);

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

fn extra(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("must be KEY=VALUE"),
    }
}

impl ClusterFlags {
    /// The first of the flags that was given, as it is written.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        // Without `..`, so that no new flag is forgotten.
        let Self {
            kubeconfig,
            context,
            cluster,
            user,
            namespace,
            server,
            tls_server_name,
            insecure_skip_tls_verify,
            certificate_authority,
            client_certificate,
            client_key,
            token,
            impersonate,
            as_uid,
            as_group,
            as_user_extra,
            request_timeout,
            disable_compression,
        } = self;
        let all = [
            ("--kubeconfig", kubeconfig.is_some()),
            ("--context", context.is_some()),
            ("--cluster", cluster.is_some()),
            ("--user", user.is_some()),
            ("--namespace", namespace.is_some()),
            ("--server", server.is_some()),
            ("--tls-server-name", tls_server_name.is_some()),
            ("--insecure-skip-tls-verify", *insecure_skip_tls_verify),
            ("--certificate-authority", certificate_authority.is_some()),
            ("--client-certificate", client_certificate.is_some()),
            ("--client-key", client_key.is_some()),
            ("--token", token.is_some()),
            ("--as", impersonate.is_some()),
            ("--as-uid", as_uid.is_some()),
            ("--as-group", !as_group.is_empty()),
            ("--as-user-extra", !as_user_extra.is_empty()),
            ("--request-timeout", request_timeout.is_some()),
            ("--disable-compression", *disable_compression),
        ];
        all.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    /// Refuses the flags where they would have no effect.
    ///
    /// # Errors
    /// One of them was given. `why` says why it has no effect: `explain asks no cluster`.
    pub fn must_be_absent(&self, why: &str, hint: &str) -> Result<(), Failure> {
        match self.given() {
            Some(flag) => Err(Failure::usage(format!("{flag} has no effect: {why}"), hint)),
            None => Ok(()),
        }
    }
}

impl ClusterFlags {
    /// The context that is used: that of the flag, else the kubeconfig's current one.
    /// Nothing where there is none, or no kubeconfig that can be read: asking says why.
    pub(crate) fn context_in_use(&self) -> Option<String> {
        self.context.clone().or_else(|| kubeconfig::current_context(self))
    }
}

impl Global {
    /// A client of the cluster that the flags and the kubeconfig name. No request is made yet, but
    /// a credential plugin may be run. Call it within the runtime.
    ///
    /// # Errors
    /// There is no kubeconfig, it cannot be read, or it lacks what the flags name.
    pub async fn client(&self) -> Result<Client, Failure> {
        self.client_and_server().await.map(|(client, _)| client)
    }

    /// The same with the address of the API server, for messages.
    ///
    /// # Errors
    /// As for [`Self::client`].
    pub async fn client_and_server(&self) -> Result<(Client, String), Failure> {
        let say = |text: &str| Ui::new(self, None).note(text);
        self.cluster.client_and_server(say).await
    }
}

impl ClusterFlags {
    /// As [`Global::client_and_server`]. `say` is given a line where that takes a while.
    pub(crate) async fn client_and_server(
        &self,
        say: impl FnOnce(&str),
    ) -> Result<(Client, String), Failure> {
        let config = self.config().await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = credential_plugin::client(config, self.request_timeout, say).await?;
        let limit = self.request_timeout.map_or(Limit::Default, Limit::Stated);
        Ok((bounded(client, limit), server))
    }
}

impl ClusterFlags {
    /// What a client needs to know.
    async fn config(&self) -> Result<Config, Failure> {
        let mut config = match kubeconfig::chosen(self)? {
            Some(kubeconfig) => {
                let options = KubeConfigOptions::default();
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
                    let hint = "look at it with: kubectl config view --minify";
                    let message = "the kubeconfig cannot be used";
                    Failure::new(Exit::Usage, "kubeconfig", message, hint).because(&error)
                })?
            }
            None => self.config_of_pod()?,
        };
        config.cluster_url = without_login(config.cluster_url);
        config.proxy_url = opensdn_proxy::for_server(&config.cluster_url, config.proxy_url);
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        // All of a call has one limit, and busy servers are asked again within it: `bounded.rs`.
        config.default_retry = false;
        config.read_timeout = None;
        config.write_timeout = None;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        Ok(config)
    }

    /// Within a pod the service account is used, as kubectl does; the flags still say who one is.
    fn config_of_pod(&self) -> Result<Config, Failure> {
        let mut config = Config::incluster_env().map_err(|error| {
            let message = "there is no kubeconfig, and the service account of the pod is unusable";
            let hint = "name a kubeconfig with --kubeconfig";
            Failure::new(Exit::Unreachable, "no-kubeconfig", message, hint).because(&error)
        })?;
        kubeconfig::identify(self, &mut config.auth_info);
        Ok(config)
    }
}

/// A client of a server that a test has started. As that of a command it does not try again by itself.
#[cfg(test)]
pub(crate) fn of_tests(url: String) -> Client {
    let mut config = Config::new(url.parse().unwrap());
    config.proxy_url = None;
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
