//! Every code of a plan: how bad it is and what it says in one line. A code never gets another meaning. Those of
//! manifests, nodes, verification and drift are elsewhere.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Severity;

macro_rules! catalogue {
    ($($name:ident = $code:literal, $severity:ident, $title:literal;)+) => {
        /// What a check is known by.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        pub enum Code {
            $(#[doc = $title] #[serde(rename = $code)] $name,)+
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// As it is written: `OSDN3001`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// How bad it is, where nothing makes it less so.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// What is wrong, in one line.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }
        }
    };
}

catalogue! {
    AddressUnusable = "OSDN3001", Error,
        "a service address is no IPv4 address of a host";
    AddressOfUnderlay = "OSDN3002", Error,
        "a service address is that of a machine of the underlay";
    AddressInSubnet = "OSDN3003", Error,
        "a service address is in a subnet of a virtual network";
    AddressOfCluster = "OSDN3004", Error,
        "a service address is one of this cluster's pods, services or nodes";
    AddressInUse = "OSDN3005", Error,
        "a service address is the address of an interface, or a floating or alias address";
    PortOutOfRange = "OSDN3006", Error, "a port is not from 1 to 65535";
    TargetNotIpv4 = "OSDN3007", Error, "a fabric address is no IPv4 address of a host";
    LoopbackTarget = "OSDN3008", Error,
        "a service other than the vrouter's leads to the compute node of each virtual machine";
    DuplicateKey = "OSDN3009", Error, "two rows have one service address and port";
    KeyTaken = "OSDN3010", Error,
        "a service address and port lead elsewhere already, by a row of another owner";
    NameTaken = "OSDN3011", Warning, "a name of a row is taken, or one by which others find rows";
    NameUnusable = "OSDN3012", Error,
        "a name of a row is empty, too long, or makes it the metadata service";
    PoolTooSmall = "OSDN3013", Error, "there are not enough service addresses";
    Shadowed = "OSDN3014", Error, "a row of another owner is before ours and wins";
    TargetUnclear = "OSDN3015", Error, "a row leads to addresses and a name, or to neither";
    DuplicateInList = "OSDN3020", Warning, "of rows in the cloud with one key, only the first works";
    AddressUnparsable = "OSDN3021", Warning, "a row in the cloud has an address that is none";
    PortInListOutOfRange = "OSDN3022", Warning, "a row in the cloud has a port that is none";
    ServedElsewhere = "OSDN3023", Warning,
        "another row in the cloud leads to the same under another service address";
    FabricPeers = "OSDN3024", Warning,
        "clients of several databases learn fabric addresses that they do not reach";
    EvenMembers = "OSDN3025", Warning, "an even number of members survives no more than one less";
    SnatWillBeOn = "OSDN3026", Warning, "fabric SNAT will be turned on";
    SnatUnasked = "OSDN3027", Warning, "fabric SNAT is on and was not asked for";
    SnatIsolates = "OSDN3028", Warning, "fabric SNAT cuts a network off from others";
    SeveralMetadata = "OSDN3029", Warning,
        "several rows in the cloud are taken for the metadata service";
    NetworkMissing = "OSDN3031", Error, "the network of the nodes is not in the cloud";
    NodeOutside = "OSDN3032", Error,
        "a node's address is not one of the network, or its compute node is not known";
    ClusterNameTaken = "OSDN3033", Error, "the cluster name is in use in the cloud";
    ApiServiceOutside = "OSDN3035", Error,
        "the address of the Kubernetes API is in none of the service subnets";
    PortsOfRelease = "OSDN3036", Error, "ports or services do not fit the release of the images";
    PoolsWillBeMade = "OSDN3037", Warning, "port translation pools are missing and will be added";
    CertificateNames = "OSDN3038", Warning, "a server certificate has not the service addresses";
    CloudWideExposure = "OSDN3039", Warning,
        "every virtual machine of the cloud will reach the control plane";
    AgentExposed = "OSDN3054", Warning,
        "every virtual machine of the cloud reaches the agent of its compute node";
    FabricOpened = "OSDN3055", Warning,
        "every virtual machine of the network reaches every address and port of the fabric";
    DefaultClusterName = "OSDN3056", Warning, "the cluster has the default name";
    SubnetOfNodes = "OSDN3057", Error, "a subnet of the cluster overlaps the network of its nodes";
    SubnetOfFabric = "OSDN3058", Warning,
        "a subnet of the cluster has addresses of the control plane";
    SubnetsEmpty = "OSDN3059", Warning, "subnets are not given, and the image takes its own";
    PercentInPassword = "OSDN3073", Warning, "a password has a % that kube-manager cannot read";
    NoAuthentication = "OSDN3074", Warning, "the Config API asks for no token";
    VirtualRouterMissing = "OSDN3075", Error, "the compute node of a node has no virtual-router";
    SeveralNetworks = "OSDN3076", Error, "nodes are in different networks";
    BgpPort = "OSDN3077", Error, "port 179 never works as a link-local service";
    SubnetOfOtherCluster = "OSDN3078", Warning,
        "a subnet of the cluster overlaps one of another nested cluster";
    PasswordUnusable = "OSDN3079", Warning, "kube-manager cannot log in by a password";
    PoolsOverwritten = "OSDN3089", Warning,
        "port translation pools of others are replaced by kube-manager's";
    MayNotWrite = "OSDN3097", Error, "the login may not write what the cluster needs";
}

impl fmt::Display for Code {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn codes_are_in_order_and_none_comes_twice() {
        let all: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
        assert!(Code::ALL.iter().all(|code| !code.title().ends_with('.')));
    }

    #[test]
    fn a_code_is_written_and_read_as_its_text() {
        for code in Code::ALL {
            let text = serde_json::to_string(code).unwrap();
            assert_eq!(text, format!("{:?}", code.as_str()));
            assert_eq!(serde_json::from_str::<Code>(&text).unwrap(), *code);
        }
    }
}
