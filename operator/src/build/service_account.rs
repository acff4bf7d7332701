//! The ServiceAccount of the pods: no token is mounted by itself, as most ask nothing of the API server.

use k8s_openapi::api::core::v1::ServiceAccount;

use super::Owner;

pub(super) fn build(owner: &Owner<'_>) -> ServiceAccount {
    ServiceAccount {
        metadata: owner.metadata(owner.valid.instance.service_account()),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}
