//! Whether the login may write what the plan changes.

use super::World;
use crate::catalogue::Code;
use crate::finding::{Report, Subject};
use crate::live::Fact;

pub(super) fn check(world: &World, report: &mut Report) {
    let may_write = &world.live.may_write;
    of("global-vrouter-config", Subject::Cloud, &may_write.vrouter_config, report);
    let network = world.live.network.known().and_then(Option::as_ref);
    let is_switched_on = network.is_some_and(|network| network.fabric_snat != Some(true));
    if is_switched_on && !world.input.is_link_local() {
        let name = world.input.network.joined();
        of(&name, Subject::Network(name.clone()), &may_write.network, report);
    }
}

fn of(object: &str, about: Subject, may_write: &Fact<bool>, report: &mut Report) {
    if let Some(false) = report.known(may_write, &[Code::MayNotWrite]) {
        report.find(
            Code::MayNotWrite,
            about,
            format!("the login may read {object} and not write it"),
            "log in as a user with the role that the Config API has as cloud_admin_role (admin, unless it was changed)",
        );
    }
}
