//! A container of a pod: its image with what it runs, its probes, and what it may do.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, EnvVarSource, ExecAction, HTTPGetAction, Lifecycle,
    LifecycleHandler, ObjectFieldSelector, Probe, ResourceRequirements, SecurityContext,
    TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Valid;
use super::volumes::{self, CONFIGURATION_FOLDER};
use crate::component::{Check, Command, Container as Described};
use crate::quantity::of_mebibytes;

pub(super) fn build(valid: &Valid, described: &Described) -> Container {
    let image = valid.images.get(described.name);
    let readiness = described.readiness.as_ref().unwrap_or(&described.check);
    Container {
        command: image.and_then(|image| image.command.clone()).or_else(|| command(described)),
        env: Some(environment(valid, described)),
        image: image.map(|image| image.image.clone()),
        lifecycle: described.pre_stop.as_deref().map(|command| Lifecycle {
            pre_stop: Some(LifecycleHandler {
                exec: Some(shell(command)),
                ..LifecycleHandler::default()
            }),
            ..Lifecycle::default()
        }),
        liveness_probe: probe(&described.check, 10, 6),
        name: described.name.to_owned(),
        readiness_probe: probe(readiness, 3, 3),
        resources: resources(described),
        security_context: Some(SecurityContext {
            capabilities: capabilities(described),
            privileged: Some(described.is_privileged),
            run_as_group: Some(0),
            run_as_user: Some(0),
            ..SecurityContext::default()
        }),
        // Images may have to warm up, and files to come.
        startup_probe: probe(&described.check, 3, startup_tries(described)),
        volume_mounts: Some(volumes::mounts(valid, described)),
        ..Container::default()
    }
}

/// Of huge pages it has no more than it asks for; Kubernetes wants it so.
fn resources(described: &Described) -> Option<ResourceRequirements> {
    let (cpu, memory) = described.requests;
    let requests = [("cpu", cpu), ("memory", memory)].into_iter();
    let requests = requests.filter(|(_, amount)| !amount.is_empty());
    let mut requests: BTreeMap<_, _> =
        requests.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).collect();
    let pages = described.huge_pages.iter().filter(|(_, amount)| *amount > 0);
    let pages =
        pages.map(|(size, amount)| (format!("hugepages-{size}"), Quantity(of_mebibytes(*amount))));
    let pages: BTreeMap<_, _> = pages.collect();
    requests.extend(pages.clone());
    (!requests.is_empty()).then(|| ResourceRequirements {
        limits: (!pages.is_empty()).then_some(pages),
        requests: Some(requests),
        ..ResourceRequirements::default()
    })
}

fn command(described: &Described) -> Option<Vec<String>> {
    match described.command {
        Command::OfImage => None,
        Command::Shell(command) => Some(["sh", "-c", command].map(str::to_owned).to_vec()),
        Command::Script => {
            let path = format!("{CONFIGURATION_FOLDER}/run-{}.sh", described.name);
            Some(vec!["bash".to_owned(), path])
        }
    }
}

fn environment(valid: &Valid, described: &Described) -> Vec<EnvVar> {
    let variable = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..EnvVar::default()
    };
    let of_pod = |name: &str, path: &str| EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    };
    let mut all = vec![of_pod("POD_IP", "status.podIP")];
    if described.needs_pod_name {
        all.push(of_pod("POD_NAME", "metadata.name"));
    }
    let level = [("LOG_LEVEL", valid.log_level())].into_iter();
    let own = described.env.iter().map(|(name, value)| (*name, value.as_str()));
    let of_all = &valid.description.variables;
    let own = level.chain(own).filter(|(name, _)| !of_all.contains_key(*name));
    all.extend(own.map(|(name, value)| variable(name, value)));
    // Files and certificates are found by the address.
    let of_all = of_all.iter().filter(|(name, _)| *name != "POD_IP");
    all.extend(of_all.map(|(name, value)| variable(name, value)));
    all
}

fn capabilities(described: &Described) -> Option<Capabilities> {
    let add: Vec<_> = described.capabilities.iter().map(|&one| one.to_owned()).collect();
    (!add.is_empty()).then(|| Capabilities { add: Some(add), ..Capabilities::default() })
}

fn shell(command: &str) -> ExecAction {
    ExecAction { command: Some(["sh", "-c", command].map(str::to_owned).to_vec()) }
}

/// One each three seconds.
fn startup_tries(described: &Described) -> i32 {
    described.starts_within.map_or(60, |seconds| i32::from(seconds / 3))
}

/// It judges its own pod alone.
fn probe(check: &Check, period: i32, failures: i32) -> Option<Probe> {
    let probe = Probe {
        failure_threshold: Some(failures),
        period_seconds: Some(period),
        timeout_seconds: Some(3),
        ..Probe::default()
    };
    match check {
        Check::Nothing => None,
        Check::Command(command) => Some(Probe { exec: Some(shell(command)), ..probe }),
        Check::Port(port) => {
            let port = IntOrString::Int(i32::from(*port));
            Some(Probe { tcp_socket: Some(TCPSocketAction { port, host: None }), ..probe })
        }
        Check::Https(port) => {
            let get = HTTPGetAction {
                path: Some("/".to_owned()),
                port: IntOrString::Int(i32::from(*port)),
                scheme: Some("HTTPS".to_owned()),
                ..HTTPGetAction::default()
            };
            Some(Probe { http_get: Some(get), ..probe })
        }
    }
}
