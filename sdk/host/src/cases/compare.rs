//! What a policy said against what a case expects, and the other way round: what it said as an
//! expectation.

use serde_json::json;

use super::{Case, Expected, ExpectedClaim, ExpectedFinding, Report};
use crate::{
    contract::Severity,
    verdict::{Finding, Verdict},
};

/// Adds to the report everything that is not as expected.
pub(super) fn compare(case: &Case, report: &mut Report) {
    let expected = &case.expect;
    let mut problems = Vec::new();
    if !report.reached {
        problems.push("the case never reaches the policy: it has no interest in it".to_owned());
    }
    problems.extend(findings(&expected.findings, &report.verdict.findings));
    problems.extend(claims(&expected.claims, &claimed(&report.verdict)));
    problems.extend(failures(expected.failure.as_deref(), &reasons(report)));
    problems.extend(patch(expected, report));
    report.problems.extend(problems);
}

/// The expectation that fits the report.
pub(super) fn accept(expected: &Expected, report: &Report) -> Expected {
    let mut written: Vec<&ExpectedFinding> = expected.findings.iter().collect();
    let findings = report.verdict.findings.iter().map(|said| {
        match written.iter().position(|expected| fits(expected, said)) {
            Some(place) => written.remove(place).clone(),
            None => ExpectedFinding {
                code: said.code.clone(),
                severity: said.severity,
                pointer: said.pointer.clone(),
                message: said.message.clone(),
                hint: String::new(),
            },
        }
    });
    let findings = findings.collect();
    let reasons = reasons(report);
    let failure = expected
        .failure
        .clone()
        .filter(|part| reasons.iter().any(|reason| reason.contains(part)))
        .or_else(|| reasons.first().cloned());
    let patched = !report.mutation.patch.0.is_empty();
    let whole = expected.object.is_some();
    Expected {
        findings,
        claims: claimed(&report.verdict),
        patch: (expected.patch.is_some() || (patched && !whole))
            .then(|| json!(report.mutation.patch)),
        object: report.object.clone().filter(|_| whole),
        failure,
    }
}

fn fits(expected: &ExpectedFinding, said: &Finding) -> bool {
    said.code == expected.code
        && said.severity == expected.severity
        && said.pointer == expected.pointer
        && said.message.contains(&expected.message)
        && said.hint.contains(&expected.hint)
}

fn findings(expected: &[ExpectedFinding], said: &[Finding]) -> Vec<String> {
    let in_order = said.len() == expected.len()
        && said.iter().zip(expected).all(|(said, expected)| fits(expected, said));
    if in_order {
        return Vec::new();
    }
    let mut unexpected: Vec<&Finding> = said.iter().collect();
    let mut missing = Vec::new();
    for expected in expected {
        match unexpected.iter().position(|said| fits(expected, said)) {
            Some(place) => drop(unexpected.remove(place)),
            None => missing.push(format!("expected {}", finding(expected))),
        }
    }
    let unexpected = unexpected.into_iter().map(|said| format!("found    {}", given(said)));
    let problems: Vec<String> = missing.into_iter().chain(unexpected).collect();
    if !problems.is_empty() {
        return problems;
    }
    let order: Vec<&str> = said.iter().map(|said| said.code.as_str()).collect();
    vec![format!("expected the findings in another order than {}", order.join(", "))]
}

fn finding(expected: &ExpectedFinding) -> String {
    let ExpectedFinding { code, severity, pointer, message, hint } = expected;
    let mut text = format!("{} {code} at {}", word(*severity), place(pointer));
    for (name, part) in [("message", message), ("hint", hint)] {
        if !part.is_empty() {
            text.push_str(&format!(" with {part:?} in its {name}"));
        }
    }
    text
}

fn given(said: &Finding) -> String {
    let Finding { code, severity, pointer, message, hint, .. } = said;
    format!("{} {code} at {}: {message:?}, hint {hint:?}", word(*severity), place(pointer))
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Deny => "deny",
        Severity::Warn => "warn",
    }
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the whole object" } else { pointer }
}

fn claimed(verdict: &Verdict) -> Vec<ExpectedClaim> {
    let claim = |claim: &crate::verdict::Claim| ExpectedClaim {
        scope: claim.scope.clone(),
        key: claim.key.clone(),
        value: claim.value.clone(),
        pointer: claim.pointer.clone(),
    };
    verdict.claims.iter().map(claim).collect()
}

fn claims(expected: &[ExpectedClaim], claimed: &[ExpectedClaim]) -> Vec<String> {
    if claimed == expected {
        return Vec::new();
    }
    let text = |claim: &ExpectedClaim| {
        let value = claim.value.as_ref().map(|value| format!(" as {value:?}")).unwrap_or_default();
        format!("claim {} {:?}{value} at {}", claim.scope, claim.key, place(&claim.pointer))
    };
    let without = |all: &[ExpectedClaim], others: &[ExpectedClaim], word: &str| {
        let rest = all.iter().filter(|claim| !others.contains(claim));
        rest.map(|claim| format!("{word} {}", text(claim))).collect::<Vec<_>>()
    };
    let mut problems = without(expected, claimed, "expected");
    problems.extend(without(claimed, expected, "found   "));
    if problems.is_empty() {
        problems.push("expected the claims sorted by scope and key, each once".to_owned());
    }
    problems
}

fn reasons(report: &Report) -> Vec<String> {
    let failures = report.mutation.failures.iter().chain(&report.verdict.failures);
    failures.map(|failure| failure.reason.to_string()).collect()
}

fn failures(expected: Option<&str>, reasons: &[String]) -> Option<String> {
    match expected {
        None if !reasons.is_empty() => Some(format!("there is no answer: {}", reasons.join("; "))),
        Some(part) if !reasons.iter().any(|reason| reason.contains(part)) => {
            let found = if reasons.is_empty() { "none".to_owned() } else { reasons.join("; ") };
            Some(format!("expected a failure with {part:?} in its reason, found {found}"))
        }
        _ => None,
    }
}

fn patch(expected: &Expected, report: &Report) -> Vec<String> {
    let patched = json!(report.mutation.patch);
    let mut problems = Vec::new();
    match (&expected.patch, &expected.object) {
        (Some(patch), _) if *patch != patched => {
            problems.push(format!("expected the patch {patch}\nfound    the patch {patched}"));
        }
        (None, None) if !report.mutation.patch.0.is_empty() => {
            problems.push(format!("found    the patch {patched}, and none is expected"));
        }
        _ => {}
    }
    if let Some(object) =
        expected.object.as_ref().filter(|want| Some(*want) != report.object.as_ref())
    {
        let found = json!(report.object);
        problems.push(format!("expected the object {object}\nfound    the object {found}"));
    }
    problems
}
