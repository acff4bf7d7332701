//! The Secret with the token of the ServiceAccount. Kubernetes fills it in, and takes it away with the account.

use k8s_openapi::api::core::v1::Secret;

use super::Owner;

/// None where the pods ask nothing of the API server.
pub(super) fn build(owner: &Owner<'_>) -> Option<Secret> {
    let instance = &owner.valid.instance;
    owner.valid.description.token.then(|| {
        let mut metadata = owner.metadata(instance.token());
        let account = ("kubernetes.io/service-account.name".to_owned(), instance.service_account());
        metadata.annotations = Some([account].into());
        Secret {
            metadata,
            type_: Some("kubernetes.io/service-account-token".to_owned()),
            ..Secret::default()
        }
    })
}
