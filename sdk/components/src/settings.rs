//! Settings that several policies have, so that one name means the same in each.

use opensdn_policy_sdk::Severity;
use schemars::JsonSchema;
use serde::Deserialize;

/// How strict to be about what upstream's own default manifests contain.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Such manifests apply unchanged, with warnings.
    #[default]
    Default,
    /// They are refused.
    Strict,
}

impl Profile {
    /// The severity of a finding about something that upstream's manifests contain.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::Default => Severity::Warn,
            Self::Strict => Severity::Deny,
        }
    }
}

/// What a finding of this kind does to the request.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It passes with a warning.
    Warn,
    /// It is refused.
    Deny,
}

impl Level {
    /// The level as the severity of a finding.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::Warn => Severity::Warn,
            Self::Deny => Severity::Deny,
        }
    }
}
