//! The kustomizations of this folder with the files that they name, as they were when this was built.

/// A kustomization and the files that it names, as they were when this was built.
pub(crate) struct Base {
    /// Where it is.
    pub(crate) folder: &'static str,
    /// What it is made of.
    pub(crate) kustomization: &'static str,
    /// The files beside it.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The kustomization on which it is laid, and how it calls it.
    pub(crate) below: Option<(&'static str, &'static Base)>,
}

pub(crate) const WEBHOOK: Base = Base {
    folder: "deploy/webhook",
    kustomization: include_str!("../webhook/kustomization.yaml"),
    files: &[
        ("configuration.yaml", include_str!("../webhook/configuration.yaml")),
        ("deployment.yaml", include_str!("../webhook/deployment.yaml")),
        ("leases.yaml", include_str!("../webhook/leases.yaml")),
        ("namespace.yaml", include_str!("../webhook/namespace.yaml")),
        ("network-policy.yaml", include_str!("../webhook/network-policy.yaml")),
        ("pod-disruption-budget.yaml", include_str!("../webhook/pod-disruption-budget.yaml")),
        ("policies.yaml", include_str!("../webhook/policies.yaml")),
        ("rbac.yaml", include_str!("../webhook/rbac.yaml")),
        ("secret-keys.yaml", include_str!("../webhook/secret-keys.yaml")),
        ("service.yaml", include_str!("../webhook/service.yaml")),
        ("tf-operator.yaml", include_str!("../webhook/tf-operator.yaml")),
        ("unique-claims.yaml", include_str!("../webhook/unique-claims.yaml")),
    ],
    below: None,
};

pub(crate) const OPERATOR: Base = Base {
    folder: "deploy/operator",
    kustomization: include_str!("../operator/kustomization.yaml"),
    files: &[
        ("deployment.yaml", include_str!("../operator/deployment.yaml")),
        ("kube-manager.yaml", include_str!("../operator/kube-manager.yaml")),
        ("namespace.yaml", include_str!("../operator/namespace.yaml")),
        ("rbac.yaml", include_str!("../operator/rbac.yaml")),
        ("watched-namespace.yaml", include_str!("../operator/watched-namespace.yaml")),
    ],
    below: None,
};

pub(crate) const OPENSHIFT_WEBHOOK: Base = Base {
    folder: "deploy/openshift/webhook",
    kustomization: include_str!("../openshift/webhook/kustomization.yaml"),
    files: &[("security.yaml", include_str!("../openshift/webhook/security.yaml"))],
    below: Some(("../../webhook", &WEBHOOK)),
};

pub(crate) const OPENSHIFT_OPERATOR: Base = Base {
    folder: "deploy/openshift/operator",
    kustomization: include_str!("../openshift/operator/kustomization.yaml"),
    files: &[("security.yaml", include_str!("../openshift/operator/security.yaml"))],
    below: Some(("../../operator", &OPERATOR)),
};

pub(crate) const OPENSHIFT_MACHINES: Base = Base {
    folder: "deploy/openshift/machines",
    kustomization: include_str!("../openshift/machines/kustomization.yaml"),
    files: &[
        ("master.yaml", include_str!("../openshift/machines/master.yaml")),
        ("network.yaml", include_str!("../openshift/machines/network.yaml")),
        ("worker.yaml", include_str!("../openshift/machines/worker.yaml")),
    ],
    below: None,
};

pub(crate) const OPENSTACK: Base = Base {
    folder: "deploy/openstack",
    kustomization: include_str!("../openstack/kustomization.yaml"),
    files: &[],
    below: Some(("../operator", &OPERATOR)),
};
