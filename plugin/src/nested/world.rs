//! From what the command line says to the inputs of a plan, and the cloud as it is.

use std::collections::BTreeMap;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::ownership::ClusterId;
use opensdn_crds::nested_cluster::NestedClusterSpec;
use opensdn_nested::{Choices, Input, Kubernetes, Live};
use opensdn_nested_cloud::{Asked, survey};

use super::cluster::NestedFacts;
use super::flags::ChoiceFlags;
use crate::exit::{Exit, Failure};

/// The id that an annotation of the cloud can carry.
///
/// # Errors
/// It has characters that an annotation's name cannot have.
pub(crate) fn cluster_id(text: &str) -> Result<ClusterId, Failure> {
    ClusterId::new(text).map_err(|error| {
        Failure::usage(error.to_string(), "give the uid of the cluster's namespace kube-system")
    })
}

/// The inputs of a plan.
pub(crate) fn input(spec: &NestedClusterSpec, choices: &ChoiceFlags, facts: NestedFacts) -> Input {
    let [pod_subnets, service_subnets, fabric_subnets] = choices.subnets().map(<[_]>::to_vec);
    let choices = Choices {
        record: facts.id,
        profile: choices.profile(),
        naming: choices.naming(),
        node_addresses: choices.node_addresses(),
        vrouter_address: choices.vrouter_address(),
        permissions: choices.permissions(),
        kubernetes: Kubernetes {
            pod_subnets,
            service_subnets,
            fabric_subnets,
            not_given: opensdn_nested::NotGiven::OfImage,
            nodes: facts.nodes,
            api_service: facts.api_service,
        },
        driver: None,
        certificates: BTreeMap::new(),
        percent_passwords: None,
    };
    Input::new(spec, choices)
}

/// The cloud as it is.
///
/// # Errors
/// The Config API cannot be asked.
pub(crate) async fn cloud(api: &ConfigApi, input: &Input) -> Result<Live, Failure> {
    let id = cluster_id(&input.choices.record)?;
    let asked = Asked {
        id: &id,
        cluster: &input.cluster,
        network: &input.network,
        nodes: &input.choices.kubernetes.nodes,
    };
    survey(api, &asked).await.map_err(|error| unreachable(&error.into()))
}

/// The Config API does not answer, or refuses.
pub(crate) fn unreachable(error: &opensdn_nested_cloud::Error) -> Failure {
    let hint = if error.is_of_login() {
        "look at $OS_AUTH_URL, $OS_USERNAME, $OS_PASSWORD, $OS_PROJECT_NAME and the domains, as an openrc file sets them"
    } else {
        "is --config-api right, and reached from this machine? its user needs the role admin"
    };
    let message = "the Config API cannot be asked";
    Failure::new(Exit::Unreachable, "config-api", message, hint).because(error)
}
