//! What checks find, and what they could not find out: an unknown is a state of its own and never passes for good.

use std::fmt;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::Code;
use crate::live::Fact;
use crate::roles::Role;

/// How bad a finding is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nothing is written.
    Error,
    /// It is written all the same.
    Warning,
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "name", rename_all = "kebab-case")]
pub enum Subject {
    /// A row, by its name and service address and port.
    Row(String),
    /// A node of the cluster or of the underlay.
    Node(String),
    /// An address.
    Address(Ipv4Addr),
    /// A virtual network or subnet.
    Network(String),
    /// A service of the underlay.
    Role(Role),
    /// A field of the spec.
    Field(String),
    /// The cluster.
    Cluster(String),
    /// The whole cloud.
    Cloud,
}

/// Something that speaks against the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// By what it is known.
    pub code: Code,
    /// How bad it is, which a permission can lessen.
    pub severity: Severity,
    /// What it is about.
    pub about: Subject,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// A check that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unknown {
    /// The check.
    pub code: Code,
    /// Why it is not known.
    pub why: String,
}

/// All that the checks of a plan say.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) unknown: Vec<Unknown>,
}

impl Report {
    pub(crate) fn find(&mut self, code: Code, about: Subject, message: String, hint: &str) {
        self.find_as(code.severity(), code, about, message, hint);
    }

    /// With a severity other than the code's own.
    pub(crate) fn find_as(
        &mut self,
        severity: Severity,
        code: Code,
        about: Subject,
        message: String,
        hint: &str,
    ) {
        self.findings.push(Finding { code, severity, about, message, hint: hint.to_owned() });
    }

    /// What is known; else the checks that need it are not.
    pub(crate) fn known<'f, T>(&mut self, fact: &'f Fact<T>, codes: &[Code]) -> Option<&'f T> {
        match fact {
            Fact::Known(value) => Some(value),
            Fact::Unknown(why) => {
                codes.iter().for_each(|code| self.unknown(*code, why.clone()));
                None
            }
        }
    }

    pub(crate) fn unknown(&mut self, code: Code, why: String) {
        self.unknown.push(Unknown { code, why });
    }

    /// By code; of equal codes in the order in which they were found.
    pub(crate) fn sorted(mut self) -> Self {
        self.findings.sort_by_key(|finding| finding.code);
        self.unknown.sort();
        self.unknown.dedup();
        self
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(name) => write!(to, "row {name}"),
            Self::Node(name) => write!(to, "node {name}"),
            Self::Address(address) => write!(to, "address {address}"),
            Self::Network(name) => write!(to, "network {name}"),
            Self::Role(role) => to.write_str(role.label()),
            Self::Field(name) => to.write_str(name),
            Self::Cluster(name) => write!(to, "cluster {name}"),
            Self::Cloud => to.write_str("cloud"),
        }
    }
}
