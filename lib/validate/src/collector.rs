//! What has been found so far, and the report made of it. What is wrong with one object is
//! found elsewhere (`judge.rs`).

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::Validated;
use crate::active_policies::ActivePolicies;
use crate::claims::Claims;
use crate::inputs::{self, Input, Inputs};
use crate::judge::Judged;
use crate::report::{Finding, Location, NotChecked, Severity, Step, ValidationReport, codes};
use crate::twice::said_once;

/// What has been found so far.
#[derive(Default)]
pub(crate) struct Collector {
    pub(crate) findings: Vec<Finding>,
    not_checked: Vec<NotChecked>,
    pub(crate) claims: Claims,
    objects: usize,
    ignored: usize,
    unreadable: bool,
}

impl Collector {
    pub(crate) fn take(&mut self, judged: Judged) {
        let Judged { object, identity, place, findings, claims, not_checked, ignored } = judged;
        if ignored {
            self.ignored += 1;
        } else {
            self.objects += 1;
        }
        self.findings.extend(findings);
        self.not_checked.extend(not_checked);
        // An object without a name gets one from the API server; without a kind it is none.
        if object.name.is_empty() || object.kind.is_empty() {
            claims.into_iter().for_each(|claimant| self.claims.add(claimant));
            return;
        }
        match self.claims.define(identity, &object, place) {
            // Its claims are those of the first, so only the second copy is reported.
            Some(duplicate) => self.findings.push(duplicate),
            None => claims.into_iter().for_each(|claimant| self.claims.add(claimant)),
        }
    }

    /// A text that was there a moment ago.
    pub(crate) fn lose(&mut self, input: &Input, error: &io::Error) {
        let (message, hint) = inputs::explain(&input.name, error);
        let place = Location::of_file(input.origin, input.name.clone(), input.number);
        self.findings.push(unreadable(place, message, hint));
        self.unreadable = true;
    }

    pub(crate) fn finish(
        mut self,
        inputs: Inputs,
        active: &ActivePolicies,
        unanswered: &Mutex<BTreeSet<String>>,
    ) -> Validated {
        self.findings.extend(self.claims.conflicts());
        let Inputs { inputs, unreadable: lost, not_checked, .. } = inputs;
        let unreadable = self.unreadable || !lost.is_empty();
        for one in lost {
            self.findings.push(self::unreadable(one.place, one.message, one.hint));
        }
        self.not_checked.extend(not_checked);
        let unanswered: Vec<String> =
            unanswered.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        if !unanswered.is_empty() {
            self.not_checked.push(NotChecked {
                what: format!("what policies look up of {}", unanswered.join(", ")),
                why: "the documents have none; --live asks the cluster".to_owned(),
            });
        }
        let (suppressed, findings) =
            said_once(self.findings).into_iter().partition(|one| one.suppression.is_some());
        let mut report = ValidationReport {
            findings,
            suppressed,
            not_checked: self.not_checked,
            policies: active.ids.values().cloned().collect(),
            ..ValidationReport::default()
        };
        report.summary.files = inputs.len();
        report.summary.objects = self.objects;
        report.summary.ignored = self.ignored;
        let paths = inputs.iter().filter_map(|one| Some((one.number, one.path()?.to_owned())));
        let paths = paths.collect();
        let files = inputs.into_iter().map(|input| input.name).collect();
        Validated { report, files, paths, unreadable }
    }
}

fn unreadable(place: Location, message: String, hint: String) -> Finding {
    Finding {
        code: codes::UNREADABLE.to_owned(),
        severity: Severity::Error,
        step: Step::Syntax,
        title: String::new(),
        message,
        hint,
        object: None,
        pointer: None,
        place,
        related: Vec::new(),
        policy: None,
        suppression: None,
        fix: None,
    }
}
