//! From what the command line says to the inputs of a plan, and the cloud as it is.

use std::collections::BTreeMap;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::ownership::ClusterId;
use opensdn_crds::nested_cluster::NestedClusterSpec;
use opensdn_nested::{Choices, Fact, Input, Kubernetes, Live};
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
    let unknown = |what: &str| format!("{what}: it is known when the manifest is made");
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
            nodes: facts.nodes,
            api_service: facts.api_service,
        },
        driver: Fact::Unknown(unknown("the images are not named here")),
        certificates: BTreeMap::new(),
        percent_passwords: Fact::Unknown(unknown("kube-manager's passwords are not named here")),
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
    survey(api, &asked).await.map_err(|error| unreachable(&error))
}

/// The Config API does not answer, or refuses.
pub(crate) fn unreachable(error: &dyn std::error::Error) -> Failure {
    let hint = "is --config-api right, and reached from this machine? the login is that of $OS_AUTH_URL, \
                $OS_USERNAME and $OS_PASSWORD, of a user with the role admin";
    Failure::new(Exit::Unreachable, "config-api", error.to_string(), hint).because(error)
}
