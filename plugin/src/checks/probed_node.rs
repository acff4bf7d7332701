//! What else nodes that were looked at show of themselves: routes, clocks, settings of the kernel.

use opensdn_node_probe::{Seen, Sysctl};

use super::probed::{Said, each, unseen, worst};
use super::report::{Outcome, Verdict};
use super::subnets::{self, Network};
use super::world::World;

/// Interfaces of the vrouter: its routes are ours.
const OURS: [&str; 2] = ["vhost0", "pkt0"];
/// Microseconds between the clocks of two nodes from which databases and certificates suffer.
const WARN: i64 = 500_000;
/// From which they do not work.
const FAIL: i64 = 5_000_000;
const SECOND: i64 = 1_000_000;

/// What is looked for. Others are set by the init containers of vrouters.
pub(crate) const SYSCTLS: [&str; 3] = ["net.ipv4.ip_forward", OF_ALL, OF_NEW];
/// The kernel takes the larger of this one and that of an interface (its Documentation/networking/ip-sysctl.rst).
const OF_ALL: &str = "net.ipv4.conf.all.rp_filter";
/// What an interface gets when it is made, as vhost0 is.
const OF_NEW: &str = "net.ipv4.conf.default.rp_filter";
/// Packets that come by another interface than that of their way back are dropped; 2 is looser, 0 lets all in.
const STRICT: i64 = 1;

pub(super) fn routes(world: &World) -> Verdict {
    let ours: Vec<(&str, String, Network)> = subnets::networks(world)
        .into_iter()
        .filter_map(|(what, text)| Network::of(&text).map(|network| (what, text, network)))
        .collect();
    each(world, "no route leads elsewhere with the networks of pods and Services", |_, findings| {
        let routes = match &findings.routes {
            Seen::Is(routes) => routes,
            Seen::Unknown(why) => {
                return (Outcome::Uncertain, format!("routes are not known: {why}"));
            }
        };
        let mut bad = Vec::new();
        for route in routes.iter().filter(|one| !OURS.contains(&one.interface.as_str())) {
            let Some(network) = Network::of(&route.destination) else { continue };
            // The default route takes only what no other does.
            if route.destination.ends_with("/0") {
                continue;
            }
            if let Some((what, text, _)) = ours.iter().find(|(_, _, ours)| ours.overlaps(network)) {
                let by = route.gateway.as_deref().unwrap_or(&route.interface);
                let text = format!("{} by {by} is in {text} of {what}", route.destination);
                bad.push((Outcome::Warn, text));
            }
        }
        let more = bad.len().saturating_sub(3);
        bad.truncate(3);
        if more > 0 {
            bad.push((Outcome::Warn, format!("and {more} more")));
        }
        worst(bad, "none")
    })
}

pub(super) fn clocks(world: &World) -> Verdict {
    let answers = world.probed.iter().flatten();
    let mut all: Vec<i64> =
        answers.filter_map(|(_, answer)| answer.as_ref().ok()?.ahead.known().copied()).collect();
    all.sort_unstable();
    // Most nodes are right: a median is not moved by the one that is not.
    let middle = all.get(all.len() / 2).copied().unwrap_or_default();
    let ahead = |node: &str| {
        let answer = world.probed.as_ref()?.get(node)?.as_ref().ok()?;
        Some(answer.ahead.clone().map(|ahead| ahead - middle))
    };
    each(world, "clocks are synchronised, and within 0.5 s of each other", |node, findings| {
        let mut said: Vec<Said> =
            unseen("whether its clock is synchronised", &findings.synchronised)
                .into_iter()
                .collect();
        if findings.synchronised == Seen::Is(false) {
            said.push((Outcome::Warn, "its clock is not synchronised, says its kernel".to_owned()));
        }
        match ahead(crate::snapshot::name(node)) {
            Some(Seen::Is(ahead)) if ahead.abs() > WARN => {
                let outcome = if ahead.abs() > FAIL { Outcome::Fail } else { Outcome::Warn };
                let side = if ahead > 0 { "ahead of" } else { "behind" };
                let (seconds, tenths) = (ahead.abs() / SECOND, ahead.abs() % SECOND / 100_000);
                let text = format!("its clock is {seconds}.{tenths} s {side} that of most nodes");
                said.push((outcome, text));
            }
            Some(Seen::Unknown(why)) => {
                said.push((Outcome::Uncertain, format!("its clock was not compared: {why}")));
            }
            Some(Seen::Is(_)) | None => {}
        }
        worst(said, "synchronised")
    })
}

pub(super) fn settings(world: &World) -> Verdict {
    each(world, "no swap, and no strict filter of reverse paths", |_, findings| {
        let mut said: Vec<Said> = unseen("swap", &findings.swaps).into_iter().collect();
        if let Some(swaps) = findings.swaps.known().filter(|swaps| !swaps.is_empty()) {
            let text = format!("memory is swapped to {}: databases wait for it", swaps.join(", "));
            said.push((Outcome::Warn, text));
        }
        for sysctl in &findings.sysctls {
            let (name, value) = (&sysctl.name, &sysctl.value);
            said.extend(unseen(name, value));
            if let ("net.ipv4.ip_forward", Some(Some("0"))) =
                (name.as_str(), value.known().map(Option::as_deref))
            {
                let bad = "what the vrouter does not forward, as of pods without it, is forwarded by none; kubeadm wants 1";
                said.push((Outcome::Warn, format!("{name} is 0: {bad}")));
            }
        }
        said.extend(strict_filter(&findings.sysctls));
        worst(said, "as they should be")
    })
}

/// The filter of reverse paths, as an interface that is made has it.
fn strict_filter(sysctls: &[Sysctl]) -> Option<Said> {
    let of = |name: &str| -> Option<i64> {
        sysctls.iter().find(|one| one.name == name)?.value.known()?.as_deref()?.parse().ok()
    };
    let (all, new) = (of(OF_ALL), of(OF_NEW));
    let in_force = all.max(new)?;
    (in_force == STRICT).then(|| {
        let name = if all == Some(STRICT) { OF_ALL } else { OF_NEW };
        let bad = "packets that come by another interface than that of their way back are dropped";
        (Outcome::Warn, format!("{name} is 1: {bad}"))
    })
}
