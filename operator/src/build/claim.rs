//! The volume of a node, for what a service stores there. It has no owner: nothing but a user deletes it.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Owner;
use super::valid::Claim;
use crate::names::NODE;

pub(super) fn build(owner: &Owner<'_>, node: &str, claim: &Claim) -> PersistentVolumeClaim {
    let mut metadata = owner.metadata(claim.name.clone());
    metadata.owner_references = None;
    metadata.annotations = Some([(NODE.to_owned(), node.to_owned())].into());
    let size = Quantity(claim.size.clone());
    PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), size)].into()),
                ..VolumeResourceRequirements::default()
            }),
            storage_class_name: claim.class.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}
