//! What is outside of the cluster: Keystone, from the nodes whose components ask it. Nothing else outside is named by a
//! Manager.

use std::collections::BTreeMap;

use opensdn_node_probe::{Contact, MOST_TARGETS, NodeFindings, Seen, Target};

use super::probed::{Said, each, worst};
use super::probed_devices::uncertain;
use super::report::{Outcome, Verdict};
use super::world::{Service, World};
use super::{few, roles};
use crate::snapshot::{number, text};

const AUTHENTICATION: &str = "/spec/commonConfiguration/authParameters";
/// As the operator has them, after tf-operator (`pkg/apis/tf/v1alpha1/auth_types.go`).
const ADDRESS: &str = "127.0.0.1";
const ADMIN_PORT: i64 = 35357;
const PORT: i64 = 5000;
/// Those that ask for tokens by the port for administrators: daemons, or the registration of their nodes.
const ASK_FOR_TOKENS: [&str; 8] = [
    "Analytics",
    "AnalyticsAlarm",
    "AnalyticsSnmp",
    "Cassandra",
    "Config",
    "Control",
    "Kubemanager",
    "Vrouter",
];
/// Its users log in by the port for these.
const WEB_UI: &str = "Webui";

/// A component that asks Keystone.
struct Asker<'a> {
    service: Service<'a>,
    /// Nothing where its port is none.
    target: Option<Target>,
}

fn askers(world: &World) -> Vec<Asker<'_>> {
    world.services().into_iter().filter_map(asker).collect()
}

fn asker(service: Service<'_>) -> Option<Asker<'_>> {
    let authentication = service.manager.pointer(AUTHENTICATION)?;
    if text(authentication, "/authMode") != "keystone" {
        return None;
    }
    let of = |field: &str| number(authentication, &format!("/keystoneAuthParameters/{field}"));
    let kind = service.facts.kind;
    // In a nested cluster kube-manager asks the Keystone of its cloud, by a way of its own.
    let is_nested = service.spec.pointer("/serviceConfiguration/nested").is_some();
    let port = match kind {
        WEB_UI => of("port").unwrap_or(PORT),
        kind if ASK_FOR_TOKENS.contains(&kind) && !is_nested => {
            of("adminPort").unwrap_or(ADMIN_PORT)
        }
        _ => return None,
    };
    let host = text(authentication, "/keystoneAuthParameters/address");
    let host = if host.is_empty() { ADDRESS } else { host }.to_owned();
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    Some(Asker { target: port.map(|port| Target { host, port }), service })
}

/// What nodes are to try: each once, and no more than they take.
pub(crate) fn targets(world: &World) -> Vec<Target> {
    let mut all: Vec<Target> = askers(world).into_iter().filter_map(|one| one.target).collect();
    all.sort_unstable();
    all.dedup();
    all.truncate(MOST_TARGETS);
    all
}

pub(super) fn reached(world: &World) -> Verdict {
    if let Some(why) = world.managers.why_unknown() {
        return Verdict::uncertain(format!(
            "Managers, which name Keystone, may not be read: {why}"
        ));
    }
    let askers = askers(world);
    if askers.is_empty() {
        return Verdict::skipped(
            "no component asks Keystone, and no Manager names anything else outside",
        );
    }
    let good = "Keystone takes connections where components ask it";
    each(world, good, |node, findings| {
        let of_node = askers.iter().filter(|one| roles::is_selected(&one.service, node));
        let mut by_target: BTreeMap<Option<&Target>, Vec<String>> = BTreeMap::new();
        for one in of_node {
            let kinds = by_target.entry(one.target.as_ref()).or_default();
            if !kinds.iter().any(|kind| kind == one.service.facts.kind) {
                kinds.push(one.service.facts.kind.to_owned());
            }
        }
        let said: Vec<Said> = by_target
            .into_iter()
            .filter_map(|(target, kinds)| of_target(target, &few(&kinds), findings))
            .collect();
        worst(said, "it takes connections, or no component here asks it")
    })
}

/// What is wrong with it; nothing where it takes connections.
fn of_target(target: Option<&Target>, kinds: &str, findings: &NodeFindings) -> Option<Said> {
    let Some(target) = target else {
        return Some(uncertain(format!("the port of Keystone for {kinds} is none")));
    };
    let Target { host, port } = target;
    let what = format!("Keystone at {host} port {port}, which {kinds} on the node asks");
    let found = findings.targets.iter().find(|one| one.target == *target);
    match found.map(|one| &one.contact) {
        Some(Seen::Is(Contact::Made(_))) => None,
        Some(Seen::Is(Contact::Failed(why))) => Some((Outcome::Fail, format!("{what}: {why}"))),
        // Components ask the DNS of the cluster first, which knows more names than the node.
        Some(Seen::Unknown(why)) => Some(uncertain(format!("{what}: {why}"))),
        None => Some(uncertain(format!(
            "{what}: it was not tried; take the image of this release with --probe-image"
        ))),
    }
}
