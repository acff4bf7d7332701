//! From the fields of the inputs of the workloads to the fields of a Kubemanager that set them.

const FIELDS: &[(&str, &str)] = &[
    ("api_server.host", "spec.serviceConfiguration.kubernetesAPIServer"),
    ("api_server.port", "spec.serviceConfiguration.kubernetesAPISSLPort"),
    ("floating_ip_pool", "spec.serviceConfiguration.publicFIPPool"),
    ("images.cni", "spec.serviceConfiguration.nested.cni.image"),
    ("images.kube_manager", "the image of kubemanager in spec.serviceConfiguration.containers"),
    (
        "keystone.domain",
        "spec.commonConfiguration.authParameters.keystoneAuthParameters.userDomainName",
    ),
    ("keystone.host", "spec.commonConfiguration.authParameters.keystoneAuthParameters.address"),
    ("keystone.password", "spec.commonConfiguration.authParameters.keystoneSecretName"),
    ("keystone.port", "spec.commonConfiguration.authParameters.keystoneAuthParameters.adminPort"),
    (
        "keystone.project",
        "spec.commonConfiguration.authParameters.keystoneAuthParameters.adminTenant",
    ),
    (
        "keystone.user",
        "spec.commonConfiguration.authParameters.keystoneAuthParameters.adminUsername",
    ),
    ("names_prefix", "metadata.name, with a - after it,"),
    ("namespace", "metadata.namespace"),
    ("nested", "spec.serviceConfiguration.nested"),
    ("node_selector", "spec.commonConfiguration.nodeSelector"),
    ("subnets.ip_fabric", "spec.serviceConfiguration.ipFabricSubnets"),
    ("subnets.pod", "spec.serviceConfiguration.podSubnet"),
    ("subnets.service", "spec.serviceConfiguration.serviceSubnet"),
];

/// As a user writes it.
pub(super) fn of_spec(field: &str) -> String {
    let rest = |of: &str| {
        let rest = field.strip_prefix(of)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
    };
    let known = FIELDS.iter().find_map(|(of, place)| Some((*place, rest(of)?)));
    match known {
        // Below it the fields are called alike.
        Some((place, rest))
            if ["nested", "node_selector"].iter().any(|of| field.starts_with(of)) =>
        {
            format!("{place}{rest}")
        }
        Some((place, _)) => place.to_owned(),
        None => field.to_owned(),
    }
}
