//! What the specs of all components share: placement, images, authentication, log level. The
//! fields of one component are with its kind; the additions of the Manager are in `manager.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

enumeration! {
    /// Who may use the OpenSDN API.
    pub enum AuthMode {
        /// Everybody who reaches it.
        NoAuth = "noauth",
        /// Whom Keystone knows.
        Keystone = "keystone",
    }
}

enumeration! {
    /// How much the daemons log.
    pub enum LogLevel {
        /// What an administrator wants to know.
        Info = "info",
        /// Everything.
        Debug = "debug",
        /// What may become a problem.
        Warning = "warning",
        /// What is one.
        Error = "error",
        /// What ends the daemon.
        Critical = "critical",
        /// Nothing.
        None = "none",
    }
}

enumeration! {
    /// What the Config and Analytics APIs check about a request.
    pub enum AaaMode {
        /// Nothing; tf-operator's spelling, which the daemons do not know. We write `no-auth`.
        NoauthMisspelt = "noauth",
        /// Nothing.
        NoAuth = "no-auth",
        /// Roles and access lists; needs Keystone.
        Rbac = "rbac",
        /// Whether the user is the cloud's administrator; needs Keystone.
        CloudAdmin = "cloud-admin",
    }
}

/// One container of a component: which image it runs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Which container this is; each kind has its own set of names.
    pub name: Option<String>,
    /// The image with its tag or digest.
    pub image: Option<String>,
    /// Replaces the command that waits for the configuration and starts the daemon. Leave it
    /// unset unless you debug.
    pub command: Option<Vec<String>>,
}

/// A taint that the pods tolerate.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = toleration))]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Which taint effect is tolerated: NoSchedule, PreferNoSchedule or NoExecute. Unset: all.
    pub effect: Option<String>,
    /// Key of the taint. Unset, with operator Exists: every taint.
    pub key: Option<String>,
    /// Equal (default) compares the value, Exists does not.
    pub operator: Option<String>,
    /// Seconds for which a NoExecute taint is tolerated. Unset: without limit.
    pub toleration_seconds: Option<i64>,
    /// Value of the taint, with operator Equal.
    pub value: Option<String>,
}

/// How the services reach Keystone.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = keystone))]
#[serde(rename_all = "camelCase")]
pub struct KeystoneAuthParameters {
    /// `https` or `http`. Default https.
    pub auth_protocol: Option<String>,
    /// Address or name of Keystone. tf-operator's default is 127.0.0.1: on
    /// each node the node itself.
    pub address: Option<String>,
    /// Public port of Keystone, used by the web UI only. Default 5000.
    pub port: Option<i64>,
    /// Port of the token URL, used by every other service. Default 35357, which current Keystone
    /// does not serve: set it, usually to 5000.
    pub admin_port: Option<i64>,
    /// Project of the administrator. Default admin.
    pub admin_tenant: Option<String>,
    /// Name of the administrator. Default admin.
    pub admin_username: Option<String>,
    /// Password of the administrator in clear text. Prefer `keystoneSecretName`.
    pub admin_password: Option<String>,
    /// Region. Default RegionOne.
    pub region: Option<String>,
    /// Domain of the user. Default Default.
    pub user_domain_name: Option<String>,
    /// Domain of the project. Default Default.
    pub project_domain_name: Option<String>,
    /// Whether the services accept any certificate of Keystone. tf-operator's default is true.
    pub insecure: Option<bool>,
}

/// Who may use the OpenSDN API, and how that is checked.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = authentication))]
#[serde(rename_all = "camelCase")]
pub struct AuthParameters {
    /// `noauth` (default) or `keystone`.
    pub auth_mode: Option<AuthMode>,
    /// Secret in the same namespace whose key `password` is the administrator's password.
    pub keystone_secret_name: Option<String>,
    /// How to reach Keystone; read with authMode keystone.
    pub keystone_auth_parameters: Option<KeystoneAuthParameters>,
}

/// Where the pods of one component run, and what they share with all others. An unset field is
/// taken from the Manager's `commonConfiguration`, whole.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = common))]
#[serde(rename_all = "camelCase")]
pub struct PodConfiguration {
    /// Labels of the nodes that the component runs on: one pod on each. Default: the control
    /// plane's.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Names of Secrets with the credentials of image registries.
    pub image_pull_secrets: Option<Vec<String>>,
    /// Taints that the pods tolerate. A list replaces the default, which is to tolerate all.
    pub tolerations: Option<Vec<Toleration>>,
    /// No effect on a component: the Manager's are used.
    pub auth_parameters: Option<AuthParameters>,
    /// How much the daemons log. tf-operator's default is debug, ours info.
    pub log_level: Option<LogLevel>,
    /// Operating system of the nodes. With ubuntu, in lower case, the kernel module is built on the
    /// node; whatever else stands here (rhel, centos, openshift) counts as rhel.
    pub distribution: Option<String>,
}

#[cfg(feature = "kube")]
pub(crate) use constraints::{aaa_mode, common};
#[cfg(feature = "kube")]
use constraints::{authentication, keystone, toleration};

#[cfg(feature = "kube")]
mod constraints {
    use schemars::Schema;

    use crate::schema::{Fields, HOST, TEXT};

    /// The fields that component and Manager share.
    pub(crate) fn common(schema: &mut Schema) {
        let _ = Fields::of(schema)
            .most_items(&["tolerations"], 64)
            .longest(&["distribution"], 64)
            .field(
                "OSDN1215",
                "distribution",
                "self == 'ubuntu' || self.trim().lowerAscii() != 'ubuntu'",
                "must be written ubuntu, in lower case: any other spelling counts as rhel, whose \
                 kernel modules do not fit",
            );
    }

    /// The field aaaMode of Config and Analytics. A rule instead of an enumeration: the API server
    /// judges no rule of an object with a word that an enumeration does not have, so its refusal
    /// would have neither this code nor any other reason.
    pub(crate) fn aaa_mode(schema: &mut Schema) {
        let _ = Fields::of(schema).remove("aaaMode", "enum").longest(&["aaaMode"], 64).field(
            "OSDN1410",
            "aaaMode",
            "self in ['noauth', 'no-auth', 'rbac', 'cloud-admin']",
            "must be no-auth, rbac or cloud-admin (or noauth, as tf-operator spells no-auth)",
        );
    }

    pub(super) fn toleration(schema: &mut Schema) {
        const CODE: &str = "OSDN1213";
        let _ = Fields::of(schema)
            .longest(&["effect", "operator"], 64)
            .longest(&["value"], 63)
            .field(
                CODE,
                "value",
                "self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",
                "must be the value of a taint: letters, digits, -, _ and ., with a letter or digit at both ends",
            )
            .field(
                CODE,
                "effect",
                "self in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute']",
                "must be NoSchedule, PreferNoSchedule or NoExecute; leave it out for all effects",
            )
            .field(CODE, "operator", "self in ['', 'Exists', 'Equal']", "must be Exists or Equal")
            .rule_at(
                "value",
                CODE,
                "self.?operator.orValue('') != 'Exists' || self.?value.orValue('') == ''",
                "a toleration with operator Exists has no value: remove value, or use Equal",
            )
            .rule_at(
                "operator",
                CODE,
                "self.?key.orValue('') != '' || self.?operator.orValue('') == 'Exists'",
                "a toleration without key needs operator Exists: set it, or name the key of the taint",
            )
            .longest(&["key"], 317)
            .field(
                CODE,
                "key",
                "self == '' || self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*\
                 [A-Za-z0-9])?$')",
                "must be the key of a taint, such as node-role.kubernetes.io/master",
            )
            .rule_at(
                "tolerationSeconds",
                CODE,
                "!has(self.tolerationSeconds) || self.?effect.orValue('') == 'NoExecute'",
                "tolerationSeconds only counts with effect NoExecute: remove it or set the effect",
            );
    }

    pub(super) fn keystone(schema: &mut Schema) {
        let _ = Fields::of(schema)
            .ports("OSDN1519", &["port", "adminPort"])
            .longest(&["address"], HOST)
            .longest(&["adminPassword"], TEXT)
            .matches("OSDN1405", &["authProtocol"], "^https?$", 64, "https or http");
    }

    pub(super) fn authentication(schema: &mut Schema) {
        let _ = Fields::of(schema).longest(&["keystoneSecretName"], HOST);
    }
}
