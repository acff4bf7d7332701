//! The DPDK process as data plane: a container beside the agent, and what it cannot start without. What is rendered is what
//! upstream's images read (tf-container-builder, `containers/vrouter/agent-dpdk` and `kernel-init-dpdk`); on a network card
//! it has never been run.
//!
//! No order is needed between the two: the agent's script waits for vhost0, which the entrypoint of this one makes
//! (`containers/vrouter/agent/actions.sh:543-547`, `containers/vrouter/agent-dpdk/entrypoint.sh:228-248`).

use std::collections::BTreeMap;

use opensdn_crds::dpdk::{self, CORES, MODE, Pages};
use opensdn_crds::vrouter::VrouterConfiguration;

use super::{env, node, settings};
use crate::component::{Check, Command, Container, Mount, SettingsError};

/// Upstream's own question (`containers/vrouter/base/network-functions-vrouter-dpdk:5-7`): the process listens nowhere but there.
const LISTENS: &str = "netstat -xl | grep -q dpdk_netlink";
/// At this signal alone the entrypoint gives the interface back to its driver (`containers/vrouter/agent-dpdk/entrypoint.sh:21-54`),
/// and removes that file at the end. The one by which a pod ends would cut it short.
const GIVE_BACK: &str =
    "kill -QUIT 1; for _ in $(seq 60); do [ -e /var/run/vrouter/nic ] || exit 0; sleep 1; done";

pub(super) fn container(settings: &VrouterConfiguration) -> Container {
    let mut env = settings::of_interface(settings);
    env.extend(core_mask(settings).map(|mask| (CORES, mask)));
    let driver = settings.dpdk_uio_driver.clone().filter(|driver| !driver.is_empty());
    env.extend(driver.map(|driver| ("DPDK_UIO_DRIVER", driver)));
    // It speaks no TLS, and its entrypoint waits for these where a variable switches TLS on.
    env.extend(node::server_files());
    Container {
        name: "vrouteragentdpdk",
        env,
        // As upstream starts it (`containers/vrouter/base/network-functions-vrouter-dpdk:209-224`).
        mounts: vec![
            Mount::at("dev", "/dev"),
            Mount::at("network-scripts", "/etc/sysconfig/network-scripts"),
            Mount::at("lib-modules", "/lib/modules"),
            Mount::at("var-run", "/var/run"),
            Mount::at("var-lib-contrail", "/var/lib/contrail"),
        ],
        // The network of the node goes with it: nothing but its own end starts it again.
        check: Check::Nothing,
        readiness: Some(Check::Command(LISTENS.to_owned())),
        requests: ("100m", "256Mi"),
        huge_pages: settings::huge_pages(settings),
        is_privileged: true,
        pre_stop: Some(GIVE_BACK.to_owned()),
        ..Container::default()
    }
}

/// In the place of that of the kernel module: it brings `vif` to the node, and loads nothing.
pub(super) fn init_container(settings: &VrouterConfiguration) -> Container {
    Container {
        command: Command::OfImage,
        env: env(settings),
        mounts: vec![
            Mount::at("network-scripts", "/etc/sysconfig/network-scripts"),
            Mount::at("host-usr-bin", "/host/bin"),
            Mount::at("host-etc-contrail", "/host/etc/contrail"),
        ],
        // As in upstream's manifest: with SELinux no other writes into folders of the node.
        is_privileged: true,
        ..node::step("vrouterkernelinitdpdk")
    }
}

/// The cores that forward.
pub(super) fn core_mask(settings: &VrouterConfiguration) -> Option<String> {
    let given = settings.dpdk.as_ref()?.core_mask.as_deref();
    given.filter(|mask| !mask.is_empty()).map(dpdk::for_image)
}

/// What would wait for its data plane, and end, and wait again.
pub(super) fn check(
    settings: &VrouterConfiguration,
    variables: &BTreeMap<String, String>,
) -> Result<(), SettingsError> {
    let variable = |name: &str| variables.get(name).map(String::as_str);
    let obstacle = match &settings.dpdk {
        Some(given) => {
            let count = |given: Option<i64>| given.and_then(|given| u64::try_from(given).ok());
            let pages = Pages {
                large: count(settings.huge_pages_1g).unwrap_or_default(),
                small: count(settings.huge_pages_2m).unwrap_or_default(),
            };
            dpdk::obstacle(given.core_mask.as_deref(), pages, variable)
        }
        None => variable(MODE.0).filter(|mode| mode.trim() == MODE.1).map(|mode| {
            format!(
                "the variable {} is {mode}, and neither spec.serviceConfiguration nor a profile that it names has dpdk: give \
                 dpdk, or remove the variable",
                MODE.0
            )
        }),
    };
    match obstacle {
        Some(message) => Err(SettingsError::Unfit { reason: "DpdkIncomplete", message }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(settings: Value, variables: &[(&str, &str)]) -> Option<String> {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        match check(&serde_json::from_value(settings).unwrap(), &variables.collect()) {
            Ok(()) => None,
            Err(SettingsError::Unfit { reason: "DpdkIncomplete", message }) => Some(message),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_cannot_start_is_refused_with_what_to_do() {
        let two = json!({"coreMask": "1-2"});
        for (settings, variables, expected) in [
            (json!({"dpdk": two}), &[][..], "dpdk.hugePages1G"),
            (json!({"dpdk": two, "hugePages2M": 512}), &[], "1024 MiB of huge pages are asked for"),
            (json!({"dpdk": {}, "hugePages1G": 2}), &[], "dpdk.coreMask"),
            (json!({}), &[("AGENT_MODE", "dpdk")], "remove the variable"),
        ] {
            let message = said(settings, variables).unwrap();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn pages_of_both_sizes_count() {
        let two = json!({"coreMask": "0x6"});
        for (settings, variables) in [
            (json!({}), &[][..]),
            (json!({}), &[("AGENT_MODE", "kernel")]),
            (json!({"dpdk": two, "hugePages1G": 1, "hugePages2M": 64}), &[("AGENT_MODE", "dpdk")]),
        ] {
            assert_eq!(said(settings.clone(), variables), None, "{settings}");
        }
    }
}
