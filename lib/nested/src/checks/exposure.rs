//! Who reaches what after the plan. Link-local services are a hole in the isolation of the cloud: network policies,
//! security groups and application policies are skipped for their flows, in every network. That is said before anything
//! else speaks for them.

use super::World;
use crate::catalogue::Code;
use crate::finding::{Report, Subject};
use crate::live::AaaMode;
use crate::roles::Role;

pub(super) fn check(world: &World, report: &mut Report) {
    match world.input.is_link_local() {
        true => control_plane(world, report),
        false => fabric(world, report),
    }
    if world.rows.iter().any(|row| row.role == Role::Vrouter) {
        agent(world, report);
    }
    passwords(world, report);
    authentication(world, report);
}

fn control_plane(world: &World, report: &mut Report) {
    let services: Vec<String> = world
        .input
        .services
        .iter()
        .map(|(role, service)| format!("{} ({})", role.label(), service.port))
        .collect();
    report.find(
        Code::CloudWideExposure,
        Subject::Cloud,
        format!(
            "DANGER: every virtual machine of every tenant of the whole cloud will reach the control plane: {}. No \
             security group, network policy or application policy can narrow it, for none is applied to link-local \
             services. By default RabbitMQ takes guest/guest, the Config API asks for no token, and Cassandra and \
             ZooKeeper for no password: a tenant can then rewrite or erase the whole cloud",
            services.join(", ")
        ),
        "use connectivity FabricSNAT, which opens the fabric to one network only. What limits it otherwise is in the \
         services alone: aaa_mode rbac or cloud-admin, and in RabbitMQ a password and TLS with client certificates. \
         Cassandra and ZooKeeper stay open: kube-manager has no login for them. Firewalls on the control nodes do \
         not help, for all comes from the compute nodes",
    );
}

fn agent(world: &World, report: &mut Report) {
    report.find(
        Code::AgentExposed,
        Subject::Cloud,
        format!(
            "every virtual machine of the whole cloud reaches port {} of the agent on its compute node, which asks for \
             no password and also adds and deletes ports and virtual machines; no security group or policy can narrow it",
            world.input.vrouter_port
        ),
        "do not run nested clusters on compute nodes with virtual machines that you do not trust",
    );
}

fn fabric(world: &World, report: &mut Report) {
    let network = world.input.network.joined();
    report.find(
        Code::FabricOpened,
        Subject::Network(network.clone()),
        format!(
            "with fabric_snat every virtual machine of {network} reaches every address and every port of the fabric, \
             not those of the control plane alone"
        ),
        "keep the network for nodes of this cluster, and narrow the way out by its security groups and by firewalls in \
         the fabric",
    );
}

/// Python reads the file with interpolation.
fn passwords(world: &World, report: &mut Report) {
    let known = world.input.choices.percent_passwords.as_ref();
    let known = known.and_then(|known| report.known(known, &[Code::PercentInPassword]));
    for variable in known.into_iter().flatten() {
        report.find(
            Code::PercentInPassword,
            Subject::Field(variable.clone()),
            format!(
                "{variable} has a %, at which kube-manager ends when it reads its configuration"
            ),
            "choose a password without %, or give it as KUBERNETES__AUTH__auth_password or \
             KUBERNETES__VNC__rabbit_password with %% for each %",
        );
    }
}

fn authentication(world: &World, report: &mut Report) {
    let mode = report.known(&world.live.aaa_mode, &[Code::NoAuthentication]);
    if mode == Some(&AaaMode::NoAuth) {
        report.find(
            Code::NoAuthentication,
            Subject::Role(Role::Config),
            "the Config API has aaa_mode no-auth: what reaches it can change the whole cloud, the nodes of this cluster \
             included"
                .to_owned(),
            "set aaa_mode to rbac or cloud-admin (AAA_MODE of the containers) and use Keystone",
        );
    }
}
