//! Control: the speakers of BGP and XMPP that distribute routes to the vrouters, and the name server of workloads.

mod containers;
mod status;

use opensdn_crds::component::{self, Component};
use opensdn_crds::control::ControlConfiguration;
use opensdn_upgrade::settled;
use serde_json::json;

use super::shared::around::{around, credentials, passwords};
use super::shared::{logs, node_manager};
use crate::component::{
    ComponentKind, Description, File, Given, Password, SettingsError, Source, Template, Volume,
};
use crate::network::Network;

/// The kind Control.
pub(super) struct Control;

const ROW: &Component = component::row("Control");
const NODE_TYPE: &str = "control";
// No field changes these, though there are some that look so: others get their values.
const INTROSPECT: u16 = ROW.fixed_port("control");
const DNS_INTROSPECT: u16 = ROW.port_of_field("dnsIntrospectPort");
const DNS: u16 = ROW.port_of_field("dnsPort");
/// Upstream's, where none is given.
const ASN: i64 = 64512;
const NODE_MANAGER: u16 = ROW.fixed_port("nodemanager");
/// Where dns writes the files of named.
const DIRECTORY: &str = "/etc/contrail/dns";
/// A whole number of groups of four, so that the letters are base64.
const KEY_LETTERS: usize = 32;

impl ComponentKind for Control {
    fn facts(&self) -> &'static Component {
        ROW
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("control/run-control.sh"),
            template!("control/run-dns.sh"),
            template!("control/run-named.sh"),
            template!("control/run-provisioner.sh"),
            template!("control/address.sh"),
            template!("control/key.sh"),
            template!("control/provisioner.sh"),
            template!("control/control.ini"),
            template!("control/dns.ini"),
            template!("control/named.named"),
            template!("control/rndc.named"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: ControlConfiguration = given.settings()?;
        let subnet = settings.data_subnet.as_deref().unwrap_or_default();
        let address_in = Network::parse(subnet).map(|_| format!("@address-in/{subnet}@"));
        let own = given.peers.of_kind("Control").find(|peer| peer.name == given.name);
        let mut passwords = passwords(given);
        // tf-operator's default is in its source (`pkg/apis/tf/v1alpha1/defaults.go:114`).
        passwords.push(Password {
            key: "rndckey",
            given: settings.rndckey.clone(),
            letters: KEY_LETTERS,
        });
        Ok(Description {
            containers: containers::containers(&settings),
            files: FILES.to_vec(),
            values: json!({
                "around": around(given),
                "provisioner": {},
                // Where a member listens: what is known by its node, else what its script finds, else its own address.
                "listens": own.map(|own| own.listens.clone()).unwrap_or_default(),
                "address_in": address_in.unwrap_or_default(),
                "key": "@credentials/own/rndckey@",
                "directory": DIRECTORY,
                "named_log": "/var/log/contrail/contrail-named.log",
            }),
            volumes: [
                &node_manager::VOLUMES[..],
                &[
                    Volume { name: "etc-contrail", source: Source::Empty },
                    Volume { name: "etc-contrail-dns", source: Source::Empty },
                    logs("/var/log/contrail/control"),
                ],
            ]
            .concat(),
            passwords,
            status: status::status(&settings),
            credentials: credentials(given),
            shares_processes: true,
            min_ready_seconds: Some(settled::CONTROL),
            ..Description::default()
        })
    }
}

const FILES: [File; 12] = [
    File::shared("run-control.sh", "control/run-control.sh"),
    File::shared("run-dns.sh", "control/run-dns.sh"),
    File::shared("run-named.sh", "control/run-named.sh"),
    File::shared("run-provisioner.sh", "control/run-provisioner.sh"),
    node_manager::SCRIPT,
    File::of_pod("control", "control/control.ini"),
    File::of_pod("dns", "control/dns.ini"),
    File::of_pod("named", "control/named.named"),
    File::watched("contrail-rndc.conf", "control/rndc.named"),
    File::of_pod("control-nodemgr.conf", node_manager::CONFIGURATION),
    File::of_pod("vnc_api_lib.ini", "common/vnc_api_lib.ini"),
    File::of_pod("control-provisioner.env", "control/provisioner.sh"),
];
