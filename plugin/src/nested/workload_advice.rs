//! What has to be there before the workloads are applied, and what they open. Pure text.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_crds::nested_cluster::Connectivity;
use opensdn_nested::Plan;
use opensdn_nested_workloads::{Inputs, Names, Plugins, Protocol};

/// Where pods may use what their nodes have without a label of the namespace.
const SYSTEM: &str = "kube-system";
const RABBITMQ_KEYS: [&str; 3] = ["user", "password", "vhost"];

/// Where the networks of pods and Services are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Networks {
    /// Both are given.
    Given,
    /// At least one is the default of kube-manager's image.
    Default,
}

/// What has to be done before, a sentence each.
pub(crate) fn before(inputs: &Inputs, networks: Networks) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(of_namespace(&inputs.namespace));
    all.extend(of_secrets(inputs));
    if inputs.keystone.as_ref().is_some_and(|one| one.escaped_password.is_none()) {
        all.push(of_percent("Keystone's password", "--keystone-escaped-key"));
    }
    let has_bus = inputs.nested.underlay.rabbitmq_secret_name.is_some();
    if has_bus && inputs.escaped_rabbitmq_password.is_none() {
        all.push(of_percent("RabbitMQ's password", "--rabbitmq-escaped-key"));
    }
    let is_tls = inputs.nested.underlay.rabbitmq.as_ref().and_then(|bus| bus.tls) == Some(true);
    if is_tls && inputs.client_certificate_secret.is_none() {
        let text = "RabbitMQ with TLS as upstream's containers run it refuses clients without a certificate \
                    (RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT is true): --client-certificate-secret names the Secret with one";
        all.push(text.to_owned());
    }
    if networks == Networks::Default {
        let (pods, services) = (inputs.subnets.pod.join(", "), inputs.subnets.service.join(", "));
        all.push(format!(
            "pods are taken to be in {pods} and Services in {services}, which must contain the ClusterIP of the \
             Service kubernetes; if they are not: --pod-subnets and --service-subnets"
        ));
    }
    all
}

fn of_namespace(namespace: &str) -> Option<String> {
    let label = "pod-security.kubernetes.io/enforce=privileged";
    (namespace != SYSTEM).then(|| {
        format!(
            "the pods use the network and folders of their nodes, which the namespace must allow: kubectl create \
             namespace {namespace}; kubectl label namespace {namespace} {label}"
        )
    })
}

fn of_secrets(inputs: &Inputs) -> Option<String> {
    let namespace = &inputs.namespace;
    let with_keys = |(secret, keys): (&str, BTreeSet<&str>)| {
        format!("{secret} ({})", keys.into_iter().collect::<Vec<_>>().join(", "))
    };
    let all: Vec<String> = secrets(inputs).into_iter().map(with_keys).collect();
    let deployment = Names::new(&inputs.names_prefix).kube_manager();
    (!all.is_empty()).then(|| {
        format!(
            "these Secrets with their keys must be in the namespace {namespace}: {}; kube-manager reads them at its \
             start only, so after a change: kubectl -n {namespace} rollout restart deployment {deployment}",
            all.join(", ")
        )
    })
}

fn of_percent(password: &str, flag: &str) -> String {
    format!(
        "if {password} has a %, kube-manager ends at its start: put it with each % doubled into another key of the \
         Secret, and name that by {flag}"
    )
}

/// The keys by their Secrets; several purposes may share one.
fn secrets(inputs: &Inputs) -> BTreeMap<&str, BTreeSet<&str>> {
    let underlay = &inputs.nested.underlay;
    let mut needed: Vec<(Option<&str>, &str)> = vec![
        (inputs.registry_secret.as_deref(), ".dockerconfigjson"),
        (underlay.ca_secret_name.as_deref(), "ca-bundle.crt"),
        (inputs.client_certificate_secret.as_deref(), "tls.crt"),
        (inputs.client_certificate_secret.as_deref(), "tls.key"),
    ];
    needed.extend(RABBITMQ_KEYS.map(|key| (underlay.rabbitmq_secret_name.as_deref(), key)));
    let keystone = inputs.keystone.iter();
    let of_keystone = keystone.flat_map(|one| [Some(&one.password), one.escaped_password.as_ref()]);
    let named = of_keystone.chain([inputs.escaped_rabbitmq_password.as_ref()]).flatten();
    needed.extend(named.map(|one| (Some(one.secret.as_str()), one.key.as_str())));
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (secret, key) in needed {
        if let Some(secret) = secret {
            all.entry(secret).or_default().insert(key);
        }
    }
    all
}

/// What the workloads open, or trust without a check, a sentence each.
pub(crate) fn consequences(plan: &Plan, inputs: &Inputs) -> Vec<String> {
    let mut all = vec![match plan.connectivity {
        Connectivity::FabricSnat => format!(
            "by fabric SNAT every virtual machine of the network {} reaches every port of the fabric",
            plan.network.joined()
        ),
        Connectivity::LinkLocal => {
            "by link-local services every virtual machine of the whole cloud reaches its control plane; no policy or \
             security group can narrow that"
                .to_owned()
        }
    }];
    let clear = match &inputs.keystone {
        None => {
            Some("kube-manager sends no token: whatever reaches the Config API may do the same")
        }
        Some(one) if one.protocol == Protocol::Http => {
            Some("the password goes to Keystone without TLS: --keystone-protocol https")
        }
        Some(_) => None,
    };
    all.extend(clear.map(str::to_owned));
    if inputs.nested.underlay.rabbitmq_secret_name.is_none() {
        let guest =
            "kube-manager logs in to RabbitMQ as guest with the password guest: --rabbitmq-secret";
        all.push(guest.to_owned());
    }
    all.push(
        "kube-manager does not check the certificate of the API server, and its token, which is without an end, is \
         in a Secret"
            .to_owned(),
    );
    if inputs.plugins == Plugins::Replaced {
        all.push(
            "the CNI agent replaces bridge, loopback and other plugins on the nodes by those of version 0.3.0: \
             --keep-cni-plugins leaves them"
                .to_owned(),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use opensdn_nested_workloads::{Inputs, SecretKey};

    use opensdn_crds::nested::Endpoint;

    use super::{Networks, before, secrets};

    #[test]
    fn a_secret_that_serves_two_purposes_is_named_once_with_all_its_keys() {
        let mut inputs = Inputs {
            client_certificate_secret: Some("tls".to_owned()),
            escaped_rabbitmq_password: Some(SecretKey {
                secret: "bus".to_owned(),
                key: "escaped".to_owned(),
            }),
            ..Inputs::default()
        };
        inputs.nested.underlay.ca_secret_name = Some("tls".to_owned());
        inputs.nested.underlay.rabbitmq_secret_name = Some("bus".to_owned());
        let found = secrets(&inputs);
        let keys = |secret: &str| Vec::from_iter(found[secret].iter().copied());
        assert_eq!(keys("tls"), ["ca-bundle.crt", "tls.crt", "tls.key"]);
        assert_eq!(keys("bus"), ["escaped", "password", "user", "vhost"]);
    }

    #[test]
    fn a_bus_with_tls_asks_for_a_certificate_of_kube_managers_own() {
        let mut inputs = Inputs::default();
        let asks = |inputs: &Inputs| {
            before(inputs, Networks::Given).join("").contains("--client-certificate-secret")
        };
        let tls = Some(true);
        inputs.nested.underlay.rabbitmq = Some(Endpoint { tls, ..Endpoint::default() });
        assert!(asks(&inputs));
        inputs.client_certificate_secret = Some("tls".to_owned());
        assert!(!asks(&inputs));
        let plain = Inputs::default();
        assert!(!asks(&plain));
    }

    #[test]
    fn a_namespace_of_its_own_needs_a_label_and_kube_system_does_not() {
        let own = Inputs { namespace: "opensdn".to_owned(), ..Inputs::default() };
        let needs_label =
            |inputs: &Inputs| before(inputs, Networks::Given).join("").contains("label");
        assert!(needs_label(&own));
        assert!(!needs_label(&Inputs::default()));
    }
}
