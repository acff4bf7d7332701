//! Names of our own objects. A user writes them into scripts, RBAC rules and alerts, and a webhook
//! and an installer of different versions meet by them: change one as you would change an API.

/// Where everything of ours is that has a namespace.
pub const NAMESPACE: &str = "opensdn-system";
/// The ValidatingAdmissionPolicy, and its binding, that keep UniqueClaims the webhook's.
pub const UNIQUE_CLAIMS_POLICY: &str = "opensdn-unique-claims";
/// The ValidatingAdmissionPolicy, and its binding, that keep each account of ours to its own Leases.
pub const LEASES_POLICY: &str = "opensdn-webhook-leases";
/// The ConfigMap that says what the plugin has installed, in the namespace of the webhook.
pub const INVENTORY: &str = "opensdn-inventory";
/// Which program an object belongs to, as `kubectl get --selector` takes it.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Which program writes an object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// The webhook's.
pub mod webhook {
    /// Its Deployment, Service, ServiceAccount and roles, both of its webhook configurations, and
    /// by which field manager and event controller it is known. Who writes the configurations has a
    /// name of its own ([`super::configuration`]).
    pub const NAME: &str = "opensdn-webhook";
    /// Its user, as RBAC and the audit log have it.
    pub const USER: &str = "system:serviceaccount:opensdn-system:opensdn-webhook";
    /// The Lease of the replica that leads.
    pub const LEADER_LEASE: &str = "opensdn-webhook-leader";
    /// Each replica's Lease is called this and its pod's name.
    pub const REPLICA_LEASE_PREFIX: &str = "opensdn-webhook-replica-";
    /// The Secret of its CA.
    pub const CA_SECRET: &str = "opensdn-webhook-ca";
    /// The Secret of the tokens in its paths.
    pub const PATH_SECRET: &str = "opensdn-webhook-paths";
    /// The ConfigMap that the background audit reports to, and the field manager of that.
    pub const AUDIT_REPORT: &str = "opensdn-webhook-audit";
    /// The field manager of the condition about shared addresses.
    pub const UNIQUE_MANAGER: &str = "opensdn-webhook-unique";
}

/// That of the process that writes the webhook configurations.
pub mod configuration {
    /// Its Deployment, ServiceAccount and roles.
    pub const NAME: &str = "opensdn-webhook-configuration";
    /// Its user, as RBAC and the audit log have it.
    pub const USER: &str = "system:serviceaccount:opensdn-system:opensdn-webhook-configuration";
    /// The Lease of the one that writes.
    pub const LEADER_LEASE: &str = "opensdn-webhook-configuration-leader";
}

/// The operator's.
pub mod operator {
    /// Where it is: apart from the webhook, as it has the network of its node.
    pub const NAMESPACE: &str = "opensdn-operator";
    /// Its Deployment, ServiceAccount and roles, and by which field manager it is known.
    pub const NAME: &str = "opensdn-operator";
    /// Its user, as RBAC and the audit log have it.
    pub const USER: &str = "system:serviceaccount:opensdn-operator:opensdn-operator";
    /// The Lease of the replica that acts.
    pub const LEADER_LEASE: &str = "opensdn-operator";
    /// The variable of its container with the namespaces that it watches, separated by commas; all where it is empty.
    pub const NAMESPACES: &str = "OPENSDN_OPERATOR_NAMESPACES";
    /// The ConfigMap of a namespace with the certificates that its pods trust.
    pub const TRUST: &str = "csr-signer-ca";
    /// The Secret of a namespace with a CA that a user gives.
    pub const GIVEN_CA_SECRET: &str = "contrail-ca-certificate";
    /// Annotation of a Secret with certificates: those that were issued before this time (RFC 3339) are issued again, in
    /// turn.
    pub const RENEW: &str = "opensdn.io/renew-issued-before";
    /// Of so many addresses of a component one is renewed at a time, and of fewer one as well.
    pub const RENEWED_IN_TURNS: usize = 20;
}
