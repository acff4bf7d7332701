//! What the commands about policies answer with, as far as several of them do. What only one says
//! is in its file.

use std::time::Duration;

use opensdn_policy_host::cases::Report;
use opensdn_policy_host::{Cost, Finding, Policy, Severity, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::Module;

/// Which policy it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Identity {
    /// What is wrong when it has a finding.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// `sha256:` and the digits of its bytes.
    pub(crate) digest: String,
    /// The file, or `built-in` and its name.
    pub(crate) source: String,
}

impl Identity {
    pub(crate) fn of(policy: &Policy, module: &Module) -> Self {
        Self {
            name: policy.metadata().name.clone(),
            version: policy.metadata().version.clone(),
            digest: policy.digest().to_string(),
            source: module.origin.to_string(),
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FindingAnswer {
    /// Its code.
    pub(crate) code: String,
    /// `deny` or `warn`.
    pub(crate) severity: &'static str,
    /// JSON Pointer of the field.
    pub(crate) pointer: String,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

impl From<&Finding> for FindingAnswer {
    fn from(finding: &Finding) -> Self {
        Self {
            code: finding.code.clone(),
            severity: severity(finding.severity),
            pointer: finding.pointer.clone(),
            message: finding.message.clone(),
            hint: finding.hint.clone(),
        }
    }
}

/// What one step cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CostAnswer {
    /// `mutate` or `validate`.
    pub(crate) step: &'static str,
    /// Instructions: the same on every machine.
    pub(crate) fuel: Option<u64>,
    /// Time of this one run, in an engine that counts; `policy bench` measures.
    pub(crate) microseconds: f64,
    /// Linear memory at its largest.
    pub(crate) memory_bytes: usize,
}

impl CostAnswer {
    pub(crate) fn of((step, cost): &(Step, Cost)) -> Self {
        Self {
            step: step_name(*step),
            fuel: cost.fuel,
            microseconds: microseconds(cost.total),
            memory_bytes: cost.memory,
        }
    }
}

/// What a policy says to a request, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// Nothing is wrong.
    Allow,
    /// It passes with a warning.
    Warn,
    /// It is refused.
    Deny,
    /// There is no answer.
    Failed,
}

impl Outcome {
    pub(crate) fn of(report: &Report) -> Self {
        let findings = &report.verdict.findings;
        if !report.verdict.failures.is_empty() || !report.mutation.failures.is_empty() {
            Self::Failed
        } else if findings.iter().any(Finding::denies) {
            Self::Deny
        } else if findings.is_empty() {
            Self::Allow
        } else {
            Self::Warn
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Deny => "deny",
            Self::Failed => "failed",
        }
    }
}

/// `deny` or `warn`.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Deny => "deny",
        Severity::Warn => "warn",
    }
}

/// `mutate` or `validate`.
pub(crate) fn step_name(step: Step) -> &'static str {
    match step {
        Step::Mutate => "mutate",
        Step::Validate => "validate",
    }
}

/// Microseconds, to the hundredth.
pub(crate) fn microseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e8).round() / 100.0
}

/// A time as people read it: `38 us`, `1.20 ms`.
pub(crate) fn time(microseconds: f64) -> String {
    if microseconds < 100.0 {
        format!("{microseconds:.0} us")
    } else if microseconds < 1e6 {
        format!("{:.2} ms", microseconds / 1e3)
    } else {
        format!("{:.2} s", microseconds / 1e6)
    }
}

/// A count as people read it: `41k`, `3.2M`.
#[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
pub(crate) fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Bytes as people read them: `84 KiB`, `1.1 MiB`.
#[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
pub(crate) fn bytes(number: usize) -> String {
    match number {
        0..1024 => format!("{number} bytes"),
        1024..1_048_576 => format!("{} KiB", number.div_ceil(1024)),
        _ => format!("{:.1} MiB", number as f64 / f64::from(1 << 20)),
    }
}

/// `sha256:3aa0f1c2d3e4`: enough to distinguish two.
pub(crate) fn short(digest: &str) -> &str {
    digest.get(.."sha256:".len() + 12).unwrap_or(digest)
}

/// A pointer, with a word for the one that is empty.
pub(crate) fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "(the whole object)" } else { pointer }
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, short, time};

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([time(38.2), time(123.4), time(2e6)], ["38 us", "0.12 ms", "2.00 s"]);
        assert_eq!([count(9_999), count(39_412), count(3_210_000)], ["9999", "39k", "3.2M"]);
        assert_eq!([bytes(12), bytes(86_000), bytes(1_153_434)], ["12 bytes", "84 KiB", "1.1 MiB"]);
        assert_eq!(short("sha256:0123456789abcdef"), "sha256:0123456789ab");
    }
}
