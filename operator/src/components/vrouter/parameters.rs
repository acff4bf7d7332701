//! What a person says of the agent, by the names that its image knows. `${POD_IP}` in a value is the pod's own.

use std::collections::BTreeMap;

use opensdn_crds::dpdk::MODE;
use opensdn_crds::vrouter::VrouterConfiguration;

use super::dpdk;
use super::settings::{data_plane, is_dpdk, orchestrator};

const AUTHORITY: &str = "/etc/ssl/certs/kubernetes/ca-bundle.crt";
const SERVER: (&str, &str) =
    ("/etc/certificates/server-${POD_IP}.crt", "/etc/certificates/server-key-${POD_IP}.pem");
const CLIENT: (&str, &str) =
    ("/etc/certificates/client-${POD_IP}.crt", "/etc/certificates/client-key-${POD_IP}.pem");

/// As tf-operator has them (`pkg/apis/tf/v1alpha1/vrouter_types.go:485-583`), without those that are empty.
pub(super) fn parameters(settings: &VrouterConfiguration) -> BTreeMap<&'static str, String> {
    let mut all = files(settings);
    all.extend(switches(settings));
    let number = |given: Option<i64>, default: i64| Some(given.unwrap_or(default).to_string());
    let sriov = settings.sriov.clone().unwrap_or_default();
    // Those of a DPDK process are not the agent's: it would take them once more.
    let pages = |given: Option<i64>| given.filter(|_| !is_dpdk(settings));
    let given = |value: &Option<String>| value.clone();
    let hypervisor = settings.hypervisor_type.clone().unwrap_or_default();
    let more = [
        (MODE.0, data_plane(settings).map(|(_, mode)| mode)),
        ("CLOUD_ORCHESTRATOR", Some(orchestrator(settings))),
        ("CONTAINER_LOG_DIR", Some("/var/log/contrail".to_owned())),
        ("CPU_CORE_MASK", dpdk::core_mask(settings)),
        ("DPDK_UIO_DRIVER", given(&settings.dpdk_uio_driver)),
        ("FABRIC_SNAT_HASH_TABLE_SIZE", given(&settings.fabric_snat_hash_table_size)),
        ("HUGE_PAGES_1GB", number(pages(settings.huge_pages_1g), 0)),
        ("HUGE_PAGES_2MB", number(pages(settings.huge_pages_2m), 0)),
        (
            "HYPERVISOR_TYPE",
            Some(hypervisor).filter(|kind| !kind.is_empty()).or(Some("kvm".to_owned())),
        ),
        ("KUBERNETES_POD_SUBNETS", given(&settings.kubernetes_pod_subnet)),
        ("LOG_LOCAL", number(settings.log_local, 1)),
        ("SRIOV_PHYSICAL_INTERFACE", given(&settings.sriov_physical_interface)),
        ("SRIOV_PHYSICAL_NETWORK", given(&settings.sriov_physical_network)),
        ("SRIOV_VF", sriov.number_of_vfs.map(|count| count.to_string())),
        ("SUBCLUSTER", given(&settings.subcluster)),
        ("VROUTER_ENCRYPTION", Some("false".to_owned())),
        // The image would write the bare word into the file, where the agent ends at it. What is called so is added by
        // the image to the section that the name has in it.
        (
            "VROUTER_AGENT__METADATA__metadata_client_cert_type",
            given(&settings.metadata_ssl_cert_type),
        ),
    ];
    all.extend(more.into_iter().filter_map(|(name, value)| Some((name, value?))));
    all.retain(|_, value| !value.is_empty());
    all
}

/// Of those of TLS each is on that is not switched off.
fn switches(settings: &VrouterConfiguration) -> [(&'static str, String); 6] {
    let all = settings.ssl_enable.unwrap_or(true);
    let or = |given: Option<bool>| given.unwrap_or(all).to_string();
    [
        ("CONFIG_API_SSL_ENABLE", or(settings.config_api_ssl_enable)),
        ("INTROSPECT_SSL_ENABLE", or(settings.introspect_ssl_enable)),
        ("METADATA_SSL_ENABLE", settings.metadata_ssl_enable.clone().unwrap_or_default()),
        ("SANDESH_SSL_ENABLE", or(settings.sandesh_ssl_enable)),
        ("SSL_ENABLE", all.to_string()),
        ("XMPP_SSL_ENABLE", or(settings.xmpp_ssl_enable.or(settings.xmmp_ssl_enable))),
    ]
}

fn files(settings: &VrouterConfiguration) -> BTreeMap<&'static str, String> {
    let or = |given: &Option<String>, default: &str| {
        let given = given.clone().filter(|given| !given.is_empty());
        given.unwrap_or_else(|| default.to_owned())
    };
    let authority = or(&settings.server_ca_certfile, AUTHORITY);
    BTreeMap::from([
        ("CONFIG_API_SERVER_CA_CERTFILE", or(&settings.config_api_server_ca_certfile, &authority)),
        ("METADATA_SSL_CA_CERTFILE", or(&settings.metadata_ssl_ca_certfile, "")),
        ("METADATA_SSL_CERTFILE", or(&settings.metadata_ssl_certfile, "")),
        ("METADATA_SSL_KEYFILE", or(&settings.metadata_ssl_keyfile, "")),
        ("SANDESH_CA_CERTFILE", or(&settings.sandesh_ca_certfile, &authority)),
        ("SANDESH_CERTFILE", or(&settings.sandesh_certfile, CLIENT.0)),
        ("SANDESH_KEYFILE", or(&settings.sandesh_keyfile, CLIENT.1)),
        ("SANDESH_SERVER_CERTFILE", or(&settings.sandesh_server_certfile, SERVER.0)),
        ("SANDESH_SERVER_KEYFILE", or(&settings.sandesh_server_keyfile, SERVER.1)),
        ("SERVER_CERTFILE", or(&settings.server_certfile, SERVER.0)),
        ("SERVER_KEYFILE", or(&settings.server_keyfile, SERVER.1)),
        ("XMPP_SERVER_CA_CERTFILE", or(&settings.xmpp_server_ca_certfile, &authority)),
        ("XMPP_SERVER_CERTFILE", or(&settings.xmpp_server_certfile, CLIENT.0)),
        ("XMPP_SERVER_KEYFILE", or(&settings.xmpp_server_keyfile, CLIENT.1)),
        ("SERVER_CA_CERTFILE", authority),
    ])
}
