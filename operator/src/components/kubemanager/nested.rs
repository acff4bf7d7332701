//! kube-manager in a nested cluster: from its settings and what the cluster says of itself to what its workloads are
//! made of. What these are is opensdn-nested-workloads's.

mod field;
mod images;
mod keystone;
mod secrets;

use std::collections::BTreeMap;

use opensdn_crds::kubemanager::KubemanagerConfiguration;
use opensdn_crds::pod::LogLevel;
use opensdn_nested_workloads::{ApiServer, Fabric, FloatingIpPool, Inputs, Subnets};

use super::cluster::{api_servers, known};
use super::subnets;
use crate::component::{Given, Nested, SettingsError};

const PLACE: &str = "spec.serviceConfiguration";

/// What is wrong, by the field of the inputs.
type Wrong = Vec<(&'static str, String)>;

pub(super) fn nested(given: &Given<'_>) -> Result<Option<Nested>, SettingsError> {
    let settings: KubemanagerConfiguration = given.settings()?;
    let Some(nested) = settings.nested.clone() else { return Ok(None) };
    let mut wrong = unsupported(&settings);
    let cluster = given.cluster;
    let all = |own: &Option<String>, default: &[String]| {
        let all = subnets(own.clone(), &default.join(" "));
        all.split(' ').filter(|one| !one.is_empty()).map(str::to_owned).collect()
    };
    if let Err(error) = known(given, &settings) {
        wrong.push(("subnets", error.to_string()));
    }
    let (keystone, keystone_password) = keystone::keystone(given, &mut wrong);
    let mut containers = settings.containers.iter().flatten();
    let container = containers.find(|one| one.name.as_deref() == Some("kubemanager"));
    let inputs = Inputs {
        images: images::images(container.and_then(|one| one.image.as_deref()), &nested, &mut wrong),
        api_server: api_server(given, &settings, &mut wrong),
        subnets: Subnets {
            pod: all(&settings.pod_subnet, &cluster.pod_subnets),
            service: all(&settings.service_subnet, &cluster.service_subnets),
            ip_fabric: all(&settings.ip_fabric_subnets, &[]),
        },
        fabric: Fabric {
            forwarding: settings.ip_fabric_forwarding.unwrap_or_default(),
            snat: settings.ip_fabric_snat.unwrap_or_default(),
            host_network_service: settings.host_network_service.unwrap_or_default(),
        },
        floating_ip_pool: pool(settings.public_fip_pool.as_deref(), &mut wrong),
        log_level: Some(given.common.log_level.unwrap_or(LogLevel::Info)),
        node_selector: given.common.node_selector.clone().unwrap_or_default(),
        keystone,
        nested,
        ..Inputs::default()
    };
    let command = container.and_then(|one| one.command.clone());
    let command = command.filter(|command| !command.is_empty());
    Ok(Some(Nested {
        secrets: secrets::named(&inputs, keystone_password.is_none()),
        escaped: secrets::ESCAPED,
        field: field::of_spec,
        inputs,
        wrong,
        keystone_password,
        command,
    }))
}

/// What is given and has no meaning here: to pass over it would be to run something else than is said.
fn unsupported(settings: &KubemanagerConfiguration) -> Wrong {
    let mut wrong = Wrong::new();
    let orchestrator = settings.cloud_orchestrator.as_deref().unwrap_or_default();
    if !["", "kubernetes"].contains(&orchestrator) {
        let text = format!(
            "{PLACE}.cloudOrchestrator is {orchestrator:?}: a nested cluster is one of kubernetes"
        );
        wrong.push(("orchestrator", text));
    }
    if settings.kubernetes_token_file.as_deref().is_some_and(|file| !file.is_empty()) {
        let text = format!(
            "{PLACE}.kubernetesTokenFile is set: in a nested cluster kube-manager has the token of its \
             ServiceAccount; remove it"
        );
        wrong.push(("token", text));
    }
    let analytics = settings.nested.as_ref().and_then(|nested| nested.underlay.analytics.as_ref());
    if analytics.is_some_and(|analytics| analytics.tls == Some(true)) {
        let text = format!(
            "{PLACE}.nested.underlay.analytics.tls is true: collectors with TLS ask kube-manager for a certificate, and \
             a Kubemanager names none; take collectors without TLS"
        );
        wrong.push(("client_certificate_secret", text));
    }
    wrong
}

/// The one that kube-manager asks.
fn api_server(
    given: &Given<'_>,
    settings: &KubemanagerConfiguration,
    wrong: &mut Wrong,
) -> ApiServer {
    let all = api_servers(given, settings)
        .map(|[preferred, others]| if preferred.is_empty() { others } else { preferred });
    let text = match all.as_deref() {
        Ok([one]) => return ApiServer { host: one.host.clone(), port: one.port.into() },
        Ok(all) => format!(
            "there are {} API servers, and in a nested cluster kube-manager knows one: set \
             {PLACE}.kubernetesAPIServer to an address or a name that leads to any of them",
            all.len()
        ),
        Err(error) => error.to_string(),
    };
    wrong.push(("api_server", text));
    ApiServer::default()
}

/// As a dict of Python, which with its quotes is YAML, too.
fn pool(text: Option<&str>, wrong: &mut Wrong) -> Option<FloatingIpPool> {
    let text = text.map(str::trim).filter(|text| !["", "{}"].contains(text))?;
    let mut parts: BTreeMap<String, String> = serde_saphyr::from_str(text).unwrap_or_default();
    let [domain, project, network, name] =
        ["domain", "project", "network", "name"].map(|key| parts.remove(key));
    let pool = domain.zip(project).zip(network).zip(name);
    if pool.is_none() {
        let text = format!(
            "{PLACE}.publicFIPPool must be a dict with the texts domain, project, network and name, or {{}} for none"
        );
        wrong.push(("floating_ip_pool", text));
    }
    let (((domain, project), network), name) = pool?;
    Some(FloatingIpPool { domain, project, network, name })
}

#[cfg(test)]
mod tests;
