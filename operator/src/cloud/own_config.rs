//! The way to the Config API that a Config of the same namespace runs: its members, the CA of the namespace, and its
//! login.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::keystone::{Credentials, Password};
use opensdn_crds::pod::PodConfiguration;
use opensdn_http_client::Trust;
use opensdn_runtime::error_chain;

use super::condition::{NO_CONFIG, NO_CONNECTION, Said};
use super::connection::{self, Texts, Way, secret};
use super::pass::Pass;
use crate::components::{self, config_api, keystone};
use crate::kind::Kind;
use crate::names::{self, TRUST, TRUST_KEY};
use crate::node::Node;
use crate::object::text;
use crate::peers::Peers;
use crate::reconcile::{self, Context};

/// Why there is no way.
enum Error {
    /// What is to be said of it.
    Said(Said),
    /// A Secret is not there, or the cluster cannot be asked.
    Connection(connection::Error),
}

impl From<connection::Error> for Error {
    fn from(error: connection::Error) -> Self {
        Self::Connection(error)
    }
}

/// A Config, and what is around it.
pub(super) struct Reached {
    config: Arc<DynamicObject>,
    pub(super) peers: Peers,
    pub(super) nodes: Vec<Node>,
}

impl Reached {
    /// This one.
    pub(super) fn of(ctx: &Context, config: Arc<DynamicObject>) -> Self {
        let nodes: Vec<Node> =
            ctx.cache.list(Kind::Node, "").iter().map(|node| Node::of(node)).collect();
        let peers = Peers::read(&ctx.cache, &config, &nodes, components::workload_of);
        Self { config, peers, nodes }
    }

    /// The only one of a namespace.
    pub(super) fn only(ctx: &Context, namespace: &str) -> Result<Self, Said> {
        let all = config_api::in_namespace(&ctx.cache, namespace);
        match <[_; 1]>::try_from(all) {
            Ok([config]) => Ok(Self::of(ctx, config)),
            Err(all) if all.is_empty() => Err(Said::waits(
                NO_CONFIG,
                "there is no Config in this namespace, in whose Config API it could be written"
                    .to_owned(),
            )),
            Err(all) => {
                let names: Vec<String> = all.iter().map(|one| one.name_any()).collect();
                let message = format!(
                    "there are several Configs in this namespace ({}): a LinkLocalService is for the only one",
                    names.join(", ")
                );
                Err(Said::stalled("SeveralConfigs", message))
            }
        }
    }

    /// Its URLs.
    fn addresses(&self) -> Vec<String> {
        let name = self.config.name_any();
        let peer = self.peers.of_kind(config_api::COMPONENT.kind).find(|peer| peer.name == name);
        let endpoints = peer.map(|peer| peer.endpoints(config_api::PORT)).unwrap_or_default();
        endpoints.iter().map(|one| format!("https://{one}")).collect()
    }
}

/// The client of the object for it, or why there is none.
pub(super) async fn connect(
    pass: &Pass<'_>,
    reached: &Reached,
) -> Result<Result<Arc<ConfigApi>, Said>, reconcile::Error> {
    let client = match way(pass.ctx, reached).await {
        Ok(way) => {
            let connections = &pass.clouds.connections;
            connections.client(&pass.resource.kind, &pass.object, way)
        }
        Err(Error::Said(said)) => return Ok(Err(said)),
        Err(Error::Connection(error)) => Err(error),
    };
    match client {
        Ok(api) => Ok(Ok(api)),
        Err(connection::Error::Call(error)) => Err(reconcile::Error::Call(error)),
        Err(error) => Ok(Err(Said::stalled(NO_CONNECTION, error_chain(&error)))),
    }
}

/// The way to its Config API.
async fn way(ctx: &Context, reached: &Reached) -> Result<Way, Error> {
    let config = &reached.config;
    let namespace = config.namespace().unwrap_or_default();
    let waits = |message: String| Error::Said(Said::waits(NO_CONFIG, message));
    let addresses = reached.addresses();
    if addresses.is_empty() {
        return Err(waits(format!("the Config {} has no node yet", config.name_any())));
    }
    let Some(trusted) = ctx.cache.get(Kind::ConfigMap, &namespace, TRUST) else {
        return Err(waits("the CA of the namespace is not published yet".to_owned()));
    };
    let pem = text(&trusted.data, &format!("/data/{TRUST_KEY}"));
    let trust = Trust::of_none().with_pem(&format!("the ConfigMap {TRUST}"), pem.as_bytes());
    let trust = trust.map_err(connection::Error::from)?;
    let common = config.data.pointer("/spec/commonConfiguration").cloned().unwrap_or_default();
    let common: PodConfiguration = serde_json::from_value(common).unwrap_or_default();
    let (credentials, login) = login(ctx, config, &common).await?;
    let insecure = keystone::Login::of(&common).insecure;
    Ok(Way {
        version: format!("{addresses:?} {:?} {login}", trusted.metadata.resource_version),
        addresses,
        keystone_trust: if insecure { Trust::unverified() } else { trust.clone() },
        trust,
        credentials,
        record: None,
        texts: Texts::Shown,
    })
}

/// The login, and another text for each other login.
async fn login(
    ctx: &Context,
    config: &DynamicObject,
    common: &PodConfiguration,
) -> Result<(Option<Credentials>, String), Error> {
    if !keystone::is_asked(common) {
        return Ok((None, String::new()));
    }
    let said = keystone::Login::of(common);
    // As the files of daemons have it.
    let (name, key) = match keystone::secret(common) {
        Some(name) => (name, keystone::KEY),
        None => (names::own_secret(&config.name_any(), None), keystone::OWN_KEY),
    };
    let secret = secret(ctx, config, &name, "commonConfiguration.authParameters").await?;
    let password = secret.data.as_ref().and_then(|data| data.get(key));
    let password = password.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned());
    let credentials = Credentials {
        auth_url: format!("{}://{}:{}", said.protocol, said.address, said.admin_port),
        user: said.user,
        password: Password::new(password.unwrap_or_else(|| keystone::PASSWORD.to_owned())),
        project: said.tenant,
        user_domain: said.user_domain,
        project_domain: said.project_domain,
    };
    // But for the password, which its Secret's version stands for.
    let version =
        format!("{credentials:?} {:?} {:?}", said.insecure, secret.metadata.resource_version);
    Ok((Some(credentials), version))
}
