//! Config: the API that the whole network is configured by, and the daemons behind it.

mod containers;
mod files;

use opensdn_crds::component::{self, Component};
use opensdn_crds::config::{ConfigConfiguration, LinklocalServiceConfig};
use serde_json::{Value, json};

use self::containers::Ports;
use super::shared::access::aaa_mode;
use super::shared::around::{around, credentials, passwords};
use super::shared::{logs, node_init, node_manager};
use crate::component::{
    ComponentKind, Description, Given, ServicePort, SettingsError, Template, Volume,
};
use crate::network::Network;
use crate::release::Release;

/// The kind Config.
pub(super) struct Config;

const ROW: &Component = component::row("Config");
const NODE_TYPE: &str = "config";

impl ComponentKind for Config {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn templates(&self) -> &'static [Template] {
        files::TEMPLATES
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: ConfigConfiguration = given.settings()?;
        let ports = Ports::of(&settings);
        let aaa_mode = aaa_mode(given, settings.aaa_mode);
        Ok(Description {
            init_containers: node_init::containers(NODE_TYPE, settings.containers.as_ref()),
            containers: containers::containers(&settings, &ports),
            files: files::files(ports.workers.len()),
            values: values(given, &settings, &ports, aaa_mode),
            volumes: [
                &node_manager::VOLUMES[..],
                &node_init::VOLUMES,
                &[
                    Volume::folder("tftp", "/var/lib/tftp"),
                    Volume::folder("dnsmasq", "/var/lib/dnsmasq"),
                    logs("/var/log/contrail/config"),
                ],
            ]
            .concat(),
            passwords: passwords(given),
            credentials: credentials(given),
            // tf-operator's has 8082 whatever the field says.
            service: Some(ServicePort { number: ports.api, name: Some("api") }),
            depends_on_release: true,
            // The device manager ends dnsmasq to have it read its files again.
            shares_processes: true,
            ..Description::default()
        })
    }
}

fn values(
    given: &Given<'_>,
    settings: &ConfigConfiguration,
    ports: &Ports,
    aaa_mode: &str,
) -> Value {
    // Those of the list the operator writes itself (shared/config_api.rs), so that none of others is lost.
    let services = settings.linklocal_service_config.iter();
    let uwsgi_plugins = match given.release {
        Release::UpToR21 => "python, gevent",
        _ => "python36, python36_gevent",
    };
    json!({
        "around": around(given),
        "provisioner": {},
        "port": ports.api,
        "workers": ports.workers.iter().map(|worker| json!({
            "introspect": worker.introspect,
            "admin": worker.admin,
        })).collect::<Vec<_>>(),
        "uwsgi_plugins": uwsgi_plugins,
        "schema_port": ports.schema,
        "service_monitor_port": ports.service_monitor,
        "device_manager_port": ports.device_manager,
        "aaa_mode": aaa_mode,
        "fabric_ip": settings.fabric_mgmt_ip.as_deref().unwrap_or_default(),
        "external_tftp": settings.use_external_tftp.unwrap_or_default(),
        "auto_mesh": settings.bgp_auto_mesh.unwrap_or(true),
        "four_bytes": settings.bgp_enable_4byte.unwrap_or_default(),
        "linklocal": services.filter_map(LinkLocal::of).map(|service| service.values()).collect::<Vec<_>>(),
    })
}

/// A service of the fabric that workloads reach under a link-local address, with tf-operator's defaults.
struct LinkLocal {
    host: String,
    fabric_port: i64,
    name: String,
    ip: String,
    port: i64,
}

impl LinkLocal {
    /// None without a host: the images leave it out.
    fn of(given: &LinklocalServiceConfig) -> Option<Self> {
        let text = |given: &Option<String>, default: &str| {
            given.clone().filter(|given| !given.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        Some(Self {
            host: given.ip_fabric_service_host.clone().filter(|host| !host.is_empty())?,
            fabric_port: given.ip_fabric_service_port.unwrap_or(8775),
            name: text(&given.name, "metadata"),
            ip: text(&given.ip, "169.254.169.254"),
            port: given.port.unwrap_or(80),
        })
    }

    fn values(&self) -> Value {
        let Self { host, fabric_port, name, ip, port } = self;
        // As the images distinguish one from the other.
        let is_address = Network::parse(&format!("{host}/32")).is_some();
        json!({
            "host": host, "is_address": is_address, "fabric_port": fabric_port,
            "name": name, "ip": ip, "port": port,
        })
    }
}
