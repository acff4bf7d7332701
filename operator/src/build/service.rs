//! The Service: an address of a component that stays, whichever of its pods answers.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Owner;

/// None where the component has none.
pub(super) fn build(owner: &Owner<'_>) -> Option<Service> {
    let port = owner.valid.description.service?;
    let instance = &owner.valid.instance;
    Some(Service {
        metadata: owner.metadata(instance.service()),
        spec: Some(ServiceSpec {
            ports: Some(vec![ServicePort {
                name: port.name.map(str::to_owned),
                port: i32::from(port.number),
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::Int(i32::from(port.number))),
                ..ServicePort::default()
            }]),
            selector: Some(instance.labels()),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    })
}
