//! Where a pod is, according to the API server.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;

/// Where a pod is reached, once it has an address.
#[must_use]
pub fn address_of(pod: &Pod) -> Option<Ipv4Addr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

/// The node that a pod is on, once it has one.
#[must_use]
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}
