//! The containers of Config, and where they listen.

use opensdn_crds::config::ConfigConfiguration;

use super::super::shared::{node_manager, port, provisioner};
use super::{LinkLocal, NODE_TYPE, ROW};
use crate::component::{Check, Container, Introspect, Mount};

const NODE_MANAGER: u16 = ROW.fixed_port("nodemanager");
/// Each has a file for each pod, and all files are in one ConfigMap, which cannot have more than a mebibyte.
const MOST_WORKERS: u16 = 32;

/// Where they listen.
pub(super) struct Ports {
    pub(super) api: u16,
    pub(super) workers: Vec<Worker>,
    pub(super) schema: u16,
    pub(super) service_monitor: u16,
    pub(super) device_manager: u16,
}

/// One process of the API, besides its port that all have.
pub(super) struct Worker {
    pub(super) introspect: u16,
    pub(super) admin: u16,
}

impl Ports {
    pub(super) fn of(settings: &ConfigConfiguration) -> Self {
        let introspect = port(settings.api_introspect_port, ROW.port_of_field("apiIntrospectPort"));
        let admin = port(settings.api_admin_port, ROW.port_of_field("apiAdminPort"));
        let workers =
            settings.api_worker_count.map(|count| u16::try_from(count).unwrap_or(u16::MAX));
        // The first has the ports themselves, the others those of a range above.
        let above = |port: u16, range: u16, worker: u16| match worker.checked_sub(1) {
            None => port,
            Some(others) => port.saturating_add(range).saturating_add(others),
        };
        let worker = |worker| Worker {
            introspect: above(introspect, 10_000, worker),
            admin: above(admin, 20_000, worker),
        };
        Self {
            api: port(settings.api_port, ROW.port_of_field("apiPort")),
            workers: (0..workers.unwrap_or(1).clamp(1, MOST_WORKERS)).map(worker).collect(),
            schema: port(
                settings.schema_introspect_port,
                ROW.port_of_field("schemaIntrospectPort"),
            ),
            service_monitor: port(
                settings.svc_monitor_introspect_port,
                ROW.port_of_field("svcMonitorIntrospectPort"),
            ),
            device_manager: port(
                settings.device_manager_introspect_port,
                ROW.port_of_field("deviceManagerIntrospectPort"),
            ),
        }
    }
}

/// A process with that in its command line. The daemons of which one does the work of all open their ports only then
/// (tf-controller R24.1, `src/config/schema-transformer/schema_transformer/to_bgp.py:815`), so that a port says
/// nothing of the others. A letter in brackets, for the check not to find itself.
fn runs(pattern: &str) -> Check {
    Check::Command(format!("grep -sq '{pattern}' /proc/[0-9]*/cmdline"))
}

pub(super) fn containers(settings: &ConfigConfiguration, ports: &Ports) -> Vec<Container> {
    let daemon = |name, check, memory| Container {
        name,
        check,
        requests: ("50m", memory),
        ..Container::default()
    };
    let shared =
        || vec![Mount::at("tftp", "/var/lib/tftp"), Mount::at("dnsmasq", "/var/lib/dnsmasq")];
    let workers = ports.workers.len();
    let workers = (workers > 1).then(|| ("CONFIG_API_WORKER_COUNT", workers.to_string()));
    vec![
        Container {
            env: workers.into_iter().collect(),
            introspect: Some(Introspect {
                ports: ports.workers.iter().map(|worker| worker.introspect).collect(),
                ..Introspect::default()
            }),
            readiness: Some(Check::Command("bash /etc/contrailconfigmaps/check-api.sh".to_owned())),
            // To read the whole database may take longer than any time that it could be given.
            ..daemon("api", Check::Port(ports.api), "256Mi")
        },
        Container {
            mounts: shared(),
            capabilities: &["SYS_PTRACE", "KILL"],
            introspect: Introspect::of_elected(ports.device_manager),
            // It kills what has its whole name in its command line.
            ..daemon("devicemanager", runs("[/]contrail-device-m[a]nager"), "256Mi")
        },
        Container {
            mounts: shared(),
            capabilities: &["NET_ADMIN", "NET_RAW"],
            ..daemon(
                "dnsmasq",
                Check::Command("grep -sqx dnsmasq /proc/[0-9]*/comm".into()),
                "16Mi",
            )
        },
        Container {
            introspect: Introspect::of_elected(ports.schema),
            ..daemon("schematransformer", runs("[/]contrail-schema"), "128Mi")
        },
        Container {
            introspect: Introspect::of_elected(ports.service_monitor),
            ..daemon("servicemonitor", runs("[/]contrail-svc-monitor"), "128Mi")
        },
        node_manager::container(NODE_TYPE, NODE_MANAGER),
        provisioner(settings),
    ]
}

fn provisioner(settings: &ConfigConfiguration) -> Container {
    let mut container = provisioner::container(NODE_TYPE);
    let flag = |given: Option<bool>, default: bool| given.unwrap_or(default).to_string();
    container.env.extend([
        ("BGP_ASN", settings.global_asn_number.unwrap_or(64512).to_string()),
        ("BGP_AUTO_MESH", flag(settings.bgp_auto_mesh, true)),
        ("ENABLE_4BYTE_AS", flag(settings.bgp_enable_4byte, false)),
    ]);
    if let Some(service) = settings.linklocal_service_config.as_ref().and_then(LinkLocal::of) {
        container.env.extend([
            ("IPFABRIC_SERVICE_HOST", service.host),
            ("IPFABRIC_SERVICE_PORT", service.fabric_port.to_string()),
            ("LINKLOCAL_SERVICE_NAME", service.name),
            ("LINKLOCAL_SERVICE_IP", service.ip),
            ("LINKLOCAL_SERVICE_PORT", service.port.to_string()),
        ]);
    }
    container
}
