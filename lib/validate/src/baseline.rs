//! Findings that were there before, by an earlier report (`-o json`). They are listed as
//! suppressed and do not count, so that a team can start with what is new. Lines may have moved;
//! code, object, field and message identify a finding.

use std::collections::HashSet;
use std::path::Path;

use opensdn_manifests::read_limited;
use serde::Deserialize;

use crate::error::Error;
use crate::inputs::{explain, shown};
use crate::report::{By, Finding, Granted, ObjectId, ValidationReport};

#[derive(Deserialize)]
struct Earlier {
    kind: String,
    #[serde(default)]
    findings: Vec<Known>,
    #[serde(default)]
    suppressed: Vec<Known>,
}

#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Known {
    code: String,
    #[serde(default)]
    object: Option<ObjectId>,
    #[serde(default)]
    pointer: Option<String>,
    message: String,
}

/// The most of a report: more findings would have been acted on.
const MOST: u64 = 256 << 20;

/// Moves what the earlier report has to what is suppressed.
///
/// # Errors
/// The file cannot be read or is no report.
pub(crate) fn apply(path: &Path, report: &mut ValidationReport) -> Result<(), Error> {
    let name = shown(path);
    let failed = |message: String, hint: &str| Error::input("unreadable-file", message, hint);
    let bytes = read_limited(path, MOST).map_err(|error| {
        let (message, hint) = explain(&name, &error);
        failed(message, &hint)
    })?;
    let hint = "make it with: kubectl opensdn validate ... -o json > baseline.json";
    let earlier: Earlier = serde_json::from_slice(&bytes)
        .map_err(|error| failed(format!("{name} is no baseline"), hint).because(&error))?;
    if earlier.kind != "ValidationReport" {
        return Err(failed(format!("{name} is a {}, not a ValidationReport", earlier.kind), hint));
    }
    let known: HashSet<Known> = earlier.findings.into_iter().chain(earlier.suppressed).collect();
    let (old, new) = std::mem::take(&mut report.findings)
        .into_iter()
        .partition(|finding: &Finding| known.contains(&Known::of(finding)));
    report.findings = new;
    for mut finding in old {
        let reason = format!("it is in the baseline {name}");
        finding.suppression = Some(Granted { reason, by: By::Baseline });
        report.suppressed.push(finding);
    }
    Ok(())
}

impl Known {
    fn of(finding: &Finding) -> Self {
        Self {
            code: finding.code.clone(),
            object: finding.object.clone(),
            pointer: finding.pointer.clone(),
            message: finding.message.clone(),
        }
    }
}
