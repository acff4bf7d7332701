//! What runs nodes: kernel, operating system, container runtime, against what upstream builds for and asks. Upstream's own
//! list of platforms is not public any more, so that what is not in its sources is uncertain, and never refused.

use serde_json::Value;

use super::nodes::{nodes, result, rolled};
use super::probed::{Said, worst};
use super::report::{NodeResult, Outcome, Verdict};
use super::world::World;
use crate::snapshot::text;

/// Families of kernels of which upstream's images had modules, by their first numbers: those of RHEL 7, 8 and 9
/// (tf-container-builder `containers/populate-cache.sh`, `containers/vrouter/kernel-init/tests/run-test.sh`). Since its change
/// 9d28f6c of February 2026 these too build it on the node, with `/lib/modules/RELEASE/build` (`kernel-init/build-kernel.sh`).
pub(super) const KERNELS: [&str; 3] = ["3.10.0-", "4.18.0-", "5.14.0-"];
/// How the names of operating systems begin for which upstream has images or instructions: kernels of RHEL and its kin
/// (`containers/vrouter/kernel-init/Dockerfile`), of Ubuntu (`containers/vrouter/kernel-build-init`), OpenShift's.
const SYSTEMS: [&str; 4] = ["Red Hat Enterprise Linux", "Rocky Linux", "CentOS", "Ubuntu"];
/// Those that node managers ask what runs on the node, by their sockets
/// (tf-controller `src/nodemgr/nodemgr/common/event_manager.py`).
const RUNTIMES: [&str; 3] = ["containerd", "cri-o", "docker"];
/// Distributions whose containerd has its socket elsewhere than in /run/containerd.
const OWN_SOCKET: [&str; 2] = ["+k3s", "+rke2"];

pub(super) fn software(world: &World) -> Verdict {
    let nodes = match nodes(world) {
        Ok(nodes) => nodes,
        Err(verdict) => return verdict,
    };
    rolled(
        nodes.len(),
        nodes.iter().filter_map(of_node).collect(),
        "kernels of families for which upstream builds modules, systems and runtimes that it knows",
    )
}

fn of_node(node: &Value) -> Option<NodeResult> {
    let info = |key: &str| text(node, &format!("/status/nodeInfo/{key}"));
    let system = info("operatingSystem");
    if !system.is_empty() && system != "linux" {
        let message = format!("runs {system}: no component can run there");
        return Some(result(node, Outcome::Warn, message));
    }
    let said = [
        kernel(info("kernelVersion")),
        operating_system(info("osImage")),
        runtime(info("containerRuntimeVersion"), info("kubeletVersion")),
    ];
    let (outcome, message) = worst(said.into_iter().flatten().collect(), "");
    (outcome != Outcome::Ok).then(|| result(node, outcome, message))
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none reported" } else { text }
}

fn kernel(version: &str) -> Option<Said> {
    let is_known = KERNELS.iter().any(|known| version.starts_with(known));
    let version = or_none(version);
    let message =
        format!("kernel {version}: whether a module is there or can be built is not known");
    (!is_known).then_some((Outcome::Uncertain, message))
}

fn operating_system(image: &str) -> Option<Said> {
    let is_known = SYSTEMS.iter().any(|known| image.starts_with(known));
    let image = or_none(image);
    let message =
        format!("operating system {image}: upstream has neither images nor instructions for it");
    (!is_known).then_some((Outcome::Uncertain, message))
}

/// `containerd://1.7.2`.
fn runtime(version: &str, kubelet: &str) -> Option<Said> {
    let name = version.split("://").next().unwrap_or_default();
    if !RUNTIMES.contains(&name) {
        let what = format!("container runtime {}", or_none(version));
        let message = format!("{what}: node managers do not know it, and may not see what runs");
        return Some((Outcome::Uncertain, message));
    }
    let own = OWN_SOCKET.iter().find(|own| kubelet.contains(**own))?;
    let message = format!(
        "the socket of containerd of {} is not /run/containerd/containerd.sock, where node managers ask: they do not see \
         what runs",
        own.trim_start_matches('+')
    );
    Some((Outcome::Warn, message))
}
