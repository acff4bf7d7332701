//! The files of vrouters.

use opensdn_crds::vrouter::VrouterConfiguration;

use super::settings;
use crate::component::File;
use crate::components::shared::{node_manager, provisioner};

pub(super) fn files(settings: &VrouterConfiguration) -> Vec<File> {
    let mut files = vec![
        File::shared("run-vrouteragent.sh", "vrouter/run-vrouteragent.sh"),
        File::shared("start-vrouteragent.sh", "vrouter/start-vrouteragent.sh"),
        // Not read again: where a person has changed it, one pod is replaced after the other.
        File::shared("settings.env", "vrouter/settings.sh"),
        File::shared("10-tf-cni.conf", "vrouter/10-tf-cni.json"),
        node_manager::SCRIPT,
        provisioner::SCRIPT,
        File::of_pod("params.env", "vrouter/params.sh"),
        File::of_pod("vrouter-nodemgr.conf", "vrouter/nodemgr.ini"),
        File::of_pod("vnc_api_lib.ini", "common/vnc_api_lib.ini"),
        File::of_pod("vrouter-provisioner.env", "vrouter/provisioner.sh"),
    ];
    let of_dpdk = File::shared("run-vrouteragentdpdk.sh", "vrouter/run-vrouteragentdpdk.sh");
    files.extend(settings::is_dpdk(settings).then_some(of_dpdk));
    files
}
