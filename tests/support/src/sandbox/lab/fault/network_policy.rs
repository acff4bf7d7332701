//! A NetworkPolicy enforced, which the lab's plain bridges do not. Only what does not mention
//! peers can be: its ports, both ways. Deliberately not here: what the policy should say.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::network::apply;
use super::{Fault, FaultError};
use crate::sandbox::lab::{Lab, address_of, node_of};

impl Lab {
    /// Keeps a pod to what the policy allows, until the fault is undone. Its own node reaches it
    /// always, as in Kubernetes; what is connected stays connected.
    ///
    /// # Errors
    /// When the pod is on no node that runs, or the policy says what cannot be enforced here.
    pub fn enforce(&self, policy: &NetworkPolicy, pod: &Pod) -> Result<Fault, FaultError> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let refused = |why| FaultError::NetworkPolicy(name.to_owned(), why);
        let node = node_of(pod).ok_or_else(|| refused("it is on no node"))?;
        let rules = rules(policy, pod).map_err(refused)?;
        apply(self.require_machine(node)?, format!("network policy of {name}"), rules)
    }
}

/// The one that is inserted last is matched first.
fn rules(policy: &NetworkPolicy, pod: &Pod) -> Result<Vec<String>, &'static str> {
    let spec = policy.spec.as_ref().ok_or("the policy has no spec")?;
    let address = address_of(pod).ok_or("it has no address")?;
    let types = spec.policy_types.clone().unwrap_or_default();
    if types.len() != 2 {
        return Err("the policy is not about both ways");
    }
    let rule = |end: &str, what: &str| format!("mangle FORWARD --{end} {address} {what}");
    let mut rules = Vec::new();
    for end in ["source", "destination"] {
        rules.push(rule(end, "--jump DROP"));
        rules.push(rule(end, "--match conntrack --ctstate ESTABLISHED,RELATED --jump ACCEPT"));
    }
    let mut ways = Vec::new();
    for ingress in spec.ingress.iter().flatten() {
        ways.push(("destination", ingress.from.is_some(), &ingress.ports));
    }
    for egress in spec.egress.iter().flatten() {
        ways.push(("source", egress.to.is_some(), &egress.ports));
    }
    for (end, names_peers, ports) in ways {
        if names_peers {
            return Err("the policy names peers");
        }
        for port in ports.iter().flatten() {
            let protocol = port.protocol.as_deref().unwrap_or("TCP").to_lowercase();
            let number = number(port, pod).ok_or("a port of the policy is none of the pod's")?;
            rules.push(rule(end, &format!("--protocol {protocol} --dport {number} --jump ACCEPT")));
        }
    }
    Ok(rules)
}

fn number(port: &NetworkPolicyPort, pod: &Pod) -> Option<i32> {
    match port.port.as_ref()? {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            named.map(|port| port.container_port)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_policy_allows_is_asked_before_everything_is_dropped() {
        let pod: Pod = serde_json::from_value(json!({
            "spec": {"containers": [{"name": "c",
                "ports": [{"name": "https", "containerPort": 8443}]}]},
            "status": {"podIP": "10.91.1.2"},
        }))
        .unwrap();
        let policy = |ingress| -> NetworkPolicy {
            serde_json::from_value(json!({"spec": {"podSelector": {},
                "policyTypes": ["Ingress", "Egress"], "ingress": [ingress],
                "egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}]}}))
            .unwrap()
        };
        let found = rules(&policy(json!({"ports": [{"port": "https"}]})), &pod).unwrap();
        let to = "mangle FORWARD --destination 10.91.1.2 ";
        let from = "mangle FORWARD --source 10.91.1.2 ";
        let place = |wanted: String| found.iter().position(|rule| *rule == wanted).unwrap();
        let dropped = [to, from].map(|way| place(format!("{way}--jump DROP")));
        let https = place(format!("{to}--protocol tcp --dport 8443 --jump ACCEPT"));
        let names = place(format!("{from}--protocol udp --dport 53 --jump ACCEPT"));
        assert!(dropped.into_iter().all(|dropped| dropped < https && dropped < names));
        for senseless in [json!({"from": []}), json!({"ports": [{"port": "other"}]})] {
            assert!(rules(&policy(senseless), &pod).is_err());
        }
    }
}
