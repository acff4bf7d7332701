//! The way to the Config API of the cloud: its addresses by flags or the NestedCluster, the login by the variables that
//! OpenStack's own clients read. Neither password nor token is ever an argument.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use opensdn_config_api::ConfigApi;
use opensdn_config_api::keystone::{Credentials, Keystone, Password};
use opensdn_crds::nested_cluster::NestedClusterSpec;
use opensdn_http_client::{HttpClient, Trust};

use crate::exit::{Exit, Failure};

const CONNECT: Duration = Duration::from_secs(10);
const CALL: Duration = Duration::from_secs(60);
const PORT: u16 = 8082;

/// The Config API of the cloud.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Config API")]
pub(crate) struct ConfigApiFlags {
    /// Its addresses [default: those of the NestedCluster, else http://NODE:8082 of each config node].
    #[arg(long, env = "OPENSDN_CONFIG_API", hide_env_values = true, value_name = "URL", value_delimiter = ',', value_hint = ValueHint::Url)]
    config_api: Vec<String>,
    /// Certificates of the authorities for its certificate and Keystone's (PEM) [default: $OS_CACERT].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config_api_ca: Option<PathBuf>,
    /// Do not check these certificates: anyone on the way can read and change everything.
    #[arg(long, conflicts_with = "config_api_ca")]
    config_api_skip_tls_verify: bool,
}

/// Who says where the Config API is, where no flag of it does. A login goes to no address that a file alone has: the file
/// may be another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaidBy {
    /// The NestedCluster of a file.
    File,
    /// Flags with the nodes of the control plane.
    Flags,
}

impl ConfigApiFlags {
    /// A client of it.
    ///
    /// # Errors
    /// An address, a file or a variable cannot be used.
    pub(crate) fn client(
        &self,
        spec: &NestedClusterSpec,
        said_by: SaidBy,
    ) -> Result<ConfigApi, Failure> {
        let addresses = self.addresses(spec);
        let is_of_file = self.config_api.is_empty() && said_by == SaidBy::File;
        if let Some(user) = set("OS_AUTH_URL").filter(|_| is_of_file).and(set("OS_USERNAME")) {
            let addresses = addresses.join(",");
            let message = format!(
                "the file says that the Config API is at {addresses}, and the login of {user} would be sent there"
            );
            let hint = format!(
                "if that is your cloud, say it: --config-api {addresses}, or once for all: export OPENSDN_CONFIG_API={addresses}"
            );
            return Err(Failure::new(Exit::Usage, "config-api-of-file", message, hint));
        }
        self.client_of(&addresses)
    }

    /// The same where nothing but flags says where it is.
    ///
    /// # Errors
    /// As of [`Self::client`], or no address is given.
    pub(crate) fn client_without_spec(&self) -> Result<ConfigApi, Failure> {
        if self.config_api.is_empty() {
            let message = "it is not known where the Config API is";
            return Err(Failure::usage(message, "--config-api http://192.168.1.100:8082"));
        }
        self.client_of(&self.config_api)
    }

    fn client_of(&self, addresses: &[String]) -> Result<ConfigApi, Failure> {
        let unusable = |error: &dyn std::error::Error| {
            let message = "the Config API cannot be asked";
            let hint =
                "look at --config-api, --config-api-ca and the variables OS_...: --help has all";
            Failure::new(Exit::Usage, "unusable-config-api", message, hint).because(error)
        };
        let http = || -> Result<HttpClient, opensdn_http_client::Error> {
            HttpClient::new(self.trust()?, CONNECT)
        };
        let keystone = match credentials()? {
            Some(credentials) => {
                let http = http().map_err(|error| unusable(&error))?;
                Some(Keystone::new(http, credentials).map_err(|error| unusable(&error))?)
            }
            None => None,
        };
        let http = http().map_err(|error| unusable(&error))?;
        ConfigApi::new(http, addresses, keystone, CALL).map_err(|error| unusable(&error))
    }

    fn trust(&self) -> Result<Trust, opensdn_http_client::Error> {
        if self.config_api_skip_tls_verify {
            return Ok(Trust::unverified());
        }
        let of_variable = set("OS_CACERT").map(PathBuf::from);
        match self.config_api_ca.clone().or(of_variable) {
            Some(file) => Trust::of_machine().with_file(&file),
            None => Ok(Trust::of_machine()),
        }
    }

    /// Where it is.
    pub(crate) fn addresses(&self, spec: &NestedClusterSpec) -> Vec<String> {
        if !self.config_api.is_empty() {
            return self.config_api.clone();
        }
        if !spec.config_api.urls.is_empty() {
            return spec.config_api.urls.clone();
        }
        let port = spec.services.config.port.unwrap_or(PORT.into());
        let nodes = spec.services.config.addresses.iter();
        nodes.map(|node| format!("http://{node}:{port}")).collect()
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn credentials() -> Result<Option<Credentials>, Failure> {
    let Some(auth_url) = set("OS_AUTH_URL") else { return Ok(None) };
    let needed = |names: &[&str]| {
        names.iter().find_map(|name| set(name)).ok_or_else(|| {
            let message = format!("OS_AUTH_URL is set, and {} is not", names.join(" or "));
            Failure::usage(message, "source the openrc file of a user with the role admin")
        })
    };
    let [user_domain, project_domain] = [domain("OS_USER_DOMAIN")?, domain("OS_PROJECT_DOMAIN")?];
    Ok(Some(Credentials {
        user: needed(&["OS_USERNAME"])?,
        password: Password::new(needed(&["OS_PASSWORD"])?),
        project: needed(&["OS_PROJECT_NAME", "OS_TENANT_NAME"])?,
        user_domain,
        project_domain,
        auth_url,
    }))
}

/// The name of a domain. Keystone calls the one that it makes itself `Default`, with the id `default`.
fn domain(of: &str) -> Result<String, Failure> {
    let [name, id] = ["NAME", "ID"].map(|what| format!("{of}_{what}"));
    match (set(&name), set(&id)) {
        (Some(name), _) => Ok(name),
        (None, None) => Ok("Default".to_owned()),
        (None, Some(default)) if default == "default" => Ok("Default".to_owned()),
        (None, Some(_)) => {
            let message =
                format!("{id} is set, and {name} is not: the domain is needed by its name");
            Err(Failure::usage(message, "openstack domain show ID -f value -c name has it"))
        }
    }
}
