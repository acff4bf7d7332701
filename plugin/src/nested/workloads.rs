//! From a plan and flags to the inputs of the workloads, and from fields that are refused to the flags that set them.
//! What the objects are is opensdn-nested-workloads's.

use std::collections::BTreeMap;

use opensdn_crds::nested::{Endpoint, VirtualNetwork};
use opensdn_nested::{Plan, Subnet};
use opensdn_nested_workloads::{Inputs, InvalidValue, Subnets, Workloads, render};

use super::workload_flags::{TlsService, WorkloadFlags};
use crate::exit::{Exit, Failure};

/// What kube-manager's image has where no networks are given.
const POD_SUBNET: &str = "10.32.0.0/12";
const SERVICE_SUBNET: &str = "10.96.0.0/12";
const KEYSTONE_PORT: i64 = 5000;
const PORT_RULE: &str = "must be a port from 1 to 65535";

/// The variables of a plan, with what is wrong in them.
struct Variables<'p> {
    of_plan: &'p BTreeMap<String, String>,
    wrong: Vec<InvalidValue>,
}

impl Variables<'_> {
    fn port(&mut self, name: &str) -> Option<i64> {
        let text = self.of_plan.get(name)?;
        let port = text.parse().ok();
        if port.is_none() {
            self.refuse(&format!("plan.environment.{name}"), text, PORT_RULE);
        }
        port
    }

    fn addresses(&self, name: &str) -> Vec<String> {
        let listed = self.of_plan.get(name).map(String::as_str).unwrap_or_default();
        listed.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect()
    }

    fn endpoint(&mut self, addresses: &str, port: &str) -> Endpoint {
        Endpoint { addresses: self.addresses(addresses), port: self.port(port), tls: None }
    }

    fn refuse(&mut self, field: &str, value: &str, rule: &'static str) {
        let (field, value) = (field.to_owned(), value.to_owned());
        self.wrong.push(InvalidValue { field, value, rule });
    }
}

/// The workloads of a plan, with what they are made of.
///
/// # Errors
/// All values that are refused, by their flags.
pub(crate) fn workloads(
    plan: &Plan,
    subnets: [&[Subnet]; 3],
    flags: &WorkloadFlags,
) -> Result<(Inputs, Workloads), Failure> {
    let (inputs, mut wrong) = inputs(plan, subnets, flags);
    match render(&inputs) {
        Ok(workloads) if wrong.is_empty() => Ok((inputs, workloads)),
        result => {
            wrong.extend(result.err().into_iter().flat_map(|invalid| invalid.0));
            Err(refused(wrong))
        }
    }
}

fn inputs(
    plan: &Plan,
    subnets: [&[Subnet]; 3],
    flags: &WorkloadFlags,
) -> (Inputs, Vec<InvalidValue>) {
    let mut variables = Variables { of_plan: &plan.environment, wrong: Vec::new() };
    let mut inputs = flags.inputs();
    inputs.nested.cluster_name.clone_from(&plan.cluster);
    inputs.nested.cluster_network = VirtualNetwork {
        domain: Some(plan.network.domain.clone()),
        project: plan.network.project.clone(),
        name: plan.network.name.clone(),
    };
    inputs.subnets = networks(subnets);
    underlay(&mut variables, flags, &mut inputs);
    keystone(&mut variables, flags, &mut inputs);
    if is_name_of_cluster(&inputs.api_server.host) {
        let rule = "must not be a name that only the DNS of the cluster knows: kube-manager runs before that, and asks its \
                    node's";
        variables.refuse("api_server.host", &inputs.api_server.host, rule);
    }
    if is_loopback_name(&inputs.api_server.host) {
        let rule = "must not be this machine's own name: kube-manager is on another one";
        variables.refuse("api_server.host", &inputs.api_server.host, rule);
    }
    (inputs, variables.wrong)
}

fn underlay(variables: &mut Variables<'_>, flags: &WorkloadFlags, inputs: &mut Inputs) {
    let tls = |service| flags.speaks_tls(service).then_some(true);
    let database = match variables.of_plan.contains_key("CONFIGDB_PORT") {
        true => "CONFIGDB_PORT",
        false => "CONFIGDB_CQL_PORT",
    };
    let mut service =
        |addresses: &str, port: &str, tls| Endpoint { tls, ..variables.endpoint(addresses, port) };
    let underlay = &mut inputs.nested.underlay;
    underlay.config = service("CONFIG_NODES", "CONFIG_API_PORT", tls(TlsService::Config));
    underlay.analytics =
        Some(service("ANALYTICS_NODES", "COLLECTOR_PORT", tls(TlsService::Analytics)));
    underlay.rabbitmq =
        Some(service("RABBITMQ_NODES", "RABBITMQ_NODE_PORT", tls(TlsService::Rabbitmq)));
    underlay.config_database =
        Some(service("CONFIGDB_NODES", database, tls(TlsService::ConfigDatabase)));
    // Its port is a variable of no plan: kube-manager knows one only.
    underlay.zookeeper = Some(service("ZOOKEEPER_NODES", "ZOOKEEPER_PORT", None));
    underlay.vrouter = service("KUBERNESTES_NESTED_VROUTER_VIP", "VROUTER_PORT", None);
}

fn keystone(variables: &mut Variables<'_>, flags: &WorkloadFlags, inputs: &mut Inputs) {
    let host = variables.of_plan.get("KEYSTONE_AUTH_HOST");
    match (host, flags.keystone_secret()) {
        (Some(host), Some(_)) => {
            let port = variables.port("KEYSTONE_AUTH_ADMIN_PORT").unwrap_or(KEYSTONE_PORT);
            inputs.keystone = flags.keystone(host, port);
        }
        (Some(_), None) => {
            let rule = "must name the Secret with the password, for the cluster has Keystone; where no \
                        login is needed, leave Keystone's addresses out";
            variables.refuse("keystone.password.secret", "", rule);
        }
        (None, Some(secret)) => {
            let rule = "must be left out, for the cluster has no Keystone; its addresses: --keystone-nodes";
            variables.refuse("keystone.password.secret", secret, rule);
        }
        (None, None) => {}
    }
}

fn networks([pod, service, fabric]: [&[Subnet]; 3]) -> Subnets {
    let texts = |all: &[Subnet]| all.iter().map(ToString::to_string).collect::<Vec<String>>();
    let or = |all: &[Subnet], default: &str| match all {
        [] => vec![default.to_owned()],
        all => texts(all),
    };
    Subnets {
        pod: or(pod, POD_SUBNET),
        service: or(service, SERVICE_SUBNET),
        ip_fabric: texts(fabric),
    }
}

fn is_name_of_cluster(host: &str) -> bool {
    host == "kubernetes"
        || [".svc", ".cluster.local"].iter().any(|end| host.trim_end_matches('.').ends_with(end))
}

/// Addresses of a loopback are no host for the renderer either.
fn is_loopback_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost") || host == "localhost.localdomain"
}

fn refused(wrong: Vec<InvalidValue>) -> Failure {
    let named = |one: InvalidValue| InvalidValue { field: flag(&one.field), ..one }.to_string();
    let message = "the workloads cannot be made of these values";
    let hint = "correct all of them; what each flag means: kubectl opensdn nested manifest --help";
    let mut failure = Failure::new(Exit::Usage, "invalid-workloads", message, hint);
    failure.causes = wrong.into_iter().map(named).collect();
    failure
}

const FLAGS: &[(&str, &str)] = &[
    ("api_server", "--api-server"),
    ("client_certificate_secret", "--client-certificate-secret"),
    ("escaped_rabbitmq_password.key", "--rabbitmq-escaped-key"),
    ("escaped_rabbitmq_password.secret", "--rabbitmq-secret"),
    ("floating_ip_pool", "--public-fip-pool"),
    ("host_aliases", "--host-alias"),
    ("images.cni", "--image-cni, or else --registry with --tag,"),
    ("images.kube_manager", "--image-kube-manager, or else --registry with --tag,"),
    ("keystone.escaped_password.key", "--keystone-escaped-key"),
    ("keystone.escaped_password.secret", "--keystone-secret"),
    ("keystone.host", "--keystone-nodes"),
    ("keystone.password.key", "--keystone-password-key"),
    ("keystone.password.secret", "--keystone-secret"),
    ("keystone.port", "services.keystone.port"),
    ("keystone.project", "--keystone-project"),
    ("keystone.user", "--keystone-user"),
    ("keystone.domain", "--keystone-domain"),
    ("namespace", "--target-namespace"),
    ("nested.clusterName", "--cluster-name"),
    ("nested.clusterNetwork", "--cluster-network"),
    ("nested.cni.mtu", "--mtu"),
    ("nested.underlay.analytics.addresses", "--analytics-nodes"),
    ("nested.underlay.analytics.port", "services.analytics.port"),
    ("nested.underlay.caSecretName", "--ca-secret"),
    ("nested.underlay.config.addresses", "--config-nodes"),
    ("nested.underlay.config.port", "services.config.port"),
    ("nested.underlay.configDatabase.addresses", "--config-database-nodes"),
    ("nested.underlay.configDatabase.port", "services.configDatabase.port, or else --profile,"),
    ("nested.underlay.rabbitmq.addresses", "--rabbitmq-nodes"),
    ("nested.underlay.rabbitmq.port", "services.rabbitmq.port"),
    ("nested.underlay.rabbitmqSecretName", "--rabbitmq-secret"),
    ("nested.underlay.vrouter.addresses", "--vrouter-address"),
    ("nested.underlay.vrouter.port", "services.vrouterPort"),
    ("nested.underlay.zookeeper.addresses", "--zookeeper-nodes"),
    ("nested.underlay.zookeeper.port", "services.zookeeper.port"),
    ("node_selector", "--node-selector"),
    ("parent_interface", "--parent-interface"),
    ("registry_secret", "--registry-secret"),
    ("subnets.ip_fabric", "--fabric-subnets"),
    ("subnets.pod", "--pod-subnets"),
    ("subnets.service", "--service-subnets"),
];

/// By what a user sets the field: a flag, or where there is none a field of the NestedCluster.
fn flag(field: &str) -> String {
    let is_within = |of: &str| {
        let rest = field.strip_prefix(of);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let known = FLAGS.iter().find(|(of, _)| is_within(of));
    known.map_or(field, |(_, flag)| flag).to_owned()
}

#[cfg(test)]
mod tests;
