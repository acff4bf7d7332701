//! The files of Config.

use super::super::shared::{node_manager, provisioner};
use crate::component::{File, Template};

pub(super) const TEMPLATES: &[Template] = &[
    template!("config/run-api.sh"),
    template!("config/check-api.sh"),
    template!("config/run-devicemanager.sh"),
    template!("config/run-dnsmasq.sh"),
    template!("config/run-schematransformer.sh"),
    template!("config/run-servicemonitor.sh"),
    template!("config/run-provisioner.sh"),
    template!("config/api.ini"),
    template!("config/api-uwsgi.ini"),
    template!("config/devicemanager.ini"),
    template!("config/fabric-ansible.ini"),
    template!("config/schematransformer.ini"),
    template!("config/servicemonitor.ini"),
    template!("config/database.ini"),
    template!("config/driver.ini"),
    template!("config/security.ini"),
    template!("config/dnsmasq.ini"),
    template!("config/dnsmasq_base.ini"),
    template!("config/provision.ini"),
    template!("config/administrator.ini"),
];

/// All of them, with so many workers of the API.
pub(super) fn files(workers: usize) -> Vec<File> {
    let scripts = [
        ("run-api.sh", "config/run-api.sh"),
        ("check-api.sh", "config/check-api.sh"),
        ("run-devicemanager.sh", "config/run-devicemanager.sh"),
        ("run-dnsmasq.sh", "config/run-dnsmasq.sh"),
        ("run-schematransformer.sh", "config/run-schematransformer.sh"),
        ("run-servicemonitor.sh", "config/run-servicemonitor.sh"),
        ("run-provisioner.sh", "config/run-provisioner.sh"),
    ];
    let of_pods = [
        ("devicemanager", "config/devicemanager.ini"),
        ("contrail-fabric-ansible.conf", "config/fabric-ansible.ini"),
        ("schematransformer", "config/schematransformer.ini"),
        ("servicemonitor", "config/servicemonitor.ini"),
        ("dnsmasq", "config/dnsmasq.ini"),
        ("dnsmasq_base", "config/dnsmasq_base.ini"),
        ("contrail-keystone-auth.conf", "common/keystone.ini"),
        ("vnc_api_lib.ini", "common/vnc_api_lib.ini"),
        ("config-nodemgr.conf", node_manager::CONFIGURATION),
    ];
    let mut files = vec![
        node_manager::SCRIPT,
        provisioner::environment("config-provisioner.env"),
        File::watched("provision.conf", "config/provision.ini"),
    ];
    files.extend(scripts.map(|(name, template)| File::shared(name, template)));
    files.extend(of_pods.map(|(name, template)| File::of_pod(name, template)));
    let api = File::of_pod("api", "config/api.ini");
    files.extend((0..).take(workers).map(|number| api.numbered(number)));
    if workers > 1 {
        files.push(File::of_pod("api-uwsgi.ini", "config/api-uwsgi.ini"));
    }
    files
}
